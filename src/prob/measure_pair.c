/* The scalar form of every measure: one pair of rows in f64.
 *
 * Every closed form is a sum over d of a term in delta = mean1-mean2 and the two log-variances,
 * written so that no intermediate overflows for log-variances in [-300, 300] and near-equal
 * Gaussians do not cancel (expm1, sinh, log1p). A point has log-variance -inf, variance 0. What is
 * not such a sum, the cosine and Monte-Carlo, follows; the sphere is in sphere.c. This is what
 * measure_block.c is tested against; formulas with their sources: docs/numerics.md#measures. */
#include <math.h>

#include "prob/inclusion.h"
#include "prob/measure.h"

#define LOG_2PI 1.8378770664093454836

/* Row row1 of g1 against row row2 of g2. */
typedef struct row_pair {
    pnb_measure measure;
    const pnb_rows *g1, *g2;
    size_t row1, row2;
    const pnb_measure_opts *opts;
} row_pair;

/* ---- one dimension of each closed form: delta = mean1 - mean2, l = log-variance ----
 * gain is e^eps of the published inclusion test; nothing else reads it. */

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
static double term_w2(double delta, double l1, double l2, double gain)
{
    (void)gain;
    double spread = exp(0.5 * l1) - exp(0.5 * l2);
    return delta * delta + spread * spread;
}

/* KL(1 || 2) = ((v1 + delta^2)/v2 - 1 - log(v1/v2)) / 2, with e^r - 1 - r for near-equal spreads.
 */
static double term_kl(double delta, double l1, double l2, double gain)
{
    (void)gain;
    double r = l1 - l2;
    double mahalanobis = delta == 0.0 ? 0.0 : delta * delta * exp(-l2);
    return 0.5 * (expm1(r) - r + mahalanobis);
}

/* Both KLs at once: the logs cancel exactly, e^r + e^-r - 2 = 4 sinh^2(r/2). */
static double term_jeffreys(double delta, double l1, double l2, double gain)
{
    (void)gain;
    double s = sinh(0.5 * (l1 - l2));
    double mahalanobis = delta == 0.0 ? 0.0 : delta * delta * (exp(-l1) + exp(-l2));
    return 0.5 * (4.0 * s * s + mahalanobis);
}

/* (v1+v2)/(2 sigma1 sigma2) = cosh((l1-l2)/2). JS with the mean-parameter Gaussian in the middle is
 * the same function: its trace terms sum to exactly D. */
static double term_bhattacharyya(double delta, double l1, double l2, double gain)
{
    (void)gain;
    return 0.25 * over_sum(delta, l1, l2) + 0.5 * log_cosh(0.5 * (l1 - l2));
}

/* log of the expected likelihood, the integral of p1 p2: N(delta; 0, v1+v2). */
static double term_elk(double delta, double l1, double l2, double gain)
{
    (void)gain;
    return -0.5 * (over_sum(delta, l1, l2) + log_add(l1, l2) + LOG_2PI);
}

/* (mean1-mean2)^2 + v1 + v2 = E (z1-z2)^2: the cross term of independent draws vanishes. */
static double term_csd(double delta, double l1, double l2, double gain)
{
    (void)gain;
    return delta * delta + exp(l1) + exp(l2);
}

static double term_inclusion(double delta, double l1, double l2, double gain)
{
    (void)gain;
    return pnb__inclusion_h_term(delta, l1, l2, PNB__H_EXACT_LOG_WEIGHT, 1.0);
}

static double term_inclusion_published(double delta, double l1, double l2, double gain)
{
    return pnb__inclusion_h_term(delta, l1, l2, PNB__H_PUBLISHED_LOG_WEIGHT, gain);
}

/* ---- their sums over d ---- */

