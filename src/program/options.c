/* Reads command lines by a table of options.
 *
 * Grammar: GNU long options (`--name value`, `--name=value`), optional one-letter forms, lists that
 * run until the next option, `--` as the end of options. Values are checked here, against type,
 * range and choices, so that commands receive only what their table allows. Names are never
 * abbreviated: a script must not change its meaning when an option is added.
 * Help, manual pages and completion of the same tables are in manual.c. */
#include "program/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/grow.h"
#include "io/json/json.h"

typedef struct cursor {
    char *const *words;
    int n, next;
} cursor;

bool pnb__key_value(const char *word, size_t *key_length, const char **value)
{
    const char *equals = strchr(word, '=');
    if (equals == NULL)
        return false;
    *key_length = (size_t)(equals - word);
    *value = equals + 1;
    return true;
}

bool pnb__read_int(const char *word, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (end == word || *end != '\0' || errno != 0 || isspace((unsigned char)word[0]))
        return false;
    *out = value;
    return true;
}

bool pnb__read_real(const char *word, double *out)
{
    char *end = NULL;
    double value = strtod(word, &end);
    if (end == word || *end != '\0' || isnan(value) || isspace((unsigned char)word[0]))
        return false;
    *out = value;
    return true;
}

enum { MAX_NAME = 63 };

/* ---- looking up ---- */

static bool same_name(const char *typed, size_t n_typed, const char *name)
{
    if (strlen(name) != n_typed)
        return false;
    for (size_t i = 0; i < n_typed; i++)
        if ((typed[i] == '_' ? '-' : typed[i]) != name[i])
            return false;
    return true;
}

static const pnb__option *find_long(const pnb__opt_set *sets, size_t n_sets, const char *typed,
                                    size_t n_typed, void **args)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++) {
            const pnb__option *row = &sets[s].rows[i];
            if (row->kind != PNB__OPT_REST && same_name(typed, n_typed, row->name)) {
                *args = sets[s].args;
                return row;
            }
        }
    return NULL;
}

static const pnb__option *find_letter(const pnb__opt_set *sets, size_t n_sets, char letter,
                                      void **args)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++)
            if (sets[s].rows[i].letter == letter) {
                *args = sets[s].args;
                return &sets[s].rows[i];
            }
    return NULL;
}

static const pnb__option *find_rest(const pnb__opt_set *sets, size_t n_sets, void **args)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++)
            if (sets[s].rows[i].kind == PNB__OPT_REST) {
                *args = sets[s].args;
                return &sets[s].rows[i];
            }
    return NULL;
}

static pnb_status fail_unknown(const pnb__opt_set *sets, size_t n_sets, const char *word,
                               pnb_error *err)
{
    const char *names[256];
    size_t n = 0;
    char typed[MAX_NAME + 1] = "";
    size_t length = strcspn(word + 2, "=");
    for (size_t i = 0; i < length && i < MAX_NAME; i++)
        typed[i] = word[2 + i] == '_' ? '-' : word[2 + i];
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n && n < PNB_COUNT(names); i++)
            if (sets[s].rows[i].kind != PNB__OPT_REST)
                names[n++] = sets[s].rows[i].name;
    const char *near = pnb__nearest_name(typed, names, n);
    if (near != NULL)
        return pnb__fail(err, PNB_ARG, "unknown option --%s; did you mean --%s?", typed, near);
    return pnb__fail(err, PNB_ARG, "unknown option --%s", typed);
}

/* ---- values ---- */

/* Endings of what people keep lists, sets and pictures in. */
bool pnb__looks_like_file(const char *text)
{
    static const char *const endings[] = {
        ".txt",   ".json",        ".jsonl",   ".ndjson", ".csv",  ".tsv",  ".npy",
        ".npz",   ".safetensors", ".parquet", ".tar",    ".gz",   ".zip",  ".zst",
        ".pt",    ".pth",         ".pkl",     ".bin",    ".yaml", ".yml",  ".toml",
        ".md",    ".html",        ".htm",     ".xml",    ".list", ".lst",  ".tok",
        ".token", ".ids",         ".pairs",   ".jpg",    ".jpeg", ".png",  ".webp",
        ".gif",   ".bmp",         ".tif",     ".tiff",   ".avif", ".heic", ".ppm"};
    size_t n = strlen(text);
    if (strpbrk(text, " \t\n") != NULL)
        return false;
    for (size_t i = 0; i < PNB_COUNT(endings); i++) {
        size_t length = strlen(endings[i]);
        if (n > length && strcasecmp(text + n - length, endings[i]) == 0)
            return true;
    }
    return false;
}

