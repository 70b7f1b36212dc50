/* Gathers rows over ranks: first what is known of them, whose sizes nobody else knows, then their
 * arrays straight into the set that all end with. Names are not sent: every rank has the list.
 *
 * What travels of the known: rows, texts cut, texts of unknown words and skips as four numbers, an
 * input a row, and of a skip its input, the length of its reason and the reason. */
#include "encode/job/embed_gather.h"

#include <string.h>

#include "base/grow.h"
#include "peers/peers.h"
#include "sets/embeddings.h"

void pnb__embed_known_reset(pnb__embed_known *k)
{
    for (size_t i = 0; i < k->n_skips; i++)
        pnb__free(k->skips[i].why);
    pnb__free(k->skips);
    pnb__free(k->input);
    *k = (pnb__embed_known){0};
}

pnb_status pnb__embed_known_skip(pnb__embed_known *k, size_t input, const char *why, pnb_error *err)
{
    char *copy = pnb__strdup(why);
    if (copy == NULL)
        return pnb__fail_nomem(err, strlen(why));
    pnb_status status = PNB_PUSH(k->skips, k->n_skips, err, (pnb__embed_skip){input, copy});
    if (status != PNB_OK)
        pnb__free(copy);
    return status;
}

static void put(pnb__buf *b, uint64_t value)
{
    pnb__buf_append(b, &value, sizeof value);
}

static void put_known(pnb__buf *b, const pnb__embed_known *k)
{
    put(b, k->n_rows);
    put(b, k->n_truncated);
    put(b, k->n_unknown);
    put(b, k->n_skips);
    for (size_t i = 0; i < k->n_rows; i++)
        put(b, k->input[i]);
    for (size_t i = 0; i < k->n_skips; i++) {
        size_t n = strlen(k->skips[i].why);
        put(b, k->skips[i].input);
        put(b, n);
        pnb__buf_append(b, k->skips[i].why, n);
    }
}

/* Bytes of another process, which end where they end. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static bool take(cursor *c, void *to, size_t n)
{
    if ((size_t)(c->end - c->at) < n)
        return false;
    memcpy(to, c->at, n);
    c->at += n;
    return true;
}

static bool take_number(cursor *c, size_t *out)
{
    uint64_t value = 0;
    bool there = take(c, &value, sizeof value) && value <= SIZE_MAX;
    *out = (size_t)value;
    return there;
}

static pnb_status take_skip(cursor *c, pnb__embed_known *all, bool *whole, pnb_error *err)
{
    size_t input = 0, n = 0;
    *whole = take_number(c, &input) && take_number(c, &n) && n <= (size_t)(c->end - c->at);
    if (!*whole)
        return PNB_OK;
    char *why = pnb__strndup(c->at, n);
    if (why == NULL)
        return pnb__fail_nomem(err, n);
    c->at += n;
    pnb_status status = pnb__embed_known_skip(all, input, why, err);
    pnb__free(why);
    return status;
}

static pnb_status take_known(const pnb__buf *b, pnb__embed_known *all, pnb_error *err)
{
    cursor c = {b->data, b->data + b->size};
    size_t rows = 0, cut = 0, unknown = 0, skips = 0;
    pnb_status status = PNB_OK;
    bool whole = take_number(&c, &rows) && take_number(&c, &cut) && take_number(&c, &unknown) &&
                 take_number(&c, &skips) && rows <= (size_t)(c.end - c.at) / sizeof(uint64_t);
    for (size_t i = 0; whole && i < rows && status == PNB_OK; i++) {
        size_t input = 0;
        whole = take_number(&c, &input);
        status = PNB_PUSH(all->input, all->n_rows, err, input);
    }
    for (size_t i = 0; whole && i < skips && status == PNB_OK; i++)
        status = take_skip(&c, all, &whole, err);
    all->n_truncated += cut;
    all->n_unknown += unknown;
    if (status == PNB_OK && (!whole || c.at != c.end))
        status = pnb__fail(err, PNB_FORMAT, "what another process says of its rows is not whole");
    return status;
}

pnb_status pnb__embed_gather_known(pnb_peers *ranks, const pnb__embed_known *mine,
                                   pnb__embed_known *all, size_t *from, pnb_error *err)
{
    size_t n_ranks = pnb_peers_count(ranks);
    pnb__buf bytes = {0}, *told = NULL;
    pnb_status status;
    *all = (pnb__embed_known){0};
    put_known(&bytes, mine);
    PNB_TRY(pnb__buf_check(&bytes, err));
    PNB_TRY(PNB_ALLOC_ZERO(told, n_ranks, err));
    PNB_TRY(pnb__peers_tell_all(ranks, bytes.data, bytes.size, told, err));
    for (size_t p = 0; p < n_ranks; p++) {
        from[p] = all->n_rows;
        PNB_TRY(take_known(&told[p], all, err));
    }
    from[n_ranks] = all->n_rows;
done:
    for (size_t p = 0; told != NULL && p < n_ranks; p++)
        pnb__buf_reset(&told[p]);
    pnb__free(told);
    pnb__buf_reset(&bytes);
    if (status != PNB_OK)
        pnb__embed_known_reset(all);
    return status;
}

pnb_status pnb__embed_gather_rows(pnb_peers *ranks, const pnb_embeddings *mine, pnb_embeddings *all,
                                  const size_t *from, pnb_error *err)
{
    size_t n_ranks = pnb_peers_count(ranks), rank = pnb_peers_rank(ranks), *at = NULL;
    pnb_status status = PNB_ALLOC(at, n_ranks + 1, err);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS && status == PNB_OK; i++) {
        if (!pnb__embedding_has_array(all, i))
            continue;
        size_t width = pnb__embedding_count(all, i) / all->n * sizeof(float);
        char *to = (char *)*pnb__embedding_field(all, i);
        for (size_t p = 0; p <= n_ranks; p++)
            at[p] = from[p] * width;
        memcpy(to + at[rank], pnb__embedding_values(mine, i), at[rank + 1] - at[rank]);
        status = pnb__peers_gather(ranks, to, at, err);
    }
    pnb__free(at);
    return status;
}
