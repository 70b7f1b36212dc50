/* Inner products of rows in bfloat16, where the machine multiplies these at twice the rate of
 * floats or more.
 *
 * x.q is off by |x - x'| |q| + |x'| |q - q'| at most, x' and q' the rounded rows. What rounding
 * took is measured, row by row (halve_rows of host.def): about a thousandth of a row's length. The
 * sum itself is right to 2 K u |x'| |q'| (kernels.h). bound.c makes the bounds of it; the
 * candidates they leave are scored in f64, as ever. */
#include "index/exact/half_bound.h"

#include <string.h>

#define FEWEST_QUERIES 33 /* below it reading the items is most of the work */
#define LEAST_WIDTH 32    /* the epilogue is most of the work */
#define MOST_NORM 1e15    /* squares of what rounding takes stay floats */
#define WINDOW ((size_t)1 << 20)
#define MOST_TAKEN 32   /* of so many pairs one: scoring it costs what halves save */
#define FLOAT_WINDOWS 8 /* in floats before halves are tried again */

bool pnb__half_takes(const pnb__exact_run *run, size_t n_queries, size_t width)
{
    return run->bounds_by_halves && run->way == PNB__EXACT_PRODUCT &&
           run->kernels.products_bf16 != NULL && n_queries >= FEWEST_QUERIES &&
           width >= LEAST_WIDTH && run->queries.most_norm <= MOST_NORM &&
           run->scan->gallery.most_norm <= MOST_NORM;
}

static size_t even(size_t width)
{
    return (width + 1) / 2 * 2;
}

/* Row j of halves into its panel: pairs of columns of 32 rows beside each other. */
static void place(const pnb__half_queries *q, const uint16_t *row, size_t j)
{
    uint16_t *panel = q->panels + j / PNB__BF16_PANEL * PNB__BF16_PANEL * q->width;
    for (size_t d = 0; d < q->width; d++)
        panel[(d / 2 * PNB__BF16_PANEL + j % PNB__BF16_PANEL) * 2 + d % 2] = row[d];
}

pnb_status pnb__half_queries_init(pnb__half_queries *q, const pnb__exact_run *run,
                                  const float *rows, size_t n, size_t width, pnb_error *err)
{
    size_t n_rows = (n + PNB__BF16_PANEL - 1) / PNB__BF16_PANEL * PNB__BF16_PANEL;
    size_t bytes = n_rows * even(width) * sizeof(uint16_t);
    pnb_status status;
    uint16_t *row = NULL;
    *q = (pnb__half_queries){.width = even(width)};
    PNB_TRY(PNB_ALLOC(row, q->width, err));
    q->panels = pnb__alloc_aligned(bytes);
    if (q->panels == NULL)
        PNB_TRY(pnb__fail_nomem(err, bytes));
    memset(q->panels, 0, bytes);
    for (size_t j = 0; j < n; j++) {
        double off = 0;
        const pnb__halve_args args = {.rows = 1,
                                      .width = width,
                                      .ld = width,
                                      .ld_to = q->width,
                                      .x = rows + j * width,
                                      .to = row,
                                      .off = &off};
        run->kernels.host.halve_rows(&run->inner, &args);
        q->most_off = PNB_MAX(q->most_off, off);
        place(q, row, j);
    }
done:
    pnb__free(row);
    if (status != PNB_OK)
        pnb__half_queries_reset(q);
    return status;
}

void pnb__half_queries_reset(pnb__half_queries *q)
{
    pnb__free_aligned(q->panels);
    *q = (pnb__half_queries){0};
}

pnb_status pnb__half_items_init(pnb__half_items *work, size_t n_items, size_t width, pnb_error *err)
{
    size_t bytes = n_items * even(width) * sizeof(uint16_t);
    pnb_status status;
    *work = (pnb__half_items){.at_item = SIZE_MAX};
    PNB_TRY(PNB_ALLOC(work->off, n_items, err));
    work->rows = pnb__alloc_aligned(bytes);
    if (work->rows == NULL)
        PNB_TRY(pnb__fail_nomem(err, bytes));
done:
    if (status != PNB_OK)
        pnb__half_items_reset(work);
    return status;
}

void pnb__half_items_reset(pnb__half_items *work)
{
    pnb__free_aligned(work->rows);
    pnb__free(work->off);
    *work = (pnb__half_items){0};
}

void pnb__half_multiply(const pnb__exact_run *run, const pnb__half_queries *q,
                        pnb__half_items *work, const pnb__half_block *b)
{
    if (work->at_item != b->item) {
        const pnb__halve_args args = {.rows = b->n_items,
                                      .width = b->width,
                                      .ld = b->width,
                                      .ld_to = q->width,
                                      .x = b->items,
                                      .to = work->rows,
                                      .off = work->off};
        run->kernels.host.halve_rows(&run->inner, &args);
        work->at_item = b->item;
    }
    const pnb__bf16_args product = {.m = b->n_items,
                                    .n_panels =
                                        (b->n_queries + PNB__BF16_PANEL - 1) / PNB__BF16_PANEL,
                                    .k = q->width,
                                    .lda = q->width,
                                    .ldc = b->ld,
                                    .a = work->rows,
                                    .b = q->panels + b->first * q->width,
                                    .c = b->out};
    run->kernels.products_bf16(&product);
}

void pnb__half_saw(pnb__half_items *work, size_t n_pairs, size_t n_taken)
{
    if (work->n_floats > 0) {
        work->n_floats -= PNB_MIN(work->n_floats, n_pairs);
        return;
    }
    work->n_seen += n_pairs;
    work->n_taken += n_taken;
    if (work->n_seen < WINDOW)
        return;
    if (work->n_taken > work->n_seen / MOST_TAKEN)
        work->n_floats = FLOAT_WINDOWS * WINDOW;
    work->n_seen = work->n_taken = 0;
}
