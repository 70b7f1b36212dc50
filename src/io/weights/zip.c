/* Zip archives from memory (PKWARE APPNOTE 6.3, with zip64): the members that are stored plainly
 * are used where they lie, deflated ones are unpacked by zlib.
 *
 * The central directory is what counts; each local header must tell the same, or leave size and
 * checksum to a data descriptor as PyTorch's writer does. Members may not overlap each other or the
 * directory, so no archive can unfold to more than its bytes allow, and names are refused that
 * would lead out of a folder, although nothing is ever written to one. */
#include "io/weights/zip.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define END_BYTES ((size_t)22)
#define END64_BYTES ((size_t)56)
#define LOCATOR_BYTES ((size_t)20)
#define CENTRAL_BYTES ((size_t)46)
#define LOCAL_BYTES ((size_t)30)
#define MAX_EXPANSION ((size_t)64)
#define FLAG_ENCRYPTED 0x0001u
#define FLAG_DESCRIPTOR 0x0008u
#define FLAG_MASKED 0x2000u

typedef struct reader {
    const unsigned char *bytes;
    size_t n_bytes;
    const char *where;
    pnb__arena *arena;
    pnb_error *err;
} reader;

typedef struct directory {
    uint64_t n_members, n_bytes, at;
} directory;

static uint64_t number(const unsigned char *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static pnb_status bad(const reader *r, const char *problem)
{
    return pnb__fail(r->err, PNB_FORMAT, "%s: zip: %s", r->where, problem);
}

static pnb_status bad_member(const reader *r, const char *name, const char *problem)
{
    return pnb__fail(r->err, PNB_FORMAT, "%s: zip member \"%.100s\": %s", r->where, name, problem);
}

/* ---- finding the directory ---- */

/* The end record is last, behind it a comment of at most 65535 bytes that tells its own length. */
static const unsigned char *find_end(const reader *r)
{
    if (r->n_bytes < END_BYTES)
        return NULL;
    size_t furthest = PNB_MIN(r->n_bytes - END_BYTES, (size_t)0xFFFF);
    for (size_t back = 0; back <= furthest; back++) {
        const unsigned char *p = r->bytes + r->n_bytes - END_BYTES - back;
        if (memcmp(p, "PK\5\6", 4) == 0 && number(p + 20, 2) == back)
            return p;
    }
    return NULL;
}

static pnb_status read_end64(const reader *r, size_t end_at, directory *d)
{
    const unsigned char *p = end_at >= LOCATOR_BYTES ? r->bytes + end_at - LOCATOR_BYTES : NULL;
    if (p == NULL || memcmp(p, "PK\6\7", 4) != 0)
        return bad(r, "the zip64 end record is missing");
    uint64_t at = number(p + 8, 8);
    if (at > r->n_bytes || r->n_bytes - (size_t)at < END64_BYTES ||
        memcmp(r->bytes + at, "PK\6\6", 4) != 0)
        return bad(r, "the zip64 end record is not where its locator says");
    p = r->bytes + at;
    d->n_members = number(p + 32, 8);
    d->n_bytes = number(p + 40, 8);
    d->at = number(p + 48, 8);
    if (number(p + 16, 4) != 0 || number(p + 20, 4) != 0 || number(p + 24, 8) != d->n_members)
        return pnb__fail(r->err, PNB_UNSUPPORTED, "%s: zip: split over several disks", r->where);
    return PNB_OK;
}

static pnb_status read_end(const reader *r, directory *d)
{
    const unsigned char *p = find_end(r);
    if (p == NULL)
        return bad(r, "no end record; the file is truncated or not a zip archive");
    size_t end_at = (size_t)(p - r->bytes);
    d->n_members = number(p + 10, 2);
    d->n_bytes = number(p + 12, 4);
    d->at = number(p + 16, 4);
    bool is_64 = d->n_members == 0xFFFF || d->n_bytes == 0xFFFFFFFF || d->at == 0xFFFFFFFF;
    if (is_64) {
        pnb_status status = read_end64(r, end_at, d);
        if (status != PNB_OK)
            return status;
    } else if (number(p + 4, 2) != 0 || number(p + 6, 2) != 0 || number(p + 8, 2) != d->n_members) {
        return pnb__fail(r->err, PNB_UNSUPPORTED, "%s: zip: split over several disks", r->where);
    }
    if (d->at > end_at || d->n_bytes > end_at - d->at || d->n_members > d->n_bytes / CENTRAL_BYTES)
        return bad(r, "the directory lies outside the file; it is truncated or damaged");
    return PNB_OK;
}

/* ---- members ---- */

/* Replaces the sizes that are all ones by those of the zip64 extra field, in its fixed order. */
static bool widen(const unsigned char *extra, size_t n_extra, uint64_t *const fields[3])
{
    static const uint64_t none = 0xFFFFFFFF;
    bool is_needed = *fields[0] == none || *fields[1] == none || *fields[2] == none;
    while (is_needed && n_extra >= 4) {
        size_t id = (size_t)number(extra, 2), n = (size_t)number(extra + 2, 2);
        extra += 4, n_extra -= 4;
        if (n > n_extra)
            return false;
        if (id == 1) {
            for (size_t i = 0; i < 3; i++) {
                if (*fields[i] != none)
                    continue;
                if (n < 8)
                    return false;
                *fields[i] = number(extra, 8);
                extra += 8, n -= 8;
            }
            return true;
        }
        extra += n, n_extra -= n;
    }
    return !is_needed;
}

/* "a/b" is fine; nothing absolute, nothing with "..", no control characters or back-slashes. */
static bool is_safe_name(const char *name, size_t n)
{
    if (n == 0 || name[0] == '/' || !pnb__utf8_valid(name, n))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == '\\' || name[i] == ':')
            return false;
    for (size_t i = 0; i + 1 < n; i++) {
        bool at_start = i == 0 || name[i - 1] == '/';
        if (at_start && name[i] == '.' && name[i + 1] == '.' && (i + 2 == n || name[i + 2] == '/'))
            return false;
    }
    return true;
}

