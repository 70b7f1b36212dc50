/* Training a head on frozen rows, as an objective of the loop (train/objective.h).
 *
 * A step reads a batch of pairs, runs the graph and leaves gradients. Validation is the loss on the
 * held-out pairs, one of each caption or all, in an order of its own that never changes, of more
 * than MOST_BATCHES batches on the first of them; the weights of the lowest one are kept, and
 * `patience` validations without a lower one end the training. A checkpoint is head.safetensors:
 * the weights, the best ones so far, and what early stopping counts, so that a resumed run stops
 * where an uninterrupted one does. */
#include <math.h>
#include <signal.h>
#include <string.h>

#include "adapt/heads/learned.h"
#include "peers/peers.h"
#include "train/trainer.h"

enum { MOST_BATCHES = 20 }; /* of a validation: thirty of them take less than 600 steps */
#define FILE_NAME "head.safetensors"
#define BEST "best."
#define PROGRESS "early_stopping"

/* What early stopping counts; in the order of the array in a checkpoint. */
typedef struct progress {
    double best_loss; /* NaN: nothing was validated */
    double best_step, waited;
    double last_loss; /* of the last step */
} progress;

typedef struct training {
    pnb_adapter *a;
    pnb__learned *l;
    pnb__learned_pairs *pairs, held_out;
    bool validates;
    pnb__learned_graph step, validation;
    pnb__learned_passes passes; /* in place of `step` where it has more than one */
    size_t n_passes;
    pnb__exchange *exchange; /* NULL: one pass in one process */
    size_t val_batch;
    float *x[PNB_N_ADAPTER_SIDES]; /* (the larger batch, dim) */
    float *now, *best;             /* (n_weights) */
    progress early;
    pnb_loader_position at;
    int64_t steps_per_epoch;
    uint64_t epoch_drawn; /* whose order stands in pairs; UINT64_MAX: none */
    const pnb_adapter_data *data;
    volatile sig_atomic_t stop;
} training;

/* ---- checkpoints ---- */

/* A part of head.safetensors that begins with `prefix`, into `out`. */
static pnb_status read_part(const training *t, const pnb_safetensors *file, const char *prefix,
                            const char *where, float *out, pnb_error *err)
{
    pnb__learned_names names;
    pnb_array_view views[PNB__LEARNED_MAX_PARAMS];
    pnb__learned_views(t->l, out, prefix, names, views);
    for (size_t i = 0; i < t->l->n_params; i++) {
        const pnb_array_view *v = pnb_safetensors_find(file, names[i]);
        if (v == NULL || v->n_bytes != views[i].n_bytes || v->dtype != PNB_F32)
            return pnb__fail(err, PNB_FORMAT, "%s: no array %s of %zu bytes", where, names[i],
                             views[i].n_bytes);
        memcpy(out, v->data, v->n_bytes);
        out += t->l->params[i].n;
    }
    return PNB_OK;
}

static pnb_status read_progress(training *t, const pnb_safetensors *file, const char *where,
                                pnb_error *err)
{
    const pnb_array_view *v = pnb_safetensors_find(file, PROGRESS);
    double values[4];
    if (v == NULL || v->dtype != PNB_F64 || v->n_bytes != sizeof values)
        return pnb__fail(err, PNB_FORMAT, "%s: no array " PROGRESS, where);
    memcpy(values, v->data, sizeof values);
    t->early = (progress){values[0], values[1], values[2], values[3]};
    return isnan(t->early.best_loss) ? PNB_OK : read_part(t, file, BEST, where, t->best, err);
}

static pnb_status read_checkpoint(training *t, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, FILE_NAME);
    pnb_safetensors *file = NULL;
    pnb_status status;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    PNB_TRY(pnb_safetensors_open(&file, path, err));
    PNB_TRY(read_part(t, file, "", path, t->now, err));
    PNB_TRY(pnb__learned_set(t->l, t->now, err));
    status = read_progress(t, file, path, err);
done:
    pnb_safetensors_free(file);
    pnb__free(path);
    return status;
}

