/* Position tables of another size, each rule by what its source says it keeps. The references' own
 * numbers are in tests/golden/prolip_model/pos_resize_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "models/position_resize.h"

enum { W = 2 };

static const pnb__position_rule rules[] = {PNB__POSITIONS_PROLIP, PNB__POSITIONS_LONGPROLIP};

/* A linear ramp stays one inside, whatever is interpolated; equal sizes change nothing. */
static void test_grids(void **state)
{
    (void)state;
    double in[6 * 6 * W], out[12 * 12 * W];
    for (size_t i = 0; i < 36; i++) {
        in[i * W] = (double)(i % 6);
        in[i * W + 1] = (double)(i / 6) * 3;
    }
    for (size_t k = 0; k < PNB_COUNT(rules); k++) {
        const pnb__grid_resize same = {6, 6, 6, 6, W, rules[k]},
                               twice = {6, 6, 12, 12, W, rules[k]};
        assert_int_equal(pnb__positions_resize_grid(&same, in, out, NULL), PNB_OK);
        for (size_t i = 0; i < PNB_COUNT(in); i++)
            assert_true(fabs(in[i] - out[i]) < 1e-6);
        assert_int_equal(pnb__positions_resize_grid(&twice, in, out, NULL), PNB_OK);
        for (size_t y = 4; y < 8; y++)
            for (size_t x = 4; x < 8; x++) {
                const double *at = out + (y * 12 + x) * W;
                assert_true(fabs(at[0] - (((double)x + 0.5) / 2 - 0.5)) < 1e-5);
                assert_true(fabs(at[1] - 3 * (((double)y + 0.5) / 2 - 0.5)) < 1e-5);
            }
    }
}

static void make_rows(double *rows, size_t n)
{
    for (size_t i = 0; i < n * W; i++)
        rows[i] = sin((double)i * 0.7) + (double)(i / W);
}

static void resize(pnb__position_rule rule, const double *in, size_t n_old, double *out,
                   size_t n_new)
{
    const pnb__text_resize r = {
        .n_old = n_old, .n_new = n_new, .n_extra = 2, .width = W, .rule = rule};
    assert_int_equal(pnb__positions_resize_text(&r, in, out, NULL), PNB_OK);
}

static bool keeps(const double *in, size_t n_old, const double *out, size_t n_new, size_t head,
                  size_t tail)
{
    return memcmp(out, in, head * W * sizeof *in) == 0 &&
           memcmp(out + (n_new - tail) * W, in + (n_old - tail) * W, tail * W * sizeof *in) == 0;
}

/* 64 tokens and 2 extra rows to 108 and 2: half steps from 19.75 on between what is kept. */
static void test_longprolip_keeps_the_first_and_the_extra_rows(void **state)
{
    (void)state;
    double in[66 * W], out[110 * W];
    make_rows(in, 66);
    resize(PNB__POSITIONS_LONGPROLIP, in, 66, out, 110);
    assert_true(keeps(in, 66, out, 110, 20, 2));
    for (size_t i = 0; i < 66 * W; i++)
        in[i] = (double)(i / W);
    resize(PNB__POSITIONS_LONGPROLIP, in, 66, out, 110);
    for (size_t i = 1; i < 87; i++)
        assert_true(fabs(out[(20 + i) * W] - (20 + ((double)i + 0.5) / 2 - 0.5)) < 1e-12);
    make_rows(in, 66);
    resize(PNB__POSITIONS_LONGPROLIP, in, 66, out, 22); /* 20 tokens: none is left to stretch */
    assert_true(keeps(in, 66, out, 22, 0, 2));
    assert_false(keeps(in, 66, out, 22, 1, 2));
}

/* The same sizes by the other rule: everything is stretched together, the extra rows too. */
static void test_prolip_stretches_a_short_context_as_a_whole(void **state)
{
    (void)state;
    double in[66 * W], out[127 * W];
    for (size_t i = 0; i < 66 * W; i++)
        in[i] = (double)(i / W);
    resize(PNB__POSITIONS_PROLIP, in, 66, out, 127);
    for (size_t i = 1; i < 126; i++)
        assert_true(fabs(out[i * W] - (((double)i + 0.5) * 66 / 127 - 0.5)) < 1e-12);
    assert_false(keeps(in, 66, out, 127, 0, 2));
}

static void test_rules_agree_on_long_contexts(void **state)
{
    (void)state;
    double in[66 * W], one[258 * W], two[258 * W];
    make_rows(in, 66);
    resize(PNB__POSITIONS_PROLIP, in, 66, one, 258);
    resize(PNB__POSITIONS_LONGPROLIP, in, 66, two, 258);
    assert_true(keeps(in, 66, one, 258, 20, 2));
    assert_memory_equal(one, two, sizeof one);
    resize(PNB__POSITIONS_PROLIP, in, 66, one, 128); /* the first long one */
    assert_true(keeps(in, 66, one, 128, 20, 2));
}

static void test_too_few_rows(void **state)
{
    (void)state;
    double rows[258 * W] = {0};
    pnb_error err = PNB_ERROR_INIT;
    pnb__text_resize r = {.n_old = 22, .n_new = 258, .n_extra = 2, .width = W};
    assert_int_equal(pnb__positions_resize_text(&r, rows, rows, &err), PNB_SHAPE);
    assert_non_null(strstr(err.text, "the first 20 and last 2"));
    r = (pnb__text_resize){
        .n_old = 2, .n_new = 9, .n_extra = 2, .width = W, .rule = PNB__POSITIONS_LONGPROLIP};
    assert_int_equal(pnb__positions_resize_text(&r, rows, rows, NULL), PNB_SHAPE);
    r.n_old = 0;
    assert_int_equal(pnb__positions_resize_text(&r, rows, rows, NULL), PNB_SHAPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_longprolip_keeps_the_first_and_the_extra_rows),
        cmocka_unit_test(test_prolip_stretches_a_short_context_as_a_whole),
        cmocka_unit_test(test_rules_agree_on_long_contexts),
        cmocka_unit_test(test_too_few_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
