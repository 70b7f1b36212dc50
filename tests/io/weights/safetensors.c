/* safetensors: files and shards opened as one, counted references, values that no rule forbids, out
 * of memory. */
#include "tests/io/weights/images.h"

#include <math.h>

static void reads_what_another_program_wrote(void **state)
{
    (void)state;
    image m = make_image("{\"__metadata__\":{\"format\":\"pt\"},"
                         "\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[4,10]},"
                         "\"a\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]},"
                         "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[10,10]},"
                         "\"c\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[10,14]}}   ",
                         14);
    pnb_safetensors *st = NULL;
    unsigned char *copy = NULL;
    pnb_error err = PNB_ERROR_INIT;
    int64_t value = 0;
    assert_ok(open_image(&st, &m, &copy, &err), &err);
    assert_int_equal(pnb_safetensors_count(st), 4);
    assert_string_equal(pnb_safetensors_at(st, 0)->name, "a");
    assert_string_equal(pnb_safetensors_at(st, 1)->name, "b");
    assert_null(pnb_safetensors_at(st, 4));
    const pnb_array_view *a = pnb_safetensors_find(st, "a");
    assert_int_equal(a->n_dims, 0);
    assert_int_equal(pnb_array_size(a), 1);
    assert_ok(pnb_array_to_i64(a, &value, &err), &err);
    assert_int_equal(value, 0x03020100);
    assert_int_equal(pnb_array_size(pnb_safetensors_find(st, "empty")), 0);
    assert_int_equal(pnb_safetensors_find(st, "empty")->shape[1], 7);
    assert_null(pnb_safetensors_find(st, "d"));
    assert_null(pnb_safetensors_find(st, NULL));
    assert_string_equal(pnb_safetensors_metadata(st, "format"), "pt");
    assert_null(pnb_safetensors_metadata(st, "a"));
    assert_null(pnb_safetensors_warning(st));
    pnb_safetensors_free(st);
    free(copy);
}

static void nan_is_legal(void **state)
{
    scratch *s = *state;
    const float values[2] = {NAN, INFINITY};
    pnb_array_view a = {"x", PNB_F32, 1, {2}, values, sizeof(values)};
    float back[2];
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_safetensors_write(scratch_path(s, "nan.safetensors"), &a, 1, NULL, &err), &err);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_ok(pnb_array_to_f32(pnb_safetensors_at(st, 0), back, &err), &err);
    assert_memory_equal(back, values, sizeof(values));
    pnb_safetensors_free(st);
}

static void missing_folders_and_files(void **state)
{
    scratch *s = *state;
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_safetensors_open(&st, scratch_path(s, "absent.safetensors"), &err), &err,
                  PNB_NOT_FOUND, "absent");
    pnb_error_reset(&err);
    assert_failed(pnb_safetensors_write(scratch_path(s, "no/dir"), NULL, 0, NULL, &err), &err,
                  PNB_NOT_FOUND, "no/dir");
    pnb_error_reset(&err);
    scratch_file(s, "empty", "", 0);
    assert_failed(pnb_safetensors_open(&st, s->path, &err), &err, PNB_FORMAT, "too few");
    pnb_safetensors_free(NULL);
    pnb_safetensors_retain(NULL);
}

/* ---- shards ---- */

static void write_array(scratch *s, const char *file, const char *name, uint8_t value)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_array_view a = {name, PNB_U8, 1, {1}, &value, 1};
    const char *const metadata[] = {"file", file, NULL};
    assert_ok(pnb_safetensors_write(scratch_path(s, file), &a, 1, metadata, &err), &err);
}

static pnb_status open_with_map(scratch *s, pnb_safetensors **st, const char *weight_map,
                                pnb_error *err)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "{\"metadata\":{\"total_size\":2},\"weight_map\":%s}",
                     weight_map);
    return pnb_safetensors_open(
        st, scratch_file(s, "model.safetensors.index.json", text, (size_t)n), err);
}

static void shards_open_as_one(void **state)
{
    scratch *s = *state;
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char hex[65], wanted[65], *bytes = NULL;
    size_t n = 0;
    pnb__sha256 hash;
    write_array(s, "m-1.safetensors", "x", 1);
    write_array(s, "m-2.safetensors", "a", 2);
    assert_ok(open_with_map(s, &st, "{\"a\":\"m-2.safetensors\",\"x\":\"m-1.safetensors\"}", &err),
              &err);
    assert_int_equal(pnb_safetensors_count(st), 2);
    assert_string_equal(pnb_safetensors_at(st, 0)->name, "x");
    assert_int_equal(*(const uint8_t *)pnb_safetensors_find(st, "x")->data, 1);
    assert_int_equal(*(const uint8_t *)pnb_safetensors_find(st, "a")->data, 2);
    assert_string_equal(pnb_safetensors_metadata(st, "file"), "m-1.safetensors");
    assert_ok(pnb_safetensors_sha256(st, hex, &err), &err);
    pnb_safetensors_retain(st);
    pnb_safetensors_free(st);
    assert_int_equal(pnb_safetensors_count(st), 2);
    pnb_safetensors_free(st);
    pnb__sha256_init(&hash);
    for (int i = 1; i <= 2; i++) {
        char name[32];
        snprintf(name, sizeof(name), "m-%d.safetensors", i);
        assert_ok(pnb__read_file(scratch_path(s, name), 4096, &bytes, &n, &err), &err);
        pnb__sha256_update(&hash, bytes, n);
        pnb__free(bytes);
    }
    pnb__sha256_hex(&hash, wanted);
    assert_string_equal(hex, wanted);
    assert_ok(open_with_map(s, &st, "{\"a\":\"m-2.safetensors\"}", &err), &err);
    assert_int_equal(pnb_safetensors_count(st), 1);
    pnb_safetensors_free(st);
}

