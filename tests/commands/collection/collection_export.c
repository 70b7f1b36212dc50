/* An index that FAISS wrote for others and reads back: 1,000 queries, asked as the line says that
 * comes with it, find the rows in the order of csd, under the names beside it. */
#include "tests/store/fixture.h"

#include "commands/collection/collection.h"
#include "index/ann/faiss_bridge.h"
#include "io/json/json.h"
#include "report/result.h"

enum { ROWS = 700, QUERIES = 1000, K = 10 };

static pnb_status export(scratch *s, pnb__app *app, pnb__result *r, const char *to)
{
    char path[512], out[600];
    snprintf(path, sizeof path, "%s", scratch_path(s, "c"));
    snprintf(out, sizeof out, "%s", scratch_path(s, "c/out"));
    const pnb__row_filter all = {.min_uncertainty = NAN, .max_uncertainty = NAN};
    pnb__collection_export_opts opts = {.path = path, .to = to, .out = out, .filter = all};
    return pnb__collection_export(app, &opts, r);
}

/* The row of the endless list that line i of the payload is of. */
static void read_names(const char *path, size_t *row, size_t n)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    for (size_t i = 0; i < n; i++) {
        json_t *o = NULL;
        assert_non_null(fgets(line, sizeof line, f));
        assert_int_equal(pnb__json_load_bytes(&o, line, strlen(line), "line", NULL), PNB_OK);
        row[i] = strtoul(json_string_value(json_object_get(o, "id")) + 1, NULL, 10);
        json_decref(o);
    }
    assert_null(fgets(line, sizeof line, f));
    fclose(f);
}

static pnb__faiss *read_index(const char *path, size_t n)
{
    pnb__map map = {0};
    pnb__faiss *index = NULL;
    pnb__faiss_error why;
    assert_int_equal(pnb__map_open(&map, path, NULL), PNB_OK);
    assert_true(pnb__faiss_read(&index, map.data, map.size, n, WIDTH + 1, &why));
    assert_false(pnb__faiss_read(&index, map.data, map.size, n + 1, WIDTH + 1, &why));
    assert_string_equal(why.text, "it is an index of other rows");
    pnb__map_close(&map);
    return index;
}

/* What FAISS finds, line numbers (QUERIES, K), for [mean of the query, 1]. */
static void ask(const pnb__faiss *index, const pnb_embeddings *queries, int64_t *line)
{
    static float x[QUERIES * (WIDTH + 1)], product[QUERIES * K];
    pnb__faiss_error why;
    for (size_t q = 0; q < QUERIES; q++) {
        memcpy(x + q * (WIDTH + 1), queries->mean + q * WIDTH, WIDTH * sizeof *x);
        x[q * (WIDTH + 1) + WIDTH] = 1;
    }
    const pnb__faiss_query query = {.x = x, .n = QUERIES, .k = K, .effort = 1, .n_threads = 1};
    assert_true(pnb__faiss_search(index, &query, line, product, &why));
}

/* Hits of all ranks are the collection's own, but where scores are equal in single precision. */
static void assert_order(pnb_store *store, const pnb_embeddings *queries, const int64_t *line,
                         const size_t *row)
{
    static double score[2 * ROWS]; /* by number */
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    pnb_store_hits hits;
    pnb_error err = PNB_ERROR_INIT;
    size_t n_same = 0;
    opts.search.k = count_rows(store);
    opts.search.measure = PNB_MEASURE_CSD;
    assert_ok(pnb_store_search(store, NULL, queries, &opts, &hits, &err), &err);
    for (size_t q = 0; q < QUERIES; q++) {
        const int64_t *number = hits.number + q * hits.k;
        for (size_t i = 0; i < hits.k; i++)
            score[number[i]] = hits.score[q * hits.k + i];
        for (size_t r = 0; r < K; r++) {
            size_t found = row[line[q * K + r]] + 1; /* row r0 is number 1 */
            assert_true(fabs(score[found] - score[number[r]]) <= 1e-6);
            n_same += found == (size_t)number[r];
        }
    }
    assert_true((double)n_same >= 0.999 * QUERIES * K);
    pnb_store_hits_reset(&hits);
}

static void faiss_finds_the_same(void **state)
{
    scratch *s = *state;
    pnb_store *store = filled(s, ROWS, 300);
    pnb_embeddings *queries = rows_from(9000, QUERIES);
    pnb__app app = {.common = {.quiet = true}, .log = tmpfile()};
    pnb__result *r = pnb__result_create();
    static int64_t line[QUERIES * K];
    static size_t row[ROWS];
    for (size_t i = 0; i < 20; i++) /* lines are not numbers */
        remove_row(store, i * 31);
    if (pnb__faiss_version() == NULL) {
        assert_failed(export(s, &app, r, "faiss"), &app.err, PNB_UNSUPPORTED, "libfaiss-dev");
    } else {
        assert_ok(export(s, &app, r, "faiss"), &app.err);
        read_names(scratch_path(s, "c/out/payload.jsonl"), row, ROWS - 20);
        assert_int_equal(row[0], 1);
        pnb__faiss *index = read_index(scratch_path(s, "c/out/index.faiss"), ROWS - 20);
        ask(index, queries, line);
        assert_order(store, queries, line, row);
        pnb__faiss_free(index);
    }
    pnb__result_free(r);
    fclose(app.log);
    pnb_embeddings_free(queries);
    pnb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(faiss_finds_the_same, scratch_setup, store_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
