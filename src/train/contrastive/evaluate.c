/* Validation: losses batch by batch, retrieval R@1 within a batch and over the whole set.
 *
 * One caption a picture (of `val_level` where samples have levels), always the same ones, so that
 * evaluations of one run can be compared. A loss is the mean over all pairs: batches count by their
 * pairs, the last incomplete one too, as in open_clip. The masked terms are taken over the first
 * `drop_ratio` of the set with masks that are the same each time; they stand beside the total and
 * are no part of it, so that it does not depend on masks. Retrieval is exact, by the csd
 * similarity. Several processes encode a part of the set each and compute alike from all rows. What
 * bins of uncertainty say of its success is unc_bins.c. */
#include <math.h>
#include <string.h>

#include "penumbra/search.h"
#include "train/contrastive/contrastive.h"

enum { IMAGE, TEXT, MASKED_IMAGE, MASKED_TEXT, N_SIDES };

/* Distributions of the whole set, and of masked copies of its first n_masked pairs. */
typedef struct val_set {
    size_t n, n_masked, dim;
    float *mean[N_SIDES], *log_var[N_SIDES];
} val_set;

/* Sides that were never made are NULL. */
static void free_set(val_set *v)
{
    for (int s = 0; s < N_SIDES; s++) {
        pnb__free(v->mean[s]);
        pnb__free(v->log_var[s]);
    }
}

/* Does the tower of a side end in Gaussians? The other family that is trained is points. */
static bool is_gaussian(const pnb__contrastive *c, int side)
{
    bool is_text = side == TEXT || side == MASKED_TEXT;
    return (is_text ? c->info->text.family : c->info->vision.family) == PNB_GAUSSIAN_DIAG;
}

static bool has_term(const pnb__contrastive *c, pnb_loss_term term)
{
    return c->opts->loss.weight[term] > 0;
}

/* As many pairs as a step of this size would mask. */
static size_t masked_pairs(const pnb__contrastive *c, size_t n)
{
    /* as a step does: int(n ratio), one at least */
    bool wanted = has_term(c, PNB_LOSS_IMG_INCLUSION) || has_term(c, PNB_LOSS_TXT_INCLUSION);
    if (!wanted || !(c->opts->drop_ratio > 0))
        return 0;
    return PNB_MAX((size_t)((double)n * c->opts->drop_ratio), (size_t)1);
}

/* Rows are padded by a batch: the encoders write whole ones. */
static pnb_status make_set(val_set *v, const pnb__contrastive *c, size_t batch, pnb_error *err)
{
    size_t n = pnb_dataset_size(c->val);
    *v = (val_set){.n = n, .n_masked = masked_pairs(c, n), .dim = c->info->embed_dim};
    for (int s = 0; s < N_SIDES; s++) {
        /* the last batch writes past the last row */
        size_t rows = s < MASKED_IMAGE ? v->n + batch : v->n_masked + batch;
        if (s >= MASKED_IMAGE && v->n_masked == 0)
            continue;
        if (PNB_ALLOC(v->mean[s], rows * v->dim, err) != PNB_OK ||
            PNB_ALLOC(v->log_var[s], rows * v->dim, err) != PNB_OK)
            return PNB_NOMEM;
    }
    return PNB_OK;
}

/* The encoders are planned for one batch size: a short last batch is filled with its first row. */
typedef struct padded_batch {
    size_t size, n_pixels, length;
    float *pixels;
    int32_t *ids, *masked_ids, *kept;
    uint32_t *patches;      /* scratch of drawing patches */
    unsigned char *scratch; /* of drawing tokens */
} padded_batch;

