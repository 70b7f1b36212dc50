/* A collection in Postgres does what one in SQLite does, batch by batch; and what becomes of it
 * when the server goes away in between. */
#include "tests/store/postgres/server.h"

static server pg;

static void search_both(pnb_store *a, pnb_store *b, const pnb_store_filter *filter)
{
    pnb_embeddings *queries = rows_from(900, 7);
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    pnb_store_hits x = {0}, y = {0};
    pnb_error err = PNB_ERROR_INIT;
    opts.search.k = 12;
    opts.filter = filter;
    assert_ok(pnb_store_search(a, NULL, queries, &opts, &x, &err), &err);
    assert_ok(pnb_store_search(b, NULL, queries, &opts, &y, &err), &err);
    assert_memory_equal(x.number, y.number, 7 * 12 * sizeof *x.number);
    assert_memory_equal(x.score, y.score, 7 * 12 * sizeof *x.score);
    pnb_store_hits_reset(&x);
    pnb_store_hits_reset(&y);
    pnb_embeddings_free(queries);
}

static void compare_rows(pnb_store *a, pnb_store *b)
{
    pnb_store_rows x = {0}, y = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_list(a, NULL, 0, 10000, &x, &err), &err);
    assert_ok(pnb_store_list(b, NULL, 0, 10000, &y, &err), &err);
    assert_int_equal(x.n, y.n);
    for (size_t i = 0; i < x.n; i++) {
        assert_true(x.items[i].number == y.items[i].number);
        assert_string_equal(x.items[i].id, y.items[i].id);
        assert_string_equal(x.items[i].sha256, y.items[i].sha256);
        assert_int_equal(x.items[i].text == NULL, y.items[i].text == NULL);
        assert_true(x.items[i].uncertainty == y.items[i].uncertainty);
    }
    pnb_store_rows_reset(&x);
    pnb_store_rows_reset(&y);
}

/* A batch in which two rows have one id, and one has that of a row that is there. */
static void add_replacing(pnb_store *store)
{
    pnb_embeddings *e = rows_from(500, 6);
    const pnb_store_batch batch = {.set = e};
    pnb_store_added added = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_embeddings_set_id(e, 1, "twice \xff", &err), &err);
    assert_ok(pnb_embeddings_set_id(e, 4, "twice \xff", &err), &err);
    assert_ok(pnb_embeddings_set_id(e, 2, "r3", &err), &err);
    assert_ok(pnb_store_add(store, &batch, &added, &err), &err);
    assert_int_equal(added.n_added, 6);
    assert_int_equal(added.n_replaced, 2);
    pnb_embeddings_free(e);
}

static void as_in_sqlite(void **state)
{
    scratch *s = *state;
    pnb_store *a = filled(s, 90, 20), *b = made_in(&pg, s, "p", false);
    pnb_store_filter filter = pnb_store_filter_default();
    pnb_store_verified found;
    pnb_error err = PNB_ERROR_INIT;
    for (size_t at = 0; at < 90; at += 20)
        add_rows(b, at, PNB_MIN((size_t)20, 90 - at));
    search_both(a, b, NULL);
    for (size_t i = 5; i < 60; i += 3) {
        remove_row(a, i);
        remove_row(b, i);
    }
    add_replacing(a);
    add_replacing(b);
    compare_rows(a, b);
    search_both(a, b, NULL);
    filter.max_uncertainty = 0.2;
    search_both(a, b, &filter);
    assert_int_equal(add_rows(b, 0, 20).n_added, add_rows(a, 0, 20).n_added);
    search_both(a, b, NULL);
    pnb_store *c = made_in(&pg, s, "q", true);
    search_both(b, c, NULL);
    pnb_store_close(c);
    pnb_store_close(a);
    assert_ok(pnb_store_verify(scratch_path(s, "p"), NULL, &found, &err), &err);
    assert_int_equal(found.n_problems, 0);
    assert_int_equal(found.n_rows, count_rows(b));
    pnb_store_close(b);
}

