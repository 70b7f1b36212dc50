/* Completion scripts for bash, zsh and fish, written from the option tables.
 *
 * bash gets words by the path of commands typed so far; zsh and fish also get the sentence of each
 * option. In all three a choice completes to its values and everything else to files. */
#include <string.h>

#include "base/base.h"
#include "program/manual.h"

/* ---- bash ---- */

static void completion_words(FILE *out, const pnb__option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind != PNB__OPT_REST)
            fprintf(out, " --%s", rows[i].name);
}

static void completion_values(FILE *out, const char *path, const pnb__option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind != PNB__OPT_CHOICE)
            continue;
        fprintf(out, "    '%s --%s') words='", path, rows[i].name);
        for (const char *c = rows[i].choices; *c != '\0'; c++)
            fputc(*c == '|' ? ' ' : *c, out);
        fprintf(out, "' ;;\n");
    }
}

static void completion_command(FILE *out, const char *path, const pnb__command *command)
{
    if (command->subs == NULL) {
        completion_values(out, path, command->options, command->n_options);
        completion_values(out, path, pnb__common_options, pnb__n_common_options);
        fprintf(out, "    '%s '*) words='", path);
        completion_words(out, command->options, command->n_options);
        completion_words(out, pnb__common_options, pnb__n_common_options);
        fprintf(out, "' ;;\n");
        return;
    }
    for (const pnb__command *const *sub = command->subs; *sub != NULL; sub++) {
        char name[128];
        snprintf(name, sizeof name, "%s %s", path, (*sub)->name);
        completion_command(out, name, *sub);
    }
    fprintf(out, "    '%s '*) words='", path);
    for (const pnb__command *const *sub = command->subs; *sub != NULL; sub++)
        fprintf(out, " %s", (*sub)->name);
    fprintf(out, "' ;;\n");
}

static void put_bash(FILE *out, const pnb__program *program)
{
    fprintf(out,
            "# bash completion of %s: source <(%s completion bash)\n"
            "_%s() {\n"
            "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
            "  local i path='' words=''\n"
            "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
            "    [[ ${COMP_WORDS[i]} == -* ]] && break\n"
            "    path+=\"${COMP_WORDS[i]} \"\n"
            "  done\n"
            "  [[ $before == --* ]] || before=''\n"
            "  case \"$path$before\" in\n",
            program->name, program->name, program->name);
    for (const pnb__command *const *c = program->commands; *c != NULL; c++)
        completion_command(out, (*c)->name, *c);
    fprintf(out, "    *) words='");
    for (const pnb__command *const *c = program->commands; *c != NULL; c++)
        fprintf(out, " %s", (*c)->name);
    fprintf(out,
            " completion manual help --help --version' ;;\n"
            "  esac\n"
            "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
            "  [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
            "}\n"
            "complete -o filenames -F _%s %s\n",
            program->name, program->name);
}

/* Visits every command that is no family, with its words. */
typedef void each_command(FILE *out, const char *path, const pnb__command *command);

static void walk(FILE *out, const char *path, const pnb__command *command, each_command *visit)
{
    char name[128];
    visit(out, path, command);
    for (const pnb__command *const *sub = command->subs; sub != NULL && *sub != NULL; sub++) {
        snprintf(name, sizeof name, "%s %s", path, (*sub)->name);
        walk(out, name, *sub, visit);
    }
}

static const char builtins[] = "completion manual help";

/* ---- zsh ---- */

