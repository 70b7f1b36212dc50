/* Which ids pad, end and mask a row. A snapshot folder says it in special_tokens_map.json or
 * tokenizer_config.json, which win as they do in Hugging Face's loader; then the "padding" section
 * and the template of tokenizer.json; then the names everyone uses. */
#include <string.h>

#include "io/text/tokenizer_json.h"

#define MAX_SIDE_BYTES ((size_t)16 << 20)

static const char *const pad_names[] = {"[PAD]", "<pad>", "<|pad|>", NULL};
static const char *const mask_names[] = {"[MASK]", "<mask>", NULL};
static const char *const unk_names[] = {"[UNK]", "<unk>", NULL};
static const char *const eos_names[] = {"</s>",  "<|endoftext|>", "<end_of_text>",
                                        "<eos>", "[SEP]",         NULL};
static const char *const bos_names[] = {"<s>",   "<|startoftext|>", "<start_of_text>",
                                        "<bos>", "[CLS]",           NULL};

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

/* "pad_token": "x" or {"content": "x"}. */
static void take_named(const pnb_tokenizer *tok, const json_t *root, const char *key, int *id)
{
    const json_t *value = json_object_get(root, key);
    if (json_is_object(value))
        value = json_object_get(value, "content");
    const char *name = json_string_value(value);
    if (*id < 0 && name != NULL)
        *id = find_name(tok, name);
}

static pnb_status read_side_file(pnb_tokenizer *tok, const char *dir, const char *name,
                                 pnb_error *err)
{
    json_t *root = NULL;
    char *path = pnb__path_join(dir, name);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir) + strlen(name));
    pnb_status status = PNB_OK;
    if (pnb__path_is_file(path))
        status = pnb__json_load_file(&root, path, MAX_SIDE_BYTES, err);
    if (status == PNB_OK && root != NULL) {
        take_named(tok, root, "pad_token", &tok->pad_id);
        take_named(tok, root, "eos_token", &tok->eos_id);
        take_named(tok, root, "bos_token", &tok->bos_id);
        take_named(tok, root, "mask_token", &tok->mask_id);
        take_named(tok, root, "unk_token", &tok->unk_id);
    }
    json_decref(root);
    pnb__free(path);
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

pnb_status pnb__tok_find_special(pnb_tokenizer *tok, const char *dir, int declared_pad,
                                 pnb_error *err)
{
    if (dir != NULL) {
        pnb_status status = read_side_file(tok, dir, "special_tokens_map.json", err);
        if (status == PNB_OK)
            status = read_side_file(tok, dir, "tokenizer_config.json", err);
        if (status != PNB_OK)
            return status;
    }
    fill(&tok->pad_id, declared_pad);
    fill(&tok->eos_id, tok->suffix.n > 0 ? tok->suffix.at[tok->suffix.n - 1] : -1);
    fill(&tok->bos_id, tok->prefix.n > 0 ? tok->prefix.at[0] : -1);
    fill(&tok->eos_id, first_of(tok, eos_names));
    fill(&tok->bos_id, first_of(tok, bos_names));
    fill(&tok->mask_id, first_of(tok, mask_names));
    fill(&tok->unk_id, first_of(tok, unk_names));
    fill(&tok->pad_id, first_of(tok, pad_names));
    fill(&tok->pad_id, tok->eos_id);
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
    return PNB_OK;
}
