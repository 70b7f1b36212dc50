/* Rows of a collection come back as they went in, page by page, until they are removed. */
#include "tests/store/fixture.h"

static void rows_come_back(void **state)
{
    pnb_store *store = filled(*state, 30, 7);
    pnb_store_rows rows = {0};
    pnb_embeddings *set = NULL, *wanted = rows_from(0, 30);
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_list(store, NULL, 0, 0, &rows, &err), &err);
    assert_int_equal(rows.n, 30);
    assert_ok(pnb_store_set(store, &rows, &set, &err), &err);
    assert_memory_equal(set->mean, wanted->mean, 30 * WIDTH * sizeof(float));
    assert_memory_equal(set->log_var, wanted->log_var, 30 * WIDTH * sizeof(float));
    for (size_t i = 0; i < 30; i++) {
        double trace = 0;
        for (size_t d = 0; d < WIDTH; d++)
            trace += exp((double)wanted->log_var[i * WIDTH + d]);
        assert_string_equal(set->ids[i], wanted->ids[i]);
        assert_string_equal(rows.items[i].id, wanted->ids[i]);
        assert_true(fabs(rows.items[i].uncertainty - trace) <= 1e-6 * trace);
        if (i % 2 == 0)
            assert_string_equal(rows.items[i].text, "an even \"row\"");
        else
            assert_null(rows.items[i].text);
    }
    assert_string_equal(set->info.weights_sha256, WEIGHTS);
    pnb_embeddings_free(set);
    pnb_embeddings_free(wanted);
    pnb_store_rows_reset(&rows);
    pnb_store_close(store);
}

/* Pages of 4 with a row removed between two of them: no row twice, none but that one lost. */
static void pages(void **state)
{
    pnb_store *store = filled(*state, 20, 20);
    pnb_error err = PNB_ERROR_INIT;
    int64_t after = 0;
    size_t n_seen = 0;
    for (;;) {
        pnb_store_rows rows = {0};
        assert_ok(pnb_store_list(store, NULL, after, 4, &rows, &err), &err);
        for (size_t i = 0; i < rows.n; i++) {
            assert_true(rows.items[i].number > after);
            after = rows.items[i].number;
        }
        n_seen += rows.n;
        size_t n = rows.n;
        pnb_store_rows_reset(&rows);
        if (n == 0)
            break;
        if (n_seen == 4)
            remove_row(store, 10);
    }
    assert_int_equal(n_seen, 19);
    pnb_store_close(store);
}

/* Rows 0 .. 9 of the collection with tags, times and captions of their own. */
static void add_described(pnb_store *store)
{
    static const char *const both[] = {"sea", "2024, summer"};
    int64_t times[5] = {100, 50, 400, 300, 200}; /* the clock of a camera that jumps */
    pnb_error err = PNB_ERROR_INIT;
    for (size_t i = 0; i < 2; i++) {
        pnb_embeddings *e = rows_from(5 * i, 5);
        assert_ok(pnb_embeddings_set_path(e, 0, "a/\xff strange.png", &err), &err);
        assert_ok(pnb_embeddings_set_extra(e, 0, "{\"url\":\"http://x\"}", &err), &err);
        const pnb_store_batch batch = {.set = e, .time = times, .tags = both, .n_tags = 1 + i};
        assert_ok(pnb_store_add(store, &batch, NULL, &err), &err);
        pnb_embeddings_free(e);
    }
}

static size_t count_passing(pnb_store *store, const pnb_store_filter *filter)
{
    pnb_store_rows rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_list(store, filter, 0, 0, &rows, &err), &err);
    size_t n = rows.n;
    pnb_store_rows_reset(&rows);
    return n;
}

static void filters(void **state)
{
    static const char *const tags[] = {"2024, summer", "sea"}, *const none[] = {"se"};
    pnb_store *store = filled(*state, 0, 1);
    pnb_store_filter filter = pnb_store_filter_default();
    add_described(store);
    assert_int_equal(count_passing(store, &filter), 10);
    filter.tags = tags + 1;
    filter.n_tags = 1;
    assert_int_equal(count_passing(store, &filter), 10);
    filter.tags = tags;
    assert_int_equal(count_passing(store, &filter), 5);
    filter.n_tags = 2;
    assert_int_equal(count_passing(store, &filter), 5);
    filter.since = 100;
    filter.until = 300;
    assert_int_equal(count_passing(store, &filter), 3);
    filter.tags = none;
    filter.n_tags = 1;
    assert_int_equal(count_passing(store, &filter), 0);
    filter = pnb_store_filter_default();
    filter.min_uncertainty = 1e9;
    assert_int_equal(count_passing(store, &filter), 0);
    filter.min_uncertainty = 0;
    filter.max_uncertainty = 1e9;
    assert_int_equal(count_passing(store, &filter), 10);
    pnb_store_close(store);
}

