/* Validation: losses batch by batch, retrieval R@1 within a batch and over the whole set.
 *
 * One caption a picture (of `val_level` where samples have levels), always the same ones, so that
 * evaluations of one run can be compared. Losses run over full batches only, without the masked
 * terms, which depend on random masks. Retrieval is exact, by the csd similarity. What bins of
 * uncertainty say of its success is unc_bins.c. */
#include <math.h>
#include <string.h>

#include "penumbra/search.h"
#include "train/trainer.h"

/* Distributions of the whole set; log_var NULL when the model has no uncertainty. */
typedef struct val_set {
    size_t n, dim;
    float *mean[2], *log_var[2]; /* image, text */
} val_set;

static void free_set(val_set *v)
{
    for (int s = 0; s < 2; s++) {
        pnb__free(v->mean[s]);
        pnb__free(v->log_var[s]);
    }
}

static pnb_status make_set(val_set *v, const pnb__trainer *t, size_t padded, pnb_error *err)
{
    *v = (val_set){.n = pnb_dataset_size(t->val), .dim = t->info->embed_dim};
    for (int s = 0; s < 2; s++) {
        v->mean[s] = pnb__alloc_array(padded * v->dim, sizeof(float));
        v->log_var[s] = pnb__alloc_array(padded * v->dim, sizeof(float));
        if (v->mean[s] == NULL || v->log_var[s] == NULL)
            return pnb__fail_nomem(err, padded * v->dim * sizeof(float));
    }
    return PNB_OK;
}

/* The encoders are planned for one batch size: a short last batch is filled with its first row. */
typedef struct padded_batch {
    size_t size, n_pixels, length;
    float *pixels;
    int32_t *ids;
} padded_batch;

static pnb_status make_padded(padded_batch *p, const pnb__trainer *t, size_t size, pnb_error *err)
{
    *p = (padded_batch){.size = size,
                        .n_pixels = 3 * t->info->vision.image_height * t->info->vision.image_width,
                        .length = t->info->text.context_length};
    p->pixels = pnb__alloc_array(size * p->n_pixels, sizeof *p->pixels);
    p->ids = pnb__alloc_array(size * p->length, sizeof *p->ids);
    if (p->pixels == NULL || p->ids == NULL)
        return pnb__fail_nomem(err, size * p->n_pixels * sizeof *p->pixels);
    return PNB_OK;
}

static void fill_padded(padded_batch *p, const pnb_batch *b)
{
    for (size_t i = 0; i < p->size; i++) {
        size_t from = i < b->n ? i : 0;
        memcpy(p->pixels + i * p->n_pixels, b->pixels + from * p->n_pixels,
               p->n_pixels * sizeof *p->pixels);
        memcpy(p->ids + i * p->length, b->tokens + from * p->length, p->length * sizeof *p->ids);
    }
}

static pnb_status encode_batch(pnb__trainer *t, const padded_batch *p, val_set *v, size_t at,
                               pnb_error *err)
{
    size_t offset = at * v->dim;
    pnb_encode_out image = {v->mean[0] + offset, v->log_var[0] + offset, false};
    pnb_encode_out text = {v->mean[1] + offset, v->log_var[1] + offset, false};
    pnb_status status = pnb_model_encode_image(t->model, p->pixels, p->size, &image, err);
    if (status == PNB_OK)
        status = pnb_model_encode_text(t->model, p->ids, p->size, p->length, &text, err);
    return status;
}

static pnb_status encode_all(pnb__trainer *t, size_t batch, val_set *v, pnb_error *err)
{
    padded_batch p = {0};
    const pnb_batch *b = NULL;
    pnb_status status;
    PNB_TRY(make_padded(&p, t, batch, err));
    PNB_TRY(pnb_loader_set_position(t->val_loader, (pnb_loader_position){0, 0}, err));
    for (size_t at = 0; at < v->n; at += b->n) {
        PNB_TRY(pnb_loader_next(t->val_loader, &b, err));
        if (b == NULL || b->n == 0) {
            status = pnb__fail(err, PNB_FORMAT, "the validation set ended at %zu of %zu", at, v->n);
            goto done;
        }
        fill_padded(&p, b);
        PNB_TRY(encode_batch(t, &p, v, at, err));
    }
done:
    pnb__free(p.pixels);
    pnb__free(p.ids);
    return status;
}

