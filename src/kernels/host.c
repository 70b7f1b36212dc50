/* Host memory for the tables that compute on the host.
 *
 * Device memory is memory like any other here: of all slots only an allocation can fail, and no
 * context is asked for its device. */
#include "kernels/host.h"

#include <string.h>

#define ZERO_MIN_CHUNK ((size_t)1 << 20) /* below this one thread zeroes as fast as two */

pnb_status pnb__host_mem_alloc(const pnb_ctx *ctx, void **out, size_t bytes, pnb_error *err)
{
    (void)ctx;
    void *p = pnb__alloc_large(PNB_MAX(bytes, (size_t)1));
    if (p == NULL)
        return pnb__fail_nomem(err, bytes);
    *out = p;
    return PNB_OK;
}

void pnb__host_mem_free(const pnb_ctx *ctx, void *p, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    pnb__free_aligned(p);
}

/* What is device memory elsewhere is memory like any other here: three directions, one copy. */
static pnb_status copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return PNB_OK;
}

pnb_status pnb__host_mem_write(const pnb_ctx *ctx, void *device, const void *host, size_t bytes,
                               pnb_error *err)
{
    (void)ctx;
    (void)err;
    return copy(device, host, bytes);
}

pnb_status pnb__host_mem_read(const pnb_ctx *ctx, void *host, const void *device, size_t bytes,
                              pnb_error *err)
{
    (void)ctx;
    (void)err;
    return copy(host, device, bytes);
}

pnb_status pnb__host_mem_copy(const pnb_ctx *ctx, void *to, const void *from, size_t bytes,
                              pnb_error *err)
{
    (void)ctx;
    (void)err;
    return copy(to, from, bytes);
}

static void zero_range(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    memset((char *)user + begin, 0, end - begin);
}

pnb_status pnb__host_mem_zero(const pnb_ctx *ctx, void *device, size_t bytes, pnb_error *err)
{
    (void)err;
    if (bytes > 0)
        pnb__parallel_for(ctx, bytes, ZERO_MIN_CHUNK, zero_range, device);
    return PNB_OK;
}
