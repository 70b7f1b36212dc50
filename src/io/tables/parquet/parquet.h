/* Flat Parquet tables, written only: what readers of embeddings expect beside them. */
#ifndef PNB_IO_TABLES_PARQUET_H
#define PNB_IO_TABLES_PARQUET_H

#include "base/base.h"

typedef enum pnb__parquet_type {
    PNB__PARQUET_TEXT,  /* UTF-8, may be missing */
    PNB__PARQUET_DOUBLE /* always there */
} pnb__parquet_type;

typedef struct pnb__parquet_column {
    const char *name;
    pnb__parquet_type type;
    const char *const *texts; /* TEXT: n_rows, NULL is null */
    const double *numbers;    /* DOUBLE: n_rows */
} pnb__parquet_column;

/* Writes the whole file to an open output, which the caller commits.
 * Errors  ARG (no column, a text that is not UTF-8), LIMIT (a page above 2 GB), IO, NOMEM */
pnb_status pnb__parquet_write(pnb__out_file *f, const pnb__parquet_column *columns,
                              size_t n_columns, size_t n_rows, pnb_error *err);

#endif
