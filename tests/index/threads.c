/* One index, eight threads that each ask something else: hits have the bits that one thread alone
 * gets, of an index that nobody has searched yet, exact and by copies of one and two bytes a
 * number.
 *
 * Half of the threads bring a context, the same one, so that searches meet in the pool as well.
 * Of plain C (REF) ThreadSanitizer sees each store, of wide vectors and of a BLAS none. */
#include <pthread.h>

#include "penumbra/search.h"
#include "tests/prob/support.h"

enum { N_THREADS = 8, N_ROUNDS = 4, N = 3000, N_QUERIES = 9, DIM = 24, K = 7 };

typedef struct caller {
    const pnb_index *index; /* everybody's */
    const pnb_ctx *ctx;
    gaussians queries; /* its own */
    pnb_hits alone;
    const char *problem; /* NULL: none */
} caller;

static bool are_same(const pnb_hits *a, const pnb_hits *b)
{
    size_t n = a->n_queries * a->k;
    return a->n_queries == b->n_queries && a->k == b->k && a->n_unsure == b->n_unsure &&
           memcmp(a->index, b->index, n * sizeof *a->index) == 0 &&
           memcmp(a->score, b->score, n * sizeof *a->score) == 0;
}

static void *call(void *user)
{
    caller *c = user;
    for (int i = 0; i < N_ROUNDS && c->problem == NULL; i++) {
        pnb_hits hits;
        if (pnb_index_search(c->index, c->ctx, &c->queries.view, K, &hits, NULL) != PNB_OK)
            c->problem = "a search fails";
        else if (!are_same(&hits, &c->alone))
            c->problem = "other hits";
        pnb_hits_reset(&hits);
    }
    return NULL;
}

/* What the callers should get, by an index that is used for that alone. */
static void ask_alone(caller callers[N_THREADS], const gaussians *gallery,
                      const pnb_search_opts *opts)
{
    pnb_index *index = NULL;
    assert_ok(pnb_index_create(&index, NULL, &gallery->view, opts, err));
    for (int i = 0; i < N_THREADS; i++) {
        callers[i].queries = random_gaussians(N_QUERIES, DIM, -4, -1, 100 + (uint64_t)i);
        assert_ok(
            pnb_index_search(index, NULL, &callers[i].queries.view, K, &callers[i].alone, err));
    }
    assert_false(are_same(&callers[0].alone, &callers[1].alone));
    pnb_index_free(index);
}

static void expect_bits_of_one(pnb_index_kind kind, pnb_measure measure, pnb_device device)
{
    gaussians gallery = random_gaussians(N, DIM, -4, -1, 1);
    pnb_search_opts opts = pnb_search_opts_default();
    caller callers[N_THREADS] = {0};
    pthread_t threads[N_THREADS];
    pnb_ctx *ctx = NULL;
    pnb_index *shared = NULL;
    opts.kind = kind;
    opts.measure = measure;
    ask_alone(callers, &gallery, &opts);
    assert_ok(pnb_ctx_create(&ctx, &(pnb_ctx_opts){.n_threads = 3, .device = device}, err));
    assert_ok(pnb_index_create(&shared, ctx, &gallery.view, &opts, err));
    for (int i = 0; i < N_THREADS; i++) {
        callers[i].index = shared;
        callers[i].ctx = i % 2 == 0 ? ctx : NULL;
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++) {
        if (callers[i].problem != NULL)
            fail_msg("%s, %s, thread %d: %s", pnb_index_kind_name(kind), pnb_measure_name(measure),
                     i, callers[i].problem);
        pnb_hits_reset(&callers[i].alone);
        free_gaussians(&callers[i].queries);
    }
    pnb_index_free(shared);
    pnb_ctx_free(ctx);
    free_gaussians(&gallery);
}

/* By products with bounds, by an asymmetric measure, and over samples. */
static void test_exact(void **state)
{
    (void)state;
    expect_bits_of_one(PNB_INDEX_EXACT, PNB_MEASURE_CSD, PNB_DEVICE_CPU);
    expect_bits_of_one(PNB_INDEX_EXACT, PNB_MEASURE_CSD, PNB_DEVICE_REF);
    expect_bits_of_one(PNB_INDEX_EXACT, PNB_MEASURE_INCLUSION, PNB_DEVICE_CPU);
    expect_bits_of_one(PNB_INDEX_EXACT, PNB_MEASURE_AVG_L2, PNB_DEVICE_CPU);
}

static void test_copies(void **state)
{
    (void)state;
    const pnb_device devices[] = {PNB_DEVICE_CPU, PNB_DEVICE_REF};
    for (size_t i = 0; i < PNB_COUNT(devices); i++) {
        expect_bits_of_one(PNB_INDEX_INT8, PNB_MEASURE_CSD, devices[i]);
        expect_bits_of_one(PNB_INDEX_BF16, PNB_MEASURE_CSD, devices[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
