/* Weights in 8 and 16 bits.
 *
 * 8 bits: row n of a matrix W (N,K) is round(W[n][k] / t_n) with t_n = max_k |W[n][k]| / 127, one
 * scale for each output channel, symmetric (Krishnamoorthi 2018, section 3.1.1). 16 bits: the
 * values as bf16 or f16, used as they are mapped where the product can widen them, widened at
 * loading elsewhere. What happens to the activations of an 8-bit product is gemm_i8's business
 * (kernels/kernels.h). */
#include "models/weights/quantized_weights.h"

#include <math.h>
#include <string.h>

enum { MOST = 127 };

/* in_proj (3C,C), out_proj (C,C), c_fc (4C,C), c_proj (C,4C): 12 C^2 of each block's 12 C^2 + 13 C
 * numbers. Token and position tables are read a row at a time, norms and biases are added: bits
 * saved there save nothing and cost exactness. */
bool pnb__quantized_is_small(const pnb__param *p)
{
    return p->n_dims == 2 && strstr(p->name, ".transformer.resblocks.") != NULL;
}

size_t pnb__quantized_bytes(const pnb__weights *w, const pnb__param *p)
{
    switch (p->store) {
    case PNB__STORE_I8:
        return p->n;
    case PNB__STORE_BF16:
    case PNB__STORE_F16:
        return p->n * sizeof(uint16_t);
    case PNB__STORE_REAL:
        break;
    }
    return p->n * PNB__REAL_SIZE(w->kernels.real);
}

pnb_dtype pnb__quantized_dtype(const pnb__weights *w, const pnb__param *p)
{
    switch (p->store) {
    case PNB__STORE_I8:
        return PNB_I8;
    case PNB__STORE_BF16:
        return PNB_BF16;
    case PNB__STORE_F16:
        return PNB_F16;
    case PNB__STORE_REAL:
        break;
    }
    return w->kernels.real == PNB__F32 ? PNB_F32 : PNB_F64;
}

/* As the file has them: a model rounded to 16 bits in this process keeps f32 in memory until it is
 * saved and opened again, but is told by what it will be. */
size_t pnb__quantized_total_bytes(const pnb__weights *w)
{
    size_t bytes = 0;
    for (size_t i = 0; i < w->n; i++) {
        const pnb__param *p = &w->items[i].param;
        bytes += w->half != PNB_F32 && pnb__quantized_is_small(p) ? p->n * sizeof(uint16_t)
                                                                  : pnb__quantized_bytes(w, p);
        if (p->store == PNB__STORE_I8)
            bytes += p->shape[0] * PNB__REAL_SIZE(w->kernels.real);
    }
    return bytes;
}

/* The first matrix in fewer bits speaks for all: they are made together. */
const char *pnb__quantized_describe(const pnb__weights *w)
{
    for (size_t i = 0; i < w->n; i++) {
        switch (w->items[i].param.store) {
        case PNB__STORE_I8:
            return w->items[i].param.i8_levels == PNB__I8_LEVELS_8BIT
                       ? "int8, activations in 8 bits"
                       : "int8, activations in 7 bits";
        case PNB__STORE_BF16:
            return "bf16";
        case PNB__STORE_F16:
            return "f16";
        case PNB__STORE_REAL:
            break;
        }
    }
    if (w->half != PNB_F32)
        return w->half == PNB_BF16 ? "bf16" : "f16";
    return w->kernels.real == PNB__F32 ? "f32" : "f64";
}

/* ---- from a file ---- */

/* The file's bytes as the weight's values: mapped where they can be, else copied. */
static pnb_status take_bytes(pnb__weights *w, pnb__weight *item, const pnb__gathered *g,
                             pnb__store store, pnb_error *err)
{
    pnb__param *p = &item->param;
    p->store = store;
    p->fixed = true;
    if (w->kernels.host_memory && g->owned == NULL && pnb_array_is_aligned(&g->view)) {
        p->data = (void *)(uintptr_t)g->view.data; /* never written: training widens a copy */
        p->mapped = true;
        return PNB_OK;
    }
    pnb_status status =
        w->kernels.mem_alloc(w->kernels.ctx, &p->data, PNB_MAX(g->view.n_bytes, (size_t)1), err);
    if (status != PNB_OK)
        return status;
    item->owned = true;
    return w->kernels.mem_write(w->kernels.ctx, p->data, g->view.data, g->view.n_bytes, err);
}

