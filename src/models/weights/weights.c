/* Values of the weights that weights_declare.c names: drawn, moved between file and memory, saved.
 *
 * Random numbers are counter-based per weight, so a model of a seed is the same on every machine;
 * it is not torch's stream. A value is mapped where order, type, alignment and device allow, else
 * converted into memory of its own. */
#include "models/weights/weights.h"

#include <math.h>
#include <string.h>

#include "models/keys/batch_counts.h"
#include "models/weights/quantized_weights.h"

void pnb__weights_reset(pnb__weights *w)
{
    for (size_t i = 0; i < w->n; i++) {
        pnb__param_unpack(&w->items[i].param, &w->kernels);
        if (w->items[i].owned)
            pnb__param_free(&w->items[i].param, &w->kernels,
                            pnb__quantized_bytes(w, &w->items[i].param));
        pnb__quantized_reset(w, &w->items[i]);
    }
    pnb__free(w->items);
    pnb__arena_free(&w->arena);
    pnb__weight_file_close(&w->file);
    memset(w, 0, sizeof *w);
}

/* ---- values ----
 *
 *     drawn      a new model: by the kind that the weight was declared with, from its own stream
 *     mapped     the file's bytes as they lie, read-only
 *     converted  another type, order or device: memory of its own
 *     resized    a position table of another number of rows
 *     stored     8 or 16 bits as they lie (quantized_weights.h)
 *
 * Values move through mem_read and mem_write of the kernels, because memory may be a device's. */

/* Memory of the device for one weight, of its own size and type; nobody reads it before it is
 * written. */
static pnb_status allocate(pnb__weights *w, pnb__weight *item, pnb_error *err)
{
    size_t bytes = pnb__quantized_bytes(w, &item->param);
    pnb_status status = pnb__param_alloc(&item->param, &w->kernels, bytes, err);
    if (status != PNB_OK)
        return status;
    item->owned = true;
    item->param.fixed = true; /* until training asks for memory of its own */
    return PNB_OK;
}

/* Row r of the fixed 2-D table (He et al. 2022; get_2d_sincos_pos_embed of MAE's code). With width
 * C, position p and omega_k = 10000^(-k / (C/4)), k = 0 .. C/4 - 1: [ sin(x omega_k), cos(x
 * omega_k), sin(y omega_k), cos(y omega_k) ]      C/4 numbers each x is the column and comes first,
 * though rows of the table run over y first. Rows in front of the grid (CLS) are zero; the grid is
 * square, its side the root of the rows. */
static double sincos_value(const pnb__param *p, size_t index)
{
    size_t width = p->shape[1], row = index / width, col = index % width;
    size_t n_patches = 1, first;
    while ((n_patches + 1) * (n_patches + 1) <= p->shape[0])
        n_patches++;
    first = p->shape[0] - n_patches * n_patches;
    if (row < first)
        return 0;
    size_t half = width / 2, quarter = half / 2, within = col % half;
    size_t grid_x = (row - first) % n_patches, grid_y = (row - first) / n_patches;
    double position = (double)(col < half ? grid_x : grid_y);
    double omega = pow(10000.0, -(double)(within % quarter) / (double)quarter);
    return within < quarter ? sin(position * omega) : cos(position * omega);
}

/* Values from `first` on of a weight; a stream is read in order, so each takes as many draws as its
 * kind does. */
static void draw(const pnb__weight *item, pnb__rng *rng, size_t first, size_t n, double *out)
{
    switch (item->init) {
    case PNB__INIT_CONSTANT:
        for (size_t i = 0; i < n; i++)
            out[i] = item->value;
        return;
    case PNB__INIT_NORMAL:
        pnb__rng_normals(rng, n, out);
        for (size_t i = 0; i < n; i++)
            out[i] = item->centre + item->value * out[i];
        return;
    case PNB__INIT_UNIFORM:
        for (size_t i = 0; i < n; i++)
            out[i] = item->centre + item->value * (2 * pnb__rng_uniform(rng) - 1);
        return;
    case PNB__INIT_SINCOS:
        for (size_t i = 0; i < n; i++)
            out[i] = sincos_value(&item->param, first + i);
        return;
    }
}

