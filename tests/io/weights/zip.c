/* Zip archives made here: stored and deflated members, zip64, descriptors, and archives that lie
 * about names, places and sizes or unfold to too much. */
#include "io/weights/zip.h"

#include "tests/io/weights/archives.h"

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

/* Opens a copy of exactly those bytes. */
typedef struct opened {
    pnb__zip zip;
    pnb__arena arena;
    unsigned char *bytes;
    pnb_status status;
    pnb_error err;
} opened;

static void open_bytes(opened *o, const void *bytes, size_t n)
{
    *o = (opened){.err = PNB_ERROR_INIT};
    o->bytes = malloc(n > 0 ? n : 1);
    memcpy(o->bytes, bytes, n);
    pnb__arena_init(&o->arena, 4096);
    o->status = pnb__zip_open(&o->zip, o->bytes, n, "a.zip", &o->arena, &o->err);
}

static void close_opened(opened *o)
{
    pnb__arena_free(&o->arena);
    free(o->bytes);
}

static void expect_member(const opened *o, const char *name, const char *want, bool is_owned)
{
    const unsigned char *data = NULL;
    void *owned = NULL;
    pnb_error err = PNB_ERROR_INIT;
    const pnb__zip_member *m = pnb__zip_find(&o->zip, name);
    assert_non_null(m);
    assert_ok(pnb__zip_read(&o->zip, m, &data, &owned, &err), &err);
    assert_int_equal(m->n_bytes, strlen(want));
    assert_memory_equal(data, want, strlen(want));
    assert_int_equal(owned != NULL, is_owned);
    pnb__free_aligned(owned);
}

/* "hello hello hello hello " as raw deflate. */
static member deflated(const char *name, unsigned char *room, size_t n_room, const char *text)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = room;
    z.avail_out = (uInt)n_room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    n_room = z.total_out;
    deflateEnd(&z);
    return (member){
        name, room, n_room, strlen(text),
        8,    0,    -1,     (uint32_t)crc32(0, (const Bytef *)text, (uInt)strlen(text))};
}

static void members_are_found_and_read(void **state)
{
    (void)state;
    archive a = {0};
    opened o;
    unsigned char room[100];
    const member packed = deflated("b/packed", room, sizeof room, "hello hello hello hello ");
    add_stored(&a, "z", "last", 4);
    add_raw(&a, &packed);
    add_stored(&a, "a/empty", "", 0);
    end_archive(&a);
    put(&a.bytes, 0x21, 1); /* a comment of one byte, which tells its length */
    a.bytes.data[a.bytes.size - 3] = 1;
    open_bytes(&o, a.bytes.data, a.bytes.size);
    assert_ok(o.status, &o.err);
    assert_int_equal(o.zip.n, 3);
    assert_string_equal(o.zip.members[0].name, "a/empty"); /* sorted by name */
    assert_string_equal(o.zip.members[2].name, "z");
    expect_member(&o, "z", "last", false); /* where it lies */
    expect_member(&o, "a/empty", "", false);
    expect_member(&o, "b/packed", "hello hello hello hello ", true);
    assert_null(pnb__zip_find(&o.zip, "b"));
    assert_null(pnb__zip_find(&o.zip, "zz"));
    close_opened(&o);
    archive_reset(&a);
    end_archive(&a); /* no member at all */
    open_bytes(&o, a.bytes.data, a.bytes.size);
    assert_ok(o.status, &o.err);
    assert_null(pnb__zip_find(&o.zip, "a"));
    close_opened(&o);
    archive_reset(&a);
}

/* As PyTorch's writer has it: sizes and checksum follow the data, the local header holds zeros. */
static void descriptors_may_tell_the_sizes(void **state)
{
    (void)state;
    for (int lies = 0; lies < 2; lies++) {
        archive a = {0};
        opened o;
        member m = stored("a", "data", 4);
        m.flags = 8;
        add_raw(&a, &m);
        memset(a.bytes.data + 14, 0, 12);
        a.bytes.data[22] = (char)lies; /* a size that is neither deferred nor true */
        put(&a.bytes, 0x08074b50, 4);
        put(&a.bytes, m.crc, 4);
        put(&a.bytes, 4, 4);
        put(&a.bytes, 4, 4);
        end_archive(&a);
        open_bytes(&o, a.bytes.data, a.bytes.size);
        if (lies)
            assert_failed(o.status, &o.err, PNB_FORMAT, "contradicts the directory");
        else
            assert_ok(o.status, &o.err);
        if (!lies)
            expect_member(&o, "a", "data", false);
        close_opened(&o);
        archive_reset(&a);
    }
}

