/* The way from a caption to a row of ids.
 *
 * Added tokens are looked for twice, as in the reference: those not marked "normalized" in the text
 * as it came, the others after the normaliser has run over what lies between. */
#include <string.h>

#include "tokenizer/text.h"

typedef struct stage {
    const pnb_tokenizer *tok;
    const pnb__sink *sink;
    bool is_first; /* nothing was handed on yet */
} stage;

typedef struct match {
    const pnb__added *token;
    size_t begin, end; /* with the whitespace it swallows */
} match;

/* Where the character in front of `at` begins; at > 0. */
static size_t char_before(const char *s, size_t at)
{
    while (--at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80) {
    }
    return at;
}

static bool is_alone(const char *s, size_t n, size_t begin, size_t end)
{
    uint32_t c;
    if (begin > 0) {
        size_t before = char_before(s, begin);
        pnb__next_char(s + before, begin - before, &c);
        if (pnb__is_word(c))
            return false;
    }
    if (end == n)
        return true;
    pnb__next_char(s + end, n - end, &c);
    return !pnb__is_word(c);
}

/* The longest added token at `at`, or NULL. */
static const pnb__added *token_at(const pnb_tokenizer *tok, bool normalized, const char *s,
                                  size_t n, size_t at)
{
    const pnb__added *best = NULL;
    for (size_t i = 0; i < tok->n_added; i++) {
        const pnb__added *a = &tok->added[i];
        if (a->normalized != normalized || a->n == 0 || a->is_word || a->n > n - at ||
            s[at] != a->content[0] || memcmp(s + at, a->content, a->n) != 0)
            continue;
        if (a->single_word && !is_alone(s, n, at, at + a->n))
            continue;
        if (best == NULL || a->n > best->n)
            best = a;
    }
    return best;
}

static bool find_added(const pnb_tokenizer *tok, bool normalized, const char *s, size_t n,
                       size_t from, match *found)
{
    for (size_t at = from; at < n; at++) {
        if (tok->added_first[normalized][(unsigned char)s[at]] == 0)
            continue;
        const pnb__added *a = token_at(tok, normalized, s, n, at);
        if (a == NULL)
            continue;
        *found = (match){a, at, at + a->n};
        uint32_t c;
        while (a->strip_left && found->begin > from) {
            size_t last = char_before(s, found->begin);
            pnb__next_char(s + last, found->begin - last, &c);
            if (last < from || !pnb__is_space(c))
                break;
            found->begin = last;
        }
        while (a->strip_right && found->end < n) {
            size_t used = pnb__next_char(s + found->end, n - found->end, &c);
            if (!pnb__is_space(c))
                break;
            found->end += used;
        }
        return true;
    }
    return false;
}

static pnb_status send_words(stage *st, const char *s, size_t n, pnb_error *err)
{
    if (n == 0)
        return PNB_OK;
    bool is_first = st->is_first;
    st->is_first = false;
    return pnb__pretokenize(st->tok->splits, st->tok->n_splits, s, n, is_first, st->sink->word,
                            st->sink->user, err);
}

static pnb_status send_normalized(stage *st, const char *s, size_t n, pnb_error *err);

/* Cuts the added tokens of one sort out of s and hands on what lies between. */
static pnb_status cut_added(stage *st, bool normalized, const char *s, size_t n, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t at = 0;
    match m = {0};
    while (at < n && status == PNB_OK) {
        bool found = find_added(st->tok, normalized, s, n, at, &m);
        size_t end = found ? m.begin : n;
        if (end > at)
            status = normalized ? send_words(st, s + at, end - at, err)
                                : send_normalized(st, s + at, end - at, err);
        if (found && status == PNB_OK) {
            st->is_first = false;
            if (st->sink->added != NULL)
                status = st->sink->added(st->sink->user, m.token, err);
        }
        at = found ? m.end : n;
    }
    return status;
}

static pnb_status send_normalized(stage *st, const char *s, size_t n, pnb_error *err)
{
    pnb__buf b = {0};
    if (st->tok->n_norms == 0)
        return cut_added(st, true, s, n, err);
    pnb_status status = pnb__normalize(st->tok->norms, st->tok->n_norms, s, n, &b, err);
    if (status == PNB_OK)
        status = cut_added(st, true, b.data, b.size, err);
    pnb__buf_reset(&b);
    return status;
}

pnb_status pnb__tok_words(const pnb_tokenizer *tok, const char *text, size_t n,
                          const pnb__sink *sink, pnb_error *err)
{
    stage st = {tok, sink, true};
    if (n > PNB_TOKENIZER_MAX_BYTES)
        return pnb__fail(err, PNB_LIMIT, "a text of %zu bytes: a caption has at most %d", n,
                         PNB_TOKENIZER_MAX_BYTES);
    if (tok->clean.mode == PNB_CLEAN_NONE && pnb__utf8_valid(text, n))
        return cut_added(&st, false, text, n, err);
    pnb__buf clean;
    pnb_status status = pnb__clean(&tok->clean, text, n, &clean, err);
    if (status != PNB_OK)
        return status;
    status = cut_added(&st, false, clean.data, clean.size, err);
    pnb__buf_reset(&clean);
    return status;
}

typedef struct collect {
    const pnb_tokenizer *tok;
    pnb__ids ids;
} collect;

