/* GroVE's training through the loop that all training goes through (train/objective.h).
 *
 * A step:  marginals of either side at the batch's latents (grove_side.c), likelihood and
 * alignment, which are D N numbers (pair_terms.c), and back. Scales are trained by their
 * logarithms. Parameters are floats where each output has a factor of its own, doubles otherwise;
 * everything but the products with those factors is computed in doubles either way. Fits that are
 * collapsed tie the sides by their latents alone.
 *
 * A checkpoint is grove.safetensors: the parameters, those of the lowest held-out loss so far, and
 * what early stopping and the report count. Everything before the first step is computed again. */
#include <math.h>
#include <signal.h>
#include <string.h>

#include "adapt/gp/pair_terms.h"
#include "adapt/grove/grove_side.h"

#define FILE_NAME "grove.safetensors"
#define BEST "best."
#define PROGRESS "progress"

enum { STREAM_EPOCH = 16 };
enum { N_PARAMS = PNB_N_ADAPTER_SIDES * PNB__GROVE_N_PARAMS + 1 };

/* In the order of the array in a checkpoint. */
typedef struct progress {
    double best_loss; /* NaN: nothing was validated */
    double best_step, waited;
    double first, last; /* as in pnb__grove_result */
} progress;
enum { N_PROGRESS = sizeof(progress) / sizeof(double) };

typedef struct pnb__grove_fit {
    pnb_ctx host; /* parameters lie in the host's memory, whatever device the context has */
    pnb__grove *g;
    pnb__grove_pairs *pairs;
    pnb__grove_run run;
    const pnb_adapter_opts *opts;
    pnb__kernels kernels;
    pnb__real real;
    size_t n; /* of a batch */
    int64_t n_steps;
    bool is_collapsed, is_exact;
    pnb__fit_side side[PNB_N_ADAPTER_SIDES];
    pnb__param latents, *params[N_PARAMS];
    size_t n_params;
    char *best;      /* parameters beside each other; NULL: nothing is held out */
    uint32_t *order; /* (N) pairs of this epoch */
    double *x, *dx;  /* (n,Q) */
    double *room;
    pnb__grove_loss_opts loss;
    pnb__grove_held_out held;
    progress at_best;
    pnb_loader_position at;
    volatile sig_atomic_t stop;
} fit;

static double elbo_weight(const fit *f)
{
    if (f->is_collapsed)
        return 1;
    return isnan(f->opts->elbo_weight) ? 1 : f->opts->elbo_weight;
}

static double align_weight(const fit *f)
{
    if (f->is_collapsed)
        return 0;
    return isnan(f->opts->align_weight) ? 1 : f->opts->align_weight;
}

/* ---- checkpoints ---- */

static size_t bytes_of(const fit *f, size_t i)
{
    return f->params[i]->n * PNB__REAL_SIZE(f->real);
}

/* Parameters to and from memory where they stand beside each other. */
static void copy_params(fit *f, char *to, const char *from)
{
    size_t at = 0;
    for (size_t i = 0; i < f->n_params; i++) {
        void *own = pnb__param_on_host(f->params[i], &f->kernels);
        memcpy(to != NULL ? to + at : own, to != NULL ? own : from + at, bytes_of(f, i));
        at += bytes_of(f, i);
    }
}

typedef char param_name[32];

static pnb_array_view view_of(const fit *f, size_t i, const char *prefix, const void *data,
                              param_name name)
{
    snprintf(name, sizeof(param_name), "%s%s", prefix, f->params[i]->name);
    return (pnb_array_view){.name = name,
                            .dtype = f->real == PNB__F64 ? PNB_F64 : PNB_F32,
                            .n_dims = 1,
                            .shape = {(int64_t)f->params[i]->n},
                            .data = data,
                            .n_bytes = bytes_of(f, i)};
}

