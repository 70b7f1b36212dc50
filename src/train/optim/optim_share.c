/* An optimiser of which each process keeps a share (ZeRO's first stage, Rajbhandari et al. 2020):
 * what the others updated is fetched after every step, what they keep before a checkpoint.
 *
 * Both go in windows, so that the memory saved is not needed again to move it. */
#include <string.h>

#include "peers/peers.h"
#include "train/optim/optim.h"

enum { WINDOW_BYTES = 8 << 20 };

/* A row of numbers: the parameters, or one of the moments. */
typedef enum row { PARAMS, FIRST, SECOND } row;

typedef struct mover {
    pnb__optim *o;
    row of;
    size_t size; /* of a number */
    unsigned char *window;
    size_t *from; /* (n_ranks + 1) bytes in the window */
} mover;

/* n numbers of one slot from `in` on, to `bytes` or back. A moment lies from where its share of the
 * parameter begins. */
static pnb_status copy_slot(const mover *m, pnb__optim_slot *s, size_t in, size_t n,
                            unsigned char *bytes, bool back, pnb_error *err)
{
    const pnb__kernels *k = &m->o->kernels;
    size_t size = n * m->size, at = in * m->size;
    if (m->of == PARAMS && back)
        return pnb__param_write_part(s->param, k, at, size, bytes, err);
    if (m->of == PARAMS)
        return pnb__param_read_part(s->param, k, at, size, bytes, err);
    unsigned char *moment = m->of == FIRST ? s->m : s->v;
    return k->mem_read(m->o->ctx, bytes, moment + at - s->at * m->size, size, err);
}

/* The numbers at .. at + n - 1 of the row, which may lie in several slots. Moments are only read:
 * nobody keeps those of others. */
static pnb_status copy(const mover *m, size_t at, size_t n, unsigned char *bytes, bool back,
                       pnb_error *err)
{
    size_t first = 0; /* of the slot */
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < m->o->n_slots && n > 0 && status == PNB_OK; i++) {
        pnb__optim_slot *s = &m->o->slots[i];
        size_t its = s->param->n, in = at - first;
        first += its;
        if (at >= first)
            continue;
        size_t count = PNB_MIN(n, its - in);
        status = copy_slot(m, s, in, count, bytes, back, err);
        bytes += count * m->size;
        at += count;
        n -= count;
    }
    return status;
}

/* Window number w of every share: each process brings its own. *n_most: numbers of the longest. */
static pnb_status trade_window(const mover *m, pnb_peers *ranks, size_t w, size_t width,
                               size_t *n_most, pnb_error *err)
{
    size_t n_ranks = m->o->share.n_ranks;
    *n_most = 0;
    m->from[0] = 0;
    for (size_t p = 0; p < n_ranks; p++) {
        size_t at = pnb__optim_share_at(m->o, p), n = pnb__optim_share_at(m->o, p + 1) - at;
        size_t n_now = w * width < n ? PNB_MIN(n - w * width, width) : 0;
        m->from[p + 1] = m->from[p] + n_now * m->size;
        *n_most = PNB_MAX(*n_most, n_now);
    }
    size_t rank = m->o->share.rank;
    size_t ours = (m->from[rank + 1] - m->from[rank]) / m->size;
    pnb_status status = copy(m, pnb__optim_share_at(m->o, rank) + w * width, ours,
                             m->window + m->from[rank], false, err);
    return status == PNB_OK && *n_most > 0 ? pnb__peers_gather(ranks, m->window, m->from, err)
                                           : status;
}

/* The others' parts of a window: into the parameters, or into `whole`. Ours are in the parameters
 * already, but not in `whole`. */
static pnb_status take_window(const mover *m, size_t w, size_t width, unsigned char *whole,
                              pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t p = 0; p < m->o->share.n_ranks && status == PNB_OK; p++) {
        size_t at = pnb__optim_share_at(m->o, p) + w * width;
        size_t bytes = m->from[p + 1] - m->from[p];
        if (bytes == 0)
            continue;
        if (whole != NULL)
            memcpy(whole + at * m->size, m->window + m->from[p], bytes);
        else if (p != m->o->share.rank)
            status = copy(m, at, bytes / m->size, m->window + m->from[p], true, err);
    }
    return status;
}

/* All windows of a row, until no share has any left. `whole` NULL: parameters change in place; else
 * it gets the row, where `keeps`. What is not kept is sent all the same: every process makes the
 * same trades. */
static pnb_status move_row(pnb__optim *o, pnb_peers *ranks, row of, bool keeps,
                           unsigned char *whole, pnb_error *err)
{
    mover m = {.o = o, .of = of, .size = PNB__REAL_SIZE(o->kernels.real)};
    size_t n_ranks = o->share.n_ranks, n_most = 1;
    /* short windows would be many trades; long ones the memory that shares are to save */
    size_t width = PNB_MAX(WINDOW_BYTES / m.size / n_ranks, (size_t)1024);
    pnb_status status;
    PNB_TRY(PNB_ALLOC(m.from, n_ranks + 1, err));
    PNB_TRY(PNB_ALLOC(m.window, width * n_ranks * m.size, err));
    for (size_t w = 0; n_most > 0; w++) {
        PNB_TRY(trade_window(&m, ranks, w, width, &n_most, err));
        if (of == PARAMS || keeps)
            PNB_TRY(take_window(&m, w, width, whole, err));
    }
done:
    pnb__free(m.window);
    pnb__free(m.from);
    return status;
}

pnb_status pnb__optim_spread(pnb__optim *o, pnb_peers *ranks, pnb_error *err)
{
    return o->share.n_ranks == 1 ? PNB_OK : move_row(o, ranks, PARAMS, true, NULL, err);
}

/* Moments alone: rank 0 has the parameters, as all have. One block for both, in the order of the
 * file that is written from it. */
pnb_status pnb__optim_collect(pnb__optim *o, pnb_peers *ranks, pnb_error *err)
{
    bool keeps = o->share.rank == 0, has_second = false;
    size_t bytes = pnb__optim_share_at(o, o->share.n_ranks) * PNB__REAL_SIZE(o->kernels.real);
    if (o->share.n_ranks == 1)
        return PNB_OK;
    has_second = o->opts.kind != PNB_OPTIM_SGD && o->opts.kind != PNB_OPTIM_SGDP;
    pnb__optim_drop(o);
    o->whole = keeps ? pnb__alloc_array(2, bytes) : NULL;
    if (keeps && o->whole == NULL)
        return pnb__fail_nomem(err, 2 * bytes);
    pnb_status status = move_row(o, ranks, FIRST, keeps, o->whole, err);
    if (status == PNB_OK && has_second)
        status = move_row(o, ranks, SECOND, keeps, keeps ? (unsigned char *)o->whole + bytes : NULL,
                          err);
    return status;
}

/* As soon as the file is written: it is as large as all the state that shares were to save, and on
 * rank 0 alone. */
void pnb__optim_drop(pnb__optim *o)
{
    pnb__free(o->whole);
    o->whole = NULL;
}