/* The stream of a weight comes from its name, so adding weights elsewhere does not change it: a
 * model with and without [UNC] starts from the same numbers elsewhere. Values go to the device in
 * blocks of 256 and are rounded there. */
pnb_status pnb__weights_init(pnb__weights *w, uint64_t seed, pnb_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        pnb__weight *item = &w->items[i];
        pnb_status status = allocate(w, item, err);
        if (status != PNB_OK)
            return status;
        pnb__rng rng;
        pnb__rng_init(&rng, seed, pnb__hash_bytes(item->param.name, strlen(item->param.name), 0));
        double block[256];
        for (size_t at = 0; at < item->param.n; at += PNB_COUNT(block)) {
            size_t n = PNB_MIN(PNB_COUNT(block), item->param.n - at);
            draw(item, &rng, at, n, block);
            status = pnb__param_write(&item->param, &w->kernels, at, n, block, err);
            if (status != PNB_OK)
                return status;
        }
    }
    return PNB_OK;
}

/* Other types, other devices, f64 graphs: through doubles, which hold every value of every type, so
 * that rounding happens once, on writing. */
static pnb_status load_converted(pnb__weights *w, pnb__weight *item, const pnb_array_view *a,
                                 pnb_error *err)
{
    pnb_status status = allocate(w, item, err);
    if (status != PNB_OK)
        return status;
    float *on_host = pnb__param_on_host(&item->param, &w->kernels);
    if (w->kernels.real == PNB__F32 && on_host != NULL)
        return pnb_array_to_f32(a, on_host, err);
    double *values = pnb__alloc_array(PNB_MAX(item->param.n, (size_t)1), sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, item->param.n * sizeof *values);
    status = pnb_array_to_f64(a, values, err);
    if (status == PNB_OK)
        status = pnb__param_write(&item->param, &w->kernels, 0, item->param.n, values, err);
    pnb__free(values);
    return status;
}

/* Mapped when the bytes are already what the kernels read: f32, in our order (not packed or
 * transposed), aligned, on a device that reads host memory. A released ViT-B/16 then opens without
 * copying any of its 790 MB; pages that nothing reads are never loaded. */
static pnb_status load_one(pnb__weights *w, pnb__weight *item, pnb_error *err)
{
    pnb__gathered g;
    pnb_status status = pnb__key_mapping_gather(&w->layout, &w->file, &item->param, false, &g, err);
    if (status != PNB_OK)
        return status;
    bool taken = false;
    status = pnb__quantized_load(w, item, &g, &taken, err);
    if (taken || status != PNB_OK) {
        pnb__free(g.owned);
        return status;
    }
    bool is_scalar = &item->param == w->logit_scale || &item->param == w->logit_bias;
    bool maps = !(is_scalar && w->layout.plain_scale != NULL) && w->kernels.host_memory &&
                w->kernels.real == PNB__F32 && g.view.dtype == PNB_F32 && g.owned == NULL &&
                pnb_array_is_aligned(&g.view);
    if (maps)
        pnb__param_map(&item->param, g.view.data);
    else
        status = load_converted(w, item, &g.view, err);
    pnb__free(g.owned);
    return status;
}

/* A position table of another number of rows, through doubles: old (n_old,C) -> (R,C) by the rule
 * that its family declared. */
static pnb_status load_resized(pnb__weights *w, pnb__weight *item, const pnb__config *c,
                               const pnb__resize *resize, pnb_error *err)
{
    pnb__gathered g;
    size_t n = item->param.n;
    pnb_status status = pnb__key_mapping_gather(&w->layout, &w->file, &item->param, true, &g, err);
    if (status != PNB_OK)
        return status;
    double *old = pnb__alloc_array(pnb_array_size(&g.view) + 1, sizeof *old);
    double *fresh = pnb__alloc_array(n + 1, sizeof *fresh);
    if (old == NULL || fresh == NULL)
        status = pnb__fail_nomem(err, n * sizeof *fresh);
    if (status == PNB_OK)
        status = pnb_array_to_f64(&g.view, old, err);
    if (status == PNB_OK)
        status = item->resize_rows(&(pnb__resize_rows){.param = &item->param,
                                                       .config = c,
                                                       .resize = resize,
                                                       .old = old,
                                                       .n_old = (size_t)g.view.shape[0],
                                                       .fresh = fresh},
                                   err);
    if (status == PNB_OK)
        status = allocate(w, item, err);
    if (status == PNB_OK)
        status = pnb__param_write(&item->param, &w->kernels, 0, n, fresh, err);
    pnb__free(old);
    pnb__free(fresh);
    pnb__free(g.owned);
    return status;
}