/* The place of a word among the choices, -1 when it is none. */
static int place_of(const char *choices, const char *word)
{
    size_t n = strlen(word);
    int place = 0;
    for (const char *c = choices; n > 0; c++, place++) {
        size_t length = strcspn(c, "|");
        if (length == n && memcmp(c, word, n) == 0)
            return place;
        c += length;
        if (*c == '\0')
            break;
    }
    return -1;
}

/* The same among PNB_NAMES; behind the last for a word that is none of them. */
static int place_among(const char *names, const char *word)
{
    int place = 0;
    for (; *names != '\0' && strcmp(names, word) != 0; names += strlen(names) + 1)
        place++;
    return place;
}

static size_t width_of(const pnb__option *row)
{
    return row->at >> 32;
}

static pnb_status check_range(const pnb__option *row, double value, const char *word,
                              pnb_error *err)
{
    if (row->min == 0.0 && row->max == 0.0)
        return PNB_OK;
    if (value >= row->min && value <= row->max)
        return PNB_OK;
    if (isinf(row->max))
        return pnb__fail(err, PNB_ARG, "--%s %s: must be at least %g", row->name, word, row->min);
    return pnb__fail(err, PNB_ARG, "--%s %s: must be between %.10g and %.10g", row->name, word,
                     row->min, row->max);
}

static pnb_status set_number(const pnb__option *row, void *field, const char *word, pnb_error *err)
{
    if (row->kind == PNB__OPT_INT) {
        int64_t value = 0;
        if (!pnb__read_int(word, &value))
            return pnb__fail(err, PNB_ARG, "--%s %s: a whole number is wanted", row->name, word);
        if (width_of(row) == sizeof(int))
            *(int *)field = (int)PNB_MIN(PNB_MAX(value, INT_MIN), INT_MAX);
        else
            *(int64_t *)field = value;
        return check_range(row, (double)value, word, err);
    }
    double value = 0;
    if (!pnb__read_real(word, &value))
        return pnb__fail(err, PNB_ARG, "--%s %s: a number is wanted", row->name, word);
    *(double *)field = value;
    return check_range(row, value, word, err);
}

static pnb_status set_choice(const pnb__option *row, void *field, const char *word, pnb_error *err)
{
    int place = place_of(row->choices, word);
    if (place < 0)
        return pnb__fail(err, PNB_ARG, "--%s %s: must be one of %s", row->name, word, row->choices);
    if (row->names != NULL)
        place = place_among(row->names, word);
    if (width_of(row) == sizeof(const char *))
        *(const char **)field = word;
    else if (width_of(row) == sizeof(bool))
        *(bool *)field = place != 0;
    else
        *(int *)field = place;
    return PNB_OK;
}

static pnb_status set_value(const pnb__option *row, void *args, const char *word, pnb_error *err)
{
    void *field = pnb__option_field(row, args);
    /* What a script hands over when its variable is unset: no path, and none was meant. */
    if ((row->kind == PNB__OPT_FILE || row->kind == PNB__OPT_FILES) && word[0] == '\0')
        return pnb__fail(err, PNB_ARG, "--%s: the path is empty", row->name);
    if (row->instead_of_file != NULL && pnb__looks_like_file(word))
        return pnb__fail(err, PNB_ARG,
                         "--%s %s: that is the name of a file, and texts are wanted; %s", row->name,
                         word, row->instead_of_file);
    switch (row->kind) {
    case PNB__OPT_FLAG:
        *(bool *)field = true;
        return PNB_OK;
    case PNB__OPT_INT:
    case PNB__OPT_REAL:
        return set_number(row, field, word, err);
    case PNB__OPT_CHOICE:
        return set_choice(row, field, word, err);
    case PNB__OPT_TEXT:
    case PNB__OPT_FILE:
        *(const char **)field = word;
        return PNB_OK;
    case PNB__OPT_LIST:
    case PNB__OPT_FILES:
    case PNB__OPT_REST:
        break;
    }
    if (width_of(row) == sizeof(const char *) && *(const char **)field != NULL)
        return pnb__fail(err, PNB_ARG, "one %s at a time, found '%s' too", row->value, word);
    if (width_of(row) == sizeof(const char *)) {
        *(const char **)field = word;
        return PNB_OK;
    }
    pnb__text_list *list = field;
    return PNB_PUSH(list->items, list->n, err, word);
}

