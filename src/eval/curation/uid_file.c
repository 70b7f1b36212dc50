/* DataComp's subset files: the 128-bit uids of the samples to keep, as NumPy's np.save writes an
 * array of dtype "u8,u8", that is a record of two unsigned 64-bit numbers f0 (first 16 hexadecimal
 * digits) and f1 (last 16), ascending by f0, then f1.
 *
 * The header is the one NumPy gives such an array (version 1.0, padded to 64 bytes). Arrays of
 * plain numbers are the matter of io/npy.c, which refuses records. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "penumbra/filter.h"

#define DICT_START "{'descr': [('f0', '<u8'), ('f1', '<u8')], 'fortran_order': False, 'shape': ("
#define UID_BYTES ((size_t)16)

enum { PREFIX_BYTES = 10, ALIGNMENT = 64 };

static const unsigned char magic[PREFIX_BYTES - 2] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool pnb_uid_parse(pnb_uid *out, const char *hex)
{
    pnb_uid uid = {0, 0};
    size_t n = strlen(hex);
    if (n < 32)
        return false;
    for (size_t i = 0; i < n; i++) {
        int value = digit_value(hex[i]);
        if (value < 0)
            return false;
        if (i < 16)
            uid.high = uid.high << 4 | (uint64_t)value;
        else if (i < 32)
            uid.low = uid.low << 4 | (uint64_t)value;
    }
    *out = uid;
    return true;
}

static int compare_uids(const void *a, const void *b)
{
    const pnb_uid *x = a, *y = b;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

void pnb_uids_sort(pnb_uid *uids, size_t n)
{
    if (n > 0)
        qsort(uids, n, sizeof *uids, compare_uids);
}

bool pnb_uids_contain(const pnb_uid *sorted, size_t n, pnb_uid uid)
{
    return n > 0 && bsearch(&uid, sorted, n, sizeof *sorted, compare_uids) != NULL;
}

static void put_u64(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_u64(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static void make_header(pnb__buf *b, size_t n)
{
    pnb__buf_append(b, magic, sizeof magic);
    pnb__buf_append(b, "\0\0", 2);
    pnb__buf_printf(b, DICT_START "%zu,), }", n);
    while ((b->size + 1) % ALIGNMENT != 0 && !b->failed)
        pnb__buf_putc(b, ' ');
    pnb__buf_putc(b, '\n');
    if (b->failed)
        return;
    size_t length = b->size - PREFIX_BYTES;
    b->data[PREFIX_BYTES - 2] = (char)(length & 0xff);
    b->data[PREFIX_BYTES - 1] = (char)(length >> 8);
}

static pnb_status write_uids(FILE *file, const char *path, const pnb_uid *uids, size_t n,
                             pnb_error *err)
{
    unsigned char bytes[UID_BYTES];
    for (size_t i = 0; i < n; i++) {
        put_u64(bytes, uids[i].high);
        put_u64(bytes + 8, uids[i].low);
        if (fwrite(bytes, 1, sizeof bytes, file) != sizeof bytes)
            return pnb__fail_errno(err, "cannot write", path);
    }
    return PNB_OK;
}

pnb_status pnb_uids_save(const char *path, pnb_uid *uids, size_t n, size_t *n_written,
                         pnb_error *err)
{
    pnb__out_file out = {0};
    pnb__buf header = {0};
    size_t n_kept = 0;
    pnb_status status;
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "%s: no uid to write", path);
    pnb_uids_sort(uids, n);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || compare_uids(&uids[n_kept - 1], &uids[i]) != 0)
            uids[n_kept++] = uids[i];
    make_header(&header, n_kept);
    if (header.failed)
        PNB_TRY(pnb__fail_nomem(err, 128));
    PNB_TRY(pnb__out_open(&out, path, err));
    if (fwrite(header.data, 1, header.size, out.file) != header.size)
        PNB_TRY(pnb__fail_errno(err, "cannot write", path));
    PNB_TRY(write_uids(out.file, path, uids, n_kept, err));
    PNB_TRY(pnb__out_commit(&out, err));
    if (n_written != NULL)
        *n_written = n_kept;
done:
    pnb__out_abort(&out);
    pnb__buf_reset(&header);
    return status;
}

/* ---- reading ---- */

/* Bytes being read, and what to call them. */
typedef struct uid_bytes {
    const unsigned char *data;
    size_t size;
    const char *where;
} uid_bytes;

/* NumPy's header of such an array, with room for other spacing: the dict without spaces must be the
 * one above. *offset is where the records begin. */
static bool read_header(const uid_bytes *b, size_t *offset, size_t *n)
{
    static const char wanted[] = "{'descr':[('f0','<u8'),('f1','<u8')],'fortran_order':False,"
                                 "'shape':(";
    char dict[256] = "";
    size_t length, n_dict = 0;
    char *end = NULL;
    if (b->size < PREFIX_BYTES || memcmp(b->data, magic, sizeof magic) != 0)
        return false;
    length = (size_t)b->data[PREFIX_BYTES - 2] | (size_t)b->data[PREFIX_BYTES - 1] << 8;
    if (length > b->size - PREFIX_BYTES)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = (char)b->data[PREFIX_BYTES + i];
        if (c != ' ' && c != '\n' && n_dict + 1 < sizeof dict)
            dict[n_dict++] = c;
    }
    dict[n_dict] = '\0';
    if (!pnb__starts_with(dict, wanted))
        return false;
    const char *number = dict + sizeof wanted - 1;
    if (*number < '0' || *number > '9')
        return false;
    unsigned long long count = strtoull(number, &end, 10);
    *offset = PREFIX_BYTES + length;
    *n = (size_t)count;
    return (strcmp(end, ",),}") == 0 || strcmp(end, ",)}") == 0) && count <= SIZE_MAX / UID_BYTES;
}

static pnb_status load(pnb_uid **out, size_t *n, const uid_bytes *b, pnb_error *err)
{
    size_t offset = 0, count = 0;
    *out = NULL;
    *n = 0;
    if (!read_header(b, &offset, &count))
        return pnb__fail(err, PNB_FORMAT,
                         "%s: no subset file; wanted an .npy array of dtype 'u8,u8' and one "
                         "dimension",
                         b->where);
    if (b->size - offset != count * UID_BYTES)
        return pnb__fail(err, PNB_FORMAT, "%s: %zu bytes of data, %zu uids need %zu", b->where,
                         b->size - offset, count, count * UID_BYTES);
    pnb_uid *uids = pnb__alloc_array(PNB_MAX(count, (size_t)1), sizeof *uids);
    if (uids == NULL)
        return pnb__fail_nomem(err, count * sizeof *uids);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *bytes = b->data + offset + i * UID_BYTES;
        uids[i] = (pnb_uid){get_u64(bytes), get_u64(bytes + 8)};
    }
    *out = uids;
    *n = count;
    return PNB_OK;
}

pnb_status pnb_uids_load_bytes(pnb_uid **out, size_t *n, const void *bytes, size_t n_bytes,
                               pnb_error *err)
{
    const uid_bytes b = {bytes, n_bytes, "subset in memory"};
    return load(out, n, &b, err);
}

pnb_status pnb_uids_load(pnb_uid **out, size_t *n, const char *path, pnb_error *err)
{
    pnb__map map;
    *out = NULL;
    *n = 0;
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    const uid_bytes b = {map.data, map.size, path};
    status = load(out, n, &b, err);
    pnb__map_close(&map);
    return status;
}

void pnb_uids_free(pnb_uid *uids)
{
    pnb__free(uids);
}
