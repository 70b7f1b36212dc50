/* What replies say of a row beside its id: fields that mean something to others, never where the
 * row lies on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "commands/serve/gallery_side.h"

static void check(const char *extra, bool has_text, const char *want)
{
    pnb__buf b = {0};
    pnb__buf_puts(&b, "{");
    pnb__gallery_put_extra(extra, has_text, &b);
    assert_string_equal(b.data, want);
    pnb__buf_reset(&b);
}

static void fields_for_others(void **state)
{
    (void)state;
    check("{\"path\":\"/home/x.png\",\"shard\":\"a.tar\",\"url\":\"http://a/b\",\"level\":2}",
          false, "{,\"url\":\"http://a/b\",\"level\":2");
    check("{\"caption\":\"of its own\",\"uid\":\"7\"}", false,
          "{,\"caption\":\"of its own\",\"uid\":\"7\"");
    check("{\"caption\":\"of its own\",\"uid\":\"7\"}", true, "{,\"uid\":\"7\"");
    check("not JSON", false, "{");
}

/* Of rows along one axis, each wider than the one before: the query itself is no answer, however
 * often it is there. */
static void a_query_is_not_related_to_itself(void **state)
{
    enum { N = 6, DIM = 2 };
    pnb_embeddings *rows = NULL, *query = NULL;
    pnb__found found[N];
    size_t n = 0;
    (void)state;
    assert_int_equal(pnb_embeddings_create(&rows, PNB_GAUSSIAN_DIAG, N, DIM, NULL), PNB_OK);
    assert_int_equal(pnb_embeddings_create(&query, PNB_GAUSSIAN_DIAG, 1, DIM, NULL), PNB_OK);
    for (size_t i = 0; i < N; i++) {
        rows->mean[i * DIM] = 1;
        rows->log_var[i * DIM] = rows->log_var[i * DIM + 1] = -6 + (float)(i / 2); /* twice each */
    }
    memcpy(query->mean, rows->mean + (size_t)2 * DIM, DIM * sizeof(float));
    for (int inside = 0; inside < 2; inside++) {
        /* embedded on another path, its last digits differ: a little wider, or narrower */
        query->log_var[0] = query->log_var[1] = rows->log_var[4] + (inside ? 2e-6F : -2e-6F);
        assert_int_equal(pnb__gallery_related(NULL, query, rows, inside != 0, 2, found, &n, NULL),
                         PNB_OK);
        assert_true(n > 0 && n <= 2);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(found[i].row / 2, inside ? 0 : 2);
    }
    pnb_embeddings_free(query);
    pnb_embeddings_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_for_others),
                                       cmocka_unit_test(a_query_is_not_related_to_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
