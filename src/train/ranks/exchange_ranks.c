/* The exchange over tied processes (peers/peers.h).
 *
 * Gradients are copied into buckets as they become final; a thread sums full buckets over the
 * ranks, in order, while backward goes on, and `sum` waits for the last and copies them back. The
 * copy is what lets a device keep its memory to itself. Buckets are the same in every step, so
 * their memory is made once. */
#include <pthread.h>
#include <string.h>

#include "base/grow.h"
#include "peers/peers.h"
#include "train/ranks/exchange.h"

enum { BUCKET_BYTES = 16 << 20 };

typedef struct bucket {
    pnb__flat *items;
    size_t n_items, items_capacity;
    unsigned char *data;
    size_t n_bytes, capacity;
} bucket;

typedef struct meeting {
    pnb__exchange exchange; /* first: what callers hold */
    pnb_peers *ranks;
    size_t *from; /* parts in bytes */
    bucket *buckets;
    size_t n_buckets, buckets_capacity; /* in this step; ever made */
    size_t real_bytes;                  /* of a number */
    /* shared with the thread, under the lock */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_sealed, n_summed; /* buckets handed over, and done */
    bool ends, has_thread;
    pnb_status status;
    pnb_error error;
    int culprit;
} meeting;

/* ---- rows ---- */

/* Distributions are needed at once: nothing is left to do beside them, so the caller waits here and
 * the thread below has no part in it. */
static pnb_status gather(void *self, float *rows, const size_t *from, pnb_error *err)
{
    meeting *m = self;
    for (size_t p = 0; p <= m->exchange.n_ranks; p++)
        m->from[p] = from[p] * sizeof *rows;
    return pnb__peers_gather(m->ranks, rows, m->from, err);
}

/* ---- buckets ---- */

/* The thread: one bucket after the other, until told to end. What failed once is not tried again.
 */
