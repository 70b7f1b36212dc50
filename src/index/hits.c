/* Sorting hits and selecting a rank.
 *
 * Selection is Hoare's with the middle value as pivot: no random numbers, so the same input takes
 * the same time, and equal values split evenly. */
#include "index/hits.h"

#include <stdlib.h>

static int compare_hits(const void *a, const void *b)
{
    const pnb__hit *x = a, *y = b;
    return pnb__hit_before(*y, *x) - pnb__hit_before(*x, *y);
}

void pnb__hits_sort(pnb__hit *hits, size_t n)
{
    if (n > 1)
        qsort(hits, n, sizeof *hits, compare_hits);
}

double pnb__kth_largest(double *x, size_t n, size_t k)
{
    size_t low = 0, high = n - 1, wanted = k - 1;
    while (low < high) {
        double pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (x[i] > pivot)
                i++;
            while (x[j] < pivot)
                j--;
            if (i >= j)
                break;
            double moved = x[i];
            x[i++] = x[j];
            x[j--] = moved;
        }
        /* x[low..i-1] >= pivot >= x[j+1..high]; where they met, x[i] is the pivot itself */
        if (wanted < i)
            high = i - 1;
        else if (wanted > j)
            low = j + 1;
        else
            break;
    }
    return x[wanted];
}
