/* Host memory for the tables that compute on the host.
 * Big blocks ask for huge pages: a weight matrix of some MB walked by panels otherwise misses the
 * TLB at every row. The advice may be refused; nothing depends on it. */
#include "kernels/host.h"

#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define ZERO_MIN_CHUNK ((size_t)1 << 20) /* below this one thread zeroes as fast as two */

void *pnb__host_mem_alloc(size_t bytes)
{
    void *p = pnb__alloc_aligned(bytes ? bytes : 64);
#ifdef MADV_HUGEPAGE
    if (p && bytes >= 2 * HUGE_PAGE) {
        uintptr_t begin = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        uintptr_t end = ((uintptr_t)p + bytes) & ~(HUGE_PAGE - 1);
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
#endif
    return p;
}

void pnb__host_mem_free(void *p, size_t bytes)
{
    (void)bytes;
    pnb__free_aligned(p);
}

void pnb__host_mem_write(void *device, const void *host, size_t bytes)
{
    if (bytes > 0)
        memcpy(device, host, bytes);
}

void pnb__host_mem_read(void *host, const void *device, size_t bytes)
{
    if (bytes > 0)
        memcpy(host, device, bytes);
}

static void zero_range(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    memset((char *)user + begin, 0, end - begin);
}

void pnb__host_mem_zero(const pnb_ctx *ctx, void *p, size_t bytes)
{
    if (bytes)
        pnb__parallel_for(ctx, bytes, ZERO_MIN_CHUNK, zero_range, p);
}
