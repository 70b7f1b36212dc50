/* Codecs of Parquet's pages. */
#ifndef PNB_IO_TABLES_PARQUET_CODEC_H
#define PNB_IO_TABLES_PARQUET_CODEC_H

#include "base/base.h"

enum {
    PNB__PARQUET_UNCOMPRESSED = 0,
    PNB__PARQUET_SNAPPY = 1,
    PNB__PARQUET_GZIP = 2,
    PNB__PARQUET_ZSTD = 6
};

const char *pnb__parquet_codec_name(int codec);
/* Exactly n_to bytes out of n packed ones. False: damaged; or, where *missing is not NULL, a codec
 * that is not read, "", or for which this build lacks the package of that name. */
bool pnb__parquet_unpack(int codec, const void *from, size_t n, void *to, size_t n_to,
                         const char **missing);

#endif
