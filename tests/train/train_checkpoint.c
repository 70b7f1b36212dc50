/* What a checkpoint says of the data that it was trained on: a run goes on with the same data in
 * another place, and is told by name what differs in others of the same number. */
#include "tests/train/fixture.h"

#include "io/json/json.h"

/* The first shard or record of the training data with one letter of a caption changed. */
static void spoil_text(const char *path)
{
    static const char wanted[] = "\"captions\"";
    char *bytes = NULL;
    size_t n = 0, at = 0;
    ASSERT_OK(pnb__read_file(path, (size_t)1 << 30, &bytes, &n, &err));
    while (at + sizeof wanted < n && memcmp(bytes + at, wanted, sizeof wanted - 1) != 0)
        at++;
    assert_true(at + sizeof wanted < n);
    char *letter = strpbrk(bytes + at + sizeof wanted + 4, "abcdefghijklmnopqrstuvwy");
    assert_non_null(letter);
    ++*letter;
    ASSERT_OK(pnb__write_file(path, bytes, n, &err));
    pnb__free(bytes);
}

static char *copy_data(const fixture *f, const char *name)
{
    char *copy = pnb__path_join(f->dir, name);
    char *command = pnb__format("cp -r '%s' '%s'", f->train, copy);
    assert_int_equal(system(command), 0);
    pnb__free(command);
    return copy;
}

static char *state_of(const fixture *f, const char *run)
{
    return pnb__format("%s/%s/checkpoints/latest/state.json", f->logs, run);
}

static char *first_file(const char *dir)
{
    char *command = pnb__format("find '%s' -type f ! -name '*.png' | sort | head -1", dir), *out;
    char line[4096] = "";
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_non_null(fgets(line, sizeof line, p));
    assert_int_equal(pclose(p), 0);
    line[strcspn(line, "\n")] = '\0';
    pnb__free(command);
    out = pnb__strdup(line);
    return out;
}

static void test_data_must_be_the_same(void **state)
{
    const fixture *f = *state;
    pnb_train_result r;
    pnb_train_opts o = fixture_opts(f, "data");
    char *moved = copy_data(f, "moved"), *spoilt = copy_data(f, "spoilt");
    char *file = first_file(spoilt), *path = state_of(f, "data");
    json_t *root = NULL;
    o.epochs = 1;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    o.resume = "latest";
    o.train_data = moved;
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    spoil_text(file);
    o.train_data = spoilt;
    ASSERT_FAILS(
        pnb_train(f->ctx, &o, &r, &err), PNB_ARG,
        "of the same number of samples; these differ: captions. Resume with the same data");
    /* a checkpoint of before it was written down, and one of a program that counts otherwise */
    ASSERT_OK(pnb__json_load_file(&root, path, 0, &err));
    assert_int_equal(json_object_size(json_object_get(root, "data")), 5);
    json_object_set_new(json_object_get(root, "data"), "form", json_integer(99));
    ASSERT_OK(pnb__json_save_file(root, path, &err));
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    json_object_del(root, "data");
    ASSERT_OK(pnb__json_save_file(root, path, &err));
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    json_decref(root);
    pnb__free(path);
    pnb__free(file);
    pnb__free(moved);
    pnb__free(spoilt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_data_must_be_the_same)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
