/* Both containers of torch.save: told by their first bytes, what each part must say, and programs
 * that are refused by name. */
#include "io/weights/torch_file.h"

#include "tests/io/weights/archives.h"

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

/* What had to be unpacked or laid out anew goes with the file. */
static void unpacked_arrays_are_owned(void **state)
{
    (void)state;
    static const char *const files[] = {DATA "dtypes_deflated.pt", DATA "strided_legacy.pt"};
    for (size_t i = 0; i < 2; i++) {
        pnb_checkpoint *c = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_ok(pnb_checkpoint_open(&c, files[i], &err), &err);
        assert_true(pnb_checkpoint_count(c) > 0);
        pnb_checkpoint_free(c);
    }
}

static void told_by_the_first_bytes(void **state)
{
    (void)state;
    static const char *const yes[] = {"PK\3\4", "PK\5\6", "\x80\2..", "\x80\5..", "L119"};
    static const char *const no[] = {"PK\1\2", "\x80\6..", "L118", "\x93NUM", "{\"a\""};
    for (size_t i = 0; i < PNB_COUNT(yes); i++) {
        assert_true(pnb__torch_sniff((const unsigned char *)yes[i], 4));
        assert_false(pnb__torch_sniff((const unsigned char *)yes[i], 3));
        assert_false(pnb__torch_sniff((const unsigned char *)no[i], 4));
    }
    assert_true(pnb__torch_compare_keys("a", 1, "b", 1) < 0 &&
                pnb__torch_compare_keys("ab", 2, "a", 1) > 0);
    assert_int_equal(pnb__torch_compare_keys("abc", 2, "abd", 2), 0);
}

