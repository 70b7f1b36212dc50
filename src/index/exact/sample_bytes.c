/* Bounds on measures over pairs of samples from rows of bytes.
 *
 * With x' and y' the rows in bytes of two samples x and y, x.y <= x'.y' + |x - x'| |y| + |x'| |y -
 * y'|: what rounding took is measured, the product of bytes is exact, and so
 *   |x - y|^2 >= |x|^2 + |y|^2 - 2 x'.y' - off_x |y| - |x'| off_y,   off = 2 |x - x'|,
 * from which sample_nearest (kernels.h) makes the largest value that a pair can have. A value is a
 * bound on one side only: pairs that reach the limit are bounded on both by their rows in bfloat16
 * (sample_bound.c), and what is left of these is scored in f64. So bytes leave out pairs, and
 * decide nothing else.
 *
 * A byte is 1/127 of a row's largest number, and bounds are wider by some percent of a length:
 * where too many pairs lie within, all are bounded by bfloat16 for a while, twice as long each
 * time. */
#include "index/exact/sample_bytes.h"

#include <math.h>
#include <string.h>

#include "kernels/bf16.h"

#define RAISE 1.0001   /* of floats that bounds are made of */
#define LEAST_DIM 32   /* below it products are not the most of the work */
#define MOST_DIM 65536 /* sums of bytes stay in 32 bits */
#define MOST_NORM 1e15 /* squares of what rounding takes stay floats */
#define WINDOW ((size_t)1 << 14)
#define MOST_TAKEN 6 /* of so many pairs one: bounding it again costs what bytes save */
#define LONGEST_PAUSE (128 * WINDOW)

enum { SCALE, SQUARE, LENGTH, OFF };

static size_t groups_of(const pnb__exact_run *run)
{
    return (run->queries.rows.dim + 3) / 4;
}

bool pnb__sample_bytes_take(const pnb__exact_run *run)
{
    const pnb_measure_opts *o = &run->scan->opts;
    size_t dim = run->queries.rows.dim;
    return run->bounds_by_bytes && run->way == PNB__EXACT_SAMPLES &&
           run->kernels.products_i8 != NULL && run->kernels.dots_bf16 != NULL &&
           o->match_factor * o->match_a >= 0.0 && dim >= LEAST_DIM && dim <= MOST_DIM &&
           run->queries.most_norm <= MOST_NORM && run->scan->gallery.most_norm <= MOST_NORM;
}

pnb_status pnb__byte_queries_init(pnb__byte_queries *q, const pnb__exact_run *run, size_t n_rows,
                                  pnb_error *err)
{
    pnb_status status = PNB_OK;
    *q = (pnb__byte_queries){.groups = groups_of(run), .n_rows = n_rows};
    size_t bytes = n_rows * 4 * q->groups;
    PNB_TRY(PNB_ALLOC_ZERO(q->numbers, 4 * n_rows, err));
    PNB_TRY(PNB_ALLOC_ZERO(q->sum, n_rows, err));
    PNB_TRY(PNB_ALLOC_ZERO(q->lengths, n_rows / run->scan->opts.n_samples, err));
    q->panels = pnb__alloc_aligned(bytes);
    if (q->panels == NULL)
        PNB_TRY(pnb__fail_nomem(err, bytes));
    memset(q->panels, 0, bytes);
done:
    if (status != PNB_OK)
        pnb__byte_queries_reset(q);
    return status;
}

void pnb__byte_queries_reset(pnb__byte_queries *q)
{
    pnb__free_aligned(q->panels);
    pnb__free(q->numbers);
    pnb__free(q->sum);
    pnb__free(q->lengths);
    *q = (pnb__byte_queries){0};
}

/* Items whose products are made together: they stay in the first cache until they are read. */
static size_t items_at_once(size_t n_samples)
{
    return PNB_MAX(PNB__I8_TILE / n_samples, (size_t)1);
}

static size_t rows_of(size_t n_items, size_t n_samples)
{
    size_t each = items_at_once(n_samples), n_groups = (n_items + each - 1) / each;
    size_t rows = each * n_samples;
    return n_groups * ((rows + PNB__I8_TILE - 1) / PNB__I8_TILE * PNB__I8_TILE);
}

/* Where a sample stands: every group of items begins a tile. */
static size_t place_of(size_t row, size_t n_samples)
{
    size_t each = items_at_once(n_samples) * n_samples;
    return rows_of(row / each * (each / n_samples), n_samples) + row % each;
}

