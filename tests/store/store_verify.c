/* Damage to shards: what opening says, what verify finds, and what repairing leaves. */
#include "tests/store/fixture.h"

#include <sys/stat.h>

/* Path of the first shard of the collection. */
static const char *first_shard(scratch *s)
{
    char name[300] = "";
    DIR *dir = opendir(scratch_path(s, "c/shards"));
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] == '0' && (name[0] == '\0' || strcmp(e->d_name, name + 9) < 0))
            snprintf(name, sizeof name, "c/shards/%.250s", e->d_name);
    closedir(dir);
    return scratch_path(s, name);
}

static void take(void *user, const char *text)
{
    pnb__buf *all = user;
    pnb__buf_puts(all, text);
    pnb__buf_putc(all, '\n');
}

/* What verify says of it. */
static pnb_store_verified verified(scratch *s, bool repair, const char *words)
{
    pnb__buf said = {0};
    pnb_store_verified found;
    pnb_error err = PNB_ERROR_INIT;
    const pnb_store_verify_opts opts = {.repair = repair, .problem = take, .user = &said};
    assert_ok(pnb_store_verify(scratch_path(s, "c"), &opts, &found, &err), &err);
    if (words != NULL && (said.data == NULL || strstr(said.data, words) == NULL))
        fail_msg("\"%s\" is not in \"%s\"", words, said.data);
    pnb__buf_reset(&said);
    return found;
}

static void nothing_wrong(void **state)
{
    pnb_store_close(filled(*state, 20, 10));
    pnb_store_verified found = verified(*state, false, NULL);
    assert_int_equal(found.n_rows, 20);
    assert_int_equal(found.n_problems + found.n_leftovers, 0);
    scratch_file(*state, "c/shards/000000000099-4.safetensors", "x", 1);
    scratch_file(*state, "c/shards/000000000099-4.safetensors.tmp-1-0", "x", 1);
    found = verified(*state, false, NULL);
    assert_int_equal(found.n_problems, 0);
    assert_int_equal(found.n_leftovers, 2);
    pnb_store *store = opened(scratch_path(*state, "c"));
    assert_int_equal(add_rows(store, 20, 1).n_added, 1);
    pnb_store_close(store);
    assert_int_equal(verified(*state, false, NULL).n_leftovers, 0);
}

/* A shard that is gone, cut short, or holds a number that is none. */
static void a_damaged_shard(void **state)
{
    scratch *s = *state;
    for (int kind = 0; kind < 3; kind++) {
        pnb_store *store = filled(s, 40, 30);
        pnb_error err = PNB_ERROR_INIT;
        pnb_store_close(store);
        const char *path = first_shard(s);
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        if (kind == 0)
            assert_int_equal(unlink(path), 0);
        else if (kind == 1)
            assert_int_equal(truncate(path, info.st_size - 1), 0);
        else {
            FILE *f = fopen(path, "r+b");
            assert_int_equal(fseek(f, -4, SEEK_END), 0);
            assert_int_equal(fwrite("\0\0\300\177", 1, 4, f), 4);
            fclose(f);
        }
        if (kind < 2)
            assert_failed(pnb_store_open(&store, scratch_path(s, "c"), &err), &err,
                          kind == 0 ? PNB_NOT_FOUND : PNB_FORMAT, "collection verify");
        pnb_store_verified found = verified(s, false, "000000000001-30");
        assert_int_equal(found.n_problems, 1);
        found = verified(s, true, "000000000001-30");
        assert_int_equal(found.n_repaired, 1);
        assert_int_equal(verified(s, false, NULL).n_problems, 0);
        store = opened(scratch_path(s, "c"));
        assert_int_equal(count_rows(store), 10);
        assert_int_equal(add_rows(store, 0, 40).n_added, 30); /* they may come again */
        pnb_store_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_wrong),
                                       cmocka_unit_test(a_damaged_shard)};
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