/* t (N) in device memory, in the real type of the products that will multiply by it. */
static pnb_status allocate_scales(const pnb__weights *w, pnb__param *p, const double *values,
                                  pnb_error *err)
{
    size_t n = p->shape[0], bytes = n * PNB__REAL_SIZE(w->kernels.real);
    const pnb_ctx *ctx = w->kernels.ctx;
    void *scales = NULL;
    pnb_status status = w->kernels.mem_alloc(ctx, &scales, bytes, err);
    p->scales = scales;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        float f32 = (float)values[i];
        if (w->kernels.real == PNB__F64)
            status =
                w->kernels.mem_write(ctx, (double *)scales + i, &values[i], sizeof values[i], err);
        else
            status = w->kernels.mem_write(ctx, (float *)scales + i, &f32, sizeof f32, err);
    }
    return status;
}

/* Scales of all parts of the weight, in its order of rows: a scale belongs to an output channel, so
 * a packed q,k,v that a file keeps apart has three lists of C, joined like the rows. A transposed
 * part would scale columns; block matrices are never transposed. */
static pnb_status read_scales(const pnb__weights *w, const pnb__param *p, double *out,
                              pnb_error *err)
{
    pnb__key_mapping_part parts[3];
    size_t n = pnb__key_mapping_parts(&w->layout, p->name, parts), at = 0;
    for (size_t i = 0; i < n; i++) {
        char key[224];
        snprintf(key, sizeof key, "%s%s", parts[i].key, PNB__SCALE_SUFFIX);
        size_t rows = p->shape[0] / 3 * parts[i].n_thirds;
        if (parts[i].n_thirds == 3)
            rows = p->shape[0];
        const pnb_array_view *a = pnb__weight_file_lookup(&w->file, key);
        if (a == NULL)
            return pnb__fail(err, PNB_DTYPE,
                             "%s is stored in 8 bits, but its scales %s are missing", parts[i].key,
                             key);
        if (a->n_dims != 1 || a->shape[0] != (int64_t)rows || a->dtype != PNB_F32)
            return pnb__fail(err, PNB_SHAPE, "%s must be %zu values of type F32", key, rows);
        pnb_status status = pnb_array_to_f64(a, out + at, err);
        if (status != PNB_OK)
            return status;
        at += rows;
    }
    return PNB_OK;
}

/* The bytes as they are mapped, with their scales: W[n][k] = t_n * byte[n][k]. */
static pnb_status load_i8(pnb__weights *w, pnb__weight *item, const pnb__gathered *g,
                          pnb_error *err)
{
    pnb__param *p = &item->param;
    if (!pnb__quantized_is_small(p))
        return pnb__fail(err, PNB_DTYPE, "%s is stored in 8 bits; only matrices of blocks may be",
                         p->name);
    double *scales = pnb__alloc_array(p->shape[0] + 1, sizeof *scales);
    if (scales == NULL)
        return pnb__fail_nomem(err, p->shape[0] * sizeof *scales);
    pnb_status status = read_scales(w, p, scales, err);
    if (status == PNB_OK)
        status = allocate_scales(w, p, scales, err);
    if (status == PNB_OK)
        status = take_bytes(w, item, g, PNB__STORE_I8, err);
    p->i8_levels = w->i8_levels;
    pnb__free(scales);
    return status;
}

/* 16 bits are kept only where the product can widen them as it packs, that is with f32 graphs on
 * kernels that pack; the reference kernels get real values. */
pnb_status pnb__quantized_load(pnb__weights *w, pnb__weight *item, const pnb__gathered *g,
                               bool *taken, pnb_error *err)
{
    pnb_dtype dtype = g->view.dtype;
    *taken = true;
    if (dtype == PNB_I8)
        return load_i8(w, item, g, err);
    bool is_half = dtype == PNB_BF16 || dtype == PNB_F16;
    *taken = is_half && w->kernels.gemm_group > 0 && w->kernels.real == PNB__F32 &&
             pnb__quantized_is_small(&item->param);
    if (!*taken)
        return PNB_OK;
    return take_bytes(w, item, g, dtype == PNB_BF16 ? PNB__STORE_BF16 : PNB__STORE_F16, err);
}

