/* SigLIP's image tower in open_clip folders: vision_cfg names a model of timm
 * (timm/models/vision_transformer.py), and that name is the architecture. The table below repeats
 * what timm builds for each name; the patch size is in the name. "timm_model_kwargs", which
 * open_clip hands on to timm, may change sizes and activation. Every other timm model is refused:
 * nothing in the file would say what it computes. */
#include <string.h>

#include "models/config/config.h"

/* vit_<size>_patch<P>_siglip_<R>; `tanh_patches` lists patch sizes whose models use tanh-GELU. */
typedef struct timm_size {
    const char *size;
    size_t width, n_layers, n_heads;
    double mlp_ratio;
    bool tanh; /* at every patch size and resolution */
} timm_size;

/* so400m is the shape that Alabdulmohsin et al. 2023 found best for its 400 million weights, whence
 * 27 layers and an MLP of 3.7362 widths. */
static const timm_size sizes[] = {
    {"base", 768, 12, 12, 4.0, false},
    {"large", 1024, 24, 16, 4.0, false},
    {"so400m", 1152, 27, 16, 3.7362, false},
    {"giantopt", 1536, 40, 16, 4.0, true},
};

/* Names for which timm sets act_layer='gelu_tanh', besides the sizes above. */
static const char *const tanh_names[] = {
    "vit_base_patch32_siglip_256", "vit_large_patch16_siglip_512", "vit_so400m_patch16_siglip_"};

/* "vit_base_patch16_siglip_224" -> base, 16, 224; NULL for another form or another size. A tag of
 * pretrained weights behind the name (".webli") is another form: open_clip's files have none. */
static const timm_size *parse_name(const char *name, size_t *patch, size_t *image)
{
    char size[16];
    unsigned p = 0, resolution = 0;
    int used = 0;
    if (sscanf(name, "vit_%15[a-z0-9]_patch%3u_siglip_%4u%n", size, &p, &resolution, &used) != 3 ||
        name[used] != '\0' || p == 0)
        return NULL;
    *patch = p;
    *image = resolution;
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        if (strcmp(size, sizes[i].size) == 0)
            return &sizes[i];
    return NULL;
}

/* Beginnings, so that one line covers every resolution of the so400m models of patch 16. */
static bool is_tanh(const timm_size *s, const char *name)
{
    bool found = s->tanh;
    for (size_t i = 0; i < PNB_COUNT(tanh_names); i++)
        found |= pnb__starts_with(name, tanh_names[i]);
    return found;
}

/* timm's own words for activations, which are not transformers'. */
static void read_act_layer(pnb__tower_config *t, pnb__jobj *k, pnb_error *err)
{
    static const struct {
        const char *name;
        pnb__unary act;
    } acts[] = {
        {"gelu", PNB__GELU}, {"gelu_tanh", PNB__GELU_TANH}, {"quick_gelu", PNB__QUICK_GELU}};
    const char *name = pnb__json_get_string(k, "act_layer", NULL, err);
    if (name == NULL || k->status != PNB_OK)
        return;
    for (size_t i = 0; i < PNB_COUNT(acts); i++)
        if (strcmp(name, acts[i].name) == 0) {
            t->act = acts[i].act;
            t->act_source = "timm_model_kwargs.act_layer";
            return;
        }
    pnb__config_unsupported(k, "act_layer", "gelu, gelu_tanh or quick_gelu", err);
}

/* What timm's constructor is called with beyond the name. The size of the picture stands twice,
 * here for timm and in image_size for open_clip's preprocessing: they must agree, or pictures would
 * be prepared for another grid. */
