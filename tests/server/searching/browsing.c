/* Browsing a gallery of a few lines: orders, strays, groups that are nearly the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "server/searching/browsing.h"

enum { N = 9, DIM = 3 };

/* Rows 0 to 3 and 4 to 6 are nearly the same among themselves, 7 and 8 stand alone. */
static void direction(size_t row, float x[DIM])
{
    double angle = row < 4   ? 0.001 * (double)row
                   : row < 7 ? 1 + 0.001 * (double)row
                             : 2 + (double)(row - 7);
    x[0] = (float)cos(angle);
    x[1] = (float)sin(angle);
    x[2] = 0;
}

static pnb_status pick(void *self, pnb_store_order order, size_t limit, pnb__found *out, size_t *n,
                       pnb_error *err)
{
    const size_t *n_rows = self;
    (void)err;
    *n = PNB_MIN(limit, *n_rows);
    for (size_t i = 0; i < *n; i++)
        out[i] = (pnb__found){order == PNB_STORE_NEWEST ? *n_rows - 1 - i : i, NAN, NAN, 0.5};
    return PNB_OK;
}

static pnb_status take(void *self, const size_t *rows, size_t n, pnb_embeddings **out,
                       pnb_error *err)
{
    (void)self;
    pnb_status status = pnb_embeddings_create(out, PNB_POINT, n, DIM, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        direction(rows[i], (*out)->mean + i * DIM);
    return status;
}

static pnb_status count(void *self, size_t *n, pnb_error *err)
{
    (void)err;
    *n = *(size_t *)self;
    return PNB_OK;
}

static const pnb__gallery_calls calls = {.pick = pick, .take = take, .count = count};

static void groups_are_whole(void **state)
{
    size_t n = N;
    const pnb__gallery g = {&calls, &n, "rows", "image"};
    static const size_t n_wanted[][2] = {{9, 7}, {7, 7}, {6, 4}, {4, 4}, {3, 3}, {2, 0}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(n_wanted); i++) {
        pnb__browsed found = {0};
        assert_int_equal(pnb__browse_duplicates(NULL, &g, 0.99, n_wanted[i][0], &found, NULL),
                         PNB_OK);
        assert_int_equal(found.n, n_wanted[i][1]);
        assert_int_equal(found.n_looked, N);
        for (size_t k = 0; k < found.n; k++)
            assert_true(found.rows[k].row < 7 && (found.group[k] == 0) == (found.rows[k].row < 4));
        pnb__browsed_reset(&found);
    }
}

static void strays_come_first(void **state)
{
    size_t n = N;
    const pnb__gallery g = {&calls, &n, "rows", "image"};
    pnb__browsed found = {0};
    (void)state;
    assert_int_equal(pnb__browse_outliers(NULL, &g, 3, &found, NULL), PNB_OK);
    assert_int_equal(found.n, 3);
    assert_int_equal(found.rows[0].row, 8);
    assert_true(found.rows[0].score <= found.rows[1].score);
    pnb__browsed_reset(&found);
}

static void orders(void **state)
{
    size_t n = N;
    const pnb__gallery g = {&calls, &n, "rows", "image"};
    pnb__browsed found = {0};
    (void)state;
    assert_int_equal(pnb__browse_order(&g, PNB_STORE_NEWEST, 2, &found, NULL), PNB_OK);
    assert_true(found.n == 2 && found.rows[0].row == N - 1 && found.group == NULL);
    pnb__browsed_reset(&found);
}

static void too_few_to_compare(void **state)
{
    (void)state;
    for (size_t n = 0; n < 3; n++) {
        const pnb__gallery g = {&calls, &n, "rows", "image"};
        pnb__browsed a = {0}, b = {0};
        assert_int_equal(pnb__browse_outliers(NULL, &g, 5, &a, NULL), PNB_OK);
        assert_int_equal(pnb__browse_duplicates(NULL, &g, 0.9, 5, &b, NULL), PNB_OK);
        assert_int_equal(a.n + b.n, 0);
        pnb__browsed_reset(&a);
        pnb__browsed_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_whole), cmocka_unit_test(strays_come_first),
        cmocka_unit_test(orders), cmocka_unit_test(too_few_to_compare)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