static pnb_status save(void *self, const char *dir, pnb_error *err)
{
    fit *f = self;
    param_name names[2 * N_PARAMS];
    pnb_array_view views[2 * N_PARAMS + 1];
    size_t n = 0, at = 0;
    char *path = pnb__path_join(dir, FILE_NAME);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    for (size_t i = 0; i < f->n_params; i++, n++)
        views[n] = view_of(f, i, "", pnb__param_on_host(f->params[i], &f->kernels), names[n]);
    for (size_t i = 0; i < f->n_params && !isnan(f->at_best.best_loss); i++, n++) {
        views[n] = view_of(f, i, BEST, f->best + at, names[n]);
        at += bytes_of(f, i);
    }
    views[n++] = (pnb_array_view){.name = PROGRESS,
                                  .dtype = PNB_F64,
                                  .n_dims = 1,
                                  .shape = {N_PROGRESS},
                                  .data = &f->at_best,
                                  .n_bytes = sizeof f->at_best};
    pnb_status status = pnb_safetensors_write(path, views, n, NULL, err);
    pnb__free(path);
    return status;
}

static pnb_status read_part(fit *f, const pnb_safetensors *file, const char *prefix,
                            const char *where, pnb_error *err)
{
    for (size_t i = 0; i < f->n_params; i++) {
        param_name name;
        pnb_array_view want = view_of(f, i, prefix, NULL, name);
        const pnb_array_view *v = pnb_safetensors_find(file, name);
        if (v == NULL || v->dtype != want.dtype || v->n_bytes != want.n_bytes)
            return pnb__fail(err, PNB_FORMAT, "%s: no array %s of %zu bytes", where, name,
                             want.n_bytes);
        memcpy(pnb__param_on_host(f->params[i], &f->kernels), v->data, v->n_bytes);
    }
    return PNB_OK;
}

static pnb_status read_checkpoint(fit *f, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, FILE_NAME);
    pnb_safetensors *file = NULL;
    pnb_status status;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    PNB_TRY(pnb_safetensors_open(&file, path, err));
    const pnb_array_view *v = pnb_safetensors_find(file, PROGRESS);
    if (v == NULL || v->dtype != PNB_F64 || v->n_bytes != sizeof f->at_best)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: no array " PROGRESS, path));
    memcpy(&f->at_best, v->data, sizeof f->at_best);
    if (!isnan(f->at_best.best_loss) && f->best == NULL)
        PNB_TRY(pnb__fail(err, PNB_ARG, "%s: the run had held-out rows, and none are given", path));
    if (!isnan(f->at_best.best_loss)) {
        PNB_TRY(read_part(f, file, BEST, path, err));
        copy_params(f, f->best, NULL);
    }
    status = read_part(f, file, "", path, err);
done:
    pnb_safetensors_free(file);
    pnb__free(path);
    return status;
}

/* ---- opening ---- */

void pnb__grove_order(uint32_t *order, size_t n, size_t batch, uint64_t seed, uint64_t epoch)
{
    pnb__rng rng;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (batch == n)
        return;
    pnb__rng_init(&rng, seed, STREAM_EPOCH + epoch);
    pnb__rng_shuffle(&rng, order, n);
}

static void draw_order(fit *f)
{
    pnb__grove_order(f->order, f->pairs->n, f->n, f->opts->seed, (uint64_t)f->at.epoch);
}

static pnb_status open_params(fit *f, pnb_error *err)
{
    size_t n_pairs = f->pairs->n, q = f->g->q;
    pnb_status status;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb__fit_side *w = &f->side[s];
        *w = (pnb__fit_side){.g = f->g,
                             .number = s,
                             .ctx = &f->host,
                             .real = f->real,
                             .n = f->n,
                             .is_collapsed = f->is_collapsed,
                             .is_exact = f->is_exact};
        PNB_TRY(pnb__fit_side_open(w, err));
        for (int i = 0; i < PNB__GROVE_N_PARAMS; i++)
            if (w->params[i].name != NULL)
                f->params[f->n_params++] = &w->params[i];
    }
    PNB_TRY(pnb__fit_side_param(&f->side[0], &f->latents, "latents", n_pairs * q, err));
    status = pnb__param_write(&f->latents, &f->kernels, 0, n_pairs * q, f->pairs->x, err);
    f->params[f->n_params++] = &f->latents;
done:
    return status;
}

