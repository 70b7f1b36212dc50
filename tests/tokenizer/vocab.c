/* Pieces by id and ids by piece: gaps, what repeats, what is out of range. */
#include "tests/tokenizer/support.h"

static void add(pnb__vocab *v, int id, const char *piece, size_t n)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__vocab_add(v, id, piece, n, &err), &err);
}

static void both_ways(void **state)
{
    (void)state;
    pnb__vocab v;
    pnb_error err = PNB_ERROR_INIT;
    size_t n = 99;
    assert_ok(pnb__vocab_init(&v, 9, 4, &err), &err);
    add(&v, 8, "ab", 2);
    add(&v, 0, "", 0);
    add(&v, 3, "a", 1);
    add(&v, 5, "a\0b", 3);
    assert_int_equal(pnb__vocab_find(&v, "abc", 2), 8); /* by length, not by terminator */
    assert_int_equal(pnb__vocab_find(&v, "", 0), 0);
    assert_int_equal(pnb__vocab_find(&v, "a", 1), 3);
    assert_int_equal(pnb__vocab_find(&v, "a\0b", 3), 5);
    assert_int_equal(pnb__vocab_find(&v, "a\0", 2), -1);
    assert_int_equal(pnb__vocab_find(&v, "b", 1), -1);
    assert_string_equal(pnb__vocab_piece(&v, 8, &n), "ab");
    assert_int_equal(n, 2);
    assert_string_equal(pnb__vocab_piece(&v, 3, NULL), "a");
    assert_memory_equal(pnb__vocab_piece(&v, 5, &n), "a\0b", 4);
    assert_int_equal(n, 3);
    assert_null(pnb__vocab_piece(&v, 1, &n)); /* a gap */
    assert_null(pnb__vocab_piece(&v, -1, &n));
    assert_null(pnb__vocab_piece(&v, 9, &n));
    pnb__vocab_reset(&v);
    assert_null(v.start);
}

/* More pieces than were announced, each found among the others. */
static void many_pieces(void **state)
{
    (void)state;
    pnb__vocab v;
    pnb_error err = PNB_ERROR_INIT;
    char piece[16];
    assert_ok(pnb__vocab_init(&v, 1000, 1, &err), &err);
    for (int id = 0; id < 1000; id++)
        add(&v, id, piece, (size_t)snprintf(piece, sizeof piece, "%o", 7 * id));
    for (int id = 0; id < 1000; id++) {
        int n = snprintf(piece, sizeof piece, "%o", 7 * id);
        assert_int_equal(pnb__vocab_find(&v, piece, (size_t)n), id);
        assert_string_equal(pnb__vocab_piece(&v, id, NULL), piece);
    }
    pnb__vocab_reset(&v);
}

static void what_repeats_is_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t id;
        const char *piece, *says;
    } bad[] = {{2, "x", "token \"x\" has id 2: want 0..1"},
               {-1, "x", "has id -1"},
               {INT64_MAX, "x", "has id 9223372036854775807"},
               {0, "x", "tokens \"a\" and \"x\" both have id 0"},
               {1, "a", "token \"a\" has two ids, 0 and 1"}};
    pnb__vocab v;
    assert_int_equal(pnb__vocab_init(&v, 2, 2, NULL), PNB_OK);
    add(&v, 0, "a", 1);
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(pnb__vocab_add(&v, bad[i].id, bad[i].piece, 1, &err), &err, PNB_FORMAT,
                      bad[i].says);
    }
    assert_int_equal(pnb__vocab_find(&v, "x", 1), -1);
    assert_null(pnb__vocab_piece(&v, 1, NULL));
    pnb__vocab_reset(&v);
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__vocab_init(&v, PNB__MAX_VOCAB + 1, 1, &err), &err, PNB_LIMIT,
                  "ids up to 4194304");
    assert_int_equal(pnb__vocab_init(&v, 0, 0, NULL), PNB_OK);
    assert_int_equal(pnb__vocab_find(&v, "a", 1), -1);
    pnb__vocab_reset(&v);
}

#ifdef PNB_FAULTS
static pnb_status fill(scratch *s, pnb_error *err)
{
    (void)s;
    pnb__vocab v;
    pnb_status status = pnb__vocab_init(&v, 3, 1, err);
    for (int id = 0; status == PNB_OK && id < 3; id++)
        status = pnb__vocab_add(&v, id, &"abc"[id], 1, err);
    pnb__vocab_reset(&v);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(fill, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(many_pieces),
        cmocka_unit_test(what_repeats_is_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
