/* The "normalizer" section of tokenizer.json: lower case, Unicode forms, strip, replace, prepend.
 *
 * Regular expressions appear there in a few fixed shapes; understood is one character or class,
 * alone or repeated, or tied to an end of the text: \s+, " {2,}", [!-/:-@\[-`{-~], "\A +", " +\z".
 * Anything else is refused by name rather than
 * approximated. SentencePiece's precompiled map is in charsmap.c. */
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/grow.h"
#include "tokenizer/tokenizer_json.h"

static void set_ascii(pnb__pattern *p, unsigned c)
{
    p->ascii[c >> 3] = (unsigned char)(p->ascii[c >> 3] | 1u << (c & 7));
}

static void set_space(pnb__pattern *p)
{
    for (unsigned c = 0; c < 0x80; c++)
        if (pnb__is_space(c))
            set_ascii(p, c);
    p->unicode_space = true;
}

/* One character of a class or expression: 0..127, 256 for \s, -1 for what is not understood. */
static int read_atom(const char **at)
{
    const char *s = *at;
    unsigned char c = (unsigned char)*s++;
    if (c == '\0' || c >= 0x80)
        return -1;
    if (c == '\\') {
        c = (unsigned char)*s++;
        *at = s;
        if (c == 's')
            return 256;
        bool is_letter_or_digit = (c | 32) >= 'a' && (c | 32) <= 'z';
        is_letter_or_digit = is_letter_or_digit || (c >= '0' && c <= '9');
        return c == '\0' || c >= 0x80 || is_letter_or_digit ? -1 : c;
    }
    *at = s;
    return c;
}

/* After '['. False for negation, classes inside, intersections, and whatever read_atom does not
 * know.
 */
static bool read_class(pnb__pattern *p, const char **at)
{
    if (**at == '^' || **at == ']')
        return false;
    while (**at != ']') {
        if (**at == '[' || pnb__starts_with(*at, "&&"))
            return false;
        int first = read_atom(at), last = first;
        if (first < 0)
            return false;
        if (first == 256) {
            set_space(p);
            continue;
        }
        if (**at == '-' && (*at)[1] != ']') {
            (*at)++;
            last = read_atom(at);
        }
        if (last < first || last == 256)
            return false;
        for (int c = first; c <= last; c++)
            set_ascii(p, (unsigned)c);
    }
    (*at)++;
    return true;
}

static bool read_repeat(pnb__pattern *p, const char *at)
{
    const char *tail = p->to_end ? "\\z" : "";
    p->min_run = p->max_run = 1;
    if (strcmp(at, tail) == 0)
        return true;
    p->max_run = SIZE_MAX;
    if (*at == '+')
        return strcmp(at + 1, tail) == 0;
    char *end;
    if (*at != '{' || at[1] < '1' || at[1] > '9')
        return false;
    p->min_run = strtoul(at + 1, &end, 10);
    return pnb__starts_with(end, ",}") && strcmp(end + 2, tail) == 0;
}

pnb_status pnb__pattern_parse(pnb__pattern *p, const char *regex, pnb_error *err)
{
    const char *at = regex;
    size_t n = strlen(regex);
    bool is_known = false;
    *p = (pnb__pattern){0};
    p->from_start = pnb__starts_with(regex, "\\A");
    p->to_end = n >= 2 && strcmp(regex + n - 2, "\\z") == 0;
    at += p->from_start ? 2 : 0;
    if (*at == '[') {
        at++;
        is_known = read_class(p, &at);
    } else if (*at != '\0' && strchr("^$.|?*+(){}", *at) == NULL) {
        int c = read_atom(&at);
        is_known = c >= 0;
        if (c == 256)
            set_space(p);
        else if (c >= 0)
            set_ascii(p, (unsigned)c);
    }
    if (!is_known || !read_repeat(p, at))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "regular expression \"%.100s\": only a character or class, then nothing, "
                         "+ or {n,}",
                         regex);
    return PNB_OK;
}

static bool in_pattern(const pnb__pattern *p, uint32_t c)
{
    if (c < 0x80)
        return (p->ascii[c >> 3] >> (c & 7) & 1) != 0;
    return p->unicode_space && pnb__is_space(c);
}