/* (B,3,H,W) and (B,T), and what drawing masks needs. */
static pnb_status make_padded(padded_batch *p, const pnb__contrastive *c, size_t size,
                              pnb_error *err)
{
    *p = (padded_batch){.size = size,
                        .n_pixels = 3 * c->info->vision.image_height * c->info->vision.image_width,
                        .length = c->info->text.context_length};
    p->pixels = pnb__alloc_array(size * p->n_pixels, sizeof *p->pixels);
    p->ids = pnb__alloc_array(size * p->length, sizeof *p->ids);
    p->masked_ids = pnb__alloc_array(size * p->length, sizeof *p->ids);
    p->scratch = pnb__alloc_array(p->length, 1);
    p->kept = pnb__alloc_array(c->info->vision.n_patches, sizeof *p->kept);
    p->patches = pnb__alloc_array(c->info->vision.n_patches, sizeof *p->patches);
    if (p->pixels == NULL || p->ids == NULL || p->masked_ids == NULL || p->scratch == NULL ||
        p->kept == NULL || p->patches == NULL)
        return pnb__fail_nomem(err, size * p->n_pixels * sizeof *p->pixels);
    return PNB_OK;
}

/* Rows behind the last one repeat the first: any finite picture will do, they are overwritten. */
static void fill_padded(padded_batch *p, const pnb_batch *b)
{
    for (size_t i = 0; i < p->size; i++) {
        size_t from = i < b->n ? i : 0;
        memcpy(p->pixels + i * p->n_pixels, b->pixels + from * p->n_pixels,
               p->n_pixels * sizeof *p->pixels);
        memcpy(p->ids + i * p->length, b->tokens + from * p->length, p->length * sizeof *p->ids);
    }
}

static void free_padded(padded_batch *p)
{
    pnb__free(p->pixels);
    pnb__free(p->ids);
    pnb__free(p->masked_ids);
    pnb__free(p->scratch);
    pnb__free(p->kept);
    pnb__free(p->patches);
}

/* Rows [at, at + batch) of a side, (batch, D) each of means and log-variances. */
static pnb_encode_out rows_of(const val_set *v, int side, size_t at)
{
    return (pnb_encode_out){.mean = v->mean[side] + at * v->dim,
                            .log_var = v->log_var[side] + at * v->dim};
}

/* Both towers on one batch, without gradients. */
static pnb_status encode_batch(pnb__contrastive *c, const padded_batch *p, val_set *v, size_t at,
                               pnb_error *err)
{
    const pnb_encode_out image = rows_of(v, IMAGE, at), text = rows_of(v, TEXT, at);
    pnb_status status = pnb_model_encode_image(c->model, p->pixels, p->size, &image, err);
    if (status == PNB_OK)
        status = pnb_model_encode_text(c->model, p->ids, p->size, p->length, &text, err);
    return status;
}

/* Masks are drawn from the batch's number, so they are the same in every validation. */
static pnb_status encode_masked(pnb__contrastive *c, const padded_batch *p, val_set *v, size_t at,
                                pnb_error *err)
{
    const pnb_encode_out image = rows_of(v, MASKED_IMAGE, at), text = rows_of(v, MASKED_TEXT, at);
    const pnb__text_masker masker = pnb__contrastive_masker(c);
    size_t n_patches = c->info->vision.n_patches, number = at / p->size;
    size_t n_kept = pnb__mask_n_kept(n_patches, c->opts->mask_keep);
    pnb_status status = PNB_OK;
    if (has_term(c, PNB_LOSS_IMG_INCLUSION)) {
        pnb__mask_patches(c->opts->seed, (int64_t)number, n_patches, n_kept, p->patches, p->kept);
        status =
            pnb_model_encode_image_kept(c->model, p->pixels, p->size, p->kept, n_kept, &image, err);
    }
    if (status != PNB_OK || !has_term(c, PNB_LOSS_TXT_INCLUSION))
        return status;
    pnb__mask_texts(&masker, number, p->ids, p->size, p->length, p->scratch, p->masked_ids);
    return pnb_model_encode_text(c->model, p->masked_ids, p->size, p->length, &text, err);
}

/* First pair of a process's batches: as in a step they are dealt in runs. */
static size_t first_pair(const pnb__contrastive *c, size_t rank, size_t batch, size_t n)
{
    size_t n_batches = (n + batch - 1) / batch;
    return PNB_MIN(rank * n_batches / c->exchange->n_ranks * batch, n);
}

