/* Texts of a chained set: a table that finds a caption by its level and words, and the sentence of
 * a list of category names. Ids are the order of first use, so they do not depend on the hash; the
 * table itself is base/map.h's. */
#include "data/synth/image_hierarchy_texts.h"

#include <string.h>

#include "base/grow.h"

pnb_status pnb__chain_texts_add(pnb__chain_texts *c, const char *text, int level, size_t *out,
                                pnb_error *err)
{
    uint64_t hash = pnb__hash_bytes(text, strlen(text), (uint64_t)level);
    size_t i, step = 0;
    while ((i = pnb__key_map_next(&c->places, hash, &step)) != PNB__NO_KEY &&
           (c->items[i].level != level || strcmp(c->items[i].text, text) != 0)) {
    }
    pnb_status status = PNB_OK;
    if (i == PNB__NO_KEY) {
        pnb__chain_text added = {.text = pnb__strdup(text), .level = level};
        i = c->n;
        snprintf(added.id, sizeof added.id, "%d-%06zu", level, i);
        status = added.text == NULL ? pnb__fail_nomem(err, strlen(text))
                                    : PNB_PUSH(c->items, c->n, err, added);
        if (status != PNB_OK) {
            pnb__free(added.text);
            return status;
        }
        status = pnb__key_map_add(&c->places, hash, i, err);
        if (status != PNB_OK) { /* what no one finds again is not there */
            pnb__free(c->items[--c->n].text);
            return status;
        }
    }
    *out = i;
    return PNB_OK;
}

void pnb__chain_texts_reset(pnb__chain_texts *c)
{
    for (size_t i = 0; i < c->n; i++)
        pnb__free(c->items[i].text);
    pnb__free(c->items);
    pnb__key_map_reset(&c->places);
    *c = (pnb__chain_texts){0};
}

void pnb__join_names(pnb__buf *out, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            pnb__buf_puts(out, i + 1 == n ? " and " : ", ");
        pnb__buf_puts(out, names[i]);
    }
}
