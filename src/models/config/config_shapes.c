/* OpenAI's CLIP without a configuration: the architecture follows from the shapes of the state dict
 * (CLIP/clip/model.py, build_model), with heads of width 64, LayerNorm eps 1e-5 and QuickGELU.
 *
 * open_clip's checkpoints have the same keys but mostly plain GELU, and nothing in the weights
 * tells them apart. So the three numbers that only OpenAI's files carry (input_resolution,
 * context_length, vocab_size) must be there; without them the folder needs a configuration. */
#include <math.h>
#include <string.h>

#include "models/config/config.h"
#include "models/weights/weight_file.h"

enum { HEAD_WIDTH = 64 };

/* A dimension of a named array; 0 when it is not there. */
static size_t dim_of(const pnb__weight_file *f, const char *name, int axis)
{
    const pnb_array_view *a = pnb__weight_file_lookup(f, name);
    return a != NULL && axis < a->n_dims ? (size_t)a->shape[axis] : 0;
}

/* Blocks are numbered from 0 without a gap; the first number that is missing is how many there are.
 */
static size_t count_layers(const pnb__weight_file *f, const char *stem)
{
    char key[128];
    size_t n = 0;
    for (; n < PNB__MAX_LAYERS; n++) {
        snprintf(key, sizeof key, "%s.resblocks.%zu.ln_1.weight", stem, n);
        if (pnb__weight_file_lookup(f, key) == NULL)
            break;
    }
    return n;
}

/* Width C from a LayerNorm or the patch embedding (C,3,p,p), the MLP's from c_fc (4C,C). What no
 * shape tells is OpenAI's constant: heads of 64, eps, QuickGELU. */
static pnb__tower_config tower(const pnb__weight_file *f, const char *stem, size_t width)
{
    char key[128];
    snprintf(key, sizeof key, "%s.resblocks.0.mlp.c_fc.weight", stem);
    return (pnb__tower_config){.present = true,
                               .width = width,
                               .n_layers = count_layers(f, stem),
                               .n_heads = width / HEAD_WIDTH,
                               .mlp_width = dim_of(f, key, 0),
                               .eps = 1e-5,
                               .eps_source = "OpenAI's build_model",
                               .act = PNB__QUICK_GELU,
                               .act_source = "OpenAI's build_model",
                               .projection = PNB__PROJECT_MATRIX};
}

/* Numbers among the weights: OpenAI's state dicts carry them, and its build_model deletes them
 * before loading. */
static bool is_openai(const pnb__weight_file *f)
{
    return pnb__weight_file_lookup(f, "input_resolution") != NULL &&
           pnb__weight_file_lookup(f, "context_length") != NULL &&
           pnb__weight_file_lookup(f, "vocab_size") != NULL;
}

/* The positions of a square picture: one row of [CLS] and grid^2 of patches; and sizes that a
 * reader of a damaged file would take gigabytes for. */
static pnb_status check(const pnb__config *c, const pnb__weight_file *f, size_t grid,
                        pnb_error *err)
{
    const pnb__tower_config *towers[] = {&c->vision, &c->text};
    size_t n_positions = dim_of(f, "visual.positional_embedding", 0);
    for (size_t i = 0; i < PNB_COUNT(towers); i++) {
        const pnb__tower_config *t = towers[i];
        if (t->n_layers == 0 || t->n_heads == 0 || t->width % HEAD_WIDTH != 0 ||
            t->mlp_width == 0 || t->width > PNB__MAX_WIDTH)
            return pnb__fail(err, PNB_SHAPE,
                             "%s: the %s tower has %zu layers of width %zu, which is not an OpenAI "
                             "CLIP of heads %d wide; give the folder an open_clip_config.json",
                             f->path, i == 0 ? "image" : "text", t->n_layers, t->width, HEAD_WIDTH);
    }
    if (grid == 0 || grid * grid + 1 != n_positions || c->patch == 0 ||
        c->image_height > PNB__MAX_PIXELS)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: %zu image positions are not one and a square; give the folder an "
                         "open_clip_config.json",
                         f->path, n_positions);
    if (c->embed_dim == 0 || c->embed_dim > PNB__MAX_WIDTH || c->context_length == 0 ||
        c->vocab_size == 0 || c->vocab_size > PNB__MAX_VOCAB)
        return pnb__fail(err, PNB_SHAPE,
                         "%s: text_projection, positional_embedding or "
                         "token_embedding.weight is missing or empty",
                         f->path);
    return PNB_OK;
}

pnb_status pnb__config_from_shapes(pnb__config *out, const pnb__weight_file *f, pnb_error *err)
{
    if (!is_openai(f))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s stands without config.json or open_clip_config.json, and the weights "
                         "alone do not say whether the model uses QuickGELU or GELU; put the "
                         "model's configuration beside them",
                         f->path);
    size_t width = dim_of(f, "visual.conv1.weight", 0);
    /* side of the grid: the root of the positions but one */
    size_t n_positions = dim_of(f, "visual.positional_embedding", 0), grid = 0;
    while (n_positions > 0 && (grid + 1) * (grid + 1) <= n_positions - 1 && grid < PNB__MAX_PIXELS)
        grid++;
    pnb__config c = {.family = PNB__FAMILY_CLIP,
                     .embed_dim = dim_of(f, "text_projection", 1),
                     .has_logit_scale = true,
                     .init_logit_scale = log(1 / 0.07),
                     .vision = tower(f, "visual.transformer", width),
                     .text = tower(f, "transformer", dim_of(f, "ln_final.weight", 0)),
                     .patch = dim_of(f, "visual.conv1.weight", 3),
                     .context_length = dim_of(f, "positional_embedding", 0),
                     .vocab_size = dim_of(f, "token_embedding.weight", 0),
                     .causal = true,
                     .eos_id = -1};
    c.vision.pool = PNB__POOL_CLASS;
    c.text.pool = PNB__POOL_ARGMAX;
    c.image_height = c.image_width = grid * c.patch;
    pnb_status status = check(&c, f, grid, err);
    if (status == PNB_OK)
        *out = c;
    return status;
}
