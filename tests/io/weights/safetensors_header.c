/* The header of a safetensors file: every rule broken once, lengths, depth, truncation, and what a
 * parsed one says. */
#include "tests/io/weights/images.h"

static void trailing_bytes_are_reported(void **state)
{
    (void)state;
    image m = make_image("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 6);
    pnb_safetensors *st = NULL;
    unsigned char *copy = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(open_image(&st, &m, &copy, &err), &err);
    assert_non_null(strstr(pnb_safetensors_warning(st), "4 bytes after the last array"));
    pnb_safetensors_free(st);
    free(copy);
    image none = make_image("{}", 0);
    assert_ok(open_image(&st, &none, &copy, &err), &err);
    assert_int_equal(pnb_safetensors_count(st), 0);
    assert_null(pnb_safetensors_find(st, "a"));
    pnb_safetensors_free(st);
    free(copy);
}

#define ARRAY(name, dtype, shape, offsets)                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"

typedef struct hostile {
    const char *header;
    size_t n_data;
    pnb_status status;
    const char *words;
} hostile;

static const hostile hostile_headers[] = {
    {"{" ARRAY("a", "F32", "2", "0,8") "," ARRAY("b", "F32", "2", "4,12") "}", 12, PNB_FORMAT,
     "\"b\" overlaps \"a\""},
    {"{" ARRAY("a", "F32", "2", "0,8") "," ARRAY("b", "F32", "2", "0,8") "}", 8, PNB_FORMAT,
     "overlaps"},
    {"{" ARRAY("a", "F32", "1", "0,4") "," ARRAY("b", "F32", "1", "8,12") "}", 12, PNB_FORMAT,
     "hole of 4 bytes before \"b\""},
    {"{" ARRAY("a", "F32", "1", "4,8") "}", 8, PNB_FORMAT, "hole of 4 bytes"},
    {"{" ARRAY("a", "F32", "2", "0,8") "}", 7, PNB_FORMAT, "truncated"},
    {"{" ARRAY("a", "F32", "2", "0,4") "}", 4, PNB_FORMAT, "need 8"},
    {"{" ARRAY("a", "F32", "0", "0,4") "}", 4, PNB_FORMAT, "need 0"},
    {"{" ARRAY("a", "F8_E4M3", "2", "0,2") "}", 2, PNB_UNSUPPORTED, "F8_E4M3"},
    {"{" ARRAY("a", "f32", "2", "0,8") "}", 8, PNB_UNSUPPORTED, "f32"},
    {"{" ARRAY("a", "F32", "-2", "0,8") "}", 8, PNB_FORMAT, "shape"},
    {"{" ARRAY("a", "F32", "2.0", "0,8") "}", 8, PNB_FORMAT, "shape"},
    {"{" ARRAY("a", "F32", "\"2\"", "0,8") "}", 8, PNB_FORMAT, "shape"},
    {"{" ARRAY("a", "F32", "4611686018427387905,4", "0,16") "}", 16, PNB_FORMAT, "overflows"},
    {"{" ARRAY("a", "F32", "4611686018427387904", "0,0") "}", 0, PNB_FORMAT, "overflows"},
    {"{" ARRAY("a", "F32", "9223372036854775808", "0,8") "}", 8, PNB_FORMAT, "too big"},
    {"{" ARRAY("a", "U8", "1,1,1,1,1,1,1,1,1", "0,1") "}", 1, PNB_UNSUPPORTED, "9 dimensions"},
    {"{" ARRAY("a", "F32", "2", "-8,0") "}", 8, PNB_FORMAT, "negative"},
    {"{" ARRAY("a", "F32", "2", "8,0") "}", 8, PNB_FORMAT, "reversed"},
    {"{" ARRAY("a", "F32", "2", "0") "}", 8, PNB_FORMAT, "data_offsets"},
    {"{" ARRAY("a", "F32", "2", "0,8,8") "}", 8, PNB_FORMAT, "data_offsets"},
    {"{" ARRAY("a", "F32", "2", "0,8.0") "}", 8, PNB_FORMAT, "data_offsets"},
    {"{" ARRAY("a", "F32", "2", "0,9223372036854775807") "}", 8, PNB_FORMAT, "truncated"},
    {"{" ARRAY("a", "F32", "2", "0,18446744073709551608") "}", 8, PNB_FORMAT, "too big"},
    {"{" ARRAY("a", "F32", "1", "0,4") "," ARRAY("a", "F32", "1", "4,8") "}", 8, PNB_FORMAT,
     "duplicate"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     PNB_FORMAT, "duplicate"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, PNB_FORMAT, "no dtype"},
    {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, PNB_FORMAT, "no dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, PNB_FORMAT, "no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, PNB_FORMAT, "no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, PNB_FORMAT, "data_offsets"},
    {"{\"a\":[1,2]}", 4, PNB_FORMAT, "not an object"},
    {"{\"__metadata__\":{\"a\":7}}", 0, PNB_FORMAT, "not a string"},
    {"{\"__metadata__\":{\"a\":{}}}", 0, PNB_FORMAT, "not a string"},
    {"{\"__metadata__\":[]}", 0, PNB_FORMAT, "not an object"},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, PNB_FORMAT, "duplicate"},
    {"{\"\xff\xfe\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, PNB_FORMAT,
     "decode byte"},
    {"{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, PNB_FORMAT,
     "NUL"},
    {"{} x", 0, PNB_FORMAT, "end of file expected"},
    {"{]", 0, PNB_FORMAT, "column"},
    {" {}", 0, PNB_FORMAT, "starts with byte 0x20"},
    {"[]", 0, PNB_FORMAT, "starts with byte 0x5b"},
};

static void broken_rules_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(hostile_headers); i++) {
        const hostile *h = &hostile_headers[i];
        image m = make_image(h->header, h->n_data);
        expect_refused(&m, h->status, h->words);
    }
}

