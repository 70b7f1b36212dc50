/* The convolutional image encoder of family pcme: torchvision's ResNet, any width and depth, by the
 * running buffers of its batch norms, or a step of training where the case has cotangents. Arrays
 * are read as those of a weight file are, by one rule of names, and the rest of the case is passed
 * over.
 */
#include "tests/golden/golden.h"

#include <string.h>

#include "models/resnet/resnet.h"
#include "models/weights/weights.h"

static const pnb__key_rule rules[] = {
    {"visual.cnn.*", "param.*", PNB__KEY_WHOLE},
    {NULL, "pixels", PNB__KEY_WHOLE},
    {NULL, "features", PNB__KEY_WHOLE},
    {NULL, "pooled", PNB__KEY_WHOLE},
    {NULL, "cot_features", PNB__KEY_WHOLE},
    {NULL, "cot_pooled", PNB__KEY_WHOLE},
    {NULL, "grad.*", PNB__KEY_WHOLE},
    {NULL, "after.*", PNB__KEY_WHOLE},
    {NULL, "param.fc.*", PNB__KEY_WHOLE},
};
static const pnb__key_mapping_table keys = {"golden", rules, PNB_COUNT(rules)};

/* The shape of the trunk is that of its arrays: outputs of the stem, blocks that a stage has. */
static pnb_status read_config(const golden_case *c, pnb__resnet_config *out, pnb_error *err)
{
    const pnb_array_view *stem = golden_find(c, "param.conv1.weight");
    char name[64];
    *out =
        (pnb__resnet_config){.base = (size_t)stem->shape[0],
                             .bottleneck = golden_find(c, "param.layer1.0.conv3.weight") != NULL};
    for (size_t s = 0; s < PNB__RESNET_STAGES; s++)
        do
            snprintf(name, sizeof name, "param.layer%zu.%zu.conv1.weight", s + 1, out->layers[s]);
        while (golden_find(c, name) != NULL && ++out->layers[s] > 0);
    return pnb__resnet_config_check(out, PNB__RESNET_MIN_PIXELS, PNB__RESNET_MIN_PIXELS, err);
}

typedef struct trunk {
    pnb__resnet_config config;
    pnb__resnet resnet;
    pnb__weights w;
    bool trains;
    pnb__real real;
    pnb__tensor *pixels, *features, *pooled; /* features as the case has them, channels outside */
} trunk;

static void declare(pnb__weights *w, void *user)
{
    trunk *t = user;
    pnb__resnet_declare(w, &t->resnet, "visual.cnn.", &t->config);
}

static pnb_status load(const golden_case *c, trunk *t, pnb_error *err)
{
    char path[1024];
    pnb_status status = pnb__weights_declare_by(&t->w, c->ctx, t->real, declare, t, err);
    if (status != PNB_OK)
        return status;
    t->w.layout = (pnb__key_mapping){.vision = &keys, .prefix = ""};
    snprintf(path, sizeof path, "%s/tensors.safetensors", c->dir);
    status = pnb__weight_file_open(&t->w.file, path, err);
    if (status == PNB_OK)
        status = pnb__weights_load(&t->w, NULL, NULL, err);
    return status == PNB_OK && t->trains ? pnb__weights_make_owned(&t->w, err) : status;
}

static pnb__tensor *input_of(const golden_case *c, pnb__graph *g, const char *name)
{
    const pnb_array_view *view = golden_find(c, name);
    size_t shape[4] = {0};
    for (int i = 0; i < view->n_dims; i++)
        shape[i] = (size_t)view->shape[i];
    return pnb__input(g, PNB__REAL, view->n_dims, shape);
}

static void write(const golden_case *c, const char *name, pnb__tensor *t, pnb_error *err)
{
    double *values = golden_f64(c, name, NULL, err);
    if (values != NULL)
        pnb__write_f64(t, values);
    pnb__free(values);
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

/* grad.* of what is trained, after.* of the running buffers */
static void give_weights(golden_case *c, pnb__graph *g, const trunk *t)
{
    char name[160];
    for (size_t i = 0; i < t->w.n; i++) {
        pnb__param *p = &t->w.items[i].param;
        double *values = pnb__alloc_array(p->n + 1, sizeof *values);
        snprintf(name, sizeof name, "%s.%s", p->trainable ? "grad" : "after",
                 p->name + strlen("visual.cnn."));
        bool is_there =
            values != NULL &&
            (p->trainable ? pnb__read_grad_f64(pnb__param_tensor(g, p), values)
                          : pnb__param_read(p, &t->w.kernels, 0, p->n, values, NULL) == PNB_OK);
        if (is_there)
            golden_give(c, name, values, p->n);
        pnb__free(values);
    }
}

static void build(const golden_case *c, pnb__graph *g, trunk *t)
{
    t->pixels = input_of(c, g, "pixels");
    pnb__resnet_out out = pnb__resnet_build(&t->resnet, &t->config, g, t->pixels);
    t->features = out.map == NULL ? NULL : pnb__permute(out.map, (const int[]){0, 3, 1, 2});
    t->pooled = out.pooled;
    pnb__keep(t->features);
    pnb__keep(t->pooled);
}

/* Gradients of sum(features * cot_features) + sum(pooled * cot_pooled). */
static pnb_status train(golden_case *c, pnb__graph *g, trunk *t, pnb_error *err)
{
    build(c, g, t);
    pnb__tensor *cot[2] = {input_of(c, g, "cot_features"), input_of(c, g, "cot_pooled")};
    pnb__tensor *loss = pnb__add(pnb__sum(pnb__mul(t->features, cot[0]), PNB__ALL_AXES),
                                 pnb__sum(pnb__mul(t->pooled, cot[1]), PNB__ALL_AXES));
    pnb_status status = pnb__graph_plan(g, loss, err);
    if (status != PNB_OK)
        return status;
    write(c, "pixels", t->pixels, err);
    write(c, "cot_features", cot[0], err);
    write(c, "cot_pooled", cot[1], err);
    status = err->status == PNB_OK ? pnb__graph_run(g, err) : err->status;
    if (status == PNB_OK)
        give_weights(c, g, t);
    return status;
}

/* Twice: packed weights are used from the second run on. */
static pnb_status encode(golden_case *c, pnb__graph *g, trunk *t, pnb_error *err)
{
    build(c, g, t);
    pnb_status status = pnb__graph_plan(g, NULL, err);
    for (int i = 0; i < 2 && status == PNB_OK; i++) {
        write(c, "pixels", t->pixels, err);
        status = err->status == PNB_OK ? pnb__graph_run(g, err) : err->status;
    }
    return status;
}

pnb_status golden_case_resnet(golden_case *c, pnb_error *err)
{
    trunk t = {.trains = golden_find(c, "cot_features") != NULL};
    pnb__graph *g = NULL;
    pnb_status status = PNB_OK;
    if (golden_find(c, "pixels") == NULL)
        return pnb__fail(err, PNB_NOT_FOUND, "the case has no tensor pixels");
    t.real = t.trains ? PNB__F64 : PNB__F32; /* what the program encodes in, and what is exact */
    PNB_TRY(read_config(c, &t.config, err));
    PNB_TRY(load(c, &t, err));
    PNB_TRY(pnb__graph_create(&g, c->ctx, t.real, t.trains, err));
    PNB_TRY(t.trains ? train(c, g, &t, err) : encode(c, g, &t, err));
    give(c, "features", t.features);
    give(c, "pooled", t.pooled);
done:
    pnb__graph_free(g);
    pnb__weights_reset(&t.w);
    return status;
}
