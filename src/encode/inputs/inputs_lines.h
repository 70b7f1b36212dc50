/* Lines of a file of captions or records. */
#ifndef PNB_ENCODE_INPUTS_INPUTS_LINES_H
#define PNB_ENCODE_INPUTS_INPUTS_LINES_H

#include "base/base.h"

/* Rows are lines: an empty line is the empty caption, a line end at the end of the file begins no
 * further one, a byte order mark and the CR of CRLF are no text. Begin with the first three. */
typedef struct pnb__text_lines {
    FILE *in;
    const char *where;
    size_t most; /* bytes of a line that are kept */
    pnb__buf line;
    size_t number, n_bytes, n_invalid; /* bytes so far; those that are not UTF-8 */
    size_t n_bad_lines;
    bool too_long;
    char what[400]; /* what the first bytes say the file is, or "" */
} pnb__text_lines;
void pnb__text_lines_reset(pnb__text_lines *r);

/* The next line; *valid: it is UTF-8. *more is false at the end. FORMAT for a file that is no text:
 * a NUL byte, or more than 1% of bytes that are not UTF-8, which is known at its end; a single bad
 * line among good ones is left out instead, however short the file is. */
pnb_status pnb__text_lines_next(pnb__text_lines *r, bool *more, bool *valid, pnb_error *err);

#endif
