/* SentencePiece's precompiled normaliser: double arrays made here in Darts-clone's layout, the
 * longest key, white space as its Normalizer treats it, and arrays that lie. */
#include "tests/tokenizer/support.h"

/* Every node has 256 units of its own: a unit stands at (its node's first) ^ byte. */
typedef struct map_maker {
    uint32_t unit[16 * 256];
    uint32_t n_nodes; /* node k begins at 256 (k + 1); unit 0 points to node 0 */
    pnb__buf strings;
} map_maker;

static void put_key(map_maker *m, const char *key, const char *value)
{
    uint32_t node = 256;
    if (m->n_nodes == 0) {
        m->unit[0] = 256u << 10;
        m->n_nodes = 1;
    }
    for (const unsigned char *c = (const unsigned char *)key; *c != 0; c++) {
        uint32_t *unit = &m->unit[node ^ *c];
        if (*unit == 0) {
            uint32_t next = 256 * ++m->n_nodes;
            *unit = ((node ^ *c ^ next) << 10) | *c;
        }
        uint32_t at = (node ^ *c) ^ (*unit >> 10);
        if (c[1] == 0) {
            *unit |= 1u << 8; /* a key ends here */
            m->unit[at] = 1u << 31 | (uint32_t)m->strings.size;
        }
        node = at;
    }
    pnb__buf_append(&m->strings, value, strlen(value) + 1);
}

/* The bytes as they stand in spiece.model. */
static void make_blob(const map_maker *m, pnb__buf *blob)
{
    uint32_t n = 256 * (m->n_nodes + 1) * 4;
    pnb__buf_append(blob, &n, 4);
    pnb__buf_append(blob, m->unit, n);
    pnb__buf_append(blob, m->strings.data, m->strings.size);
}

static void step_reset(pnb__norm_step *step)
{
    pnb__free(step->trie);
    pnb__free(step->strings);
    *step = (pnb__norm_step){0};
}

static map_maker *example(void)
{
    map_maker *m = calloc(1, sizeof *m);
    assert_non_null(m);
    put_key(m, "a", "x");
    put_key(m, "abc", "\xEF\xBC\xA1");
    put_key(m, "\xC3\xA9", "e");
    put_key(m, "\t", " ");
    put_key(m, "-", "");
    return m;
}

static void expect_run(const pnb__norm_step *step, const char *text, const char *want)
{
    pnb__buf out = {0};
    pnb__buf_append(&out, "", 0);
    (step->kind == PNB__NORM_CHARSMAP ? pnb__charsmap_run
                                      : pnb__charsmap_run_whole)(step, text, strlen(text), &out);
    if (strcmp(out.data, want) != 0)
        fail_msg("\"%s\" gives \"%s\", not \"%s\"", text, out.data, want);
    pnb__buf_reset(&out);
}

static void longest_keys_are_replaced(void **state)
{
    (void)state;
    map_maker *m = example();
    pnb__buf blob = {0}, base64 = {0};
    pnb__norm_step raw = {.kind = PNB__NORM_CHARSMAP}, packed = {0};
    pnb_error err = PNB_ERROR_INIT;
    make_blob(m, &blob);
    pnb__base64(&base64, blob.data, blob.size);
    assert_ok(pnb__charsmap_set(&raw, blob.data, blob.size, &err), &err);
    assert_ok(pnb__charsmap_parse(&packed, base64.data, base64.size, &err), &err);
    assert_int_equal(packed.kind, PNB__NORM_CHARSMAP);
    const pnb__norm_step *both[] = {&raw, &packed};
    for (size_t i = 0; i < 2; i++) {
        expect_run(both[i], "a-ab-abc-abcd",
                   "xxb\xEF\xBC\xA1\xEF\xBC\xA1"
                   "d");
        expect_run(both[i], "\xC3\xA9\xC3\xA8-", "e\xC3\xA8"); /* begins as a key and is none */
        expect_run(both[i], "", "");
    }
    step_reset(&raw);
    step_reset(&packed);
    assert_ok(pnb__charsmap_set(&raw, "", 0, &err), &err); /* "identity" */
    raw.kind = PNB__NORM_CHARSMAP;
    expect_run(&raw, "a-abc", "a-abc");
    pnb__buf_reset(&blob);
    pnb__buf_reset(&base64);
    pnb__buf_reset(&m->strings);
    free(m);
}

#define SP "\xE2\x96\x81"

