/* The flat view of a search: places, ellipses, what cannot be drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "io/json/json.h"
#include "server/searching/plane.h"

enum { DIM = 4 };

/* Rows apart from each other along one axis, with a variance of their own along another. */
static pnb_embeddings *rows(size_t n, float at, float log_var)
{
    pnb_embeddings *e = NULL;
    assert_int_equal(pnb_embeddings_create(&e, PNB_GAUSSIAN_DIAG, n, DIM, NULL), PNB_OK);
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < DIM; d++) {
            e->mean[i * DIM + d] = d == 0 ? at + (float)i : 0;
            e->log_var[i * DIM + d] = d == 1 ? log_var : -20;
        }
    return e;
}

static void ellipses(void **state)
{
    pnb_embeddings *query = rows(1, -3, -4), *hits = rows(4, 0, -2);
    pnb__buf b = {0};
    json_t *all = NULL;
    (void)state;
    pnb__buf_puts(&b, "{\"a\":1");
    assert_int_equal(pnb__plane_put(query, hits, &b, NULL), PNB_OK);
    pnb__buf_putc(&b, '}');
    assert_int_equal(pnb__json_load_bytes(&all, b.data, b.size, "plane", NULL), PNB_OK);
    const json_t *plane = json_object_get(all, "plane"), *list = json_object_get(plane, "hits");
    const json_t *asked = json_object_get(plane, "query");
    assert_int_equal(json_array_size(list), 4);
    assert_int_equal(json_array_size(asked), 5);
    double step = json_number_value(json_array_get(json_array_get(list, 1), 0)) -
                  json_number_value(json_array_get(json_array_get(list, 0), 0));
    assert_true(fabs(fabs(step) - 1) < 1e-4);
    double wide = json_number_value(json_array_get(json_array_get(list, 0), 4));
    double narrow = json_number_value(json_array_get(asked, 4));
    assert_true(fabs(wide - exp(-2)) < 1e-3 && fabs(narrow - exp(-4)) < 1e-3);
    json_decref(all);
    pnb__buf_reset(&b);
    pnb_embeddings_free(query);
    pnb_embeddings_free(hits);
}

static void one_hit_is_no_plane(void **state)
{
    pnb_embeddings *query = rows(1, 0, -2), *hits = rows(1, 1, -2);
    pnb__buf b = {0};
    (void)state;
    assert_int_equal(pnb__plane_put(query, hits, &b, NULL), PNB_OK);
    assert_int_equal(b.size, 0);
    pnb_embeddings_free(query);
    pnb_embeddings_free(hits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ellipses),
                                       cmocka_unit_test(one_hit_is_no_plane)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
