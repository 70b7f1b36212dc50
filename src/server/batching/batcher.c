/* One thread that encodes what has come together.
 *
 * Requests wait in a list. A batch takes rows of one side, from the first on, until it is full;
 * what is left of a request goes to the end of the list. Whether a batch waits for more is decided
 * by who is coming: requests that are being prepared are announced, so a server that is asked by
 * one client never waits, and one that is asked by many waits at most wait_s after the first. */
#include "server/batching/batcher.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "server/batching/work_queue.h"
#include "sets/embeddings.h"

typedef struct ask {
    const pnb__batch_rows *rows;
    pnb_embeddings *set; /* all of its rows, from the first batch on */
    size_t n_taken, n_done;
    double since_s;
    bool is_ended;
    pnb_error why;
    pthread_cond_t ended;
    struct ask *next;
} ask;

struct pnb__batcher {
    pnb__batcher_opts opts;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    ask *first, *last;
    int n_coming;
    bool is_closed;
    /* The batch under way: which request and row each of its rows is. Of the thread alone. */
    ask **owner;      /* [max_batch] */
    size_t *place;    /* [max_batch] */
    const void **row; /* [max_batch] */
};

/* ---- the list ---- with the lock held */

static void append(pnb__batcher *b, ask *a)
{
    a->next = NULL;
    *(b->last != NULL ? &b->last->next : &b->first) = a;
    b->last = a;
}

static void end(ask *a)
{
    a->is_ended = true;
    pthread_cond_signal(&a->ended);
}

static size_t count_side(const pnb__batcher *b, pnb_encode_side side)
{
    size_t n = 0;
    for (const ask *a = b->first; a != NULL; a = a->next)
        n += a->rows->side == side ? a->rows->n - a->n_taken : 0;
    return n;
}

static void wait_until(pnb__batcher *b, double s)
{
    double whole = floor(s);
    struct timespec at = {(time_t)whole, (long)((s - whole) * 1e9)};
    pthread_cond_timedwait(&b->changed, &b->lock, &at);
}

/* False: closed, and nothing is left. */
static bool wait_for_batch(pnb__batcher *b)
{
    while (b->first == NULL && !b->is_closed)
        pthread_cond_wait(&b->changed, &b->lock);
    while (b->first != NULL && b->n_coming > 0 && !b->is_closed) {
        double end_s = b->first->since_s + b->opts.wait_s;
        if (count_side(b, b->first->rows->side) >= b->opts.max_batch || pnb__now_s() >= end_s)
            break;
        wait_until(b, end_s);
    }
    return b->first != NULL;
}

static bool is_gone(const ask *a)
{
    return a->rows->is_gone != NULL && a->rows->is_gone(a->rows->user);
}

/* Rows of one request into the batch; how many. */
static size_t take_rows(pnb__batcher *b, ask *a, size_t n)
{
    size_t n_taken = PNB_MIN(b->opts.max_batch - n, a->rows->n - a->n_taken);
    if (a->n_taken == 0 && b->opts.waited != NULL)
        b->opts.waited(b->opts.user, pnb__now_s() - a->since_s);
    for (size_t i = 0; i < n_taken; i++, a->n_taken++) {
        b->owner[n + i] = a;
        b->place[n + i] = a->n_taken;
        b->row[n + i] = (const char *)a->rows->rows + a->n_taken * a->rows->row_bytes;
    }
    return n_taken;
}

/* Fills the batch; requests with rows left go to the end, those nobody waits for are ended. */
static size_t take_batch(pnb__batcher *b, pnb_encode_side *side)
{
    ask *list = b->first, *left = NULL, **left_end = &left;
    size_t n = 0;
    *side = list->rows->side;
    b->first = b->last = NULL;
    for (ask *next; list != NULL; list = next) {
        next = list->next;
        bool is_wanted = list->rows->side == *side && n < b->opts.max_batch;
        if (is_wanted && is_gone(list)) {
            pnb__fail(&list->why, PNB_INTERRUPTED, "nobody waits for this");
            end(list);
            continue;
        }
        n += is_wanted ? take_rows(b, list, n) : 0;
        if (!is_wanted) {
            append(b, list);
        } else if (list->n_taken < list->rows->n) {
            list->next = NULL;
            *left_end = list;
            left_end = &list->next;
        }
    }
    if (left != NULL)
        append(b, left); /* at most one: the batch is full behind it */
    return n;
}

/* ---- the batch ---- */

static pnb_status make_set(ask *a, const pnb_embeddings *like)
{
    pnb_error *err = &a->why;
    pnb_status status = pnb_embeddings_create(&a->set, like->family, a->rows->n, like->dim, err);
    if (status == PNB_OK && like->has_epistemic)
        status = pnb_embeddings_add_epistemic(a->set, err);
    if (status == PNB_OK)
        a->set->info = like->info;
    return status;
}

