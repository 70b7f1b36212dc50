/* The pickle machine: stack, marks, memo and containers as Python has them, opcodes that only
 * programs need, and memory that grows with the pickle's bytes at most. */
#include "tests/io/weights/unpickled.h"

/* The bytes are what Python 3.11's pickle.dumps writes at protocols 0 to 5, or Python 2 wrote. */
static const pickled VALUES[] = {
    P("\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94.", "'hi'"),
    P(").", "()"),
    P("(K\x01K\x02t.", "(1, 2)"),
    P("K\x01\x85.", "(1)"),
    P("K\x01K\x02\x86.", "(1, 2)"),
    P("K\x01K\x02K\x03\x87.", "(1, 2, 3)"),
    P("(K\x01K\x02l.", "[1, 2]"),
    P("](K\x01K\x02"
      "e.",
      "[1, 2]"),
    P("]K\x01"
      "aK\x02"
      "a.",
      "[1, 2]"),
    P("(K\x01K\x02"
      "d.",
      "{1: 2}"),
    P("}K\x01K\x02s.", "{1: 2}"),
    P("}(K\x01K\x02K\x03K\x04u.", "{1: 2, 3: 4}"),
    P("\x8f(K\x01K\x02\x90.", "[1, 2]"),
    P("(K\x01K\x02\x91.", "[1, 2]"),
    P("K\x01q\x05K\x02"
      "0h\x05\x86.",
      NULL),
    P("(K\x01q\x05h\x05t.", "(1, 1)"),
    P("(K\x01p3\ng3\nt.", "(1, 1)"),
    P("(K\x01r\x05\x00\x00\x00j\x05\x00\x00\x00t.", "(1, 1)"),
    P("(K\x01\x94K\x02\x94h\x00h\x01t.", "(1, 2, 1, 2)"),
    P("(K\x01"
      "2t.",
      "(1, 1)"),
    P("K\x05(K\x01K\x02"
      "1.",
      "5"),
    P("K\x05(0.", "5"),
};

static void values_are_what_python_reads(void **state)
{
    (void)state;
    expect_values(VALUES, PNB_COUNT(VALUES));
}

/* Opcodes that plain values do not need. */
static const pickled REFUSED[] = {
    P("(S'1'\nios\nsystem\n.", "opcode 0x69"),
    P("(ccollections\nOrderedDict\no.", "opcode 0x6f"),
    P("ccollections\nOrderedDict\n)}\x92.", "opcode 0x92"),
    P("\x82\x01.", "opcode 0x82"),
    P("P1\n.", "opcode 0x50"),
    P("\x97.", "opcode 0x97"),
};

static void everything_else_is_refused_by_name(void **state)
{
    (void)state;
    expect_refusals(REFUSED, PNB_COUNT(REFUSED), PNB_UNSUPPORTED);
}

/* Stacks, marks and memos that do not hold what is asked for. */
static const pickled NONSENSE[] = {
    P("", "truncated"),
    P(".", "empty stack"),
    P("N", "truncated"),
    P("0.", "empty stack"),
    P("(.", "empty stack"),
    P("t.", "mark"),
    P("]e.", "mark"),
    P("K\x01\x86.", "empty stack"),
    P("(K\x01"
      "d.",
      "key without a value"),
    P("}(K\x01u.", "key without a value"),
    P("}K\x01s.", "empty stack"),
    P("NK\x01K\x02s.", "adds items to something that has none"),
    P("K\x01(K\x02"
      "e.",
      "adds items"),
    P(")K\x01"
      "a.",
      "adds items"),
    P("N(K\x01"
      "a.",
      "empty stack"),
    P("h\x00.", "never stored"),
    P("j\xff\xff\xff\xff.", "never stored"),
    P("Nr\xff\xff\xff\xff.", "larger than the pickle"),
    P("Np99999999999\n.", "larger than the pickle"),
    P("q\x00.", "empty stack"),
    P("Npx\n.", "memo number"),
    P("\x80\x06N.", "protocol above 5"),
    P("\x01.", "no opcode"),
};

static void nonsense_is_refused(void **state)
{
    (void)state;
    expect_refusals(NONSENSE, PNB_COUNT(NONSENSE), PNB_FORMAT);
}

/* Memory grows with the pickle's bytes at most: many empty things, and many copies of a tensor. */
static void memory_is_bounded(void **state)
{
    (void)state;
    static const char *const parts[] = {"}", "(", "N", "]N", "h\x01"};
    for (size_t k = 0; k < PNB_COUNT(parts); k++) {
        pnb__buf b = {0};
        pnb__buf_append(&b, "Nq\x01", 3);
        for (int i = 0; i < 200000; i++)
            pnb__buf_puts(&b, parts[k]);
        pnb__buf_putc(&b, '.');
        loaded l = load(b.data, b.size);
        pnb__pk_budget budget = pnb__pk_budget_for(b.size);
        assert_true(l.status == PNB_OK || l.status == PNB_FORMAT || l.status == PNB_LIMIT);
        assert_true(budget.most <= 64 * b.size + (64 << 10));
        unload(&l);
        pnb__buf_reset(&b);
    }
}

/* Whatever is made is counted before it is taken; a pickle that wants more is refused with words.
 */
static void budgets_are_kept(void **state)
{
    (void)state;
    pnb__buf b = {0};
    for (int i = 0; i < 3000; i++)
        pnb__buf_puts(&b, "]");
    for (int i = 0; i < 2999; i++)
        pnb__buf_puts(&b, "a");
    pnb__buf_putc(&b, '.');
    size_t needed = 0;
    for (int round = 0; round < 3; round++) { /* as much as it wants, just that, a byte less */
        pnb__arena arena;
        pnb__pk_result result;
        pnb_error err = PNB_ERROR_INIT;
        pnb__pk_budget budget = {0, round == 0 ? (size_t)1 << 30 : needed - (round == 2)};
        pnb__arena_init(&arena, 4096);
        const pnb__pk_source source = {
            (const unsigned char *)b.data, b.size, "p", &arena, &budget, NULL};
        pnb_status status = pnb__pickle_load(&source, &result, &err);
        assert_true(budget.used <= budget.most);
        if (round < 2)
            assert_ok(status, &err);
        else
            assert_failed(status, &err, PNB_LIMIT, "p: the pickle unfolds to more than");
        needed = round == 0 ? budget.used : needed;
        pnb__arena_free(&arena);
    }
    assert_true(needed > 3000 * sizeof(pnb__pk_value));
    pnb__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_what_python_reads),
        cmocka_unit_test(everything_else_is_refused_by_name),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(budgets_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