/* ---- from real values ----
 *
 * With q = round(W / t) the product of a row is y_n = t_n sum_k q_nk x_k. Each weight is off by at
 * most t_n / 2 = max|W_n| / 254, independently of the others, so y_n is off by about t_n / sqrt(12)
 * * |x|: a scale for each row keeps one large weight from coarsening the whole matrix. bf16 rounds
 * to 8 significant bits (relative error 2^-9) with the range of f32; f16 to 11 (2^-12), but nothing
 * beyond 65504. */

/* One row: byte_k = round(127 w_k / max|w|), ties to even; returns t = max|w| / 127, so that the
 * largest weight is met exactly and the error of each is at most t/2. A row of zeros gets scale 0.
 * -128 is not used: a symmetric range needs no zero point in the product. */
static double quantize_row(const double *row, size_t k, signed char *bytes)
{
    double most = 0;
    for (size_t i = 0; i < k; i++)
        most = fmax(most, fabs(row[i]));
    for (size_t i = 0; i < k; i++)
        bytes[i] = most > 0 ? (signed char)lrint(row[i] / most * MOST) : 0;
    return most / MOST;
}

/* Mapped values are the file's and stay. */
static void free_values(const pnb__weights *w, pnb__weight *item)
{
    if (item->owned)
        w->kernels.mem_free(w->kernels.ctx, item->param.data,
                            pnb__quantized_bytes(w, &item->param));
    item->owned = false;
}

/* Row by row through the host, since the matrix may lie on a device. The old values go when the new
 * ones are complete: a failure leaves the weight as it was. */
pnb_status pnb__quantized_make(pnb__weights *w, pnb__weight *item, int levels, pnb_error *err)
{
    pnb__param *p = &item->param;
    size_t n = p->shape[0], k = p->shape[1];
    double *row = pnb__alloc_array(k, sizeof *row), *scales = pnb__alloc_array(n, sizeof *scales);
    signed char *line = pnb__alloc(k);
    void *bytes = NULL;
    pnb_status status = w->kernels.mem_alloc(w->kernels.ctx, &bytes, n * k, err);
    if (status == PNB_OK && (row == NULL || scales == NULL || line == NULL))
        status = pnb__fail_nomem(err, n * k);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        status = pnb__param_read(p, &w->kernels, i * k, k, row, err);
        if (status != PNB_OK)
            break;
        scales[i] = quantize_row(row, k, line);
        status = w->kernels.mem_write(w->kernels.ctx, (signed char *)bytes + i * k, line, k, err);
    }
    if (status == PNB_OK)
        status = allocate_scales(w, p, scales, err);
    if (status == PNB_OK) {
        pnb__param_unpack(p, &w->kernels);
        free_values(w, item);
        p->data = bytes;
        p->store = PNB__STORE_I8;
        p->i8_levels = levels;
        p->mapped = false;
        item->owned = true;
    } else if (bytes != NULL) {
        w->kernels.mem_free(w->kernels.ctx, bytes, n * k);
    }
    pnb__free(row);
    pnb__free(scales);
    pnb__free(line);
    return status;
}

/* Narrowed to nearest even and widened again, in place: widening is exact, so the process computes
 * with the very numbers that a reader of the saved file will have. */
pnb_status pnb__quantized_round(const pnb__weights *w, pnb__param *p, pnb_dtype dtype,
                                pnb_error *err)
{
    float values[256];
    uint16_t halves[PNB_COUNT(values)];
    unsigned char *data = p->data;
    pnb_status status = PNB_OK;
    for (size_t at = 0; at < p->n && status == PNB_OK; at += PNB_COUNT(values)) {
        size_t n = PNB_MIN(PNB_COUNT(values), p->n - at), bytes = n * sizeof *values;
        status =
            w->kernels.mem_read(w->kernels.ctx, values, data + at * sizeof *values, bytes, err);
        if (status != PNB_OK)
            break;
        if (dtype == PNB_BF16) {
            pnb_f32_to_bf16(values, halves, n);
            pnb_bf16_to_f32(halves, values, n);
        } else {
            pnb_f32_to_f16(values, halves, n);
            pnb_f16_to_f32(halves, values, n);
        }
        status =
            w->kernels.mem_write(w->kernels.ctx, data + at * sizeof *values, values, bytes, err);
    }
    return status;
}

