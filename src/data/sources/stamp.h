/* Telling whether a sample is still the one that was read. */
#ifndef PNB_DATA_SOURCES_STAMP_H
#define PNB_DATA_SOURCES_STAMP_H

#include "data/sources/file_stamp.h"
#include "penumbra/dataset.h"

/* A number made of sample i's name, its picture, its records, or of the shard or table it lies in
 * as that was when the set was opened: another one when one of these files has another stamp. */
uint64_t pnb__dataset_stamp(const pnb_dataset *ds, size_t i);

#endif
