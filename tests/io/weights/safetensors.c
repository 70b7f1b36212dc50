/* safetensors: round trips, every rule broken once, shards, full disk, out of memory. */
#include "tests/io/scratch.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "io/weights/safetensors.h"

/* ---- file images made by hand ---- */

typedef struct image {
    unsigned char bytes[4096];
    size_t size;
} image;

/* Length word, header text, n data bytes 0, 1, 2, ... */
static image make_image(const char *header, size_t n_data)
{
    image m = {.size = 8 + strlen(header) + n_data};
    uint64_t length = strlen(header);
    memcpy(m.bytes, &length, 8);
    memcpy(m.bytes + 8, header, (size_t)length);
    for (size_t i = 0; i < n_data; i++)
        m.bytes[8 + length + i] = (unsigned char)i;
    return m;
}

/* Opens a copy of exactly that many bytes, so that reading past them is seen by ASan. */
static pnb_status open_image(pnb_safetensors **st, const image *m, unsigned char **copy,
                             pnb_error *err)
{
    *copy = malloc(m->size > 0 ? m->size : 1);
    assert_non_null(*copy);
    memcpy(*copy, m->bytes, m->size);
    return pnb_safetensors_open_bytes(st, *copy, m->size, err);
}

static void expect_refused(const image *m, pnb_status wanted, const char *words)
{
    pnb_safetensors *st = NULL;
    unsigned char *copy = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status found = open_image(&st, m, &copy, &err);
    assert_failed(found, &err, wanted, words);
    assert_null(st);
    free(copy);
}

/* ---- reading ---- */

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

/* ---- writing ---- */

enum { N_MIXED = 6 };

static const double mixed_f64[2] = {0.1, -2.0};
static const float mixed_f32[6] = {1, 2, 3, 4, 5, 6};
static const uint16_t mixed_f16[3] = {0x3c00, 0x7c00, 0x8001};
static const uint8_t mixed_bool[3] = {0, 1, 1};
static const int64_t mixed_i64[1] = {INT64_MIN};

static void mixed_arrays(pnb_array_view a[N_MIXED])
{
    a[0] = (pnb_array_view){"mask", PNB_BOOL, 1, {3}, mixed_bool, 3};
    a[1] = (pnb_array_view){"half \"quoted\" \xc3\xa9", PNB_F16, 1, {3}, mixed_f16, 6};
    a[2] = (pnb_array_view){"w", PNB_F32, 2, {2, 3}, mixed_f32, 24};
    a[3] = (pnb_array_view){"scalar", PNB_I64, 0, {0}, mixed_i64, 8};
    a[4] = (pnb_array_view){"d", PNB_F64, 1, {2}, mixed_f64, 16};
    a[5] = (pnb_array_view){"none", PNB_F32, 2, {4, 0}, NULL, 0};
}

static const char *const mixed_metadata[] = {"format", "pt", "note", "a\nb\t\"c\" \\", NULL};

static void round_trip(void **state)
{
    scratch *s = *state;
    pnb_array_view a[N_MIXED];
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    mixed_arrays(a);
    assert_ok(
        pnb_safetensors_write(scratch_path(s, "m.safetensors"), a, N_MIXED, mixed_metadata, &err),
        &err);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_int_equal(pnb_safetensors_count(st), N_MIXED);
    assert_null(pnb_safetensors_warning(st));
    for (size_t i = 0; i < N_MIXED; i++) {
        const pnb_array_view *b = pnb_safetensors_find(st, a[i].name);
        assert_non_null(b);
        assert_int_equal(b->dtype, a[i].dtype);
        assert_int_equal(b->n_dims, a[i].n_dims);
        assert_memory_equal(b->shape, a[i].shape, sizeof(int64_t) * (size_t)a[i].n_dims);
        assert_int_equal(b->n_bytes, a[i].n_bytes);
        assert_true(pnb_array_is_aligned(b));
        if (a[i].n_bytes > 0)
            assert_memory_equal(b->data, a[i].data, a[i].n_bytes);
    }
    assert_string_equal(pnb_safetensors_metadata(st, "note"), "a\nb\t\"c\" \\");
    for (size_t i = 1; i < N_MIXED; i++)
        assert_true(pnb_dtype_size(pnb_safetensors_at(st, i - 1)->dtype) >=
                    pnb_dtype_size(pnb_safetensors_at(st, i)->dtype));
    pnb_safetensors_free(st);
    assert_int_equal(scratch_count(s), 1);
}