static pnb_status save(void *self, const char *dir, pnb_error *err)
{
    training *t = self;
    size_t n = t->l->n_params;
    bool has_best = !isnan(t->early.best_loss);
    double values[4] = {t->early.best_loss, t->early.best_step, t->early.waited,
                        t->early.last_loss};
    pnb__learned_names names[2];
    pnb_array_view views[2 * PNB__LEARNED_MAX_PARAMS + 1];
    char *path = pnb__path_join(dir, FILE_NAME);
    pnb_status status;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    PNB_TRY(pnb__learned_get(t->l, t->now, err));
    pnb__learned_views(t->l, t->now, "", names[0], views);
    pnb__learned_views(t->l, t->best, BEST, names[1], views + n);
    n = has_best ? 2 * n : n;
    views[n] = (pnb_array_view){.name = PROGRESS,
                                .dtype = PNB_F64,
                                .n_dims = 1,
                                .shape = {4},
                                .data = values,
                                .n_bytes = sizeof values};
    status = pnb_safetensors_write(path, views, n + 1, NULL, err);
done:
    pnb__free(path);
    return status;
}

/* ---- opening ---- */

static pnb_status make_room(training *t, pnb_error *err)
{
    size_t n = PNB_MAX((size_t)t->a->opts.batch_size, t->val_batch);
    pnb_status status;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(PNB_ALLOC_ROWS(t->x[s], n, t->a->part[s].dim, err));
    PNB_TRY(PNB_ALLOC_ZERO(t->now, t->l->n_weights, err));
    status = PNB_ALLOC_ZERO(t->best, t->l->n_weights, err);
done:
    return status;
}

static pnb_status open_held_out(training *t, pnb_error *err)
{
    const pnb_adapter_data *d = t->data;
    t->validates = d->val_truth != NULL;
    if (!t->validates)
        return PNB_OK;
    bool is_each = t->a->opts.texts == PNB_ADAPT_TEXTS_EACH;
    pnb_status status =
        pnb__learned_pairs_init(&t->held_out, d->val_images, d->val_texts, d->val_truth,
                                is_each ? PNB_ADAPT_TEXTS_EACH : PNB_ADAPT_TEXTS_ALL, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "held-out rows");
        return status;
    }
    pnb__learned_pairs_shuffle(&t->held_out, 0, 0);
    t->val_batch = PNB_MIN((size_t)t->a->opts.batch_size, t->held_out.n_order);
    return PNB_OK;
}

/* What processes compare: which rows belong together, and 256 rows of each side, evenly taken. */
static void mark_rows(const training *t, pnb__objective *o)
{
    enum { LOOKED_AT = 256 };
    const pnb__learned_pairs *p = t->pairs;
    uint64_t pairs = 0, rows = 0;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t dim = t->a->part[s].dim;
        pairs = pnb__hash_bytes(p->row[s], p->n * sizeof *p->row[s], pairs);
        for (size_t i = 0; i < LOOKED_AT; i++) {
            size_t row = p->row[s][pnb__peers_part_at(p->n, LOOKED_AT, i)];
            rows = pnb__hash_bytes(p->set[s]->mean + row * dim, dim * sizeof(float), rows);
        }
    }
    o->marks[o->n_marks++] = (pnb__mark){"pairs", pairs};
    o->marks[o->n_marks++] = (pnb__mark){"rows", rows};
}

static pnb_status open_training(void *self, const char *checkpoint, pnb__objective *o,
                                pnb_error *err)
{
    training *t = self;
    pnb_status status;
    PNB_TRY(open_held_out(t, err));
    PNB_TRY(make_room(t, err));
    if (checkpoint != NULL)
        PNB_TRY(read_checkpoint(t, checkpoint, err));
    o->params = t->l->list;
    o->n_params = t->l->n_params;
    o->n_weights = t->l->n_weights;
    o->real = PNB__F32;
    o->n_samples = t->pairs->n;
    o->steps_per_epoch = t->steps_per_epoch;
    o->validates = t->validates;
    if (t->exchange != NULL)
        mark_rows(t, o);
done:
    return status;
}

/* That of the loss. */
static pnb__learned_graph *graph_of(training *t)
{
    return t->exchange != NULL ? &t->passes.loss : &t->step;
}

