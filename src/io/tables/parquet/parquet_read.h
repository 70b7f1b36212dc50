/* Parquet tables, read: flat columns and those inside of structs, required or optional, by row.
 *
 * What is understood: data pages of both versions, every encoding of values, levels of the RLE
 * hybrid, not packed or by snappy, gzip or zstd. A column of lists, of another codec, or encrypted,
 * is an error of reading that column; the others can be read. */
#ifndef PNB_IO_TABLES_PARQUET_READ_H
#define PNB_IO_TABLES_PARQUET_READ_H

#include "base/base.h"

enum { PNB__PARQUET_MOST_PAGE = 256 << 20 }; /* bytes, unpacked */

typedef enum pnb__parquet_kind {
    PNB__PARQUET_NULL, /* there is no value */
    PNB__PARQUET_FLAG,
    PNB__PARQUET_INT,
    PNB__PARQUET_REAL,
    PNB__PARQUET_BYTES
} pnb__parquet_kind;

/* What a leaf's values are stored as, by the format's numbers. */
enum {
    PNB__STORED_BOOLEAN,
    PNB__STORED_INT32,
    PNB__STORED_INT64,
    PNB__STORED_INT96,
    PNB__STORED_FLOAT,
    PNB__STORED_DOUBLE,
    PNB__STORED_BYTE_ARRAY,
    PNB__STORED_FIXED
};

/* And what they are then. */
typedef enum pnb__parquet_meaning {
    PNB__PARQUET_BARE, /* nothing more; of integers, dates and times too */
    PNB__PARQUET_UTF8,
    PNB__PARQUET_UNSIGNED, /* integers, whose upper half is negative in a value */
    PNB__PARQUET_DECIMAL,  /* times 10^-scale; of bytes, the highest first */
    PNB__PARQUET_UUID,     /* 16 bytes */
    PNB__PARQUET_HALF,     /* REAL */
    PNB__PARQUET_OTHER     /* bytes that are neither text nor a picture */
} pnb__parquet_meaning;

/* One value; bytes lie in the file or in the page at hand. */
typedef struct pnb__parquet_value {
    pnb__parquet_kind kind;
    int64_t integer; /* FLAG, INT */
    double real;
    const unsigned char *bytes;
    size_t n_bytes;
} pnb__parquet_value;

/* A column. */
typedef struct pnb__parquet_leaf {
    char *name; /* "caption", or "image.bytes" of a struct */
    int type, type_length;
    int max_level; /* definition level of a value that is there */
    pnb__parquet_meaning meaning;
    int scale; /* of a DECIMAL */
    bool is_bytes, is_list;
} pnb__parquet_leaf;

/* Pages of a column in a row group. */
typedef struct pnb__parquet_chunk {
    uint64_t begin, end; /* bytes of the file */
    uint64_t n_values;
    int codec;
    bool is_encrypted, is_elsewhere;
} pnb__parquet_chunk;

typedef struct pnb__parquet_group {
    size_t first_row, n_rows;
    pnb__parquet_chunk *chunks; /* a leaf */
} pnb__parquet_group;

typedef struct pnb__parquet {
    const unsigned char *bytes;
    size_t n_bytes;
    char *where; /* starts error texts */
    pnb__parquet_leaf *leaves;
    size_t n_leaves;
    pnb__parquet_group *groups;
    size_t n_groups, n_rows;
} pnb__parquet;

/* Reads the footer of a table in memory, which must outlive the reader. All zero on failure.
 * Errors  FORMAT, UNSUPPORTED (an encrypted footer), LIMIT, NOMEM */
pnb_status pnb__parquet_open(pnb__parquet *p, const void *bytes, size_t n, const char *where,
                             pnb_error *err);
void pnb__parquet_close(pnb__parquet *p); /* an all-zero reader is fine */

/* Number of the column of that name, SIZE_MAX: there is none. */
size_t pnb__parquet_find(const pnb__parquet *p, const char *name);

/* Told of each row of a chunk in turn, counted from its group's first. */
typedef pnb_status (*pnb__parquet_fn)(void *user, size_t row, const pnb__parquet_value *value,
                                      pnb_error *err);
/* Errors  FORMAT, UNSUPPORTED (the column and what of it is not understood), LIMIT (a page of more
 * than 256 MiB), NOMEM, those of fn */
pnb_status pnb__parquet_read(const pnb__parquet *p, size_t group, size_t leaf, pnb__parquet_fn fn,
                             void *user, pnb_error *err);

typedef struct pnb__parquet_visit {
    pnb__parquet_fn fn;
    void *user;
} pnb__parquet_visit;

/* Where the pages of a column lie, so that one row can be had without those before it; single rows
 * are parquet_rows.h's. */
typedef struct pnb__parquet_place {
    uint64_t offset; /* of the page's header */
    size_t group, first_row, n_rows;
} pnb__parquet_place;
pnb_status pnb__parquet_places(const pnb__parquet *p, size_t leaf, pnb__parquet_place **out,
                               size_t *n, pnb_error *err);

/* A page of a column of bytes, unpacked: its values lie in it, in its dictionary or in the file. */
typedef struct pnb__parquet_cell {
    const unsigned char *bytes; /* NULL: there is no value */
    size_t n;
} pnb__parquet_cell;
typedef struct pnb__parquet_page {
    pnb__parquet_cell *cell; /* [n_rows] */
    size_t n_rows, n_own;    /* n_own: bytes of memory it takes */
    unsigned char *own[3];
} pnb__parquet_page;
/* Errors  as above; FORMAT (the file was changed) */
pnb_status pnb__parquet_page_open(pnb__parquet_page *out, const pnb__parquet *p, size_t leaf,
                                  const pnb__parquet_place *place, pnb_error *err);
void pnb__parquet_page_close(pnb__parquet_page *page);

#endif
