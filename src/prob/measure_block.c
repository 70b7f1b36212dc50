/* Measures of every row of one set against every row of another, fused: for each pair one pass over
 * d on unpacked f64 rows, nothing of size A*B*D. Measures that need one sum of products or squares
 * take it from sums.c for a tile of pairs at once.
 *
 * exp and log are kept out of the inner loop: variances, 1/var or std are unpacked once per row of
 * a tile, and sums of logs over d become the log of products of LOG_RUN factors (factors in [e^-30,
 * e^31] keep the product far inside f64). Loops may be reassociated by `omp simd`: the order is
 * fixed by the build, not by tiles or threads, so a pair's value never depends on where in a block
 * it lies. The accurate one-pair form is measure_pair.c; the matrix-product forms that search uses
 * for mean, csd and w2 are in src/index. */
#include <math.h>

#include "base/loop.h"
#include "prob/inclusion.h"
#include "prob/measure.h"

#define LOG_2PI 1.8378770664093454836
#define LOG_RUN 16
#define RATIO_RUN 512 /* ratios in [1/2, 2]: the product stays within 2^+-512 */
#define TILE_ROWS 32

/* mean (n,D), var (n,D), aux (n,D) or samples (n,J,D), and two numbers a row, in one piece. */
pnb_status pnb__tile_alloc(pnb__tile *tile, pnb_measure measure, size_t capacity, size_t dim,
                           const pnb_measure_opts *opts, pnb_error *err)
{
    *tile = (pnb__tile){.dim = dim, .capacity = capacity};
    size_t aux_dim = pnb__measure_is_sampled(measure) ? dim * opts->n_samples : dim;
    size_t per_row = 2 * dim + aux_dim + 2;
    if (pnb__alloc_to(&tile->memory, capacity, per_row * sizeof(double), err) != PNB_OK)
        return PNB_NOMEM;
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

/* ---- unpacking a row: an exponential costs as much as some pairs, so only what the measure reads
 * is filled ---- */

typedef struct source {
    pnb_measure measure;
    const pnb_rows *rows;
    size_t row;
    unsigned side;
    const pnb_measure_opts *opts;
} source;

/* (D) of the row; NULL for points */
static const float *log_var_of(const source *s)
{
    return s->rows->log_var == NULL ? NULL : s->rows->log_var + s->row * s->rows->dim;
}

/* log v of dimension d; a point has variance 0 */
static double log_var_at(const float *log_var, size_t d)
{
    return log_var == NULL ? -(double)INFINITY : log_var[d];
}

static void copy_mean(pnb__tile *tile, size_t i, const source *s)
{
    size_t dim = tile->dim;
    for (size_t d = 0; d < dim; d++)
        tile->mean[i * dim + d] = s->rows->mean[s->row * dim + d];
}

/* log_sum = |mean| */
static void unpack_norm(pnb__tile *tile, size_t i, const source *s)
{
    double square = 0.0;
    copy_mean(tile, i, s);
    for (size_t d = 0; d < tile->dim; d++)
        square += tile->mean[i * tile->dim + d] * tile->mean[i * tile->dim + d];
    tile->log_sum[i] = sqrt(square);
}

/* Each of a row's K embeddings to length 1; one of length 0 stays, and is at cosine 0 of all. */
static void unpack_parts(pnb__tile *tile, size_t i, const source *s)
{
    size_t k = PNB_MAX(s->rows->n_embeddings, (size_t)1), width = tile->dim / k;
    copy_mean(tile, i, s);
    tile->n_parts = k;
    for (size_t p = 0; p < k; p++) {
        double *x = tile->mean + i * tile->dim + p * width, square = 0.0;
        for (size_t d = 0; d < width; d++)
            square += x[d] * x[d];
        for (size_t d = 0; d < width && square > 0; d++)
            x[d] /= sqrt(square);
    }
}

/* log_sum = sum of the variances: csd needs no more than the trace. */
static void unpack_trace(pnb__tile *tile, size_t i, const source *s)
{
    const float *log_var = log_var_of(s);
    double sum = 0.0;
    copy_mean(tile, i, s);
    for (size_t d = 0; log_var != NULL && d < tile->dim; d++)
        sum += exp((double)log_var[d]);
    tile->log_sum[i] = sum;
}

/* aux = standard deviations (D): (std1 - std2)^2 is what w2 adds to the means */
static void unpack_std(pnb__tile *tile, size_t i, const source *s)
{
    const float *log_var = log_var_of(s);
    copy_mean(tile, i, s);
    for (size_t d = 0; d < tile->dim; d++)
        tile->aux[i * tile->dim + d] = exp(0.5 * log_var_at(log_var, d));
}

/* var (D), and log_sum = sum of the log-variances */
static void unpack_var(pnb__tile *tile, size_t i, const source *s)
{
    const float *log_var = log_var_of(s);
    double sum = 0.0;
    copy_mean(tile, i, s);
    for (size_t d = 0; d < tile->dim; d++) {
        double l = log_var_at(log_var, d);
        tile->var[i * tile->dim + d] = exp(l);
        sum += l;
    }
    tile->log_sum[i] = sum;
}

/* The same and aux = 1/var (D): exp(-l) and not a quotient, so that small variances keep their
 * precision */
static void unpack_var_and_inverse(pnb__tile *tile, size_t i, const source *s)
{
    const float *log_var = log_var_of(s);
    unpack_var(tile, i, s);
    for (size_t d = 0; d < tile->dim; d++)
        tile->aux[i * tile->dim + d] = exp(-1.0 * log_var_at(log_var, d));
}

/* aux = J samples of each row (J,D), made once for all rows of the other side: the draws of a row
 * do not depend on its partner */
static void unpack_samples(pnb__tile *tile, size_t i, const source *s)
{
    size_t n = s->opts->n_samples;
    pnb__draw_fill_all(s->rows, s->row, n, s->side, s->opts->seed, tile->aux + i * n * tile->dim);
}

/* Unit vectors (D), concentrations and log normalisers; the normaliser, a Bessel function, is the
 * dear part and a row's own. */
static void unpack_sphere(pnb__tile *tile, size_t i, const source *s)
{
    size_t dim = tile->dim;
    pnb__sphere_row r = pnb__sphere_row_of(s->measure, s->rows, s->row);
    tile->has_kappa = s->rows->kappa != NULL;
    for (size_t d = 0; d < dim; d++)
        tile->mean[i * dim + d] = s->rows->mean[s->row * dim + d] * r.scale;
    tile->kappa[i] = r.kappa;
    tile->log_sum[i] = r.log_norm;
}

static void (*const UNPACK[])(pnb__tile *, size_t, const source *) = {
#define X(name, text, score, symmetry, takes, variances, reads, scalar, row, ...) row,
    PNB__MEASURES(X)
#undef X
};

void pnb__tile_fill(pnb__tile *tile, pnb_measure measure, const pnb_rows *g, size_t begin, size_t n,
                    unsigned side, const pnb_measure_opts *opts)
{
    tile->n = n;
    for (size_t i = 0; i < n; i++)
        UNPACK[measure](tile, i, &(source){measure, g, begin + i, side, opts});
}

/* ---- one pair: (m, v, w) of both rows ----
 * Pointers are copied to locals: GCC gathers lane by lane through the struct otherwise. */

typedef struct pair {
    const double *m1, *v1, *w1, *m2, *v2, *w2;
    double log_sum1, log_sum2;
    size_t dim;
    double gain; /* e^eps */
} pair;

/* sum (m1-m2)^2 + (std1-std2)^2, w = std */
static double w2(const pair *p)
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

/* ( sum (v1 + delta^2)/v2 - 1 - log v1 + log v2 ) / 2 */
static double kl(const pair *p)
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

/* Both directions: the logs cancel, w = 1/v */
static double jeffreys(const pair *p)
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
static double elk(const pair *p)
{
    double log_sum, quotient = sum_pooled(p, &log_sum);
    return -0.5 * (quotient + log_sum + (double)p->dim * LOG_2PI);
}

/* delta^2 / (4 (v1+v2)) + log((v1+v2) / (2 std1 std2)) / 2; JS is the same function
 * (measure_pair.c) */
static double bhattacharyya(const pair *p)
{
    double log_sum, quotient = sum_pooled(p, &log_sum);
    double log_geometric = 0.5 * (p->log_sum1 + p->log_sum2) + (double)p->dim * 0.69314718055994531;
    return 0.25 * quotient + 0.5 * (log_sum - log_geometric);
}

/* a = v1+2 v2, b = v2+2 v1: b/a lies in [1/2, 2], one division serves both terms of H. */
/* H = c (sum l2 - sum l1) + sum log(b/a)/2 + gain sum delta^2 (v2-v1)/(a b), as inclusion.c has it:
 * c = 1/2 and gain 1 exact, c = 1 and gain e^eps published. */
static double inclusion_h(const pair *p, double log_weight, double gain)
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

/* The two weights apart, exact and published are one function. */
static double inclusion(const pair *p)
{
    return inclusion_h(p, PNB__H_EXACT_LOG_WEIGHT, 1.0);
}

static double inclusion_published(const pair *p)
{
    return inclusion_h(p, PNB__H_PUBLISHED_LOG_WEIGHT, p->gain);
}

/* ---- a tile against a tile ---- */

typedef struct block {
    const pnb__tile *a, *b;
    const pnb_measure_opts *opts;
    double *out; /* of row i of a and row j of b: out[i*stride[0] + j*stride[1]] */
    const size_t *stride;
} block;

/* Measures that read both rows whole. `value` is a constant where this is called: a loop each. */
PNB__INLINE void for_pairs(const block *k, double (*value)(const pair *))
{
    const pnb__tile *a = k->a, *b = k->b;
    double gain = exp(k->opts->inclusion_eps);
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) {
            size_t oi = i * a->dim, oj = j * a->dim;
            pair p = {a->mean + oi, a->var + oi,   a->aux + oi,   b->mean + oj, b->var + oj,
                      b->aux + oj,  a->log_sum[i], b->log_sum[j], a->dim,       gain};
            k->out[i * k->stride[0] + j * k->stride[1]] = value(&p);
        }
}

