/* How far a search has to look for the recall that is wanted.
 *
 * Points that are mixed of rows spread over the set and two of their nearest are asked for their
 * ten nearest, exactly and by the index, with more effort each time until enough of the true ones
 * are among the candidates. Not the rows themselves: a graph leads to what is in it far more easily
 * than to what is not, and queries are not. Those of the other modality lie further from the rows
 * than such points do, so that their recall may be less: it is an estimate, and what was measured
 * is told. */
#include <math.h>
#include <string.h>

#include "index/ann/ann.h"

enum { SAMPLE = 256, HITS = 10, NEAR = 3, FURTHER = 7, FIRST_EFFORT = 8, MOST_EFFORT = 16384 };

typedef struct tuning {
    pnb__ann *ann;
    const pnb_ctx *ctx;
    float *mean, *x, *product;
    int64_t *id;
    pnb_gaussians queries;
    pnb_hits truth;
    size_t k; /* candidates */
} tuning;

static void take_sample(tuning *t)
{
    const pnb_gaussians *g = &t->ann->gallery;
    for (size_t i = 0; i < t->queries.n; i++) {
        size_t row = (size_t)((double)i * (double)g->n / (double)t->queries.n);
        memcpy(t->mean + i * g->dim, g->mean + row * g->dim, g->dim * sizeof(float));
    }
}

static pnb_status find_truth(tuning *t, pnb_error *err)
{
    pnb_search_opts opts = t->ann->opts;
    opts.kind = PNB_INDEX_EXACT;
    opts.shortlist = 0;
    opts.k = PNB_MIN((size_t)HITS, t->ann->gallery.n);
    pnb_hits_reset(&t->truth);
    return pnb_search(t->ctx, &t->queries, &t->ann->gallery, &opts, &t->truth, err);
}

/* Adds a share of a row of the gallery, if there is one. */
static void add_share(const pnb_gaussians *g, int64_t row, double share, float *x)
{
    for (size_t d = 0; row >= 0 && d < g->dim; d++)
        x[d] += (float)(share * (double)g->mean[(size_t)row * g->dim + d]);
}

/* Each row r becomes 2/3 r + 2/3 a - 1/3 b with two of its neighbours, as long as r. Shares that
 * sum to 1 stay where the rows are; their squares do too, so what rows have of their own, each in
 * another direction, is as large as in a row: the middle of rows would be found too easily. */
static void mix_with_neighbours(tuning *t)
{
    const pnb_gaussians *g = &t->ann->gallery;
    const int64_t *near = t->truth.index;
    size_t last = t->truth.k - 1;
    for (size_t i = 0; i < t->queries.n; i++, near += t->truth.k) {
        float *x = t->mean + i * g->dim;
        double before = 0, after = 0;
        for (size_t d = 0; d < g->dim; d++)
            before += (double)x[d] * (double)x[d];
        for (size_t d = 0; d < g->dim; d++)
            x[d] *= 2.0F / 3;
        add_share(g, near[PNB_MIN((size_t)NEAR, last)], 2.0 / 3, x);
        add_share(g, near[PNB_MIN((size_t)FURTHER, last)], -1.0 / 3, x);
        for (size_t d = 0; d < g->dim; d++)
            after += (double)x[d] * (double)x[d];
        for (size_t d = 0; after > 0 && d < g->dim; d++)
            x[d] = (float)((double)x[d] * sqrt(before / after));
    }
}

static bool is_among(const int64_t *ids, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static double measure(const tuning *t)
{
    size_t n = 0, n_found = 0;
    for (size_t q = 0; q < t->queries.n; q++)
        for (size_t i = 0; i < t->truth.k; i++) {
            int64_t id = t->truth.index[q * t->truth.k + i];
            n += id >= 0;
            n_found += id >= 0 && is_among(t->id + q * t->k, t->k, id);
        }
    return n > 0 ? (double)n_found / (double)n : 1.0;
}

static pnb_status try_effort(tuning *t, size_t effort, pnb_error *err)
{
    pnb__faiss_error why;
    const pnb__faiss_query query = {.x = t->x,
                                    .n = t->queries.n,
                                    .k = t->k,
                                    .effort = effort,
                                    .n_threads = t->ctx != NULL ? t->ctx->n_threads : 1};
    if (!pnb__faiss_search(t->ann->faiss, &query, t->id, t->product, &why))
        return pnb__ann_fail("measuring recall", &why, err);
    t->ann->effort = effort;
    t->ann->recall = measure(t);
    return PNB_OK;
}

static pnb_status prepare(tuning *t, pnb_error *err)
{
    const pnb_gaussians *g = &t->ann->gallery;
    size_t n = PNB_MIN(g->n, (size_t)SAMPLE);
    pnb_status status;
    t->k = PNB_MIN(pnb__ann_candidates(HITS), g->n);
    PNB_TRY(PNB_ALLOC_ROWS(t->mean, n, g->dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(t->x, n, t->ann->width, err));
    PNB_TRY(PNB_ALLOC_ROWS(t->product, n, t->k, err));
    PNB_TRY(PNB_ALLOC_ROWS(t->id, n, t->k, err));
    t->queries = (pnb_gaussians){.n = n, .dim = g->dim, .mean = t->mean};
    take_sample(t);
    PNB_TRY(find_truth(t, err));
    mix_with_neighbours(t);
    pnb__ann_queries(t->ann, &t->queries, t->x);
    status = find_truth(t, err);
done:
    return status;
}

pnb_status pnb__ann_tune(pnb__ann *ann, const pnb_ctx *ctx, pnb_error *err)
{
    size_t most = PNB_MIN(ann->gallery.n, (size_t)MOST_EFFORT);
    tuning t = {.ann = ann, .ctx = ctx};
    pnb_status status = prepare(&t, err);
    ann->n_sample = t.queries.n;
    for (size_t effort = FIRST_EFFORT; status == PNB_OK; effort += PNB_MAX(effort / 4, (size_t)1)) {
        status = try_effort(&t, PNB_MIN(effort, most), err);
        if (ann->recall >= ann->opts.recall || effort >= most)
            break;
    }
    pnb_hits_reset(&t.truth);
    pnb__free(t.mean);
    pnb__free(t.x);
    pnb__free(t.product);
    pnb__free(t.id);
    return status;
}
