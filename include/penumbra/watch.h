/* Watching a long call from outside, and stopping it.
 *
 * Calls that may take minutes have a `pnb_watch` among their options; an all-zero one watches
 * nothing. The call's own documentation names INTERRUPTED among its errors, and what a step is.
 *
 *     static bool show(void *user, size_t done, size_t total)
 *     {
 *         fprintf(stderr, "\r%zu of %zu", done, total);
 *         return !*(volatile sig_atomic_t *)user;
 *     }
 *     opts.watch = (pnb_watch){show, &stop_asked_for}; */
#ifndef PENUMBRA_WATCH_H
#define PENUMBRA_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnb_watch {
    /* How far the call is, in steps of its own (rows, pairs, files). False stops it soon with
     * INTERRUPTED, its outputs as after any failure. Called from the caller's thread, every few
     * milliseconds to seconds; it may print or look at a flag, and should return at once. NULL:
     * nobody watches. */
    bool (*step)(void *user, size_t done, size_t total);
    void *user; /* given to step as it is */
} pnb_watch;

#ifdef __cplusplus
}
#endif
#endif
