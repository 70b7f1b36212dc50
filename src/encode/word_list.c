/* Captions as lists of words, to leave some out.
 *
 * Words are what stands between white space: a tokenizer's pieces would differ between models that
 * are compared. What goes depends on the seed and the number of the caption, never on the batch. */
#include "encode/word_list.h"

#include <math.h>
#include <string.h>

enum { STREAM_WORDS = 0x3d0b };

static const char blanks[] = " \t\r\n\f\v";

static size_t count_words(const char *text)
{
    size_t n = 0;
    for (const char *at = text + strspn(text, blanks); *at != '\0'; n++) {
        at += strcspn(at, blanks);
        at += strspn(at, blanks);
    }
    return n;
}

pnb_status pnb__word_list_split(const char *text, pnb__word_list *out, pnb_error *err)
{
    size_t n = count_words(text);
    *out = (pnb__word_list){.n = n};
    out->start = pnb__alloc_array(n + 1, sizeof *out->start);
    out->length = pnb__alloc_array(n + 1, sizeof *out->length);
    if (out->start == NULL || out->length == NULL) {
        pnb__word_list_reset(out);
        return pnb__fail_nomem(err, n * (sizeof *out->start + sizeof *out->length));
    }
    const char *at = text + strspn(text, blanks);
    for (size_t i = 0; i < n; i++) {
        out->start[i] = at;
        out->length[i] = strcspn(at, blanks);
        at += out->length[i];
        at += strspn(at, blanks);
    }
    return PNB_OK;
}

void pnb__word_list_reset(pnb__word_list *words)
{
    pnb__free(words->start);
    pnb__free(words->length);
    *words = (pnb__word_list){0};
}

char *pnb__word_list_join(const pnb__word_list *words, const bool *keep)
{
    pnb__buf text = {0};
    pnb__buf_puts(&text, ""); /* an empty caption is a caption */
    for (size_t i = 0; i < words->n; i++) {
        if (!keep[i])
            continue;
        if (text.size > 0)
            pnb__buf_putc(&text, ' ');
        pnb__buf_append(&text, words->start[i], words->length[i]);
    }
    char *out = text.failed ? NULL : pnb__strdup(text.data != NULL ? text.data : "");
    pnb__buf_reset(&text);
    return out;
}

/* false at the places of the first n_drop words of the caption's order. */
static void choose(const pnb__word_list *words, size_t n_drop, uint64_t seed, size_t number,
                   uint32_t *order, bool *keep)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, pnb__hash_bytes(&number, sizeof number, STREAM_WORDS));
    for (size_t i = 0; i < words->n; i++) {
        keep[i] = true;
        order[i] = (uint32_t)i;
    }
    pnb__rng_shuffle(&rng, order, words->n);
    for (size_t i = 0; i < n_drop; i++)
        keep[order[i]] = false;
}

char *pnb__word_list_drop(const char *text, double share, const char *unknown, uint64_t seed,
                          size_t number)
{
    pnb__word_list words = {0};
    pnb_error err = PNB_ERROR_INIT;
    char *out = NULL;
    if (pnb__word_list_split(text, &words, &err) != PNB_OK)
        return NULL;
    bool *keep = pnb__alloc_array(words.n + 1, sizeof *keep);
    uint32_t *order = pnb__alloc_array(words.n + 1, sizeof *order);
    size_t n_drop = (size_t)llround(share * (double)words.n);
    size_t n_most = unknown != NULL || words.n == 0 ? words.n : words.n - 1;
    if (keep != NULL && order != NULL) {
        choose(&words, PNB_MIN(n_drop, n_most), seed, number, order, keep);
        for (size_t i = 0; unknown != NULL && i < words.n; i++) {
            if (keep[i])
                continue;
            words.start[i] = unknown;
            words.length[i] = strlen(unknown);
            keep[i] = true;
        }
        out = pnb__word_list_join(&words, keep);
    }
    pnb__free(keep);
    pnb__free(order);
    pnb__word_list_reset(&words);
    return out;
}
