/* The mem_ slots of tables whose memory is the host's. */
#ifndef PNB_KERNELS_HOST_H
#define PNB_KERNELS_HOST_H

#include <stddef.h>

#include "base/base.h"

pnb_status pnb__host_mem_alloc(const pnb_ctx *ctx, void **out, size_t bytes, pnb_error *err);
void pnb__host_mem_free(const pnb_ctx *ctx, void *p, size_t bytes);
pnb_status pnb__host_mem_write(const pnb_ctx *ctx, void *device, const void *host, size_t bytes,
                               pnb_error *err);
pnb_status pnb__host_mem_read(const pnb_ctx *ctx, void *host, const void *device, size_t bytes,
                              pnb_error *err);
pnb_status pnb__host_mem_copy(const pnb_ctx *ctx, void *to, const void *from, size_t bytes,
                              pnb_error *err);
pnb_status pnb__host_mem_zero(const pnb_ctx *ctx, void *device, size_t bytes, pnb_error *err);

#endif
