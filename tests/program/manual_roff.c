/* Manual pages in roff: nothing in a text is a request or an escape; every row, and every command
 * with what is below it. That groff takes them is seen in tests/cli/help.sh. */
#include "program/manual.h"

#include "tests/program/toy.h"

static void test_command(void **state)
{
    (void)state;
    char opening[300];
    snprintf(opening, sizeof opening,
             ".\\\" Made from the option tables: penumbra manual --roff\n"
             ".TH TOY\\-PAINT 1 \"\" \"toy %s\" \"User Commands\"\n.ad l\n.SH NAME\n"
             "toy\\-paint \\- cover a wall\n.SH SYNOPSIS\n.B toy paint\n",
             pnb_version());
    PRINTED(text, pnb__manual_roff(out, &toy, &paint_command));
    expect_opening(text, opening);
    expect_opening(text + strlen(opening),
                   "\\fB\\-\\-name\\fR \\fIWORD\\fR\n[\\fIOPTIONS\\fR]\n\\fIWORD...\\fR\n"
                   ".SH DESCRIPTION\nThe first paragraph\nof two.\n.PP\nThe second.\n"
                   ".SH OPTIONS\n"
                   ".TP\n.B \\-\\-name \\fIWORD\\fR\nWhat it's called (required).\n"
                   ".TP\n.B \\-\\-mode \\fIM\\fR\nHow it goes: slow|fast [slow].\n"
                   ".SS Form\n"
                   ".TP\n.B \\-s, \\-\\-size \\fIN\\fR\nIts size [in metres]: round [3].\n"
                   ".TP\n.B \\-\\-wet\nWhether it is wet.\n");
    expect_in_order(text,
                    "\n.TP\n.I WORD...\nWhat is said.\n.SH EXAMPLES\n.EX\n"
                    "toy paint \\-\\-name a\ntoy paint \\-\\-name b \\-\\-wet\n.EE",
                    "\n.SS Common options\n.TP\n.B \\-h, \\-\\-help\nShow this text and exit.\n");
    expect_in_order(text, "\n.SH EXIT STATUS\n",
                    "\n.SH SEE ALSO\n.BR toy (1),\n"
                    ".BR toy\\-paint (1),\n.BR toy\\-measure (1)\n");
    free(text);
}

static void test_family(void **state)
{
    (void)state;
    PRINTED(text, pnb__manual_roff(out, &toy, &measure_command));
    expect_in_order(text, ".SH SYNOPSIS\n.B toy measure\n.I COMMAND\n.SH DESCRIPTION\nLengths.\n",
                    ".SH TOY MEASURE ROUGH\n.B toy measure rough\n[\\fIOPTIONS\\fR]\n.PP\nby eye\n"
                    ".SH TOY MEASURE EXACT\n.B toy measure exact\n[\\fIOPTIONS\\fR]\n.PP\n"
                    "With a rule.\n.SH COMMON OPTIONS\n");
    free(text);
    PRINTED(bare, pnb__manual_roff(out, &toy, &rough_command)); /* no words of its own */
    assert_non_null(strstr(bare, ".SH DESCRIPTION\nBy eye.\n"));
    free(bare);
}

static void test_program(void **state)
{
    (void)state;
    PRINTED(text, pnb__manual_roff(out, &toy, NULL));
    expect_in_order(text, "\n.TH TOY 1 \"\" \"toy ",
                    "\ntoy \\- paint and measure\n.SH SYNOPSIS\n.B toy\n"
                    ".I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n"
                    ".TP\n.BR toy\\-paint (1)\ncover a wall.\n"
                    ".TP\n.BR toy\\-measure (1)\ntell lengths.\n"
                    ".SH OPTIONS\n.SS Common options\n");
    assert_null(strstr(text, "daub"));
    free(text);
}

/* Requests begin a line, escapes begin with a backslash: neither comes from a text. */
static void test_escapes(void **state)
{
    static const pnb__command odd = {
        .name = "odd",
        .summary = "s",
        .about = ".so /etc/passwd\n'br\na\\fBb --c\n\n.PP\n\xC3\xA9\xF0\x9F\x90\xB1 a.b 'c'"};
    (void)state;
    PRINTED(text, pnb__manual_roff(out, &toy, &odd));
    assert_non_null(strstr(text, ".SH DESCRIPTION\n\\&.so /etc/passwd\n\\&'br\na\\efBb \\-\\-c\n"
                                 ".PP\n\\&.PP\n\\[u00E9]\\[u1F431] a.b 'c'\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command), cmocka_unit_test(test_family),
        cmocka_unit_test(test_program), cmocka_unit_test(test_escapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
