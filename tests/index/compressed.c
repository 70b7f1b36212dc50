/* A scan of one or two bytes a number finds what an exact search finds, with its scores, or says
 * that it may not have; filters leave k hits; no number of threads shows in what is found. */
#include "tests/io/scratch.h"

#include <math.h>

#include "index/index.h"
#include "penumbra/search.h"

enum { N = 3000, DIM = 24, QUERIES = 70 /* more than a pass */, K = 7 };

typedef struct made {
    float *mean, *log_var, *query;
    pnb_gaussians rows, queries;
} made;

static made make(size_t n)
{
    made m = {malloc(n * DIM * sizeof(float)),
              malloc(n * DIM * sizeof(float)),
              malloc(QUERIES * DIM * sizeof(float)),
              {0},
              {0}};
    pnb__rng rng;
    pnb__rng_init(&rng, 11, n);
    for (size_t i = 0; i < n * DIM; i++) {
        m.mean[i] = (float)pnb__rng_normal(&rng) / sqrtf(DIM);
        m.log_var[i] = (float)pnb__rng_normal(&rng) - 5;
    }
    for (size_t i = 0; i < QUERIES * DIM; i++)
        m.query[i] = (float)pnb__rng_normal(&rng) / sqrtf(DIM);
    memcpy(m.query, m.mean, DIM * sizeof *m.query); /* the best comes first */
    m.rows = (pnb_gaussians){.n = n, .dim = DIM, .mean = m.mean, .log_var = m.log_var};
    m.queries = (pnb_gaussians){.n = QUERIES, .dim = DIM, .mean = m.query};
    return m;
}

static void drop(made *m)
{
    free(m->mean);
    free(m->log_var);
    free(m->query);
}

/* Sums in another order: last bits differ. */
static bool are_near(const double *a, const double *b)
{
    for (size_t i = 0; i < K; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-10 * (1 + fabs(a[i]))) && a[i] > -INFINITY)
            return false;
    return true;
}

static void compare(const made *m, pnb_search_opts opts, const unsigned char *only)
{
    pnb_index *exact = NULL, *other = NULL;
    pnb_hits truth, found;
    pnb_error err = PNB_ERROR_INIT;
    const pnb__among among = {&m->queries, K, only};
    size_t n_same = 0, n_sure_at_least;
    assert_ok(pnb_index_create(&other, NULL, &m->rows, &opts, &err), &err);
    opts.kind = PNB_INDEX_EXACT;
    assert_ok(pnb_index_create(&exact, NULL, &m->rows, &opts, &err), &err);
    assert_ok(pnb__index_search(exact, NULL, &among, &truth, &err), &err);
    assert_ok(pnb__index_search(other, NULL, &among, &found, &err), &err);
    assert_int_equal(truth.n_unsure, 0);
    for (size_t q = 0; q < QUERIES; q++)
        n_same += memcmp(truth.index + q * K, found.index + q * K, K * sizeof(int64_t)) == 0 &&
                  are_near(truth.score + q * K, found.score + q * K);
    n_sure_at_least = QUERIES - found.n_unsure;
    assert_true(n_same >= n_sure_at_least);
    assert_true(found.n_unsure < QUERIES / 2);
    assert_true(n_same >= QUERIES - 1);
    pnb_hits_reset(&truth);
    pnb_hits_reset(&found);
    pnb_index_free(exact);
    pnb_index_free(other);
}

static void as_exact(void **state)
{
    (void)state;
    static const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN};
    static const pnb_index_kind kinds[] = {PNB_INDEX_INT8, PNB_INDEX_BF16};
    made m = make(N);
    unsigned char *only = calloc(N, 1);
    for (size_t i = 0; i < N; i += 17)
        only[i] = 1;
    for (size_t i = 0; i < PNB_COUNT(measures); i++)
        for (size_t k = 0; k < PNB_COUNT(kinds); k++) {
            pnb_search_opts opts = pnb_search_opts_default();
            opts.measure = measures[i];
            opts.kind = kinds[k];
            compare(&m, opts, NULL);
            compare(&m, opts, only);
        }
    memset(only, 0, N);
    only[5] = only[99] = 1; /* fewer than k */
    pnb_search_opts opts = pnb_search_opts_default();
    opts.kind = PNB_INDEX_INT8;
    compare(&m, opts, only);
    free(only);
    drop(&m);
}

/* Points, concentrations on the sphere, and more rows than a block. */
static void other_rows(void **state)
{
    (void)state;
    made m = make(20000);
    pnb_search_opts opts = pnb_search_opts_default();
    opts.kind = PNB_INDEX_INT8;
    m.rows.log_var = NULL;
    compare(&m, opts, NULL);
    m.rows.kappa = m.log_var;
    for (size_t i = 0; i < m.rows.n; i++)
        m.log_var[i] = 40 + (float)(i % 7);
    for (size_t i = 0; i < m.rows.n + QUERIES; i++) {
        float *x = i < m.rows.n ? m.mean + i * DIM : m.query + (i - m.rows.n) * DIM, norm = 0;
        for (size_t d = 0; d < DIM; d++)
            norm += x[d] * x[d];
        for (size_t d = 0; d < DIM; d++)
            x[d] /= sqrtf(norm);
    }
    opts.measure = PNB_MEASURE_VMF;
    compare(&m, opts, NULL);
    drop(&m);
}

