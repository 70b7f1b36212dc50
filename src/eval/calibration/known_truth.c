/* Recovered against known concentration: rank, error, the line between them, and coverage.
 *
 * Everything goes through the mean cosine of a row's samples, so that a Gaussian of an adapter and
 * a von Mises-Fisher of the truth are one number each. The region of a share p is the cap around
 * the recovered mean that holds p of the density of that mean cosine; a wrong direction therefore
 * costs coverage as a wrong concentration does. */
#include "penumbra/known_truth.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "penumbra/distributions.h"
#include "penumbra/statistics.h"

static const double regions[PNB_N_KNOWN_REGIONS] = {0.5, 0.9};
#define MOST_COSINE (1.0 - 1e-9) /* of a row without any spread */

/* ---- concentrations ---- */

static double dot(const float *a, const float *b, size_t dim)
{
    double sum = 0.0;
    for (size_t d = 0; d < dim; d++)
        sum += (double)a[d] * b[d];
    return sum;
}

static double variance_of(const pnb_embeddings *set, size_t row)
{
    double sum = 0.0;
    for (size_t i = row * set->dim; i < (row + 1) * set->dim; i++)
        sum +=
            exp(set->log_var != NULL ? (double)set->log_var[i]
                                     : pnb_gen_gaussian_log_var(set->inv_alpha[i], set->beta[i]));
    return sum;
}

/* A of a row; NaN for what is none. */
static double mean_cosine(const pnb_embeddings *set, size_t row)
{
    const float *mean = set->mean + row * set->dim;
    double square = dot(mean, mean, set->dim);
    if (!(square > 0.0) || !isfinite(square))
        return (double)NAN;
    if (set->family == PNB_VMF)
        return pnb_vmf_mean_cosine(set->dim, set->kappa[row]);
    if (set->family == PNB_POWER_SPHERICAL)
        return pnb_power_spherical_mean_cosine(set->dim, set->kappa[row]);
    return 1.0 / sqrt(1.0 + variance_of(set, row) / square);
}

/* Log concentrations of all rows, in the width of what is known. */
static pnb_status concentrations(const pnb_embeddings *set, size_t dim, double *out, pnb_error *err)
{
    for (size_t i = 0; i < set->n; i++) {
        double a = mean_cosine(set, i);
        if (!isfinite(a))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu: a mean of length 0 or a parameter outside its range", i);
        out[i] = log(pnb_vmf_kappa_at(dim, fmin(fmax(a, 1e-9), MOST_COSINE)));
    }
    return PNB_OK;
}

/* ---- figures ---- */

static bool is_constant(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

static pnb_status score_rank(const double *got, const double *known, size_t n,
                             pnb_known_scores *out, pnb_error *err)
{
    double mean[2] = {0, 0}, xx = 0, xy = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        out->log_error += (got[i] - known[i]) * (got[i] - known[i]) / (double)n;
        mean[0] += got[i] / (double)n;
        mean[1] += known[i] / (double)n;
    }
    out->log_error = sqrt(out->log_error);
    if (is_constant(got, n) || is_constant(known, n))
        return PNB_OK;
    for (size_t i = 0; i < n; i++) {
        xx += (got[i] - mean[0]) * (got[i] - mean[0]);
        xy += (got[i] - mean[0]) * (known[i] - mean[1]);
    }
    out->slope = xy / xx;
    for (size_t i = 0; i < n; i++) {
        double rest = known[i] - mean[1] - out->slope * (got[i] - mean[0]);
        left += rest * rest / (double)n;
    }
    out->fitted_error = sqrt(left);
    return pnb_spearman(got, known, n, &out->spearman, err);
}

static double direction_of(const pnb_embeddings *a, const pnb_embeddings *b)
{
    double sum = 0.0;
    for (size_t i = 0; i < a->n; i++) {
        const float *x = a->mean + i * a->dim, *y = b->mean + i * b->dim;
        sum += dot(x, y, a->dim) / sqrt(dot(x, x, a->dim) * dot(y, y, a->dim));
    }
    return sum / (double)a->n;
}

/* Pictures that a caption fits, and how many lie inside each region. */
typedef struct tally {
    size_t n, inside[PNB_N_KNOWN_REGIONS];
} tally;

static void count_images(const pnb_embeddings *texts, const pnb_embeddings *images,
                         const pnb_truth *truth, const double (*edge)[PNB_N_KNOWN_REGIONS],
                         tally *of_text)
{
    for (size_t i = 0; i < images->n; i++) {
        const float *x = images->mean + i * images->dim;
        double length = sqrt(dot(x, x, images->dim));
        for (size_t p = truth->offset[i]; p < truth->offset[i + 1]; p++) {
            size_t t = truth->item[p];
            const float *mean = texts->mean + t * texts->dim;
            double cosine = dot(x, mean, texts->dim) / (length * sqrt(dot(mean, mean, texts->dim)));
            of_text[t].n++;
            for (size_t r = 0; r < PNB_N_KNOWN_REGIONS; r++)
                of_text[t].inside[r] += cosine >= edge[t][r];
        }
    }
}

