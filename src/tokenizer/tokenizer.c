/* A tokenizer as a whole: making, saving and what it can be asked. The stages of encoding are in
 * encode.c, the reading of tokenizer.json in tokenizer_json.c, other files in tokenizer_files.c.
 * The text it was read from is kept and is what saving writes, so nothing of a file gets lost. */
#include "penumbra/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/tokenizer_json.h"

/* Reads `root`; the text it came from is already in `tok`, which is freed after an error. */
static pnb_status finish(pnb_tokenizer **out, pnb_tokenizer *tok, const json_t *root,
                         const char *where, const char *dir, pnb_error *err)
{
    int declared_pad;
    pnb_status status = pnb__tok_read(tok, root, &declared_pad, err);
    if (status == PNB_OK)
        status = pnb__tok_find_special(tok, dir, declared_pad, err);
    if (status == PNB_OK) {
        *out = tok;
        return PNB_OK;
    }
    pnb__error_prefix(err, "%s", where);
    pnb_tokenizer_free(tok);
    return status;
}

/* A tokenizer that holds the text only. */
static pnb_tokenizer *with_text(const char *json, size_t n_bytes)
{
    pnb_tokenizer *tok = pnb__alloc_zero(1, sizeof *tok);
    if (tok == NULL)
        return NULL;
    tok->json = pnb__strndup(json, n_bytes);
    tok->n_json = n_bytes;
    tok->clean.repair = true;
    if (tok->json != NULL)
        return tok;
    pnb__free(tok);
    return NULL;
}

pnb_status pnb__tok_from_root(pnb_tokenizer **out, const json_t *root, const char *where,
                              const char *dir, pnb_error *err)
{
    *out = NULL;
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    pnb_tokenizer *tok = text != NULL ? with_text(text, strlen(text)) : NULL;
    pnb__free(text);
    if (tok == NULL)
        return pnb__fail_nomem(err, sizeof *tok);
    return finish(out, tok, root, where, dir, err);
}

pnb_status pnb__tok_from_json(pnb_tokenizer **out, const char *json, size_t n_bytes,
                              const char *where, const char *dir, pnb_error *err)
{
    json_t *root = NULL;
    *out = NULL;
    pnb_status status = pnb__json_load_bytes(&root, json, n_bytes, where, err);
    if (status != PNB_OK)
        return status;
    if (!json_is_object(root)) {
        json_decref(root);
        return pnb__fail(err, PNB_FORMAT, "%s: not a JSON object", where);
    }
    pnb_tokenizer *tok = with_text(json, n_bytes);
    status = tok != NULL ? finish(out, tok, root, where, dir, err) : pnb__fail_nomem(err, n_bytes);
    json_decref(root);
    return status;
}

pnb_status pnb_tokenizer_parse(pnb_tokenizer **out, const char *json, size_t n_bytes,
                               pnb_error *err)
{
    return pnb__tok_from_json(out, json, n_bytes, "tokenizer.json", NULL, err);
}

/* `path` itself, or tokenizer.json in it. */
static char *json_path(const char *path)
{
    return pnb__path_is_dir(path) ? pnb__path_join(path, "tokenizer.json") : pnb__strdup(path);
}

/* The text with a padding section that says what pads here. Free with pnb__free. */
static pnb_status text_with_padding(const pnb_tokenizer *tok, char **out, pnb_error *err)
{
    json_t *root = NULL;
    size_t n;
    const char *piece = pnb__vocab_piece(&tok->vocab, tok->pad_id, &n);
    pnb_status status = pnb__json_load_bytes(&root, tok->json, tok->n_json, "tokenizer.json", err);
    if (status != PNB_OK)
        return status;
    json_t *padding =
        json_pack("{s:s, s:s, s:n, s:i, s:i, s:o}", "strategy", "BatchLongest", "direction",
                  "Right", "pad_to_multiple_of", "pad_id", tok->pad_id, "pad_type_id", 0,
                  "pad_token", json_stringn(piece != NULL ? piece : "", piece != NULL ? n : 0));
    *out = padding != NULL && json_object_set_new(root, "padding", padding) == 0
               ? json_dumps(root, JSON_COMPACT)
               : NULL;
    json_decref(root);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, tok->n_json);
}

pnb_status pnb_tokenizer_save(const pnb_tokenizer *tok, const char *path, pnb_error *err)
{
    if (tok->json == NULL)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: tokenizer.json cannot say that white space ends a word "
                         "(treat_whitespace_as_suffix): keep the .model file",
                         path);
    char *file = json_path(path), *text = NULL;
    if (file == NULL)
        return pnb__fail_nomem(err, strlen(path));
    pnb_status status = PNB_OK;
    if (!tok->pad_in_text && !tok->pad_assumed && tok->pad_id >= 0)
        status = text_with_padding(tok, &text, err);
    if (status == PNB_OK)
        status = pnb__write_file(file, text != NULL ? text : tok->json,
                                 text != NULL ? strlen(text) : tok->n_json, err);
    pnb__free(text);
    pnb__free(file);
    return status;
}

