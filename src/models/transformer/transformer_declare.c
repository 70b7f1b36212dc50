/* Parameters of the transformers: names, shapes and how the reference starts them
 * (prolip/transformer.py, prolip/model.py, which extend open_clip's).
 *
 * Initialisation is the reference's, which leaves the vision blocks to torch's defaults and sets
 * the text blocks as CLIP does (Radford et al. 2021, code of clip/model.py), L layers of width C:
 *     image  q,k,v  U(+-sqrt(6 / (C + 3C)))  Xavier over the packed (3C,C) matrix
 *            out    U(+-C^-1/2)              Linear's default, as are fc U(+-C^-1/2) and
 *            proj   U(+-(4C)^-1/2)           the MLP's second, by its own fan-in
 *     text   q,k,v  N(0, C^-1)               std C^-1/2
 *            out, proj  N(0, C^-1 (2L)^-1)   so that the residual stream keeps its variance: 2L
 *                                            branches are added to it
 *            fc     N(0, (2C)^-1)
 * LayerScale starts as its own setting says. Order is that of the reference's state dict, and part
 * of what a checkpoint of the optimiser means. */
#include <math.h>
#include <string.h>

#include "models/position_resize.h"
#include "models/transformer/transformer.h"

/* How a block's matrices start; bounds of 0 mean a normal with the std beside it. */
typedef struct block_init {
    double in_bound, out_bound, fc_bound, proj_bound;
    double in_std, out_std, fc_std, proj_std;
} block_init;

static block_init init_of_block(const pnb__tower_config *t, bool is_text)
{
    double width = (double)t->width, hidden = (double)t->mlp_width;
    /* the biases of the MLP keep torch's uniform bound in text blocks too */
    block_init b = {.fc_bound = 1 / sqrt(width), .proj_bound = 1 / sqrt(hidden)};
    if (is_text) {
        b.out_std = b.proj_std = pow(width, -0.5) * pow(2.0 * (double)t->n_layers, -0.5);
        b.in_std = pow(width, -0.5);
        b.fc_std = pow(2 * width, -0.5);
    } else {
        b.in_bound = sqrt(6 / (width + 3 * width)); /* fan-in C, fan-out 3C */
        b.out_bound = 1 / sqrt(width);
    }
    return b;
}

static pnb__param *block_matrix(pnb__weights *w, pnb__side side, const char *name,
                                const size_t shape[2], double std, double bound)
{
    return std > 0 ? pnb__declare_matrix(w, side, name, shape, PNB__INIT_NORMAL, std)
                   : pnb__declare_matrix(w, side, name, shape, PNB__INIT_UNIFORM, bound);
}

/* A constant vector: gains 1, biases 0. */
static pnb__param *constant(pnb__weights *w, pnb__side side, const char *name, size_t n,
                            double value)
{
    return pnb__declare_vector(w, side, name, n, PNB__INIT_CONSTANT, value);
}

static pnb__param *uniform(pnb__weights *w, pnb__side side, const char *name, size_t n,
                           double bound)
{
    return pnb__declare_vector(w, side, name, n, PNB__INIT_UNIFORM, bound);
}

/* Twelve arrays a block, fourteen with LayerScale: LN_1, q,k,v, output projection, gain, LN_2, the
 * MLP's two matrices, gain; norms and matrices each with a bias. Biases of attention start at 0, as
 * those of torch's MultiheadAttention do. */
