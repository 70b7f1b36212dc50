/* Weight names, shapes and initialisation of a configuration (prolip/transformer.py,
 * prolip/model.py, which extend open_clip's), and moving them between file and memory.
 *
 * One list serves loading, saving, initialisation and the optimiser: declare() below is the only
 * place that knows Penumbra's names; layout.c has what other files call them. Initialisation
 * follows the reference, which leaves the vision blocks to torch's defaults (Xavier for the packed
 * projection, uniform 1/sqrt(fan_in) for the rest) and sets the text blocks as CLIP does. Random
 * numbers are counter-based per weight, so a model of a seed is the same on every machine; it is
 * not torch's stream. */
#include "models/weights.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "models/position_resize.h"
#include "models/quantized_weights.h"

/* ---- declaring ---- */

typedef struct spec {
    int n_dims;
    size_t shape[PNB__DIMS];
    pnb__init_kind init;
    double value;
} spec;

static pnb__param *declare(pnb__weights *w, bool is_text, const spec *s, const char *name)
{
    if (w->failed || w->n == w->capacity) {
        w->failed = true;
        return NULL;
    }
    pnb__weight *item = &w->items[w->n++];
    *item = (pnb__weight){.init = s->init, .value = s->value, .is_text = is_text};
    item->param.name = pnb__arena_strdup(&w->arena, name);
    w->failed |= item->param.name == NULL;
    item->param.n_dims = s->n_dims;
    item->param.n = 1;
    item->param.trainable = s->init != PNB__INIT_SINCOS;
    for (int i = 0; i < s->n_dims; i++) {
        item->param.shape[i] = s->shape[i];
        item->param.n *= s->shape[i];
    }
    return &item->param;
}

static pnb__param *vector(pnb__weights *w, bool is_text, const char *name, size_t n,
                          pnb__init_kind init, double value)
{
    return declare(w, is_text, &(spec){1, {n}, init, value}, name);
}

static pnb__param *matrix(pnb__weights *w, bool is_text, const char *name, const size_t shape[2],
                          pnb__init_kind init, double value)
{
    return declare(w, is_text, &(spec){2, {shape[0], shape[1]}, init, value}, name);
}

/* How a block's matrices start; bounds of 0 mean a normal with the std beside it. */
typedef struct block_init {
    double in_bound, out_bound, fc_bound, proj_bound;
    double in_std, out_std, fc_std, proj_std;
} block_init;

static block_init init_of_block(const pnb__tower_config *t, bool is_text)
{
    double width = (double)t->width, hidden = (double)t->mlp_width;
    block_init b = {.fc_bound = 1 / sqrt(width), .proj_bound = 1 / sqrt(hidden)};
    if (is_text) {
        b.out_std = b.proj_std = pow(width, -0.5) * pow(2.0 * (double)t->n_layers, -0.5);
        b.in_std = pow(width, -0.5);
        b.fc_std = pow(2 * width, -0.5);
    } else {
        b.in_bound = sqrt(6 / (width + 3 * width)); /* Xavier over the packed (3C, C) matrix */
        b.out_bound = 1 / sqrt(width);
    }
    return b;
}

static pnb__param *block_matrix(pnb__weights *w, bool is_text, const char *name,
                                const size_t shape[2], double std, double bound)
{
    return std > 0 ? matrix(w, is_text, name, shape, PNB__INIT_NORMAL, std)
                   : matrix(w, is_text, name, shape, PNB__INIT_UNIFORM, bound);
}