static pnb_status score_coverage(const pnb_embeddings *texts, const pnb_embeddings *images,
                                 const pnb_truth *truth, pnb_known_scores *out, pnb_error *err)
{
    double(*edge)[PNB_N_KNOWN_REGIONS] = NULL, sum[PNB_N_KNOWN_REGIONS] = {0};
    tally *of_text = NULL;
    size_t n = 0;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(edge, texts->n, err));
    PNB_TRY(PNB_ALLOC_ZERO(of_text, texts->n, err));
    for (size_t t = 0; t < texts->n; t++) {
        double a = fmin(fmax(mean_cosine(texts, t), 1e-9), MOST_COSINE);
        double kappa = pnb_vmf_kappa_at(texts->dim, a);
        for (size_t r = 0; r < PNB_N_KNOWN_REGIONS; r++)
            edge[t][r] = pnb_vmf_cosine_quantile(texts->dim, kappa, regions[r]);
    }
    count_images(texts, images, truth, (const double(*)[PNB_N_KNOWN_REGIONS])edge, of_text);
    for (size_t t = 0; t < texts->n; t++) {
        n += of_text[t].n > 0;
        for (size_t r = 0; r < PNB_N_KNOWN_REGIONS && of_text[t].n > 0; r++)
            sum[r] += (double)of_text[t].inside[r] / (double)of_text[t].n;
    }
    for (size_t r = 0; r < PNB_N_KNOWN_REGIONS && n > 0; r++)
        out->coverage[r] = sum[r] / (double)n;
done:
    pnb__free(edge);
    pnb__free(of_text);
    return status;
}

/* ---- the whole ---- */

static bool same_id(const pnb_embeddings *a, const pnb_embeddings *b, size_t i)
{
    const char *x = a->ids != NULL ? a->ids[i] : NULL, *y = b->ids != NULL ? b->ids[i] : NULL;
    return x == NULL || y == NULL || strcmp(x, y) == 0;
}

static pnb_status check(const pnb_embeddings *got, const pnb_embeddings *known,
                        const pnb_embeddings *images, const pnb_truth *truth, pnb_error *err)
{
    if (known->family == PNB_POINT)
        return pnb__fail(err, PNB_ARG, "what is known are points: they have no concentration");
    if (got->n != known->n)
        return pnb__fail(err, PNB_ARG, "%zu rows beside %zu known ones", got->n, known->n);
    for (size_t i = 0; i < got->n; i++)
        if (!same_id(got, known, i))
            return pnb__fail(err, PNB_ARG, "row %zu is '%.80s', the known one '%.80s'", i,
                             got->ids[i], known->ids[i]);
    if ((images == NULL) != (truth == NULL))
        return pnb__fail(err, PNB_ARG, "pictures and truth go together");
    if (images != NULL && (truth->n_queries != images->n || truth->n_items != got->n))
        return pnb__fail(err, PNB_SHAPE, "truth of %zu pictures and %zu captions, %zu and %zu here",
                         truth->n_queries, truth->n_items, images->n, got->n);
    return PNB_OK;
}

pnb_status pnb_known_scores_compute(const pnb_embeddings *recovered, const pnb_embeddings *known,
                                    const pnb_embeddings *images, const pnb_truth *truth,
                                    pnb_known_scores *out, pnb_error *err)
{
    const double none = (double)NAN;
    pnb_known_scores s = {recovered->n, none, 0.0, none, none, none, {none, none}};
    double *got = NULL, *wanted = NULL;
    pnb_status status;
    PNB_TRY(check(recovered, known, images, truth, err));
    PNB_TRY(PNB_ALLOC(got, known->n, err));
    PNB_TRY(PNB_ALLOC(wanted, known->n, err));
    PNB_TRY(concentrations(known, known->dim, wanted, err));
    if (recovered->dim == known->dim)
        s.direction = direction_of(recovered, known);
    if (recovered->family == PNB_POINT) {
        s.log_error = none;
    } else {
        PNB_TRY(concentrations(recovered, known->dim, got, err));
        PNB_TRY(score_rank(got, wanted, known->n, &s, err));
        if (images != NULL && images->dim == recovered->dim)
            PNB_TRY(score_coverage(recovered, images, truth, &s, err));
    }
    *out = s;
done:
    pnb__free(got);
    pnb__free(wanted);
    return status;
}
