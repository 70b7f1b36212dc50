/* COCO's captions, Karpathy's splits and id lists, in their true form: what is read, how its names
 * find rows, and what is refused by the name of the file and the entry. */
#include "tests/truth/support.h"

#include "truth/ground_truth.h"

/* ---- COCO ---- */

static void coco_by_every_name(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const images[] = {"COCO_val2014_000000000042.jpg", "COCO_val2014_000000391895.jpg"};
    const char *const folder[] = {"val2014/COCO_val2014_000000000042.jpg", "x/391895.png"};
    const char *const numbers[] = {"42", "391895"};
    const char *const ids[] = {"772707", "771687", "770337"};
    const char *const hashes[] = {"COCO_val2014_000000000042.jpg#1",
                                  "val2014/COCO_val2014_000000391895.jpg#0",
                                  "COCO_val2014_000000000042#0"};
    const char *const texts[] = {"A dog sleeping on shoes", " A man with a red helmet\n",
                                 "A shoe rack with some shoes."};
    const size_t want[] = {0, 0, 0, 2, 1, 1};
    pnb_truth_report report;
    expect(path, NULL, rows(images, 2), rows(ids, 3), want, 3, &report);
    assert_true(report.format == PNB_TRUTH_COCO && report.n_images == 2 && report.n_texts == 3);
    assert_true(report.n_absent_images == 0 && !report.images_by_order && !report.texts_by_order);
    pnb_truth_report_reset(&report);
    expect(path, NULL, rows(folder, 2), rows(hashes, 3), want, 3, NULL);
    expect(path, NULL, rows(numbers, 2), rows(ids, 3), want, 3, NULL);
    pnb_truth_rows by_text = {.n = 3, .texts = texts};
    expect(path, NULL, rows(numbers, 2), by_text, want, 3, &report);
    assert_false(report.texts_by_order); /* the texts stand in another order and say so */
    pnb_truth_report_reset(&report);
    const char *const extra[] = {"{\"cocoid\":42,\"x\":1}", "{\"cocoid\":391895}"};
    const char *const names[] = {"p", "q"};
    pnb_truth_rows by_field = {.n = 2, .ids = names, .extras = extra};
    expect(path, NULL, by_field, rows(ids, 3), want, 3, NULL);
}

/* What the reader makes of the file, before rows are looked for. */
static void coco_entries(void **state)
{
    (void)state;
    const pnb_truth_read_opts o = pnb_truth_read_opts_default();
    const pnb__truth_source source = {write_file("captions.json", COCO), &o};
    pnb_truth_format format = PNB_TRUTH_AUTO;
    pnb__ground_truth c = {0};
    bool texts_ask = true;
    assert_ok(pnb__read_truth_json(&c, &source, &format, &texts_ask, err));
    assert_true(format == PNB_TRUTH_COCO && !texts_ask && c.n_pairs == 0);
    assert_true(c.n_images == 2 && c.n_texts == 3);
    assert_string_equal(pnb__ground_truth_get(&c, c.image[1].name[0]),
                        "COCO_val2014_000000000042.jpg");
    assert_string_equal(pnb__ground_truth_get(&c, c.image[1].name[1]), "42");
    static const struct {
        const char *id, *text;
        size_t owner, place;
    } want[] = {{"770337", "A shoe rack with some shoes.", 1, 0}, /* trimmed */
                {"771687", "A man with a red helmet", 0, 0},
                {"772707", "A dog sleeping on shoes", 1, 1}};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(pnb__ground_truth_get(&c, c.text[i].id), want[i].id);
        assert_string_equal(pnb__ground_truth_get(&c, c.text[i].text), want[i].text);
        assert_int_equal(c.text[i].owner, want[i].owner);
        assert_int_equal(c.text[i].place, want[i].place);
        assert_int_equal(c.text[i].level, -1);
    }
    pnb__ground_truth_reset(&c);
}

/* ---- Karpathy ---- */

