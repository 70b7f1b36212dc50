/* The exchange over tied processes (peers/peers.h), and the sums of one that accumulates.
 *
 * Gradients of micro-batches add up in doubles. A float has 24 bits and a double 53: unless the
 * micro-batches' gradients of a weight are more than 2^28 apart, their sum is exact, and what is
 * left of the order in which they are added, and of whose they are, is one rounding to a float at
 * the end. So one process and any number of them end in the same bits, but for one float in some
 * 2^29 where a sum is not exact.
 *
 * Sums lie in buckets, in the order in which backward passes finish them; a thread sums full
 * buckets over the ranks, in order, while backward goes on, and `sum` waits for the last and writes
 * floats back. Host memory of its own lets a device keep its memory to itself. Buckets are the same
 * in every step, so their memory is made once. */
#include <pthread.h>
#include <string.h>

#include "base/grow.h"
#include "peers/peers.h"
#include "train/ranks/exchange.h"

enum { BUCKET_NUMBERS = 4 << 20, CHUNK = 1 << 20, GRAIN = 1 << 14 };

/* One gradient. */
typedef struct slot {
    pnb__flat buffer;
    size_t bucket, at; /* where its sum lies */
    size_t turn;       /* in the order in which they were begun in the last step; SIZE_MAX: not */
    bool has_sum, is_begun;
} slot;

typedef struct bucket {
    double *sums;
    size_t n, capacity, n_waiting; /* numbers; slots that are not begun */
} bucket;

typedef struct meeting {
    pnb__exchange exchange; /* first: what callers hold */
    pnb_peers *ranks;
    size_t *from; /* parts in bytes */
    slot *slots;  /* of the step, by their place in the buckets */
    size_t n_slots, slots_capacity;
    size_t hint;    /* where the next one is looked for first */
    size_t n_begun; /* in this step */
    bucket *buckets;
    size_t n_buckets, buckets_capacity; /* in this step; ever made */
    unsigned char *chunk;               /* of a gradient on its way */
    bool is_open;                       /* a step has begun whose gradients are not summed yet */
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

/* Gradients of rows are needed as soon, for the backward pass. */
static pnb_status sum_part(void *self, float *rows, const size_t *from, pnb_error *err)
{
    meeting *m = self;
    return pnb__peers_sum_part(m->ranks, rows, from, err);
}

/* ---- the thread ---- */

/* One bucket after the other, until told to end. What failed once is not tried again. */
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
            status = pnb__peers_sum(m->ranks, b.sums, b.n, true, &culprit, &error);
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

/* Buckets whose slots are all begun, up to the first that waits, are the thread's from here on. */
static void seal(meeting *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->n_sealed < m->n_buckets && m->buckets[m->n_sealed].n_waiting == 0)
        m->n_sealed++;
    if (m->ranks == NULL)
        m->n_summed = m->n_sealed;
    else
        pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
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
    pthread_mutex_unlock(&m->lock);
    return status;
}

/* ---- where sums lie ---- */

/* Two slots in the order of their turns; equal turns stay as they stand. */
static void sort_by_turn(slot *slots, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        slot s = slots[i];
        size_t at = i;
        for (; at > 0 && slots[at - 1].turn > s.turn; at--)
            slots[at] = slots[at - 1];
        slots[at] = s;
    }
}

/* A bucket with room for n numbers more. */
static pnb_status open_bucket(meeting *m, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (m->n_buckets == 0 || m->buckets[m->n_buckets - 1].n >= BUCKET_NUMBERS) {
        if (m->n_buckets == m->buckets_capacity) {
            size_t had = m->buckets_capacity;
            status = PNB_GROW(m->buckets, m->buckets_capacity, had + 1, err);
            if (status != PNB_OK)
                return status;
            memset(m->buckets + had, 0, (m->buckets_capacity - had) * sizeof *m->buckets);
        }
        m->buckets[m->n_buckets].n = m->buckets[m->n_buckets].n_waiting = 0;
        m->n_buckets++;
    }
    bucket *b = &m->buckets[m->n_buckets - 1];
    return PNB_GROW(b->sums, b->capacity, b->n + n, err);
}

/* Slots one behind the other; a bucket is full where the next gradient begins, so a large one fills
 * a bucket alone and small ones share one: a trade costs its delay whatever it carries. */
static pnb_status place_slots(meeting *m, pnb_error *err)
{
    pnb_status status = PNB_OK;
    m->n_buckets = 0;
    for (size_t i = 0; i < m->n_slots && status == PNB_OK; i++) {
        slot *s = &m->slots[i];
        status = open_bucket(m, s->buffer.n, err);
        if (status != PNB_OK)
            break;
        bucket *b = &m->buckets[m->n_buckets - 1];
        s->bucket = m->n_buckets - 1;
        s->at = b->n;
        b->n += s->buffer.n;
        b->n_waiting++;
    }
    return status;
}

