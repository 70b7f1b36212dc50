/* Cleaning of captions as open_clip and ProLIP do it before tokenizing:
 *   every mode    repairs (repair.c), html.unescape twice, strip
 *   whitespace    then " ".join(text.split())
 *   lower         the same, then str.lower
 *   canonicalize  '_' to ' ', string.punctuation deleted, str.lower, " ".join(text.split())
 * OpenAI's first tokenizer had \s+ of a regular expression in place of split(), which does not know
 * U+001C..U+001F as space. Bytes that are not UTF-8 become U+FFFD. */
#include <string.h>

#include "base/names.h"
#include "tokenizer/clean/html_unescape.h"

PNB_DEFINE_NAME(pnb_clean_name, pnb_clean, PNB_NAMES(PNB_CLEAN_LIST), NULL)
PNB_DEFINE_FROM_NAME(pnb_clean_from_name, pnb_clean, PNB_NAMES(PNB_CLEAN_LIST))

static void collapse(pnb__buf *b, const char *s, size_t n, bool (*is_space)(uint32_t))
{
    bool is_gap = false;
    size_t begin = b->size;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = pnb__next_char(s + i, n - i, &c);
        if (is_space(c)) {
            is_gap = true;
        } else {
            if (is_gap && b->size > begin)
                pnb__buf_putc(b, ' ');
            is_gap = false;
            pnb__buf_append(b, s + i, used);
        }
        i += used;
    }
}

static void put_collapsed(pnb__buf *b, const char *s, size_t n)
{
    collapse(b, s, n, pnb__is_python_space);
}

static void put_collapsed_regex(pnb__buf *b, const char *s, size_t n)
{
    collapse(b, s, n, pnb__is_space);
}

static void put_stripped(pnb__buf *b, const char *s, size_t n)
{
    uint32_t c;
    size_t begin = 0, end = 0;
    bool any = false;
    for (size_t i = 0; i < n;) {
        size_t used = pnb__next_char(s + i, n - i, &c);
        if (!pnb__is_python_space(c)) {
            begin = any ? begin : i;
            end = i + used;
            any = true;
        }
        i += used;
    }
    pnb__buf_append(b, s + begin, end - begin);
}

static void put_unescaped(pnb__buf *b, const char *s, size_t n)
{
    pnb__html_unescape(b, s, n, false);
}

static bool is_ascii_punctuation(unsigned char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static void put_without_punctuation(pnb__buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '_')
            pnb__buf_putc(b, ' ');
        else if (!is_ascii_punctuation((unsigned char)s[i]))
            pnb__buf_putc(b, s[i]);
    }
}

static void put_lower_python(pnb__buf *b, const char *s, size_t n)
{
    pnb__put_lower(b, s, n, true);
}

void pnb__run_stage(pnb__buf *text, void (*stage)(pnb__buf *, const char *, size_t))
{
    pnb__buf next = {0};
    pnb__buf_append(&next, "", 0); /* a terminator even when nothing follows */
    if (!text->failed)
        stage(&next, text->data, text->size);
    next.failed |= text->failed;
    pnb__buf_reset(text);
    *text = next;
}

/* What open_clip calls basic_clean. */
static void run_basic(pnb__buf *b, const pnb__cleaning *how)
{
    if (how->repair)
        pnb__repair(b);
    for (int i = 0; i < 2 && !b->failed && memchr(b->data, '&', b->size) != NULL; i++)
        pnb__run_stage(b, put_unescaped);
    pnb__run_stage(b, put_stripped);
}

pnb_status pnb__clean(const pnb__cleaning *how, const char *text, size_t n_bytes, pnb__buf *b,
                      pnb_error *err)
{
    *b = (pnb__buf){0};
    pnb__buf_append(b, text, n_bytes);
    if (how->mode != PNB_CLEAN_NONE && how->repair && n_bytes > 5 &&
        memchr(text, 0xED, n_bytes) != NULL)
        pnb__run_stage(b, pnb__put_joined_surrogates);
    if (!b->failed && !pnb__utf8_valid(b->data, b->size))
        pnb__run_stage(b, pnb__put_valid);
    if (how->mode != PNB_CLEAN_NONE)
        run_basic(b, how);
    if (how->mode == PNB_CLEAN_CANONICALIZE) {
        pnb__run_stage(b, put_without_punctuation);
        pnb__run_stage(b, put_lower_python);
    }
    if (how->mode != PNB_CLEAN_NONE)
        pnb__run_stage(b, how->regex_space ? put_collapsed_regex : put_collapsed);
    if (how->mode == PNB_CLEAN_LOWER)
        pnb__run_stage(b, put_lower_python);
    if (!b->failed)
        return PNB_OK;
    pnb__buf_reset(b);
    return pnb__fail_nomem(err, n_bytes);
}

pnb_status pnb_clean_text(pnb_clean clean, const char *text, size_t n_bytes, char **out,
                          size_t *n_out, pnb_error *err)
{
    pnb__buf b;
    pnb__cleaning how = {.mode = clean, .repair = true};
    *out = NULL;
    *n_out = 0;
    if ((unsigned)clean >= PNB_N_CLEANS)
        return pnb__fail(err, PNB_ARG, "clean mode %d is unknown", (int)clean);
    pnb_status status = pnb__clean(&how, text, n_bytes, &b, err);
    if (status != PNB_OK)
        return status;
    *out = b.data;
    *n_out = b.size;
    return PNB_OK;
}

void pnb_text_free(char *text)
{
    pnb__free(text);
}
