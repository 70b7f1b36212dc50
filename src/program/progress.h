/* How far a job is, for the person who waits: a bar on a terminal, plain lines elsewhere. */
#ifndef PNB_PROGRAM_PROGRESS_H
#define PNB_PROGRAM_PROGRESS_H

#include <stddef.h>

#include "penumbra/watch.h"
#include "program/app.h"

typedef struct pnb__progress {
    const pnb__app *app;
    const char *what, *unit; /* "embedding", "pictures" */
    size_t total, first;     /* first: done before this run, left out of the rate */
    double start_s, shown_s;
    bool shown;
} pnb__progress;

/* `total` 0 means unknown. Nothing is shown with --quiet. */
void pnb__progress_start(pnb__progress *p, const pnb__app *app, const char *what, const char *unit,
                         size_t first, size_t total);
/* Call as often as convenient: redraws at most ten times a second (bar) or every five (lines). */
void pnb__progress_update(pnb__progress *p, size_t done, const char *note /* may be NULL */);
void pnb__progress_finish(pnb__progress *p, size_t done);

/* "1:02:03", "04:05"; "--:--" for what is unknown or absurd. */
void pnb__format_duration(double seconds, char text[16]);

/* A watch that draws the progress of a job and stops at Ctrl-C; ends with pnb__watch_end. */
typedef struct pnb__watching {
    pnb__progress *progress;
    pnb__app *app;
    size_t done;
} pnb__watching;
pnb_watch pnb__watch_begin(pnb__watching *w, pnb__app *app, const char *what, const char *unit);
void pnb__watch_end(pnb__watching *w);

#endif
