/* Byte-pair encoding: joins neighbours in the order of the merges until none is left.
 *
 * A binary heap keeps the possible merges by (rank, position), so a word of n symbols takes
 * n log n steps even when it is a megabyte of one letter. Entries that an earlier merge has made
 * stale are recognised when they come up. Symbols are bytes (byte level) or characters. */
#include <string.h>

#include "base/grow.h"
#include "tokenizer/text.h"

pnb_status pnb__ids_reserve(pnb__ids *ids, size_t more, pnb_error *err)
{
    return PNB_GROW(ids->at, ids->capacity, ids->n + more, err);
}

pnb_status pnb__ids_push(pnb__ids *ids, int32_t id, pnb_error *err)
{
    if (ids->n == ids->capacity) {
        pnb_status status = pnb__ids_reserve(ids, 1, err);
        if (status != PNB_OK)
            return status;
    }
    ids->at[ids->n++] = id;
    return PNB_OK;
}

pnb_status pnb__bpe_init(pnb__bpe *bpe, size_t n_merges, pnb_error *err)
{
    bpe->n_slots = 16;
    while (bpe->n_slots < 2 * n_merges)
        bpe->n_slots *= 2;
    if (PNB_ALLOC(bpe->slots, bpe->n_slots, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < bpe->n_slots; i++)
        bpe->slots[i].left = -1;
    for (int i = 0; i < 256; i++)
        bpe->byte_ids[i] = bpe->byte_end_ids[i] = -1;
    bpe->unk_id = -1;
    return PNB_OK;
}

void pnb__bpe_reset(pnb__bpe *bpe)
{
    pnb__free(bpe->slots);
    pnb__free(bpe->end_suffix);
    *bpe = (pnb__bpe){0};
}

/* A table of its own, not base/map.h: the merge lies in the slot, so a lookup reads memory once. */
static pnb__merge *find_slot(const pnb__bpe *bpe, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key *= 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(key >> 20) & (bpe->n_slots - 1);
    while (bpe->slots[at].left >= 0 &&
           (bpe->slots[at].left != left || bpe->slots[at].right != right))
        at = (at + 1) & (bpe->n_slots - 1);
    return &bpe->slots[at];
}

pnb_status pnb__bpe_add(pnb__bpe *bpe, int32_t left, int32_t right, int32_t result, int32_t rank,
                        pnb_error *err)
{
    pnb__merge *slot = find_slot(bpe, left, right);
    if (slot->left >= 0)
        return pnb__fail(err, PNB_FORMAT, "merge %d repeats merge %d", (int)rank, (int)slot->rank);
    *slot = (pnb__merge){left, right, result, rank};
    return PNB_OK;
}

typedef struct symbol {
    int32_t id, previous, next; /* neighbours by index, -1 at the ends; id -1: joined away */
    bool is_frozen;             /* a user-defined piece: stays as it is */
} symbol;

typedef struct candidate {
    int32_t rank, at, left, right;
} candidate;

#define SMALL 64

typedef struct word_job {
    symbol small_symbols[SMALL], *symbols;
    candidate small_heap[3 * SMALL], *heap;
    int32_t n_symbols;
    size_t n_heap;
} word_job;

static bool comes_before(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(word_job *job, candidate c)
{
    size_t i = job->n_heap++;
    while (i > 0 && comes_before(&c, &job->heap[(i - 1) / 2])) {
        job->heap[i] = job->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    job->heap[i] = c;
}

static candidate heap_pop(word_job *job)
{
    candidate top = job->heap[0], last = job->heap[--job->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= job->n_heap)
            break;
        if (child + 1 < job->n_heap && comes_before(&job->heap[child + 1], &job->heap[child]))
            child++;
        if (!comes_before(&job->heap[child], &last))
            break;
        job->heap[i] = job->heap[child];
        i = child;
    }
    job->heap[i] = last;
    return top;
}

static void offer(word_job *job, const pnb__bpe *bpe, int32_t at)
{
    if (at < 0 || job->symbols[at].next < 0 || job->symbols[at].is_frozen ||
        job->symbols[job->symbols[at].next].is_frozen)
        return;
    int32_t left = job->symbols[at].id, right = job->symbols[job->symbols[at].next].id;
    const pnb__merge *m = find_slot(bpe, left, right);
    if (m->left >= 0)
        heap_push(job, (candidate){m->rank, at, left, right});
}

static void merge_all(word_job *job, const pnb__bpe *bpe)
{
    for (int32_t i = 0; i + 1 < job->n_symbols; i++)
        offer(job, bpe, i);
    while (job->n_heap > 0) {
        candidate c = heap_pop(job);
        symbol *s = &job->symbols[c.at];
        if (s->id != c.left || s->next < 0 || job->symbols[s->next].id != c.right)
            continue;
        symbol *gone = &job->symbols[s->next];
        s->id = find_slot(bpe, c.left, c.right)->result;
        s->next = gone->next;
        gone->id = -1;
        if (s->next >= 0)
            job->symbols[s->next].previous = c.at;
        offer(job, bpe, s->previous);
        offer(job, bpe, c.at);
    }
}

/* Two candidates per symbol at the start and two per merge can be on the heap: 3 per symbol. */
static pnb_status job_init(word_job *job, size_t n, pnb_error *err)
{
    job->symbols = job->small_symbols;
    job->heap = job->small_heap;
    job->n_symbols = 0;
    job->n_heap = 0;
    if (n <= SMALL)
        return PNB_OK;
    if (n > INT32_MAX / 4)
        return pnb__fail(err, PNB_LIMIT, "a word of %zu bytes: the limit is 2^29", n);
    job->symbols = pnb__alloc_array(n, sizeof *job->symbols);
    job->heap = pnb__alloc_array(3 * n, sizeof *job->heap);
    if (job->symbols != NULL && job->heap != NULL)
        return PNB_OK;
    pnb__free(job->symbols);
    pnb__free(job->heap);
    return pnb__fail_nomem(err, n * 60);
}

static void job_free(word_job *job)
{
    if (job->symbols != job->small_symbols) {
        pnb__free(job->symbols);
        pnb__free(job->heap);
    }
}

static void add_symbol(word_job *job, int32_t id)
{
    int32_t at = job->n_symbols++;
    job->symbols[at] = (symbol){id, at - 1, -1, false};
    if (at > 0)
        job->symbols[at - 1].next = at;
}

static void add_bytes(word_job *job, const pnb__bpe *bpe, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_end = i + 1 == n && bpe->end_suffix != NULL;
        const int32_t *ids = is_end ? bpe->byte_end_ids : bpe->byte_ids;
        int32_t id = ids[(unsigned char)word[i]];
        add_symbol(job, id >= 0 ? id : bpe->unk_id);
    }
}

/* Id of one character, with the end suffix at the end of the word; -1 when unknown. */
static int32_t find_char(const pnb__bpe *bpe, const pnb__vocab *vocab, const char *s, size_t n,
                         bool is_end)
{
    if (!is_end || bpe->end_suffix == NULL)
        return pnb__vocab_find(vocab, s, n);
    char text[64];
    int used = snprintf(text, sizeof text, "%.*s%s", (int)n, s, bpe->end_suffix);
    return used < (int)sizeof text ? pnb__vocab_find(vocab, text, (size_t)used) : -1;
}

/* Byte fallback: only when the vocabulary has all bytes of the character. */
static bool has_bytes(const pnb__bpe *bpe, const char *s, size_t n)
{
    bool all = bpe->byte_fallback;
    for (size_t i = 0; i < n && all; i++)
        all = bpe->byte_ids[(unsigned char)s[i]] >= 0;
    return all;
}

static void add_chars(word_job *job, const pnb__bpe *bpe, const pnb__vocab *vocab, const char *word,
                      size_t n)
{
    bool was_unk = false;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        int32_t symbol_id;
        size_t used =
            bpe->symbols != NULL ? pnb__trie_longest(bpe->symbols, word + i, n - i, &symbol_id) : 0;
        if (used > 0) {
            add_symbol(job, symbol_id);
            job->symbols[job->n_symbols - 1].is_frozen = true;
            was_unk = false;
            i += used;
            continue;
        }
        used = pnb__next_char(word + i, n - i, &c);
        int32_t id = find_char(bpe, vocab, word + i, used, i + used == n);
        bool is_unk = id < 0 && !has_bytes(bpe, word + i, used);
        if (id >= 0) {
            add_symbol(job, id);
        } else if (!is_unk) {
            for (size_t k = 0; k < used; k++)
                add_symbol(job, bpe->byte_ids[(unsigned char)word[i + k]]);
        } else if (!was_unk || !bpe->fuse_unk) {
            add_symbol(job, bpe->unk_id);
        }
        was_unk = is_unk;
        i += used;
    }
}

pnb_status pnb__bpe_encode(const pnb__bpe *bpe, const pnb__vocab *vocab, const char *word, size_t n,
                           pnb__ids *out, pnb_error *err)
{
    word_job job;
    pnb_status status = job_init(&job, n, err);
    if (status != PNB_OK)
        return status;
    if (bpe->is_byte_level)
        add_bytes(&job, bpe, word, n);
    else
        add_chars(&job, bpe, vocab, word, n);
    merge_all(&job, bpe);
    for (int32_t i = 0; i >= 0 && i < job.n_symbols && status == PNB_OK; i = job.symbols[i].next)
        if (job.symbols[i].id >= 0) /* -1: unknown, and the model has no token for that */
            status = pnb__ids_push(out, job.symbols[i].id, err);
    job_free(&job);
    return status;
}
