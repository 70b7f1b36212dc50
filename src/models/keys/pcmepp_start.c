/* The start of PCME++'s training out of CLIP: its towers are CLIP's, whose weights its code takes
 * with load_state_dict(strict=False), and a second path over the last blocks, which is fresh
 * (Chun 2024, section 3.4; the released configurations have one or two such blocks). */
#include <math.h>
#include <stdlib.h>

#include "models/config/config_write.h"
#include "models/keys/key_export.h"

#define UNC_LAYERS 2 /* of the released models */
/* Where log-variances start, as ProLIP's, and the share of the reference's spread they start with:
 * from variances of 1, its own start, all means become alike first (docs/numerics.md#pcmepp). */
#define LOG_VAR (-10.0)
#define SPREAD 0.03

/* PCME++ has no words for layer scales, one tower alone, or the ends of other families: what it
 * cannot be written with is refused before anything is. */
static pnb_status check_clip(const pnb_model *m, pnb_error *err)
{
    const pnb__config *c = &m->config;
    const char *what = NULL;
    if (!c->vision.present || !c->text.present)
        what = "has one tower";
    else if (c->family != PNB__FAMILY_CLIP || pnb__family_of(c)->read_config != NULL)
        what = pnb__family_of(c)->name;
    else if (c->vision.has_layer_scale || c->text.has_layer_scale)
        what = "has layer scales";
    return what == NULL
               ? PNB_OK
               : pnb__fail(err, PNB_UNSUPPORTED,
                           "a PCME++ begins with both towers of a CLIP that reads pictures "
                           "at the class token and texts at the end token; this model: %s",
                           what);
}

/* U blocks of one tower, the log-variance l they start near and the spread s of the projection Q,
 * N(0, s^2): with s = 1/sqrt(C), the reference's, l would be lost in it. U may be all of the
 * tower's blocks, and then nothing is shared but the embedding of its input. */
static pnb_status put_path(json_t *model, const char *section, size_t wanted,
                           const pnb__tower_config *tower, pnb_error *err)
{
    json_t *o = json_object_get(model, section);
    if (wanted > tower->n_layers)
        return pnb__fail(err, PNB_ARG, "%zu blocks of uncertainty over a tower of %zu blocks (%s)",
                         wanted, tower->n_layers, section);
    bool ok =
        json_object_set_new(o, "unc_layers", json_integer((json_int_t)wanted)) == 0 &&
        json_object_set_new(o, "init_unc_bias", json_real(LOG_VAR)) == 0 &&
        json_object_set_new(o, "init_unc_std", json_real(SPREAD / sqrt((double)tower->width))) == 0;
    return ok ? PNB_OK : pnb__fail_nomem(err, 64);
}

/* PCME++'s configuration, config.json of constructor arguments. */
static pnb_status make_config(const pnb_model *from, const pnb_model_convert_opts *o, char **out,
                              pnb_error *err)
{
    const pnb__config *c = &from->config;
    size_t wanted = o->n_unc_layers > 0 ? o->n_unc_layers : UNC_LAYERS;
    json_t *root = NULL, *model = NULL;
    pnb_status status;
    PNB_TRY(pnb__config_write(&root, c, PNB__KEY_MAPPING_OPEN_CLIP, err));
    PNB_TRY(pnb__carry_text_keys(from, root, err));
    model = json_object_get(root, "model_cfg");
    PNB_TRY(put_path(model, "vision_cfg", wanted, &c->vision, err));
    PNB_TRY(put_path(model, "text_cfg", wanted, &c->text, err));
    /* a and b are the matching loss's own, which CLIP's scale is not */
    json_object_del(model, "init_logit_scale");
    json_object_del(model, "init_logit_bias");
    *out = json_dumps(model, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    if (*out == NULL)
        status = pnb__fail_nomem(err, 0);
done:
    json_decref(root);
    return status;
}

/* CLIP's weights under their names: stem, all L blocks, the last norm and the projection of the
 * mean. But for the scale, which starts anew: CLIP's multiplies cosines, a is of distances. */
static pnb_status fill(pnb_model *from, pnb_model *to, pnb_error *err)
{
    double a = 0.0, b = 0.0;
    pnb__param *scale = to->weights.logit_scale, *bias = to->weights.logit_bias;
    pnb_status status;
    PNB_TRY(pnb__weights_widen(&from->weights, err));
    PNB_TRY(pnb__param_read(scale, &to->weights.kernels, 0, 1, &a, err));
    PNB_TRY(pnb__param_read(bias, &to->weights.kernels, 0, 1, &b, err));
    PNB_TRY(pnb__copy_same(from, to, err));
    PNB_TRY(pnb__param_write(scale, &to->weights.kernels, 0, 1, &a, err));
    status = pnb__param_write(bias, &to->weights.kernels, 0, 1, &b, err);
done:
    return status;
}

pnb_status pnb__convert_to_pcmepp(pnb_model *from, const char *out, const pnb_model_convert_opts *o,
                                  char notes[1024], pnb_error *err)
{
    pnb_model *to = NULL;
    char *text = NULL;
    pnb_status status;
    PNB_TRY(check_clip(from, err));
    PNB_TRY(make_config(from, o, &text, err));
    PNB_TRY(pnb_model_init_json(&to, from->ctx, text, o->seed, err));
    PNB_TRY(fill(from, to, err));
    PNB_TRY(pnb_model_save(to, out, err));
    snprintf(
        notes, 1024,
        "fresh: the blocks and projections of the log-variances, which begin near -10, a = b = "
        "5; means are CLIP's, uncertainty says nothing until it is trained");
done:
    pnb_model_free(to);
    free(text);
    return status;
}
