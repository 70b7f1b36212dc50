/* Reading tar archives from a map, member by member, with byte positions.
 *
 * Blocks of 512 bytes; a header, then the data padded to a block. Understood: old tar and ustar
 * (name prefix), pax records `path` and `size`, GNU long names ('L') and base-256 numbers. Global
 * pax headers and long link names are passed over. Writing is in tar_write.c. */
#include "io/tables/tar.h"

#include <stdlib.h>
#include <string.h>

#include "io/foreign.h"
#include "io/unpack.h"

enum { BLOCK = 512 };

/* Offsets and widths of the header's fields. */
enum {
    NAME_AT = 0,
    NAME_SIZE = 100,
    SIZE_AT = 124,
    SIZE_SIZE = 12,
    SUM_AT = 148,
    SUM_SIZE = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_SIZE = 155
};

#define MAX_UNPACKED ((uint64_t)1 << 40) /* of a packed archive: a terabyte */
#define MAX_NAME_BYTES ((uint64_t)64 * 1024)
#define MAX_PAX_BYTES ((uint64_t)1024 * 1024)

/* What extended headers said about the member that follows. */
typedef struct extension {
    bool has_name, has_size;
    uint64_t size;
} extension;

/* ---- opening ---- */

pnb_status pnb__tar_open_bytes(pnb__tar *t, const void *bytes, size_t n, const char *where,
                               pnb_error *err)
{
    const unsigned char *p = bytes;
    *t = (pnb__tar){.bytes = p, .n_bytes = n};
    if (n > 0 && p == NULL)
        return pnb__fail(err, PNB_ARG, "%s: no bytes", where);
    if ((n >= 2 && p[0] == 0x1f && p[1] == 0x8b) || (n >= 3 && memcmp(p, "BZh", 3) == 0) ||
        (n >= 4 && memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s is compressed; decompress it first (gunzip, bunzip2, unzstd)", where);
    return pnb__copy_text(&t->where, where, err);
}

pnb_status pnb__tar_open(pnb__tar *t, const char *path, pnb_error *err)
{
    pnb__map map;
    *t = (pnb__tar){0};
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    if (pnb__is_packed(map.data, map.size))
        status = pnb__unpack_map(&map, path, MAX_UNPACKED, err);
    if (status == PNB_OK)
        status = pnb__tar_open_bytes(t, map.data, map.size, path, err);
    t->map = map;
    if (status != PNB_OK)
        pnb__tar_close(t);
    return status;
}

void pnb__tar_close(pnb__tar *t)
{
    pnb__map_close(&t->map);
    pnb__buf_reset(&t->name);
    pnb__free(t->where);
    *t = (pnb__tar){0};
}

pnb_status pnb__tar_seek(pnb__tar *t, uint64_t header_offset, pnb_error *err)
{
    if (header_offset > t->n_bytes || header_offset % BLOCK != 0)
        return pnb__fail(err, PNB_ARG, "%s: no header can be at byte %llu of %zu", t->where,
                         (unsigned long long)header_offset, t->n_bytes);
    t->position = header_offset;
    return PNB_OK;
}

/* ---- header fields ---- */

static pnb_status bad_header(const pnb__tar *t, uint64_t at, const char *problem, pnb_error *err)
{
    return pnb__fail(err, PNB_FORMAT, "%s: header at byte %llu: %s", t->where,
                     (unsigned long long)at, problem);
}

/* Octal text ended by NUL or space, or base-256 when the top bit is set. */
static bool read_number(const unsigned char *p, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;
    if ((p[0] & 0x80) != 0) {
        if (p[0] != 0x80)
            return false; /* negative, or larger than 64 bits below */
        for (i = 1; i < n; i++) {
            if (value > UINT64_MAX >> 8)
                return false;
            value = value << 8 | p[i];
        }
        *out = value;
        return true;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(p[i] - '0'); /* at most 12 digits: 36 bits */
    if (i < n && p[i] != '\0' && p[i] != ' ')
        return false;
    *out = value;
    return true;
}

static bool is_zero_block(const unsigned char *p)
{
    for (int i = 0; i < BLOCK; i++) {
        if (p[i] != 0)
            return false;
    }
    return true;
}

/* Sum of all bytes with the sum field as spaces; old programs added signed bytes. */
static bool is_sum_right(const unsigned char *p)
{
    uint64_t found;
    uint32_t plain = 0, with_sign = 0;
    if (!read_number(p + SUM_AT, SUM_SIZE, &found))
        return false;
    for (int i = 0; i < BLOCK; i++) {
        unsigned char c = i >= SUM_AT && i < SUM_AT + SUM_SIZE ? ' ' : p[i];
        plain += c;
        with_sign += c < 128 ? c : c + 0xffffff00u; /* modulo 2^32, as a signed sum */
    }
    return found == plain || found == with_sign;
}

static size_t field_length(const unsigned char *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] != 0)
        i++;
    return i;
}

static void read_name(pnb__tar *t, const unsigned char *p)
{
    t->name.size = 0;
    if (memcmp(p + MAGIC_AT, "ustar", 6) == 0 && p[PREFIX_AT] != 0) {
        pnb__buf_append(&t->name, p + PREFIX_AT, field_length(p + PREFIX_AT, PREFIX_SIZE));
        pnb__buf_putc(&t->name, '/');
    }
    pnb__buf_append(&t->name, p + NAME_AT, field_length(p + NAME_AT, NAME_SIZE));
}

/* ---- extended headers ---- */

/* "27 path=some/longer/name\n": takes one record off the front. */
static bool take_record(const char **p, size_t *n, const char **key, size_t *key_n,
                        const char **value, size_t *value_n)
{
    size_t length = 0, i = 0;
    for (; i < *n && i < 10 && (*p)[i] >= '0' && (*p)[i] <= '9'; i++)
        length = 10 * length + (size_t)((*p)[i] - '0');
    if (i == 0 || i >= *n || (*p)[i] != ' ' || length > *n || length < i + 3 ||
        (*p)[length - 1] != '\n')
        return false;
    *key = *p + i + 1;
    const char *equals = memchr(*key, '=', length - i - 2);
    if (equals == NULL)
        return false;
    *key_n = (size_t)(equals - *key);
    *value = equals + 1;
    *value_n = (size_t)(*p + length - 1 - *value);
    *p += length;
    *n -= length;
    return true;
}

static bool is_key(const char *key, size_t n, const char *wanted)
{
    return n == strlen(wanted) && memcmp(key, wanted, n) == 0;
}

static bool read_decimal(const char *p, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || value > (UINT64_MAX - 9) / 10)
            return false;
        value = 10 * value + (uint64_t)(p[i] - '0');
    }
    *out = value;
    return n > 0;
}