/* All three numbers of an entry in its zip64 field, and an end record of 64 bits with its locator.
 */
static void zip64(void **state)
{
    (void)state;
    for (int part = 0; part < 4; part++) { /* 0: whole, else what is damaged */
        pnb__buf b = {0};
        opened o;
        const uint32_t crc = (uint32_t)crc32(0, (const Bytef *)"data", 4);
        put(&b, 0x04034b50, 4);
        put(&b, 0, 10);
        put(&b, crc, 4);
        put(&b, 4, 4);
        put(&b, 4, 4);
        put(&b, 1, 2);
        put(&b, 0, 2);
        pnb__buf_puts(&b, "adata");
        size_t central = b.size;
        put(&b, 0x02014b50, 4);
        put(&b, 0, 12);
        put(&b, crc, 4);
        put(&b, 0xFFFFFFFF, 4);
        put(&b, 0xFFFFFFFF, 4);
        put(&b, 1, 2);
        put(&b, 32, 2); /* another field of 4 + 0 bytes, then zip64's of 4 + 24 */
        put(&b, 0, 10);
        put(&b, 0xFFFFFFFF, 4);
        pnb__buf_puts(&b, "a");
        put(&b, 0x5555, 2);
        put(&b, 0, 2);
        put(&b, part == 1 ? 2 : 1, 2);
        put(&b, 24, 2);
        put(&b, 4, 8);
        put(&b, 4, 8);
        put(&b, 0, 8);
        size_t end64 = b.size;
        put(&b, 0x06064b50, 4);
        put(&b, 44, 8);
        put(&b, 0, 4);
        put(&b, part == 2 ? 1 : 0, 4); /* number of this disk */
        put(&b, 0, 4);
        put(&b, 1, 8);
        put(&b, 1, 8);
        put(&b, end64 - central, 8);
        put(&b, central, 8);
        put(&b, 0x07064b50, 4);
        put(&b, 0, 4);
        put(&b, end64 + (part == 3), 8);
        put(&b, 1, 4);
        put(&b, 0x06054b50, 4);
        put(&b, 0, 4);
        put(&b, 0xFFFF, 2);
        put(&b, 0xFFFF, 2);
        put(&b, 0xFFFFFFFF, 4);
        put(&b, 0xFFFFFFFF, 4);
        put(&b, 0, 2);
        open_bytes(&o, b.data, b.size);
        if (part == 0) {
            assert_ok(o.status, &o.err);
            expect_member(&o, "a", "data", false);
        } else {
            static const char *const says[] = {"", "zip64 sizes are missing", "several disks",
                                               "not where its locator says"};
            assert_failed(o.status, &o.err, part == 2 ? PNB_UNSUPPORTED : PNB_FORMAT, says[part]);
        }
        close_opened(&o);
        pnb__buf_reset(&b);
    }
}

static void directories_are_bounded(void **state)
{
    (void)state;
    static const struct {
        size_t back; /* from the end of the end record */
        unsigned char value;
        pnb_status want;
        const char *says;
    } cases[] = {
        {12, 9, PNB_UNSUPPORTED, "several disks"}, /* entries on this disk differ from all */
        {18, 1, PNB_UNSUPPORTED, "several disks"},
        {10, 99, PNB_FORMAT, "outside the file"}, /* its size */
        {6, 99, PNB_FORMAT, "outside the file"},  /* its place */
        {2, 1, PNB_FORMAT, "no end record"}};     /* a comment that is not there */
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        archive a = {0};
        opened o;
        add_stored(&a, "a", "data", 4);
        end_archive(&a);
        a.bytes.data[a.bytes.size - cases[i].back] = (char)cases[i].value;
        open_bytes(&o, a.bytes.data, a.bytes.size);
        assert_failed(o.status, &o.err, cases[i].want, cases[i].says);
        close_opened(&o);
        archive_reset(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lying_archives_are_refused),
        cmocka_unit_test(overlapping_members_are_refused),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(checksums_are_verified),
        cmocka_unit_test(members_are_found_and_read),
        cmocka_unit_test(descriptors_may_tell_the_sizes),
        cmocka_unit_test(zip64),
        cmocka_unit_test(directories_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
