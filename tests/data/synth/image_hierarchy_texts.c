/* Captions of a chained set: one number for each text of a level, in the order of first use. */
#include "data/synth/image_hierarchy_texts.h"

#include "tests/prob/support.h"

static size_t add(pnb__chain_texts *c, const char *text, int level)
{
    size_t i = SIZE_MAX;
    assert_ok(pnb__chain_texts_add(c, text, level, &i, err));
    return i;
}

static void each_once(void **state)
{
    (void)state;
    pnb__chain_texts c = {0};
    char text[] = "dog";
    assert_int_equal(add(&c, text, 0), 0);
    text[0] = 'f';                          /* the text was copied */
    assert_int_equal(add(&c, "dog", 1), 1); /* another level: another caption */
    assert_int_equal(add(&c, "", 0), 2);
    assert_int_equal(add(&c, "dog", 0), 0);
    assert_int_equal(add(&c, "dog", 1), 1);
    assert_int_equal(c.n, 3);
    assert_string_equal(c.items[0].text, "dog");
    assert_string_equal(c.items[0].id, "0-000000");
    assert_string_equal(c.items[1].id, "1-000001");
    assert_int_equal(c.items[1].level, 1);
    assert_int_equal(c.items[2].n_true, 0);
    pnb__chain_texts_reset(&c);
    assert_true(c.items == NULL && c.n == 0);
    pnb__chain_texts_reset(&c);
}

/* More texts than the table begins with: all keep their numbers. */
static void many(void **state)
{
    (void)state;
    enum { N = 5000 };
    pnb__chain_texts c = {0};
    char text[40];
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < N; i++) {
            snprintf(text, sizeof text, "caption %zu", i / 2);
            assert_int_equal(add(&c, text, (int)(i % 2)), i);
        }
    assert_int_equal(c.n, N);
    assert_string_equal(c.items[N - 1].id, "1-004999");
    pnb__chain_texts_reset(&c);
}

static void sentences(void **state)
{
    (void)state;
    static const char *const names[] = {"dog", "person", "bench", "cat"};
    static const char *const want[] = {"", "dog", "dog and person", "dog, person and bench",
                                       "dog, person, bench and cat"};
    for (size_t n = 0; n < PNB_COUNT(want); n++) {
        pnb__buf b = {0};
        pnb__join_names(&b, names, n);
        assert_string_equal(b.data != NULL ? b.data : "", want[n]);
        pnb__buf_reset(&b);
    }
}

#ifdef PNB_FAULTS
/* What fails for want of memory leaves the number alone, and nothing leaks. */
static void no_memory(void **state)
{
    (void)state;
    long n = 0;
    for (;; n++) {
        pnb__chain_texts c = {0};
        pnb_error error = PNB_ERROR_INIT;
        size_t i = 7;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__chain_texts_add(&c, "dog", 0, &i, &error);
        pnb__alloc_fail_after(-1);
        size_t n_items = c.n;
        pnb__chain_texts_reset(&c);
        assert_int_equal(n_items, status == PNB_OK);
        if (status == PNB_OK) {
            assert_int_equal(i, 0);
            break;
        }
        assert_int_equal(status, PNB_NOMEM);
        assert_int_equal(i, 7);
    }
    assert_true(n >= 3); /* the text, the list, the table */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_once), cmocka_unit_test(many),
#ifdef PNB_FAULTS
                                       cmocka_unit_test(no_memory),
#endif
                                       cmocka_unit_test(sentences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
