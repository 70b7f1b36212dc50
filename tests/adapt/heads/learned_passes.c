/* Draws of a step in passes: each pass of each step has its own, and the same whoever makes it. */
#include "tests/adapt/heads/world.h"

#include "adapt/heads/learned.h"

enum { N_PASSES = 3, PASS_ROWS = 2, N_ROWS = N_PASSES * PASS_ROWS };

/* What the heads make of a step, all parts of both sides behind each other. */
static float *made_by(pnb__learned_passes *p, float *const x[PNB_N_ADAPTER_SIDES], uint64_t step,
                      size_t *n)
{
    pnb_error err = PNB_ERROR_INIT;
    float *made = malloc(1 << 20);
    assert_non_null(made);
    assert_ok(pnb__learned_passes_run(p, x, step, &err), &err);
    *n = 0;
    for (size_t i = 0; i < PNB_COUNT(p->part); i++) {
        size_t width = p->part[i].width;
        if (width > 0)
            memcpy(made + *n, p->part[i].value, N_ROWS * width * sizeof *made);
        *n += N_ROWS * width;
    }
    return made;
}

/* Rows are all alike, so that only draws can tell what is made of them apart. */
static void each_pass_of_each_step_has_its_draws(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(32, 1, 3);
    const pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = short_opts();
    pnb_error err = PNB_ERROR_INIT;
    pnb__exchange *exchange = NULL;
    pnb__learned_passes p;
    float *x[PNB_N_ADAPTER_SIDES];
    size_t n;
    o.steps = 2;
    o.dropout = 0.5;
    pnb_adapter *a = fit_ok(ctx, "probvlm", &data, &o);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        const pnb_embeddings *set = s == PNB_ADAPTER_IMAGES ? w.images : w.texts;
        x[s] = malloc(N_ROWS * HEADS_DIM * sizeof *x[s]);
        assert_non_null(x[s]);
        for (size_t i = 0; i < N_ROWS; i++)
            memcpy(x[s] + i * HEADS_DIM, set->mean, HEADS_DIM * sizeof *x[s]);
    }
    assert_ok(pnb__exchange_create(&exchange, NULL, &err), &err);
    assert_ok(pnb__learned_passes_init(&p, a, N_ROWS, N_PASSES, exchange, &err), &err);
    float *first = made_by(&p, x, 0, &n), *again = made_by(&p, x, 0, &n);
    float *next = made_by(&p, x, 1, &n);
    assert_memory_equal(first, again, n * sizeof *first);
    assert_memory_not_equal(first, next, n * sizeof *first);
    for (size_t i = 0, at = 0; i < PNB_COUNT(p.part); at += N_ROWS * p.part[i++].width) {
        size_t of_pass = PASS_ROWS * p.part[i].width;
        for (size_t q = 1; q < N_PASSES && of_pass > 0; q++)
            assert_memory_not_equal(first + at, first + at + q * of_pass, of_pass * sizeof *first);
    }
    pnb__learned_passes_reset(&p);
    pnb__exchange_free(exchange);
    free(first);
    free(again);
    free(next);
    free(x[0]);
    free(x[1]);
    pnb_adapter_free(a);
    free_heads_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_pass_of_each_step_has_its_draws)};
    return cmocka_run_group_tests(tests, setup_ctx, teardown_ctx);
}
