/* A bounded queue of inputs that are read while the encoder works on earlier ones.
 *
 * Input i lies in slot i % n_rows. Workers take inputs in order as long as a slot is free, the one
 * consumer takes them in the same order when they are ready; what comes out does not depend on the
 * number of workers. There are as many as the encoder has threads: while it computes they take the
 * cores it leaves, and when reading is slower than computing they have all of them. Workers block
 * all signals, so that Ctrl-C reaches the program's own thread. */
#include "encode/job/embed_ahead.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

typedef struct slot {
    float *row;
    pnb_error why;
    bool is_ready;
} slot;

struct pnb__embed_ahead {
    pnb__embed_ahead_opts opts;
    slot *slots;
    float *rows;
    pthread_t *threads;
    int n_threads;

    pthread_mutex_t lock; /* guards everything below, and is_ready */
    pthread_cond_t work, ready;
    size_t next_read, next_taken;
    bool is_stopping;
};

static void *work(void *user)
{
    pnb__embed_ahead *a = user;
    pthread_mutex_lock(&a->lock);
    while (!a->is_stopping && a->next_read < a->opts.end) {
        if (a->next_read - a->next_taken >= a->opts.n_rows) {
            pthread_cond_wait(&a->work, &a->lock);
            continue;
        }
        size_t input = a->next_read++;
        slot *s = &a->slots[input % a->opts.n_rows];
        pthread_mutex_unlock(&a->lock);
        pnb_error_reset(&s->why);
        pnb_status status = a->opts.read(a->opts.user, input, s->row, &s->why);
        if (status != PNB_OK)
            pnb__fail(&s->why, status, "cannot be read"); /* keeps a text that is there */
        pthread_mutex_lock(&a->lock);
        s->is_ready = true;
        pthread_cond_broadcast(&a->ready);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static pnb_status start_threads(pnb__embed_ahead *a, pnb_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* is of who reads a mapped file */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (a->n_threads < a->opts.n_threads &&
           pthread_create(&a->threads[a->n_threads], NULL, work, a) == 0)
        a->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return a->n_threads > 0 ? PNB_OK
                            : pnb__fail(err, PNB_NOMEM, "no thread for reading could be started");
}

static pnb_status allocate(pnb__embed_ahead *a, pnb_error *err)
{
    size_t n = a->opts.n_rows, values = 0;
    if (pnb__mul_overflows(n, a->opts.row_values, &values))
        return pnb__fail_nomem(err, SIZE_MAX);
    a->slots = pnb__alloc_zero(n, sizeof *a->slots);
    a->rows = pnb__alloc_array(values, sizeof *a->rows);
    a->threads = pnb__alloc_array((size_t)a->opts.n_threads, sizeof *a->threads);
    if (a->slots == NULL || a->rows == NULL || a->threads == NULL)
        return pnb__fail_nomem(err, values * sizeof *a->rows);
    for (size_t i = 0; i < n; i++)
        a->slots[i].row = a->rows + i * a->opts.row_values;
    return PNB_OK;
}

pnb_status pnb__embed_ahead_start(pnb__embed_ahead **out, const pnb__embed_ahead_opts *opts,
                                  pnb_error *err)
{
    pnb__embed_ahead *a = pnb__alloc_zero(1, sizeof *a);
    if (a == NULL)
        return pnb__fail_nomem(err, sizeof *a);
    a->opts = *opts;
    a->opts.n_rows = PNB_MAX(opts->n_rows, (size_t)1);
    a->opts.n_threads = PNB_MAX(opts->n_threads, 1);
    a->next_read = a->next_taken = opts->first;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->work, NULL);
    pthread_cond_init(&a->ready, NULL);
    pnb_status status = allocate(a, err);
    if (status == PNB_OK)
        status = start_threads(a, err);
    if (status == PNB_OK)
        *out = a;
    else
        pnb__embed_ahead_free(a);
    return status;
}

void pnb__embed_ahead_free(pnb__embed_ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->is_stopping = true;
    pthread_cond_broadcast(&a->work);
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < a->n_threads; i++)
        pthread_join(a->threads[i], NULL);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->work);
    pthread_cond_destroy(&a->ready);
    pnb__free(a->slots);
    pnb__free(a->rows);
    pnb__free(a->threads);
    pnb__free(a);
}

bool pnb__embed_ahead_next(pnb__embed_ahead *a, size_t *input, float *row, pnb_error *why)
{
    if (a->next_taken >= a->opts.end) /* only the consumer changes it */
        return false;
    slot *s = &a->slots[a->next_taken % a->opts.n_rows];
    pthread_mutex_lock(&a->lock);
    while (!s->is_ready)
        pthread_cond_wait(&a->ready, &a->lock);
    pthread_mutex_unlock(&a->lock);
    *input = a->next_taken;
    *why = s->why;
    if (s->why.status == PNB_OK)
        memcpy(row, s->row, a->opts.row_values * sizeof *row);
    pthread_mutex_lock(&a->lock);
    s->is_ready = false;
    a->next_taken++;
    pthread_cond_broadcast(&a->work);
    pthread_mutex_unlock(&a->lock);
    return true;
}

size_t pnb__embed_ahead_ready(pnb__embed_ahead *a)
{
    size_t n = 0;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->opts.n_rows; i++)
        n += a->slots[i].is_ready;
    pthread_mutex_unlock(&a->lock);
    return n;
}
