/* Options set beforehand: names and values from environment and file, weakest first, for the
 * commands they are for; what is refused, and where it stands. */
#include "program/settings.h"

#include "tests/program/toy.h"

static char *dir;

static int begin(void **state)
{
    (void)state;
    dir = scratch_create();
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_remove(dir);
    return 0;
}

/* The settings of `command` as "name=value@where" lines, with the folder left out of the places. */
static char *read_settings(const char *const *environment, const char *command)
{
    pnb__program program = toy;
    pnb__settings s;
    pnb__buf lines = {0};
    program.environment = environment;
    ASSERT_OK(pnb__settings_read(&program, command, &s, &err));
    pnb__buf_puts(&lines, "");
    for (size_t i = 0; i < s.n; i++) {
        const char *where = s.items[i].where;
        size_t n_dir = strlen(dir);
        where += strncmp(where, dir, n_dir) == 0 ? n_dir + 1 : 0;
        pnb__buf_printf(&lines, "%s=%s@%s\n", s.items[i].name, s.items[i].value, where);
    }
    pnb__settings_free(&s);
    assert_true(s.items == NULL && s.n == 0);
    return lines.data;
}

static void expect(const char *const *environment, const char *command, const char *want)
{
    char *got = read_settings(environment, command);
    assert_string_equal(got, want);
    pnb__free(got);
}
#define ENVIRONMENT(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_environment(void **state)
{
    (void)state;
    expect(NULL, "paint", "");
    expect(ENVIRONMENT("PENUMBRA_SIZE=4", "PATH=/bin", "PENUMBRA_Max_Image-Pixels=a=b",
                       "PENUMBRA_SEED=", "PENUMBRA", "XPENUMBRA_WET=1"),
           "paint", "size=4@PENUMBRA_SIZE\nmax-image-pixels=a=b@PENUMBRA_Max_Image-Pixels\n");
    expect(ENVIRONMENT("PENUMBRA_WET=true"), "measure rough", "wet=true@PENUMBRA_WET\n");
}

/* Lines above the sections, then those of the command, its family or an older word of it, then the
 * environment. */
static void test_file(void **state)
{
    (void)state;
    put_text(dir, "config",
             "# mine\r\n"
             "  Size = 1  \n"
             "\n"
             "[ paint ]\n"
             "size=2\n"
             "name = a = b\n"
             "[measure]\n"
             "seed=3\n"
             "[measure exact]\n"
             "seed=4\n"
             "[daub]\n"
             "batch_invariant =\ttrue");
    char *config = pnb__format("PENUMBRA_CONFIG=%s/config", dir);
    expect(ENVIRONMENT("PENUMBRA_SIZE=9", config), "paint",
           "size=1@config:2\nsize=2@config:5\nname=a = b@config:6\n"
           "batch-invariant=true@config:12\nsize=9@PENUMBRA_SIZE\n");
    expect(ENVIRONMENT(config), "measure exact",
           "size=1@config:2\nseed=3@config:8\nseed=4@config:10\n");
    expect(ENVIRONMENT(config), "measure rough", "size=1@config:2\nseed=3@config:8\n");
    expect(ENVIRONMENT(config), "daub", "size=1@config:2\nbatch-invariant=true@config:12\n");
    pnb__free(config);
}

/* PENUMBRA_CONFIG, then XDG_CONFIG_HOME, then HOME; only the first has to be there. */
static void test_places(void **state)
{
    (void)state;
    char *named = pnb__format("PENUMBRA_CONFIG=%s/named", dir);
    char *base = pnb__format("XDG_CONFIG_HOME=%s/xdg", dir), *home = pnb__format("HOME=%s", dir);
    put_text(dir, "named", "size=1\n");
    put_text(dir, ".config/penumbra/config", "size=3\n");
    expect(ENVIRONMENT(base, home), "paint", ""); /* XDG's has none: HOME's is not asked */
    put_text(dir, "xdg/penumbra/config", "size=2\n");
    expect(ENVIRONMENT(home, base, named), "paint", "size=1@named:1\n");
    expect(ENVIRONMENT(home, base), "paint", "size=2@xdg/penumbra/config:1\n");
    expect(ENVIRONMENT(home, "XDG_CONFIG_HOME="), "paint", "size=3@.config/penumbra/config:1\n");
    pnb__free(named);
    pnb__free(base);
    pnb__free(home);
}

