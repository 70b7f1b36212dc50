/* The list of families as the rest of the room asks it, and what families declare their parameters
 * with.
 *
 * A configuration belongs to the first family that claims it; what none claims is read by the
 * dialects that prolip, clip and siglip share, whose readers know the family from what they read.
 * Parameters are declared twice, because towers keep pointers to them and the array they lie in
 * must not move: the first time they are only counted. */
#include "models/tower.h"

const pnb__family_calls *pnb__family_of(const pnb__config *c)
{
    assert((size_t)c->family < pnb__n_model_families);
    return pnb__model_families[c->family];
}

const pnb__tower_calls *pnb__tower_of(const pnb__config *c, pnb__side side)
{
    const pnb__family_calls *family = pnb__family_of(c);
    return side == PNB__TEXT_SIDE ? family->text : family->image;
}

bool pnb__has_tower(const pnb__config *c, pnb__side side)
{
    return side == PNB__TEXT_SIDE ? c->text.present : c->vision.present;
}

pnb_status pnb__family_read_config(pnb__config *out, json_t *root, const char *where,
                                   pnb_error *err)
{
    for (size_t i = 0; i < pnb__n_model_families; i++) {
        const pnb__family_calls *family = pnb__model_families[i];
        if (family->claims == NULL || !family->claims(root))
            continue;
        pnb__config c = {.text_unc_source = PNB_TEXT_UNC_PROJECTED_MEAN, .eos_id = -1};
        pnb_status status = family->read_config(&c, root, where, err);
        if (status != PNB_OK)
            return status;
        c.family = (pnb__model_family)i; /* its place in the list, which it need not know */
        *out = c;
        return PNB_OK;
    }
    return pnb__config_read(out, root, where, err);
}

/* Shapes tell what a configuration would; what they cannot tell are the released models' values. */
pnb_status pnb__family_config_of(pnb__config *out, json_t **root, const pnb__weight_file *file,
                                 pnb_error *err)
{
    *root = NULL;
    for (size_t i = 0; i < pnb__n_model_families && *root == NULL; i++)
        if (pnb__model_families[i]->config_of != NULL)
            *root = pnb__model_families[i]->config_of(file);
    return *root == NULL ? PNB_OK : pnb__family_read_config(out, *root, file->path, err);
}

static const pnb__key_mapping_table *text_keys_of(const pnb__config *c)
{
    const pnb__family_calls *family = pnb__family_of(c);
    bool has_own = family->point_text_keys != NULL && family->text->family(c) == PNB_POINT;
    return has_own ? family->point_text_keys : family->text_keys;
}

pnb_status pnb__family_detect_keys(pnb__key_mapping *out, const pnb__config *c,
                                   const pnb__weight_file *file, pnb_error *err)
{
    const pnb__family_calls *family = pnb__family_of(c);
    pnb_status status;
    if (family->image_keys == NULL)
        status = pnb__key_mapping_detect(out, file, err);
    else
        status = pnb__key_mapping_choose(out, file, family->image_keys, text_keys_of(c), err);
    /* ours, once saved, have logit_scale like any other model */
    if (status == PNB_OK && family->plain_scale_key != NULL &&
        pnb__weight_file_lookup(file, family->plain_scale_key) != NULL) {
        out->plain_scale = family->plain_scale_key;
        out->plain_bias = family->plain_bias_key;
    }
    return status;
}

pnb__key_mapping pnb__family_own_keys(const pnb__config *c)
{
    const pnb__family_calls *family = pnb__family_of(c);
    if (family->image_keys == NULL)
        return pnb__key_mapping_of(PNB__KEY_MAPPING_PROLIP, c);
    return (pnb__key_mapping){.vision = c->vision.present ? family->image_keys : NULL,
                              .text = c->text.present ? family->text_keys : NULL,
                              .prefix = ""};
}

/* ---- what reports say ---- */