static void declare_block(pnb__weights *w, pnb__block *b, const pnb__tower_config *t, bool is_text,
                          size_t layer)
{
    char name[128];
    size_t c = t->width, h = t->mlp_width;
    block_init init = init_of_block(t, is_text);
    int prefix = snprintf(name, sizeof name, "%s.transformer.resblocks.%zu.",
                          is_text ? "text" : "visual", layer);
    char *tail = name + prefix;
    size_t room = sizeof name - (size_t)prefix;
#define PNB__KEY(text) (snprintf(tail, room, "%s", text), name)
    b->ln1_w = vector(w, is_text, PNB__KEY("ln_1.weight"), c, PNB__INIT_CONSTANT, 1);
    b->ln1_b = vector(w, is_text, PNB__KEY("ln_1.bias"), c, PNB__INIT_CONSTANT, 0);
    b->in_w = block_matrix(w, is_text, PNB__KEY("attn.in_proj_weight"), (size_t[]){3 * c, c},
                           init.in_std, init.in_bound);
    b->in_b = vector(w, is_text, PNB__KEY("attn.in_proj_bias"), 3 * c, PNB__INIT_CONSTANT, 0);
    b->out_w = block_matrix(w, is_text, PNB__KEY("attn.out_proj.weight"), (size_t[]){c, c},
                            init.out_std, init.out_bound);
    b->out_b = vector(w, is_text, PNB__KEY("attn.out_proj.bias"), c, PNB__INIT_CONSTANT, 0);
    if (t->has_layer_scale)
        b->ls1 = vector(w, is_text, PNB__KEY("ls_1.gamma"), c, PNB__INIT_CONSTANT, t->ls_init);
    b->ln2_w = vector(w, is_text, PNB__KEY("ln_2.weight"), c, PNB__INIT_CONSTANT, 1);
    b->ln2_b = vector(w, is_text, PNB__KEY("ln_2.bias"), c, PNB__INIT_CONSTANT, 0);
    b->fc_w = block_matrix(w, is_text, PNB__KEY("mlp.c_fc.weight"), (size_t[]){h, c}, init.fc_std,
                           init.fc_bound);
    b->fc_b = vector(w, is_text, PNB__KEY("mlp.c_fc.bias"), h, PNB__INIT_UNIFORM, init.fc_bound);
    b->proj_w = block_matrix(w, is_text, PNB__KEY("mlp.c_proj.weight"), (size_t[]){c, h},
                             init.proj_std, init.proj_bound);
    b->proj_b =
        vector(w, is_text, PNB__KEY("mlp.c_proj.bias"), c, PNB__INIT_UNIFORM, init.proj_bound);
    if (t->has_layer_scale)
        b->ls2 = vector(w, is_text, PNB__KEY("ls_2.gamma"), c, PNB__INIT_CONSTANT, t->ls_init);
#undef PNB__KEY
}

/* SigLIP's head: one learnt query over all tokens, then a residual MLP behind a norm. */
static void declare_head(pnb__weights *w, const pnb__tower_config *t)
{
    pnb__block *b = &w->vision.head;
    size_t c = t->width, h = t->mlp_width;
    block_init init = init_of_block(t, false);
#define PNB__HEAD(tail) "visual.attn_pool." tail
    w->vision.probe =
        vector(w, false, PNB__HEAD("probe"), c, PNB__INIT_NORMAL, pow((double)c, -0.5));
    b->in_w = matrix(w, false, PNB__HEAD("attn.in_proj_weight"), (size_t[]){3 * c, c},
                     PNB__INIT_UNIFORM, init.in_bound);
    b->in_b = vector(w, false, PNB__HEAD("attn.in_proj_bias"), 3 * c, PNB__INIT_CONSTANT, 0);
    b->out_w = matrix(w, false, PNB__HEAD("attn.out_proj.weight"), (size_t[]){c, c},
                      PNB__INIT_UNIFORM, init.out_bound);
    b->out_b = vector(w, false, PNB__HEAD("attn.out_proj.bias"), c, PNB__INIT_CONSTANT, 0);
    b->ln2_w = vector(w, false, PNB__HEAD("ln.weight"), c, PNB__INIT_CONSTANT, 1);
    b->ln2_b = vector(w, false, PNB__HEAD("ln.bias"), c, PNB__INIT_CONSTANT, 0);
    b->fc_w = matrix(w, false, PNB__HEAD("mlp.c_fc.weight"), (size_t[]){h, c}, PNB__INIT_UNIFORM,
                     init.fc_bound);
    b->fc_b = vector(w, false, PNB__HEAD("mlp.c_fc.bias"), h, PNB__INIT_UNIFORM, init.fc_bound);
    b->proj_w = matrix(w, false, PNB__HEAD("mlp.c_proj.weight"), (size_t[]){c, h},
                       PNB__INIT_UNIFORM, init.proj_bound);
    b->proj_b =
        vector(w, false, PNB__HEAD("mlp.c_proj.bias"), c, PNB__INIT_UNIFORM, init.proj_bound);
#undef PNB__HEAD
}

