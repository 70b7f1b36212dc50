/* Figures of a traversal by hand: texts met twice, truths that repeat, and what does not fit. */
#include "penumbra/traversal.h"
#include "tests/prob/support.h"

static void score_by_hand(void **state)
{
    (void)state;
    /* captions 0..5; 3 has the text of 1 */
    const int64_t label[] = {0, 1, 2, 1, 4, 5};
    const int64_t truth[] = {5, 1, 2, /* of picture 0 */ 0, 1, 4 /* of picture 1 */};
    int64_t step[] = {2, 3, 1, 0, /* picture 0 */ 5, 5, 2, 2 /* picture 1 */};
    int64_t start[] = {2, 5}, root[] = {0, 0};
    const pnb_traversal t = {.n = 2, .n_steps = 4, .step = step, .start = start, .root = root};
    pnb_traversal_truth known = {6, 2, 3, label, truth};
    pnb_traversal_row row[2];
    pnb_traversal_figures f;
    assert_ok(pnb_traversal_score(&t, &known, row, &f, err));
    assert_int_equal(row[0].n_distinct, 3); /* 2, 1, 0 */
    assert_near(row[0].precision, 2.0 / 3.0, 1e-15, 0);
    assert_near(row[0].recall, 2.0 / 3.0, 1e-15, 0);
    assert_true(row[0].any && row[0].start_true && !row[0].root_true && !row[0].root_top);
    assert_int_equal(row[1].n_distinct, 2); /* 5, 2: none true */
    assert_true(row[1].precision == 0 && row[1].recall == 0 && !row[1].any);
    assert_true(!row[1].start_true && row[1].root_true && row[1].root_top);
    assert_near(f.precision, 1.0 / 3.0, 1e-15, 0);
    assert_near(f.recall, 1.0 / 3.0, 1e-15, 0);
    assert_near(f.any_recall, 0.5, 0, 0);
    assert_near(f.recall_at_1, 0.5, 0, 0);
    assert_near(f.root_recall_at_1, 0.5, 0, 0);
    assert_near(f.root_is_level_0, 0.5, 0, 0);
    assert_near(f.n_distinct, 2.5, 0, 0);

    known.n_images = 3;
    assert_fails(pnb_traversal_score(&t, &known, row, &f, err), PNB_SHAPE, "truth 3");
    known.n_images = 2;
    known.n_levels = 0;
    assert_fails(pnb_traversal_score(&t, &known, row, &f, err), PNB_ARG, "0 levels");
    known.n_levels = 3;
    known.n_texts = 5;
    assert_fails(pnb_traversal_score(&t, &known, row, &f, err), PNB_SHAPE, "caption 5");
    known.n_texts = 6;
    root[1] = 7; /* a traversal of other captions, whose steps happen to fit */
    assert_fails(pnb_traversal_score(&t, &known, row, &f, err), PNB_SHAPE, "caption 7");
    root[1] = 0;
    start[0] = -1;
    assert_fails(pnb_traversal_score(&t, &known, row, &f, err), PNB_SHAPE, "caption -1");
}

/* One text twice among the levels: recall counts the level twice, precision the text once. */
static void repeated_truth(void **state)
{
    (void)state;
    const int64_t label[] = {0, 1}, truth[] = {0, 0, 1};
    int64_t step[] = {0, 0}, start[] = {0}, root[] = {1};
    const pnb_traversal t = {.n = 1, .n_steps = 2, .step = step, .start = start, .root = root};
    const pnb_traversal_truth known = {2, 1, 3, label, truth};
    pnb_traversal_figures f;
    assert_ok(pnb_traversal_score(&t, &known, NULL, &f, err));
    assert_near(f.recall, 2.0 / 3.0, 1e-15, 0);
    assert_near(f.precision, 1.0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score_by_hand),
        cmocka_unit_test(repeated_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