static void one_row(void **state)
{
    static const char *const ids[] = {"r5", "nobody", "r2"};
    pnb_store *store = filled(*state, 0, 1);
    pnb_store_rows rows = {0};
    pnb_embeddings *set = NULL;
    pnb_error err = PNB_ERROR_INIT;
    add_described(store);
    assert_ok(pnb_store_get_ids(store, ids, 3, &rows, &err), &err);
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.items[0].id, "r5");
    assert_string_equal(rows.items[0].path, "a/\xff strange.png");
    assert_string_equal(rows.items[0].extra, "{\"url\":\"http://x\"}");
    assert_string_equal(rows.items[0].tags, "2024, summer\nsea");
    assert_int_equal(rows.items[1].time, 400);
    /* a row that goes while somebody holds the list */
    remove_row(store, 2);
    assert_failed(pnb_store_set(store, &rows, &set, &err), &err, PNB_NOT_FOUND, "row r2");
    pnb_store_rows_reset(&rows);
    pnb_store_close(store);
}

static void bad_tags(void **state)
{
    static const char *const tags[] = {"", "two\nlines", "not \xff UTF-8"};
    pnb_store *store = filled(*state, 3, 3);
    pnb_embeddings *e = rows_from(3, 1);
    for (size_t i = 0; i < PNB_COUNT(tags); i++) {
        pnb_error err = PNB_ERROR_INIT;
        const pnb_store_batch batch = {.set = e, .tags = tags + i, .n_tags = 1};
        assert_failed(pnb_store_add(store, &batch, NULL, &err), &err, PNB_ARG, "is no tag");
    }
    assert_int_equal(count_rows(store), 3);
    pnb_embeddings_free(e);
    pnb_store_close(store);
}

static const char *first_id(pnb_store *store, pnb_store_order order, pnb_store_rows *rows)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_store_rows_reset(rows);
    assert_ok(pnb_store_first(store, NULL, order, 5, rows, &err), &err);
    assert_int_equal(rows->n, 5);
    for (size_t i = 1; i < 5; i++) {
        const pnb_store_row *a = &rows->items[i - 1], *b = &rows->items[i];
        assert_true(order != PNB_STORE_CERTAIN || a->uncertainty <= b->uncertainty);
        assert_true(order != PNB_STORE_UNCERTAIN || a->uncertainty >= b->uncertainty);
    }
    return rows->items[0].id;
}

static void first_rows(void **state)
{
    pnb_store *store = filled(*state, 40, 9);
    pnb_store_rows all = {0}, rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    size_t least = 0, most = 0;
    assert_ok(pnb_store_list(store, NULL, 0, 0, &all, &err), &err);
    for (size_t i = 0; i < all.n; i++) {
        least = all.items[i].uncertainty < all.items[least].uncertainty ? i : least;
        most = all.items[i].uncertainty > all.items[most].uncertainty ? i : most;
    }
    assert_string_equal(first_id(store, PNB_STORE_OLDEST, &rows), "r0");
    assert_string_equal(first_id(store, PNB_STORE_NEWEST, &rows), "r39");
    assert_string_equal(first_id(store, PNB_STORE_CERTAIN, &rows), all.items[least].id);
    assert_string_equal(first_id(store, PNB_STORE_UNCERTAIN, &rows), all.items[most].id);
    pnb_store_rows_reset(&rows);
    pnb_store_rows_reset(&all);
    pnb_store_close(store);
}

static void thumbnails_go_with_their_rows(void **state)
{
    static const pnb_store_thumbnail images[3] = {{"one", 3}, {NULL, 0}, {"th\0ree", 6}};
    pnb_store *store = filled(*state, 3, 3); /* of before thumbnails */
    pnb_embeddings *e = rows_from(3, 3);
    pnb_store_rows rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    unsigned char *bytes = NULL;
    size_t n = 0;
    const pnb_store_batch batch = {.set = e, .thumbnails = images};
    assert_ok(pnb_store_add(store, &batch, NULL, &err), &err);
    assert_ok(pnb_store_list(store, NULL, 0, 0, &rows, &err), &err);
    assert_int_equal(rows.n, 6);
    for (size_t i = 0; i < 6; i++) {
        int64_t number = rows.items[i].number;
        const pnb_store_thumbnail *wanted = i >= 3 ? &images[i - 3] : &images[1];
        if (wanted->bytes == NULL) {
            assert_failed(pnb_store_get_thumbnail(store, number, &bytes, &n, &err), &err,
                          PNB_NOT_FOUND, "has no thumbnail");
            pnb_error_reset(&err);
            continue;
        }
        assert_ok(pnb_store_get_thumbnail(store, number, &bytes, &n, &err), &err);
        assert_int_equal(n, wanted->n_bytes);
        assert_memory_equal(bytes, wanted->bytes, n);
        pnb_store_thumbnail_free(bytes);
    }
    remove_row(store, 5);
    assert_failed(pnb_store_get_thumbnail(store, rows.items[5].number, &bytes, &n, &err), &err,
                  PNB_NOT_FOUND, "has no thumbnail");
    pnb_store_rows_reset(&rows);
    pnb_embeddings_free(e);
    pnb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_rows),     cmocka_unit_test(thumbnails_go_with_their_rows),
        cmocka_unit_test(rows_come_back), cmocka_unit_test(pages),
        cmocka_unit_test(filters),        cmocka_unit_test(one_row),
        cmocka_unit_test(bad_tags)};
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
