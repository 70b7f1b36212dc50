/* A gallery and queries near some of its rows: sets with known matches for the tests of
 * calibration.
 */
#ifndef PNB_TESTS_EVAL_MATCH_WORLD_H
#define PNB_TESTS_EVAL_MATCH_WORLD_H

#include "penumbra/calibrate.h"
#include "tests/prob/support.h"

typedef struct world {
    gaussians queries, gallery;
    pnb_truth *truth;
    pnb_match_job job;
    pnb_match_opts opts;
} world;

/* Query i lies near gallery row i mod n_gallery; every 5th also matches the row after it, every
 * 11th matches nothing. */
static inline void make_world(world *w, size_t n_queries, size_t n_gallery, double noise,
                              uint64_t seed)
{
    enum { DIM = 12 };
    int64_t *pairs = malloc(4 * n_queries * sizeof *pairs);
    size_t n = 0;
    assert_non_null(pairs);
    w->gallery = random_gaussians(n_gallery, DIM, -6, -3, seed);
    w->queries = random_gaussians(n_queries, DIM, -6, -3, seed + 1);
    for (size_t i = 0; i < n_queries; i++) {
        double square = 0;
        float *q = w->queries.mean + i * DIM;
        for (size_t d = 0; d < DIM; d++) {
            q[d] = w->gallery.mean[i % n_gallery * DIM + d] + (float)noise * q[d];
            square += (double)q[d] * q[d];
        }
        for (size_t d = 0; d < DIM; d++)
            q[d] = (float)(q[d] / sqrt(square));
        if (i % 11 == 10)
            continue;
        pairs[2 * n] = (int64_t)i;
        pairs[2 * n++ + 1] = (int64_t)(i % n_gallery);
        if (i % 5 == 4) {
            pairs[2 * n] = (int64_t)i;
            pairs[2 * n++ + 1] = (int64_t)((i + 1) % n_gallery);
        }
    }
    assert_ok(pnb_truth_create_pairs(&w->truth, n_queries, n_gallery, pairs, n, err));
    free(pairs);
    w->opts = pnb_match_opts_default();
    w->job = (pnb_match_job){&w->queries.view, &w->gallery.view, w->truth, &w->opts};
}

static inline void free_world(world *w)
{
    free_gaussians(&w->queries);
    free_gaussians(&w->gallery);
    pnb_truth_free(w->truth);
}

static inline bool matches(const pnb_truth *t, size_t query, size_t item)
{
    for (size_t i = t->offset[query]; i < t->offset[query + 1]; i++)
        if (t->item[i] == item)
            return true;
    return false;
}

static inline pnb_ctx *threads(int n)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = n;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    return ctx;
}

#endif
