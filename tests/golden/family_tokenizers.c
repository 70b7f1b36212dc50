/* Golden family tokenizers: ids of every string of a case, flat with offsets, and rows padded and
 * cut to a context.
 *
 * Cases with a tokenizer.model are SentencePiece's: as they come ("raw") and after canonicalize
 * ("clean", "padded"). The others are CLIP's BPE: OpenAI's reading of tiny_merges.txt ("tiny") and,
 * where it is there, of the whole bpe_simple_vocab_16e6.txt.gz ("openai", "open_clip"). That file
 * is not part of the cases: the runner looks for it in the case's folder and at $PNB_CLIP_VOCAB,
 * and says which tensors it leaves out without it. The reference ran without ftfy, so repairs are
 * off. */
#include <stdlib.h>
#include <string.h>

#include "io/json/json.h"
#include "tests/golden/golden.h"
#include "tokenizer/tokenizer_json.h"

typedef struct texts {
    json_t *root;
    size_t n;
} texts;

static pnb_status load_texts(const golden_case *c, texts *t, pnb_error *err)
{
    char *path = pnb__path_join(c->dir, "strings.json");
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(c->dir));
    pnb_status status = pnb__json_load_file(&t->root, path, 0, err);
    pnb__free(path);
    t->n = json_array_size(t->root);
    if (status == PNB_OK && t->n == 0)
        status = pnb__fail(err, PNB_FORMAT, "strings.json holds no strings");
    return status;
}

static pnb_status clean_one(const pnb__cleaning *how, const texts *t, size_t i, pnb__buf *b,
                            pnb_error *err)
{
    const json_t *s = json_array_get(t->root, i);
    return pnb__clean(how, json_string_value(s), json_string_length(s), b, err);
}

/* ---- <name>.flat and <name>.offsets ---- */

typedef struct ids_list {
    double *flat, *offsets;
    size_t n, capacity;
} ids_list;

static bool list_add(ids_list *l, const int32_t *ids, size_t n)
{
    if (l->n + n > l->capacity) {
        l->capacity = 2 * (l->n + n) + 64;
        double *flat = pnb__realloc(l->flat, l->capacity * sizeof *flat);
        if (flat == NULL)
            return false;
        l->flat = flat;
    }
    for (size_t i = 0; i < n; i++)
        l->flat[l->n++] = (double)ids[i];
    return true;
}

static void give_list(golden_case *c, const char *name, const ids_list *l, size_t n_texts)
{
    char full[128];
    snprintf(full, sizeof full, "%s.flat", name);
    golden_give(c, full, l->flat, l->n);
    snprintf(full, sizeof full, "%s.offsets", name);
    golden_give(c, full, l->offsets, n_texts + 1);
}

static pnb_status run_flat(golden_case *c, const pnb_tokenizer *tok, const pnb__cleaning *how,
                           const texts *t, const char *name, pnb_error *err)
{
    ids_list l = {.offsets = pnb__alloc_zero(t->n + 1, sizeof(double))};
    pnb_status status = l.offsets != NULL ? PNB_OK : pnb__fail_nomem(err, t->n * sizeof(double));
    for (size_t i = 0; i < t->n && status == PNB_OK; i++) {
        pnb__buf b;
        int32_t *ids = NULL;
        size_t n = 0;
        status = clean_one(how, t, i, &b, err);
        if (status != PNB_OK)
            break;
        status = pnb_tokenizer_encode_all(tok, b.data, b.size, false, &ids, &n, err);
        if (status == PNB_OK && !list_add(&l, ids, n))
            status = pnb__fail_nomem(err, n * sizeof(double));
        l.offsets[i + 1] = (double)l.n;
        pnb_tokenizer_ids_free(ids);
        pnb__buf_reset(&b);
    }
    if (status == PNB_OK)
        give_list(c, name, &l, t->n);
    pnb__free(l.flat);
    pnb__free(l.offsets);
    return status;
}

static pnb_status run_rows(golden_case *c, const pnb_tokenizer *tok, const pnb__cleaning *how,
                           const texts *t, const char *name, pnb_error *err)
{
    const pnb_array_view *view = golden_find(c, name);
    if (view == NULL || view->n_dims != 2 || (size_t)view->shape[0] != t->n)
        return PNB_OK; /* nothing asked, or the comparison will say so */
    size_t length = (size_t)view->shape[1];
    int32_t *row = pnb__alloc_array(length + 1, sizeof *row);
    double *rows = pnb__alloc_array(t->n * length + 1, sizeof *rows);
    pnb_status status = row != NULL && rows != NULL ? PNB_OK : pnb__fail_nomem(err, length);
    for (size_t i = 0; i < t->n && status == PNB_OK; i++) {
        pnb__buf b;
        status = clean_one(how, t, i, &b, err);
        if (status != PNB_OK)
            break;
        status = pnb_tokenizer_encode(tok, b.data, b.size, (int)length, row, NULL, err);
        for (size_t k = 0; k < length && status == PNB_OK; k++)
            rows[i * length + k] = (double)row[k];
        pnb__buf_reset(&b);
    }
    if (status == PNB_OK)
        golden_give(c, name, rows, t->n * length);
    pnb__free(row);
    pnb__free(rows);
    return status;
}

