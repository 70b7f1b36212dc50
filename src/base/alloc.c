/* Every allocation of the library.
 *
 * One place, so that overflow checks are written once and tests can make any single allocation
 * fail (PNB_FAULTS) and look for leaks and crashes. A request of 0 bytes gives a unique pointer,
 * so NULL always means "out of memory". The counters below exist in PNB_FAULTS builds only. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"

#define ALIGNMENT 64 /* a cache line, and the widest SIMD register */
#define HUGE_PAGE ((size_t)2 << 20)

#ifdef PNB_FAULTS
#include <stdatomic.h>

static atomic_long n_allocations;
static atomic_long n_until_fault = -1; /* -1: never */

void pnb__alloc_fail_after(long n)
{
    atomic_store(&n_until_fault, n);
}

long pnb__alloc_count(void)
{
    return atomic_load(&n_allocations);
}

static bool is_fault(void)
{
    atomic_fetch_add(&n_allocations, 1);
    long left = atomic_load(&n_until_fault);
    while (left >= 0 && !atomic_compare_exchange_weak(&n_until_fault, &left, left - 1)) {
    }
    return left == 0;
}
#else
static bool is_fault(void)
{
    return false;
}
#endif

bool pnb__mul_overflows(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}

bool pnb__add_overflows(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out);
}

void *pnb__alloc(size_t bytes)
{
    return is_fault() ? NULL : malloc(bytes > 0 ? bytes : 1);
}

void *pnb__alloc_zero(size_t n, size_t size)
{
    size_t bytes;
    if (pnb__mul_overflows(n, size, &bytes) || is_fault())
        return NULL;
    return calloc(1, bytes > 0 ? bytes : 1);
}

void *pnb__alloc_array(size_t n, size_t size)
{
    size_t bytes;
    return pnb__mul_overflows(n, size, &bytes) ? NULL : pnb__alloc(bytes);
}

/* The caller's pointer is written as bytes: it points to whatever the items are. */
static pnb_status hand_over(void *memory, void *array, size_t n, size_t bytes, pnb_error *err)
{
    size_t wanted;
    memcpy(array, &memory, sizeof memory);
    if (memory != NULL)
        return PNB_OK;
    return pnb__fail_nomem(err, pnb__mul_overflows(n, bytes, &wanted) ? SIZE_MAX : wanted);
}

pnb_status pnb__alloc_to(void *array, size_t n, size_t bytes, pnb_error *err)
{
    return hand_over(pnb__alloc_array(n, bytes), array, n, bytes, err);
}

pnb_status pnb__alloc_zero_to(void *array, size_t n, size_t bytes, pnb_error *err)
{
    return hand_over(pnb__alloc_zero(n, bytes), array, n, bytes, err);
}

pnb_status pnb__copy_text(char **out, const char *text, pnb_error *err)
{
    *out = pnb__strdup(text);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(text) + 1);
}

void *pnb__realloc(void *p, size_t bytes)
{
    return is_fault() ? NULL : realloc(p, bytes > 0 ? bytes : 1);
}

void pnb__free(void *p)
{
    free(p);
}

void *pnb__alloc_aligned(size_t bytes)
{
    void *p = NULL;
    if (is_fault() || posix_memalign(&p, ALIGNMENT, bytes > 0 ? bytes : 1) != 0)
        return NULL;
    return p;
}

/* A matrix of some MB walked by panels otherwise misses the TLB at every row. The advice may be
 * refused; nothing depends on it. */
void *pnb__alloc_large(size_t bytes)
{
    void *p = pnb__alloc_aligned(bytes);
#ifdef MADV_HUGEPAGE
    if (p != NULL && bytes >= 2 * HUGE_PAGE) {
        uintptr_t begin = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        uintptr_t end = ((uintptr_t)p + bytes) & ~(HUGE_PAGE - 1);
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
#endif
    return p;
}

void pnb__free_aligned(void *p)
{
    free(p);
}

char *pnb__strndup(const char *s, size_t n)
{
    size_t length = strnlen(s, n);
    char *copy = pnb__alloc(length + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, s, length);
    copy[length] = '\0';
    return copy;
}

char *pnb__strdup(const char *s)
{
    return pnb__strndup(s, strlen(s));
}

char *pnb__format(const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = n < 0 ? NULL : pnb__alloc((size_t)n + 1);
    if (text != NULL)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}