static void read_kwargs(pnb__config *c, pnb__jobj *o, double ratio, pnb_error *err)
{
    static const char *const keys[] = {"img_size",  "patch_size", "embed_dim", "depth",
                                       "num_heads", "mlp_ratio",  "act_layer"};
    pnb__tower_config *t = &c->vision;
    json_t *kwargs = pnb__json_get_object(o, "timm_model_kwargs", err);
    if (kwargs != NULL) {
        pnb__jobj k = pnb__json_object(kwargs, o->where, err);
        pnb__json_check_keys(&k, keys, PNB_COUNT(keys), err);
        c->patch = (size_t)pnb__json_get_int_in(&k, "patch_size", (int64_t)c->patch, 1,
                                                PNB__MAX_PIXELS, err);
        t->width = (size_t)pnb__json_get_int_in(&k, "embed_dim", (int64_t)t->width, 1,
                                                PNB__MAX_WIDTH, err);
        t->n_layers = (size_t)pnb__json_get_int_in(&k, "depth", (int64_t)t->n_layers, 1,
                                                   PNB__MAX_LAYERS, err);
        t->n_heads = (size_t)pnb__json_get_int_in(&k, "num_heads", (int64_t)t->n_heads, 1,
                                                  PNB__MAX_WIDTH, err);
        ratio = pnb__json_get_double(&k, "mlp_ratio", ratio, err);
        if (pnb__json_has(&k, "img_size") &&
            !json_equal(json_object_get(kwargs, "img_size"), json_object_get(o->obj, "image_size")))
            pnb__config_unsupported(&k, "timm_model_kwargs.img_size", "the image_size", err);
        read_act_layer(t, &k, err);
        if (k.status == PNB_OK && !(ratio > 0 && ratio <= 64 && (double)t->width * ratio >= 1))
            k.status =
                pnb__fail(err, PNB_ARG, "%s: timm_model_kwargs.mlp_ratio is %g", o->where, ratio);
        if (o->status == PNB_OK)
            o->status = k.status;
    }
    t->mlp_width = o->status == PNB_OK ? (size_t)((double)t->width * ratio) : 1;
    pnb__config_check_heads(t, o, "timm_model_name", err);
}

void pnb__config_read_timm(pnb__config *c, pnb__jobj *o, pnb_error *err)
{
    const char *name = pnb__json_get_string(o, "timm_model_name", "", err);
    const char *pool = pnb__json_get_string(o, "timm_pool", "avg", err);
    const char *proj = pnb__json_get_string(o, "timm_proj", "linear", err);
    if (o->status != PNB_OK)
        return;
    size_t image = 0;
    const timm_size *size = parse_name(name, &c->patch, &image);
    if (size == NULL || c->vision.has_unc) {
        o->status = pnb__fail(err, PNB_UNSUPPORTED,
                              "%s: timm_model_name \"%s\" is not read; of timm's towers only "
                              "SigLIP's vit_{base,large,so400m,giantopt}_patch<P>_siglip_<size> "
                              "are, without embed_unc",
                              o->where, name);
        return;
    }
    /* "map" is the attention head; average pooling and a linear projection are other models of timm
     */
    if (strcmp(pool, "map") != 0)
        pnb__config_unsupported(o, "timm_pool", "\"map\"", err);
    if (strcmp(proj, "none") != 0 && proj[0] != '\0')
        pnb__config_unsupported(o, "timm_proj", "\"none\"", err);
    if (proj[0] == '\0') /* timm's own classifier would be the projection */
        pnb__config_unsupported(o, "timm_proj", "\"none\", not empty", err);
    bool tanh = is_tanh(size, name);
    c->family = PNB__FAMILY_SIGLIP;
    c->conv_bias = c->no_ln_pre = true;
    c->vision = (pnb__tower_config){.present = true,
                                    .width = size->width,
                                    .n_layers = size->n_layers,
                                    .n_heads = size->n_heads,
                                    .eps = 1e-6,
                                    .eps_source = "default of timm's transformers",
                                    .act = tanh ? PNB__GELU_TANH : PNB__GELU,
                                    .act_source = "timm_model_name",
                                    .pool = PNB__POOL_MAP,
                                    .projection = PNB__PROJECT_NONE};
    read_kwargs(c, o, size->mlp_ratio, err);
    pnb__config_image_size(c, o, image, err);
    json_t *kwargs = json_object_get(o->obj, "timm_model_kwargs");
    if (o->status == PNB_OK && json_object_get(kwargs, "img_size") == NULL &&
        (c->image_height != image || c->image_width != image))
        o->status = pnb__fail(err, PNB_ARG,
                              "%s: image_size is %zux%zu, but timm builds %s for %zu; "
                              "timm_model_kwargs.img_size would change that",
                              o->where, c->image_height, c->image_width, name, image);
}
