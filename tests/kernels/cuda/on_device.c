/* The main program of on_device.h: pinned memory for malloc and for the stack of the tests. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STACK_BYTES = 64 << 20 };

int test_main(void);
void *reachable_alloc(size_t bytes);
void reachable_free(void *p);

void *reachable_alloc(size_t bytes)
{
    void *p = NULL;
    return cudaMallocHost(&p, bytes + 1) == cudaSuccess ? p : NULL;
}

void reachable_free(void *p)
{
    if (p != NULL)
        (void)cudaFreeHost(p);
}

static void *run(void *status)
{
    *(int *)status = test_main();
    return NULL;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int status = 1;
    void *stack = NULL;
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    stack = reachable_alloc(STACK_BYTES);
    if (stack == NULL) {
        fprintf(stderr, "no CUDA device\n");
        return 77;
    }
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, stack, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, run, &status) != 0)
        return 1;
    pthread_join(thread, NULL);
    return status;
}
