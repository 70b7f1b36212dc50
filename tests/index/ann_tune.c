/* The effort that is chosen grows with the recall that is wanted, and what is told was measured. */
#include "tests/index/heaps.h"

static pnb_index_about describe(const made *m, pnb_index_kind kind, double recall)
{
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_index *index = NULL;
    pnb_index_about about;
    pnb_error err = PNB_ERROR_INIT;
    opts.kind = kind;
    opts.recall = recall;
    assert_ok(pnb_index_create(&index, NULL, &m->rows, &opts, &err), &err);
    pnb_index_describe(index, &about);
    pnb_index_free(index);
    return about;
}

static void effort_for_recall(void **state)
{
    (void)state;
    made *m = make();
    /* rows anywhere: cells are of little help */
    pnb__rng rng;
    pnb__rng_init(&rng, 4, 0);
    for (size_t i = 0; i < N * DIM; i++)
        m->mean[i] = (float)pnb__rng_normal(&rng) / 4;
    const pnb_index_about little = describe(m, PNB_INDEX_IVF, 0.5);
    const pnb_index_about much = describe(m, PNB_INDEX_IVF, 0.999);
    assert_true(little.recall >= 0.5 && much.recall >= 0.999 && much.recall <= 1);
    assert_true(much.effort > little.effort);
    assert_int_equal(little.n_sample, 256);
    free(m);
}

/* Share of the ten nearest of fresh queries, drawn as the rows are, that an index for `wanted`
 * finds. */
static double recall_of_fresh(made *m, double wanted, uint64_t seed)
{
    enum { FRESH = 300, HITS = 10 };
    pnb_error err = PNB_ERROR_INIT;
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_index *index = NULL;
    pnb_hits found, exact;
    pnb__rng rng;
    float *queries = malloc(FRESH * DIM * sizeof *queries);
    size_t n_found = 0;
    assert_non_null(queries);
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < N * DIM; i++)
        m->mean[i] = (float)pnb__rng_normal(&rng) / 4;
    for (size_t i = 0; i < (size_t)FRESH * DIM; i++)
        queries[i] = (float)pnb__rng_normal(&rng) / 4;
    const pnb_gaussians asked = {.n = FRESH, .dim = DIM, .mean = queries};
    opts.k = HITS;
    assert_ok(pnb_search(NULL, &asked, &m->rows, &opts, &exact, &err), &err);
    opts.kind = PNB_INDEX_IVF;
    opts.recall = wanted;
    assert_ok(pnb_index_create(&index, NULL, &m->rows, &opts, &err), &err);
    assert_ok(pnb_index_search(index, NULL, &asked, HITS, &found, &err), &err);
    for (size_t q = 0; q < FRESH; q++)
        for (size_t i = 0; i < HITS; i++)
            for (size_t j = 0; j < HITS; j++)
                n_found += exact.index[q * HITS + i] == found.index[q * HITS + j];
    pnb_hits_reset(&exact);
    pnb_hits_reset(&found);
    pnb_index_free(index);
    free(queries);
    return (double)n_found / (FRESH * HITS);
}

/* What was asked for holds for other queries than those it was measured on, nearly every time. */
static void recall_of_other_queries(void **state)
{
    (void)state;
    enum { SEEDS = 40 };
    made *m = make();
    int n_kept = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        n_kept += recall_of_fresh(m, 0.8, seed) >= 0.8;
    print_message("%d of %d indexes keep it\n", n_kept, SEEDS);
    assert_true(n_kept >= 34); /* 36; by the mean alone 31 */
    free(m);
}

/* Of rows that are there hundreds of times any copy is as near as another. */
static void copies_are_found(void **state)
{
    (void)state;
    made *m = make();
    for (size_t i = 0; i < N; i++) {
        memcpy(m->mean + i * DIM, m->mean + i % 5 * DIM, DIM * sizeof *m->mean);
        memcpy(m->log_var + i * DIM, m->log_var + i % 5 * DIM, DIM * sizeof *m->log_var);
    }
    for (pnb_index_kind kind = PNB_INDEX_HNSW; kind <= PNB_INDEX_IVF; kind++) {
        const pnb_index_about about = describe(m, kind, 0.99);
        assert_int_equal(about.n_sample, 256);
        assert_true(about.recall >= 1);
        assert_true(about.effort <= 64); /* by numbers of rows no effort would do */
    }
    free(m);
}

static void few_rows(void **state)
{
    (void)state;
    made *m = make();
    m->rows.n = 3;
    for (pnb_index_kind kind = PNB_INDEX_HNSW; kind <= PNB_INDEX_IVF; kind++) {
        const pnb_index_about about = describe(m, kind, 0.99);
        assert_true(about.recall >= 1 && about.n_sample == 0); /* each is looked at */
    }
    free(m);
}

int main(void)
{
    if (pnb__faiss_version() == NULL)
        return without_faiss();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effort_for_recall), cmocka_unit_test(recall_of_other_queries),
        cmocka_unit_test(copies_are_found), cmocka_unit_test(few_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
