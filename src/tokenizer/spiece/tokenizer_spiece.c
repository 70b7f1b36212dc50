/* A tokenizer from spiece.model. It is put down as the tokenizer.json that says the same, which is
 * what saving writes and what the `tokenizers` library opens; then the few things that file cannot
 * say are set as SentencePiece has them: control pieces are no text, user-defined pieces pass the
 * normaliser and cannot be cut, equal scores are decided by place, and white space is treated step
 * by step. Ids are those of SentencePiece. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/spiece/spiece.h"
#include "tokenizer/tokenizer_json.h"

#define SPACE_SYMBOL "\xE2\x96\x81" /* U+2581 */

static char *encode_base64(const char *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    pnb__buf b = {0};
    pnb__buf_append(&b, "", 0);
    for (size_t i = 0; i < n; i += 3) {
        uint32_t bits = (uint32_t)(unsigned char)bytes[i] << 16;
        bits |= i + 1 < n ? (uint32_t)(unsigned char)bytes[i + 1] << 8 : 0;
        bits |= i + 2 < n ? (uint32_t)(unsigned char)bytes[i + 2] : 0;
        pnb__buf_putc(&b, digits[bits >> 18]);
        pnb__buf_putc(&b, digits[bits >> 12 & 63]);
        pnb__buf_putc(&b, i + 1 < n ? digits[bits >> 6 & 63] : '=');
        pnb__buf_putc(&b, i + 2 < n ? digits[bits & 63] : '=');
    }
    if (b.failed)
        pnb__buf_reset(&b);
    return b.data;
}

/* ---- tokenizer.json ---- */

/* The array with its n entries; NULL when memory ran out while it was filled. */
static json_t *whole(json_t *array, size_t n)
{
    if (json_array_size(array) == n)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *replace_step(const char *kind, const char *pattern, const char *content)
{
    return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", kind, pattern, "content",
                     content);
}

static json_t *make_normalizer(const pnb__spiece_file *f)
{
    json_t *steps = json_array();
    size_t n = 0;
    if (f->n_charsmap > 0) {
        char *map = encode_base64(f->charsmap, f->n_charsmap);
        json_array_append_new(
            steps, json_pack("{s:s, s:s}", "type", "Precompiled", "precompiled_charsmap", map));
        pnb__free(map);
        n++;
    }
    if (f->remove_extra_whitespaces) {
        json_array_append_new(steps, replace_step("Regex", "\\A +", ""));
        json_array_append_new(steps, replace_step("Regex", " +\\z", ""));
        json_array_append_new(steps, replace_step("Regex", " {2,}", " "));
        n += 3;
    }
    if (f->add_dummy_prefix)
        json_array_append_new(steps, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", " "));
    if (f->escape_whitespaces)
        json_array_append_new(steps, replace_step("String", " ", SPACE_SYMBOL));
    return json_pack("{s:s, s:o}", "type", "Sequence", "normalizers",
                     whole(steps, n + f->add_dummy_prefix + f->escape_whitespaces));
}

static json_t *make_decoder(const pnb__spiece_file *f)
{
    json_t *steps = json_array();
    json_array_append_new(steps, replace_step("String", SPACE_SYMBOL, " "));
    json_array_append_new(steps, json_pack("{s:s}", "type", "ByteFallback"));
    json_array_append_new(steps, json_pack("{s:s}", "type", "Fuse"));
    if (f->add_dummy_prefix)
        json_array_append_new(steps, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content",
                                               " ", "start", 1, "stop", 0));
    return json_pack("{s:s, s:o}", "type", "Sequence", "decoders",
                     whole(steps, f->add_dummy_prefix ? 4 : 3));
}

static json_t *piece_text(const pnb__spiece *p)
{
    return json_stringn(p->text, p->n);
}

