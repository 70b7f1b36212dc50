/* Binary COPY of Postgres ("COPY", File Formats, Binary Format in its manual): a signature, rows as
 * a count of fields and each field as its length and its bytes in network order, -1 for null and
 * for the end. Arrays are a header of five words and then fields again. A server is a stranger:
 * nothing is taken from its lengths without a look at what is there. */
#include "io/tables/pgcopy.h"

#include <string.h>

enum { REAL_OID = 700, HEAD_BYTES = 19, ARRAY_HEAD_BYTES = 20, PIECE = 256 };
static const char signature[] = "PGCOPY\n\377\r\n"; /* and its 0 byte */

/* ---- numbers in network order ---- */

static void write_u32(unsigned char *to, uint32_t x)
{
    to[0] = (unsigned char)(x >> 24);
    to[1] = (unsigned char)(x >> 16);
    to[2] = (unsigned char)(x >> 8);
    to[3] = (unsigned char)x;
}

static uint32_t read_u32(const unsigned char *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void put_u32(pnb__buf *out, uint32_t x)
{
    unsigned char bytes[4];
    write_u32(bytes, x);
    pnb__buf_append(out, bytes, sizeof bytes);
}

static void put_u16(pnb__buf *out, size_t x)
{
    const unsigned char bytes[2] = {(unsigned char)(x >> 8), (unsigned char)x};
    pnb__buf_append(out, bytes, sizeof bytes);
}

static void put_u64(pnb__buf *out, uint64_t x)
{
    put_u32(out, 8);
    put_u32(out, (uint32_t)(x >> 32));
    put_u32(out, (uint32_t)x);
}

/* ---- writing ---- */

void pnb__pgcopy_begin(pnb__buf *out)
{
    pnb__buf_append(out, signature, sizeof signature);
    put_u32(out, 0); /* flags */
    put_u32(out, 0); /* no extension */
}

void pnb__pgcopy_row(pnb__buf *out, size_t n_fields)
{
    put_u16(out, n_fields);
}

void pnb__pgcopy_end(pnb__buf *out)
{
    put_u16(out, 0xffff);
}

void pnb__pgcopy_text(pnb__buf *out, const char *text)
{
    if (text == NULL) {
        put_u32(out, UINT32_MAX);
        return;
    }
    pnb__pgcopy_bytes(out, text, strlen(text));
}

void pnb__pgcopy_bytes(pnb__buf *out, const void *bytes, size_t n)
{
    put_u32(out, (uint32_t)n);
    pnb__buf_append(out, bytes, n);
}

void pnb__pgcopy_int(pnb__buf *out, int64_t value)
{
    put_u64(out, (uint64_t)value);
}

void pnb__pgcopy_double(pnb__buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(out, bits);
}

void pnb__pgcopy_float(pnb__buf *out, float value)
{
    put_u32(out, 4);
    put_u32(out, bits_of(value));
}

void pnb__pgcopy_reals(pnb__buf *out, const float *x, size_t n)
{
    unsigned char piece[PIECE][8];
    put_u32(out, (uint32_t)(ARRAY_HEAD_BYTES + 8 * n));
    const uint32_t head[] = {1, 0, REAL_OID, (uint32_t)n, 1}; /* dimensions, nulls, type, n, from */
    for (size_t i = 0; i < PNB_COUNT(head); i++)
        put_u32(out, head[i]);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t m = PNB_MIN((size_t)PIECE, n - at);
        for (size_t i = 0; i < m; i++) {
            write_u32(piece[i], 4);
            write_u32(piece[i] + 4, bits_of(x[at + i]));
        }
        pnb__buf_append(out, piece, m * sizeof piece[0]);
    }
}

void pnb__pgcopy_vector(pnb__buf *out, const float *x, size_t n)
{
    put_u32(out, (uint32_t)(4 + 4 * n));
    put_u16(out, n);
    put_u16(out, 0); /* not used */
    for (size_t i = 0; i < n; i++)
        put_u32(out, bits_of(x[i]));
}

