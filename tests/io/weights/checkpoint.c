/* Checkpoints of PyTorch against safetensors files of the same tensors, bit for bit, and files that
 * are damaged. The files in data/checkpoint were written by make.py there, with PyTorch 1.13. */
#include "tests/io/weights/archives.h"

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

/* Bytes behind the last storage are no error, but said. */
static void trailing_bytes_are_said(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    pnb_checkpoint *c = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__read_file(DATA "training_legacy.pt", 1 << 20, &bytes, &n, &err), &err);
    pnb__buf b = {0};
    pnb__buf_append(&b, bytes, n);
    pnb__buf_append(&b, "extra", 5);
    assert_ok(pnb_checkpoint_open_bytes(&c, b.data, b.size, &err), &err);
    assert_non_null(
        strstr(pnb_checkpoint_warning(c),
               "ignored 5 bytes after the last storage, 0 tensors without a name and 0 arrays"));
    pnb_checkpoint_free(c);
    pnb__buf_reset(&b);
    pnb__free(bytes);
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
    assert_non_null(strstr(pnb_checkpoint_warning(c),
                           "ignored 0 bytes after the last storage, 0 tensors "
                           "without a name and 1 arrays the index does not name"));
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
        cmocka_unit_test(sha256_is_of_the_file),
        cmocka_unit_test(truncated_at_every_byte),
        cmocka_unit_test(trailing_bytes_are_said),
        cmocka_unit_test(changed_bytes_never_crash),
        cmocka_unit_test(index_tricks_are_refused),
        cmocka_unit_test(folders_are_searched_in_order),
#ifdef PNB_FAULTS
        cmocka_unit_test(memory_may_run_out),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
