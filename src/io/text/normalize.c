/* The "normalizer" section of tokenizer.json: lower case, Unicode forms, strip, replace, prepend.
 *
 * Regular expressions appear there in a few fixed shapes; understood is one character or class,
 * alone or repeated, or tied to an end of the text: \s+, " {2,}", [!-/:-@\[-`{-~], "\A +", " +\z".
 * Anything else is refused by name rather than
 * approximated. SentencePiece's precompiled map is in charsmap.c. */
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "io/text/tokenizer_json.h"

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

/* After '['. False for negation and whatever read_atom does not know. */
static bool read_class(pnb__pattern *p, const char **at)
{
    if (**at == '^')
        return false;
    while (**at != ']') {
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
    for (size_t i = 0; i < n;) {
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

/* Decomposes into an array of code points, composes in place when asked, and writes UTF-8. */
static pnb_status put_form(const pnb__norm_step *step, const char *s, size_t n, pnb__buf *out,
                           pnb_error *err)
{
    bool is_ascii = true;
    for (size_t i = 0; i < n && is_ascii; i++)
        is_ascii = (unsigned char)s[i] < 0x80;
    if (is_ascii) {
        pnb__buf_append(out, s, n);
        return PNB_OK;
    }
    unsigned options = UTF8PROC_STABLE | (step->compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
    if (step->compatible)
        options |= UTF8PROC_COMPAT;
    utf8proc_option_t flags = (utf8proc_option_t)options;
    const utf8proc_uint8_t *text = (const utf8proc_uint8_t *)s;
    utf8proc_ssize_t needed = utf8proc_decompose(text, (utf8proc_ssize_t)n, NULL, 0, flags);
    if (needed < 0)
        return pnb__fail(err, PNB_FORMAT, "normaliser: %s", utf8proc_errmsg(needed));
    utf8proc_int32_t *chars = pnb__alloc_array((size_t)needed + 1, sizeof *chars);
    if (chars == NULL)
        return pnb__fail_nomem(err, (size_t)needed * sizeof *chars);
    utf8proc_decompose(text, (utf8proc_ssize_t)n, chars, needed, flags);
    utf8proc_ssize_t kept = utf8proc_normalize_utf32(chars, needed, flags);
    for (utf8proc_ssize_t i = 0; i < kept; i++)
        pnb__put_char(out, (uint32_t)chars[i]);
    pnb__free(chars);
    return PNB_OK;
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
