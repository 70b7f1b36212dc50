/* Progress of long jobs: rate and time left.
 *
 * On a terminal one line is redrawn in place; a log file or pipe gets a plain line every five
 * seconds instead, because control characters there only make noise. */
#include "program/progress.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

enum { BAR = 24 };

void pnb__format_duration(double seconds, char text[16])
{
    if (!isfinite(seconds) || seconds < 0 || seconds > 359999) {
        snprintf(text, 16, "--:--");
        return;
    }
    unsigned s = (unsigned)(seconds + 0.5) % 360000U;
    if (s >= 3600)
        snprintf(text, 16, "%u:%02u:%02u", s / 3600 % 100, s / 60 % 60, s % 60);
    else
        snprintf(text, 16, "%02u:%02u", s / 60, s % 60);
}

void pnb__progress_start(pnb__progress *p, const pnb__app *app, const char *what, const char *unit,
                         size_t first, size_t total)
{
    double now = pnb__now_s();
    *p = (pnb__progress){app, what, unit, total, first, now, app->is_tty ? 0 : now, false};
}

static void show(pnb__progress *p, size_t done, const char *note)
{
    FILE *log = p->app->log;
    double elapsed = pnb__now_s() - p->start_s;
    double rate = elapsed > 0 ? (double)(done - p->first) / elapsed : 0;
    char left[16], bar[BAR + 1];
    pnb__format_duration(rate > 0 && p->total > 0 ? (double)(p->total - done) / rate : NAN, left);
    if (p->app->is_tty && p->total > 0) {
        size_t filled = PNB_MIN(done * BAR / p->total, (size_t)BAR);
        memset(bar, '.', BAR);
        memset(bar, '#', filled);
        bar[BAR] = '\0';
        fprintf(log, "\r\033[K%s %3zu%% [%s] %zu/%zu  %.1f %s/s  %s left", p->what,
                done * 100 / p->total, bar, done, p->total, rate, p->unit, left);
    } else if (p->total > 0) {
        fprintf(log, "%s %zu/%zu %s (%zu%%), %.1f/s, %s left", p->what, done, p->total, p->unit,
                done * 100 / p->total, rate, left);
    } else {
        fprintf(log, "%s%s %zu %s, %.1f/s", p->app->is_tty ? "\r\033[K" : "", p->what, done,
                p->unit, rate);
    }
    if (note != NULL)
        fprintf(log, "  %s", note);
    fputs(p->app->is_tty ? "" : "\n", log);
    fflush(log);
    p->shown = true;
}

void pnb__progress_update(pnb__progress *p, size_t done, const char *note)
{
    double now = pnb__now_s();
    double pause = p->app->is_tty ? 0.1 : 5.0;
    if (p->app->common.quiet || now - p->shown_s < pause)
        return;
    p->shown_s = now;
    show(p, done, note);
}

void pnb__progress_finish(pnb__progress *p, size_t done)
{
    if (p->app->common.quiet)
        return;
    if (p->app->is_tty && p->shown) {
        fputs("\r\033[K", p->app->log);
    }
    double elapsed = pnb__now_s() - p->start_s;
    char took[16];
    pnb__format_duration(elapsed, took);
    fprintf(p->app->log, "%s: %zu %s in %s (%.1f/s)\n", p->what, done, p->unit, took,
            elapsed > 0 ? (double)(done - PNB_MIN(p->first, done)) / elapsed : 0.0);
    fflush(p->app->log);
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
