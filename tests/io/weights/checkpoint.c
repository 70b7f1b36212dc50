/* Checkpoints of PyTorch against safetensors files of the same tensors, bit for bit, and archives
 * that are damaged, lie or want to grow. The files in data/checkpoint were written by make.py
 * there, with PyTorch 1.13; hostile archives are built here. */
#include "tests/io/scratch.h"

#include <zlib.h>

#include "io/weights/zip.h"
#include "penumbra/checkpoint.h"

#define DATA PNB_SOURCE_DIR "/tests/io/data/checkpoint/"

static pnb_checkpoint *open_data(const char *name)
{
    char path[512];
    pnb_checkpoint *c = NULL;
    pnb_error err = PNB_ERROR_INIT;
    snprintf(path, sizeof path, DATA "%s", name);
    assert_ok(pnb_checkpoint_open(&c, path, &err), &err);
    return c;
}

static void assert_same(const char *file, const pnb_checkpoint *found, const pnb_checkpoint *twin)
{
    if (pnb_checkpoint_count(found) != pnb_checkpoint_count(twin))
        fail_msg("%s: %zu arrays, want %zu", file, pnb_checkpoint_count(found),
                 pnb_checkpoint_count(twin));
    for (size_t i = 0; i < pnb_checkpoint_count(twin); i++) {
        const pnb_array_view *want = pnb_checkpoint_at(twin, i);
        const pnb_array_view *got = pnb_checkpoint_find(found, want->name);
        if (got == NULL)
            fail_msg("%s: no %s", file, want->name);
        bool same = got->dtype == want->dtype && got->n_dims == want->n_dims &&
                    got->n_bytes == want->n_bytes;
        for (int d = 0; same && d < want->n_dims; d++)
            same = got->shape[d] == want->shape[d];
        if (!same || (want->n_bytes > 0 && memcmp(got->data, want->data, want->n_bytes) != 0))
            fail_msg("%s: %s differs", file, want->name);
    }
}

static void every_layout_equals_its_twin(void **state)
{
    (void)state;
    static const struct {
        const char *file, *twin, *format, *root;
    } cases[] = {
        {"dtypes_zip.pt", "dtypes", "pytorch", ""},
        {"dtypes_legacy.pt", "dtypes", "pytorch (before 1.6)", ""},
        {"dtypes_deflated.pt", "dtypes", "pytorch", ""},
        {"dtypes_zip64.pt", "dtypes", "pytorch", ""},
        {"dtypes_protocol1.pt", "dtypes", "pytorch", ""},
        {"dtypes_protocol3.pt", "dtypes", "pytorch", ""},
        {"dtypes_protocol4.pt", "dtypes", "pytorch", ""},
        {"dtypes_protocol5.pt", "dtypes", "pytorch", ""},
        {"strided_zip.pt", "strided", "pytorch", ""},
        {"strided_legacy.pt", "strided", "pytorch (before 1.6)", ""},
        {"strided_legacy1.pt", "strided", "pytorch (before 1.6)", ""},
        {"training_zip.pt", "training", "pytorch", "state_dict"},
        {"training_legacy.pt", "training", "pytorch (before 1.6)", "state_dict"},
        {"nested_zip.pt", "nested", "pytorch", "model"},
        {"nested_legacy.pt", "nested", "pytorch (before 1.6)", "model"},
        {"training_script.pt", "training_script", "torchscript", ""},
        {"training.bin.index.json", "training", "pytorch", ""},
        {"unsigned_zip.pt", "unsigned", "pytorch", ""},
        {"dtypes.safetensors", "dtypes", "safetensors", ""},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char twin_name[64];
        snprintf(twin_name, sizeof twin_name, "%s.safetensors", cases[i].twin);
        pnb_checkpoint *found = open_data(cases[i].file), *twin = open_data(twin_name);
        assert_same(cases[i].file, found, twin);
        assert_string_equal(pnb_checkpoint_format(found), cases[i].format);
        assert_string_equal(pnb_checkpoint_root(found), cases[i].root);
        assert_null(pnb_checkpoint_warning(found));
        pnb_checkpoint_free(found);
        pnb_checkpoint_free(twin);
    }
}