/* ---- losses ---- */

typedef struct loss_graph {
    pnb__graph *graph;
    pnb__dist side[2];
    pnb__tensor *scale, *bias;
    pnb__loss loss;
} loss_graph;

static pnb_status build_losses(loss_graph *l, const pnb__trainer *t, size_t batch, pnb_error *err)
{
    pnb_loss_opts opts = t->opts->loss;
    opts.weight[PNB_LOSS_IMG_INCLUSION] = opts.weight[PNB_LOSS_TXT_INCLUSION] = 0;
    double sum = 0;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        sum += opts.weight[i];
    *l = (loss_graph){0};
    if (!(sum > 0))
        return PNB_OK;
    pnb_status status = pnb__graph_create(&l->graph, t->ctx, PNB__F32, false, err);
    if (status != PNB_OK)
        return status;
    const size_t shape[2] = {batch, t->info->embed_dim};
    for (int s = 0; s < 2; s++) {
        l->side[s].mean = pnb__input(l->graph, PNB__REAL, 2, shape);
        if (t->info->is_probabilistic)
            l->side[s].log_var = pnb__input(l->graph, PNB__REAL, 2, shape);
    }
    l->scale = pnb__input(l->graph, PNB__REAL, 0, NULL);
    l->bias = pnb__input(l->graph, PNB__REAL, 0, NULL);
    const pnb__loss_in in = {
        .image = l->side[0], .text = l->side[1], .scale = l->scale, .bias = l->bias};
    status = pnb__loss_build(&l->loss, l->graph, &in, &opts, err);
    if (status == PNB_OK)
        status = pnb__graph_plan(l->graph, NULL, err);
    return status == PNB_OK ? pnb__loss_start(&l->loss, err) : status;
}

static pnb_status run_losses(loss_graph *l, const pnb__trainer *t, const val_set *v, size_t batch,
                             pnb_train_eval *out, pnb_error *err)
{
    size_t n_batches = v->n / batch;
    double scale = pnb__trainer_scale(t), bias = pnb__trainer_bias(t);
    for (size_t b = 0; l->graph != NULL && b < n_batches; b++) {
        for (int s = 0; s < 2; s++) {
            pnb__write_f32(l->side[s].mean, v->mean[s] + b * batch * v->dim);
            if (l->side[s].log_var != NULL)
                pnb__write_f32(l->side[s].log_var, v->log_var[s] + b * batch * v->dim);
        }
        pnb__write_f64(l->scale, &scale);
        pnb__write_f64(l->bias, &bias);
        pnb_status status = pnb__graph_run(l->graph, err);
        if (status != PNB_OK)
            return status;
        for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
            if (l->loss.term[i] != NULL)
                out->loss[i] += pnb__read_scalar(l->loss.term[i]) / (double)n_batches;
        out->total += pnb__read_scalar(l->loss.total) / (double)n_batches;
    }
    return PNB_OK;
}

/* ---- retrieval ---- */

static double trace(const val_set *v, int side, size_t row)
{
    double sum = 0;
    for (size_t i = row * v->dim; i < (row + 1) * v->dim; i++)
        sum += exp((double)v->log_var[side][i]);
    return sum;
}

/* Share of the queries of rows [begin, begin + n) whose own row is the nearest. `answers` (n) may
 * be NULL. */