/* The pieces that are not text, then what the files beside it add. */
static json_t *make_added(const pnb__spiece_file *f, const json_t *side)
{
    json_t *added = json_array();
    size_t n = 0;
    for (int id = 0; id < f->n; id++) {
        const pnb__spiece *p = &f->pieces[id];
        bool is_user = p->type == PNB__PIECE_USER_DEFINED;
        if (!is_user && p->type != PNB__PIECE_CONTROL && p->type != PNB__PIECE_UNKNOWN)
            continue;
        n++;
        json_array_append_new(added,
                              json_pack("{s:i, s:o, s:b, s:b, s:b, s:b, s:b}", "id", id, "content",
                                        piece_text(p), "single_word", 0, "lstrip", 0, "rstrip", 0,
                                        "normalized", 0, "special", !is_user));
    }
    const json_t *entry;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)side, i, entry)
    {
        json_int_t id = json_integer_value(json_object_get(entry, "id"));
        bool is_there = id < f->n && (f->pieces[id].type == PNB__PIECE_CONTROL ||
                                      f->pieces[id].type == PNB__PIECE_UNKNOWN ||
                                      f->pieces[id].type == PNB__PIECE_USER_DEFINED);
        if (is_there)
            continue;
        n++;
        json_array_append(added, (json_t *)(uintptr_t)entry);
    }
    return whole(added, n);
}

static json_t *make_template(const pnb__spiece_file *f, bool add_bos, bool add_eos)
{
    json_t *single = json_array(), *tokens = json_object();
    int ids[] = {add_bos ? f->bos_id : -1, -1, add_eos ? f->eos_id : -1};
    size_t n = 1u + (ids[0] >= 0) + (ids[2] >= 0);
    bool failed = false;
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            json_array_append_new(single,
                                  json_pack("{s:{s:s, s:i}}", "Sequence", "id", "A", "type_id", 0));
        if (ids[i] < 0)
            continue;
        const pnb__spiece *p = &f->pieces[ids[i]];
        json_array_append_new(
            single, json_pack("{s:{s:o, s:i}}", "SpecialToken", "id", piece_text(p), "type_id", 0));
        failed |= json_object_setn_new(tokens, p->text, p->n,
                                       json_pack("{s:o, s:[i], s:[o]}", "id", piece_text(p), "ids",
                                                 ids[i], "tokens", piece_text(p))) != 0;
    }
    if (failed) {
        json_decref(tokens);
        tokens = NULL; /* makes the whole NULL: out of memory */
    }
    return json_pack("{s:s, s:o, s:[], s:o}", "type", "TemplateProcessing", "single",
                     whole(single, n), "pair", "special_tokens", tokens);
}

static json_t *make_unigram(const pnb__spiece_file *f)
{
    json_t *vocab = json_array();
    for (int id = 0; id < f->n; id++)
        json_array_append_new(
            vocab, json_pack("[o, f]", piece_text(&f->pieces[id]), (double)f->pieces[id].score));
    return json_pack("{s:s, s:i, s:o, s:b}", "type", "Unigram", "unk_id", f->unk_id, "vocab",
                     whole(vocab, (size_t)f->n), "byte_fallback", f->byte_fallback);
}

/* ---- BPE: pieces and scores to merges ---- */

