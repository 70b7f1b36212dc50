#ifndef PNB_PROGRAM_BUILD_ID_H
#define PNB_PROGRAM_BUILD_ID_H

#include <stddef.h>

#include "base/base.h"

/* What tells this program from every other: "build-id " and the linker's hash of all it linked, or,
 * where a linker left none, "sha256 " and that of the executable's bytes. Processes of one build
 * have it in common, stripped or not.
 *
 * text gets the words in hexadecimal digits, at most PNB__BUILD_ID_SIZE bytes with the end.
 * Errors: PNB_IO where /proc/self/exe cannot be read and is needed. */
enum { PNB__BUILD_ID_SIZE = 160 };
pnb_status pnb__build_id(char text[PNB__BUILD_ID_SIZE], pnb_error *err);

/* The build id in `size` bytes of ELF notes, those of a PT_NOTE segment, or NULL. *n gets its
 * length. Notes that claim more than is there end the search. */
const unsigned char *pnb__build_id_in(const unsigned char *notes, size_t size, size_t *n);

#endif
