/* Searching a collection finds what pnb_search finds in one set of the rows that are left. */
#include "tests/store/fixture.h"

#include "penumbra/view.h"

enum { ROWS = 600, QUERIES = 9 };

/* Rows of the collection as one set, searched whole. */
static void assert_finds_the_same(pnb_store *store, const pnb_ctx *ctx, pnb_measure measure,
                                  const pnb_store_filter *filter, size_t k)
{
    pnb_store_rows rows = {0};
    pnb_embeddings *set = NULL, *queries = rows_from(5000, QUERIES);
    pnb_view gallery, asked;
    pnb_hits wanted = {0};
    pnb_store_hits found = {0};
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    opts.search.k = k;
    opts.search.measure = measure;
    opts.filter = filter;
    assert_ok(pnb_store_list(store, filter, 0, 0, &rows, &err), &err);
    assert_ok(pnb_store_set(store, &rows, &set, &err), &err);
    assert_ok(pnb_view_init(&gallery, set, &err), &err);
    assert_ok(pnb_view_init(&asked, queries, &err), &err);
    assert_ok(pnb_store_search(store, ctx, queries, &opts, &found, &err), &err);
    opts.search.measure = found.measure;
    assert_ok(pnb_search(ctx, &asked.rows, &gallery.rows, &opts.search, &wanted, &err), &err);
    for (size_t i = 0; i < QUERIES * k; i++) {
        int64_t number = wanted.index[i] >= 0 ? rows.items[wanted.index[i]].number : -1;
        assert_int_equal(found.number[i], number);
        assert_true(found.score[i] == wanted.score[i]);
    }
    pnb_view_reset(&gallery);
    pnb_view_reset(&asked);
    pnb_hits_reset(&wanted);
    pnb_store_hits_reset(&found);
    pnb_store_rows_reset(&rows);
    pnb_embeddings_free(set);
    pnb_embeddings_free(queries);
}

/* ROWS rows in four shards, each too small beside the one before to be joined with it. */
static pnb_store *in_four_shards(scratch *s)
{
    static const size_t sizes[] = {400, 150, 40, 10};
    pnb_store *store = filled(s, 0, 1);
    pnb_store_about about;
    pnb_error err = PNB_ERROR_INIT;
    for (size_t i = 0, at = 0; i < PNB_COUNT(sizes); at += sizes[i++])
        add_rows(store, at, sizes[i]);
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    assert_int_equal(about.n_shards, PNB_COUNT(sizes));
    assert_int_equal(about.n_rows, ROWS);
    return store;
}

static void one_set_and_many_shards(void **state)
{
    pnb_store *store = in_four_shards(*state);
    pnb_store_filter filter = pnb_store_filter_default();
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    opts.n_threads = 2;
    assert_ok(pnb_ctx_create(&ctx, &opts, &err), &err);
    assert_finds_the_same(store, ctx, PNB_N_MEASURES, NULL, 10);
    assert_finds_the_same(store, NULL, PNB_MEASURE_W2, NULL, 3); /* not what was prepared */
    for (size_t i = 0; i < 200; i++)
        remove_row(store, i * 3);
    assert_finds_the_same(store, ctx, PNB_N_MEASURES, NULL, 10);
    assert_finds_the_same(store, ctx, PNB_N_MEASURES, NULL, 500); /* more than there are */
    filter.max_uncertainty = 0.25; /* few pass: k come where k are there */
    assert_finds_the_same(store, ctx, PNB_N_MEASURES, &filter, 10);
    add_rows(store, ROWS, 1);
    assert_finds_the_same(store, ctx, PNB_N_MEASURES, NULL, 10);
    pnb_ctx_free(ctx);
    pnb_store_close(store);
}

/* Another handle that was open before sees what this one writes, at once. */
static void what_is_removed_is_gone_everywhere(void **state)
{
    scratch *s = *state;
    pnb_store *writer = filled(s, 40, 8), *reader = opened(scratch_path(s, "c"));
    pnb_embeddings *query = rows_from(17, 1);
    pnb_store_hits hits = {0};
    pnb_store_rows rows = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_search(reader, NULL, query, NULL, &hits, &err), &err);
    assert_ok(pnb_store_get(reader, hits.number, 1, &rows, &err), &err);
    assert_string_equal(rows.items[0].id, "r17");
    int64_t number = rows.items[0].number;
    pnb_store_rows_reset(&rows);
    pnb_store_hits_reset(&hits);
    remove_row(writer, 17);
    assert_ok(pnb_store_search(reader, NULL, query, NULL, &hits, &err), &err);
    for (size_t i = 0; i < hits.k; i++)
        assert_true(hits.number[i] != number && hits.number[i] >= 0);
    assert_ok(pnb_store_get(reader, &number, 1, &rows, &err), &err);
    assert_int_equal(rows.n, 0);
    pnb_store_hits_reset(&hits);
    /* and it does not come back under its number when it is added again */
    assert_int_equal(add_rows(writer, 17, 1).n_added, 1);
    assert_ok(pnb_store_search(reader, NULL, query, NULL, &hits, &err), &err);
    assert_true(hits.number[0] > number);
    pnb_store_hits_reset(&hits);
    pnb_store_rows_reset(&rows);
    pnb_embeddings_free(query);
    pnb_store_close(reader);
    pnb_store_close(writer);
}

static void bad_queries(void **state)
{
    pnb_store *store = filled(*state, 0, 1);
    pnb_embeddings *query = rows_from(0, 1);
    pnb_store_hits hits = {0};
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_search(store, NULL, query, NULL, &hits, &err), &err); /* nothing there */
    assert_int_equal(hits.number[9], -1);
    pnb_store_hits_reset(&hits);
    add_rows(store, 0, 5);
    opts.search.k = 0;
    assert_failed(pnb_store_search(store, NULL, query, &opts, &hits, &err), &err, PNB_ARG,
                  "k is 0");
    pnb_error_reset(&err);
    strcpy(query->info.weights_sha256, OTHER_WEIGHTS);
    assert_failed(pnb_store_search(store, NULL, query, NULL, &hits, &err), &err, PNB_ARG,
                  "different weights");
    pnb_error_reset(&err);
    query->dim = WIDTH / 2;
    assert_failed(pnb_store_search(store, NULL, query, NULL, &hits, &err), &err, PNB_SHAPE, "4");
    query->dim = WIDTH;
    pnb_embeddings_free(query);
    pnb_store_close(store);
}

#ifdef PNB_FAULTS
static pnb_status search_once(scratch *s, pnb_error *err)
{
    pnb_store *store = NULL;
    pnb_store_hits hits = {0};
    pnb_store_filter filter = pnb_store_filter_default();
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    float mean[WIDTH] = {1}, log_var[WIDTH] = {0};
    const pnb_embeddings query = {
        .family = PNB_GAUSSIAN_DIAG, .n = 1, .dim = WIDTH, .mean = mean, .log_var = log_var};
    pnb_status status;
    opts.filter = &filter;
    PNB_TRY(pnb_store_open(&store, scratch_path(s, "c"), err));
    status = pnb_store_search(store, NULL, &query, &opts, &hits, err);
done:
    pnb_store_hits_reset(&hits);
    pnb_store_close(store);
    return status;
}

static void out_of_memory(void **state)
{
    pnb_store *store = filled(*state, 12, 4);
    remove_row(store, 3);
    pnb_store_close(store);
    fail_every_allocation(search_once, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_set_and_many_shards),
        cmocka_unit_test(what_is_removed_is_gone_everywhere),
        cmocka_unit_test(bad_queries),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
