/* Requests that wait for a thread: a bounded queue and the threads that empty it. */
#ifndef PNB_SERVER_BATCHING_WORK_QUEUE_H
#define PNB_SERVER_BATCHING_WORK_QUEUE_H

#include <pthread.h>

#include "base/base.h"

/* A part of whatever waits. */
typedef struct pnb__work {
    struct pnb__work *next;
} pnb__work;

typedef struct pnb__work_calls {
    void (*run)(void *user, pnb__work *w);     /* on one of the threads */
    void (*drop)(void *user, pnb__work *w);    /* nobody waits for it: instead of `run` */
    bool (*is_gone)(void *user, pnb__work *w); /* whether that is so */
} pnb__work_calls;

typedef struct pnb__work_queue pnb__work_queue;

/* `calls` get `user`. Free with pnb__work_queue_free.
 * Errors  NOMEM, also where no thread could be started */
pnb_status pnb__work_queue_start(pnb__work_queue **out, size_t n_threads, size_t capacity,
                                 const pnb__work_calls *calls, void *user, pnb_error *err);
/* Puts it behind the others. Where `capacity` wait already and no thread is free, those that nobody
 * waits for are dropped first; false: there was none, or the queue is closed, and `w` is still the
 * caller's. */
bool pnb__work_queue_push(pnb__work_queue *q, pnb__work *w);
size_t pnb__work_queue_waiting(pnb__work_queue *q);
/* Takes nothing more, waits until all that is in it has run, and ends the threads. NULL is fine. */
void pnb__work_queue_free(pnb__work_queue *q);

/* Starts threads that take no signals, so that those reach the program's own. How many came. */
size_t pnb__start_threads(void *(*fn)(void *), void *user, pthread_t *threads, size_t n);

#endif