static pnb_status open_held_out(fit *f, pnb_error *err)
{
    size_t bytes = 0;
    if (f->run.data == NULL || f->run.data->val_truth == NULL)
        return PNB_OK;
    pnb_status status = pnb__grove_held_out_open(&f->held, f->run.data, f->g->q, f->run.opts, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < f->n_params; i++)
        bytes += bytes_of(f, i);
    return PNB_ALLOC(f->best, bytes, err);
}

static pnb_status open_fit(void *self, const char *checkpoint, pnb__objective *o, pnb_error *err)
{
    fit *f = self;
    size_t n_pairs = f->pairs->n, q = f->g->q;
    pnb_status status;
    pnb__kernels_fill_host(&f->kernels, &f->host, f->real);
    PNB_TRY(open_params(f, err));
    f->order = pnb__alloc_array(n_pairs, sizeof *f->order);
    f->x = pnb__alloc_array(2 * f->n + n_pairs, q * sizeof *f->x);
    if (f->order == NULL || f->x == NULL)
        PNB_TRY(pnb__fail_nomem(err, n_pairs * (q + 1) * sizeof *f->x));
    f->dx = f->x + f->n * q;
    f->room = f->dx + f->n * q;
    PNB_TRY(open_held_out(f, err));
    if (checkpoint != NULL)
        PNB_TRY(read_checkpoint(f, checkpoint, err));
    o->params = f->params;
    o->n_params = f->n_params;
    for (size_t i = 0; i < f->n_params; i++)
        o->n_weights += f->params[i]->n;
    o->real = f->real;
    o->n_samples = n_pairs;
    o->steps_per_epoch = (int64_t)(n_pairs / f->n);
    o->validates = f->best != NULL;
done:
    return status;
}

static pnb_status start_fit(void *self, pnb_loader_position at, pnb__objective *o, pnb_error *err)
{
    fit *f = self;
    (void)o, (void)err;
    f->at = at;
    f->loss = (pnb__grove_loss_opts){.elbo_weight = elbo_weight(f),
                                     .align_weight = align_weight(f),
                                     .align = (pnb__align)f->opts->align,
                                     .n_data = (double)f->pairs->n};
    draw_order(f);
    return PNB_OK;
}

static void close_fit(void *self)
{
    fit *f = self;
    if (f->latents.name != NULL)
        pnb__fit_side_free_param(&f->side[0], &f->latents);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__fit_side_close(&f->side[s]);
    pnb__grove_held_out_reset(&f->held);
    pnb__free(f->best);
    pnb__free(f->order);
    pnb__free(f->x);
}

/* ---- a step ---- */

static pnb_status read_latents(fit *f, const uint32_t *batch, pnb_error *err)
{
    size_t q = f->g->q;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < f->n && status == PNB_OK; i++)
        status = pnb__param_read(&f->latents, &f->kernels, batch[i] * q, q, f->x + i * q, err);
    return status;
}

/* Only the batch's latents have slopes. */
static void put_latent_slopes(fit *f, const uint32_t *batch)
{
    size_t q = f->g->q;
    memset(f->room, 0, f->pairs->n * q * sizeof *f->room);
    for (size_t i = 0; i < f->n; i++)
        memcpy(f->room + batch[i] * q, f->dx + i * q, q * sizeof *f->dx);
    pnb__fit_side_put_slopes(&f->side[0], &f->latents, f->room);
}

/* Means over the first and the last tenth of all steps. */
static void count_step(fit *f, int64_t step, double total)
{
    int64_t tenth = (f->n_steps + 9) / 10;
    if (step < tenth)
        f->at_best.first += total / (double)tenth;
    if (step >= f->n_steps - tenth)
        f->at_best.last += total / (double)tenth;
}

