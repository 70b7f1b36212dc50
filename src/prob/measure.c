/* Measures between two distributions: names, what fits what, one pair, and row against row.
 *
 * Every closed form is a sum over d of a term in delta = mean1-mean2 and the two log-variances,
 * written so that no intermediate overflows for log-variances in [-300, 300] and near-equal
 * Gaussians do not cancel (expm1, sinh, log1p). A point has log-variance -inf, variance 0.
 * This is the plain and accurate form; block.c has the fast one for whole blocks. Likelihoods on
 * the sphere are in sphere.c, samples in sample.c. */
#include "prob/measure.h"

#include <math.h>
#include <string.h>

#include "prob/inclusion.h"

#define LOG_2PI 1.8378770664093454836
#define DISTANCE_FLOOR 1e-6 /* PCME: sqrt(||.||^2 + 1e-6) keeps the gradient finite */

typedef struct measure_row {
    const char *name, *sentence;
    bool is_similarity;
    int needs_variance; /* 0 none, 1 one side, 2 both */
} measure_row;

static const measure_row ROWS[] = {
#define X(name, text, is_similarity, needs_variance, sentence)                                     \
    {text, sentence, is_similarity, needs_variance},
    PNB_MEASURE_LIST(X)
#undef X
};

const char *pnb_measure_name(pnb_measure measure)
{
    return (unsigned)measure < PNB_N_MEASURES ? ROWS[measure].name : "unknown";
}

const char *pnb_measure_sentence(pnb_measure measure)
{
    return (unsigned)measure < PNB_N_MEASURES ? ROWS[measure].sentence : "unknown";
}

bool pnb_measure_is_similarity(pnb_measure measure)
{
    return (unsigned)measure < PNB_N_MEASURES && ROWS[measure].is_similarity;
}

bool pnb_measure_is_symmetric(pnb_measure measure)
{
    return measure != PNB_MEASURE_KL && measure != PNB_MEASURE_INCLUSION &&
           measure != PNB_MEASURE_INCLUSION_PUBLISHED;
}

pnb_status pnb_measure_parse(pnb_measure *out, const char *name, pnb_error *err)
{
    const char *names[PNB_COUNT(ROWS)];
    for (size_t i = 0; i < PNB_COUNT(ROWS); i++)
        names[i] = ROWS[i].name;
    int place = 0;
    pnb_status status = pnb__name_parse(&place, "measure", names, PNB_COUNT(ROWS), name, err);
    if (status == PNB_OK)
        *out = (pnb_measure)place;
    return status;
}

double pnb_measure_score(pnb_measure measure, double value)
{
    if (measure == PNB_MEASURE_CSD)
        return 1.0 - 0.5 * value;
    return pnb_measure_is_similarity(measure) ? value : -value;
}

pnb_measure_opts pnb_measure_opts_default(void)
{
    return (pnb_measure_opts){.inclusion_eps = 0.0,
                              .match_a = 5.0,
                              .match_b = 5.0,
                              .match_factor = PNB_MATCH_FACTOR,
                              .n_samples = 7,
                              .seed = 0};
}

pnb_measure_opts pnb__measure_opts_or_default(const pnb_measure_opts *opts)
{
    return opts == NULL ? pnb_measure_opts_default() : *opts;
}

/* ---- what fits what ---- */

bool pnb__measure_is_sampled(pnb_measure measure)
{
    return measure == PNB_MEASURE_AVG_L2 || measure == PNB_MEASURE_MATCH_PROB;
}

bool pnb__measure_is_spherical(pnb_measure measure)
{
    return measure == PNB_MEASURE_VMF || measure == PNB_MEASURE_VMF_EXACT ||
           measure == PNB_MEASURE_POWER_SPHERICAL;
}

const char *pnb_rows_family(const pnb_rows *rows)
{
    if (rows->kappa != NULL)
        return rows->is_power ? "power_spherical" : "vmf";
    if (rows->beta != NULL)
        return "gen_gaussian";
    return rows->log_var != NULL ? "gaussian_diag" : "point";
}

