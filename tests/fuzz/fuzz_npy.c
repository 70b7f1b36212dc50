/* Any bytes as a .npy file: what loads has as many bytes as its shape says. */
#include <stdint.h>
#include <stdlib.h>

#include "penumbra/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb_npy a;
    pnb_error err = PNB_ERROR_INIT;
    uint8_t empty = 0;
    if (pnb_npy_load_bytes(&a, size > 0 ? data : &empty, size, &err) != PNB_OK) {
        if (a.data != NULL || err.status == PNB_OK)
            abort();
        return 0;
    }
    size_t n = pnb_array_size(&a.view);
    double *values = malloc(n * sizeof(double) + 1);
    if (a.view.n_bytes >= size || n * pnb_dtype_size(a.view.dtype) != a.view.n_bytes ||
        (values != NULL && pnb_array_to_f64(&a.view, values, &err) != PNB_OK))
        abort();
    free(values);
    pnb_npy_reset(&a);
    return 0;
}
