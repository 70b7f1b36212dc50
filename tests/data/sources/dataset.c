/* Data sets from disk: every kind of source, the rules that group and drop samples, and damage. */
#include "tests/data/fixture.h"

#include "io/tables/tar.h"

static char *scratch;

static int setup(void **state)
{
    (void)state;
    scratch = scratch_create();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

static char *in_scratch(const char *name)
{
    char *path = pnb__path_join(scratch, name);
    assert_non_null(path);
    return path;
}

/* Opens scratch/spec. */
static pnb_dataset *open_ok(const char *spec, const pnb_dataset_opts *opts)
{
    pnb_dataset *ds = NULL;
    char *path = in_scratch(spec);
    ASSERT_OK(pnb_dataset_open(&ds, path, opts, &err));
    pnb__free(path);
    return ds;
}

static void open_fails(const char *spec, const pnb_dataset_opts *opts, pnb_status wanted,
                       const char *text)
{
    pnb_dataset *ds = NULL;
    pnb_error error = PNB_ERROR_INIT;
    char *path = in_scratch(spec);
    assert_int_equal(pnb_dataset_open(&ds, path, opts, &error), wanted);
    assert_null(ds);
    if (!strstr(error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
    pnb__free(path);
}

static void expect_captions(const pnb_dataset *ds, size_t i, const char *key, const char *joined)
{
    pnb_sample s = {0};
    pnb__buf b = {0};
    ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
    for (size_t k = 0; k < s.n_captions; k++)
        pnb__buf_printf(&b, "%s%s", k ? "|" : "", s.captions[k]);
    assert_string_equal(s.key, key);
    assert_string_equal(b.data ? b.data : "", joined);
    pnb__buf_reset(&b);
    pnb_sample_reset(&s);
}

static void expect_image(const pnb_dataset *ds, size_t i, int value)
{
    pnb_image image;
    ASSERT_OK(pnb_dataset_image(ds, i, &image, &err));
    assert_int_equal(image.width, 24);
    assert_int_equal(image.pixels[0], value);
    pnb_image_free(&image);
}

static void get_fails(const pnb_dataset *ds, size_t i, pnb_status wanted, const char *text)
{
    pnb_sample s = {0};
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_get(ds, i, &s, &error), wanted);
    assert_null(s.memory);
    if (!strstr(error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
}

/* ---- tar ------------------------------------------------------------------------------------ */

static void add(pnb__tar_writer *w, const char *name, const char *text)
{
    ASSERT_OK(pnb__tar_writer_add(w, name, text, strlen(text), &err));
}

static void add_png(pnb__tar_writer *w, const char *name, int value)
{
    size_t n;
    unsigned char *bytes = make_png(24, 16, value, &n);
    ASSERT_OK(pnb__tar_writer_add(w, name, bytes, n, &err));
    pnb_image_bytes_free(bytes);
}

static void start_tar(pnb__tar_writer *w, const char *name)
{
    char *path = in_scratch(name);
    ASSERT_OK(pnb__tar_writer_open(w, path, &err));
    pnb__free(path);
}

static void test_tar_grouping(void **state)
{
    pnb__tar_writer w;
    (void)state;
    start_tar(&w, "g.tar");
    add_png(&w, "dir/a.png", 10);
    add(&w, "dir/a.JSON", "{\"caption\": \"alpha\", \"url\": \"x\"}"); /* a record all the same */
    add_png(&w, "b.PNG", 20); /* suffixes are lower-cased */
    add(&w, "b.TXT", "beta\n\n second line \n");
    add_png(&w, "c.0.png", 30); /* suffix "0.png": no picture among the keys */
    add(&w, "c.txt", "left out");
    add_png(&w, "d.png", 40); /* the same suffix again starts a new sample */
    add(&w, "d.txt", "delta one");
    add_png(&w, "d.png", 41);
    add(&w, "d.txt", "delta two");
    add_png(&w, "e.png", 50);
    add_png(&w, "f.webp", 60); /* jpg comes before webp in the list of keys */
    add_png(&w, "f.jpg", 61);
    add(&w, "f.txt", "phi");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    pnb_dataset *ds = open_ok("g.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 5);
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_TAR);
    expect_captions(ds, 0, "dir/a", "alpha");
    expect_captions(ds, 1, "b", "beta| second line ");
    expect_captions(ds, 2, "d", "delta one");
    expect_captions(ds, 3, "d", "delta two");
    expect_image(ds, 2, 40);
    expect_image(ds, 3, 41);
    expect_image(ds, 4, 61);
    assert_int_equal(pnb_dataset_n_warnings(ds), 2);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "1 samples without a picture"));
    assert_non_null(strstr(pnb_dataset_warning(ds, 1), "1 samples without a caption"));
    pnb_dataset_free(ds);
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    opts.allow_no_caption = true;
    opts.image_key = "0.png;png";
    ds = open_ok("g.tar", &opts);
    assert_int_equal(pnb_dataset_size(ds), 6);
    expect_captions(ds, 5, "e", "");
    pnb_dataset_free(ds);
}

static void test_tar_text_key(void **state)
{
    pnb__tar_writer w;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    start_tar(&w, "k.tar");
    add_png(&w, "a.png", 10);
    add(&w, "a.json", "{\"caption\": \"of the record\"}");
    add(&w, "a.txt", "of the text");
    add_png(&w, "b.png", 20);
    add(&w, "b.caption", "of another name");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    static const char *const keys[] = {"json", "txt", "caption"};
    static const char *const captions[] = {"of the record", "of the text", "of another name"};
    for (int i = 0; i < 3; i++) {
        opts.text_key = keys[i];
        pnb_dataset *ds = open_ok("k.tar", &opts);
        assert_int_equal(pnb_dataset_size(ds), 1);
        expect_captions(ds, 0, i < 2 ? "a" : "b", captions[i]);
        pnb_dataset_free(ds);
    }
}

static void test_synthetic(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    pnb_image a = {0}, b = {0}, again = {0}, sink = {0};
    pnb_sample sample = {0};
    (void)state;
    opts.kind = PNB_DATASET_SYNTHETIC;
    opts.n_synthetic = 10000000; /* takes no memory */
    ASSERT_OK(pnb_dataset_open(&ds, NULL, &opts, &err));
    assert_int_equal(pnb_dataset_size(ds), 10000000);
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_SYNTHETIC);
    ASSERT_OK(pnb_dataset_get(ds, 9999999, &sample, &err));
    assert_int_equal(sample.n_captions, 1);
    pnb_sample_reset(&sample);
    ASSERT_OK(pnb_dataset_image(ds, 1, &a, &err));
    ASSERT_OK(pnb_dataset_image(ds, 2, &b, &err));
    ASSERT_OK(pnb_dataset_image(ds, 1, &again, &err));
    size_t n = (size_t)a.width * (size_t)a.height * 3, n_same = 0;
    assert_int_equal(a.width, 224);
    assert_memory_equal(a.pixels, again.pixels, n);
    for (size_t i = 0; i < n; i++)
        n_same += a.pixels[i] == b.pixels[i];
    assert_true(n_same < n / 128); /* 1 of 256 by chance */
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_image(ds, 10000000, &sink, &err), PNB_ARG);
    pnb_image_free(&a);
    pnb_image_free(&again);
    pnb_image_free(&b);
    pnb_dataset_free(ds);
}