/* Is key the scales of the 8-bit array `part`? They are expected beside it, and only beside an
 * 8-bit one. */
static bool is_scale_of(const pnb__weight *item, const char *part, const char *key)
{
    size_t n = strlen(part);
    return item->param.store == PNB__STORE_I8 && strncmp(key, part, n) == 0 &&
           strcmp(key + n, PNB__SCALE_SUFFIX) == 0;
}

/* All weights against one key: only asked for when something is wrong, and by `check`. */
bool pnb__weights_expects(const pnb__weights *w, const char *key)
{
    pnb__key_mapping_part parts[3];
    if (pnb__key_mapping_ignores(&w->layout, key))
        return true;
    for (size_t i = 0; i < w->n; i++) {
        size_t n = pnb__key_mapping_parts(&w->layout, w->items[i].param.name, parts);
        for (size_t p = 0; p < n; p++)
            if (strcmp(parts[p].key, key) == 0 || is_scale_of(&w->items[i], parts[p].key, key))
                return true;
    }
    return false;
}

/* Every key of the file must be expected. Only when the numbers differ is it worth looking for the
 * one that is not: all expected ones were found, and keys are unique. */
static pnb_status check_unexpected(const pnb__weights *w, pnb_error *err)
{
    pnb__key_mapping_part parts[3];
    size_t n_read = 0, n_file = pnb__weight_file_count(&w->file);
    for (size_t i = 0; i < w->n; i++) {
        size_t n = pnb__key_mapping_parts(&w->layout, w->items[i].param.name, parts);
        n_read += w->items[i].param.store == PNB__STORE_I8 ? 2 * n : n;
    }
    for (size_t i = 0; i < n_file; i++)
        n_read +=
            pnb__key_mapping_ignores(&w->layout, pnb__weight_file_at(&w->file, i)->name) ? 1 : 0;
    if (n_read == n_file)
        return PNB_OK;
    for (size_t i = 0; i < n_file; i++) {
        const char *key = pnb__weight_file_at(&w->file, i)->name;
        if (!pnb__weights_expects(w, key))
            return pnb__fail(err, PNB_FORMAT,
                             "unexpected weight %s; the configuration describes a model without it",
                             key);
    }
    return PNB_OK;
}

/* The file has a itself, and we its logarithm; from here on both numbers are ours, under our names.
 */
static pnb_status take_plain_scale(pnb__weights *w, pnb_error *err)
{
    double a = 0;
    if (w->layout.plain_scale == NULL || w->logit_scale == NULL)
        return PNB_OK;
    pnb_status status = pnb__param_read(w->logit_scale, &w->kernels, 0, 1, &a, err);
    if (status == PNB_OK && !(a > 0 && isfinite(a)))
        status =
            pnb__fail(err, PNB_NUMERIC, "%s is %g, it must be above 0", w->layout.plain_scale, a);
    a = log(a);
    if (status == PNB_OK)
        status = pnb__param_write(w->logit_scale, &w->kernels, 0, 1, &a, err);
    for (size_t i = 0; i < w->n; i++) /* converting takes them from memory, not from the file */
        w->items[i].resized |=
            &w->items[i].param == w->logit_scale || &w->items[i].param == w->logit_bias;
    w->layout.plain_taken = true;
    return status;
}

