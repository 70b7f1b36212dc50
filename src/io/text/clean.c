/* Cleaning of captions as open_clip and ProLIP do it before tokenizing:
 *   whitespace    " ".join(text.split())
 *   lower         the same, then str.lower
 *   canonicalize  '_' to ' ', string.punctuation deleted, str.lower, \s+ to ' ', strip
 * ftfy's repairs and HTML entities are not part of it. Bytes that are not UTF-8 become U+FFFD. */
#include <string.h>

#include "io/text/text.h"

static const char *const clean_names[] = {"none", "lower", "whitespace", "canonicalize"};

const char *pnb_clean_name(pnb_clean clean)
{
    return (size_t)clean < PNB_COUNT(clean_names) ? clean_names[clean] : NULL;
}

bool pnb_clean_from_name(const char *name, pnb_clean *out)
{
    for (size_t i = 0; i < PNB_COUNT(clean_names); i++) {
        if (strcmp(name, clean_names[i]) == 0) {
            *out = (pnb_clean)i;
            return true;
        }
    }
    return false;
}

static void put_collapsed(pnb__buf *b, const char *s, size_t n)
{
    bool is_gap = false;
    size_t begin = b->size;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = pnb__next_char(s + i, n - i, &c);
        if (pnb__is_python_space(c)) {
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

/* Replaces the buffer's text by what `stage` makes of it. */
static void run_stage(pnb__buf *text, void (*stage)(pnb__buf *, const char *, size_t))
{
    pnb__buf next = {0};
    pnb__buf_append(&next, "", 0); /* a terminator even when nothing follows */
    if (!text->failed)
        stage(&next, text->data, text->size);
    next.failed |= text->failed;
    pnb__buf_reset(text);
    *text = next;
}

pnb_status pnb_clean_text(pnb_clean clean, const char *text, size_t n_bytes, char **out,
                          size_t *n_out, pnb_error *err)
{
    pnb__buf b = {0};
    *out = NULL;
    *n_out = 0;
    if ((size_t)clean >= PNB_COUNT(clean_names))
        return pnb__fail(err, PNB_ARG, "clean mode %d is unknown", (int)clean);
    pnb__buf_append(&b, "", 0);
    pnb__put_valid(&b, text, n_bytes);
    if (clean == PNB_CLEAN_CANONICALIZE) {
        run_stage(&b, put_without_punctuation);
        run_stage(&b, put_lower_python);
    }
    if (clean != PNB_CLEAN_NONE)
        run_stage(&b, put_collapsed);
    if (clean == PNB_CLEAN_LOWER)
        run_stage(&b, put_lower_python);
    if (b.failed) {
        pnb__buf_reset(&b);
        return pnb__fail_nomem(err, n_bytes);
    }
    *out = b.data;
    *n_out = b.size;
    return PNB_OK;
}

void pnb_text_free(char *text)
{
    pnb__free(text);
}
