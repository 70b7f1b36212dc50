/* Written archives: read back, the same bytes each time, names of every length, nothing left over.
 */
#include "tests/io/tables/tar_members.h"

static void long_name(char *name, size_t n, size_t slash)
{
    memset(name, 'a', n);
    name[slash] = '/';
    name[n] = '\0';
}

static void write_archive(const char *path)
{
    pnb__tar_writer w;
    pnb_error err = PNB_ERROR_INIT;
    char split[241], tall[401], data[1000];
    long_name(split, 240, 150);
    long_name(tall, 400, 10);
    memset(data, 'd', sizeof(data));
    assert_ok(pnb__tar_writer_open(&w, path, &err), &err);
    assert_ok(pnb__tar_writer_add(&w, "a/b.png", "png", 3, &err), &err);
    assert_ok(pnb__tar_writer_add(&w, split, data, 1000, &err), &err);
    assert_ok(pnb__tar_writer_add(&w, tall, data, 512, &err), &err);
    assert_ok(pnb__tar_writer_add(&w, "z\xc3\xa9.txt", NULL, 0, &err), &err);
    assert_failed(pnb__tar_writer_add(&w, "/etc/x", "", 0, &err), &err, PNB_ARG, "absolute");
    assert_int_equal(pnb__tar_writer_add(&w, "a/../b", "", 0, NULL), PNB_ARG);
    assert_int_equal(pnb__tar_writer_add(&w, "..", "", 0, NULL), PNB_ARG);
    assert_int_equal(pnb__tar_writer_add(&w, "", "", 0, NULL), PNB_ARG);
    pnb_error_reset(&err);
    assert_ok(pnb__tar_writer_commit(&w, &err), &err);
    pnb__tar_writer_abort(&w);
}

static void written_archives_read_back(void **state)
{
    scratch *s = *state;
    char split[241], tall[401], data[1000], *first = NULL, *second = NULL;
    size_t n_first = 0, n_second = 0;
    pnb__tar t;
    pnb_error err = PNB_ERROR_INIT;
    long_name(split, 240, 150);
    long_name(tall, 400, 10);
    memset(data, 'd', sizeof(data));
    write_archive(scratch_path(s, "w.tar"));
    assert_ok(pnb__tar_open(&t, s->path, &err), &err);
    expect_member(&t, "a/b.png", "png", 3, 0);
    expect_member(&t, split, data, 1000, 2 * BLOCK);
    expect_member(&t, tall, data, 512, 5 * BLOCK);
    expect_member(&t, "z\xc3\xa9.txt", "", 0, 9 * BLOCK);
    expect_end(&t);
    pnb__tar_close(&t);
    assert_ok(pnb__read_file(s->path, 1 << 20, &first, &n_first, &err), &err);
    write_archive(s->path);
    assert_ok(pnb__read_file(s->path, 1 << 20, &second, &n_second, &err), &err);
    assert_int_equal(n_first, n_second);
    assert_int_equal(n_first % BLOCK, 0);
    assert_memory_equal(first, second, n_first);
    assert_memory_equal(first + 136, "00000000000", 12); /* time 0 */
    pnb__free(first);
    pnb__free(second);
}

static void names_at_the_limits(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    pnb__tar_writer w;
    pnb__tar t;
    char name[300];
    assert_ok(pnb__tar_writer_open(&w, scratch_path(s, "names.tar"), &err), &err);
    for (size_t n = 98; n < 270; n++) {
        long_name(name, n, n / 2);
        assert_ok(pnb__tar_writer_add(&w, name, "x", 1, &err), &err);
    }
    assert_ok(pnb__tar_writer_commit(&w, &err), &err);
    assert_ok(pnb__tar_open(&t, s->path, &err), &err);
    for (size_t n = 98; n < 270; n++) {
        long_name(name, n, n / 2);
        expect_member(&t, name, "x", 1, t.position);
    }
    expect_end(&t);
    pnb__tar_close(&t);
}