pnb_rows pnb_rows_slice(const pnb_rows *rows, size_t begin, size_t n)
{
    pnb_rows s = *rows;
    size_t skip = begin * rows->dim;
    s.n = n;
    s.mean += skip;
    s.log_var = s.log_var == NULL ? NULL : s.log_var + skip;
    s.inv_alpha = s.inv_alpha == NULL ? NULL : s.inv_alpha + skip;
    s.beta = s.beta == NULL ? NULL : s.beta + skip;
    s.kappa = s.kappa == NULL ? NULL : s.kappa + begin;
    return s;
}

static bool is_point(const pnb_rows *rows)
{
    return rows->kappa == NULL && rows->beta == NULL && rows->log_var == NULL;
}

/* Measures that the family has beside those that take every family. */
static const char *suited(const pnb_rows *rows)
{
    if (rows->kappa == NULL)
        return "csd or w2";
    return rows->is_power ? "power_spherical" : "vmf or vmf_exact";
}

static pnb_status fail_family(pnb_measure measure, const char *takes, const pnb_rows *rows,
                              pnb_error *err)
{
    return pnb__fail(err, PNB_ARG,
                     "measure %s takes %s, and one set is of family %s; use mean, avg_l2, "
                     "match_prob, or %s",
                     ROWS[measure].name, takes, pnb_rows_family(rows), suited(rows));
}

/* One side of a likelihood on the sphere: its family, or a point. */
static pnb_status check_spherical(pnb_measure measure, const pnb_rows *rows, pnb_error *err)
{
    if (rows->dim < 2)
        return pnb__fail(err, PNB_SHAPE, "measure %s on embeddings of width %zu; a sphere needs 2",
                         ROWS[measure].name, rows->dim);
    bool wants_power = measure == PNB_MEASURE_POWER_SPHERICAL;
    if (is_point(rows) || (rows->kappa != NULL && rows->is_power == wants_power))
        return PNB_OK;
    return fail_family(measure,
                       wants_power ? "power_spherical sets and points" : "vmf sets and points",
                       rows, err);
}

static pnb_status check_gaussian(pnb_measure measure, const pnb_rows *rows, pnb_error *err)
{
    if (rows->kappa != NULL)
        return fail_family(measure, "Gaussians, generalised Gaussians and points", rows, err);
    if (rows->beta != NULL && rows->log_var == NULL)
        return pnb__fail(err, PNB_ARG,
                         "measure %s takes a generalised Gaussian by its variances, and these rows "
                         "have no log_var; pnb_view_init makes it",
                         ROWS[measure].name);
    return PNB_OK;
}

pnb_status pnb_measure_check_fit(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                                 pnb_error *err)
{
    if ((unsigned)measure >= PNB_N_MEASURES)
        return pnb__fail(err, PNB_ARG, "measure number %d does not exist", (int)measure);
    if (measure == PNB_MEASURE_MEAN || pnb__measure_is_sampled(measure))
        return PNB_OK;
    bool spherical = pnb__measure_is_spherical(measure);
    for (int side = 0; side < (b == NULL ? 1 : 2); side++) {
        pnb_status status = spherical ? check_spherical(measure, side == 0 ? a : b, err)
                                      : check_gaussian(measure, side == 0 ? a : b, err);
        if (status != PNB_OK)
            return status;
    }
    if (spherical && b != NULL && a->kappa == NULL && b->kappa == NULL)
        return pnb__fail(err, PNB_ARG,
                         "measure %s is the likelihood of points under embeddings with a "
                         "concentration, and both sets are points; use mean or csd",
                         ROWS[measure].name);
    int n_sides = (a->log_var != NULL) + (b == NULL || b->log_var != NULL);
    if (n_sides < ROWS[measure].needs_variance)
        return pnb__fail(err, PNB_ARG,
                         "measure %s needs variances on %s and %s is a set of points; use mean, "
                         "csd or w2",
                         ROWS[measure].name,
                         ROWS[measure].needs_variance == 2 ? "both sides" : "one side",
                         n_sides == 0 ? "each" : "one");
    return PNB_OK;
}

