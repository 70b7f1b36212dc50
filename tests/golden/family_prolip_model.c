/* Family prolip_model: the towers of ProLIP, CLIP and SigLIP on given pixels and ids, position
 * resizing, and whole training steps with the gradient of every weight. A case folder is itself a
 * model directory, and may hold the same weights under the names of another layout. Everything runs
 * in f32 through the code that users run. */
#include "tests/golden/golden.h"

#include <math.h>
#include <string.h>

#include "models/model.h"
#include "models/position_resize.h"
#include "train/losses/loss.h"

static size_t dim_of(const golden_case *c, const char *name, int axis)
{
    const pnb_array_view *view = golden_find(c, name);
    return view != NULL && axis < view->n_dims ? (size_t)view->shape[axis] : 0;
}

typedef enum tower { IMAGE, TEXT } tower;

/* One encode call given as "<name>.mean" and "<name>.std". */
static pnb_status encode(golden_case *c, pnb_model *m, tower which, const char *input,
                         const char *name, bool normalize, pnb_error *err)
{
    char mean_name[64], std_name[64];
    snprintf(mean_name, sizeof mean_name, "%s.mean", name);
    snprintf(std_name, sizeof std_name, "%s.std", name);
    if (golden_find(c, input) == NULL || !golden_wants(c, mean_name))
        return PNB_OK;
    size_t n_batch = dim_of(c, input, 0), n = n_batch * pnb_model_get_info(m)->embed_dim;
    size_t n_kept = dim_of(c, "mask.kept", 0);
    bool masked = strcmp(name, "image_masked") == 0;
    float *mean = pnb__alloc_array(n, sizeof *mean), *log_var = pnb__alloc_array(n, sizeof *mean);
    float *pixels = which == IMAGE ? golden_f32(c, input, NULL, err) : NULL;
    int32_t *ids = which == TEXT ? golden_i32(c, input, NULL, err) : NULL;
    int32_t *kept = masked ? golden_i32(c, "mask.kept", NULL, err) : NULL;
    pnb_encode_out out = {.mean = mean, .log_var = log_var, .skip_normalize = !normalize};
    pnb_status status;
    if (mean == NULL || log_var == NULL || (which == IMAGE ? pixels == NULL : ids == NULL))
        status = pnb__fail(err, PNB_FORMAT, "input %s cannot be read", input);
    else if (which == TEXT)
        status = pnb_model_encode_text(m, ids, n_batch, dim_of(c, input, 1), &out, err);
    else
        status =
            pnb_model_encode_image_kept(m, pixels, n_batch, kept, masked ? n_kept : 0, &out, err);
    if (status == PNB_OK) {
        golden_give_f32(c, mean_name, mean, n);
        if (pnb_model_get_info(m)->is_probabilistic)
            golden_give_f32(c, std_name, log_var, n);
    }
    pnb__free(mean);
    pnb__free(log_var);
    pnb__free(pixels);
    pnb__free(ids);
    pnb__free(kept);
    return status;
}

/* encode_image(image_mask_ratio) does not normalise; only the cases tell by their norms. */
static bool has_unit_rows(const golden_case *c, const char *name)
{
    pnb_error err = PNB_ERROR_INIT;
    double *values = golden_f64(c, name, NULL, &err), squares = 0;
    size_t width = dim_of(c, name, 1);
    for (size_t i = 0; values != NULL && i < width; i++)
        squares += values[i] * values[i];
    pnb__free(values);
    return fabs(squares - 1) < 1e-6;
}

static pnb_status towers(golden_case *c, pnb_model *m, pnb_error *err)
{
    const pnb_model_info *info = pnb_model_get_info(m);
    pnb_status status = encode(c, m, IMAGE, "pixels", "image", false, err);
    if (status == PNB_OK)
        status = encode(c, m, IMAGE, "pixels", "image_norm", true, err);
    if (status == PNB_OK)
        status = encode(c, m, IMAGE, "pixels", "image_masked",
                        has_unit_rows(c, "image_masked.mean"), err);
    if (status == PNB_OK)
        status = encode(c, m, TEXT, "ids", "text", false, err);
    if (status == PNB_OK)
        status = encode(c, m, TEXT, "ids", "text_norm", true, err);
    if (status == PNB_OK)
        status =
            encode(c, m, TEXT, "ids_short", "text_short", has_unit_rows(c, "text_short.mean"), err);
    golden_give_scalar(c, "logit_scale", info->logit_scale);
    golden_give_scalar(c, "logit_bias", info->logit_bias);
    return status;
}