static pnb_status read_pax(pnb__tar *t, uint64_t at, const unsigned char *data, uint64_t size,
                           extension *ext, pnb_error *err)
{
    const char *p = (const char *)data, *key, *value;
    size_t n = (size_t)size, key_n, value_n;
    while (n > 0) {
        if (!take_record(&p, &n, &key, &key_n, &value, &value_n))
            return bad_header(t, at, "broken pax record", err);
        if (key_n >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
            return pnb__fail(err, PNB_UNSUPPORTED, "%s: sparse members are not supported",
                             t->where);
        if (is_key(key, key_n, "path")) {
            if (memchr(value, 0, value_n) != NULL || value_n == 0)
                return bad_header(t, at, "pax path is empty or holds a zero byte", err);
            t->name.size = 0;
            pnb__buf_append(&t->name, value, value_n);
            ext->has_name = true;
        } else if (is_key(key, key_n, "size")) {
            if (!read_decimal(value, value_n, &ext->size))
                return bad_header(t, at, "pax size is not a number", err);
            ext->has_size = true;
        }
    }
    return PNB_OK;
}

static pnb_status read_extension(pnb__tar *t, char type, const pnb__tar_member *m, uint64_t at,
                                 extension *ext, pnb_error *err)
{
    if (type == 'x')
        return m->size > MAX_PAX_BYTES ? pnb__fail(err, PNB_LIMIT, "%s: pax header of %llu bytes",
                                                   t->where, (unsigned long long)m->size)
                                       : read_pax(t, at, m->data, m->size, ext, err);
    if (type == 'L') {
        if (m->size > MAX_NAME_BYTES)
            return pnb__fail(err, PNB_LIMIT, "%s: member name of %llu bytes", t->where,
                             (unsigned long long)m->size);
        t->name.size = 0;
        if (m->size > 0)
            pnb__buf_append(&t->name, m->data, field_length(m->data, (size_t)m->size));
        ext->has_name = true;
    }
    return PNB_OK; /* 'g', 'K': nothing a data loader needs */
}

/* ---- members ---- */

/* A header that speaks about the next one: pax, GNU long name and long link. */
static bool is_extension(char type)
{
    return type == 'x' || type == 'g' || type == 'L' || type == 'K';
}

/* One header block and its data range; *type is '\0' at the end of the archive. */
static pnb_status read_block(pnb__tar *t, uint64_t at, const extension *ext, pnb__tar_member *m,
                             char *type, pnb_error *err)
{
    *type = '\0';
    if (at == t->n_bytes)
        return PNB_OK;
    const unsigned char *p = t->bytes + at;
    pnb_status status = at == 0 ? pnb__refuse_stand_in(t->where, p, t->n_bytes, err) : PNB_OK;
    if (status != PNB_OK)
        return status;
    if (t->n_bytes - at < BLOCK)
        return bad_header(t, at, "the archive is truncated", err);
    if (is_zero_block(p))
        return PNB_OK;
    if (!is_sum_right(p))
        return bad_header(t, at, "wrong checksum; not a tar archive, or damaged", err);
    if (!read_number(p + SIZE_AT, SIZE_SIZE, &m->size))
        return bad_header(t, at, "size is not a number", err);
    *type = p[TYPE_AT] == '\0' || p[TYPE_AT] == '7' ? '0' : (char)p[TYPE_AT];
    if (ext->has_size && !is_extension(*type))
        m->size = ext->size;
    if (*type >= '1' && *type <= '6')
        m->size = 0; /* links, devices and folders have no data whatever the field says */
    m->data_offset = at + BLOCK;
    if (m->size > t->n_bytes - m->data_offset)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: member at byte %llu has %llu bytes, %llu are left; the archive is "
                         "truncated",
                         t->where, (unsigned long long)at, (unsigned long long)m->size,
                         (unsigned long long)(t->n_bytes - m->data_offset));
    m->data = m->size > 0 ? t->bytes + m->data_offset : NULL;
    return PNB_OK;
}

