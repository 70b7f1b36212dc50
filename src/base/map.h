/* A hash table from keys to numbers: places in an array, rows, ids.
 *
 * The keys stay where they are, be they text, pairs or rows of floats: the map keeps 32 bits of
 * each key's hash beside its number, and who looks a key up compares. So one table serves every
 * kind of key, copies none, and grows without seeing one again:
 *
 *     size_t place, step = 0;
 *     while ((place = pnb__key_map_next(&map, hash, &step)) != PNB__NO_KEY && !is_it(place)) {
 *     }
 *
 * ends with the number of the key or PNB__NO_KEY. Hashes come from pnb__hash_bytes or
 * pnb__hash_u64; where strangers choose the keys, give a seed they cannot know. */
#ifndef PNB_BASE_MAP_H
#define PNB_BASE_MAP_H

#include "base/base.h"

#define PNB__NO_KEY SIZE_MAX

typedef struct pnb__key_slot {
    uint32_t tag, place; /* of the hash; number + 1, 0 is free */
} pnb__key_slot;

/* All zero is an empty map. */
typedef struct pnb__key_map {
    pnb__key_slot *slots; /* open addressing, at most half full */
    size_t n_slots, n;    /* n_slots is a power of two */
} pnb__key_map;

/* Room for n keys in all, so that adding them allocates nothing. NOMEM, LIMIT (2^31 keys) */
pnb_status pnb__key_map_reserve(pnb__key_map *m, size_t n, pnb_error *err);
/* Enters a number under a hash, whether or not one is there. NOMEM, LIMIT; the map is as it was */
pnb_status pnb__key_map_add(pnb__key_map *m, uint64_t hash, size_t number, pnb_error *err);
void pnb__key_map_clear(pnb__key_map *m); /* empty; the room stays */
void pnb__key_map_reset(pnb__key_map *m); /* frees; usable again */

/* The next number that may be the key's; *step begins as 0. PNB__NO_KEY: there is no more. */
static inline size_t pnb__key_map_next(const pnb__key_map *m, uint64_t hash, size_t *step)
{
    uint32_t tag = (uint32_t)hash;
    while (m->n_slots > 0) {
        const pnb__key_slot *slot = &m->slots[(tag + (*step)++) & (m->n_slots - 1)];
        if (slot->place == 0)
            break;
        if (slot->tag == tag)
            return slot->place - 1;
    }
    return PNB__NO_KEY;
}

static inline uint64_t pnb__hash_u64(uint64_t key) /* the finisher of SplitMix64 */
{
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9u;
    key = (key ^ key >> 27) * 0x94D049BB133111EBu;
    return key ^ key >> 31;
}

#endif