/* Callers go through their gradients in one order or another, which the hint follows: a search
 * through all is for the first of them. */
static slot *find_slot(meeting *m, const void *data)
{
    for (size_t i = 0; i < m->n_slots; i++) {
        size_t at = (m->hint + i) % m->n_slots;
        if (m->slots[at].buffer.data == data) {
            m->hint = at + 1;
            return &m->slots[at];
        }
    }
    return NULL;
}

/* The same gradients as in the step before lie in the order in which those were begun, which is the
 * graph's and so the same on all ranks; others in the order given. */
static pnb_status open(void *self, const pnb__flat *buffers, size_t n, pnb_error *err)
{
    meeting *m = self;
    bool is_same = m->n_slots == n;
    for (size_t i = 0; i < n && is_same; i++) {
        const slot *s = find_slot(m, buffers[i].data);
        is_same = s != NULL && s->buffer.n == buffers[i].n;
    }
    m->is_open = false;
    if (!is_same) {
        pnb_status status = PNB_GROW(m->slots, m->slots_capacity, n, err);
        if (status != PNB_OK)
            return status;
        m->n_slots = n;
        for (size_t i = 0; i < n; i++)
            m->slots[i] = (slot){.buffer = buffers[i], .turn = SIZE_MAX};
    }
    sort_by_turn(m->slots, m->n_slots);
    pthread_mutex_lock(&m->lock);
    m->n_sealed = m->n_summed = 0;
    pnb_status status = place_slots(m, err);
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < m->n_slots; i++) {
        m->slots[i].has_sum = m->slots[i].is_begun = false;
        m->slots[i].turn = SIZE_MAX;
    }
    m->hint = m->n_begun = 0;
    if (status == PNB_OK && m->chunk == NULL) {
        m->chunk = pnb__alloc(CHUNK * sizeof(double));
        status = m->chunk != NULL ? PNB_OK : pnb__fail_nomem(err, CHUNK * sizeof(double));
    }
    m->is_open = status == PNB_OK;
    return status;
}

/* ---- sums ---- */

/* Numbers of a gradient on their way to a sum, or back. */
typedef struct piece {
    double *sums;
    void *numbers;
    bool is_double, is_first;
} piece;

/* The first number takes the place of what an earlier step left. A float is a double exactly. */
static void add_range(void *user, size_t begin, size_t end, int thread)
{
    const piece *p = user;
    double *sums = p->sums;
    const double *wide = p->numbers;
    const float *narrow = p->numbers;
    (void)thread;
    if (p->is_double)
        for (size_t i = begin; i < end; i++)
            sums[i] = p->is_first ? wide[i] : sums[i] + wide[i];
    else if (p->is_first)
        for (size_t i = begin; i < end; i++)
            sums[i] = (double)narrow[i];
    else
        for (size_t i = begin; i < end; i++)
            sums[i] += (double)narrow[i];
}

/* The one rounding to a float that a sum goes through. */
static void round_range(void *user, size_t begin, size_t end, int thread)
{
    const piece *p = user;
    double *wide = p->numbers;
    float *narrow = p->numbers;
    (void)thread;
    for (size_t i = begin; i < end; i++)
        if (p->is_double)
            wide[i] = p->sums[i];
        else
            narrow[i] = (float)p->sums[i];
}

/* The memory is read here, by the caller, and not by the thread: a device's queue is its caller's.
 */
static pnb_status add_slot(meeting *m, const pnb__kernels *k, slot *s, pnb_error *err)
{
    double *sums = m->buckets[s->bucket].sums + s->at;
    size_t real = PNB__REAL_SIZE(k->real);
    pnb_status status = PNB_OK;
    for (size_t at = 0; at < s->buffer.n && status == PNB_OK; at += CHUNK) {
        size_t n = PNB_MIN(s->buffer.n - at, (size_t)CHUNK);
        piece p = {sums + at, m->chunk, k->real == PNB__F64, !s->has_sum};
        status =
            k->mem_read(k->ctx, m->chunk, (const char *)s->buffer.data + at * real, n * real, err);
        if (status == PNB_OK)
            pnb__parallel_for(k->ctx, n, GRAIN, add_range, &p);
    }
    s->has_sum = true;
    return status;
}

static pnb_status write_slot(meeting *m, const pnb__kernels *k, const slot *s, pnb_error *err)
{
    double *sums = m->buckets[s->bucket].sums + s->at;
    size_t real = PNB__REAL_SIZE(k->real);
    pnb_status status = PNB_OK;
    for (size_t at = 0; at < s->buffer.n && status == PNB_OK; at += CHUNK) {
        size_t n = PNB_MIN(s->buffer.n - at, (size_t)CHUNK);
        piece p = {sums + at, m->chunk, k->real == PNB__F64, false};
        pnb__parallel_for(k->ctx, n, GRAIN, round_range, &p);
        status = k->mem_write(k->ctx, (char *)s->buffer.data + at * real, m->chunk, n * real, err);
    }
    return status;
}

