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

static bool notes(const pnb_dataset *ds, const char *text)
{
    for (size_t i = 0; i < pnb_dataset_n_notes(ds); i++)
        if (strstr(pnb_dataset_note(ds, i), text) != NULL)
            return true;
    assert_string_equal(pnb_dataset_note(ds, pnb_dataset_n_notes(ds)), "");
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
    assert_true(notes(ds, "column tags: is a list, which is left out"));
    assert_true(notes(ds, "column bits: its encoding, BIT_PACKED, is not read of such a column; "
                          "the column is left out"));
    assert_true(notes(ds, "column brotli") && notes(ds, "column secret: is encrypted"));
    assert_int_equal(pnb_dataset_n_warnings(ds), 0); /* nobody asked for these */
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

/* What types say of numbers and bytes is what a record has. */
static void types_are_believed(void **state)
{
    pnb_sample s = {0};
    (void)state;
    put_table("duckdb-1-types", "a.parquet");
    pnb_dataset *ds = open_ok("a.parquet", NULL);
    assert_int_equal(pnb_dataset_size(ds), 20);
    assert_true(notes(ds, "column wide: is a decimal of bytes, which is left out"));
    assert_true(notes(ds, "column span: is neither text, number nor flag, which is left out"));
    assert_true(notes(ds, "column tags.list.element: is a list, which is left out"));
    assert_int_equal(pnb_dataset_n_notes(ds), 3);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1); /* rows without a caption */
    ASSERT_OK(pnb_dataset_get(ds, 1, &s, &err));
    assert_string_equal(
        s.json, "{\"key\":\"000000001\",\"caption\":\"\xC3\xA9toile\",\"width\":-7,"
                "\"uuid\":\"123456789abcdef08000000000000001\",\"price\":-1.7500,"
                "\"sum\":100000000001.00,\"u32\":4294967294,\"u64\":\"18446744073709551614\","
                "\"u8\":251,\"i8\":-11,\"day\":19724,\"image.path\":\"a/1.png\","
                "\"image.size.w\":-7,\"exif\":\"{\\\"a\\\": 1}\",\"huge\":1.0}");
    pnb_sample_reset(&s);
    pnb_dataset_free(ds);
    put_table("hyparquet-index", "a.parquet");
    ds = open_ok("a.parquet", NULL);
    ASSERT_OK(pnb_dataset_get(ds, 0, &s, &err));
    assert_non_null(strstr(s.json, "\"half\":-1.0,\"uuid\":\"123456789abcdef08000000000000000\"}"));
    pnb_sample_reset(&s);
    pnb_dataset_free(ds);
    put_table("arrow-rs-codecs", "a.parquet"); /* of names that no signed number holds */
    ds = open_ok("a.parquet", NULL);
    assert_true(
        warns(ds, "column url: is packed by BROTLI, which is not read; the column is left"));
    expect_texts(ds, 1, "18446744073709551614", "\xC3\xA9toile");
    pnb_dataset_free(ds);
}

/* Pictures and captions, whoever wrote them: rows 0 to 23 but 4, 9, 14, 19 without a caption and
 * 6, 13, 20 that were not fetched. */
static void tables_of_others_are_samples(void **state)
{
    static const char *const tables[] = {"arrow-rs-2-zstd", "duckdb-2-zstd", "hyparquet-delta"};
    static const int rows[] = {0, 1, 2, 3, 5, 7, 8, 10, 11, 12, 15, 16, 17, 18, 21, 22, 23};
    static const char *const words[] = {"a red star", "\xC3\xA9toile", "a blue\n\"square\""};
    (void)state;
    for (size_t t = 0; t < PNB_COUNT(tables); t++) {
        put_table(tables[t], "a.parquet");
        pnb_dataset *ds = open_ok("a.parquet", NULL);
        assert_int_equal(pnb_dataset_size(ds), PNB_COUNT(rows));
        assert_true(warns(ds, "3 rows whose status is not \"success\" left out"));
        assert_true(warns(ds, "4 rows without a caption left out"));
        for (size_t i = 0; i < PNB_COUNT(rows); i++) {
            char key[20];
            snprintf(key, sizeof key, "%09d", rows[i]);
            expect_texts(ds, i, key, words[rows[i] % 3]);
            expect_image(ds, i, 60 + rows[i]);
        }
        pnb_dataset_free(ds);
    }
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
        cmocka_unit_test_setup_teardown(types_are_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(tables_of_others_are_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(claims_are_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(folders_of_tables, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
