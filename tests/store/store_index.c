/* Indexes of a collection: built beside shards, used by searches, gone with their shards; rows that
 * came later and rows that were removed are as in any search. */
#include "tests/store/fixture.h"

#include <dirent.h>
#include <math.h>

static size_t count_files(scratch *s, const char *ending)
{
    size_t n = 0;
    DIR *dir = opendir(scratch_path(s, "c/shards"));
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += pnb__ends_with(e->d_name, ending);
    closedir(dir);
    return n;
}

static pnb_store_hits search(pnb_store *store, pnb_index_kind kind)
{
    pnb_embeddings *queries = rows_from(9000, 12);
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    pnb_store_hits hits = {0};
    pnb_error err = PNB_ERROR_INIT;
    opts.search.kind = kind;
    opts.search.k = 8;
    assert_ok(pnb_store_search(store, NULL, queries, &opts, &hits, &err), &err);
    pnb_embeddings_free(queries);
    return hits;
}

static double share_found(pnb_store *store, pnb_index_kind kind, size_t *n_unsure)
{
    pnb_store_hits truth = search(store, PNB_INDEX_EXACT), found = search(store, kind);
    size_t n = 12 * 8, n_right = 0;
    for (size_t i = 0; i < n; i++)
        n_right += fabs(found.score[i] - truth.score[i]) <= 1e-10;
    *n_unsure = found.n_unsure;
    pnb_store_hits_reset(&truth);
    pnb_store_hits_reset(&found);
    return (double)n_right / (double)n;
}

static void compressed(void **state)
{
    pnb_store *store = filled(*state, 300, 100);
    size_t n_unsure;
    remove_row(store, 7);
    assert_true(share_found(store, PNB_INDEX_INT8, &n_unsure) >= 0.99);
    assert_true(share_found(store, PNB_INDEX_BF16, &n_unsure) >= 0.99);
    assert_int_equal(count_files(*state, ".int8"), 0);
    pnb_store_close(store);
}

static void built(void **state)
{
    scratch *s = *state;
    pnb_store *store = filled(s, 3000, 3000);
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_store_built made = {0};
    pnb_error err = PNB_ERROR_INIT;
    size_t n_unsure = 0;
    opts.measure = PNB_N_MEASURES;
    opts.kind = PNB_INDEX_EXACT;
    assert_failed(pnb_store_build(store, NULL, &opts, &made, &err), &err, PNB_ARG, "hnsw and ivf");
    pnb_error_reset(&err);
    assert_true(share_found(store, PNB_INDEX_IVF, &n_unsure) >= 1.0); /* none yet: exact */
    assert_int_equal(n_unsure, 0);
    opts.kind = PNB_INDEX_IVF;
    pnb_status status = pnb_store_build(store, NULL, &opts, &made, &err);
    if (status == PNB_UNSUPPORTED) { /* a build without FAISS */
        pnb_store_close(store);
        skip();
    }
    assert_ok(status, &err);
    assert_true(made.n_built == 1 && made.n_shards == 1 && made.least_recall >= 0.99);
    assert_int_equal(count_files(s, ".ivf"), 1);
    assert_true(share_found(store, PNB_INDEX_IVF, &n_unsure) >= 0.6);
    assert_int_equal(n_unsure, 12);
    double recall = made.least_recall;
    assert_ok(pnb_store_build(store, NULL, &opts, &made, &err), &err);
    assert_true(made.n_built == 0 && made.bytes <= 0); /* but what is there is told */
    assert_true(fabs(made.least_recall - recall) <= 1e-6);
    opts.measure = PNB_MEASURE_MEAN;
    assert_failed(pnb_store_build(store, NULL, &opts, &made, &err), &err, PNB_ARG,
                  "another measure");
    pnb_error_reset(&err);
    assert_ok(pnb_store_build(store, NULL, &opts, NULL, &err), &err); /* not looked at */
    opts.measure = PNB_N_MEASURES;
    for (size_t i = 0; i < 300; i++)
        remove_row(store, i * 3);
    add_rows(store, 5000, 40);
    assert_true(share_found(store, PNB_INDEX_IVF, &n_unsure) >= 0.6);
    assert_int_equal(count_files(s, ".ivf"), 1); /* a writer leaves it where its shard is */
    add_rows(store, 6000, 2500);                 /* joined: another shard */
    assert_ok(pnb_store_begin(store, 0, &err), &err);
    pnb_store_end(store);
    assert_int_equal(count_files(s, ".ivf"), 0);
    pnb_store_verified found;
    pnb_store_close(store);
    assert_ok(pnb_store_verify(scratch_path(s, "c"), NULL, &found, &err), &err);
    assert_int_equal(found.n_leftovers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(compressed), cmocka_unit_test(built)};
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
