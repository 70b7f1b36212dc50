/* Learns a tokenizer from captions: word level (the most frequent words) or byte-level BPE.
 *
 * The outcome is the text of a tokenizer.json that is then read back like any other, so what was
 * trained and what is loaded cannot differ. Words are found by the same stages that encoding uses:
 * a tokenizer with special tokens only is made first and asked for the words of every caption. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/json/json.h"
#include "tokenizer/text.h"
#include "tokenizer/train/tokenizer_train.h"

enum { ID_PAD, ID_EOS, ID_MASK, ID_UNK };
static const char *const special_names[] = {"[PAD]", "</s>", "[MASK]", "[UNK]"};

pnb_tokenizer_opts pnb_tokenizer_opts_default(void)
{
    pnb_tokenizer_opts opts = {.kind = PNB_TOKENIZER_WORD,
                               .vocab_size = 32000,
                               .min_count = 1,
                               .clean = PNB_CLEAN_CANONICALIZE};
    return opts;
}

/* ---- the file ---- */

#define SPACES "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"\\\\s+\"}, \"content\": \" \"}"
#define STRIP "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}"
#define LOWER "{\"type\": \"Lowercase\"}"
#define SEQUENCE(steps) "{\"type\": \"Sequence\", \"normalizers\": [" steps "]}"

