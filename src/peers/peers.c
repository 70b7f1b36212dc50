/* Opening, failing and closing together.
 *
 * A failure is settled once: its rank, status and text are the same everywhere. Who fails by itself
 * tells all others and listens whether a lower rank did so too, whose failure it then is: when all
 * fail alike, as by a wrong option, one speaks. A rank that is gone or silent cannot speak; the
 * lowest of the others does. */
#include "peers/peers_internal.h"

#include <string.h>

enum { LISTEN_S = 3 };

size_t pnb_peers_rank(const pnb_peers *ranks)
{
    return ranks != NULL ? ranks->rank : 0;
}

size_t pnb_peers_count(const pnb_peers *ranks)
{
    return ranks != NULL ? ranks->n_ranks : 1;
}

void pnb_peers_set_timeout(pnb_peers *ranks, double timeout_s)
{
    if (ranks != NULL)
        ranks->timeout_s = timeout_s;
}

pnb__peers_cost pnb__peers_get_cost(const pnb_peers *r)
{
    return r != NULL ? r->cost : (pnb__peers_cost){0};
}

pnb_status pnb_peers_open(pnb_peers **out, const pnb_launch *launch, double timeout_s,
                          const volatile sig_atomic_t *stop, pnb_error *err)
{
    *out = NULL;
    if (launch->how == PNB_LAUNCH_ALONE)
        return PNB_OK;
    pnb_peers *r = pnb__alloc_zero(1, sizeof *r);
    if (r == NULL)
        return pnb__fail_nomem(err, sizeof *r);
    r->rank = launch->rank;
    r->n_ranks = launch->n_ranks;
    r->timeout_s = timeout_s;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(r->out, r->n_ranks, err));
    PNB_TRY(PNB_ALLOC_ZERO(r->in, r->n_ranks, err));
    if (launch->how == PNB_LAUNCH_MPI)
        PNB_TRY(pnb__mpi_open(&r->wire, launch, err));
    else
        PNB_TRY(pnb__tcp_open(&r->wire, launch, timeout_s, stop, err));
    *out = r;
done:
    if (status != PNB_OK)
        pnb_peers_close(r);
    return status;
}

void pnb_peers_close(pnb_peers *ranks)
{
    if (ranks == NULL)
        return;
    if (ranks->wire.close != NULL)
        ranks->wire.close(ranks->wire.self, !ranks->is_settled);
    pnb__free_aligned(ranks->scratch);
    pnb__free(ranks->out);
    pnb__free(ranks->in);
    pnb__free(ranks);
}

const char *pnb_peers_mpi_version(void)
{
    return pnb__mpi_version();
}

/* ---- failures ---- */

/* The settled failure as an error, in place of what `err` says. */
static pnb_status say_failure(const pnb_peers *r, pnb_error *err)
{
    const pnb__notice *f = &r->failure;
    pnb_status status = f->status > 0 && f->status < PNB_N_STATUS ? (pnb_status)f->status : PNB_IO;
    if (err != NULL)
        pnb_error_reset(err);
    return pnb__fail(err, status, "rank %u: %s", f->rank, f->text);
}

static void settle(pnb_peers *r, const pnb__notice *failure)
{
    r->failure = *failure;
    r->failure.text[sizeof r->failure.text - 1] = '\0';
    r->is_settled = true;
}

static pnb__notice notice_of(size_t rank, pnb_status status, bool is_own, const char *text)
{
    pnb__notice n = {.rank = (uint32_t)rank, .status = (uint32_t)status, .is_own = is_own};
    snprintf(n.text, sizeof n.text, "%s", text != NULL ? text : "");
    return n;
}

/* Tells all and hears the lower ones: the lowest that failed by itself is the one whose failure it
 * is. */
