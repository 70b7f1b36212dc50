/* Copying samples into new shards: the very bytes of every member, shard sizes, samples of files,
 * and that a failure leaves nothing behind. */
#include "tests/data/fixture.h"

#include <sys/stat.h>

#include "io/tables/tar.h"
#include "penumbra/filter.h"

/* ---- archives by hand ---- */

static void put_octal(char *field, size_t width, unsigned long value)
{
    snprintf(field, width, "%0*lo", (int)width - 1, value);
}

/* One member with owner, mode and time that our own writer would not give. */
static void add_block(pnb__buf *b, const char *name, char type, const void *data, size_t n)
{
    char block[512] = {0};
    unsigned long sum = 0;
    snprintf(block, 100, "%s", name);
    put_octal(block + 100, 8, 0640);
    put_octal(block + 108, 8, 1234);
    put_octal(block + 116, 8, 4321);
    put_octal(block + 124, 12, n);
    put_octal(block + 136, 12, 1600000000);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    snprintf(block + 265, 32, "somebody");
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06lo", sum);
    pnb__buf_append(b, block, sizeof block);
    pnb__buf_append(b, data, n);
    while (b->size % 512 != 0)
        pnb__buf_putc(b, '\0');
}

static void add_member(pnb__buf *b, const char *name, const char *text)
{
    add_block(b, name, '0', text, strlen(text));
}

/* A member whose name stands in a pax record before it. */
static void add_long_member(pnb__buf *b, const char *name, const char *text)
{
    char record[512];
    int n = snprintf(record, sizeof record, "%zu path=%s\n", strlen(name) + 10, name);
    assert_int_equal(n, (int)strlen(name) + 10); /* three digits */
    add_block(b, "pax", 'x', record, (size_t)n);
    add_member(b, "cut", text);
}

static void end_archive(pnb__buf *b)
{
    for (int i = 0; i < 1024; i++)
        pnb__buf_putc(b, '\0');
}

static char *read_all(const char *dir, const char *name, size_t *n)
{
    char *path = pnb__path_join(dir, name), *bytes = NULL;
    ASSERT_OK(pnb__read_file(path, (size_t)1 << 30, &bytes, n, &err));
    pnb__free(path);
    return bytes;
}

static void assert_file(const char *dir, const char *name, const void *bytes, size_t n)
{
    size_t n_found;
    char *found = read_all(dir, name, &n_found);
    assert_int_equal(n_found, n);
    assert_memory_equal(found, bytes, n);
    pnb__free(found);
}

static bool is_there(const char *dir, const char *name)
{
    struct stat info;
    char *path = pnb__path_join(dir, name);
    bool found = stat(path, &info) == 0;
    pnb__free(path);
    return found;
}

static size_t count_entries(const char *dir)
{
    size_t n = 0;
    char *listing = NULL, line[256];
    char *command = pnb__format("ls -A '%s'", dir);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe) != NULL)
        n++;
    pclose(pipe);
    pnb__free(command);
    pnb__free(listing);
    return n;
}

static pnb_dataset *opened(const char *dir, const char *spec)
{
    pnb_dataset *ds = NULL;
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    char *path = pnb__path_join(dir, spec);
    opts.allow_no_caption = true;
    ASSERT_OK(pnb_dataset_open(&ds, path, &opts, &err));
    pnb__free(path);
    return ds;
}

/* Copies; the status is returned and the text put into *why. */
static pnb_status copy(const char *dir, const char *spec, const char *keep, size_t shard_size,
                       pnb_copied *copied, pnb_error *why)
{
    pnb_dataset *ds = opened(dir, spec);
    pnb_copy_opts opts = pnb_copy_opts_default();
    unsigned char flags[64] = {0};
    char *out = pnb__path_join(dir, "out");
    assert_int_equal(pnb_dataset_size(ds), strlen(keep));
    for (size_t i = 0; keep[i] != '\0'; i++)
        flags[i] = keep[i] == 'x';
    opts.shard_size = shard_size;
    pnb_status status = pnb_dataset_copy(ds, flags, out, &opts, copied, why);
    pnb__free(out);
    pnb_dataset_free(ds);
    return status;
}

/* ---- tests ---- */

