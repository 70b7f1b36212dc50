/* Prints what the option tables know: help on a terminal and a markdown page. Manual pages in roff
 * are manual_roff.c, completion is manual_completion.c.
 *
 * All walk the same rows that options.c reads command lines with, so no text here can name
 * an option that does not exist or miss one that does. */
#include "program/manual.h"

#include <ctype.h>
#include <string.h>

#include "base/base.h"

enum { WIDTH = 96, INDENT = 30 };

const char pnb__manual_settings[] =
    "An option with one value can be set beforehand: as PENUMBRA_NAME in the environment "
    "(PENUMBRA_THREADS=4, PENUMBRA_BATCH_SIZE=16; flags take true or false), or as a line "
    "NAME = VALUE in $XDG_CONFIG_HOME/penumbra/config (~/.config/penumbra/config; PENUMBRA_CONFIG "
    "names another file). Lines below [COMMAND] are for that command alone, others for every "
    "command that has the option; # begins a comment.\n\n"
    "The command line wins over the environment, that over the file, that over the default; what "
    "is set so counts as given. A name that no command has is refused. A flag is taken back by "
    "--NAME=false. Neither place is read for anything secret.";

/* Words of `text` from column `column` on, wrapped, continuation lines indented by `indent`. */
static void print_wrapped(FILE *out, const char *text, size_t column, size_t indent)
{
    bool first = true;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (!first && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        fprintf(out, "%s%.*s", first ? "" : " ", (int)n, text);
        column += n + !first;
        first = false;
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* Paragraphs are separated by empty lines; single newlines inside one count as spaces. */
static void print_paragraphs(FILE *out, const char *text)
{
    while (text != NULL && *text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
        char line[4096];
        n = PNB_MIN(n, sizeof line - 1);
        for (size_t i = 0; i < n; i++)
            line[i] = text[i] == '\n' ? ' ' : text[i];
        line[n] = '\0';
        print_wrapped(out, line, 0, 0);
        fputc('\n', out);
        text = end != NULL ? end + 2 : NULL;
    }
}

/* "one sentence; one of a|b [default 5]", the part of a row common to help and manual. */
static void describe(const pnb__option *row, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s", row->help);
    if (row->choices != NULL && n < size)
        n += (size_t)snprintf(text + n, size - n, ": %s", row->choices);
    if (row->required && n < size)
        n += (size_t)snprintf(text + n, size - n, " (required)");
    if (row->fallback != NULL && n < size)
        snprintf(text + n, size - n, " [%s]", row->fallback);
}

static void head_of(const pnb__option *row, char *text, size_t size)
{
    const char *value = row->value != NULL ? row->value : "";
    const char *space = row->value != NULL ? " " : "";
    if (row->kind == PNB__OPT_REST)
        snprintf(text, size, "%s", value);
    else if (row->letter != 0)
        snprintf(text, size, "-%c, --%s%s%s", row->letter, row->name, space, value);
    else
        snprintf(text, size, "--%s%s%s", row->name, space, value);
}

static void help_rows(FILE *out, const pnb__option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char head[128], text[1024];
        if (rows[i].group != NULL || i == 0)
            fprintf(out, "%s%s:\n", i == 0 ? "" : "\n",
                    rows[i].group != NULL ? rows[i].group : "Options");
        head_of(&rows[i], head, sizeof head);
        describe(&rows[i], text, sizeof text);
        fprintf(out, "  %-*s", INDENT - 2, head);
        if (strlen(head) > INDENT - 4)
            fprintf(out, "\n%*s", INDENT, "");
        print_wrapped(out, text, INDENT, INDENT);
    }
}

static void print_usage(FILE *out, const char *full_name, const pnb__command *command)
{
    fprintf(out, "%s", full_name);
    if (command->subs != NULL) {
        fprintf(out, " COMMAND");
    } else {
        for (size_t i = 0; i < command->n_options; i++)
            if (command->options[i].required && command->options[i].kind != PNB__OPT_REST)
                fprintf(out, " --%s %s", command->options[i].name, command->options[i].value);
        fprintf(out, " [OPTIONS]");
        for (size_t i = 0; i < command->n_options; i++)
            if (command->options[i].kind == PNB__OPT_REST)
                fprintf(out, " %s", command->options[i].value);
    }
    fputc('\n', out);
}

static void list_commands(FILE *out, const pnb__command *const *list)
{
    for (; *list != NULL; list++)
        fprintf(out, "  %-12s %s\n", (*list)->name, (*list)->summary);
}

void pnb__manual_program(FILE *out, const pnb__program *program)
{
    fprintf(out, "%s %s: %s\n\nUsage: %s COMMAND [OPTIONS]\n\nCommands:\n", program->name,
            pnb_version(), program->summary, program->name);
    list_commands(out, program->commands);
    fprintf(out, "  %-12s %s\n  %-12s %s\n  %-12s %s\n", "completion",
            "print a completion script: completion bash|zsh|fish", "manual",
            "print the manual page of a command, or of all: manual [--roff]", "help",
            "show the help of a command");
    fprintf(out,
            "\n'%s COMMAND --help' tells more. Results go to standard output, everything else to\n"
            "standard error. Exit status: 0 done, 1 failed, 2 wrong usage, 3 finished but some\n"
            "inputs were skipped, 130 interrupted.\n\n",
            program->name);
    print_paragraphs(out, pnb__manual_settings);
}

static void print_examples(FILE *out, const char *examples, const char *indent)
{
    while (*examples != '\0') {
        size_t n = strcspn(examples, "\n");
        fprintf(out, "%s%.*s\n", indent, (int)n, examples);
        examples += n + (examples[n] == '\n');
    }
}

void pnb__manual_help(FILE *out, const char *full_name, const pnb__command *command)
{
    fprintf(out, "%s: %s\n\nUsage: ", full_name, command->summary);
    print_usage(out, full_name, command);
    fputc('\n', out);
    print_paragraphs(out, command->about);
    if (command->subs != NULL) {
        fprintf(out, "Commands:\n");
        list_commands(out, command->subs);
        return;
    }
    help_rows(out, command->options, command->n_options);
    fputs(command->n_options > 0 ? "\n" : "", out);
    help_rows(out, pnb__common_options, pnb__n_common_options);
    if (command->examples != NULL) {
        fprintf(out, "\nExamples:\n");
        print_examples(out, command->examples, "  ");
    }
}

/* ---- markdown ---- */

/* A table cell: the bar would end it, inside of backticks too, so it is escaped. */
static void print_cell(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void page_rows(FILE *out, const pnb__option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char head[128], text[1024];
        if (rows[i].group != NULL || i == 0)
            fprintf(out, "\n**%s**\n\n| option | meaning |\n|---|---|\n",
                    rows[i].group != NULL ? rows[i].group : "Options");
        head_of(&rows[i], head, sizeof head);
        describe(&rows[i], text, sizeof text);
        fprintf(out, "| `");
        print_cell(out, head);
        fprintf(out, "` | ");
        print_cell(out, text);
        fprintf(out, " |\n");
    }
}

static void page_section(FILE *out, const char *full_name, const pnb__command *command, int level)
{
    fprintf(out, "%.*s %s\n\n%c%s.\n\n", level, "####", full_name,
            toupper((unsigned char)command->summary[0]), command->summary + 1);
    fprintf(out, "    ");
    print_usage(out, full_name, command);
    fputc('\n', out);
    print_paragraphs(out, command->about);
    if (command->examples != NULL) {
        fprintf(out, "```sh\n");
        print_examples(out, command->examples, "");
        fprintf(out, "```\n");
    }
    if (command->n_options > 0)
        page_rows(out, command->options, command->n_options);
    for (const pnb__command *const *sub = command->subs; sub != NULL && *sub != NULL; sub++) {
        char name[128];
        snprintf(name, sizeof name, "%s %s", full_name, (*sub)->name);
        fputc('\n', out);
        page_section(out, name, *sub, level + 1);
    }
}

void pnb__manual_page(FILE *out, const pnb__program *program, const pnb__command *command)
{
    char name[128];
    snprintf(name, sizeof name, "%s %s", program->name, command->name);
    fprintf(out, "<!-- Made by `penumbra manual %s`; edit the option table, not this page. -->\n",
            command->name);
    page_section(out, name, command, 1);
    page_rows(out, pnb__common_options, pnb__n_common_options);
    fprintf(out, "\nExit status: 0 done, 1 failed, 2 wrong usage, 3 finished but some inputs were "
                 "skipped (listed), 130 interrupted.\n");
}