/* What stands before the blocks. */
static void declare_patches(pnb__weights *w, const pnb__config *c)
{
    pnb__vision_weights *v = &w->vision;
    size_t width = c->vision.width, p = c->patch;
    double scale = pow((double)width, -0.5), bound = 1 / sqrt(3.0 * (double)(p * p));
    size_t n_patches = (c->image_height / p) * (c->image_width / p);
    size_t n_positions = n_patches + pnb__config_n_extra(c);
    if (pnb__config_has_class(c))
        v->cls = vector(w, false, "visual.class_embedding", width, PNB__INIT_NORMAL, scale);
    if (c->vision.has_unc)
        v->unc = vector(w, false, "visual.unc_embedding", width, PNB__INIT_NORMAL, scale);
    v->positions = matrix(w, false, "visual.positional_embedding", (size_t[]){n_positions, width},
                          c->sincos_positions ? PNB__INIT_SINCOS : PNB__INIT_NORMAL, scale);
    if (c->vision.projection == PNB__PROJECT_MATRIX)
        v->proj = matrix(w, false, "visual.proj", (size_t[]){width, c->embed_dim}, PNB__INIT_NORMAL,
                         scale);
    v->conv = declare(w, false, &(spec){4, {width, 3, p, p}, PNB__INIT_UNIFORM, bound},
                      "visual.conv1.weight");
    if (c->conv_bias)
        v->conv_b = vector(w, false, "visual.conv1.bias", width, PNB__INIT_CONSTANT, 0);
    if (!c->no_ln_pre) {
        v->ln_pre_w = vector(w, false, "visual.ln_pre.weight", width, PNB__INIT_CONSTANT, 1);
        v->ln_pre_b = vector(w, false, "visual.ln_pre.bias", width, PNB__INIT_CONSTANT, 0);
    }
}

static void declare_vision(pnb__weights *w, const pnb__config *c)
{
    pnb__vision_weights *v = &w->vision;
    size_t width = c->vision.width;
    declare_patches(w, c);
    for (size_t i = 0; i < c->vision.n_layers; i++)
        declare_block(w, &v->blocks[i], &c->vision, false, i);
    v->ln_post_w = vector(w, false, "visual.ln_post.weight", width, PNB__INIT_CONSTANT, 1);
    v->ln_post_b = vector(w, false, "visual.ln_post.bias", width, PNB__INIT_CONSTANT, 0);
    if (c->vision.pool == PNB__POOL_MAP)
        declare_head(w, &c->vision);
    if (!c->vision.has_unc)
        return;
    v->unc_w = matrix(w, false, "visual.uncertainty_proj.weight", (size_t[]){c->embed_dim, width},
                      PNB__INIT_NORMAL, c->vision.init_unc_std);
    v->unc_b = vector(w, false, "visual.uncertainty_proj.bias", c->embed_dim, PNB__INIT_CONSTANT,
                      c->vision.init_unc_bias);
}

