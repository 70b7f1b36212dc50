/* CLIP's byte-level BPE from the files it came in before tokenizer.json:
 *
 *   bpe_simple_vocab_16e6.txt(.gz)   a header, then one merge a line, of which the first 48894
 * count; ids: 256 bytes, 256 bytes + "</w>", merges, start, end vocab.json + merges.txt the same,
 * ids written down (Hugging Face); also GPT-2's kind
 *
 * Both are put down as the tokenizer.json that says the same. open_clip's SimpleTokenizer, which
 * the first form follows, looks for the special strings word by word instead of cutting them out
 * first, pads with 0 (the id of "!") and cleans with `lower`. */
#include <string.h>

#include "tokenizer/tokenizer_json.h"

#define MAX_CLIP_MERGES (49152 - 256 - 2)

static const char clip_split[] = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";

static json_t *special_token(int id, const char *content)
{
    return json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id, "content", content,
                     "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
}

static json_t *byte_level(bool add_prefix_space, bool use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space",
                     add_prefix_space, "trim_offsets", 1, "use_regex", use_regex);
}

static json_t *bpe_model(json_t *vocab, json_t *merges, const char *unk, const char *suffix)
{
    return json_pack("{s:s, s:n, s:s?, s:n, s:s?, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", unk, "continuing_subword_prefix", "end_of_word_suffix", suffix,
                     "fuse_unk", 0, "byte_fallback", 0, "vocab", vocab, "merges", merges);
}

static json_t *lower_step(void)
{
    return json_pack("{s:s}", "type", "Lowercase");
}

/* What Hugging Face's converter writes for CLIP: NFC, white space, lower case. */
static json_t *hf_normalizer(void)
{
    return json_pack("{s:s, s:[{s:s}, {s:s, s:{s:s}, s:s}, o]}", "type", "Sequence", "normalizers",
                     "type", "NFC", "type", "Replace", "pattern", "Regex", "\\s+", "content", " ",
                     lower_step());
}

typedef struct clip_parts {
    json_t *vocab, *merges, *normalizer, *added, *padding; /* taken */
    const char *start, *end;
    int start_id, end_id;
} clip_parts;

static json_t *clip_root(const clip_parts *p)
{
    json_t *split = json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                              clip_split, "behavior", "Removed", "invert", 1);
    return json_pack(
        "{s:s, s:n, s:o, s:o, s:o, s:{s:s, s:[o, o]}, s:{s:s, s:[s, i], s:[s, i], s:b, s:b}, s:o, "
        "s:o}",
        "version", "1.0", "truncation", "padding", p->padding, "added_tokens", p->added,
        "normalizer", p->normalizer, "pre_tokenizer", "type", "Sequence", "pretokenizers", split,
        byte_level(false, false), "post_processor", "type", "RobertaProcessing", "sep", p->end,
        p->end_id, "cls", p->start, p->start_id, "trim_offsets", 0, "add_prefix_space", 0,
        "decoder", byte_level(true, true), "model", bpe_model(p->vocab, p->merges, p->end, "</w>"));
}

/* ---- merges, one a line ---- */

typedef struct line {
    const char *text;
    size_t n;
} line;