/* Contiguous tensors are not copied, and tensors of one storage lie in the same bytes. */
static void tensors_are_mapped_and_shared(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    pnb_checkpoint *c = NULL;
    assert_int_equal(pnb__read_file(DATA "strided_zip.pt", 1 << 20, &bytes, &n, NULL), PNB_OK);
    assert_int_equal(pnb_checkpoint_open_bytes(&c, bytes, n, NULL), PNB_OK);
    const char *whole = pnb_checkpoint_find(c, "whole")->data;
    assert_true(whole > bytes && whole < bytes + n);
    assert_ptr_equal(pnb_checkpoint_find(c, "again")->data, whole);
    assert_ptr_equal(pnb_checkpoint_find(c, "offset")->data, whole + 7 * sizeof(float));
    assert_true(pnb_array_is_aligned(pnb_checkpoint_find(c, "whole")));
    const char *t = pnb_checkpoint_find(c, "t")->data;
    assert_false(t >= bytes && t < bytes + n);
    assert_true(((const float *)(const void *)t)[1] == 10.0f);
    assert_null(pnb_checkpoint_find(c, "absent"));
    assert_null(pnb_checkpoint_find(c, NULL));
    assert_null(pnb_checkpoint_at(c, pnb_checkpoint_count(c)));
    assert_string_equal(pnb_checkpoint_at(c, 0)->name, "t"); /* the order of the dict */
    assert_null(pnb_checkpoint_metadata(c, "format"));
    pnb_checkpoint_retain(c);
    pnb_checkpoint_free(c);
    assert_ptr_equal(pnb_checkpoint_find(c, "whole")->data, whole);
    pnb_checkpoint_free(c);
    pnb_checkpoint_free(NULL);
    pnb__free(bytes);
}

static void sha256_is_of_the_file(void **state)
{
    scratch *s = *state;
    char found[65], want[65];
    pnb__sha256 hash;
    pnb_error err = PNB_ERROR_INIT;
    pnb__sha256_init(&hash);
    static const char *const parts[] = {DATA "training-00001-of-00002.bin",
                                        DATA "training-00002-of-00002.bin"};
    for (size_t i = 0; i < 2; i++) {
        char *bytes = NULL;
        size_t n = 0;
        assert_int_equal(pnb__read_file(parts[i], 1 << 20, &bytes, &n, NULL), PNB_OK);
        pnb__sha256_update(&hash, bytes, n);
        pnb__free(bytes);
    }
    pnb__sha256_hex(&hash, want);
    pnb_checkpoint *c = open_data("training.bin.index.json");
    assert_ok(pnb_checkpoint_sha256(c, found, &err), &err);
    assert_string_equal(found, want);
    pnb_checkpoint_free(c);
    assert_int_equal(pnb_checkpoint_sha256(NULL, found, &err), PNB_ARG);
    (void)s;
}

/* ---- damage ---- */

/* Opens exactly n bytes, so that ASan sees any read behind them, and reads every array. */
static pnb_status open_exact(const void *bytes, size_t n, pnb_error *err)
{
    pnb_checkpoint *c = NULL;
    unsigned char *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    pnb_status status = pnb_checkpoint_open_bytes(&c, copy, n, err);
    if (status != PNB_OK) {
        assert_null(c);
        assert_true(err->text[0] != '\0');
    }
    unsigned sum = 0;
    for (size_t i = 0; c != NULL && i < pnb_checkpoint_count(c); i++) {
        const pnb_array_view *a = pnb_checkpoint_at(c, i);
        for (size_t j = 0; j < a->n_bytes; j++)
            sum += ((const unsigned char *)a->data)[j];
    }
    assert_true(sum < UINT32_MAX);
    pnb_checkpoint_free(c);
    free(copy);
    return status;
}

static const char *const damaged[] = {"strided_zip.pt", "nested_legacy.pt", "dtypes_deflated.pt",
                                      "dtypes_zip64.pt", "unsigned_zip.pt"};

