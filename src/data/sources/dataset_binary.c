/* Samples of the small binary sets, each image a block of plain pixels, one plane a channel:
 *   CIFAR-10   data_batch_N.bin, test_batch.bin   label, 3 x 32 x 32; names: batches.meta.txt
 *   CIFAR-100  train.bin, test.bin   coarse label, fine label, 3 x 32 x 32; fine_label_names.txt
 *   STL-10     X_X.bin with X_y.bin   3 x 96 x 96 by columns, labels from 1; class_names.txt
 *   MNIST      X-images-idx3-ubyte with X-labels-idx1-ubyte, also .gz   big-endian header, grey
 * Sizes must fit exactly. Labels that are missing make a warning, not an error. The class's name is
 * the caption. Which file is a split of which set is dataset_split.c's business. */
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "io/gzip.h"

enum { MAX_SIDE = 1 << 15 };
#define MAX_UNPACKED ((size_t)1 << 31)

typedef struct layout {
    pnb__raw raw;
    size_t header, before; /* bytes of the file, and of each record before its pixels */
    size_t label;          /* where in them the label is */
    const char *names;
} layout;

static const layout CIFAR10 = {{32, 32, 3, false}, 0, 1, 0, "batches.meta.txt"};
static const layout CIFAR100 = {{32, 32, 3, false}, 0, 2, 1, "fine_label_names.txt"};
static const layout STL10 = {{96, 96, 3, true}, 0, 0, 0, "class_names.txt"};

bool pnb__is_binary(const char *path)
{
    return pnb__ends_with(path, "_batch.bin") || strstr(pnb__path_base(path), "data_batch_") ||
           pnb__ends_with(path, "_X.bin") || strcmp(pnb__path_base(path), "test.bin") == 0 ||
           strcmp(pnb__path_base(path), "train.bin") == 0 ||
           strstr(pnb__path_base(path), "images-idx3-ubyte") ||
           strstr(pnb__path_base(path), "images.idx3-ubyte");
}

/* Unpacks a gzip file that was mapped. */
static pnb_status unpack(pnb__source *source, pnb_error *err)
{
    unsigned char *bytes;
    size_t n;
    if (!pnb__is_gzip(source->map.data, source->map.size))
        return PNB_OK;
    pnb_status status =
        pnb__gunzip(source->map.data, source->map.size, MAX_UNPACKED, &bytes, &n, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s", source->path);
        return status;
    }
    pnb__map_close(&source->map);
    source->own = bytes;
    source->map = (pnb__map){.data = bytes, .size = n};
    return PNB_OK;
}

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Header of an idx file of bytes: 0 0 8 rank, then each size. */
static pnb_status idx_sizes(const pnb__map *map, unsigned rank, const char *path, uint32_t *sizes,
                            pnb_error *err)
{
    size_t header = 4 + 4 * (size_t)rank;
    if (map->size < header || big_endian(map->data) != (0x800u | rank))
        return pnb__fail(err, PNB_FORMAT,
                         "%s: no idx file of bytes in %u dimensions (magic number %08x)", path,
                         rank, map->size >= 4 ? big_endian(map->data) : 0u);
    for (unsigned i = 0; i < rank; i++)
        sizes[i] = big_endian(map->data + 4 + 4 * (size_t)i);
    return PNB_OK;
}

/* ---- labels in a file of their own ---- */

typedef struct label_file {
    pnb__map map;
    unsigned char *own;
    const unsigned char *label;
    size_t n;
} label_file;

static void label_file_close(label_file *f)
{
    if (f->own == NULL)
        pnb__map_close(&f->map);
    pnb__free(f->own);
}

/* path with the last `from` replaced by `to`; NULL when out of memory or there is none. */
static char *replaced(const char *path, const char *from, const char *to)
{
    const char *at = NULL;
    for (const char *p = path; (p = strstr(p, from)) != NULL; p++)
        at = p;
    return at ? pnb__format("%.*s%s%s", (int)(at - path), path, to, at + strlen(from)) : NULL;
}

