/* Tables of text: RFC 4180 with any one-byte separator, read the way Python's csv and pandas do. */
#ifndef PNB_IO_TABLES_CSV_H
#define PNB_IO_TABLES_CSV_H

#include "base/base.h"

typedef struct pnb__csv {
    pnb__map map; /* of a file; unused for bytes */
    const char *bytes;
    size_t n_bytes;
    size_t position;   /* next row */
    size_t row_offset; /* where the current row starts: a place to seek to */
    size_t line;       /* of position, from 1; counted from the last seek only */
    char separator;
    size_t n_columns; /* from the first row; every row must have as many */
    char **header;    /* n_columns names */
    char **fields;    /* current row, n_columns texts, until the next call */
    pnb__buf text;
    size_t *ends; /* n_columns of the row being read; grows with the first */
    char *where;  /* starts error texts */
} pnb__csv;

/* Maps a table and reads its header row. A UTF-8 byte order mark is skipped. On failure the reader
 * is closed. Errors  NOT_FOUND, IO, FORMAT (empty, NUL byte, open quote), ARG (separator), NOMEM */
pnb_status pnb__csv_open(pnb__csv *c, const char *path, char separator, pnb_error *err);
/* The same on borrowed bytes. */
pnb_status pnb__csv_open_bytes(pnb__csv *c, const void *bytes, size_t n, char separator,
                               const char *where, pnb_error *err);
void pnb__csv_close(pnb__csv *c); /* an all-zero reader is fine */

/* Column of that name. NOT_FOUND names the columns there are. */
pnb_status pnb__csv_column(const pnb__csv *c, const char *name, size_t *column, pnb_error *err);

/* Next row into c->fields; blank lines are skipped; *more is false at the end. After a row with a
 * wrong number of fields the next call goes on behind it; other errors stay where they are. Errors
 * SHAPE (number of fields), FORMAT (open quote, zero byte), NOMEM */
pnb_status pnb__csv_next(pnb__csv *c, bool *more, pnb_error *err);
/* Goes to a row_offset seen before. */
void pnb__csv_seek(pnb__csv *c, size_t row_offset);

/* Appends a field of a comma-separated table, in quotes where RFC 4180 wants them. */
void pnb__csv_put_field(pnb__buf *b, const char *text);

#endif
