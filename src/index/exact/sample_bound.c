/* Bounds for measures over pairs of samples: squared distances by a matrix product.
 *
 * Samples less a common centre are rounded to floats, or to bfloat16 where the machine multiplies
 * these twice as fast. What rounding took from a row, off, is measured: by the triangle inequality
 * a distance of the samples is that of the rows to off_x + off_y. Of K products and sums of floats
 * in any order |fl(x.y) - x.y| <= K u |x| |y|, u = 2^-24 (bound.c), of bfloat16 2 K u (kernels.h),
 * and |x| |y| is at most half of S = |x|^2 + |y|^2; the squares are summed in doubles and rounded
 * once, S and S - 2 x.y once more each: `relative` S with relative = (1.01 K + 8) u or (2.02 K + 8)
 * u. The kernel turns both into a bound on the score (kernels/ref/samples.inc). The centre, the
 * mean of the queries' means, takes away what all rows share and S would count.
 *
 * Columns of the product are the strip's queries once for each sample, so that the kernel has a
 * vector of queries; a block's items are drawn once for all strips of a pass. */
#include "index/exact/sample_bound.h"

#include <math.h>
#include <string.h>

#include "kernels/bf16.h"

#define UNIT 5.9604644775390625e-08 /* 2^-24 */
#define COLUMNS 384                 /* of a product, and rows: what it keeps in the second cache */
#define ROWS 224
#define PASS_BYTES ((size_t)64 << 20)

static size_t n_samples(const pnb__exact_run *run)
{
    return run->scan->opts.n_samples;
}

/* Numbers of a row in bfloat16: pairs. */
static size_t width_of(const pnb__exact_run *run)
{
    return (run->queries.rows.dim + 1) / 2 * 2;
}

static bool takes_halves(const pnb__exact_run *run)
{
    return run->kernels.products_bf16 != NULL;
}

/* Whole groups of packed columns. */
size_t pnb__sample_strip(const pnb__exact_run *run)
{
    size_t group = PNB_MAX(run->kernels.gemm_group, (size_t)1);
    if (takes_halves(run))
        group = PNB__BF16_PANEL;
    size_t wanted = COLUMNS / n_samples(run);
    size_t most = (run->queries.rows.n + group - 1) / group * group;
    return PNB_MIN((wanted + group - 1) / group * group, most);
}

size_t pnb__sample_items(const pnb__exact_run *run)
{
    return PNB_MAX(ROWS / n_samples(run), (size_t)1);
}

size_t pnb__sample_most_queries(const pnb__exact_run *run)
{
    size_t strip = pnb__sample_strip(run);
    size_t bytes = strip * n_samples(run) * run->queries.rows.dim * sizeof(float);
    return PNB_MAX(PASS_BYTES / bytes, (size_t)1) * strip;
}

/* ---- queries ---- */

static void fill_centre(pnb__sample_queries *q)
{
    const pnb_rows *rows = &q->run->queries.rows;
    for (size_t d = 0; d < rows->dim; d++) {
        double sum = 0.0;
        for (size_t i = 0; i < q->n; i++)
            sum += rows->mean[(q->first + i) * rows->dim + d];
        q->centre[d] = sum / (double)q->n;
    }
}

/* What becomes of a sample: the row as it enters the product, its squared length, and the length of
 * what rounding took; *square of a sample that is not finite is not either. */
typedef struct written {
    double square, off;
} written;

static written write_floats(const double *sample, const double *centre, size_t dim, float *out)
{
    double square = 0.0, off = 0.0;
#pragma omp simd reduction(+ : square, off)
    for (size_t d = 0; d < dim; d++) {
        double whole = sample[d] - centre[d], x = (double)(float)whole;
        out[d] = (float)whole;
        square += x * x;
        off += (whole - x) * (whole - x);
    }
    return (written){square, sqrt(off)};
}

