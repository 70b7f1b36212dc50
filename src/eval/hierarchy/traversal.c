/* The way from a picture to the root of all captions, and the captions met on it.
 *
 * Start is the caption nearest to the picture, the root is the null text, the caption that includes
 * the picture most, or their average; points between the two are brought to unit length and find
 * their nearest caption (Chun et al. 2025 section 4.4, after Desai et al. 2023). The released code
 * stops one step before the root: an option. An average is not normalised before it is interpolated
 * to, as there. Which caption includes a picture: most_including.c; figures:
 * traversal_score.c. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"
#include "eval/hierarchy/most_including.h"
#include "penumbra/search.h"

#define BLOCK_POINTS 4096 /* points searched at once: bounds the memory */

PNB_DEFINE_NAME(pnb_root_name, pnb_root, PNB_NAMES(PNB_ROOT_LIST), "unknown")

pnb_traverse_opts pnb_traverse_opts_default(void)
{
    return (pnb_traverse_opts){.root = PNB_ROOT_AVERAGE,
                               .n_steps = 50,
                               .measure = PNB_MEASURE_MEAN,
                               .including_weight = 1.0};
}

pnb_traverse_opts pnb_traverse_opts_released(void)
{
    pnb_traverse_opts o = pnb_traverse_opts_default();
    o.including = PNB_INCLUDING_BY_PUBLISHED;
    o.stop_before_root = true;
    return o;
}

void pnb_traversal_reset(pnb_traversal *t)
{
    if (t == NULL)
        return;
    pnb__free(t->step);
    pnb__free(t->start);
    pnb__free(t->root);
    pnb__free(t->including);
    pnb__free(t->score);
    *t = (pnb_traversal){0};
}

static pnb_status alloc_traversal(pnb_traversal *t, size_t n, size_t n_steps, pnb_error *err)
{
    size_t n_points = 0;
    *t = (pnb_traversal){.n = n, .n_steps = n_steps};
    if (pnb__mul_overflows(n, n_steps, &n_points))
        return pnb__fail_nomem(err, SIZE_MAX);
    t->step = pnb__alloc_array(n_points, sizeof *t->step);
    t->start = pnb__alloc_array(n, sizeof *t->start);
    t->root = pnb__alloc_array(n, sizeof *t->root);
    t->including = pnb__alloc_array(n, sizeof *t->including);
    t->score = pnb__alloc_array(n, sizeof *t->score);
    if (t->step != NULL && t->start != NULL && t->root != NULL && t->including != NULL &&
        t->score != NULL)
        return PNB_OK;
    pnb_traversal_reset(t);
    return pnb__fail_nomem(err, n_points * sizeof *t->step);
}

/* ---- checks ---- */

static pnb_status check_opts(const pnb_traverse_opts *o, pnb_error *err)
{
    if (o->n_steps < 2)
        return pnb__fail(err, PNB_ARG, "%zu steps; a way needs at least 2", o->n_steps);
    if (o->measure != PNB_MEASURE_MEAN && o->measure != PNB_MEASURE_CSD &&
        o->measure != PNB_MEASURE_W2)
        return pnb__fail(err, PNB_ARG,
                         "measure %s does not rank captions for a point; take mean, csd or w2",
                         pnb_measure_name(o->measure));
    if (!(o->including_weight > 0.0) || !isfinite(o->including_weight))
        return pnb__fail(err, PNB_ARG, "including_weight is %g, a positive number is wanted",
                         o->including_weight);
    return PNB_OK;
}