static void declare_text_projection(pnb__weights *w, const pnb__config *c)
{
    pnb__text_weights *t = &w->text;
    size_t width = c->text.width;
    double scale = pow((double)width, -0.5);
    if (c->text.projection == PNB__PROJECT_LINEAR) {
        t->proj_w = matrix(w, true, "text.text_projection.weight", (size_t[]){c->embed_dim, width},
                           PNB__INIT_NORMAL, scale);
        t->proj_b =
            vector(w, true, "text.text_projection.bias", c->embed_dim, PNB__INIT_CONSTANT, 0);
    } else if (c->text.projection == PNB__PROJECT_MATRIX) {
        t->proj_w = matrix(w, true, "text.text_projection", (size_t[]){width, c->embed_dim},
                           PNB__INIT_NORMAL, scale);
    }
    if (!c->text.has_unc)
        return;
    t->unc_w = matrix(w, true, "text.text_uncertainty_projection.weight",
                      (size_t[]){c->embed_dim, width}, PNB__INIT_NORMAL, c->text.init_unc_std);
    t->unc_b = vector(w, true, "text.text_uncertainty_projection.bias", c->embed_dim,
                      PNB__INIT_CONSTANT, c->text.init_unc_bias);
}

static void declare_text(pnb__weights *w, const pnb__config *c)
{
    pnb__text_weights *t = &w->text;
    bool has_cls = c->text.pool == PNB__POOL_APPENDED;
    size_t width = c->text.width, n_extra = (has_cls ? 1U : 0U) + (c->text.has_unc ? 1U : 0U);
    if (has_cls)
        t->cls = vector(w, true, "text.cls_emb", width, PNB__INIT_NORMAL, 0.01);
    if (c->text.has_unc)
        t->unc = vector(w, true, "text.unc_emb", width, PNB__INIT_NORMAL, 0.01);
    t->positions = matrix(w, true, "text.positional_embedding",
                          (size_t[]){c->context_length + n_extra, width}, PNB__INIT_NORMAL, 0.01);
    t->tokens = matrix(w, true, "text.token_embedding.weight", (size_t[]){c->vocab_size, width},
                       PNB__INIT_NORMAL, 0.02);
    for (size_t i = 0; i < c->text.n_layers; i++)
        declare_block(w, &t->blocks[i], &c->text, true, i);
    t->ln_w = vector(w, true, "text.ln_final.weight", width, PNB__INIT_CONSTANT, 1);
    t->ln_b = vector(w, true, "text.ln_final.bias", width, PNB__INIT_CONSTANT, 0);
    declare_text_projection(w, c);
}

pnb_status pnb__weights_declare(pnb__weights *w, const pnb__config *c, const pnb_ctx *ctx,
                                pnb__real real, pnb_error *err)
{
    memset(w, 0, sizeof *w);
    pnb__arena_init(&w->arena, 16 * 1024);
    pnb__kernels_fill(&w->kernels, ctx, real);
    w->half = PNB_F32;
    w->capacity = 14 * (c->vision.n_layers + c->text.n_layers) + 48;
    w->items = pnb__alloc_zero(w->capacity, sizeof *w->items);
    w->vision.blocks = pnb__arena_alloc(&w->arena, c->vision.n_layers * sizeof(pnb__block));
    w->text.blocks = pnb__arena_alloc(&w->arena, c->text.n_layers * sizeof(pnb__block));
    if (w->items == NULL || w->vision.blocks == NULL || w->text.blocks == NULL) {
        pnb__weights_reset(w);
        return pnb__fail_nomem(err, w->capacity * sizeof *w->items);
    }
    if (c->has_logit_scale)
        w->logit_scale = declare(w, false, &(spec){0, {0}, PNB__INIT_CONSTANT, c->init_logit_scale},
                                 "logit_scale");
    if (c->has_logit_bias)
        w->logit_bias = declare(w, false, &(spec){0, {0}, PNB__INIT_CONSTANT, c->init_logit_bias},
                                "logit_bias");
    if (c->vision.present)
        declare_vision(w, c);
    if (c->text.present)
        declare_text(w, c);
    w->layout = pnb__layout_of(PNB__LAYOUT_PROLIP, c);
    if (w->failed) {
        pnb__weights_reset(w);
        return pnb__fail_nomem(err, 0);
    }
    return PNB_OK;
}

