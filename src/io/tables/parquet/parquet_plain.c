/* Encodings of Parquet's values (apache/parquet-format, Encodings.md) but for dictionaries and
 * runs, which rle_runs.c reads.
 *
 * DELTA_BINARY_PACKED has blocks of differences, each with its least one in front and its
 * miniblocks packed by a number of bits of their own. DELTA_LENGTH_BYTE_ARRAY has lengths in this
 * way, then all bytes; DELTA_BYTE_ARRAY has before both how many bytes a value keeps of the one
 * before. BYTE_STREAM_SPLIT has the first bytes of all values, then the second ones, and so on.
 * They are made PLAIN in memory of their own, measured before it is asked for: whoever walks values
 * need not know of them. */
#include "io/tables/parquet/parquet_plain.h"

#include <string.h>

#include "io/tables/parquet/thrift_read.h"
#include "penumbra/dtype.h"

enum { DELTA_BINARY_PACKED = 5, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT = 9 };
enum { LENGTH_BYTES = 4, MINIBLOCK_STEP = 32, MAX_WIDTH = 64 };

const char *pnb__parquet_encoding_name(int encoding)
{
    static const char *const names[] = {"PLAIN",
                                        NULL,
                                        "PLAIN_DICTIONARY",
                                        "RLE",
                                        "BIT_PACKED",
                                        "DELTA_BINARY_PACKED",
                                        "DELTA_LENGTH_BYTE_ARRAY",
                                        "DELTA_BYTE_ARRAY",
                                        "RLE_DICTIONARY",
                                        "BYTE_STREAM_SPLIT"};
    bool known = encoding >= 0 && (size_t)encoding < PNB_COUNT(names) && names[encoding] != NULL;
    return known ? names[encoding] : "of an unknown number";
}

/* ---- PLAIN ---- */

