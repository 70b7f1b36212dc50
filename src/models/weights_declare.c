/* Weight names, shapes and initialisation of a configuration (prolip/transformer.py,
 * prolip/model.py, which extend open_clip's).
 *
 * One list serves loading, saving, initialisation and the optimiser: declare() below is the only
 * place that knows Penumbra's names; key_mapping.c has what other files call them. Initialisation
 * follows the reference, which leaves the vision blocks to torch's defaults (Xavier for the packed
 * projection, uniform 1/sqrt(fan_in) for the rest) and sets the text blocks as CLIP does. The
 * numbers themselves are drawn in weights.c. */
#include <math.h>
#include <string.h>

#include "models/weights.h"

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
    w->layout = pnb__key_mapping_of(PNB__KEY_MAPPING_PROLIP, c);
    if (w->failed) {
        pnb__weights_reset(w);
        return pnb__fail_nomem(err, 0);
    }
    return PNB_OK;
}
