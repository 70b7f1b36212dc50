/* Names of outputs before the work begins: endings, folders, what is read, what would be written
 * twice, and names that are no files. */
#include "program/outputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/program/toy.h"

typedef struct made_args {
    const char *table, *any, *folder, *either, *from;
    pnb__text_list inputs, words;
} made_args;

#define AT(field) PNB__FIELD(made_args, field)
static const pnb__option rows[] = {
    PNB__ROW_FILE("table", AT(table), "PATH", "", .writes = ".csv|.JSON"),
    PNB__ROW_FILE("any", AT(any), "PATH", "", .writes = "*"),
    PNB__ROW_FILE("folder", AT(folder), "DIR", "", .writes = "/"),
    PNB__ROW_FILE("either", AT(either), "PATH", "", .writes = ".csv|/"),
    PNB__ROW_FILE("from", AT(from), "PATH", ""),
    PNB__ROW_FILES("inputs", AT(inputs), "PATH...", ""),
    PNB__ROW_REST("words", AT(words), "WORD...", "")};
#undef AT

static char *home, *before;

/* Names are relative to a folder of the test's own. */
static int begin(void **state)
{
    (void)state;
    before = getcwd(NULL, 0);
    home = scratch_create();
    return before == NULL || chdir(home) != 0;
}

static int end(void **state)
{
    (void)state;
    int failed = chdir(before);
    free(before);
    scratch_remove(home);
    return failed;
}

static pnb__app app;

static pnb_status check(const made_args *args)
{
    made_args copy = *args;
    const pnb__opt_set set = {.rows = rows, .n = PNB_COUNT(rows), .args = &copy};
    app = (pnb__app){0};
    return pnb__outputs_check(&app, &set, 1);
}

#define ACCEPTED(...)                                                                              \
    do {                                                                                           \
        if (check(&(made_args){__VA_ARGS__}) != PNB_OK)                                            \
            fail_msg("%s", app.err.text);                                                          \
    } while (0)
#define REFUSED(STATUS, WORDS, ...)                                                                \
    do {                                                                                           \
        assert_int_equal(check(&(made_args){__VA_ARGS__}), STATUS);                                \
        if (strstr(app.err.text, WORDS) == NULL)                                                   \
            fail_msg("\"%s\" does not say \"%s\"", app.err.text, WORDS);                           \
    } while (0)

static void test_files(void **state)
{
    (void)state;
    put_text(home, "f/there.csv", "x");
    ACCEPTED(.table = NULL);
    ACCEPTED(.table = "new.csv");
    ACCEPTED(.table = "f/there.csv"); /* is written over */
    ACCEPTED(.table = "f/new.Json");  /* endings in any case */
    ACCEPTED(.any = "f/new");
    REFUSED(PNB_ARG, "--table f/new.txt: the name must end in one of .csv|.JSON",
            .table = "f/new.txt");
    REFUSED(PNB_ARG, "must end in one of", .table = ".csv"); /* an ending alone is no name */
    REFUSED(PNB_ARG, "--any f: is a folder; a file is wanted", .any = "f");
    REFUSED(PNB_NOT_FOUND, "--table no/new.csv: there is no folder no to write it to",
            .table = "no/new.csv");
    REFUSED(PNB_NOT_FOUND, "--any f/there.csv/new: f/there.csv is not a folder",
            .any = "f/there.csv/new");
    ACCEPTED(.table = "no/{dataset}/new.csv"); /* filled in later */
}

static void test_folders(void **state)
{
    (void)state;
    put_text(home, "f/there.csv", "x");
    ACCEPTED(.folder = "f");
    ACCEPTED(.folder = "f/new/below/new");
    ACCEPTED(.folder = "new");
    REFUSED(PNB_ARG, "--folder f/there.csv: is a file; a folder is wanted",
            .folder = "f/there.csv");
    REFUSED(PNB_NOT_FOUND, "--folder f/there.csv/new: f/there.csv is not a folder",
            .folder = "f/there.csv/new");
    ACCEPTED(.either = "f");
    ACCEPTED(.either = "new.csv");
    REFUSED(PNB_ARG, "must end in one of .csv|/", .either = "new");
}