/* Bytes that the pattern matches at s, 0 for none. */
static size_t match_pattern(const pnb__pattern *p, const char *s, size_t n)
{
    if (p->literal != NULL) {
        size_t n_literal = strlen(p->literal);
        return n_literal <= n && memcmp(s, p->literal, n_literal) == 0 ? n_literal : 0;
    }
    size_t run = 0, at = 0;
    while (at < n && run < p->max_run) {
        uint32_t c;
        size_t used = pnb__next_char(s + at, n - at, &c);
        if (!in_pattern(p, c))
            break;
        at += used;
        run++;
    }
    return run >= p->min_run ? at : 0;
}

static void put_replaced(const pnb__norm_step *step, const char *s, size_t n, pnb__buf *out)
{
    const pnb__pattern *p = &step->pattern;
    for (size_t i = 0; i < n && out->size <= PNB_TOKENIZER_MAX_BYTES;) {
        size_t matched = p->from_start && i > 0 ? 0 : match_pattern(p, s + i, n - i);
        bool is_run_only = matched > 0 && p->to_end && i + matched < n;
        if (matched > 0 && !is_run_only) {
            pnb__buf_puts(out, step->content);
            i += matched;
        } else {
            size_t used = PNB_MAX(matched, (size_t)1);
            pnb__buf_append(out, s + i, used);
            i += used;
        }
    }
}

static void put_stripped(const pnb__norm_step *step, const char *s, size_t n, pnb__buf *out)
{
    size_t begin = 0, end = n;
    uint32_t c;
    while (step->strip_left && begin < n) {
        size_t used = pnb__next_char(s + begin, n - begin, &c);
        if (!pnb__is_space(c))
            break;
        begin += used;
    }
    while (step->strip_right && end > begin) {
        size_t last = end - 1;
        while (last > begin && ((unsigned char)s[last] & 0xC0) == 0x80)
            last--;
        pnb__next_char(s + last, end - last, &c);
        if (!pnb__is_space(c))
            break;
        end = last;
    }
    pnb__buf_append(out, s + begin, end - begin);
}

static void put_without_marks(const char *s, size_t n, pnb__buf *out)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = pnb__next_char(s + i, n - i, &c);
        if (c < 0x80 || utf8proc_category((utf8proc_int32_t)c) != UTF8PROC_CATEGORY_MN)
            pnb__buf_append(out, s + i, used);
        i += used;
    }
}

/* ---- NFC, NFD, NFKC, NFKD ---- */

typedef struct chars {
    utf8proc_int32_t *at;
    size_t n;
} chars;

/* Every character takes at most 18 when taken apart (U+FDFA), and a character has 1 to 4 bytes. */
static pnb_status decompose(const pnb__norm_step *step, const char *s, size_t n, chars *out,
                            pnb_error *err)
{
    enum { MOST = 32 };
    size_t capacity = 0;
    unsigned options =
        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (step->compatible ? UTF8PROC_COMPAT : 0u);
    int bound = UTF8PROC_BOUNDCLASS_START;
    *out = (chars){0};
    pnb_status status = PNB_GROW(out->at, capacity, n + MOST, err);
    for (size_t i = 0; i < n && status == PNB_OK;) {
        uint32_t c;
        status = PNB_GROW(out->at, capacity, out->n + MOST, err);
        if (status != PNB_OK)
            break;
        i += pnb__next_char(s + i, n - i, &c);
        utf8proc_ssize_t used = utf8proc_decompose_char((utf8proc_int32_t)c, out->at + out->n, MOST,
                                                        (utf8proc_option_t)options, &bound);
        out->n += used > 0 && used <= MOST ? (size_t)used : 0;
    }
    if (status != PNB_OK) {
        pnb__free(out->at);
        out->at = NULL;
    }
    return status;
}

static unsigned class_of(utf8proc_int32_t c)
{
    return (unsigned)utf8proc_get_property(c)->combining_class & 0xFF;
}

/* A run of combining characters into the order of their classes, equals as they stood. Counting
 * keeps a text of nothing but marks linear, which a sort by swapping neighbours is not. */
static void order_run(utf8proc_int32_t *run, size_t n, utf8proc_int32_t *scratch)
{
    size_t begin[257] = {0};
    for (size_t i = 0; i < n; i++)
        begin[class_of(run[i]) + 1]++;
    for (int k = 0; k < 256; k++)
        begin[k + 1] += begin[k];
    for (size_t i = 0; i < n; i++)
        scratch[begin[class_of(run[i])]++] = run[i];
    memcpy(run, scratch, n * sizeof *run);
}