static void truncated_at_every_byte(void **state)
{
    (void)state;
    for (size_t f = 0; f < PNB_COUNT(damaged); f++) {
        char path[512], *bytes = NULL;
        size_t n = 0;
        snprintf(path, sizeof path, DATA "%s", damaged[f]);
        assert_int_equal(pnb__read_file(path, 1 << 20, &bytes, &n, NULL), PNB_OK);
        for (size_t cut = 0; cut < n; cut++) {
            pnb_error err = PNB_ERROR_INIT;
            if (open_exact(bytes, cut, &err) != PNB_FORMAT)
                fail_msg("%s cut at %zu of %zu: %s \"%s\"", damaged[f], cut, n,
                         pnb_status_name(err.status), err.text);
        }
        pnb__free(bytes);
    }
}

static void changed_bytes_never_crash(void **state)
{
    (void)state;
    for (size_t f = 0; f < PNB_COUNT(damaged); f++) {
        char path[512], *bytes = NULL;
        size_t n = 0, n_refused = 0;
        snprintf(path, sizeof path, DATA "%s", damaged[f]);
        assert_int_equal(pnb__read_file(path, 1 << 20, &bytes, &n, NULL), PNB_OK);
        for (size_t i = 0; i < n; i++) {
            static const unsigned char flips[] = {0x01, 0x80, 0xFF};
            pnb_error err = PNB_ERROR_INIT;
            bytes[i] = (char)(bytes[i] ^ (char)flips[i % 3]);
            n_refused += open_exact(bytes, n, &err) != PNB_OK;
            bytes[i] = (char)(bytes[i] ^ (char)flips[i % 3]);
        }
        assert_true(n_refused > n / 4);
        pnb__free(bytes);
    }
}

/* A changed weight in a zip is caught by its checksum. */
static void checksums_are_verified(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    pnb_checkpoint *c = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__read_file(DATA "strided_zip.pt", 1 << 20, &bytes, &n, NULL), PNB_OK);
    assert_int_equal(pnb_checkpoint_open_bytes(&c, bytes, n, NULL), PNB_OK);
    size_t at = (size_t)((const char *)pnb_checkpoint_find(c, "whole")->data - bytes);
    pnb_checkpoint_free(c);
    bytes[at + 3] = (char)(bytes[at + 3] ^ 4);
    assert_failed(open_exact(bytes, n, &err), &err, PNB_FORMAT, "checksum");
    pnb__free(bytes);
}

static void shells_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const files[] = {DATA "shell_zip.pt", DATA "shell_legacy.pt"};
    for (size_t i = 0; i < 2; i++) {
        pnb_checkpoint *c = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(pnb_checkpoint_open(&c, files[i], &err), &err, PNB_UNSUPPORTED,
                      "posix.system");
        assert_null(c);
    }
    assert_int_not_equal(access("/tmp/penumbra-was-here", F_OK), 0);
}

/* ---- archives made here ---- */

typedef struct archive {
    pnb__buf bytes, directory;
    size_t n;
} archive;

static void put(pnb__buf *b, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        pnb__buf_putc(b, (char)(unsigned char)(i < 8 ? value >> (8 * i) : 0));
}

typedef struct member {
    const char *name;
    const void *data;
    size_t n, n_unpacked;
    int method, flags;
    long place; /* -1: where it is written; else another local header's */
    uint32_t crc;
} member;

static void add_entry(archive *a, const member *m, size_t at)
{
    put(&a->directory, 0x02014b50, 4);
    put(&a->directory, 0, 4);
    put(&a->directory, (uint64_t)m->flags, 2);
    put(&a->directory, (uint64_t)m->method, 2);
    put(&a->directory, 0, 4);
    put(&a->directory, m->crc, 4);
    put(&a->directory, m->n, 4);
    put(&a->directory, m->n_unpacked, 4);
    put(&a->directory, strlen(m->name), 2);
    put(&a->directory, 0, 12);
    put(&a->directory, at, 4);
    pnb__buf_puts(&a->directory, m->name);
    a->n++;
}

static void add_raw(archive *a, const member *m)
{
    size_t at = m->place >= 0 ? (size_t)m->place : a->bytes.size;
    add_entry(a, m, at);
    if (m->place >= 0)
        return;
    put(&a->bytes, 0x04034b50, 4);
    put(&a->bytes, 0, 2);
    put(&a->bytes, (uint64_t)m->flags, 2);
    put(&a->bytes, (uint64_t)m->method, 2);
    put(&a->bytes, 0, 4);
    put(&a->bytes, m->crc, 4);
    put(&a->bytes, m->n, 4);
    put(&a->bytes, m->n_unpacked, 4);
    put(&a->bytes, strlen(m->name), 2);
    put(&a->bytes, 0, 2);
    pnb__buf_puts(&a->bytes, m->name);
    pnb__buf_append(&a->bytes, m->data, m->n);
}

