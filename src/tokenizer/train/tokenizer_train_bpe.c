/* Learns byte-pair merges: again and again the most frequent pair of neighbours becomes one token.
 *
 * Counts of pairs are kept up to date rather than taken anew: each pair knows the words it was seen
 * in, only those words are rewritten by a merge, and a heap offers the largest count. A count in
 * the heap may be out of date; it is compared when it comes up and put back if it fell. Ties go to
 * the pair whose left part, then right part, is smaller as bytes, so the result depends on nothing
 * but the counts. */
#include <string.h>

#include "base/grow.h"
#include "base/map.h"
#include "io/json/json.h"
#include "tokenizer/text.h"
#include "tokenizer/train/tokenizer_train.h"

typedef struct pair {
    int32_t left, right;
    int64_t count;
    uint32_t *words; /* where it was seen; may name a word twice or after it left */
    size_t n_words;
    bool is_fresh; /* created or raised by the merge at hand */
} pair;

typedef struct entry {
    int64_t count;
    uint32_t pair;
} entry;

typedef struct trainer {
    const pnb__query *words;
    int32_t *symbols; /* of all words, each from its own start on */
    uint32_t *n_symbols;
    pnb__buf text; /* bytes of every token */
    size_t *start; /* by token, one more than there are */
    int32_t n_tokens;
    pnb__vocab known; /* tokens by their bytes: two merges may make the same one */
    pair *pairs;
    size_t n_pairs;
    pnb__key_map places; /* in `pairs`, by (left, right) */
    entry *heap;
    size_t n_heap, heap_capacity;
    uint32_t *fresh; /* pairs to be offered to the heap after the merge at hand */
    size_t n_fresh, fresh_capacity;
} trainer;

static void trainer_free(trainer *t)
{
    for (size_t i = 0; i < t->n_pairs; i++)
        pnb__free(t->pairs[i].words);
    pnb__free(t->symbols);
    pnb__free(t->n_symbols);
    pnb__buf_reset(&t->text);
    pnb__free(t->start);
    pnb__vocab_reset(&t->known);
    pnb__free(t->pairs);
    pnb__key_map_reset(&t->places);
    pnb__free(t->heap);
    pnb__free(t->fresh);
}

static uint64_t hash_of(int32_t left, int32_t right)
{
    return pnb__hash_u64((uint64_t)(uint32_t)left << 32 | (uint32_t)right);
}

/* Place of the pair's record, PNB__NO_KEY when there is none. */
static size_t find_pair(const trainer *t, int32_t left, int32_t right)
{
    size_t i, step = 0;
    uint64_t hash = hash_of(left, right);
    while ((i = pnb__key_map_next(&t->places, hash, &step)) != PNB__NO_KEY &&
           (t->pairs[i].left != left || t->pairs[i].right != right)) {
    }
    return i;
}

/* The pair's record, created when it is new; NULL when out of memory. */
static pair *get_pair(trainer *t, int32_t left, int32_t right)
{
    size_t i = find_pair(t, left, right);
    if (i != PNB__NO_KEY)
        return &t->pairs[i];
    i = t->n_pairs;
    if (PNB_PUSH(t->pairs, t->n_pairs, NULL, (pair){.left = left, .right = right}) != PNB_OK ||
        pnb__key_map_add(&t->places, hash_of(left, right), i, NULL) != PNB_OK)
        return NULL;
    return &t->pairs[i];
}

static bool raise_pair(trainer *t, int32_t left, int32_t right, uint32_t word)
{
    pair *p = get_pair(t, left, right);
    if (p == NULL)
        return false;
    p->count += t->words->at[word].count;
    if (p->n_words == 0 || p->words[p->n_words - 1] != word) {
        if (PNB_PUSH(p->words, p->n_words, NULL, word) != PNB_OK)
            return false;
    }
    if (p->is_fresh)
        return true;
    p->is_fresh = true;
    if (PNB_GROW(t->fresh, t->fresh_capacity, t->n_fresh + 1, NULL) != PNB_OK)
        return false;
    t->fresh[t->n_fresh++] = (uint32_t)(p - t->pairs);
    return true;
}

/* ---- heap: largest count first, then the smaller parts ---- */