/* The local header repeats the central one, or leaves the numbers to a descriptor behind the data.
 * Sets where the data begins. */
static pnb_status check_local(const reader *r, const unsigned char *central, pnb__zip_member *m)
{
    if (m->header_at > r->n_bytes || r->n_bytes - m->header_at < LOCAL_BYTES ||
        memcmp(r->bytes + m->header_at, "PK\3\4", 4) != 0)
        return bad_member(r, m->name, "no local header where the directory says");
    const unsigned char *p = r->bytes + m->header_at;
    size_t n_name = (size_t)number(p + 26, 2), n_extra = (size_t)number(p + 28, 2);
    size_t left = r->n_bytes - m->header_at - LOCAL_BYTES;
    if (n_name + n_extra > left || m->n_stored > left - n_name - n_extra)
        return bad_member(r, m->name, "reaches beyond the file; it is truncated");
    if (n_name != strlen(m->name) || memcmp(p + LOCAL_BYTES, m->name, n_name) != 0)
        return bad_member(r, m->name, "its local header has another name");
    bool same_way = memcmp(p + 6, central + 8, 2) == 0 && memcmp(p + 8, central + 10, 2) == 0;
    uint64_t n_bytes = number(p + 22, 4), n_stored = number(p + 18, 4), unused = 0;
    bool is_open = widen(p + LOCAL_BYTES + n_name, n_extra,
                         (uint64_t *const[3]){&n_bytes, &n_stored, &unused});
    bool same = n_bytes == m->n_bytes && n_stored == m->n_stored && number(p + 14, 4) == m->crc;
    bool is_deferred = (number(p + 6, 2) & FLAG_DESCRIPTOR) != 0 && n_bytes == 0 && n_stored == 0 &&
                       number(p + 14, 4) == 0;
    if (!same_way || !is_open || !(same || is_deferred))
        return bad_member(r, m->name, "its local header contradicts the directory");
    m->data = p + LOCAL_BYTES + n_name + n_extra;
    return PNB_OK;
}