/* NAME/data.pkl once, NAME/byteorder "little" or not at all. */
static void parts_of_an_archive(void **state)
{
    (void)state;
    static const float values[12] = {1, 2, 3};
    static const struct {
        const char *extra, *content;
        pnb_status want;
        const char *says;
    } cases[] = {{"a/byteorder", "little", PNB_OK, ""},
                 {"b/byteorder", "big", PNB_OK, ""}, /* of no checkpoint */
                 {"a/byteorder", "big", PNB_UNSUPPORTED, "big-endian machine"},
                 {"a/byteorder", "little!", PNB_UNSUPPORTED, "big-endian machine"},
                 {"b/data.pkl", "N.", PNB_FORMAT,
                  "two checkpoints in one archive, a/data.pkl and b/data.pkl"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char pickle[512];
        archive a = {0};
        pnb_error err = PNB_ERROR_INIT;
        add_stored(&a, "a/data.pkl", pickle,
                   tensor_pickle(pickle, sizeof pickle, "12", "0", "I12\n", "I1\n"));
        add_stored(&a, "a/data/0", values, sizeof values);
        add_stored(&a, cases[i].extra, cases[i].content, strlen(cases[i].content));
        pnb_status found = close_and_open(&a, &err);
        if (cases[i].want == PNB_OK)
            assert_ok(found, &err);
        else
            assert_failed(found, &err, cases[i].want, cases[i].says);
    }
}

/* ---- before 1.6: five pickles, then the storages ---- */

#define MAGIC "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define PROTOCOL "\x80\x02M\xe9\x03."
#define LITTLE "}U\x0dlittle_endian\x88s."
#define KEYS                                                                                       \
    "]U\x01"                                                                                       \
    "0a."

typedef struct old_file {
    const char *magic, *protocol, *machine, *keys, *tail;
    size_t n_magic, n_protocol, n_machine, n_keys, n_tail;
} old_file;

#define PART(name, bytes) .name = bytes, .n_##name = sizeof(bytes) - 1

static pnb_status open_old(const old_file *f, pnb_error *err)
{
    char pickle[512];
    pnb__buf b = {0};
    size_t n = tensor_pickle(pickle, sizeof pickle, "2", "0", "I2\n", "I1\n");
    pnb__buf_append(&b, f->magic, f->n_magic);
    pnb__buf_append(&b, f->protocol, f->n_protocol);
    pnb__buf_append(&b, f->machine, f->n_machine);
    pnb__buf_append(&b, pickle, n);
    pnb__buf_append(&b, f->keys, f->n_keys);
    pnb__buf_append(&b, f->tail, f->n_tail);
    pnb_status status = open_exact(b.data, b.size, err);
    pnb__buf_reset(&b);
    return status;
}

static void parts_of_an_old_file(void **state)
{
    (void)state;
    static const char two[] = "\2\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\x3f";
    const old_file whole = {PART(magic, MAGIC),    PART(protocol, PROTOCOL),
                            PART(machine, LITTLE), PART(keys, KEYS),
                            .tail = two,           .n_tail = 16};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(open_old(&whole, &err), &err);
    const struct {
        old_file file; /* parts that are not NULL take the place of the true ones */
        pnb_status want;
        const char *says;
    } cases[] = {
        {{PART(magic, "\x80\x02K\x01.")}, PNB_FORMAT, "without PyTorch's magic number"},
        {{PART(magic, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x18.")},
         PNB_FORMAT,
         "magic number"},
        {{PART(protocol, "M\xea\x03.")},
         PNB_UNSUPPORTED,
         "an unknown protocol of torch.save; want 1001"},
        {{PART(machine, "}U\x0dlittle_endian\x89s.")}, PNB_UNSUPPORTED, "big-endian machine"},
        {{PART(machine, "}.")}, PNB_UNSUPPORTED, "big-endian machine"},
        {{PART(keys, "}.")}, PNB_FORMAT, "the keys of the storages are no list"},
        {{PART(keys, "]K\x01"
                     "a.")},
         PNB_FORMAT,
         "a storage key is no string"},
        {{PART(keys, "]U\x01"
                     "1a.")},
         PNB_FORMAT,
         "a storage that no tensor names"},
        {{.tail = two, .n_tail = 7}, PNB_FORMAT, "ends before storage \"0\"; it is truncated"},
        {{.tail = two, .n_tail = 15},
         PNB_FORMAT,
         "storage \"0\" needs more bytes than the file has"},
        {{PART(tail, "\3\0\0\0\0\0\0\0............")},
         PNB_FORMAT,
         "storage \"0\" has 3 elements, its tensors say 2"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        old_file f = whole;
        const old_file *c = &cases[i].file;
        if (c->magic != NULL)
            f.magic = c->magic, f.n_magic = c->n_magic;
        if (c->protocol != NULL)
            f.protocol = c->protocol, f.n_protocol = c->n_protocol;
        if (c->machine != NULL)
            f.machine = c->machine, f.n_machine = c->n_machine;
        if (c->keys != NULL)
            f.keys = c->keys, f.n_keys = c->n_keys;
        if (c->tail != NULL)
            f.tail = c->tail, f.n_tail = c->n_tail;
        err = (pnb_error)PNB_ERROR_INIT;
        assert_failed(open_old(&f, &err), &err, cases[i].want, cases[i].says);
    }
    old_file twice = whole; /* the same storage under one key, twice */
    char tail[33];
    memcpy(tail, two, 16);
    memcpy(tail + 16, two, 16);
    twice.keys = "](U\x01"
                 "0U\x01"
                 "0e.";
    twice.n_keys = sizeof "](U.0U.0e." - 1;
    twice.tail = tail;
    twice.n_tail = 32;
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(open_old(&twice, &err), &err, PNB_FORMAT, "storage \"0\" is there twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_files_are_named),     cmocka_unit_test(shells_are_refused_by_name),
        cmocka_unit_test(unpacked_arrays_are_owned), cmocka_unit_test(told_by_the_first_bytes),
        cmocka_unit_test(parts_of_an_archive),       cmocka_unit_test(parts_of_an_old_file),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
