/* Which wanted words a word of a file stands for.
 *
 * PCME's code (caption_encoder.py: init_weights) looks a word that the file lacks up without its
 * hyphens, full stops and apostrophes, and up to its first slash. A file is read once from front to
 * back, so both spellings are entered before and the better one wins whenever it comes. */
#include "io/tables/wanted_words.h"

#include <string.h>

static pnb_status add_spelling(pnb__spellings *s, const char *text, pnb__spelling spelling,
                               pnb_error *err)
{
    spelling.start = s->text.size;
    pnb__buf_append(&s->text, text, spelling.n);
    if (s->text.failed)
        return pnb__fail_nomem(err, spelling.n);
    s->items[s->n] = spelling;
    return pnb__key_map_add(&s->map, pnb__hash_bytes(text, spelling.n, 0), s->n++, err);
}

/* The word without - . ' and without what is behind its first slash; false when that is the word.
 */
static bool fallback_of(const char *word, char *out)
{
    size_t n = 0;
    for (const char *c = word; *c != '\0' && *c != '/'; c++)
        if (strchr("-.'", *c) == NULL)
            out[n++] = *c;
    out[n] = '\0';
    return n > 0 && strcmp(word, out) != 0;
}

pnb_status pnb__spellings_init(pnb__spellings *s, const pnb__wanted_words *w, pnb_error *err)
{
    pnb_status status;
    size_t longest = 0;
    char *other = NULL;
    for (size_t i = 0; i < w->n; i++)
        longest = PNB_MAX(longest, strlen(w->words[i]));
    PNB_TRY(PNB_ALLOC(other, longest + 1, err));
    PNB_TRY(PNB_ALLOC(s->items, 2 * w->n + 1, err));
    for (size_t i = 0; i < w->n; i++) {
        w->found[i] = PNB__WORD_MISSING;
        const pnb__spelling exact = {0, strlen(w->words[i]), i, PNB__WORD_EXACT};
        PNB_TRY(add_spelling(s, w->words[i], exact, err));
        if (!fallback_of(w->words[i], other))
            continue;
        const pnb__spelling fallback = {0, strlen(other), i, PNB__WORD_BY_FALLBACK};
        PNB_TRY(add_spelling(s, other, fallback, err));
    }
done:
    pnb__free(other);
    return status;
}

const pnb__spelling *pnb__spellings_next(const pnb__spellings *s, const pnb__wanted_words *w,
                                         const char *word, size_t n, size_t *step)
{
    uint64_t hash = pnb__hash_bytes(word, n, 0);
    size_t place;
    while ((place = pnb__key_map_next(&s->map, hash, step)) != PNB__NO_KEY) {
        const pnb__spelling *it = &s->items[place];
        bool is_it = it->n == n && memcmp(s->text.data + it->start, word, n) == 0;
        if (is_it && it->how >= w->found[it->word])
            return it;
    }
    return NULL;
}

void pnb__spellings_reset(pnb__spellings *s)
{
    pnb__free(s->items);
    pnb__buf_reset(&s->text);
    pnb__key_map_reset(&s->map);
    *s = (pnb__spellings){.items = NULL};
}