static void test_records(void **state)
{
    static const char FULL[] =
        "{\"captions\": [\"a\", \"b\"], \"levels\": [0, 3], \"name\": \"n\", "
        "\"group\": \"g\", \"subgroup\": \"s\", \"caption\": \"b\"}";
    static const char *const JSON[] = {
        FULL,
        "{\"cocoid\": 1, \"sentences\": [{\"raw\": \"one\", \"sentid\": 4}, {\"raw\": \"two\"}]}",
        "{\"text\": \"only text\"}",
        "{\"caption\": [\"x\", \"y\"]}",
        "{\"url\": \"no caption here\"}",
        "{\"captions\": [\"a\"], \"levels\": [0, 1]}",
        "{\"captions\": [\"a\", 7]}",
        "{\"caption\": 7}",
        "{\"caption\": \"broken",
        "{\"caption\": \"bad \xff utf-8\"}",
        "[1, 2]"};
    pnb__tar_writer w;
    pnb_sample s = {0};
    (void)state;
    start_tar(&w, "r.tar");
    for (size_t i = 0; i < PNB_COUNT(JSON); i++) {
        char name[32];
        snprintf(name, sizeof name, "%02zu.png", i);
        add_png(&w, name, (int)i);
        snprintf(name, sizeof name, "%02zu.json", i);
        add(&w, name, JSON[i]);
    }
    add_png(&w, "u.png", 1);
    add(&w, "u.txt", "bad \xc3\x28");
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
    pnb_dataset *ds = open_ok("r.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), PNB_COUNT(JSON) + 1);
    expect_captions(ds, 0, "00", "a|b");
    ASSERT_OK(pnb_dataset_get(ds, 0, &s, &err));
    assert_int_equal(s.levels[0], 0);
    assert_int_equal(s.levels[1], 3);
    assert_string_equal(s.name, "n");
    assert_string_equal(s.group, "g");
    assert_string_equal(s.subgroup, "s");
    assert_string_equal(s.json, JSON[0]);
    assert_null(s.image_path);
    assert_true(s.n_image_bytes > 50);
    pnb_sample_reset(&s);
    expect_captions(ds, 1, "01", "one|two");
    expect_captions(ds, 2, "02", "only text");
    expect_captions(ds, 3, "03", "x|y");
    get_fails(ds, 4, PNB_FORMAT, "no caption");
    get_fails(ds, 5, PNB_FORMAT, "levels");
    get_fails(ds, 6, PNB_FORMAT, "captions");
    get_fails(ds, 7, PNB_FORMAT, "caption");
    get_fails(ds, 8, PNB_FORMAT, "sample 08");
    get_fails(ds, 9, PNB_FORMAT, "decode byte");
    get_fails(ds, 10, PNB_FORMAT, "not a JSON object");
    get_fails(ds, 11, PNB_FORMAT, "UTF-8");
    get_fails(ds, 99, PNB_ARG, "99");
    pnb_dataset_free(ds);
}

static void write_shard(const char *name, int first, int n)
{
    pnb__tar_writer w;
    start_tar(&w, name);
    for (int i = first; i < first + n; i++) {
        char member[32];
        snprintf(member, sizeof member, "s%03d.png", i);
        add_png(&w, member, i);
        snprintf(member, sizeof member, "s%03d.txt", i);
        add(&w, member, member);
    }
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
}

static void test_shards(void **state)
{
    char *spec;
    pnb_dataset *ds = NULL;
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "t/%05d.tar", i);
        char *dir = in_scratch("t");
        ASSERT_OK(pnb__make_dirs(dir, &err));
        pnb__free(dir);
        write_shard(name, 10 * i, 4);
    }
    ds = open_ok("t/{00000..00002}.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 12);
    expect_captions(ds, 11, "s023", "s023.txt");
    expect_image(ds, 4, 10);
    pnb_dataset_free(ds);
    ds = open_ok("t/0000{2,0}.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 8);
    expect_captions(ds, 0, "s020", "s020.txt");
    pnb_dataset_free(ds);
    ds = open_ok("t/*[12].tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 8);
    pnb_dataset_free(ds);
    ds = open_ok("t", NULL); /* a folder of shards */
    assert_int_equal(pnb_dataset_size(ds), 12);
    pnb_dataset_free(ds);
    spec = pnb__format("%s/t/00002.tar::%s/t/00000.tar", scratch, scratch);
    ASSERT_OK(pnb_dataset_open(&ds, spec, NULL, &err));
    assert_int_equal(pnb_dataset_size(ds), 8);
    expect_captions(ds, 4, "s000", "s000.txt");
    pnb_dataset_free(ds);
    pnb__free(spec);
    open_fails("t/{00000..00003}.tar", NULL, PNB_NOT_FOUND, "00003.tar");
    open_fails("t/{00003..00001}.tar", NULL, PNB_ARG, "brace range");
    open_fails("t/{x..y}.tar", NULL, PNB_ARG, "brace range");
    open_fails("t/{a", NULL, PNB_ARG, "not closed");
    open_fails("t/z*.tar", NULL, PNB_NOT_FOUND, "no file matches");
    open_fails("t/00000.tar::", NULL, PNB_ARG, "empty");
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_open(&ds, "pipe:cat x.tar", NULL, &error), PNB_UNSUPPORTED);
}

static void test_damaged_tar(void **state)
{
    char *path = in_scratch("d.tar"), *data;
    size_t n;
    (void)state;
    write_shard("d.tar", 0, 5);
    ASSERT_OK(pnb__read_file(path, 1 << 20, &data, &n, &err));
    put_file(scratch, "cut.tar", data, 4 * 2 * 1024 + 700); /* inside the fifth sample */
    pnb_dataset *ds = open_ok("cut.tar", NULL);
    assert_int_equal(pnb_dataset_size(ds), 4);
    assert_true(pnb_dataset_n_warnings(ds) >= 1);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "cut.tar"));
    expect_image(ds, 3, 3);
    pnb_dataset_free(ds);
    put_file(scratch, "head.tar", data, 300);
    open_fails("head.tar", NULL, PNB_FORMAT, "head.tar");
    put_text(scratch, "empty.tar", "");
    open_fails("empty.tar", NULL, PNB_NOT_FOUND, "no sample");
    memset(data, 'x', 512);
    put_file(scratch, "noise.tar", data, n);
    open_fails("noise.tar", NULL, PNB_FORMAT, "noise.tar");
    pnb__free(data);
    ds = open_ok("d.tar", NULL); /* the map outlives the name */
    assert_int_equal(remove(path), 0);
    expect_image(ds, 4, 4);
    expect_captions(ds, 4, "s004", "s004.txt");
    pnb_dataset_free(ds);
    open_fails("d.tar", NULL, PNB_NOT_FOUND, "d.tar");
    pnb__free(path);
}

