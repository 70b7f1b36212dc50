/* The calls of an adapter for all methods that train a head (learned.h).
 *
 * Learning: pairs and the recipe, parameters by the method's shape, then the training. Applying:
 * the side's graph on a block of rows, as in training but without gradients, and its numbers into
 * the family's arrays. A side that reads lengths remembers whether it was learned from rows of unit
 * length: raw rows and unit rows come of the same weights, and nothing else tells them apart. */
#include <math.h>
#include <string.h>

#include "adapt/heads/learned.h"
#include "base/grow.h"

/* ---- learning ---- */

/* From here on the numbers stay: inference may pack them, files read them from one row. */
static pnb_status settle(pnb_adapter *a, pnb_error *err)
{
    pnb__learned *l = a->self;
    double scale = 0.0;
    pnb_status status = PNB_ALLOC(l->host, l->n_weights, err);
    if (status == PNB_OK)
        status = pnb__learned_get(l, l->host, err);
    for (size_t i = 0; i < l->n_params; i++)
        l->params[i].fixed = true;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        if (l->length[s] != NULL)
            status = pnb__param_read(l->length[s], &l->kernels, 0, 1, &l->mean_length[s], err);
    if (status == PNB_OK && a->calls->learned->learns_match)
        status = pnb__param_read(l->scale, &l->kernels, 0, 1, &a->match_a, err);
    if (status == PNB_OK && a->calls->learned->learns_match)
        status = pnb__param_read(l->shift, &l->kernels, 0, 1, &a->match_b, err);
    if (status != PNB_OK || a->calls->learned->score_scale == NULL)
        return status;
    status = pnb__param_read(l->scale, &l->kernels, 0, 1, &scale, err);
    scale = a->calls->learned->score_scale(a, scale);
    a->scale = scale > 0.0 && isfinite(scale) ? scale : (double)NAN;
    return status;
}

static pnb_status check_rows(const pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    const pnb__learned *l = a->self;
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++) {
        double length = 1.0;
        status = pnb__learned_check_rows(&job->side[s], &length, err);
        if (status == PNB_OK && l->length[s] != NULL)
            status = pnb__param_write(l->length[s], &l->kernels, 0, 1, &length, err);
    }
    return status;
}

static pnb_status check_held_out(const pnb__adapter_job *job, pnb_error *err)
{
    const pnb_embeddings *sets[] = {job->data->val_images, job->data->val_texts};
    pnb_status status = PNB_OK;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++) {
        double length = 1.0;
        if (sets[s] == NULL)
            continue;
        const pnb__adapter_rows rows = {
            .set = sets[s], .n = sets[s]->n, .what = pnb__adapter_side_word((pnb_adapter_side)s)};
        status = pnb__learned_check_rows(&rows, &length, err);
    }
    if (status != PNB_OK)
        pnb__error_prefix(err, "held-out rows");
    return status;
}

/* Parameters by the method's shape; no memory yet. */
static pnb_status declare(pnb_adapter *a, pnb_error *err)
{
    pnb__learned *l = a->self;
    pnb__kernels_fill(&l->kernels, a->ctx, PNB__F32);
    return a->calls->learned->declare(a, l, err);
}

/* Likelihoods on the sphere are of points: of a side with variances that is left alone they read
 * the means, and of a density of the other kind nothing. */
static void warn_left(const pnb_adapter *a, const pnb__adapter_job *job)
{
    bool is_sphere = a->family == PNB_VMF || a->family == PNB_POWER_SPHERICAL;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb_family family = job->side[s].set->family;
        bool is_density = family == PNB_VMF || family == PNB_POWER_SPHERICAL;
        if (is_sphere && !a->part[s].is_adapted && family != PNB_POINT && family != a->family)
            pnb__log(a->ctx, PNB_LOG_WARN, "the %s embeddings are left alone and are %s; %s %s",
                     job->side[s].what, pnb_family_name(family), a->measure,
                     is_density ? "is no measure of both: rank them by --measure mean"
                                : "takes their means as points");
    }
}

