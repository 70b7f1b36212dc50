/* A search that leaves out pairs by samples in bytes finds what one in floats finds, to the bit of
 * each score; no bound is passed by a score, not by rows that use all of it; when bytes rest. */
#include "index/exact/bound.h"
#include "index/index.h"

#include "tests/index/exact/shapes.h"

typedef struct search_case {
    pnb_measure measure;
    int kind;
    size_t dim, n, k, j;
    double a, b;
} search_case;

static void check_hits(search_case c, pnb_isa isa)
{
    enum { N_QUERIES = 40 };
    gaussians q = random_gaussians(N_QUERIES, c.dim, -6, -4, 1),
              x = random_gaussians(c.n, c.dim, -6, -4, 2);
    pnb_ctx *ctx = context(isa), *floats = context(PNB_ISA_GENERIC);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_range_opts range = {.max_pairs = 100000};
    pnb_hits want, got;
    o.measure = c.measure;
    o.k = c.k;
    o.measure_opts.n_samples = c.j;
    o.measure_opts.match_a = c.a;
    o.measure_opts.match_b = c.b;
    shape_rows(&q, N_QUERIES, c.dim, c.kind, true);
    shape_rows(&x, c.n, c.dim, c.kind, false);
    if (ctx != NULL) {
        pnb_pairs pairs, wanted;
        pnb_index *index[2];
        assert_ok(pnb_search(floats, &q.view, &x.view, &o, &want, err));
        assert_ok(pnb_search(ctx, &q.view, &x.view, &o, &got, err));
        assert_memory_equal(want.index, got.index, sizeof *want.index * N_QUERIES * c.k);
        assert_memory_equal(want.score, got.score, sizeof *want.score * N_QUERIES * c.k);
        range.min_score = want.score[c.k - 1]; /* the last hit of query 0, exactly */
        assert_ok(pnb_index_create(&index[0], floats, &x.view, &o, err));
        assert_ok(pnb_index_create(&index[1], ctx, &x.view, &o, err));
        assert_ok(pnb_index_range(index[0], floats, &q.view, &range, &wanted, err));
        assert_ok(pnb_index_range(index[1], ctx, &q.view, &range, &pairs, err));
        assert_true(pairs.n >= c.k);
        assert_int_equal(pairs.n, wanted.n);
        assert_memory_equal(pairs.item, wanted.item, pairs.n * sizeof *pairs.item);
        assert_memory_equal(pairs.score, wanted.score, pairs.n * sizeof *pairs.score);
        pnb_pairs_reset(&pairs);
        pnb_pairs_reset(&wanted);
        pnb_index_free(index[0]);
        pnb_index_free(index[1]);
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
    const search_case cases[] = {
        {PNB_MEASURE_MATCH_PROB, WIDE, 37, 700, 9, 3, 5, 5}, /* likely items give limits */
        {PNB_MEASURE_MATCH_PROB, WIDE, 64, 300, 9, 7, 5, 5}, /* lists do */
        {PNB_MEASURE_MATCH_PROB, CLOSE, 37, 400, 5, 3, 5, 5},
        {PNB_MEASURE_MATCH_PROB, SAME, 37, 400, 5, 3, 5, 5},
        {PNB_MEASURE_MATCH_PROB, LENGTHS, 37, 400, 5, 3, 5, 5},
        {PNB_MEASURE_MATCH_PROB, SPIKES, 64, 400, 5, 3, 0.01, 1},
        {PNB_MEASURE_MATCH_PROB, WIDE, 40, 400, 5, 2, 1000, 20}, /* all scores below 1e-30 */
        {PNB_MEASURE_MATCH_PROB, WIDE, 40, 400, 5, 2, 0.01, 0},
        {PNB_MEASURE_MATCH_PROB, WIDE, 40, 400, 5, 2, 0, 5},  /* all scores equal */
        {PNB_MEASURE_MATCH_PROB, WIDE, 40, 200, 5, 2, -4, 5}, /* the farther, the better */
        {PNB_MEASURE_MATCH_PROB, WIDE, 33, 130, 1, 17, 1,
         5}, /* more samples than a tile has rows */
        {PNB_MEASURE_AVG_L2, WIDE, 37, 700, 9, 3, 0, 0},
        {PNB_MEASURE_AVG_L2, SPIKES, 64, 400, 5, 1, 0, 0},
        {PNB_MEASURE_AVG_L2, LENGTHS, 64, 400, 5, 2, 0, 0},
    };
    for (size_t c = 0; c < PNB_COUNT(cases); c++) {
        check_hits(cases[c], PNB_ISA_EMULATED);
        check_hits(cases[c], PNB_ISA_AVX512_BF16);
    }
}

/* Some rows may not be hits, and fewer than k may: likely ones do not make limits of the others. */
static void test_among(void **state)
{
    (void)state;
    enum { N = 700, Q = 33, D = 40, K = 3 };
    gaussians q = random_gaussians(Q, D, -6, -4, 1), x = random_gaussians(N, D, -6, -4, 2);
    pnb_search_opts o = pnb_search_opts_default();
    o.measure = PNB_MEASURE_MATCH_PROB;
    for (size_t c = 0; c < 2; c++) {
        unsigned char only[N];
        pnb_ctx *ctx = context(PNB_ISA_EMULATED), *floats = context(PNB_ISA_GENERIC);
        pnb_hits want, got;
        pnb_index *index;
        for (size_t i = 0; i < N; i++)
            only[i] = c == 0 ? i % 5 == 2 : i < 2;
        const pnb__among among = {&q.view, K, only};
        assert_ok(pnb_index_create(&index, floats, &x.view, &o, err));
        assert_ok(pnb__index_search(index, floats, &among, &want, err));
        pnb_index_free(index);
        assert_ok(pnb_index_create(&index, ctx, &x.view, &o, err));
        assert_ok(pnb__index_search(index, ctx, &among, &got, err));
        pnb_index_free(index);
        assert_memory_equal(want.index, got.index, sizeof *want.index * Q * K);
        assert_memory_equal(want.score, got.score, sizeof *want.score * Q * K);
        pnb_hits_reset(&want);
        pnb_hits_reset(&got);
        pnb_ctx_free(ctx);
        pnb_ctx_free(floats);
    }
    free_gaussians(&q);
    free_gaussians(&x);
}

/* ---- bounds ---- */

typedef struct looked {
    double least, apart; /* of bound and score, as a share of the score: least, and all together */
    size_t n;
} looked;

/* Every score is at most its bound, and within those of its pair; where it reaches its limit by the
 * closer bound too, which is for no pair the wider one. */
static looked look(const pnb_ctx *ctx, const pnb_search_opts *o, const pnb_gaussians *q,
                   const pnb_gaussians *x, bool reaches)
{
    enum { MOST_QUERIES = 512 };
    looked found = {.least = (double)INFINITY};
    float limit[MOST_QUERIES];
    pnb__exact scan;
    pnb__exact_run run;
    pnb__bound pass;
    pnb__bound_work work;
    assert_ok(pnb__exact_init(&scan, ctx, x, o, err));
    assert_ok(pnb__exact_run_init(&run, &scan, ctx, q, err));
    run.bounds_by_bytes = true;
    assert_ok(pnb__bound_init(&pass, &run, ctx, 0, q->n, err));
    assert_ok(pnb__bound_work_init(&work, &run, err));
    assert_true(pass.strip <= MOST_QUERIES);
    for (size_t j = 0; j < MOST_QUERIES; j++)
        limit[j] = reaches ? -INFINITY : INFINITY;
    work.limit = limit;
    for (size_t strip = 0; strip * pass.strip < q->n; strip++)
        for (size_t item = 0; item < x->n; item += pass.n_items) {
            pnb__values v;
            size_t items[2] = {item, PNB_MIN(item + pass.n_items, x->n)};
            assert_ok(pnb__bound_score(&pass, &work, strip, items, &v, err));
            assert_true(v.within == &pass && v.spread == NULL);
            for (size_t n = 0; n < v.n_items * v.n_queries; n++) {
                size_t i = n / v.n_queries, j = n % v.n_queries;
                double score = pnb__exact_pair(&run, &work.scan, v.query + j, v.item + i), pair[2];
                double bound = (double)v.mul[i] * (double)v.value[i * v.ld + j];
                double margin = pnb__bound_margin(&run, v.query + j);
                pnb__sample_pair(&pass.samples, &work.samples, v.query + j, v.item + i, pair);
                if (!(score <= bound + margin))
                    fail_msg("item %zu, query %zu: %.17g is above %.9g", v.item + i, v.query + j,
                             score, bound);
                assert_true(fabs((double)v.mul[i] * pair[0] - score) <= pair[1] + margin);
                found.least = fmin(found.least, (bound - score) / fabs(score));
                found.apart += (bound - score) / fabs(score);
                found.n++;
            }
        }
    pnb__bound_work_reset(&work);
    pnb__bound_reset(&pass);
    pnb__exact_run_reset(&run);
    pnb__exact_reset(&scan);
    return found;
}

/* Items of one large number and others that are rounded to 0, queries along what is lost, once and
 * once more against it so that their centre is 0: the inner product of what rounding took is all of
 * its bound, and the distance the least that the bound allows. */
static void test_rows_that_use_all(void **state)
{
    (void)state;
    enum { N = 34, DIM = 4096 };
    static const pnb_isa isas[] = {PNB_ISA_EMULATED, PNB_ISA_AVX512_BF16};
    gaussians q = random_gaussians(N, DIM, -3, 0, 1), x = random_gaussians(3, DIM, -3, 0, 2);
    for (size_t i = 0; i < N; i++)
        for (size_t d = 0; d < DIM; d++)
            q.mean[i * DIM + d] = d == 0 ? 0.0f : i % 2 ? -0.49f : 0.49f;
    for (size_t i = 0; i < 3; i++)
        for (size_t d = 0; d < DIM; d++)
            x.mean[i * DIM + d] = d == 0 ? 127.0f : 0.49f;
    q.view.log_var = x.view.log_var = NULL;
    for (size_t c = 0; c < 8; c++) {
        pnb_search_opts o = pnb_search_opts_default();
        pnb_ctx *ctx = context(isas[c % 2]);
        o.measure = c < 4 ? PNB_MEASURE_AVG_L2 : PNB_MEASURE_MATCH_PROB;
        o.measure_opts.n_samples = 2;
        o.measure_opts.match_a = 0.05; /* probabilities of 0.2, at distances of 127 */
        if (ctx != NULL) {
            looked found = look(ctx, &o, &q.view, &x.view, c / 2 % 2);
            assert_int_equal(found.n, 3 * N);
            if (!(found.least <= 0.005))
                fail_msg("%zu: the nearest score is %.4f of itself from its bound", c, found.least);
        }
        pnb_ctx_free(ctx);
    }
    free_gaussians(&q);
    free_gaussians(&x);
}

static void test_bounds(void **state)
{
    (void)state;
    static const double as[] = {0, 0.1, 5, 500};
    for (int kind = 0; kind < N_KINDS; kind++)
        for (size_t c = 0; c < 5; c++) {
            gaussians q = random_gaussians(35, 45, -7, -2, 1),
                      x = random_gaussians(40, 45, -7, -2, 2);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_ctx *ctx = context(c % 2 ? PNB_ISA_AVX512_BF16 : PNB_ISA_EMULATED);
            shape_rows(&q, 35, 45, kind, true);
            shape_rows(&x, 40, 45, kind, false);
            o.measure = c == 4 ? PNB_MEASURE_AVG_L2 : PNB_MEASURE_MATCH_PROB;
            o.measure_opts.match_a = as[c % 4];
            for (int reaches = 0; reaches < 2 && ctx != NULL; reaches++)
                assert_int_equal(look(ctx, &o, &q.view, &x.view, reaches).n, 35 * 40);
            pnb_ctx_free(ctx);
            free_gaussians(&q);
            free_gaussians(&x);
        }
}

/* Of seven samples a row, spread as PCME's are, the closer bound is less than two thirds as
 * wide. */
static void test_closer(void **state)
{
    (void)state;
    gaussians q = random_gaussians(33, 256, -8, -8, 1), x = random_gaussians(40, 256, -8, -8, 2);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_ctx *ctx = context(PNB_ISA_EMULATED);
    o.measure = PNB_MEASURE_MATCH_PROB;
    o.measure_opts.n_samples = 7;
    o.measure_opts.match_a = 5;
    o.measure_opts.match_b = 2;
    double wide = look(ctx, &o, &q.view, &x.view, false).apart;
    double close = look(ctx, &o, &q.view, &x.view, true).apart;
    if (!(close < 2.0 / 3.0 * wide))
        fail_msg("%.3g is not less than two thirds of %.3g", close, wide);
    pnb_ctx_free(ctx);
    free_gaussians(&q);
    free_gaussians(&x);
}

/* ---- when ---- */

/* After a window of which too many pairs were left, a pause, each twice as long as the last; a
 * window that gained makes the next one short again. */
static void test_pauses(void **state)
{
    (void)state;
    enum { WINDOW = 1 << 14, BLOCK = 1 << 11, EACH = WINDOW / BLOCK };
    pnb__byte_work work = {.pause = WINDOW};
    for (size_t round = 0; round < 9; round++) {
        for (size_t b = 0; b < EACH; b++) {
            assert_true(pnb__bytes_gain(&work, BLOCK));
            work.n_taken += BLOCK / 5;
        }
        size_t pause = 1;
        while (!pnb__bytes_gain(&work, BLOCK))
            pause++;
        work.n_seen = 0; /* the block that was looked at */
        assert_int_equal(pause, 1 + PNB_MIN((size_t)EACH << round, (size_t)EACH << 7) + 1);
    }
    for (size_t b = 0; b < 3 * EACH; b++) {
        assert_true(pnb__bytes_gain(&work, BLOCK));
        work.n_taken += BLOCK / 7;
    }
    assert_int_equal(work.pause, WINDOW);
}

/* Who takes them: samples of some width, on such a machine, where farther is not better. */
static void test_where(void **state)
{
    (void)state;
    gaussians g = random_gaussians(40, 40, -6, -4, 1), narrow = random_gaussians(40, 31, -6, -4, 1);
    for (size_t c = 0; c < 6; c++) {
        pnb_ctx *ctx = context(c == 1 ? PNB_ISA_GENERIC : PNB_ISA_EMULATED);
        const pnb_gaussians *rows = c == 2 ? &narrow.view : &g.view;
        pnb_search_opts o = pnb_search_opts_default();
        pnb__exact scan;
        pnb__exact_run run;
        o.measure = c == 3 ? PNB_MEASURE_CSD : PNB_MEASURE_MATCH_PROB;
        o.measure_opts.match_a = c == 4 ? -1 : 5;
        assert_ok(pnb__exact_init(&scan, ctx, rows, &o, err));
        assert_ok(pnb__exact_run_init(&run, &scan, ctx, rows, err));
        run.bounds_by_bytes = c != 5;
        assert_int_equal(pnb__sample_bytes_take(&run), c == 0);
        pnb__exact_run_reset(&run);
        pnb__exact_reset(&scan);
        pnb_ctx_free(ctx);
    }
    free_gaussians(&g);
    free_gaussians(&narrow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_hits),
        cmocka_unit_test(test_among),
        cmocka_unit_test(test_rows_that_use_all),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_closer),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