static void *sum_buckets(void *user)
{
    meeting *m = user;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        while (m->n_summed == m->n_sealed && !m->ends)
            pthread_cond_wait(&m->changed, &m->lock);
        if (m->n_summed == m->n_sealed)
            break;
        bucket b = m->buckets[m->n_summed];
        pnb_status status = m->status;
        pthread_mutex_unlock(&m->lock);
        int culprit = -1;
        pnb_error error = PNB_ERROR_INIT;
        if (status == PNB_OK)
            status = pnb__peers_sum(m->ranks, b.data, b.n_bytes / m->real_bytes,
                                    m->real_bytes == sizeof(double), &culprit, &error);
        pthread_mutex_lock(&m->lock);
        if (m->status == PNB_OK && status != PNB_OK) {
            m->status = status;
            m->error = error;
        }
        if (culprit >= 0 && (m->culprit < 0 || culprit < m->culprit))
            m->culprit = culprit;
        m->n_summed++;
        pthread_cond_broadcast(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* The last bucket, or a new one, with room for one item of so many bytes more. The list may move,
 * which the thread must not see. */
static pnb_status open_bucket(meeting *m, size_t bytes, bucket **out, pnb_error *err)
{
    bool is_new = m->n_buckets == m->n_sealed;
    pnb_status status = PNB_OK;
    pthread_mutex_lock(&m->lock);
    if (is_new && m->n_buckets == m->buckets_capacity) {
        size_t had = m->buckets_capacity;
        status = PNB_GROW(m->buckets, m->buckets_capacity, had + 1, err);
        if (status == PNB_OK)
            memset(m->buckets + had, 0, (m->buckets_capacity - had) * sizeof *m->buckets);
    }
    if (status == PNB_OK && is_new) {
        m->buckets[m->n_buckets].n_items = m->buckets[m->n_buckets].n_bytes = 0;
        m->n_buckets++;
    }
    pthread_mutex_unlock(&m->lock);
    if (status != PNB_OK)
        return status;
    bucket *b = *out = &m->buckets[m->n_buckets - 1]; /* not the thread's before it is sealed */
    status = PNB_GROW(b->items, b->items_capacity, b->n_items + 1, err);
    if (status == PNB_OK)
        status = PNB_GROW(b->data, b->capacity, b->n_bytes + bytes, err);
    return status;
}

/* What was copied so far is the thread's from here on, and the next gradient opens another bucket.
 */
static void seal(meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->n_sealed = m->n_buckets;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* Small gradients share a bucket, since a trade costs its delay whatever it carries; a large one
 * fills a bucket alone. The memory is read here and not by the thread: a device's queue is its
 * caller's. */
static pnb_status begin(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                        pnb_error *err)
{
    meeting *m = self;
    m->real_bytes = PNB__REAL_SIZE(k->real);
    for (size_t i = 0; i < n; i++) {
        bucket *b = NULL;
        size_t bytes = buffers[i].n * m->real_bytes;
        pnb_status status = open_bucket(m, bytes, &b, err);
        if (status == PNB_OK)
            status = k->mem_read(k->ctx, b->data + b->n_bytes, buffers[i].data, bytes, err);
        if (status != PNB_OK)
            return status;
        b->items[b->n_items++] = buffers[i];
        b->n_bytes += bytes;
        if (b->n_bytes >= BUCKET_BYTES)
            seal(m);
    }
    return PNB_OK;
}

/* Few buckets of few items: no table is worth it. */
static bool is_begun(const meeting *m, const void *data)
{
    for (size_t i = 0; i < m->n_buckets; i++)
        for (size_t j = 0; j < m->buckets[i].n_items; j++)
            if (m->buckets[i].items[j].data == data)
                return true;
    return false;
}

/* Until nothing is under way. */
static pnb_status await(meeting *m, pnb_error *err)
{
    pthread_mutex_lock(&m->lock);
    while (m->n_summed < m->n_sealed)
        pthread_cond_wait(&m->changed, &m->lock);
    pnb_status status = m->status;
    if (status != PNB_OK)
        pnb__fail(err, status, "%s", m->error.text);
    m->n_buckets = m->n_sealed = m->n_summed = 0;
    pthread_mutex_unlock(&m->lock);
    return status;
}

/* The sums take the place of what was summed, in the order in which it was copied. */
static pnb_status put_back(const bucket *b, const pnb__kernels *k, pnb_error *err)
{
    const unsigned char *at = b->data;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < b->n_items && status == PNB_OK; i++) {
        size_t bytes = b->items[i].n * PNB__REAL_SIZE(k->real);
        status = k->mem_write(k->ctx, b->items[i].data, at, bytes, err);
        at += bytes;
    }
    return status;
}

/* The rest is begun here: what no backward pass told of (the scalars of the logits), or all of it,
 * where nobody began anything. A failure of ours still waits for the thread, which others may be
 * trading with. */
static pnb_status sum(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                      int *culprit, pnb_error *err)
{
    meeting *m = self;
    pnb_status status = PNB_OK;
    size_t n_early = m->n_buckets; /* what follows is not looked for among what follows */
    *culprit = -1;
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        if (n_early == 0 || !is_begun(m, buffers[i].data))
            status = begin(m, k, &buffers[i], 1, err);
    size_t n_buckets = m->n_buckets;
    seal(m);
    pnb_status waited = await(m, status == PNB_OK ? err : NULL);
    if (status == PNB_OK)
        status = waited;
    for (size_t i = 0; i < n_buckets && status == PNB_OK; i++)
        status = put_back(&m->buckets[i], k, err);
    *culprit = m->culprit;
    m->culprit = -1;
    return status;
}

/* ---- making and freeing ---- */

/* What is under way ends by itself: by its sum, or by the failure of a rank. */
void pnb__exchange_free(pnb__exchange *x)
{
    if (x == NULL)
        return;
    meeting *m = x->self;
    if (m->has_thread) {
        pthread_mutex_lock(&m->lock);
        m->ends = true;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
        pthread_join(m->thread, NULL);
    }
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    for (size_t i = 0; i < m->buckets_capacity; i++) {
        pnb__free(m->buckets[i].items);
        pnb__free(m->buckets[i].data);
    }
    pnb__free(m->buckets);
    pnb__free(m->from);
    pnb__free(m);
}

pnb_status pnb__exchange_create(pnb__exchange **out, pnb_peers *ranks, pnb_error *err)
{
    *out = NULL;
    meeting *m = pnb__alloc_zero(1, sizeof *m);
    if (m == NULL)
        return pnb__fail_nomem(err, sizeof *m);
    m->ranks = ranks;
    m->culprit = -1;
    m->real_bytes = sizeof(float);
    m->exchange = pnb__exchange_alone;
    m->exchange.self = m;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    if (ranks != NULL) {
        m->exchange = (pnb__exchange){.rank = pnb_peers_rank(ranks),
                                      .n_ranks = pnb_peers_count(ranks),
                                      .ranks = ranks,
                                      .self = m,
                                      .gather = gather,
                                      .begin = begin,
                                      .sum = sum};
        pnb_status status = PNB_ALLOC(m->from, m->exchange.n_ranks + 1, err);
        if (status == PNB_OK) {
            m->has_thread = pthread_create(&m->thread, NULL, sum_buckets, m) == 0;
            if (!m->has_thread)
                status = pnb__fail(err, PNB_NOMEM, "no thread for the exchange of gradients");
        }
        if (status != PNB_OK) {
            pnb__exchange_free(&m->exchange);
            return status;
        }
    }
    *out = &m->exchange;
    return PNB_OK;
}
