/* A checking column: memory that only kernels can read, and mem_ slots that fail on request.
 *
 * What mem_alloc returns are pages without any access. Every slot, made from kernels.def, opens
 * them, calls the CPU's loop and closes them again, as the memory of another device would be out of
 * reach: whoever dereferences such a pointer elsewhere dies on the spot, and whoever takes fresh
 * memory for zeros gets NaN. The mem_ slots find their device in the context, as a real one would.
 * host_memory is false, so files are not mapped but copied. One thread at a time runs kernels. */
#ifndef PNB_TESTS_KERNELS_GUARDED_H
#define PNB_TESTS_KERNELS_GUARDED_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/kernels.h"

#define GUARDED_BYTES ((size_t)1 << 29) /* reserved, not used: one piece, opened as a whole */
#define GUARDED_HUGE                                                                               \
    ((size_t)1 << 21) /* it opens by as much: one entry of a page table where the system has such  \
                         pages, and opening is most of what a test takes */

typedef struct guarded_block {
    void *p;
    size_t bytes; /* whole pages */
} guarded_block;

typedef enum guarded_slot {
    GUARDED_ALLOC,
    GUARDED_WRITE,
    GUARDED_READ,
    GUARDED_COPY,
    GUARDED_ZERO,
    N_GUARDED
} guarded_slot;

static struct {
    pnb__kernels inner[2]; /* by pnb__real */
    guarded_block blocks[4096];
    unsigned char *base;
    size_t top; /* bytes handed out from base on, taken back when no block is left */
    size_t n, n_calls, most_bytes, bytes;
    size_t n_asked[N_GUARDED]; /* calls of each mem_ slot since guarded_fail */
    guarded_slot fails;        /* the call number fail_at of this slot fails, from 0 */
    size_t fail_at;            /* SIZE_MAX: none does */
    bool has_failed;
} guarded = {.fail_at = SIZE_MAX};

static inline size_t guarded_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page) / page * page;
}

static inline void guarded_protect(int access)
{
    if (guarded.top > 0 && mprotect(guarded.base, GUARDED_BYTES, access) != 0)
        abort();
}

