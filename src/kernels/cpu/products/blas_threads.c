/* OpenBLAS on one thread, because ours are the threads.
 *
 * It takes as many as OpenMP would give the calling thread, a number that belongs to that thread:
 * one of the pool, or the user's, who may have loops of his own and gets it back. */
#include <omp.h>

#include "kernels/cpu/cpu.h"

int pnb__blas_alone(void)
{
    int before = omp_get_max_threads();
    if (before != 1)
        omp_set_num_threads(1);
    return before;
}

void pnb__blas_together(int before)
{
    if (before != 1)
        omp_set_num_threads(before);
}
