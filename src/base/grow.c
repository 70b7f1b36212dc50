/* Growing arrays: the sizes they go through, and the one reallocation behind them.
 *
 * Doubling makes n appends cost O(n) copies. The pointer is read and written as bytes, for the
 * caller's is a pointer to whatever the items are, and C lets no one look at it as a void *. */
#include "base/grow.h"

#include <string.h>

enum { FIRST = 4 };

static pnb_status resize(void *array, size_t n, size_t item_bytes, pnb_error *err)
{
    void *items;
    size_t bytes;
    memcpy(&items, array, sizeof items);
    if (pnb__mul_overflows(n, item_bytes, &bytes))
        return pnb__fail_nomem(err, SIZE_MAX);
    items = pnb__realloc(items, bytes);
    if (items == NULL)
        return pnb__fail_nomem(err, bytes);
    memcpy(array, &items, sizeof items);
    return PNB_OK;
}

pnb_status pnb__grow_one(void *array, size_t n, size_t item_bytes, pnb_error *err)
{
    bool is_full = n == 0 || (n >= FIRST && (n & (n - 1)) == 0);
    if (!is_full)
        return PNB_OK;
    if (n > SIZE_MAX / 2)
        return pnb__fail_nomem(err, SIZE_MAX);
    return resize(array, n == 0 ? FIRST : 2 * n, item_bytes, err);
}

pnb_status pnb__grow(void *array, size_t *capacity, size_t wanted, size_t item_bytes,
                     pnb_error *err)
{
    if (wanted <= *capacity)
        return PNB_OK;
    size_t n = PNB_MAX(wanted, (size_t)FIRST);
    if (*capacity <= SIZE_MAX / 2)
        n = PNB_MAX(n, 2 * *capacity);
    pnb_status status = resize(array, n, item_bytes, err);
    if (status == PNB_OK)
        *capacity = n;
    return status;
}