/* *found is false where the file does not exist. */
static pnb_status open_labels(label_file *f, const char *path, bool is_idx, bool *found,
                              pnb_error *err)
{
    pnb__source as_source = {.path = (char *)(uintptr_t)path};
    uint32_t n = 0;
    *found = pnb__path_is_file(path);
    if (!*found)
        return PNB_OK;
    pnb_status status = pnb__map_open(&as_source.map, path, err);
    if (status == PNB_OK)
        status = unpack(&as_source, err);
    f->map = as_source.map;
    f->own = as_source.own;
    f->label = f->map.data;
    f->n = f->map.size;
    if (status == PNB_OK && is_idx) {
        status = idx_sizes(&f->map, 1, path, &n, err);
        f->label = status == PNB_OK ? f->map.data + 8 : NULL;
        f->n = f->map.size - PNB_MIN(f->map.size, (size_t)8);
        if (status == PNB_OK && f->n != n)
            status =
                pnb__fail(err, PNB_FORMAT, "%s: says it holds %u labels, holds %zu", path, n, f->n);
    }
    return status;
}

static pnb_status find_labels(label_file *f, const char *path, pnb_error *err)
{
    bool is_idx = strstr(pnb__path_base(path), "idx3-ubyte") != NULL, found = false;
    char *beside =
        is_idx ? replaced(path, "images-idx3", "labels-idx1") : replaced(path, "_X.bin", "_y.bin");
    if (is_idx && beside == NULL)
        beside = replaced(path, "images.idx3", "labels.idx1");
    if (beside == NULL)
        return pnb__fail_nomem(err, strlen(path));
    pnb_status status = open_labels(f, beside, is_idx, &found, err);
    if (status == PNB_OK && !found && pnb__ends_with(beside, ".gz")) {
        beside[strlen(beside) - 3] = 0;
        status = open_labels(f, beside, is_idx, &found, err);
    }
    pnb__free(beside);
    return status;
}

/* ---- scanning ---- */

static pnb_status find_layout(const pnb__source *source, layout *out, pnb_error *err)
{
    const char *base = pnb__path_base(source->path);
    uint32_t sizes[3];
    if (strstr(base, "idx3-ubyte") == NULL) {
        *out = pnb__ends_with(base, "_X.bin") ? STL10 : strstr(base, "_batch") ? CIFAR10 : CIFAR100;
        return PNB_OK;
    }
    pnb_status status = idx_sizes(&source->map, 3, source->path, sizes, err);
    if (status != PNB_OK)
        return status;
    if (sizes[1] < 1 || sizes[2] < 1 || sizes[1] > MAX_SIDE || sizes[2] > MAX_SIDE)
        return pnb__fail(err, PNB_LIMIT, "%s: pictures of %u x %u; sides of 1 to %d are read",
                         source->path, sizes[2], sizes[1], (int)MAX_SIDE);
    *out = (layout){{(int)sizes[2], (int)sizes[1], 1, false}, 16, 0, 0, "classnames.txt"};
    uint64_t wanted = (uint64_t)sizes[0] * sizes[1] * sizes[2]; /* at most 2^62 */
    if (wanted != source->map.size - 16)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: says %u pictures of %u x %u, which are %llu bytes; it holds %zu",
                         source->path, sizes[0], sizes[2], sizes[1], (unsigned long long)wanted,
                         source->map.size - 16);
    return PNB_OK;
}

static pnb_status add_record(pnb_dataset *ds, const layout *l, size_t offset, int label,
                             pnb_error *err)
{
    pnb__entry entry = pnb__entry_empty();
    char key[32];
    snprintf(key, sizeof key, "%zu", ds->n_entries); /* over all files of the set */
    entry.key = pnb__dataset_add_text(ds, key);
    entry.image =
        (pnb__span){offset + l->before,
                    (size_t)l->raw.width * (size_t)l->raw.height * (size_t)l->raw.channels, true};
    entry.label = label;
    if (label >= 0 && (size_t)label < ds->n_classes)
        entry.text = pnb__dataset_add_text(ds, ds->classes[label]);
    return pnb__dataset_add_entry(ds, &entry, err);
}

