/* Completion scripts: what each shell is told of every row, quoted as that shell reads it, and
 * nothing for a shell that is none of the three. That they run is seen in tests/cli/help.sh. */
#include "program/manual.h"

#include "tests/program/toy.h"

static char *script_for(const char *shell)
{
    PRINTED(text, assert_true(pnb__manual_completion(out, &toy, shell)));
    return text;
}

/* All of `lines` stand in the script as whole lines, in this order. */
static void expect_lines(const char *text, const char *const *lines, size_t n)
{
    const char *at = text;
    for (size_t i = 0; i < n; i++) {
        char line[400];
        snprintf(line, sizeof line, "\n%s\n", lines[i]);
        at = strstr(at, line);
        if (at == NULL)
            fail_msg("\"%s\" is not (or not behind the one before) in:\n%s", lines[i], text);
        at += strlen(lines[i]);
    }
}

/* The first case that fits is taken: values before names, members before their family. */
static void test_bash(void **state)
{
    static const char *const lines[] = {
        "_toy() {", "    'paint --mode') words='slow fast' ;;",
        "    'measure '*) words=' rough exact' ;;",
        "    *) words=' paint measure completion manual help --help --version' ;;",
        "complete -o filenames -F _toy toy"};
    (void)state;
    char *text = script_for("bash");
    expect_lines(text, lines, PNB_COUNT(lines));
    expect_in_order(text,
                    "'paint '*) words=' --name --mode --size --wet --from --out --colours --help",
                    " --seed --threads ");
    expect_in_order(text, "'measure exact '*) words=' --help", "'measure '*)");
    assert_null(strstr(text, "--words"));
    free(text);
}

static void test_zsh(void **state)
{
    static const char *const lines[] = {
        "_toy() {",
        "        'paint:cover a wall'",
        "        completion manual help",
        "        '--name=[What it'\\''s called]:value: '",
        "        '--mode=[How it goes]:value:(slow fast)'",
        "        '--size=[Its size \\[in metres\\]: round]:value: '",
        "        '--wet[Whether it is wet]'",
        "        '--from=[What is read]:path:_files'",
        "        '--out=[What is written]:path:_files'",
        "        '*--colours=[Of which colours]:value: '",
        "        'rough:by eye'",
        "        'exact:by rule'",
        "_toy \"$@\""};
    (void)state;
    char *text = script_for("zsh");
    assert_int_equal(strncmp(text, "#compdef toy\n", 13), 0);
    expect_lines(text, lines, PNB_COUNT(lines));
    assert_null(strstr(text, "What is said"));
    free(text);
}

static void test_fish(void **state)
{
    static const char *const lines[] = {
        "complete -c penumbra -f -n '__penumbra_at' -a paint -d 'cover a wall'",
        "complete -c penumbra -f -n '__penumbra_at' -a measure -d 'tell lengths'",
        "complete -c penumbra -f -n '__penumbra_at' -a 'completion manual help'",
        "complete -c penumbra -n 'not __penumbra_at' -l help -s h -d 'Show this text and exit'",
        "complete -c penumbra -n '__penumbra_in paint' -l name -x -d 'What it\\'s called'",
        "complete -c penumbra -n '__penumbra_in paint' -l mode -x -a 'slow fast' -d 'How it goes'",
        ("complete -c penumbra -n '__penumbra_in paint' -l size -s s -x "
         "-d 'Its size [in metres]: round'"),
        "complete -c penumbra -n '__penumbra_in paint' -l wet -d 'Whether it is wet'",
        "complete -c penumbra -n '__penumbra_in paint' -l from -r -F -d 'What is read'",
        "complete -c penumbra -f -n '__penumbra_at measure' -a rough -d 'by eye'"};
    (void)state;
    char *text = script_for("fish");
    expect_lines(text, lines, PNB_COUNT(lines));
    assert_null(strstr(text, "What is said"));
    free(text);
}

/* Texts with what the shells read specially, in a row and in a summary. */
static void test_quoting(void **state)
{
    static const pnb__option row[] = {PNB__ROW_FLAG("odd", 0, "a\\b 'c' [d]: e")};
    static const pnb__command odd = {
        .name = "odd", .summary = "it's: a\\b", .options = row, .n_options = 1};
    static const pnb__command *const list[] = {&odd, NULL};
    static const pnb__program program = {.name = "toy", .summary = "s", .commands = list};
    (void)state;
    PRINTED(zsh, pnb__manual_completion(out, &program, "zsh"));
    assert_non_null(strstr(zsh, "\n        'odd:it'\\''s\\: a\\\\b'\n"));
    assert_non_null(strstr(zsh, "\n        '--odd[a\\\\b '\\''c'\\'' \\[d\\]: e]'\n"));
    free(zsh);
    PRINTED(fish, pnb__manual_completion(out, &program, "fish"));
    assert_non_null(strstr(fish, " -a odd -d 'it\\'s: a\\\\b'\n"));
    assert_non_null(strstr(fish, " -l odd -d 'a\\\\b \\'c\\' [d]: e'\n"));
    free(fish);
}

static void test_other_shells(void **state)
{
    (void)state;
    PRINTED(text, assert_false(pnb__manual_completion(out, &toy, "tcsh")));
    assert_string_equal(text, "");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bash), cmocka_unit_test(test_zsh),
                                       cmocka_unit_test(test_fish), cmocka_unit_test(test_quoting),
                                       cmocka_unit_test(test_other_shells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