/* Errors name the file, then the array: `model.safetensors: visual.proj: file has (..), ..`. */
pnb_status pnb__weights_load(pnb__weights *w, const pnb__config *c, const pnb__resize *resize,
                             pnb_error *err)
{
    pnb_status status = pnb__quantized_read_record(w, err);
    for (size_t i = 0; status == PNB_OK && i < w->n; i++) {
        pnb__weight *item = &w->items[i];
        bool other_size = resize != NULL && (item->is_text ? resize->text : resize->old_height > 0);
        item->resized = other_size && item->resize_rows != NULL;
        status = item->resized ? load_resized(w, item, c, resize, err) : load_one(w, item, err);
    }
    if (status == PNB_OK)
        status = check_unexpected(w, err);
    if (status == PNB_OK)
        status = pnb__batch_counts_load(w, &w->layout, &w->file, err);
    if (status == PNB_OK)
        status = take_plain_scale(w, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", w->file.path);
    return status;
}

/* For training: what is mapped is copied, what is kept in 16 bits widened, what inference packed
 * given back, since packed copies would not follow the weights. Then the map may go. */
pnb_status pnb__weights_widen(pnb__weights *w, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < w->n && status == PNB_OK; i++) {
        if (w->items[i].param.store == PNB__STORE_REAL)
            continue;
        pnb__param_unpack(&w->items[i].param, &w->kernels);
        status = pnb__quantized_widen(w, &w->items[i], err);
    }
    return status;
}

pnb_status pnb__weights_make_owned(pnb__weights *w, pnb_error *err)
{
    pnb_status status = pnb__weights_widen(w, err);
    for (size_t i = 0; i < w->n && status == PNB_OK; i++) {
        pnb__weight *item = &w->items[i];
        pnb__param_unpack(&item->param, &w->kernels);
        if (!item->owned)
            status = pnb__param_own(&item->param, &w->kernels,
                                    pnb__quantized_bytes(w, &item->param), err);
        item->owned = item->owned || status == PNB_OK;
        item->param.fixed = !item->owned;
    }
    if (status != PNB_OK)
        return status;
    pnb__weight_file_close(&w->file);
    return PNB_OK;
}

/* The weight as a view of host memory, for writing to a file; `staged` receives a copy to free when
 * it lies elsewhere. */
static pnb_status view_of(const pnb__weights *w, const pnb__param *p, pnb_array_view *v,
                          void **staged, pnb_error *err)
{
    *staged = NULL;
    *v = (pnb_array_view){.name = p->name,
                          .dtype = pnb__quantized_dtype(w, p),
                          .n_dims = p->n_dims,
                          .data = pnb__param_on_host(p, &w->kernels),
                          .n_bytes = pnb__quantized_bytes(w, p)};
    for (int d = 0; d < p->n_dims; d++)
        v->shape[d] = (int64_t)p->shape[d];
    if (w->kernels.host_memory)
        return PNB_OK;
    *staged = pnb__alloc(PNB_MAX(v->n_bytes, (size_t)1));
    if (*staged == NULL)
        return pnb__fail_nomem(err, v->n_bytes);
    v->data = *staged;
    return pnb__param_read_bytes(p, &w->kernels, v->n_bytes, *staged, err);
}

/* a or b itself, for a layout that has them so: the file's own bits where that was one too, so that
 * there and back is the same; else exp of our logarithm, b as it is, in f32. */
static pnb_status plain_source(const pnb__weights *w, const pnb__weight *item, bool raw,
                               pnb__gathered *out, pnb_error *err)
{
    double value = 0;
    if (raw && w->layout.plain_scale != NULL) {
        pnb__key_mapping plain = w->layout;
        plain.plain_taken = false;
        return pnb__key_mapping_gather(&plain, &w->file, &item->param, false, out, err);
    }
    float *number = pnb__alloc(sizeof *number);
    if (number == NULL)
        return pnb__fail_nomem(err, sizeof *number);
    pnb_status status = pnb__param_read(&item->param, &w->kernels, 0, 1, &value, err);
    *number = (float)(&item->param == w->logit_scale ? exp(value) : value);
    out->owned = number;
    out->view = (pnb_array_view){
        .name = item->param.name, .dtype = PNB_F32, .data = number, .n_bytes = sizeof *number};
    return status;
}