/* ---- threads ---- */

static pnb_hits found_with(const made *m, pnb_index_kind kind, pnb_isa isa, int n_threads)
{
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_ctx *ctx = NULL;
    pnb_index *index = NULL;
    pnb_hits hits = {0};
    pnb_error err = PNB_ERROR_INIT;
    ctx_opts.n_threads = n_threads;
    ctx_opts.isa = isa;
    opts.kind = kind;
    assert_ok(pnb_ctx_create(&ctx, &ctx_opts, &err), &err);
    assert_ok(pnb_index_create(&index, ctx, &m->rows, &opts, &err), &err);
    assert_ok(pnb_index_search(index, ctx, &m->queries, K, &hits, &err), &err);
    pnb_index_free(index);
    pnb_ctx_free(ctx);
    return hits;
}

static void assert_same_for_threads(const made *m, pnb_index_kind kind, pnb_isa isa)
{
    size_t n = QUERIES * K;
    pnb_hits one = found_with(m, kind, isa, 1);
    for (int t = 2; t <= 5; t++) {
        pnb_hits many = found_with(m, kind, isa, t);
        assert_memory_equal(one.index, many.index, n * sizeof *one.index);
        assert_memory_equal(one.score, many.score, n * sizeof *one.score);
        assert_int_equal(one.n_unsure, many.n_unsure);
        pnb_hits_reset(&many);
    }
    pnb_hits_reset(&one);
}

static void same_for_any_threads(void **state)
{
    (void)state;
    made m = make(20000);
    for (pnb_index_kind kind = PNB_INDEX_INT8; kind <= PNB_INDEX_BF16; kind++) {
        assert_same_for_threads(&m, kind, PNB_ISA_AUTO);
        assert_same_for_threads(&m, kind, PNB_ISA_GENERIC);
    }
    drop(&m);
}

/* More rows than candidates share each score: the first of them are hits, whoever met them first.
 */
static void rows_that_are_alike(void **state)
{
    (void)state;
    made m = make(20000);
    for (size_t i = 50; i < m.rows.n; i++) {
        memcpy(m.mean + i * DIM, m.mean + i % 50 * DIM, DIM * sizeof *m.mean);
        memcpy(m.log_var + i * DIM, m.log_var + i % 50 * DIM, DIM * sizeof *m.log_var);
    }
    for (int t = 1; t <= 3; t++) {
        pnb_hits hits = found_with(&m, PNB_INDEX_INT8, PNB_ISA_AUTO, t);
        for (size_t q = 0; q < QUERIES; q++)
            for (size_t i = 0; i < K; i++)
                assert_int_equal(hits.index[q * K + i], hits.index[q * K] % 50 + 50 * (int64_t)i);
        pnb_hits_reset(&hits);
    }
    drop(&m);
}

static void what_is_refused(void **state)
{
    (void)state;
    made m = make(100);
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_index *index = NULL;
    pnb_error err = PNB_ERROR_INIT;
    opts.kind = PNB_INDEX_INT8;
    opts.measure = PNB_MEASURE_KL;
    assert_failed(pnb_index_create(&index, NULL, &m.rows, &opts, &err), &err, PNB_UNSUPPORTED,
                  "measure kl");
    pnb_error_reset(&err);
    opts.measure = PNB_MEASURE_CSD;
    m.mean[50 * DIM] = NAN;
    assert_failed(pnb_index_create(&index, NULL, &m.rows, &opts, &err), &err, PNB_NUMERIC,
                  "item 50");
    m.mean[50 * DIM] = 0;
    pnb_error_reset(&err);
    assert_ok(pnb_index_create(&index, NULL, &m.rows, &opts, &err), &err);
    assert_failed(pnb_index_save(index, NULL, "/nowhere/x", &err), &err, PNB_UNSUPPORTED,
                  "no file of its own");
    pnb_error_reset(&err);
    m.query[0] = INFINITY;
    pnb_hits hits;
    assert_failed(pnb_index_search(index, NULL, &m.queries, 3, &hits, &err), &err, PNB_NUMERIC,
                  "query 0");
    assert_null(hits.index);
    pnb_error_reset(&err);
    pnb_pairs pairs;
    assert_failed(pnb_index_self_join(index, NULL, NULL, &pairs, &err), &err, PNB_UNSUPPORTED,
                  "an exact one can");
    pnb_index_about about;
    pnb_index_describe(index, &about);
    assert_string_equal(about.kind, "int8");
    assert_true(about.bytes >= 100 * DIM && about.bytes < 100 * DIM * 4);
    pnb_index_free(index);
    drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_exact), cmocka_unit_test(other_rows),
                                       cmocka_unit_test(same_for_any_threads),
                                       cmocka_unit_test(rows_that_are_alike),
                                       cmocka_unit_test(what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
