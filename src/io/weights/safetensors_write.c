/* Writing safetensors: layout, header, and array bytes in one piece or in many.
 *
 * The layout is canonical: widest element first, then by name, so equal contents give equal files
 * and every array is aligned for its type (the header is padded with spaces to a multiple of 8).
 * All is checked before the first byte is written; the target changes only at commit. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/order.h"
#include "io/array.h"
#include "io/json/json.h"
#include "io/weights/safetensors.h"

#define HEADER_ALIGNMENT 8u

typedef struct slot {
    const pnb_array_view *view;
    size_t index;
} slot;

static int compare_layout(const void *left, const void *right)
{
    const pnb_array_view *a = ((const slot *)left)->view, *b = ((const slot *)right)->view;
    size_t first = pnb_dtype_size(a->dtype), second = pnb_dtype_size(b->dtype);
    if (first != second)
        return first > second ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Text that may be a JSON string. */
static bool is_text(const char *s)
{
    return s != NULL && pnb__utf8_valid(s, strlen(s));
}

static pnb_status check_view(const pnb_array_view *a, size_t i, const char *path, pnb_error *err)
{
    size_t wanted = 0;
    if (!is_text(a->name) || a->name[0] == '\0' || strcmp(a->name, "__metadata__") == 0)
        return pnb__fail(err, PNB_ARG,
                         "%s: array %zu has no usable name: wanted UTF-8, not empty, "
                         "not __metadata__",
                         path, i);
    pnb_status status = pnb__array_n_bytes(a->dtype, a->shape, a->n_dims, &wanted, err);
    if (status == PNB_OK && wanted != a->n_bytes)
        status = pnb__fail(err, PNB_SHAPE, "n_bytes is %zu, dtype %s and shape need %zu",
                           a->n_bytes, pnb_dtype_name(a->dtype), wanted);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s: array \"%.100s\"", path, a->name);
    return status;
}

/* No name twice; `names` is sorted in place. */
static pnb_status check_unique(const char **names, size_t n, const char *what, const char *path,
                               pnb_error *err)
{
    if (n > 0)
        qsort(names, n, sizeof(*names), pnb__compare_texts);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(names[i], names[i - 1]) == 0)
            return pnb__fail(err, PNB_ARG, "%s: %s \"%.100s\" is given twice", path, what,
                             names[i]);
    }
    return PNB_OK;
}

static pnb_status check_arrays(const pnb_array_view *arrays, size_t n, const char *path,
                               pnb_error *err)
{
    pnb_status status = PNB_OK;
    const char **names = NULL;
    PNB_TRY(PNB_ALLOC(names, PNB_MAX(n, (size_t)1), err));
    for (size_t i = 0; i < n; i++) {
        PNB_TRY(check_view(&arrays[i], i, path, err));
        names[i] = arrays[i].name;
    }
    status = check_unique(names, n, "array", path, err);
done:
    pnb__free(names);
    return status;
}

static pnb_status check_metadata(const char *const *metadata, const char *path, pnb_error *err)
{
    size_t n = 0;
    pnb_status status = PNB_OK;
    for (; metadata != NULL && metadata[2 * n] != NULL; n++) {
        if (!is_text(metadata[2 * n]) || !is_text(metadata[2 * n + 1]))
            return pnb__fail(err, PNB_ARG, "%s: metadata pair %zu is not UTF-8 text", path, n);
    }
    const char **keys = pnb__alloc_array(PNB_MAX(n, (size_t)1), sizeof(*keys));
    if (keys == NULL)
        return pnb__fail_nomem(err, n * sizeof(*keys));
    for (size_t i = 0; i < n; i++)
        keys[i] = metadata[2 * i];
    status = check_unique(keys, n, "metadata key", path, err);
    pnb__free(keys);
    return status;
}