void pnb__weights_reset(pnb__weights *w)
{
    for (size_t i = 0; i < w->n; i++) {
        pnb__param_unpack(&w->items[i].param, &w->kernels);
        if (w->items[i].owned)
            w->kernels.mem_free(w->items[i].param.data, pnb__store_bytes(w, &w->items[i].param));
        pnb__store_reset(w, &w->items[i]);
    }
    pnb__free(w->items);
    pnb__arena_free(&w->arena);
    pnb__weight_file_close(&w->file);
    memset(w, 0, sizeof *w);
}

/* ---- values ---- */

static pnb_status allocate(pnb__weights *w, pnb__weight *item, pnb_error *err)
{
    size_t bytes = pnb__store_bytes(w, &item->param);
    item->param.data = w->kernels.mem_alloc(PNB_MAX(bytes, (size_t)1));
    if (item->param.data == NULL)
        return pnb__fail_nomem(err, bytes);
    item->owned = true;
    item->param.fixed = true; /* until training asks for memory of its own */
    return PNB_OK;
}

/* Row r of the fixed 2-D table (He et al. 2022): half sine-cosine of x, half of y; CLS row zero. */
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

static double draw(const pnb__weight *item, pnb__rng *rng, size_t index)
{
    switch (item->init) {
    case PNB__INIT_CONSTANT:
        return item->value;
    case PNB__INIT_NORMAL:
        return item->value * pnb__rng_normal(rng);
    case PNB__INIT_UNIFORM:
        return item->value * (2 * pnb__rng_uniform(rng) - 1);
    case PNB__INIT_SINCOS:
        return sincos_value(&item->param, index);
    }
    return 0;
}

/* The stream of a weight comes from its name, so adding weights elsewhere does not change it. */
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
            for (size_t j = 0; j < n; j++)
                block[j] = draw(item, &rng, at + j);
            pnb__param_write(&item->param, &w->kernels, at, n, block);
        }
    }
    return PNB_OK;
}

static pnb_status load_converted(pnb__weights *w, pnb__weight *item, const pnb_array_view *a,
                                 pnb_error *err)
{
    pnb_status status = allocate(w, item, err);
    if (status != PNB_OK)
        return status;
    if (w->kernels.real == PNB__F32 && w->kernels.host_memory)
        return pnb_array_to_f32(a, item->param.data, err);
    double *values = pnb__alloc_array(PNB_MAX(item->param.n, (size_t)1), sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, item->param.n * sizeof *values);
    status = pnb_array_to_f64(a, values, err);
    if (status == PNB_OK)
        pnb__param_write(&item->param, &w->kernels, 0, item->param.n, values);
    pnb__free(values);
    return status;
}

/* Mapped when the bytes are already what the kernels read. */
static pnb_status load_one(pnb__weights *w, pnb__weight *item, pnb_error *err)
{
    pnb__gathered g;
    pnb_status status = pnb__layout_gather(&w->layout, &w->file, &item->param, false, &g, err);
    if (status != PNB_OK)
        return status;
    bool taken = false;
    status = pnb__store_load(w, item, &g, &taken, err);
    if (taken || status != PNB_OK) {
        pnb__free(g.owned);
        return status;
    }
    bool maps = w->kernels.host_memory && w->kernels.real == PNB__F32 && g.view.dtype == PNB_F32 &&
                g.owned == NULL && pnb_array_is_aligned(&g.view);
    if (maps) {
        item->param.data = (void *)(uintptr_t)g.view.data; /* read-only until make_owned */
        item->param.fixed = item->param.mapped = true;
    } else {
        status = load_converted(w, item, &g.view, err);
    }
    pnb__free(g.owned);
    return status;
}

/* The extra rows (CLS, UNC) of the file are kept; text rows follow LongProLIP's rule, extra ones
 * included. */
