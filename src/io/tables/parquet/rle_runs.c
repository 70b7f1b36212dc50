/* The RLE hybrid of Parquet (apache/parquet-format, Encodings.md): behind `count << 1` one value in
 * whole bytes that repeats, behind `groups << 1 | 1` groups of eight values, packed from the lowest
 * bit on. A run may be empty; many of these in a row are no data. */
#include "io/tables/parquet/rle_runs.h"

enum { MOST_EMPTY = 64 };

static bool begin_run(pnb__runs *r)
{
    uint64_t head = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (r->at == r->end || shift > 28)
            return false;
        head |= (uint64_t)(*r->at & 0x7F) << shift;
        if ((*r->at++ & 0x80) == 0)
            break;
    }
    r->is_packed = (head & 1) != 0;
    r->left = r->is_packed ? (head >> 1) * 8 : head >> 1;
    r->bits = r->n_bits = 0;
    r->value = 0;
    for (unsigned i = 0; !r->is_packed && i < (r->width + 7) / 8; i++) {
        if (r->at == r->end)
            return false;
        r->value |= (uint32_t)*r->at++ << (8 * i);
    }
    return r->left > 0 || !r->is_packed;
}

bool pnb__runs_next(pnb__runs *r, uint32_t *out)
{
    *out = 0;
    if (r->width == 0)
        return true;
    for (int empty = 0; r->left == 0; empty++)
        if (empty > MOST_EMPTY || !begin_run(r))
            return false;
    r->left--;
    if (!r->is_packed) {
        *out = r->value;
        return true;
    }
    while (r->n_bits < r->width) {
        if (r->at == r->end)
            return false;
        r->bits |= (uint64_t)*r->at++ << r->n_bits;
        r->n_bits += 8;
    }
    *out = (uint32_t)(r->bits & (((uint64_t)1 << r->width) - 1));
    r->bits >>= r->width;
    r->n_bits -= r->width;
    return true;
}