/* Two shards with everything that may stand between samples; kept ones come out bit for bit. */
static void copies_bytes(void **state)
{
    (void)state;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "out"), name[200];
    pnb__buf sample[6] = {{0}}, first = {0}, second = {0}, wanted = {0};
    pnb_copied copied;
    pnb_error why = PNB_ERROR_INIT;
    add_member(&sample[0], "a/000.jpg", "not really a picture");
    add_member(&sample[0], "a/000.json", "{\"caption\": \"one\"}");
    add_member(&sample[1], "a/001.txt", "two");
    add_member(&sample[1], "a/001.PNG", "");
    add_member(&sample[1], "a/001.depth.npy", "beside it");
    memset(name, 'n', 150);
    snprintf(name + 150, 20, ".jpg");
    add_long_member(&sample[2], name, "long name");
    add_member(&sample[3], "a/001.jpg", "same name again");
    add_member(&sample[4], "a/001.jpg", "a repeated suffix");
    add_member(&sample[4], "a/001.txt", "five");
    add_member(&sample[5], "b/000.webp", "in the second shard");

    add_block(&first, "a/", '5', "", 0);
    pnb__buf_append(&first, sample[0].data, sample[0].size);
    add_member(&first, "a/alone.json", "{\"caption\": \"no picture\"}");
    pnb__buf_append(&first, sample[1].data, sample[1].size);
    add_member(&first, "README", "no sample");
    pnb__buf_append(&first, sample[2].data, sample[2].size);
    end_archive(&first);
    pnb__buf_append(&second, sample[3].data, sample[3].size);
    pnb__buf_append(&second, sample[4].data, sample[4].size);
    pnb__buf_append(&second, sample[5].data, sample[5].size);
    put_file(dir, "in/0.tar", first.data, first.size);
    put_file(dir, "in/1.tar", second.data, second.size); /* without its end blocks */

    assert_int_equal(copy(dir, "in", "xxx.xx", 2, &copied, &why), PNB_OK);
    assert_int_equal(copied.n_samples, 5);
    assert_int_equal(copied.n_shards, 3);
    assert_int_equal(copied.n_skipped, 0);
    pnb__buf_append(&wanted, sample[0].data, sample[0].size);
    pnb__buf_append(&wanted, sample[1].data, sample[1].size);
    end_archive(&wanted);
    assert_file(out, "00000.tar", wanted.data, wanted.size);
    wanted.size = 0;
    pnb__buf_append(&wanted, sample[2].data, sample[2].size);
    pnb__buf_append(&wanted, sample[4].data, sample[4].size);
    end_archive(&wanted);
    assert_file(out, "00001.tar", wanted.data, wanted.size);
    wanted.size = 0;
    pnb__buf_append(&wanted, sample[5].data, sample[5].size);
    end_archive(&wanted);
    assert_file(out, "00002.tar", wanted.data, wanted.size);
    static const char sizes[] =
        "{\n  \"00000.tar\": 2,\n  \"00001.tar\": 2,\n  \"00002.tar\": 1\n}\n";
    assert_file(out, "sizes.json", sizes, strlen(sizes));
    assert_int_equal(count_entries(out), 4);
    assert_int_equal(count_entries(dir), 2); /* in and out, nothing else */
    for (int i = 0; i < 6; i++)
        pnb__buf_reset(&sample[i]);
    pnb__buf_reset(&first);
    pnb__buf_reset(&second);
    pnb__buf_reset(&wanted);
    pnb__free(out);
    scratch_remove(dir);
}

/* A shard that ends early: what stands before the damage is copied. */
static void copies_before_damage(void **state)
{
    (void)state;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "out");
    pnb__buf tar = {0};
    pnb_copied copied;
    pnb_error why = PNB_ERROR_INIT;
    add_member(&tar, "0.jpg", "first");
    add_member(&tar, "1.jpg", "second");
    size_t n_whole = tar.size;
    add_member(&tar, "2.jpg", "third");
    put_file(dir, "in.tar", tar.data, n_whole + 600 - 100);
    assert_int_equal(copy(dir, "in.tar", "xx", 10, &copied, &why), PNB_OK);
    assert_int_equal(copied.n_samples, 2);
    tar.size = n_whole;
    end_archive(&tar);
    assert_file(out, "00000.tar", tar.data, tar.size);
    pnb__buf_reset(&tar);
    pnb__free(out);
    scratch_remove(dir);
}

static void assert_member(pnb__tar *t, const char *name, const void *data, size_t n)
{
    pnb__tar_member m;
    bool more = false;
    ASSERT_OK(pnb__tar_next(t, &m, &more, &err));
    assert_true(more);
    assert_string_equal(m.name, name);
    assert_int_equal(m.size, n);
    assert_memory_equal(m.data, data, n);
}

static int n_told;
static void tell(void *user, const char *what, const char *why)
{
    (void)user;
    assert_string_equal(what, "sample");
    assert_non_null(strstr(why, "gone.png"));
    n_told++;
}