/* One entry of the directory; *n is how long it is. */
static pnb_status read_member(const reader *r, const unsigned char *p, size_t left,
                              pnb__zip_member *m, size_t *n)
{
    if (left < CENTRAL_BYTES || memcmp(p, "PK\1\2", 4) != 0)
        return bad(r, "the directory is damaged");
    unsigned flags = (unsigned)number(p + 8, 2), method = (unsigned)number(p + 10, 2);
    size_t n_name = (size_t)number(p + 28, 2), n_extra = (size_t)number(p + 30, 2);
    *n = CENTRAL_BYTES + n_name + n_extra + (size_t)number(p + 32, 2);
    if (*n > left)
        return bad(r, "the directory is damaged");
    const char *name = (const char *)p + CENTRAL_BYTES;
    if (!is_safe_name(name, n_name))
        return pnb__fail(r->err, PNB_FORMAT,
                         "%s: zip: a member name is empty, not UTF-8 or leads out of the archive",
                         r->where);
    char *copy = pnb__arena_alloc(r->arena, n_name + 1);
    if (copy == NULL)
        return pnb__fail_nomem(r->err, n_name + 1);
    memcpy(copy, name, n_name);
    uint64_t n_bytes = number(p + 24, 4), n_stored = number(p + 20, 4), at = number(p + 42, 4);
    if (!widen(p + CENTRAL_BYTES + n_name, n_extra, (uint64_t *const[3]){&n_bytes, &n_stored, &at}))
        return bad_member(r, copy, "its zip64 sizes are missing");
    *m = (pnb__zip_member){.name = copy,
                           .n_stored = (size_t)n_stored,
                           .n_bytes = (size_t)n_bytes,
                           .crc = (uint32_t)number(p + 16, 4),
                           .is_deflated = method == 8,
                           .header_at = (size_t)at};
    if ((flags & (FLAG_ENCRYPTED | FLAG_MASKED)) != 0)
        return pnb__fail(r->err, PNB_UNSUPPORTED, "%s: zip member \"%.100s\" is encrypted",
                         r->where, copy);
    if (method != 0 && method != 8)
        return pnb__fail(r->err, PNB_UNSUPPORTED,
                         "%s: zip member \"%.100s\": compression %u; want stored or deflated",
                         r->where, copy, method);
    if (method == 0 && n_stored != n_bytes)
        return bad_member(r, copy, "stored plainly but with two sizes");
    return check_local(r, p, m);
}

static int compare_places(const void *left, const void *right)
{
    const pnb__zip_member *a = left, *b = right;
    return (a->header_at > b->header_at) - (a->header_at < b->header_at);
}

static int compare_names(const void *left, const void *right)
{
    const pnb__zip_member *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static pnb_status check_overlaps(const reader *r, pnb__zip *zip, const directory *d)
{
    size_t position = 0;
    if (zip->n > 0)
        qsort(zip->members, zip->n, sizeof *zip->members, compare_places);
    for (size_t i = 0; i < zip->n; i++) {
        const pnb__zip_member *m = &zip->members[i];
        if (m->header_at < position)
            return bad_member(r, m->name, "overlaps another member");
        position = (size_t)(m->data - r->bytes) + m->n_stored;
        if (position > d->at)
            return bad_member(r, m->name, "overlaps the directory");
    }
    if (zip->n > 0)
        qsort(zip->members, zip->n, sizeof *zip->members, compare_names);
    for (size_t i = 1; i < zip->n; i++)
        if (strcmp(zip->members[i - 1].name, zip->members[i].name) == 0)
            return bad_member(r, zip->members[i].name, "is there twice");
    return PNB_OK;
}

pnb_status pnb__zip_open(pnb__zip *out, const unsigned char *bytes, size_t n_bytes,
                         const char *where, pnb__arena *arena, pnb_error *err)
{
    reader r = {bytes, n_bytes, where, arena, err};
    directory d = {0};
    pnb_status status = read_end(&r, &d);
    if (status != PNB_OK)
        return status;
    pnb__zip zip = {.n = (size_t)d.n_members, .where = where};
    size_t size = PNB_MAX(zip.n, (size_t)1) * sizeof *zip.members;
    zip.members = pnb__arena_alloc(arena, size); /* n_members is bounded by the directory's bytes */
    if (zip.members == NULL)
        return pnb__fail_nomem(err, size);
    const unsigned char *p = bytes + d.at;
    size_t left = (size_t)d.n_bytes, n = 0;
    for (size_t i = 0; status == PNB_OK && i < zip.n; i++, p += n, left -= n)
        status = read_member(&r, p, left, &zip.members[i], &n);
    if (status == PNB_OK)
        status = check_overlaps(&r, &zip, &d);
    if (status == PNB_OK)
        *out = zip;
    return status;
}

const pnb__zip_member *pnb__zip_find(const pnb__zip *zip, const char *name)
{
    size_t low = 0, high = zip->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, zip->members[middle].name);
        if (order == 0)
            return &zip->members[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- bytes ---- */

static uint32_t crc_of(const unsigned char *data, size_t n)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, n);
}