static pnb_status resize_rows(const pnb__weight *item, const pnb__config *c,
                              const pnb__resize *resize, const double *old, size_t n_old,
                              double *fresh, pnb_error *err)
{
    size_t width = item->param.shape[1], n_new = item->param.shape[0];
    if (item->is_text)
        return pnb__positions_resize_text(
            &(pnb__text_resize){.n_old = n_old, .n_new = n_new, .width = width}, old, fresh, err);
    size_t n_extra = pnb__config_n_extra(c);
    pnb__grid_resize grid = {resize->old_height,
                             resize->old_width,
                             c->image_height / c->patch,
                             c->image_width / c->patch,
                             width,
                             PNB__POSITIONS_PROLIP};
    if (n_old != n_extra + grid.old_h * grid.old_w)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: file has %zu rows, its configuration says %zu + %zux%zu",
                         item->param.name, n_old, n_extra, grid.old_h, grid.old_w);
    memcpy(fresh, old, n_extra * width * sizeof *fresh);
    return pnb__positions_resize_grid(&grid, old + n_extra * width, fresh + n_extra * width, err);
}

static pnb_status load_resized(pnb__weights *w, pnb__weight *item, const pnb__config *c,
                               const pnb__resize *resize, pnb_error *err)
{
    pnb__gathered g;
    size_t n = item->param.n;
    pnb_status status = pnb__layout_gather(&w->layout, &w->file, &item->param, true, &g, err);
    if (status != PNB_OK)
        return status;
    double *old = pnb__alloc_array(pnb_array_size(&g.view) + 1, sizeof *old);
    double *fresh = pnb__alloc_array(n + 1, sizeof *fresh);
    if (old == NULL || fresh == NULL)
        status = pnb__fail_nomem(err, n * sizeof *fresh);
    if (status == PNB_OK)
        status = pnb_array_to_f64(&g.view, old, err);
    if (status == PNB_OK)
        status = resize_rows(item, c, resize, old, (size_t)g.view.shape[0], fresh, err);
    if (status == PNB_OK)
        status = allocate(w, item, err);
    if (status == PNB_OK)
        pnb__param_write(&item->param, &w->kernels, 0, n, fresh);
    pnb__free(old);
    pnb__free(fresh);
    pnb__free(g.owned);
    return status;
}

/* Is key the scales of the 8-bit array `part`? */
static bool is_scale_of(const pnb__weight *item, const char *part, const char *key)
{
    size_t n = strlen(part);
    return item->param.store == PNB__STORE_I8 && strncmp(key, part, n) == 0 &&
           strcmp(key + n, PNB__SCALE_SUFFIX) == 0;
}

