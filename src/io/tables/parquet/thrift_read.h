/* Thrift's compact protocol, read from bytes of strangers: what Parquet's footers and page headers
 * are written in. */
#ifndef PNB_IO_TABLES_THRIFT_READ_H
#define PNB_IO_TABLES_THRIFT_READ_H

#include "base/base.h"

enum {
    PNB__THRIFT_TRUE = 1,
    PNB__THRIFT_FALSE = 2,
    PNB__THRIFT_I8 = 3,
    PNB__THRIFT_I16 = 4,
    PNB__THRIFT_I32 = 5,
    PNB__THRIFT_I64 = 6,
    PNB__THRIFT_DOUBLE = 7,
    PNB__THRIFT_BINARY = 8,
    PNB__THRIFT_LIST = 9,
    PNB__THRIFT_SET = 10,
    PNB__THRIFT_MAP = 11,
    PNB__THRIFT_STRUCT = 12
};

/* A reader that has failed stays so: everything it gives from then on is 0 or empty. */
typedef struct pnb__thrift {
    const unsigned char *at, *end;
    bool failed;
} pnb__thrift;

/* One field of the struct at hand; type 0: the struct ends. */
typedef struct pnb__thrift_field {
    int number, type;
} pnb__thrift_field;

/* A number as it lies there, without and with a sign. */
uint64_t pnb__thrift_varint(pnb__thrift *t);
int64_t pnb__thrift_zigzag(pnb__thrift *t);

/* Next field of a struct whose last one was *last, 0 at its beginning. False at its end. */
bool pnb__thrift_next(pnb__thrift *t, int *last, pnb__thrift_field *out);
/* The value of a field that is a number or a flag; of another type it is skipped, and 0. */
int64_t pnb__thrift_int(pnb__thrift *t, pnb__thrift_field f);
/* Bytes of a field; empty of another type, which is skipped. They lie in what is read. */
const char *pnb__thrift_bytes(pnb__thrift *t, pnb__thrift_field f, size_t *n);
/* Number and type of a list's elements; each is at least a byte long, so that a count never claims
 * more than what is there. 0 of another type, which is skipped. */
size_t pnb__thrift_list(pnb__thrift *t, pnb__thrift_field f, int *type);
void pnb__thrift_skip(pnb__thrift *t, int type);

#endif
