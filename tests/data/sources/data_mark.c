/* Marks of data sets: the same wherever the data lie and whoever counts, and another one for one
 * caption, one length or one name among many, in the number that says what it is. */
#include "data/sources/data_mark.h"

#include "tests/data/sources/opened.h"

enum { N = 300, UNSEEN = 6 }; /* of which 256 are looked at, and this one is not */

static pnb__data_mark mark_with(const char *spec, int n_threads)
{
    const pnb_ctx_opts opts = {.n_threads = n_threads};
    pnb_ctx *ctx = NULL;
    pnb__data_mark mark;
    pnb_dataset *ds = open_ok(spec, NULL);
    ASSERT_OK(pnb_ctx_create(&ctx, &opts, &err));
    ASSERT_OK(pnb__dataset_mark(ctx, ds, &mark, &err));
    pnb_dataset_free(ds);
    pnb_ctx_free(ctx);
    return mark;
}

static pnb__data_mark mark_of(const char *spec)
{
    pnb__data_mark one = mark_with(spec, 1), two = mark_with(spec, 2);
    assert_memory_equal(&one, &two, sizeof one);
    return one;
}

/* Which of the four differ: 1 names, 2 captions, 4 sizes, 8 pictures. */
static int difference(const pnb__data_mark *a, const pnb__data_mark *b)
{
    return (a->names != b->names) | (a->texts != b->texts) << 1 | (a->sizes != b->sizes) << 2 |
           (a->images != b->images) << 3;
}

static void expect_differs(const pnb__data_mark *a, const char *spec, int wanted)
{
    const pnb__data_mark b = mark_of(spec);
    assert_int_equal(difference(a, &b), wanted);
}

/* ---- a folder ---- */

static void put_pair(const char *dir, int i, int value, const char *text)
{
    char name[64];
    snprintf(name, sizeof name, "%s/c/%03d.png", dir, i);
    put_png(scratch, name, value);
    snprintf(name, sizeof name, "%s/c/%03d.txt", dir, i);
    put_text(scratch, name, text);
}

static void put_folder(const char *dir)
{
    for (int i = 0; i < N; i++)
        put_pair(dir, i, i % 200, "a word");
}

static void test_folders(void **state)
{
    (void)state;
    put_folder("here/data");
    put_folder("there/lies");
    const pnb__data_mark mark = mark_of("here/data");
    expect_differs(&mark, "there/lies", 0);
    put_pair("there/lies", UNSEEN, UNSEEN, "a wort"); /* as long as before */
    expect_differs(&mark, "there/lies", 2);
    put_pair("there/lies", UNSEEN, UNSEEN, "a word");
    put_text(scratch, "there/lies/c/006.png", "nothing that could be read");
    expect_differs(&mark, "there/lies", 4);
    put_pair("there/lies", UNSEEN, UNSEEN, "a word");
    put_pair("there/lies", 0, 20, "a word"); /* of the same length, and looked at */
    expect_differs(&mark, "there/lies", 8);
    put_pair("there/lies", 0, 0, "a word");
    expect_differs(&mark, "there/lies", 0);
    char *from = in_scratch("there/lies/c/006.png"), *to = in_scratch("there/lies/c/006x.png");
    char *from_text = in_scratch("there/lies/c/006.txt"),
         *to_text = in_scratch("there/lies/c/006x.txt");
    assert_int_equal(rename(from, to) | rename(from_text, to_text), 0);
    expect_differs(&mark, "there/lies", 1);
    pnb__free(from);
    pnb__free(to);
    pnb__free(from_text);
    pnb__free(to_text);
}

/* ---- shards ---- */

static void write_marked(const char *name, const char *text, const char *class_number)
{
    pnb__tar_writer w;
    start_tar(&w, name);
    for (int i = 0; i < N; i++) {
        char member[32];
        snprintf(member, sizeof member, "%03d.png", i);
        add_png(&w, member, i % 200);
        snprintf(member, sizeof member, "%03d.json", i);
        add(&w, member, i == UNSEEN ? text : "{\"caption\":\"a\"}");
        snprintf(member, sizeof member, "%03d.cls", i);
        add(&w, member, i == UNSEEN ? class_number : "1");
    }
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
}

static void test_shards(void **state)
{
    (void)state;
    write_marked("a.tar", "{\"caption\":\"a\"}", "1");
    write_marked("b.tar", "{\"caption\":\"a\"}", "1");
    const pnb__data_mark mark = mark_of("a.tar");
    expect_differs(&mark, "b.tar", 0); /* what a shard is called changes no sample */
    write_marked("b.tar", "{\"caption\":\"b\"}", "1");
    expect_differs(&mark, "b.tar", 2);
    write_marked("b.tar", "{\"caption\":\"a\"}", "2");
    expect_differs(&mark, "b.tar", 1);
}