static pnb_status check_sets(const pnb_gaussians *images, const pnb_gaussians *texts,
                             const pnb_gaussians *null_text, const pnb_traverse_opts *o,
                             pnb_error *err)
{
    bool by_null = o->root != PNB_ROOT_INCLUDING, by_inclusion = o->root != PNB_ROOT_NULL_TEXT;
    if (images->n == 0 || texts->n == 0)
        return pnb__fail(err, PNB_SHAPE, "%zu pictures and %zu captions; none may be empty",
                         images->n, texts->n);
    if (images->dim != texts->dim)
        return pnb__fail(err, PNB_SHAPE, "pictures have width %zu, captions %zu", images->dim,
                         texts->dim);
    if (by_null && null_text == NULL)
        return pnb__fail(err, PNB_ARG,
                         "root '%s' needs the embedding of the empty text; give it, or take root "
                         "'including'",
                         pnb_root_name(o->root));
    if (by_null && (null_text->n != 1 || null_text->dim != texts->dim))
        return pnb__fail(err, PNB_SHAPE,
                         "the null text is %zu rows of width %zu; one row of width %zu is wanted",
                         null_text->n, null_text->dim, texts->dim);
    if (by_inclusion && (images->log_var == NULL || texts->log_var == NULL))
        return pnb__fail(err, PNB_ARG,
                         "root '%s' needs Gaussians, and the %s are of family %s; take root 'null'",
                         pnb_root_name(o->root), images->log_var == NULL ? "pictures" : "captions",
                         pnb_rows_family(images->log_var == NULL ? images : texts));
    return PNB_OK;
}

/* ---- points ---- */

typedef struct traverse_job {
    const pnb_ctx *ctx;
    const pnb_gaussians *images, *texts, *null_text;
    const pnb_traverse_opts *opts;
    pnb_index *index; /* of the captions, by opts->measure */
    float *point;     /* [BLOCK_POINTS or one picture's][dim] */
    pnb_traversal *out;
} traverse_job;

/* Length of the vector before; a zero vector stays. */
static double normalise(double *v, size_t dim)
{
    double square = 0.0;
    for (size_t d = 0; d < dim; d++)
        square += v[d] * v[d];
    double norm = sqrt(square);
    for (size_t d = 0; norm > 0.0 && d < dim; d++)
        v[d] /= norm;
    return norm;
}

/* Where picture i ends. */
static void root_point(const traverse_job *job, size_t i, double *root)
{
    size_t dim = job->texts->dim;
    const pnb_traverse_opts *o = job->opts;
    double weight = o->root == PNB_ROOT_NULL_TEXT ? 0.0 : o->including_weight;
    double null_weight = o->root == PNB_ROOT_INCLUDING ? 0.0 : 1.0;
    const float *including =
        weight > 0.0 ? job->texts->mean + (size_t)job->out->including[i] * dim : NULL;
    for (size_t d = 0; d < dim; d++) {
        double sum = null_weight > 0.0 ? null_weight * (double)job->null_text->mean[d] : 0.0;
        if (including != NULL)
            sum += weight * (double)including[d];
        root[d] = sum / (weight + null_weight);
    }
}

/* Points of picture i into rows of `out`, n_steps of them, then the root itself. */
static pnb_status fill_points(const traverse_job *job, size_t i, double *scratch, float *out,
                              pnb_error *err)
{
    size_t dim = job->texts->dim, n = job->opts->n_steps;
    const float *start = job->opts->from_image
                             ? job->images->mean + i * dim
                             : job->texts->mean + (size_t)job->out->start[i] * dim;
    double *root = scratch, *at = scratch + dim;
    double spacing = 1.0 / (double)(job->opts->stop_before_root ? n : n - 1);
    root_point(job, i, root);
    for (size_t s = 0; s <= n; s++) {
        double f = s == n ? 1.0 : (double)s * spacing;
        for (size_t d = 0; d < dim; d++)
            at[d] = (double)start[d] + f * (root[d] - (double)start[d]);
        if (!(normalise(at, dim) > 0.0))
            return pnb__fail(err, PNB_NUMERIC,
                             "picture %zu: point %zu of its way has length 0 or is not a number", i,
                             s);
        for (size_t d = 0; d < dim; d++)
            out[s * dim + d] = (float)at[d];
    }
    return PNB_OK;
}

/* ---- the search ---- */

static pnb_status find_nearest(const traverse_job *job, const pnb_gaussians *points, pnb_hits *hits,
                               pnb_error *err)
{
    return pnb_index_search(job->index, job->ctx, points, 1, hits, err);
}

