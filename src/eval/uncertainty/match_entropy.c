/* What a query's matches leave open.
 *
 * Entropy of its softmax over a gallery: H = (log Z - sum_j w_j t_j / Z) / log 2 with
 * t_j = scale (s_j - max s), w_j = exp(t_j), Z = sum w: no term overflows, and no probability that
 * has become 0 meets a logarithm. Doubt: the sum of the entropies of yes or no, each of the
 * probability that a calibration gives the pair. Rows of scores come from eval/retrieval's
 * visitor. */
#include "penumbra/match_entropy.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "eval/retrieval/scores.h"

typedef struct job {
    size_t n_items;
    double scale;                         /* of the entropy */
    const pnb_match_probability_fit *fit; /* of the doubt */
    double *out;                          /* [queries] */
} job;

/* Visits every query's scores with j; `out` is touched when all went well. */
static pnb_status of_rows(const pnb_ctx *ctx, const pnb_rows *queries, const pnb_rows *gallery,
                          const pnb_search_opts *opts, pnb__visit_fn visit, job *j, double *out,
                          pnb_error *err)
{
    pnb_status status;
    if (queries->n == 0 || gallery->n == 0)
        return pnb__fail(err, PNB_SHAPE, "%zu queries and %zu items: both need rows", queries->n,
                         gallery->n);
    j->n_items = gallery->n;
    PNB_TRY(PNB_ALLOC(j->out, queries->n, err));
    const pnb__scores scores = pnb__scores_sets(queries, gallery, opts);
    PNB_TRY(pnb__scores_visit(ctx, &scores, visit, j, err));
    memcpy(out, j->out, queries->n * sizeof *out);
done:
    pnb__free(j->out);
    return status;
}

/* ---- entropy ---- */

static void entropy_of(void *user, int thread, size_t query, const double *score)
{
    const job *j = user;
    double most = score[0], z = 0.0, mean = 0.0;
    (void)thread;
    for (size_t i = 1; i < j->n_items; i++)
        most = fmax(most, score[i]);
    for (size_t i = 0; i < j->n_items; i++) {
        double t = j->scale * (score[i] - most), w = exp(t);
        z += w;
        mean += w > 0.0 ? w * t : 0.0;
    }
    j->out[query] = fmax((log(z) - mean / z) / log(2.0), 0.0);
}

pnb_status pnb_match_entropy_compute(const pnb_ctx *ctx, const pnb_rows *queries,
                                     const pnb_rows *gallery, double scale, double *out,
                                     pnb_error *err)
{
    pnb_search_opts opts = pnb_search_opts_default();
    job j = {.scale = scale};
    if (!(scale > 0.0) || isinf(scale))
        return pnb__fail(err, PNB_ARG, "scale is %g, must be above 0", scale);
    opts.measure = PNB_MEASURE_MEAN;
    return of_rows(ctx, queries, gallery, &opts, entropy_of, &j, out, err);
}

/* ---- doubt ---- */

/* -p log2 p - (1 - p) log2 (1 - p), 0 at both ends. */
static double yes_or_no(double p)
{
    return p > 0.0 && p < 1.0 ? -(p * log(p) + (1.0 - p) * log1p(-p)) / log(2.0) : 0.0;
}

static void doubt_of(void *user, int thread, size_t query, const double *score)
{
    const job *j = user;
    double sum = 0.0;
    (void)thread;
    for (size_t i = 0; i < j->n_items; i++)
        sum += yes_or_no(pnb_match_probability_fit_apply(j->fit, score[i], j->n_items));
    j->out[query] = sum;
}

pnb_status pnb_match_doubt_compute(const pnb_ctx *ctx, const pnb_rows *queries,
                                   const pnb_rows *gallery, const pnb_match_probability_fit *fit,
                                   double *out, pnb_error *err)
{
    pnb_search_opts opts = pnb_search_opts_default();
    job j = {.fit = fit};
    if (fit->depth > 0)
        return pnb__fail(err, PNB_ARG,
                         "a calibration of the first %zu hits says nothing of other pairs",
                         fit->depth);
    if (!fit->origin.has_measure)
        return pnb__fail(err, PNB_ARG, "the calibration does not tell its measure");
    opts.measure = fit->origin.measure;
    opts.measure_opts = fit->origin.measure_opts;
    return of_rows(ctx, queries, gallery, &opts, doubt_of, &j, out, err);
}
