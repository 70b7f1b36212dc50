/* Manual pages in roff's man macros, from the same option tables as --help: penumbra(1), and one
 * page a command with all that is below it.
 *
 * Text is escaped so that nothing in it is a request or an escape; hyphens of options are minus
 * signs, which readers can copy. Anything beyond ASCII is written as \[uXXXX]. */
#include <ctype.h>
#include <string.h>

#include "base/base.h"
#include "program/manual.h"

static void put(FILE *out, const char *text, size_t n)
{
    bool at_start = true;
    for (size_t i = 0; i < n;) {
        uint32_t code = 0;
        size_t length = pnb__utf8_decode(text + i, n - i, &code);
        if (at_start && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        at_start = text[i] == '\n';
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if (length > 1)
            fprintf(out, "\\[u%04X]", (unsigned)code);
        else
            fputc(text[i], out);
        i += PNB_MAX(length, (size_t)1);
    }
}

static void put_text(FILE *out, const char *text)
{
    put(out, text, strlen(text));
}

/* Paragraphs are separated by empty lines; single newlines count as spaces. */
static void put_paragraphs(FILE *out, const char *text)
{
    bool first = true;
    while (text != NULL && *text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
        if (!first)
            fputs(".PP\n", out);
        put(out, text, n);
        fputc('\n', out);
        text = end != NULL ? end + 2 : NULL;
        first = false;
    }
}

static void put_head(FILE *out, const pnb__option *row)
{
    fputs(".TP\n", out);
    if (row->kind == PNB__OPT_REST) {
        fputs(".I ", out);
        put_text(out, row->value);
        fputc('\n', out);
        return;
    }
    fputs(".B ", out);
    if (row->letter != 0)
        fprintf(out, "\\-%c, ", row->letter);
    fputs("\\-\\-", out);
    put_text(out, row->name);
    if (row->value != NULL) {
        fputs(" \\fI", out);
        put_text(out, row->value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
}

static void put_rows(FILE *out, const pnb__option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].group != NULL) {
            fputs(".SS ", out);
            put_text(out, rows[i].group);
            fputc('\n', out);
        }
        put_head(out, &rows[i]);
        put_text(out, rows[i].help);
        if (rows[i].choices != NULL) {
            fputs(": ", out);
            put_text(out, rows[i].choices);
        }
        fputs(rows[i].required ? " (required)" : "", out);
        if (rows[i].fallback != NULL) {
            fputs(" [", out);
            put_text(out, rows[i].fallback);
            fputs("]", out);
        }
        fputs(".\n", out);
    }
}

static void put_synopsis(FILE *out, const char *full_name, const pnb__command *c)
{
    fputs(".B ", out);
    put_text(out, full_name);
    fputc('\n', out);
    if (c->subs != NULL) {
        fputs(".I COMMAND\n", out);
        return;
    }
    for (size_t i = 0; i < c->n_options; i++)
        if (c->options[i].required && c->options[i].kind != PNB__OPT_REST) {
            fputs("\\fB\\-\\-", out);
            put_text(out, c->options[i].name);
            fputs("\\fR \\fI", out);
            put_text(out, c->options[i].value);
            fputs("\\fR\n", out);
        }
    fputs("[\\fIOPTIONS\\fR]\n", out);
    for (size_t i = 0; i < c->n_options; i++)
        if (c->options[i].kind == PNB__OPT_REST) {
            fputs("\\fI", out);
            put_text(out, c->options[i].value);
            fputs("\\fR\n", out);
        }
}

static void put_examples(FILE *out, const char *examples)
{
    fputs(".SH EXAMPLES\n.EX\n", out);
    put_text(out, examples);
    fputs("\n.EE\n", out);
}

static void put_sections(FILE *out, const char *full_name, const pnb__command *c)
{
    fputs(".SH SYNOPSIS\n", out);
    put_synopsis(out, full_name, c);
    fputs(".SH DESCRIPTION\n", out);
    if (c->about != NULL)
        put_paragraphs(out, c->about);
    else
        fprintf(out, "%c%s.\n", toupper((unsigned char)c->summary[0]), c->summary + 1);
    if (c->n_options > 0) {
        fputs(".SH OPTIONS\n", out);
        put_rows(out, c->options, c->n_options);
    }
    if (c->examples != NULL)
        put_examples(out, c->examples);
    for (const pnb__command *const *sub = c->subs; sub != NULL && *sub != NULL; sub++) {
        char name[128];
        snprintf(name, sizeof name, "%s %s", full_name, (*sub)->name);
        fputs(".SH ", out);
        for (const char *p = name; *p != '\0'; p++)
            fputc(toupper((unsigned char)*p), out);
        fputc('\n', out);
        put_synopsis(out, name, *sub);
        fputs(".PP\n", out);
        put_paragraphs(out, (*sub)->about != NULL ? (*sub)->about : (*sub)->summary);
        put_rows(out, (*sub)->options, (*sub)->n_options);
        if ((*sub)->examples != NULL) {
            fputs(".PP\n.EX\n", out);
            put_text(out, (*sub)->examples);
            fputs("\n.EE\n", out);
        }
    }
}

static void put_end(FILE *out, const pnb__program *program)
{
    fputs(".SH ENVIRONMENT AND FILES\n", out);
    put_paragraphs(out, pnb__manual_settings);
    fputs(
        ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 finished but some inputs were skipped "
        "and listed, 130 interrupted.\n.SH SEE ALSO\n",
        out);
    fprintf(out, ".BR %s (1)", program->name);
    for (const pnb__command *const *c = program->commands; *c != NULL; c++)
        fprintf(out, ",\n.BR %s\\-%s (1)", program->name, (*c)->name);
    fputc('\n', out);
}

static void put_title(FILE *out, const pnb__program *program, const char *command)
{
    fputs(".\\\" Made from the option tables: penumbra manual --roff\n.TH ", out);
    for (const char *p = program->name; *p != '\0'; p++)
        fputc(toupper((unsigned char)*p), out);
    fputs(command != NULL ? "\\-" : "", out);
    for (const char *p = command; p != NULL && *p != '\0'; p++)
        fputc(toupper((unsigned char)*p), out);
    fprintf(out, " 1 \"\" \"%s %s\" \"User Commands\"\n.ad l\n.SH NAME\n", program->name,
            pnb_version());
}

void pnb__manual_roff(FILE *out, const pnb__program *program, const pnb__command *command)
{
    char name[128];
    put_title(out, program, command != NULL ? command->name : NULL);
    if (command != NULL) {
        snprintf(name, sizeof name, "%s %s", program->name, command->name);
        fprintf(out, "%s\\-%s \\- ", program->name, command->name);
        put_text(out, command->summary);
        fputc('\n', out);
        put_sections(out, name, command);
        if (command->subs != NULL)
            fputs(".SH COMMON OPTIONS\n", out);
        put_rows(out, pnb__common_options, pnb__n_common_options);
    } else {
        fprintf(out, "%s \\- ", program->name);
        put_text(out, program->summary);
        fprintf(out, "\n.SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n",
                program->name);
        for (const pnb__command *const *c = program->commands; *c != NULL; c++) {
            fprintf(out, ".TP\n.BR %s\\-%s (1)\n", program->name, (*c)->name);
            put_text(out, (*c)->summary);
            fputs(".\n", out);
        }
        fputs(".SH OPTIONS\n", out);
        put_rows(out, pnb__common_options, pnb__n_common_options);
    }
    put_end(out, program);
}
