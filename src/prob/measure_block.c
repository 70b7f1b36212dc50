/* Measures of every row of one set against every row of another, fused: for each pair one pass over
 * d on unpacked f64 rows, nothing of size A*B*D. Measures that need one sum of products or squares
 * take it from sums.c for a tile of pairs at once.
 *
 * exp and log are kept out of the inner loop: variances, 1/var or std are unpacked once per row of
 * a tile, and sums of logs over d become the log of products of LOG_RUN factors (factors in [e^-30,
 * e^31] keep the product far inside f64). Loops may be reassociated by `omp simd`: the order is
 * fixed by the build, not by tiles or threads, so a pair's value never depends on where in a block
 * it lies. The accurate one-pair form is measure.c; the matrix-product forms that search uses for
 * mean, csd and w2 are in src/index. */
#include <math.h>

#include "prob/inclusion.h"
#include "prob/measure.h"

#define LOG_2PI 1.8378770664093454836
#define LOG_RUN 16
#define RATIO_RUN 512 /* ratios in [1/2, 2]: the product stays within 2^+-512 */
#define TILE_ROWS 32

pnb_status pnb__tile_alloc(pnb__tile *tile, pnb_measure measure, size_t capacity, size_t dim,
                           const pnb_measure_opts *opts, pnb_error *err)
{
    *tile = (pnb__tile){.dim = dim, .capacity = capacity};
    size_t aux_dim = pnb__measure_is_sampled(measure) ? dim * opts->n_samples : dim;
    size_t per_row = 2 * dim + aux_dim + 2;
    tile->memory = pnb__alloc_array(capacity, per_row * sizeof(double));
    if (tile->memory == NULL)
        return pnb__fail_nomem(err, capacity * per_row * sizeof(double));
    tile->mean = tile->memory;
    tile->var = tile->mean + capacity * dim;
    tile->aux = tile->var + capacity * dim;
    tile->log_sum = tile->aux + capacity * aux_dim;
    tile->kappa = tile->log_sum + capacity;
    return PNB_OK;
}

void pnb__tile_free(pnb__tile *tile)
{
    pnb__free(tile->memory);
    *tile = (pnb__tile){0};
}

static void fill_samples(pnb__tile *tile, const pnb_rows *g, size_t begin, unsigned side,
                         const pnb_measure_opts *opts)
{
    size_t n_samples = opts->n_samples, dim = tile->dim;
    for (size_t i = 0; i < tile->n; i++)
        for (size_t j = 0; j < n_samples; j++)
            pnb__draw_fill(g, begin + i, j, side, opts->seed,
                           tile->aux + (i * n_samples + j) * dim);
}

/* Unit vectors, concentrations and log normalisers. */
static void fill_sphere(pnb__tile *tile, pnb_measure measure, const pnb_rows *g, size_t begin)
{
    size_t dim = tile->dim;
    tile->has_kappa = g->kappa != NULL;
    for (size_t i = 0; i < tile->n; i++) {
        pnb__sphere_row r = pnb__sphere_row_of(measure, g, begin + i);
        for (size_t d = 0; d < dim; d++)
            tile->mean[i * dim + d] = g->mean[(begin + i) * dim + d] * r.scale;
        tile->kappa[i] = r.kappa;
        tile->log_sum[i] = r.log_norm;
    }
}

/* csd needs no more than the trace. */
static double trace_of(const float *log_var, size_t dim)
{
    double sum = 0.0;
    for (size_t d = 0; log_var != NULL && d < dim; d++)
        sum += exp((double)log_var[d]);
    return sum;
}

/* An exponential costs as much as some pairs: only what the measure reads is filled. */
static void fill_row(pnb__tile *tile, size_t i, pnb_measure measure, const float *log_var)
{
    size_t dim = tile->dim;
    double *var = tile->var + i * dim, *aux = tile->aux + i * dim, sum = 0.0;
    double rate = measure == PNB_MEASURE_W2 ? 0.5 : -1.0;
    bool has_var = measure != PNB_MEASURE_W2;
    bool has_aux = !has_var || measure == PNB_MEASURE_KL || measure == PNB_MEASURE_JEFFREYS;
    for (size_t d = 0; d < dim; d++) {
        double l = log_var == NULL ? -(double)INFINITY : log_var[d]; /* a point has variance 0 */
        if (has_var)
            var[d] = exp(l);
        if (has_aux)
            aux[d] = exp(rate * l);
        sum += l;
    }
    tile->log_sum[i] = sum;
}