static void copy_row(pnb_embeddings *to, size_t row, const pnb_embeddings *from, size_t at)
{
    for (int which = 0; which < PNB__N_EMBEDDING_ARRAYS; which++) {
        size_t width = pnb__embedding_array_at(which)->is_per_row ? 1 : from->dim;
        if (pnb__embedding_has_array(from, which))
            memcpy(*pnb__embedding_field(to, which) + row * width,
                   pnb__embedding_values(from, which) + at * width, width * sizeof(float));
    }
}

/* Rows first .. first + n of the batch to those who asked for them. */
static void give(pnb__batcher *b, size_t first, size_t n, const pnb_embeddings *set,
                 const pnb_error *err)
{
    for (size_t i = first; i < first + n; i++) {
        ask *a = b->owner[i];
        if (err->status != PNB_OK)
            pnb__fail(&a->why, err->status, "%s", err->text);
        else if (a->set != NULL || (a->why.status == PNB_OK && make_set(a, set) == PNB_OK))
            copy_row(a->set, b->place[i], set, i - first);
    }
}

static pnb_status encode(pnb__batcher *b, pnb_encode_side side, size_t first, size_t n)
{
    pnb_embeddings *set = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = b->opts.encode(b->opts.user, side, b->row + first, n, &set, &err);
    if (status != PNB_OK && n > 1)
        return status; /* who it was is found out one by one */
    give(b, first, n, set, &err);
    pnb_embeddings_free(set);
    return PNB_OK;
}

/* With the lock held. */
static void end_batch(pnb__batcher *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ask *a = b->owner[i];
        if (++a->n_done == a->rows->n)
            end(a);
    }
}

static void *work(void *user)
{
    pnb__batcher *b = user;
    pnb_encode_side side;
    pthread_mutex_lock(&b->lock);
    while (wait_for_batch(b)) {
        size_t n = take_batch(b, &side);
        pthread_mutex_unlock(&b->lock);
        if (n > 0 && encode(b, side, 0, n) != PNB_OK)
            for (size_t i = 0; i < n; i++)
                (void)encode(b, side, i, 1);
        pthread_mutex_lock(&b->lock);
        end_batch(b, n);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- from outside ---- */

static void init_clock(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* that of pnb__now_s */
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

pnb_status pnb__batcher_start(pnb__batcher **out, const pnb__batcher_opts *opts, pnb_error *err)
{
    pnb__batcher *b = pnb__alloc_zero(1, sizeof *b);
    pnb_status status;
    if (b == NULL)
        return pnb__fail_nomem(err, sizeof *b);
    b->opts = *opts;
    pthread_mutex_init(&b->lock, NULL);
    init_clock(&b->changed);
    PNB_TRY(PNB_ALLOC(b->owner, opts->max_batch, err));
    PNB_TRY(PNB_ALLOC(b->place, opts->max_batch, err));
    PNB_TRY(PNB_ALLOC(b->row, opts->max_batch, err));
    b->has_thread = pnb__start_threads(work, b, &b->thread, 1) == 1;
    if (!b->has_thread)
        PNB_TRY(pnb__fail(err, PNB_NOMEM, "no thread for batches could be started"));
    *out = b;
done:
    if (status != PNB_OK)
        pnb__batcher_free(b);
    return status;
}

void pnb__batcher_free(pnb__batcher *b)
{
    if (b == NULL)
        return;
    pthread_mutex_lock(&b->lock);
    b->is_closed = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (b->has_thread)
        pthread_join(b->thread, NULL);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    pnb__free(b->owner);
    pnb__free(b->place);
    pnb__free(b->row);
    pnb__free(b);
}

void pnb__batcher_expect(pnb__batcher *b, int by)
{
    pthread_mutex_lock(&b->lock);
    b->n_coming += by;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

pnb_status pnb__batcher_encode(pnb__batcher *b, const pnb__batch_rows *rows, pnb_embeddings **out,
                               pnb_error *err)
{
    ask a = {.rows = rows, .since_s = pnb__now_s()};
    pthread_cond_init(&a.ended, NULL);
    pthread_mutex_lock(&b->lock);
    append(b, &a);
    b->n_coming -= rows->is_expected;
    pthread_cond_signal(&b->changed);
    while (!a.is_ended)
        pthread_cond_wait(&a.ended, &b->lock);
    pthread_mutex_unlock(&b->lock);
    pthread_cond_destroy(&a.ended);
    if (a.why.status == PNB_OK) {
        *out = a.set;
        return PNB_OK;
    }
    pnb_embeddings_free(a.set);
    return pnb__fail(err, a.why.status, "%s", a.why.text);
}
