/* Tests of kernels on a real device: compiled before each of them (-include) where CMake is given
 * -DPNB_TEST_ON_DEVICE=ON. Arrays of the tests are memory of the host that the device reaches,
 * whether malloc gave them or they stand on the stack: see on_device.c, which has the program's
 * main. Kernels are waited for one by one (CUDA_LAUNCH_BLOCKING). */
#ifndef PNB_TESTS_KERNELS_CUDA_ON_DEVICE_H
#define PNB_TESTS_KERNELS_CUDA_ON_DEVICE_H

#include <stdlib.h>
#include <string.h>

#define PNB_TEST_ON_DEVICE 1

void *reachable_alloc(size_t bytes);
void reachable_free(void *p);
static inline void *reachable_calloc(size_t n, size_t size)
{
    void *p = reachable_alloc(n * size);
    return p == NULL ? NULL : memset(p, 0, n * size);
}

#define malloc(bytes) reachable_alloc(bytes)
#define calloc(n, size) reachable_calloc(n, size)
#define free(p) reachable_free(p)
#define pnb__alloc_aligned(bytes) reachable_alloc(bytes)
#define pnb__free_aligned(p) reachable_free(p)
int test_main(void);
#define main test_main

#endif