static pnb_status find_starts(const traverse_job *job, pnb_error *err)
{
    pnb_hits hits;
    const pnb_gaussians points = {
        .n = job->images->n, .dim = job->images->dim, .mean = job->images->mean};
    pnb_status status = find_nearest(job, &points, &hits, err);
    if (status == PNB_OK)
        memcpy(job->out->start, hits.index, job->images->n * sizeof *hits.index);
    pnb_hits_reset(&hits);
    return status;
}

static pnb_status find_including(const traverse_job *job, pnb_error *err)
{
    pnb_traversal *out = job->out;
    if (job->opts->root != PNB_ROOT_NULL_TEXT)
        return pnb__most_including(job->ctx, job->images, job->texts, job->opts->including,
                                   out->including, out->score, err);
    for (size_t i = 0; i < out->n; i++) {
        out->including[i] = -1;
        out->score[i] = (double)NAN;
    }
    return PNB_OK;
}

/* Ways of pictures first .. first + n - 1. */
static pnb_status walk_block(const traverse_job *job, size_t first, size_t n, double *scratch,
                             pnb_error *err)
{
    size_t dim = job->texts->dim, n_steps = job->opts->n_steps, n_rows = n_steps + 1;
    const pnb_gaussians points = {.n = n * n_rows, .dim = dim, .mean = job->point};
    pnb_hits hits = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++)
        PNB_TRY(fill_points(job, first + i, scratch, job->point + i * n_rows * dim, err));
    PNB_TRY(find_nearest(job, &points, &hits, err));
    for (size_t i = 0; i < n; i++) {
        memcpy(job->out->step + (first + i) * n_steps, hits.index + i * n_rows,
               n_steps * sizeof *hits.index);
        job->out->root[first + i] = hits.index[i * n_rows + n_steps];
    }
done:
    pnb_hits_reset(&hits);
    return status;
}

static pnb_status walk_all(traverse_job *job, pnb_error *err)
{
    size_t dim = job->texts->dim, n_rows = job->opts->n_steps + 1, n = job->images->n;
    size_t block = PNB_MIN(PNB_MAX(BLOCK_POINTS / n_rows, (size_t)1), n), n_values = 0;
    double *scratch = NULL;
    pnb_status status = PNB_OK;
    if (pnb__mul_overflows(block * n_rows, dim, &n_values))
        return pnb__fail_nomem(err, SIZE_MAX);
    job->point = pnb__alloc_array(n_values, sizeof *job->point);
    scratch = pnb__alloc_array(2 * dim, sizeof *scratch);
    if (job->point == NULL || scratch == NULL)
        status = pnb__fail_nomem(err, n_values * sizeof *job->point);
    for (size_t i = 0; status == PNB_OK && i < n; i += block)
        status = walk_block(job, i, PNB_MIN(block, n - i), scratch, err);
    pnb__free(job->point);
    pnb__free(scratch);
    return status;
}

pnb_status pnb_traverse(const pnb_ctx *ctx, const pnb_gaussians *images, const pnb_gaussians *texts,
                        const pnb_gaussians *null_text, const pnb_traverse_opts *opts,
                        pnb_traversal *out, pnb_error *err)
{
    pnb_traverse_opts o = opts == NULL ? pnb_traverse_opts_default() : *opts;
    traverse_job job = {.ctx = ctx,
                        .images = images,
                        .texts = texts,
                        .null_text = null_text,
                        .opts = &o,
                        .out = out};
    pnb_search_opts search = pnb_search_opts_default();
    pnb_status status = PNB_OK;
    *out = (pnb_traversal){0};
    search.measure = o.measure;
    PNB_TRY(check_opts(&o, err));
    PNB_TRY(check_sets(images, texts, null_text, &o, err));
    PNB_TRY(alloc_traversal(out, images->n, o.n_steps, err));
    PNB_TRY(pnb_index_create(&job.index, ctx, texts, &search, err));
    PNB_TRY(find_starts(&job, err));
    PNB_TRY(find_including(&job, err));
    status = walk_all(&job, err);
done:
    pnb_index_free(job.index);
    if (status != PNB_OK)
        pnb_traversal_reset(out);
    return status;
}