/* ---- deterministic models: CLIP and SigLIP ---- */

typedef struct pair {
    float *image, *text, *image_norm, *text_norm; /* (n_images, D), (n_texts, D) */
    size_t n_images, n_texts, width;
} pair;

static void free_pair(pair *p)
{
    float *all[] = {p->image, p->text, p->image_norm, p->text_norm};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        pnb__free(all[i]);
}

static pnb_status encode_pair(golden_case *c, pnb_model *m, pair *p, pnb_error *err)
{
    p->n_images = dim_of(c, "pixels", 0);
    p->n_texts = dim_of(c, "ids", 0);
    p->width = pnb_model_get_info(m)->embed_dim;
    float **images[] = {&p->image, &p->image_norm}, **texts[] = {&p->text, &p->text_norm};
    float *pixels = p->n_images > 0 ? golden_f32(c, "pixels", NULL, err) : NULL;
    int32_t *ids = p->n_texts > 0 ? golden_i32(c, "ids", NULL, err) : NULL;
    pnb_status status = PNB_OK;
    for (int i = 0; i < 2 && status == PNB_OK; i++) {
        *images[i] = pnb__alloc_array(p->n_images * p->width + 1, sizeof(float));
        *texts[i] = pnb__alloc_array(p->n_texts * p->width + 1, sizeof(float));
        if (*images[i] == NULL || *texts[i] == NULL)
            status = pnb__fail_nomem(err, p->n_images * p->width * sizeof(float));
        if (status == PNB_OK && pixels != NULL)
            status = pnb_model_encode_image(
                m, pixels, p->n_images,
                &(pnb_encode_out){.mean = *images[i], .skip_normalize = i == 0}, err);
        if (status == PNB_OK && ids != NULL)
            status = pnb_model_encode_text(
                m, ids, p->n_texts, dim_of(c, "ids", 1),
                &(pnb_encode_out){.mean = *texts[i], .skip_normalize = i == 0}, err);
    }
    pnb__free(pixels);
    pnb__free(ids);
    return status;
}

/* exp(scale) a b^T + bias */
static void give_logits(golden_case *c, const char *name, const pnb_model_info *info, const pair *p,
                        bool text_first)
{
    const float *a = text_first ? p->text_norm : p->image_norm;
    const float *b = text_first ? p->image_norm : p->text_norm;
    size_t rows = text_first ? p->n_texts : p->n_images;
    size_t cols = text_first ? p->n_images : p->n_texts;
    double *logits = pnb__alloc_array(rows * cols + 1, sizeof *logits);
    for (size_t i = 0; logits != NULL && i < rows * cols; i++) {
        double dot = 0;
        for (size_t d = 0; d < p->width; d++)
            dot += (double)a[i / cols * p->width + d] * (double)b[i % cols * p->width + d];
        logits[i] = info->logit_scale * dot + info->logit_bias;
    }
    if (logits != NULL)
        golden_give(c, name, logits, rows * cols);
    pnb__free(logits);
}

static void give_pair(golden_case *c, const pnb_model_info *info, const pair *p)
{
    golden_give_f32(c, "image", p->image, p->n_images * p->width);
    golden_give_f32(c, "image_norm", p->image_norm, p->n_images * p->width);
    golden_give_f32(c, "text", p->text, p->n_texts * p->width);
    golden_give_f32(c, "text_norm", p->text_norm, p->n_texts * p->width);
    give_logits(c, "logits_per_image", info, p, false);
    give_logits(c, "logits_per_text", info, p, true);
}

static pnb_status check_alike(const char *what, const float *a, const float *b, size_t n,
                              pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= 1e-6 + 1e-6 * fabs((double)a[i])))
            return pnb__fail(err, PNB_NUMERIC, "%s: element %zu is %.9g, from the main file %.9g",
                             what, i, (double)b[i], (double)a[i]);
    return PNB_OK;
}