static void block_w2(const block *k)
{
    for_pairs(k, w2);
}

static void block_kl(const block *k)
{
    for_pairs(k, kl);
}

static void block_jeffreys(const block *k)
{
    for_pairs(k, jeffreys);
}

static void block_elk(const block *k)
{
    for_pairs(k, elk);
}

static void block_bhattacharyya(const block *k)
{
    for_pairs(k, bhattacharyya);
}

static void block_inclusion(const block *k)
{
    for_pairs(k, inclusion);
}

static void block_inclusion_published(const block *k)
{
    for_pairs(k, inclusion_published);
}

/* ---- Monte-Carlo ---- */

#define SAMPLE_TILE 8 /* samples of each side whose distances are held at once */

/* Terms of samples k.. of one row and l.. of the other, at most SAMPLE_TILE of each. */
PNB__INLINE double sum_sample_tile(const block *b, const double *z1, const double *z2,
                                   const size_t n[2],
                                   double (*term)(double, const pnb_measure_opts *))
{
    double square[SAMPLE_TILE * SAMPLE_TILE], sum = 0.0;
    const pnb__sums sums = {.a = z1,
                            .b = z2,
                            .n_a = n[0],
                            .n_b = n[1],
                            .dim = b->a->dim,
                            .out = square,
                            .stride = {n[1], 1}};
    pnb__sum_distances2(&sums);
    for (size_t i = 0; i < n[0] * n[1]; i++)
        sum += term(square[i], b->opts);
    return sum;
}