/* A string of CLIP's own expression, spelt as the vocabulary has it: its id, else -1. */
static int32_t find_word_token(const pnb_tokenizer *tok, const char *word, size_t n)
{
    for (size_t i = 0; i < tok->n_added; i++)
        if (tok->added[i].is_word && tok->added[i].n == n &&
            memcmp(tok->added[i].content, word, n) == 0)
            return tok->added[i].id;
    return -1;
}

/* The id of a whole word. Added tokens that the model lacks are cut out of the text or not found: a
 * word that normalising made the same as one is unknown, as in Hugging Face's WordLevel. */
static int32_t word_id(const pnb_tokenizer *tok, const char *word, size_t n)
{
    int32_t id = pnb__vocab_find(&tok->vocab, word, n);
    for (size_t i = 0; i < tok->n_added && id >= 0; i++)
        if (tok->added[i].id == id && !tok->added[i].in_model)
            return tok->unk_id;
    return id >= 0 ? id : tok->unk_id;
}

static pnb_status collect_word(void *user, const char *word, size_t n, pnb_error *err)
{
    collect *c = user;
    int32_t whole = n > 2 && *word == '<' ? find_word_token(c->tok, word, n) : -1;
    if (whole >= 0)
        return pnb__ids_push(&c->ids, whole, err);
    if (c->tok->model == PNB__MODEL_BPE)
        return pnb__bpe_encode(&c->tok->bpe, &c->tok->vocab, word, n, &c->ids, err);
    if (c->tok->model == PNB__MODEL_UNIGRAM)
        return pnb__unigram_encode(&c->tok->unigram, word, n, &c->ids, err);
    return pnb__ids_push(&c->ids, word_id(c->tok, word, n), err);
}

static pnb_status collect_added(void *user, const pnb__added *token, pnb_error *err)
{
    collect *c = user;
    return pnb__ids_push(&c->ids, token->id, err);
}

static pnb_status push_all(pnb__ids *ids, const pnb__ids *more, pnb_error *err)
{
    pnb_status status = pnb__ids_reserve(ids, more->n, err);
    for (size_t i = 0; i < more->n && status == PNB_OK; i++)
        ids->at[ids->n++] = more->at[i];
    return status;
}

pnb_status pnb_tokenizer_encode_all(const pnb_tokenizer *tok, const char *text, size_t n_bytes,
                                    bool add_special, int32_t **ids, size_t *n_ids, pnb_error *err)
{
    collect c = {.tok = tok};
    pnb__sink sink = {collect_word, collect_added, &c};
    pnb_status status = PNB_OK;
    *ids = NULL;
    *n_ids = 0;
    if (add_special)
        PNB_TRY(push_all(&c.ids, &tok->prefix, err));
    PNB_TRY(pnb__tok_words(tok, text, n_bytes, &sink, err));
    if (add_special)
        PNB_TRY(push_all(&c.ids, &tok->suffix, err));
    PNB_TRY(pnb__ids_reserve(&c.ids, 1, err)); /* never NULL on success */
    *ids = c.ids.at;
    *n_ids = c.ids.n;
    c.ids = (pnb__ids){0};
done:
    pnb__free(c.ids.at);
    return status;
}

void pnb_tokenizer_ids_free(int32_t *ids)
{
    pnb__free(ids);
}

/* prefix + as much of the text as fits + suffix + padding. */
static void fill_row(const pnb_tokenizer *tok, const pnb__ids *content, size_t length, int32_t *row)
{
    size_t room = length - tok->prefix.n - tok->suffix.n, at = 0;
    size_t n = PNB_MIN(content->n, room);
    for (size_t i = 0; i < tok->prefix.n; i++)
        row[at++] = tok->prefix.at[i];
    for (size_t i = 0; i < n; i++)
        row[at++] = content->at[i];
    for (size_t i = 0; i < tok->suffix.n; i++)
        row[at++] = tok->suffix.at[i];
    while (at < length)
        row[at++] = PNB_MAX(tok->pad_id, 0);
}

static bool is_unknown(const pnb_tokenizer *tok, const pnb__ids *content)
{
    bool knows = tok->model != PNB__MODEL_WORD_LEVEL;
    for (size_t i = 0; i < content->n && !knows; i++)
        knows = content->at[i] != tok->unk_id;
    return !knows;
}

pnb_status pnb_tokenizer_encode(const pnb_tokenizer *tok, const char *text, size_t n_bytes,
                                int context_length, int32_t *ids, pnb_token_count *count,
                                pnb_error *err)
{
    size_t n_special = tok->prefix.n + tok->suffix.n;
    if (context_length < 1 || (size_t)context_length < n_special)
        return pnb__fail(err, PNB_ARG,
                         "context length %d: want at least %zu for the special tokens",
                         context_length, PNB_MAX(n_special, (size_t)1));
    collect c = {.tok = tok};
    pnb__sink sink = {collect_word, collect_added, &c};
    pnb_status status = pnb__tok_words(tok, text, n_bytes, &sink, err);
    if (status == PNB_OK) {
        size_t length = (size_t)context_length, total = c.ids.n + n_special;
        fill_row(tok, &c.ids, length, ids);
        if (count != NULL)
            *count = (pnb_token_count){(int)PNB_MIN(total, length),
                                       (int)PNB_MIN(total, (size_t)INT32_MAX), total > length,
                                       is_unknown(tok, &c.ids)};
    }
    pnb__free(c.ids.at);
    return status;
}