/* As the sentencepiece library does, flag by flag. */
static void white_space(void **state)
{
    (void)state;
    static const struct {
        bool prefix, remove, escape, suffix;
        const char *text, *want;
    } cases[] = {
        {true, true, true, false, "  q  r ", SP "q" SP "r"},
        {false, true, true, false, "  q  r ", "q" SP "r"},
        {true, false, true, false, " q  r ", SP SP "q" SP SP "r" SP},
        {true, true, false, false, "  q  r ", " q r"},
        {true, true, true, true, "  q  r ", "q" SP "r" SP},
        {true, true, true, false, "   ", ""},
        {true, true, true, false, "", ""},
        {true, false, true, false, " ", SP SP},
        {true, true, true, false, "\tq\t \tr", SP "q" SP "r"}, /* spaces that the map makes */
        {true, true, true, false, "-q", SP "q"},
    };
    map_maker *m = example();
    pnb__buf blob = {0};
    pnb__norm_step step = {.kind = PNB__NORM_SENTENCEPIECE};
    make_blob(m, &blob);
    assert_int_equal(pnb__charsmap_set(&step, blob.data, blob.size, NULL), PNB_OK);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        step.add_dummy_prefix = cases[i].prefix;
        step.remove_extra_whitespaces = cases[i].remove;
        step.escape_whitespaces = cases[i].escape;
        step.whitespace_is_suffix = cases[i].suffix;
        expect_run(&step, cases[i].text, cases[i].want);
    }
    /* user-defined pieces pass as they are */
    pnb__trie symbols;
    assert_int_equal(pnb__trie_init(&symbols, 2, NULL), PNB_OK);
    pnb__trie_add(&symbols, "a-", 2, 5);
    step.symbols = &symbols;
    step.whitespace_is_suffix = false;
    expect_run(&step, "aa-", SP "xa-");
    pnb__trie_reset(&symbols);
    step_reset(&step);
    pnb__buf_reset(&blob);
    pnb__buf_reset(&m->strings);
    free(m);
}

static void expect_damaged(const void *blob, size_t n)
{
    pnb__norm_step step = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__charsmap_set(&step, blob, n, &err), &err, PNB_FORMAT, "its array length");
    assert_null(step.trie);
}

/* Lengths that do not fit are refused; units that point anywhere find nothing and read nothing. */
static void arrays_that_lie(void **state)
{
    (void)state;
    static const char *const bad64[] = {"AAAA!AAA", "A\xC3\xA9"};
    for (size_t i = 0; i < PNB_COUNT(bad64); i++) {
        pnb__norm_step step = {0};
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(pnb__charsmap_parse(&step, bad64[i], strlen(bad64[i]), &err), &err,
                      PNB_FORMAT, i == 0 ? "byte 4 is not base64" : "byte 1 is not base64");
    }
    expect_damaged("\4\0\0", 3);
    expect_damaged("\0\0\0\0xx\0", 8);      /* no array */
    expect_damaged("\6\0\0\0uuuuuu\0", 11); /* no whole units */
    expect_damaged("\10\0\0\0uuuu\0", 9);   /* more than there is */
    expect_damaged("\4\0\0\0uuuux", 9);     /* strings without an end */
    pnb__rng rng;
    pnb__rng_init(&rng, 7, 0);
    for (int round = 0; round < 300; round++) {
        map_maker *m = example();
        pnb__buf blob = {0}, out = {0};
        pnb__norm_step step = {0};
        for (int i = 0; i < 60; i++)
            m->unit[pnb__rng_below(&rng, 256 * (m->n_nodes + 1))] =
                pnb__rng_u32(&rng) & (i % 2 ? 0xFFFFFFFFu : 0x7FFFF);
        m->unit[0] = round % 3 == 0 ? pnb__rng_u32(&rng) : m->unit[0];
        make_blob(m, &blob);
        assert_int_equal(pnb__charsmap_set(&step, blob.data, blob.size, NULL), PNB_OK);
        pnb__charsmap_run(&step, "aabc\xC3\xA9\t-zz", 11, &out);
        assert_true(pnb__utf8_valid(out.data, out.size));
        step_reset(&step);
        pnb__buf_reset(&out);
        pnb__buf_reset(&blob);
        pnb__buf_reset(&m->strings);
        free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_keys_are_replaced),
        cmocka_unit_test(white_space),
        cmocka_unit_test(arrays_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
