/* Values of Parquet pages as PLAIN has them, and those of other encodings made so. */
#ifndef PNB_IO_TABLES_PARQUET_PLAIN_H
#define PNB_IO_TABLES_PARQUET_PLAIN_H

#include "io/tables/parquet/parquet_read.h"

/* n bytes, at most 8, the lowest first. */
uint64_t pnb__parquet_little(const unsigned char *at, size_t n);
/* Bytes of a PLAIN value of the column; 0: flags, and texts, which have their length in front. */
size_t pnb__parquet_value_bytes(const pnb__parquet_leaf *leaf);
/* One PLAIN value but of a flag, behind which *at moves. False: it does not end before `end`. */
bool pnb__parquet_take_plain(const pnb__parquet_leaf *leaf, const unsigned char **at,
                             const unsigned char *end, pnb__parquet_value *out);

const char *pnb__parquet_encoding_name(int encoding);

/* The values of a page that are in another encoding. */
typedef struct pnb__parquet_coded {
    const pnb__parquet_leaf *leaf;
    int encoding;
    const unsigned char *at, *end;
    size_t n_most; /* values: there may be fewer, where rows have none */
} pnb__parquet_coded;
/* Makes them PLAIN, in *n bytes of memory that is the caller's. What failed is the caller's to say:
 * Errors  UNSUPPORTED (not read, or none of such a column), FORMAT (damaged), LIMIT (more than
 *         PNB__PARQUET_MOST_PAGE), NOMEM (for *n bytes) */
pnb_status pnb__parquet_make_plain(const pnb__parquet_coded *from, unsigned char **out, size_t *n);

#endif
