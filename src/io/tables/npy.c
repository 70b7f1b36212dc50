/* NumPy .npy files: "\x93NUMPY", version, header length (u16, or u32 from version 2), a Python dict
 * `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, then the bytes in C order.
 *
 * Only that dict is read, not Python in general: three keys, in any order, each once. Big-endian
 * and Fortran-order files are told apart from broken ones. Layout of embedding files is left to
 * embeddings_npy.c. */
#include "io/tables/npy.h"

#include <stdlib.h>
#include <string.h>

#include "io/array.h"
#include "io/foreign.h"

#define MAGIC_BYTES ((size_t)6)
#define MAX_HEADER_BYTES ((size_t)1 << 20)
#define ALIGNMENT ((size_t)64)

static const unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* numpy's spelling without the byte-order sign; NULL where it has none. */
static const char *const descriptions[PNB_N_DTYPES] = {
    [PNB_F32] = "f4",  [PNB_F64] = "f8", [PNB_F16] = "f2", [PNB_I64] = "i8",
    [PNB_I32] = "i4",  [PNB_I16] = "i2", [PNB_I8] = "i1",  [PNB_U8] = "u1",
    [PNB_BOOL] = "b1", [PNB_U16] = "u2", [PNB_U32] = "u4", [PNB_U64] = "u8",
};

typedef struct npy_parser {
    const char *p, *end; /* dict text left */
    const char *where;
    pnb_error *err;
} npy_parser;

typedef struct npy_header {
    pnb_dtype dtype;
    int n_dims;
    int64_t shape[PNB_MAX_DIMS];
    bool is_fortran;
    unsigned seen; /* bit per key */
} npy_header;

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static pnb_status bad_header(const npy_parser *s, const char *problem)
{
    return pnb__fail(s->err, PNB_FORMAT, "%s: npy header: %s", s->where, problem);
}

static void skip_spaces(npy_parser *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t'))
        s->p++;
}

/* Takes one character, spaces around it. */
static bool take(npy_parser *s, char c)
{
    skip_spaces(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    skip_spaces(s);
    return true;
}

static bool take_word(npy_parser *s, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return false;
    s->p += n;
    return true;
}

/* 'text' or "text" without escapes, at most size-1 bytes. */
static bool take_string(npy_parser *s, char *text, size_t size)
{
    skip_spaces(s);
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
        return false;
    char quote = *s->p++;
    size_t n = 0;
    while (s->p < s->end && *s->p != quote && *s->p != '\\' && n + 1 < size)
        text[n++] = *s->p++;
    text[n] = '\0';
    return s->p < s->end && *s->p++ == quote;
}

static pnb_status read_description(npy_parser *s, npy_header *h)
{
    char text[16] = "";
    if (!take_string(s, text, sizeof(text)))
        return pnb__fail(s->err, PNB_UNSUPPORTED,
                         "%s: structured npy types are not supported; save a plain array",
                         s->where);
    bool is_one_byte = strlen(text) == 3 && text[2] == '1';
    for (int i = 0; i < PNB_N_DTYPES; i++) {
        if (descriptions[i] == NULL || text[0] == '\0' || strcmp(text + 1, descriptions[i]) != 0)
            continue;
        if (text[0] != '<' && text[0] != '=' && !(is_one_byte && text[0] == '|'))
            break;
        h->dtype = (pnb_dtype)i;
        return PNB_OK;
    }
    return pnb__fail(
        s->err, PNB_UNSUPPORTED,
        "%s: npy type '%s' is not supported; wanted little-endian numbers (x.astype('<f4'))",
        s->where, text);
}

static pnb_status read_order(npy_parser *s, npy_header *h)
{
    skip_spaces(s);
    h->is_fortran = take_word(s, "True");
    if (!h->is_fortran && !take_word(s, "False"))
        return bad_header(s, "fortran_order is neither True nor False");
    return PNB_OK;
}

static pnb_status read_extent(npy_parser *s, int64_t *extent)
{
    int64_t value = 0;
    if (s->p == s->end || *s->p < '0' || *s->p > '9')
        return bad_header(s, "shape holds something else than whole numbers from 0");
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        if (value > (INT64_MAX - 9) / 10)
            return bad_header(s, "shape overflows");
        value = 10 * value + (*s->p - '0');
    }
    if (s->p < s->end && *s->p == 'L')
        s->p++; /* Python 2 wrote long integers so */
    *extent = value;
    return PNB_OK;
}

