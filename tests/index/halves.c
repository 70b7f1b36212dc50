/* Scores that a device rounds to bfloat16 change no answer: the column of GPUs on emulated threads,
 * beside the processor's exact search. Rows and queries are bfloat16 themselves, so that nothing
 * but the rounding of scores is lost, and hundreds of rows lie closer than it tells apart. */
#include "tests/io/scratch.h"

#include <math.h>

#include "index/compressed/compressed.h"
#include "index/index.h"
#include "penumbra/search.h"

#ifndef PNB_TEST_CUDA
int main(void)
{
    return 77; /* no emulated column in this tree */
}
#else

extern void pnb__cuda_overwrite(pnb__kernels *k);

enum { N = 900, DIM = 16, QUERIES = 17, K = 6 };

static void emulated_column(pnb__kernels *k)
{
    if (k->real != PNB__F32)
        return;
    pnb__cuda_overwrite(k);
    k->host_memory = false;
}

typedef struct rows {
    float mean[N * DIM], log_var[N * DIM], query[QUERIES * DIM];
    pnb_gaussians all, queries;
} rows;

/* Multiples of 1/16 around one of `heaps` centres. */
static rows *make(size_t heaps)
{
    rows *r = malloc(sizeof *r);
    pnb__rng rng;
    assert_non_null(r);
    pnb__rng_init(&rng, 5, heaps);
    for (size_t i = 0; i < N * DIM; i++)
        r->mean[i] = i / DIM < heaps ? (float)((double)pnb__rng_below(&rng, 25) / 16 - 0.75)
                                     : r->mean[i / DIM % heaps * DIM + i % DIM] +
                                           (float)((double)pnb__rng_below(&rng, 3) / 16 - 0.0625);
    for (size_t i = 0; i < QUERIES * DIM; i++)
        r->query[i] = r->mean[i / DIM % heaps * DIM + i % DIM] +
                      (float)((double)pnb__rng_below(&rng, 5) / 16 - 0.125);
    r->all = (pnb_gaussians){.n = N, .dim = DIM, .mean = r->mean};
    r->queries = (pnb_gaussians){.n = QUERIES, .dim = DIM, .mean = r->query};
    return r;
}

/* Products near +9 and terms near -9, of which rounding takes more than rows lie apart. */
static rows *make_cancelling(void)
{
    rows *r = make(N);
    pnb__rng rng;
    pnb__rng_init(&rng, 6, 0);
    for (size_t i = 0; i < N * DIM; i++) {
        r->mean[i] = 0.25f + (float)(i % DIM < 4 ? pnb__rng_below(&rng, 8) : 0) * 0x1p-9f;
        r->log_var[i] = logf(18.0f / DIM) + 0.008f * (float)pnb__rng_normal(&rng);
    }
    for (size_t i = 0; i < QUERIES * DIM; i++)
        r->query[i] = 2.375f + (float)pnb__rng_below(&rng, 3) * 0x1p-6f;
    r->all.log_var = r->log_var;
    return r;
}

static size_t search(const rows *r, pnb_ctx *ctx, pnb_index_kind kind, pnb_hits *hits)
{
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_index *index = NULL;
    pnb_error err = PNB_ERROR_INIT;
    opts.kind = kind;
    assert_ok(pnb_index_create(&index, ctx, &r->all, &opts, &err), &err);
    assert_ok(pnb_index_search(index, ctx, &r->queries, K, hits, &err), &err);
    pnb_index_free(index);
    return hits->n_unsure;
}

static void compare(const rows *r, pnb_ctx *ctx, pnb_index_kind kind)
{
    pnb_hits found, wanted;
    size_t n_wrong = 0, n_unsure = search(r, ctx, kind, &found);
    search(r, NULL, PNB_INDEX_EXACT, &wanted);
    for (size_t q = 0; q < r->queries.n; q++)
        n_wrong += memcmp(found.index + q * K, wanted.index + q * K, K * sizeof(int64_t)) != 0;
    assert_true(n_wrong <= n_unsure);
    pnb_hits_reset(&found);
    pnb_hits_reset(&wanted);
}

static void test_answers(void **state)
{
    (void)state;
    static const size_t heaps[] = {1, 2, 40, N};
    pnb_ctx *ctx = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = 1;
    assert_ok(pnb_ctx_create(&ctx, &opts, &err), &err);
    ctx->column = emulated_column;
    for (size_t i = 0; i < PNB_COUNT(heaps); i++) {
        rows *r = make(heaps[i]);
        compare(r, ctx, PNB_INDEX_EXACT);
        compare(r, ctx, PNB_INDEX_BF16);
        compare(r, ctx, PNB_INDEX_INT8);
        r->queries.n = 3; /* too few to round scores */
        compare(r, ctx, PNB_INDEX_BF16);
        free(r);
    }
    rows *r = make_cancelling();
    compare(r, ctx, PNB_INDEX_EXACT);
    compare(r, ctx, PNB_INDEX_BF16);
    free(r);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
