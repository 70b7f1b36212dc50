/* Parameters of heads: their names and shapes, fresh values, and their way to files and back.
 *
 * Fresh weights and biases are uniform in +-1/sqrt(inputs), as torch's Linear begins and so as all
 * of these methods' released codes do; a method may say where a last layer's biases begin. Shapes
 * come before memory: what a stranger's config.json asks for is looked for in the file first. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "adapt/heads/learned.h"
#include "base/grow.h"

/* ---- declaring ---- */

static pnb__param *add_param(pnb__learned *l, const char *name, int n_dims, const size_t *shape,
                             double start)
{
    assert(l->n_params < PNB__LEARNED_MAX_PARAMS);
    size_t i = l->n_params++;
    pnb__param *p = &l->params[i];
    snprintf(l->names[i], sizeof l->names[i], "%s", name);
    *p = (pnb__param){.name = l->names[i], .n_dims = n_dims, .n = 1, .trainable = true};
    for (int d = 0; d < n_dims; d++) {
        p->shape[d] = shape[d];
        p->n *= shape[d];
    }
    l->list[i] = p;
    l->start[i] = start;
    l->n_weights += p->n;
    return p;
}

void pnb__learned_add_head(pnb__learned *l, int side, int place, const pnb__head_shape *shape)
{
    pnb__learned_head *h = &l->head[side][place];
    const char *word = pnb__adapter_side_word((pnb_adapter_side)side);
    char name[40];
    assert(shape->n_hidden < PNB__HEAD_MAX_LAYERS);
    h->n_layers = shape->n_hidden + 1;
    for (size_t i = 0; i < h->n_layers; i++) {
        bool is_last = i + 1 == h->n_layers;
        size_t in = i == 0 ? shape->in : shape->hidden;
        size_t out = is_last ? shape->out : shape->hidden;
        snprintf(name, sizeof name, "%s_%s.%zu.weight", word, shape->what, i);
        h->w[i] = add_param(l, name, 2, (size_t[]){out, in}, (double)NAN);
        snprintf(name, sizeof name, "%s_%s.%zu.bias", word, shape->what, i);
        h->b[i] = add_param(l, name, 1, &out, is_last ? shape->last_bias : (double)NAN);
    }
}

pnb__param *pnb__learned_add_scalar(pnb__learned *l, const char *name, double start)
{
    return add_param(l, name, 0, NULL, start);
}

void pnb__learned_add_length(pnb__learned *l, int side)
{
    char name[40];
    snprintf(name, sizeof name, "%s_length", pnb__adapter_side_word((pnb_adapter_side)side));
    l->length[side] = add_param(l, name, 0, NULL, 1.0);
    l->length[side]->trainable = false;
}

/* ---- memory ---- */

static pnb_status make_room(pnb__learned *l, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < l->n_params && status == PNB_OK; i++)
        status = pnb__param_alloc(&l->params[i], &l->kernels, l->params[i].n * sizeof(float), err);
    return status;
}

void pnb__learned_reset(void *self)
{
    pnb__learned *l = self;
    for (size_t i = 0; i < l->n_params; i++) {
        pnb__param_unpack(&l->params[i], &l->kernels);
        if (l->params[i].data != NULL)
            pnb__param_free(&l->params[i], &l->kernels, l->params[i].n * sizeof(float));
    }
    pnb__free(l->host);
    *l = (pnb__learned){0};
}

/* ---- fresh ones ---- */

/* Inputs of the layer that a parameter belongs to: its biases come right behind its weights. */
static size_t inputs_of(const pnb__learned *l, size_t i)
{
    const pnb__param *p = &l->params[i];
    return p->n_dims == 2 ? p->shape[1] : l->params[i - 1].shape[1];
}

static void fill_fresh(const pnb__learned *l, size_t i, uint64_t seed, float *out)
{
    size_t n = l->params[i].n;
    if (!isnan(l->start[i])) {
        for (size_t k = 0; k < n; k++)
            out[k] = (float)l->start[i];
        return;
    }
    pnb__rng rng;
    double bound = 1.0 / sqrt((double)inputs_of(l, i));
    pnb__rng_init(&rng, seed, PNB__STREAM_WEIGHTS + i);
    for (size_t k = 0; k < n; k++)
        out[k] = (float)(bound * (2.0 * pnb__rng_uniform(&rng) - 1.0));
}