/* Rows of sides first and first + 1 of n pairs, of all processes on each: bits of one process,
 * since a batch is the same whoever encodes it. */
static pnb_status gather_sides(const pnb__contrastive *c, const val_set *v, int first, size_t batch,
                               size_t n, pnb_error *err)
{
    const pnb__exchange *x = c->exchange;
    size_t *from = NULL;
    pnb_status status = PNB_ALLOC(from, x->n_ranks + 1, err);
    for (size_t p = 0; status == PNB_OK && p <= x->n_ranks; p++)
        from[p] = first_pair(c, p, batch, n) * v->dim;
    for (int s = first; s < first + 2 && status == PNB_OK; s++) {
        status = x->gather(x->self, v->mean[s], from, err);
        if (status == PNB_OK)
            status = x->gather(x->self, v->log_var[s], from, err);
    }
    pnb__free(from);
    return status;
}

/* The first `n` pairs through `encode`, batch by batch, those of this process. From the first pair
 * on, whatever was read before: validations are alike. */
static pnb_status encode_pairs(pnb__contrastive *c, padded_batch *p, val_set *v, size_t n,
                               pnb_status (*encode)(pnb__contrastive *, const padded_batch *,
                                                    val_set *, size_t, pnb_error *),
                               pnb_error *err)
{
    const pnb_batch *b = NULL;
    size_t begin = first_pair(c, c->exchange->rank, p->size, n);
    size_t end = first_pair(c, c->exchange->rank + 1, p->size, n);
    const pnb_loader_position first = {0, begin / p->size};
    pnb_status status = begin < end ? pnb_loader_set_position(c->val_loader, first, err) : PNB_OK;
    for (size_t at = begin; status == PNB_OK && at < end; at += b->n) {
        status = pnb_loader_next(c->val_loader, &b, err);
        if (status == PNB_OK && (b == NULL || b->n == 0))
            status = pnb__fail(err, PNB_FORMAT, "the validation set ended at %zu of %zu", at, n);
        if (status != PNB_OK)
            return status;
        fill_padded(p, b);
        status = encode(c, p, v, at, err);
    }
    return status;
}

/* The whole set once, then its first pairs masked. */
static pnb_status encode_all(pnb__contrastive *c, size_t batch, val_set *v, pnb_error *err)
{
    padded_batch p = {0};
    pnb_status status = make_padded(&p, c, batch, err);
    if (status == PNB_OK)
        status = encode_pairs(c, &p, v, v->n, encode_batch, err);
    if (status == PNB_OK)
        status = gather_sides(c, v, IMAGE, batch, v->n, err);
    if (status == PNB_OK && v->n_masked > 0)
        status = encode_pairs(c, &p, v, v->n_masked, encode_masked, err);
    if (status == PNB_OK && v->n_masked > 0)
        status = gather_sides(c, v, MASKED_IMAGE, batch, v->n_masked, err);
    free_padded(&p);
    return status;
}

/* ---- losses ---- */

/* A graph of some of the terms on `rows` pairs. */
typedef struct loss_graph {
    size_t rows;
    bool masked; /* the terms of masked inputs, or all others */
    pnb__graph *graph;
    pnb__dist side[N_SIDES];
    pnb__tensor *scale, *bias;
    pnb__loss loss;
} loss_graph;

/* Leaves the terms of the other kind out, and diversity, which is about residuals that encoding
 * does not give; false when none is left. */
static bool choose_terms(pnb_loss_opts *o, bool masked)
{
    double sum = 0;
    o->weight[PNB_LOSS_DIVERSITY] = 0;
    o->weight[PNB_LOSS_DISTILL] = o->weight[PNB_LOSS_DISTILL_KL] = 0; /* of the training data */
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++) {
        bool is_masked = i == PNB_LOSS_IMG_INCLUSION || i == PNB_LOSS_TXT_INCLUSION;
        o->weight[i] = is_masked == masked ? o->weight[i] : 0;
        sum += o->weight[i];
    }
    return sum > 0;
}