static pnb_status recall_at_1(const pnb__trainer *t, const val_set *v, const size_t range[2],
                              int query, double *out, pnb__answer *answers, pnb_error *err)
{
    pnb_gaussians side[2];
    for (int s = 0; s < 2; s++) {
        size_t offset = range[0] * v->dim;
        side[s] =
            (pnb_gaussians){.n = range[1],
                            .dim = v->dim,
                            .mean = v->mean[s] + offset,
                            .log_var = t->info->is_probabilistic ? v->log_var[s] + offset : NULL};
    }
    pnb_search_opts opts = pnb_search_opts_default();
    opts.k = 1;
    pnb_hits hits;
    pnb_status status = pnb_search(t->ctx, &side[query], &side[1 - query], &opts, &hits, err);
    if (status != PNB_OK)
        return status;
    size_t n_right = 0;
    for (size_t i = 0; i < range[1]; i++) {
        bool right = hits.index[i] == (int64_t)i;
        n_right += right;
        if (answers != NULL)
            answers[i] = (pnb__answer){trace(v, query, range[0] + i), i, right};
    }
    *out = (double)n_right / (double)range[1];
    pnb_hits_reset(&hits);
    return PNB_OK;
}

/* Recall over the whole set and how uncertainty orders it. */
static pnb_status recall_of_all(const pnb__trainer *t, const val_set *v, int query, double *r1,
                                double *unc_r, pnb_error *err)
{
    const size_t all[2] = {0, v->n};
    *unc_r = NAN;
    if (!t->info->is_probabilistic)
        return recall_at_1(t, v, all, query, r1, NULL, err);
    pnb__answer *answers = pnb__alloc_array(v->n, sizeof *answers);
    if (answers == NULL)
        return pnb__fail_nomem(err, v->n * sizeof *answers);
    pnb_status status = recall_at_1(t, v, all, query, r1, answers, err);
    if (status == PNB_OK)
        *unc_r = pnb__unc_correlation(answers, v->n);
    pnb__free(answers);
    return status;
}

static pnb_status retrieve(const pnb__trainer *t, const val_set *v, size_t batch,
                           pnb_train_eval *out, pnb_error *err)
{
    size_t n_batches = v->n / batch;
    pnb_status status = recall_of_all(t, v, 0, &out->i2t_r1, &out->i2t_unc_r, err);
    if (status == PNB_OK)
        status = recall_of_all(t, v, 1, &out->t2i_r1, &out->t2i_unc_r, err);
    for (size_t b = 0; b < n_batches && status == PNB_OK; b++) {
        const size_t range[2] = {b * batch, batch};
        double i2t = 0, t2i = 0;
        status = recall_at_1(t, v, range, 0, &i2t, NULL, err);
        if (status == PNB_OK)
            status = recall_at_1(t, v, range, 1, &t2i, NULL, err);
        out->batch_i2t_r1 += i2t / (double)n_batches;
        out->batch_t2i_r1 += t2i / (double)n_batches;
    }
    return status;
}

static double mean_trace(const val_set *v, int side)
{
    double sum = 0;
    for (size_t i = 0; i < v->n; i++)
        sum += trace(v, side, i);
    return sum / (double)v->n;
}

pnb_status pnb__evaluate(pnb__trainer *t, pnb_train_eval *out, pnb_error *err)
{
    *out = (pnb_train_eval){0};
    if (t->val == NULL)
        return PNB_OK;
    size_t n = pnb_dataset_size(t->val), batch = PNB_MIN(t->opts->batch_size, n);
    loss_graph losses = {0};
    val_set v;
    pnb__model_weights_changed(t->model);
    pnb_status status = make_set(&v, t, n + batch, err);
    if (status != PNB_OK)
        goto done;
    PNB_TRY(encode_all(t, batch, &v, err));
    PNB_TRY(build_losses(&losses, t, batch, err));
    PNB_TRY(run_losses(&losses, t, &v, batch, out, err));
    PNB_TRY(retrieve(t, &v, batch, out, err));
    out->done = true;
    out->step = t->state.step;
    out->epoch = t->state.step / t->steps_per_epoch;
    out->n = n;
    out->image_unc = t->info->is_probabilistic ? mean_trace(&v, 0) : 0;
    out->text_unc = t->info->is_probabilistic ? mean_trace(&v, 1) : 0;
done:
    if (status != PNB_OK)
        pnb__error_prefix(err, "validation");
    pnb__graph_free(losses.graph);
    free_set(&v);
    return status;
}
