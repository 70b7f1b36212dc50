/* How far a search has to look for the recall that is wanted.
 *
 * The last rows are held out of the index while this is measured: they are asked for their ten
 * nearest of the others, exactly and by the index, with more effort each time until enough of the
 * true ones are among the candidates: enough for other queries too, so it is the lower end of the
 * measured recall's interval that has to reach what is wanted. Rows that are in a graph are found
 * far more easily than what is not, and queries are not. Those of the other modality lie further
 * from the rows than rows do, so that their recall may be less: it is an estimate, and what was
 * measured is told. */
#include "index/ann/ann.h"

#include <math.h>
#include <string.h>

#define ONE_SIDED_95 1.6449 /* quantile of a normal */
enum { HITS = 10, MOST_CANDIDATES = 128, FIRST_EFFORT = 8, MOST_EFFORT = 16384 };

typedef struct tuning {
    pnb__ann *ann;
    const pnb_ctx *ctx;
    float *x, *product;
    int64_t *id;
    pnb_gaussians rows, queries; /* in the index, and held out */
    pnb_hits truth;
    size_t k;   /* candidates */
    double low; /* of the recall that was measured last */
} tuning;

static pnb_status find_truth(tuning *t, pnb_error *err)
{
    pnb_search_opts opts = t->ann->opts;
    opts.kind = PNB_INDEX_EXACT;
    opts.shortlist = 0;
    opts.k = PNB_MIN((size_t)HITS, t->rows.n);
    return pnb_search(t->ctx, &t->queries, &t->rows, &opts, &t->truth, err);
}

/* The place of a row among the n candidates; n: none is it. */
static size_t place_of(const int64_t *ids, size_t n, int64_t id)
{
    size_t i = 0;
    while (i < n && ids[i] != id)
        i++;
    return i;
}

static bool is_copy(const pnb_gaussians *g, int64_t a, int64_t b)
{
    size_t bytes = g->dim * sizeof *g->mean, i = (size_t)a * g->dim, j = (size_t)b * g->dim;
    return memcmp(g->mean + i, g->mean + j, bytes) == 0 &&
           (g->log_var == NULL || memcmp(g->log_var + i, g->log_var + j, bytes) == 0);
}

/* How many of a query's true rows are among its candidates, themselves or by a copy that is none of
 * the others: of a thousand equal rows any ten are the nearest. */
static size_t count_found(const tuning *t, size_t q)
{
    const int64_t *truth = t->truth.index + q * t->truth.k, *ids = t->id + q * t->k;
    bool is_taken[MOST_CANDIDATES] = {false}, is_missed[HITS] = {false};
    size_t n_found = 0;
    for (size_t i = 0; i < t->truth.k && truth[i] >= 0;
         i++) { /* behind the last one there is none */
        size_t place = place_of(ids, t->k, truth[i]);
        is_missed[i] = place == t->k;
        if (!is_missed[i]) {
            is_taken[place] = true;
            n_found++;
        }
    }
    for (size_t i = 0; i < t->truth.k; i++)
        for (size_t c = 0; c < t->k && is_missed[i]; c++)
            if (!is_taken[c] && ids[c] >= 0 && is_copy(&t->rows, ids[c], truth[i])) {
                is_taken[c] = true;
                is_missed[i] = false;
                n_found++;
            }
    return n_found;
}

/* Shares of the true ones that were found, of every query: their mean, and the lower end of its
 * one-sided 95% interval. The hits of a query are missed together, so it is queries that vary. */
static double measure(const tuning *t, double *low)
{
    double sum = 0, squares = 0, n = (double)t->queries.n;
    for (size_t q = 0; q < t->queries.n; q++) {
        size_t n_true = 0;
        for (size_t i = 0; i < t->truth.k; i++)
            n_true += t->truth.index[q * t->truth.k + i] >= 0;
        double share = n_true > 0 ? (double)count_found(t, q) / (double)n_true : 1.0;
        sum += share;
        squares += share * share;
    }
    double mean = sum / n, variance = (squares - n * mean * mean) / (n - 1);
    *low = mean - ONE_SIDED_95 * sqrt(PNB_MAX(variance, 0.0) / n);
    return mean;
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
    t->ann->recall = measure(t, &t->low);
    return PNB_OK;
}

static pnb_status prepare(tuning *t, pnb_error *err)
{
    size_t n = t->queries.n;
    pnb_status status;
    t->k = PNB_MIN(PNB_MIN(pnb__ann_candidates(HITS), t->rows.n), (size_t)MOST_CANDIDATES);
    PNB_TRY(PNB_ALLOC_ROWS(t->x, n, t->ann->width, err));
    PNB_TRY(PNB_ALLOC_ROWS(t->product, n, t->k, err));
    PNB_TRY(PNB_ALLOC_ROWS(t->id, n, t->k, err));
    pnb__ann_queries(t->ann, &t->queries, t->x);
    status = find_truth(t, err);
done:
    return status;
}

pnb_status pnb__ann_tune(pnb__ann *ann, const pnb_ctx *ctx, size_t n_held, pnb_error *err)
{
    const pnb_gaussians *g = &ann->gallery;
    size_t n = g->n - n_held, most = PNB_MIN(n, (size_t)MOST_EFFORT);
    tuning t = {.ann = ann, .ctx = ctx, .rows = pnb_rows_slice(g, 0, n)};
    t.queries = (pnb_gaussians){.n = n_held, .dim = g->dim, .mean = g->mean + n * g->dim};
    pnb_status status = prepare(&t, err);
    ann->n_sample = n_held;
    for (size_t effort = FIRST_EFFORT; status == PNB_OK; effort += PNB_MAX(effort / 4, (size_t)1)) {
        status = try_effort(&t, PNB_MIN(effort, most), err);
        if (t.low >= ann->opts.recall || effort >= most)
            break;
    }
    pnb_hits_reset(&t.truth);
    pnb__free(t.x);
    pnb__free(t.product);
    pnb__free(t.id);
    return status;
}
