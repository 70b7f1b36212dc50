/* Products of many triangular factors with one B (svgp.c has the formulas).
 *
 *   T_j = B[j:]^T C_j,   added = sum_j |T_j|^2
 *   backwards with g the slope of added, T'_j = 2 g T_j:   C_j' = B[j:] T'_j,   B[j:]' += C_j
 * T'_j^T where [j:] is the rows from block j on, and a product serves all factors. What lies
 * between the products runs over threads; a sum over factors is taken in one order whatever their
 * number. */
#include "adapt/gp/factors/factors.h"

#include <math.h>
#include <string.h>

#include "base/wide.h"

#define WIDTH ((size_t)PNB__FACTOR_WIDTH)
enum { LOG_OF = 4 }; /* diagonals that share a logarithm: floats to the fourth are doubles */

/* A range of points or rows that one thread goes through. */
typedef struct span {
    size_t begin, end, n, n_factors;
} span;

#define REAL float
#define NAMED(x) x##_f32
#include "adapt/gp/factors/factors_real.inc"
#undef REAL
#undef NAMED
#define REAL double
#define NAMED(x) x##_f64
#include "adapt/gp/factors/factors_real.inc"
#undef REAL
#undef NAMED

/* ---- places ---- */

typedef struct block {
    size_t first, rows, width; /* first row and column, M - first, columns */
    size_t at;                 /* of its numbers among all */
} block;

static size_t n_blocks(size_t m)
{
    return (m + WIDTH - 1) / WIDTH;
}

static block block_of(size_t m, size_t n_factors, size_t width, size_t j)
{
    block b = {.first = j * width, .rows = m - j * width};
    b.width = PNB_MIN(width, b.rows);
    for (size_t i = 0; i < j; i++)
        b.at += (m - i * width) * n_factors * width;
    return b;
}

static block block_at(size_t m, size_t n_factors, size_t j)
{
    return block_of(m, n_factors, WIDTH, j);
}

static size_t size_of(size_t m, size_t n_factors, size_t width)
{
    block last = block_of(m, n_factors, width, (m + width - 1) / width - 1);
    return last.at + last.rows * n_factors * last.width;
}

static size_t place_of(size_t m, size_t n_factors, size_t width, const size_t at[3])
{
    block b = block_of(m, n_factors, width, at[2] / width);
    return b.at + ((at[1] - b.first) * n_factors + at[0]) * b.width + at[2] - b.first;
}

size_t pnb__factors_size(size_t m, size_t n_factors)
{
    return size_of(m, n_factors, WIDTH);
}

size_t pnb__factors_at(size_t m, size_t n_factors, size_t factor, size_t row, size_t column)
{
    return place_of(m, n_factors, WIDTH, (size_t[]){factor, row, column});
}

size_t pnb__factors_size_before(size_t m, size_t n_factors)
{
    return size_of(m, n_factors, PNB__FACTOR_WIDTH_BEFORE);
}

void pnb__factors_from_before(size_t m, size_t n_factors, size_t size, const void *from, void *to)
{
    memset(to, 0, pnb__factors_size(m, n_factors) * size);
    for (size_t r = 0; r < m; r++)
        for (size_t f = 0; f < n_factors; f++)
            for (size_t c = 0; c <= r; c++) {
                const size_t at[3] = {f, r, c};
                memcpy((char *)to + place_of(m, n_factors, WIDTH, at) * size,
                       (const char *)from +
                           place_of(m, n_factors, PNB__FACTOR_WIDTH_BEFORE, at) * size,
                       size);
            }
}

static size_t real_bytes(const pnb__factors *f)
{
    return f->real == PNB__F32 ? sizeof(float) : sizeof(double);
}

/* Number `i` of an array in `real`. */
static void *number(const pnb__factors *f, const void *data, size_t i)
{
    return (char *)(uintptr_t)data + i * real_bytes(f);
}

pnb_status pnb__factors_init(pnb__factors *f, const pnb_ctx *ctx, pnb__real real, size_t m,
                             size_t n_factors, size_t n_max, pnb_error *err)
{
    *f = (pnb__factors){.ctx = ctx, .real = real, .m = m, .n_factors = n_factors, .n_max = n_max};
    size_t rows = 0, bytes = real_bytes(f);
    pnb__kernels_fill_host(&f->kernels, ctx, real);
    if (pnb__mul_overflows(m * bytes, n_max, &rows))
        return pnb__fail_nomem(err, SIZE_MAX);
    f->b = pnb__alloc_array(rows, 1);
    f->db = pnb__alloc_array(rows, 1);
    f->t = pnb__alloc_array(rows, n_factors);
    return f->b != NULL && f->db != NULL && f->t != NULL ? PNB_OK
                                                         : pnb__fail_nomem(err, rows * n_factors);
}

