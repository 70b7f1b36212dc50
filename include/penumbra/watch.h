/* Watching a long call from outside, and stopping it. */
#ifndef PENUMBRA_WATCH_H
#define PENUMBRA_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far a long call is; false stops it with INTERRUPTED. Called from the caller's thread. */
typedef struct pnb_watch {
    bool (*step)(void *user, size_t done, size_t total); /* NULL: nobody watches */
    void *user;
} pnb_watch;

#ifdef __cplusplus
}
#endif
#endif
