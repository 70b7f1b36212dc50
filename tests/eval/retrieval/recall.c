/* Retrieval both ways: figures known by hand, the golden case and bad input. Ranks are ranks.c's
 * and those of its neighbours. */
#include "penumbra/retrieval.h"
#include "tests/eval/expected.h"

/* A perfect and a reversed retrieval, both ways, with hand-known figures. */
static void both_ways(void **state)
{
    (void)state;
    enum { N = 12 };
    float mean[N * N] = {0};
    pnb_truth *truth = NULL;
    pnb_retrieval r;
    pnb_ranks forward, backward;
    for (size_t i = 0; i < N; i++)
        mean[i * N + i] = 1.0f;
    pnb_gaussians g = {.n = N, .dim = N, .mean = mean};
    const size_t k[] = {1, 3, 50};
    assert_ok(pnb_truth_create_aligned(&truth, N, err));
    pnb_retrieval_job job = {.a = &g, .b = &g, .truth = truth};
    assert_ok(pnb_retrieval_compute(NULL, &job, &r, &forward, &backward, err));
    assert_int_equal(r.n_k, 3);
    assert_true(r.rsum == 6.0 && r.forward.median_rank == 1.0 && r.backward.r_precision == 1.0);
    assert_true(r.k[0] == 1 && r.k[1] == 5 && r.k[2] == 10);
    for (size_t i = 0; i < N; i++)
        assert_true(forward.best_rank[i] == 1 && backward.top1[i] == (int64_t)i);
    pnb_ranks_reset(&forward);
    pnb_ranks_reset(&backward);
    pnb_truth_free(truth);
    /* query i matches item i+1: everything but its own item ties at cosine 0, lower index first */
    int64_t pairs[2 * N];
    for (size_t i = 0; i < N; i++) {
        pairs[2 * i] = (int64_t)i;
        pairs[2 * i + 1] = (int64_t)((i + 1) % N);
    }
    assert_ok(pnb_truth_create_pairs(&truth, N, N, pairs, N, err));
    job = (pnb_retrieval_job){.a = &g, .b = &g, .truth = truth, .k = k, .n_k = 3};
    assert_ok(pnb_retrieval_compute(NULL, &job, &r, NULL, NULL, err));
    /* forward ranks: item i+1 is at i+2 for i < N-1; item 0 at 2 for the last query */
    assert_near(r.forward.recall[0], 0.0, 0, 0);
    assert_near(r.forward.recall[1], 3.0 / N, 1e-15, 0);
    assert_near(r.forward.recall[2], 1.0, 0, 0);
    assert_near(r.forward.mean_rank, (2.0 + 77.0) / N, 1e-14, 0);
    pnb_truth_free(truth);
}

static void golden_recall(void **state)
{
    (void)state;
    enum { I = 15, T = 75, D = 8 };
    pnb_safetensors *file = open_case("metrics/recall");
    json_t *want = load_expected("metrics/recall");
    double *zi = case_values(file, "z_image", NULL), *zt = case_values(file, "z_text", NULL);
    double *i2t = case_values(file, "i2t_top10", NULL), *t2i = case_values(file, "t2i_top10", NULL);
    float *fi = to_floats(zi, I * D), *ft = to_floats(zt, T * D);
    pnb_gaussians images = {.n = I, .dim = D, .mean = fi}, texts = {.n = T, .dim = D, .mean = ft};
    int64_t pairs[2 * T];
    for (size_t t = 0; t < T; t++) {
        pairs[2 * t] = (int64_t)(t / 5);
        pairs[2 * t + 1] = (int64_t)t;
    }
    pnb_truth *truth = NULL;
    pnb_retrieval r;
    pnb_hits hits;
    pnb_search_opts o = pnb_search_opts_default();
    o.measure = PNB_MEASURE_MEAN;
    assert_ok(pnb_truth_create_pairs(&truth, I, T, pairs, T, err));
    pnb_retrieval_job job = {.a = &images, .b = &texts, .truth = truth, .opts = &o};
    assert_ok(pnb_retrieval_compute(NULL, &job, &r, NULL, NULL, err));
    for (size_t i = 0; i < 3; i++) {
        assert_near(r.forward.recall[i], element(want, "i2t", i), 1e-12, 1e-12);
        assert_near(r.backward.recall[i], element(want, "t2i_exact", i), 1e-12, 1e-12);
    }
    assert_ok(pnb_search(NULL, &images, &texts, &o, &hits, err));
    for (size_t i = 0; i < I * 10; i++)
        assert_int_equal(hits.index[i], (int64_t)i2t[i]);
    pnb_hits_reset(&hits);
    assert_ok(pnb_search(NULL, &texts, &images, &o, &hits, err));
    for (size_t i = 0; i < T * 10; i++)
        assert_int_equal(hits.index[i], (int64_t)t2i[i]);
    pnb_hits_reset(&hits);
    double *all[] = {zi, zt, i2t, t2i};
    for (size_t i = 0; i < 4; i++)
        free(all[i]);
    free(fi);
    free(ft);
    pnb_truth_free(truth);
    json_decref(want);
    pnb_safetensors_free(file);
}

