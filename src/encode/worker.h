/* What encoding threads plan for themselves: a pool that every call takes one from. */
#ifndef PNB_ENCODE_WORKER_H
#define PNB_ENCODE_WORKER_H

#include <pthread.h>

#include "base/base.h"

typedef struct pnb__worker pnb__worker;
struct pnb__towers;

typedef struct pnb__workers {
    pthread_mutex_t lock; /* of idle */
    pnb__worker *idle;    /* the last one used is first */
} pnb__workers;

void pnb__workers_init(pnb__workers *pool);
/* Before the model goes; none may be in use. */
void pnb__workers_reset(pnb__workers *pool);

/* An idle worker, or a new one. Errors  NOMEM */
pnb_status pnb__worker_take(pnb__worker **out, pnb__workers *pool, pnb_error *err);
void pnb__worker_give(pnb__worker *w, pnb__workers *pool);
struct pnb__towers *pnb__worker_towers(pnb__worker *w);

#endif
