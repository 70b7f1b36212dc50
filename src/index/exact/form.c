/* How scores of a measure are bounded in f32: the forms behind the column `bound` of measures.def.
 *
 * Three measures are inner products of augmented rows (storage view of the measures):
 *   mean   mu_q.mu_n / (|mu_q| |mu_n|)
 *   csd    1 - csd/2 = mu_q.mu_n + t_q + t_n          t = 1/2 - (|mu|^2 + tr)/2
 *   w2     -w2 = 2 (mu_q.mu_n + std_q.std_n) + t_q + t_n   t = -(|mu|^2 + tr)
 * The augmenting column is kept apart in f64, so large traces do not round the product away. For
 * unit means t of csd is -tr/2 to rounding, ProLIP's form. w2 cancels when |mu|^2 + tr is large:
 * above W2_LIMIT it takes the way of all other measures, the fused f64 loops of src/prob. The
 * inclusion test has a row term too, the sum of the log-variances, and so have likelihoods on the
 * sphere, the log normaliser; their other part comes from the cosine (sphere_bound.c). Products in
 * f32 are bound.c's. */
#include <math.h>

#include "index/exact/exact.h"
#include "prob/inclusion.h"

#define W2_LIMIT 1e3
#define TERM_MOST 1e30
#define LOG_VAR_MOST 30.0f /* inclusion: S12 S21 of two variances stays a normal float */
#define SAMPLES_MOST 64    /* J whose squares of products stay in a cache */
#define STEEP_MOST 1e6     /* a and b of match_prob that floats serve */
#define MEAN_MOST 1e3f     /* inclusion: delta^2 / (S12 S21) stays a float */

static double square_of(const pnb_rows *g, size_t i)
{
    const float *mean = g->mean + i * g->dim;
    double square = 0.0;
    for (size_t d = 0; d < g->dim; d++)
        square += (double)mean[d] * mean[d];
    return square;
}

static double trace_of(const pnb_rows *g, size_t i)
{
    double trace = 0.0;
    for (size_t d = 0; g->log_var != NULL && d < g->dim; d++)
        trace += exp((double)g->log_var[i * g->dim + d]);
    return trace;
}

static void fill_cosine(pnb__exact_side *side, pnb_measure measure, size_t i)
{
    (void)measure;
    side->norm[i] = sqrt(square_of(&side->rows, i));
    side->term[i] = 0.0;
}

static void fill_csd(pnb__exact_side *side, pnb_measure measure, size_t i)
{
    (void)measure;
    double square = square_of(&side->rows, i);
    side->norm[i] = sqrt(square);
    side->term[i] = 0.5 - 0.5 * (square + trace_of(&side->rows, i));
}

/* The norm is that of the joined row (mean, std). */
static void fill_w2(pnb__exact_side *side, pnb_measure measure, size_t i)
{
    (void)measure;
    double square = square_of(&side->rows, i), trace = trace_of(&side->rows, i);
    side->norm[i] = sqrt(square + trace);
    side->term[i] = -(square + trace);
}

static void fill_sphere(pnb__exact_side *side, pnb_measure measure, size_t i)
{
    side->norm[i] = sqrt(square_of(&side->rows, i));
    side->term[i] = pnb__sphere_row_of(measure, &side->rows, i).log_norm;
}

/* The root mean square length of its samples: no row term. */
static void fill_samples(pnb__exact_side *side, pnb_measure measure, size_t i)
{
    (void)measure;
    side->norm[i] = sqrt(square_of(&side->rows, i) + trace_of(&side->rows, i));
    side->term[i] = 0.0;
}

static bool samples_fit(const pnb_measure_opts *o)
{
    return o->n_samples <= SAMPLES_MOST && fabs(o->match_factor * o->match_a) <= STEEP_MOST &&
           fabs(o->match_factor * o->match_b) <= STEEP_MOST;
}

/* Sum of the log-variances; the norm is 0, or infinite where the f32 sums would leave a float. */
static void fill_inclusion(pnb__exact_side *side, pnb_measure measure, size_t i)
{
    (void)measure;
    const pnb_gaussians *g = &side->rows;
    const float *mean = g->mean + i * g->dim, *log_var = g->log_var + i * g->dim;
    double sum = 0.0;
    bool fits = true;
    for (size_t d = 0; d < g->dim; d++) {
        fits = fits && fabsf(mean[d]) <= MEAN_MOST && fabsf(log_var[d]) <= LOG_VAR_MOST;
        sum += log_var[d];
    }
    side->term[i] = sum;
    side->norm[i] = fits ? 0.0 : (double)INFINITY;
}

/* ---- one form for each word of the column ---- */

static const pnb__scan_form FORM_F64 = {.way = PNB__EXACT_F64};
static const pnb__scan_form FORM_COSINE = {
    .way = PNB__EXACT_PRODUCT, .fill_row = fill_cosine, .most_term = TERM_MOST, .is_unit = true};
static const pnb__scan_form FORM_CSD = {
    .way = PNB__EXACT_PRODUCT, .fill_row = fill_csd, .most_term = TERM_MOST};
static const pnb__scan_form FORM_W2 = {
    .way = PNB__EXACT_PRODUCT, .fill_row = fill_w2, .most_term = W2_LIMIT, .has_std = true};
static const pnb__scan_form FORM_VMF = {
    .way = PNB__EXACT_SPHERE, .fill_row = fill_sphere, .most_term = TERM_MOST, .is_unit = true};
static const pnb__scan_form FORM_POWER = {.way = PNB__EXACT_SPHERE,
                                          .fill_row = fill_sphere,
                                          .most_term = TERM_MOST,
                                          .is_unit = true,
                                          .is_power = true};
static const pnb__scan_form FORM_INCLUSION = {
    .way = PNB__EXACT_INCLUSION, .fill_row = fill_inclusion, .log_weight = PNB__H_EXACT_LOG_WEIGHT};
static const pnb__scan_form FORM_INCLUSION_PUBLISHED = {.way = PNB__EXACT_INCLUSION,
                                                        .fill_row = fill_inclusion,
                                                        .has_gain = true,
                                                        .log_weight = PNB__H_PUBLISHED_LOG_WEIGHT};

static const pnb__scan_form FORM_SAMPLES = {.way = PNB__EXACT_SAMPLES,
                                            .fill_row = fill_samples,
                                            .fits = samples_fit,
                                            .most_term = TERM_MOST};

static const pnb__scan_form *const FORMS[] = {
#define X(name, text, score, symmetry, takes, variances, reads, scalar, row, block, log_norm,      \
          bound, sentence)                                                                         \
    &FORM_##bound,
    PNB__MEASURES(X)
#undef X
};

const pnb__scan_form *pnb__scan_form_of(pnb_measure measure)
{
    return (unsigned)measure < PNB_N_MEASURES ? FORMS[measure] : &FORM_F64;
}