/* ---- back, and out ---- */

pnb_status pnb__quantized_narrow(pnb__gathered *g, pnb_dtype dtype, pnb_error *err)
{
    size_t n = g->view.n_bytes / sizeof(float);
    uint16_t *halves = pnb__alloc_array(n + 1, sizeof *halves);
    if (halves == NULL)
        return pnb__fail_nomem(err, n * sizeof *halves);
    if (dtype == PNB_BF16)
        pnb_f32_to_bf16(g->view.data, halves, n);
    else
        pnb_f32_to_f16(g->view.data, halves, n);
    pnb__free(g->owned);
    g->owned = halves;
    g->view.data = halves;
    g->view.dtype = dtype;
    g->view.n_bytes = n * sizeof *halves;
    return PNB_OK;
}

/* The record says what no array does: to how many bits the other factor of an 8-bit product is
 * rounded. 7 keeps the sums of two products within 16 bits (vpmaddubsw), 8 needs VNNI to be fast.
 */
pnb_status pnb__quantized_read_record(pnb__weights *w, pnb_error *err)
{
    const char *text = pnb__weight_file_metadata(&w->file, PNB__STORE_RECORD);
    json_t *root = NULL;
    w->i8_levels = PNB__I8_LEVELS_7BIT;
    if (text == NULL)
        return PNB_OK;
    w->record = pnb__arena_strdup(&w->arena, text);
    if (w->record == NULL)
        return pnb__fail_nomem(err, strlen(text));
    pnb_status status =
        pnb__json_load_bytes(&root, text, strlen(text), "metadata " PNB__STORE_RECORD, err);
    const json_t *bits = json_object_get(root, "activation_bits");
    if (status == PNB_OK && bits != NULL && json_integer_value(bits) != 7 &&
        json_integer_value(bits) != 8)
        status = pnb__fail(err, PNB_FORMAT, "metadata %s: activation_bits must be 7 or 8",
                           PNB__STORE_RECORD);
    if (json_integer_value(bits) == 8)
        w->i8_levels = PNB__I8_LEVELS_8BIT;
    json_decref(root);
    return status;
}