/* Masked sides only where their term has a weight. */
static bool uses_side(const pnb_loss_opts *o, int side)
{
    return side < MASKED_IMAGE || (side == MASKED_IMAGE && o->weight[PNB_LOSS_IMG_INCLUSION] > 0) ||
           (side == MASKED_TEXT && o->weight[PNB_LOSS_TXT_INCLUSION] > 0);
}

/* The training losses as a graph without gradients on (rows, D) inputs: what is validated is what
 * is trained. a and b are inputs, so that one graph serves all batches. */
static pnb_status build_losses(loss_graph *l, const pnb__contrastive *c, size_t rows, bool masked,
                               pnb_error *err)
{
    pnb_loss_opts opts = c->opts->loss;
    opts.triplet_warmup = 0;
    pnb__graph_free(l->graph);
    *l = (loss_graph){.rows = rows, .masked = masked};
    if (!choose_terms(&opts, masked))
        return PNB_OK;
    pnb_status status = pnb__graph_create(&l->graph, c->ctx, PNB__F32, false, err);
    if (status != PNB_OK)
        return status;
    if (c->is_planning)
        pnb__graph_only_plan(l->graph);
    const size_t shape[2] = {rows, c->info->embed_dim};
    for (int s = 0; s < N_SIDES; s++) {
        if (!uses_side(&opts, s))
            continue;
        l->side[s].mean = pnb__input(l->graph, PNB__REAL, 2, shape);
        l->side[s].n_embeddings = c->info->n_embeddings;
        if (is_gaussian(c, s))
            l->side[s].log_var = pnb__input(l->graph, PNB__REAL, 2, shape);
    }
    l->scale = pnb__input(l->graph, PNB__REAL, 0, NULL);
    l->bias = pnb__input(l->graph, PNB__REAL, 0, NULL);
    const pnb__loss_in in = {.image = l->side[IMAGE],
                             .text = l->side[TEXT],
                             .masked_image = l->side[MASKED_IMAGE],
                             .masked_text = l->side[MASKED_TEXT],
                             .scale = l->scale,
                             .bias = l->bias,
                             .draws = true};
    status = pnb__loss_build(&l->loss, l->graph, &in, &opts, err);
    if (status == PNB_OK)
        status = pnb__graph_plan(l->graph, NULL, err);
    return status == PNB_OK && !c->is_planning ? pnb__loss_start(&l->loss, err) : status;
}

/* Adds `share` of the terms on the pairs from `at` on. */
static pnb_status add_losses(loss_graph *l, const pnb__contrastive *c, const val_set *v, size_t at,
                             double share, pnb_train_eval *out, pnb_error *err)
{
    double scale, bias;
    pnb_status status = pnb__contrastive_scale(c, &scale, &bias, err);
    if (status != PNB_OK)
        return status;
    for (int s = 0; s < N_SIDES; s++) {
        if (l->side[s].mean != NULL)
            pnb__write_f32(l->side[s].mean, v->mean[s] + at * v->dim);
        if (l->side[s].log_var != NULL)
            pnb__write_f32(l->side[s].log_var, v->log_var[s] + at * v->dim);
    }
    pnb__write_f64(l->scale, &scale);
    pnb__write_f64(l->bias, &bias);
    status = pnb__loss_set_step(&l->loss, c->opts->seed, (int64_t)at, NULL,
                                err); /* the same in each validation */
    if (status == PNB_OK)
        status = pnb__graph_run(l->graph, err);
    if (status != PNB_OK)
        return status;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        if (l->loss.term[i] != NULL)
            out->loss[i] += share * pnb__read_scalar(l->loss.term[i]);
    if (!l->masked)
        out->total += share * pnb__read_scalar(l->loss.total);
    return pnb__graph_check(l->graph, err);
}

