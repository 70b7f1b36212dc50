/* Telling whether two processes, or a run and the one it goes on from, read the same data. */
#ifndef PNB_DATA_SOURCES_DATA_MARK_H
#define PNB_DATA_SOURCES_DATA_MARK_H

#include "penumbra/dataset.h"

/* The same for the same data wherever they lie, a number for each thing that may differ. */
typedef struct pnb__data_mark {
    uint64_t names;  /* of all samples, in their order, with their classes */
    uint64_t texts;  /* all of them, with their levels, and what does not fit */
    uint64_t sizes;  /* of all pictures in bytes; of the tables of Parquet */
    uint64_t images; /* bytes of 256 of them, evenly taken; all of a binary set */
} pnb__data_mark;

/* Reads what opening has read, all captions and 256 pictures. What cannot be read is marked as
 * such: naming it is the loader's.  Errors  NOMEM */
pnb_status pnb__dataset_mark(const pnb_ctx *ctx, const pnb_dataset *ds, pnb__data_mark *out,
                             pnb_error *err);

#endif
