/* The list of pictures and captions: texts of the pool, entries in their order, and what stays
 * after a failure. */
#include "tests/truth/support.h"

#include "truth/ground_truth.h"

static void texts_of_the_pool(void **state)
{
    (void)state;
    pnb__ground_truth c = {0};
    size_t empty = pnb__ground_truth_intern(&c, "", 0),
           part = pnb__ground_truth_intern(&c, "caption", 3);
    size_t whole = pnb__ground_truth_intern(&c, "caption", 7);
    assert_true(empty != 0 && part != 0 && whole != 0); /* 0 is no text, an empty text is one */
    assert_string_equal(pnb__ground_truth_get(&c, 0), "");
    assert_string_equal(pnb__ground_truth_get(&c, empty), "");
    assert_string_equal(pnb__ground_truth_get(&c, part), "cap");
    assert_string_equal(pnb__ground_truth_get(&c, whole), "caption");
    for (int i = 0; i < 1000; i++) /* offsets survive growth */
        assert_true(pnb__ground_truth_intern(&c, "many more of them", 17) > whole);
    assert_string_equal(pnb__ground_truth_get(&c, part), "cap");
    pnb__ground_truth_reset(&c);
    assert_string_equal(pnb__ground_truth_get(&c, 0), ""); /* without a pool too */
}

enum { N = 100 };

static void entries_keep_their_order(void **state)
{
    (void)state;
    pnb__ground_truth c = {0};
    for (size_t i = 0; i < N; i++) {
        assert_ok(
            pnb__ground_truth_image(&c, (pnb__image){{i, i + 1, i + 2}, (int64_t)i % 7}, err));
        assert_ok(pnb__ground_truth_text(
            &c, (pnb__text_ref){i / 2, i % 2, 3 * i, 5 * i, (int)i % 4}, err));
        assert_ok(pnb__ground_truth_pair(&c, N - i, 2 * i, err));
        assert_true(c.n_images == i + 1 && c.n_texts == i + 1 && c.n_pairs == i + 1);
    }
    for (size_t i = 0; i < N; i++) {
        assert_true(c.image[i].name[0] == i && c.image[i].name[2] == i + 2);
        assert_int_equal(c.image[i].group, i % 7);
        assert_true(c.text[i].owner == i / 2 && c.text[i].place == i % 2);
        assert_true(c.text[i].id == 3 * i && c.text[i].text == 5 * i);
        assert_int_equal(c.text[i].level, i % 4);
        assert_true(c.pair[2 * i] == (int64_t)(N - i) && c.pair[2 * i + 1] == (int64_t)(2 * i));
    }
    pnb__ground_truth_reset(&c);
    assert_true(c.n_images == 0 && c.image == NULL && c.text == NULL && c.pair == NULL);
    pnb__ground_truth_reset(&c);
}

#ifdef PNB_FAULTS
/* A text that is lost would leave an entry without its name: the next entry says so. */
static void a_lost_text_is_told(void **state)
{
    (void)state;
    pnb__ground_truth c = {0};
    pnb__alloc_fail_after(0);
    assert_int_equal(pnb__ground_truth_intern(&c, "x", 1), 0);
    assert_fails(pnb__ground_truth_image(&c, (pnb__image){{0}, -1}, err), PNB_NOMEM, "memory");
    assert_fails(pnb__ground_truth_text(&c, (pnb__text_ref){.level = -1}, err), PNB_NOMEM,
                 "memory");
    assert_true(c.n_images == 0 && c.n_texts == 0);
    pnb__ground_truth_reset(&c);
    pnb__alloc_fail_after(0);
    assert_fails(pnb__ground_truth_pair(&c, 0, 0, err), PNB_NOMEM, "memory");
    pnb__alloc_fail_after(0);
    assert_fails(pnb__ground_truth_image(&c, (pnb__image){{0}, -1}, err), PNB_NOMEM, "memory");
    pnb__alloc_fail_after(-1);
    assert_true(c.n_images == 0 && c.n_pairs == 0);
    pnb__ground_truth_reset(&c);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_the_pool),
        cmocka_unit_test(entries_keep_their_order),
#ifdef PNB_FAULTS
        cmocka_unit_test(a_lost_text_is_told),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
