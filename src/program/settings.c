/* The environment and the config file as a list of options, weakest first.
 *
 * A name is an option of some command or it is refused: a setting that nothing reads would be
 * believed to work. Options that take several words stay on the command line, for a line of a file
 * has no words. Nothing secret is read from either: the program has no such option. */
#include "program/settings.h"

#include <ctype.h>
#include <string.h>

#include "base/base.h"

static const char prefix[] = "PENUMBRA_";
enum { MAX_NAME = 64, MAX_SECTION = 64, MAX_CONFIG = 1 << 20 };

/* ---- which options there are ---- */

static const pnb__option *find_in(const pnb__option *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind != PNB__OPT_REST && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* The row of the first command that has it. */
static const pnb__option *find_anywhere(const pnb__command *const *list, const char *name)
{
    const pnb__option *found = find_in(pnb__common_options, pnb__n_common_options, name);
    for (; found == NULL && list != NULL && *list != NULL; list++) {
        found = find_in((*list)->options, (*list)->n_options, name);
        if (found == NULL && (*list)->subs != NULL)
            found = find_anywhere((*list)->subs, name);
    }
    return found;
}

static bool has_command(const pnb__command *const *list, const char *path)
{
    size_t n = strcspn(path, " ");
    for (; list != NULL && *list != NULL; list++) {
        if (strlen((*list)->name) != n || strncmp((*list)->name, path, n) != 0)
            continue;
        return path[n] == '\0' || has_command((*list)->subs, path + n + 1);
    }
    return false;
}

static const pnb__retired *find_retired(const pnb__program *program, const char *word)
{
    const pnb__retired *r = program->retired;
    for (; r != NULL && r->command != NULL; r++)
        if (strcmp(r->command->name, word) == 0)
            return r;
    return NULL;
}

/* Words of an older release keep their options and sections as long as they keep working. */
static bool has_retired_option(const pnb__program *program, const char *name)
{
    const pnb__retired *r = program->retired;
    for (; r != NULL && r->command != NULL; r++)
        if (find_in(r->command->options, r->command->n_options, name) != NULL)
            return true;
    return false;
}

static pnb_status check_name(const pnb__program *program, const char *name, const char *where,
                             pnb_error *err)
{
    bool is_known =
        find_anywhere(program->commands, name) != NULL || has_retired_option(program, name);
    if (!is_known || strcmp(name, "help") == 0)
        return pnb__fail(err, PNB_ARG, "%s: no command has an option --%s", where, name);
    return PNB_OK;
}

/* ---- the list ---- */

static char *keep(pnb__settings *s, size_t *at, const char *text, size_t n)
{
    char *copy = s->memory + *at;
    memcpy(copy, text, n);
    copy[n] = '\0';
    *at += n + 1;
    return copy;
}

/* "BATCH_SIZE" -> "batch-size" */
static void normalise(char *name)
{
    for (; *name != '\0'; name++)
        *name = *name == '_' ? '-' : (char)tolower((unsigned char)*name);
}

static void trim(char **text)
{
    while (isspace((unsigned char)**text))
        ++*text;
    size_t n = strlen(*text);
    while (n > 0 && isspace((unsigned char)(*text)[n - 1]))
        (*text)[--n] = '\0';
}

/* ---- the file ---- */

/* Where a walk over the lines stands. */
typedef struct config {
    const pnb__program *program;
    const char *command, *path;
    char section[MAX_SECTION]; /* "": above the first */
    bool wants_section;        /* this pass takes the command's section, the other what is above */
} config;

static pnb_status begin_section(config *c, char *line, size_t number, pnb_error *err)
{
    size_t n = strlen(line);
    if (n < 2 || line[n - 1] != ']')
        return pnb__fail(err, PNB_ARG, "%s:%zu: '%s' is no section; [COMMAND] is wanted", c->path,
                         number, line);
    line[n - 1] = '\0';
    char *name = line + 1;
    trim(&name);
    if (strlen(name) >= MAX_SECTION ||
        (!has_command(c->program->commands, name) && find_retired(c->program, name) == NULL))
        return pnb__fail(err, PNB_ARG, "%s:%zu: there is no command '%s'", c->path, number, name);
    snprintf(c->section, sizeof c->section, "%s", name);
    return PNB_OK;
}

/* "eval" speaks for "eval retrieval" too, and a retired word for the command it became. */
static bool is_about(const config *c)
{
    const pnb__retired *r = find_retired(c->program, c->section);
    size_t n = strlen(c->section);
    if (r != NULL && r->as != NULL && strcmp(r->as, c->command) == 0)
        return true;
    return strncmp(c->section, c->command, n) == 0 &&
           (c->command[n] == '\0' || c->command[n] == ' ');
}

static pnb_status take_line(config *c, char *line, size_t number, pnb__settings *s, size_t *at,
                            pnb_error *err)
{
    char where[400];
    char *equals = strchr(line, '='), *name = line, *value;
    snprintf(where, sizeof where, "%s:%zu", c->path, number);
    if (equals == NULL)
        return pnb__fail(err, PNB_ARG, "%s: '%s' is no setting; NAME = VALUE is wanted", where,
                         line);
    *equals = '\0';
    value = equals + 1;
    trim(&name);
    trim(&value);
    normalise(name);
    pnb_status status = check_name(c->program, name, where, err);
    bool is_here = c->section[0] == '\0' ? !c->wants_section : c->wants_section && is_about(c);
    if (status == PNB_OK && is_here)
        s->items[s->n++] =
            (pnb__preset){keep(s, at, name, strlen(name)), keep(s, at, value, strlen(value)),
                          keep(s, at, where, strlen(where))};
    return status;
}

/* One pass over a copy of the text. */
static pnb_status take_file(config *c, char *text, pnb__settings *s, size_t *at, pnb_error *err)
{
    size_t number = 0;
    pnb_status status = PNB_OK;
    c->section[0] = '\0';
    char *next = pnb__starts_with(text, "\xEF\xBB\xBF") ? text + 3 : text; /* a mark is no text */
    while (status == PNB_OK && next != NULL && *next != '\0') {
        char *line = next, *end = strchr(next, '\n');
        next = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        number++;
        trim(&line);
        if (line[0] == '\0' || line[0] == '#')
            continue;
        status = line[0] == '[' ? begin_section(c, line, number, err)
                                : take_line(c, line, number, s, at, err);
    }
    return status;
}

static const char *variable(const pnb__program *program, const char *name)
{
    size_t n = strlen(name);
    for (const char *const *v = program->environment; v != NULL && *v != NULL; v++)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=' && (*v)[n + 1] != '\0')
            return *v + n + 1;
    return NULL;
}

/* PENUMBRA_CONFIG, else $XDG_CONFIG_HOME/penumbra/config, else ~/.config/penumbra/config; NULL in
 * *path: none is there. */
static pnb_status find_file(const pnb__program *program, char **path, pnb_error *err)
{
    const char *named = variable(program, "PENUMBRA_CONFIG");
    const char *base = variable(program, "XDG_CONFIG_HOME"), *home = variable(program, "HOME");
    if (named != NULL)
        *path = pnb__strdup(named);
    else if (base != NULL)
        *path = pnb__format("%s/penumbra/config", base);
    else if (home != NULL)
        *path = pnb__format("%s/.config/penumbra/config", home);
    else
        return PNB_OK;
    if (*path == NULL)
        return pnb__fail_nomem(err, 256);
    if (named == NULL && !pnb__path_is_file(*path)) {
        pnb__free(*path);
        *path = NULL;
    }
    return PNB_OK;
}

/* ---- both ---- */

static pnb_status take_environment(const pnb__program *program, pnb__settings *s, size_t *at,
                                   pnb_error *err)
{
    for (const char *const *v = program->environment; v != NULL && *v != NULL; v++) {
        const char *equals = strchr(*v, '=');
        char name[MAX_NAME], where[MAX_NAME + sizeof prefix];
        if (strncmp(*v, prefix, sizeof prefix - 1) != 0 || equals == NULL || equals[1] == '\0' ||
            pnb__starts_with(*v, "PENUMBRA_CONFIG=") || pnb__starts_with(*v, "PENUMBRA_CPU="))
            continue;
        snprintf(where, sizeof where, "%.*s", (int)(equals - *v), *v);
        snprintf(name, sizeof name, "%.*s", (int)(equals - *v - (int)sizeof prefix + 1),
                 *v + sizeof prefix - 1);
        normalise(name);
        pnb_status status = check_name(program, name, where, err);
        if (status != PNB_OK)
            return status;
        s->items[s->n++] = (pnb__preset){keep(s, at, name, strlen(name)),
                                         keep(s, at, equals + 1, strlen(equals + 1)),
                                         keep(s, at, where, strlen(where))};
    }
    return PNB_OK;
}

/* Room for every line and variable, and for their names, values and places. */
static pnb_status reserve(const pnb__program *program, const char *text, size_t n_path,
                          pnb__settings *s, pnb_error *err)
{
    size_t n = 0, bytes = 0;
    for (const char *const *v = program->environment; v != NULL && *v != NULL; v++, n++)
        bytes += pnb__starts_with(*v, prefix) ? 2 * strlen(*v) + 8 : 0;
    for (const char *p = text; p != NULL && *p != '\0'; p++)
        n += *p == '\n';
    n += 2;
    bytes += text != NULL ? strlen(text) + n * (n_path + 32) : 0;
    s->items = pnb__alloc_array(n, sizeof *s->items);
    s->memory = pnb__alloc(bytes + 1);
    return s->items == NULL || s->memory == NULL ? pnb__fail_nomem(err, bytes) : PNB_OK;
}

pnb_status pnb__settings_read(const pnb__program *program, const char *command, pnb__settings *out,
                              pnb_error *err)
{
    char *path = NULL, *text = NULL, *copy = NULL;
    size_t size = 0, at = 0;
    pnb_status status;
    *out = (pnb__settings){0};
    PNB_TRY(find_file(program, &path, err));
    if (path != NULL)
        PNB_TRY(pnb__read_file(path, MAX_CONFIG, &text, &size, err));
    if (path != NULL && text != NULL && strlen(text) != size)
        PNB_TRY(pnb__fail(err, PNB_ARG, "%s: it holds a NUL byte; text is wanted", path));
    PNB_TRY(reserve(program, text, path != NULL ? strlen(path) : 0, out, err));
    config c = {.program = program, .command = command, .path = path};
    for (int pass = 0; text != NULL && pass < 2; pass++) {
        PNB_TRY(pnb__copy_text(&copy, text, err));
        c.wants_section = pass == 1;
        PNB_TRY(take_file(&c, copy, out, &at, err));
        pnb__free(copy);
        copy = NULL;
    }
    status = take_environment(program, out, &at, err);
done:
    pnb__free(path);
    pnb__free(text);
    pnb__free(copy);
    return status;
}

void pnb__settings_free(pnb__settings *settings)
{
    pnb__free(settings->items);
    pnb__free(settings->memory);
    *settings = (pnb__settings){0};
}