pnb_status pnb__learned_fit(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err)
{
    pnb__learned_pairs pairs = {0};
    pnb_status status;
    PNB_TRY(pnb__learned_pairs_init(&pairs, job->data->images, job->data->texts, job->truth,
                                    a->opts.texts, err));
    PNB_TRY(pnb__learned_choose(a, &pairs, err));
    PNB_TRY(declare(a, err));
    PNB_TRY(pnb__learned_fresh(a->self, a->opts.seed, err));
    PNB_TRY(check_rows(a, job, err));
    PNB_TRY(check_held_out(job, err));
    PNB_TRY(pnb__learned_start(a, &pairs, err));
    warn_left(a, job);
    PNB_TRY(pnb__learned_train(a, job, &pairs, err));
    status = settle(a, err);
done:
    pnb__learned_pairs_reset(&pairs);
    return status;
}

/* ---- files ---- */

/* What the file says of family and sides is what its options make. */
static pnb_status check_made(const pnb_adapter *a, const pnb_adapter *said, const char *where,
                             pnb_error *err)
{
    if (a->family != said->family)
        return pnb__fail(err, PNB_FORMAT, "%s: family %s, %s with these options makes %s", where,
                         pnb_family_name(said->family), a->about->name, pnb_family_name(a->family));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        if (a->part[s].is_adapted != said->part[s].is_adapted ||
            a->part[s].dim_out != said->part[s].dim_out)
            return pnb__fail(err, PNB_FORMAT,
                             "%s: the %s are %sadapted to width %zu, %s with these options does "
                             "not do that",
                             where, s == PNB_ADAPTER_IMAGES ? "images" : "texts",
                             said->part[s].is_adapted ? "" : "not ", said->part[s].dim_out,
                             a->about->name);
    return PNB_OK;
}

static pnb_status check_shape(const pnb_adapter *a, const char *where, pnb_error *err)
{
    const pnb_adapter_opts *o = &a->opts;
    const size_t dim[] = {a->part[PNB_ADAPTER_IMAGES].dim, a->part[PNB_ADAPTER_TEXTS].dim};
    if (pnb__adapter_check_widths(a, dim, false, NULL) != PNB_OK || dim[0] == 0 || dim[1] == 0 ||
        PNB_MAX(dim[0], dim[1]) > PNB__LEARNED_MAX_WIDTH)
        return pnb__fail(err, PNB_FORMAT, "%s: widths %zu and %zu, wanted 1 to %d%s", where, dim[0],
                         dim[1], (int)PNB__LEARNED_MAX_WIDTH,
                         dim[0] == dim[1] ? "" : ", the same on both sides");
    if (o->hidden < 1 || o->hidden > PNB__LEARNED_MAX_WIDTH || o->layers < 0 ||
        o->layers >= PNB__HEAD_MAX_LAYERS) /* 0: a method that does not read it */
        return pnb__fail(err, PNB_FORMAT, "%s: %lld hidden layers of %lld", where,
                         (long long)o->layers, (long long)o->hidden);
    return PNB_OK;
}

