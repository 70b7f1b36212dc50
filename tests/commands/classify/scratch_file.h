/* A file of its own for the tests of a program: `set_up` and `tear_down` of their group. */
#ifndef PNB_TESTS_COMMANDS_CLASSIFY_SCRATCH_FILE_H
#define PNB_TESTS_COMMANDS_CLASSIFY_SCRATCH_FILE_H

#include <stdlib.h>
#include <unistd.h>

static char scratch_path[] = "/tmp/pnb-classify-XXXXXX";

static inline int set_up(void **state)
{
    (void)state;
    int file = mkstemp(scratch_path);
    return file >= 0 ? close(file) : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    return unlink(scratch_path);
}

#endif