static pnb_status read_shape(npy_parser *s, npy_header *h)
{
    if (!take(s, '('))
        return bad_header(s, "shape is not a tuple");
    while (!take(s, ')')) {
        if (h->n_dims == PNB_MAX_DIMS)
            return pnb__fail(s->err, PNB_UNSUPPORTED, "%s: more than %d dimensions", s->where,
                             PNB_MAX_DIMS);
        pnb_status status = read_extent(s, &h->shape[h->n_dims]);
        if (status != PNB_OK)
            return status;
        h->n_dims++;
        if (!take(s, ',') && !(h->n_dims > 1 && s->p < s->end && *s->p == ')'))
            return bad_header(s, "shape has no comma where one belongs");
    }
    return PNB_OK;
}

static pnb_status read_dict(npy_parser *s, npy_header *h)
{
    char key[16];
    if (!take(s, '{'))
        return bad_header(s, "no dict");
    while (!take(s, '}')) {
        if (!take_string(s, key, sizeof(key)) || !take(s, ':'))
            return bad_header(s, "no key where one belongs");
        unsigned bit = strcmp(key, "descr") == 0           ? SEEN_DESCR
                       : strcmp(key, "fortran_order") == 0 ? SEEN_ORDER
                       : strcmp(key, "shape") == 0         ? SEEN_SHAPE
                                                           : 0;
        if (bit == 0 || (h->seen & bit) != 0)
            return bad_header(s, "unknown or repeated key");
        h->seen |= bit;
        pnb_status status = bit == SEEN_DESCR   ? read_description(s, h)
                            : bit == SEEN_ORDER ? read_order(s, h)
                                                : read_shape(s, h);
        if (status != PNB_OK)
            return status;
        if (!take(s, ',') && (s->p == s->end || *s->p != '}'))
            return bad_header(s, "no comma where one belongs");
    }
    return h->seen == SEEN_ALL ? PNB_OK : bad_header(s, "descr, fortran_order or shape is missing");
}

