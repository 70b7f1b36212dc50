/* The one order of results. */
#ifndef PNB_INDEX_HITS_H
#define PNB_INDEX_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnb__hit {
    double score;
    int64_t index;
} pnb__hit;

/* Higher score first, then lower index. Total, so the best k of a set do not depend on the order in
 * which they were seen. Scores are never NaN here. */
static inline bool pnb__hit_before(pnb__hit a, pnb__hit b)
{
    return a.score > b.score || (a.score == b.score && a.index < b.index);
}

/* Sorts hits best first. */
void pnb__hits_sort(pnb__hit *hits, size_t n);

/* The k-th largest of n values, 1 <= k <= n; the values are rearranged. */
double pnb__kth_largest(double *x, size_t n, size_t k);

#endif
