/* Reads tokenizer.json: added tokens, template, decoder and model. The normalizer and pre_tokenizer
 * sections are in tokenizer_steps.c.
 *
 * The file comes from a stranger: ids are checked against a limit and against each other, merges
 * against the vocabulary. A part that is valid but not implemented is refused by name, because a
 * token id that differs silently is worse than an error. */
#include <math.h>
#include <string.h>

#include "tokenizer/tokenizer_json.h"

static bool is_null(const json_t *value)
{
    return value == NULL || json_is_null(value);
}

/* ---- vocabulary and added tokens ---- */

static pnb_status check_id(const json_t *value, const char *piece, int *n_ids, pnb_error *err)
{
    json_int_t id = json_integer_value(value);
    if (!json_is_integer(value))
        return pnb__fail(err, PNB_FORMAT, "token \"%.40s\" has an id that is no whole number",
                         piece);
    if (id < 0 || id >= PNB__MAX_VOCAB)
        return pnb__fail(err, PNB_FORMAT, "token \"%.40s\" has id %lld: want 0..%d", piece,
                         (long long)id, PNB__MAX_VOCAB - 1);
    *n_ids = PNB_MAX(*n_ids, (int)id + 1);
    return PNB_OK;
}

static const char *content_of(const json_t *added)
{
    return json_string_value(json_object_get(added, "content"));
}

/* Largest id + 1 over the model's vocabulary and the added tokens. */
static pnb_status count_ids(const json_t *vocab, const json_t *added, int *n_ids, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const char *piece;
    json_t *value;
    size_t i;
    *n_ids = 0;
    if (json_is_array(vocab))
        *n_ids = (int)PNB_MIN(json_array_size(vocab), (size_t)PNB__MAX_VOCAB + 1);
    else
        json_object_foreach((json_t *)(uintptr_t)vocab, piece, value)
            PNB_TRY(check_id(value, piece, n_ids, err));
    json_array_foreach(added, i, value)
    {
        piece = content_of(value);
        if (piece == NULL)
            return pnb__fail(err, PNB_FORMAT, "added token %zu has no \"content\"", i);
        PNB_TRY(check_id(json_object_get(value, "id"), piece, n_ids, err));
    }
done:
    return status;
}

