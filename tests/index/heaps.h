/* Made rows in heaps, for the tests of approximate indexes. */
#ifndef TESTS_INDEX_HEAPS_H
#define TESTS_INDEX_HEAPS_H

#include "tests/io/scratch.h"

#include <math.h>

#include "index/ann/faiss_bridge.h"
#include "index/index.h"
#include "penumbra/search.h"

enum { N = 2600, DIM = 16, QUERIES = 30, K = 5 };

typedef struct made {
    float mean[N * DIM], log_var[N * DIM], query[QUERIES * DIM];
    pnb_gaussians rows, queries;
} made;

static inline made *make(void)
{
    made *m = malloc(sizeof *m);
    pnb__rng rng;
    pnb__rng_init(&rng, 17, 0);
    for (size_t i = 0; i < N * DIM; i++) {
        m->mean[i] = (float)pnb__rng_normal(&rng) / 4 + ((i / DIM) % 9 == i % DIM ? 2.0f : 0.0f);
        m->log_var[i] = (float)pnb__rng_normal(&rng) - 4;
    }
    for (size_t i = 0; i < N; i++) {
        float norm = 0;
        for (size_t d = 0; d < DIM; d++)
            norm += m->mean[i * DIM + d] * m->mean[i * DIM + d];
        for (size_t d = 0; d < DIM; d++)
            m->mean[i * DIM + d] /= sqrtf(norm);
    }
    for (size_t i = 0; i < QUERIES * DIM; i++)
        m->query[i] = m->mean[i * 3] + (float)pnb__rng_normal(&rng) / 8;
    m->rows = (pnb_gaussians){.n = N, .dim = DIM, .mean = m->mean, .log_var = m->log_var};
    m->queries = (pnb_gaussians){.n = QUERIES, .dim = DIM, .mean = m->query};
    return m;
}

static inline pnb_index *make_index(const made *m, pnb_index_kind kind)
{
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_index *index = NULL;
    pnb_error err = PNB_ERROR_INIT;
    opts.kind = kind;
    assert_ok(pnb_index_create(&index, NULL, &m->rows, &opts, &err), &err);
    return index;
}

static inline pnb_hits search(const pnb_index *index, const made *m, const unsigned char *only)
{
    const pnb__among among = {&m->queries, K, only};
    pnb_hits hits;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__index_search(index, NULL, &among, &hits, &err), &err);
    return hits;
}

/* The status of a test program where FAISS is missing: an index is refused, and that is all. */
static inline int without_faiss(void)
{
    pnb_search_opts opts = pnb_search_opts_default();
    made *m = make();
    pnb_index *index = NULL;
    opts.kind = PNB_INDEX_IVF;
    bool ok = pnb_index_create(&index, NULL, &m->rows, &opts, NULL) == PNB_UNSUPPORTED;
    free(m);
    printf("skipped: this build has no FAISS (libfaiss-dev)\n");
    return ok ? 77 : 1;
}

#endif