void pnb__tile_fill(pnb__tile *tile, pnb_measure measure, const pnb_rows *g, size_t begin, size_t n,
                    unsigned side, const pnb_measure_opts *opts)
{
    size_t dim = tile->dim;
    tile->n = n;
    if (pnb__measure_is_spherical(measure)) {
        fill_sphere(tile, measure, g, begin);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const float *mean = g->mean + (begin + i) * dim;
        const float *log_var = g->log_var == NULL ? NULL : g->log_var + (begin + i) * dim;
        double square = 0.0;
        for (size_t d = 0; d < dim; d++) {
            tile->mean[i * dim + d] = mean[d];
            square += (double)mean[d] * mean[d];
        }
        if (measure == PNB_MEASURE_MEAN)
            tile->log_sum[i] = sqrt(square);
        else if (measure == PNB_MEASURE_CSD)
            tile->log_sum[i] = trace_of(log_var, dim);
        else if (!pnb__measure_is_sampled(measure))
            fill_row(tile, i, measure, log_var);
    }
    if (pnb__measure_is_sampled(measure))
        fill_samples(tile, g, begin, side, opts);
}

/* ---- one pair: (m, v, w) of both rows ----
 * Pointers are copied to locals: GCC gathers lane by lane through the struct otherwise. */

typedef struct pair {
    const double *m1, *v1, *w1, *m2, *v2, *w2;
    double log_sum1, log_sum2;
    size_t dim;
} pair;

static double pair_w2(const pair *p)
{
    const double *m1 = p->m1, *m2 = p->m2, *w1 = p->w1, *w2 = p->w2;
    size_t dim = p->dim;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t d = 0; d < dim; d++) {
        double delta = m1[d] - m2[d], spread = w1[d] - w2[d];
        sum += delta * delta + spread * spread;
    }
    return sum;
}

static double pair_kl(const pair *p)
{
    const double *m1 = p->m1, *m2 = p->m2, *v1 = p->v1, *w2 = p->w2;
    size_t dim = p->dim;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t d = 0; d < dim; d++) {
        double delta = m1[d] - m2[d];
        sum += (v1[d] + delta * delta) * w2[d] - 1.0; /* w = 1/v; the logs come once a row */
    }
    return 0.5 * (sum + p->log_sum2 - p->log_sum1);
}

static double pair_jeffreys(const pair *p)
{
    const double *m1 = p->m1, *m2 = p->m2, *v1 = p->v1, *v2 = p->v2, *w1 = p->w1, *w2 = p->w2;
    size_t dim = p->dim;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t d = 0; d < dim; d++) {
        double delta2 = (m1[d] - m2[d]) * (m1[d] - m2[d]);
        sum += (v1[d] + delta2) * w2[d] + (v2[d] + delta2) * w1[d] - 2.0;
    }
    return 0.5 * sum;
}

/* Sums delta^2/(v1+v2) and log(v1+v2) over d; elk and Bhattacharyya are made of these. */
static double sum_pooled(const pair *p, double *log_sum)
{
    const double *m1 = p->m1, *m2 = p->m2, *v1 = p->v1, *v2 = p->v2;
    size_t dim = p->dim;
    double quotient = 0.0;
    *log_sum = 0.0;
    for (size_t begin = 0; begin < dim; begin += LOG_RUN) {
        size_t end = PNB_MIN(begin + LOG_RUN, dim);
        double product = 1.0;
#pragma omp simd reduction(+ : quotient) reduction(* : product)
        for (size_t d = begin; d < end; d++) {
            double delta = m1[d] - m2[d], pooled = v1[d] + v2[d];
            quotient += delta * delta / pooled;
            product *= pooled;
        }
        *log_sum += log(product);
    }
    return quotient;
}

/* sum over d of log N(delta; 0, v1+v2) */
static double pair_elk(const pair *p)
{
    double log_sum, quotient = sum_pooled(p, &log_sum);
    return -0.5 * (quotient + log_sum + (double)p->dim * LOG_2PI);
}