static const char KARPATHY[] =
    "{\"images\":["
    "{\"filepath\":\"val2014\",\"sentids\":[1,2],\"filename\":\"COCO_val2014_000000391895.jpg\","
    "\"imgid\":0,\"split\":\"test\",\"cocoid\":391895,\"sentences\":["
    "{\"tokens\":[\"a\"],\"raw\":\"A man.\",\"imgid\":0,\"sentid\":1},"
    "{\"tokens\":[\"b\"],\"raw\":\"A rider.\",\"imgid\":0,\"sentid\":2}]},"
    "{\"sentids\":[3],\"filename\":\"b.jpg\",\"imgid\":1,\"split\":\"restval\",\"sentences\":["
    "{\"raw\":\"A man.\",\"imgid\":1,\"sentid\":3}]},"
    "{\"sentids\":[4],\"filename\":\"1000092795.jpg\",\"imgid\":2,\"split\":\"train\","
    "\"sentences\":[{\"raw\":\"Two boys.\",\"imgid\":2,\"sentid\":4}]}],\"dataset\":\"coco\"}";

static void karpathy_splits(void **state)
{
    (void)state;
    const char *path = write_file("dataset_coco.json", KARPATHY);
    const char *const images[] = {"1000092795", "b.jpg", "391895"};
    const char *const ids[] = {"4", "3", "2", "1"};
    const size_t test[] = {2, 2, 2, 3}, train[] = {0, 0, 1, 1}, all[] = {0, 0, 1, 1, 2, 2, 2, 3};
    pnb_truth_read_opts o = pnb_truth_read_opts_default();
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, &o, rows(images, 3), rows(ids, 4), test, 2, &report);
    assert_true(report.format == PNB_TRUTH_KARPATHY && report.n_texts == 2);
    assert_true(report.image_named[2] && !report.image_named[0]);
    assert_true(report.n_images == 1 && report.image_row[0] == 2);
    pnb_truth_report_reset(&report);
    o.split = "train+restval";
    expect(path, &o, rows(images, 3), rows(ids, 4), train, 2, NULL);
    o.split = "all";
    expect(path, &o, rows(images, 3), rows(ids, 4), all, 4, NULL);
    o.split = "tes";
    const pnb_truth_rows i = rows(images, 3), x = rows(ids, 4);
    assert_fails(pnb_truth_read(&t, path, &i, &x, &o, NULL, err), PNB_ARG, "split 'tes'");
    /* equal captions of the file go to equal captions of the set one by one */
    const char *const texts[] = {"A man.", "Two boys.", "A man.", "A rider."};
    const size_t by_text[] = {0, 1, 1, 2, 2, 0, 2, 3};
    o.split = "all";
    expect(path, &o, i, (pnb_truth_rows){.n = 4, .texts = texts}, by_text, 4, NULL);
}

/* ---- ECCV Caption and CxC ---- */

static void id_lists_both_ways(void **state)
{
    (void)state;
    const char *path = write_file("eccv_image_to_caption.json", "{\"7\":[70,71,99],\"8\":[71]}");
    const char *const images[] = {"8", "COCO_val2014_000000000007.jpg"};
    const char *const ids[] = {"70", "71", "72"};
    const size_t want[] = {0, 1, 1, 0, 1, 1}, back[] = {1, 0, 1, 2};
    const pnb_truth_rows i = rows(images, 2), x = rows(ids, 3);
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, NULL, i, x, want, 3, &report);
    assert_true(report.format == PNB_TRUTH_ID_LISTS && report.n_absent_texts == 1);
    pnb_truth_report_reset(&report);
    assert_ok(pnb_truth_read(&t, path, &i, &x, NULL, NULL, err));
    assert_true(t->n_outside[1] == 1 && t->n_outside[0] == 0); /* caption 99 stays in R */
    pnb_truth_free(t);
    path = write_file("eccv_caption_to_image.json", "{\"70\":[7],\"72\":[\"7\",9]}");
    expect(path, NULL, i, x, back, 2, NULL);
    assert_ok(pnb_truth_read(&t, path, &i, &x, NULL, NULL, err));
    assert_true(t->n_outside == NULL && t->n_outside_items[2] == 1);
    pnb_truth_free(t);
    path = write_file("lists.json", "{\"70\":[7],\"72\":[7]}");
    pnb_truth_read_opts o = {.format = PNB_TRUTH_ID_LISTS, .texts_ask = true};
    expect(path, &o, i, x, back, 2, NULL);
    assert_fails(
        pnb_truth_read(&t, write_file("lists.json", "{\"7\":70}"), &i, &x, NULL, NULL, err),
        PNB_FORMAT, "not a list");
    assert_fails(
        pnb_truth_read(&t, write_file("lists.json", "{\"7\":[1.5]}"), &i, &x, NULL, NULL, err),
        PNB_FORMAT, "\"7\"[0]");
}

