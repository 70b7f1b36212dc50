/* Postgres's binary COPY format: rows that are written, and rows that a server sends. */
#ifndef PNB_IO_TABLES_PGCOPY_H
#define PNB_IO_TABLES_PGCOPY_H

#include "base/base.h"

/* ---- writing: into a buffer, whose `failed` is checked once ---- */

void pnb__pgcopy_begin(pnb__buf *out); /* what stands before the first row */
void pnb__pgcopy_row(pnb__buf *out, size_t n_fields);
void pnb__pgcopy_end(pnb__buf *out);

void pnb__pgcopy_text(pnb__buf *out, const char *text);             /* NULL is null */
void pnb__pgcopy_bytes(pnb__buf *out, const void *bytes, size_t n); /* bytea */
void pnb__pgcopy_int(pnb__buf *out, int64_t value);                 /* bigint */
void pnb__pgcopy_double(pnb__buf *out, double value);               /* double precision */
void pnb__pgcopy_float(pnb__buf *out, float value);                 /* real */
/* real[] of one dimension, and pgvector's vector (n at most 16,000). */
void pnb__pgcopy_reals(pnb__buf *out, const float *x, size_t n);
void pnb__pgcopy_vector(pnb__buf *out, const float *x, size_t n);

/* ---- reading ---- */

/* Bytes of one row as the server sends them, gone through from the front. All getters fail with
 * FORMAT where the bytes are not what is wanted. */
typedef struct pnb__pgcopy_reader {
    const unsigned char *at, *end;
} pnb__pgcopy_reader;

/* Steps over what stands before the first row. */
pnb_status pnb__pgcopy_skip_head(pnb__pgcopy_reader *r, pnb_error *err);
/* Begins a row; *is_end: the mark behind the last one stood there. */
pnb_status pnb__pgcopy_next(pnb__pgcopy_reader *r, size_t n_fields, bool *is_end, pnb_error *err);
pnb_status pnb__pgcopy_get_int(pnb__pgcopy_reader *r, int64_t *out, pnb_error *err);
pnb_status pnb__pgcopy_get_float(pnb__pgcopy_reader *r, float *out, pnb_error *err);
pnb_status pnb__pgcopy_get_reals(pnb__pgcopy_reader *r, float *out, size_t n, pnb_error *err);

#endif