/* delta^2 / (4 (v1+v2)) + log((v1+v2) / (2 std1 std2)) / 2; JS is the same function (measure.c) */
static double pair_bhattacharyya(const pair *p)
{
    double log_sum, quotient = sum_pooled(p, &log_sum);
    double log_geometric = 0.5 * (p->log_sum1 + p->log_sum2) + (double)p->dim * 0.69314718055994531;
    return 0.25 * quotient + 0.5 * (log_sum - log_geometric);
}

/* a = v1+2 v2, b = v2+2 v1: b/a lies in [1/2, 2], one division serves both terms of H. */
static double pair_inclusion(const pair *p, double log_weight, double gain)
{
    const double *m1 = p->m1, *m2 = p->m2, *v1 = p->v1, *v2 = p->v2;
    size_t dim = p->dim;
    double distance = 0.0, log_ratio = 0.0;
    for (size_t begin = 0; begin < dim; begin += RATIO_RUN) {
        size_t end = PNB_MIN(begin + RATIO_RUN, dim);
        double product = 1.0;
#pragma omp simd reduction(+ : distance) reduction(* : product)
        for (size_t d = begin; d < end; d++) {
            double x = v1[d], y = v2[d], delta = m1[d] - m2[d];
            double a = x + 2.0 * y, b = y + 2.0 * x;
            double inverse = 1.0 / (a * b);
            product *= b * b * inverse;
            distance += delta * delta * (y - x) * inverse;
        }
        log_ratio += log(product);
    }
    return log_weight * (p->log_sum2 - p->log_sum1) + 0.5 * log_ratio + gain * distance;
}

static double distance2(const double *x, const double *y, size_t dim)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t d = 0; d < dim; d++)
        sum += (x[d] - y[d]) * (x[d] - y[d]);
    return sum;
}

/* All J x J pairs of the two rows' samples, not J matched ones: less variance for the same draws.
 */
static double pair_sampled(pnb_measure measure, const double *z1, const double *z2, size_t dim,
                           const pnb_measure_opts *opts)
{
    size_t n = opts->n_samples;
    double sum = 0.0;
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++)
            sum += pnb__sample_term(measure, distance2(z1 + j * dim, z2 + k * dim, dim), opts);
    return sum / ((double)n * (double)n);
}

/* As sphere.c, on unit vectors. */
static double sphere_value(pnb_measure measure, const pnb__tile *a, size_t i, const pnb__tile *b,
                           size_t j, double cosine)
{
    size_t dim = a->dim;
    const double *u = a->mean + i * dim, *v = b->mean + j * dim;
    double weight = a->has_kappa && b->has_kappa ? 0.5 : 1.0, sum = 0.0;
    if (measure == PNB_MEASURE_POWER_SPHERICAL && cosine < PNB__SPHERE_OPPOSITE) {
#pragma omp simd reduction(+ : sum)
        for (size_t d = 0; d < dim; d++)
            sum += (u[d] + v[d]) * (u[d] + v[d]);
        cosine = 0.5 * sum;
    } else if (measure == PNB_MEASURE_POWER_SPHERICAL) {
        cosine += 1.0;
    }
    return pnb__sphere_value(measure, weight * (a->kappa[i] + b->kappa[j]),
                             weight * (a->log_sum[i] + b->log_sum[j]), cosine);
}

/* ---- measures made of one sum over d: all sums of a tile first ---- */

static bool is_of_sums(pnb_measure measure)
{
    return measure == PNB_MEASURE_MEAN || measure == PNB_MEASURE_CSD ||
           pnb__measure_is_spherical(measure);
}

static double value_of_sum(pnb_measure measure, const pnb__tile *a, size_t i, const pnb__tile *b,
                           size_t j, double sum)
{
    double norms = a->log_sum[i] * b->log_sum[j];
    if (measure == PNB_MEASURE_CSD)
        return sum + (a->log_sum[i] + b->log_sum[j]);
    if (measure == PNB_MEASURE_MEAN)
        return norms == 0.0 ? 0.0 : sum / norms;
    return sphere_value(measure, a, i, b, j, sum);
}

