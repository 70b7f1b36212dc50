/* Writing tar archives: ustar headers with a pax record where a name or size does not fit.
 *
 * Nothing of the machine goes in (owner 0, mode 0644, time 0), so the same members give the same
 * bytes. Two zero blocks end the archive. Reading is in tar.c. */
#include <string.h>

#include "io/tables/tar.h"

enum { BLOCK = 512, NAME_SIZE = 100, PREFIX_SIZE = 155 };

#define MAX_OCTAL_SIZE (((uint64_t)1 << 33) - 1) /* 11 octal digits */

static const char zeros[2 * BLOCK];

/* Fields of a ustar header as they lie in the block. */
typedef struct ustar {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
} ustar;

_Static_assert(sizeof(ustar) == BLOCK, "a ustar header is one block");

pnb_status pnb__tar_writer_open(pnb__tar_writer *w, const char *path, pnb_error *err)
{
    *w = (pnb__tar_writer){0};
    return pnb__out_open(&w->out, path, err);
}

static pnb_status put(pnb__tar_writer *w, const void *data, size_t n, pnb_error *err)
{
    if (n > 0 && fwrite(data, 1, n, w->out.file) != n)
        return pnb__fail_errno(err, "cannot write", w->out.path);
    w->position += n;
    return PNB_OK;
}

static pnb_status put_padding(pnb__tar_writer *w, pnb_error *err)
{
    return put(w, zeros, (size_t)((BLOCK - w->position % BLOCK) % BLOCK), err);
}

/* Splits a name at a '/' so that both halves fit. False when there is no such place. */
static bool split_name(const char *name, ustar *h)
{
    size_t n = strlen(name);
    if (n <= NAME_SIZE) {
        memcpy(h->name, name, n);
        return true;
    }
    for (size_t i = n - NAME_SIZE - 1; i < n - 1 && i <= PREFIX_SIZE; i++) {
        if (name[i] == '/' && i > 0) {
            memcpy(h->prefix, name, i);
            memcpy(h->name, name + i + 1, n - i - 1);
            return true;
        }
    }
    return false;
}

/* Fixed-width octal text with a zero behind it. */
static void put_octal(char *field, size_t width, uint64_t value)
{
    field[width - 1] = '\0';
    for (size_t i = width - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static pnb_status put_header(pnb__tar_writer *w, ustar *h, char type, uint64_t size, pnb_error *err)
{
    unsigned sum = 0;
    unsigned char bytes[BLOCK];
    put_octal(h->mode, sizeof(h->mode), 0644);
    put_octal(h->uid, sizeof(h->uid), 0);
    put_octal(h->gid, sizeof(h->gid), 0);
    put_octal(h->size, sizeof(h->size), size <= MAX_OCTAL_SIZE ? size : 0);
    put_octal(h->mtime, sizeof(h->mtime), 0);
    h->type = type;
    memcpy(h->magic, "ustar", 6);
    memcpy(h->version, "00", 2);
    memset(h->sum, ' ', sizeof(h->sum));
    memcpy(bytes, h, sizeof(bytes));
    for (int i = 0; i < BLOCK; i++)
        sum += bytes[i];
    put_octal(h->sum, sizeof(h->sum) - 1, sum); /* six digits, zero, space: the customary form */
    return put(w, h, sizeof(*h), err);
}

/* "<length> key=value\n", where length counts itself. */
static void append_record(pnb__buf *b, const char *key, const char *value)
{
    size_t body = strlen(key) + strlen(value) + 3, length = body + 1;
    char digits[24];
    while (body + (size_t)snprintf(digits, sizeof(digits), "%zu", length) != length)
        length = body + strlen(digits);
    pnb__buf_printf(b, "%zu %s=%s\n", length, key, value);
}

static pnb_status put_pax(pnb__tar_writer *w, const char *name, uint64_t size, pnb_error *err)
{
    pnb__buf records = {0};
    ustar h = {0};
    char digits[24];
    pnb_status status = PNB_OK;
    if (name != NULL)
        append_record(&records, "path", name);
    if (size > MAX_OCTAL_SIZE) {
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)size);
        append_record(&records, "size", digits);
    }
    if (records.failed) {
        status = pnb__fail_nomem(err, records.size);
        goto done;
    }
    memcpy(h.name, "pax_header", sizeof("pax_header"));
    PNB_TRY(put_header(w, &h, 'x', records.size, err));
    PNB_TRY(put(w, records.data, records.size, err));
    status = put_padding(w, err);
done:
    pnb__buf_reset(&records);
    return status;
}

/* Names that any program may unpack: relative, and never above the folder. */
static bool is_safe_name(const char *name)
{
    if (name[0] == '\0' || name[0] == '/')
        return false;
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return true;
}

pnb_status pnb__tar_writer_add(pnb__tar_writer *w, const char *name, const void *data, size_t n,
                               pnb_error *err)
{
    ustar h = {0};
    pnb_status status;
    if (!is_safe_name(name))
        return pnb__fail(err, PNB_ARG, "%s: member name \"%.100s\" is empty, absolute or leads out",
                         w->out.path, name);
    bool fits = split_name(name, &h);
    if (!fits || (uint64_t)n > MAX_OCTAL_SIZE)
        PNB_TRY(put_pax(w, fits ? NULL : name, n, err));
    if (!fits)
        memcpy(h.name, name, NAME_SIZE); /* for readers without pax; they get the beginning */
    PNB_TRY(put_header(w, &h, '0', n, err));
    PNB_TRY(put(w, data, n, err));
    status = put_padding(w, err);
done:
    return status;
}

pnb_status pnb__tar_writer_commit(pnb__tar_writer *w, pnb_error *err)
{
    pnb_status status = put(w, zeros, sizeof(zeros), err);
    if (status == PNB_OK)
        status = pnb__out_commit(&w->out, err);
    pnb__tar_writer_abort(w);
    return status;
}

void pnb__tar_writer_abort(pnb__tar_writer *w)
{
    pnb__out_abort(&w->out);
    *w = (pnb__tar_writer){0};
}