/* Finds the dict text; *offset is where it starts. */
static pnb_status find_dict(const unsigned char *bytes, size_t n, const char *where, size_t *offset,
                            size_t *length, pnb_error *err)
{
    pnb_status status = pnb__refuse_stand_in(where, bytes, n, err);
    if (status != PNB_OK)
        return status;
    if (n < MAGIC_BYTES + 4 || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return pnb__fail(err, PNB_FORMAT, "%s: not an npy file", where);
    unsigned version = bytes[MAGIC_BYTES];
    if (version < 1 || version > 3)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: npy version %u, wanted 1 to 3", where, version);
    const unsigned char *p = bytes + MAGIC_BYTES + 2;
    *length = (size_t)p[0] | (size_t)p[1] << 8;
    *offset = MAGIC_BYTES + 4;
    if (version > 1) {
        *offset += 2;
        if (n < *offset)
            return pnb__fail(err, PNB_FORMAT, "%s: npy file is truncated", where);
        *length |= (size_t)p[2] << 16 | (size_t)p[3] << 24;
    }
    if (*length > MAX_HEADER_BYTES || *length > n - *offset)
        return pnb__fail(err, PNB_FORMAT, "%s: npy header of %zu bytes in a file of %zu", where,
                         *length, n);
    return PNB_OK;
}

static pnb_status load_image(pnb_npy *out, const unsigned char *bytes, size_t n, const char *where,
                             pnb_error *err)
{
    size_t offset = 0, length = 0, n_bytes = 0;
    npy_header h = {0};
    pnb_error inner = PNB_ERROR_INIT;
    pnb_status status;
    PNB_TRY(find_dict(bytes, n, where, &offset, &length, err));
    npy_parser s = {(const char *)bytes + offset, (const char *)bytes + offset + length, where,
                    err};
    const char *zero = memchr(s.p, 0, length);
    if (zero != NULL) /* numpy fills up with spaces; C text would end here */
        return pnb__fail(err, PNB_FORMAT, "%s: npy header: a NUL byte at byte %zu of %zu", where,
                         (size_t)(zero - s.p), length);
    PNB_TRY(read_dict(&s, &h));
    skip_spaces(&s);
    if (s.p != s.end)
        return bad_header(&s, "text after the dict");
    if (h.is_fortran && h.n_dims > 1)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: columns come first; save np.ascontiguousarray(x) instead", where);
    if (pnb__array_n_bytes(h.dtype, h.shape, h.n_dims, &n_bytes, &inner) != PNB_OK)
        return bad_header(&s, inner.text);
    if (n_bytes != n - offset - length)
        return pnb__fail(err, PNB_FORMAT, "%s: %zu bytes of data, type and shape need %zu", where,
                         n - offset - length, n_bytes);
    out->data = pnb__alloc_aligned(PNB_MAX(n_bytes, (size_t)1));
    if (out->data == NULL)
        return pnb__fail_nomem(err, n_bytes);
    memcpy(out->data, bytes + offset + length, n_bytes);
    out->view = (pnb_array_view){"", h.dtype, h.n_dims, {0}, out->data, n_bytes};
    memcpy(out->view.shape, h.shape, sizeof(h.shape));
done:
    return status;
}

pnb_status pnb_npy_load_bytes(pnb_npy *out, const void *bytes, size_t n_bytes, pnb_error *err)
{
    if (out == NULL || bytes == NULL)
        return pnb__fail(err, PNB_ARG, "npy: out or bytes is NULL");
    *out = (pnb_npy){0};
    return load_image(out, bytes, n_bytes, "npy in memory", err);
}

pnb_status pnb_npy_load(pnb_npy *out, const char *path, pnb_error *err)
{
    pnb__map map;
    if (out == NULL || path == NULL)
        return pnb__fail(err, PNB_ARG, "npy: out or path is NULL");
    *out = (pnb_npy){0};
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    status = load_image(out, map.data, map.size, path, err);
    pnb__map_close(&map);
    return status;
}

void pnb_npy_reset(pnb_npy *a)
{
    if (a == NULL)
        return;
    pnb__free_aligned(a->data);
    *a = (pnb_npy){0};
}

/* Everything before the data, a multiple of 64 bytes as numpy writes it. */
static void make_header(pnb__buf *b, const pnb_array_view *a)
{
    const char *text = descriptions[a->dtype];
    pnb__buf_append(b, magic, MAGIC_BYTES);
    pnb__buf_append(b, "\1\0\0\0", 4); /* version 1.0, length set below */
    pnb__buf_printf(b, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                    pnb_dtype_size(a->dtype) > 1 ? '<' : '|', text);
    for (int i = 0; i < a->n_dims; i++)
        pnb__buf_printf(b, "%s%lld", i > 0 ? ", " : "", (long long)a->shape[i]);
    pnb__buf_puts(b, a->n_dims == 1 ? ",), }" : "), }");
    while ((b->size + 1) % ALIGNMENT != 0 && !b->failed)
        pnb__buf_putc(b, ' ');
    pnb__buf_putc(b, '\n');
    if (b->failed)
        return;
    size_t length = b->size - MAGIC_BYTES - 4; /* at most PNB_MAX_DIMS numbers: fits 16 bits */
    b->data[MAGIC_BYTES + 2] = (char)(length & 0xff);
    b->data[MAGIC_BYTES + 3] = (char)(length >> 8);
}

pnb_status pnb__npy_write(pnb__out_file *f, const pnb_array_view *a, pnb_error *err)
{
    pnb__buf header = {0};
    pnb_status status;
    PNB_TRY(pnb__array_check(a, err));
    if (descriptions[a->dtype] == NULL)
        return pnb__fail(err, PNB_DTYPE, "%s: numpy has no type for %s; convert to F32 first",
                         f->path, pnb_dtype_name(a->dtype));
    make_header(&header, a);
    if (header.failed)
        status = pnb__fail_nomem(err, header.size);
    else if (fwrite(header.data, 1, header.size, f->file) != header.size ||
             (a->n_bytes > 0 && fwrite(a->data, 1, a->n_bytes, f->file) != a->n_bytes))
        status = pnb__fail_errno(err, "cannot write", f->path);
done:
    pnb__buf_reset(&header);
    return status;
}

pnb_status pnb_npy_save(const char *path, const pnb_array_view *a, pnb_error *err)
{
    pnb__out_file f = {0};
    pnb_status status;
    if (path == NULL)
        return pnb__fail(err, PNB_ARG, "npy: path is NULL");
    PNB_TRY(pnb__out_open(&f, path, err));
    PNB_TRY(pnb__npy_write(&f, a, err));
    status = pnb__out_commit(&f, err);
done:
    pnb__out_abort(&f);
    return status;
}
