/* The k best hits seen so far, the worst of them on top. */
#ifndef PNB_INDEX_HEAP_H
#define PNB_INDEX_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnb__hit {
    double score;
    int64_t index;
} pnb__hit;

typedef struct pnb__heap {
    pnb__hit *hit; /* the caller's, capacity entries */
    size_t n, capacity;
} pnb__heap;

/* The one order of results: higher score first, then lower index. Total, so the best k of a set do
 * not depend on the order in which they were seen. */
static inline bool pnb__hit_before(pnb__hit a, pnb__hit b)
{
    return a.score > b.score || (a.score == b.score && a.index < b.index);
}

void pnb__heap_push(pnb__heap *heap, pnb__hit hit);
/* Sorts hits best first. */
void pnb__hits_sort(pnb__hit *hits, size_t n);

#endif