/* ---- refused ---- */

static void refuse(const char *const *environment, pnb_status status, const char *words)
{
    pnb__program program = toy;
    pnb__settings s;
    pnb_error err = PNB_ERROR_INIT;
    program.environment = environment;
    assert_int_equal(pnb__settings_read(&program, "measure rough", &s, &err), status);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    pnb__settings_free(&s);
}

static void test_unknown_variables(void **state)
{
    (void)state;
    refuse(ENVIRONMENT("PENUMBRA_SISE=1"), PNB_ARG,
           "PENUMBRA_SISE: no command has an option --sise");
    refuse(ENVIRONMENT("PENUMBRA_HELP=true"), PNB_ARG, "--help"); /* is no setting */
    refuse(ENVIRONMENT("PENUMBRA_=1"), PNB_ARG, "no command has an option --");
    refuse(ENVIRONMENT("PENUMBRA_WORDS=1"), PNB_ARG, "--words"); /* what is left over has no name */
    char name[200];
    snprintf(name, sizeof name, "PENUMBRA_%0150d=1", 0);
    refuse(ENVIRONMENT(name), PNB_ARG, "no command has an option --000");
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {{"size=1\n\nsise = 2\n", "config:3: no command has an option --sise"},
                 {"[paint]\nsise=1\n", "config:2: no command has an option --sise"},
                 {"size\n", "config:1: 'size' is no setting; NAME = VALUE is wanted"},
                 {"[paint\n", "config:1: '[paint' is no section; [COMMAND] is wanted"},
                 {"[\n", "'[' is no section"},
                 {"[sing]\n", "config:1: there is no command 'sing'"},
                 {"[measure ruff]\n", "there is no command 'measure ruff'"},
                 {"[paint rough]\n", "there is no command 'paint rough'"},
                 {"[measure ]x]\n", "there is no command 'measure ]x'"},
                 {"[]\n", "there is no command ''"}};
    (void)state;
    char *config = pnb__format("PENUMBRA_CONFIG=%s/config", dir);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) { /* also lines that are for other commands */
        put_text(dir, "config", cases[i].text);
        refuse(ENVIRONMENT(config), PNB_ARG, cases[i].words);
    }
    put_file(dir, "config", "size=1\0\n", 8);
    refuse(ENVIRONMENT(config), PNB_ARG, "config: it holds a NUL byte; text is wanted");
    char *nowhere = pnb__format("PENUMBRA_CONFIG=%s/nowhere", dir);
    refuse(ENVIRONMENT(nowhere), PNB_NOT_FOUND, "nowhere");
    pnb__free(nowhere);
    pnb__free(config);
}

#ifdef PNB_FAULTS
static void test_no_memory(void **state)
{
    (void)state;
    pnb__program program = toy;
    put_text(dir, "config", "size=1\n");
    char *config = pnb__format("PENUMBRA_CONFIG=%s/config", dir);
    const char *const environment[] = {config, "PENUMBRA_SEED=1", NULL};
    program.environment = environment;
    for (long n = 0;; n++) {
        pnb__settings s;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__settings_read(&program, "paint", &s, NULL);
        pnb__alloc_fail_after(-1);
        size_t n_read = s.n;
        pnb__settings_free(&s);
        if (status == PNB_OK) {
            assert_true(n > 4 && n_read == 2);
            break;
        }
        assert_int_equal(status, PNB_NOMEM);
    }
    pnb__free(config);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_environment, begin, end),
        cmocka_unit_test_setup_teardown(test_file, begin, end),
        cmocka_unit_test_setup_teardown(test_places, begin, end),
        cmocka_unit_test_setup_teardown(test_unknown_variables, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_files, begin, end),
#ifdef PNB_FAULTS
        cmocka_unit_test_setup_teardown(test_no_memory, begin, end),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