/* ---- reading ---- */

static pnb_status take(pnb__pgcopy_reader *r, size_t n, const unsigned char **out, pnb_error *err)
{
    if ((size_t)(r->end - r->at) < n)
        return pnb__fail(err, PNB_FORMAT, "Postgres sent a row that ends early");
    *out = r->at;
    r->at += n;
    return PNB_OK;
}

/* The bytes of a field that has to have n of them. */
static pnb_status take_field(pnb__pgcopy_reader *r, size_t n, const unsigned char **out,
                             pnb_error *err)
{
    const unsigned char *head = NULL;
    pnb_status status = take(r, 4, &head, err);
    if (status == PNB_OK && read_u32(head) != n)
        status =
            pnb__fail(err, PNB_FORMAT, "Postgres sent a field of %d bytes where %zu were expected",
                      (int)read_u32(head), n);
    return status == PNB_OK ? take(r, n, out, err) : status;
}

pnb_status pnb__pgcopy_skip_head(pnb__pgcopy_reader *r, pnb_error *err)
{
    const unsigned char *head = NULL, *extension = NULL;
    pnb_status status = take(r, HEAD_BYTES, &head, err);
    if (status != PNB_OK)
        return status;
    if (memcmp(head, signature, sizeof signature) != 0)
        return pnb__fail(err, PNB_FORMAT, "what Postgres sent is no binary COPY");
    return take(r, read_u32(head + 15), &extension, err);
}

pnb_status pnb__pgcopy_next(pnb__pgcopy_reader *r, size_t n_fields, bool *is_end, pnb_error *err)
{
    const unsigned char *head = NULL;
    pnb_status status = take(r, 2, &head, err);
    if (status != PNB_OK)
        return status;
    size_t n = (size_t)head[0] << 8 | head[1];
    *is_end = n == 0xffff;
    if (!*is_end && n != n_fields)
        return pnb__fail(err, PNB_FORMAT, "Postgres sent a row of %zu fields, %zu were asked for",
                         n, n_fields);
    return PNB_OK;
}

pnb_status pnb__pgcopy_get_int(pnb__pgcopy_reader *r, int64_t *out, pnb_error *err)
{
    const unsigned char *bytes = NULL;
    pnb_status status = take_field(r, 8, &bytes, err);
    if (status == PNB_OK)
        *out = (int64_t)((uint64_t)read_u32(bytes) << 32 | read_u32(bytes + 4));
    return status;
}

static float float_at(const unsigned char *bytes)
{
    uint32_t bits = read_u32(bytes);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

pnb_status pnb__pgcopy_get_float(pnb__pgcopy_reader *r, float *out, pnb_error *err)
{
    const unsigned char *bytes = NULL;
    pnb_status status = take_field(r, 4, &bytes, err);
    if (status == PNB_OK)
        *out = float_at(bytes);
    return status;
}

pnb_status pnb__pgcopy_get_reals(pnb__pgcopy_reader *r, float *out, size_t n, pnb_error *err)
{
    const unsigned char *bytes = NULL;
    pnb_status status = take_field(r, ARRAY_HEAD_BYTES + 8 * n, &bytes, err);
    if (status != PNB_OK)
        return status;
    if (read_u32(bytes) != 1 || read_u32(bytes + 8) != REAL_OID || read_u32(bytes + 12) != n)
        return pnb__fail(err, PNB_FORMAT, "Postgres sent an array that is no real[%zu]", n);
    bytes += ARRAY_HEAD_BYTES;
    for (size_t i = 0; i < n; i++, bytes += 8) {
        if (read_u32(bytes) != 4)
            return pnb__fail(err, PNB_FORMAT, "Postgres sent a null in an embedding");
        out[i] = float_at(bytes + 4);
    }
    return PNB_OK;
}