uint64_t pnb__parquet_little(const unsigned char *at, size_t n)
{
    uint64_t value = 0;
    for (size_t i = n; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

size_t pnb__parquet_value_bytes(const pnb__parquet_leaf *leaf)
{
    static const size_t sizes[] = {0, 4, 8, 12, 4, 8, 0, 0};
    return leaf->type == PNB__STORED_FIXED ? (size_t)PNB_MAX(leaf->type_length, 0)
                                           : sizes[leaf->type];
}

static double real_of(const pnb__parquet_leaf *leaf, uint64_t bits)
{
    const uint16_t half = (uint16_t)bits;
    const uint32_t single = (uint32_t)bits;
    float narrow = 0;
    double real = 0;
    if (leaf->type == PNB__STORED_DOUBLE) {
        memcpy(&real, &bits, sizeof real);
        return real;
    }
    if (leaf->type == PNB__STORED_FLOAT)
        memcpy(&narrow, &single, sizeof narrow);
    else
        pnb_f16_to_f32(&half, &narrow, 1);
    return (double)narrow;
}

static int64_t integer_of(const pnb__parquet_leaf *leaf, uint64_t bits)
{
    bool is_signed = leaf->type == PNB__STORED_INT32 && leaf->meaning != PNB__PARQUET_UNSIGNED;
    return is_signed ? (int64_t)(int32_t)(uint32_t)bits : (int64_t)bits;
}

bool pnb__parquet_take_plain(const pnb__parquet_leaf *leaf, const unsigned char **at,
                             const unsigned char *end, pnb__parquet_value *out)
{
    size_t n = pnb__parquet_value_bytes(leaf), left = (size_t)(end - *at);
    if (leaf->is_bytes) {
        if (left < LENGTH_BYTES)
            return false;
        n = (size_t)pnb__parquet_little(*at, LENGTH_BYTES);
        *at += LENGTH_BYTES;
        left -= LENGTH_BYTES;
    }
    if (n > left)
        return false;
    *out = (pnb__parquet_value){.kind = PNB__PARQUET_BYTES, .bytes = *at, .n_bytes = n};
    if (leaf->type == PNB__STORED_INT32 || leaf->type == PNB__STORED_INT64) {
        out->kind = PNB__PARQUET_INT;
        out->integer = integer_of(leaf, pnb__parquet_little(*at, n));
    } else if (leaf->type == PNB__STORED_FLOAT || leaf->type == PNB__STORED_DOUBLE ||
               leaf->meaning == PNB__PARQUET_HALF) {
        out->kind = PNB__PARQUET_REAL;
        out->real = real_of(leaf, pnb__parquet_little(*at, n));
    }
    *at += n;
    return true;
}

/* ---- differences ---- */

/* Numbers, one after the other; their varints are those of Thrift. */
typedef struct deltas {
    pnb__thrift t; /* at the bits of the miniblock at hand */
    const unsigned char *widths;
    uint64_t n_miniblocks, n_in_miniblock, miniblock, i; /* i: the difference at hand */
    uint64_t n_left, value, least;
} deltas;

/* No bytes at all are no numbers. */
static bool begin_deltas(deltas *d, const unsigned char *at, const unsigned char *end,
                         size_t n_most)
{
    *d = (deltas){.t = {at, end, false}};
    if (at == end)
        return true;
    uint64_t n_block = pnb__thrift_varint(&d->t);
    d->n_miniblocks = pnb__thrift_varint(&d->t);
    d->n_left = pnb__thrift_varint(&d->t);
    d->value = (uint64_t)pnb__thrift_zigzag(&d->t);
    if (d->t.failed || n_block == 0 || n_block > INT32_MAX || d->n_miniblocks == 0 ||
        n_block % d->n_miniblocks != 0 || d->n_left > n_most)
        return false;
    d->n_in_miniblock = d->i = n_block / d->n_miniblocks;
    d->miniblock = d->n_miniblocks;
    return d->n_in_miniblock % MINIBLOCK_STEP == 0;
}

static unsigned width_of(const deltas *d)
{
    return d->widths != NULL ? d->widths[d->miniblock] : 0;
}

static uint64_t bytes_of_miniblock(const deltas *d)
{
    return d->n_in_miniblock / 8 * width_of(d);
}

static bool begin_miniblock(deltas *d)
{
    d->t.at += bytes_of_miniblock(d); /* its last difference was read */
    d->i = 0;
    if (d->widths == NULL || ++d->miniblock == d->n_miniblocks) {
        d->least = (uint64_t)pnb__thrift_zigzag(&d->t);
        if (d->t.failed || d->n_miniblocks > (uint64_t)(d->t.end - d->t.at))
            return false;
        d->widths = d->t.at;
        d->t.at += d->n_miniblocks;
        d->miniblock = 0;
    }
    return width_of(d) <= MAX_WIDTH;
}

static bool take_difference(deltas *d, uint64_t *out)
{
    unsigned width = width_of(d);
    uint64_t at = d->i++ * width;
    *out = 0;
    if ((at + width + 7) / 8 > (uint64_t)(d->t.end - d->t.at))
        return false;
    for (unsigned had = 0, n; had < width; had += n, at += n) {
        n = PNB_MIN(8 - (unsigned)(at % 8), width - had);
        uint64_t bits = (uint64_t)d->t.at[at / 8] >> (at % 8) & (((uint64_t)1 << n) - 1);
        *out |= bits << had;
    }
    return true;
}

/* Sums wrap: the difference of two numbers may have a bit more than they have. */
static bool next_delta(deltas *d, uint64_t *out)
{
    uint64_t difference = 0;
    if (d->n_left == 0)
        return false;
    *out = d->value;
    if (--d->n_left == 0)
        return true;
    if (d->i == d->n_in_miniblock && !begin_miniblock(d))
        return false;
    if (!take_difference(d, &difference))
        return false;
    d->value += d->least + difference;
    return true;
}

/* Where what follows all numbers begins: the last miniblock is whole. NULL: they are damaged. */
static const unsigned char *end_of_deltas(deltas d)
{
    uint64_t value;
    while (d.n_left > 0)
        if (!next_delta(&d, &value))
            return NULL;
    return d.t.at + PNB_MIN(bytes_of_miniblock(&d), (uint64_t)(d.t.end - d.t.at));
}

static pnb_status give_room(unsigned char **out, size_t *n, uint64_t n_bytes)
{
    if (n_bytes > PNB__PARQUET_MOST_PAGE)
        return PNB_LIMIT;
    *n = (size_t)n_bytes;
    *out = pnb__alloc(*n + 1);
    return *out != NULL ? PNB_OK : PNB_NOMEM;
}

static pnb_status make_integers(const pnb__parquet_coded *from, unsigned char **out, size_t *n)
{
    size_t size = pnb__parquet_value_bytes(from->leaf);
    uint64_t value = 0;
    deltas d;
    if (!begin_deltas(&d, from->at, from->end, from->n_most))
        return PNB_FORMAT;
    pnb_status status = give_room(out, n, d.n_left * size);
    for (unsigned char *to = *out; status == PNB_OK && d.n_left > 0; to += size) {
        status = next_delta(&d, &value) ? PNB_OK : PNB_FORMAT;
        for (size_t k = 0; k < size; k++)
            to[k] = (unsigned char)(value >> (8 * k));
    }
    return status;
}

/* ---- bytes ---- */

/* Values of bytes: how many each keeps of the one before, how many are its own, and those. */
typedef struct pieces {
    deltas kept, own;
    bool has_kept;
    const unsigned char *at, *end;
} pieces;

static bool begin_pieces(pieces *p, const pnb__parquet_coded *from)
{
    const unsigned char *at = from->at;
    *p = (pieces){.has_kept = from->encoding == DELTA_BYTE_ARRAY, .end = from->end};
    if (p->has_kept) {
        if (!begin_deltas(&p->kept, at, from->end, from->n_most))
            return false;
        at = end_of_deltas(p->kept);
    }
    if (at == NULL || !begin_deltas(&p->own, at, from->end, from->n_most))
        return false;
    p->at = end_of_deltas(p->own);
    return p->at != NULL && (!p->has_kept || p->kept.n_left == p->own.n_left);
}

/* Their PLAIN bytes to `to`, where that is not NULL, and how many they are. */
static pnb_status walk_pieces(pieces p, const pnb__parquet_leaf *leaf, unsigned char *to,
                              uint64_t *n)
{
    const size_t n_head = leaf->is_bytes ? LENGTH_BYTES : 0;
    uint64_t kept = 0, own = 0, last = 0, wanted = pnb__parquet_value_bytes(leaf);
    for (*n = 0; p.own.n_left > 0; *n += n_head + last) {
        if (!next_delta(&p.own, &own) || (p.has_kept && !next_delta(&p.kept, &kept)) ||
            kept > last || own > (uint64_t)(p.end - p.at) ||
            (!leaf->is_bytes && kept + own != wanted))
            return PNB_FORMAT;
        if (to != NULL) {
            unsigned char *value = to + *n + n_head;
            for (size_t k = 0; k < n_head; k++)
                to[*n + k] = (unsigned char)((kept + own) >> (8 * k));
            if (kept > 0)
                memcpy(value, to + *n - last, (size_t)kept);
            memcpy(value + kept, p.at, (size_t)own);
        }
        p.at += own;
        last = kept + own;
    }
    return PNB_OK;
}

static pnb_status make_bytes(const pnb__parquet_coded *from, unsigned char **out, size_t *n)
{
    uint64_t n_bytes = 0;
    pieces p;
    if (!begin_pieces(&p, from))
        return PNB_FORMAT;
    pnb_status status = walk_pieces(p, from->leaf, NULL, &n_bytes);
    if (status == PNB_OK)
        status = give_room(out, n, n_bytes);
    return status == PNB_OK ? walk_pieces(p, from->leaf, *out, &n_bytes) : status;
}

/* ---- streams ---- */

static pnb_status make_joined(const pnb__parquet_coded *from, unsigned char **out, size_t *n)
{
    size_t size = pnb__parquet_value_bytes(from->leaf), n_bytes = (size_t)(from->end - from->at);
    size_t n_values = size > 0 ? n_bytes / size : 0;
    if (n_values * size != n_bytes || n_values > from->n_most)
        return PNB_FORMAT;
    pnb_status status = give_room(out, n, n_bytes);
    for (size_t k = 0; status == PNB_OK && k < size; k++)
        for (size_t i = 0; i < n_values; i++)
            (*out)[i * size + k] = from->at[k * n_values + i];
    return status;
}

pnb_status pnb__parquet_make_plain(const pnb__parquet_coded *from, unsigned char **out, size_t *n)
{
    const int type = from->leaf->type;
    const bool is_integer = type == PNB__STORED_INT32 || type == PNB__STORED_INT64;
    const bool is_real = type == PNB__STORED_FLOAT || type == PNB__STORED_DOUBLE;
    const bool is_fixed = type == PNB__STORED_FIXED;
    pnb_status status = PNB_UNSUPPORTED;
    unsigned char *made = NULL;
    *n = 0;
    if (from->encoding == DELTA_BINARY_PACKED && is_integer)
        status = make_integers(from, &made, n);
    else if ((from->encoding == DELTA_LENGTH_BYTE_ARRAY && from->leaf->is_bytes) ||
             (from->encoding == DELTA_BYTE_ARRAY && (from->leaf->is_bytes || is_fixed)))
        status = make_bytes(from, &made, n);
    else if (from->encoding == BYTE_STREAM_SPLIT && (is_integer || is_real || is_fixed))
        status = make_joined(from, &made, n);
    if (status != PNB_OK) {
        pnb__free(made);
        return status;
    }
    *out = made;
    return PNB_OK;
}
