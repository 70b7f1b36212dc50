/* Opcodes that push one plain value: numbers of every width and spelling, strings of every kind,
 * and what they may not be. */
#include "tests/io/weights/unpickled.h"

/* The bytes are what Python 3.11's pickle.dumps writes at protocols 0 to 5, or Python 2 wrote. */
static const pickled VALUES[] = {
    P("N.", "None"),
    P("\x88.", "True"),
    P("I01\n.", "True"),
    P("I00\n.", "False"),
    P("I-7\n.", "-7"),
    P("L12345678901L\n.", "12345678901"),
    P("L123456789012345678901234567890L\n.", "big 31"),
    P("J\xfe\xff\xff\xff.", "-2"),
    P("K\xff.", "255"),
    P("M\x01\x02.", "513"),
    P("\x8a\x00.", "0"),
    P("\x8a\x01\xff.", "-1"),
    P("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808"),
    P("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.", "big 9"),
    P("\x8b\x02\x00\x00\x00\x39\x30.", "12345"),
    P("F2.5\n.", "2.5"),
    P("G\x40\x04\x00\x00\x00\x00\x00\x00.", "2.5"),
    P("S'abc'\n.", "'abc'"),
    P("U\x02hi.", "'hi'"),
    P("T\x02\x00\x00\x00hi.", "'hi'"),
    P("Vh\\u00e9\\U0001f600\xe9\n.", "'h\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9'"),
    P("X\x02\x00\x00\x00hi.", "'hi'"),
    P("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi.", "'hi'"),
    P("C\x02hi.", "b'hi'"),
    P("B\x02\x00\x00\x00hi.", "b'hi'"),
    P("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi.", "b'hi'"),
    P("\x96\x02\x00\x00\x00\x00\x00\x00\x00hi.", "b'hi'"),
};

static void values_are_what_python_reads(void **state)
{
    (void)state;
    expect_values(VALUES, PNB_COUNT(VALUES));
}

/* Where widths end, and spellings that are rare. */
static const pickled EDGES[] = {
    P("I9223372036854775807\n.", "9223372036854775807"),
    P("I-9223372036854775808\n.", "-9223372036854775808"),
    P("L-9223372036854775808L\n.", "-9223372036854775808"),
    P("I9223372036854775808\n.", "big 19"), /* beyond 64 bits: kept as its line */
    P("I18446744073709551615\n.", "big 20"),
    P("L-9223372036854775809L\n.", "big 21"),
    P("I02\n.", "2"),
    P("J\xff\xff\xff\x7f.", "2147483647"),
    P("J\x00\x00\x00\x80.", "-2147483648"),
    P("\x8a\x01\x7f.", "127"),
    P("\x8a\x02\xff\x00.", "255"),
    P("F-1e300\n.", "-1.0000000000000001e+300"),
    P("G\xbf\xf0\x00\x00\x00\x00\x00\x00.", "-1"),
    P("S\"a'b\"\n.", "'a'b'"),
    P("V\n.", "''"),
    P("Va\\b\\u0041\n.", "'a\\bA'"), /* only u and U are escapes */
    P("U\x00.", "''"),
    P("C\x00.", "b''"),
};

static void widths_end_here(void **state)
{
    (void)state;
    expect_values(EDGES, PNB_COUNT(EDGES));
}

/* What is no number and no string. */
static const pickled NONSENSE[] = {
    P("X\xff\xff\xff\xffhi.", "longer than the file"),
    P("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi.", "longer than the file"),
    P("\x8b\xff\xff\xff\xffhi.", "truncated"),
    P("S'abc.", "without end"),
    P("Sabc\n.", "not quoted"),
    P("S'a\\n'\n.", "escapes"),
    P("V\\u12\n.", "escape"),
    P("V\\U99999999999\n.", NULL),
    P("Iabc\n.", "a number that is none"),
    P("I\n.", "no or more"),
    P("F1.5x\n.", "a number that is none"),
    P("S'a\"\n.", "not quoted"),
    P("S'\n.", "not quoted"),
    P("Va\\U0001f60\n.", "escape"),
    P("J\x01\x02.", "truncated"),
    P("I7x\n.", "a number that is none"),
};

static void nonsense_is_refused(void **state)
{
    (void)state;
    expect_refusals(NONSENSE, PNB_COUNT(NONSENSE), PNB_FORMAT);
}

static void keys_are_found_last_first(void **state)
{
    (void)state;
    loaded l = LOAD("}(U\x01"
                    "aK\x01U\x01"
                    "bK\x02U\x01"
                    "aK\x03u.");
    assert_int_equal(pnb__pk_get(l.result.root, "a")->u.integer, 3);
    assert_int_equal(pnb__pk_get(l.result.root, "b")->u.integer, 2);
    assert_null(pnb__pk_get(l.result.root, "c"));
    assert_null(pnb__pk_get(NULL, "c"));
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_what_python_reads),
        cmocka_unit_test(widths_end_here),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(keys_are_found_last_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