/* Fills w->order and w->n_total. */
static pnb_status plan_layout(pnb__st_writer *w, const pnb_array_view *arrays, pnb_error *err)
{
    slot *slots = pnb__alloc_array(PNB_MAX(w->n, (size_t)1), sizeof(*slots));
    w->order = pnb__alloc_array(PNB_MAX(w->n, (size_t)1), sizeof(*w->order));
    pnb_status status = PNB_OK;
    if (slots == NULL || w->order == NULL) {
        status = pnb__fail_nomem(err, w->n * sizeof(*slots));
        goto done;
    }
    for (size_t i = 0; i < w->n; i++)
        slots[i] = (slot){&arrays[i], i};
    if (w->n > 0)
        qsort(slots, w->n, sizeof(*slots), compare_layout);
    for (size_t i = 0; i < w->n; i++) {
        w->order[i] = slots[i].index;
        if (slots[i].view->n_bytes > (uint64_t)INT64_MAX - w->n_total) {
            status = pnb__fail(err, PNB_SHAPE, "all arrays together overflow");
            goto done;
        }
        w->n_total += slots[i].view->n_bytes;
    }
done:
    pnb__free(slots);
    return status;
}

static void append_entry(pnb__buf *b, const pnb_array_view *a, uint64_t begin)
{
    pnb__json_put(b, "%s:{\"dtype\":%s,\"shape\":[", a->name, pnb_dtype_name(a->dtype));
    for (int i = 0; i < a->n_dims; i++)
        pnb__buf_printf(b, "%s%lld", i > 0 ? "," : "", (long long)a->shape[i]);
    pnb__buf_printf(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                    (unsigned long long)begin + a->n_bytes);
}

/* Length word, JSON and padding. */
static pnb_status make_header(pnb__buf *b, const pnb__st_writer *w, const pnb_array_view *arrays,
                              const char *const *metadata, pnb_error *err)
{
    uint64_t position = 0, length = 0;
    pnb__buf_append(b, &length, sizeof(length));
    pnb__buf_putc(b, '{');
    if (metadata != NULL && metadata[0] != NULL) {
        pnb__buf_puts(b, "\"__metadata__\":{");
        for (size_t i = 0; metadata[i] != NULL; i += 2) {
            if (i > 0)
                pnb__buf_putc(b, ',');
            pnb__json_put(b, "%s:%s", metadata[i], metadata[i + 1]);
        }
        pnb__buf_puts(b, w->n > 0 ? "}," : "}");
    }
    for (size_t i = 0; i < w->n; i++) {
        if (i > 0)
            pnb__buf_putc(b, ',');
        append_entry(b, &arrays[w->order[i]], position);
        position += arrays[w->order[i]].n_bytes;
    }
    pnb__buf_putc(b, '}');
    while (b->size % HEADER_ALIGNMENT != 0 && !b->failed)
        pnb__buf_putc(b, ' ');
    if (b->failed)
        return pnb__fail_nomem(err, b->size);
    length = b->size - sizeof(length);
    if (length > PNB__ST_MAX_HEADER)
        return pnb__fail(err, PNB_LIMIT, "header of %llu bytes, readers accept %zu",
                         (unsigned long long)length, PNB__ST_MAX_HEADER);
    memcpy(b->data, &length, sizeof(length));
    return PNB_OK;
}

static pnb_status write_bytes(pnb__st_writer *w, const void *data, size_t n, pnb_error *err)
{
    if (n > 0 && fwrite(data, 1, n, w->out.file) != n)
        return pnb__fail_errno(err, "cannot write", w->out.path);
    return PNB_OK;
}

pnb_status pnb__out_sync(const pnb__out_file *f, pnb_error *err)
{
    bool is_lost = fflush(f->file) != 0 || (f->temp_path != NULL && fsync(fileno(f->file)) != 0);
    return is_lost ? pnb__fail_errno(err, "cannot write", f->path) : PNB_OK;
}

