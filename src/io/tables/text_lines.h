/* A file of lines, as lists of ids, words or paths are written. */
#ifndef PNB_IO_TABLES_TEXT_LINES_H
#define PNB_IO_TABLES_TEXT_LINES_H

#include "base/base.h"

/* Lines of a file without their ends, empty ones and those that begin with '#' left out.
 * Errors  NOT_FOUND, IO, FORMAT (not UTF-8), NOMEM */
typedef struct pnb__lines {
    char *text;
    const char **line;
    size_t n;
} pnb__lines;
pnb_status pnb__lines_load(pnb__lines *out, const char *path, pnb_error *err);
void pnb__lines_reset(pnb__lines *l);

/* What is left of a stream, behind what is in `out`; `name` is for messages.  Errors  IO, NOMEM */
pnb_status pnb__stream_read(FILE *in, const char *name, pnb__buf *out, pnb_error *err);

#endif
