/* A search that bounds by rows in bfloat16 finds what one by floats finds, to the bit of each
 * score, on sets of instructions with and without it; when halves are left for floats. */
#include "index/exact/half_bound.h"

#include "tests/index/exact/shapes.h"

static void check_hits(pnb_measure measure, int kind, size_t dim, pnb_isa isa)
{
    enum { N_QUERIES = 70, N = 700, K = 9 };
    gaussians q = random_gaussians(N_QUERIES, dim, -6, -4, 1),
              x = random_gaussians(N, dim, -6, -4, 2);
    pnb_ctx *ctx = context(isa), *floats = context(PNB_ISA_GENERIC);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_hits want, got;
    o.measure = measure;
    o.k = K;
    shape_rows(&q, N_QUERIES, dim, kind, true);
    shape_rows(&x, N, dim, kind, false);
    if (ctx != NULL) {
        assert_ok(pnb_search(floats, &q.view, &x.view, &o, &want, err));
        assert_ok(pnb_search(ctx, &q.view, &x.view, &o, &got, err));
        assert_memory_equal(want.index, got.index, sizeof *want.index * N_QUERIES * K);
        assert_memory_equal(want.score, got.score, sizeof *want.score * N_QUERIES * K);
        pnb_hits_reset(&want);
        pnb_hits_reset(&got);
    }
    pnb_ctx_free(ctx);
    pnb_ctx_free(floats);
    free_gaussians(&q);
    free_gaussians(&x);
}

static void test_same_hits(void **state)
{
    (void)state;
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2};
    for (size_t m = 0; m < PNB_COUNT(measures); m++)
        for (int kind = 0; kind < N_KINDS; kind++) {
            check_hits(measures[m], kind, 37, PNB_ISA_EMULATED);
            check_hits(measures[m], kind, 37, PNB_ISA_AVX512_BF16);
            check_hits(measures[m], kind, 64, PNB_ISA_AMX);
        }
}

/* Where it is used: many queries, wide rows, on a unit for halves, when the run asks for it. */
static void test_where(void **state)
{
    (void)state;
    gaussians g = random_gaussians(64, 40, -6, -4, 1);
    pnb_ctx *ctx = context(PNB_ISA_EMULATED), *floats = context(PNB_ISA_GENERIC);
    pnb_search_opts o = pnb_search_opts_default();
    pnb__exact scan;
    pnb__exact_run run;
    o.measure = PNB_MEASURE_CSD;
    assert_ok(pnb__exact_init(&scan, ctx, &g.view, &o, err));
    assert_ok(pnb__exact_run_init(&run, &scan, ctx, &g.view, err));
    assert_false(pnb__half_takes(&run, 64, 40));
    run.bounds_by_halves = true;
    assert_true(pnb__half_takes(&run, 64, 40));
    assert_false(pnb__half_takes(&run, 5, 40));
    assert_false(pnb__half_takes(&run, 64, 8));
    run.queries.most_norm = 1e20;
    assert_false(pnb__half_takes(&run, 64, 40));
    pnb__exact_run_reset(&run);
    assert_ok(pnb__exact_run_init(&run, &scan, floats, &g.view, err));
    run.bounds_by_halves = true;
    assert_false(pnb__half_takes(&run, 64, 40));
    pnb__exact_run_reset(&run);
    pnb__exact_reset(&scan);
    pnb_ctx_free(ctx);
    pnb_ctx_free(floats);
    free_gaussians(&g);
}

/* One pair in 32 within the bounds of a million is too many; some millions later they are tried
 * again. */
static void test_share(void **state)
{
    (void)state;
    const size_t million = 1 << 20;
    pnb__half_items work = {0};
    pnb__half_saw(&work, million, million / 32);
    assert_int_equal(work.n_floats, 0);
    pnb__half_saw(&work, million / 2, million / 4);
    assert_int_equal(work.n_floats, 0);
    pnb__half_saw(&work, million / 2, 0);
    assert_int_equal(work.n_floats, 8 * million);
    pnb__half_saw(&work, 7 * million, 7 * million); /* of floats: not counted */
    assert_int_equal(work.n_floats, million);
    pnb__half_saw(&work, 3 * million, 0);
    assert_int_equal(work.n_floats, 0);
    assert_int_equal(work.n_seen, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_hits),
                                       cmocka_unit_test(test_where), cmocka_unit_test(test_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
