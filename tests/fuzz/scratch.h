/* A file for a fuzz target, written without the flush to the disk that outputs of the library end
 * with: that would be most of a run's time. */
#ifndef PNB_TESTS_FUZZ_SCRATCH_H
#define PNB_TESTS_FUZZ_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static inline bool scratch_write(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return false;
    bool is_whole = size == 0 || fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && is_whole;
}

#endif
