/* What this build is and has. */
#ifndef PNB_PROGRAM_VERSION_H
#define PNB_PROGRAM_VERSION_H

#include <stdbool.h>
#include <stdio.h>

/* One line with the version and the formats of pictures; `is_verbose`: then a line each for what is
 * optional when Penumbra is built, and what is missing. */
void pnb__show_version(FILE *out, const char *name, bool is_verbose);

#endif
