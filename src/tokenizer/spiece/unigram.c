/* Unigram model (SentencePiece): of all ways to cut a word into pieces the one with the largest sum
 * of scores, found by Viterbi over a trie of the pieces.
 *
 *   best[j] = max over pieces s[i..j) of best[i] + score(piece)
 *
 * A character that no piece of its own length covers may be taken as unknown at (smallest score -
 * 10). Neighbouring unknowns become one token, or their bytes when the model has byte fallback.
 * Ties between paths are decided by rounding, so the arithmetic is SentencePiece's: sums are formed
 * and compared in double and kept in float. Hugging Face keeps doubles; the two differ only in
 * texts like forty equal emoji. User-defined pieces of a spiece.model score (bytes * largest score
 * - 0.1), which makes them win: the largest score counts as at least FLT_MIN. */
#include <float.h>
#include <string.h>

#include "tokenizer/text.h"

#define UNK_PENALTY 10.0f

static bool is_in_trie(const pnb__unigram *u, int32_t id)
{
    if (u->types == NULL)
        return id != u->unk_id;
    return u->types[id] == PNB__PIECE_NORMAL || u->types[id] == PNB__PIECE_USER_DEFINED;
}

/* spiece.model: over the normal pieces; tokenizer.json, which has no types: over all. */
static void find_extreme_scores(pnb__unigram *u)
{
    bool any = false;
    float low = 0, high = FLT_MIN; /* as SentencePiece starts: never below, log probabilities are */
    for (int32_t id = 0; id < u->n; id++) {
        if (u->types != NULL && u->types[id] != PNB__PIECE_NORMAL)
            continue;
        low = any ? PNB_MIN(low, u->scores[id]) : u->scores[id];
        high = PNB_MAX(high, u->scores[id]);
        any = true;
    }
    u->unk_score = low - UNK_PENALTY;
    u->max_score = high;
}

pnb_status pnb__unigram_build(pnb__unigram *u, const pnb__vocab *vocab, pnb_error *err)
{
    size_t total = 0;
    find_extreme_scores(u);
    for (int32_t id = 0; id < u->n; id++) {
        size_t n = 0;
        pnb__vocab_piece(vocab, id, &n);
        total += n;
    }
    pnb__trie_reset(&u->trie);
    pnb_status status = pnb__trie_init(&u->trie, total, err);
    if (status != PNB_OK)
        return status;
    for (int32_t id = 0; id < u->n; id++) {
        size_t n = 0;
        const char *piece = pnb__vocab_piece(vocab, id, &n);
        if (piece != NULL && n > 0 && is_in_trie(u, id))
            pnb__trie_add(&u->trie, piece, n, id);
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
    pnb__free(u->types);
    pnb__trie_reset(&u->trie);
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

static double score_of(const pnb__unigram *u, int32_t id, size_t length)
{
    if (u->types == NULL || u->types[id] != PNB__PIECE_USER_DEFINED)
        return (double)u->scores[id];
    return (double)((float)length * u->max_score) - 0.1;
}

static void extend(const pnb__unigram *u, const char *s, size_t n, size_t at, reach *best)
{
    uint32_t node = 0, c;
    size_t char_bytes = pnb__next_char(s + at, n - at, &c);
    bool has_single = false;
    for (size_t i = at; i < n; i++) {
        node = pnb__trie_step(&u->trie, node, (unsigned char)s[i]);
        if (node == 0)
            break;
        int32_t id = u->trie.piece_at[node];
        if (id < 0)
            continue;
        size_t length = i + 1 - at;
        improve(&best[i + 1], score_of(u, id, length) + best[at].score, id, length);
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