/* ---- tables --------------------------------------------------------------------------------- */

static void test_csv(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    put_png(scratch, "pics/1.png", 70);
    put_png(scratch, "pics/2.png", 80);
    put_text(scratch, "a.csv",
             "filepath\ttitle\npics/1.png\tone, \"quoted\"\npics/2.png\ttwo\n"
             "pics/2.png\t\n");
    pnb_dataset *ds = open_ok("a.csv", NULL);
    assert_int_equal(pnb_dataset_size(ds), 2);
    expect_captions(ds, 0, "pics/1.png", "one, \"quoted\"");
    expect_image(ds, 1, 80);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
    put_text(scratch, "b.csv",
             "id,text,file\n7,\"a, b\",pics/1.png\n8,gone,pics/none.png\n"
             "9,bad \xff,pics/1.png\n");
    opts.csv_img_key = "file";
    opts.csv_caption_key = "text";
    ds = open_ok("b.csv", &opts);
    expect_captions(ds, 0, "pics/1.png", "a, b");
    pnb_image image;
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_image(ds, 1, &image, &error), PNB_NOT_FOUND);
    assert_non_null(strstr(error.text, "none.png"));
    get_fails(ds, 2, PNB_FORMAT, "UTF-8");
    pnb_dataset_free(ds);
    open_fails("b.csv", NULL, PNB_NOT_FOUND, "filepath");
    put_text(scratch, "c.csv", "");
    open_fails("c.csv", NULL, PNB_FORMAT, "c.csv");
    put_text(scratch, "e.tsv", "filepath\ttitle\n");
    open_fails("e.tsv", NULL, PNB_NOT_FOUND, "no sample");
}

