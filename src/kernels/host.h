/* The mem_ slots of tables whose memory is the host's. */
#ifndef PNB_KERNELS_HOST_H
#define PNB_KERNELS_HOST_H

#include <stddef.h>

#include "base/base.h"

void *pnb__host_mem_alloc(size_t bytes);
void pnb__host_mem_free(void *p, size_t bytes);
void pnb__host_mem_write(void *device, const void *host, size_t bytes);
void pnb__host_mem_read(void *host, const void *device, size_t bytes);
void pnb__host_mem_zero(const pnb_ctx *ctx, void *p, size_t bytes);

#endif