static void header_lengths_are_bounded(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        pnb_status status;
    } cases[] = {{0, PNB_FORMAT},
                 {1, PNB_FORMAT},
                 {3, PNB_FORMAT},
                 {99999999, PNB_FORMAT},
                 {100000001, PNB_LIMIT},
                 {UINT64_MAX, PNB_LIMIT},
                 {UINT64_MAX - 7, PNB_LIMIT}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        image m = make_image("{}", 0);
        memcpy(m.bytes, &cases[i].length, 8);
        expect_refused(&m, cases[i].status, "header of");
    }
}

static void deep_headers_are_refused(void **state)
{
    (void)state;
    char header[512] = "{\"a\":";
    memset(header + 5, '[', 200);
    image m = make_image(header, 0);
    expect_refused(&m, PNB_LIMIT, "nested deeper");
}

static void truncation_at_every_byte_is_refused(void **state)
{
    (void)state;
    image m = make_image(
        "{" ARRAY("a", "F32", "2,2", "0,16") "," ARRAY("b", "BF16", "3", "16,22") "}", 22);
    size_t whole = m.size;
    for (m.size = 0; m.size < whole; m.size++) {
        pnb_safetensors *st = NULL;
        unsigned char *copy = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(open_image(&st, &m, &copy, &err), PNB_FORMAT);
        assert_null(st);
        assert_true(err.text[0] != '\0');
        free(copy);
    }
}

/* Views in the order of their bytes, empty ones before what begins at the same place. */
static void what_a_header_says(void **state)
{
    (void)state;
    image m = make_image(
        "{" ARRAY("z", "U8", "2", "0,2") "," ARRAY("b", "F16", "2", "2,6") "," ARRAY(
            "a", "F32", "0", "6,6") "," ARRAY("c", "I8", "",
                                              "6,7") ",\"__metadata__\":{\"k\":\"v\",\"l\":\"\"}}",
        10);
    static const char *const names[] = {"z", "b", "a", "c"};
    pnb__st_header header;
    pnb__arena arena;
    pnb_error err = PNB_ERROR_INIT;
    pnb__arena_init(&arena, 4096);
    assert_ok(pnb__st_parse(&header, m.bytes, m.size, "x", &arena, &err), &err);
    const unsigned char *data = m.bytes + m.size - 10;
    assert_int_equal(header.n_views, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(header.views[i].name, names[i]);
    assert_ptr_equal(header.views[1].data, data + 2);
    assert_int_equal(header.views[1].n_bytes, 4);
    assert_int_equal(header.views[2].n_bytes, 0);
    assert_ptr_equal(header.views[3].data, data + 6);
    assert_int_equal(header.views[3].n_dims, 0);
    assert_int_equal(header.n_trailing, 3);
    assert_int_equal(header.n_metadata, 2);
    assert_string_equal(header.metadata[0].key, "k");
    assert_string_equal(header.metadata[0].value, "v");
    assert_string_equal(header.metadata[1].value, "");
    pnb__arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trailing_bytes_are_reported),
        cmocka_unit_test(broken_rules_are_refused),
        cmocka_unit_test(header_lengths_are_bounded),
        cmocka_unit_test(deep_headers_are_refused),
        cmocka_unit_test(truncation_at_every_byte_is_refused),
        cmocka_unit_test(what_a_header_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
