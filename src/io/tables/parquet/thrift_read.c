/* Thrift's compact protocol (thrift/doc/specs/thrift-compact-protocol.md): numbers as zigzag
 * varints, fields by the distance of their numbers, lists with their size in front. Structs in
 * structs are followed to a depth that no file of ours has. */
#include "io/tables/parquet/thrift_read.h"

enum { MAX_DEPTH = 32 };

static unsigned take_byte(pnb__thrift *t)
{
    if (t->failed || t->at == t->end) {
        t->failed = true;
        return 0;
    }
    return *t->at++;
}

uint64_t pnb__thrift_varint(pnb__thrift *t)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned byte = take_byte(t);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0)
            return t->failed ? 0 : value;
    }
    t->failed = true;
    return 0;
}

int64_t pnb__thrift_zigzag(pnb__thrift *t)
{
    uint64_t value = pnb__thrift_varint(t);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void pass(pnb__thrift *t, uint64_t n)
{
    if (t->failed || n > (uint64_t)(t->end - t->at))
        t->failed = true;
    else
        t->at += n;
}

bool pnb__thrift_next(pnb__thrift *t, int *last, pnb__thrift_field *out)
{
    unsigned head = take_byte(t);
    *out = (pnb__thrift_field){0, (int)(head & 0x0F)};
    if (t->failed || out->type == 0)
        return false;
    int64_t number = head >> 4 != 0 ? *last + (int)(head >> 4) : pnb__thrift_zigzag(t);
    if (number < INT16_MIN || number > INT16_MAX || out->type > PNB__THRIFT_STRUCT)
        t->failed = true;
    *last = out->number = (int)number;
    return !t->failed;
}

int64_t pnb__thrift_int(pnb__thrift *t, pnb__thrift_field f)
{
    if (f.type == PNB__THRIFT_TRUE || f.type == PNB__THRIFT_FALSE)
        return f.type == PNB__THRIFT_TRUE;
    if (f.type == PNB__THRIFT_I16 || f.type == PNB__THRIFT_I32 || f.type == PNB__THRIFT_I64)
        return pnb__thrift_zigzag(t);
    pnb__thrift_skip(t, f.type);
    return 0;
}

const char *pnb__thrift_bytes(pnb__thrift *t, pnb__thrift_field f, size_t *n)
{
    *n = 0;
    if (f.type != PNB__THRIFT_BINARY) {
        pnb__thrift_skip(t, f.type);
        return "";
    }
    uint64_t size = pnb__thrift_varint(t);
    const char *at = (const char *)t->at;
    pass(t, size);
    if (t->failed)
        return "";
    *n = (size_t)size;
    return at;
}

size_t pnb__thrift_list(pnb__thrift *t, pnb__thrift_field f, int *type)
{
    *type = 0;
    if (f.type != PNB__THRIFT_LIST && f.type != PNB__THRIFT_SET) {
        pnb__thrift_skip(t, f.type);
        return 0;
    }
    unsigned head = take_byte(t);
    uint64_t n = head >> 4 < 15 ? head >> 4 : pnb__thrift_varint(t);
    *type = (int)(head & 0x0F);
    if (n > (uint64_t)(t->end - t->at))
        t->failed = true;
    return t->failed ? 0 : (size_t)n;
}

static void skip_at(pnb__thrift *t, int type, int depth);

static void skip_items(pnb__thrift *t, uint64_t n, int type, int depth)
{
    for (uint64_t i = 0; i < n && !t->failed; i++)
        if (type == PNB__THRIFT_TRUE || type == PNB__THRIFT_FALSE)
            (void)take_byte(t); /* a flag in a list has a byte, in a struct none */
        else
            skip_at(t, type, depth);
}

static void skip_map(pnb__thrift *t, int depth)
{
    uint64_t n = pnb__thrift_varint(t);
    unsigned types = n > 0 ? take_byte(t) : 0;
    if (n > (uint64_t)(t->end - t->at))
        t->failed = true;
    for (uint64_t i = 0; i < n && !t->failed; i++) {
        skip_items(t, 1, (int)(types >> 4), depth);
        skip_items(t, 1, (int)(types & 0x0F), depth);
    }
}

static void skip_struct(pnb__thrift *t, int depth)
{
    pnb__thrift_field f;
    for (int last = 0; pnb__thrift_next(t, &last, &f);)
        skip_at(t, f.type, depth);
}

static void skip_at(pnb__thrift *t, int type, int depth)
{
    pnb__thrift_field list = {0, type};
    int of = 0;
    if (depth >= MAX_DEPTH) {
        t->failed = true;
        return;
    }
    switch (type) {
    case PNB__THRIFT_TRUE:
    case PNB__THRIFT_FALSE:
        return;
    case PNB__THRIFT_I8:
        pass(t, 1);
        return;
    case PNB__THRIFT_I16:
    case PNB__THRIFT_I32:
    case PNB__THRIFT_I64:
        (void)pnb__thrift_varint(t);
        return;
    case PNB__THRIFT_DOUBLE:
        pass(t, 8);
        return;
    case PNB__THRIFT_BINARY:
        pass(t, pnb__thrift_varint(t));
        return;
    case PNB__THRIFT_LIST:
    case PNB__THRIFT_SET: {
        size_t n = pnb__thrift_list(t, list, &of);
        skip_items(t, n, of, depth + 1);
        return;
    }
    case PNB__THRIFT_MAP:
        skip_map(t, depth + 1);
        return;
    case PNB__THRIFT_STRUCT:
        skip_struct(t, depth + 1);
        return;
    default:
        t->failed = true;
    }
}

void pnb__thrift_skip(pnb__thrift *t, int type)
{
    skip_at(t, type, 0);
}
