/* Folders of pictures: what is a sample, where its caption is, links and loops. */
#include "tests/data/sources/opened.h"

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
    expect_texts(ds, 0, "a/1.PNG", "one");
    expect_texts(ds, 1, "b_class/2.png", "two|zwei");
    expect_image(ds, 1, 2);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    pnb_dataset_free(ds);
    opts.class_texts = true;
    ds = open_ok("f", &opts);
    expect_texts(ds, 2, "b_class/3.png", "b class");
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
static void test_image_endings(void **state)
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

/* Folders in folders end at 200, by an error and not by the stack. */
static void test_depth(void **state)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb__buf path = {0};
    (void)state;
    opts.allow_no_caption = true;
    for (int i = 0; i < 200; i++)
        pnb__buf_puts(&path, i == 0 ? "deep" : "/d");
    char *name = pnb__format("%s/a.png", path.data);
    put_png(scratch, name, 1); /* the 199th below "deep": read */
    pnb__free(name);
    pnb_dataset *ds = open_ok("deep", &opts);
    assert_int_equal(pnb_dataset_size(ds), 1);
    pnb_dataset_free(ds);
    name = pnb__format("%s/d/d/a.png", path.data);
    put_png(scratch, name, 1);
    open_fails("deep", &opts, PNB_LIMIT, "nested more than 200 deep");
    pnb__free(name);
    pnb__buf_reset(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_image_endings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_depth, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