/* The mean over `n` pairs; the last batch may be a short one and gets a graph of its own. */
static pnb_status run_losses(const pnb__contrastive *c, const val_set *v, size_t batch, bool masked,
                             pnb_train_eval *out, pnb_error *err)
{
    size_t n = masked ? v->n_masked : v->n;
    loss_graph l = {0};
    pnb_status status = PNB_OK;
    for (size_t at = 0; status == PNB_OK && at < n; at += l.rows) {
        size_t rows = PNB_MIN(batch, n - at);
        if (rows != l.rows)
            status = build_losses(&l, c, rows, masked, err);
        if (status == PNB_OK && l.graph != NULL)
            status = add_losses(&l, c, v, at, (double)rows / (double)n, out, err);
    }
    pnb__graph_free(l.graph);
    return status;
}

/* ---- retrieval ---- */

/* u = sum_d exp(lv) of one row. */
static double trace(const val_set *v, int side, size_t row)
{
    double sum = 0;
    for (size_t i = row * v->dim; i < (row + 1) * v->dim; i++)
        sum += exp((double)v->log_var[side][i]);
    return sum;
}

/* Share of the queries of rows [begin, begin + n) whose own row is the nearest. `answers` (n) may
 * be NULL. */
static pnb_status recall_at_1(const pnb__contrastive *c, const val_set *v, const size_t range[2],
                              int query, double *out, pnb__answer *answers, pnb_error *err)
{
    pnb_gaussians side[2];
    for (int s = 0; s < 2; s++) {
        size_t offset = range[0] * v->dim;
        side[s] = (pnb_gaussians){.n = range[1],
                                  .dim = v->dim,
                                  .n_embeddings = c->info->n_embeddings,
                                  .mean = v->mean[s] + offset,
                                  .log_var = is_gaussian(c, s) ? v->log_var[s] + offset : NULL};
    }
    pnb_search_opts opts = pnb_search_opts_default();
    opts.k = 1; /* who is nearest; csd is the default measure */
    if (c->info->n_embeddings > 1)
        opts.measure = PNB_MEASURE_MAX_COSINE;
    pnb_hits hits;
    pnb_status status = pnb_search(c->ctx, &side[query], &side[1 - query], &opts, &hits, err);
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
static pnb_status recall_of_all(const pnb__contrastive *c, const val_set *v, int query, double *r1,
                                double *unc_r, pnb_error *err)
{
    const size_t all[2] = {0, v->n};
    *unc_r = NAN;
    if (!is_gaussian(c, query))
        return recall_at_1(c, v, all, query, r1, NULL, err);
    pnb__answer *answers = pnb__alloc_array(v->n, sizeof *answers);
    if (answers == NULL)
        return pnb__fail_nomem(err, v->n * sizeof *answers);
    pnb_status status = recall_at_1(c, v, all, query, r1, answers, err);
    if (status == PNB_OK)
        *unc_r = pnb__unc_correlation(answers, v->n);
    pnb__free(answers);
    return status;
}

/* Over all n rows, and the mean over the n / batch whole batches, which is what a run without
 * validation shows; both directions. */
static pnb_status retrieve(const pnb__contrastive *c, const val_set *v, size_t batch,
                           pnb_train_eval *out, pnb_error *err)
{
    size_t n_batches = v->n / batch; /* whole ones: R@1 among fewer rows is another figure */
    pnb_status status = recall_of_all(c, v, 0, &out->i2t_r1, &out->i2t_unc_r, err);
    if (status == PNB_OK)
        status = recall_of_all(c, v, 1, &out->t2i_r1, &out->t2i_unc_r, err);
    for (size_t b = 0; b < n_batches && status == PNB_OK; b++) {
        const size_t range[2] = {b * batch, batch};
        double i2t = 0, t2i = 0;
        status = recall_at_1(c, v, range, 0, &i2t, NULL, err);
        if (status == PNB_OK)
            status = recall_at_1(c, v, range, 1, &t2i, NULL, err);
        out->batch_i2t_r1 += i2t / (double)n_batches;
        out->batch_t2i_r1 += t2i / (double)n_batches;
    }
    return status;
}

/* (1/n) sum u over the rows of a side. */
static double mean_trace(const val_set *v, int side)
{
    double sum = 0;
    for (size_t i = 0; i < v->n; i++)
        sum += trace(v, side, i);
    return sum / (double)v->n;
}

/* The towers of pnb_model_encode_... are planned once and see the trained weights in place; only
 * what was derived from the old ones is dropped. */
pnb_status pnb__evaluate(pnb__contrastive *c, pnb_train_eval *out, pnb_error *err)
{
    *out = (pnb_train_eval){0};
    if (c->val == NULL)
        return PNB_OK;
    size_t n = pnb_dataset_size(c->val), batch = PNB_MIN(c->opts->batch_size, n);
    val_set v = {0};
    pnb_status status;
    PNB_TRY(pnb__model_weights_changed(c->model, err));
    PNB_TRY(make_set(&v, c, batch, err));
    PNB_TRY(encode_all(c, batch, &v, err));
    PNB_TRY(run_losses(c, &v, batch, false, out, err));
    PNB_TRY(run_losses(c, &v, batch, true, out, err));
    PNB_TRY(retrieve(c, &v, batch, out, err));
    out->done = true;
    out->n = n;
    out->image_unc = is_gaussian(c, IMAGE) ? mean_trace(&v, IMAGE) : 0;
    out->text_unc = is_gaussian(c, TEXT) ? mean_trace(&v, TEXT) : 0;
done:
    if (status != PNB_OK)
        pnb__error_prefix(err, "validation");
    free_set(&v);
    return status;
}

/* ---- what it takes ---- */

/* The plan that a tower keeps for batches of this size. */
static pnb_status plan_encoder(const pnb__contrastive *c, pnb__side side, size_t batch,
                               size_t *bytes, pnb_error *err)
{
    const pnb_tower_info *v = &c->info->vision;
    pnb__graph *g = NULL;
    pnb__tower_in in = {0};
    pnb_status status = pnb__graph_create(&g, c->ctx, pnb__model_real(c->model), false, err);
    if (status != PNB_OK)
        return status;
    pnb__graph_only_plan(g);
    if (side == PNB__IMAGE_SIDE)
        in.pixels =
            pnb__input(g, PNB__REAL, 4, (size_t[]){batch, 3, v->image_height, v->image_width});
    else
        in.ids = pnb__input(g, PNB__INT32, 2, (size_t[]){batch, c->info->text.context_length});
    if (side == PNB__TEXT_SIDE)
        pnb__model_add_places(c->model, g, batch, &in);
    const pnb__dist d = pnb__model_build(c->model, side, g, &in, true);
    pnb__keep(d.mean);
    if (d.log_var != NULL)
        pnb__keep(d.log_var);
    status = pnb__graph_plan(g, NULL, err);
    *bytes += pnb__graph_arena_bytes(g);
    pnb__graph_free(g);
    return status;
}

/* Encoders stay until the run ends; rows and a batch, or its losses, are there while it lasts. */
pnb_status pnb__evaluate_plan(pnb__contrastive *c, size_t *out, pnb_error *err)
{
    loss_graph l = {0};
    size_t losses = 0;
    pnb_status status = PNB_OK;
    *out = 0;
    if (c->val == NULL)
        return PNB_OK;
    size_t n = pnb_dataset_size(c->val), batch = PNB_MIN(c->opts->batch_size, n);
    size_t rows = n + batch + (masked_pairs(c, n) > 0 ? masked_pairs(c, n) + batch : 0);
    c->is_planning = true;
    PNB_TRY(plan_encoder(c, PNB__IMAGE_SIDE, batch, out, err));
    PNB_TRY(plan_encoder(c, PNB__TEXT_SIDE, batch, out, err));
    PNB_TRY(build_losses(&l, c, batch, false, err));
    losses = l.graph != NULL ? pnb__graph_arena_bytes(l.graph) : 0;
    *out += 4 * rows * c->info->embed_dim * sizeof(float) +
            PNB_MAX(losses, batch * 3 * c->info->vision.image_height * c->info->vision.image_width *
                                sizeof(float));
done:
    c->is_planning = false;
    pnb__graph_free(l.graph);
    return status;
}
