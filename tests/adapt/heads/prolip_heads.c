/* ProLIP's pairwise loss on heads against its formula in doubles. */
#include "tests/adapt/heads/reference.h"

enum { N = 12 };

/* (1/B) sum -log s(y (a (m_i m_t - tr_i/2 - tr_t/2) + b)); the inclusion's weight is 1e-7 in the
 * published recipe, below what is compared here. */
static void formulas(void **state)
{
    static double mean[2][N][64], log_var[2][N][64], trace[2][N];
    heads_world w = make_single_world(N, 3);
    pnb_adapter *a = NULL;
    pnb_adapter_opts o = pnb_adapter_opts_default();
    char *dir = scratch_create();
    double wanted = 0;
    o.vib = 0.2;
    o.recipe = PNB_ADAPT_RECIPE_PUBLISHED;
    pnb_safetensors *file = still(*state, "prolip", &w, o, dir, &a);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < N; i++) {
            head_row(file, &w, s, i, true, "log_var", mean[s][i], log_var[s][i]);
            trace[s][i] = 0;
            for (size_t d = 0; d < HEADS_DIM; d++)
                trace[s][i] += exp(log_var[s][i][d]);
            wanted += 0.2 * divergence(mean[s][i], log_var[s][i], HEADS_DIM) / N;
        }
    double scale = exp(scalar_of(file, "log_scale")), bias = scalar_of(file, "shift");
    assert_true(fabs(scale - 10) < 5 && fabs(bias + log(N)) < 1); /* 10 and -log B, and moved */
    for (size_t i = 0; i < N; i++)
        for (size_t t = 0; t < N; t++) {
            double csd = dot(mean[0][i], mean[1][t]) - 0.5 * (trace[0][i] + trace[1][t]);
            double z = scale * csd + bias;
            wanted += softplus(i == t ? -z : z) / N;
        }
    require_loss(a, wanted, "prolip");
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
