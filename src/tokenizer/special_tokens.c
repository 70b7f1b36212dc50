/* Which ids pad, end and mask a row.
 *
 * What the files say wins, in the order of Hugging Face's loader: tokenizer_config.json where it
 * lists its added tokens, else special_tokens_map.json before it; then the "padding" section of
 * tokenizer.json. Where they are silent, the rule of the models that use such a vocabulary:
 *
 * - a SentencePiece vocabulary whose texts end with </s>: that end token, as released SigLIP and
 *   ProLIP pad (tokenizer_config.json of timm/ViT-B-16-SigLIP); T5 itself, with <pad>, says so in
 *   its files;
 * - CLIP's byte pairs: the end token, as transformers' CLIPTokenizer; 0 under a configuration of
 *   open_clip or ProLIP (models/model_defaults.c);
 * - any other: [PAD], <pad>, else the end token.
 *
 * Padding is attended to in ProLIP and SigLIP, so that a wrong id is another embedding. */
#include <string.h>

#include "tokenizer/tokenizer_json.h"

#define MAX_SIDE_BYTES ((size_t)16 << 20)

static const char *const pad_names[] = {"[PAD]", "<pad>", "<|pad|>", NULL};
static const char *const mask_names[] = {"[MASK]", "<mask>", NULL};
static const char *const unk_names[] = {"[UNK]", "<unk>", NULL};
static const char *const eos_names[] = {
    "</s>", "<|endoftext|>", "<end_of_text>", "<eos>", "[SEP]", "<end>", NULL};
static const char *const bos_names[] = {
    "<s>", "<|startoftext|>", "<start_of_text>", "<bos>", "[CLS]", "<start>", NULL};

static int find_name(const pnb_tokenizer *tok, const char *name)
{
    return pnb__vocab_find(&tok->vocab, name, strlen(name));
}

static int first_of(const pnb_tokenizer *tok, const char *const *names)
{
    for (; *names != NULL; names++) {
        int id = find_name(tok, *names);
        if (id >= 0)
            return id;
    }
    return -1;
}

typedef struct side_file {
    json_t *root; /* NULL: not there */
    const char *name;
} side_file;

static pnb_status load_side(side_file *f, const char *dir, pnb_error *err)
{
    char *path = pnb__path_join(dir, f->name);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir) + strlen(f->name));
    pnb_status status = PNB_OK;
    if (pnb__path_is_file(path))
        status = pnb__json_load_file(&f->root, path, MAX_SIDE_BYTES, err);
    if (status == PNB_OK && f->root != NULL && !json_is_object(f->root))
        status = pnb__fail(err, PNB_FORMAT, "%s: not a JSON object", path);
    pnb__free(path);
    return status;
}

/* "pad_token": "x" or {"content": "x"}; null and an absent key say nothing. The word of a file
 * counts, so that what cannot be followed is an error and not passed over. */
static pnb_status take_named(const pnb_tokenizer *tok, const side_file *f, const char *key, int *id,
                             pnb_error *err)
{
    const json_t *value = json_object_get(f->root, key);
    if (*id >= 0 || value == NULL || json_is_null(value))
        return PNB_OK;
    const char *name =
        json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
    if (name == NULL)
        return pnb__fail(err, PNB_FORMAT, "%s: \"%s\" is neither text nor {\"content\": text}",
                         f->name, key);
    *id = find_name(tok, name);
    bool shapes_rows = strcmp(key, "pad_token") == 0 || strcmp(key, "eos_token") == 0;
    if (*id < 0 && shapes_rows)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: %s \"%.40s\" is not in the vocabulary: do the files belong to one "
                         "tokenizer?",
                         f->name, key, name);
    return PNB_OK;
}

static pnb_status check_side(const side_file *f, const char *key, pnb_error *err)
{
    const json_t *value = json_object_get(f->root, key);
    const char *side = json_string_value(value);
    if (value == NULL || json_is_null(value) || (side != NULL && strcmp(side, "right") == 0))
        return PNB_OK;
    if (side != NULL && strcmp(side, "left") == 0)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: %s \"left\": want \"right\"", f->name, key);
    return pnb__fail(err, PNB_FORMAT, "%s: \"%s\" is neither \"right\" nor \"left\"", f->name, key);
}

static pnb_status take_side_file(pnb_tokenizer *tok, const side_file *f, pnb_error *err)
{
    pnb_status status;
    bool was_open = tok->pad_id < 0;
    PNB_TRY(take_named(tok, f, "pad_token", &tok->pad_id, err));
    if (was_open && tok->pad_id >= 0)
        snprintf(tok->pad_source, sizeof tok->pad_source, "pad_token of %s", f->name);
    PNB_TRY(take_named(tok, f, "eos_token", &tok->eos_id, err));
    PNB_TRY(take_named(tok, f, "bos_token", &tok->bos_id, err));
    PNB_TRY(take_named(tok, f, "mask_token", &tok->mask_id, err));
    PNB_TRY(take_named(tok, f, "unk_token", &tok->unk_id, err));
    PNB_TRY(check_side(f, "padding_side", err));
    PNB_TRY(check_side(f, "truncation_side", err));
done:
    return status;
}