static pnb_status order_marks(chars *c, pnb_error *err)
{
    utf8proc_int32_t *scratch = pnb__alloc_array(c->n + 1, sizeof *scratch);
    if (scratch == NULL)
        return pnb__fail_nomem(err, c->n * sizeof *scratch);
    for (size_t i = 0; i < c->n;) {
        size_t end = i;
        while (end < c->n && class_of(c->at[end]) != 0)
            end++;
        if (end > i + 1)
            order_run(c->at + i, end - i, scratch);
        i = PNB_MAX(end, i + 1);
    }
    pnb__free(scratch);
    return PNB_OK;
}

static bool is_ascii(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0x80)
            return false;
    return true;
}

static pnb_status put_form(const pnb__norm_step *step, const char *s, size_t n, pnb__buf *out,
                           pnb_error *err)
{
    chars c;
    if (is_ascii(s, n)) {
        pnb__buf_append(out, s, n);
        return PNB_OK;
    }
    pnb_status status = decompose(step, s, n, &c, err);
    if (status != PNB_OK)
        return status;
    status = order_marks(&c, err);
    utf8proc_ssize_t kept = (utf8proc_ssize_t)c.n;
    if (step->compose && status == PNB_OK)
        kept = utf8proc_normalize_utf32(c.at, kept,
                                        (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    for (utf8proc_ssize_t i = 0; i < kept && status == PNB_OK; i++)
        pnb__put_char(out, (uint32_t)c.at[i]);
    pnb__free(c.at);
    return status;
}

static pnb_status run_step(const pnb__norm_step *step, const char *s, size_t n, pnb__buf *out,
                           pnb_error *err)
{
    switch (step->kind) {
    case PNB__NORM_LOWER:
        pnb__put_lower(out, s, n, false);
        break;
    case PNB__NORM_FORM:
        return put_form(step, s, n, out, err);
    case PNB__NORM_STRIP:
        put_stripped(step, s, n, out);
        break;
    case PNB__NORM_STRIP_ACCENTS:
        put_without_marks(s, n, out);
        break;
    case PNB__NORM_REPLACE:
        put_replaced(step, s, n, out);
        break;
    case PNB__NORM_PREPEND:
        if (n > 0)
            pnb__buf_puts(out, step->content);
        pnb__buf_append(out, s, n);
        break;
    case PNB__NORM_CHARSMAP:
        pnb__charsmap_run(step, s, n, out);
        break;
    case PNB__NORM_SENTENCEPIECE:
        pnb__charsmap_run_whole(step, s, n, out);
        break;
    }
    return PNB_OK;
}

pnb_status pnb__normalize(const pnb__norm_step *steps, size_t n_steps, const char *text, size_t n,
                          pnb__buf *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__buf now = {0};
    pnb__buf_append(&now, text, n);
    for (size_t i = 0; i < n_steps && !now.failed && status == PNB_OK; i++) {
        pnb__buf next = {0};
        pnb__buf_append(&next, "", 0);
        status = run_step(&steps[i], now.data, now.size, &next, err);
        pnb__buf_reset(&now);
        now = next;
        if (status == PNB_OK && now.size > PNB_TOKENIZER_MAX_BYTES)
            status = pnb__fail(err, PNB_LIMIT,
                               "step %zu of the normalizer makes more than %d bytes of a text of "
                               "%zu: shorten the text, or look at the tokenizer's file",
                               i + 1, PNB_TOKENIZER_MAX_BYTES, n);
    }
    pnb__buf_reset(out);
    *out = now;
    if (status == PNB_OK && now.failed)
        status = pnb__fail_nomem(err, n);
    return status;
}

void pnb__norms_reset(pnb_tokenizer *tok)
{
    for (size_t i = 0; i < tok->n_norms; i++) {
        pnb__free(tok->norms[i].pattern.literal);
        pnb__free(tok->norms[i].content);
        pnb__free(tok->norms[i].trie);
        pnb__free(tok->norms[i].strings);
        tok->norms[i] = (pnb__norm_step){0};
    }
    tok->n_norms = 0;
}
