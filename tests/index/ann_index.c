/* Graphs and cells of FAISS: nearly what an exact search finds, and k hits through any filter. */
#include "tests/index/heaps.h"

/* Share of the true hits; each found one has its own score. */
static double recall(const pnb_index *index, const pnb_index *exact, const made *m,
                     const unsigned char *only)
{
    pnb_hits truth = search(exact, m, only), found = search(index, m, only);
    size_t n_right = 0, n = 0;
    for (size_t i = 0; i < QUERIES * K; i++) {
        assert_int_equal(truth.index[i] < 0, found.index[i] < 0); /* k come where k exist */
        if (found.index[i] < 0)
            continue;
        assert_true(only == NULL || only[found.index[i]] != 0);
        n++;
        n_right += fabs(found.score[i] - truth.score[i]) <= 1e-10;
    }
    pnb_hits_reset(&truth);
    pnb_hits_reset(&found);
    return (double)n_right / (double)n;
}

static void near_exact(void **state)
{
    (void)state;
    made *m = make();
    pnb_index *exact = make_index(m, PNB_INDEX_EXACT);
    unsigned char *only = calloc(N, 1);
    for (pnb_index_kind kind = PNB_INDEX_HNSW; kind <= PNB_INDEX_IVF; kind++) {
        pnb_index *index = make_index(m, kind);
        pnb_index_about about;
        pnb_index_describe(index, &about);
        assert_true(about.recall >= 0.99 && about.n_sample > 100 && about.effort > 0);
        assert_true(about.bytes > N * DIM * sizeof(float));
        assert_true(recall(index, exact, m, NULL) >= 0.9);
        pnb_hits hits = search(index, m, NULL);
        assert_int_equal(hits.n_unsure, QUERIES);
        pnb_hits_reset(&hits);
        memset(only, 1, N);
        for (size_t i = 0; i < N; i += 5)
            only[i] = 0;
        assert_true(recall(index, exact, m, only) >= 0.9);
        memset(only, 0, N); /* so few that each is looked at; fewer than k */
        for (size_t i = 0; i < N; i += 50)
            only[i] = 1;
        assert_true(recall(index, exact, m, only) >= 1.0);
        memset(only, 0, N);
        only[3] = only[77] = 1;
        assert_true(recall(index, exact, m, only) >= 1.0);
        pnb_index_free(index);
    }
    free(only);
    pnb_index_free(exact);
    free(m);
}

static void what_is_refused(void **state)
{
    (void)state;
    made *m = make();
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_index *index = NULL;
    pnb_error err = PNB_ERROR_INIT;
    opts.kind = PNB_INDEX_HNSW;
    opts.measure = PNB_MEASURE_W2;
    assert_failed(pnb_index_create(&index, NULL, &m->rows, &opts, &err), &err, PNB_UNSUPPORTED,
                  "measure w2");
    pnb_error_reset(&err);
    opts.measure = PNB_MEASURE_CSD;
    opts.recall = 1.5;
    assert_failed(pnb_index_create(&index, NULL, &m->rows, &opts, &err), &err, PNB_ARG, "recall");
    pnb_error_reset(&err);
    opts.recall = 0.9;
    m->mean[7] = NAN;
    assert_failed(pnb_index_create(&index, NULL, &m->rows, &opts, &err), &err, PNB_NUMERIC,
                  "not finite");
    free(m);
}

int main(void)
{
    if (pnb__faiss_version() == NULL)
        return without_faiss();
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_exact),
                                       cmocka_unit_test(what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
