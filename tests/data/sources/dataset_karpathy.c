/* Karpathy's json as training data: splits, folders of pictures, captions, and what is no such
 * file.
 */
#include "tests/data/sources/opened.h"

static const char coco[] =
    "{\"images\": ["
    "{\"filename\": \"a.png\", \"filepath\": \"train2014\", \"split\": \"train\", \"cocoid\": 7,"
    " \"sentences\": [{\"raw\": \"one\\ntwo\", \"sentid\": 1}, {\"raw\": \"three\"}]},"
    "{\"filename\": \"b.png\", \"filepath\": \"val2014\", \"split\": \"val\","
    " \"sentences\": [{\"raw\": \"four\"}]},"
    "{\"filename\": \"c.png\", \"filepath\": \"val2014\", \"split\": \"restval\","
    " \"sentences\": [{\"raw\": \"five\"}]},"
    "{\"filename\": \"f.png\", \"split\": \"rest\", \"sentences\": [{\"raw\": \"seven\"}]},"
    "{\"filename\": \"d.png\", \"split\": \"train\", \"sentences\": []},"
    "{\"filename\": \"e.png\", \"split\": \"test\", \"sentences\": [{\"raw\": \"six\"}]}]}";

static pnb_dataset *open_with(const char *file, const char *settings)
{
    pnb_dataset *ds = NULL;
    char *spec = pnb__format("%s/%s#images=%s/pictures%s", scratch, file, scratch, settings);
    ASSERT_OK(pnb_dataset_open(&ds, spec, NULL, &err));
    pnb__free(spec);
    return ds;
}

/* Training data by default, below "filepath" where that is there and in the folder itself. */
static void splits_and_folders(void **state)
{
    (void)state;
    put_text(scratch, "dataset_coco.json", coco);
    put_png(scratch, "pictures/train2014/a.png", 1);
    put_png(scratch, "pictures/c.png", 3);
    put_png(scratch, "pictures/b.png", 2);
    pnb_dataset *ds = open_with("dataset_coco.json", "");
    assert_int_equal(pnb_dataset_get_kind(ds), PNB_DATASET_KARPATHY);
    assert_int_equal(pnb_dataset_size(ds), 2);
    expect_texts(ds, 0, "a.png", "one two|three");
    expect_image(ds, 0, 1);
    expect_texts(ds, 1, "c.png", "five");
    expect_image(ds, 1, 3);
    assert_int_equal(pnb_dataset_n_warnings(ds), 1);
    assert_non_null(strstr(pnb_dataset_warning(ds, 0), "1 pictures without a caption"));
    pnb_dataset_free(ds);
    ds = open_with("dataset_coco.json", ",split=val");
    assert_int_equal(pnb_dataset_size(ds), 1);
    expect_image(ds, 0, 2);
    pnb_dataset_free(ds);
    ds = open_with("dataset_coco.json", ",split=all");
    assert_int_equal(pnb_dataset_size(ds), 5);
    pnb_dataset_free(ds);
    put_png(scratch, "e.png", 5); /* beside the file where no folder is named */
    ds = open_ok("dataset_coco.json#split=test", NULL);
    expect_image(ds, 0, 5);
    pnb_dataset_free(ds);
    ds = open_ok("dataset_c*.json#split=test", NULL); /* globs are of the path */
    assert_int_equal(pnb_dataset_size(ds), 1);
    pnb_dataset_free(ds);
}

static void refused(void **state)
{
    (void)state;
    put_text(scratch, "coco.json", coco);
    open_fails("coco.json#split=dev", NULL, PNB_NOT_FOUND,
               "none of its 6 pictures is in the split");
    open_fails("coco.json#images=/nonexistent", NULL, PNB_NOT_FOUND, "images=/nonexistent");
    open_fails("coco.json#split=val,classes=x", NULL, PNB_ARG, "for folders of pictures");
    open_fails("coco.json#split=val,split=test", NULL, PNB_ARG, "each once");
    open_fails("coco.json#split=", NULL, PNB_ARG, "with a value");
    open_fails("coco.json#split=val,size=3", NULL, PNB_ARG, "\"size=3\"");
    put_text(scratch, "list.json", "[1, 2]");
    open_fails("list.json", NULL, PNB_FORMAT, "no list \"images\"");
    put_text(scratch, "bare.json", "{\"images\": [{\"split\": \"train\"}]}");
    open_fails("bare.json", NULL, PNB_FORMAT, "images[0] has no \"filename\"");
    put_text(scratch, "mute.json", "{\"images\": [{\"filename\": \"a\", \"split\": \"train\"}]}");
    open_fails("mute.json", NULL, PNB_FORMAT, "images[0] has no \"sentences\"");
    put_text(scratch, "cut.json", "{\"images\": [");
    open_fails("cut.json", NULL, PNB_FORMAT, "cut.json");
    put_text(scratch, "t.csv", "filepath,title\nx.png,a\n");
    open_fails("t.csv#split=val", NULL, PNB_ARG, "Karpathy's json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(splits_and_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
