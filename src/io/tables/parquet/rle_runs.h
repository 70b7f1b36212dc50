/* Runs of Parquet's RLE hybrid: levels, indices and flags. */
#ifndef PNB_IO_TABLES_RLE_RUNS_H
#define PNB_IO_TABLES_RLE_RUNS_H

#include "base/base.h"

/* Set bytes and width; the rest is 0 at the beginning. */
typedef struct pnb__runs {
    const unsigned char *at, *end;
    unsigned width; /* bits of a number, at most 32; of 0 bits there are any number of zeros */
    uint64_t left;  /* in this run */
    uint32_t value; /* that repeats */
    bool is_packed;
    uint64_t bits; /* packed ones that were read ahead */
    unsigned n_bits;
} pnb__runs;

/* The next number. False: the bytes end, or are none. */
bool pnb__runs_next(pnb__runs *r, uint32_t *out);

#endif