/* Inside single quotes; ':' ends a field of _describe and brackets one of _arguments. */
static void zsh_text(FILE *out, const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\'", out);
        else if (strchr(special, *text) != NULL)
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void zsh_row(FILE *out, const pnb__option *row)
{
    bool is_list = row->kind == PNB__OPT_LIST || row->kind == PNB__OPT_FILES;
    if (row->kind == PNB__OPT_REST)
        return;
    fprintf(out, "        '%s--%s%s[", is_list ? "*" : "", row->name,
            row->kind != PNB__OPT_FLAG ? "=" : "");
    zsh_text(out, row->help, "[]\\");
    fputs("]", out);
    if (row->kind == PNB__OPT_CHOICE) {
        fputs(":value:(", out);
        for (const char *c = row->choices; *c != '\0'; c++)
            fputc(*c == '|' ? ' ' : *c, out);
        fputs(")", out);
    } else if (row->kind == PNB__OPT_FILE || row->kind == PNB__OPT_FILES) {
        fputs(":path:_files", out);
    } else if (row->kind != PNB__OPT_FLAG) {
        fputs(":value: ", out);
    }
    fputs("'\n", out);
}

static void zsh_command(FILE *out, const char *path, const pnb__command *c)
{
    fprintf(out, "    '%s%s')\n", path, c->subs != NULL ? " " : " '*'");
    if (c->subs != NULL) {
        fputs("      words_of=(\n", out);
        for (const pnb__command *const *sub = c->subs; *sub != NULL; sub++) {
            fprintf(out, "        '%s:", (*sub)->name);
            zsh_text(out, (*sub)->summary, ":\\");
            fputs("'\n", out);
        }
        fputs("      )\n      _describe command words_of ;;\n", out);
        return;
    }
    fputs("      options_of=(\n", out);
    for (size_t i = 0; i < c->n_options; i++)
        zsh_row(out, &c->options[i]);
    fputs("      )\n      _arguments \"$common[@]\" \"$options_of[@]\" '*:file:_files' ;;\n", out);
}

static void put_zsh(FILE *out, const pnb__program *program)
{
    fprintf(out,
            "#compdef %s\n# zsh completion of %s: a file _%s in a folder of $fpath\n_%s() {\n"
            "  local word at=''\n  local -a common options_of words_of\n  local -i i\n"
            "  for ((i = 2; i < CURRENT; i++)); do\n"
            "    [[ ${words[i]} == -* ]] && break\n"
            "    at+=\"${words[i]} \"\n  done\n  common=(\n",
            program->name, program->name, program->name, program->name);
    for (size_t i = 0; i < pnb__n_common_options; i++)
        zsh_row(out, &pnb__common_options[i]);
    fputs("  )\n  case $at in\n    '')\n      words_of=(\n", out);
    for (const pnb__command *const *c = program->commands; *c != NULL; c++) {
        fprintf(out, "        '%s:", (*c)->name);
        zsh_text(out, (*c)->summary, ":\\");
        fputs("'\n", out);
    }
    fprintf(out, "        %s\n      )\n      _describe command words_of ;;\n", builtins);
    for (const pnb__command *const *c = program->commands; *c != NULL; c++)
        walk(out, (*c)->name, *c, zsh_command);
    fprintf(out, "  esac\n}\n_%s \"$@\"\n", program->name);
}

/* ---- fish ---- */

static void fish_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void fish_rows(FILE *out, const char *condition, const pnb__option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const pnb__option *row = &rows[i];
        if (row->kind == PNB__OPT_REST)
            continue;
        fprintf(out, "complete -c penumbra -n '%s' -l %s", condition, row->name);
        if (row->letter != 0)
            fprintf(out, " -s %c", row->letter);
        if (row->kind == PNB__OPT_CHOICE) {
            fputs(" -x -a '", out);
            for (const char *c = row->choices; *c != '\0'; c++)
                fputc(*c == '|' ? ' ' : *c, out);
            fputs("'", out);
        } else if (row->kind == PNB__OPT_FILE || row->kind == PNB__OPT_FILES) {
            fputs(" -r -F", out);
        } else if (row->kind != PNB__OPT_FLAG) {
            fputs(" -x", out);
        }
        fputs(" -d '", out);
        fish_text(out, row->help);
        fputs("'\n", out);
    }
}

static void fish_command(FILE *out, const char *path, const pnb__command *c)
{
    char condition[192];
    for (const pnb__command *const *sub = c->subs; sub != NULL && *sub != NULL; sub++) {
        fprintf(out, "complete -c penumbra -f -n '__penumbra_at %s' -a %s -d '", path,
                (*sub)->name);
        fish_text(out, (*sub)->summary);
        fputs("'\n", out);
    }
    snprintf(condition, sizeof condition, "__penumbra_in %s", path);
    fish_rows(out, condition, c->options, c->n_options);
}

static void put_fish(FILE *out, const pnb__program *program)
{
    fputs("# fish completion of penumbra: penumbra completion fish | source\n"
          "function __penumbra_typed\n"
          "    set -l words (commandline -opc)\n"
          "    for word in $words[2..-1]\n"
          "        string match -q -- '-*' $word; and break\n"
          "        echo $word\n"
          "    end\n"
          "end\n"
          "function __penumbra_at\n"
          "    set -l typed (__penumbra_typed)\n"
          "    test \"$typed\" = \"$argv\"\n"
          "end\n"
          "function __penumbra_in\n"
          "    set -l typed (__penumbra_typed)\n"
          "    set -l n (count $argv)\n"
          "    test (count $typed) -ge $n; and test \"$typed[1..$n]\" = \"$argv\"\n"
          "end\n",
          out);
    for (const pnb__command *const *c = program->commands; *c != NULL; c++) {
        fprintf(out, "complete -c penumbra -f -n '__penumbra_at' -a %s -d '", (*c)->name);
        fish_text(out, (*c)->summary);
        fputs("'\n", out);
    }
    fprintf(out, "complete -c penumbra -f -n '__penumbra_at' -a '%s'\n", builtins);
    fish_rows(out, "not __penumbra_at", pnb__common_options, pnb__n_common_options);
    for (const pnb__command *const *c = program->commands; *c != NULL; c++)
        walk(out, (*c)->name, *c, fish_command);
}

bool pnb__manual_completion(FILE *out, const pnb__program *program, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        put_bash(out, program);
    else if (strcmp(shell, "zsh") == 0)
        put_zsh(out, program);
    else if (strcmp(shell, "fish") == 0)
        put_fish(out, program);
    else
        return false;
    return true;
}
