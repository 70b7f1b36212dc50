/* What can be said of an output before it is written.
 *
 * Which options write is in their tables: pnb__option.writes. A disk that fills up later is the
 * writer's business. */
#include "program/outputs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "program/app.h"

/* One name given for an output. */
typedef struct output {
    const pnb__option *row;
    const char *path;
} output;

enum { MAX_OUTPUTS = 32 };

bool pnb__is_stdout(const char *path)
{
    struct stat named, out;
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return true;
    return pnb__starts_with(path, "/dev/fd/") && stat(path, &named) == 0 &&
           fstat(STDOUT_FILENO, &out) == 0 && named.st_dev == out.st_dev &&
           named.st_ino == out.st_ino;
}

/* The folder's real name with the last part behind; false when the folder does not exist. */
static bool full_name(const char *path, char out[PATH_MAX + NAME_MAX + 2])
{
    char real[PATH_MAX];
    char *dir = pnb__path_dir(path);
    bool found = dir != NULL && realpath(dir, real) != NULL;
    if (found)
        snprintf(out, PATH_MAX + NAME_MAX + 2, "%s/%s", real, pnb__path_base(path));
    pnb__free(dir);
    return found;
}

bool pnb__is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    char first[PATH_MAX + NAME_MAX + 2], second[PATH_MAX + NAME_MAX + 2];
    bool is_there = stat(a, &one) == 0, is_other_there = stat(b, &other) == 0;
    if (is_there && is_other_there)
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    return is_there == is_other_there && full_name(a, first) && full_name(b, second) &&
           strcmp(first, second) == 0;
}

/* ---- one name ---- */

static bool has_choice(const char *choices, const char *choice)
{
    size_t n = strlen(choice);
    for (const char *p = choices; *p != '\0'; p += *p == '|') {
        size_t length = strcspn(p, "|");
        if (length == n && memcmp(p, choice, n) == 0)
            return true;
        p += length;
    }
    return false;
}

static bool ends_as(const char *path, const char *endings)
{
    for (const char *p = endings; *p != '\0'; p += *p == '|') {
        size_t length = strcspn(p, "|"), n = strlen(path);
        if (length == 1 && p[0] == '*')
            return true;
        if (p[0] == '.' && n > length && strncasecmp(path + n - length, p, length) == 0)
            return true;
        p += length;
    }
    return false;
}

/* The folder that is there already, of those above `path` or `path` itself; allocated. */
static char *nearest_folder(const char *path)
{
    char *dir = pnb__strdup(path);
    while (dir != NULL && !pnb__path_is_dir(dir) && access(dir, F_OK) != 0) {
        char *above = pnb__path_dir(dir);
        bool is_top = above == NULL || strcmp(above, dir) == 0;
        pnb__free(dir);
        dir = above;
        if (is_top)
            break;
    }
    return dir;
}

static pnb_status check_writable(const output *o, const char *dir, pnb_error *err)
{
    if (!pnb__path_is_dir(dir))
        return pnb__fail(err, PNB_NOT_FOUND, "--%s %s: %s is not a folder", o->row->name, o->path,
                         dir);
    if (access(dir, W_OK | X_OK) != 0) {
        pnb_status status = pnb__fail_errno(err, "cannot write to the folder", dir);
        pnb__error_prefix(err, "--%s %s", o->row->name, o->path);
        return status;
    }
    return PNB_OK;
}

static pnb_status check_folder_output(const output *o, pnb_error *err)
{
    char *dir = nearest_folder(o->path);
    pnb_status status = PNB_OK;
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(o->path));
    if (pnb__path_is_file(o->path))
        status = pnb__fail(err, PNB_ARG, "--%s %s: is a file; a folder is wanted", o->row->name,
                           o->path);
    else
        status = check_writable(o, dir, err);
    pnb__free(dir);
    return status;
}

static pnb_status check_file_output(const output *o, pnb_error *err)
{
    char *dir = pnb__path_dir(o->path);
    pnb_status status = PNB_OK;
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(o->path));
    bool is_pattern = strchr(dir, '{') != NULL; /* {dataset} and others are filled in later */
    if (pnb__path_is_dir(o->path))
        status = pnb__fail(err, PNB_ARG, "--%s %s: is a folder; a file is wanted", o->row->name,
                           o->path);
    else if (!ends_as(o->path, o->row->writes))
        status = pnb__fail(err, PNB_ARG, "--%s %s: the name must end in one of %s", o->row->name,
                           o->path, o->row->writes);
    else if (!is_pattern && access(dir, F_OK) != 0)
        status = pnb__fail(err, PNB_NOT_FOUND, "--%s %s: there is no folder %s to write it to",
                           o->row->name, o->path, dir);
    else if (!is_pattern)
        status = check_writable(o, dir, err);
    pnb__free(dir);
    return status;
}

