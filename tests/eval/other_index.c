/* What is built on searches does not know which index answers: duplicates, outliers and ways
 * through a hierarchy come out the same over another kind of index (tests/index/brute_index.h) as
 * over the exact one. */
#include "penumbra/duplicates.h"
#include "penumbra/outliers.h"
#include "penumbra/traversal.h"
#include "tests/index/brute_index.h"

enum { N = 60, DIM = 5 };

static pnb_ctx *contexts[2]; /* exact, brute */

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        contexts[i] = brute_context(i == 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        pnb_ctx_free(contexts[i]);
    assert_int_equal(brute.n_made, brute.n_freed);
    return 0;
}

static void test_duplicates(void **state)
{
    (void)state;
    gaussians g = random_gaussians(N, DIM, -6, -5, 3);
    pnb_duplicates_opts o = pnb_duplicates_opts_default();
    pnb_duplicates d[2];
    memcpy(g.mean + 7 * DIM, g.mean + 3 * DIM, DIM * sizeof(float)); /* a copy of another spread */
    o.min_score = 0.7;
    int before = brute.n_range;
    for (int i = 0; i < 2; i++)
        assert_ok(pnb_duplicates_find(contexts[i], &g.view, NULL, &o, &d[i], err));
    assert_true(brute.n_range > before);
    assert_true(d[0].n_pairs > 0);
    assert_int_equal(d[0].n_pairs, d[1].n_pairs);
    for (size_t p = 0; p < d[0].n_pairs; p++) {
        assert_int_equal(d[0].pair[p].a, d[1].pair[p].a);
        assert_int_equal(d[0].pair[p].b, d[1].pair[p].b);
    }
    for (int i = 0; i < 2; i++)
        pnb_duplicates_reset(&d[i]);
    free_gaussians(&g);
}

static void test_outliers(void **state)
{
    (void)state;
    gaussians g = random_gaussians(N, DIM, -6, -2, 4);
    pnb_outliers_opts o = pnb_outliers_opts_default();
    pnb_outliers out[2];
    int before = brute.n_nearest;
    o.k = 4;
    for (int i = 0; i < 2; i++)
        assert_ok(pnb_outliers_rank(contexts[i], &g.view, NULL, &o, &out[i], err));
    assert_true(brute.n_nearest > before);
    assert_int_equal(out[0].n, out[1].n);
    for (size_t i = 0; i < out[0].n; i++)
        assert_int_equal(out[0].order[i], out[1].order[i]);
    for (int i = 0; i < 2; i++)
        pnb_outliers_reset(&out[i]);
    free_gaussians(&g);
}

static void test_traversal(void **state)
{
    (void)state;
    gaussians images = random_gaussians(8, DIM, -6, -4, 5),
              texts = random_gaussians(N, DIM, -5, -2, 6),
              null_text = random_gaussians(1, DIM, -2, -1, 7);
    pnb_traverse_opts o = pnb_traverse_opts_default();
    pnb_traversal t[2];
    int before = brute.n_nearest;
    o.n_steps = 12;
    for (int i = 0; i < 2; i++)
        assert_ok(
            pnb_traverse(contexts[i], &images.view, &texts.view, &null_text.view, &o, &t[i], err));
    assert_true(brute.n_nearest > before);
    assert_int_equal(t[0].n, t[1].n);
    assert_memory_equal(t[0].step, t[1].step, t[0].n * o.n_steps * sizeof *t[0].step);
    assert_memory_equal(t[0].root, t[1].root, t[0].n * sizeof *t[0].root);
    for (int i = 0; i < 2; i++)
        pnb_traversal_reset(&t[i]);
    free_gaussians(&images);
    free_gaussians(&texts);
    free_gaussians(&null_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_traversal),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