/* A weight for writing: `raw` takes the file's own bits (converting between layouts changes no
 * value), else those in memory, narrowed where the model was rounded to 16 bits. */
static pnb_status source_of(const pnb__weights *w, const pnb__weight *item,
                            const pnb__key_mapping *to, bool raw, pnb__gathered *out,
                            pnb_error *err)
{
    bool is_scalar = &item->param == w->logit_scale || &item->param == w->logit_bias;
    *out = (pnb__gathered){0};
    if (is_scalar && to->plain_scale != NULL && !to->plain_taken)
        return plain_source(w, item, raw, out, err);
    if (raw && !item->resized)
        return pnb__key_mapping_gather(&w->layout, &w->file, &item->param, false, out, err);
    pnb_status status = view_of(w, &item->param, &out->view, &out->owned, err);
    bool narrow = !raw && w->half != PNB_F32 && item->param.store == PNB__STORE_REAL &&
                  pnb__quantized_is_small(&item->param);
    return status == PNB_OK && narrow ? pnb__quantized_narrow(out, w->half, err) : status;
}

/* At most six arrays a weight: three parts of a packed projection, and their scales; or a running
 * variance and its count. The record of
 * a small model and "format": "pt", which transformers asks for, go into the metadata. */
static pnb_status write_weights(const pnb__weights *w, const pnb__key_mapping *to, bool raw,
                                const char *path, pnb_error *err)
{
    const char *const metadata[] = {"format", "pt", /* what hub readers expect */
                                    w->record != NULL ? PNB__STORE_RECORD : NULL, w->record, NULL};
    pnb__arena arena;
    pnb__arena_init(&arena, 16 * 1024);
    pnb_array_view *views = pnb__alloc_zero(6 * w->n + 1, sizeof *views); /* three parts, scales */
    pnb__gathered *sources = pnb__alloc_zero(w->n + 1, sizeof *sources);
    size_t n = 0;
    pnb_status status =
        views == NULL || sources == NULL ? pnb__fail_nomem(err, 3 * w->n * sizeof *views) : PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < w->n; i++) {
        status = source_of(w, &w->items[i], to, raw, &sources[i], err);
        if (status == PNB_OK)
            status = pnb__key_mapping_scatter(to, &sources[i].view, &arena, views, &n, err);
        if (status == PNB_OK && w->items[i].param.store == PNB__STORE_I8)
            status =
                pnb__quantized_scatter_scales(w, to, &w->items[i].param, &arena, views, &n, err);
    }
    if (status == PNB_OK)
        status = pnb__batch_counts_scatter(w, to, &arena, views, &n, err);
    if (status == PNB_OK)
        status = pnb_safetensors_write(path, views, n, metadata, err);
    for (size_t i = 0; sources != NULL && i < w->n; i++)
        pnb__free(sources[i].owned);
    pnb__free(sources);
    pnb__free(views);
    pnb__arena_free(&arena);
    return status;
}

pnb_status pnb__weights_save(const pnb__weights *w, const char *path, pnb_error *err)
{
    return write_weights(w, &w->layout, false, path, err);
}

pnb_status pnb__weights_write_as(const pnb__weights *w, const pnb__key_mapping *to,
                                 const char *path, pnb_error *err)
{
    return write_weights(w, to, true, path, err);
}

/* One pass over every value of a tower, at its first encoding: a NaN would spread over all rows of
 * all embeddings, and its origin could not be told from them. */
pnb_status pnb__weights_check_finite(const pnb__weights *w, bool text, pnb_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const pnb__param *p = &w->items[i].param;
        if (w->items[i].is_text != text)
            continue;
        bool finite = true;
        pnb_status status = PNB_OK;
        if (p->store != PNB__STORE_REAL)
            status = pnb__quantized_look(w, p, &finite, err);
        else
            finite = pnb__param_is_finite(p, &w->kernels);
        if (status != PNB_OK)
            return status;
        if (!finite)
            return pnb__fail(err, PNB_NUMERIC,
                             "%s holds NaN or infinity; the file is damaged or the training that "
                             "wrote it diverged",
                             p->name);
    }
    return PNB_OK;
}
