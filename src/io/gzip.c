/* gzip (RFC 1952) through zlib, into one block of memory.
 *
 * The output grows with what really comes out, so a file that claims much costs no more than its
 * bytes can unfold to, and never more than the caller's limit. */
#include "io/gzip.h"

#include <limits.h>
#include <string.h>

#include <zlib.h>

bool pnb__is_gzip(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    return n >= 2 && p[0] == 0x1F && p[1] == 0x8B;
}

static pnb_status inflate_all(z_stream *z, const unsigned char *bytes, size_t n, size_t max_bytes,
                              pnb__buf *out, pnb_error *err)
{
    unsigned char block[1 << 14];
    int code = Z_OK;
    z->next_in = (Bytef *)(uintptr_t)bytes;
    while (code != Z_STREAM_END) {
        if (z->avail_in == 0) { /* zlib counts in 32 bits */
            size_t left = n - (size_t)(z->next_in - bytes);
            z->avail_in = (uInt)PNB_MIN(left, (size_t)UINT_MAX);
        }
        z->next_out = block;
        z->avail_out = sizeof block;
        code = inflate(z, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END)
            return pnb__fail(err, PNB_FORMAT, "gzip: %s",
                             z->msg != NULL ? z->msg : "the file is cut short");
        pnb__buf_append(out, block, sizeof block - z->avail_out);
        if (out->size > max_bytes)
            return pnb__fail(err, PNB_LIMIT, "gzip: more than %zu bytes when unpacked", max_bytes);
        if (out->failed)
            return pnb__fail_nomem(err, out->size);
    }
    return PNB_OK;
}

pnb_status pnb__gunzip(const void *bytes, size_t n, size_t max_bytes, unsigned char **out,
                       size_t *n_out, pnb_error *err)
{
    z_stream z = {0};
    pnb__buf all = {0};
    *out = NULL;
    *n_out = 0;
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return pnb__fail_nomem(err, 64 << 10);
    pnb__buf_append(&all, "", 0); /* an empty member is a text too */
    pnb_status status = inflate_all(&z, bytes, n, max_bytes, &all, err);
    inflateEnd(&z);
    if (status != PNB_OK) {
        pnb__buf_reset(&all);
        return status;
    }
    *out = (unsigned char *)all.data;
    *n_out = all.size;
    return PNB_OK;
}