/* All of a raw deflate stream into exactly n_out bytes. zlib counts in 32 bits, so both sides are
 * fed in pieces. */
static bool inflate_all(const unsigned char *in, size_t n_in, unsigned char *out, size_t n_out)
{
    const size_t piece = (size_t)1 << 30;
    z_stream z = {0};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return false;
    int code = Z_OK;
    z.next_in = (Bytef *)(uintptr_t)in;
    z.next_out = out;
    while (code == Z_OK) {
        if (z.avail_in == 0) {
            z.avail_in = (uInt)PNB_MIN(n_in, piece);
            n_in -= z.avail_in;
        }
        if (z.avail_out == 0) {
            z.avail_out = (uInt)PNB_MIN(n_out, piece);
            n_out -= z.avail_out;
        }
        code = inflate(&z, Z_NO_FLUSH);
    }
    bool is_whole =
        code == Z_STREAM_END && n_out == 0 && z.avail_out == 0 && n_in == 0 && z.avail_in == 0;
    inflateEnd(&z);
    return is_whole;
}

static pnb_status unpack(const pnb__zip *zip, const pnb__zip_member *m, unsigned char **out,
                         pnb_error *err)
{
    if (m->n_bytes / MAX_EXPANSION > m->n_stored + 1024)
        return pnb__fail(err, PNB_LIMIT,
                         "%s: zip member \"%.100s\" unpacks %zu bytes to %zu, more than %zu times "
                         "as many; no weights do",
                         zip->where, m->name, m->n_stored, m->n_bytes, MAX_EXPANSION);
    unsigned char *p = pnb__alloc_aligned(PNB_MAX(m->n_bytes, (size_t)1));
    if (p == NULL)
        return pnb__fail_nomem(err, m->n_bytes);
    if (!inflate_all(m->data, m->n_stored, p, m->n_bytes)) {
        pnb__free_aligned(p);
        return pnb__fail(err, PNB_FORMAT,
                         "%s: zip member \"%.100s\": its deflated bytes are damaged", zip->where,
                         m->name);
    }
    *out = p;
    return PNB_OK;
}

pnb_status pnb__zip_read(const pnb__zip *zip, const pnb__zip_member *m, const unsigned char **data,
                         void **owned, pnb_error *err)
{
    unsigned char *unpacked = NULL;
    if (m->is_deflated) {
        pnb_status status = unpack(zip, m, &unpacked, err);
        if (status != PNB_OK)
            return status;
    }
    const unsigned char *found = m->is_deflated ? unpacked : m->data;
    uint32_t crc = crc_of(found, m->n_bytes);
    if (crc != m->crc) {
        pnb__free_aligned(unpacked);
        return pnb__fail(err, PNB_FORMAT,
                         "%s: zip member \"%.100s\": checksum %08x, the archive says %08x; the "
                         "file is damaged, or was saved without checksums",
                         zip->where, m->name, crc, m->crc);
    }
    *data = found;
    *owned = unpacked;
    return PNB_OK;
}
