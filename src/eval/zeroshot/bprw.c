/* Bayesian prompt re-weighting (ProLIP sections 3.4, A.5, C.5): the weights of a class's prompts
 * are the mixing weights under which points drawn from pictures of the class are most likely.
 *
 * Without labels the pictures are those nearest to the class's plain ensemble by the cosine of the
 * means (the released code takes the product with the mean before normalising: the same order for
 * unit pictures). The EM itself is bprw_em.c. Classes are independent and run on any threads with
 * the same result. */
#include <math.h>
#include <string.h>

#include "eval/zeroshot/prompts.h"
#include "penumbra/search.h"

pnb_bprw_opts pnb_bprw_opts_default(void)
{
    return (pnb_bprw_opts){.em = pnb_em_opts_default(), .n_images = 10, .n_samples = 10};
}

pnb_bprw_opts pnb_bprw_opts_few_shot(void)
{
    pnb_bprw_opts o = {.em = pnb_em_opts_default()};
    o.em.alpha = 2.0;
    return o;
}

/* ---- one class ---- */

pnb_status pnb__bprw_class(const pnb_prompts *prompts, size_t c, const double *points,
                           size_t n_points, const pnb_em_opts *opts, double *weight,
                           size_t *n_steps, pnb_error *err)
{
    size_t first = prompts->offset[c], n = prompts->offset[c + 1] - first, dim = prompts->dim;
    double *mean = pnb__alloc_array(n, 2 * dim * sizeof *mean);
    if (mean == NULL)
        return pnb__fail_nomem(err, n * 2 * dim * sizeof *mean);
    double *var = mean + n * dim;
    for (size_t i = 0; i < n; i++)
        pnb__prompts_row(prompts, first + i, mean + i * dim, var + i * dim);
    const pnb_em_data data = {n_points, n, dim, points, mean, var};
    pnb_status status = pnb_em_mixing_weights(&data, opts, weight, n_steps, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "class %zu", c);
    pnb__free(mean);
    return status;
}

pnb_status pnb__bprw_nearest(const pnb_ctx *ctx, const pnb_prompts *prompts,
                             const pnb_gaussians *images, size_t k, int64_t *row, pnb_error *err)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb_classifier ensemble = {0};
    pnb_hits hits = {0};
    size_t n = prompts->n_classes * prompts->dim;
    float *mean = NULL;
    pnb_status status;
    search.measure = PNB_MEASURE_MEAN;
    search.k = k;
    PNB_TRY(pnb_classifier_build(&ensemble, prompts, NULL, NULL, err));
    PNB_TRY(PNB_ALLOC(mean, n, err));
    for (size_t i = 0; i < n; i++)
        mean[i] = (float)ensemble.mean[i];
    const pnb_gaussians classes = {.n = prompts->n_classes, .dim = prompts->dim, .mean = mean};
    PNB_TRY(pnb_search(ctx, &classes, images, &search, &hits, err));
    memcpy(row, hits.index, prompts->n_classes * k * sizeof *row);
done:
    pnb_hits_reset(&hits);
    pnb_classifier_reset(&ensemble);
    pnb__free(mean);
    return status;
}

/* ---- all classes ---- */

typedef struct bprw_job {
    const pnb_prompts *prompts;
    const pnb_gaussians *images;
    const pnb_bprw_opts *opts;
    const size_t *offset; /* [K + 1] into picture */
    const int64_t *image;
    double *weight;
    size_t *n_steps;   /* [K] */
    pnb_error *errors; /* [K] */
} bprw_job;

/* Point j of a picture: mean + std * normal, the normals f(seed, row, j, dimension). */
static void draw(const bprw_job *job, size_t row, size_t j, double *point)
{
    const pnb_gaussians *g = job->images;
    pnb__rng rng;
    pnb__rng_init(&rng, job->opts->seed, (uint64_t)row);
    rng.counter = 4 * (uint64_t)(j * g->dim); /* a normal takes four words */
    for (size_t d = 0; d < g->dim; d++) {
        size_t at = row * g->dim + d;
        point[d] = (double)g->mean[at];
        if (g->log_var != NULL)
            point[d] += exp(0.5 * (double)g->log_var[at]) * pnb__rng_normal(&rng);
    }
}

static pnb_status weigh_class(const bprw_job *job, size_t c, pnb_error *err)
{
    size_t n = job->offset[c + 1] - job->offset[c], dim = job->prompts->dim;
    size_t first = job->prompts->offset[c], n_prompts = job->prompts->offset[c + 1] - first;
    size_t n_samples = job->opts->n_samples;
    if (n == 0) {
        for (size_t i = 0; i < n_prompts; i++)
            job->weight[first + i] = 1.0 / (double)n_prompts;
        return PNB_OK;
    }
    if (n_samples == 0)
        n_samples = PNB_MAX((size_t)1, 100 / n);
    double *points = pnb__alloc_array(n * n_samples, dim * sizeof *points);
    if (points == NULL)
        return pnb__fail_nomem(err, n * n_samples * dim * sizeof *points);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_samples; j++)
            draw(job, (size_t)job->image[job->offset[c] + i], j,
                 points + (i * n_samples + j) * dim);
    pnb_status status = pnb__bprw_class(job->prompts, c, points, n * n_samples, &job->opts->em,
                                        job->weight + first, &job->n_steps[c], err);
    pnb__free(points);
    return status;
}

