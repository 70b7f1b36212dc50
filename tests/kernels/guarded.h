/* A checking column: memory that only kernels can read.
 *
 * What mem_alloc returns are pages without any access. Every slot, made from kernels.def, opens
 * them, calls the CPU's loop and closes them again, as the memory of another device would be out of
 * reach: whoever dereferences such a pointer elsewhere dies on the spot. host_memory is false, so
 * files are not mapped but copied. One thread at a time may run kernels. */
#ifndef PNB_TESTS_KERNELS_GUARDED_H
#define PNB_TESTS_KERNELS_GUARDED_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/kernels.h"

typedef struct guarded_block {
    void *p;
    size_t bytes; /* whole pages */
} guarded_block;

static struct {
    pnb__kernels inner[2]; /* by pnb__real */
    guarded_block blocks[4096];
    size_t n, n_calls, most_bytes, bytes;
} guarded;

static inline size_t guarded_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page) / page * page;
}

static inline void guarded_protect(int access)
{
    for (size_t i = 0; i < guarded.n; i++)
        if (mprotect(guarded.blocks[i].p, guarded.blocks[i].bytes, access) != 0)
            abort();
}

static inline int guarded_open(void)
{
    guarded.n_calls++;
    guarded_protect(PROT_READ | PROT_WRITE);
    return 1;
}

static inline void guarded_close(const int *open)
{
    (void)open;
    guarded_protect(PROT_NONE);
}

static void *guarded_mem_alloc(size_t bytes)
{
    guarded_block b = {.bytes = guarded_pages(bytes)};
    b.p = mmap(NULL, b.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.p == MAP_FAILED || guarded.n == PNB_COUNT(guarded.blocks))
        abort();
    guarded.blocks[guarded.n++] = b;
    guarded.bytes += b.bytes;
    guarded.most_bytes = PNB_MAX(guarded.most_bytes, guarded.bytes);
    return b.p;
}

/* A pointer that mem_alloc never gave is somebody's mistake. */
static void guarded_mem_free(void *p, size_t bytes)
{
    size_t i = 0;
    if (p == NULL)
        return;
    while (i < guarded.n && guarded.blocks[i].p != p)
        i++;
    if (i == guarded.n || guarded.blocks[i].bytes != guarded_pages(bytes) ||
        munmap(p, guarded.blocks[i].bytes) != 0)
        abort();
    guarded.bytes -= guarded.blocks[i].bytes;
    guarded.blocks[i] = guarded.blocks[--guarded.n];
}

/* The wrappers: `names` are the arguments as they came. Returning a void expression keeps one form
 * for all slots. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#define GUARDED_WRAP(REAL, suffix, returns, name, parameters, names)                               \
    static returns guarded_##name##suffix parameters                                               \
    {                                                                                              \
        __attribute__((cleanup(guarded_close))) int open_ = guarded_open();                        \
        (void)open_;                                                                               \
        return guarded.inner[REAL].name names;                                                     \
    }
#define PNB__KERNEL(column, returns, name, parameters, names)                                      \
    GUARDED_WRAP(PNB__F32, _f32, returns, name, parameters, names)                                 \
    GUARDED_WRAP(PNB__F64, _f64, returns, name, parameters, names)
#include "kernels/kernels.def"
#pragma GCC diagnostic pop

/* The column of a context: pnb_ctx.column. */
static inline void guarded_column(pnb__kernels *k)
{
    pnb__kernels *inner = &guarded.inner[k->real];
    *inner = *k;
    k->host_memory = false;
#define PNB__KERNEL(column, returns, name, parameters, names)                                      \
    if (inner->name != NULL)                                                                       \
        k->name = k->real == PNB__F32 ? guarded_##name##_f32 : guarded_##name##_f64;
#include "kernels/kernels.def"
    k->mem_alloc = guarded_mem_alloc;
    k->mem_free = guarded_mem_free;
}

#endif
