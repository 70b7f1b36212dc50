/* Texts of a chained set: a table that finds a caption by its level and words, and the sentence of
 * a list of category names. Open addressing, at most half full; ids are the order of first use, so
 * they do not depend on the hash. */
#include "data/synth/image_hierarchy_captions.h"

#include <string.h>

static size_t home_slot(const pnb__chain_captions *c, const char *text, int level)
{
    return (size_t)pnb__hash_bytes(text, strlen(text), (uint64_t)level) & (c->n_slots - 1);
}

/* The slot that holds the caption or is free for it. */
static size_t find_slot(const pnb__chain_captions *c, const char *text, int level)
{
    size_t at = home_slot(c, text, level);
    while (c->slot[at] != 0) {
        const pnb__chain_caption *own = &c->items[c->slot[at] - 1];
        if (own->level == level && strcmp(own->text, text) == 0)
            break;
        at = (at + 1) & (c->n_slots - 1);
    }
    return at;
}

static pnb_status grow(pnb__chain_captions *c, pnb_error *err)
{
    size_t capacity = c->capacity == 0 ? 128 : 2 * c->capacity;
    pnb__chain_caption *items = pnb__realloc(c->items, capacity * sizeof *items);
    if (items == NULL)
        return pnb__fail_nomem(err, capacity * sizeof *items);
    c->items = items;
    size_t *slot = pnb__alloc_zero(2 * capacity, sizeof *slot);
    if (slot == NULL)
        return pnb__fail_nomem(err, 2 * capacity * sizeof *slot);
    pnb__free(c->slot);
    c->slot = slot;
    c->n_slots = 2 * capacity;
    c->capacity = capacity;
    for (size_t i = 0; i < c->n; i++)
        c->slot[find_slot(c, c->items[i].text, c->items[i].level)] = i + 1;
    return PNB_OK;
}

pnb_status pnb__chain_captions_add(pnb__chain_captions *c, const char *text, int level, size_t *out,
                                   pnb_error *err)
{
    if (c->n == c->capacity) {
        pnb_status status = grow(c, err);
        if (status != PNB_OK)
            return status;
    }
    size_t at = find_slot(c, text, level);
    if (c->slot[at] == 0) {
        pnb__chain_caption *own = &c->items[c->n];
        *own = (pnb__chain_caption){.text = pnb__strdup(text), .level = level};
        if (own->text == NULL)
            return pnb__fail_nomem(err, strlen(text));
        snprintf(own->id, sizeof own->id, "%d-%06zu", level, c->n);
        c->slot[at] = ++c->n;
    }
    *out = c->slot[at] - 1;
    return PNB_OK;
}

void pnb__chain_captions_reset(pnb__chain_captions *c)
{
    for (size_t i = 0; i < c->n; i++)
        pnb__free(c->items[i].text);
    pnb__free(c->items);
    pnb__free(c->slot);
    *c = (pnb__chain_captions){0};
}

void pnb__join_names(pnb__buf *out, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            pnb__buf_puts(out, i + 1 == n ? " and " : ", ");
        pnb__buf_puts(out, names[i]);
    }
}