static void settle_own(pnb_peers *r, const pnb__notice *mine)
{
    pnb__notice *theirs = pnb__alloc_zero(r->n_ranks, sizeof *theirs);
    bool *heard = pnb__alloc_zero(r->n_ranks, sizeof *heard);
    settle(r, mine);
    r->wire.tell(r->wire.self, mine, LISTEN_S, heard != NULL ? theirs : NULL, heard);
    for (size_t p = 0; p < r->rank && theirs != NULL && heard != NULL; p++)
        if (heard[p] && theirs[p].is_own && theirs[p].rank < r->failure.rank)
            settle(r, &theirs[p]);
    pnb__free(theirs);
    pnb__free(heard);
}

pnb_status pnb__peers_blame(pnb_peers *r, size_t whose, pnb_status status, pnb_error *err)
{
    if (r == NULL)
        return status;
    const pnb__notice n = notice_of(whose, status, false, err != NULL ? err->text : "");
    if (!r->is_settled)
        settle(r, &n);
    return say_failure(r, err);
}

void pnb_peers_fail(pnb_peers *ranks, pnb_status status, pnb_error *err)
{
    if (ranks == NULL || status == PNB_OK)
        return;
    if (!ranks->is_settled) {
        const char *text =
            err != NULL && err->text[0] != '\0' ? err->text : pnb_status_sentence(status);
        const pnb__notice mine = notice_of(ranks->rank, status, true, text);
        settle_own(ranks, &mine);
    }
    (void)say_failure(ranks, err);
}

pnb_status pnb_peers_agree(pnb_peers *ranks, pnb_status status, pnb_error *err)
{
    if (ranks == NULL)
        return status;
    if (status != PNB_OK) {
        pnb_peers_fail(ranks, status, err);
        return (pnb_status)ranks->failure.status;
    }
    pnb__peers_begin(ranks);
    for (size_t p = 0; p < ranks->n_ranks; p++)
        ranks->out[p].is_used = ranks->in[p].is_used = p != ranks->rank;
    return pnb__peers_trade(ranks, 0, err);
}

bool pnb_peers_is_speaker(const pnb_peers *ranks)
{
    if (ranks == NULL)
        return true;
    if (!ranks->is_settled)
        return ranks->rank == 0;
    if (ranks->failure.is_own)
        return ranks->rank == ranks->failure.rank;
    return ranks->rank == (ranks->failure.rank == 0 ? 1 : 0);
}

/* ---- trades ---- */

void pnb__peers_begin(pnb_peers *r)
{
    memset(r->out, 0, r->n_ranks * sizeof *r->out);
    memset(r->in, 0, r->n_ranks * sizeof *r->in);
}

/* Others are told what a notice said, or who is gone: they may still wait for that rank. */
static pnb_status fail_trade(pnb_peers *r, pnb_status status, const pnb__notice *came, int silent,
                             const char *why, pnb_error *err)
{
    pnb__notice n;
    if (status == PNB_INTERRUPTED)
        n = *came;
    else
        n = notice_of(silent >= 0 ? (size_t)silent : r->rank, status, false, why);
    settle(r, &n);
    n.is_own = false; /* we only pass it on */
    r->wire.tell(r->wire.self, &n, 0, NULL, NULL);
    return say_failure(r, err);
}

pnb_status pnb__peers_trade(pnb_peers *r, uint32_t flags, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    pnb__notice came = {0};
    int silent = -1;
    double start = pnb__now_s();
    if (r->is_settled)
        return say_failure(r, err);
    for (size_t p = 0; p < r->n_ranks; p++) {
        r->out[p].header.kind = PNB__POST_DATA;
        r->out[p].header.flags = flags;
        r->out[p].header.number = r->in[p].header.number = r->number;
        r->cost.n_bytes += r->out[p].is_used ? r->out[p].header.n_bytes : 0;
    }
    r->number++;
    pnb_status status =
        r->wire.trade(r->wire.self, r->out, r->in, r->timeout_s, &came, &silent, &why);
    r->cost.seconds += pnb__now_s() - start;
    r->cost.n_trades++;
    if (status == PNB_OK)
        return PNB_OK;
    return fail_trade(r, status, &came, silent, why.text, err);
}
