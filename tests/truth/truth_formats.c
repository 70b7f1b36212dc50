/* Truth in the formats of other people's data sets, written here in their true form: what is read,
 * how names and orders find rows, what is counted and what is refused. */
#include <sys/stat.h>
#include <unistd.h>

#include "io/tables/tar.h"
#include "penumbra/npy.h"
#include "penumbra/truth.h"
#include "tests/prob/support.h"

static char dir[] = "/tmp/penumbra_formats_XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static char paths[4][256];
static unsigned n_paths;

/* DIR/NAME, valid until the next call but three. */
static const char *in_dir(const char *name)
{
    char *path = paths[n_paths++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static const char *write_file(const char *name, const char *text)
{
    const char *path = in_dir(name);
    assert_ok(pnb__write_file(path, text, strlen(text), err));
    return path;
}

static void make_folder(const char *name)
{
    assert_ok(pnb__make_dirs(in_dir(name), err));
}

static pnb_truth_rows rows(const char *const *ids, size_t n)
{
    return (pnb_truth_rows){.n = n, .ids = ids};
}

/* Reads and checks the pairs, given as picture, caption, picture, caption, ... */
static void expect(const char *path, const pnb_truth_read_opts *opts, pnb_truth_rows images,
                   pnb_truth_rows texts, const size_t *want, size_t n_pairs,
                   pnb_truth_report *report)
{
    pnb_truth *t = NULL;
    pnb_truth_report own;
    report = report == NULL ? &own : report;
    assert_ok(pnb_truth_read(&t, path, &images, &texts, opts, report, err));
    assert_int_equal(t->n_pairs, n_pairs);
    assert_true(t->n_queries == images.n && t->n_items == texts.n);
    for (size_t q = 0, i = 0; q < t->n_queries; q++)
        for (size_t p = t->offset[q]; p < t->offset[q + 1]; p++, i++) {
            assert_int_equal(want[2 * i], q);
            assert_int_equal(want[2 * i + 1], t->item[p]);
        }
    pnb_truth_free(t);
    pnb_truth_report_reset(report == &own ? report : NULL);
}

/* ---- COCO ---- */

static const char COCO[] =
    "{\"info\":{},\"licenses\":[],\"images\":["
    "{\"license\":3,\"file_name\":\"COCO_val2014_000000391895.jpg\",\"height\":360,\"id\":391895},"
    "{\"license\":1,\"file_name\":\"COCO_val2014_000000000042.jpg\",\"height\":478,\"id\":42}],"
    "\"annotations\":["
    "{\"image_id\":42,\"id\":770337,\"caption\":\"A shoe rack with some shoes. \"},"
    "{\"image_id\":391895,\"id\":771687,\"caption\":\"A man with a red helmet\"},"
    "{\"image_id\":42,\"id\":772707,\"caption\":\"A dog sleeping on shoes\"}]}";

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

static void unnamed_rows_go_by_order(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const numbers[] = {"0", "1", "2"};
    const size_t want[] = {0, 1, 1, 0, 1, 2};
    pnb_truth_report report;
    expect(path, NULL, rows(NULL, 2), rows(numbers, 3), want, 3, &report);
    assert_true(report.images_by_order && report.texts_by_order);
    pnb_truth_report_reset(&report);
}

static void absent_entries_are_counted(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const images[] = {"other", "42"}, *const ids[] = {"772707", "5"};
    const size_t want[] = {1, 0};
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, NULL, rows(images, 2), rows(ids, 2), want, 1, &report);
    assert_true(report.n_absent_images == 1 && report.n_absent_texts == 2);
    assert_true(!report.image_named[0] && report.image_named[1]);
    assert_true(report.text_named[0] && !report.text_named[1] && report.text_level[0] == -1);
    pnb_truth_report_reset(&report);
    const pnb_truth_rows none = rows(images, 1), texts = rows(ids, 2);
    assert_fails(pnb_truth_read(&t, path, &none, &texts, NULL, NULL, err), PNB_ARG, "no pair fits");
    assert_null(t);
}

static void ambiguous_names(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const twice[] = {"a/42.jpg", "b/42.jpg"}, *const ids[] = {"770337"};
    const char *const exact[] = {"a/42.jpg", "42"};
    const pnb_truth_rows images = rows(twice, 2), texts = rows(ids, 1);
    const size_t want[] = {1, 0};
    pnb_truth *t = NULL;
    assert_fails(pnb_truth_read(&t, path, &images, &texts, NULL, NULL, err), PNB_ARG,
                 "rows 0 and 1");
    expect(path, NULL, rows(exact, 2), texts, want, 1, NULL); /* the id itself is stronger */
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

/* ---- Flickr ---- */

static void flickr_tokens(void **state)
{
    (void)state;
    const char *path =
        write_file("results_20130124.token", "1000092795.jpg#0\tTwo young guys .\n"
                                             "1000092795.jpg#1\tTwo men in green .\r\n\n"
                                             "10002456.jpg#0\tSeveral men .\n");
    const char *const images[] = {"10002456", "flickr30k-images/1000092795.jpg"};
    const char *const ids[] = {"1000092795.jpg#1", "10002456.jpg#0", "1000092795#0"};
    const char *const texts[] = {"Two men in green .", "Several men .", "Two young guys ."};
    const size_t want[] = {0, 1, 1, 0, 1, 2};
    const pnb_truth_rows i = rows(images, 2), x = rows(ids, 3);
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, NULL, i, x, want, 3, &report);
    assert_true(report.format == PNB_TRUTH_TOKENS && report.n_images == 2);
    pnb_truth_report_reset(&report);
    expect(path, NULL, i, (pnb_truth_rows){.n = 3, .texts = texts}, want, 3, NULL);
    static const char *const BAD[] = {"a.jpg\tno number\n", "a.jpg#x\tno number\n", "#0\tno name\n",
                                      "a.jpg#0 no tab\n", "a.jpg#1234567890\ttoo long\n"};
    for (size_t k = 0; k < PNB_COUNT(BAD); k++)
        assert_fails(pnb_truth_read(&t, write_file("x.token", BAD[k]), &i, &x, NULL, NULL, err),
                     PNB_FORMAT, "line 1");
}

/* ---- VSE++ ---- */

static void precomp_lists(void **state)
{
    (void)state;
    const char *path = write_file("test_ids.txt", "391895\n42\n");
    write_file("test_caps.txt", "a\nb\nc\nd\n");
    const char *const images[] = {"COCO_val2014_000000000042.jpg", "val2014/x_000000391895.jpg"};
    const size_t want[] = {0, 2, 0, 3, 1, 0, 1, 1};
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, NULL, rows(images, 2), rows(NULL, 4), want, 4, &report);
    assert_true(report.format == PNB_TRUTH_PRECOMP && report.texts_by_order);
    pnb_truth_report_reset(&report);
    write_file("id_mapping.json", "{\"391895\":\"train2014/p.jpg\",\"42\":\"q.jpg\"}");
    const char *const files[] = {"q.jpg", "p.jpg"};
    expect(path, NULL, rows(files, 2), rows(NULL, 4), want, 4, NULL);
    assert_int_equal(unlink(in_dir("id_mapping.json")), 0);
    write_file("test_ids.txt", "391895\n391895\n42\n42\n"); /* once for each caption */
    expect(path, NULL, rows(images, 2), rows(NULL, 4), want, 4, NULL);
    write_file("test_caps.txt", "a\nb\nc\n");
    const pnb_truth_rows i = rows(images, 2), x = rows(NULL, 3);
    assert_fails(pnb_truth_read(&t, path, &i, &x, NULL, NULL, err), PNB_FORMAT, "3 captions");
    assert_int_equal(unlink(in_dir("test_caps.txt")), 0);
    assert_fails(pnb_truth_read(&t, path, &i, &x, NULL, NULL, err), PNB_NOT_FOUND, "test_caps.txt");
}

