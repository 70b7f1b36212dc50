/* The prepared gallery that search.c and range.c share. */
#ifndef PNB_INDEX_EXACT_EXACT_SEARCH_H
#define PNB_INDEX_EXACT_EXACT_SEARCH_H

#include "index/exact/exact.h"

struct pnb_index {
    pnb__exact scan;
};

#endif