pnb_status pnb__measure_check(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                              const pnb_measure_opts *opts, pnb_error *err)
{
    if (a->dim == 0 || (b != NULL && a->dim != b->dim))
        return pnb__fail(err, PNB_SHAPE,
                         "one set has width %zu, the other %zu; both must come from the same model",
                         a->dim, b == NULL ? a->dim : b->dim);
    pnb_status status = pnb_measure_check_fit(measure, a, b, err);
    if (status == PNB_OK && pnb__measure_is_sampled(measure) &&
        (opts->n_samples == 0 || opts->n_samples > 10000))
        return pnb__fail(err, PNB_ARG, "measure %s with %zu samples; 1 to 10000 are possible",
                         ROWS[measure].name, opts->n_samples);
    return status;
}

/* ---- terms: one dimension of each closed form ---- */

/* log cosh x, exact to rounding at both ends: cosh x = 1 + 2 sinh^2(x/2) */
static double log_cosh(double x)
{
    double a = fabs(x);
    if (a < 1.0) {
        double s = sinh(0.5 * a);
        return log1p(2.0 * s * s);
    }
    return a + log1p(exp(-2.0 * a)) - 0.69314718055994530942;
}

/* log(v1 + v2) from logs; one of them may be -inf */
static double log_add(double l1, double l2)
{
    double high = l1 > l2 ? l1 : l2;
    return high + log1p(exp((l1 > l2 ? l2 : l1) - high));
}

/* delta^2 / (v1+v2). Equal means give 0 also between points, where the quotient is 0/0. */
static double over_sum(double delta, double l1, double l2)
{
    return delta == 0.0 ? 0.0 : delta * delta * exp(-log_add(l1, l2));
}

/* (mean1-mean2)^2 + (std1-std2)^2: diagonal covariances commute, so the trace term is a square. */
static double term_w2(double delta, double l1, double l2)
{
    double spread = exp(0.5 * l1) - exp(0.5 * l2);
    return delta * delta + spread * spread;
}

/* KL(1 || 2) = ((v1 + delta^2)/v2 - 1 - log(v1/v2)) / 2, with e^r - 1 - r for near-equal spreads.
 */
static double term_kl(double delta, double l1, double l2)
{
    double r = l1 - l2;
    double mahalanobis = delta == 0.0 ? 0.0 : delta * delta * exp(-l2);
    return 0.5 * (expm1(r) - r + mahalanobis);
}

/* Both KLs at once: the logs cancel exactly, e^r + e^-r - 2 = 4 sinh^2(r/2). */
static double term_jeffreys(double delta, double l1, double l2)
{
    double s = sinh(0.5 * (l1 - l2));
    double mahalanobis = delta == 0.0 ? 0.0 : delta * delta * (exp(-l1) + exp(-l2));
    return 0.5 * (4.0 * s * s + mahalanobis);
}

/* (v1+v2)/(2 sigma1 sigma2) = cosh((l1-l2)/2). JS with the mean-parameter Gaussian in the middle is
 * the same function: its trace terms sum to exactly D. */
static double term_bhattacharyya(double delta, double l1, double l2)
{
    return 0.25 * over_sum(delta, l1, l2) + 0.5 * log_cosh(0.5 * (l1 - l2));
}

/* log of the expected likelihood, the integral of p1 p2: N(delta; 0, v1+v2). */
static double term_elk(double delta, double l1, double l2)
{
    return -0.5 * (over_sum(delta, l1, l2) + log_add(l1, l2) + LOG_2PI);
}

static double term(pnb_measure measure, double delta, double l1, double l2, double gain)
{
    switch (measure) {
    case PNB_MEASURE_CSD:
        return delta * delta + exp(l1) + exp(l2);
    case PNB_MEASURE_W2:
        return term_w2(delta, l1, l2);
    case PNB_MEASURE_KL:
        return term_kl(delta, l1, l2);
    case PNB_MEASURE_JEFFREYS:
        return term_jeffreys(delta, l1, l2);
    case PNB_MEASURE_JS:
    case PNB_MEASURE_BHATTACHARYYA:
        return term_bhattacharyya(delta, l1, l2);
    case PNB_MEASURE_ELK:
        return term_elk(delta, l1, l2);
    case PNB_MEASURE_INCLUSION:
        return pnb__inclusion_h_term(delta, l1, l2, PNB__H_EXACT_LOG_WEIGHT, 1.0);
    case PNB_MEASURE_INCLUSION_PUBLISHED:
        return pnb__inclusion_h_term(delta, l1, l2, PNB__H_PUBLISHED_LOG_WEIGHT, gain);
    default:
        return (double)NAN;
    }
}

