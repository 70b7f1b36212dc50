/* Telling whether a file is still the one that was read. */
#ifndef PNB_DATA_SOURCES_FILE_STAMP_H
#define PNB_DATA_SOURCES_FILE_STAMP_H

#include <stdint.h>

/* A number made of a file's name, size, times and place on the disk: another one when the file was
 * written again or replaced, also by one of the same size and time of writing. Nothing is read. */
uint64_t pnb__file_stamp(const char *path);

#endif