static void test_rights(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* may write everywhere */
    put_text(home, "closed/in.csv", "x");
    assert_int_equal(chmod("closed", 0500), 0);
    REFUSED(PNB_IO, "--table closed/new.csv: cannot write to the folder closed",
            .table = "closed/new.csv");
    REFUSED(PNB_IO, "--folder closed/new: cannot write to the folder closed",
            .folder = "closed/new");
    assert_int_equal(chmod("closed", 0700), 0);
}

/* Not over what is read, by whatever name it is read. */
static void test_inputs(void **state)
{
    const char *several[] = {"other.csv", "./f/../f/in.csv"}, *one[] = {"f/in.csv"};
    (void)state;
    put_text(home, "f/in.csv", "x");
    put_text(home, "other.csv", "x");
    assert_int_equal(symlink("f/in.csv", "link.csv"), 0);
    REFUSED(PNB_ARG, "--table f/in.csv: is the file that --from reads; name another one",
            .table = "f/in.csv", .from = "link.csv");
    assert_true(app.usage);
    REFUSED(PNB_ARG, "is the file that --inputs reads", .any = "f/in.csv", .inputs = {several, 2});
    REFUSED(PNB_ARG, "is the file that words reads", .any = "link.csv", .words = {one, 1});
    ACCEPTED(.table = "other.csv", .from = "f/in.csv");
    ACCEPTED(.table = "new.csv", .from = "new.csv"); /* is not there: nothing is lost */
    ACCEPTED(.folder = "f", .from = "f/in.csv");
}

static void test_pairs(void **state)
{
    (void)state;
    put_text(home, "f/there.csv", "x");
    REFUSED(PNB_ARG,
            "f/./new.csv would be written twice: --table and --any would write the same file",
            .table = "f/new.csv", .any = "f/./new.csv");
    assert_true(app.usage);
    assert_int_equal(link("f/there.csv", "hard.csv"), 0);
    REFUSED(PNB_ARG, "would be written twice", .table = "f/there.csv", .any = "hard.csv");
    ACCEPTED(.table = "f/new.csv", .any = "f/other.csv");
    ACCEPTED(.table = "f/new.csv", .any = "new.csv");
    ACCEPTED(.table = "-", .any = "/dev/null"); /* no files */
    ACCEPTED(.table = "/dev/null", .any = "/dev/null");
}

static void test_streams(void **state)
{
    (void)state;
    assert_true(pnb__is_stdout("-") && pnb__is_stdout("/dev/stdout"));
    assert_true(pnb__is_stdout("/dev/fd/1"));
    assert_false(pnb__is_stdout("") || pnb__is_stdout("./-") || pnb__is_stdout("/dev/fd/9999"));
    int fds[2];
    char name[40];
    assert_int_equal(pipe(fds), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", fds[1]);
    assert_false(pnb__is_stdout(name));
    ACCEPTED(.table = name); /* a pipe has no ending */
    close(fds[0]);
    close(fds[1]);
}

static void test_same_file(void **state)
{
    (void)state;
    put_text(home, "a", "x");
    put_text(home, "d/b", "x");
    assert_int_equal(symlink("d", "to_d"), 0);
    assert_true(pnb__is_same_file("a", "./a") && pnb__is_same_file("to_d/b", "d/b"));
    assert_true(pnb__is_same_file("to_d/new", "d/new")); /* both to be made */
    assert_false(pnb__is_same_file("a", "d/b") || pnb__is_same_file("a", "new"));
    assert_false(pnb__is_same_file("new", "d/new") || pnb__is_same_file("no/x", "no/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_files, begin, end),
                                       cmocka_unit_test_setup_teardown(test_folders, begin, end),
                                       cmocka_unit_test_setup_teardown(test_rights, begin, end),
                                       cmocka_unit_test_setup_teardown(test_inputs, begin, end),
                                       cmocka_unit_test_setup_teardown(test_pairs, begin, end),
                                       cmocka_unit_test_setup_teardown(test_streams, begin, end),
                                       cmocka_unit_test_setup_teardown(test_same_file, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