/* ---- CUB and Flowers ---- */

static void class_folders(void **state)
{
    (void)state;
    make_folder("cub/text_c10/001.Black_footed_Albatross");
    make_folder("cub/text_c10/002.Laysan_Albatross");
    write_file("cub/text_c10/001.Black_footed_Albatross/Black_0001_796111.txt",
               "the bird is black\nit has a long beak\n");
    write_file("cub/text_c10/001.Black_footed_Albatross/Black_0002_55.txt", "a dark bird\n\n");
    write_file("cub/text_c10/001.Black_footed_Albatross/Black_0002_55.h5", "not a caption");
    write_file("cub/text_c10/002.Laysan_Albatross/Laysan_0001_545.txt", "a white bird\n");
    write_file("cub/testclasses.txt", "002.Laysan_Albatross\n");
    const char *const images[] = {"002.Laysan_Albatross/Laysan_0001_545.jpg",
                                  "images/001.Black_footed_Albatross/Black_0001_796111.jpg",
                                  "Black_0002_55"};
    const char *const texts[] = {"a white bird", "the bird is black", "it has a long beak",
                                 "a dark bird"};
    const char *const hashes[] = {"002.Laysan_Albatross/Laysan_0001_545.jpg#0",
                                  "Black_0001_796111#0", "Black_0001_796111.txt#1",
                                  "Black_0002_55.jpg#0"};
    const size_t own[] = {0, 0, 1, 1, 1, 2, 2, 3};
    const size_t class_pairs[] = {0, 0, 1, 1, 1, 2, 1, 3, 2, 1, 2, 2, 2, 3}, split[] = {0, 0};
    pnb_truth_read_opts o = pnb_truth_read_opts_default();
    pnb_truth_rows by_text = {.n = 4, .texts = texts};
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(in_dir("cub"), NULL, rows(images, 3), by_text, own, 4, &report);
    assert_int_equal(report.format, PNB_TRUTH_FOLDERS);
    pnb_truth_report_reset(&report);
    expect(in_dir("cub/text_c10"), NULL, rows(images, 3), rows(hashes, 4), own, 4, NULL);
    o.by_class = true;
    expect(in_dir("cub"), &o, rows(images, 3), by_text, class_pairs, 7, NULL);
    o.split = "test";
    expect(in_dir("cub"), &o, rows(images, 3), by_text, split, 1, NULL);
    o.split = in_dir("cub/testclasses.txt");
    expect(in_dir("cub"), &o, rows(images, 3), by_text, split, 1, NULL);
    o.split = "val";
    const pnb_truth_rows i = rows(images, 3);
    assert_fails(pnb_truth_read(&t, in_dir("cub"), &i, &by_text, &o, NULL, err), PNB_ARG,
                 "valclasses.txt");
    make_folder("empty");
    o = (pnb_truth_read_opts){.format = PNB_TRUTH_FOLDERS};
    assert_fails(pnb_truth_read(&t, in_dir("empty"), &i, &by_text, &o, NULL, err), PNB_ARG,
                 "no captions");
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
    pnb_truth_read_opts o = {.format = PNB_TRUTH_ID_LISTS, .captions_ask = true};
    expect(path, &o, i, x, back, 2, NULL);
    assert_fails(
        pnb_truth_read(&t, write_file("lists.json", "{\"7\":70}"), &i, &x, NULL, NULL, err),
        PNB_FORMAT, "not a list");
    assert_fails(
        pnb_truth_read(&t, write_file("lists.json", "{\"7\":[1.5]}"), &i, &x, NULL, NULL, err),
        PNB_FORMAT, "\"7\"[0]");
}