static void an_aborted_archive_leaves_nothing(void **state)
{
    scratch *s = *state;
    pnb__tar_writer w;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb__tar_writer_open(&w, scratch_path(s, "x.tar"), &err), &err);
    assert_ok(pnb__tar_writer_add(&w, "a", "b", 1, &err), &err);
    pnb__tar_writer_abort(&w);
    assert_int_equal(scratch_count(s), 0);
}

/* The header of POSIX for a short name, byte by byte, and two zero blocks at the end. */
static void headers_of_the_standard(void **state)
{
    scratch *s = *state;
    pnb__tar_writer w;
    char *bytes = NULL;
    size_t n = 0;
    unsigned sum = 0;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__tar_writer_open(&w, scratch_path(s, "one.tar"), &err), &err);
    assert_ok(pnb__tar_writer_add(&w, "a.txt", "hello", 5, &err), &err);
    assert_int_equal(w.position, 2 * BLOCK);
    assert_ok(pnb__tar_writer_commit(&w, &err), &err);
    assert_ok(pnb__read_file(s->path, 1 << 20, &bytes, &n, &err), &err);
    assert_int_equal(n, 4 * BLOCK);
    assert_memory_equal(bytes, "a.txt\0", 7);
    assert_memory_equal(bytes + 100,
                        "0000644\0"
                        "0000000\0"
                        "0000000\0"
                        "00000000005\0"
                        "00000000000\0",
                        48);
    assert_memory_equal(bytes + 156, "0\0", 2);
    assert_memory_equal(bytes + 257,
                        "ustar\0"
                        "00",
                        8);
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)bytes[i];
    char digits[9];
    snprintf(digits, sizeof digits, "%06o", sum);
    assert_memory_equal(bytes + 148, digits, 7);
    assert_int_equal(bytes[155], ' ');
    assert_memory_equal(bytes + BLOCK, "hello\0", 6);
    for (size_t i = BLOCK + 5; i < n; i++)
        assert_int_equal(bytes[i], 0);
    pnb__free(bytes);
}

/* "../x", "x/..", ".." and what is absolute lead out; "..x" and "x.." are names like others. */
static void names_that_lead_out(void **state)
{
    scratch *s = *state;
    static const char *const bad[] = {"", "/a", "..", "../a", "a/..", "a/../b", "a//../b"};
    static const char *const good[] = {"..a", "a..", "a/..b/c", "...", "a/.b"};
    pnb__tar_writer w;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__tar_writer_open(&w, scratch_path(s, "names.tar"), &err), &err);
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        err = (pnb_error)PNB_ERROR_INIT;
        assert_failed(pnb__tar_writer_add(&w, bad[i], "x", 1, &err), &err, PNB_ARG,
                      "is empty, absolute or leads out");
    }
    assert_int_equal(w.position, 0);
    for (size_t i = 0; i < PNB_COUNT(good); i++)
        assert_int_equal(pnb__tar_writer_add(&w, good[i], "x", 1, NULL), PNB_OK);
    pnb__tar_writer_abort(&w);
}

#ifdef PNB_FAULTS
static pnb_status write_and_read(scratch *s, pnb_error *err)
{
    pnb__tar_writer w = {0};
    pnb__tar t = {0};
    pnb__tar_member m;
    bool more = true;
    char tall[401];
    pnb_status status;
    long_name(tall, 400, 10);
    PNB_TRY(pnb__tar_writer_open(&w, scratch_path(s, "f.tar"), err));
    PNB_TRY(pnb__tar_writer_add(&w, tall, "x", 1, err));
    PNB_TRY(pnb__tar_writer_commit(&w, err));
    PNB_TRY(pnb__tar_open(&t, s->path, err));
    while (more)
        PNB_TRY(pnb__tar_next(&t, &m, &more, err));
done:
    pnb__tar_writer_abort(&w);
    pnb__tar_close(&t);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    fail_every_allocation(write_and_read, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_archives_read_back),
        cmocka_unit_test(names_at_the_limits),
        cmocka_unit_test(an_aborted_archive_leaves_nothing),
        cmocka_unit_test(headers_of_the_standard),
        cmocka_unit_test(names_that_lead_out),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
