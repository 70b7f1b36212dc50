/* The k best hits seen so far, the worst of them on top: for lists too short to be worth a pass. */
#ifndef PNB_INDEX_HEAP_H
#define PNB_INDEX_HEAP_H

#include "index/hits.h"

typedef struct pnb__heap {
    pnb__hit *hit; /* the caller's, capacity entries */
    size_t n, capacity;
} pnb__heap;

void pnb__heap_push(pnb__heap *heap, pnb__hit hit);

#endif