pnb_status pnb__learned_fresh(pnb__learned *l, uint64_t seed, pnb_error *err)
{
    float *all = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(all, l->n_weights, err));
    PNB_TRY(make_room(l, err));
    float *at = all;
    for (size_t i = 0; i < l->n_params; i++) {
        fill_fresh(l, i, seed, at);
        at += l->params[i].n;
    }
    status = pnb__learned_set(l, all, err);
done:
    pnb__free(all);
    return status;
}

/* ---- all numbers in one row ---- */

pnb_status pnb__learned_get(const pnb__learned *l, float *x, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < l->n_params && status == PNB_OK; i++) {
        const pnb__param *p = &l->params[i];
        status = pnb__param_read_bytes(p, &l->kernels, p->n * sizeof *x, x, err);
        x += p->n;
    }
    return status;
}

pnb_status pnb__learned_set(pnb__learned *l, const float *x, pnb_error *err)
{
    enum { BLOCK = 256 };
    double block[BLOCK];
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < l->n_params; i++) {
        const pnb__param *p = &l->params[i];
        for (size_t at = 0; at < p->n && status == PNB_OK; at += BLOCK) {
            size_t n = PNB_MIN(p->n - at, (size_t)BLOCK);
            for (size_t k = 0; k < n; k++)
                block[k] = (double)x[at + k];
            status = pnb__param_write(p, &l->kernels, at, n, block, err);
        }
        x += p->n;
    }
    return status;
}

void pnb__learned_views(const pnb__learned *l, const float *x, const char *prefix,
                        pnb__learned_names names, pnb_array_view *views)
{
    for (size_t i = 0; i < l->n_params; i++) {
        const pnb__param *p = &l->params[i];
        snprintf(names[i], sizeof names[i], "%s%s", prefix, p->name);
        views[i] = (pnb_array_view){.name = names[i],
                                    .dtype = PNB_F32,
                                    .n_dims = p->n_dims,
                                    .data = x,
                                    .n_bytes = p->n * sizeof *x};
        for (int d = 0; d < p->n_dims; d++)
            views[i].shape[d] = (int64_t)p->shape[d];
        x += p->n;
    }
}

/* ---- from a file ---- */

static pnb_status find_array(const pnb_array_view **out, const pnb_safetensors *file,
                             const pnb__param *p, const char *where, pnb_error *err)
{
    const pnb_array_view *v = pnb_safetensors_find(file, p->name);
    bool fits = v != NULL && v->n_dims == p->n_dims;
    if (v == NULL)
        return pnb__fail(err, PNB_FORMAT, "%s: no array \"%s\"", where, p->name);
    for (int d = 0; fits && d < p->n_dims; d++)
        fits = v->shape[d] == (int64_t)p->shape[d];
    if (!fits)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: %s has %d dimensions of (%lld, %lld), wanted %d of (%zu, %zu)", where,
                         p->name, v->n_dims, (long long)v->shape[0], (long long)v->shape[1],
                         p->n_dims, p->shape[0], p->shape[1]);
    if (v->dtype != PNB_F32)
        return pnb__fail(err, PNB_DTYPE, "%s: %s is %s, wanted F32", where, p->name,
                         pnb_dtype_name(v->dtype));
    *out = v;
    return PNB_OK;
}

static pnb_status read_arrays(const pnb__learned *l, const pnb_safetensors *file, const char *where,
                              float *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < l->n_params && status == PNB_OK; i++) {
        const pnb_array_view *v = NULL;
        size_t n = l->params[i].n;
        status = find_array(&v, file, &l->params[i], where, err);
        if (status == PNB_OK)
            status = pnb_array_to_f32(v, out, err);
        for (size_t k = 0; k < n && status == PNB_OK; k++)
            if (!isfinite(out[k]))
                status = pnb__fail(err, PNB_NUMERIC, "%s: number %zu of %s is not finite", where, k,
                                   l->params[i].name);
        out += n;
    }
    return status;
}

pnb_status pnb__learned_load(pnb__learned *l, const pnb_safetensors *file, const char *where,
                             pnb_error *err)
{
    const pnb_array_view *v = NULL;
    float *all = NULL;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < l->n_params; i++) /* before memory */
        PNB_TRY(find_array(&v, file, &l->params[i], where, err));
    PNB_TRY(PNB_ALLOC(all, l->n_weights, err));
    PNB_TRY(read_arrays(l, file, where, all, err));
    if (l->n_params > 0 && l->params[0].data == NULL)
        PNB_TRY(make_room(l, err));
    status = pnb__learned_set(l, all, err);
done:
    pnb__free(all);
    return status;
}