static pnb_status take_side_files(pnb_tokenizer *tok, const char *dir, pnb_error *err)
{
    pnb_status status;
    side_file map = {NULL, "special_tokens_map.json"}, config = {NULL, "tokenizer_config.json"};
    PNB_TRY(load_side(&map, dir, err));
    PNB_TRY(load_side(&config, dir, err));
    bool config_first = json_is_object(json_object_get(config.root, "added_tokens_decoder"));
    PNB_TRY(take_side_file(tok, config_first ? &config : &map, err));
    PNB_TRY(take_side_file(tok, config_first ? &map : &config, err));
done:
    json_decref(map.root);
    json_decref(config.root);
    return status;
}

static void fill(int *id, int other)
{
    if (*id < 0)
        *id = other;
}

/* CLIP as open_clip pads it: with id 0, which is the text "!". */
static bool is_text(const pnb_tokenizer *tok, int pad_id)
{
    size_t n;
    const char *piece = pnb__vocab_piece(&tok->vocab, pad_id, &n);
    for (size_t i = 0; i < tok->n_added; i++)
        if (tok->added[i].id == pad_id)
            return false;
    return piece != NULL && n == 1 && pad_id != tok->eos_id;
}

/* The pieces of SentencePiece, byte fallback or not: no byte level, no word ends. */
static bool is_sentencepiece(const pnb_tokenizer *tok)
{
    return tok->model == PNB__MODEL_UNIGRAM ||
           (tok->model == PNB__MODEL_BPE && !tok->bpe.is_byte_level && tok->bpe.end_suffix == NULL);
}

bool pnb__tok_is_clip(const pnb_tokenizer *tok)
{
    return tok->model == PNB__MODEL_BPE && tok->bpe.is_byte_level && tok->bpe.end_suffix != NULL;
}

bool pnb__tok_is_siglip(const pnb_tokenizer *tok)
{
    return is_sentencepiece(tok) && tok->prefix.n == 0 && tok->eos_id >= 0 &&
           tok->eos_id == find_name(tok, "</s>");
}

void pnb__tok_assume_pad(pnb_tokenizer *tok, int pad_id, const char *rule)
{
    tok->pad_id = pad_id;
    tok->pad_assumed = true;
    snprintf(tok->pad_source, sizeof tok->pad_source, "%s", rule);
}

static void decide_pad(pnb_tokenizer *tok, int declared_pad)
{
    int named = first_of(tok, pad_names);
    if (tok->pad_id >= 0)
        return;
    if (declared_pad >= 0) {
        tok->pad_id = declared_pad;
        tok->pad_in_text = true;
        snprintf(tok->pad_source, sizeof tok->pad_source, "padding of tokenizer.json");
    } else if (pnb__tok_is_siglip(tok)) {
        pnb__tok_assume_pad(tok, tok->eos_id, PNB__PAD_AS_SIGLIP);
    } else if (pnb__tok_is_clip(tok) && tok->eos_id >= 0) {
        pnb__tok_assume_pad(tok, tok->eos_id, PNB__PAD_AS_CLIP);
    } else if (named >= 0) {
        pnb__tok_assume_pad(tok, named, "the usual name of a pad token");
    } else {
        pnb__tok_assume_pad(tok, tok->eos_id,
                            tok->eos_id >= 0 ? "no pad token: the end token"
                                             : "no pad or end token: rows are filled with 0");
    }
}

static void mark_special(pnb_tokenizer *tok)
{
    bool is_also_end = tok->unk_id == tok->eos_id || tok->unk_id == tok->pad_id;
    if (tok->unk_id >= 0 && !is_also_end)
        tok->is_special[tok->unk_id] = false;
    int marks[] = {is_text(tok, tok->pad_id) ? -1 : tok->pad_id, tok->eos_id, tok->mask_id};
    for (size_t i = 0; i < PNB_COUNT(marks); i++)
        if (marks[i] >= 0)
            tok->is_special[marks[i]] = true;
    for (size_t i = 0; i < tok->prefix.n; i++)
        tok->is_special[tok->prefix.at[i]] = true;
    for (size_t i = 0; i < tok->suffix.n; i++)
        tok->is_special[tok->suffix.at[i]] = true;
}

pnb_status pnb__tok_find_special(pnb_tokenizer *tok, const char *dir, int declared_pad,
                                 pnb_error *err)
{
    pnb_status status = dir != NULL ? take_side_files(tok, dir, err) : PNB_OK;
    if (status != PNB_OK)
        return status;
    fill(&tok->eos_id, tok->suffix.n > 0 ? tok->suffix.at[tok->suffix.n - 1] : -1);
    fill(&tok->bos_id, tok->prefix.n > 0 ? tok->prefix.at[0] : -1);
    fill(&tok->eos_id, first_of(tok, eos_names));
    fill(&tok->bos_id, first_of(tok, bos_names));
    fill(&tok->mask_id, first_of(tok, mask_names));
    fill(&tok->unk_id, first_of(tok, unk_names));
    decide_pad(tok, declared_pad);
    mark_special(tok);
    return PNB_OK;
}