static void declare_block(pnb__weights *w, pnb__block *b, const pnb__tower_config *t,
                          pnb__side side, const char *stem, size_t layer)
{
    char name[128];
    bool is_text = side == PNB__TEXT_SIDE;
    size_t c = t->width, h = t->mlp_width;
    block_init init = init_of_block(t, is_text);
    int prefix = snprintf(name, sizeof name, "%s.resblocks.%zu.", stem, layer);
    char *tail = name + prefix;
    size_t room = sizeof name - (size_t)prefix;
#define PNB__KEY(text) (snprintf(tail, room, "%s", text), name)
    b->ln1_w = constant(w, side, PNB__KEY("ln_1.weight"), c, 1);
    b->ln1_b = constant(w, side, PNB__KEY("ln_1.bias"), c, 0);
    b->in_w = block_matrix(w, side, PNB__KEY("attn.in_proj_weight"), (size_t[]){3 * c, c},
                           init.in_std, init.in_bound);
    b->in_b = constant(w, side, PNB__KEY("attn.in_proj_bias"), 3 * c, 0);
    b->out_w = block_matrix(w, side, PNB__KEY("attn.out_proj.weight"), (size_t[]){c, c},
                            init.out_std, init.out_bound);
    b->out_b = constant(w, side, PNB__KEY("attn.out_proj.bias"), c, 0);
    if (t->has_layer_scale)
        b->ls1 = constant(w, side, PNB__KEY("ls_1.gamma"), c, t->ls_init);
    b->ln2_w = constant(w, side, PNB__KEY("ln_2.weight"), c, 1);
    b->ln2_b = constant(w, side, PNB__KEY("ln_2.bias"), c, 0);
    b->fc_w = block_matrix(w, side, PNB__KEY("mlp.c_fc.weight"), (size_t[]){h, c}, init.fc_std,
                           init.fc_bound);
    b->fc_b = uniform(w, side, PNB__KEY("mlp.c_fc.bias"), h, init.fc_bound);
    b->proj_w = block_matrix(w, side, PNB__KEY("mlp.c_proj.weight"), (size_t[]){c, h},
                             init.proj_std, init.proj_bound);
    b->proj_b = uniform(w, side, PNB__KEY("mlp.c_proj.bias"), c, init.proj_bound);
    if (t->has_layer_scale)
        b->ls2 = constant(w, side, PNB__KEY("ls_2.gamma"), c, t->ls_init);
#undef PNB__KEY
}

/* SigLIP's head: one learnt query over all tokens, then a residual MLP behind a norm. */
void pnb__image_head_declare(pnb__weights *w, pnb__image_transformer *v, const pnb__tower_config *t)
{
    const pnb__side side = PNB__IMAGE_SIDE;
    pnb__block *b = &v->head;
    size_t c = t->width, h = t->mlp_width;
    block_init init = init_of_block(t, false);
#define PNB__HEAD(tail) "visual.attn_pool." tail
    v->probe =
        pnb__declare_vector(w, side, PNB__HEAD("probe"), c, PNB__INIT_NORMAL, pow((double)c, -0.5));
    b->in_w = pnb__declare_matrix(w, side, PNB__HEAD("attn.in_proj_weight"), (size_t[]){3 * c, c},
                                  PNB__INIT_UNIFORM, init.in_bound);
    b->in_b = constant(w, side, PNB__HEAD("attn.in_proj_bias"), 3 * c, 0);
    b->out_w = pnb__declare_matrix(w, side, PNB__HEAD("attn.out_proj.weight"), (size_t[]){c, c},
                                   PNB__INIT_UNIFORM, init.out_bound);
    b->out_b = constant(w, side, PNB__HEAD("attn.out_proj.bias"), c, 0);
    b->ln2_w = constant(w, side, PNB__HEAD("ln.weight"), c, 1);
    b->ln2_b = constant(w, side, PNB__HEAD("ln.bias"), c, 0);
    b->fc_w = pnb__declare_matrix(w, side, PNB__HEAD("mlp.c_fc.weight"), (size_t[]){h, c},
                                  PNB__INIT_UNIFORM, init.fc_bound);
    b->fc_b = uniform(w, side, PNB__HEAD("mlp.c_fc.bias"), h, init.fc_bound);
    b->proj_w = pnb__declare_matrix(w, side, PNB__HEAD("mlp.c_proj.weight"), (size_t[]){c, h},
                                    PNB__INIT_UNIFORM, init.proj_bound);
    b->proj_b = uniform(w, side, PNB__HEAD("mlp.c_proj.bias"), c, init.proj_bound);
#undef PNB__HEAD
}

/* ---- position tables of another size ---- */

/* The extra rows (CLS, UNC) of the file are kept: the reference would take them from a fresh model
 * (position_resize.h). */