/* All J x J pairs of the two rows' samples, not J matched ones: less variance for the same draws.
 */
PNB__INLINE void for_samples(const block *b, double (*term)(double, const pnb_measure_opts *))
{
    size_t dim = b->a->dim, n = b->opts->n_samples;
    for (size_t i = 0; i < b->a->n; i++)
        for (size_t j = 0; j < b->b->n; j++) {
            const double *z1 = b->a->aux + i * n * dim, *z2 = b->b->aux + j * n * dim;
            double sum = 0.0;
            for (size_t k = 0; k < n; k += SAMPLE_TILE)
                for (size_t l = 0; l < n; l += SAMPLE_TILE) {
                    const size_t size[2] = {PNB_MIN((size_t)SAMPLE_TILE, n - k),
                                            PNB_MIN((size_t)SAMPLE_TILE, n - l)};
                    sum += sum_sample_tile(b, z1 + k * dim, z2 + l * dim, size, term);
                }
            b->out[i * b->stride[0] + j * b->stride[1]] = sum / ((double)n * (double)n);
        }
}

static void block_avg_l2(const block *b)
{
    for_samples(b, pnb__term_avg_l2);
}

static void block_match_prob(const block *b)
{
    for_samples(b, pnb__term_match_prob);
}

/* ---- measures made of one sum over d: all sums of a tile first ---- */

/* The sums land where the values go: nothing of size A*B is made beside out. */
static pnb__sums sums_of(const block *b)
{
    return (pnb__sums){.a = b->a->mean,
                       .b = b->b->mean,
                       .n_a = b->a->n,
                       .n_b = b->b->n,
                       .dim = b->a->dim,
                       .out = b->out,
                       .stride = {b->stride[0], b->stride[1]}};
}

/* What becomes of the sum of row i and row j. `value` is a constant where this is called. */
PNB__INLINE void for_sums(const block *b, double (*value)(const pnb__tile *, size_t,
                                                          const pnb__tile *, size_t, double))
{
    for (size_t i = 0; i < b->a->n; i++)
        for (size_t j = 0; j < b->b->n; j++) {
            double *sum = &b->out[i * b->stride[0] + j * b->stride[1]];
            *sum = value(b->a, i, b->b, j, *sum);
        }
}

