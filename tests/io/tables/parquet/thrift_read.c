/* Thrift's compact protocol: fields, lists, what is skipped, and bytes that end early or never. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/tables/parquet/thrift_read.h"

#define OF(bytes)                                                                                  \
    {                                                                                              \
        (const unsigned char *)(bytes), (const unsigned char *)(bytes) + sizeof(bytes) - 1, false  \
    }

static void fields_are_read(void **state)
{
    /* 1: i32 -3, 2: true, 18 (long form): text "ab", 19: list of two i64, end */
    pnb__thrift t = OF("\x15\x05\x11\x08\x24\x02"
                       "ab\x19\x26\x02\xAC\x02\x00");
    pnb__thrift_field f;
    int last = 0, type = 0;
    size_t n = 0;
    (void)state;
    assert_true(pnb__thrift_next(&t, &last, &f) && f.number == 1);
    assert_int_equal(pnb__thrift_int(&t, f), -3);
    assert_true(pnb__thrift_next(&t, &last, &f) && f.number == 2);
    assert_int_equal(pnb__thrift_int(&t, f), 1);
    assert_true(pnb__thrift_next(&t, &last, &f) && f.number == 18);
    assert_memory_equal(pnb__thrift_bytes(&t, f, &n), "ab", 2);
    assert_int_equal(n, 2);
    assert_true(pnb__thrift_next(&t, &last, &f) && f.number == 19);
    assert_int_equal(pnb__thrift_list(&t, f, &type), 2);
    assert_int_equal(type, PNB__THRIFT_I64);
    f.type = type;
    assert_int_equal(pnb__thrift_int(&t, f), 1);
    assert_int_equal(pnb__thrift_int(&t, f), 150);
    assert_false(pnb__thrift_next(&t, &last, &f));
    assert_false(t.failed);
}

/* Everything that a struct may hold, skipped, and a field behind it. */
static void what_is_not_known_is_skipped(void **state)
{
    pnb__thrift t = OF("\x13\x07"     /* i8 */
                       "\x14\x80\x01" /* i16 */
                       "\x17"
                       "12345678" /* double */
                       "\x18\x03"
                       "abc"                      /* text */
                       "\x19\x21\x01\x02"         /* list of two flags */
                       "\x1B\x01\x58\x02\x01x"    /* map of i32 to text */
                       "\x1C\x11\x15\x02\x00"     /* struct of a flag and a number */
                       "\x1A\x2C\x15\x02\x00\x00" /* set of two structs */
                       "\x15\x08\x00");
    pnb__thrift_field f;
    (void)state;
    for (int last = 0, k = 0; pnb__thrift_next(&t, &last, &f); k++)
        if (k == 8)
            assert_int_equal(pnb__thrift_int(&t, f), 4);
        else
            pnb__thrift_skip(&t, f.type);
    assert_false(t.failed);
    assert_true(t.at == t.end);
}

static void damage_ends(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {{"\x18\xFF\xFF\xFF\xFF\x0F", 6},     /* a text of 4 GB */
               {"\x19\xF5\xFF\xFF\xFF\xFF\x0F", 7}, /* a list of as many */
               {"\x15\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12},
               {"\x1D\x00", 2}, /* a type that there is not */
               {"\x1B\xFF\x7F\x55", 4},
               {"", 0}};
    unsigned char deep[4096];
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        const unsigned char *at = (const unsigned char *)bad[i].bytes;
        pnb__thrift t = {at, at + bad[i].n, false};
        pnb__thrift_field f;
        for (int last = 0; pnb__thrift_next(&t, &last, &f);)
            pnb__thrift_skip(&t, f.type);
        assert_true(t.failed);
    }
    memset(deep, 0x1C, sizeof deep); /* structs in structs */
    pnb__thrift t = {deep, deep + sizeof deep, false};
    pnb__thrift_skip(&t, PNB__THRIFT_STRUCT);
    assert_true(t.failed);
    assert_true((size_t)(t.at - deep) < 100); /* not to the end of the stack */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_are_read),
                                       cmocka_unit_test(what_is_not_known_is_skipped),
                                       cmocka_unit_test(damage_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
