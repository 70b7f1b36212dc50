/* A hash table of row names with open addressing.
 *
 * An id that names two rows is refused when the table is made: whoever looks rows up by name would
 * otherwise get one of them by accident. Nothing is copied but row numbers. */
#include "commands/common/id_map.h"

#include <string.h>

static size_t slot_of(const pnb__id_map *m, const char *id, size_t n)
{
    size_t slot = (size_t)pnb__hash_bytes(id, n, 0) & (m->n_slots - 1);
    for (; m->slot[slot] != 0; slot = (slot + 1) & (m->n_slots - 1)) {
        const char *there = m->ids[m->slot[slot] - 1];
        if (strncmp(there, id, n) == 0 && there[n] == '\0')
            break;
    }
    return slot;
}

pnb_status pnb__id_map_init(pnb__id_map *m, const char *const *ids, size_t n, const char *what,
                            pnb_error *err)
{
    *m = (pnb__id_map){.ids = ids, .n_slots = 16};
    while (m->n_slots / 2 < n)
        m->n_slots *= 2;
    m->slot = pnb__alloc_zero(m->n_slots, sizeof *m->slot);
    if (m->slot == NULL)
        return pnb__fail_nomem(err, m->n_slots * sizeof *m->slot);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == NULL)
            continue;
        size_t slot = slot_of(m, ids[i], strlen(ids[i]));
        if (m->slot[slot] != 0) {
            pnb_status status = pnb__fail(err, PNB_ARG,
                                          "%s '%.200s' names rows %zu and %zu; ids must be unique "
                                          "here",
                                          what, ids[i], m->slot[slot] - 1, i);
            pnb__id_map_reset(m);
            return status;
        }
        m->slot[slot] = i + 1;
    }
    return PNB_OK;
}

size_t pnb__id_map_find(const pnb__id_map *m, const char *id, size_t n)
{
    if (m->slot == NULL)
        return SIZE_MAX;
    size_t found = m->slot[slot_of(m, id, n)];
    return found > 0 ? found - 1 : SIZE_MAX;
}

void pnb__id_map_reset(pnb__id_map *m)
{
    pnb__free(m->slot);
    *m = (pnb__id_map){0};
}