static pnb_status add_records(pnb_dataset *ds, const pnb__source *source, const layout *l,
                              const label_file *labels, pnb_error *err)
{
    size_t pixels = (size_t)l->raw.width * (size_t)l->raw.height * (size_t)l->raw.channels;
    size_t record = l->before + pixels, n_bytes = source->map.size - l->header;
    size_t n = n_bytes / record;
    if (n == 0 || n_bytes % record != 0)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: %zu bytes are no whole number of records of %zu (%d x %d pixels, %d "
                         "channels)",
                         source->path, n_bytes, record, l->raw.width, l->raw.height,
                         l->raw.channels);
    if (labels->label != NULL && labels->n != n)
        return pnb__fail(err, PNB_FORMAT, "%s: %zu pictures, but %zu labels beside them",
                         source->path, n, labels->n);
    for (size_t i = 0; i < n; i++) {
        size_t offset = l->header + i * record;
        int label = -1;
        if (l->before > 0)
            label = source->map.data[offset + l->label];
        else if (labels->label != NULL)
            label = labels->label[i] - (l->raw.by_columns ? 1 : 0); /* STL-10 counts from 1 */
        pnb_status status = add_record(ds, l, offset, label, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

pnb_status pnb__scan_binary(pnb_dataset *ds, const char *path, pnb_error *err)
{
    label_file labels = {0};
    layout l;
    bool found;
    char *dir = pnb__path_dir(path);
    pnb_status status = dir ? PNB_OK : pnb__fail_nomem(err, strlen(path));
    if (status != PNB_OK)
        return status;
    if (ds->opts.kind == PNB_DATASET_BINARY && !pnb__is_binary(path))
        PNB_TRY(pnb__fail(err, PNB_ARG,
                          "%s: the name says which set it is; wanted *_batch*.bin (CIFAR-10), "
                          "train.bin or test.bin (CIFAR-100), *_X.bin (STL-10), or "
                          "*images-idx3-ubyte (MNIST)",
                          path));
    PNB_TRY(pnb__dataset_add_source(ds, PNB_DATASET_BINARY, path, err));
    pnb__source *source = &ds->sources[ds->n_sources - 1];
    PNB_TRY(unpack(source, err));
    PNB_TRY(find_layout(source, &l, err));
    source->raw = l.raw;
    PNB_TRY(pnb__classes_load(ds, dir, l.names, &found, err));
    if (l.before == 0)
        PNB_TRY(find_labels(&labels, path, err));
    PNB_TRY(add_records(ds, source, &l, &labels, err));
    if (l.before == 0 && labels.label == NULL)
        status = pnb__dataset_warn(ds, err, "%s: no file of labels beside it", path);
done:
    label_file_close(&labels);
    pnb__free(dir);
    return status;
}

/* ---- pictures ---- */

pnb_status pnb__binary_image(const pnb_dataset *ds, const pnb__entry *e, const pnb_image_opts *opts,
                             pnb_image *out, pnb_error *err)
{
    const pnb__source *source = &ds->sources[e->source];
    const pnb__raw *raw = &source->raw;
    const unsigned char *pixels = source->map.data + e->image.offset;
    bool is_grey = raw->channels == 1;
    int channels = is_grey && opts != NULL && opts->native ? 1 : 3;
    size_t w = (size_t)raw->width, h = (size_t)raw->height;
    if (opts != NULL && opts->max_pixels > 0 && (int64_t)w * raw->height > opts->max_pixels)
        return pnb__fail(err, PNB_LIMIT, "a picture of %zu x %zu pixels", w, h);
    pnb_status status = pnb_image_create(out, raw->width, raw->height, channels, err);
    if (status != PNB_OK)
        return status;
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++)
            for (size_t c = 0; c < (size_t)channels; c++) {
                size_t place = raw->by_columns ? x * h + y : y * w + x;
                out->pixels[(y * w + x) * (size_t)channels + c] =
                    pixels[(is_grey ? 0 : c * w * h) + place];
            }
    return PNB_OK;
}