static pnb_status resize_image_rows(const pnb__resize_rows *r, pnb_error *err)
{
    const pnb__config *c = r->config;
    size_t width = r->param->shape[1], n_extra = pnb__config_n_extra(c);
    pnb__grid_resize grid = {r->resize->old_height,
                             r->resize->old_width,
                             c->image_height / c->patch,
                             c->image_width / c->patch,
                             width,
                             PNB__POSITIONS_PROLIP};
    if (r->n_old != n_extra + grid.old_h * grid.old_w)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: file has %zu rows, its configuration says %zu + %zux%zu",
                         r->param->name, r->n_old, n_extra, grid.old_h, grid.old_w);
    memcpy(r->fresh, r->old, n_extra * width * sizeof *r->fresh);
    return pnb__positions_resize_grid(&grid, r->old + n_extra * width, r->fresh + n_extra * width,
                                      err);
}

/* ProLIP's rule: the extra rows are stretched together with the others, or kept among the last 2.
 */
static pnb_status resize_text_rows(const pnb__resize_rows *r, pnb_error *err)
{
    const pnb__text_resize rows = {
        .n_old = r->n_old, .n_new = r->param->shape[0], .width = r->param->shape[1]};
    return pnb__positions_resize_text(&rows, r->old, r->fresh, err);
}

/* (rows, width); a fixed table is drawn again at any size and is never resized. */
static pnb__param *position_table(pnb__weights *w, pnb__side side, const char *name,
                                  const size_t shape[2], pnb__init_kind init, double value)
{
    pnb__resize_rows_fn resize = side == PNB__TEXT_SIDE ? resize_text_rows : resize_image_rows;
    const pnb__declared what = {.name = name,
                                .n_dims = 2,
                                .shape = {shape[0], shape[1]},
                                .init = init,
                                .value = value,
                                .resize_rows = init == PNB__INIT_SINCOS ? NULL : resize};
    return pnb__declare(w, side, &what);
}

/* ---- towers ---- */

/* What stands before the blocks. Tokens, positions and projection start with std C^-1/2, which is
 * CLIP's `scale`; the patch embedding is a Conv2d of torch, uniform by its fan-in 3pp. */
static void declare_patches(pnb__weights *w, pnb__image_transformer *v, const pnb__config *c)
{
    const pnb__side side = PNB__IMAGE_SIDE;
    size_t width = c->vision.width, p = c->patch;
    double scale = pow((double)width, -0.5), bound = 1 / sqrt(3.0 * (double)(p * p));
    size_t n_patches = (c->image_height / p) * (c->image_width / p);
    size_t n_positions = n_patches + pnb__config_n_extra(c);
    if (pnb__config_has_class(c))
        v->cls =
            pnb__declare_vector(w, side, "visual.class_embedding", width, PNB__INIT_NORMAL, scale);
    if (c->vision.has_unc)
        v->unc =
            pnb__declare_vector(w, side, "visual.unc_embedding", width, PNB__INIT_NORMAL, scale);
    v->positions =
        position_table(w, side, "visual.positional_embedding", (size_t[]){n_positions, width},
                       c->sincos_positions ? PNB__INIT_SINCOS : PNB__INIT_NORMAL, scale);
    if (c->vision.projection == PNB__PROJECT_MATRIX)
        v->proj = pnb__declare_matrix(w, side, "visual.proj", (size_t[]){width, c->embed_dim},
                                      PNB__INIT_NORMAL, scale);
    v->conv = pnb__declare(w, side,
                           &(pnb__declared){.name = "visual.conv1.weight",
                                            .n_dims = 4,
                                            .shape = {width, 3, p, p},
                                            .init = PNB__INIT_UNIFORM,
                                            .value = bound});
    if (c->conv_bias)
        v->conv_b = constant(w, side, "visual.conv1.bias", width, 0);
    if (!c->no_ln_pre) {
        v->ln_pre_w = constant(w, side, "visual.ln_pre.weight", width, 1);
        v->ln_pre_b = constant(w, side, "visual.ln_pre.bias", width, 0);
    }
}

