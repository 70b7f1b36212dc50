/* Candidates come back ranked by the measure, with the scores of an exact search; places without
 * one stay empty. */
#include "tests/index/heaps.h"

#include "index/rescore.h"

static void as_exact(void **state)
{
    (void)state;
    made *m = make();
    pnb_search_opts opts = pnb_search_opts_default();
    const pnb__rescoring job = {&m->queries, &m->rows, &opts, K};
    pnb_hits truth, near, found = {0};
    pnb_error err = PNB_ERROR_INIT;
    opts.k = 3 * K;
    assert_ok(pnb_search(NULL, &m->queries, &m->rows, &opts, &truth, &err), &err);
    opts.k = 3 * K;
    assert_ok(pnb_search(NULL, &m->queries, &m->rows, &opts, &near, &err), &err);
    for (size_t q = 0; q < QUERIES; q++) /* turned round */
        for (size_t i = 0; i < 3 * K; i++)
            near.index[q * 3 * K + i] = truth.index[(q + 1) * 3 * K - 1 - i];
    for (size_t i = 0; i < 3 * K; i++) /* one has two candidates */
        near.index[i] = i < 2 ? near.index[i] : -1;
    assert_ok(pnb__rescore(NULL, &job, &near, &found, &err), &err);
    for (size_t q = 1; q < QUERIES; q++)
        for (size_t i = 0; i < K; i++) {
            assert_true(found.index[q * K + i] == truth.index[q * 3 * K + i]);
            assert_true(fabs(found.score[q * K + i] - truth.score[q * 3 * K + i]) < 1e-10);
        }
    assert_true(found.index[0] == truth.index[3 * K - 2] &&
                found.index[1] == truth.index[3 * K - 1]);
    assert_true(found.index[2] == -1 && found.score[2] == -INFINITY);
    pnb_hits_reset(&truth);
    pnb_hits_reset(&near);
    pnb_hits_reset(&found);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
