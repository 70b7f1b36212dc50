/* gzip members unpacked into memory, what is damaged and what unfolds to too much. */
#include "io/gzip.h"

#include <zlib.h>

#include "tests/io/scratch.h"

/* Packs into a gzip member. */
static size_t pack(const void *data, size_t n, unsigned char *out, size_t n_out)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)n_out;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    n_out = z.total_out;
    deflateEnd(&z);
    return n_out;
}

static void expect_unpacked(const unsigned char *packed, size_t n, size_t most, const void *want,
                            size_t n_want)
{
    unsigned char *out = NULL;
    size_t n_out = 99;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__gunzip(packed, n, most, &out, &n_out, &err), &err);
    assert_int_equal(n_out, n_want);
    assert_memory_equal(out, want, n_want);
    assert_int_equal(out[n_want], 0);
    pnb__free(out);
}

/* Sizes around one block of the unpacker, and its limit reached exactly. */
static void members_are_unpacked(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 50000};
    static unsigned char data[50000], packed[60000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * i >> 7);
    for (size_t k = 0; k < PNB_COUNT(sizes); k++) {
        size_t n = pack(data, sizes[k], packed, sizeof packed);
        assert_true(pnb__is_gzip(packed, n));
        expect_unpacked(packed, n, sizes[k], data, sizes[k]);
    }
    size_t n =
        pack("first", 5, packed, sizeof packed); /* what is behind the first member is not read */
    n += pack("second", 6, packed + n, sizeof packed - n);
    expect_unpacked(packed, n, 100, "first", 5);
    assert_false(pnb__is_gzip(packed, 1) || pnb__is_gzip("\x1F\x8C", 2) || pnb__is_gzip("", 0));
}

static void what_is_refused(void **state)
{
    (void)state;
    static unsigned char data[3000], packed[4000];
    unsigned char *out = data;
    size_t n_out = 99;
    pnb_error err = PNB_ERROR_INIT;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i % 251);
    size_t n = pack(data, sizeof data, packed, sizeof packed);
    assert_failed(pnb__gunzip(packed, n, sizeof data - 1, &out, &n_out, &err), &err, PNB_LIMIT,
                  "gzip: more than 2999 bytes when unpacked");
    assert_true(out == NULL && n_out == 0);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *part = malloc(cut + 1);
        memcpy(part, packed, cut);
        err = (pnb_error)PNB_ERROR_INIT;
        assert_failed(pnb__gunzip(part, cut, 1 << 20, &out, &n_out, &err), &err, PNB_FORMAT,
                      "the file is cut short");
        assert_null(out);
        free(part);
    }
    packed[n - 6] ^= 1; /* its checksum */
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb__gunzip(packed, n, 1 << 20, &out, &n_out, &err), &err, PNB_FORMAT,
                  "gzip: incorrect data check");
}

#ifdef PNB_FAULTS
static pnb_status unpack(scratch *s, pnb_error *err)
{
    static unsigned char data[100000], packed[2000];
    unsigned char *out;
    size_t n_out, n = pack(data, sizeof data, packed, sizeof packed);
    (void)s;
    pnb_status status = pnb__gunzip(packed, n, sizeof data, &out, &n_out, err);
    pnb__free(out);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(unpack, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_unpacked),
        cmocka_unit_test(what_is_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
