/* The convolutional image encoder of family pcme: torchvision's ResNet, any width and depth, by the
 * running buffers of its batch norms. Arrays are read as those of a weight file are, by one rule of
 * names, and the rest of the case is passed over. */
#include "tests/golden/golden.h"

#include "models/resnet/resnet.h"
#include "models/weights.h"

static const pnb__key_rule rules[] = {
    {"visual.cnn.*", "param.*", PNB__KEY_WHOLE}, {NULL, "pixels", PNB__KEY_WHOLE},
    {NULL, "features", PNB__KEY_WHOLE},          {NULL, "pooled", PNB__KEY_WHOLE},
    {NULL, "param.fc.*", PNB__KEY_WHOLE},
};
static const pnb__key_mapping_table keys = {"golden", rules, PNB_COUNT(rules)};

static pnb_status read_config(const golden_case *c, pnb__resnet_config *out, pnb_error *err)
{
    const json_t *layers = golden_value(c, "layers");
    *out =
        (pnb__resnet_config){.base = (size_t)golden_number(c, "base", 64),
                             .bottleneck = golden_find(c, "param.layer1.0.conv3.weight") != NULL};
    if (json_array_size(layers) != PNB__RESNET_STAGES)
        return pnb__fail(err, PNB_FORMAT, "layers is no list of %d numbers", PNB__RESNET_STAGES);
    for (size_t s = 0; s < PNB__RESNET_STAGES; s++)
        out->layers[s] = (size_t)json_integer_value(json_array_get(layers, s));
    return pnb__resnet_config_check(out, PNB__RESNET_MIN_PIXELS, PNB__RESNET_MIN_PIXELS, err);
}

typedef struct trunk {
    pnb__resnet_config config;
    pnb__resnet resnet;
} trunk;

static void declare(pnb__weights *w, void *user)
{
    trunk *t = user;
    pnb__resnet_declare(w, &t->resnet, "visual.cnn.", &t->config);
}

static pnb_status load(const golden_case *c, trunk *t, pnb__weights *w, pnb_error *err)
{
    char path[1024];
    pnb_status status = pnb__weights_declare_by(w, c->ctx, PNB__F32, declare, t, err);
    if (status != PNB_OK)
        return status;
    w->layout = (pnb__key_mapping){.vision = &keys, .prefix = ""};
    snprintf(path, sizeof path, "%s/tensors.safetensors", c->dir);
    status = pnb__weight_file_open(&w->file, path, err);
    return status == PNB_OK ? pnb__weights_load(w, NULL, NULL, err) : status;
}

static void give(golden_case *c, const char *name, const pnb__tensor *t)
{
    double *values = pnb__alloc_array(pnb__n(t) + 1, sizeof *values);
    if (values == NULL)
        return;
    pnb__read_f64(t, values);
    golden_give(c, name, values, pnb__n(t));
    pnb__free(values);
}

static pnb_status run(golden_case *c, const trunk *t, pnb_error *err)
{
    pnb__graph *g = NULL;
    pnb_status status = PNB_OK;
    const pnb_array_view *view = golden_find(c, "pixels");
    float *pixels = golden_f32(c, "pixels", NULL, err);
    if (view == NULL || pixels == NULL)
        return err->status;
    size_t shape[4];
    for (int i = 0; i < 4; i++)
        shape[i] = (size_t)view->shape[i];
    PNB_TRY(pnb__graph_create(&g, c->ctx, PNB__F32, false, err));
    pnb__tensor *in = pnb__input(g, PNB__REAL, 4, shape);
    pnb__resnet_out out = pnb__resnet_build(&t->resnet, &t->config, g, in);
    pnb__tensor *map = out.map == NULL ? NULL : pnb__permute(out.map, (const int[]){0, 3, 1, 2});
    pnb__keep(map);
    pnb__keep(out.pooled);
    PNB_TRY(pnb__graph_plan(g, NULL, err));
    pnb__write_f32(in, pixels);
    for (int again = 0; again < 2; again++) /* packed weights are used from the second run on */
        PNB_TRY(pnb__graph_run(g, err));
    give(c, "features", map);
    give(c, "pooled", out.pooled);
done:
    pnb__graph_free(g);
    pnb__free(pixels);
    return status;
}

pnb_status golden_case_resnet(golden_case *c, pnb_error *err)
{
    pnb__weights w = {.n = 0};
    trunk t;
    pnb_status status = read_config(c, &t.config, err);
    if (status != PNB_OK)
        return status;
    status = load(c, &t, &w, err);
    if (status == PNB_OK)
        status = run(c, &t, err);
    pnb__weights_reset(&w);
    return status;
}