/* ---- SentencePiece ---- */

static pnb_status run_spiece(golden_case *c, const char *model, const texts *t, pnb_error *err)
{
    const pnb__cleaning none = {.mode = PNB_CLEAN_NONE},
                        canonical = {.mode = PNB_CLEAN_CANONICALIZE, .regex_space = true};
    pnb_tokenizer *tok = NULL;
    pnb_status status;
    PNB_TRY(pnb_tokenizer_load(&tok, model, err));
    PNB_TRY(run_flat(c, tok, &none, t, "raw", err));
    PNB_TRY(run_flat(c, tok, &canonical, t, "clean", err));
    PNB_TRY(run_rows(c, tok, &canonical, t, "padded", err));
done:
    pnb_tokenizer_free(tok);
    return status;
}

/* ---- CLIP ---- */

static const pnb__clip_names openai_names = {"<|startoftext|>", "<|endoftext|>"};

static char *find_vocab(const golden_case *c)
{
    const json_t *name = json_object_get(json_object_get(c->root, "vocab_file"), "name");
    if (!json_is_string(name))
        return NULL;
    char *path = pnb__path_join(c->dir, json_string_value(name));
    if (path != NULL && pnb__path_is_file(path))
        return path;
    pnb__free(path);
    const char *given = getenv("PNB_CLIP_VOCAB");
    return given != NULL ? pnb__strdup(given) : NULL;
}

/* The splitting of open_clip, with the special strings and the cleaning of `names`. */
static pnb_status run_clip(golden_case *c, const pnb_tokenizer *tok, bool is_openai, const texts *t,
                           const char *name, pnb_error *err)
{
    const pnb__cleaning how = {.mode = PNB_CLEAN_LOWER, .regex_space = is_openai};
    pnb_status status = run_flat(c, tok, &how, t, name, err);
    const char *key;
    json_t *value;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s.padded", name);
    json_object_foreach(json_object_get(c->root, "tensors"), key,
                        value) if (status == PNB_OK && pnb__starts_with(key, prefix)) status =
        run_rows(c, tok, &how, t, key, err);
    return status;
}

static pnb_status run_tiny(golden_case *c, const texts *t, pnb_error *err)
{
    pnb_tokenizer *tok = NULL;
    char *path = pnb__path_join(c->dir, "tiny_merges.txt");
    pnb_status status = PNB_OK;
    if (path == NULL || !pnb__path_is_file(path))
        goto done;
    PNB_TRY(pnb__tok_load_merges(&tok, path, &openai_names, err));
    pnb_tokenizer_set_clean(tok, PNB_CLEAN_NONE);
    PNB_TRY(run_clip(c, tok, true, t, "tiny", err));
done:
    pnb_tokenizer_free(tok);
    pnb__free(path);
    return status;
}

static pnb_status run_whole(golden_case *c, const char *vocab, const texts *t, pnb_error *err)
{
    pnb_tokenizer *tok = NULL;
    pnb_status status;
    PNB_TRY(pnb_tokenizer_load(&tok, vocab, err));
    pnb_tokenizer_set_clean(tok, PNB_CLEAN_NONE);
    PNB_TRY(run_clip(c, tok, false, t, "open_clip", err));
    pnb_tokenizer_free(tok);
    PNB_TRY(pnb__tok_load_merges(&tok, vocab, &openai_names, err));
    pnb_tokenizer_set_clean(tok, PNB_CLEAN_NONE);
    PNB_TRY(run_clip(c, tok, true, t, "openai", err));
done:
    pnb_tokenizer_free(tok);
    return status;
}

static pnb_status run_bpe(golden_case *c, const texts *t, pnb_error *err)
{
    pnb_status status = run_tiny(c, t, err);
    if (status != PNB_OK)
        return status;
    char *vocab = find_vocab(c);
    golden_skip(c, "ftfy_sensitive", "says where the reference's own stand-in for ftfy may differ");
    if (vocab == NULL)
        golden_skip(c, "open*",
                    "needs the vocabulary that the case does not carry "
                    "(PNB_CLIP_VOCAB=bpe_simple_vocab_16e6.txt.gz)");
    else
        status = run_whole(c, vocab, t, err);
    pnb__free(vocab);
    return status;
}

pnb_status golden_family_tokenizers(golden_case *c, pnb_error *err)
{
    texts t = {0};
    char *model = pnb__path_join(c->dir, "tokenizer.model");
    pnb_status status = model != NULL ? load_texts(c, &t, err) : pnb__fail_nomem(err, 64);
    if (status == PNB_OK)
        status = pnb__path_is_file(model) ? run_spiece(c, model, &t, err) : run_bpe(c, &t, err);
    pnb__free(model);
    json_decref(t.root);
    return status;
}