/* Of a gradient whose sum has begun nothing more is taken: it would be lost to the other ranks. */
static pnb_status add(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                      pnb_error *err)
{
    meeting *m = self;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        slot *s = find_slot(m, buffers[i].data);
        if (s != NULL && !s->is_begun)
            status = add_slot(m, k, s, err);
    }
    return status;
}

/* Nothing is added to it any more in this step. */
static void end_slot(meeting *m, slot *s)
{
    s->is_begun = true;
    m->buckets[s->bucket].n_waiting--;
}

/* A backward pass tells of its gradients one by one. */
static pnb_status begin(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                        pnb_error *err)
{
    meeting *m = self;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        slot *s = m->is_open ? find_slot(m, buffers[i].data) : NULL;
        if (s == NULL || s->is_begun)
            continue;
        status = add_slot(m, k, s, err);
        s->turn = m->n_begun++;
        end_slot(m, s);
    }
    seal(m);
    return status;
}

/* What nobody began is final now. A failure of ours still waits for the thread, which others may be
 * trading with. */
static pnb_status finish(meeting *m, const pnb__kernels *k, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < m->n_slots && status == PNB_OK; i++)
        if (!m->slots[i].is_begun) {
            status = add_slot(m, k, &m->slots[i], err);
            end_slot(m, &m->slots[i]);
        }
    if (status == PNB_OK)
        seal(m);
    pnb_status waited = await(m, status == PNB_OK ? err : NULL);
    if (status == PNB_OK)
        status = waited;
    for (size_t i = 0; i < m->n_slots && status == PNB_OK; i++)
        status = write_slot(m, k, &m->slots[i], err);
    m->is_open = false;
    return status;
}

/* Whether all of the buffers have a slot. */
static bool has_all(meeting *m, const pnb__flat *buffers, size_t n)
{
    bool all = m->is_open;
    for (size_t i = 0; i < n && all; i++)
        all = find_slot(m, buffers[i].data) != NULL;
    return all;
}

/* Nothing was opened: what is there is the whole sum of this process. One process has nothing to
 * add to it. */
static pnb_status sum(void *self, const pnb__kernels *k, const pnb__flat *buffers, size_t n,
                      int *culprit, pnb_error *err)
{
    meeting *m = self;
    pnb_status status = PNB_OK;
    *culprit = -1;
    if (!m->is_open && m->ranks == NULL)
        return PNB_OK;
    if (m->is_open && !has_all(m, buffers, n))
        status = pnb__fail(err, PNB_ARG, "gradients are summed that were not opened");
    if (status == PNB_OK && !m->is_open)
        status = open(m, buffers, n, err);
    if (status == PNB_OK)
        status = finish(m, k, err);
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
    for (size_t i = 0; i < m->buckets_capacity; i++)
        pnb__free(m->buckets[i].sums);
    pnb__free(m->buckets);
    pnb__free(m->slots);
    pnb__free(m->chunk);
    pnb__free(m->from);
    pnb__free(m);
}

/* What only several processes have: a place among them, and the thread. */
static pnb_status start(meeting *m, pnb_error *err)
{
    m->exchange.rank = pnb_peers_rank(m->ranks);
    m->exchange.n_ranks = pnb_peers_count(m->ranks);
    m->exchange.ranks = m->ranks;
    m->exchange.gather = gather;
    m->exchange.sum_part = sum_part;
    pnb_status status = PNB_ALLOC(m->from, m->exchange.n_ranks + 1, err);
    if (status != PNB_OK)
        return status;
    m->has_thread = pthread_create(&m->thread, NULL, sum_buckets, m) == 0;
    return m->has_thread ? PNB_OK
                         : pnb__fail(err, PNB_NOMEM, "no thread for the exchange of gradients");
}

pnb_status pnb__exchange_create(pnb__exchange **out, pnb_peers *ranks, pnb_error *err)
{
    *out = NULL;
    meeting *m = pnb__alloc_zero(1, sizeof *m);
    if (m == NULL)
        return pnb__fail_nomem(err, sizeof *m);
    m->ranks = ranks;
    m->culprit = -1;
    m->exchange = pnb__exchange_alone;
    m->exchange.self = m;
    m->exchange.open = open;
    m->exchange.add = add;
    m->exchange.begin = begin;
    m->exchange.sum = sum;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    pnb_status status = ranks != NULL ? start(m, err) : PNB_OK;
    if (status != PNB_OK) {
        pnb__exchange_free(&m->exchange);
        return status;
    }
    *out = &m->exchange;
    return PNB_OK;
}
