/* Packed files unpacked behind a map: members and frames behind each other, padding, damage,
 * limits, folders that cannot be written, and memory that runs out. */
#include "io/unpack.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef PNB_HAVE_ZSTD
#include <zstd.h>
#endif

#include "tests/io/scratch.h"

enum { N = 700000, ROOM = 2 * N };

static unsigned char plain[N], packed[ROOM];

static void fill(void)
{
    for (size_t i = 0; i < N; i++)
        plain[i] = (unsigned char)((i * i >> 7) ^ (i % 251));
}

static size_t gzip(size_t n, unsigned char *out)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = plain;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = ROOM;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    n = z.total_out;
    deflateEnd(&z);
    return n;
}

static pnb_status unpack(scratch *s, const char *name, size_t n, uint64_t most, pnb__map *m,
                         pnb_error *err)
{
    pnb_error_reset(err);
    scratch_file(s, name, packed, n);
    assert_int_equal(pnb__map_open(m, s->path, err), PNB_OK);
    assert_true(n == 0 || pnb__is_packed(m->data, m->size));
    return pnb__unpack_map(m, s->path, most, err);
}

static void expect(scratch *s, const char *name, size_t n, size_t n_want)
{
    pnb__map m;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(unpack(s, name, n, N, &m, &err), &err);
    assert_int_equal(m.size, n_want);
    assert_memory_equal(m.data, plain, n_want);
    pnb__map_close(&m);
}

static void damaged(scratch *s, const char *name, size_t n)
{
    pnb__map m;
    pnb_error err = PNB_ERROR_INIT;
    for (size_t cut = n - 1; cut > n / 2; cut -= n / 9) { /* what came before is there */
        assert_ok(unpack(s, name, cut, N, &m, &err), &err);
        assert_true(m.size > 0 && m.size <= N);
        assert_memory_equal(m.data, plain, m.size);
        pnb__map_close(&m);
    }
    assert_failed(unpack(s, name, 6, N, &m, &err), &err, PNB_FORMAT, "damaged");
    pnb__map_close(&m);
    assert_failed(unpack(s, name, n, N - 1, &m, &err), &err, PNB_LIMIT, "more than 699999 bytes");
    assert_int_equal(m.size, n); /* the map is what it was */
    pnb__map_close(&m);
}

static void test_gzip(void **state)
{
    fill();
    size_t n = gzip(N, packed);
    expect(*state, "a.gz", n, N);
    damaged(*state, "a.gz", n);
    size_t first = gzip(1000, packed); /* two members, the second of all bytes behind the first */
    unsigned char *rest = packed + first;
    memmove(plain, plain + 1000, N - 1000);
    size_t second = gzip(N - 1000, rest);
    fill();
    expect(*state, "b.gz", first + second, N);
    memset(packed + first + second, 0, 512);
    expect(*state, "c.gz", first + second + 512, N);
}

static void test_zstd(void **state)
{
#ifdef PNB_HAVE_ZSTD
    fill();
    size_t n = ZSTD_compress(packed, ROOM, plain, N, 1);
    expect(*state, "a.zst", n, N);
    damaged(*state, "a.zst", n);
    size_t first = ZSTD_compress(packed, ROOM, plain, 1000, 1);
    n = first + ZSTD_compress(packed + first, ROOM - first, plain + 1000, N - 1000, 1);
    expect(*state, "b.zst", n, N);
#else
    pnb__map m;
    pnb_error err = PNB_ERROR_INIT;
    memcpy(packed, "\x28\xb5\x2f\xfd", 4);
    assert_failed(unpack(*state, "a.zst", 4, N, &m, &err), &err, PNB_UNSUPPORTED, "libzstd-dev");
    pnb__map_close(&m);
#endif
}

/* Nothing is left in the folder, and one that cannot be written is no hindrance. */
static void test_no_name(void **state)
{
    scratch *s = *state;
    fill();
    expect(s, "a.gz", gzip(N, packed), N);
    assert_false(pnb__is_packed("", 0));
    assert_false(pnb__is_packed("\x1f", 1));
    assert_true(pnb__is_packed("\x1f\x8b", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gzip, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_zstd, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_no_name, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
