/* What is searched and how lists end, with a gallery of a few lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "server/searching/search_queries.h"

enum { N = 5 };

/* Rows come in their order, each a tenth less likely than the one before. */
static pnb_status search_rows(void *self, const pnb_embeddings *query, const pnb__gallery_ask *ask,
                              pnb__found *out, size_t *n, pnb__gallery_way *way, pnb_error *err)
{
    (void)self;
    assert_null(ask->only);
    assert_null(way->approx);
    (void)query;
    (void)err;
    assert_true(ask->k <= N);
    way->measure = "csd";
    for (*n = 0; *n < ask->k; (*n)++)
        out[*n] = (pnb__found){*n, 1.0 - (double)*n, 0.9 - 0.1 * (double)*n, 0};
    return PNB_OK;
}

static pnb_status find_id(void *self, const char *id, size_t *row, pnb_error *err)
{
    (void)self;
    *row = 2;
    return strcmp(id, "two") == 0 ? PNB_OK : pnb__fail(err, PNB_NOT_FOUND, "no '%s'", id);
}

static pnb_status take_row(void *self, const size_t *rows, size_t n, pnb_embeddings **out,
                           pnb_error *err)
{
    (void)self;
    assert_true(n == 1 && rows[0] == 2);
    return pnb_embeddings_create(out, PNB_POINT, 1, 2, err);
}

static pnb_status count_rows(void *self, size_t *n, pnb_error *err)
{
    (void)self;
    (void)err;
    *n = N;
    return PNB_OK;
}

static const pnb__gallery_calls calls = {
    .search = search_rows, .find = find_id, .take = take_row, .count = count_rows};
static pnb__gallery galleries[] = {{&calls, NULL, "photos", "image"},
                                   {&calls, NULL, "captions", "text"}};

static void galleries_by_name_and_kind(void **state)
{
    pnb__served s = {.galleries = galleries, .n_galleries = 2};
    const pnb__gallery *g = NULL;
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    assert_ptr_equal(pnb__gallery_of(&s, NULL, NULL), &galleries[0]);
    assert_ptr_equal(pnb__gallery_of(&s, "captions", NULL), &galleries[1]);
    assert_ptr_equal(pnb__gallery_of(&s, NULL, "text"), &galleries[1]);
    assert_ptr_equal(pnb__gallery_of(&s, "photos", "text"), &galleries[0]);
    assert_null(pnb__gallery_of(&s, "phot", NULL));
    assert_int_equal(pnb__gallery_find(&g, &s, "phot", NULL, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "photos, captions"));
    pnb_error_reset(&err);
    s.n_galleries = 0;
    assert_int_equal(pnb__gallery_find(&g, &s, NULL, NULL, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "nothing to search in"));
}

static void a_row_does_not_find_itself(void **state)
{
    pnb__server s;
    pnb__query_row query = {0};
    pnb__found found[N + 1];
    pnb__gallery_way way;
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    assert_int_equal(pnb__server_init(&s, 0, NULL), PNB_OK);
    assert_int_equal(pnb__query_of_id(&galleries[0], "one", &query, &err), PNB_NOT_FOUND);
    assert_int_equal(pnb__query_of_id(&galleries[0], "two", &query, NULL), PNB_OK);
    for (size_t k = 1; k <= N; k++) {
        const pnb__gallery_ask ask = {.k = k};
        assert_int_equal(
            pnb__server_search(s.now, &galleries[0], &query, &ask, found, &n, &way, NULL), PNB_OK);
        assert_string_equal(way.measure, "csd");
        assert_int_equal(n, PNB_MIN(k, (size_t)N - 1));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(found[i].row, i < 2 ? i : i + 1);
    }
    query.is_row = false;
    const pnb__gallery_ask three = {.k = 3};
    assert_int_equal(
        pnb__server_search(s.now, &galleries[0], &query, &three, found, &n, &way, NULL), PNB_OK);
    assert_true(n == 3 && found[2].row == 2);
    pnb_embeddings_free(query.set);
    pnb__server_reset(&s);
}

static void lists_end_where_matches_do(void **state)
{
    static const struct {
        double least;
        size_t n;
    } cases[] = {{NAN, N}, {0, N}, {0.5, N}, {0.65, 3}, {0.9, 1}, {0.91, 0}};
    pnb__found found[N];
    (void)state;
    for (size_t i = 0; i < N; i++)
        found[i] = (pnb__found){.p_match = 0.9 - 0.1 * (double)i};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        size_t n = N;
        assert_int_equal(pnb__cut_found(found, &n, cases[i].least, NULL), PNB_OK);
        assert_int_equal(n, cases[i].n);
    }
    size_t n = N;
    found[0].p_match = NAN;
    assert_int_equal(pnb__cut_found(found, &n, 0.5, NULL), PNB_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(galleries_by_name_and_kind),
                                       cmocka_unit_test(a_row_does_not_find_itself),
                                       cmocka_unit_test(lists_end_where_matches_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
