/* Files that are something else than their name or place promises, told by their first bytes. */
#ifndef PNB_IO_FOREIGN_H
#define PNB_IO_FOREIGN_H

#include "base/base.h"

/* What such bytes are and what to do, to stand behind "PATH: this is ..."; NULL when they are
 * nothing known here. Text that is merely unexpected is not known; the first 64 KB are looked at.
 */
const char *pnb__foreign(const void *bytes, size_t n);
/* The same for files that stand in the place of another: a Git LFS pointer, a web page. */
const char *pnb__stand_in(const void *bytes, size_t n);
/* FORMAT for a stand-in. */
pnb_status pnb__refuse_stand_in(const char *where, const void *bytes, size_t n, pnb_error *err);

#endif
