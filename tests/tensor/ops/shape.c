/* Ops that only move elements, each against the place where its elements should come from; views
 * share memory. */
#include "tests/tensor/graphs.h"

static void test_gather(void **state)
{
    static const int32_t ids[4] = {3, 0, 3, 1};
    double want[12];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *table = IN(4, 3);
    for (size_t i = 0; i < 12; i++)
        want[i] = numbers(table)[(size_t)ids[i / 3] * 3 + i % 3];
    pnb__tensor *y = pnb__gather(table, int_in(ids, SHAPE(2, 2)));
    expect_shape(y, SHAPE(2, 2, 3));
    expect_values(y, want, 12);
    begin_graph(PNB__F64, false);
    table = IN(4);
    for (size_t i = 0; i < 4; i++)
        want[i] = numbers(table)[ids[i]];
    expect_values(pnb__gather(table, int_in(ids, SHAPE(4))), want, 4);
    REFUSED(pnb__gather(IN(4, 3), IN(2)), "gather: table (4, 3) does not fit ids (2)");
    REFUSED(pnb__gather(real_in(0, NULL), int_in(ids, SHAPE(4))), "gather: table ()");
    REFUSED(pnb__gather(IN(1, 1, 1, 1), int_in(ids, SHAPE(1, 1, 1))), "does not fit ids (1, 1, 1)");
}

/* Patches row by row, channels first inside one; what no whole patch covers is left out. */
static void test_patchify(void **state)
{
    enum { B = 2, C = 3, H = 5, W = 7, P = 2, ROWS = H / P, COLS = W / P, N = ROWS * COLS };
    double want[B * N * C * P * P];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(B, C, H, W);
    for (size_t i = 0; i < PNB_COUNT(want); i++) {
        size_t px = i % P, py = i / P % P, c = i / P / P % C, patch = i / (P * P * C) % N;
        size_t b = i / (P * P * C * N), row = patch / COLS * P + py, col = patch % COLS * P + px;
        want[i] = numbers(x)[((b * C + c) * H + row) * W + col];
    }
    pnb__tensor *y = pnb__patchify(x, P);
    expect_shape(y, SHAPE(B, N, C * P * P));
    expect_values(y, want, PNB_COUNT(want));
    REFUSED(pnb__patchify(IN(1, 3, 4, 4), 5), "patchify: patch 5 does not fit pixels (1, 3, 4, 4)");
    REFUSED(pnb__patchify(IN(1, 3, 8, 4), 5), "patchify: patch 5");
    REFUSED(pnb__patchify(IN(1, 3, 4, 4), 0), "patchify: patch 0");
    REFUSED(pnb__patchify(IN(3, 4, 4), 2), "does not fit pixels (3, 4, 4)");
}

/* Parts one after the other on the axis, also more than a node has inputs. */
static void test_concat(void **state)
{
    enum { MANY = 8 };
    (void)state;
    for (size_t n = 1; n <= MANY; n++) {
        double want[2 * 2 * MANY];
        pnb__tensor *parts[MANY];
        begin_graph(PNB__F64, false);
        for (size_t k = 0; k < n; k++)
            parts[k] = IN(2, 1 + k % 2, 1);
        size_t length = n + n / 2;
        for (size_t row = 0; row < 2; row++)
            for (size_t k = 0, at = 0; k < n; k++)
                for (size_t i = 0; i < 1 + k % 2; i++)
                    want[row * length + at++] = numbers(parts[k])[row * (1 + k % 2) + i];
        pnb__tensor *y = pnb__concat(parts, n, -2);
        expect_shape(y, SHAPE(2, length, 1));
        expect_values(y, want, 2 * length);
    }
    REFUSED(pnb__concat((pnb__tensor *[]){IN(2, 3), IN(3, 2)}, 2, 0),
            "concat: (3, 2) does not fit (2, 3)");
    REFUSED(pnb__concat((pnb__tensor *[]){IN(2, 3), IN(2, 3, 1)}, 2, 0), "(2, 3, 1) does not fit");
    REFUSED(pnb__concat((pnb__tensor *[]){IN(2, 3)}, 1, 2), "concat: (2, 3) has no axis 2");
    begin_graph(PNB__F64, false);
    assert_null(pnb__concat((pnb__tensor *[]){IN(2), NULL}, 2, 0));
    assert_null(pnb__concat(NULL, 0, 0));
    end_graph();
}

