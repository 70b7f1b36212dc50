/* Reads the "normalizer" and "pre_tokenizer" sections of tokenizer.json into flat lists of steps.
 * A section is one step or a Sequence of them. A step that is not known is refused by name: leaving
 * it out would tokenize differently without a word. */
#include <string.h>

#include "tokenizer/tokenizer_json.h"

static const char metaspace[] = "\xE2\x96\x81"; /* U+2581 */
static const char gpt2_regex[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char clip_regex[] = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";
static const char clip_regex_special[] =
    "<\\|startoftext\\|>|<\\|endoftext\\|>|"
    "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";

static const char *string_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool flag_at(const json_t *object, const char *key, bool fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static pnb_status copy_string(char **out, const char *from, const char *what, pnb_error *err)
{
    if (from == NULL)
        return pnb__fail(err, PNB_FORMAT, "normalizer: %s is missing", what);
    return pnb__copy_text(out, from, err);
}

/* {"String": s} or {"Regex": r}. */
static pnb_status read_pattern(pnb__pattern *p, const json_t *pattern, pnb_error *err)
{
    const char *literal = string_at(pattern, "String"), *regex = string_at(pattern, "Regex");
    if (literal != NULL && *literal != '\0')
        return copy_string(&p->literal, literal, "pattern", err);
    if (regex != NULL)
        return pnb__pattern_parse(p, regex, err);
    return pnb__fail(err, PNB_FORMAT,
                     "normalizer Replace: want {\"String\": ...} or {\"Regex\": "
                     "...}");
}

static pnb_status read_form(pnb__norm_step *step, const char *type)
{
    step->kind = PNB__NORM_FORM;
    step->compose = type[strlen(type) - 1] == 'C';
    step->compatible = type[2] == 'K';
    return PNB_OK;
}

static pnb_status read_norm(pnb__norm_step *step, const json_t *section, const char *type,
                            pnb_error *err)
{
    if (strcmp(type, "Lowercase") == 0) {
        step->kind = PNB__NORM_LOWER;
    } else if (strcmp(type, "NFC") == 0 || strcmp(type, "NFD") == 0 || strcmp(type, "NFKC") == 0 ||
               strcmp(type, "NFKD") == 0) {
        return read_form(step, type);
    } else if (strcmp(type, "Strip") == 0) {
        step->kind = PNB__NORM_STRIP;
        step->strip_left = flag_at(section, "strip_left", true);
        step->strip_right = flag_at(section, "strip_right", true);
    } else if (strcmp(type, "StripAccents") == 0) {
        step->kind = PNB__NORM_STRIP_ACCENTS;
    } else if (strcmp(type, "Prepend") == 0) {
        step->kind = PNB__NORM_PREPEND;
        return copy_string(&step->content, string_at(section, "prepend"), "prepend", err);
    } else if (strcmp(type, "Replace") == 0) {
        step->kind = PNB__NORM_REPLACE;
        pnb_status status =
            copy_string(&step->content, string_at(section, "content"), "content", err);
        if (status != PNB_OK)
            return status;
        return read_pattern(&step->pattern, json_object_get(section, "pattern"), err);
    } else if (strcmp(type, "Precompiled") == 0) {
        const char *map = string_at(section, "precompiled_charsmap");
        return pnb__charsmap_parse(step, map != NULL ? map : "", map != NULL ? strlen(map) : 0,
                                   err);
    } else {
        return pnb__fail(err, PNB_UNSUPPORTED, "normalizer \"%.40s\"", type);
    }
    return PNB_OK;
}

pnb_status pnb__tok_read_normalizer(pnb_tokenizer *tok, const json_t *section, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (section == NULL || json_is_null(section))
        return PNB_OK;
    const char *type = string_at(section, "type");
    if (type == NULL)
        return pnb__fail(err, PNB_FORMAT, "normalizer without a type");
    if (strcmp(type, "Sequence") == 0) {
        const json_t *parts = json_object_get(section, "normalizers");
        for (size_t i = 0; i < json_array_size(parts) && status == PNB_OK; i++)
            status = pnb__tok_read_normalizer(tok, json_array_get(parts, i), err);
        return status;
    }
    if (tok->n_norms == PNB__MAX_STEPS)
        return pnb__fail(err, PNB_LIMIT, "normalizer: more than %d steps", PNB__MAX_STEPS);
    return read_norm(&tok->norms[tok->n_norms++], section, type, err);
}

static pnb_status read_metaspace(pnb__split_step *step, const json_t *section, pnb_error *err)
{
    const char *replacement = string_at(section, "replacement");
    const char *scheme = string_at(section, "prepend_scheme");
    if (replacement != NULL && strcmp(replacement, metaspace) != 0)
        return pnb__fail(err, PNB_UNSUPPORTED, "Metaspace with replacement \"%.20s\"", replacement);
    step->kind = PNB__SPLIT_METASPACE;
    step->splits = flag_at(section, "split", true);
    step->prefix =
        flag_at(section, "add_prefix_space", true) ? PNB__PREFIX_ALWAYS : PNB__PREFIX_NEVER;
    if (scheme == NULL)
        return PNB_OK;
    if (strcmp(scheme, "always") == 0)
        step->prefix = PNB__PREFIX_ALWAYS;
    else if (strcmp(scheme, "first") == 0)
        step->prefix = PNB__PREFIX_FIRST;
    else if (strcmp(scheme, "never") == 0)
        step->prefix = PNB__PREFIX_NEVER;
    else
        return pnb__fail(err, PNB_FORMAT, "Metaspace: prepend_scheme \"%.20s\"", scheme);
    return PNB_OK;
}

/* Gemma's files (SigLIP 2) split at a space that their normaliser has just replaced: no cut. */
static bool is_replaced(const pnb_tokenizer *tok, const char *literal)
{
    const pnb__norm_step *last = tok->n_norms > 0 ? &tok->norms[tok->n_norms - 1] : NULL;
    return last != NULL && last->kind == PNB__NORM_REPLACE && last->pattern.literal != NULL &&
           strcmp(last->pattern.literal, literal) == 0 && strstr(last->content, literal) == NULL;
}

/* The two expressions of the reference tokenizers, known by their text. */
static pnb_status read_regex_split(const pnb_tokenizer *tok, pnb__split_step *step,
                                   const json_t *section, pnb_error *err)
{
    const char *regex = string_at(json_object_get(section, "pattern"), "Regex");
    const char *literal = string_at(json_object_get(section, "pattern"), "String");
    const char *behavior = string_at(section, "behavior");
    bool invert = flag_at(section, "invert", false);
    if (literal != NULL && is_replaced(tok, literal)) {
        step->kind = PNB__SPLIT_NONE;
        return PNB_OK;
    }
    if (regex == NULL || behavior == NULL)
        return pnb__fail(err, PNB_UNSUPPORTED, "pre_tokenizer Split without a Regex");
    bool is_clip = strcmp(regex, clip_regex) == 0 || strcmp(regex, clip_regex_special) == 0;
    if (is_clip && invert && strcmp(behavior, "Removed") == 0) {
        step->kind = PNB__SPLIT_CLIP;
        return PNB_OK;
    }
    if (strcmp(regex, gpt2_regex) == 0 && strcmp(behavior, "Isolated") == 0) {
        step->kind = PNB__SPLIT_GPT2;
        return PNB_OK;
    }
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "pre_tokenizer Split with \"%.120s\": only CLIP's and GPT-2's are known",
                     regex);
}

static pnb_status read_split(pnb_tokenizer *tok, pnb__split_step *step, const json_t *section,
                             const char *type, pnb_error *err)
{
    if (strcmp(type, "Whitespace") == 0) {
        step->kind = PNB__SPLIT_WHITESPACE;
    } else if (strcmp(type, PNB__WORD_TOKENIZE) == 0) {
        step->kind = PNB__SPLIT_WORD_TOKENIZE;
    } else if (strcmp(type, "WhitespaceSplit") == 0) {
        step->kind = PNB__SPLIT_WHITESPACE_ONLY;
    } else if (strcmp(type, "ByteLevel") == 0) {
        bool use_regex = flag_at(section, "use_regex", true);
        step->kind = use_regex ? PNB__SPLIT_GPT2 : PNB__SPLIT_NONE;
        step->prefix =
            flag_at(section, "add_prefix_space", true) ? PNB__PREFIX_ALWAYS : PNB__PREFIX_NEVER;
        tok->bpe.is_byte_level = true;
    } else if (strcmp(type, "Metaspace") == 0) {
        return read_metaspace(step, section, err);
    } else if (strcmp(type, "Split") == 0) {
        return read_regex_split(tok, step, section, err);
    } else {
        return pnb__fail(err, PNB_UNSUPPORTED, "pre_tokenizer \"%.40s\"", type);
    }
    return PNB_OK;
}

pnb_status pnb__tok_read_splits(pnb_tokenizer *tok, const json_t *section, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (section == NULL || json_is_null(section))
        return PNB_OK;
    const char *type = string_at(section, "type");
    if (type == NULL)
        return pnb__fail(err, PNB_FORMAT, "pre_tokenizer without a type");
    if (strcmp(type, "Sequence") == 0) {
        const json_t *parts = json_object_get(section, "pretokenizers");
        for (size_t i = 0; i < json_array_size(parts) && status == PNB_OK; i++)
            status = pnb__tok_read_splits(tok, json_array_get(parts, i), err);
        return status;
    }
    if (tok->n_splits == PNB__MAX_STEPS)
        return pnb__fail(err, PNB_LIMIT, "pre_tokenizer: more than %d steps", PNB__MAX_STEPS);
    return read_split(tok, &tok->splits[tok->n_splits++], section, type, err);
}
