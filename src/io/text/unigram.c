/* Unigram model (SentencePiece): of all ways to cut a word into pieces the one with the largest sum
 * of scores, found by Viterbi over a trie of the pieces.
 *
 *   best[j] = max over pieces s[i..j) of best[i] + score(piece)
 *
 * A character that no piece of its own length covers may be taken as unknown at (smallest score -
 * 10). Neighbouring unknowns become one token, or their bytes when the model has byte fallback.
 * Ties between paths are decided by rounding, so the arithmetic is SentencePiece's: sums are formed
 * and compared in double and kept in float. Hugging Face keeps doubles; the two differ only in
 * texts like forty equal emoji. */
#include <string.h>

#include "io/text/text.h"

#define UNK_PENALTY 10.0f

static pnb__edge *find_edge(const pnb__unigram *u, uint32_t node, unsigned char byte)
{
    uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (u->n_edges - 1);
    while (u->edges[at].key != 0 && u->edges[at].key != key)
        at = (at + 1) & (u->n_edges - 1);
    return &u->edges[at];
}

static void add_piece(pnb__unigram *u, const char *piece, size_t n, int32_t id, uint32_t *n_nodes)
{
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        pnb__edge *e = find_edge(u, node, (unsigned char)piece[i]);
        if (e->key == 0) {
            e->key = ((uint64_t)node << 8 | (unsigned char)piece[i]) + 1;
            e->child = (*n_nodes)++;
            u->piece_at[e->child] = -1;
        }
        node = e->child;
    }
    u->piece_at[node] = id;
}

pnb_status pnb__unigram_build(pnb__unigram *u, const pnb__vocab *vocab, pnb_error *err)
{
    size_t total = 1;
    u->unk_score = 0;
    for (int32_t id = 0; id < u->n; id++) {
        size_t n = 0;
        pnb__vocab_piece(vocab, id, &n);
        total += n;
        if (u->scores[id] < u->unk_score)
            u->unk_score = u->scores[id];
    }
    u->unk_score -= UNK_PENALTY;
    u->n_edges = 16;
    while (u->n_edges < 2 * total)
        u->n_edges *= 2;
    u->edges = pnb__alloc_zero(u->n_edges, sizeof *u->edges);
    u->piece_at = pnb__alloc_array(total, sizeof *u->piece_at);
    if (u->edges == NULL || u->piece_at == NULL)
        return pnb__fail_nomem(err, u->n_edges * sizeof *u->edges);
    uint32_t n_nodes = 1;
    u->piece_at[0] = -1;
    for (int32_t id = 0; id < u->n; id++) {
        size_t n = 0;
        const char *piece = pnb__vocab_piece(vocab, id, &n);
        if (piece != NULL && n > 0 && id != u->unk_id)
            add_piece(u, piece, n, id, &n_nodes);
    }
    for (int b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        u->byte_ids[b] = pnb__vocab_find(vocab, name, 6);
    }
    return PNB_OK;
}

void pnb__unigram_reset(pnb__unigram *u)
{
    pnb__free(u->scores);
    pnb__free(u->edges);
    pnb__free(u->piece_at);
    *u = (pnb__unigram){0};
}

/* Best way to reach the end of each prefix of the word. */
typedef struct reach {
    float score;
    int32_t id;      /* of the last piece; -1 unknown */
    uint32_t length; /* of the last piece; 0: not reached */
} reach;

static void improve(reach *r, double score, int32_t id, size_t length)
{
    if (r->length == 0 || score > r->score)
        *r = (reach){(float)score, id, (uint32_t)length};
}

static void extend(const pnb__unigram *u, const char *s, size_t n, size_t at, reach *best)
{
    uint32_t node = 0, c;
    size_t char_bytes = pnb__next_char(s + at, n - at, &c);
    bool has_single = false;
    for (size_t i = at; i < n; i++) {
        const pnb__edge *e = find_edge(u, node, (unsigned char)s[i]);
        if (e->key == 0)
            break;
        node = e->child;
        int32_t id = u->piece_at[node];
        if (id < 0)
            continue;
        size_t length = i + 1 - at;
        improve(&best[i + 1], (double)u->scores[id] + best[at].score, id, length);
        has_single = has_single || length == char_bytes;
    }
    if (!has_single)
        improve(&best[at + char_bytes], u->unk_score + best[at].score, -1, char_bytes);
}

static pnb_status put_unknown(const pnb__unigram *u, const char *s, size_t n, bool *was_unk,
                              pnb__ids *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    bool has_bytes = u->byte_fallback;
    for (size_t i = 0; i < n && has_bytes; i++)
        has_bytes = u->byte_ids[(unsigned char)s[i]] >= 0;
    for (size_t i = 0; i < n && has_bytes && status == PNB_OK; i++)
        status = pnb__ids_push(out, u->byte_ids[(unsigned char)s[i]], err);
    if (!has_bytes && !*was_unk && u->unk_id >= 0)
        status = pnb__ids_push(out, u->unk_id, err);
    *was_unk = !has_bytes;
    return status;
}

/* Follows the pieces back from the end, then writes them forwards. The links are turned round in
 * place: best[begin].length becomes the length of the piece that starts there. */
static pnb_status write_path(const pnb__unigram *u, const char *s, size_t n, reach *best,
                             pnb__ids *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    reach carry = best[n];
    for (size_t end = n; end > 0;) {
        size_t begin = end - carry.length;
        reach before = best[begin];
        best[begin] = carry;
        carry = before;
        end = begin;
    }
    bool was_unk = false;
    for (size_t at = 0; at < n && status == PNB_OK; at += best[at].length) {
        if (best[at].id < 0) {
            status = put_unknown(u, s + at, best[at].length, &was_unk, out, err);
        } else {
            status = pnb__ids_push(out, best[at].id, err);
            was_unk = false;
        }
    }
    return status;
}

pnb_status pnb__unigram_encode(const pnb__unigram *u, const char *text, size_t n, pnb__ids *out,
                               pnb_error *err)
{
    if (n > UINT32_MAX / 2)
        return pnb__fail(err, PNB_LIMIT, "a word of %zu bytes: the limit is 2^31", n);
    reach *best = pnb__alloc_zero(n + 1, sizeof *best);
    if (best == NULL)
        return pnb__fail_nomem(err, (n + 1) * sizeof *best);
    for (size_t at = 0; at < n; at++)
        if (at == 0 || best[at].length > 0)
            extend(u, text, n, at, best);
    pnb_status status = write_path(u, text, n, best, out, err);
    pnb__free(best);
    return status;
}
