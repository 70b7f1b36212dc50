/* What all collections share: their memory, their captions, and what is left out.
 *
 * Texts live in one arena and die with the list; captions, thumbnails and PNGs belong to their
 * picture. */
#include "data/collections/collection.h"

#include <string.h>

#include "base/grow.h"

void pnb__collected_reset(pnb__collected *item)
{
    pnb_image_bytes_free(item->encoded);
    pnb__free(item->thumb);
    pnb__free(item->texts);
    item->encoded = NULL;
    item->thumb = NULL;
    item->texts = NULL;
    item->n_texts = 0;
}

void pnb__collection_free(pnb__collection *c)
{
    for (size_t i = 0; i < c->n; i++)
        pnb__collected_reset(&c->items[i]);
    pnb__free(c->items);
    c->items = NULL;
    c->n = 0;
    pnb__arena_free(&c->arena);
}

const char *pnb__keep_text(pnb__collection *c, const char *text, size_t n)
{
    char *copy = pnb__arena_alloc(&c->arena, n + 1);
    if (copy != NULL)
        memcpy(copy, text, n);
    return copy;
}

const char *pnb__keep_format(pnb__collection *c, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *copy = n >= 0 ? pnb__arena_alloc(&c->arena, (size_t)n + 1) : NULL;
    if (copy != NULL)
        vsnprintf(copy, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return copy;
}

pnb_status pnb__text_add(pnb__collection *c, pnb__collected *item, const char *text, int level,
                         bool is_noise, pnb_error *err)
{
    for (size_t i = 0; i < item->n_texts; i++)
        if (!strcmp(item->texts[i].text, text))
            return PNB_OK;
    const char *copy = pnb__keep_text(c, text, strlen(text));
    if (copy == NULL)
        return pnb__fail_nomem(err, strlen(text));
    return PNB_PUSH(item->texts, item->n_texts, err, (pnb__text){copy, level, is_noise});
}

void pnb__collection_skip(pnb__collection *c, const char *file, const char *why)
{
    c->stats->n_skipped++;
    if (c->opts->skipped != NULL)
        c->opts->skipped(c->opts->user, file, why);
}