/* Pairs of numbers `step` apart: a row of a panel, or one by itself. */
static written write_halves(const double *sample, const double *centre, size_t dim, size_t step,
                            uint16_t *out)
{
    written w = {0.0, 0.0};
    for (size_t d = 0; d < dim; d++) {
        double whole = sample[d] - centre[d];
        uint16_t half = pnb__bf16_of((float)whole);
        double x = (double)pnb__bf16_widen(half);
        out[d / 2 * step + d % 2] = half;
        w.square += isfinite(whole) ? x * x : whole - whole;
        w.off += (whole - x) * (whole - x);
    }
    w.off = sqrt(w.off);
    return w;
}

/* The next float: a bound stays one. */
static float up(double x)
{
    return nextafterf((float)x, INFINITY);
}

typedef struct draw_job {
    pnb__sample_queries *q;
    double *room; /* [thread][D] */
    size_t *bad;  /* [thread] a query whose samples are not finite */
} draw_job;

static written write_query(const pnb__sample_queries *q, const double *sample, size_t row)
{
    size_t dim = q->run->queries.rows.dim, in_panel = row % PNB__BF16_PANEL;
    if (q->halves == NULL)
        return write_floats(sample, q->centre, dim, q->rows + row * dim);
    return write_halves(sample, q->centre, dim, (size_t)2 * PNB__BF16_PANEL,
                        q->halves + (row - in_panel) * q->width + 2 * in_panel);
}

static void draw_queries(void *user, size_t begin, size_t end, int thread)
{
    const draw_job *job = user;
    pnb__sample_queries *q = job->q;
    const pnb_rows *rows = &q->run->queries.rows;
    size_t dim = rows->dim, j = n_samples(q->run), strip = q->strip;
    const double *kept = q->run->queries.samples;
    double *drawn = job->room + (size_t)thread * dim;
    for (size_t i = begin; i < end; i++)
        for (size_t k = 0; k < j; k++) {
            size_t row = i / strip * strip * j + k * strip + i % strip;
            const double *sample = drawn;
            if (kept != NULL)
                sample = kept + ((q->first + i) * j + k) * dim;
            else
                pnb__draw_fill(rows, q->first + i, k, 0, q->run->scan->opts.seed, drawn);
            written w = write_query(q, sample, row);
            q->square[row] = (float)w.square;
            q->off[row] = up(w.off);
            if (!isfinite(w.square))
                job->bad[thread] = PNB_MIN(job->bad[thread], q->first + i);
        }
}

static pnb_status fail_sample(const pnb__exact_run *run, size_t query, size_t item, pnb_error *err)
{
    return pnb__fail(err, PNB_NUMERIC,
                     "query %zu and item %zu: the score of measure %s is not a finite number; one "
                     "of the two embeddings holds values that are not finite, a kappa below 0 or "
                     "log-variances beyond +-30",
                     query, item, pnb_measure_name(run->scan->measure));
}

static pnb_status draw_all(pnb__sample_queries *q, const pnb_ctx *ctx, pnb_error *err)
{
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    size_t dim = q->run->queries.rows.dim, bad = SIZE_MAX;
    draw_job job = {.q = q};
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(job.room, n_threads, dim, err));
    PNB_TRY(PNB_ALLOC(job.bad, n_threads, err));
    for (size_t t = 0; t < n_threads; t++)
        job.bad[t] = SIZE_MAX;
    pnb__parallel_for(ctx, q->n, 1, draw_queries, &job);
    for (size_t t = 0; t < n_threads; t++)
        bad = PNB_MIN(bad, job.bad[t]);
    if (bad != SIZE_MAX)
        status = fail_sample(q->run, bad, 0, err);
done:
    pnb__free(job.room);
    pnb__free(job.bad);
    return status;
}