/* ---- HierarCaps ---- */

static void hierarcaps_levels(void **state)
{
    (void)state;
    const char *path =
        write_file("hierarcaps.csv",
                   "id,captions,image_url\n"
                   "139,\"thing => room => living room => a living room, with a TV\","
                   "http://images.cocodataset.org/val2017/000000000139.jpg\n"
                   "285,thing => bear,http://images.cocodataset.org/val2017/000000000285.jpg\n");
    const char *const images[] = {"000000000285.jpg", "000000000139.jpg"};
    const char *const texts[] = {"bear", "thing", "living room", "a living room, with a TV",
                                 "room"};
    const size_t want[] = {0, 0, 0, 1, 1, 1, 1, 2, 1, 3, 1, 4}; /* "thing" once, for both */
    pnb_truth_report report;
    pnb_truth *t = NULL;
    pnb_truth_rows by_text = {.n = 5, .texts = texts};
    expect(path, NULL, rows(images, 2), by_text, want, 6, &report);
    assert_true(report.format == PNB_TRUTH_HIERARCAPS && report.text_level[1] == 0 &&
                report.text_level[0] == 1 && report.text_level[3] == 3);
    pnb_truth_report_reset(&report);
    path = write_file("plain.csv", "id,captions\n1,no levels\n");
    const pnb_truth_rows i = rows(images, 2);
    const pnb_truth_read_opts o = {.format = PNB_TRUTH_HIERARCAPS};
    assert_fails(pnb_truth_read(&t, path, &i, &by_text, &o, NULL, err), PNB_FORMAT, "line");
}

/* ---- CLIP_benchmark ---- */

static void add_member(pnb__tar_writer *w, const char *name, const char *bytes)
{
    assert_ok(pnb__tar_writer_add(w, name, bytes, strlen(bytes), err));
}