pnb_status pnb__learned_open(pnb_adapter *a, const pnb_safetensors *file, const char *where,
                             pnb_error *err)
{
    const pnb_adapter said = *a;
    pnb_status status;
    PNB_TRY(check_shape(a, where, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) { /* what a method does not declare */
        a->part[s].is_adapted = true;
        a->part[s].dim_out = a->part[s].dim;
    }
    status = declare(a, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", where);
        goto done;
    }
    PNB_TRY(check_made(a, &said, where, err));
    PNB_TRY(pnb__learned_load(a->self, file, where, err));
    status = settle(a, err);
done:
    return status;
}

pnb_status pnb__learned_arrays(const pnb_adapter *a, pnb__adapter_arrays *to, pnb_error *err)
{
    const pnb__learned *l = a->self;
    pnb_array_view views[PNB__LEARNED_MAX_PARAMS];
    pnb__learned_names unused;
    pnb_status status = PNB_OK;
    pnb__learned_views(l, l->host, "", unused, views);
    for (size_t i = 0; i < l->n_params && status == PNB_OK; i++) {
        views[i].name = l->params[i].name; /* outlives this call */
        status = PNB_PUSH(to->views, to->n, err, views[i]);
    }
    return status;
}

/* ---- applying ---- */

static const double unit_within = 2e-3; /* as in learned_rows.c */

/* Unit rows where lengths were learned from, or lengths where there were none. */
static pnb_status check_lengths(const pnb__learned *l, const pnb__adapter_block *block,
                                size_t n_unit, pnb_error *err)
{
    double learned = l->mean_length[block->side];
    if (l->length[block->side] == NULL)
        return PNB_OK;
    if (learned == 1.0 && n_unit < block->n)
        return pnb__fail(
            err, PNB_ARG,
            "the %s embeddings have lengths of their own; the adapter was learned from "
            "rows of unit length: embed without --raw",
            block->what);
    if (learned != 1.0 && n_unit == block->n)
        return pnb__fail(err, PNB_ARG,
                         "the %s embeddings have unit length; the adapter was learned from rows "
                         "with their lengths, %.4g in the mean: embed with --raw",
                         block->what, learned);
    return PNB_OK;
}

pnb_status pnb__learned_read_block(const pnb_adapter *a, const pnb__adapter_block *block, float *x,
                                   pnb_error *err)
{
    const pnb__learned *l = a->self;
    size_t dim = block->dim, n_unit = 0;
    for (size_t i = 0; i < block->n; i++) {
        const float *row = block->x + i * dim;
        double square = 0.0;
        pnb_status status =
            pnb__adapter_square(row, dim, block->first + i, block->what, &square, err);
        if (status != PNB_OK)
            return status;
        if (square == 0.0)
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu of the %s embeddings has length 0: it has no direction",
                             block->first + i, block->what);
        n_unit += fabs(sqrt(square) - 1.0) <= unit_within;
        pnb__learned_copy_row(row, dim, l->is_unit[block->side], x + i * dim);
    }
    return check_lengths(l, block, n_unit, err);
}

/* A log-variance that a set can hold and measures can add up. */
static float held(double log_var)
{
    return (float)fmin(fmax(log_var, -60.0), 60.0);
}

/* From variances where the side has those, or from one concentration for all dimensions. */
static void read_log_vars(const pnb__learned_side *s, size_t n, size_t dim, float *out,
                          float *kappa)
{
    if (s->kappa != NULL) {
        pnb__read_f32(s->kappa, kappa);
        for (size_t i = 0; i < n * dim; i++)
            out[i] = held(-log((double)kappa[i / dim]));
        return;
    }
    pnb__read_f32(s->log_var != NULL ? s->log_var : s->var, out);
    for (size_t i = 0; i < n * dim; i++)
        out[i] = held(s->log_var != NULL ? (double)out[i] : log((double)out[i]));
}

static pnb_status write_block(const pnb__learned_graph *lg, const pnb__adapter_block *block,
                              pnb_error *err)
{
    const pnb__learned_side *s = &lg->side[block->side];
    pnb_embeddings *out = block->out;
    float *kappa = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(kappa, block->n, err));
    pnb__read_f32(s->mean, out->mean);
    if (out->log_var != NULL)
        read_log_vars(s, block->n, out->dim, out->log_var, kappa);
    if (out->kappa != NULL)
        pnb__read_f32(s->kappa, out->kappa);
    status = pnb__graph_check(lg->g, err);
    for (size_t i = 0; status == PNB_OK && out->kappa != NULL && i < block->n; i++)
        if (!isfinite(out->kappa[i]) || !(out->kappa[i] > 0.0f))
            status = pnb__fail(err, PNB_NUMERIC, "row %zu of the %s embeddings: its kappa is %g",
                               block->first + i, block->what, (double)out->kappa[i]);
done:
    pnb__free(kappa);
    return status;
}

pnb_status pnb__learned_apply_block(const pnb_adapter *a, const pnb__adapter_block *block,
                                    pnb_error *err)
{
    pnb__learned_graph lg = {0};
    float *x = NULL;
    pnb_status status;
    if (a->calls->learned->apply != NULL)
        return a->calls->learned->apply(a, block, err);
    PNB_TRY(PNB_ALLOC_ROWS(x, block->n, block->dim, err));
    PNB_TRY(pnb__learned_read_block(a, block, x, err));
    PNB_TRY(pnb__learned_graph_side(&lg, a, (int)block->side, block->n, false, err));
    pnb__write_f32(lg.x[block->side], x);
    PNB_TRY(pnb__graph_run(lg.g, err));
    status = write_block(&lg, block, err);
done:
    pnb__learned_graph_reset(&lg);
    pnb__free(x);
    return status;
}
