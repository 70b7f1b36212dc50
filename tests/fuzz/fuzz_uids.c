/* Any bytes as a subset file of uids: what loads has 16 bytes a uid, and every one is found. */
#include <stdint.h>
#include <stdlib.h>

#include "penumbra/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb_uid *uids = NULL;
    size_t n = 0;
    uint8_t empty = 0;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_uids_load_bytes(&uids, &n, size > 0 ? data : &empty, size, &err) != PNB_OK) {
        if (uids != NULL || n != 0 || err.status == PNB_OK)
            abort();
        return 0;
    }
    if (n > size / 16)
        abort();
    pnb_uids_sort(uids, n);
    for (size_t i = 0; i < n; i++)
        if (!pnb_uids_contain(uids, n, uids[i]))
            abort();
    pnb_uids_free(uids);
    return 0;
}
