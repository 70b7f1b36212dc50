/* PFE's mutual likelihood and its variances against their formulas in doubles. */
#include "tests/adapt/heads/reference.h"

enum { N = 12 };

static void formulas(void **state)
{
    heads_world w = make_single_world(N, 3);
    pnb_adapter *a = NULL;
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char *dir = scratch_create();
    double row[2][64], var[2][64], wanted = 0;
    pnb_safetensors *file = still(*state, "pfe", &w, pnb_adapter_opts_default(), dir, &a);
    assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, w.texts, &err), &err);
    for (size_t i = 0; i < N; i++) {
        for (int s = 0; s < 2; s++)
            head_row(file, &w, s, i, false, "spread", row[s], var[s]);
        for (size_t d = 0; d < HEADS_DIM; d++) {
            double v = softplus(var[0][d]) + softplus(var[1][d]), away = row[0][d] - row[1][d];
            wanted += (away * away / v + log(v)) / N;
            require_near(out->log_var[(N + i) * HEADS_DIM + d], log(softplus(var[1][d])), 1e-4,
                         "log_var");
            assert_true(out->mean[(N + i) * HEADS_DIM + d] ==
                        w.texts->mean[(N + i) * HEADS_DIM + d]);
        }
    }
    require_loss(a, wanted, "pfe");
    assert_string_equal(out->info.measure, "mean");
    pnb_embeddings_free(out);
    pnb_safetensors_free(file);
    pnb_adapter_free(a);
    scratch_remove(dir);
    free_heads_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formulas)};
    return cmocka_run_group_tests(tests, heads_setup, heads_teardown);
}
