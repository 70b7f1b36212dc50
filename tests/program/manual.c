/* Help on a terminal and the markdown page, both from the rows of a table. */
#include "program/manual.h"

#include "tests/program/toy.h"

static void test_help(void **state)
{
    static const char opening[] = "toy paint: cover a wall\n"
                                  "\n"
                                  "Usage: toy paint --name WORD [OPTIONS] WORD...\n"
                                  "\n"
                                  "The first paragraph of two.\n"
                                  "\n"
                                  "The second.\n"
                                  "\n"
                                  "Options:\n"
                                  "  --name WORD                 What it's called (required)\n"
                                  "  --mode M                    How it goes: slow|fast [slow]\n"
                                  "\n"
                                  "Form:\n"
                                  "  -s, --size N                Its size [in metres]: round [3]\n"
                                  "  --wet                       Whether it is wet\n"
                                  "  --from A|B                  What is read\n"
                                  "  --out PATH                  What is written\n"
                                  "  --colours C...              Of which colours\n"
                                  "  WORD...                     What is said\n"
                                  "\n"
                                  "Common options:\n";
    (void)state;
    PRINTED(text, pnb__manual_help(out, "toy paint", &paint_command));
    expect_opening(text, opening);
    expect_in_order(text, "\n  -h, --help                  Show this text and exit\n",
                    "\n  --device NAME               What computes: ");
    assert_string_equal(strstr(text, "\nExamples:\n"),
                        "\nExamples:\n  toy paint --name a\n  toy paint --name b --wet\n");
    free(text);
}

/* A family lists what is below it; a command without options has the common ones only. */
static void test_help_of_families(void **state)
{
    (void)state;
    PRINTED(text, pnb__manual_help(out, "toy measure", &measure_command));
    assert_string_equal(text,
                        "toy measure: tell lengths\n\nUsage: toy measure COMMAND\n\nLengths.\n\n"
                        "Commands:\n  rough        by eye\n  exact        by rule\n");
    free(text);
    PRINTED(bare, pnb__manual_help(out, "toy measure rough", &rough_command));
    expect_opening(bare, "toy measure rough: by eye\n\nUsage: toy measure rough [OPTIONS]\n\n"
                         "Common options:\n");
    assert_null(strstr(bare, "Examples"));
    free(bare);
}

/* No line is wider than 96 columns, no word is cut or lost, and a long name has a line alone. */
static void test_wrapping(void **state)
{
    enum { N_WORDS = 60, LONG = 150 };
    char help[N_WORDS * 9 + LONG + 2] = "", word[LONG + 1];
    (void)state;
    for (int i = 0; i < N_WORDS; i++)
        snprintf(help + strlen(help), sizeof help - strlen(help), "w%0*d ", 1 + i % 6, i);
    memset(word, 'x', LONG);
    word[LONG] = '\0';
    strcat(help, word); /* cannot be broken: stands on a line of its own */
    const pnb__option rows[] = {PNB__ROW_TEXT("an-option-whose-name-is-long", 0, "X", NULL)};
    pnb__option row = rows[0];
    row.help = help;
    const pnb__command c = {
        .name = "c", .summary = "s", .about = help, .options = &row, .n_options = 1};
    PRINTED(text, pnb__manual_help(out, "toy c", &c));
    int n_seen = 0, n_alone = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        size_t n = strlen(line), indent = strspn(line, " ");
        assert_true(n <= 96 || n - indent == LONG);
        n_alone += strcmp(line, "  --an-option-whose-name-is-long X") == 0;
        for (char *at = line; (at = strchr(at, 'w')) != NULL; at++) {
            char want[16];
            int i = n_seen % N_WORDS, length = snprintf(want, sizeof want, "w%0*d", 1 + i % 6, i);
            bool is_first = at == line || at[-1] == ' ';
            n_seen += is_first && strncmp(at, want, (size_t)length) == 0;
        }
    }
    assert_int_equal(n_alone, 1);
    assert_int_equal(n_seen, 2 * N_WORDS);
    free(text);
}