static member stored(const char *name, const void *data, size_t n)
{
    return (member){name, data, n, n, 0, 0, -1, (uint32_t)crc32(0, data, (uInt)n)};
}

static void add_stored(archive *a, const char *name, const void *data, size_t n)
{
    member m = stored(name, data, n);
    add_raw(a, &m);
}

static pnb_status close_and_open(archive *a, pnb_error *err)
{
    size_t at = a->bytes.size;
    pnb__buf_append(&a->bytes, a->directory.data, a->directory.size);
    put(&a->bytes, 0x06054b50, 4);
    put(&a->bytes, 0, 4);
    put(&a->bytes, a->n, 2);
    put(&a->bytes, a->n, 2);
    put(&a->bytes, a->directory.size, 4);
    put(&a->bytes, at, 4);
    put(&a->bytes, 0, 2);
    pnb_status status = open_exact(a->bytes.data, a->bytes.size, err);
    pnb__buf_reset(&a->bytes);
    pnb__buf_reset(&a->directory);
    a->n = 0;
    return status;
}

/* {"w": tensor of storage "0"}; the texts are pickled numbers and tuples. */
static size_t tensor_pickle(char *out, size_t size, const char *n_elements, const char *offset,
                            const char *shape, const char *stride)
{
    int n = snprintf(out, size,
                     "}(U\001wctorch._utils\n_rebuild_tensor_v2\n((U\007storagectorch\n"
                     "FloatStorage\nU\0010U\003cpuI%s\ntQI%s\n(%st(%st\x89}tRu.",
                     n_elements, offset, shape, stride);
    assert_true(n > 0 && (size_t)n < size);
    return (size_t)n;
}

static pnb_status open_tensor(const char *n_elements, const char *offset, const char *shape,
                              const char *stride, pnb_error *err)
{
    char pickle[512];
    static const float values[12] = {1, 2, 3};
    archive a = {0};
    size_t n = tensor_pickle(pickle, sizeof pickle, n_elements, offset, shape, stride);
    add_stored(&a, "a/data.pkl", pickle, n);
    add_stored(&a, "a/data/0", values, sizeof values);
    return close_and_open(&a, err);
}

