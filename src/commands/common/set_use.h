/* Embedding sets as commands take them. */
#ifndef PNB_COMMANDS_COMMON_SET_USE_H
#define PNB_COMMANDS_COMMON_SET_USE_H

#include "io/json/json.h"
#include "penumbra/embeddings.h"
#include "penumbra/prob.h"
#include "penumbra/view.h"
#include "penumbra/watch.h"
#include "program/app.h"

/* Loads x.safetensors, or x.npy with its sidecars; every row has an id afterwards. A set that does
 * not tell its model or modality is noted in `app`: every result that uses it says so. */
pnb_status pnb__set_load(pnb_embeddings **out, const char *path, pnb__app *app);
/* Whether the set tells which weights made it and of what. */
bool pnb__set_is_known(const pnb_embeddings *set);
/* The noting alone, for a set that was loaded otherwise. Errors  NOMEM */
pnb_status pnb__set_note(pnb__app *app, const char *path, const pnb_embeddings *set);
/* Rows for a measure: pnb_view_init, but the means of any family as points where the measure is
 * `mean`. Release with pnb_view_reset. Errors  as pnb_view_init */
pnb_status pnb__set_view(pnb_view *out, const pnb_embeddings *set, pnb_measure measure,
                         pnb_error *err);
/* What to show of a row: its caption, else its path, else its id, else "". */
const char *pnb__set_label(const pnb_embeddings *set, size_t row);
/* Id of a row, "" without one. */
const char *pnb__set_id(const pnb_embeddings *set, size_t row);
/* Further fields of a row, to be given back with json_decref; NULL without any. */
pnb_status pnb__set_extra(json_t **out, const pnb_embeddings *set, size_t row, pnb_error *err);

/* Lines of a file without their ends, empty ones and those that begin with '#' left out.
 * Errors  NOT_FOUND, IO, FORMAT (not UTF-8), NOMEM */
typedef struct pnb__lines {
    char *text;
    const char **line;
    size_t n;
} pnb__lines;
pnb_status pnb__lines_load(pnb__lines *out, const char *path, pnb_error *err);
void pnb__lines_reset(pnb__lines *l);

/* A watch that draws the progress of a job and stops at Ctrl-C; ends with pnb__watch_end. */
typedef struct pnb__watching {
    struct pnb__progress *progress;
    pnb__app *app;
    size_t done;
} pnb__watching;
pnb_watch pnb__watch_begin(pnb__watching *w, pnb__app *app, const char *what, const char *unit);
void pnb__watch_end(pnb__watching *w);

#endif