static void test_jsonl(void **state)
{
    (void)state;
    put_png(scratch, "pics/1.png", 70);
    put_text(scratch, "l.jsonl",
             "{\"id\": \"first\", \"image\": \"pics/1.png\", \"captions\": [\"p\", \"q\"]}\n\n"
             "{\"filepath\": \"pics/1.png\", \"caption\": \"r\"}\r\n"
             "{\"caption\": \"no picture\"}\n{broken}");
    pnb_dataset *ds = open_ok("l.jsonl", NULL);
    assert_int_equal(pnb_dataset_size(ds), 4);
    expect_captions(ds, 0, "first", "p|q");
    expect_captions(ds, 1, "pics/1.png", "r");
    expect_image(ds, 1, 70);
    get_fails(ds, 2, PNB_FORMAT, "no picture");
    get_fails(ds, 3, PNB_FORMAT, "line 5");
    pnb_dataset_free(ds);
}

static void test_folder(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    (void)state;
    put_png(scratch, "f/b_class/2.png", 2);
    put_text(scratch, "f/b_class/2.txt", "two\nzwei\n");
    put_png(scratch, "f/a/1.PNG", 1);
    put_text(scratch, "f/a/1.json", "{\"caption\": \"one\"}");
    put_png(scratch, "f/b_class/3.png", 3);
    put_text(scratch, "f/notes.md", "not a picture");
    pnb_dataset *ds = open_ok("f/", NULL);
    assert_int_equal(pnb_dataset_size(ds), 2);
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_DIR);
    expect_captions(ds, 0, "a/1.PNG", "one");
    expect_captions(ds, 1, "b_class/2.png", "two|zwei");
    expect_image(ds, 1, 2);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
    opts.class_captions = true;
    ds = open_ok("f", &opts);
    expect_captions(ds, 2, "b_class/3.png", "b class");
    pnb_dataset_free(ds);
    char *empty = in_scratch("nothing");
    ASSERT_OK(pnb__make_dirs(empty, &err));
    pnb__free(empty);
    open_fails("nothing", NULL, PNB_NOT_FOUND, "no sample");
    open_fails("absent", NULL, PNB_NOT_FOUND, "absent");
    put_text(scratch, "what.bin", "?");
    open_fails("what.bin", NULL, PNB_ARG, "what.bin");
}

