/* Truth from pairs and labels: what is sorted and collapsed, what is refused, both sides exchanged.
 */
#include "tests/truth/support.h"

static void pairs_are_sorted_and_collapsed(void **state)
{
    (void)state;
    const int64_t given[] = {2, 3, 0, 1, 2, 0, 0, 1, 2, 3, 0, 0};
    const int64_t want[] = {0, 0, 0, 1, 2, 0, 2, 3};
    const int64_t back[] = {0, 0, 0, 2, 1, 0, 3, 2};
    pnb_truth *t = NULL, *u = NULL;
    assert_ok(pnb_truth_create_pairs(&t, 3, 4, given, 6, err));
    expect_pairs(t, want, 4);
    assert_int_equal(t->n_duplicates, 2);
    assert_ok(pnb_truth_transpose(&u, t, err));
    assert_true(u->n_queries == 4 && u->n_items == 3);
    expect_pairs(u, back, 4);
    pnb_truth_free(t);
    pnb_truth_free(u);
    pnb_truth_free(NULL);
}

static void aligned_and_labels(void **state)
{
    (void)state;
    const int64_t want[] = {0, 0, 1, 1, 2, 2}, ql[] = {7, 5, 9}, il[] = {5, 7, 5, 1};
    const int64_t by_label[] = {0, 1, 1, 0, 1, 2};
    pnb_truth *t = NULL;
    assert_ok(pnb_truth_create_aligned(&t, 3, err));
    expect_pairs(t, want, 3);
    pnb_truth_free(t);
    assert_ok(pnb_truth_create_labels(&t, ql, 3, il, 4, err));
    expect_pairs(t, by_label, 3);
    pnb_truth_free(t);
    assert_fails(pnb_truth_create_labels(&t, ql, 1, il, 1, err), PNB_ARG, "label");
    assert_fails(pnb_truth_create_aligned(&t, 0, err), PNB_ARG, "0 rows");
}

static void bad_pairs(void **state)
{
    (void)state;
    const int64_t high[] = {0, 0, 1, 4}, low[] = {-1, 0};
    pnb_truth *t = NULL;
    assert_fails(pnb_truth_create_pairs(&t, 3, 4, high, 2, err), PNB_ARG, "pair 1 is (1, 4)");
    assert_fails(pnb_truth_create_pairs(&t, 3, 4, low, 1, err), PNB_ARG, "pair 0 is (-1, 0)");
    assert_fails(pnb_truth_create_pairs(&t, 3, 4, low, 0, err), PNB_ARG, "no pairs");
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_sorted_and_collapsed),
        cmocka_unit_test(aligned_and_labels),
        cmocka_unit_test(bad_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