static pnb_status step_fit(void *self, int64_t step, pnb__step_values *out, pnb_error *err)
{
    fit *f = self;
    const uint32_t *batch = f->order + (size_t)f->at.batch * f->n;
    double weight = elbo_weight(f) / (double)f->pairs->n, divergence = 0;
    pnb__pair_side terms[PNB_N_ADAPTER_SIDES];
    pnb_status status;
    PNB_TRY(read_latents(f, batch, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(pnb__fit_side_forward(&f->side[s], f->pairs, batch, f->x, &terms[s], err));
    const pnb__pair_loss_terms value = pnb__pair_terms(terms, f->n, &f->loss);
    memset(f->dx, 0, f->n * f->g->q * sizeof *f->dx);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        divergence += pnb__fit_side_backward(&f->side[s], f->x, weight, f->dx);
    }
    put_latent_slopes(f, batch);
    pnb__figures_add(&out->terms, "fit", NULL, value.fit);
    pnb__figures_add(&out->terms, "align", NULL, value.align);
    pnb__figures_add(&out->terms, "divergence", NULL, weight * divergence);
    out->total = value.fit + value.align + weight * divergence;
    count_step(f, step, out->total);
    if ((size_t)++f->at.batch == f->pairs->n / f->n) {
        f->at = (pnb_loader_position){.epoch = f->at.epoch + 1};
        draw_order(f);
    }
done:
    return status;
}

static pnb_loader_position position_fit(const void *self)
{
    return ((const fit *)self)->at;
}

/* ---- between the steps ---- */

/* The parameters into the model and the pairs. A collapsed fit's order is that of the pairs. */
static pnb_status take_params(fit *f, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(pnb__param_read(&f->latents, &f->kernels, 0, f->latents.n, f->pairs->x, err));
    if (f->is_collapsed)
        PNB_TRY(read_latents(f, f->order, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(pnb__fit_side_take(&f->side[s], f->pairs, f->order, f->x, err));
done:
    return status;
}

static pnb_status validate_fit(void *self, int64_t step, pnb__eval_values *out, pnb_error *err)
{
    fit *f = self;
    pnb_status status = take_params(f, err);
    if (status == PNB_OK)
        status = pnb__grove_held_out_loss(&f->held, f->g, &f->host, f->pairs, &f->loss, &out->total,
                                          err);
    if (status != PNB_OK)
        return status;
    out->n = f->held.n;
    if (!isfinite(out->total))
        return pnb__fail(err, PNB_NUMERIC, "the loss on the held-out pairs is %g", out->total);
    f->at_best.waited += 1;
    if (isnan(f->at_best.best_loss) || out->total < f->at_best.best_loss) {
        f->at_best.best_loss = out->total;
        f->at_best.best_step = (double)step;
        f->at_best.waited = 0;
        copy_params(f, f->best, NULL);
    }
    return PNB_OK;
}

static bool is_done_fit(const void *self)
{
    const fit *f = self;
    return f->opts->patience > 0 && f->at_best.waited >= (double)f->opts->patience;
}

/* After the last step and its checkpoint: the model is that of the best parameters. A run that was
 * stopped before is saved behind this, and keeps its own. */
static pnb_status conclude_fit(void *self, pnb__trainer *t, pnb_error *err)
{
    fit *f = self;
    if (t->state.step < t->n_steps && !is_done_fit(self))
        return PNB_OK;
    if (!isnan(f->at_best.best_loss))
        copy_params(f, NULL, f->best);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__fit_side_finish(&f->side[s]);
    return take_params(f, err);
}

static const pnb__objective_calls fit_calls = {.open = open_fit,
                                               .start = start_fit,
                                               .step = step_fit,
                                               .position = position_fit,
                                               .validate = validate_fit,
                                               .is_done = is_done_fit,
                                               .conclude = conclude_fit,
                                               .save = save,
                                               .close = close_fit};

/* ---- a whole training ---- */

static size_t batch_of(const pnb_adapter_opts *opts, size_t n_pairs)
{
    size_t wanted = opts->batch_size > 0 ? (size_t)opts->batch_size : 64;
    return opts->grove_fit != PNB_GROVE_STEPS ? n_pairs : PNB_MIN(wanted, n_pairs);
}

pnb_status pnb__grove_fit_create(pnb__grove_fit **out, pnb__grove *g, const pnb_ctx *ctx,
                                 pnb__grove_pairs *pairs, const pnb__grove_run *run, pnb_error *err)
{
    fit *f = pnb__alloc_zero(1, sizeof *f);
    if (f == NULL)
        return pnb__fail_nomem(err, sizeof *f);
    *f = (fit){.host = *ctx,
               .g = g,
               .pairs = pairs,
               .run = *run,
               .opts = run->opts,
               .real = g->is_shared ? PNB__F64 : PNB__F32,
               .n = batch_of(run->opts, pairs->n),
               .at_best = {.best_loss = NAN},
               .is_collapsed = run->opts->grove_fit != PNB_GROVE_STEPS,
               .is_exact = run->opts->grove_fit == PNB_GROVE_EXACT};
    f->host.column = NULL;
    *out = f;
    return PNB_OK;
}

void pnb__grove_fit_free(pnb__grove_fit *f)
{
    pnb__free(f);
}

pnb__objective pnb__grove_fit_objective(pnb__grove_fit *f)
{
    return (pnb__objective){.calls = &fit_calls, .self = f, .settings = f->run.settings};
}

static void watch_step(void *user, const pnb_train_progress *p)
{
    fit *f = user;
    const pnb_watch *w = &f->run.data->watch;
    if (w->step != NULL && !w->step(w->user, (size_t)p->step, (size_t)p->n_steps))
        f->stop = 1;
}

/* Ten epochs, or as many as a thousand steps are where there are more pairs: at least one. */
static int64_t epochs_of(const pnb__grove_fit *f)
{
    enum { MOST_STEPS = 1000 };
    if (f->opts->epochs > 0)
        return f->opts->epochs;
    if (f->is_collapsed)
        return 200;
    size_t steps = PNB_MAX(f->pairs->n / f->n, (size_t)1);
    return PNB_MAX(1, PNB_MIN(10, (int64_t)(MOST_STEPS / steps)));
}

/* A training is validated, and where a run is kept saved, about thirty times. */
static void keep_run(pnb__grove_fit *f, pnb__run_opts *run)
{
    const pnb_adapter_data *data = f->run.data;
    int64_t every = PNB_MAX(f->n_steps / 30, (int64_t)1);
    run->logs = data->logs;
    run->name = data->name;
    run->resume = data->resume;
    run->label = "grove";
    run->log_every_n_steps = PNB_MAX(every / 3, (int64_t)1);
    run->val_every_n_steps = run->save_every_n_steps = every;
    run->stop = &f->stop;
    run->progress = watch_step;
    run->progress_user = f;
}

pnb__run_opts pnb__grove_fit_run(pnb__grove_fit *f)
{
    const pnb_adapter_opts *opts = f->opts;
    pnb__run_opts run = {.optim = pnb_optim_opts_default(),
                         .lr_scheduler = PNB_SCHEDULE_COSINE,
                         .batch_size = f->n,
                         .accum_freq = 1,
                         .epochs = epochs_of(f),
                         .lr_cooldown_power = 1,
                         .max_steps = opts->steps,
                         .seed = opts->seed};
    f->n_steps = opts->steps > 0 ? opts->steps : run.epochs * (int64_t)(f->pairs->n / f->n);
    run.optim.kind = PNB_OPTIM_ADAM;
    run.optim.lr = isnan(opts->lr) ? 0.01 : opts->lr;
    run.optim.beta2 = 0.999;
    run.optim.eps = 1e-8;
    run.optim.weight_decay = 0;
    if (f->run.data != NULL)
        keep_run(f, &run);
    return run;
}

pnb_status pnb__grove_train(pnb__grove *g, const pnb_ctx *ctx, pnb__grove_pairs *pairs,
                            const pnb__grove_run *run, pnb__grove_result *out, pnb_error *err)
{
    fit *f = NULL;
    pnb__run_result result;
    pnb_status status = pnb__grove_fit_create(&f, g, ctx, pairs, run, err);
    if (status != PNB_OK)
        return status;
    const pnb__objective objective = pnb__grove_fit_objective(f);
    const pnb__run_opts opts = pnb__grove_fit_run(f);
    status = pnb__trainer_run(&f->host, &opts, &objective, &result, err);
    *out = (pnb__grove_result){.first = f->at_best.first,
                               .last = f->at_best.last,
                               .jitter = fmax(f->side[0].jitter, f->side[1].jitter),
                               .steps = result.step,
                               .best_loss = f->at_best.best_loss,
                               .best_step = f->at_best.best_step};
    pnb__grove_fit_free(f);
    return status;
}
