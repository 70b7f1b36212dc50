/* From names of rows to their numbers. */
#ifndef PNB_COMMANDS_COMMON_ID_MAP_H
#define PNB_COMMANDS_COMMON_ID_MAP_H

#include "base/map.h"

/* The names stay the caller's and must outlive the map. All zero is an empty map. */
typedef struct pnb__id_map {
    const char *const *ids;
    pnb__key_map rows;
} pnb__id_map;

/* Rows whose id is NULL are left out. `what` begins the error text ("picture id").
 * Errors  ARG (an id names two rows: both are told), NOMEM */
pnb_status pnb__id_map_init(pnb__id_map *m, const char *const *ids, size_t n, const char *what,
                            pnb_error *err);
/* Row of an id of n bytes, SIZE_MAX when there is none. */
size_t pnb__id_map_find(const pnb__id_map *m, const char *id, size_t n);
void pnb__id_map_reset(pnb__id_map *m);

#endif