/* ---- what is refused ---- */

static const truth_case CASES[] = {
    {"c.json", "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7,\"image_id\":42}]}", NULL,
     PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42.0}],\"annotations\":[{\"id\":7,\"image_id\":42}]}",
     "images[0] needs a whole number from 0 as \"id\"", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":-42}],\"annotations\":[{\"id\":7,\"image_id\":-42}]}",
     "c.json: images[0] needs a whole number", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7.5,\"image_id\":42}]}",
     "c.json: annotations[0] needs a whole number", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7,\"image_id\":42.5}]}",
     "annotations[0]", PNB_TRUTH_AUTO},
    {"c.json",
     "{\"images\":[{\"id\":42}],\"annotations\":[{\"id\":7,\"image_id\":42,\"caption\":5}]}",
     "annotations[0] has \"caption\" that is no text", PNB_TRUTH_AUTO},
    {"c.json", "{\"images\":[{\"id\":42,\"file_name\":3}],\"annotations\":[]}",
     "images[0] has \"file_name\" that is no text", PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"sentences\":[{\"sentid\":7}]}]}", NULL,
     PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"sentences\":[{\"sentid\":7.5}]}]}",
     "k.json: images[0] needs a whole number from 0 or a text as \"sentid\"", PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"sentences\":[{\"x\":7}]}]}",
     "\"sentid\" or \"raw\"", PNB_TRUTH_AUTO},
    {"k.json",
     "{\"images\":[{\"filename\":\"a.jpg\",\"cocoid\":1.5,\"sentences\":[{\"sentid\":7}]}]}",
     "images[0] needs a whole number from 0 as \"cocoid\"", PNB_TRUTH_AUTO},
    {"k.json", "{\"images\":[{\"filename\":\"a.jpg\",\"split\":1,\"sentences\":[{\"sentid\":7}]}]}",
     "images[0] has \"split\" that is no text", PNB_TRUTH_AUTO},
    {"i.json", "{\"42\":[7, \"8\"]}", NULL, PNB_TRUTH_AUTO},
    {"i.json", "{\"42\":[7, 8.5]}", "\"42\"[1] is not an id", PNB_TRUTH_AUTO},
    {"i.json", "{\"42\":[7, -8]}", "\"42\"[1] is not an id", PNB_TRUTH_AUTO},
};

static void values_that_mean_nothing(void **state)
{
    (void)state;
    expect_cases(CASES, PNB_COUNT(CASES));
}

static void bad_files(void **state)
{
    (void)state;
    const char *const images[] = {"42"}, *const ids[] = {"1"};
    const pnb_truth_rows i = rows(images, 1), x = rows(ids, 1);
    const pnb_truth_read_opts split = {.split = "test"}, coco = {.format = PNB_TRUTH_COCO};
    pnb_truth *t = NULL;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"images\":[{\"id\":1},{\"id\":1}],\"annotations\":[]}", "the id 1"},
        {"{\"images\":[{\"file_name\":\"x\"}],\"annotations\":[]}", "images[0]"},
        {"{\"images\":[{\"id\":1}],\"annotations\":[{\"image_id\":2}]}", "annotations[0]"},
        {"{\"images\":[{\"split\":\"test\"}]}", "images[0]"},
        {"{\"images\":[{\"split\":\"test\",\"filename\":\"a\",\"sentences\":3}]}", "images[0]"},
        {"[1,2]", "object"},
        {"{", "bad.json"},
    };
    for (size_t k = 0; k < PNB_COUNT(bad); k++)
        assert_fails(
            pnb_truth_read(&t, write_file("bad.json", bad[k].text), &i, &x, NULL, NULL, err),
            PNB_FORMAT, bad[k].says);
    assert_fails(pnb_truth_read(&t, write_file("c.json", COCO), &i, &x, &split, NULL, err), PNB_ARG,
                 "no splits");
    assert_fails(pnb_truth_read(&t, write_file("i.json", "{\"42\":[1]}"), &i, &x, &coco, NULL, err),
                 PNB_FORMAT, "has no list \"images\"");
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coco_by_every_name),       cmocka_unit_test(coco_entries),
        cmocka_unit_test(karpathy_splits),          cmocka_unit_test(id_lists_both_ways),
        cmocka_unit_test(values_that_mean_nothing), cmocka_unit_test(bad_files),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
