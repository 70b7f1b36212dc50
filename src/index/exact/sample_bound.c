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

#include "base/wide.h"
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

PNB__WIDE static written write_floats(const double *sample, const double *centre, size_t dim,
                                      float *out)
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

/* The same in bfloat16, zeros up to `width`, by way of floats. */
static written write_halves(const pnb__exact_run *run, const pnb__float_sample *sample,
                            size_t width, uint16_t *out)
{
    written w = {0.0, 0.0};
    size_t dim = run->queries.rows.dim;
    const pnb__halve_args args = {.rows = 1,
                                  .width = dim,
                                  .ld = dim,
                                  .ld_to = width,
                                  .x = sample->row,
                                  .to = out,
                                  .off = &w.off};
    double square = 0.0;
    run->kernels.host.halve_rows(&run->inner, &args);
#pragma omp simd reduction(+ : square)
    for (size_t d = 0; d < dim; d++) {
        double x = (double)pnb__bf16_widen(out[d]);
        square += x * x;
    }
    w.square = isfinite(sample->square) ? square : sample->square;
    w.off += sample->off;
    return w;
}

/* The next float: a bound stays one. */
static float up(double x)
{
    return nextafterf((float)x, INFINITY);
}

typedef struct draw_job {
    pnb__sample_queries *q;
    unsigned char *room; /* [thread][room_of] */
    size_t *bad;         /* [thread] a query whose samples are not finite */
} draw_job;

/* A thread's sample as it is drawn, in floats, in halves and in bytes: each begins at a line. */
typedef struct draw_room {
    double *drawn;
    float *row;
    uint16_t *halves;
    signed char *bytes;
    pnb__byte_sums sums;
} draw_room;

#define LINE(bytes) (((bytes) + 63) / 64 * 64)

static size_t room_of(const pnb__sample_queries *q)
{
    size_t dim = q->run->queries.rows.dim;
    return LINE(dim * sizeof(double)) + LINE(dim * sizeof(float)) +
           LINE(q->width * sizeof(uint16_t)) + LINE(dim + 4) + 2 * LINE(dim * sizeof(float));
}

static draw_room room_at(const draw_job *job, int thread)
{
    size_t dim = job->q->run->queries.rows.dim;
    unsigned char *at = job->room + (size_t)thread * room_of(job->q);
    draw_room r = {.drawn = (double *)(void *)at};
    r.row = (float *)(void *)(at += LINE(dim * sizeof(double)));
    r.halves = (uint16_t *)(void *)(at += LINE(dim * sizeof(float)));
    r.bytes = (signed char *)(at += LINE(job->q->width * sizeof(uint16_t)));
    r.sums = (pnb__byte_sums){.dim = dim, .row = (float *)(void *)(at += LINE(dim + 4))};
    r.sums.lost = (float *)(void *)(at + LINE(dim * sizeof(float)));
    memset(r.sums.row, 0, dim * sizeof(float));
    memset(r.sums.lost, 0, dim * sizeof(float));
    return r;
}

/* Pairs of columns of 32 rows beside each other. */
static void place_halves(pnb__sample_queries *q, size_t row, const uint16_t *halves)
{
    size_t in_panel = row % PNB__BF16_PANEL;
    uint16_t *to = q->halves + (row - in_panel) * q->width + 2 * in_panel;
    for (size_t d = 0; d < q->width; d += 2)
        memcpy(to + d * PNB__BF16_PANEL, halves + d, 2 * sizeof *halves);
}

/* Sample k of query i of the pass. */
static written write_query(pnb__sample_queries *q, draw_room *room, const double *sample, size_t i,
                           size_t k)
{
    size_t dim = q->run->queries.rows.dim, j = n_samples(q->run);
    size_t row = i / q->strip * q->strip * j + k * q->strip + i % q->strip;
    float *floats = q->halves == NULL ? q->rows + row * dim : room->row;
    written w = write_floats(sample, q->centre, dim, floats);
    const pnb__float_sample of = {floats, w.square, w.off};
    if (q->halves != NULL) {
        w = write_halves(q->run, &of, q->width, room->halves);
        place_halves(q, row, room->halves);
    }
    if (q->bytes.panels != NULL) {
        pnb__byte_query_set(&q->bytes, q->run, row, &of, &room->sums, room->bytes);
        memcpy(q->lying + (i * j + k) * q->width, room->halves, q->width * sizeof *q->lying);
    }
    q->square[row] = (float)w.square;
    q->off[row] = up(w.off);
    return w;
}