static void clip_benchmark_tars(void **state)
{
    (void)state;
    pnb__tar_writer w;
    make_folder("wds");
    for (int shard = 0; shard < 11; shard += 10) { /* 0.tar and 10.tar, 2.tar between them */
        char name[32], key[32];
        snprintf(name, sizeof name, "wds/%d.tar", shard);
        assert_ok(pnb__tar_writer_open(&w, in_dir(name), err));
        snprintf(key, sizeof key, "s%07d.jpg", shard);
        add_member(&w, key, "no picture is decoded");
        snprintf(key, sizeof key, "s%07d.txt", shard);
        add_member(&w, key, shard == 0 ? "a cat\na small cat" : "a dog");
        assert_ok(pnb__tar_writer_commit(&w, err));
    }
    assert_ok(pnb__tar_writer_open(&w, in_dir("wds/2.tar"), err));
    add_member(&w, "s0000002.jpg", "x");
    add_member(&w, "s0000002.txt", "a fox\n");
    assert_ok(pnb__tar_writer_commit(&w, err));
    const char *const images[] = {"s0000010", "s0000000", "s0000002"};
    const char *const texts[] = {"s0000000#1", "s0000000#0", "s0000010#0", "s0000002#0"};
    const size_t want[] = {0, 2, 1, 0, 1, 1, 2, 3}, ordered[] = {0, 0, 0, 1, 1, 2, 2, 3};
    pnb_truth_report report;
    expect(in_dir("wds"), NULL, rows(images, 3), rows(texts, 4), want, 4, &report);
    assert_int_equal(report.format, PNB_TRUTH_DATASET);
    pnb_truth_report_reset(&report);
    expect(in_dir("wds"), NULL, rows(NULL, 3), rows(NULL, 4), ordered, 4, NULL);
    const size_t first[] = {1, 0, 1, 1};
    expect(in_dir("wds/0.tar"), NULL, rows(images, 3), rows(texts, 4), first, 2, NULL);
}

/* ---- labels and pairs ---- */

static void classes_by_label(void **state)
{
    (void)state;
    const char *const images[] = {"a.jpg", "b.jpg", "c.jpg"}, *const texts[] = {"t0", "t1", "t2"};
    const char *path =
        write_file("labels.tsv", "# id\tclass\na.jpg\tbird\nb\tflower\nt0\tflower\nt2\tbird\n");
    const size_t want[] = {0, 2, 1, 0};
    const pnb_truth_read_opts o = {.format = PNB_TRUTH_LABELS};
    const pnb_truth_rows i = rows(images, 3), x = rows(texts, 3);
    pnb_truth_report report;
    pnb_truth *t = NULL;
    expect(path, &o, i, x, want, 2, &report); /* c.jpg and t1 have no class and match nothing */
    assert_true(report.format == PNB_TRUTH_LABELS && !report.image_named[2]);
    pnb_truth_report_reset(&report);
    path = write_file("labels.tsv", "a.jpg\tbird\nnobody\tbird\n");
    assert_fails(pnb_truth_read(&t, path, &i, &x, &o, NULL, err), PNB_NOT_FOUND, "line 2");
    path = write_file("labels.tsv", "a.jpg bird\n");
    assert_fails(pnb_truth_read(&t, path, &i, &x, &o, NULL, err), PNB_FORMAT, "no tab");
    path = write_file("labels.tsv", "a.jpg\tone\nt0\ttwo\n");
    assert_fails(pnb_truth_read(&t, path, &i, &x, &o, NULL, err), PNB_ARG, "label");
    const size_t pairs[] = {0, 0, 2, 1};
    expect(write_file("truth.tsv", "a.jpg\tt0\nc.jpg\tt1\n"), NULL, i, x, pairs, 2, &report);
    assert_true(report.format == PNB_TRUTH_PAIRS && report.n_images == 2);
    pnb_truth_report_reset(&report);
}

static void bad_files(void **state)
{
    (void)state;
    const char *const images[] = {"42"}, *const ids[] = {"1"};
    const pnb_truth_rows i = rows(images, 1), x = rows(ids, 1);
    pnb_truth_read_opts o = {.split = "test"};
    pnb_truth_format format;
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
    assert_fails(pnb_truth_read(&t, write_file("bad.json", "{}"), &i, &x, NULL, NULL, err), PNB_ARG,
                 "no pair fits");
    assert_fails(pnb_truth_read(&t, write_file("c.json", COCO), &i, &x, &o, NULL, err), PNB_ARG,
                 "no splits");
    assert_fails(pnb_truth_read(&t, write_file("t.tsv", "0\t0\n"), &i, &x, &o, NULL, err), PNB_ARG,
                 "no splits");
    assert_fails(pnb_truth_read(&t, in_dir("absent.json"), &i, &x, NULL, NULL, err), PNB_NOT_FOUND,
                 "absent.json");
    assert_fails(pnb_truth_format_parse(&format, "xml", err), PNB_NOT_FOUND, "karpathy");
    for (int f = 0; f < PNB_N_TRUTH_FORMATS; f++) {
        assert_ok(pnb_truth_format_parse(&format, pnb_truth_format_name((pnb_truth_format)f), err));
        assert_int_equal(format, f);
    }
    assert_null(t);
}

