/* Rows by their names.
 *
 * An id that names two rows is refused when the table is made: whoever looks rows up by name would
 * otherwise get one of them by accident. Nothing is copied but row numbers. */
#include "commands/common/rows/id_map.h"

#include <string.h>

size_t pnb__id_map_find(const pnb__id_map *m, const char *id, size_t n)
{
    size_t row, step = 0;
    uint64_t hash = pnb__hash_bytes(id, n, 0);
    while ((row = pnb__key_map_next(&m->rows, hash, &step)) != PNB__NO_KEY &&
           (strncmp(m->ids[row], id, n) != 0 || m->ids[row][n] != '\0')) {
    }
    return row;
}

pnb_status pnb__id_map_init(pnb__id_map *m, const char *const *ids, size_t n, const char *what,
                            pnb_error *err)
{
    *m = (pnb__id_map){.ids = ids};
    pnb_status status = pnb__key_map_reserve(&m->rows, n, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        size_t length = ids[i] != NULL ? strlen(ids[i]) : 0;
        size_t other = ids[i] != NULL ? pnb__id_map_find(m, ids[i], length) : PNB__NO_KEY;
        if (other != PNB__NO_KEY)
            status = pnb__fail(err, PNB_ARG,
                               "%s '%.200s' names rows %zu and %zu; ids must be unique here", what,
                               ids[i], other, i);
        else if (ids[i] != NULL)
            status = pnb__key_map_add(&m->rows, pnb__hash_bytes(ids[i], length, 0), i, err);
    }
    if (status != PNB_OK)
        pnb__id_map_reset(m);
    return status;
}

void pnb__id_map_reset(pnb__id_map *m)
{
    pnb__key_map_reset(&m->rows);
    *m = (pnb__id_map){0};
}