/* The order of the caller's list leaves no trace in the file. */
static void layout_is_canonical(void **state)
{
    scratch *s = *state;
    pnb_array_view a[N_MIXED], reversed[N_MIXED];
    char first[65], second[65];
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    mixed_arrays(a);
    for (size_t i = 0; i < N_MIXED; i++)
        reversed[i] = a[N_MIXED - 1 - i];
    assert_ok(pnb_safetensors_write(scratch_path(s, "1"), a, N_MIXED, NULL, &err), &err);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_ok(pnb_safetensors_sha256(st, first, &err), &err);
    pnb_safetensors_free(st);
    assert_ok(pnb_safetensors_write(scratch_path(s, "2"), reversed, N_MIXED, NULL, &err), &err);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_ok(pnb_safetensors_sha256(st, second, &err), &err);
    pnb_safetensors_free(st);
    assert_string_equal(first, second);
}

static void known_bytes_and_hash(void **state)
{
    scratch *s = *state;
    const uint8_t data[2] = {1, 2};
    pnb_array_view a = {"a", PNB_U8, 1, {2}, data, 2};
    const char *const metadata[] = {"k", "v", NULL};
    const char wanted[] =
        "\x58\0\0\0\0\0\0\0{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"U8\","
        "\"shape\":[2],\"data_offsets\":[0,2]}}              \1\2";
    char *found = NULL, hex[65], wanted_hex[65];
    size_t n = 0;
    pnb__sha256 hash;
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_safetensors_write(scratch_path(s, "a"), &a, 1, metadata, &err), &err);
    assert_ok(pnb__read_file(s->path, 4096, &found, &n, &err), &err);
    assert_int_equal(n % 8, 2);
    assert_int_equal((unsigned char)found[0], n - 10);
    assert_memory_equal(found + 8, wanted + 8, 70);
    assert_memory_equal(found + n - 3, " \1\2", 3);
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, found, n);
    pnb__sha256_hex(&hash, wanted_hex);
    pnb__free(found);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_ok(pnb_safetensors_sha256(st, hex, &err), &err);
    assert_string_equal(hex, wanted_hex);
    pnb_safetensors_free(st);
}

static void expect_not_written(scratch *s, const pnb_array_view *a, size_t n,
                               const char *const *metadata, pnb_status wanted, const char *words)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_safetensors_write(scratch_path(s, "bad"), a, n, metadata, &err), &err, wanted,
                  words);
    assert_int_equal(scratch_count(s), 0);
}

static void bad_arrays_are_not_written(void **state)
{
    scratch *s = *state;
    const uint8_t data[8] = {0};
    scratch_clear(s);
    pnb_array_view good = {"a", PNB_U8, 1, {8}, data, 8}, a = good;
    a.name = NULL;
    expect_not_written(s, &a, 1, NULL, PNB_ARG, "no usable name");
    a.name = "__metadata__";
    expect_not_written(s, &a, 1, NULL, PNB_ARG, "no usable name");
    a.name = "\xff";
    expect_not_written(s, &a, 1, NULL, PNB_ARG, "no usable name");
    a = good, a.n_bytes = 7;
    expect_not_written(s, &a, 1, NULL, PNB_SHAPE, "7");
    a = good, a.shape[0] = -8;
    expect_not_written(s, &a, 1, NULL, PNB_SHAPE, "-8");
    a = good, a.n_dims = 9;
    expect_not_written(s, &a, 1, NULL, PNB_LIMIT, "9 dimensions");
    a = good, a.dtype = PNB_N_DTYPES;
    expect_not_written(s, &a, 1, NULL, PNB_DTYPE, "dtype");
    a = good, a.data = NULL;
    expect_not_written(s, &a, 1, NULL, PNB_ARG, "data is NULL");
    const pnb_array_view twice[2] = {good, good};
    expect_not_written(s, twice, 2, NULL, PNB_ARG, "given twice");
    const char *const same[] = {"k", "1", "k", "2", NULL}, *const bad[] = {"k", "\x80", NULL};
    expect_not_written(s, &good, 1, same, PNB_ARG, "given twice");
    expect_not_written(s, &good, 1, bad, PNB_ARG, "UTF-8");
    expect_not_written(s, NULL, 1, NULL, PNB_ARG, "NULL");
}

