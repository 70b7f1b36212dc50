/* The prepared gallery that search.c and range.c share. */
#ifndef PNB_INDEX_SEARCH_H
#define PNB_INDEX_SEARCH_H

#include "index/scan.h"

struct pnb_index {
    pnb__scan scan;
};

#endif