/* The inputs are every family's; the rest it adds itself. */
static void describe(pnb_tower_info *out, const pnb__config *c, pnb__side side,
                     const pnb__key_mapping *keys)
{
    bool is_text = side == PNB__TEXT_SIDE;
    *out = (pnb_tower_info){.present = pnb__has_tower(c, side)};
    if (!out->present)
        return;
    const pnb__tower_calls *tower = pnb__tower_of(c, side);
    out->family = tower->family(c);
    out->key_names = pnb__key_mapping_name(is_text ? keys->text : keys->vision);
    out->image_height = is_text ? 0 : c->image_height;
    out->image_width = is_text ? 0 : c->image_width;
    out->context_length = is_text ? c->context_length : 0;
    out->vocab_size = is_text ? c->vocab_size : 0;
    if (tower->describe != NULL)
        tower->describe(out, c);
}

void pnb__describe_towers(pnb_model_info *info, const pnb__config *c, const pnb__key_mapping *keys)
{
    info->family = pnb__family_of(c)->name;
    info->embed_dim = c->embed_dim;
    info->n_embeddings = PNB_MAX(c->n_embeddings, (size_t)1);
    info->text_unc_source = c->text_unc_source;
    info->trained_clean = pnb__family_of(c)->trained_clean;
    info->measure = pnb__family_of(c)->measure;
    describe(&info->vision, c, PNB__IMAGE_SIDE, keys);
    describe(&info->text, c, PNB__TEXT_SIDE, keys);
    info->is_probabilistic = (info->vision.present && info->vision.family != PNB_POINT) ||
                             (info->text.present && info->text.family != PNB_POINT);
}

/* ---- declaring ----
 *
 * A parameter is a name, a shape and how it starts. Its name is its identity: streams of initial
 * values come from it, checkpoints of the optimiser and other layouts of files are found by it. */

pnb__param *pnb__declare(pnb__weights *w, pnb__side side, const pnb__declared *what)
{
    if (w->items == NULL) { /* counting */
        w->capacity++;
        return NULL;
    }
    if (w->failed || w->n == w->capacity) {
        w->failed = true;
        return NULL;
    }
    pnb__weight *item = &w->items[w->n++];
    *item = (pnb__weight){.init = what->init,
                          .value = what->value,
                          .is_text = side == PNB__TEXT_SIDE,
                          .resize_rows = what->resize_rows};
    item->param.name = pnb__arena_strdup(&w->arena, what->name);
    w->failed |= item->param.name == NULL;
    item->param.n_dims = what->n_dims;
    item->param.n = 1;
    item->param.trainable = what->init != PNB__INIT_SINCOS && !what->is_buffer;
    for (int i = 0; i < what->n_dims; i++) {
        item->param.shape[i] = what->shape[i];
        item->param.n *= what->shape[i];
    }
    return &item->param;
}

void pnb__declare_around(pnb__weights *w, const pnb__param *p, double centre)
{
    for (size_t i = w->items != NULL ? w->n : 0; i-- > 0;)
        if (&w->items[i].param == p) {
            w->items[i].centre = centre;
            return;
        }
}

/* (n) */
pnb__param *pnb__declare_vector(pnb__weights *w, pnb__side side, const char *name, size_t n,
                                pnb__init_kind init, double value)
{
    return pnb__declare(
        w, side,
        &(pnb__declared){.name = name, .n_dims = 1, .shape = {n}, .init = init, .value = value});
}

/* (rows, columns), as torch stores the weight of a Linear: (out, in) */
pnb__param *pnb__declare_matrix(pnb__weights *w, pnb__side side, const char *name,
                                const size_t shape[2], pnb__init_kind init, double value)
{
    return pnb__declare(w, side,
                        &(pnb__declared){.name = name,
                                         .n_dims = 2,
                                         .shape = {shape[0], shape[1]},
                                         .init = init,
                                         .value = value});
}

/* Made anew in the second pass, since the first one's pointers are NULL; the first copy stays in
 * the arena, a few kilobytes. */
void *pnb__declare_tower(pnb__weights *w, pnb__side side, size_t n_bytes)
{
    void *tower = pnb__arena_alloc(&w->arena, n_bytes);
    w->failed |= tower == NULL;
    w->tower[side] = tower;
    return tower;
}

/* What F.normalize divides by: max(|x|, 1e-12). */
#define PNB__NORMALIZE_EPS 1e-12

pnb__tensor *pnb__unit_rows(pnb__tensor *x, bool unit)
{
    return unit ? pnb__l2_normalize(x, PNB__NORMALIZE_EPS) : x;
}