/* A disk that fills up in the middle leaves the old file and nothing else. */
static void full_disk_leaves_the_old_file(void **state)
{
    scratch *s = *state;
    enum { N = 200000 };
    struct rlimit old, tiny;
    pnb_error err = PNB_ERROR_INIT;
    unsigned char *data = calloc(N, 1);
    pnb_array_view small = {"a", PNB_U8, 1, {4}, data, 4}, large = {"a", PNB_U8, 1, {N}, data, N};
    pnb_safetensors *st = NULL;
    assert_non_null(data);
    scratch_clear(s);
    assert_ok(pnb_safetensors_write(scratch_path(s, "a.safetensors"), &small, 1, NULL, &err), &err);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    tiny = (struct rlimit){50000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    pnb_status found = pnb_safetensors_write(s->path, &large, 1, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_failed(found, &err, PNB_IO, "cannot write");
    assert_int_equal(scratch_count(s), 1);
    pnb_error_reset(&err);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_int_equal(pnb_safetensors_at(st, 0)->n_bytes, 4);
    pnb_safetensors_free(st);
    free(data);
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

/* Arrays beyond 4 GiB: offsets of a sparse file, and the writer's plan. */
static void positions_beyond_4_gib(void **state)
{
    scratch *s = *state;
    const uint64_t large = 5ull << 30;
    char header[256];
    int n = snprintf(header, sizeof(header),
                     "{\"a\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[0,%llu]},"
                     "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%llu,%llu]}}",
                     (unsigned long long)large, (unsigned long long)large,
                     (unsigned long long)large, (unsigned long long)large + 1);
    image m = make_image(header, 0);
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    const char *path = scratch_file(s, "large.safetensors", m.bytes, m.size);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    if (ftruncate(fd, (off_t)(8 + (uint64_t)n + large)) != 0 || lseek(fd, 0, SEEK_END) < 0 ||
        write(fd, "\x2a", 1) != 1) {
        close(fd);
        skip(); /* a file system without sparse files of that size */
    }
    close(fd);
    assert_ok(pnb_safetensors_open(&st, path, &err), &err);
    assert_int_equal(*(const unsigned char *)pnb_safetensors_find(st, "b")->data, 0x2a);
    assert_true(pnb_safetensors_find(st, "a")->n_bytes == large);
    pnb_safetensors_free(st);
    unlink(path);
    pnb_array_view a[2] = {{"a", PNB_F32, 1, {(int64_t)large}, NULL, 4 * (size_t)large},
                           {"b", PNB_U8, 0, {0}, NULL, 1}};
    pnb__st_writer w;
    char found[512] = "";
    assert_ok(pnb__st_writer_open(&w, path, a, 2, NULL, &err), &err);
    assert_true(w.n_total == 4 * large + 1);
    assert_int_equal(fflush(w.out.file), 0);
    FILE *f = fopen(w.out.temp_path, "rb");
    assert_non_null(f);
    assert_true(fread(found, 1, sizeof(found) - 1, f) > 8);
    fclose(f);
    assert_non_null(strstr(found + 8, "[21474836480,21474836481]"));
    assert_failed(pnb__st_writer_commit(&w, &err), &err, PNB_ARG, "promises");
    assert_false(pnb__path_is_file(path));
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
    assert_non_null(strstr(pnb_safetensors_warning(st), "1 arrays the index does not name"));
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
        cmocka_unit_test(trailing_bytes_are_reported),
        cmocka_unit_test(broken_rules_are_refused),
        cmocka_unit_test(header_lengths_are_bounded),
        cmocka_unit_test(deep_headers_are_refused),
        cmocka_unit_test(truncation_at_every_byte_is_refused),
        cmocka_unit_test(nan_is_legal),
        cmocka_unit_test(bad_arrays_are_not_written),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(layout_is_canonical),
        cmocka_unit_test(known_bytes_and_hash),
        cmocka_unit_test(full_disk_leaves_the_old_file),
        cmocka_unit_test(missing_folders_and_files),
        cmocka_unit_test(positions_beyond_4_gib),
        cmocka_unit_test(shards_open_as_one),
        cmocka_unit_test(shard_arrays_beside_the_index_are_reported),
        cmocka_unit_test(hostile_indexes_are_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
