/* Measures between two diagonal Gaussians: names, one pair, and row against row.
 *
 * Every closed form is a sum over d of a term in delta = mean1-mean2 and the two log-variances,
 * written so that no intermediate overflows for log-variances in [-300, 300] and near-equal
 * Gaussians do not cancel (expm1, sinh, log1p). A point has log-variance -inf, variance 0.
 * This is the plain and accurate form; block.c has the fast one for whole blocks. */
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
    char known[256] = "";
    for (size_t i = 0; i < PNB_COUNT(ROWS); i++) {
        if (strcmp(name, ROWS[i].name) == 0) {
            *out = (pnb_measure)i;
            return PNB_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", ROWS[i].name);
    }
    return pnb__fail(err, PNB_NOT_FOUND, "measure '%s' is unknown; known are %s", name, known);
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

pnb_status pnb__measure_check(pnb_measure measure, const pnb_gaussians *a, const pnb_gaussians *b,
                              const pnb_measure_opts *opts, pnb_error *err)
{
    if ((unsigned)measure >= PNB_N_MEASURES)
        return pnb__fail(err, PNB_ARG, "measure number %d does not exist", (int)measure);
    if (a->dim != b->dim || a->dim == 0)
        return pnb__fail(err, PNB_SHAPE,
                         "one set has width %zu, the other %zu; both must come from the same model",
                         a->dim, b->dim);
    int n_sides = (a->log_var != NULL) + (b->log_var != NULL);
    if (n_sides < ROWS[measure].needs_variance)
        return pnb__fail(err, PNB_ARG,
                         "measure %s needs variances on %s and %s is a set of points; use mean, "
                         "csd or w2",
                         ROWS[measure].name,
                         ROWS[measure].needs_variance == 2 ? "both sides" : "one side",
                         n_sides == 0 ? "each" : "one");
    bool samples = measure == PNB_MEASURE_AVG_L2 || measure == PNB_MEASURE_MATCH_PROB;
    if (samples && (opts->n_samples == 0 || opts->n_samples > 10000))
        return pnb__fail(err, PNB_ARG, "measure %s with %zu samples; 1 to 10000 are possible",
                         ROWS[measure].name, opts->n_samples);
    return PNB_OK;
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

static double over_sum(double delta, double l1, double l2)
{
    return delta == 0.0 ? 0.0 : delta * delta * exp(-log_add(l1, l2));
}

static double term_w2(double delta, double l1, double l2)
{
    double spread = exp(0.5 * l1) - exp(0.5 * l2);
    return delta * delta + spread * spread;
}

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

double pnb__sample(const pnb_gaussians *g, size_t row, size_t d, size_t j, unsigned side,
                   uint64_t seed)
{
    double mean = g->mean[row * g->dim + d];
    if (g->log_var == NULL)
        return mean;
    /* A normal takes four 32-bit words, one block of the generator. */
    pnb__rng rng = {
        .seed = seed, .stream = 2 * (uint64_t)row + side, .counter = 4 * (j * g->dim + d)};
    return mean + exp(0.5 * (double)g->log_var[row * g->dim + d]) * pnb__rng_normal(&rng);
}

static double sample_distance2(const pnb_gaussians *g1, size_t row1, size_t j,
                               const pnb_gaussians *g2, size_t row2, size_t k, uint64_t seed)
{
    double sum = 0.0;
    for (size_t d = 0; d < g1->dim; d++) {
        double delta = pnb__sample(g1, row1, d, j, 0, seed) - pnb__sample(g2, row2, d, k, 1, seed);
        sum += delta * delta;
    }
    return sum;
}

double pnb__sample_term(pnb_measure measure, double distance2, const pnb_measure_opts *opts)
{
    if (measure == PNB_MEASURE_AVG_L2)
        return sqrt(distance2);
    double l = opts->match_b - opts->match_a * sqrt(distance2 + DISTANCE_FLOOR);
    return pnb_sigmoid(opts->match_factor * l);
}

static double monte_carlo_pair(pnb_measure measure, const pnb_gaussians *g1, size_t row1,
                               const pnb_gaussians *g2, size_t row2, const pnb_measure_opts *opts)
{
    double sum = 0.0;
    size_t n = opts->n_samples;
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++) {
            double d2 = sample_distance2(g1, row1, j, g2, row2, k, opts->seed);
            sum += pnb__sample_term(measure, d2, opts);
        }
    return sum / ((double)n * (double)n);
}

/* ---- pairs and rows ---- */

double pnb_measure_pair(pnb_measure measure, const pnb_gaussians *g1, size_t row1,
                        const pnb_gaussians *g2, size_t row2, const pnb_measure_opts *opts)
{
    pnb_measure_opts o = pnb__measure_opts_or_default(opts);
    size_t dim = g1->dim;
    const float *m1 = g1->mean + row1 * dim, *m2 = g2->mean + row2 * dim;
    if (measure == PNB_MEASURE_MEAN)
        return cosine(m1, m2, dim);
    if (measure == PNB_MEASURE_AVG_L2 || measure == PNB_MEASURE_MATCH_PROB)
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

pnb_status pnb_measure_rows(pnb_measure measure, const pnb_gaussians *a, const pnb_gaussians *b,
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
                             "finite or log-variances beyond +-300",
                             i, ROWS[measure].name, out[i]);
    }
    return PNB_OK;
}
