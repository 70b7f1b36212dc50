/* Samples of Parquet tables: rows with pictures, without captions, that were not fetched; columns
 * that are not read; damaged tables among others. The files are those of
 * tests/cli/common/parquet_tables.py. */
#include "tests/data/sources/opened.h"

/* A file of the fuzzer's corpus under a name in the scratch folder. */
static void put_table(const char *from, const char *name)
{
    char path[300], *bytes = NULL, *to = in_scratch(name);
    size_t n = 0;
    snprintf(path, sizeof path, PNB_SOURCE_DIR "/tests/fuzz/corpus/parquet/%s", from);
    ASSERT_OK(pnb__read_file(path, 1 << 20, &bytes, &n, &err));
    ASSERT_OK(pnb__write_file(to, bytes, n, &err));
    pnb__free(bytes);
    pnb__free(to);
}

static bool warns(const pnb_dataset *ds, const char *text)
{
    for (size_t i = 0; i < pnb_dataset_n_warnings(ds); i++)
        if (strstr(pnb_dataset_warning(ds, i), text) != NULL)
            return true;
    return false;
}

static void rows_are_samples(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_sample s = {0};
    pnb_image image;
    (void)state;
    put_table("fetched", "a.parquet");
    pnb_dataset *ds = open_ok("a.parquet", NULL);
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_PARQUET);
    assert_int_equal(pnb_dataset_size(ds), 3); /* not the one that failed, nor the bare one */
    assert_true(warns(ds, "1 rows whose status is not \"success\" left out"));
    assert_true(warns(ds, "1 rows without a caption left out"));
    expect_texts(ds, 0, "000000000", "zero");
    expect_texts(ds, 1, "000000002", "two");
    expect_image(ds, 0, 70);
    expect_image(ds, 1, 90);
    ASSERT_FAILS(pnb_dataset_image(ds, 2, &image, &err), PNB_FORMAT, "no picture in this row");
    ASSERT_OK(pnb_dataset_get(ds, 1, &s, &err));
    assert_non_null(strstr(s.json, "\"url\":\"https://x.example/2.png\""));
    assert_non_null(strstr(s.json, "\"clip_b32_similarity_score\":0.5"));
    assert_true(s.n_image_bytes > 8 && s.image_bytes[1] == 'P');
    pnb_sample_reset(&s);
    ASSERT_OK(pnb_dataset_get(ds, 2, &s, &err)); /* a row without a picture is a record */
    assert_null(s.image_bytes);
    pnb_sample_reset(&s);
    pnb_dataset_free(ds);
    opts.allow_no_caption = true;
    ds = open_ok("a.parquet", &opts);
    assert_int_equal(pnb_dataset_size(ds), 4);
    expect_image(ds, 2, 100);
    pnb_dataset_free(ds);
    opts.csv_caption_key = "url";
    ds = open_ok("a.parquet", &opts);
    expect_texts(ds, 3, "000000004", "https://x.example/4.png");
    pnb_dataset_free(ds);
}

static void columns_of_all_kinds_are_fields(void **state)
{
    pnb_sample s = {0};
    (void)state;
    put_table("none-2-1", "a.parquet");
    pnb_dataset *ds = open_ok("a.parquet", NULL);
    assert_int_equal(pnb_dataset_size(ds), 19);
    ASSERT_OK(pnb_dataset_get(ds, 3, &s, &err));
    assert_string_equal(s.key, "00000000000000000000000000000003");
    assert_non_null(strstr(s.json, "\"half\":1.5,\"width\":-7,\"big\":29999999995,\"flag\":true}"));
    assert_null(strstr(s.json, "score")); /* a null is no field */
    assert_int_equal(s.n_image_bytes, 8);
    pnb_sample_reset(&s);
    pnb_dataset_free(ds);
    put_table("odd", "a.parquet");
    ds = open_ok("a.parquet", NULL);
    assert_int_equal(pnb_dataset_size(ds), 3);
    expect_texts(ds, 1, "row 1", "two");
    assert_true(warns(ds, "column tags: is a list, which is left out"));
    assert_true(warns(ds, "column delta: its encoding, DELTA_BINARY_PACKED, is not read; the "
                          "column is left out"));
    assert_true(warns(ds, "column brotli") && warns(ds, "column secret: is encrypted"));
    pnb_dataset_free(ds);
}

static void folders_of_tables(void **state)
{
    (void)state;
    put_text(scratch, "f/2.parquet", "PAR1 and no more of it");
    put_table("fetched", "f/0.parquet");
    put_table("none-1-0", "f/1.parquet");
    pnb_dataset *ds = open_ok("f", NULL);
    assert_int_equal(pnb_dataset_size(ds), 3 + 19);
    assert_int_equal(pnb_dataset_n_damaged(ds), 1);
    assert_true(warns(ds, "f/2.parquet: is no Parquet table"));
    pnb_dataset_free(ds);
    open_fails("f/2.parquet", NULL, PNB_FORMAT, "is no Parquet table");
}

/* A footer may say any number of rows: what is said is checked before it is believed. */
static void claims_are_not_believed(void **state)
{
    static const struct {
        const char *file;
        pnb_status status;
        const char *text;
    } lies[] = {
        {"no-columns", PNB_FORMAT, "no column that is read"},
        {"rows-of-lists", PNB_FORMAT, "no column that is read"},
        {"long-run", PNB_LIMIT, "a row group of 2147483647 rows, at most 67108864 are read"},
        {"index-beyond", PNB_FORMAT, "column caption: a page has fewer values than it says"},
        {"long-dictionary", PNB_FORMAT, "a dictionary of more values than it has room for"}};
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    for (size_t i = 0; i < 2 * PNB_COUNT(lies); i++) {
        opts.allow_no_caption = i % 2 == 1;
        put_table(lies[i / 2].file, "lie.parquet");
        open_fails("lie.parquet", &opts, lies[i / 2].status, lies[i / 2].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(columns_of_all_kinds_are_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(claims_are_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(folders_of_tables, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