/* The next line without its end; false when the text is used up. */
static bool next_line(const char **at, const char *end, line *l)
{
    if (*at == end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    l->text = *at;
    l->n = (size_t)((stop != NULL ? stop : end) - *at);
    *at = stop != NULL ? stop + 1 : end;
    if (l->n > 0 && l->text[l->n - 1] == '\r')
        l->n--;
    return true;
}

/* Merges to an array of pairs. The first line is a header: always where `max_merges` says CLIP, as
 * its reader has it, otherwise when it looks like one. */
static pnb_status read_merges(const char *text, size_t n, size_t max_merges, json_t *merges,
                              pnb_error *err)
{
    const char *at = text, *end = text + n;
    line l;
    for (size_t number = 1; json_array_size(merges) < max_merges && next_line(&at, end, &l);
         number++) {
        const char *space = memchr(l.text, ' ', l.n);
        bool is_header = number == 1 && (max_merges == MAX_CLIP_MERGES ||
                                         memmem(l.text, l.n, "#version", 8) != NULL);
        if (is_header || l.n == 0)
            continue;
        size_t n_left = space != NULL ? (size_t)(space - l.text) : 0;
        size_t n_right = space != NULL ? l.n - n_left - 1 : 0;
        bool is_pair = n_left > 0 && n_right > 0 && memchr(space + 1, ' ', n_right) == NULL &&
                       memchr(l.text, 0, l.n) == NULL && pnb__utf8_valid(l.text, l.n);
        if (!is_pair)
            return pnb__fail(err, PNB_FORMAT, "line %zu \"%.*s\": want two pieces with a space",
                             number, (int)PNB_MIN(l.n, (size_t)60), l.text);
        if (json_array_append_new(merges, json_pack("[o, o]", json_stringn(l.text, n_left),
                                                    json_stringn(space + 1, n_right))) != 0)
            return pnb__fail_nomem(err, l.n);
    }
    if (json_array_size(merges) == 0)
        return pnb__fail(err, PNB_FORMAT, "no merges: want a header line, then two pieces a line");
    return PNB_OK;
}

/* ---- bpe_simple_vocab ---- */

static int put_bytes(json_t *vocab, const char *suffix, int id)
{
    for (int printable = 1; printable >= 0; printable--) {
        for (int byte = 0; byte < 256; byte++) {
            char piece[16], letter[5] = {0};
            uint32_t c = pnb__byte_char((unsigned char)byte);
            if ((c < 0x100) != printable)
                continue;
            pnb__utf8_encode(c, letter);
            snprintf(piece, sizeof piece, "%s%s", letter, suffix);
            json_object_set_new(vocab, piece, json_integer(id++));
        }
    }
    return id;
}

/* The id of a piece that two merges make is that of the later one, as in a Python dict. */
static pnb_status put_results(json_t *vocab, const json_t *merges, int id, pnb_error *err)
{
    pnb__buf piece = {0};
    bool failed = json_object_size(vocab) != 512; /* bytes */
    for (size_t i = 0; i < json_array_size(merges) && !failed; i++) {
        const json_t *pair = json_array_get(merges, i);
        piece.size = 0;
        pnb__buf_puts(&piece, json_string_value(json_array_get(pair, 0)));
        pnb__buf_puts(&piece, json_string_value(json_array_get(pair, 1)));
        failed = piece.failed || json_object_set_new(vocab, piece.data, json_integer(id++)) != 0;
    }
    pnb__buf_reset(&piece);
    return failed ? pnb__fail_nomem(err, 64) : PNB_OK;
}

static json_t *simple_root(json_t *vocab, json_t *merges, const pnb__clip_names *names, int id)
{
    clip_parts p = {.vocab = json_incref(vocab),
                    .merges = json_incref(merges),
                    .normalizer = lower_step(),
                    .start = names->start,
                    .end = names->end,
                    .start_id = id,
                    .end_id = id + 1};
    if (json_object_set_new(vocab, names->start, json_integer(id)) != 0 ||
        json_object_set_new(vocab, names->end, json_integer(id + 1)) != 0) {
        json_decref(p.vocab);
        p.vocab = NULL; /* makes the whole NULL: out of memory */
    }
    p.added =
        json_pack("[o, o]", special_token(id, names->start), special_token(id + 1, names->end));
    p.padding =
        json_pack("{s:s, s:s, s:n, s:i, s:i, s:s}", "strategy", "BatchLongest", "direction",
                  "Right", "pad_to_multiple_of", "pad_id", 0, "pad_type_id", 0, "pad_token", "!");
    return clip_root(&p);
}

/* The special strings become words of the split; the cleaning replaces the normaliser. */
static void refine(pnb_tokenizer *tok)
{
    pnb__norms_reset(tok);
    for (size_t i = 0; i < tok->n_added; i++)
        tok->added[i].is_word = true;
    for (size_t i = 0; i < tok->n_splits; i++) {
        tok->splits[i].words = tok->added;
        tok->splits[i].n_words = tok->n_added;
    }
    tok->clean.mode = PNB_CLEAN_LOWER;
    snprintf(tok->pad_source, sizeof tok->pad_source, "%s", PNB__PAD_AS_OPEN_CLIP);
}

pnb_status pnb__tok_from_merges(pnb_tokenizer **out, const char *text, size_t n,
                                const pnb__clip_names *names, const char *where, pnb_error *err)
{
    pnb_status status;
    json_t *vocab = json_object(), *merges = json_array(), *root = NULL;
    *out = NULL;
    status = read_merges(text, n, MAX_CLIP_MERGES, merges, err);
    if (status == PNB_OK) {
        int id = put_bytes(vocab, "</w>", put_bytes(vocab, "", 0));
        status = put_results(vocab, merges, id, err);
        root = simple_root(vocab, merges, names, id + (int)json_array_size(merges));
    }
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", where);
        goto done;
    }
    PNB_TRY(pnb__tok_from_root(out, root, where, NULL, err));
    refine(*out);
done:
    json_decref(root);
    json_decref(vocab);
    json_decref(merges);
    return status;
}