/* Packed rows are read in place of the rows, which go. */
static pnb_status pack(pnb__sample_queries *q, size_t n_rows, const pnb_ctx *ctx, pnb_error *err)
{
    const pnb__kernels *k = &q->run->kernels;
    size_t dim = q->run->queries.rows.dim;
    const pnb__gemm_args args = {.trans_b = true, .n = n_rows, .k = dim, .ldb = dim, .b = q->rows};
    if (q->halves != NULL || k->gemm_pack == NULL)
        return PNB_OK;
    pnb__packed *to = &q->packed;
    *to = (pnb__packed){.k = dim, .n = n_rows, .store = PNB__STORE_REAL};
    to->bytes = k->gemm_pack_bytes(to->k, to->n, to->store);
    to->data = pnb__alloc_aligned(to->bytes);
    if (to->data == NULL)
        return pnb__fail_nomem(err, to->bytes);
    k->gemm_pack(ctx != NULL ? ctx : &q->run->inner, &args, to);
    pnb__free_aligned(q->rows);
    q->rows = NULL;
    return PNB_OK;
}

/* Queries that fill the last strip are zeros. */
static pnb_status alloc_rows(pnb__sample_queries *q, size_t n_rows, pnb_error *err)
{
    bool halves = takes_halves(q->run);
    size_t dim = q->run->queries.rows.dim;
    size_t bytes = n_rows * (halves ? q->width * sizeof(uint16_t) : dim * sizeof(float));
    void *rows = pnb__alloc_aligned(bytes);
    if (rows == NULL)
        return pnb__fail_nomem(err, bytes);
    memset(rows, 0, bytes);
    if (halves)
        q->halves = rows;
    else
        q->rows = rows;
    return PNB_OK;
}

pnb_status pnb__sample_queries_init(pnb__sample_queries *q, const pnb__exact_run *run,
                                    const pnb_ctx *ctx, const size_t range[2], pnb_error *err)
{
    *q = (pnb__sample_queries){.run = run,
                               .first = range[0],
                               .n = range[1],
                               .strip = pnb__sample_strip(run),
                               .width = width_of(run)};
    size_t n_strips = (q->n + q->strip - 1) / q->strip;
    size_t n_rows = n_strips * q->strip * n_samples(run);
    pnb_status status;
    PNB_TRY(alloc_rows(q, n_rows, err));
    PNB_TRY(PNB_ALLOC_ZERO(q->square, n_rows, err));
    PNB_TRY(PNB_ALLOC_ZERO(q->off, n_rows, err));
    PNB_TRY(PNB_ALLOC(q->centre, run->queries.rows.dim, err));
    fill_centre(q);
    PNB_TRY(draw_all(q, ctx, err));
    status = pack(q, n_rows, ctx, err);
done:
    return status;
}

void pnb__sample_queries_reset(pnb__sample_queries *q)
{
    pnb__free_aligned(q->rows);
    pnb__free_aligned(q->halves);
    pnb__free_aligned(q->packed.data);
    pnb__free(q->square);
    pnb__free(q->off);
    pnb__free(q->centre);
    *q = (pnb__sample_queries){0};
}

/* ---- blocks ---- */

void pnb__sample_work_sizes(const pnb__exact_run *run, size_t *n_doubles, size_t *n_floats)
{
    size_t dim = run->queries.rows.dim, items = pnb__sample_items(run);
    size_t rows = items * n_samples(run), strip = pnb__sample_strip(run);
    *n_doubles = dim;
    /* halves of a row take no more room than its floats and one */
    *n_floats = rows * (dim + 1) + 2 * rows + rows * strip * n_samples(run) + 2 * items * strip;
}

void pnb__sample_work_place(pnb__sample_work *work, const pnb__exact_run *run, double *doubles,
                            float *floats)
{
    size_t dim = run->queries.rows.dim, items = pnb__sample_items(run);
    size_t rows = items * n_samples(run), strip = pnb__sample_strip(run);
    work->sample = doubles;
    work->rows = floats;
    work->halves = (uint16_t *)(void *)floats;
    work->products = work->rows + rows * (dim + 1);
    work->value = work->products + rows * strip * n_samples(run);
    work->spread = work->value + items * strip;
    work->square = work->spread + items * strip;
    work->off = work->square + rows;
    work->at_item = work->at_first = SIZE_MAX;
}