/* ---- tables ---- */

/* Lines with the place of a picture on this machine, as scripts write them. */
static void put_lines(const char *dir, const char *text, int level)
{
    pnb__buf lines = {0};
    char name[64];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s/%d.png", dir, i);
        put_png(scratch, name, i);
        pnb__buf_printf(&lines,
                        "{\"image\": \"%s/%s\", \"captions\": [\"%s\"], \"levels\": [%d]}\n",
                        scratch, name, i == 1 ? text : "a", i == 1 ? level : 0);
    }
    snprintf(name, sizeof name, "%s/list.jsonl", dir);
    put_text(scratch, name, lines.data);
    pnb__buf_reset(&lines);
}

static void test_lines_of_json(void **state)
{
    (void)state;
    put_lines("one", "a", 0);
    put_lines("two", "a", 0);
    const pnb__data_mark mark = mark_of("one/list.jsonl");
    expect_differs(&mark, "two/list.jsonl", 0);
    put_lines("two", "b", 0);
    expect_differs(&mark, "two/list.jsonl", 2);
    put_lines("two", "a", 3);
    expect_differs(&mark, "two/list.jsonl", 2);
    put_lines("two", "a", 0);
    put_text(scratch, "two/1.png", "gone");
    expect_differs(&mark, "two/list.jsonl", 4 | 8);
}

static void test_rows_of_a_table(void **state)
{
    (void)state;
    put_png(scratch, "t/a.png", 1);
    put_png(scratch, "u/a.png", 1);
    put_text(scratch, "t/t.csv", "filepath,title\na.png,one\na.png,two\n");
    put_text(scratch, "u/t.csv", "filepath,title\na.png,one\na.png,two\n");
    const pnb__data_mark mark = mark_of("t/t.csv");
    expect_differs(&mark, "u/t.csv", 0);
    put_text(scratch, "u/t.csv", "filepath,title\na.png,two\na.png,one\n");
    expect_differs(&mark, "u/t.csv", 2); /* their order is the order of training */
}

/* A table of the fuzzer's corpus, with a byte of a picture changed or not. */
static void put_table(const char *name, int change)
{
    char *bytes = NULL;
    size_t n = 0, at = 0;
    ASSERT_OK(pnb__read_file(PNB_SOURCE_DIR "/tests/fuzz/corpus/parquet/fetched", 1 << 20, &bytes,
                             &n, &err));
    while (at + 4 < n && memcmp(bytes + at, "\x89PNG", 4) != 0)
        at++;
    assert_true(at + 60 < n);
    bytes[at + 30] = (char)(bytes[at + 30] + change);
    put_file(scratch, name, bytes, n);
    pnb__free(bytes);
}

static void test_parquet(void **state)
{
    (void)state;
    put_table("p/a.parquet", 0);
    put_table("q/b.parquet", 0);
    const pnb__data_mark mark = mark_of("p/a.parquet");
    assert_true(mark.sizes != 0);
    expect_differs(&mark, "q/b.parquet", 0);
    put_table("q/b.parquet", 1);
    const pnb__data_mark changed = mark_of("q/b.parquet");
    assert_true(changed.images != mark.images && changed.names == mark.names);
}

/* ---- binaries ---- */

static void put_cifar(const char *name, unsigned char last)
{
    enum { BYTES = N * 3073 };
    unsigned char *bytes = calloc(1, BYTES);
    bytes[UNSEEN * 3073 + 100] = last;
    put_file(scratch, name, bytes, BYTES);
    free(bytes);
}

/* All pictures have one length: every byte counts. */
static void test_binaries(void **state)
{
    (void)state;
    static const char names[] = "airplane\nautomobile\nbird\n";
    put_text(scratch, "c/batches.meta.txt", names);
    put_text(scratch, "d/batches.meta.txt", names);
    put_cifar("c/test_batch.bin", 1);
    put_cifar("d/test_batch.bin", 1);
    const pnb__data_mark mark = mark_of("c/test_batch.bin");
    expect_differs(&mark, "d/test_batch.bin", 0);
    put_cifar("d/test_batch.bin", 2);
    expect_differs(&mark, "d/test_batch.bin", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lines_of_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_of_a_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parquet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_binaries, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