static void draw_queries(void *user, size_t begin, size_t end, int thread)
{
    const draw_job *job = user;
    pnb__sample_queries *q = job->q;
    const pnb_rows *rows = &q->run->queries.rows;
    size_t j = n_samples(q->run);
    const double *kept = q->run->queries.samples;
    draw_room room = room_at(job, thread);
    for (size_t i = begin; i < end; i++) {
        for (size_t k = 0; k < j; k++) {
            const double *sample = room.drawn;
            if (kept != NULL)
                sample = kept + ((q->first + i) * j + k) * rows->dim;
            else
                pnb__draw_fill(rows, q->first + i, k, 0, q->run->scan->opts.seed, room.drawn);
            written w = write_query(q, &room, sample, i, k);
            if (!isfinite(w.square))
                job->bad[thread] = PNB_MIN(job->bad[thread], q->first + i);
        }
        if (q->bytes.panels != NULL)
            pnb__byte_query_end(&q->bytes, q->run, i, &room.sums);
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
    size_t bad = SIZE_MAX, bytes = n_threads * room_of(q);
    draw_job job = {.q = q, .room = pnb__alloc_aligned(bytes)};
    pnb_status status;
    if (job.room == NULL)
        PNB_TRY(pnb__fail_nomem(err, bytes));
    PNB_TRY(PNB_ALLOC(job.bad, n_threads, err));
    for (size_t t = 0; t < n_threads; t++)
        job.bad[t] = SIZE_MAX;
    pnb__parallel_for(ctx, q->n, 1, draw_queries, &job);
    for (size_t t = 0; t < n_threads; t++)
        bad = PNB_MIN(bad, job.bad[t]);
    if (bad != SIZE_MAX)
        status = fail_sample(q->run, bad, 0, err);
done:
    pnb__free_aligned(job.room);
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
    if (pnb__sample_bytes_take(run)) {
        PNB_TRY(pnb__byte_queries_init(&q->bytes, run, n_rows, err));
        PNB_TRY(PNB_ALLOC_ROWS(q->lying, q->n * n_samples(run), q->width, err));
    }
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
    pnb__free(q->lying);
    pnb__byte_queries_reset(&q->bytes);
    *q = (pnb__sample_queries){0};
}

/* ---- blocks ---- */

void pnb__sample_work_sizes(const pnb__exact_run *run, size_t *n_doubles, size_t *n_floats)
{
    size_t dim = run->queries.rows.dim, items = pnb__sample_items(run);
    size_t rows = items * n_samples(run), strip = pnb__sample_strip(run);
    *n_doubles = dim;
    /* halves of a row take no more room than its floats and one */
    *n_floats = rows * (dim + 1) + 2 * rows + rows * strip * n_samples(run) + 2 * items * strip +
                dim + 5 * n_samples(run) * n_samples(run);
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
    work->row = work->off + rows;
    work->pair = work->row + dim;
    work->at_item = work->at_first = SIZE_MAX;
}

pnb_status pnb__sample_work_init(pnb__sample_work *work, const pnb__exact_run *run, pnb_error *err)
{
    if (!pnb__sample_bytes_take(run))
        return PNB_OK;
    return pnb__byte_work_init(&work->bytes, run, pnb__sample_items(run), pnb__sample_strip(run),
                               err);
}

void pnb__sample_work_reset(pnb__sample_work *work)
{
    pnb__byte_work_reset(&work->bytes);
}

/* Sample i of the block. */
static written write_item(const pnb__sample_queries *q, pnb__sample_work *work, size_t i,
                          const double *sample)
{
    size_t dim = q->run->queries.rows.dim;
    float *floats = q->halves == NULL ? work->rows + i * dim : work->row;
    written w = write_floats(sample, q->centre, dim, floats);
    const pnb__float_sample of = {floats, w.square, w.off};
    if (q->halves != NULL)
        w = write_halves(q->run, &of, q->width, work->halves + i * q->width);
    if (q->bytes.panels != NULL)
        pnb__byte_item_set(&work->bytes, q->run, i, &of);
    work->square[i] = (float)w.square;
    work->off[i] = up(w.off);
    return w;
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
    for (size_t i = 0; i < (items[1] - items[0]) * j; i++) {
        size_t item = items[0] + i / j;
        const double *sample = work->sample;
        if (scan->gallery.samples != NULL)
            sample = scan->gallery.samples + (item * j + i % j) * dim;
        else
            pnb__draw_fill(x, item, i % j, 1, scan->opts.seed, work->sample);
        if (!isfinite(write_item(q, work, i, sample).square))
            return fail_sample(q->run, query, item, err);
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

/* For every pair its terms, or for one pair of rows all pairs of their samples. */
static void make_values(const pnb__sample_queries *q, const pnb__sample_pairs_args *of)
{
    const pnb_measure_opts *o = &q->run->scan->opts;
    pnb__sample_pairs_args args = *of;
    args.is_match = pnb__measure_traits_of(q->run->scan->measure)->reads == PNB__READS_MATCH;
    args.a = o->match_factor * o->match_a;
    args.b = o->match_factor * o->match_b;
    args.relative = ((q->halves != NULL ? 2.02 : 1.01) * (double)q->width + 8.0) * UNIT;
    q->run->kernels.host.sample_pairs(&q->run->inner, &args);
}

static void score_bytes(const pnb__sample_queries *q, pnb__sample_work *work,
                        const pnb__sample_block *b, size_t first)
{
    const pnb__byte_block bytes = {.n_items = b->items[1] - b->items[0],
                                   .n_queries = b->queries[1] - b->queries[0],
                                   .first = first,
                                   .strip = q->strip,
                                   .limit = b->limit,
                                   .value = work->value};
    pnb__byte_bounds(q->run, &q->bytes, &work->bytes, &bytes);
}

pnb_status pnb__sample_score(const pnb__sample_queries *q, pnb__sample_work *work,
                             const pnb__sample_block *b, bool *is_limit, pnb_error *err)
{
    size_t j = n_samples(q->run), first = (b->queries[0] - q->first) * j;
    size_t n_items = b->items[1] - b->items[0], n_queries = b->queries[1] - b->queries[0];
    pnb_status status = draw_items(q, work, b->items, b->queries[0], err);
    if (status != PNB_OK)
        return status;
    *is_limit = b->limit != NULL && q->bytes.panels != NULL &&
                pnb__bytes_gain(&work->bytes, n_items * n_queries);
    if (*is_limit) {
        score_bytes(q, work, b, first);
        return PNB_OK;
    }
    multiply(q, work, n_items, first);
    const pnb__sample_pairs_args args = {.n1 = n_items,
                                         .n2 = n_queries,
                                         .n_samples = j,
                                         .ld_product = q->strip * j,
                                         .ld_sample = q->strip,
                                         .ld = q->strip,
                                         .products = work->products,
                                         .square1 = work->square,
                                         .square2 = q->square + first,
                                         .off1 = work->off,
                                         .off2 = q->off + first,
                                         .value = work->value,
                                         .spread = work->spread};
    make_values(q, &args);
    return PNB_OK;
}

/* Each pair of samples stands as a row of one sample of its own against a point: squares and offs
 * are summed before, which rounds S once more than `relative` counts, of its 8. */
void pnb__sample_pair(const pnb__sample_queries *q, pnb__sample_work *work, size_t query,
                      size_t item, double out[2])
{
    size_t j = n_samples(q->run), i = query - q->first, n = j * j;
    size_t row = (item - work->at_item) * j;
    size_t column = i / q->strip * q->strip * j + i % q->strip;
    float *product = work->pair, *square = product + n, *off = square + n, *value = off + n;
    const float zero = 0.0f;
    const pnb__bf16_dots_args dots = {.m = j,
                                      .n = j,
                                      .k = q->width,
                                      .lda = q->width,
                                      .ldb = q->width,
                                      .ldc = j,
                                      .a = work->halves + row * q->width,
                                      .b = q->lying + i * j * q->width,
                                      .c = product};
    q->run->kernels.dots_bf16(&dots);
    for (size_t k = 0; k < n; k++) {
        size_t at = column + k % j * q->strip;
        square[k] = work->square[row + k / j] + q->square[at];
        off[k] = (work->off[row + k / j] + q->off[at]) * (1.0f + 4.0f * (float)UNIT);
    }
    const pnb__sample_pairs_args args = {.n1 = 1,
                                         .n2 = n,
                                         .n_samples = 1,
                                         .ld_product = n,
                                         .ld_sample = n,
                                         .ld = n,
                                         .products = product,
                                         .square1 = &zero,
                                         .square2 = square,
                                         .off1 = &zero,
                                         .off2 = off,
                                         .value = value,
                                         .spread = value + n};
    make_values(q, &args);
    out[0] = out[1] = 0.0;
    for (size_t k = 0; k < n; k++) {
        out[0] += (double)value[k] / (double)n;
        out[1] += (double)value[n + k] / (double)n;
    }
    work->bytes.n_taken++;
}
