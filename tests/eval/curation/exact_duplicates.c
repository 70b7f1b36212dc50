/* Rows that are the same bit for bit: kinds against comparing all pairs, and blocks gathered from
 * here and there. */
#include "eval/curation/exact_duplicates.h"

#include "tests/prob/support.h"

enum { N = 200, DIM = 3 };

/* Rows of few values, so that many are alike; `half` differs in the variances only. */
static gaussians few_values(uint64_t seed)
{
    gaussians g = random_gaussians(N, DIM, -1, 1, seed);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 1);
    for (size_t i = 0; i < N * DIM; i++) {
        g.mean[i] = (float)pnb__rng_below(&rng, 3);
        g.log_var[i] = i % DIM == 0 ? (float)pnb__rng_below(&rng, 3) : 0;
    }
    return g;
}

static bool alike(const pnb_rows *g, size_t a, size_t b)
{
    return memcmp(g->mean + a * DIM, g->mean + b * DIM, DIM * sizeof(float)) == 0 &&
           (g->log_var == NULL ||
            memcmp(g->log_var + a * DIM, g->log_var + b * DIM, DIM * sizeof(float)) == 0);
}

static void kinds_by_all_pairs(void **state)
{
    (void)state;
    gaussians g = few_values(4);
    for (int points = 0; points < 2; points++) {
        pnb_rows rows = g.view;
        pnb__exact_duplicates c;
        size_t n_kinds = 0, at = 0;
        if (points)
            rows.log_var = NULL;
        assert_ok(pnb__exact_duplicates_find(&c, &rows, false, err));
        for (size_t i = 0; i < N; i++) {
            size_t first = 0;
            while (!alike(&rows, first, i))
                first++;
            assert_int_equal(c.first[c.kind[i]], first);
            if (first == i)
                assert_int_equal(c.kind[i], n_kinds++); /* in the order of first rows */
        }
        assert_int_equal(c.n_kinds, n_kinds);
        assert_true(n_kinds < N && n_kinds > 10);
        for (size_t k = 0; k < n_kinds; k++) {
            assert_int_equal(c.offset[k], at);
            for (size_t i = 0; i < N; i++) /* its rows, ascending */
                if (c.kind[i] == k)
                    assert_int_equal(c.row[at++], i);
        }
        assert_int_equal(c.offset[n_kinds], N);
        pnb__exact_duplicates_reset(&c);
        assert_null(c.row);
    }
    free_gaussians(&g);
}

/* Bits decide: zero and minus zero differ, NaN of one form is alike; apart, every row is a kind. */
static void bits_and_apart(void **state)
{
    (void)state;
    const float mean[] = {0.0f, -0.0f, NAN, NAN, 0.0f};
    const pnb_rows rows = {.n = 5, .dim = 1, .mean = mean};
    static const size_t want[] = {0, 1, 2, 2, 0};
    pnb__exact_duplicates c;
    assert_ok(pnb__exact_duplicates_find(&c, &rows, false, err));
    assert_memory_equal(c.kind, want, sizeof want);
    pnb__exact_duplicates_reset(&c);
    assert_ok(pnb__exact_duplicates_find(&c, &rows, true, err));
    assert_int_equal(c.n_kinds, 5);
    for (size_t i = 0; i < 5; i++)
        assert_true(c.kind[i] == i && c.first[i] == i && c.row[i] == i && c.offset[i] == i);
    pnb__exact_duplicates_reset(&c);
    const pnb_rows none = {.dim = 1, .mean = mean};
    assert_ok(pnb__exact_duplicates_find(&c, &none, false, err));
    assert_true(c.n_kinds == 0 && c.offset[0] == 0);
    pnb__exact_duplicates_reset(&c);
}

/* Rows that follow each other are a view of the set, others a copy. */
static void gathers(void **state)
{
    (void)state;
    gaussians g = random_gaussians(N, DIM, -1, 1, 7);
    static const size_t next[] = {5, 6, 7, 8}, apart[] = {0, 5, 6, 199}, one[] = {199};
    pnb__gathered block;
    assert_ok(pnb__gathered_init(&block, &g.view, next, 4, err));
    assert_true(block.mean == NULL && block.rows.n == 4 && block.rows.mean == g.mean + 5 * DIM);
    pnb__gathered_reset(&block);
    assert_ok(pnb__gathered_init(&block, &g.view, one, 1, err));
    assert_true(block.mean == NULL && block.rows.log_var == g.log_var + 199 * DIM);
    pnb__gathered_reset(&block);
    for (int points = 0; points < 2; points++) {
        pnb_rows rows = g.view;
        if (points)
            rows.log_var = NULL;
        assert_ok(pnb__gathered_init(&block, &rows, apart, 4, err));
        assert_true(block.rows.n == 4 && block.rows.dim == DIM && block.rows.mean == block.mean);
        for (size_t i = 0; i < 4; i++) {
            assert_memory_equal(block.rows.mean + i * DIM, g.mean + apart[i] * DIM,
                                DIM * sizeof(float));
            if (!points)
                assert_memory_equal(block.rows.log_var + i * DIM, g.log_var + apart[i] * DIM,
                                    DIM * sizeof(float));
        }
        assert_int_equal(block.rows.log_var == NULL, points);
        pnb__gathered_reset(&block);
        assert_null(block.mean);
    }
    free_gaussians(&g);
}

#ifdef PNB_FAULTS
static void no_memory(void **state)
{
    (void)state;
    gaussians g = few_values(4);
    static const size_t apart[] = {0, 5};
    long n_find = 0, n_gather = 0;
    for (pnb_status status = PNB_NOMEM; status != PNB_OK; n_find++) {
        pnb__exact_duplicates c;
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n_find);
        status = pnb__exact_duplicates_find(&c, &g.view, false, &error);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && c.kind == NULL && c.n == 0));
        pnb__exact_duplicates_reset(&c);
    }
    for (pnb_status status = PNB_NOMEM; status != PNB_OK; n_gather++) {
        pnb__gathered block;
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n_gather);
        status = pnb__gathered_init(&block, &g.view, apart, 2, &error);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && block.rows.n == 0));
        pnb__gathered_reset(&block);
    }
    assert_true(n_find > 4 && n_gather == 3);
    free_gaussians(&g);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_by_all_pairs),
        cmocka_unit_test(bits_and_apart),
        cmocka_unit_test(gathers),
#ifdef PNB_FAULTS
        cmocka_unit_test(no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