/* The same weights under other names must give the same embeddings. */
static pnb_status other_layouts(golden_case *c, const pair *main_pair, pnb_error *err)
{
    static const char *const files[][2] = {{"hf_config.json", "hf_model.safetensors"},
                                           {"config.json", "timm_layout.safetensors"},
                                           {"config.json", "pytorch_model.bin"}};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(files) && status == PNB_OK; i++) {
        pair p = {0};
        pnb_model *m = NULL;
        char *config = pnb__path_join(c->dir, files[i][0]);
        char *weights = pnb__path_join(c->dir, files[i][1]);
        if (config != NULL && weights != NULL && pnb__path_is_file(weights)) {
            pnb__model_files f = {config, weights};
            status = pnb__model_open(&m, c->ctx, &f, PNB__F32, NULL, err);
            if (status == PNB_OK)
                status = pnb_model_set_precision(m, c->precision, err);
            if (status == PNB_OK)
                status = encode_pair(c, m, &p, err);
            if (status == PNB_OK)
                status =
                    check_alike(files[i][1], main_pair->image, p.image, p.n_images * p.width, err);
            if (status == PNB_OK)
                status =
                    check_alike(files[i][1], main_pair->text, p.text, p.n_texts * p.width, err);
        }
        pnb_model_free(m);
        free_pair(&p);
        pnb__free(config);
        pnb__free(weights);
    }
    return status;
}

static pnb_status point_towers(golden_case *c, pnb_model *m, pnb_error *err)
{
    pair p = {0};
    pnb_status status = encode_pair(c, m, &p, err);
    if (status == PNB_OK)
        status = other_layouts(c, &p, err);
    if (status == PNB_OK)
        give_pair(c, pnb_model_get_info(m), &p);
    free_pair(&p);
    return status;
}

/* ---- position resizing ---- */

static size_t isqrt(size_t n)
{
    size_t root = 0;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

static pnb_status resize_vision(golden_case *c, pnb__position_rule rule, pnb_error *err)
{
    size_t n_old = dim_of(c, "vision.old", 0), n_new = dim_of(c, "vision.model", 0);
    size_t width = dim_of(c, "vision.old", 1);
    size_t old_grid = (size_t)golden_number(c, "old_grid", (double)isqrt(n_old));
    size_t new_grid = (size_t)golden_number(c, "new_grid", (double)isqrt(n_new));
    size_t old_extra = n_old - old_grid * old_grid, new_extra = n_new - new_grid * new_grid;
    double *old = golden_f64(c, "vision.old", NULL, err);
    double *fresh = golden_f64(c, "vision.model", NULL, err);
    pnb_status status = PNB_FORMAT;
    if (old != NULL && fresh != NULL) {
        pnb__grid_resize r = {old_grid, old_grid, new_grid, new_grid, width, rule};
        status =
            pnb__positions_resize_grid(&r, old + old_extra * width, fresh + new_extra * width, err);
        golden_give(c, "vision.new", fresh, n_new * width);
    }
    pnb__free(old);
    pnb__free(fresh);
    return status;
}

/* Above 127 rows both rules keep the first 20 and the last 2 and owe the reference's numbers. */
static pnb_status resize_text(golden_case *c, pnb__position_rule rule, pnb_error *err)
{
    size_t n_old = dim_of(c, "text.old", 0), n_new = dim_of(c, "text.new", 0);
    size_t width = dim_of(c, "text.old", 1);
    double *old = golden_f64(c, "text.old", NULL, err);
    double *fresh = pnb__alloc_array(n_new * width + 1, sizeof *fresh);
    pnb_status status = PNB_FORMAT;
    if (old != NULL && fresh != NULL) {
        const pnb__text_resize r = {
            .n_old = n_old, .n_new = n_new, .n_extra = 2, .width = width, .rule = rule};
        status = pnb__positions_resize_text(&r, old, fresh, err);
        golden_give(c, "text.new", fresh, n_new * width);
    }
    pnb__free(old);
    pnb__free(fresh);
    return status;
}

/* ---- a training step ---- */

typedef struct train_step {
    pnb__graph *graph;
    pnb__tensor *pixels, *ids, *masked_ids, *kept, *kept_positions;
    pnb__dist image, text, masked_image, masked_text;
    pnb__loss loss;
    size_t n_batch, n_masked, n_kept;
} train_step;

static pnb_loss_opts loss_options(const golden_case *c)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        o.weight[i] = 0;
    o.weight[PNB_LOSS_PPCL] = golden_number(c, "loss_kwargs.ppcl_lambda", 1);
    o.weight[PNB_LOSS_SIGLIP] = golden_number(c, "loss_kwargs.siglip_lambda", 0);
    o.weight[PNB_LOSS_INCLUSION] = golden_number(c, "loss_kwargs.inclusion_alpha", 0);
    o.weight[PNB_LOSS_IMG_INCLUSION] = o.weight[PNB_LOSS_TXT_INCLUSION] =
        golden_number(c, "loss_kwargs.inclusion_alpha_occ", 0);
    o.weight[PNB_LOSS_VIB] = golden_number(c, "loss_kwargs.vib_beta", 1e-5);
    o.inclusion_eps = golden_number(c, "loss_kwargs.inclusion_loss_eps", -10);
    o.inclusion_scale = golden_number(c, "loss_kwargs.inclusion_loss_scale", 1000);
    o.inclusion_exact = false;
    o.vib_official = true; /* the reference's own divergence */
    return o;
}