static double sum_terms(const row_pair *p, double (*term)(double, double, double, double))
{
    size_t dim = p->g1->dim, at1 = p->row1 * dim, at2 = p->row2 * dim;
    const float *m1 = p->g1->mean + at1, *m2 = p->g2->mean + at2;
    const float *lv1 = p->g1->log_var == NULL ? NULL : p->g1->log_var + at1;
    const float *lv2 = p->g2->log_var == NULL ? NULL : p->g2->log_var + at2;
    double gain = exp(p->opts->inclusion_eps), sum = 0.0;
    for (size_t d = 0; d < dim; d++) {
        double l1 = lv1 == NULL ? -(double)INFINITY : lv1[d];
        double l2 = lv2 == NULL ? -(double)INFINITY : lv2[d];
        sum += term((double)m1[d] - m2[d], l1, l2, gain);
    }
    return sum;
}

/* pair_<measure>: what measures.def names. */
#define PAIR_OF_TERMS(measure)                                                                     \
    static double pair_##measure(const row_pair *p)                                                \
    {                                                                                              \
        return sum_terms(p, term_##measure);                                                       \
    }
PAIR_OF_TERMS(csd)
PAIR_OF_TERMS(w2)
PAIR_OF_TERMS(kl)
PAIR_OF_TERMS(jeffreys)
PAIR_OF_TERMS(bhattacharyya)
PAIR_OF_TERMS(elk)
PAIR_OF_TERMS(inclusion)
PAIR_OF_TERMS(inclusion_published)
#undef PAIR_OF_TERMS

/* ---- others ---- */

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

static double pair_mean(const row_pair *p)
{
    size_t dim = p->g1->dim;
    return cosine(p->g1->mean + p->row1 * dim, p->g2->mean + p->row2 * dim, dim);
}

/* max over k, l of cos(x_k, y_l), rows of K embeddings: PVSE Eq. (3). */
static double pair_max_cosine(const row_pair *p)
{
    size_t dim = p->g1->dim, k = PNB_MAX(p->g1->n_embeddings, (size_t)1), width = dim / k;
    double best = -1;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++)
            best = fmax(best, cosine(p->g1->mean + p->row1 * dim + i * width,
                                     p->g2->mean + p->row2 * dim + j * width, width));
    return best;
}

/* Mean over all J x J pairs of samples; values of z are made where they are read, so that nothing
 * is allocated. */
static double sum_samples(const row_pair *p, double (*term)(double, const pnb_measure_opts *))
{
    double sum = 0.0;
    size_t n = p->opts->n_samples;
    for (size_t j = 0; j < n; j++) {
        /* side 0; z2 is of side 1 */
        pnb__draw z1 = pnb__draw_init(p->g1, p->row1, j, 0, p->opts->seed);
        for (size_t k = 0; k < n; k++) {
            pnb__draw z2 = pnb__draw_init(p->g2, p->row2, k, 1, p->opts->seed);
            double distance2 = 0.0;
            for (size_t d = 0; d < p->g1->dim; d++) {
                double delta = pnb__draw_at(&z1, d) - pnb__draw_at(&z2, d);
                distance2 += delta * delta;
            }
            sum += term(distance2, p->opts);
        }
    }
    return sum / ((double)n * (double)n);
}

static double pair_avg_l2(const row_pair *p)
{
    return sum_samples(p, pnb__term_avg_l2);
}

static double pair_match_prob(const row_pair *p)
{
    return sum_samples(p, pnb__term_match_prob);
}

static double pair_sphere(const row_pair *p)
{
    return pnb__sphere_pair(p->measure, p->g1, p->row1, p->g2, p->row2);
}

/* ---- the table ---- */

static double (*const SCALAR[])(const row_pair *) = {
#define X(name, text, score, symmetry, takes, variances, reads, scalar, ...) scalar,
    PNB__MEASURES(X)
#undef X
};

double pnb_measure_pair(pnb_measure measure, const pnb_rows *g1, size_t row1, const pnb_rows *g2,
                        size_t row2, const pnb_measure_opts *opts)
{
    pnb_measure_opts o = pnb__measure_opts_or_default(opts);
    if ((unsigned)measure >= PNB_N_MEASURES)
        return (double)NAN;
    return SCALAR[measure](&(row_pair){measure, g1, g2, row1, row2, &o});
}