static void test_program(void **state)
{
    (void)state;
    char opening[200];
    snprintf(opening, sizeof opening,
             "toy %s: paint and measure\n\nUsage: toy COMMAND [OPTIONS]\n\nCommands:\n"
             "  paint        cover a wall\n  measure      tell lengths\n  completion   ",
             pnb_version());
    PRINTED(text, pnb__manual_program(out, &toy));
    expect_opening(text, opening);
    expect_in_order(text, "'toy COMMAND --help'", "Exit status: 0 done, 1 failed");
    assert_null(strstr(text, "daub")); /* retired */
    free(text);
}

/* ---- the page ---- */

static void test_page(void **state)
{
    static const char opening[] =
        "<!-- Made by `penumbra manual paint`; edit the option table, not this page. -->\n"
        "# toy paint\n"
        "\n"
        "Cover a wall.\n"
        "\n"
        "    toy paint --name WORD [OPTIONS] WORD...\n"
        "\n"
        "The first paragraph of two.\n"
        "\n"
        "The second.\n"
        "\n"
        "```sh\n"
        "toy paint --name a\n"
        "toy paint --name b --wet\n"
        "```\n"
        "\n"
        "**Options**\n"
        "\n"
        "| option | meaning |\n"
        "|---|---|\n"
        "| `--name WORD` | What it's called (required) |\n"
        "| `--mode M` | How it goes: slow\\|fast [slow] |\n"
        "\n"
        "**Form**\n"
        "\n"
        "| option | meaning |\n"
        "|---|---|\n"
        "| `-s, --size N` | Its size [in metres]: round [3] |\n"
        "| `--wet` | Whether it is wet |\n"
        "| `--from A\\|B` | What is read |\n"
        "| `--out PATH` | What is written |\n"
        "| `--colours C...` | Of which colours |\n"
        "| `WORD...` | What is said |\n"
        "\n"
        "**Common options**\n"
        "\n"
        "| option | meaning |\n"
        "|---|---|\n";
    (void)state;
    PRINTED(text, pnb__manual_page(out, &toy, &paint_command));
    expect_opening(text, opening);
    const char *end = strstr(text, "\nExit status: ");
    assert_true(end != NULL && strchr(end + 1, '\n')[1] == '\0');
    for (const char *at = text; (at = strstr(at, "\n| ")) != NULL;) { /* every row has two cells */
        int n_bars = 0;
        for (at++; *at != '\n'; at++)
            n_bars += *at == '|' && at[-1] != '\\';
        assert_int_equal(n_bars, 3);
    }
    free(text);
}

static void test_page_of_families(void **state)
{
    static const pnb__command digits = {
        .name = "digits", .summary = "3 at a time", .run = run_nothing};
    static const pnb__command *const subs[] = {&digits, NULL};
    static const pnb__command family = {.name = "family", .summary = "all", .subs = subs};
    (void)state;
    PRINTED(text, pnb__manual_page(out, &toy, &measure_command));
    expect_opening(text, "<!-- Made by `penumbra manual measure`; edit the option table, not this "
                         "page. -->\n# toy measure\n\nTell lengths.\n\n    toy measure COMMAND\n\n"
                         "Lengths.\n\n\n## toy measure rough\n\nBy eye.\n\n"
                         "    toy measure rough [OPTIONS]\n\n\n"
                         "## toy measure exact\n\nBy rule.\n\n    toy measure exact [OPTIONS]\n\n"
                         "With a rule.\n\n\n**Common options**\n");
    free(text);
    PRINTED(other, pnb__manual_page(out, &toy, &family));
    assert_non_null(strstr(other, "## toy family digits\n\n3 at a time.\n"));
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),     cmocka_unit_test(test_help_of_families),
        cmocka_unit_test(test_wrapping), cmocka_unit_test(test_program),
        cmocka_unit_test(test_page),     cmocka_unit_test(test_page_of_families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
