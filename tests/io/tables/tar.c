/* tar: archives of other programs (made here byte by byte), damage, positions. */
#include "tests/io/tables/tar_members.h"

typedef struct archive {
    unsigned char bytes[64 * BLOCK];
    size_t size;
} archive;

static void set_sum(unsigned char *h, bool is_signed)
{
    int sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        sum += is_signed ? (signed char)h[i] : h[i];
    snprintf((char *)h + 148, 8, "%06o", (unsigned)sum);
}

/* Appends a header and data; returns the header for changes (call set_sum again). */
static unsigned char *add(archive *a, const char *name, char type, const void *data, size_t n)
{
    unsigned char *h = a->bytes + a->size;
    memcpy(h, name, strlen(name));
    snprintf((char *)h + 100, 8, "%07o", 0644u);
    snprintf((char *)h + 124, 12, "%011o", (unsigned)n);
    h[156] = (unsigned char)type;
    memcpy(h + 257, "ustar\00000", 8);
    set_sum(h, false);
    if (n > 0)
        memcpy(h + BLOCK, data, n);
    a->size += BLOCK + (n + BLOCK - 1) / BLOCK * BLOCK;
    return h;
}

static void end(archive *a)
{
    a->size += (size_t)2 * BLOCK;
}

static void open_archive(pnb__tar *t, const archive *a)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__tar_open_bytes(t, a->bytes, a->size, "a.tar", &err), &err);
}

static void plain_members_and_positions(void **state)
{
    (void)state;
    archive a = {0};
    pnb__tar t;
    pnb_error err = PNB_ERROR_INIT;
    add(&a, "0001.txt", '0', "hello", 5);
    unsigned char *old = add(&a, "old", '\0', "x", 1); /* before ustar */
    memset(old + 257, 0, 8);
    set_sum(old, false);
    add(&a, "empty", '0', "", 0);
    end(&a);
    open_archive(&t, &a);
    expect_member(&t, "0001.txt", "hello", 5, 0);
    expect_member(&t, "old", "x", 1, 2 * BLOCK);
    expect_member(&t, "empty", "", 0, 4 * BLOCK);
    expect_end(&t);
    expect_end(&t);
    assert_ok(pnb__tar_seek(&t, 2 * BLOCK, &err), &err);
    expect_member(&t, "old", "x", 1, 2 * BLOCK);
    assert_failed(pnb__tar_seek(&t, 100, &err), &err, PNB_ARG, "byte 100");
    pnb_error_reset(&err);
    assert_failed(pnb__tar_seek(&t, 1 << 20, &err), &err, PNB_ARG, "no header");
    pnb__tar_close(&t);
    a.size -= (size_t)2 * BLOCK; /* no zero blocks, and the last member's padding cut */
    open_archive(&t, &a);
    for (int i = 0; i < 3; i++) {
        pnb__tar_member m;
        bool more = false;
        assert_ok(pnb__tar_next(&t, &m, &more, &err), NULL);
    }
    expect_end(&t);
    pnb__tar_close(&t);
}

static void long_names(void **state)
{
    (void)state;
    archive a = {0};
    pnb__tar t;
    char name[301], record[400];
    memset(name, 'n', 300);
    name[300] = '\0';
    snprintf(record, sizeof(record), "310 path=%s\n", name);
    assert_int_equal(strlen(record), 310);
    unsigned char *split = add(&a, "file.png", '0', "1", 1);
    memcpy(split + 345, "some/folder", 11);
    set_sum(split, false);
    add(&a, "./@LongLink", 'L', name, 301);
    add(&a, "short", '0', "2", 1);
    add(&a, "pax", 'x', record, 310);
    add(&a, "short", '0', "3", 1);
    add(&a, "g", 'g', "20 comment=whatever\n", 20);
    add(&a, "plain", '0', "4", 1);
    add(&a, "./@LongLink", 'K', name, 301);
    add(&a, "link", '2', "", 0);
    end(&a);
    open_archive(&t, &a);
    expect_member(&t, "some/folder/file.png", "1", 1, 0);
    expect_member(&t, name, "2", 1, 2 * BLOCK);
    uint64_t at = t.position;
    expect_member(&t, name, "3", 1, at);
    expect_member(&t, "plain", "4", 1, t.position);
    pnb__tar_member m;
    bool more = false;
    assert_int_equal(pnb__tar_next(&t, &m, &more, NULL), PNB_OK);
    assert_string_equal(m.name, "link");
    assert_false(m.is_file);
    expect_end(&t);
    pnb__tar_close(&t);
}

static void sizes_in_other_forms(void **state)
{
    (void)state;
    archive a = {0};
    pnb__tar t;
    unsigned char *h = add(&a, "base256", '0', "abcdefg", 7);
    memset(h + 124, 0, 12);
    h[124] = 0x80, h[135] = 7;
    set_sum(h, false);
    add(&a, "pax", 'x', "17 comment=a b c\n9 size=3\n", 26);
    h = add(&a, "pax-sized", '0', "xyz", 3);
    snprintf((char *)h + 124, 12, "%011o", 0u); /* the pax record wins */
    set_sum(h, false);
    h = add(&a, "signed\xff\xff", '0', "q", 1);
    set_sum(h, true);
    h = add(&a, "folder/", '5', "", 0);
    snprintf((char *)h + 124, 12, "%011o", 4096u); /* means nothing for folders */
    set_sum(h, false);
    add(&a, "last", '7', "z", 1);
    end(&a);
    open_archive(&t, &a);
    expect_member(&t, "base256", "abcdefg", 7, 0);
    expect_member(&t, "pax-sized", "xyz", 3, 2 * BLOCK);
    expect_member(&t, "signed\xff\xff", "q", 1, 6 * BLOCK);
    expect_member(&t, "folder/", "", 0, 8 * BLOCK);
    expect_member(&t, "last", "z", 1, 9 * BLOCK);
    expect_end(&t);
    pnb__tar_close(&t);
}