/* Puts a link that leads to `target` at `name` of the scratch folder. */
static void put_link(const char *name, const char *target)
{
    char *path = in_scratch(name);
    assert_int_equal(symlink(target, path), 0);
    pnb__free(path);
}

/* Keys of the samples, joined by spaces. */
static void keys_of(const pnb_dataset *ds, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < pnb_dataset_size(ds); i++) {
        pnb_sample sample;
        ASSERT_OK(pnb_dataset_get(ds, i, &sample, &err));
        used += (size_t)snprintf(text + used, size - used, "%s ", sample.key);
        pnb_sample_reset(&sample);
    }
}

/* Loops end nothing, a folder is read once and under its own name; what lies behind a link out of
 * the root is read. */
static void test_links(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    char keys[512];
    (void)state;
    opts.allow_no_caption = true;
    put_png(scratch, "l/cat/1.png", 1);
    put_png(scratch, "l/dog/2.png", 2);
    put_png(scratch, "out/3.png", 3);
    put_png(scratch, "out/deep/4.png", 4);
    put_link("l/a_self", ".");
    put_link("l/b_cat", "cat");
    put_link("l/cat/up", "..");
    put_link("l/cat/round", "../dog/back");
    put_link("l/dog/back", "../cat/round");
    put_link("l/out1", "../out");
    put_link("l/out2", "../out/deep");
    put_link("out/home", "../l");
    put_link("l/one.png", "cat/1.png");
    pnb_dataset *ds = open_ok("l", &opts);
    keys_of(ds, keys, sizeof keys);
    assert_string_equal(keys, "cat/1.png dog/2.png one.png out1/3.png out1/deep/4.png ");
    pnb_dataset_free(ds);
    put_link("l/gone.png",
             "nowhere.png"); /* named as a picture, so it is told that it cannot be read */
    ds = open_ok("l", &opts);
    assert_int_equal(pnb_dataset_size(ds), 6);
    pnb_dataset_free(ds);
}

/* What is named as a picture is a sample, in any case, read or not. */
static void test_picture_endings(void **state)
{
    static const char *const names[] = {"a.gif",  "b.BMP",  "c.Tiff", "d.tif", "e.avif", "f.heic",
                                        "g.jfif", "h.JPEG", "i.jp2",  "j.psd", "k.CR2"};
    static const char *const others[] = {"z.txt", "z.json", "z.pdf", "z.mp4", ".hidden.gif", "gif"};
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    char name[64], keys[512];
    (void)state;
    opts.allow_no_caption = true;
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        snprintf(name, sizeof name, "e/%s", names[i]);
        put_png(scratch, name, 1);
    }
    for (size_t i = 0; i < PNB_COUNT(others); i++) {
        snprintf(name, sizeof name, "e/%s", others[i]);
        put_text(scratch, name, "x");
    }
    pnb_dataset *ds = open_ok("e", &opts);
    keys_of(ds, keys, sizeof keys);
    assert_string_equal(keys,
                        "a.gif b.BMP c.Tiff d.tif e.avif f.heic g.jfif h.JPEG i.jp2 j.psd k.CR2 ");
    pnb_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tar_grouping, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tar_text_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_synthetic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_tar, setup, teardown),
        cmocka_unit_test_setup_teardown(test_csv, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jsonl, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_picture_endings, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
