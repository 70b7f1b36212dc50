#ifndef PNB_PROGRAM_BUILD_ID_H
#define PNB_PROGRAM_BUILD_ID_H

#include <stddef.h>

#include "base/base.h"

/* Appends what tells this program from every other: "build-id " and the linker's hash of all it
 * linked, or, where a linker left none, "sha256 " and that of the executable's bytes; in
 * hexadecimal digits. Processes of one build have it in common, stripped or not. Errors: PNB_IO
 * where /proc/self/exe cannot be read and is needed. */
pnb_status pnb__build_id(pnb__buf *out, pnb_error *err);

/* The build id in `size` bytes of ELF notes, those of a PT_NOTE segment, or NULL. *n gets its
 * length. Notes that claim more than is there end the search. */
const unsigned char *pnb__build_id_in(const unsigned char *notes, size_t size, size_t *n);

#endif