static void measure_by_sums(pnb_measure measure, const pnb__tile *a, const pnb__tile *b,
                            double *out, const size_t stride[2])
{
    const pnb__sums sums = {.a = a->mean,
                            .b = b->mean,
                            .n_a = a->n,
                            .n_b = b->n,
                            .dim = a->dim,
                            .out = out,
                            .stride = {stride[0], stride[1]}};
    if (measure == PNB_MEASURE_CSD)
        pnb__sum_distances2(&sums);
    else
        pnb__sum_products(&sums);
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) {
            double *value = &out[i * stride[0] + j * stride[1]];
            *value = value_of_sum(measure, a, i, b, j, *value);
        }
}

/* ---- blocks ---- */

static double pair_value(pnb_measure measure, const pair *p, double gain)
{
    switch (measure) {
    case PNB_MEASURE_W2:
        return pair_w2(p);
    case PNB_MEASURE_KL:
        return pair_kl(p);
    case PNB_MEASURE_JEFFREYS:
        return pair_jeffreys(p);
    case PNB_MEASURE_ELK:
        return pair_elk(p);
    case PNB_MEASURE_JS:
    case PNB_MEASURE_BHATTACHARYYA:
        return pair_bhattacharyya(p);
    case PNB_MEASURE_INCLUSION:
        return pair_inclusion(p, PNB__H_EXACT_LOG_WEIGHT, 1.0);
    case PNB_MEASURE_INCLUSION_PUBLISHED:
        return pair_inclusion(p, PNB__H_PUBLISHED_LOG_WEIGHT, gain);
    default:
        return (double)NAN;
    }
}

void pnb__tile_measure(pnb_measure measure, const pnb__tile *a, const pnb__tile *b,
                       const pnb_measure_opts *opts, double *out, const size_t stride[2])
{
    size_t dim = a->dim, step = dim * opts->n_samples;
    double gain = exp(opts->inclusion_eps);
    bool sampled = pnb__measure_is_sampled(measure);
    if (is_of_sums(measure)) {
        measure_by_sums(measure, a, b, out, stride);
        return;
    }
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) {
            if (sampled) {
                out[i * stride[0] + j * stride[1]] =
                    pair_sampled(measure, a->aux + i * step, b->aux + j * step, dim, opts);
                continue;
            }
            size_t oi = i * dim, oj = j * dim;
            pair p = {a->mean + oi, a->var + oi,   a->aux + oi,   b->mean + oj, b->var + oj,
                      b->aux + oj,  a->log_sum[i], b->log_sum[j], dim};
            out[i * stride[0] + j * stride[1]] = pair_value(measure, &p, gain);
        }
}

static pnb_status check_finite(pnb_measure measure, const double *out, size_t n_a, size_t n_b,
                               pnb_error *err)
{
    for (size_t i = 0; i < n_a * n_b; i++)
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "rows %zu and %zu: measure %s is %g; the embeddings hold values that "
                             "are not finite, a kappa below 0 or log-variances beyond +-30",
                             i / n_b, i % n_b, pnb_measure_name(measure), out[i]);
    return PNB_OK;
}

pnb_status pnb_measure_block(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                             const pnb_measure_opts *opts, double *out, pnb_error *err)
{
    pnb_measure_opts o = pnb__measure_opts_or_default(opts);
    pnb__tile ta = {0}, tb = {0};
    pnb_status status = pnb__measure_check(measure, a, b, &o, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(pnb__tile_alloc(&ta, measure, PNB_MAX(a->n, 1), a->dim, &o, err));
    PNB_TRY(pnb__tile_alloc(&tb, measure, TILE_ROWS, b->dim, &o, err));
    pnb__tile_fill(&ta, measure, a, 0, a->n, 0, &o);
    for (size_t begin = 0; begin < b->n; begin += TILE_ROWS) {
        pnb__tile_fill(&tb, measure, b, begin, PNB_MIN(TILE_ROWS, b->n - begin), 1, &o);
        pnb__tile_measure(measure, &ta, &tb, &o, out + begin, (const size_t[2]){b->n, 1});
    }
    status = check_finite(measure, out, a->n, b->n, err);
done:
    pnb__tile_free(&ta);
    pnb__tile_free(&tb);
    return status;
}