static void tensors_must_fit_their_storage(void **state)
{
    (void)state;
    static const struct {
        const char *n, *offset, *shape, *stride;
        pnb_status want;
        const char *words;
    } cases[] = {
        {"12", "0", "I3\nI4\n", "I4\nI1\n", PNB_OK, ""},
        {"12", "0", "I4\nI3\n", "I1\nI4\n", PNB_OK, ""},
        {"12", "12", "I0\n", "I1\n", PNB_OK, ""},
        {"12", "11", "", "", PNB_OK, ""},
        {"12", "12", "", "", PNB_FORMAT, "beyond its storage"},
        {"12", "1", "I3\nI4\n", "I4\nI1\n", PNB_FORMAT, "beyond its storage"},
        {"12", "0", "I13\n", "I1\n", PNB_FORMAT, "beyond its storage"},
        {"13", "0", "I3\n", "I1\n", PNB_FORMAT, "48 bytes"},
        {"11", "0", "I3\n", "I1\n", PNB_FORMAT, "48 bytes"},
        {"12", "-1", "I3\n", "I1\n", PNB_FORMAT, "offset"},
        {"12", "4", "I3\n", "I-1\n", PNB_FORMAT, "from 0"},
        {"12", "0", "I-3\n", "I1\n", PNB_FORMAT, "from 0"},
        {"12", "0", "I3\n", "I1\nI1\n", PNB_FORMAT, "strides"},
        {"12", "0", "I4611686018427387904\nI4\n", "I0\nI0\n", PNB_FORMAT, "\"w\""},
        {"12", "0", "I2\n", "I9223372036854775807\n", PNB_FORMAT, "beyond its storage"},
        {"12", "0", "I3\nI2\n", "I9223372036854775807\nI1\n", PNB_FORMAT, "beyond its storage"},
        {"12", "9223372036854775807", "I3\n", "I1\n", PNB_FORMAT, "beyond its storage"},
        {"12", "0", "I1000000000\n", "I0\n", PNB_LIMIT, "unfold"},
        {"9223372036854775807", "0", "I3\n", "I1\n", PNB_FORMAT, "promised"},
        {"12", "0", "I1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\n", "I1\n", PNB_UNSUPPORTED, "dimensions"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_status found =
            open_tensor(cases[i].n, cases[i].offset, cases[i].shape, cases[i].stride, &err);
        if (found != cases[i].want || (found != PNB_OK && !strstr(err.text, cases[i].words)))
            fail_msg("case %zu: %s \"%s\"", i, pnb_status_name(found), err.text);
    }
}

static void lying_archives_are_refused(void **state)
{
    (void)state;
    char pickle[512];
    static const float values[12] = {1, 2, 3};
    static const char *const names[] = {"../a/data/0", "/a/data/0",  "a/../data/0", "a\\data\\0",
                                        "a/data/..",   "c:a/data/0", "a/da\x01ta",  "\xFF/data/0"};
    size_t n = tensor_pickle(pickle, sizeof pickle, "12", "0", "I12\n", "I1\n");
    archive a = {0};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        pnb_error err = PNB_ERROR_INIT;
        add_stored(&a, "a/data.pkl", pickle, n);
        add_stored(&a, names[i], values, sizeof values);
        assert_failed(close_and_open(&a, &err), &err, PNB_FORMAT, "name");
    }
    static const struct {
        const char *name;
        int method, flags;
        long place;
        size_t n_unpacked;
        pnb_status want;
        const char *words;
    } cases[] = {
        {"a/data/0", 0, 0, -1, 48, PNB_FORMAT, "twice"},
        {"a/data.pkl", 0, 0, 0, 48, PNB_FORMAT, "contradicts"},
        {"a/data/1", 0, 0, 0, 48, PNB_FORMAT, "another name"},
        {"a/data/1", 0, 0, 7, 48, PNB_FORMAT, "no local header"},
        {"a/data/1", 0, 0, 100000, 48, PNB_FORMAT, "no local header"},
        {"a/data/1", 0, 1, -1, 48, PNB_UNSUPPORTED, "encrypted"},
        {"a/data/1", 12, 0, -1, 48, PNB_UNSUPPORTED, "compression 12"},
        {"a/data/1", 0, 0, -1, 49, PNB_FORMAT, "two sizes"},
        {"b/data.pkl", 0, 0, -1, 48, PNB_FORMAT, "two checkpoints"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error err = PNB_ERROR_INIT;
        member m = stored(cases[i].name, values, sizeof values);
        m.method = cases[i].method;
        m.flags = cases[i].flags;
        m.place = cases[i].place;
        m.n_unpacked = cases[i].n_unpacked;
        add_stored(&a, "a/data.pkl", pickle, n);
        add_stored(&a, "a/data/0", values, sizeof values);
        add_raw(&a, &m);
        pnb_status found = close_and_open(&a, &err);
        if (found != cases[i].want || !strstr(err.text, cases[i].words))
            fail_msg("case %zu: %s \"%s\"", i, pnb_status_name(found), err.text);
    }
}

/* Two members over the same bytes: the second local header lies inside the first member's data. */
static void overlapping_members_are_refused(void **state)
{
    (void)state;
    archive inner = {0}, a = {0};
    pnb_error err = PNB_ERROR_INIT;
    add_stored(&inner, "a/data/1", "0123456789abcdef", 16);
    add_stored(&a, "a/data/0", inner.bytes.data, inner.bytes.size);
    member m = stored("a/data/1", "0123456789abcdef", 16);
    m.place = (long)(a.bytes.size - inner.bytes.size);
    add_raw(&a, &m);
    assert_failed(close_and_open(&a, &err), &err, PNB_FORMAT, "overlaps");
    pnb__buf_reset(&inner.bytes);
    pnb__buf_reset(&inner.directory);
}

static void bombs_are_refused(void **state)
{
    (void)state;
    enum { N_ZEROS = 1 << 22 };
    unsigned char *zeros = calloc(N_ZEROS, 1), *packed = malloc(N_ZEROS);
    pnb_error err = PNB_ERROR_INIT;
    archive a = {0};
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = zeros, z.avail_in = N_ZEROS;
    z.next_out = packed, z.avail_out = N_ZEROS;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    member m = {
        "a/data.pkl", packed, z.total_out, N_ZEROS, 8, 0, -1, (uint32_t)crc32(0, zeros, N_ZEROS)};
    add_raw(&a, &m);
    assert_failed(close_and_open(&a, &err), &err, PNB_LIMIT, "unpacks");
    m.n_unpacked = 100; /* the stream holds more than it says */
    pnb_error_reset(&err);
    add_raw(&a, &m);
    assert_failed(close_and_open(&a, &err), &err, PNB_FORMAT, "deflated bytes are damaged");
    deflateEnd(&z);
    free(zeros);
    free(packed);
}

static void other_files_are_named(void **state)
{
    scratch *s = *state;
    pnb_checkpoint *c = NULL;
    pnb_error err = PNB_ERROR_INIT;
    archive a = {0};
    add_stored(&a, "readme.txt", "hello", 5);
    assert_failed(close_and_open(&a, &err), &err, PNB_FORMAT, "data.pkl");
    pnb_error_reset(&err);
    assert_failed(open_exact("hello, world", 12, &err), &err, PNB_FORMAT, "neither");
    pnb_error_reset(&err);
    assert_failed(open_exact("\x80\x02K\x01.", 5, &err), &err, PNB_FORMAT, "magic");
    pnb_error_reset(&err);
    assert_failed(pnb_checkpoint_open(&c, scratch_path(s, "none.pt"), &err), &err, PNB_NOT_FOUND,
                  "none.pt");
    pnb_error_reset(&err);
    scratch_file(s, "empty.pt", "", 0);
    assert_failed(pnb_checkpoint_open(&c, s->path, &err), &err, PNB_FORMAT, "empty.pt");
    pnb_error_reset(&err);
    scratch_file(s, "short.safetensors", "abc", 3);
    assert_failed(pnb_checkpoint_open(&c, s->path, &err), &err, PNB_FORMAT, "safetensors");
    assert_int_equal(pnb_checkpoint_open(NULL, "x", NULL), PNB_ARG);
    assert_int_equal(pnb_checkpoint_open(&c, NULL, NULL), PNB_ARG);
    assert_null(c);
}

/* ---- folders and indices ---- */

static void copy_data(scratch *s, const char *from, const char *to)
{
    char path[512], *bytes = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, DATA "%s", from);
    assert_int_equal(pnb__read_file(path, 1 << 20, &bytes, &n, NULL), PNB_OK);
    scratch_file(s, to, bytes, n);
    pnb__free(bytes);
}