static pnb_status start(void *self, pnb_loader_position at, pnb__objective *o, pnb_error *err)
{
    training *t = self;
    t->at = at;
    size_t n = (size_t)t->a->opts.batch_size;
    pnb_status status =
        t->exchange != NULL
            ? pnb__learned_passes_init(&t->passes, t->a, n, t->n_passes, t->exchange, err)
            : pnb__learned_graph_init(&t->step, t->a, n, true, err);
    if (status == PNB_OK && t->validates)
        status = pnb__learned_graph_init(&t->validation, t->a, t->val_batch, false, err);
    if (status == PNB_OK)
        o->graph_bytes = pnb__graph_arena_bytes(graph_of(t)->g);
    return status;
}

static void close_training(void *self)
{
    training *t = self;
    pnb__learned_graph_reset(&t->step);
    pnb__learned_passes_reset(&t->passes);
    pnb__learned_graph_reset(&t->validation);
    pnb__learned_pairs_reset(&t->held_out);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__free(t->x[s]);
    pnb__free(t->now);
}

/* ---- steps ---- */

static pnb_status step(void *self, int64_t number, pnb__step_values *out, pnb_error *err)
{
    training *t = self;
    const pnb__learned_graph *made = graph_of(t);
    size_t n = made->n;
    double before = pnb__now_s();
    if (t->epoch_drawn != t->at.epoch) {
        pnb__learned_pairs_shuffle(t->pairs, t->a->opts.seed, t->at.epoch);
        t->epoch_drawn = t->at.epoch;
    }
    pnb__learned_pairs_read(t->pairs, t->l, (size_t)t->at.batch * n, n, t->x);
    out->data_s = pnb__now_s() - before;
    pnb_status status = t->exchange != NULL
                            ? pnb__learned_passes_run(&t->passes, t->x, (uint64_t)number, err)
                            : pnb__learned_graph_run(&t->step, t->x, (uint64_t)number, err);
    if (status == PNB_NUMERIC)
        pnb__error_prefix(err,
                          "numbers of a batch leave the range of floats: lower --lr, or divide "
                          "the embeddings by their typical length");
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < made->n_terms; i++)
        pnb__figures_add(&out->terms, made->term[i].name, NULL,
                         pnb__read_scalar(made->term[i].value));
    out->total = t->early.last_loss = pnb__read_scalar(made->total);
    t->at.batch++;
    if ((int64_t)t->at.batch == t->steps_per_epoch)
        t->at = (pnb_loader_position){t->at.epoch + 1, 0};
    return PNB_OK;
}

static pnb_loader_position position(const void *self)
{
    return ((const training *)self)->at;
}

/* Whether this is the best so far; its weights are kept. */
static pnb_status compare(training *t, int64_t number, double loss, pnb_error *err)
{
    if (!(isnan(t->early.best_loss) || loss < t->early.best_loss)) {
        t->early.waited += 1;
        return PNB_OK;
    }
    t->early = (progress){loss, (double)number, 0, t->early.last_loss};
    return pnb__learned_get(t->l, t->best, err);
}

/* Batches go on from the beginning behind the end: the first pairs count twice where the last batch
 * is not full. The same pairs and the same noise in every validation. */
static pnb_status validate(void *self, int64_t number, pnb__eval_values *out, pnb_error *err)
{
    training *t = self;
    size_t n = t->val_batch;
    size_t n_batches = PNB_MIN((t->held_out.n_order + n - 1) / n, (size_t)MOST_BATCHES);
    for (size_t b = 0; b < n_batches; b++) {
        pnb__learned_pairs_read(&t->held_out, t->l, b * n, n, t->x);
        pnb_status status = pnb__learned_graph_run(&t->validation, t->x, b, err);
        if (status != PNB_OK)
            return status;
        out->total += pnb__read_scalar(t->validation.total) / (double)n_batches;
    }
    out->n = n_batches * n;
    if (!isfinite(out->total))
        return pnb__fail(err, PNB_NUMERIC, "the loss on the held-out pairs is %g", out->total);
    return compare(t, number, out->total, err);
}

static bool is_done(const void *self)
{
    const training *t = self;
    int64_t patience = t->a->opts.patience;
    return patience > 0 && t->early.waited >= (double)patience;
}