/* ---- label vectors ---- */

static void label_vectors(void **state)
{
    (void)state;
    const char *const images[] = {"COCO_val2014_000000000042.jpg", "7"};
    const pnb_truth_rows i = rows(images, 2);
    const uint8_t want[] = {1, 0, 1, 0, 0, 0};
    pnb_label_matrix m;
    const char *path = write_file(
        "instances_val2014.json",
        "{\"images\":[{\"id\":42,\"file_name\":\"COCO_val2014_000000000042.jpg\"},{\"id\":7},"
        "{\"id\":9}],\"annotations\":[{\"image_id\":42,\"category_id\":90},{\"image_id\":42,"
        "\"category_id\":1},{\"image_id\":42,\"category_id\":1},{\"image_id\":9,\"category_id\":3}]"
        ","
        "\"categories\":[{\"id\":1},{\"id\":3},{\"id\":90}]}");
    assert_ok(pnb_label_matrix_load(&m, path, &i, err));
    assert_true(m.n == 2 && m.n_labels == 3);
    assert_memory_equal(m.label, want, 6);
    pnb_label_matrix_reset(&m);
    path = write_file("v.csv", "id,cat,dog,sun\n7,0,0,0\nother,1,1,1\n42,1,0,1\n");
    assert_ok(pnb_label_matrix_load(&m, path, &i, err));
    assert_memory_equal(m.label, want, 6);
    pnb_label_matrix_reset(&m);
    float values[] = {1, 0, 1, 0, 0, 0};
    const pnb_array_view view = {
        .dtype = PNB_F32, .n_dims = 2, .shape = {2, 3}, .data = values, .n_bytes = sizeof values};
    assert_ok(pnb_npy_save(in_dir("v.npy"), &view, err));
    assert_ok(pnb_label_matrix_load(&m, in_dir("v.npy"), &i, err));
    assert_memory_equal(m.label, want, 6);
    pnb_label_matrix_reset(&m);
    const char *const more[] = {"42", "7", "8"};
    const pnb_truth_rows three = rows(more, 3);
    assert_fails(pnb_label_matrix_load(&m, in_dir("v.npy"), &three, err), PNB_SHAPE, "3 rows");
    assert_fails(pnb_label_matrix_load(&m, path, &three, err), PNB_NOT_FOUND, "row 2 ('8')");
    path = write_file("v.csv", "id,cat\n7,2\n42,1\n");
    assert_fails(pnb_label_matrix_load(&m, path, &i, err), PNB_FORMAT, "'2'");
    path = write_file("v.csv", "id\n7\n42\n");
    assert_fails(pnb_label_matrix_load(&m, path, &i, err), PNB_FORMAT, "0 labels");
    path = write_file("x.json", "{\"images\":[{\"id\":7}],\"categories\":[{\"id\":1}],"
                                "\"annotations\":[{\"image_id\":7,\"category_id\":5}]}");
    const char *const one[] = {"7"};
    const pnb_truth_rows single = rows(one, 1);
    assert_fails(pnb_label_matrix_load(&m, path, &single, err), PNB_FORMAT, "annotations[0]");
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    const char *path = write_file("captions_val2014.json", COCO);
    const char *const images[] = {"42", "391895"}, *const ids[] = {"770337", "771687", "772707"};
    const pnb_truth_rows i = rows(images, 2), x = rows(ids, 3);
    pnb_status status = PNB_NOMEM;
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_truth *t = NULL;
        pnb_truth_report report = {0};
        pnb__alloc_fail_after(n);
        status = pnb_truth_read(&t, path, &i, &x, NULL, &report, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (t == NULL && report.image_named == NULL));
        assert_true(n < 500);
        pnb_truth_free(t);
        pnb_truth_report_reset(&report);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coco_by_every_name),
        cmocka_unit_test(unnamed_rows_go_by_order),
        cmocka_unit_test(absent_entries_are_counted),
        cmocka_unit_test(ambiguous_names),
        cmocka_unit_test(karpathy_splits),
        cmocka_unit_test(flickr_tokens),
        cmocka_unit_test(precomp_lists),
        cmocka_unit_test(class_folders),
        cmocka_unit_test(id_lists_both_ways),
        cmocka_unit_test(hierarcaps_levels),
        cmocka_unit_test(clip_benchmark_tars),
        cmocka_unit_test(classes_by_label),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(label_vectors),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