/* The halves of p as floats, in pieces. */
static pnb_status widen_into(const pnb__weights *w, const pnb__param *p, float *wide,
                             pnb_error *err)
{
    uint16_t halves[256];
    float values[PNB_COUNT(halves)];
    for (size_t at = 0; at < p->n; at += PNB_COUNT(halves)) {
        size_t n = PNB_MIN(PNB_COUNT(halves), p->n - at);
        pnb_status status = w->kernels.mem_read(
            w->kernels.ctx, halves, (const uint16_t *)p->data + at, n * sizeof *halves, err);
        if (status != PNB_OK)
            return status;
        if (p->store == PNB__STORE_BF16)
            pnb_bf16_to_f32(halves, values, n);
        else
            pnb_f16_to_f32(halves, values, n);
        status = w->kernels.mem_write(w->kernels.ctx, wide + at, values, n * sizeof *values, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* Training moves weights by less than a step of 8 bits, so those are refused rather than widened;
 * 16 bits become f32 of the same values. */
pnb_status pnb__quantized_widen(pnb__weights *w, pnb__weight *item, pnb_error *err)
{
    pnb__param *p = &item->param;
    if (p->store == PNB__STORE_I8)
        return pnb__fail(
            err, PNB_UNSUPPORTED,
            "%s is stored in 8 bits and cannot be trained; train the model it was made "
            "from",
            p->name);
    size_t bytes = p->n * sizeof(float); /* halves are taken as they are in f32 models only */
    void *wide = NULL;
    pnb_status status = w->kernels.mem_alloc(w->kernels.ctx, &wide, PNB_MAX(bytes, (size_t)1), err);
    if (status == PNB_OK)
        status = widen_into(w, p, wide, err);
    if (status != PNB_OK) {
        w->kernels.mem_free(w->kernels.ctx, wide, PNB_MAX(bytes, (size_t)1));
        return status;
    }
    free_values(w, item);
    p->data = wide;
    p->store = PNB__STORE_REAL;
    p->mapped = p->fixed = false;
    item->owned = true;
    return PNB_OK;
}

void pnb__quantized_reset(const pnb__weights *w, pnb__weight *item)
{
    pnb__param *p = &item->param;
    if (p->scales != NULL)
        w->kernels.mem_free(w->kernels.ctx, (void *)(uintptr_t)p->scales,
                            p->shape[0] * PNB__REAL_SIZE(w->kernels.real));
    p->scales = NULL;
}

/* Halves with all bits of the exponent set are infinite or no number: eight bits from 7 on in bf16,
 * five from 10 on in f16. */
static pnb_status look_at_halves(const pnb__weights *w, const pnb__param *p, bool *finite,
                                 pnb_error *err)
{
    const unsigned exponent = p->store == PNB__STORE_BF16 ? 0x7F80 : 0x7C00;
    uint16_t halves[256];
    *finite = true;
    for (size_t at = 0; at < p->n && *finite; at += PNB_COUNT(halves)) {
        size_t n = PNB_MIN(PNB_COUNT(halves), p->n - at);
        pnb_status status = w->kernels.mem_read(
            w->kernels.ctx, halves, (const uint16_t *)p->data + at, n * sizeof *halves, err);
        if (status != PNB_OK)
            return status;
        for (size_t i = 0; i < n; i++)
            *finite = *finite && (halves[i] & exponent) != exponent;
    }
    return PNB_OK;
}

/* Bytes are always numbers; their scales need not be. */
pnb_status pnb__quantized_look(const pnb__weights *w, const pnb__param *p, bool *finite,
                               pnb_error *err)
{
    if (p->store != PNB__STORE_I8)
        return look_at_halves(w, p, finite, err);
    *finite = w->kernels.all_finite(w->kernels.ctx, p->shape[0], p->scales);
    return PNB_OK;
}

/* Scales at .. at+n of the table's real type, as files have them: f32, whatever they are in memory.
 */
static pnb_status read_scales_f32(const pnb__kernels *k, const void *scales, size_t at, size_t n,
                                  float *out, pnb_error *err)
{
    if (k->real == PNB__F32)
        return k->mem_read(k->ctx, out, (const float *)scales + at, n * sizeof *out, err);
    for (size_t i = 0; i < n; i++) {
        double f64 = 0;
        pnb_status status =
            k->mem_read(k->ctx, &f64, (const double *)scales + at + i, sizeof f64, err);
        if (status != PNB_OK)
            return status;
        out[i] = (float)f64;
    }
    return PNB_OK;
}

/* Written beside the parts that the layout splits the weight into, each with its third of the rows.
 */
pnb_status pnb__quantized_scatter_scales(const pnb__weights *w, const pnb__key_mapping *l,
                                         const pnb__param *p, pnb__arena *arena,
                                         pnb_array_view *views, size_t *n, pnb_error *err)
{
    pnb__key_mapping_part parts[3];
    size_t n_parts = pnb__key_mapping_parts(l, p->name, parts);
    for (size_t i = 0; i < n_parts; i++) {
        char key[224];
        snprintf(key, sizeof key, "%s%s", parts[i].key, PNB__SCALE_SUFFIX);
        size_t third = p->shape[0] / 3;
        bool whole = parts[i].n_thirds == 3;
        size_t rows = whole ? p->shape[0] : third * parts[i].n_thirds;
        float *scales = pnb__arena_alloc(arena, rows * sizeof *scales);
        pnb_array_view v = {.name = pnb__arena_strdup(arena, key),
                            .dtype = PNB_F32,
                            .n_dims = 1,
                            .shape = {(int64_t)rows},
                            .data = scales,
                            .n_bytes = rows * sizeof *scales};
        if (v.name == NULL || scales == NULL)
            return pnb__fail_nomem(err, sizeof key + rows * sizeof *scales);
        size_t first = whole ? 0 : third * parts[i].first_third;
        pnb_status status = read_scales_f32(&w->kernels, p->scales, first, rows, scales, err);
        if (status != PNB_OK)
            return status;
        views[(*n)++] = v;
    }
    return PNB_OK;
}