pnb_status pnb__byte_work_init(pnb__byte_work *work, const pnb__exact_run *run, size_t n_items,
                               size_t strip, pnb_error *err)
{
    size_t j = run->scan->opts.n_samples, rows = rows_of(n_items, j), groups = groups_of(run);
    size_t bytes = rows * 4 * groups, dim = run->queries.rows.dim;
    pnb_status status = PNB_OK;
    *work = (pnb__byte_work){.n_items = n_items, .pause = WINDOW, .sums.dim = dim};
    PNB_TRY(PNB_ALLOC_ZERO_ROWS(work->sums.row, 2, dim, err));
    work->sums.lost = work->sums.row + dim;
    PNB_TRY(PNB_ALLOC(work->lengths, n_items, err));
    PNB_TRY(pnb__slope_pair_init(&work->pair, j * j, err));
    PNB_TRY(PNB_ALLOC(work->row, 4 * groups, err));
    PNB_TRY(PNB_ALLOC(work->numbers, 4 * n_items * j, err));
    PNB_TRY(PNB_ALLOC(work->sum, n_items * j, err));
    PNB_TRY(PNB_ALLOC_ROWS(work->products, items_at_once(j) * j, strip * j, err));
    work->tiles = pnb__alloc_aligned(bytes);
    if (work->tiles == NULL)
        PNB_TRY(pnb__fail_nomem(err, bytes));
    memset(work->tiles, 0, bytes);
done:
    if (status != PNB_OK)
        pnb__byte_work_reset(work);
    return status;
}

void pnb__byte_work_reset(pnb__byte_work *work)
{
    pnb__free(work->row);
    pnb__free(work->numbers);
    pnb__free(work->sum);
    pnb__free(work->products);
    pnb__free(work->lengths);
    pnb__free(work->sums.row);
    pnb__slope_pair_reset(&work->pair);
    pnb__free_aligned(work->tiles);
    *work = (pnb__byte_work){0};
}

/* ---- rows ---- */

typedef struct rounded {
    float scale;
    int32_t sum;
    double off;
} rounded;

static rounded round_row(const pnb__exact_run *run, const pnb__float_sample *sample, size_t groups,
                         signed char *to)
{
    rounded r;
    const pnb__byte_rows_args args = {.rows = 1,
                                      .width = run->queries.rows.dim,
                                      .ld = run->queries.rows.dim,
                                      .ld_to = 4 * groups,
                                      .x = sample->row,
                                      .to = to,
                                      .scale = &r.scale,
                                      .off = &r.off,
                                      .sum = &r.sum};
    run->kernels.host.byte_rows(&run->inner, &args);
    r.off += sample->off;
    return r;
}

/* length: of the row that meets the other side's off, which is x' of items and x of queries. */
static void set_numbers(float *numbers, size_t n_rows, size_t row, const rounded *r, double square,
                        double length)
{
    numbers[SCALE * n_rows + row] = r->scale;
    numbers[SQUARE * n_rows + row] = (float)square;
    numbers[LENGTH * n_rows + row] = (float)(length * RAISE);
    numbers[OFF * n_rows + row] = (float)(2.0 * r->off * RAISE);
}

void pnb__byte_query_set(pnb__byte_queries *q, const pnb__exact_run *run, size_t row,
                         const pnb__float_sample *sample, pnb__byte_sums *sums,
                         signed char *scratch)
{
    const rounded r = round_row(run, sample, q->groups, scratch);
    size_t panel = row / PNB__I8_PANEL, in_panel = row % PNB__I8_PANEL;
    signed char *to = q->panels + (panel * q->groups * PNB__I8_PANEL + in_panel) * 4;
    for (size_t g = 0; g < q->groups; g++)
        memcpy(to + g * PNB__I8_PANEL * 4, scratch + 4 * g, 4);
    q->sum[row] = 128 * r.sum;
    set_numbers(q->numbers, q->n_rows, row, &r, sample->square, sqrt(sample->square) + sample->off);
    pnb__byte_sums_add(sums, sample, scratch, r.scale);
}

void pnb__byte_query_end(pnb__byte_queries *q, const pnb__exact_run *run, size_t query,
                         pnb__byte_sums *sums)
{
    q->lengths[query] = pnb__byte_sums_end(sums, run->scan->opts.n_samples);
}

void pnb__byte_item_set(pnb__byte_work *work, const pnb__exact_run *run, size_t row,
                        const pnb__float_sample *sample)
{
    size_t groups = groups_of(run), j = run->scan->opts.n_samples;
    size_t n_rows = work->n_items * j;
    const rounded r = round_row(run, sample, groups, work->row);
    size_t place = place_of(row, j), in_tile = place % PNB__I8_TILE;
    unsigned char *to = work->tiles + ((place - in_tile) * groups + in_tile) * 4;
    for (size_t g = 0; g < groups; g++)
        for (size_t d = 0; d < 4; d++)
            to[g * PNB__I8_TILE * 4 + d] = (unsigned char)(work->row[4 * g + d] + 128);
    work->sum[row] = r.sum;
    set_numbers(work->numbers, n_rows, row, &r, sample->square, sqrt(sample->square) + r.off);
    pnb__byte_sums_add(&work->sums, sample, work->row, r.scale);
    if (row % j == j - 1)
        work->lengths[row / j] = pnb__byte_sums_end(&work->sums, j);
}

