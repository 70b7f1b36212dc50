/* DataComp's subset files: the bytes NumPy writes, order, doubles, damage. */
#include "tests/io/scratch.h"

#include "penumbra/filter.h"

static void reads_hexadecimal(void **state)
{
    (void)state;
    pnb_uid uid = {7, 7};
    assert_true(pnb_uid_parse(&uid, "0123456789abcdefFEDCBA9876543210"));
    assert_true(uid.high == 0x0123456789abcdefULL && uid.low == 0xfedcba9876543210ULL);
    assert_true(pnb_uid_parse(&uid, "ffffffffffffffff0000000000000001aabb"));
    assert_true(uid.high == UINT64_MAX && uid.low == 1);
    static const char *const bad[] = {"", "0123", "0123456789abcdef0123456789abcdeg",
                                      "0123456789abcdef-123456789abcdef",
                                      "0123456789abcdef0123456789abcdef+"};
    for (size_t i = 0; i < PNB_COUNT(bad); i++)
        assert_false(pnb_uid_parse(&uid, bad[i]));
    assert_true(uid.high == UINT64_MAX && uid.low == 1);
}

/* What np.save writes for np.array([(1, 2), (256, 3)], dtype="u8,u8"). */
static const unsigned char expected[] =
    "\x93NUMPY\x01\x00\x76\x00"
    "{'descr': [('f0', '<u8'), ('f1', '<u8')], 'fortran_order': False, 'shape': (2,), }"
    "                                   \n"
    "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\3\0\0\0\0\0\0";

static void writes_as_numpy(void **state)
{
    scratch *s = *state;
    pnb_uid uids[] = {{256, 3}, {1, 2}, {256, 3}, {1, 2}};
    pnb_error err = PNB_ERROR_INIT;
    size_t n = 0, size = 0;
    char *bytes = NULL;
    const char *path = scratch_path(s, "u.npy");
    assert_ok(pnb_uids_save(path, uids, 4, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_ok(pnb__read_file(path, 1 << 20, &bytes, &size, &err), &err);
    assert_int_equal(size, sizeof expected);
    assert_memory_equal(bytes, expected, size);
    pnb__free(bytes);
}

static void reads_what_it_wrote(void **state)
{
    scratch *s = *state;
    enum { N = 1000 };
    static pnb_uid uids[N];
    pnb_error err = PNB_ERROR_INIT;
    pnb_uid *back = NULL;
    size_t n = 0;
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (size_t i = 0; i < N; i++) /* few different first halves: the second decides */
        uids[i] = (pnb_uid){pnb__rng_u64(&rng) & 7, pnb__rng_u64(&rng)};
    const char *path = scratch_path(s, "u.npy");
    assert_ok(pnb_uids_save(path, uids, N, NULL, &err), &err);
    assert_ok(pnb_uids_load(&back, &n, path, &err), &err);
    assert_int_equal(n, N);
    for (size_t i = 0; i < N; i++) {
        assert_true(pnb_uids_contain(back, n, uids[i]));
        assert_false(pnb_uids_contain(back, n, (pnb_uid){uids[i].high + 8, uids[i].low}));
        assert_true(back[i].high == uids[i].high && back[i].low == uids[i].low);
        if (i > 0)
            assert_true(back[i - 1].high < back[i].high ||
                        (back[i - 1].high == back[i].high && back[i - 1].low < back[i].low));
    }
    assert_false(pnb_uids_contain(back, 0, back[0]));
    pnb_uids_free(back);
}

static void refuses_damage(void **state)
{
    scratch *s = *state;
    pnb_uid *uids = NULL;
    size_t n = 1;
    unsigned char bytes[sizeof expected];
    for (size_t length = 0; length < sizeof expected; length++) {
        pnb_error err = PNB_ERROR_INIT;
        const char *path = scratch_file(s, "cut.npy", expected, length);
        assert_int_equal(pnb_uids_load(&uids, &n, path, &err), PNB_FORMAT);
        assert_non_null(strstr(err.text, "cut.npy"));
        assert_null(uids);
        assert_int_equal(n, 0);
    }
    static const struct {
        size_t at;
        char value;
    } changes[] = {{0, 'x'}, {6, 2}, {8, 0}, {16, 'D'}, {26, '8'}, {83, '-'}, {84, '9'}};
    for (size_t i = 0; i < PNB_COUNT(changes); i++) {
        pnb_error err = PNB_ERROR_INIT;
        memcpy(bytes, expected, sizeof bytes);
        bytes[changes[i].at] = (unsigned char)changes[i].value;
        const char *path = scratch_file(s, "bad.npy", bytes, sizeof bytes);
        assert_int_equal(pnb_uids_load(&uids, &n, path, &err), PNB_FORMAT);
    }
    pnb_error err = PNB_ERROR_INIT;
    pnb_uid one = {1, 1};
    assert_failed(pnb_uids_save(scratch_path(s, "e.npy"), &one, 0, NULL, &err), &err, PNB_ARG,
                  "no uid");
    pnb_error_reset(&err);
    assert_int_equal(pnb_uids_save("/nonexistent/u.npy", &one, 1, NULL, &err), PNB_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_hexadecimal),
        cmocka_unit_test(writes_as_numpy),
        cmocka_unit_test(reads_what_it_wrote),
        cmocka_unit_test(refuses_damage),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
