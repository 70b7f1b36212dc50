/* Any bytes as a safetensors file: every view that opens must be readable and inside the bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "penumbra/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb_safetensors *st = NULL;
    pnb_error err = PNB_ERROR_INIT;
    uint8_t empty = 0;
    if (pnb_safetensors_open_bytes(&st, size > 0 ? data : &empty, size, &err) != PNB_OK) {
        if (err.status == PNB_OK || err.text[0] == '\0' || st != NULL)
            abort();
        return 0;
    }
    for (size_t i = 0; i < pnb_safetensors_count(st); i++) {
        const pnb_array_view *a = pnb_safetensors_at(st, i);
        const uint8_t *begin = a->data;
        double *values = malloc(pnb_array_size(a) * sizeof(double) + 1);
        if (begin < data || a->n_bytes > size - (size_t)(begin - data) ||
            pnb_safetensors_find(st, a->name) != a ||
            (values != NULL && pnb_array_to_f64(a, values, &err) != PNB_OK))
            abort();
        free(values);
    }
    pnb_safetensors_free(st);
    return 0;
}