static pnb_status build_step(golden_case *c, pnb_model *m, train_step *s, pnb_error *err)
{
    const pnb_model_info *info = pnb_model_get_info(m);
    pnb_status status = pnb__graph_create(&s->graph, c->ctx, pnb__model_real(m), true, err);
    if (status != PNB_OK)
        return status;
    pnb__graph *g = s->graph;
    s->n_batch = dim_of(c, "pixels", 0);
    s->n_masked = dim_of(c, "masked_ids", 0);
    s->n_kept = dim_of(c, "mask.kept", 0);
    s->pixels =
        pnb__input(g, PNB__REAL, 4,
                   (size_t[]){s->n_batch, 3, info->vision.image_height, info->vision.image_width});
    s->ids = pnb__input(g, PNB__INT32, 2, (size_t[]){s->n_batch, dim_of(c, "ids", 1)});
    s->image = pnb__model_build(m, PNB__IMAGE_SIDE, g, &(pnb__tower_in){.pixels = s->pixels}, true);
    s->text = pnb__model_build(m, PNB__TEXT_SIDE, g, &(pnb__tower_in){.ids = s->ids}, true);
    pnb__tensor *scale = pnb__param_tensor(g, pnb__model_find_param(m, "logit_scale"));
    pnb__loss_in in = {.image = s->image,
                       .text = s->text,
                       .scale = pnb__apply(PNB__EXP, scale),
                       .bias = pnb__param_tensor(g, pnb__model_find_param(m, "logit_bias"))};
    if (s->n_masked > 0) {
        s->masked_ids =
            pnb__input(g, PNB__INT32, 2, (size_t[]){s->n_masked, dim_of(c, "masked_ids", 1)});
        s->kept = pnb__input(g, PNB__INT32, 2, (size_t[]){s->n_masked, s->n_kept});
        s->kept_positions = pnb__input(g, PNB__INT32, 1, &s->n_kept);
        const pnb__tower_in pixels = {.pixels = pnb__slice(s->pixels, 0, 0, s->n_masked),
                                      .kept = s->kept,
                                      .kept_positions = s->kept_positions};
        const pnb__tower_in ids = {.ids = s->masked_ids};
        in.masked_image = s->masked_image = pnb__model_build(m, PNB__IMAGE_SIDE, g, &pixels, true);
        in.masked_text = s->masked_text = pnb__model_build(m, PNB__TEXT_SIDE, g, &ids, true);
    }
    pnb__dist dists[4] = {s->image, s->text, s->masked_image, s->masked_text};
    for (int i = 0; i < 4; i++) {
        pnb__keep(dists[i].mean);
        pnb__keep(dists[i].log_var);
    }
    pnb_loss_opts opts = loss_options(c);
    status = pnb__loss_build(&s->loss, g, &in, &opts, err);
    if (status == PNB_OK)
        status = pnb__graph_plan(g, s->loss.total, err);
    if (status == PNB_OK)
        status = pnb__loss_start(&s->loss, err);
    return status;
}

