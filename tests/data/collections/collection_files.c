/* Files below a root: order, links within it, links out of it, circles of links. */
#include "data/collections/collection_files.h"

#include "tests/data/fixture.h"

static void put_link(const char *dir, const char *name, const char *target)
{
    char *path = pnb__path_join(dir, name);
    assert_int_equal(symlink(target, path), 0);
    pnb__free(path);
}

static void links_name_their_target(void **state)
{
    pnb__collection_files files;
    size_t n_broken = 0;
    (void)state;
    char *dir = scratch_create(), *root = pnb__path_join(dir, "root");
    put_file(dir, "outside.svg", "x", 1);
    put_file(dir, "root/b/cat.svg", "x", 1);
    put_file(dir, "root/a.svg", "x", 1);
    put_link(root, "b/a_too.svg", "../a.svg");
    put_link(root, "c.svg", "b/a_too.svg");
    put_link(root, "out.svg", "../outside.svg");
    put_link(root, "gone.svg", "nothing.svg");
    put_link(root, "b/circle", "..");
    ASSERT_OK(pnb__collection_files_find(&files, root, &n_broken, &err));
    assert_int_equal(files.n, 7);
    assert_int_equal(n_broken, 3); /* out, gone, and the folder, which is no file */
    size_t a = pnb__collection_files_place(&files, "a.svg");
    assert_true(a != SIZE_MAX && files.items[a].target == a);
    assert_int_equal(files.items[pnb__collection_files_place(&files, "b/a_too.svg")].target, a);
    assert_int_equal(files.items[pnb__collection_files_place(&files, "c.svg")].target, a);
    assert_true(pnb__collection_files_place(&files, "b/cat") == SIZE_MAX);
    for (size_t i = 1; i < files.n; i++)
        assert_true(strcmp(files.items[i - 1].name, files.items[i].name) < 0);
    pnb__collection_files_free(&files);
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__collection_files_find(&files, "/no/such/folder", &n_broken, &err),
                     PNB_NOT_FOUND);
    assert_null(files.items);
    pnb__free(root);
    scratch_remove(dir);
}

static void a_pipe_is_not_waited_for(void **state)
{
    char *data = NULL;
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    assert_int_equal(pnb__collection_read_file("/dev/zero", &data, &n, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "a device"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(links_name_their_target),
                                       cmocka_unit_test(a_pipe_is_not_waited_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
