/* Path names: joined and split, what is there, directories made with all above them, and what
 * opening would wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"

static int enter_scratch(void **state)
{
    char *dir = strdup("/tmp/penumbra-path-XXXXXX");
    *state = dir;
    return dir == NULL || mkdtemp(dir) == NULL;
}

static int leave_scratch(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
    free(*state);
    return system(command);
}

static void paths_are_joined(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"},
                                           {"", "b", "b"},    {"a", "/b", "/b"},
                                           {"/", "b", "/b"},  {"a/b", "c/d", "a/b/c/d"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char *joined = pnb__path_join(cases[i][0], cases[i][1]);
        assert_string_equal(joined, cases[i][2]);
        pnb__free(joined);
    }
}

static void paths_are_split(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"a/b.c", "a", "b.c"},   {"b.c", ".", "b.c"}, {"/b", "/", "b"},  {"a/b/", "a/b", ""},
        {"/a/b/c", "/a/b", "c"}, {"a//b", "a", "b"},  {"//b", "/", "b"}, {"", ".", ""}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char *dir = pnb__path_dir(cases[i][0]);
        assert_string_equal(dir, cases[i][1]);
        assert_string_equal(pnb__path_base(cases[i][0]), cases[i][2]);
        pnb__free(dir);
    }
}

static void directories_are_made(void **state)
{
    char *deep = pnb__path_join(*state, "a/b//c/");
    char *file = pnb__path_join(*state, "a/f");
    char *below_file = pnb__path_join(*state, "a/f/g");
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__make_dirs(deep, &err), PNB_OK);
    assert_int_equal(pnb__make_dirs(deep, &err), PNB_OK);
    assert_true(pnb__path_is_dir(deep));
    assert_false(pnb__path_is_file(deep));
    assert_int_equal(pnb__write_file(file, "x", 1, &err), PNB_OK);
    assert_true(pnb__path_is_file(file));
    assert_false(pnb__path_is_dir(file));
    assert_false(pnb__path_is_dir(below_file));
    assert_true(pnb__path_has_dir(*state, "a/b") && !pnb__path_has_file(*state, "a/b"));
    assert_true(pnb__path_has_file(*state, "a/f") && !pnb__path_has_dir(*state, "a/f"));
    assert_true(pnb__path_has_file("", file) && pnb__path_has_file("elsewhere", file));
    assert_false(pnb__path_has_file(*state, "a/g"));
    assert_int_equal(pnb__make_dirs(file, &err), PNB_EXISTS);
    assert_non_null(strstr(err.text, "not a directory"));
    assert_int_not_equal(pnb__make_dirs(below_file, NULL), PNB_OK);
    assert_int_equal(pnb__make_dirs("", NULL), PNB_ARG);
    pnb__free(deep);
    pnb__free(file);
    pnb__free(below_file);
}

/* Of a name longer than any that can be opened: no such file, and no overrun. */
static void endless_names_are_absent(void **state)
{
    size_t longest = PATH_MAX - 2 - strlen(*state); /* with a '/' and the NUL: PATH_MAX */
    char name[PATH_MAX + 1];
    memset(name, '/', PATH_MAX); /* many '/' count as one: the folder itself */
    name[0] = '.';
    name[longest] = '\0';
    assert_true(pnb__path_has_dir(*state, name));
    name[longest] = '/';
    name[longest + 1] = '\0';
    assert_false(pnb__path_has_dir(*state, name) || pnb__path_has_file(*state, name));
    name[longest + 1] = '/';
    name[PATH_MAX] = '\0';
    assert_false(pnb__path_has_dir(*state, name) || pnb__path_has_file(*state, name));
}

static void what_opening_would_wait_for(void **state)
{
    char *pipe_path = pnb__path_join(*state, "pipe"), *file = pnb__path_join(*state, "file");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", (char *)*state);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(pnb__write_file(file, "x", 1, NULL), PNB_OK);
    assert_string_equal(pnb__path_special(pipe_path), "a pipe");
    assert_string_equal(pnb__path_special(address.sun_path), "a socket");
    assert_string_equal(pnb__path_special("/dev/null"), "a device");
    assert_null(pnb__path_special(file));
    assert_null(pnb__path_special(*state));
    assert_null(pnb__path_special("/nowhere"));
    close(fd);
    pnb__free(pipe_path);
    pnb__free(file);
}

static void directories_that_cannot_be_made(void **state)
{
    pnb_error err = PNB_ERROR_INIT;
    char *deep = pnb__path_join(*state, "a/b");
    assert_int_equal(pnb__make_dirs("", &err), PNB_ARG);
    assert_non_null(strstr(err.text, "is empty"));
    err.status = PNB_OK;
    assert_int_equal(pnb__make_dirs("/proc/none/b", &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "cannot make directory /proc/none"));
#ifdef PNB_FAULTS
    pnb__alloc_fail_after(0);
    assert_int_equal(pnb__make_dirs(deep, NULL), PNB_NOMEM);
    pnb__alloc_fail_after(-1);
    assert_false(pnb__path_is_dir(deep));
#endif
    pnb__free(deep);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_joined),      cmocka_unit_test(paths_are_split),
        IN_SCRATCH(directories_are_made),        IN_SCRATCH(endless_names_are_absent),
        IN_SCRATCH(what_opening_would_wait_for), IN_SCRATCH(directories_that_cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