/* Where the next header is; a last member may lack its padding. */
static uint64_t after(const pnb__tar *t, const pnb__tar_member *m)
{
    uint64_t end = m->data_offset + m->size;
    uint64_t padded = end + (BLOCK - end % BLOCK) % BLOCK;
    return PNB_MIN(padded, (uint64_t)t->n_bytes);
}

pnb_status pnb__tar_next(pnb__tar *t, pnb__tar_member *m, bool *more, pnb_error *err)
{
    extension ext = {0};
    pnb__tar_member found = {.header_offset = t->position};
    uint64_t at = t->position;
    char type = '\0';
    for (;;) {
        pnb_status status = read_block(t, at, &ext, &found, &type, err);
        if (status == PNB_OK && is_extension(type))
            status = read_extension(t, type, &found, at, &ext, err);
        if (status != PNB_OK)
            return status;
        if (!is_extension(type))
            break;
        at = after(t, &found);
    }
    *more = type != '\0';
    if (!*more)
        return at == found.header_offset ? PNB_OK
                                         : bad_header(t, at, "extended header without member", err);
    if (type == 'S')
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: sparse members are not supported", t->where);
    if (!ext.has_name)
        read_name(t, t->bytes + at);
    if (t->name.failed) {
        pnb__buf_reset(&t->name);
        return pnb__fail_nomem(err, NAME_SIZE);
    }
    found.name = t->name.data != NULL ? t->name.data : "";
    found.is_file = type == '0' && !(found.size == 0 && pnb__ends_with(found.name, "/"));
    t->position = after(t, &found);
    *m = found;
    return PNB_OK;
}
