/* A tokenizer as a whole: loading, saving and what it can be asked. The stages of encoding are in
 * encode.c, the reading of tokenizer.json in tokenizer_json.c. The text it was read from is kept
 * and is what saving writes, so nothing of a file gets lost. */
#include "penumbra/tokenizer.h"

#include <string.h>

#include "io/text/tokenizer_json.h"

static pnb_status parse(pnb_tokenizer **out, const char *json, size_t n_bytes, const char *where,
                        const char *dir, pnb_error *err)
{
    pnb_status status;
    json_t *root = NULL;
    int declared_pad;
    *out = NULL;
    pnb_tokenizer *tok = pnb__alloc_zero(1, sizeof *tok);
    if (tok == NULL)
        return pnb__fail_nomem(err, sizeof *tok);
    PNB_TRY(pnb__json_load_bytes(&root, json, n_bytes, where, err));
    if (!json_is_object(root)) {
        status = pnb__fail(err, PNB_FORMAT, "%s: not a JSON object", where);
        goto done;
    }
    tok->json = pnb__strndup(json, n_bytes);
    tok->n_json = n_bytes;
    if (tok->json == NULL) {
        status = pnb__fail_nomem(err, n_bytes);
        goto done;
    }
    status = pnb__tok_read(tok, root, &declared_pad, err);
    if (status == PNB_OK)
        status = pnb__tok_find_special(tok, dir, declared_pad, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", where);
done:
    json_decref(root);
    if (status == PNB_OK)
        *out = tok;
    else
        pnb_tokenizer_free(tok);
    return status;
}

pnb_status pnb_tokenizer_parse(pnb_tokenizer **out, const char *json, size_t n_bytes,
                               pnb_error *err)
{
    return parse(out, json, n_bytes, "tokenizer.json", NULL, err);
}

/* `path` itself, or tokenizer.json in it. */
static char *json_path(const char *path)
{
    return pnb__path_is_dir(path) ? pnb__path_join(path, "tokenizer.json") : pnb__strdup(path);
}

pnb_status pnb_tokenizer_load(pnb_tokenizer **out, const char *path, pnb_error *err)
{
    pnb_status status;
    char *bytes = NULL, *dir = NULL, *file = json_path(path);
    size_t n_bytes;
    *out = NULL;
    if (file == NULL || (dir = pnb__path_dir(file)) == NULL) {
        status = pnb__fail_nomem(err, strlen(path));
        goto done;
    }
    PNB_TRY(pnb__read_file(file, PNB__JSON_MAX_BYTES, &bytes, &n_bytes, err));
    status = parse(out, bytes, n_bytes, file, dir, err);
done:
    pnb__free(bytes);
    pnb__free(dir);
    pnb__free(file);
    return status;
}

pnb_status pnb_tokenizer_save(const pnb_tokenizer *tok, const char *path, pnb_error *err)
{
    char *file = json_path(path);
    if (file == NULL)
        return pnb__fail_nomem(err, strlen(path));
    pnb_status status = pnb__write_file(file, tok->json, tok->n_json, err);
    pnb__free(file);
    return status;
}

void pnb_tokenizer_free(pnb_tokenizer *tok)
{
    if (tok == NULL)
        return;
    for (size_t i = 0; i < tok->n_norms; i++) {
        pnb__free(tok->norms[i].pattern.literal);
        pnb__free(tok->norms[i].content);
        pnb__free(tok->norms[i].trie);
        pnb__free(tok->norms[i].strings);
    }
    for (size_t i = 0; i < tok->n_added; i++)
        pnb__free(tok->added[i].content);
    pnb__free(tok->added);
    pnb__free(tok->is_special);
    pnb__vocab_reset(&tok->vocab);
    pnb__bpe_reset(&tok->bpe);
    pnb__unigram_reset(&tok->unigram);
    pnb__free(tok->prefix.at);
    pnb__free(tok->suffix.at);
    pnb__free(tok->json);
    pnb__free(tok);
}

void pnb_tokenizer_set_clean(pnb_tokenizer *tok, pnb_clean clean)
{
    if (pnb_clean_name(clean) != NULL)
        tok->clean = clean;
}

pnb_clean pnb_tokenizer_clean(const pnb_tokenizer *tok)
{
    return tok->clean;
}

pnb_status pnb_tokenizer_set_pad_id(pnb_tokenizer *tok, int pad_id, pnb_error *err)
{
    if (pad_id < 0 || pad_id >= tok->vocab.n)
        return pnb__fail(err, PNB_ARG, "pad id %d: the vocabulary has 0..%d", pad_id,
                         tok->vocab.n - 1);
    tok->pad_id = pad_id;
    return PNB_OK;
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
