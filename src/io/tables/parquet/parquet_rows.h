/* Single rows of a column of bytes, in any order; the pages they lie in are kept for the next. */
#ifndef PNB_IO_TABLES_PARQUET_ROWS_H
#define PNB_IO_TABLES_PARQUET_ROWS_H

#include "io/tables/parquet/parquet_read.h"

/* The last pages that rows were taken from, of any number of tables. Threads may share it. */
typedef struct pnb__parquet_kept pnb__parquet_kept;
/* most_bytes of memory, or one page where that has more. Errors  NOMEM */
pnb_status pnb__parquet_kept_create(pnb__parquet_kept **out, size_t most_bytes, pnb_error *err);
void pnb__parquet_kept_free(pnb__parquet_kept *k);     /* NULL is fine; before the tables close */
size_t pnb__parquet_kept_opened(pnb__parquet_kept *k); /* pages that were unpacked so far */

/* A column whose pages are known. */
typedef struct pnb__parquet_rows {
    const pnb__parquet *table;
    size_t leaf;
    pnb__parquet_place *places;
    size_t n_places;
    pnb__parquet_kept *kept;
} pnb__parquet_rows;
/* Table and kept pages must outlive it. Errors  those of pnb__parquet_read */
pnb_status pnb__parquet_rows_open(pnb__parquet_rows *out, const pnb__parquet *p, size_t leaf,
                                  pnb__parquet_kept *kept, pnb_error *err);
void pnb__parquet_rows_close(pnb__parquet_rows *r); /* an all-zero one is fine */

/* The bytes of row `row` of the table, behind what is in `out`; *found is false where there is no
 * value. Threads may read at once. Errors  as above */
pnb_status pnb__parquet_row(const pnb__parquet_rows *r, size_t row, pnb__buf *out, bool *found,
                            pnb_error *err);

#endif
