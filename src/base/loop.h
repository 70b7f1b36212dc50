/* How hot loops are compiled: parts of them inlined, memory checked as a whole before them.
 *
 * The sanitizers look at every access by itself: six sevenths of the time that a product of
 * matrices takes in a sanitized build. A loop whose extents are known before it runs is left out by
 * PNB__UNCHECKED, and asks PNB__CHECK_REGION for all it will touch: extents that leave their
 * memory are found as before, reported where the region is asked for. A loop that goes beyond what
 * was asked for is not: tests see it by its values, and by those around what it writes. Both are
 * nothing in other builds. */
#ifndef PNB_BASE_LOOP_H
#define PNB_BASE_LOOP_H

#include <stddef.h>

/* A part of a loop, and no call: whatever the compiler thinks of its size, and in a caller that
 * sanitizers leave out. */
#define PNB__INLINE static inline __attribute__((always_inline))
#define PNB__NOINLINE __attribute__((noinline))

#define PNB__LINE ((size_t)64) /* bytes that come from memory at once */

#if defined(__SANITIZE_ADDRESS__)
#define PNB__HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PNB__HAS_ASAN 1
#endif
#endif

#ifdef PNB__HAS_ASAN
#include <sanitizer/asan_interface.h>

#define PNB__UNCHECKED __attribute__((no_sanitize("address", "undefined")))

/* Reads the first byte of the region that may not be touched, if there is one: that is reported.
 * Never a part of a function that is left out, where nothing would be. */
static __attribute__((noinline, unused)) void pnb__report_region(const void *p, size_t n_bytes)
{
    const volatile char *bad =
        (const volatile char *)__asan_region_is_poisoned((void *)(size_t)p, n_bytes);
    if (bad)
        (void)*bad;
}

/* Whether the region is whole, by the bytes of AddressSanitizer's own that tell of eight each: 0 if
 * all may be touched, else how many of them, or what stands there. The library is asked only for
 * what is not clear by that: it takes longer than a short loop. */
PNB__UNCHECKED static __attribute__((noinline, unused)) void pnb__check_region(const void *p,
                                                                               size_t n_bytes)
{
    size_t scale, offset, end = (size_t)p + n_bytes - 1, i = 0;
    if (n_bytes == 0)
        return;
    __asan_get_shadow_mapping(&scale, &offset);
    const signed char *told = (const signed char *)(((size_t)p >> scale) + offset);
    size_t n = (end >> scale) - ((size_t)p >> scale);
    unsigned long long any = 0, eight;
    for (; i + sizeof eight <= n; i += sizeof eight) {
        __builtin_memcpy(&eight, told + i, sizeof eight);
        any |= eight;
    }
    for (; i < n; i++)
        any |= (unsigned char)told[i];
    if (any != 0 || told[n] != 0)
        pnb__report_region(p, n_bytes);
}
#define PNB__CHECK_REGION(p, n_bytes) pnb__check_region(p, n_bytes)
#else
#define PNB__UNCHECKED
#define PNB__CHECK_REGION(p, n_bytes) ((void)(p), (void)(n_bytes))
#endif

#endif
