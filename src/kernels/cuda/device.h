/* The device of a context: opened with it, closed with it. Not part of the kernel table's header:
 * only kernels/open_context.c and what tells of devices include it. */
#ifndef PNB_KERNELS_CUDA_DEVICE_H
#define PNB_KERNELS_CUDA_DEVICE_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/kernels.h"

/* Makes ctx compute on device number `index`: ctx->column, device_handle and close_device are set.
 * Errors  UNSUPPORTED (this program was built without CUDA, no driver, no cuBLASLt), NOT_FOUND (no
 *         such device: the text says how many there are), NOMEM */
pnb_status pnb__cuda_open(pnb_ctx *ctx, int index, pnb_error *err);

typedef struct pnb__cuda_facts {
    char name[256];
    int capability[2], n_processors;
    size_t bytes, free_bytes;
    int driver, runtime; /* as CUDA numbers them: 13000 is 13.0 */
    size_t products;     /* version of cuBLASLt */
} pnb__cuda_facts;
/* Of an open context. Errors  UNSUPPORTED (no device), IO */
pnb_status pnb__cuda_look(const pnb_ctx *ctx, pnb__cuda_facts *out, pnb_error *err);

#ifdef __cplusplus
}
#endif

#endif