typedef struct ranked {
    float score;
    int32_t id;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool can_join(const pnb__spiece *p)
{
    return p->type == PNB__PIECE_NORMAL;
}

/* Every way to make a piece of two others, at the place of the piece's score; how many. */
static size_t put_merges(const pnb__spiece_file *f, const json_t *vocab, int32_t id, json_t *merges)
{
    size_t n = 0;
    const pnb__spiece *p = &f->pieces[id];
    for (size_t cut = 1; cut < p->n; cut++) {
        if (((unsigned char)p->text[cut] & 0xC0) == 0x80)
            continue;
        const json_t *left = json_object_getn(vocab, p->text, cut);
        const json_t *right = json_object_getn(vocab, p->text + cut, p->n - cut);
        if (left == NULL || right == NULL || !can_join(&f->pieces[json_integer_value(left)]) ||
            !can_join(&f->pieces[json_integer_value(right)]))
            continue;
        json_array_append_new(merges, json_pack("[o, o]", json_stringn(p->text, cut),
                                                json_stringn(p->text + cut, p->n - cut)));
        n++;
    }
    return n;
}

static ranked *rank_pieces(const pnb__spiece_file *f)
{
    ranked *order = pnb__alloc_array((size_t)f->n + 1, sizeof *order);
    for (int id = 0; order != NULL && id < f->n; id++)
        order[id] = (ranked){f->pieces[id].score, id};
    if (order != NULL)
        qsort(order, (size_t)f->n, sizeof *order, by_score);
    return order;
}

static json_t *make_bpe(const pnb__spiece_file *f)
{
    ranked *order = rank_pieces(f);
    if (order == NULL)
        return NULL;
    json_t *vocab = json_object(), *merges = json_array();
    size_t n_merges = 0;
    int n_failed = 0;
    for (int id = 0; id < f->n; id++)
        n_failed +=
            json_object_setn_new(vocab, f->pieces[id].text, f->pieces[id].n, json_integer(id)) != 0;
    for (int i = 0; i < f->n; i++)
        if (can_join(&f->pieces[order[i].id]))
            n_merges += put_merges(f, vocab, order[i].id, merges);
    pnb__free(order);
    if (n_failed > 0) {
        json_decref(vocab);
        vocab = NULL;
    }
    return json_pack("{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", piece_text(&f->pieces[f->unk_id]), "continuing_subword_prefix",
                     "end_of_word_suffix", "fuse_unk", 1, "byte_fallback", f->byte_fallback,
                     "vocab", vocab, "merges", whole(merges, n_merges));
}

static json_t *make_root(const pnb__spiece_file *f, const pnb__tok_side *side)
{
    json_t *model = f->model == PNB__SPIECE_BPE ? make_bpe(f) : make_unigram(f);
    int pad = f->eos_id >= 0 ? f->eos_id : f->pad_id;
    json_t *padding = pad < 0
                          ? json_null()
                          : json_pack("{s:s, s:s, s:n, s:i, s:i, s:o}", "strategy", "BatchLongest",
                                      "direction", "Right", "pad_to_multiple_of", "pad_id", pad,
                                      "pad_type_id", 0, "pad_token", piece_text(&f->pieces[pad]));
    return json_pack("{s:s, s:n, s:o, s:o, s:o, s:n, s:o, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", padding, "added_tokens", make_added(f, side->added),
                     "normalizer", make_normalizer(f), "pre_tokenizer", "post_processor",
                     make_template(f, side->add_bos > 0, side->add_eos != 0), "decoder",
                     make_decoder(f), "model", model);
}

/* ---- what the file cannot say ---- */

/* SentencePiece takes control pieces for text; Hugging Face cuts those out that its own files list.
 */
static void limit_added(pnb_tokenizer *tok, const json_t *side)
{
    for (size_t i = 0; i < tok->n_added; i++) {
        bool is_listed = false;
        const json_t *entry;
        size_t k;
        json_array_foreach((json_t *)(uintptr_t)side, k, entry) is_listed |=
            json_integer_value(json_object_get(entry, "id")) == tok->added[i].id;
        if (!is_listed)
            tok->added[i].n = 0;
    }
}

static pnb_status set_symbols(pnb_tokenizer *tok, const pnb__spiece_file *f, pnb_error *err)
{
    size_t total = 0;
    for (int id = 0; id < f->n; id++)
        total += f->pieces[id].type == PNB__PIECE_USER_DEFINED ? f->pieces[id].n : 0;
    if (total == 0)
        return PNB_OK;
    pnb_status status = pnb__trie_init(&tok->symbols, total, err);
    for (int id = 0; id < f->n && status == PNB_OK; id++)
        if (f->pieces[id].type == PNB__PIECE_USER_DEFINED)
            pnb__trie_add(&tok->symbols, f->pieces[id].text, f->pieces[id].n, id);
    tok->bpe.symbols = &tok->symbols;
    return status;
}

static pnb_status set_normalizer(pnb_tokenizer *tok, const pnb__spiece_file *f, pnb_error *err)
{
    pnb__norms_reset(tok);
    tok->n_norms = 1;
    pnb__norm_step *step = &tok->norms[0];
    *step = (pnb__norm_step){.kind = PNB__NORM_SENTENCEPIECE,
                             .add_dummy_prefix = f->add_dummy_prefix,
                             .remove_extra_whitespaces = f->remove_extra_whitespaces,
                             .escape_whitespaces = f->escape_whitespaces,
                             .whitespace_is_suffix = f->whitespace_is_suffix,
                             .symbols = tok->symbols.n_nodes > 0 ? &tok->symbols : NULL};
    return pnb__charsmap_set(step, f->charsmap, f->n_charsmap, err);
}

/* One rank for all merges that give the same score: then the place decides. */
static pnb_status set_ranks(pnb_tokenizer *tok, const pnb__spiece_file *f, pnb_error *err)
{
    ranked *order = rank_pieces(f);
    int32_t *rank = pnb__alloc_zero((size_t)f->n + 1, sizeof *rank);
    pnb_status status = PNB_OK;
    if (order == NULL || rank == NULL)
        status = pnb__fail_nomem(err, (size_t)f->n * sizeof *order);
    for (int i = 1; status == PNB_OK && i < f->n; i++)
        rank[order[i].id] = rank[order[i - 1].id] + (order[i].score < order[i - 1].score);
    for (size_t i = 0; status == PNB_OK && i < tok->bpe.n_slots; i++)
        if (tok->bpe.slots[i].left >= 0)
            tok->bpe.slots[i].rank = rank[tok->bpe.slots[i].result];
    pnb__free(order);
    pnb__free(rank);
    return status;
}

static pnb_status set_types(pnb_tokenizer *tok, const pnb__spiece_file *f, pnb_error *err)
{
    if (PNB_ALLOC_ZERO(tok->unigram.types, (size_t)f->n + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (int id = 0; id < f->n; id++)
        tok->unigram.types[id] = (unsigned char)f->pieces[id].type;
    return pnb__unigram_build(&tok->unigram, &tok->vocab, err);
}

static pnb_status refine(pnb_tokenizer *tok, const pnb__spiece_file *f, const json_t *side,
                         pnb_error *err)
{
    pnb_status status;
    limit_added(tok, side);
    if (tok->pad_in_text && f->eos_id >= 0) /* the section is of our own making */
        pnb__tok_assume_pad(tok, tok->pad_id, PNB__PAD_AS_SIGLIP);
    tok->spiece_leading = f->remove_extra_whitespaces ? PNB__LEADING_ALL
                          : f->add_dummy_prefix       ? PNB__LEADING_ONE
                                                      : PNB__LEADING_KEEP;
    PNB_TRY(set_symbols(tok, f, err));
    PNB_TRY(set_normalizer(tok, f, err));
    PNB_TRY(f->model == PNB__SPIECE_BPE ? set_ranks(tok, f, err) : set_types(tok, f, err));
    if (f->whitespace_is_suffix) { /* no step of tokenizer.json appends */
        pnb__free(tok->json);
        tok->json = NULL;
    }
done:
    return status;
}

/* A JSON object keeps the last of equal names without a word. */
static pnb_status check_distinct(const pnb__spiece_file *f, const json_t *root, const char *where,
                                 pnb_error *err)
{
    const json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    if (!json_is_object(vocab) || json_object_size(vocab) == (size_t)f->n)
        return PNB_OK;
    return pnb__fail(err, PNB_FORMAT, "%s: %d pieces, of which only %zu differ", where, f->n,
                     json_object_size(vocab));
}

pnb_status pnb__tok_from_spiece(pnb_tokenizer **out, const char *bytes, size_t n_bytes,
                                const char *where, const char *dir, pnb_error *err)
{
    pnb_status status;
    pnb__spiece_file f = {0};
    pnb__tok_side side = {0};
    json_t *root = NULL;
    *out = NULL;
    status = pnb__spiece_read(&f, bytes, n_bytes, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", where);
        goto done;
    }
    PNB_TRY(pnb__tok_read_side(&side, dir, err));
    root = make_root(&f, &side);
    PNB_TRY(check_distinct(&f, root, where, err));
    PNB_TRY(pnb__tok_from_root(out, root, where, dir, err));
    status = refine(*out, &f, side.added, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", where);
        pnb_tokenizer_free(*out);
        *out = NULL;
    }
done:
    json_decref(root);
    pnb__tok_side_reset(&side);
    pnb__spiece_reset(&f);
    return status;
}