/* `f`, when given, is taken over in place of a file opened by its name. */
static pnb_status open_writer(pnb__st_writer *w, const char *path, pnb__out_file *f,
                              const pnb_array_view *arrays, size_t n, const char *const *metadata,
                              pnb_error *err)
{
    pnb__buf header = {0};
    pnb_status status;
    *w = (pnb__st_writer){.n = n};
    PNB_TRY(check_arrays(arrays, n, path, err));
    PNB_TRY(check_metadata(metadata, path, err));
    PNB_TRY(plan_layout(w, arrays, err));
    PNB_TRY(make_header(&header, w, arrays, metadata, err));
    if (f == NULL) {
        PNB_TRY(pnb__out_open(&w->out, path, err));
    } else {
        w->out = *f;
        *f = (pnb__out_file){0};
    }
    status = write_bytes(w, header.data, header.size, err);
done:
    pnb__buf_reset(&header);
    if (status != PNB_OK)
        pnb__st_writer_abort(w);
    return status;
}

pnb_status pnb__st_writer_open(pnb__st_writer *w, const char *path, const pnb_array_view *arrays,
                               size_t n, const char *const *metadata, pnb_error *err)
{
    return open_writer(w, path, NULL, arrays, n, metadata, err);
}

pnb_status pnb__st_writer_open_on(pnb__st_writer *w, pnb__out_file *f, const pnb_array_view *arrays,
                                  size_t n, const char *const *metadata, pnb_error *err)
{
    return open_writer(w, f->path, f, arrays, n, metadata, err);
}

pnb_status pnb__st_writer_append(pnb__st_writer *w, const void *data, size_t n_bytes,
                                 pnb_error *err)
{
    if (n_bytes > w->n_total - w->n_written)
        return pnb__fail(err, PNB_ARG, "%s: %zu bytes more than the header promises", w->out.path,
                         n_bytes - (size_t)(w->n_total - w->n_written));
    w->n_written += n_bytes;
    return write_bytes(w, data, n_bytes, err);
}

pnb_status pnb__st_writer_sync(pnb__st_writer *w, pnb_error *err)
{
    if (w->n_written != w->n_total)
        return pnb__fail(err, PNB_ARG, "%s: %llu bytes of arrays, the header promises %llu",
                         w->out.path, (unsigned long long)w->n_written,
                         (unsigned long long)w->n_total);
    return pnb__out_sync(&w->out, err);
}

pnb_status pnb__st_writer_commit(pnb__st_writer *w, pnb_error *err)
{
    pnb_status status = pnb__st_writer_sync(w, err);
    if (status == PNB_OK)
        status = pnb__out_commit(&w->out, err);
    pnb__st_writer_abort(w);
    return status;
}

void pnb__st_writer_abort(pnb__st_writer *w)
{
    pnb__out_abort(&w->out);
    pnb__free(w->order);
    *w = (pnb__st_writer){0};
}

pnb_status pnb_safetensors_write(const char *path, const pnb_array_view *arrays, size_t n,
                                 const char *const *metadata, pnb_error *err)
{
    pnb__st_writer w;
    pnb_status status;
    if (path == NULL || (arrays == NULL && n > 0))
        return pnb__fail(err, PNB_ARG, "safetensors: path or arrays is NULL");
    for (size_t i = 0; i < n; i++) {
        if (arrays[i].n_bytes > 0 && arrays[i].data == NULL)
            return pnb__fail(err, PNB_ARG, "%s: array %zu has %zu bytes but data is NULL", path, i,
                             arrays[i].n_bytes);
    }
    PNB_TRY(pnb__st_writer_open(&w, path, arrays, n, metadata, err));
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        const pnb_array_view *a = &arrays[w.order[i]];
        status = pnb__st_writer_append(&w, a->data, a->n_bytes, err);
    }
    if (status == PNB_OK)
        return pnb__st_writer_commit(&w, err);
    pnb__st_writer_abort(&w);
done:
    return status;
}
