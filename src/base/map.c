/* The hash table's writing side: entering numbers and growing.
 *
 * Linear probing in a table of a power of two, at most half full, so that a search ends after about
 * two slots. A slot's place in the table is that of its tag, which is why growing needs no key.
 * There is no removal: nobody has needed one. */
#include "base/map.h"

#include <string.h>

enum { FIRST_SLOTS = 16 };

static void enter(pnb__key_map *m, pnb__key_slot slot)
{
    size_t at = slot.tag & (m->n_slots - 1);
    while (m->slots[at].place != 0)
        at = (at + 1) & (m->n_slots - 1);
    m->slots[at] = slot;
}

pnb_status pnb__key_map_reserve(pnb__key_map *m, size_t n, pnb_error *err)
{
    if (n > UINT32_MAX / 2)
        return pnb__fail(err, PNB_LIMIT, "a table of %zu keys: the limit is %u", n, UINT32_MAX / 2);
    if (n <= m->n_slots / 2)
        return PNB_OK;
    pnb__key_map grown = {.n_slots = PNB_MAX(m->n_slots, (size_t)FIRST_SLOTS), .n = m->n};
    while (grown.n_slots / 2 < n)
        grown.n_slots *= 2;
    grown.slots = pnb__alloc_zero(grown.n_slots, sizeof *grown.slots);
    if (grown.slots == NULL)
        return pnb__fail_nomem(err, grown.n_slots * sizeof *grown.slots);
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].place != 0)
            enter(&grown, m->slots[i]);
    pnb__free(m->slots);
    *m = grown;
    return PNB_OK;
}

pnb_status pnb__key_map_add(pnb__key_map *m, uint64_t hash, size_t number, pnb_error *err)
{
    if (number >= UINT32_MAX)
        return pnb__fail(err, PNB_LIMIT, "number %zu in a table of keys: the limit is %u", number,
                         UINT32_MAX - 1);
    pnb_status status = pnb__key_map_reserve(m, m->n + 1, err);
    if (status != PNB_OK)
        return status;
    enter(m, (pnb__key_slot){(uint32_t)hash, (uint32_t)number + 1});
    m->n++;
    return PNB_OK;
}

void pnb__key_map_clear(pnb__key_map *m)
{
    if (m->n > 0)
        memset(m->slots, 0, m->n_slots * sizeof *m->slots);
    m->n = 0;
}

void pnb__key_map_reset(pnb__key_map *m)
{
    pnb__free(m->slots);
    *m = (pnb__key_map){0};
}