static const char *const normalizers[] = {
    [PNB_CLEAN_NONE] = "null",
    [PNB_CLEAN_LOWER] = SEQUENCE(SPACES ", " STRIP ", " LOWER),
    [PNB_CLEAN_WHITESPACE] = SEQUENCE(SPACES ", " STRIP),
    [PNB_CLEAN_CANONICALIZE] =
        SEQUENCE("{\"type\": \"Replace\", \"pattern\": {\"String\": \"_\"}, \"content\": \" \"}, "
                 "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"[!-/:-@\\\\[-`{-~]\"}, "
                 "\"content\": \"\"}, " LOWER ", " SPACES ", " STRIP),
};

static int n_special(const pnb_tokenizer_opts *opts)
{
    return opts->kind == PNB_TOKENIZER_WORD ? 4 : 3; /* bytes are never unknown */
}

static void put_head(pnb__buf *b, const pnb_tokenizer_opts *opts)
{
    pnb__buf_puts(b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": {"
                     "\"strategy\": \"BatchLongest\", \"direction\": \"Right\", "
                     "\"pad_to_multiple_of\": null, \"pad_id\": 0, \"pad_type_id\": 0, "
                     "\"pad_token\": \"[PAD]\"},\n  \"added_tokens\": [\n");
    for (int i = 0; i < n_special(opts); i++)
        pnb__buf_printf(b,
                        "    {\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": "
                        "false, \"rstrip\": false, \"normalized\": false, \"special\": true}%s\n",
                        i, special_names[i], i + 1 < n_special(opts) ? "," : "");
    pnb__buf_printf(b, "  ],\n  \"normalizer\": %s,\n", normalizers[opts->clean]);
    pnb__buf_puts(b, opts->kind == PNB_TOKENIZER_WORD
                         ? "  \"pre_tokenizer\": {\"type\": \"Whitespace\"},\n"
                         : "  \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
                           "true, \"trim_offsets\": true, \"use_regex\": true},\n");
    pnb__buf_puts(b, "  \"post_processor\": {\"type\": \"TemplateProcessing\",\n"
                     "    \"single\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                     "{\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}],\n"
                     "    \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                     "{\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}, "
                     "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}, "
                     "{\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 1}}],\n"
                     "    \"special_tokens\": {\"</s>\": {\"id\": \"</s>\", \"ids\": [1], "
                     "\"tokens\": [\"</s>\"]}}},\n");
    pnb__buf_puts(b, opts->kind == PNB_TOKENIZER_WORD
                         ? "  \"decoder\": null,\n  \"model\": {\"type\": \"WordLevel\", "
                           "\"unk_token\": \"[UNK]\", \"vocab\": {\n"
                         : "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                           "\"trim_offsets\": true, \"use_regex\": true},\n"
                           "  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": "
                           "null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": "
                           "null, \"fuse_unk\": false, \"byte_fallback\": false, "
                           "\"ignore_merges\": false, \"vocab\": {\n");
}

/* The whole file around the members of "vocab" and "merges" that training found. */
static pnb_status make(pnb_tokenizer **out, const pnb_tokenizer_opts *opts, const pnb__buf *vocab,
                       const pnb__buf *merges, pnb_error *err)
{
    pnb__buf b = {0};
    pnb_status status;
    put_head(&b, opts);
    for (int i = 0; i < n_special(opts); i++)
        pnb__buf_printf(&b, "    \"%s\": %d%s\n", special_names[i], i,
                        i + 1 < n_special(opts) || vocab->size > 0 ? "," : "");
    pnb__buf_append(&b, vocab->data, vocab->size);
    pnb__buf_puts(&b, "  }");
    if (opts->kind == PNB_TOKENIZER_BYTE_BPE) {
        pnb__buf_puts(&b, ", \"merges\": [\n");
        pnb__buf_append(&b, merges->data, merges->size);
        pnb__buf_puts(&b, "  ]");
    }
    pnb__buf_puts(&b, "}\n}\n");
    if (b.failed || vocab->failed || merges->failed)
        status = pnb__fail_nomem(err, b.size);
    else
        status = pnb_tokenizer_parse(out, b.data, b.size, err);
    pnb__buf_reset(&b);
    return status;
}

/* ---- counting ---- */

static void words_reset(pnb__query *w)
{
    pnb__buf_reset(&w->text);
    pnb__free(w->at);
    pnb__key_map_reset(&w->places);
    *w = (pnb__query){0};
}

/* Place of the word in the list, PNB__NO_KEY when it is new. */
static size_t find_word(const pnb__query *w, uint64_t hash, const char *word, size_t n)
{
    size_t i, step = 0;
    while ((i = pnb__key_map_next(&w->places, hash, &step)) != PNB__NO_KEY &&
           (w->at[i].n != n || memcmp(w->text.data + w->at[i].start, word, n) != 0)) {
    }
    return i;
}

static pnb_status count_word(void *user, const char *word, size_t n, pnb_error *err)
{
    pnb__query *w = user;
    if (n > UINT32_MAX)
        return pnb__fail(err, PNB_LIMIT, "a word of %zu bytes", n);
    uint64_t hash = pnb__hash_bytes(word, n, 0);
    size_t known = find_word(w, hash, word, n), start = w->text.size;
    if (known != PNB__NO_KEY) {
        w->at[known].count++;
        return PNB_OK;
    }
    pnb__buf_append(&w->text, word, n);
    if (w->text.failed)
        return pnb__fail_nomem(err, n);
    pnb_status status = PNB_PUSH(w->at, w->n, err, (pnb__word){start, (uint32_t)n, 1});
    return status == PNB_OK ? pnb__key_map_add(&w->places, hash, w->n - 1, err) : status;
}

/* ---- word level ---- */

/* qsort has no context argument, so what it sorts carries its own pointer. */
typedef struct ranked {
    const char *text;
    uint32_t n;
    int64_t count;
} ranked;

static int by_count_then_text(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int order = memcmp(x->text, y->text, PNB_MIN(x->n, y->n));
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static pnb_status list_words(const pnb__query *words, const pnb_tokenizer_opts *opts, pnb__buf *out,
                             pnb_error *err)
{
    ranked *list = pnb__alloc_array(words->n + 1, sizeof *list);
    if (list == NULL)
        return pnb__fail_nomem(err, words->n * sizeof *list);
    size_t n = 0, room = (size_t)(opts->vocab_size - n_special(opts));
    for (size_t i = 0; i < words->n; i++)
        if (words->at[i].count >= opts->min_count)
            list[n++] =
                (ranked){words->text.data + words->at[i].start, words->at[i].n, words->at[i].count};
    qsort(list, n, sizeof *list, by_count_then_text);
    n = PNB_MIN(n, room);
    for (size_t i = 0; i < n; i++) {
        char *word = pnb__strndup(list[i].text, list[i].n);
        if (word == NULL) {
            out->failed = true;
            break;
        }
        pnb__buf_puts(out, "    ");
        pnb__json_append_string(out, word);
        pnb__buf_printf(out, ": %zu%s\n", i + (size_t)n_special(opts), i + 1 < n ? "," : "");
        pnb__free(word);
    }
    pnb__free(list);
    return out->failed ? pnb__fail_nomem(err, out->size) : PNB_OK;
}

/* ---- the whole ---- */

static pnb_status check_opts(const pnb_tokenizer_opts *opts, size_t n_texts, pnb_error *err)
{
    bool is_word = opts->kind == PNB_TOKENIZER_WORD;
    int least = is_word ? n_special(opts) + 1 : n_special(opts) + 256;
    if (!is_word && opts->kind != PNB_TOKENIZER_BYTE_BPE)
        return pnb__fail(err, PNB_ARG, "tokenizer kind %d is unknown", (int)opts->kind);
    if (pnb_clean_name(opts->clean) == NULL)
        return pnb__fail(err, PNB_ARG, "clean mode %d is unknown", (int)opts->clean);
    if (opts->vocab_size < least || opts->vocab_size > PNB__MAX_VOCAB)
        return pnb__fail(err, PNB_ARG, "vocabulary of %d: want %d (special tokens and %s) to %d",
                         opts->vocab_size, least, is_word ? "one word" : "256 bytes",
                         PNB__MAX_VOCAB);
    if (n_texts == 0)
        return pnb__fail(err, PNB_ARG, "no captions to learn a tokenizer from");
    return PNB_OK;
}

pnb_status pnb_tokenizer_train(pnb_tokenizer **out, const char *const *texts, size_t n_texts,
                               const pnb_tokenizer_opts *opts, pnb_error *err)
{
    pnb_tokenizer_opts used = opts != NULL ? *opts : pnb_tokenizer_opts_default();
    pnb_tokenizer *bare = NULL;
    pnb__query words = {0};
    pnb__buf vocab = {0}, merges = {0};
    pnb__sink sink = {count_word, NULL, &words};
    *out = NULL;
    pnb_status status = check_opts(&used, n_texts, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(make(&bare, &used, &vocab, &merges, err));
    for (size_t i = 0; i < n_texts; i++)
        PNB_TRY(pnb__tok_words(bare, texts[i], strlen(texts[i]), &sink, err));
    if (used.kind == PNB_TOKENIZER_WORD) {
        PNB_TRY(list_words(&words, &used, &vocab, err));
    } else {
        pnb__bpe_goal goal = {n_special(&used), used.vocab_size - n_special(&used), used.min_count};
        PNB_TRY(pnb__train_bpe(&words, &goal, &vocab, &merges, err));
    }
    PNB_TRY(make(out, &used, &vocab, &merges, err));
done:
    pnb_tokenizer_free(bare);
    words_reset(&words);
    pnb__buf_reset(&vocab);
    pnb__buf_reset(&merges);
    return status;
}
