/* Telling whether an input is still the one that was read. */
#ifndef PNB_DATA_SOURCES_STAMP_H
#define PNB_DATA_SOURCES_STAMP_H

#include "base/base.h"
#include "penumbra/dataset.h"

/* A number made of a file's name, size, times and place on the disk: another one when the file was
 * written again or replaced, also by one of the same size and time of writing. Nothing is read. */
uint64_t pnb__file_stamp(const char *path);

/* The same of sample i: of its name, its picture, its records, or of the shard or table it lies in
 * as that was when the set was opened. */
uint64_t pnb__dataset_stamp(const pnb_dataset *ds, size_t i);

#endif