static void shard_arrays_beside_the_index_are_reported(void **state)
{
    scratch *s = *state;
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    write_array(s, "m-1.safetensors", "x", 1);
    write_array(s, "m-2.safetensors", "x", 2); /* the same name: the index decides */
    write_array(s, "m-3.safetensors", "y", 3);
    assert_ok(open_with_map(s, &st, "{\"x\":\"m-1.safetensors\",\"y\":\"m-3.safetensors\"}", &err),
              &err);
    assert_null(pnb_safetensors_warning(st));
    pnb_safetensors_free(st);
    pnb_array_view a[2] = {{"y", PNB_U8, 0, {0}, "y", 1}, {"z", PNB_U8, 0, {0}, "z", 1}};
    assert_ok(pnb_safetensors_write(scratch_path(s, "m-3.safetensors"), a, 2, NULL, &err), &err);
    assert_ok(open_with_map(s, &st, "{\"x\":\"m-2.safetensors\",\"y\":\"m-3.safetensors\"}", &err),
              &err);
    assert_int_equal(*(const uint8_t *)pnb_safetensors_find(st, "x")->data, 2);
    assert_non_null(
        strstr(pnb_safetensors_warning(st), "ignored 1 arrays the index does not name"));
    pnb_safetensors_free(st);
}

static void hostile_indexes_are_refused(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *weight_map;
        pnb_status status;
        const char *words;
    } cases[] = {
        {"{\"x\":\"../m-1.safetensors\"}", PNB_FORMAT, "plain"},
        {"{\"x\":\"/etc/m-1.safetensors\"}", PNB_FORMAT, "plain"},
        {"{\"x\":\"sub/m-1.safetensors\"}", PNB_FORMAT, "plain"},
        {"{\"x\":\"sub\\\\m-1.safetensors\"}", PNB_FORMAT, "plain"},
        {"{\"x\":\"..\"}", PNB_FORMAT, "plain"},
        {"{\"x\":\"\"}", PNB_FORMAT, "plain"},
        {"{\"x\":\".safetensors\"}", PNB_FORMAT, "plain"},
        {"{\"x\":\"model.safetensors.index.json\"}", PNB_FORMAT, "plain"},
        {"{\"x\":7}", PNB_FORMAT, "(no string)"},
        {"{}", PNB_FORMAT, "weight_map"},
        {"[]", PNB_FORMAT, "weight_map"},
        {"{\"x\":\"m-1.safetensors\",\"x\":\"m-2.safetensors\"}", PNB_FORMAT, "duplicate"},
        {"{\"x\":\"m-9.safetensors\"}", PNB_NOT_FOUND, "m-9"},
        {"{\"x\":\"m-1.safetensors\",\"q\":\"m-1.safetensors\"}", PNB_FORMAT, "\"q\" is not in"},
        {"{\"x\":\"m-2.safetensors\"}", PNB_FORMAT, "\"x\" is not in"},
    };
    write_array(s, "m-1.safetensors", "x", 1);
    write_array(s, "m-2.safetensors", "a", 2);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_safetensors *st = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(open_with_map(s, &st, cases[i].weight_map, &err), &err, cases[i].status,
                      cases[i].words);
        assert_null(st);
    }
}

/* ---- out of memory ---- */

#ifdef PNB_FAULTS
static pnb_status write_and_read(scratch *s, pnb_error *err)
{
    pnb_array_view a[N_MIXED];
    pnb_safetensors *st = NULL;
    mixed_arrays(a);
    pnb_status status =
        pnb_safetensors_write(scratch_path(s, "f.safetensors"), a, N_MIXED, mixed_metadata, err);
    if (status == PNB_OK)
        status = pnb_safetensors_open(&st, s->path, err);
    pnb_safetensors_free(st);
    if (status == PNB_OK)
        status = pnb_safetensors_open(&st, scratch_path(s, "model.safetensors.index.json"), err);
    if (status == PNB_OK)
        pnb_safetensors_free(st);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_safetensors *st = NULL;
    write_array(s, "m-1.safetensors", "x", 1);
    assert_ok(open_with_map(s, &st, "{\"x\":\"m-1.safetensors\"}", &err), &err);
    pnb_safetensors_free(st);
    fail_every_allocation(write_and_read, s);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_another_program_wrote),
        cmocka_unit_test(nan_is_legal),
        cmocka_unit_test(missing_folders_and_files),
        cmocka_unit_test(shards_open_as_one),
        cmocka_unit_test(shard_arrays_beside_the_index_are_reported),
        cmocka_unit_test(hostile_indexes_are_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