/* False: neither true nor false. */
static bool set_flag(const pnb__option *row, void *args, const char *word)
{
    bool value = strcmp(word, "true") == 0;
    if (!value && strcmp(word, "false") != 0)
        return false;
    *(bool *)pnb__option_field(row, args) = value;
    return true;
}

static void set_unset(const pnb__option *row, void *args)
{
    void *field = pnb__option_field(row, args);
    memset(field, 0, width_of(row)); /* false, NULL, an empty list */
    if (row->kind == PNB__OPT_INT && width_of(row) == sizeof(int64_t))
        *(int64_t *)field = PNB__INT_UNSET;
    else if (row->kind == PNB__OPT_REAL)
        *(double *)field = NAN;
}

static bool is_list(const pnb__option *row)
{
    return row->kind == PNB__OPT_LIST || row->kind == PNB__OPT_FILES;
}

static bool fills_list(const pnb__option *row)
{
    return is_list(row) || (row->kind == PNB__OPT_REST && width_of(row) > sizeof(const char *));
}

static bool is_missing(const pnb__option *row, const void *args)
{
    const void *field = pnb__option_field(row, args);
    if (row->kind == PNB__OPT_INT)
        return width_of(row) == sizeof(int64_t) && *(const int64_t *)field == PNB__INT_UNSET;
    if (row->kind == PNB__OPT_REAL)
        return isnan(*(const double *)field);
    if (fills_list(row))
        return ((const pnb__text_list *)field)->n == 0;
    return width_of(row) == sizeof(const char *) && *(const char *const *)field == NULL;
}

/* ---- the walk over the words ---- */

static bool looks_like_option(const char *word)
{
    return word[0] == '-' && (word[1] == '-' || isalpha((unsigned char)word[1]));
}

static pnb_status take_values(cursor *c, const pnb__option *row, void *args,
                              const char *inline_value, pnb_error *err)
{
    if (row->kind == PNB__OPT_FLAG && inline_value != NULL && set_flag(row, args, inline_value))
        return PNB_OK;
    if (row->kind == PNB__OPT_FLAG && inline_value != NULL)
        return pnb__fail(err, PNB_ARG, "--%s takes no value, found '%s'", row->name, inline_value);
    if (row->kind == PNB__OPT_FLAG || inline_value != NULL)
        return set_value(row, args, inline_value, err);
    if (c->next >= c->n || looks_like_option(c->words[c->next]))
        return pnb__fail(err, PNB_ARG, "--%s needs a value (%s)", row->name, row->value);
    do {
        pnb_status status = set_value(row, args, c->words[c->next++], err);
        if (status != PNB_OK)
            return status;
    } while (is_list(row) && c->next < c->n && !looks_like_option(c->words[c->next]));
    return PNB_OK;
}

/* A value alone does not tell whether somebody asked for it. */
static void note_typed(const pnb__opt_set *sets, size_t n_sets, const pnb__option *row)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++)
            if (&sets[s].rows[i] == row && sets[s].typed != NULL)
                sets[s].typed[i] = true;
}