static pnb_status read_scores(pnb_tokenizer *tok, const json_t *vocab, pnb_error *err)
{
    size_t n = json_array_size(vocab);
    tok->unigram.n = (int)n;
    if (PNB_ALLOC_ZERO(tok->unigram.scores, n + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(vocab, i);
        const char *piece = json_string_value(json_array_get(entry, 0));
        const json_t *score = json_array_get(entry, 1);
        if (piece == NULL || !json_is_number(score) || !(fabs(json_number_value(score)) < 1e30))
            return pnb__fail(err, PNB_FORMAT, "vocab entry %zu: want [\"piece\", score]", i);
        tok->unigram.scores[i] = (float)json_number_value(score);
        pnb_status status = pnb__vocab_add(&tok->vocab, (int64_t)i, piece, strlen(piece), err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

static pnb_status read_vocab(pnb_tokenizer *tok, const json_t *vocab, const json_t *added,
                             pnb_error *err)
{
    pnb_status status;
    int n_ids;
    PNB_TRY(count_ids(vocab, added, &n_ids, err));
    size_t n_pieces = json_array_size(added);
    n_pieces += json_is_array(vocab) ? json_array_size(vocab) : json_object_size(vocab);
    PNB_TRY(pnb__vocab_init(&tok->vocab, n_ids, n_pieces, err));
    PNB_TRY(PNB_ALLOC_ZERO(tok->is_special, (size_t)n_ids + 1, err));
    if (json_is_array(vocab)) {
        PNB_TRY(read_scores(tok, vocab, err));
    } else {
        const char *piece;
        json_t *id;
        json_object_foreach((json_t *)(uintptr_t)vocab, piece, id)
            PNB_TRY(pnb__vocab_add(&tok->vocab, json_integer_value(id), piece, strlen(piece), err));
    }
done:
    return status;
}

/* Text that is matched after the normaliser is itself normalised. */
static pnb_status set_content(pnb_tokenizer *tok, pnb__added *a, const char *content,
                              pnb_error *err)
{
    pnb__buf b = {0};
    pnb_status status = PNB_OK;
    if (a->normalized)
        status = pnb__normalize(tok->norms, tok->n_norms, content, strlen(content), &b, err);
    else
        pnb__buf_puts(&b, content);
    if (status == PNB_OK && b.failed)
        status = pnb__fail_nomem(err, strlen(content));
    if (status != PNB_OK) {
        pnb__buf_reset(&b);
        return status;
    }
    a->content = b.data;
    a->n = b.size;
    if (a->n > 0)
        tok->added_first[a->normalized][(unsigned char)a->content[0]] = 1;
    return PNB_OK;
}

static pnb_status read_added(pnb_tokenizer *tok, const json_t *added, pnb_error *err)
{
    size_t n = json_array_size(added);
    if (PNB_ALLOC_ZERO(tok->added, n + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(added, i);
        const char *content = content_of(entry);
        int64_t id = json_integer_value(json_object_get(entry, "id"));
        pnb__added *a = &tok->added[i];
        pnb_status status = PNB_OK;
        a->in_model = pnb__vocab_find(&tok->vocab, content, strlen(content)) == id;
        if (!a->in_model)
            status = pnb__vocab_add(&tok->vocab, id, content, strlen(content), err);
        if (status != PNB_OK)
            return status;
        a->id = (int32_t)id;
        a->special = json_is_true(json_object_get(entry, "special"));
        json_t *normalized = json_object_get(entry, "normalized");
        a->normalized = normalized == NULL ? !a->special : json_is_true(normalized);
        a->single_word = json_is_true(json_object_get(entry, "single_word"));
        a->strip_left = json_is_true(json_object_get(entry, "lstrip"));
        a->strip_right = json_is_true(json_object_get(entry, "rstrip"));
        tok->is_special[id] = a->special;
        status = set_content(tok, a, content, err);
        if (status != PNB_OK)
            return status;
        tok->n_added++;
    }
    return PNB_OK;
}

/* ---- models ---- */

static pnb_status find_unk(pnb_tokenizer *tok, pnb__jobj *o, pnb_error *err)
{
    const char *name = pnb__json_get_string(o, "unk_token", NULL, err);
    if (o->status != PNB_OK || name == NULL)
        return o->status;
    tok->unk_id = pnb__vocab_find(&tok->vocab, name, strlen(name));
    if (tok->unk_id < 0)
        return pnb__fail(err, PNB_FORMAT, "unk_token \"%.40s\" is not in the vocabulary", name);
    return PNB_OK;
}

/* "a b" or ["a", "b"]. */
static bool split_merge(const json_t *entry, const char **left, size_t *n_left, const char **right)
{
    if (json_is_array(entry)) {
        *left = json_string_value(json_array_get(entry, 0));
        *right = json_string_value(json_array_get(entry, 1));
        *n_left = *left != NULL ? strlen(*left) : 0;
        return json_array_size(entry) == 2 && *left != NULL && *right != NULL;
    }
    *left = json_string_value(entry);
    const char *space = *left != NULL ? strchr(*left, ' ') : NULL;
    if (space == NULL || strchr(space + 1, ' ') != NULL)
        return false;
    *n_left = (size_t)(space - *left);
    *right = space + 1;
    return true;
}

static pnb_status read_merge(pnb_tokenizer *tok, const json_t *entry, size_t rank, pnb__buf *joined,
                             pnb_error *err)
{
    const char *left, *right;
    size_t n_left;
    if (!split_merge(entry, &left, &n_left, &right))
        return pnb__fail(err, PNB_FORMAT, "merge %zu: want \"left right\" or [left, right]", rank);
    size_t n_right = strlen(right);
    joined->size = 0;
    pnb__buf_append(joined, left, n_left);
    pnb__buf_append(joined, right, n_right);
    if (joined->failed)
        return pnb__fail_nomem(err, n_left + n_right);
    int32_t l = pnb__vocab_find(&tok->vocab, left, n_left);
    int32_t r = pnb__vocab_find(&tok->vocab, right, n_right);
    int32_t result = pnb__vocab_find(&tok->vocab, joined->data, joined->size);
    if (l < 0 || r < 0 || result < 0)
        return pnb__fail(err, PNB_FORMAT, "merge %zu \"%.*s %.40s\": the vocabulary lacks %s", rank,
                         (int)PNB_MIN(n_left, (size_t)40), left, right,
                         l < 0   ? "the left part"
                         : r < 0 ? "the right part"
                                 : "the result");
    return pnb__bpe_add(&tok->bpe, l, r, result, (int32_t)rank, err);
}

/* "<0x00>" ... "<0xFF>"; what looks like one and names no byte would never be used. */
static pnb_status check_byte_names(const pnb_tokenizer *tok, pnb_error *err)
{
    for (int id = 0; id < tok->vocab.n; id++) {
        size_t n = 0;
        const char *piece = pnb__vocab_piece(&tok->vocab, id, &n);
        if (piece == NULL || n != 6 || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>')
            continue;
        if (strspn(piece + 3, "0123456789ABCDEF") < 2)
            return pnb__fail(err, PNB_FORMAT,
                             "token %d \"%s\" names no byte: byte_fallback wants <0x00> to <0xFF>",
                             id, piece);
    }
    return PNB_OK;
}

static void find_byte_tokens(pnb_tokenizer *tok)
{
    pnb__bpe *bpe = &tok->bpe;
    for (int b = 0; b < 256; b++) {
        char text[96], letter[4];
        int n = (int)pnb__utf8_encode(pnb__byte_char((unsigned char)b), letter);
        if (!bpe->is_byte_level) {
            snprintf(text, sizeof text, "<0x%02X>", b);
            bpe->byte_ids[b] = pnb__vocab_find(&tok->vocab, text, 6);
            continue;
        }
        bpe->byte_ids[b] = pnb__vocab_find(&tok->vocab, letter, (size_t)n);
        const char *suffix = bpe->end_suffix != NULL ? bpe->end_suffix : "";
        snprintf(text, sizeof text, "%.*s%s", n, letter, suffix);
        bpe->byte_end_ids[b] = pnb__vocab_find(&tok->vocab, text, strlen(text));
    }
}

static pnb_status read_bpe(pnb_tokenizer *tok, pnb__jobj *o, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__buf joined = {0};
    json_t *merges = pnb__json_get_array(o, "merges", err);
    const char *suffix = pnb__json_get_string(o, "end_of_word_suffix", NULL, err);
    const char *inner = pnb__json_get_string(o, "continuing_subword_prefix", NULL, err);
    double dropout = pnb__json_get_double(o, "dropout", 0, err);
    bool ignores = pnb__json_get_bool(o, "ignore_merges", false, err);
    tok->bpe.fuse_unk = pnb__json_get_bool(o, "fuse_unk", false, err);
    tok->bpe.byte_fallback = pnb__json_get_bool(o, "byte_fallback", false, err);
    PNB_TRY(o->status);
    if (merges == NULL)
        return pnb__fail(err, PNB_FORMAT,
                         "a BPE model without \"merges\": want an array, without which every "
                         "character is a token");
    if (tok->bpe.byte_fallback)
        PNB_TRY(check_byte_names(tok, err));
    if ((inner != NULL && *inner != '\0') || dropout != 0 || ignores)
        return pnb__fail(err, PNB_UNSUPPORTED, "BPE with %s",
                         ignores          ? "ignore_merges"
                         : dropout != 0.0 ? "dropout"
                                          : "continuing_subword_prefix");
    if (suffix != NULL && strlen(suffix) > 32)
        return pnb__fail(err, PNB_FORMAT, "end_of_word_suffix of %zu bytes: want at most 32",
                         strlen(suffix));
    PNB_TRY(pnb__bpe_init(&tok->bpe, json_array_size(merges), err));
    tok->bpe.unk_id = tok->unk_id;
    if (suffix != NULL && *suffix != '\0') {
        PNB_TRY(pnb__copy_text(&tok->bpe.end_suffix, suffix, err));
    }
    for (size_t i = 0; i < json_array_size(merges); i++)
        PNB_TRY(read_merge(tok, json_array_get(merges, i), i, &joined, err));
    find_byte_tokens(tok);
done:
    pnb__buf_reset(&joined);
    return status;
}

/* U+2581 anywhere but in front: then a piece could cross words, and cutting at them matters. */
static bool has_inner_space(const pnb__vocab *vocab)
{
    for (int32_t id = 0; id < vocab->n; id++) {
        const char *piece = pnb__vocab_piece(vocab, id, NULL);
        if (piece != NULL && *piece != '\0' && strstr(piece + 1, "\xE2\x96\x81") != NULL)
            return true;
    }
    return false;
}

/* SentencePiece looks for the best cut of the whole text, which decides ties between equal sums
 * otherwise than word by word; where both must find the same, it is followed. */
static void join_words(pnb_tokenizer *tok)
{
    bool crosses = has_inner_space(&tok->vocab);
    for (size_t i = 0; i < tok->n_splits && !crosses; i++)
        if (tok->splits[i].kind == PNB__SPLIT_METASPACE && i + 1 == tok->n_splits)
            tok->splits[i].splits = false;
}

static pnb_status read_unigram(pnb_tokenizer *tok, pnb__jobj *o, pnb_error *err)
{
    if (pnb__json_has(o, "unk_id"))
        tok->unk_id = (int)pnb__json_get_int_in(o, "unk_id", -1, 0, tok->unigram.n - 1, err);
    tok->unigram.byte_fallback = pnb__json_get_bool(o, "byte_fallback", false, err);
    pnb_status status = o->status;
    if (status == PNB_OK && tok->unigram.byte_fallback)
        status = check_byte_names(tok, err);
    if (status != PNB_OK)
        return status;
    tok->unigram.unk_id = tok->unk_id;
    join_words(tok);
    return pnb__unigram_build(&tok->unigram, &tok->vocab, err);
}

static pnb_status find_model(pnb_tokenizer *tok, pnb__jobj *o, const json_t *vocab, pnb_error *err)
{
    const char *type = pnb__json_get_string(o, "type", NULL, err);
    if (o->status != PNB_OK)
        return o->status;
    if (type == NULL) /* files of early versions do not say it */
        type = json_is_array(vocab) ? "Unigram" : pnb__json_has(o, "merges") ? "BPE" : "WordLevel";
    if (strcmp(type, "WordLevel") == 0)
        tok->model = PNB__MODEL_WORD_LEVEL;
    else if (strcmp(type, "BPE") == 0)
        tok->model = PNB__MODEL_BPE;
    else if (strcmp(type, "Unigram") == 0)
        tok->model = PNB__MODEL_UNIGRAM;
    else
        return pnb__fail(err, PNB_UNSUPPORTED, "model \"%.40s\": want WordLevel, BPE or Unigram",
                         type);
    bool wants_array = tok->model == PNB__MODEL_UNIGRAM;
    if (wants_array ? !json_is_array(vocab) : !json_is_object(vocab))
        return pnb__fail(err, PNB_FORMAT, "model %s: \"vocab\" is missing or no %s", type,
                         wants_array ? "array" : "object");
    if (tok->bpe.is_byte_level && tok->model != PNB__MODEL_BPE)
        return pnb__fail(err, PNB_UNSUPPORTED, "a ByteLevel pre_tokenizer with a %s model", type);
    return PNB_OK;
}

static pnb_status read_model(pnb_tokenizer *tok, const json_t *root, pnb_error *err)
{
    pnb_status status;
    json_t *model = json_object_get(root, "model"), *added = json_object_get(root, "added_tokens");
    pnb__jobj o = pnb__json_object(model, "model", err);
    PNB_TRY(o.status);
    json_t *vocab = json_object_get(model, "vocab");
    if (!is_null(added) && !json_is_array(added))
        return pnb__fail(err, PNB_FORMAT, "\"added_tokens\" is no array");
    PNB_TRY(find_model(tok, &o, vocab, err));
    PNB_TRY(read_vocab(tok, vocab, added, err));
    PNB_TRY(read_added(tok, added, err));
    PNB_TRY(find_unk(tok, &o, err));
    if (tok->model == PNB__MODEL_BPE)
        PNB_TRY(read_bpe(tok, &o, err));
    else if (tok->model == PNB__MODEL_UNIGRAM)
        PNB_TRY(read_unigram(tok, &o, err));
    else if (tok->unk_id < 0)
        status = pnb__fail(err, PNB_FORMAT, "WordLevel without an unk_token");
done:
    return status;
}

/* ---- template ---- */

static pnb_status push_checked(pnb_tokenizer *tok, pnb__ids *ids, const json_t *id, pnb_error *err)
{
    json_int_t v = json_integer_value(id);
    if (!json_is_integer(id))
        return pnb__fail(err, PNB_FORMAT, "post_processor: an id that is no whole number");
    if (v < 0 || v >= tok->vocab.n)
        return pnb__fail(err, PNB_FORMAT, "post_processor: id %lld: the vocabulary has 0..%d",
                         (long long)v, tok->vocab.n - 1);
    return pnb__ids_push(ids, (int32_t)v, err);
}

static pnb_status read_template(pnb_tokenizer *tok, const json_t *post, pnb_error *err)
{
    const json_t *single = json_object_get(post, "single");
    const json_t *tokens = json_object_get(post, "special_tokens");
    int n_sequences = 0;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *entry = json_array_get(single, i);
        const json_t *special = json_object_get(entry, "SpecialToken");
        if (special == NULL) {
            n_sequences += json_object_get(entry, "Sequence") != NULL;
            continue;
        }
        const char *name = json_string_value(json_object_get(special, "id"));
        const json_t *ids =
            name != NULL ? json_object_get(json_object_get(tokens, name), "ids") : NULL;
        if (!json_is_array(ids))
            return pnb__fail(err, PNB_FORMAT, "post_processor: special token \"%.40s\" has no ids",
                             name != NULL ? name : "");
        for (size_t k = 0; k < json_array_size(ids); k++) {
            pnb_status status = push_checked(tok, n_sequences ? &tok->suffix : &tok->prefix,
                                             json_array_get(ids, k), err);
            if (status != PNB_OK)
                return status;
        }
    }
    if (n_sequences != 1)
        return pnb__fail(err, PNB_FORMAT, "post_processor: \"single\" holds %d sequences: want 1",
                         n_sequences);
    return PNB_OK;
}

static pnb_status read_post(pnb_tokenizer *tok, const json_t *post, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (is_null(post))
        return PNB_OK;
    const char *type = json_string_value(json_object_get(post, "type"));
    if (type == NULL)
        return pnb__fail(err, PNB_FORMAT, "post_processor without a type");
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(tok, post, err);
    if (strcmp(type, "ByteLevel") == 0) /* concerns offsets only */
        return PNB_OK;
    if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0) {
        PNB_TRY(
            push_checked(tok, &tok->prefix, json_array_get(json_object_get(post, "cls"), 1), err));
        PNB_TRY(
            push_checked(tok, &tok->suffix, json_array_get(json_object_get(post, "sep"), 1), err));
    } else if (strcmp(type, "Sequence") == 0) {
        const json_t *parts = json_object_get(post, "processors");
        for (size_t i = 0; i < json_array_size(parts); i++)
            PNB_TRY(read_post(tok, json_array_get(parts, i), err));
    } else {
        return pnb__fail(err, PNB_UNSUPPORTED, "post_processor \"%.40s\"", type);
    }
done:
    return status;
}

/* Only which of four ways it is; the details of the section do not change the text. */
static void read_decoder(pnb_tokenizer *tok, const json_t *decoder)
{
    const char *type = json_string_value(json_object_get(decoder, "type"));
    if (type == NULL)
        return;
    if (strcmp(type, "ByteLevel") == 0)
        tok->decoder = PNB__DECODE_BYTES;
    else if (strcmp(type, "Metaspace") == 0 || strcmp(type, "ByteFallback") == 0)
        tok->decoder = PNB__DECODE_METASPACE;
    else if (strcmp(type, "BPEDecoder") == 0 && !tok->bpe.is_byte_level)
        tok->decoder = PNB__DECODE_SUFFIX;
    const json_t *parts = json_object_get(decoder, "decoders");
    for (size_t i = 0; i < json_array_size(parts); i++)
        read_decoder(tok, json_array_get(parts, i));
}

static pnb_status check_direction(const json_t *root, const char *section, pnb_error *err)
{
    const json_t *value = json_object_get(json_object_get(root, section), "direction");
    const char *direction = json_string_value(value);
    if (direction != NULL && strcmp(direction, "Right") != 0)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s on the left", section);
    return PNB_OK;
}

/* "padding": the id, or where there is none the token's name. Both may be there, but a file that
 * contradicts itself is not followed either way. */
static pnb_status read_padding(const pnb_tokenizer *tok, const json_t *padding, int *pad_id,
                               pnb_error *err)
{
    const json_t *id = json_object_get(padding, "pad_id");
    const char *name = json_string_value(json_object_get(padding, "pad_token"));
    int named = name != NULL ? pnb__vocab_find(&tok->vocab, name, strlen(name)) : -1;
    *pad_id = named;
    if (is_null(padding))
        return PNB_OK;
    if (!json_is_object(padding))
        return pnb__fail(err, PNB_FORMAT, "\"padding\" is no object");
    if (is_null(id))
        return PNB_OK;
    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= tok->vocab.n)
        return pnb__fail(err, PNB_FORMAT, "padding: pad_id is not in the vocabulary of %d",
                         tok->vocab.n);
    *pad_id = (int)json_integer_value(id);
    if (named >= 0 && named != *pad_id)
        return pnb__fail(err, PNB_FORMAT,
                         "padding: pad_id is %d, but pad_token \"%.40s\" has id %d: correct one of "
                         "them",
                         *pad_id, name, named);
    return PNB_OK;
}

pnb_status pnb__tok_read(pnb_tokenizer *tok, const json_t *root, int *declared_pad, pnb_error *err)
{
    pnb_status status;
    tok->unk_id = tok->pad_id = tok->eos_id = tok->bos_id = tok->mask_id = -1;
    PNB_TRY(check_direction(root, "padding", err));
    PNB_TRY(check_direction(root, "truncation", err));
    PNB_TRY(pnb__tok_read_normalizer(tok, json_object_get(root, "normalizer"), err));
    PNB_TRY(pnb__tok_read_splits(tok, json_object_get(root, "pre_tokenizer"), err));
    PNB_TRY(read_model(tok, root, err));
    PNB_TRY(read_post(tok, json_object_get(root, "post_processor"), err));
    tok->decoder = tok->bpe.is_byte_level             ? PNB__DECODE_BYTES
                   : tok->model == PNB__MODEL_UNIGRAM ? PNB__DECODE_METASPACE
                                                      : PNB__DECODE_SPACES;
    read_decoder(tok, json_object_get(root, "decoder"));
    for (size_t i = 0; i < tok->n_splits; i++)
        if (tok->splits[i].kind == PNB__SPLIT_WORD_TOKENIZE)
            memset(tok->added_first, 0, sizeof tok->added_first); /* no text is looked into */
    status = read_padding(tok, json_object_get(root, "padding"), declared_pad, err);
done:
    return status;
}