/* The block's samples, once for all strips of the pass. */
static pnb_status draw_items(const pnb__sample_queries *q, pnb__sample_work *work,
                             const size_t items[2], size_t query, pnb_error *err)
{
    const pnb__exact *scan = q->run->scan;
    const pnb_rows *x = &scan->gallery.rows;
    size_t j = scan->opts.n_samples, dim = x->dim;
    if (work->at_item == items[0] && work->at_first == q->first)
        return PNB_OK;
    work->at_item = SIZE_MAX;
    if (q->halves != NULL) /* the last number of a row of odd width */
        memset(work->halves, 0, (items[1] - items[0]) * j * q->width * sizeof *work->halves);
    for (size_t i = 0; i < (items[1] - items[0]) * j; i++) {
        size_t item = items[0] + i / j;
        const double *sample = work->sample;
        if (scan->gallery.samples != NULL)
            sample = scan->gallery.samples + (item * j + i % j) * dim;
        else
            pnb__draw_fill(x, item, i % j, 1, scan->opts.seed, work->sample);
        written w = q->halves == NULL
                        ? write_floats(sample, q->centre, dim, work->rows + i * dim)
                        : write_halves(sample, q->centre, dim, 2, work->halves + i * q->width);
        if (!isfinite(w.square))
            return fail_sample(q->run, query, item, err);
        work->square[i] = (float)w.square;
        work->off[i] = up(w.off);
    }
    work->at_item = items[0];
    work->at_first = q->first;
    return PNB_OK;
}

static void multiply(const pnb__sample_queries *q, const pnb__sample_work *work, size_t n_items,
                     size_t first)
{
    const pnb__kernels *k = &q->run->kernels;
    size_t j = n_samples(q->run), n = q->strip * j, dim = q->run->queries.rows.dim;
    if (q->halves != NULL) {
        const pnb__bf16_args halves = {.m = n_items * j,
                                       .n_panels = n / PNB__BF16_PANEL,
                                       .k = q->width,
                                       .lda = q->width,
                                       .ldc = n,
                                       .a = work->halves,
                                       .b = q->halves + first * q->width,
                                       .c = work->products};
        k->products_bf16(&halves);
        return;
    }
    const pnb__gemm_args args = {.trans_b = true,
                                 .m = n_items * j,
                                 .n = n,
                                 .k = dim,
                                 .lda = dim,
                                 .ldb = dim,
                                 .ldc = n,
                                 .n_batch = 1,
                                 .alpha = 1.0,
                                 .a = work->rows,
                                 .b = q->rows != NULL ? q->rows + first * dim : NULL,
                                 .c = work->products,
                                 .act = PNB__IDENTITY,
                                 .packed = q->packed.data != NULL ? &q->packed : NULL,
                                 .packed_first = first};
    k->gemm(&q->run->inner, &args);
}

pnb_status pnb__sample_score(const pnb__sample_queries *q, pnb__sample_work *work,
                             const size_t queries[2], const size_t items[2], pnb_error *err)
{
    const pnb__exact_run *run = q->run;
    const pnb_measure_opts *o = &run->scan->opts;
    size_t j = o->n_samples, first = (queries[0] - q->first) * j;
    pnb_status status = draw_items(q, work, items, queries[0], err);
    if (status != PNB_OK)
        return status;
    multiply(q, work, items[1] - items[0], first);
    const pnb__sample_pairs_args args = {
        .n1 = items[1] - items[0],
        .n2 = queries[1] - queries[0],
        .n_samples = j,
        .ld_product = q->strip * j,
        .ld_sample = q->strip,
        .ld = q->strip,
        .is_match = pnb__measure_traits_of(run->scan->measure)->reads == PNB__READS_MATCH,
        .a = o->match_factor * o->match_a,
        .b = o->match_factor * o->match_b,
        .relative = ((q->halves != NULL ? 2.02 : 1.01) * (double)q->width + 8.0) * UNIT,
        .products = work->products,
        .square1 = work->square,
        .square2 = q->square + first,
        .off1 = work->off,
        .off2 = q->off + first,
        .value = work->value,
        .spread = work->spread};
    run->kernels.host.sample_pairs(&run->inner, &args);
    return PNB_OK;
}