pnb__block *pnb__transformer_declare_blocks(pnb__weights *w, pnb__side side, const char *stem,
                                            const pnb__tower_config *t, size_t n)
{
    pnb__tower_config of_these = *t; /* 2L counts the branches of this stream */
    of_these.n_layers = n;
    pnb__block *blocks = pnb__arena_alloc(&w->arena, PNB_MAX(n, (size_t)1) * sizeof *blocks);
    w->failed |= blocks == NULL;
    for (size_t i = 0; blocks != NULL && i < n; i++)
        declare_block(w, &blocks[i], &of_these, side, stem, i);
    return blocks;
}

pnb__image_transformer *pnb__image_transformer_declare(pnb__weights *w, const pnb__config *c)
{
    const pnb__side side = PNB__IMAGE_SIDE;
    size_t width = c->vision.width;
    pnb__image_transformer *v = pnb__declare_tower(w, side, sizeof *v);
    if (v == NULL)
        return NULL;
    declare_patches(w, v, c);
    v->blocks = pnb__transformer_declare_blocks(w, side, "visual.transformer", &c->vision,
                                                c->vision.n_layers);
    /* every image tower ends its blocks with LN_post, before or behind pooling */
    v->ln_post_w = constant(w, side, "visual.ln_post.weight", width, 1);
    v->ln_post_b = constant(w, side, "visual.ln_post.bias", width, 0);
    return v;
}

/* A Linear stores (D,C), CLIP's matrix (C,D); the name of the latter has no ".weight". */
static void declare_text_projection(pnb__weights *w, pnb__text_transformer *t, const pnb__config *c)
{
    const pnb__side side = PNB__TEXT_SIDE;
    size_t width = c->text.width;
    double scale = pow((double)width, -0.5);
    if (c->text.projection == PNB__PROJECT_LINEAR) {
        t->proj_w = pnb__declare_matrix(w, side, "text.text_projection.weight",
                                        (size_t[]){c->embed_dim, width}, PNB__INIT_NORMAL, scale);
        t->proj_b = constant(w, side, "text.text_projection.bias", c->embed_dim, 0);
    } else if (c->text.projection == PNB__PROJECT_MATRIX) {
        t->proj_w = pnb__declare_matrix(w, side, "text.text_projection",
                                        (size_t[]){width, c->embed_dim}, PNB__INIT_NORMAL, scale);
    }
}

/* Token table N(0, 0.02^2), positions and appended tokens N(0, 0.01^2): CLIP's constants, which do
 * not depend on the width. */
pnb__text_transformer *pnb__text_transformer_declare(pnb__weights *w, const pnb__config *c)
{
    const pnb__side side = PNB__TEXT_SIDE;
    bool has_cls = c->text.pool == PNB__POOL_APPENDED;
    size_t width = c->text.width, n_extra = (has_cls ? 1U : 0U) + (c->text.has_unc ? 1U : 0U);
    pnb__text_transformer *t = pnb__declare_tower(w, side, sizeof *t);
    if (t == NULL)
        return NULL;
    if (has_cls)
        t->cls = pnb__declare_vector(w, side, "text.cls_emb", width, PNB__INIT_NORMAL, 0.01);
    if (c->text.has_unc)
        t->unc = pnb__declare_vector(w, side, "text.unc_emb", width, PNB__INIT_NORMAL, 0.01);
    t->positions =
        position_table(w, side, "text.positional_embedding",
                       (size_t[]){c->context_length + n_extra, width}, PNB__INIT_NORMAL, 0.01);
    t->tokens = pnb__declare_matrix(w, side, "text.token_embedding.weight",
                                    (size_t[]){c->vocab_size, width}, PNB__INIT_NORMAL, 0.02);
    t->blocks =
        pnb__transformer_declare_blocks(w, side, "text.transformer", &c->text, c->text.n_layers);
    t->ln_w = constant(w, side, "text.ln_final.weight", width, 1);
    t->ln_b = constant(w, side, "text.ln_final.bias", width, 0);
    declare_text_projection(w, t, c);
    return t;
}