void pnb__factors_reset(pnb__factors *f)
{
    pnb__free(f->b);
    pnb__free(f->db);
    pnb__free(f->t);
    *f = (pnb__factors){0};
}

static double get(const pnb__factors *f, const void *data, size_t i)
{
    return f->real == PNB__F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void set(const pnb__factors *f, void *data, size_t i, double value)
{
    if (f->real == PNB__F32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

void pnb__factors_fill(const pnb__factors *f, const double *c, void *data)
{
    for (size_t j = 0; j < n_blocks(f->m); j++) {
        block b = block_at(f->m, f->n_factors, j);
        for (size_t r = 0; r < b.rows; r++)
            for (size_t i = 0; i < f->n_factors * b.width; i++) {
                size_t column = i % b.width;
                const double *row = c + (b.first + r) * f->m + b.first;
                set(f, data, b.at + r * f->n_factors * b.width + i, column <= r ? row[column] : 0);
            }
    }
}

void pnb__factors_read(const pnb__factors *f, const void *data, size_t factor, double *c)
{
    memset(c, 0, f->m * f->m * sizeof *c);
    for (size_t r = 0; r < f->m; r++)
        for (size_t i = 0; i <= r; i++)
            c[r * f->m + i] = get(f, data, pnb__factors_at(f->m, f->n_factors, factor, r, i));
}

/* ---- products ---- */

/* The whole (m,n) = op(a) op(b) with contiguous c. */
static void multiply(const pnb__factors *f, pnb__gemm_args g)
{
    g.n_batch = 1;
    g.alpha = 1;
    g.act = PNB__IDENTITY;
    f->kernels.gemm(f->ctx, &g);
}

typedef enum work { SQUARES, SCALES, PRIOR, DIVERGENCE } work;
enum { N_PARTS = 64 };

/* One pass between products; all loops of a block go through here. */
typedef struct pass {
    const pnb__factors *f;
    work work;
    block block;
    size_t n;
    const void *data; /* of the block */
    void *out;        /* T or slopes, of the block */
    const double *slope;
    double *added, weight, part[N_PARTS];
} pass;

/* Slopes and divergence of a row while it is there. */
static void run_prior(const pass *p, const span *s, double *divergence)
{
    size_t width = p->block.width;
    for (size_t r = s->begin; r < s->end; r++) {
        span row = *s;
        row.begin = r;
        row.end = r + 1;
        if (p->f->real == PNB__F32) {
            add_prior_f32(p->data, width, &row, p->weight, p->out);
            divergence_f32(p->data, width, &row, divergence);
        } else {
            add_prior_f64(p->data, width, &row, p->weight, p->out);
            divergence_f64(p->data, width, &row, divergence);
        }
    }
}

PNB__WIDE static void run_part(pass *p, const span *s, size_t part)
{
    bool is_f32 = p->f->real == PNB__F32;
    size_t width = p->block.width;
    switch (p->work) {
    case SQUARES:
        is_f32 ? square_sums_f32(p->out, width, s, p->added)
               : square_sums_f64(p->out, width, s, p->added);
        break;
    case SCALES:
        is_f32 ? scale_rows_f32(p->out, width, s, p->slope)
               : scale_rows_f64(p->out, width, s, p->slope);
        break;
    case PRIOR:
        run_prior(p, s, &p->part[part]);
        break;
    case DIVERGENCE:
        is_f32 ? divergence_f32(p->data, width, s, &p->part[part])
               : divergence_f64(p->data, width, s, &p->part[part]);
        break;
    }
}

/* Always the same N_PARTS parts, so that a sum of them does not depend on the threads. */
static void run_parts(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    pass *p = user;
    size_t all = p->work == SQUARES || p->work == SCALES ? p->n : p->block.rows;
    for (size_t i = begin; i < end; i++) {
        span s = {i * all / N_PARTS, (i + 1) * all / N_PARTS, p->n, p->f->n_factors};
        run_part(p, &s, i);
    }
}

/* Sum of what the parts leave. */
static double run_pass(pass *p)
{
    double total = 0;
    pnb__parallel_for(p->f->ctx, N_PARTS, 1, run_parts, p);
    for (size_t i = 0; i < N_PARTS; i++)
        total += p->part[i];
    return total;
}

void pnb__factors_forward(pnb__factors *f, const void *data, const double *b, size_t n,
                          double *added)
{
    memset(added, 0, f->n_factors * n * sizeof *added);
    f->real == PNB__F32 ? narrow_f32(b, f->m * n, f->b) : narrow_f64(b, f->m * n, f->b);
    for (size_t j = 0; j < n_blocks(f->m); j++) {
        block c = block_at(f->m, f->n_factors, j);
        void *t = number(f, f->t, n * f->n_factors * c.first);
        size_t wide = f->n_factors * c.width;
        multiply(f, (pnb__gemm_args){.trans_a = true,
                                     .m = n,
                                     .n = wide,
                                     .k = c.rows,
                                     .lda = n,
                                     .ldb = wide,
                                     .ldc = wide,
                                     .a = number(f, f->b, c.first * n),
                                     .b = number(f, data, c.at),
                                     .c = t});
        run_pass(&(pass){.f = f, .work = SQUARES, .block = c, .n = n, .out = t, .added = added});
    }
}

static double divergence_of_identity(const pnb__factors *f)
{
    return -0.5 * (double)f->m * (double)f->n_factors;
}

double pnb__factors_divergence(const pnb__factors *f, const void *data)
{
    double total = divergence_of_identity(f);
    for (size_t j = 0; j < n_blocks(f->m); j++) {
        block c = block_at(f->m, f->n_factors, j);
        pass p = {.f = f, .work = DIVERGENCE, .block = c, .data = number(f, data, c.at)};
        total += run_pass(&p);
    }
    return total;
}

/* out = B[j:] T' + weight (C - 1/C on the diagonal); the block's share of the divergence */
static double factor_slopes(pnb__factors *f, const block *c, const void *data, const void *t,
                            double weight, size_t n, void *out)
{
    size_t wide = f->n_factors * c->width;
    multiply(f, (pnb__gemm_args){.m = c->rows,
                                 .n = wide,
                                 .k = n,
                                 .lda = n,
                                 .ldb = wide,
                                 .ldc = wide,
                                 .a = number(f, f->b, c->first * n),
                                 .b = t,
                                 .c = out});
    return run_pass(
        &(pass){.f = f, .work = PRIOR, .block = *c, .data = data, .out = out, .weight = weight});
}

void pnb__factors_backward(pnb__factors *f, const void *data, const double *slope, double weight,
                           size_t n, const pnb__factors_grad *to)
{
    double divergence = divergence_of_identity(f);
    memset(f->db, 0, f->m * n * real_bytes(f));
    for (size_t j = 0; j < n_blocks(f->m); j++) {
        block c = block_at(f->m, f->n_factors, j);
        void *t = number(f, f->t, n * f->n_factors * c.first);
        const void *in = number(f, data, c.at);
        size_t wide = f->n_factors * c.width;
        run_pass(&(pass){.f = f, .work = SCALES, .block = c, .n = n, .out = t, .slope = slope});
        multiply(f, (pnb__gemm_args){.trans_b = true,
                                     .m = c.rows,
                                     .n = n,
                                     .k = wide,
                                     .lda = wide,
                                     .ldb = wide,
                                     .ldc = n,
                                     .beta = 1,
                                     .a = in,
                                     .b = t,
                                     .c = number(f, f->db, c.first * n)});
        if (to->grad != NULL)
            divergence += factor_slopes(f, &c, in, t, weight, n, number(f, to->grad, c.at));
    }
    if (to->divergence != NULL)
        *to->divergence = divergence;
    f->real == PNB__F32 ? widen_f32(f->db, f->m * n, to->db) : widen_f64(f->db, f->m * n, to->db);
}

pnb_status pnb__factors_gram(const pnb__factors *f, const void *data, double *out, pnb_error *err)
{
    size_t m = f->m;
    void *sum = pnb__alloc_zero(m * m, real_bytes(f));
    if (sum == NULL)
        return pnb__fail_nomem(err, m * m * real_bytes(f));
    for (size_t j = 0; j < n_blocks(m); j++) {
        block c = block_at(m, f->n_factors, j);
        const void *in = number(f, data, c.at);
        size_t wide = f->n_factors * c.width;
        multiply(f, (pnb__gemm_args){.trans_b = true,
                                     .m = c.rows,
                                     .n = c.rows,
                                     .k = wide,
                                     .lda = wide,
                                     .ldb = wide,
                                     .ldc = m,
                                     .beta = 1,
                                     .a = in,
                                     .b = in,
                                     .c = number(f, sum, c.first * m + c.first)});
    }
    for (size_t i = 0; i < m * m; i++)
        out[i] = get(f, sum, i);
    pnb__free(sum);
    return PNB_OK;
}