static double cosine(const float *x, const float *y, size_t dim)
{
    double xy = 0.0, xx = 0.0, yy = 0.0;
    for (size_t d = 0; d < dim; d++) {
        xy += (double)x[d] * y[d];
        xx += (double)x[d] * x[d];
        yy += (double)y[d] * y[d];
    }
    double norms = sqrt(xx) * sqrt(yy);
    return norms == 0.0 ? 0.0 : xy / norms;
}

/* ---- Monte-Carlo ---- */

double pnb__sample_term(pnb_measure measure, double distance2, const pnb_measure_opts *opts)
{
    if (measure == PNB_MEASURE_AVG_L2)
        return sqrt(distance2);
    double l = opts->match_b - opts->match_a * sqrt(distance2 + DISTANCE_FLOOR);
    return pnb_sigmoid(opts->match_factor * l);
}

static double monte_carlo_pair(pnb_measure measure, const pnb_rows *g1, size_t row1,
                               const pnb_rows *g2, size_t row2, const pnb_measure_opts *opts)
{
    double sum = 0.0;
    size_t n = opts->n_samples;
    for (size_t j = 0; j < n; j++) {
        pnb__draw z1 = pnb__draw_init(g1, row1, j, 0, opts->seed); /* side 0; z2 is of side 1 */
        for (size_t k = 0; k < n; k++) {
            pnb__draw z2 = pnb__draw_init(g2, row2, k, 1, opts->seed);
            double distance2 = 0.0;
            for (size_t d = 0; d < g1->dim; d++) {
                double delta = pnb__draw_at(&z1, d) - pnb__draw_at(&z2, d);
                distance2 += delta * delta;
            }
            sum += pnb__sample_term(measure, distance2, opts);
        }
    }
    return sum / ((double)n * (double)n);
}

/* ---- pairs and rows ---- */

double pnb_measure_pair(pnb_measure measure, const pnb_rows *g1, size_t row1, const pnb_rows *g2,
                        size_t row2, const pnb_measure_opts *opts)
{
    pnb_measure_opts o = pnb__measure_opts_or_default(opts);
    size_t dim = g1->dim;
    const float *m1 = g1->mean + row1 * dim, *m2 = g2->mean + row2 * dim;
    if (measure == PNB_MEASURE_MEAN)
        return cosine(m1, m2, dim);
    if (pnb__measure_is_spherical(measure))
        return pnb__sphere_pair(measure, g1, row1, g2, row2);
    if (pnb__measure_is_sampled(measure))
        return monte_carlo_pair(measure, g1, row1, g2, row2, &o);
    const float *lv1 = g1->log_var == NULL ? NULL : g1->log_var + row1 * dim;
    const float *lv2 = g2->log_var == NULL ? NULL : g2->log_var + row2 * dim;
    double gain = exp(o.inclusion_eps), sum = 0.0;
    for (size_t d = 0; d < dim; d++) {
        double l1 = lv1 == NULL ? -(double)INFINITY : lv1[d];
        double l2 = lv2 == NULL ? -(double)INFINITY : lv2[d];
        sum += term(measure, (double)m1[d] - m2[d], l1, l2, gain);
    }
    return sum;
}

pnb_status pnb_measure_rows(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                            const pnb_measure_opts *opts, double *out, pnb_error *err)
{
    pnb_measure_opts o = pnb__measure_opts_or_default(opts);
    pnb_status status = pnb__measure_check(measure, a, b, &o, err);
    if (status != PNB_OK)
        return status;
    if (a->n != b->n)
        return pnb__fail(err, PNB_SHAPE,
                         "one set has %zu rows, the other %zu; row i goes with row i", a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        out[i] = pnb_measure_pair(measure, a, i, b, i, &o);
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu: measure %s is %g; the embeddings hold values that are not "
                             "finite, a kappa below 0 or log-variances beyond +-300",
                             i, ROWS[measure].name, out[i]);
    }
    return PNB_OK;
}
