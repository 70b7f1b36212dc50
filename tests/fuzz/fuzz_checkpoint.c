/* Any bytes as a checkpoint: zip archives, the layout before torch 1.6, safetensors. Every view
 * that opens must be readable and found by its name. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "penumbra/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb_checkpoint *c = NULL;
    pnb_error err = PNB_ERROR_INIT;
    uint8_t empty = 0;
    if (pnb_checkpoint_open_bytes(&c, size > 0 ? data : &empty, size, &err) != PNB_OK) {
        if (err.status == PNB_OK || err.text[0] == '\0' || c != NULL)
            abort();
        return 0;
    }
    unsigned sum = 0;
    for (size_t i = 0; i < pnb_checkpoint_count(c); i++) {
        const pnb_array_view *a = pnb_checkpoint_at(c, i);
        if (pnb_checkpoint_find(c, a->name) != a)
            abort();
        for (size_t j = 0; j < a->n_bytes; j++)
            sum += ((const uint8_t *)a->data)[j];
    }
    pnb_checkpoint_free(c);
    return sum == UINT32_MAX ? 1 : 0; /* reads are not optimised away; 1 keeps an input out */
}