typedef enum damage {
    WRONG_SUM,
    SIZE_TEXT,
    SIZE_NEGATIVE,
    SIZE_HUGE,
    SIZE_PAST_END,
    PAX_LENGTH,
    PAX_NO_EQUALS,
    PAX_SIZE,
    PAX_ALONE,
    SPARSE,
    PAX_SPARSE,
    N_DAMAGES
} damage;

static archive damaged(damage kind)
{
    archive a = {0};
    static const char *const records[N_DAMAGES] = {
        [PAX_LENGTH] = "99 path=x\n",
        [PAX_NO_EQUALS] = "9 pathxx\n",
        [PAX_SIZE] = "11 size=1x\n",
        [PAX_ALONE] = "10 path=x\n",
        [PAX_SPARSE] = "22 GNU.sparse.major=1\n",
    };
    if (records[kind] != NULL)
        add(&a, "pax", 'x', records[kind], strlen(records[kind]));
    if (kind == PAX_ALONE) {
        end(&a);
        return a;
    }
    unsigned char *h = add(&a, "member", kind == SPARSE ? 'S' : '0', "data", 4);
    if (kind == SIZE_TEXT)
        memcpy(h + 124, "00000000x04", 11);
    if (kind == SIZE_NEGATIVE)
        memset(h + 124, 0xff, 12);
    if (kind == SIZE_HUGE)
        memset(h + 125, 0xff, 11), h[124] = 0x80;
    if (kind == SIZE_PAST_END)
        memcpy(h + 124, "77777777777", 11);
    set_sum(h, false);
    if (kind == WRONG_SUM)
        h[0] ^= 1;
    end(&a);
    return a;
}

static void damage_is_named(void **state)
{
    (void)state;
    static const struct {
        pnb_status status;
        const char *words;
    } wanted[N_DAMAGES] = {
        [WRONG_SUM] = {PNB_FORMAT, "checksum"},         [SIZE_TEXT] = {PNB_FORMAT, "not a number"},
        [SIZE_NEGATIVE] = {PNB_FORMAT, "not a number"}, [SIZE_HUGE] = {PNB_FORMAT, "not a number"},
        [SIZE_PAST_END] = {PNB_FORMAT, "truncated"},    [PAX_LENGTH] = {PNB_FORMAT, "pax record"},
        [PAX_NO_EQUALS] = {PNB_FORMAT, "pax record"},   [PAX_SIZE] = {PNB_FORMAT, "pax size"},
        [PAX_ALONE] = {PNB_FORMAT, "without member"},   [SPARSE] = {PNB_UNSUPPORTED, "sparse"},
        [PAX_SPARSE] = {PNB_UNSUPPORTED, "sparse"},
    };
    for (int kind = 0; kind < N_DAMAGES; kind++) {
        archive a = damaged((damage)kind);
        pnb__tar t;
        pnb__tar_member m;
        bool more = false;
        pnb_error err = PNB_ERROR_INIT;
        open_archive(&t, &a);
        assert_failed(pnb__tar_next(&t, &m, &more, &err), &err, wanted[kind].status,
                      wanted[kind].words);
        assert_int_equal(t.position, 0);
        pnb__tar_close(&t);
    }
}

static void truncation_at_every_byte(void **state)
{
    (void)state;
    archive a = {0};
    add(&a, "pax", 'x', "11 path=xy\n", 11);
    add(&a, "member", '0', "data", 4);
    add(&a, "second", '0', "data", 4);
    for (size_t n = 0; n <= a.size; n++) {
        pnb__tar t;
        pnb__tar_member m;
        bool more = true;
        unsigned char *copy = malloc(n + 1);
        assert_non_null(copy);
        memcpy(copy, a.bytes, n);
        pnb_status found = pnb__tar_open_bytes(&t, copy, n, "cut", NULL);
        assert_int_equal(found, PNB_OK);
        int n_members = 0;
        while (found == PNB_OK && more) {
            found = pnb__tar_next(&t, &m, &more, NULL);
            n_members += found == PNB_OK && more;
        }
        size_t first_end = (size_t)3 * BLOCK + 4, second_end = (size_t)5 * BLOCK + 4;
        assert_int_equal(n_members, (n >= first_end) + (n >= second_end));
        pnb__tar_close(&t);
        free(copy);
    }
}

static void compressed_archives_are_recognised(void **state)
{
    scratch *s = *state;
    pnb__tar t;
    pnb_error err = PNB_ERROR_INIT;
    scratch_file(s, "a.tar.gz", "\x1f\x8b\x08\x00", 4);
    assert_failed(pnb__tar_open(&t, s->path, &err), &err, PNB_FORMAT, "what is packed is damaged");
    pnb_error_reset(&err);
    assert_failed(pnb__tar_open(&t, scratch_path(s, "none.tar"), &err), &err, PNB_NOT_FOUND,
                  "none");
    scratch_file(s, "empty.tar", "", 0);
    pnb_error_reset(&err);
    assert_ok(pnb__tar_open(&t, s->path, &err), &err);
    expect_end(&t);
    pnb__tar_close(&t);
    pnb__tar_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_members_and_positions),
        cmocka_unit_test(long_names),
        cmocka_unit_test(sizes_in_other_forms),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(compressed_archives_are_recognised),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
