/* A list under a lock.
 *
 * What waits is looked at twice for somebody who still wants it: when its turn comes, and when
 * there is no room for another one. */
#include "server/batching/work_queue.h"

#include <signal.h>

struct pnb__work_queue {
    pnb__work_calls calls;
    void *user;
    size_t capacity, n, n_threads, n_idle;
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pnb__work *first, *last;
    bool is_closed;
};

size_t pnb__start_threads(void *(*fn)(void *), void *user, pthread_t *threads, size_t n)
{
    sigset_t all, before;
    size_t n_started = 0;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* is of who reads a mapped file */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (n_started < n && pthread_create(&threads[n_started], NULL, fn, user) == 0)
        n_started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n_started;
}

/* Called with the lock held. */
static pnb__work *take_first(pnb__work_queue *q)
{
    pnb__work *w = q->first;
    q->first = w->next;
    if (q->first == NULL)
        q->last = NULL;
    q->n--;
    w->next = NULL;
    return w;
}

static void *serve(void *user)
{
    pnb__work_queue *q = user;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        q->n_idle++;
        while (q->first == NULL && !q->is_closed)
            pthread_cond_wait(&q->filled, &q->lock);
        q->n_idle--;
        if (q->first == NULL)
            break;
        pnb__work *w = take_first(q);
        pthread_mutex_unlock(&q->lock);
        if (q->calls.is_gone(q->user, w))
            q->calls.drop(q->user, w);
        else
            q->calls.run(q->user, w);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

pnb_status pnb__work_queue_start(pnb__work_queue **out, size_t n_threads, size_t capacity,
                                 const pnb__work_calls *calls, void *user, pnb_error *err)
{
    pnb__work_queue *q = pnb__alloc_zero(1, sizeof *q);
    if (q == NULL)
        return pnb__fail_nomem(err, sizeof *q);
    *q = (pnb__work_queue){.calls = *calls, .user = user, .capacity = capacity};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->filled, NULL);
    pnb_status status = PNB_ALLOC(q->threads, n_threads, err);
    if (status == PNB_OK)
        q->n_threads = pnb__start_threads(serve, q, q->threads, n_threads);
    if (status == PNB_OK && q->n_threads == 0)
        status = pnb__fail(err, PNB_NOMEM, "no thread for requests could be started");
    if (status == PNB_OK)
        *out = q;
    else
        pnb__work_queue_free(q);
    return status;
}

/* Takes those out that nobody waits for; they are dropped without the lock. */
static pnb__work *take_gone(pnb__work_queue *q)
{
    pnb__work *gone = NULL, **at = &q->first;
    q->last = NULL;
    while (*at != NULL) {
        pnb__work *w = *at;
        if (!q->calls.is_gone(q->user, w)) {
            q->last = w;
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = gone;
        gone = w;
        q->n--;
    }
    return gone;
}

bool pnb__work_queue_push(pnb__work_queue *q, pnb__work *w)
{
    pnb__work *gone = NULL;
    pthread_mutex_lock(&q->lock);
    size_t room = q->capacity + q->n_idle; /* which is about to take one each */
    if (q->n >= room)
        gone = take_gone(q);
    bool has_room = q->n < room && !q->is_closed;
    if (has_room) {
        w->next = NULL;
        *(q->last != NULL ? &q->last->next : &q->first) = w;
        q->last = w;
        q->n++;
        pthread_cond_signal(&q->filled);
    }
    pthread_mutex_unlock(&q->lock);
    while (gone != NULL) {
        pnb__work *next = gone->next;
        q->calls.drop(q->user, gone);
        gone = next;
    }
    return has_room;
}

size_t pnb__work_queue_waiting(pnb__work_queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->n;
    pthread_mutex_unlock(&q->lock);
    return n;
}

void pnb__work_queue_free(pnb__work_queue *q)
{
    if (q == NULL)
        return;
    pthread_mutex_lock(&q->lock);
    q->is_closed = true;
    pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->lock);
    for (size_t i = 0; i < q->n_threads; i++)
        pthread_join(q->threads[i], NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->filled);
    pnb__free(q->threads);
    pnb__free(q);
}