static const pnb__objective_calls calls = {.open = open_training,
                                           .start = start,
                                           .step = step,
                                           .position = position,
                                           .validate = validate,
                                           .is_done = is_done,
                                           .save = save,
                                           .close = close_training};

/* ---- a run ---- */

static void watch_step(void *user, const pnb_train_progress *p)
{
    training *t = user;
    const pnb_watch *w = &t->data->watch;
    if (w->step != NULL && !w->step(w->user, (size_t)p->step, (size_t)p->n_steps))
        t->stop = 1;
}

/* A training is validated, and where a run is kept saved, about thirty times. */
static pnb__run_opts run_opts(training *t)
{
    const pnb_adapter_opts *o = &t->a->opts;
    const pnb_adapter_data *d = t->data;
    int64_t n_steps = o->steps > 0 ? o->steps : o->epochs * t->steps_per_epoch;
    int64_t every = PNB_MAX(n_steps / 30, (int64_t)1);
    bool is_small = o->recipe == PNB_ADAPT_RECIPE_SMALL;
    return (pnb__run_opts){.optim = pnb__learned_optim(t->a),
                           .lr_scheduler = PNB_SCHEDULE_COSINE,
                           .warmup = is_small ? n_steps / 20 : 0,
                           .lr_min_ratio = is_small ? 0.02 : PNB_MIN(1e-6 / fmax(o->lr, 1e-6), 1.0),
                           .lr_cooldown_power = 1,
                           .batch_size = (size_t)o->batch_size / t->n_passes,
                           .accum_freq = (int)t->n_passes,
                           .epochs = o->epochs,
                           .max_steps = o->steps,
                           .seed = o->seed,
                           .logs = d->logs,
                           .name = d->name,
                           .resume = d->resume,
                           .label = t->a->about->name,
                           .log_every_n_steps = PNB_MAX(every / 3, (int64_t)1),
                           .val_every_n_steps = every,
                           .save_every_n_steps = every,
                           .stop = &t->stop,
                           .progress = watch_step,
                           .progress_user = t};
}

static void tell(const training *t, const pnb__run_result *r)
{
    pnb_adapter *a = t->a;
    pnb__adapter_tell(a, PNB_N_ADAPTER_SIDES, "steps", (double)r->step);
    pnb__adapter_tell(a, PNB_N_ADAPTER_SIDES, "loss", t->early.last_loss);
    if (isnan(t->early.best_loss))
        return;
    pnb__adapter_tell(a, PNB_N_ADAPTER_SIDES, "val_loss", t->early.best_loss);
    pnb__adapter_tell(a, PNB_N_ADAPTER_SIDES, "best_step", t->early.best_step);
}

/* As many as there are processes where nobody says more. */
static size_t passes_of(const pnb_adapter_data *d)
{
    return d->n_passes > 0 ? d->n_passes : pnb_peers_count(d->ranks);
}

pnb_status pnb__learned_train(pnb_adapter *a, const pnb__adapter_job *job,
                              pnb__learned_pairs *pairs, pnb_error *err)
{
    training t = {.a = a,
                  .l = a->self,
                  .pairs = pairs,
                  .early = {.best_loss = NAN},
                  .steps_per_epoch = (int64_t)(pairs->n_order / (size_t)a->opts.batch_size),
                  .epoch_drawn = UINT64_MAX,
                  .n_passes = passes_of(job->data),
                  .data = job->data};
    pnb_status status = PNB_OK;
    if (t.n_passes > 1 || job->data->ranks != NULL)
        status = pnb__exchange_create(&t.exchange, job->data->ranks, err);
    if (status != PNB_OK)
        return status;
    const pnb__run_opts opts = run_opts(&t);
    const pnb__objective objective = {.calls = &calls,
                                      .self = &t,
                                      .settings = {a->calls->fields, a->calls->n_fields, &a->opts},
                                      .exchange = t.exchange};
    pnb__run_result result;
    status = pnb__trainer_run(a->ctx, &opts, &objective, &result, err);
    pnb__exchange_free(t.exchange);
    if (status == PNB_OK && !isnan(t.early.best_loss))
        status = pnb__learned_set(t.l, t.best, err);
    if (status == PNB_OK)
        tell(&t, &result);
    pnb__free(t.best);
    return status;
}