/* Pictures and captions of a table become members; a picture that has gone is told. */
static void copies_files(void **state)
{
    (void)state;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "out"), *path;
    size_t n_png;
    unsigned char *png = make_png(3, 2, 7, &n_png);
    pnb__tar tar = {0};
    pnb_copied copied;
    put_file(dir, "pictures/a.PNG", png, n_png);
    put_file(dir, "pictures/b.png", png, n_png);
    put_text(dir, "in.csv",
             "filepath,title\npictures/a.PNG,\"one, two\"\npictures/gone.png,x\n"
             "pictures/b.png,three\n");
    pnb_dataset *ds = opened(dir, "in.csv");
    const unsigned char keep[3] = {1, 1, 1};
    pnb_copy_opts opts = pnb_copy_opts_default();
    opts.skipped = tell;
    ASSERT_OK(pnb_dataset_copy(ds, keep, out, &opts, &copied, &err));
    assert_int_equal(copied.n_samples, 2);
    assert_int_equal(copied.n_skipped, 1);
    assert_int_equal(n_told, 1);
    path = pnb__path_join(out, "00000.tar");
    ASSERT_OK(pnb__tar_open(&tar, path, &err));
    assert_member(&tar, "000000000.png", png, n_png);
    assert_member(&tar, "000000000.txt", "one, two", 8);
    assert_member(&tar, "000000001.png", png, n_png);
    assert_member(&tar, "000000001.txt", "three", 5);
    pnb__tar_close(&tar);
    pnb_dataset_free(ds);
    /* the copy is a data set again */
    ds = opened(dir, "out");
    assert_int_equal(pnb_dataset_size(ds), 2);
    pnb_dataset_free(ds);
    pnb__free(path);
    /* JSON lines keep their whole record */
    scratch_remove(out);
    out = pnb__path_join(dir, "out");
    static const char record[] = "{\"image\": \"pictures/b.png\", \"captions\": [\"u\", \"v\"]}";
    put_text(dir, "in.jsonl", record);
    ds = opened(dir, "in.jsonl");
    ASSERT_OK(pnb_dataset_copy(ds, keep, out, NULL, &copied, &err));
    path = pnb__path_join(out, "00000.tar");
    ASSERT_OK(pnb__tar_open(&tar, path, &err));
    assert_member(&tar, "000000000.png", png, n_png);
    assert_member(&tar, "000000000.json", record, strlen(record));
    pnb__tar_close(&tar);
    pnb_dataset_free(ds);
    pnb__free(path);
    pnb__free(out);
    pnb_image_bytes_free(png);
    scratch_remove(dir);
}

static bool stop_at_two(void *user, size_t done, size_t total)
{
    (void)user;
    assert_int_equal(total, 3);
    return done < 2;
}

/* Whatever goes wrong: no folder, no temporary folder, what was there stays. */
static void leaves_nothing_behind(void **state)
{
    (void)state;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "out");
    pnb__buf tar = {0};
    pnb_copied copied;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.jpg", i);
        add_member(&tar, name, "picture");
    }
    put_file(dir, "in.tar", tar.data, tar.size);
    pnb_error why = PNB_ERROR_INIT;
    assert_int_equal(copy(dir, "in.tar", "...", 10, &copied, &why), PNB_ARG);
    assert_non_null(strstr(why.text, "none of 3"));
    pnb_error_reset(&why);
    assert_int_equal(copy(dir, "in.tar", "xxx", 0, &copied, &why), PNB_ARG);
    pnb_error_reset(&why);
    pnb_dataset *ds = opened(dir, "in.tar");
    const unsigned char keep[3] = {1, 1, 1};
    pnb_copy_opts opts = {.shard_size = 1, .watch = {stop_at_two, NULL}};
    assert_int_equal(pnb_dataset_copy(ds, keep, out, &opts, &copied, &why), PNB_INTERRUPTED);
    pnb_error_reset(&why);
    assert_int_equal(count_entries(dir), 1);
    put_text(dir, "out/mine", "stays");
    assert_int_equal(pnb_dataset_copy(ds, keep, out, NULL, &copied, &why), PNB_EXISTS);
    assert_non_null(strstr(why.text, "not empty"));
    pnb_error_reset(&why);
    assert_true(is_there(dir, "out/mine"));
    assert_int_equal(count_entries(dir), 2);
    char *file = pnb__path_join(dir, "in.tar");
    assert_int_equal(pnb_dataset_copy(ds, keep, file, NULL, &copied, &why), PNB_EXISTS);
    pnb__free(file);
    pnb_error_reset(&why);
    assert_int_not_equal(pnb_dataset_copy(ds, keep, "/dev/null/x", NULL, &copied, &why), PNB_OK);
    pnb_dataset_free(ds);
    pnb__buf_reset(&tar);
    pnb__free(out);
    scratch_remove(dir);
}

static void fills_an_empty_folder(void **state)
{
    (void)state;
    char *dir = scratch_create(), *out = pnb__path_join(dir, "out");
    pnb__buf tar = {0};
    pnb_copied copied;
    pnb_error why = PNB_ERROR_INIT;
    add_member(&tar, "0.jpg", "picture");
    put_file(dir, "in.tar", tar.data, tar.size);
    ASSERT_OK(pnb__make_dirs(out, &err));
    assert_int_equal(copy(dir, "in.tar", "x", 10, &copied, &why), PNB_OK);
    assert_int_equal(count_entries(out), 2);
    pnb__buf_reset(&tar);
    pnb__free(out);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_bytes),          cmocka_unit_test(copies_before_damage),
        cmocka_unit_test(copies_files),          cmocka_unit_test(leaves_nothing_behind),
        cmocka_unit_test(fills_an_empty_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