/* ---- vocab.json + merges.txt ---- */

static const char *first_in(const json_t *vocab, const char *given, const char *const *names)
{
    if (given != NULL && json_object_get(vocab, given) != NULL)
        return given;
    for (; *names != NULL; names++)
        if (json_object_get(vocab, *names) != NULL)
            return *names;
    return NULL;
}

static int id_in(const json_t *vocab, const char *piece)
{
    return (int)json_integer_value(json_object_get(vocab, piece));
}

/* GPT-2: no template, words begin with the space in front of them. */
static json_t *gpt2_root(json_t *vocab, json_t *merges, json_t *added, const pnb__tok_side *side)
{
    return json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added, "normalizer", "pre_tokenizer",
                     byte_level(side->add_prefix_space, true), "post_processor", "decoder",
                     byte_level(true, true), "model",
                     bpe_model(json_incref(vocab), json_incref(merges), NULL, NULL));
}

static bool has_word_ends(const json_t *vocab)
{
    const char *piece;
    json_t *id;
    json_object_foreach((json_t *)(uintptr_t)vocab, piece,
                        id) if (pnb__ends_with(piece, "</w>")) return true;
    return false;
}

static pnb_status pair_root(json_t *vocab, json_t *merges, const pnb__tok_side *side, json_t **root,
                            pnb_error *err)
{
    static const char *const starts[] = {"<|startoftext|>", "<start_of_text>", NULL};
    static const char *const ends[] = {"<|endoftext|>", "<end_of_text>", NULL};
    json_t *added = side->added != NULL ? json_deep_copy(side->added) : json_array();
    if (!has_word_ends(vocab)) {
        *root = gpt2_root(vocab, merges, added, side);
        return PNB_OK;
    }
    const char *start = first_in(vocab, side->bos, starts), *end = first_in(vocab, side->eos, ends);
    if (start == NULL || end == NULL) {
        json_decref(added);
        return pnb__fail(err, PNB_FORMAT, "the vocabulary has no %s token: want <|%softext|>",
                         start == NULL ? "start" : "end", start == NULL ? "start" : "end");
    }
    clip_parts p = {.vocab = json_incref(vocab),
                    .merges = json_incref(merges),
                    .normalizer = hf_normalizer(),
                    .padding = json_null(),
                    .added = added,
                    .start = start,
                    .end = end,
                    .start_id = id_in(vocab, start),
                    .end_id = id_in(vocab, end)};
    if (json_array_size(added) == 0) {
        if (json_array_append_new(added, special_token(p.start_id, start)) != 0 ||
            json_array_append_new(added, special_token(p.end_id, end)) != 0) {
            json_decref(added);
            p.added = NULL;
        }
    }
    *root = clip_root(&p);
    return PNB_OK;
}

pnb_status pnb__tok_from_pair(pnb_tokenizer **out, const pnb__tok_pair *pair, const char *where,
                              const char *dir, pnb_error *err)
{
    pnb_status status;
    json_t *vocab = NULL, *merges = json_array(), *root = NULL;
    pnb__tok_side side = {0};
    *out = NULL;
    PNB_TRY(pnb__json_load_bytes(&vocab, pair->vocab, pair->n_vocab, where, err));
    status = !json_is_object(vocab)
                 ? pnb__fail(err, PNB_FORMAT, "not a JSON object")
                 : read_merges(pair->merges, pair->n_merges, SIZE_MAX, merges, err);
    if (status == PNB_OK)
        status = pnb__tok_read_side(&side, dir, err);
    if (status == PNB_OK)
        status = pair_root(vocab, merges, &side, &root, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s and merges.txt", where);
        goto done;
    }
    status = pnb__tok_from_root(out, root, where, dir, err);
done:
    json_decref(root);
    json_decref(vocab);
    json_decref(merges);
    pnb__tok_side_reset(&side);
    return status;
}
