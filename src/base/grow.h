/* Growing arrays: the one place where memory is made larger.
 *
 * An array that only ever grows by one item needs no field for its capacity: it follows from the
 * number of items (4, then powers of two). One that is emptied and filled again, or grows by many
 * at a time, keeps its capacity in a field, so that a steady loop allocates nothing. Both begin
 * as NULL with 0 items and end with pnb__free. */
#ifndef PNB_BASE_GROW_H
#define PNB_BASE_GROW_H

#include "base/base.h"

/* Appends the last argument: PNB_PUSH(list->items, list->n, err, (item){1, 2}) is a pnb_status.
 * `array` and `n` are read more than once. On failure (NOMEM) neither has changed. */
#define PNB_PUSH(array, n, err, ...)                                                               \
    ((pnb_status)(pnb__grow_one(&(array), (size_t)(n), sizeof *(array), (err)) == PNB_OK           \
                      ? ((array)[(n)++] = (__VA_ARGS__), PNB_OK)                                   \
                      : PNB_NOMEM))

/* Room for `wanted` items in all; what is there stays, what is new holds anything. NOMEM */
#define PNB_GROW(array, capacity, wanted, err)                                                     \
    ((pnb_status)((wanted) <= (capacity)                                                           \
                      ? PNB_OK                                                                     \
                      : pnb__grow(&(array), &(capacity), (wanted), sizeof *(array), (err))))

/* Behind the macros; `array` is the address of the pointer. */
pnb_status pnb__grow_one(void *array, size_t n, size_t item_bytes, pnb_error *err);
pnb_status pnb__grow(void *array, size_t *capacity, size_t wanted, size_t item_bytes,
                     pnb_error *err);

#endif
