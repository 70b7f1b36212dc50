/* Equal and nearly equal pictures, so that both sides of a split never hold the same drawing.
 *
 * Equal: the same PNG bytes. Near: a correlation of at least `near` between thumbnails of 16 x 16
 * colours, found by the range search that `curate duplicates` uses (cosine of rows, all pairs).
 * There is no model here, so what is near in meaning alone (one thing drawn twice) is not found.
 * Groups are connected components; the representative is the first picture of each. */
#include <math.h>
#include <string.h>

#include "data/collections/collection.h"
#include "penumbra/search.h"

/* What equal rows reach whatever the rounding. */
static const double SURELY_EQUAL = 1 - 1e-5;

static size_t root_of(pnb__collected *items, size_t i)
{
    while (items[i].twins != i) {
        items[i].twins = items[items[i].twins].twins;
        i = items[i].twins;
    }
    return i;
}

static void join(pnb__collected *items, size_t a, size_t b)
{
    a = root_of(items, a);
    b = root_of(items, b);
    if (a != b)
        items[PNB_MAX(a, b)].twins = PNB_MIN(a, b);
}

static bool is_same(const pnb__collected *a, const pnb__collected *b)
{
    return a->n_encoded == b->n_encoded && !memcmp(a->encoded, b->encoded, a->n_encoded);
}

static pnb_status join_near(const pnb_ctx *ctx, pnb__collection *c, float *rows, pnb_error *err)
{
    const pnb_gaussians set = {.n = c->n, .dim = PNB__THUMB, .mean = rows};
    pnb_search_opts search = pnb_search_opts_default();
    pnb_range_opts range = pnb_range_opts_default();
    pnb_pairs pairs = {0};
    pnb_index *index = NULL;
    pnb_status status;
    search.measure = PNB_MEASURE_MEAN;
    range.min_score = fmin(c->opts->near, SURELY_EQUAL);
    range.max_pairs = 50000000;
    PNB_TRY(pnb_index_create(&index, ctx, &set, &search, err));
    PNB_TRY(pnb_index_range(index, ctx, &set, &range, &pairs, err));
    for (size_t p = 0; p < pairs.n; p++) {
        size_t a = (size_t)pairs.query[p], b = (size_t)pairs.item[p];
        if (a >= b)
            continue;
        c->stats->n_near_pairs++;
        if (c->items[b].first_equal == b && is_same(&c->items[a], &c->items[b]))
            c->items[b].first_equal = c->items[a].first_equal;
        join(c->items, a, b);
    }
done:
    pnb_pairs_reset(&pairs);
    pnb_index_free(index);
    return status;
}

pnb_status pnb__collection_twins(const pnb_ctx *ctx, pnb__collection *c, pnb_error *err)
{
    float *rows = NULL;
    pnb_status status = PNB_ALLOC_ROWS(rows, c->n, PNB__THUMB, err);
    for (size_t i = 0; i < c->n; i++) {
        c->items[i].first_equal = c->items[i].twins = i;
        if (status == PNB_OK)
            memcpy(rows + i * PNB__THUMB, c->items[i].thumb, PNB__THUMB * sizeof *rows);
    }
    if (status == PNB_OK)
        status = join_near(ctx, c, rows, err);
    pnb__free(rows);
    for (size_t i = 0; i < c->n; i++) {
        c->items[i].twins = root_of(c->items, i);
        c->stats->n_equal += c->items[i].first_equal != i;
        c->stats->n_near += c->items[i].twins != i;
    }
    return status;
}