/* A part of any axis; where that lies in one piece nothing is copied. */
static void test_slice(void **state)
{
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        static const size_t shape[3] = {3, 4, 5};
        size_t part[3] = {3, 4, 5}, n = 0;
        double want[60];
        begin_graph(PNB__F64, false);
        pnb__tensor *x = IN(3, 4, 5);
        part[axis] = 2;
        for (size_t i = 0; i < 60; i++) {
            size_t at[3] = {i / 20, i / 5 % 4, i % 5};
            if (at[axis] - 1 < 2)
                want[n++] = numbers(x)[i];
        }
        pnb__tensor *y = pnb__slice(x, axis, 1, 2);
        expect_shape(y, 3, part);
        assert_int_equal(y->view_of == x, axis == 0);
        expect_values(y, want, n);
        begin_graph(PNB__F64, false);
        expect_shape(pnb__slice(IN(3, 4, 5), axis - 3, shape[axis], 0),
                     SHAPE(axis == 0 ? 0 : 3, axis == 1 ? 0 : 4, axis == 2 ? 0 : 5));
        end_graph();
    }
    REFUSED(pnb__slice(IN(3, 4), 0, 2, 2), "slice: [2, +2) on axis 0 is outside (3, 4)");
    REFUSED(pnb__slice(IN(3, 4), 1, 5, 0), "slice: [5, +0) on axis 1");
    REFUSED(pnb__slice(IN(3, 4), 1, 1, SIZE_MAX), "on axis 1 is outside (3, 4)");
    REFUSED(pnb__slice(IN(3, 4), 2, 0, 1), "on axis 2 is outside");
    REFUSED(pnb__slice(IN(3, 4), -3, 0, 1), "on axis -3 is outside");
}

/* The same elements in another shape, of a view and of integers too. */
static void test_reshape(void **state)
{
    static const int32_t ints[6] = {5, 4, 3, 2, 1, 0};
    int32_t got[4];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(4, 6), *row = pnb__slice(pnb__reshape(x, SHAPE(6, 4)), 0, 2, 3);
    pnb__tensor *y = pnb__reshape(row, SHAPE(3, 2, 2));
    expect_shape(y, SHAPE(3, 2, 2));
    pnb__tensor *i = pnb__slice(pnb__reshape(int_in(ints, SHAPE(6)), SHAPE(3, 2)), 0, 1, 2);
    pnb__keep(i);
    const double *values = computed(y);
    assert_memory_equal(values, numbers(x) + 8, 12 * sizeof *values);
    pnb__read_i32(i, got);
    assert_memory_equal(got, ints + 2, sizeof got);
    end_graph();
    REFUSED(pnb__reshape(IN(3, 4), SHAPE(13)), "reshape: (3, 4) has 12 elements, not 13");
    REFUSED(pnb__reshape(IN(1), SHAPE(1, 1, 1, 1, 1, 1)), "reshape: 6 dimensions, the limit is 5");
    REFUSED(pnb__reshape(IN(1), -1, NULL), "reshape: -1 dimensions");
}

static void test_permute(void **state)
{
    static const size_t shape[3] = {2, 3, 4}, step[3] = {12, 4, 1};
    static const int orders[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 0, 2}, {2, 1, 0}};
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(orders); k++) {
        const int *o = orders[k];
        size_t of[3] = {shape[o[0]], shape[o[1]], shape[o[2]]};
        double want[24];
        begin_graph(PNB__F64, false);
        pnb__tensor *x = IN(2, 3, 4);
        for (size_t i = 0; i < 24; i++)
            want[i] = numbers(x)[i / (of[1] * of[2]) * step[o[0]] + i / of[2] % of[1] * step[o[1]] +
                                 i % of[2] * step[o[2]]];
        pnb__tensor *y = pnb__permute(x, o);
        expect_shape(y, 3, of);
        expect_values(y, want, 24);
    }
    REFUSED(pnb__permute(IN(3, 4), (int[]){0, 0}), "permute: axes are not a permutation");
    REFUSED(pnb__permute(IN(3, 4), (int[]){0, 2}), "permute: axes are not a permutation");
    REFUSED(pnb__permute(IN(3, 4), (int[]){-1, 0}), "permute: axes are not a permutation");
}

static void test_nothing_gives_nothing(void **state)
{
    (void)state;
    begin_graph(PNB__F64, false);
    assert_null(pnb__gather(NULL, IN(1)));
    assert_null(pnb__gather(IN(1), NULL));
    assert_null(pnb__patchify(NULL, 1));
    assert_null(pnb__slice(NULL, 0, 0, 0));
    assert_null(pnb__reshape(NULL, 0, NULL));
    assert_null(pnb__permute(NULL, NULL));
    assert_int_equal(g->error.status, PNB_OK);
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gather),
                                       cmocka_unit_test(test_patchify),
                                       cmocka_unit_test(test_concat),
                                       cmocka_unit_test(test_slice),
                                       cmocka_unit_test(test_reshape),
                                       cmocka_unit_test(test_permute),
                                       cmocka_unit_test(test_nothing_gives_nothing)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