/* Thumbnails go with their rows, and pages come in the other orders too. */
static void thumbnails_and_orders(void **state)
{
    scratch *s = *state;
    pnb_store *b = opened(scratch_path(s, "p"));
    static const unsigned char bytes[200] = {0, 1, 255, 7};
    pnb_store_thumbnail images[3] = {{NULL, 0}, {bytes, sizeof bytes}, {bytes, 3}};
    pnb_embeddings *e = rows_from(3000, 3);
    const pnb_store_batch batch = {.set = e, .thumbnails = images};
    pnb_error err = PNB_ERROR_INIT;
    pnb_store_rows rows = {0};
    unsigned char *found = NULL;
    size_t n = 0;
    assert_ok(pnb_store_add(b, &batch, NULL, &err), &err);
    const char *const ids[] = {"r3001", "r3000"};
    assert_ok(pnb_store_get_ids(b, ids, 2, &rows, &err), &err);
    assert_ok(pnb_store_get_thumbnail(b, rows.items[0].number, &found, &n, &err), &err);
    assert_int_equal(n, sizeof bytes);
    assert_memory_equal(found, bytes, n);
    pnb_store_thumbnail_free(found);
    assert_int_equal(pnb_store_get_thumbnail(b, rows.items[1].number, &found, &n, &err),
                     PNB_NOT_FOUND);
    pnb_error_reset(&err);
    remove_row(b, 3001);
    assert_int_equal(pnb_store_get_thumbnail(b, rows.items[0].number, &found, &n, &err),
                     PNB_NOT_FOUND);
    pnb_error_reset(&err);
    pnb_store_rows_reset(&rows);
    for (int order = PNB_STORE_OLDEST; order <= PNB_STORE_UNCERTAIN; order++) {
        assert_ok(pnb_store_first(b, NULL, (pnb_store_order)order, 20, &rows, &err), &err);
        for (size_t i = 1; i < rows.n; i++) {
            const pnb_store_row *x = &rows.items[i - 1], *y = &rows.items[i];
            assert_true(order == PNB_STORE_OLDEST    ? x->number < y->number
                        : order == PNB_STORE_NEWEST  ? x->number > y->number
                        : order == PNB_STORE_CERTAIN ? x->uncertainty <= y->uncertainty
                                                     : x->uncertainty >= y->uncertainty);
        }
        assert_int_equal(rows.n, 20);
        pnb_store_rows_reset(&rows);
    }
    pnb_embeddings_free(e);
    pnb_store_close(b);
}

/* The folder "p" of the tests before. */
static void away_and_back(void **state)
{
    scratch *s = *state;
    pnb_store *store = opened(scratch_path(s, "p")), *other = NULL;
    pnb_error err = PNB_ERROR_INIT;
    size_t n = count_rows(store);
    assert_ok(pnb_store_begin(store, 0, &err), &err);
    other = opened(scratch_path(s, "q"));
    assert_failed(pnb_store_begin(other, 0, &err), &err, PNB_BUSY, "another program is writing");
    server_stop(&pg);
    pnb_error_reset(&err);
    pnb_store_about about;
    assert_failed(pnb_store_describe(store, &about, &err), &err, PNB_IO, "does not answer");
    pnb_error_reset(&err);
    assert_failed(try_add(store, 2000, 5, NULL, &err), &err, PNB_IO, "does not answer");
    server_again(&pg);
    assert_int_equal(count_rows(store), n);
    assert_int_equal(add_rows(store, 2000, 5).n_added, 5); /* and it is the writer again */
    pnb_error_reset(&err);
    assert_failed(pnb_store_begin(other, 0, &err), &err, PNB_BUSY, "another program is writing");
    assert_int_equal(count_rows(other), n + 5);
    pnb_store_end(store);
    pnb_error_reset(&err);
    assert_ok(pnb_store_begin(other, 5, &err), &err);
    pnb_store_close(other);
    pnb_store_close(store);
}

int main(void)
{
    server_start(&pg);
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_in_sqlite),
                                       cmocka_unit_test(thumbnails_and_orders),
                                       cmocka_unit_test(away_and_back)};
    int n_failed = cmocka_run_group_tests(tests, scratch_setup, store_teardown);
    server_end(&pg);
    return n_failed;
}