/* ---- blocks ---- */

static pnb__sample_side side_at(const float *numbers, size_t n_rows, const int32_t *sum,
                                size_t first)
{
    return (pnb__sample_side){.scale = numbers + SCALE * n_rows + first,
                              .square = numbers + SQUARE * n_rows + first,
                              .length = numbers + LENGTH * n_rows + first,
                              .off = numbers + OFF * n_rows + first,
                              .sum = sum + first};
}

/* Closer for the pair of item i, whose products are those of row `at`, and query j of the strip. */
static float closer(const pnb__exact_run *run, const pnb__byte_queries *q, pnb__byte_work *work,
                    const pnb__byte_block *b, const size_t pair[3], float value)
{
    const pnb_measure_opts *o = &run->scan->opts;
    size_t n_j = o->n_samples, i = pair[0], at = pair[1], j = pair[2];
    size_t n_rows = work->n_items * n_j, ld = b->strip * n_j;
    const pnb__sample_side x = side_at(work->numbers, n_rows, work->sum, i * n_j);
    const pnb__sample_side y = side_at(q->numbers, q->n_rows, q->sum, b->first);
    pnb__slope_pair *p = &work->pair;
    for (size_t two = 0; two < n_j; two++) {
        size_t row = two * b->strip + j;
        float scale = y.scale[row], square = y.square[row], off = y.off[row], l = y.length[row];
        int32_t sum = y.sum[row];
        const int32_t *products = work->products + at * ld + row;
        size_t k = two * n_j;
        for (size_t one = 0; one < n_j; one++, k++) {
            p->products[k] = products[one * ld] - sum;
            p->scale[k] = x.scale[one] * scale;
            p->square[k] = x.square[one] + square;
            p->off[k] = x.off[one] * l + x.length[one] * off;
        }
    }
    const double match[2] = {o->match_factor * o->match_a, o->match_factor * o->match_b};
    const pnb__byte_lengths lengths[2] = {work->lengths[i], q->lengths[b->first / n_j + j]};
    return pnb__slope_bound(p, &run->kernels, &run->inner, match, lengths, value);
}

void pnb__byte_bounds(const pnb__exact_run *run, const pnb__byte_queries *q, pnb__byte_work *work,
                      const pnb__byte_block *b)
{
    const pnb_measure_opts *o = &run->scan->opts;
    size_t j = o->n_samples, each = items_at_once(j), n_rows = work->n_items * j;
    bool is_match = pnb__measure_traits_of(run->scan->measure)->reads == PNB__READS_MATCH;
    for (size_t i = 0; i < b->n_items; i += each) {
        size_t n = PNB_MIN(each, b->n_items - i);
        float *value = b->value + i * b->strip;
        const pnb__i8_args product = {.m = n * j,
                                      .n_panels = b->strip * j / PNB__I8_PANEL,
                                      .groups = q->groups,
                                      .ldc = b->strip * j,
                                      .a = work->tiles + place_of(i * j, j) * q->groups * 4,
                                      .b = q->panels + b->first * q->groups * 4,
                                      .c = work->products};
        run->kernels.products_i8(&product);
        const pnb__sample_nearest_args args = {
            .n1 = n,
            .n2 = b->n_queries,
            .n_samples = j,
            .ld_product = b->strip * j,
            .ld_sample = b->strip,
            .ld = b->strip,
            .is_match = is_match,
            .a = o->match_factor * o->match_a,
            .b = o->match_factor * o->match_b,
            .products = work->products,
            .one = side_at(work->numbers, n_rows, work->sum, i * j),
            .two = side_at(q->numbers, q->n_rows, q->sum, b->first),
            .value = value};
        run->kernels.host.sample_nearest(&run->inner, &args);
        for (size_t p = 0; is_match && p < n * b->n_queries; p++) {
            size_t row = p / b->n_queries, column = p % b->n_queries;
            float *at = value + row * b->strip + column;
            if (*at >= b->limit[column])
                *at = closer(run, q, work, b, (size_t[]){i + row, row * j, column}, *at);
        }
    }
}

bool pnb__bytes_gain(pnb__byte_work *work, size_t n_pairs)
{
    if (work->n_whole > 0) {
        work->n_whole -= PNB_MIN(work->n_whole, n_pairs);
        return false;
    }
    if (work->n_seen >= WINDOW) {
        bool gained = work->n_taken <= work->n_seen / MOST_TAKEN;
        work->n_seen = work->n_taken = 0;
        work->n_whole = gained ? 0 : work->pause;
        work->pause = gained ? WINDOW : PNB_MIN(2 * work->pause, LONGEST_PAUSE);
        if (!gained)
            return false;
    }
    work->n_seen += n_pairs;
    return true;
}
