/* What the commands that read embedding sets have in common: loading one in either form, its rows
 * as a measure wants them, names of rows, lists of lines, and a watch over long calls.
 *
 * A set that does not tell which weights made it (an .npy file without x.json, another program's
 * safetensors) is compared on the user's word, and the result says so. */
#include "commands/common/set_use.h"

#include <string.h>

#include "program/progress.h"

#define MAX_LINES_BYTES ((size_t)1 << 30)

/* Rows of a set without names are called by their numbers, as in files of ids. */
static pnb_status number_rows(pnb_embeddings *set, pnb_error *err)
{
    char number[24];
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < set->n; i++) {
        if (set->ids != NULL && set->ids[i] != NULL)
            continue;
        snprintf(number, sizeof number, "%zu", i);
        status = pnb_embeddings_set_id(set, i, number, err);
    }
    return status;
}

bool pnb__set_is_known(const pnb_embeddings *set)
{
    return set->info.weights_sha256[0] != '\0' && set->info.modality[0] != '\0';
}

/* Each path once, however often a command reads it. */
pnb_status pnb__set_note(pnb__app *app, const char *path, const pnb_embeddings *set)
{
    if (pnb__set_is_known(set))
        return PNB_OK;
    for (size_t i = 0; i < app->n_unknown_sets; i++)
        if (strcmp(app->unknown_sets[i], path) == 0)
            return PNB_OK;
    char **paths =
        pnb__realloc(app->unknown_sets, (app->n_unknown_sets + 1) * sizeof *app->unknown_sets);
    if (paths == NULL)
        return pnb__fail_nomem(&app->err, sizeof *paths);
    app->unknown_sets = paths;
    paths[app->n_unknown_sets] = pnb__strdup(path);
    if (paths[app->n_unknown_sets] == NULL)
        return pnb__fail_nomem(&app->err, strlen(path));
    app->n_unknown_sets++;
    return PNB_OK;
}

pnb_status pnb__set_load(pnb_embeddings **out, const char *path, pnb__app *app)
{
    pnb_error *err = &app->err;
    pnb_status status = pnb__ends_with(path, ".npy") ? pnb_embeddings_load_npy(out, path, err)
                                                     : pnb_embeddings_load(out, path, err);
    if (status == PNB_OK)
        status = number_rows(*out, err);
    if (status == PNB_OK)
        status = pnb__set_note(app, path, *out);
    if (status != PNB_OK) {
        pnb_embeddings_free(*out);
        *out = NULL;
    }
    return status;
}

pnb_status pnb__set_view(pnb_view *out, const pnb_embeddings *set, pnb_measure measure,
                         pnb_error *err)
{
    if (measure != PNB_MEASURE_MEAN)
        return pnb_view_init(out, set, err);
    *out = (pnb_view){.rows = {.n = set->n, .dim = set->dim, .mean = set->mean}};
    return PNB_OK;
}

const char *pnb__set_label(const pnb_embeddings *set, size_t row)
{
    if (set->texts != NULL && set->texts[row] != NULL)
        return set->texts[row];
    if (set->paths != NULL && set->paths[row] != NULL)
        return set->paths[row];
    return pnb__set_id(set, row);
}

const char *pnb__set_id(const pnb_embeddings *set, size_t row)
{
    return set->ids != NULL && set->ids[row] != NULL ? set->ids[row] : "";
}

pnb_status pnb__set_extra(json_t **out, const pnb_embeddings *set, size_t row, pnb_error *err)
{
    const char *extra = set->extras != NULL ? set->extras[row] : NULL;
    *out = NULL;
    return extra != NULL ? pnb__json_try_bytes(out, extra, strlen(extra), err) : PNB_OK;
}

/* ---- lines ---- */

static size_t count_lines(const char *text, size_t size)
{
    size_t n = 1;
    for (size_t i = 0; i < size; i++)
        n += text[i] == '\n';
    return n;
}

pnb_status pnb__lines_load(pnb__lines *out, const char *path, pnb_error *err)
{
    size_t size = 0;
    *out = (pnb__lines){0};
    pnb_status status = pnb__read_file(path, MAX_LINES_BYTES, &out->text, &size, err);
    if (status != PNB_OK)
        return status;
    if (!pnb__utf8_valid(out->text, size))
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "%s: not UTF-8 text", path));
    size_t n = count_lines(out->text, size);
    out->line = pnb__alloc_array(n, sizeof *out->line);
    if (out->line == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * sizeof *out->line));
    pnb__line_reader lines = {.at = out->text, .end = out->text + size, .path = path};
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        if (line[0] != '\0' && line[0] != '#')
            out->line[out->n++] = line;
    }
done:
    if (status != PNB_OK)
        pnb__lines_reset(out);
    return status;
}

void pnb__lines_reset(pnb__lines *l)
{
    pnb__free(l->text);
    pnb__free(l->line);
    *l = (pnb__lines){0};
}

/* ---- watching ---- */

static bool step(void *user, size_t done, size_t total)
{
    pnb__watching *w = user;
    w->done = done;
    if (w->progress != NULL) {
        w->progress->total = total;
        pnb__progress_update(w->progress, done, NULL);
    }
    return !pnb__is_interrupted(w->app);
}

pnb_watch pnb__watch_begin(pnb__watching *w, pnb__app *app, const char *what, const char *unit)
{
    *w = (pnb__watching){.app = app, .progress = pnb__alloc_zero(1, sizeof *w->progress)};
    if (w->progress != NULL) /* without memory for a bar the job goes on without one */
        pnb__progress_start(w->progress, app, what, unit, 0, 0);
    return (pnb_watch){step, w};
}

void pnb__watch_end(pnb__watching *w)
{
    if (w->progress != NULL && w->progress->shown)
        pnb__progress_finish(w->progress, w->done);
    pnb__free(w->progress);
    w->progress = NULL;
}