static void bad_input(void **state)
{
    (void)state;
    gaussians a = random_gaussians(4, 5, -3, 0, 6), b = random_gaussians(6, 5, -3, 0, 7);
    const int64_t pair[] = {1, 2};
    double score[24] = {0};
    size_t zero[] = {1, 0}, many[PNB_MAX_RECALLS + 1] = {1};
    pnb_truth *truth = NULL;
    pnb_ranks ranks;
    pnb_direction d;
    pnb_retrieval r;
    assert_ok(pnb_truth_create_pairs(&truth, 4, 6, pair, 1, err));
    assert_fails(pnb_ranks_compute(NULL, &b.view, &a.view, truth, NULL, &ranks, err), PNB_SHAPE,
                 "6 and 4 rows");
    score[13] = NAN;
    assert_fails(pnb_ranks_from_scores(score, truth, &ranks, err), PNB_NUMERIC,
                 "query 2 and item 1");
    score[13] = 0;
    assert_ok(pnb_ranks_from_scores(score, truth, &ranks, err));
    assert_fails(pnb_direction_summarise(&ranks, zero, 2, &d, err), PNB_ARG, "cut-off 1");
    assert_fails(pnb_direction_summarise(&ranks, many, PNB_MAX_RECALLS + 1, &d, err), PNB_ARG,
                 "cut-offs");
    assert_ok(pnb_direction_summarise(&ranks, zero, 1, &d, err));
    assert_true(d.n_queries == 1 && d.n_skipped == 3 && d.mean_rank == 3.0);
    for (size_t i = 0; i < 4; i++)
        ranks.best_rank[i] = 0;
    assert_fails(pnb_direction_summarise(&ranks, zero, 1, &d, err), PNB_ARG, "none of the 4");
    pnb_ranks_reset(&ranks);
    b.mean[4 * 5] = NAN;
    pnb_retrieval_job job = {.a = &a.view, .b = &b.view, .truth = truth};
    assert_fails(pnb_retrieval_compute(NULL, &job, &r, NULL, NULL, err), PNB_NUMERIC, "item 4");
    pnb_truth_free(truth);
    free_gaussians(&a);
    free_gaussians(&b);
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    gaussians a = random_gaussians(4, 5, -3, 0, 6), b = random_gaussians(4, 5, -3, 0, 7);
    pnb_truth *truth = NULL;
    pnb_status status = PNB_NOMEM;
    assert_ok(pnb_truth_create_aligned(&truth, 4, err));
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_retrieval r;
        pnb_ranks forward = {0}, backward = {0};
        pnb_retrieval_job job = {.a = &a.view, .b = &b.view, .truth = truth};
        pnb__alloc_fail_after(n);
        status = pnb_retrieval_compute(NULL, &job, &r, &forward, &backward, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && forward.best_rank == NULL));
        assert_true(n < 200);
        pnb_ranks_reset(&forward);
        pnb_ranks_reset(&backward);
    }
    pnb_truth_free(truth);
    free_gaussians(&a);
    free_gaussians(&b);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(golden_recall),
        cmocka_unit_test(bad_input),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
