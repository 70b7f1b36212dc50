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
    const struct CMUnitTest tests[] = {cmocka_unit_test(effort_for_recall),
                                       cmocka_unit_test(few_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