/* |m1-m2|^2 + (tr1 + tr2) */
static double csd_of(const pnb__tile *a, size_t i, const pnb__tile *b, size_t j, double square)
{
    return square + (a->log_sum[i] + b->log_sum[j]);
}

/* Squared distances and not 2 - 2 cos: near-equal means do not cancel. */
static void block_csd(const block *b)
{
    const pnb__sums sums = sums_of(b);
    pnb__sum_distances2(&sums);
    for_sums(b, csd_of);
}

/* m1.m2 / (|m1| |m2|); a zero row has cosine 0 with everything */
static double cosine_of(const pnb__tile *a, size_t i, const pnb__tile *b, size_t j, double product)
{
    double norms = a->log_sum[i] * b->log_sum[j];
    return norms == 0.0 ? 0.0 : product / norms;
}

static void block_mean(const block *b)
{
    const pnb__sums sums = sums_of(b);
    pnb__sum_products(&sums);
    for_sums(b, cosine_of);
}

static double dot_of(const double *x, const double *y, size_t n)
{
    double sum = 0.0;
    for (size_t d = 0; d < n; d++)
        sum += x[d] * y[d];
    return sum;
}

static void block_max_cosine(const block *b)
{
    size_t k = b->a->n_parts, dim = b->a->dim, width = dim / k;
    for (size_t i = 0; i < b->a->n; i++)
        for (size_t j = 0; j < b->b->n; j++) {
            const double *x = b->a->mean + i * dim, *y = b->b->mean + j * dim;
            double best = -1;
            for (size_t p = 0; p < k * k; p++)
                best = fmax(best, dot_of(x + p / k * width, y + p % k * width, width));
            b->out[i * b->stride[0] + j * b->stride[1]] = best;
        }
}

/* (kappa_1 cos + log C_1 + kappa_2 cos + log C_2) / 2, of which a point brings nothing.
 * As sphere.c, on unit vectors: with a concentration on both sides, the mean of two likelihoods. */
static double sphere_value(bool is_power, const pnb__tile *a, size_t i, const pnb__tile *b,
                           size_t j, double cosine)
{
    double weight = a->has_kappa && b->has_kappa ? 0.5 : 1.0;
    return pnb__sphere_value(is_power, weight * (a->kappa[i] + b->kappa[j]),
                             weight * (a->log_sum[i] + b->log_sum[j]), cosine);
}

/* kappa cos + log C */
static double vmf_of(const pnb__tile *a, size_t i, const pnb__tile *b, size_t j, double cosine)
{
    return sphere_value(false, a, i, b, j, cosine);
}

static void block_vmf(const block *b)
{
    const pnb__sums sums = sums_of(b);
    pnb__sum_products(&sums);
    for_sums(b, vmf_of);
}

/* kappa log(1 + cosine) + log C. 1 + cosine is near the antipode |u+v|^2 / 2, which does not
 * cancel; the bound is that of sphere.c, so that both forms go the same way for the same pair. NaN
 * stays NaN: the check after the block names the row. */
static double power_of(const pnb__tile *a, size_t i, const pnb__tile *b, size_t j, double cosine)
{
    const double *u = a->mean + i * a->dim, *v = b->mean + j * a->dim;
    size_t dim = a->dim;
    double sum = 0.0;
    if (!(cosine < PNB__SPHERE_OPPOSITE)) /* NaN too */
        return sphere_value(true, a, i, b, j, cosine + 1.0);
#pragma omp simd reduction(+ : sum)
    for (size_t d = 0; d < dim; d++)
        sum += (u[d] + v[d]) * (u[d] + v[d]);
    return sphere_value(true, a, i, b, j, 0.5 * sum);
}

static void block_power(const block *b)
{
    const pnb__sums sums = sums_of(b);
    pnb__sum_products(&sums);
    for_sums(b, power_of);
}

/* ---- the table ---- */

static void (*const BLOCK[])(const block *) = {
#define X(name, text, score, symmetry, takes, variances, reads, scalar, row, block, ...) block,
    PNB__MEASURES(X)
#undef X
};

void pnb__tile_measure(pnb_measure measure, const pnb__tile *a, const pnb__tile *b,
                       const pnb_measure_opts *opts, double *out, const size_t stride[2])
{
    BLOCK[measure](&(block){a, b, opts, out, stride});
}

/* Once over (A,B): a bad row shows in its first pair. */
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
    /* a whole, b by tiles of TILE_ROWS: each row of both is unpacked once */
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