static pnb_status check_name(const output *o, pnb_error *err)
{
    bool takes_folder = has_choice(o->row->writes, "/");
    if (pnb__is_stdout(o->path) || pnb__path_special(o->path) != NULL)
        return PNB_OK; /* is written as it is */
    if (takes_folder && (o->row->writes[1] == '\0' || pnb__path_is_dir(o->path)))
        return check_folder_output(o, err);
    return check_file_output(o, err);
}

/* ---- names beside each other ---- */

static pnb_status check_input(pnb__app *app, const output *o, const pnb__option *row,
                              const char *input)
{
    if (input == NULL || pnb__path_is_dir(o->path) || pnb__path_special(o->path) != NULL ||
        !pnb__path_is_file(input) || !pnb__is_same_file(o->path, input))
        return PNB_OK;
    return pnb__usage(app, "--%s %s: is the file that %s%s reads; name another one", o->row->name,
                      o->path, row->kind == PNB__OPT_REST ? "" : "--", row->name);
}

/* Every path that is read, by the kind of its row. */
static pnb_status check_inputs(pnb__app *app, const output *o, const pnb__opt_set *set)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < set->n && status == PNB_OK; i++) {
        const pnb__option *row = &set->rows[i];
        const void *field = pnb__option_field(row, set->args);
        if (row->writes != NULL)
            continue;
        bool is_one = row->kind == PNB__OPT_REST && row->at >> 32 == sizeof(const char *);
        if (row->kind == PNB__OPT_FILE || is_one)
            status = check_input(app, o, row, *(const char *const *)field);
        if (row->kind != PNB__OPT_FILES && (row->kind != PNB__OPT_REST || is_one))
            continue;
        const pnb__text_list *list = field;
        for (size_t k = 0; k < list->n && status == PNB_OK; k++)
            status = check_input(app, o, row, list->items[k]);
    }
    return status;
}

static pnb_status check_pair(pnb__app *app, const output *a, const output *b)
{
    if (pnb__path_special(a->path) != NULL || !pnb__is_same_file(a->path, b->path))
        return PNB_OK;
    return pnb__usage(app,
                      "%s would be written twice: --%s and --%s would write the same file; take "
                      "different names",
                      b->path, a->row->name, b->row->name);
}

static size_t collect(output out[MAX_OUTPUTS], const pnb__opt_set *sets, size_t n_sets)
{
    size_t n = 0;
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n && n < MAX_OUTPUTS; i++) {
            const pnb__option *row = &sets[s].rows[i];
            const char *path = NULL;
            if (row->writes != NULL)
                path = *(const char *const *)pnb__option_field(row, sets[s].args);
            if (path != NULL)
                out[n++] = (output){row, path};
        }
    return n;
}

/* Each of the processes would do all of the work, and write it to one place. */
static pnb_status check_alone(const pnb__app *app, const output *o, pnb_error *err)
{
    if (app->ranks != NULL || app->launch.n_ranks < 2)
        return PNB_OK;
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "this command works in one process, and a launcher says that it is one of "
                     "%zu: all would write --%s %s; start it without mpirun, srun or torchrun's "
                     "RANK and WORLD_SIZE",
                     app->launch.n_ranks, o->row->name, o->path);
}

pnb_status pnb__outputs_check(pnb__app *app, const pnb__opt_set *sets, size_t n_sets)
{
    output outputs[MAX_OUTPUTS];
    size_t n = collect(outputs, sets, n_sets);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++) {
        PNB_TRY(check_alone(app, &outputs[i], &app->err));
        PNB_TRY(check_name(&outputs[i], &app->err));
        for (size_t s = 0; s < n_sets; s++)
            PNB_TRY(check_inputs(app, &outputs[i], &sets[s]));
        for (size_t k = 0; k < i; k++)
            PNB_TRY(check_pair(app, &outputs[k], &outputs[i]));
    }
done:
    return status;
}