static void index_tricks_are_refused(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"weight_map\":{\"w\":\"../x.bin\"}}", "../x.bin"},
        {"{\"weight_map\":{\"w\":\"/etc/x.bin\"}}", "/etc/x.bin"},
        {"{\"weight_map\":{\"w\":\"a/x.bin\"}}", "a/x.bin"},
        {"{\"weight_map\":{\"w\":\".x.bin\"}}", ".x.bin"},
        {"{\"weight_map\":{\"v\":\"x.bin\",\"w\":\"x.safetensors\"}}", "x.safetensors"},
        {"{\"weight_map\":{\"v\":\"x.bin\",\"w\":3}}", "(no string)"},
        {"{\"weight_map\":{\"v\":\"x.exe\"}}", "x.exe"},
        {"{\"weight_map\":{}}", "weight_map"},
        {"{\"weight_map\":{\"nothing\":\"x.bin\"}}", "not in its shard"},
    };
    copy_data(s, "nested_zip.pt", "x.bin");
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_checkpoint *c = NULL;
        pnb_error err = PNB_ERROR_INIT;
        scratch_file(s, "m.bin.index.json", cases[i].text, strlen(cases[i].text));
        assert_failed(pnb_checkpoint_open(&c, s->path, &err), &err, PNB_FORMAT, cases[i].words);
        assert_null(c);
    }
    static const char some[] = "{\"weight_map\":{\"a.b\":\"x.bin\"}}";
    pnb_checkpoint *c = NULL;
    scratch_file(s, "m.bin.index.json", some, sizeof some - 1);
    assert_int_equal(pnb_checkpoint_open(&c, s->path, NULL), PNB_OK);
    assert_int_equal(pnb_checkpoint_count(c), 1);
    assert_non_null(strstr(pnb_checkpoint_warning(c), "1 arrays the index does not name"));
    pnb_checkpoint_free(c);
    scratch_clear(s);
}