void pnb_tokenizer_free(pnb_tokenizer *tok)
{
    if (tok == NULL)
        return;
    pnb__norms_reset(tok);
    for (size_t i = 0; i < tok->n_added; i++)
        pnb__free(tok->added[i].content);
    pnb__free(tok->added);
    pnb__free(tok->is_special);
    pnb__vocab_reset(&tok->vocab);
    pnb__bpe_reset(&tok->bpe);
    pnb__unigram_reset(&tok->unigram);
    pnb__trie_reset(&tok->symbols);
    pnb__free(tok->prefix.at);
    pnb__free(tok->suffix.at);
    pnb__free(tok->json);
    pnb__free(tok);
}

void pnb_tokenizer_set_clean(pnb_tokenizer *tok, pnb_clean clean)
{
    if (pnb_clean_name(clean) != NULL)
        tok->clean.mode = clean;
}

pnb_clean pnb_tokenizer_clean(const pnb_tokenizer *tok)
{
    return tok->clean.mode;
}

void pnb_tokenizer_set_repair(pnb_tokenizer *tok, bool repair)
{
    tok->clean.repair = repair;
}

pnb_status pnb_tokenizer_set_pad_id(pnb_tokenizer *tok, int pad_id, pnb_error *err)
{
    if (pad_id < 0 || pad_id >= tok->vocab.n)
        return pnb__fail(err, PNB_ARG, "pad id %d: the vocabulary has 0..%d", pad_id,
                         tok->vocab.n - 1);
    tok->pad_id = pad_id;
    tok->pad_assumed = tok->pad_in_text = false;
    snprintf(tok->pad_source, sizeof tok->pad_source, "set by the caller");
    return PNB_OK;
}

pnb_padding pnb_tokenizer_padding(const pnb_tokenizer *tok)
{
    return (pnb_padding){tok->pad_id, tok->pad_assumed, tok->pad_source};
}

int pnb_tokenizer_vocab_size(const pnb_tokenizer *tok)
{
    return tok->vocab.n;
}

int pnb_tokenizer_pad_id(const pnb_tokenizer *tok)
{
    return tok->pad_id;
}

int pnb_tokenizer_eos_id(const pnb_tokenizer *tok)
{
    return tok->eos_id;
}

int pnb_tokenizer_bos_id(const pnb_tokenizer *tok)
{
    return tok->bos_id;
}

int pnb_tokenizer_mask_id(const pnb_tokenizer *tok)
{
    return tok->mask_id;
}

int pnb_tokenizer_unk_id(const pnb_tokenizer *tok)
{
    return tok->unk_id;
}

const char *pnb_tokenizer_piece(const pnb_tokenizer *tok, int32_t id)
{
    return pnb__vocab_piece(&tok->vocab, id, NULL);
}

int32_t pnb_tokenizer_find(const pnb_tokenizer *tok, const char *piece)
{
    return pnb__vocab_find(&tok->vocab, piece, strlen(piece));
}

bool pnb_tokenizer_is_special(const pnb_tokenizer *tok, int32_t id)
{
    return id >= 0 && id < tok->vocab.n && tok->is_special[id];
}

bool pnb_tokenizer_is_word_start(const pnb_tokenizer *tok, int32_t id)
{
    const char *piece = pnb__vocab_piece(&tok->vocab, id, NULL);
    if (piece == NULL || pnb_tokenizer_is_special(tok, id))
        return false;
    if (tok->model == PNB__MODEL_WORD_LEVEL || tok->bpe.end_suffix != NULL)
        return true;
    if (tok->bpe.is_byte_level)
        return pnb__starts_with(piece, "\xC4\xA0"); /* U+0120 stands for the space */
    return pnb__starts_with(piece, "\xE2\x96\x81");
}

size_t pnb_tokenizer_text_mask(const pnb_tokenizer *tok, const int32_t *ids, size_t n_ids,
                               unsigned char *maskable)
{
    size_t n = 0;
    for (size_t i = 0; i < n_ids; i++) {
        bool is_text = ids[i] >= 0 && ids[i] < tok->vocab.n && ids[i] != tok->pad_id &&
                       ids[i] != tok->eos_id && !tok->is_special[ids[i]];
        maskable[i] = is_text ? 1 : 0;
        n += is_text;
    }
    return n;
}
