/* Planned towers cost memory and time, so they wait for the next call instead of being freed.
 *
 * There are as many as calls ran at once. The one used last is taken first: it is planned for the
 * sizes that are in use, and a program with one thread has one. */
#include "encode/worker.h"

#include "models/model.h"

struct pnb__worker {
    pnb__towers towers;
    pnb__worker *next;
};

void pnb__workers_init(pnb__workers *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->idle = NULL;
}

void pnb__workers_reset(pnb__workers *pool)
{
    for (pnb__worker *w = pool->idle, *next; w != NULL; w = next) {
        next = w->next;
        pnb__towers_reset(&w->towers);
        pnb__free(w);
    }
    pool->idle = NULL;
    pthread_mutex_destroy(&pool->lock);
}

pnb_status pnb__worker_take(pnb__worker **out, pnb__workers *pool, pnb_error *err)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->idle;
    if (pool->idle != NULL)
        pool->idle = pool->idle->next;
    pthread_mutex_unlock(&pool->lock);
    if (*out == NULL)
        *out = pnb__alloc_zero(1, sizeof **out);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, sizeof **out);
}

void pnb__worker_give(pnb__worker *w, pnb__workers *pool)
{
    pthread_mutex_lock(&pool->lock);
    w->next = pool->idle;
    pool->idle = w;
    pthread_mutex_unlock(&pool->lock);
}

struct pnb__towers *pnb__worker_towers(pnb__worker *w)
{
    return &w->towers;
}