static int compare_tokens(const trainer *t, int32_t a, int32_t b)
{
    size_t n_a = t->start[a + 1] - t->start[a], n_b = t->start[b + 1] - t->start[b];
    int order = memcmp(t->text.data + t->start[a], t->text.data + t->start[b], PNB_MIN(n_a, n_b));
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

static bool comes_before(const trainer *t, const entry *a, const entry *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    const pair *p = &t->pairs[a->pair], *q = &t->pairs[b->pair];
    int order = compare_tokens(t, p->left, q->left);
    return (order != 0 ? order : compare_tokens(t, p->right, q->right)) < 0;
}

static bool heap_push(trainer *t, entry e)
{
    if (PNB_GROW(t->heap, t->heap_capacity, t->n_heap + 1, NULL) != PNB_OK)
        return false;
    size_t i = t->n_heap++;
    while (i > 0 && comes_before(t, &e, &t->heap[(i - 1) / 2])) {
        t->heap[i] = t->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    t->heap[i] = e;
    return true;
}

static entry heap_pop(trainer *t)
{
    entry top = t->heap[0], last = t->heap[--t->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= t->n_heap)
            break;
        if (child + 1 < t->n_heap && comes_before(t, &t->heap[child + 1], &t->heap[child]))
            child++;
        if (!comes_before(t, &t->heap[child], &last))
            break;
        t->heap[i] = t->heap[child];
        i = child;
    }
    t->heap[i] = last;
    return top;
}

static bool offer_fresh(trainer *t)
{
    for (size_t i = 0; i < t->n_fresh; i++) {
        pair *p = &t->pairs[t->fresh[i]];
        p->is_fresh = false;
        if (!heap_push(t, (entry){p->count, t->fresh[i]}))
            return false;
    }
    t->n_fresh = 0;
    return true;
}

/* The pair with the largest true count, or false when none is left. */
static bool next_pair(trainer *t, uint32_t *best, bool *failed)
{
    while (t->n_heap > 0) {
        entry e = heap_pop(t);
        int64_t count = t->pairs[e.pair].count;
        if (count == e.count && count > 0) {
            *best = e.pair;
            return true;
        }
        if (count > 0 && count < e.count && !heap_push(t, (entry){count, e.pair})) {
            *failed = true;
            return false;
        }
    }
    return false;
}

/* ---- words ---- */

static pair *known_pair(const trainer *t, int32_t left, int32_t right)
{
    return &t->pairs[find_pair(t, left, right)];
}

/* Adds the word's pairs to the counts. `added` is the token that a merge just put there, -1 at the
 * start: pairs without it are known from before, know the word, and cannot have grown. */
static bool count_pairs(trainer *t, uint32_t word, int32_t added)
{
    const int32_t *s = t->symbols + t->words->at[word].start;
    for (uint32_t i = 0; i + 1 < t->n_symbols[word]; i++) {
        bool is_new = added < 0 || s[i] == added || s[i + 1] == added;
        if (!is_new)
            known_pair(t, s[i], s[i + 1])->count += t->words->at[word].count;
        else if (!raise_pair(t, s[i], s[i + 1], word))
            return false;
    }
    return true;
}

/* Rewrites one word with (left, right) -> result. Pairs that stay keep their count; those that
 * vanish lose the word's, those that appear gain it. */
static bool merge_word(trainer *t, uint32_t word, int32_t left, int32_t right, int32_t result)
{
    int32_t *s = t->symbols + t->words->at[word].start;
    uint32_t n = t->n_symbols[word], kept = 0;
    bool has = false;
    for (uint32_t i = 0; i + 1 < n && !has; i++)
        has = s[i] == left && s[i + 1] == right;
    if (!has)
        return true;
    for (uint32_t i = 0; i + 1 < n; i++)
        known_pair(t, s[i], s[i + 1])->count -= t->words->at[word].count;
    for (uint32_t i = 0; i < n; kept++) {
        bool joins = i + 1 < n && s[i] == left && s[i + 1] == right;
        s[kept] = joins ? result : s[i];
        i += joins ? 2 : 1;
    }
    t->n_symbols[word] = kept;
    return count_pairs(t, word, result);
}

/* ---- tokens ---- */

static int32_t add_token(trainer *t, const char *bytes, size_t n, pnb_error *err)
{
    if (pnb__vocab_add(&t->known, t->n_tokens, bytes, n, err) != PNB_OK)
        return -1;
    pnb__buf_append(&t->text, bytes, n);
    t->start[t->n_tokens + 1] = t->text.size;
    return t->text.failed ? -1 : t->n_tokens++;
}

static pnb_status start(trainer *t, const pnb__query *words, int max_tokens, pnb_error *err)
{
    pnb_status status;
    size_t n_bytes = words->text.size;
    t->words = words;
    PNB_TRY(PNB_ALLOC(t->symbols, n_bytes + 1, err));
    PNB_TRY(PNB_ALLOC(t->n_symbols, words->n + 1, err));
    PNB_TRY(PNB_ALLOC_ZERO(t->start, (size_t)max_tokens + 1, err));
    PNB_TRY(pnb__vocab_init(&t->known, max_tokens, (size_t)max_tokens, err));
    for (int b = 0; b < 256; b++) {
        char byte = (char)b;
        if (add_token(t, &byte, 1, err) < 0)
            return pnb__fail_nomem(err, 1);
    }
    for (size_t i = 0; i < n_bytes; i++)
        t->symbols[i] = (unsigned char)words->text.data[i];
    for (size_t i = 0; i < words->n; i++)
        t->n_symbols[i] = words->at[i].n;
    for (size_t i = 0; i < words->n; i++)
        if (!count_pairs(t, (uint32_t)i, -1))
            return pnb__fail_nomem(err, n_bytes);
    if (!offer_fresh(t))
        return pnb__fail_nomem(err, t->n_fresh);
done:
    return status;
}

/* The bytes of a token in GPT-2's printable letters, as JSON text without quotes. */
static void put_token(const trainer *t, pnb__buf *out, int32_t token)
{
    for (size_t i = t->start[token]; i < t->start[token + 1]; i++) {
        uint32_t c = pnb__byte_char((unsigned char)t->text.data[i]);
        if (c == '"' || c == '\\')
            pnb__buf_putc(out, '\\');
        pnb__put_char(out, c);
    }
}

static void put_merge(const trainer *t, pnb__buf *out, const pair *p)
{
    pnb__buf_puts(out, out->size > 0 ? ",\n    \"" : "    \"");
    put_token(t, out, p->left);
    pnb__buf_putc(out, ' ');
    put_token(t, out, p->right);
    pnb__buf_putc(out, '"');
}

/* Joins the pair everywhere. Returns false when out of memory. */
static bool merge_pair(trainer *t, uint32_t index, pnb__buf *merges, pnb_error *err)
{
    pair p = t->pairs[index];
    pnb__buf joined = {0};
    pnb__buf_append(&joined, t->text.data + t->start[p.left],
                    t->start[p.left + 1] - t->start[p.left]);
    pnb__buf_append(&joined, t->text.data + t->start[p.right],
                    t->start[p.right + 1] - t->start[p.right]);
    int32_t result = -1;
    if (!joined.failed) {
        result = pnb__vocab_find(&t->known, joined.data, joined.size);
        if (result < 0)
            result = add_token(t, joined.data, joined.size, err);
    }
    pnb__buf_reset(&joined);
    if (result < 0)
        return false;
    put_merge(t, merges, &p);
    /* the record may move while words are rewritten, so its list is taken out first */
    t->pairs[index].words = NULL;
    t->pairs[index].n_words = 0;
    bool is_ok = true;
    for (size_t i = 0; i < p.n_words && is_ok; i++)
        is_ok = merge_word(t, p.words[i], p.left, p.right, result);
    pnb__free(p.words);
    t->pairs[index].count = 0;
    return is_ok && offer_fresh(t) && !merges->failed;
}

/* Byte tokens are numbered in the order of their letters, as Hugging Face's trainer does. */
static void put_vocab(const trainer *t, pnb__buf *out, int first_id)
{
    int id = first_id;
    for (uint32_t c = 0; c <= 0x143; c++) {
        int byte = pnb__char_byte(c);
        if (byte < 0)
            continue;
        pnb__buf_puts(out, out->size > 0 ? ",\n    \"" : "    \"");
        put_token(t, out, byte);
        pnb__buf_printf(out, "\": %d", id++);
    }
    for (int32_t token = 256; token < t->n_tokens; token++) {
        pnb__buf_puts(out, ",\n    \"");
        put_token(t, out, token);
        pnb__buf_printf(out, "\": %d", id++);
    }
    pnb__buf_putc(out, '\n');
}

pnb_status pnb__train_bpe(const pnb__query *words, const pnb__bpe_goal *goal, pnb__buf *vocab,
                          pnb__buf *merges, pnb_error *err)
{
    trainer t = {0};
    uint32_t best;
    bool failed = false;
    pnb_status status = start(&t, words, goal->max_tokens, err);
    while (status == PNB_OK && t.n_tokens < goal->max_tokens && next_pair(&t, &best, &failed)) {
        if (t.pairs[best].count < PNB_MAX(goal->min_count, 1))
            break;
        if (!merge_pair(&t, best, merges, err))
            failed = true;
        if (failed)
            break;
    }
    if (status == PNB_OK && !failed)
        put_vocab(&t, vocab, goal->first_id);
    if (merges->size > 0)
        pnb__buf_putc(merges, '\n');
    if (status == PNB_OK && (failed || vocab->failed || merges->failed))
        status = pnb__fail_nomem(err, t.text.size);
    trainer_free(&t);
    return status;
}