static void weigh_classes(void *user, size_t begin, size_t end, int thread)
{
    const bprw_job *job = user;
    (void)thread;
    for (size_t c = begin; c < end; c++)
        weigh_class(job, c, &job->errors[c]);
}

/* Pictures of each class by label, at most `limit` (0: all) in their order. */
static pnb_status by_label(const bprw_job *job, const int32_t *labels, size_t limit, size_t *offset,
                           int64_t *image, pnb_error *err)
{
    size_t n_classes = job->prompts->n_classes;
    for (size_t i = 0; i < job->images->n; i++) {
        if (labels[i] < -1 || (labels[i] >= 0 && (size_t)labels[i] >= n_classes))
            return pnb__fail(err, PNB_ARG, "picture %zu has label %d; there are %zu classes", i,
                             (int)labels[i], n_classes);
        if (labels[i] >= 0)
            offset[labels[i] + 1]++;
    }
    for (size_t c = 0; c < n_classes; c++) {
        if (limit > 0)
            offset[c + 1] = PNB_MIN(offset[c + 1], limit);
        offset[c + 1] += offset[c];
    }
    size_t *next = pnb__alloc_array(n_classes, sizeof *next);
    if (next == NULL)
        return pnb__fail_nomem(err, n_classes * sizeof *next);
    memcpy(next, offset, n_classes * sizeof *next);
    for (size_t i = 0; i < job->images->n; i++)
        if (labels[i] >= 0 && next[labels[i]] < offset[labels[i] + 1])
            image[next[labels[i]]++] = (int64_t)i;
    pnb__free(next);
    return PNB_OK;
}

static pnb_status choose_images(const pnb_ctx *ctx, const bprw_job *job, const int32_t *labels,
                                size_t *offset, int64_t *image, pnb_error *err)
{
    size_t k = PNB_MIN(job->opts->n_images, job->images->n);
    if (labels != NULL)
        return by_label(job, labels, job->opts->n_images, offset, image, err);
    for (size_t c = 0; c <= job->prompts->n_classes; c++)
        offset[c] = c * k;
    return pnb__bprw_nearest(ctx, job->prompts, job->images, k, image, err);
}

static pnb_status check(const pnb_prompts *prompts, const pnb_gaussians *images,
                        const int32_t *labels, const pnb_bprw_opts *o, pnb_error *err)
{
    pnb_status status = pnb__prompts_check(prompts, err);
    if (status != PNB_OK)
        return status;
    if (images->n == 0 || images->dim != prompts->dim)
        return pnb__fail(err, PNB_SHAPE,
                         "%zu pictures of width %zu; at least 1 of width %zu, the "
                         "prompts', is needed",
                         images->n, images->dim, prompts->dim);
    if (prompts->kappa != NULL || images->kappa != NULL)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "re-weighting draws points from Gaussians; %s lie on the sphere",
                         prompts->kappa != NULL ? "the prompts" : "the pictures");
    if (labels == NULL && o->n_images == 0)
        return pnb__fail(err, PNB_ARG, "0 pictures a class without labels; at least 1 is needed");
    return PNB_OK;
}

static pnb_status collect(const bprw_job *job, size_t n_classes, pnb_bprw_summary *summary,
                          pnb_error *err)
{
    pnb_bprw_summary s = {0};
    for (size_t c = 0; c < n_classes; c++) {
        if (job->errors[c].status != PNB_OK)
            return pnb__fail(err, job->errors[c].status, "%s", job->errors[c].text);
        s.n_without += job->offset[c + 1] == job->offset[c];
        s.n_unconverged += job->n_steps[c] > job->opts->em.max_steps;
    }
    if (summary != NULL)
        *summary = s;
    return PNB_OK;
}

pnb_status pnb_bprw(const pnb_ctx *ctx, const pnb_prompts *prompts, const pnb_gaussians *images,
                    const int32_t *labels, const pnb_bprw_opts *opts, double *weight,
                    pnb_bprw_summary *summary, pnb_error *err)
{
    pnb_bprw_opts fallback = labels != NULL ? pnb_bprw_opts_few_shot() : pnb_bprw_opts_default();
    const pnb_bprw_opts *o = opts != NULL ? opts : &fallback;
    size_t n_classes = prompts->n_classes, *offset = NULL, *n_steps = NULL, n_images;
    int64_t *image = NULL;
    pnb_error *errors = NULL;
    pnb_status status = check(prompts, images, labels, o, err);
    if (status != PNB_OK)
        return status;
    n_images = labels != NULL ? images->n : n_classes * PNB_MIN(o->n_images, images->n);
    PNB_TRY(PNB_ALLOC_ZERO(offset, n_classes + 1, err));
    PNB_TRY(PNB_ALLOC_ZERO(n_steps, n_classes, err));
    PNB_TRY(PNB_ALLOC_ZERO(errors, n_classes, err));
    PNB_TRY(PNB_ALLOC(image, n_images, err));
    bprw_job job = {prompts, images, o, offset, image, weight, n_steps, errors};
    PNB_TRY(choose_images(ctx, &job, labels, offset, image, err));
    pnb__parallel_for(ctx, n_classes, 1, weigh_classes, &job);
    PNB_TRY(collect(&job, n_classes, summary, err));
done:
    pnb__free(offset);
    pnb__free(n_steps);
    pnb__free(errors);
    pnb__free(image);
    return status;
}