bool pnb__weights_expects(const pnb__weights *w, const char *key)
{
    pnb__layout_part parts[3];
    if (pnb__layout_ignores(&w->layout, key))
        return true;
    for (size_t i = 0; i < w->n; i++) {
        size_t n = pnb__layout_parts(&w->layout, w->items[i].param.name, parts);
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
    pnb__layout_part parts[3];
    size_t n_read = 0, n_file = pnb__weight_file_count(&w->file);
    for (size_t i = 0; i < w->n; i++) {
        size_t n = pnb__layout_parts(&w->layout, w->items[i].param.name, parts);
        n_read += w->items[i].param.store == PNB__STORE_I8 ? 2 * n : n;
    }
    for (size_t i = 0; i < n_file; i++)
        n_read += pnb__layout_ignores(&w->layout, pnb__weight_file_at(&w->file, i)->name) ? 1 : 0;
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

pnb_status pnb__weights_load(pnb__weights *w, const pnb__config *c, const pnb__resize *resize,
                             pnb_error *err)
{
    pnb_status status = pnb__store_read_record(w, err);
    for (size_t i = 0; status == PNB_OK && i < w->n; i++) {
        pnb__weight *item = &w->items[i];
        bool resized = resize != NULL && ((&item->param == w->vision.positions &&
                                           resize->old_height > 0 && !c->sincos_positions) ||
                                          (&item->param == w->text.positions && resize->text));
        item->resized = resized;
        status = resized ? load_resized(w, item, c, resize, err) : load_one(w, item, err);
    }
    if (status == PNB_OK)
        status = check_unexpected(w, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "%s", w->file.path);
    return status;
}

pnb_status pnb__weights_make_owned(pnb__weights *w, pnb_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        pnb__weight *item = &w->items[i];
        pnb__param_unpack(&item->param, &w->kernels);
        if (item->param.store != PNB__STORE_REAL) {
            pnb_status status = pnb__store_widen(w, item, err);
            if (status != PNB_OK)
                return status;
            continue;
        }
        if (item->owned) {
            item->param.fixed = false;
            continue;
        }
        const void *mapped = item->param.data;
        pnb_status status = allocate(w, item, err);
        if (status != PNB_OK) {
            item->param.data = (void *)(uintptr_t)mapped;
            return status;
        }
        w->kernels.mem_write(item->param.data, mapped, pnb__store_bytes(w, &item->param));
        item->param.fixed = item->param.mapped = false;
    }
    pnb__weight_file_close(&w->file);
    return PNB_OK;
}

/* The weight as a view of host memory; `staged` receives a copy to free when it lies elsewhere. */
static pnb_status view_of(const pnb__weights *w, const pnb__param *p, pnb_array_view *v,
                          void **staged, pnb_error *err)
{
    *staged = NULL;
    *v = (pnb_array_view){.name = p->name,
                          .dtype = pnb__store_dtype(w, p),
                          .n_dims = p->n_dims,
                          .data = p->data,
                          .n_bytes = pnb__store_bytes(w, p)};
    for (int d = 0; d < p->n_dims; d++)
        v->shape[d] = (int64_t)p->shape[d];
    if (w->kernels.host_memory)
        return PNB_OK;
    *staged = pnb__alloc(PNB_MAX(v->n_bytes, (size_t)1));
    if (*staged == NULL)
        return pnb__fail_nomem(err, v->n_bytes);
    w->kernels.mem_read(*staged, p->data, v->n_bytes);
    v->data = *staged;
    return PNB_OK;
}

/* A weight for writing: `raw` takes the file's own bits, else those in memory. */
static pnb_status source_of(const pnb__weights *w, const pnb__weight *item, bool raw,
                            pnb__gathered *out, pnb_error *err)
{
    *out = (pnb__gathered){0};
    if (raw && !item->resized)
        return pnb__layout_gather(&w->layout, &w->file, &item->param, false, out, err);
    pnb_status status = view_of(w, &item->param, &out->view, &out->owned, err);
    bool narrow = !raw && w->half != PNB_F32 && item->param.store == PNB__STORE_REAL &&
                  pnb__store_is_small(&item->param);
    return status == PNB_OK && narrow ? pnb__store_narrow(out, w->half, err) : status;
}

static pnb_status write_weights(const pnb__weights *w, const pnb__layout *to, bool raw,
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
        status = source_of(w, &w->items[i], raw, &sources[i], err);
        if (status == PNB_OK)
            status = pnb__layout_scatter(to, &sources[i].view, &arena, views, &n, err);
        if (status == PNB_OK && w->items[i].param.store == PNB__STORE_I8)
            status = pnb__store_scatter_scales(to, &w->items[i].param, &arena, views, &n, err);
    }
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

pnb_status pnb__weights_write_as(const pnb__weights *w, const pnb__layout *to, const char *path,
                                 pnb_error *err)
{
    return write_weights(w, to, true, path, err);
}

pnb_status pnb__weights_check_finite(const pnb__weights *w, const pnb_ctx *ctx, bool text,
                                     pnb_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const pnb__param *p = &w->items[i].param;
        if (w->items[i].is_text != text)
            continue;
        bool finite = p->store != PNB__STORE_REAL ? pnb__store_is_finite(w, p)
                                                  : w->kernels.all_finite(ctx, p->n, p->data);
        if (!finite)
            return pnb__fail(err, PNB_NUMERIC,
                             "%s holds NaN or infinity; the file is damaged or the training that "
                             "wrote it diverged",
                             p->name);
    }
    return PNB_OK;
}
