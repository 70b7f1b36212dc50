/* Writing safetensors: the same arrays give the same bytes, nothing is written that a reader would
 * refuse, a full disk leaves the old file, arrays in pieces. */
#include "tests/io/weights/images.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

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
    assert_failed(pnb_safetensors_sha256(st, NULL, &err), &err, PNB_ARG, "map or hex is NULL");
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
    const char *const same[] = {"k", "1", "k", "2", NULL}, *const bad[] = {"k", "\x80", NULL},
                      *const second[] = {"k", "v", "\x80", "v", NULL};
    expect_not_written(s, &good, 1, same, PNB_ARG, "given twice");
    expect_not_written(s, &good, 1, bad, PNB_ARG, "metadata pair 0 is not UTF-8 text");
    expect_not_written(s, &good, 1, second, PNB_ARG, "metadata pair 1 is not UTF-8 text");
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

/* Widest type first, then by name: w.order says whose bytes come next. */
static void arrays_come_in_pieces(void **state)
{
    scratch *s = *state;
    const uint8_t bytes[3] = {1, 2, 3};
    const float floats[2] = {4, 5};
    const pnb_array_view a[2] = {{"a", PNB_U8, 1, {3}, NULL, 3}, {"b", PNB_F32, 1, {2}, NULL, 8}};
    pnb__st_writer w;
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb__st_writer_open(&w, scratch_path(s, "p.safetensors"), a, 2, NULL, &err), &err);
    assert_true(w.order[0] == 1 && w.order[1] == 0 && w.n_total == 11);
    assert_ok(pnb__st_writer_append(&w, floats, 3, &err), &err); /* anywhere */
    assert_ok(pnb__st_writer_append(&w, (const char *)floats + 3, 5, &err), &err);
    assert_ok(pnb__st_writer_append(&w, NULL, 0, &err), &err);
    assert_failed(pnb__st_writer_sync(&w, &err), &err, PNB_ARG,
                  "8 bytes of arrays, the header promises 11");
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb__st_writer_append(&w, bytes, 5, &err), &err, PNB_ARG,
                  "2 bytes more than the header promises");
    err = (pnb_error)PNB_ERROR_INIT;
    assert_ok(pnb__st_writer_append(&w, bytes, 3, &err), &err);
    assert_ok(pnb__st_writer_sync(&w, &err), &err);
    assert_false(pnb__path_is_file(s->path)); /* on the disk, not in its place */
    assert_ok(pnb__st_writer_commit(&w, &err), &err);
    pnb__st_writer_abort(&w);
    assert_ok(pnb_safetensors_open(&st, s->path, &err), &err);
    assert_memory_equal(pnb_safetensors_find(st, "a")->data, bytes, 3);
    assert_memory_equal(pnb_safetensors_find(st, "b")->data, floats, 8);
    pnb_safetensors_free(st);
}

/* An output that is open already belongs to the writer after success only. */
static void outputs_change_hands(void **state)
{
    scratch *s = *state;
    pnb_array_view a = {"a", PNB_U8, 1, {1}, NULL, 1};
    pnb__out_file f;
    pnb__st_writer w;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb__out_open(&f, scratch_path(s, "o.safetensors"), &err), &err);
    a.n_bytes = 2;
    assert_failed(pnb__st_writer_open_on(&w, &f, &a, 1, NULL, &err), &err, PNB_SHAPE,
                  "n_bytes is 2");
    assert_non_null(f.file);
    a.n_bytes = 1;
    err = (pnb_error)PNB_ERROR_INIT;
    assert_ok(pnb__st_writer_open_on(&w, &f, &a, 1, NULL, &err), &err);
    assert_null(f.file);
    pnb__st_writer_abort(&w);
    assert_int_equal(scratch_count(s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arrays_are_not_written),    cmocka_unit_test(round_trip),
        cmocka_unit_test(layout_is_canonical),           cmocka_unit_test(known_bytes_and_hash),
        cmocka_unit_test(full_disk_leaves_the_old_file), cmocka_unit_test(positions_beyond_4_gib),
        cmocka_unit_test(arrays_come_in_pieces),         cmocka_unit_test(outputs_change_hands),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