static inline void guarded_reserve(void)
{
    size_t bytes = GUARDED_BYTES + GUARDED_HUGE;
    unsigned char *p =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        abort();
    guarded.base = p + (GUARDED_HUGE - (uintptr_t)p % GUARDED_HUGE) % GUARDED_HUGE;
    (void)madvise(guarded.base, GUARDED_BYTES, MADV_HUGEPAGE); /* slower without */
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

/* Starts the counts anew; afterwards call `at` of `slot` fails once. */
static inline void guarded_fail(guarded_slot slot, size_t at)
{
    memset(guarded.n_asked, 0, sizeof guarded.n_asked);
    guarded.fails = slot;
    guarded.fail_at = at;
    guarded.has_failed = false;
}

/* A mem_ slot is called: with the context whose device this is, or somebody lost it. */
static inline bool guarded_refuses(const pnb_ctx *ctx, guarded_slot slot)
{
    if (ctx == NULL || ctx->device_handle != &guarded)
        abort();
    bool fails = slot == guarded.fails && guarded.n_asked[slot] == guarded.fail_at;
    guarded.n_asked[slot]++;
    guarded.has_failed = guarded.has_failed || fails;
    return fails;
}

static pnb_status guarded_mem_alloc(const pnb_ctx *ctx, void **out, size_t bytes, pnb_error *err)
{
    guarded_block b = {.bytes = guarded_pages(bytes)};
    if (guarded_refuses(ctx, GUARDED_ALLOC))
        return pnb__fail_nomem(err, bytes);
    if (guarded.base == NULL)
        guarded_reserve();
    if (b.bytes > GUARDED_BYTES - guarded.top || guarded.n == PNB_COUNT(guarded.blocks))
        abort();
    b.p = guarded.base + guarded.top;
    guarded.top += b.bytes;
    guarded_protect(PROT_READ | PROT_WRITE);
    memset(b.p, 0xFF, b.bytes);
    guarded_protect(PROT_NONE);
    guarded.blocks[guarded.n++] = b;
    guarded.bytes += b.bytes;
    guarded.most_bytes = PNB_MAX(guarded.most_bytes, guarded.bytes);
    *out = b.p;
    return PNB_OK;
}

/* A pointer that mem_alloc never gave is somebody's mistake. */
static void guarded_mem_free(const pnb_ctx *ctx, void *p, size_t bytes)
{
    size_t i = 0;
    if (p == NULL)
        return;
    if (ctx == NULL || ctx->device_handle != &guarded)
        abort();
    while (i < guarded.n && guarded.blocks[i].p != p)
        i++;
    if (i == guarded.n || guarded.blocks[i].bytes != guarded_pages(bytes))
        abort();
    guarded.bytes -= guarded.blocks[i].bytes;
    guarded.blocks[i] = guarded.blocks[--guarded.n];
    if (guarded.n == 0) {
        if (madvise(guarded.base, GUARDED_BYTES, MADV_DONTNEED) != 0)
            abort();
        guarded.top = 0;
    }
}

static pnb_status guarded_move(const pnb_ctx *ctx, guarded_slot slot, void *to, const void *from,
                               size_t bytes, pnb_error *err)
{
    if (guarded_refuses(ctx, slot))
        return pnb__fail(err, PNB_IO, "device: moving %zu bytes failed", bytes);
    __attribute__((cleanup(guarded_close))) int open_ = guarded_open();
    (void)open_;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return PNB_OK;
}

static pnb_status guarded_mem_write(const pnb_ctx *ctx, void *device, const void *host,
                                    size_t bytes, pnb_error *err)
{
    return guarded_move(ctx, GUARDED_WRITE, device, host, bytes, err);
}

static pnb_status guarded_mem_read(const pnb_ctx *ctx, void *host, const void *device, size_t bytes,
                                   pnb_error *err)
{
    return guarded_move(ctx, GUARDED_READ, host, device, bytes, err);
}

static pnb_status guarded_mem_copy(const pnb_ctx *ctx, void *to, const void *from, size_t bytes,
                                   pnb_error *err)
{
    return guarded_move(ctx, GUARDED_COPY, to, from, bytes, err);
}

static pnb_status guarded_mem_zero(const pnb_ctx *ctx, void *device, size_t bytes, pnb_error *err)
{
    if (guarded_refuses(ctx, GUARDED_ZERO))
        return pnb__fail(err, PNB_IO, "device: zeroing %zu bytes failed", bytes);
    __attribute__((cleanup(guarded_close))) int open_ = guarded_open();
    (void)open_;
    memset(device, 0, bytes);
    return PNB_OK;
}

/* The wrappers of all other slots: `names` are the arguments as they came. Returning a void
 * expression keeps one form for all. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#define GUARDED_WRAP(REAL, suffix, returns, name, parameters, names)                               \
    static returns guarded_##name##suffix parameters                                               \
    {                                                                                              \
        __attribute__((cleanup(guarded_close))) int open_ = guarded_open();                        \
        (void)open_;                                                                               \
        return guarded.inner[REAL].name names;                                                     \
    }
#define GUARDED_WRAP_MEMORY(...)
#define GUARDED_WRAP_REF(...) GUARDED_WRAP(__VA_ARGS__)
#define GUARDED_WRAP_FAST(...) GUARDED_WRAP(__VA_ARGS__)
#define GUARDED_WRAP_FAST_ONLY(...) GUARDED_WRAP(__VA_ARGS__)
#define GUARDED_WRAP_I8(...) GUARDED_WRAP(__VA_ARGS__)
#define GUARDED_WRAP_BF16(...) GUARDED_WRAP(__VA_ARGS__)
#define GUARDED_WRAP_HALVES(...) GUARDED_WRAP(__VA_ARGS__)
#define PNB__KERNEL(column, returns, name, parameters, names)                                      \
    GUARDED_WRAP_##column(PNB__F32, _f32, returns, name, parameters, names)                        \
        GUARDED_WRAP_##column(PNB__F64, _f64, returns, name, parameters, names)
#include "kernels/kernels.def"
#pragma GCC diagnostic pop

#define GUARDED_FILL_MEMORY(name) k->name = guarded_##name;
#define GUARDED_FILL(name)                                                                         \
    if (inner->name != NULL)                                                                       \
        k->name = k->real == PNB__F32 ? guarded_##name##_f32 : guarded_##name##_f64;
#define GUARDED_FILL_REF(name) GUARDED_FILL(name)
#define GUARDED_FILL_FAST(name) GUARDED_FILL(name)
#define GUARDED_FILL_FAST_ONLY(name) GUARDED_FILL(name)
#define GUARDED_FILL_I8(name) GUARDED_FILL(name)
#define GUARDED_FILL_BF16(name) GUARDED_FILL(name)
#define GUARDED_FILL_HALVES(name) GUARDED_FILL(name)

/* The column of a context: pnb_ctx.column. */
static inline void guarded_column(pnb__kernels *k)
{
    pnb__kernels *inner = &guarded.inner[k->real];
    *inner = *k;
    k->host_memory = false;
#define PNB__KERNEL(column, returns, name, parameters, names) GUARDED_FILL_##column(name)
#include "kernels/kernels.def"
}

/* Makes a context the device's, or takes that back. */
static inline void guarded_use(pnb_ctx *ctx, bool is_guarded)
{
    ctx->column = is_guarded ? guarded_column : NULL;
    ctx->device_handle = is_guarded ? &guarded : NULL;
}

#endif