static pnb_status take_option(cursor *c, const pnb__opt_set *sets, size_t n_sets, pnb_error *err)
{
    const char *word = c->words[c->next++];
    void *args = NULL;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        const pnb__option *row = find_long(sets, n_sets, word + 2, length, &args);
        if (row == NULL)
            return fail_unknown(sets, n_sets, word, err);
        note_typed(sets, n_sets, row);
        return take_values(c, row, args, word[2 + length] == '=' ? word + 3 + length : NULL, err);
    }
    const pnb__option *row = find_letter(sets, n_sets, word[1], &args);
    if (row == NULL)
        return pnb__fail(err, PNB_ARG, "unknown option %.2s", word);
    note_typed(sets, n_sets, row);
    const char *rest = word[2] == '\0' ? NULL : word + 2 + (word[2] == '=');
    return take_values(c, row, args, rest, err);
}

static pnb_status fill_fallbacks(const pnb__opt_set *sets, size_t n_sets, pnb_error *err)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++)
            if (!sets[s].has_defaults)
                set_unset(&sets[s].rows[i], sets[s].args);
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++) {
            const pnb__option *row = &sets[s].rows[i];
            if (row->fallback == NULL)
                continue;
            pnb_status status = set_value(row, sets[s].args, row->fallback, err);
            if (status != PNB_OK)
                return status;
        }
    return PNB_OK;
}

static pnb_status check_required(const pnb__opt_set *sets, size_t n_sets, pnb_error *err)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++) {
            const pnb__option *row = &sets[s].rows[i];
            if (!row->required || !is_missing(row, sets[s].args))
                continue;
            if (row->kind == PNB__OPT_REST)
                return pnb__fail(err, PNB_ARG, "%s is missing: %s", row->value, row->help);
            return pnb__fail(err, PNB_ARG, "--%s %s is missing: %s", row->name, row->value,
                             row->help);
        }
    return PNB_OK;
}

static pnb_status apply_preset(const pnb__opt_set *sets, size_t n_sets, const pnb__preset *preset,
                               pnb_error *err)
{
    void *args = NULL;
    pnb_status status;
    const pnb__option *row = find_long(sets, n_sets, preset->name, strlen(preset->name), &args);
    if (row == NULL)
        return PNB_OK;
    if (is_list(row))
        status = pnb__fail(err, PNB_ARG, "--%s takes several words: give it on the command line",
                           row->name);
    else if (row->kind == PNB__OPT_FLAG)
        status = set_flag(row, args, preset->value)
                     ? PNB_OK
                     : pnb__fail(err, PNB_ARG, "--%s '%s': true or false is wanted", row->name,
                                 preset->value);
    else
        status = set_value(row, args, preset->value, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", preset->where);
    return status;
}

pnb_status pnb__options_parse(const pnb__opt_set *sets, size_t n_sets, int n_words,
                              char *const *words, pnb_error *err)
{
    return pnb__options_parse_over(sets, n_sets, NULL, 0, n_words, words, err);
}

pnb_status pnb__options_parse_over(const pnb__opt_set *sets, size_t n_sets,
                                   const pnb__preset *presets, size_t n_presets, int n_words,
                                   char *const *words, pnb_error *err)
{
    cursor c = {words, n_words, 0};
    void *rest_args = NULL;
    const pnb__option *rest = find_rest(sets, n_sets, &rest_args);
    bool options_ended = false;
    pnb_status status = fill_fallbacks(sets, n_sets, err);
    for (size_t i = 0; status == PNB_OK && i < n_presets; i++)
        status = apply_preset(sets, n_sets, &presets[i], err);
    while (status == PNB_OK && c.next < c.n) {
        const char *word = c.words[c.next];
        if (!options_ended && strcmp(word, "--") == 0) {
            options_ended = true;
            c.next++;
        } else if (!options_ended && looks_like_option(word)) {
            status = take_option(&c, sets, n_sets, err);
        } else if (rest == NULL) {
            status = pnb__fail(err, PNB_ARG, "'%s' belongs to no option", word);
        } else {
            status = set_value(rest, rest_args, word, err);
            c.next++;
        }
    }
    return status == PNB_OK ? check_required(sets, n_sets, err) : status;
}

void pnb__options_free(const pnb__opt_set *sets, size_t n_sets)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++) {
            const pnb__option *row = &sets[s].rows[i];
            if (!fills_list(row))
                continue;
            pnb__text_list *list = pnb__option_field(row, sets[s].args);
            pnb__free(list->items);
            *list = (pnb__text_list){NULL, 0};
        }
}
