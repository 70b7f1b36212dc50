/* gzip by zlib, of one member or several, snappy and zstd by their libraries where this build has
 * them. What a page unfolds to is known beforehand; anything else is damage.
 * What a page holds is parquet_page.c's. */
#include "io/tables/parquet/parquet_codec.h"

#include <zlib.h>
#ifdef PNB_HAVE_SNAPPY
#include <snappy-c.h>
#endif
#ifdef PNB_HAVE_ZSTD
#include <zstd.h>
#endif

const char *pnb__parquet_codec_name(int codec)
{
    static const char *const names[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                        "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
    bool known = codec >= 0 && (size_t)codec < PNB_COUNT(names);
    return known ? names[codec] : "of an unknown number";
}

static bool unpack_gzip(const unsigned char *from, size_t n, unsigned char *to, size_t n_to)
{
    z_stream z = {0};
    if (inflateInit2(&z, 15 + 32) != Z_OK)
        return false;
    z.next_in = (unsigned char *)(uintptr_t)from; /* only read */
    z.avail_in = (uInt)n;
    z.next_out = to;
    z.avail_out = (uInt)n_to;
    int got = inflate(&z, Z_FINISH);
    while (got == Z_STREAM_END && z.avail_in > 0 && z.avail_out > 0 && inflateReset(&z) == Z_OK)
        got = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return got == Z_STREAM_END && z.avail_out == 0;
}

bool pnb__parquet_unpack(int codec, const void *from, size_t n, void *to, size_t n_to,
                         const char **missing)
{
    *missing = NULL;
    if (codec == PNB__PARQUET_GZIP)
        return unpack_gzip(from, n, to, n_to);
#ifdef PNB_HAVE_SNAPPY
    size_t claimed = 0, got = n_to;
    if (codec == PNB__PARQUET_SNAPPY)
        return snappy_uncompressed_length(from, n, &claimed) == SNAPPY_OK && claimed == n_to &&
               snappy_uncompress(from, n, to, &got) == SNAPPY_OK;
#endif
#ifdef PNB_HAVE_ZSTD
    if (codec == PNB__PARQUET_ZSTD)
        return ZSTD_decompress(to, n_to, from, n) == n_to;
#endif
    *missing = codec == PNB__PARQUET_SNAPPY ? "libsnappy-dev"
               : codec == PNB__PARQUET_ZSTD ? "libzstd-dev"
                                            : "";
    return false;
}