static void folders_are_searched_in_order(void **state)
{
    scratch *s = *state;
    char path[512], tiny[4];
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_checkpoint_locate(path, sizeof path, s->dir, &err), &err, PNB_NOT_FOUND,
                  "pytorch_model.bin");
    static const char *const names[] = {"model.pth", "pytorch_model.bin",
                                        "open_clip_pytorch_model.bin", "model.safetensors",
                                        "open_clip_model.safetensors"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        copy_data(s, "nested_zip.pt", names[i]);
        assert_int_equal(pnb_checkpoint_locate(path, sizeof path, s->dir, NULL), PNB_OK);
        assert_string_equal(pnb__path_base(path), names[i]);
    }
    assert_int_equal(pnb_checkpoint_locate(tiny, sizeof tiny, s->dir, NULL), PNB_LIMIT);
    pnb_checkpoint *c = NULL; /* content counts, not the ending */
    assert_int_equal(pnb_checkpoint_open(&c, path, NULL), PNB_OK);
    assert_string_equal(pnb_checkpoint_format(c), "pytorch");
    pnb_checkpoint_free(c);
    copy_data(s, "nested.safetensors", "model.pth");
    assert_int_equal(pnb_checkpoint_open(&c, s->path, NULL), PNB_OK);
    assert_string_equal(pnb_checkpoint_format(c), "safetensors");
    pnb_checkpoint_free(c);
    scratch_clear(s);
}

#ifdef PNB_FAULTS
static pnb_status open_several(scratch *s, pnb_error *err)
{
    const char *const files[] = {DATA "strided_zip.pt", DATA "strided_legacy.pt",
                                 DATA "dtypes_deflated.pt", DATA "nested.safetensors",
                                 scratch_path(s, "m.bin.index.json")};
    for (size_t i = 0; i < PNB_COUNT(files); i++) {
        pnb_checkpoint *c = NULL;
        pnb_status status = pnb_checkpoint_open(&c, files[i], err);
        if (status != PNB_OK)
            return status;
        pnb_checkpoint_free(c);
    }
    return PNB_OK;
}

/* An index long enough for the table of its keys to grow. */
static void memory_may_run_out(void **state)
{
    scratch *s = *state;
    pnb__buf text = {0};
    pnb__buf_puts(&text, "{\"weight_map\":{\"a.b\":\"x.bin\",\"a.c.d\":\"x.bin\"}");
    for (int i = 0; i < 40; i++)
        pnb__buf_printf(&text, ",\"metadata %d\":%d", i, i);
    pnb__buf_putc(&text, '}');
    copy_data(s, "nested_legacy.pt", "x.bin");
    scratch_file(s, "m.bin.index.json", text.data, text.size);
    pnb__buf_reset(&text);
    fail_every_allocation(open_several, s);
    scratch_clear(s);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_equals_its_twin),
        cmocka_unit_test(tensors_are_mapped_and_shared),
        cmocka_unit_test(sha256_is_of_the_file),
        cmocka_unit_test(truncated_at_every_byte),
        cmocka_unit_test(changed_bytes_never_crash),
        cmocka_unit_test(checksums_are_verified),
        cmocka_unit_test(shells_are_refused_by_name),
        cmocka_unit_test(tensors_must_fit_their_storage),
        cmocka_unit_test(lying_archives_are_refused),
        cmocka_unit_test(overlapping_members_are_refused),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(index_tricks_are_refused),
        cmocka_unit_test(folders_are_searched_in_order),
#ifdef PNB_FAULTS
        cmocka_unit_test(memory_may_run_out),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