static pnb_status write_step(golden_case *c, train_step *s, size_t n_patches, pnb_error *err)
{
    float *pixels = golden_f32(c, "pixels", NULL, err);
    int32_t *ids = golden_i32(c, "ids", NULL, err);
    if (pixels == NULL || ids == NULL)
        return PNB_FORMAT;
    pnb__write_f32(s->pixels, pixels);
    pnb__write_i32(s->ids, ids);
    pnb__free(pixels);
    pnb__free(ids);
    if (s->n_masked == 0)
        return PNB_OK;
    int32_t *masked = golden_i32(c, "masked_ids", NULL, err);
    int32_t *kept = golden_i32(c, "mask.kept", NULL, err);
    int32_t *flat = pnb__alloc_array(s->n_masked * s->n_kept + 1, sizeof *flat);
    if (masked == NULL || kept == NULL || flat == NULL)
        return PNB_FORMAT;
    for (size_t i = 0; i < s->n_masked * s->n_kept; i++)
        flat[i] = (int32_t)(i / s->n_kept * n_patches) + kept[i % s->n_kept];
    pnb__write_i32(s->masked_ids, masked);
    pnb__write_i32(s->kept, flat);
    pnb__write_i32(s->kept_positions, kept);
    pnb__free(masked);
    pnb__free(kept);
    pnb__free(flat);
    return PNB_OK;
}

static void give_tensor(golden_case *c, const char *name, const pnb__tensor *t)
{
    if (t == NULL)
        return;
    double *values = pnb__alloc_array(pnb__n(t) + 1, sizeof *values);
    if (values == NULL)
        return;
    pnb__read_f64(t, values);
    golden_give(c, name, values, pnb__n(t));
    pnb__free(values);
}

static void give_step(golden_case *c, pnb_model *m, const train_step *s)
{
    static const char *const names[4] = {"image", "text", "masked_image", "masked_text"};
    const pnb__dist dists[4] = {s->image, s->text, s->masked_image, s->masked_text};
    char name[160];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s.mean", names[i]);
        give_tensor(c, name, dists[i].mean);
        snprintf(name, sizeof name, "%s.std", names[i]);
        give_tensor(c, name, dists[i].log_var);
    }
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++) {
        snprintf(name, sizeof name, "loss.%s", pnb_loss_name((pnb_loss_term)i));
        give_tensor(c, name, s->loss.term[i]);
    }
    give_tensor(c, "loss.total", s->loss.total);
    for (size_t i = 0; i < pnb__model_n_params(m); i++) {
        pnb__param *p = pnb__model_param(m, i);
        double *grad = pnb__alloc_array(p->n + 1, sizeof *grad);
        snprintf(name, sizeof name, "grad.%s", p->name);
        if (grad != NULL && pnb__read_grad_f64(pnb__param_tensor(s->graph, p), grad))
            golden_give(c, name, grad, p->n);
        pnb__free(grad);
    }
}

static pnb_status run_train_step(golden_case *c, pnb_model *m, pnb_error *err)
{
    train_step s = {0};
    pnb_status status = build_step(c, m, &s, err);
    if (status == PNB_OK)
        status = write_step(c, &s, pnb_model_get_info(m)->vision.n_patches, err);
    if (status == PNB_OK)
        status = pnb__graph_run(s.graph, err);
    if (status == PNB_OK)
        give_step(c, m, &s);
    pnb__graph_free(s.graph);
    return status;
}

pnb_status golden_family_prolip_model(golden_case *c, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (golden_find(c, "vision.old") != NULL)
        status = resize_vision(c, PNB__POSITIONS_PROLIP, err);
    if (status == PNB_OK && golden_find(c, "vision.old") != NULL)
        status = resize_vision(c, PNB__POSITIONS_LONGPROLIP, err);
    if (status == PNB_OK && golden_find(c, "text.old") != NULL)
        status = resize_text(c, PNB__POSITIONS_PROLIP, err);
    if (status == PNB_OK && dim_of(c, "text.new", 0) > 127)
        status = resize_text(c, PNB__POSITIONS_LONGPROLIP, err);
    if (golden_find(c, "vision.old") != NULL || golden_find(c, "text.old") != NULL)
        return status;
    pnb_model *m = NULL;
    status = pnb_model_load(&m, c->ctx, c->dir, err);
    if (status == PNB_OK)
        status = pnb_model_set_precision(m, c->precision, err);
    if (status == PNB_OK && (golden_wants(c, "image") || golden_wants(c, "text")))
        status = point_towers(c, m, err);
    else if (status == PNB_OK)
        status = golden_find(c, "masked_ids") != NULL || golden_wants(c, "loss.total")
                     ? run_train_step(c, m, err)
                     : towers(c, m, err);
    pnb_model_free(m);
    return status;
}
