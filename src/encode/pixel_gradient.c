/* The image tower in a graph whose only gradient is that of its pixels.
 *
 * Forward is encoding's own (pnb__model_build), then logits and cross-entropy; backward runs to the
 * input and leaves every weight without a gradient (pnb__graph_freeze), so that it costs about two
 * passes. Pixels come as p in [0,1]; the tower sees x = (p - mean)/std, so dp = dx/std. A batch is
 * filled up with copies of its first picture, whose gradients nobody reads: rows do not meet. */
#include "encode/pixel_gradient.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "models/model.h"

struct pnb__pixel_gradient {
    const pnb_encoder *encoder;
    pnb__graph *graph;
    pnb__tensor *pixels, *labels, *mean, *bias, *loss; /* mean (K,D), bias (K), loss (B) */
    size_t n_batch, n_pixels;                          /* B, 3HW */
    float *x;                                          /* [B][3HW] as the tower sees them */
    double *dx;                                        /* [B][3HW] */
    int32_t *padded;                                   /* [B] labels */
    double *losses;                                    /* [B] */
};

static pnb_status check(const pnb_encoder *e, const pnb__pixel_classes *classes, pnb_error *err)
{
    const pnb_model_info *info = e->info;
    pnb_status status = pnb__encoder_need_plain(e, "the gradient of pixels", err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < pnb__model_n_params(e->model); i++)
        if (pnb__model_param(e->model, i)->store != PNB__STORE_REAL)
            return pnb__fail(err, PNB_UNSUPPORTED,
                             "%s has weights in %s, and gradients need them as they were trained: "
                             "name the folder it was made from",
                             e->dir, info->weights_stored);
    bool is_flat = info->vision.family == PNB_POINT || info->vision.family == PNB_GAUSSIAN_DIAG;
    if (!is_flat || info->n_embeddings > 1 || classes->rows->kappa != NULL)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "pixels have a gradient where a picture is one point or one Gaussian; %s "
                         "gives %zu %s",
                         e->name, PNB_MAX(info->n_embeddings, (size_t)1),
                         pnb_family_name(info->vision.family));
    if (classes->rows->dim != info->embed_dim)
        return pnb__fail(err, PNB_SHAPE, "classes have width %zu, pictures %zu", classes->rows->dim,
                         info->embed_dim);
    return PNB_OK;
}

/* -tr(var_k)/2 of each class, in f64; 0 of points. */
static pnb_status write_classes(pnb__pixel_gradient *p, const pnb__pixel_classes *c, pnb_error *err)
{
    const pnb_gaussians *rows = c->rows;
    double *bias = NULL;
    pnb_status status = PNB_ALLOC_ZERO(bias, rows->n, err);
    if (status != PNB_OK)
        return status;
    for (size_t k = 0; rows->log_var != NULL && !c->means_alone && k < rows->n; k++)
        for (size_t d = 0; d < rows->dim; d++)
            bias[k] -= 0.5 * exp((double)rows->log_var[k * rows->dim + d]);
    pnb__write_f32(p->mean, rows->mean);
    pnb__write_f64(p->bias, bias);
    pnb__free(bias);
    return PNB_OK;
}

static pnb_status build(pnb__pixel_gradient *p, const pnb__pixel_classes *c, pnb_error *err)
{
    pnb_model *m = p->encoder->model;
    size_t n_classes = c->rows->n, n_batch = p->n_batch;
    const pnb_tower_info *v = &p->encoder->info->vision;
    pnb_status status =
        pnb__graph_create(&p->graph, pnb__model_ctx(m), pnb__model_real(m), true, err);
    if (status != PNB_OK)
        return status;
    pnb__graph_freeze(p->graph);
    p->pixels =
        pnb__input_with_grad(p->graph, 4, (size_t[]){n_batch, 3, v->image_height, v->image_width});
    p->mean = pnb__input(p->graph, PNB__REAL, 2, (size_t[]){n_classes, c->rows->dim});
    p->bias = pnb__input(p->graph, PNB__REAL, 1, &n_classes);
    p->labels = pnb__input(p->graph, PNB__INT32, 1, &n_batch);
    pnb__dist dist =
        pnb__model_build(m, PNB__IMAGE_SIDE, p->graph, &(pnb__tower_in){.pixels = p->pixels}, true);
    pnb__tensor *scores = pnb__add(pnb__matmul(dist.mean, false, p->mean, true), p->bias);
    p->loss = pnb__cross_entropy(pnb__affine(scores, c->scale, 0.0), p->labels);
    pnb__keep(p->loss);
    status = pnb__graph_plan(p->graph, pnb__sum(p->loss, PNB__ALL_AXES), err);
    return status == PNB_OK ? write_classes(p, c, err) : status;
}

pnb_status pnb__pixel_gradient_open(pnb__pixel_gradient **out, const pnb_encoder *encoder,
                                    const pnb__pixel_classes *classes, size_t n_batch,
                                    pnb_error *err)
{
    const pnb_tower_info *v = &encoder->info->vision;
    pnb_status status = check(encoder, classes, err);
    if (status != PNB_OK)
        return status;
    pnb__pixel_gradient *p = pnb__alloc_zero(1, sizeof *p);
    if (p == NULL)
        return pnb__fail_nomem(err, sizeof *p);
    p->encoder = encoder;
    p->n_batch = n_batch;
    p->n_pixels = 3 * v->image_height * v->image_width;
    PNB_TRY(PNB_ALLOC_ROWS(p->x, n_batch, p->n_pixels, err));
    PNB_TRY(PNB_ALLOC_ROWS(p->dx, n_batch, p->n_pixels, err));
    PNB_TRY(PNB_ALLOC(p->padded, n_batch, err));
    PNB_TRY(PNB_ALLOC(p->losses, n_batch, err));
    status = build(p, classes, err);
done:
    if (status == PNB_OK)
        *out = p;
    else
        pnb__pixel_gradient_free(p);
    return status;
}

void pnb__pixel_gradient_free(pnb__pixel_gradient *p)
{
    if (p == NULL)
        return;
    pnb__graph_free(p->graph);
    pnb__free(p->x);
    pnb__free(p->dx);
    pnb__free(p->padded);
    pnb__free(p->losses);
    pnb__free(p);
}

/* ---- a batch ---- */

static void write_batch(const pnb__pixel_gradient *p, const float *pixels, const int32_t *label,
                        size_t n)
{
    const pnb_preprocess *pp = &p->encoder->preprocess;
    size_t plane = p->n_pixels / 3;
    for (size_t i = 0; i < p->n_batch; i++) {
        const float *from = pixels + (i < n ? i : 0) * p->n_pixels;
        float *to = p->x + i * p->n_pixels;
        for (size_t c = 0; c < 3; c++)
            for (size_t k = c * plane; k < (c + 1) * plane; k++)
                to[k] = (from[k] - pp->mean[c]) / pp->std[c];
        p->padded[i] = label[i < n ? i : 0];
    }
    pnb__write_f32(p->pixels, p->x);
    pnb__write_i32(p->labels, p->padded);
}

/* dp = dx / std, channel by channel */
static void read_batch(const pnb__pixel_gradient *p, size_t n, float *gradient)
{
    const pnb_preprocess *pp = &p->encoder->preprocess;
    size_t plane = p->n_pixels / 3;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < p->n_pixels; k++)
            gradient[i * p->n_pixels + k] =
                (float)(p->dx[i * p->n_pixels + k] / (double)pp->std[k / plane]);
}

pnb_status pnb__pixel_gradient_run(pnb__pixel_gradient *p, const float *pixels,
                                   const int32_t *label, size_t n, double *loss, float *gradient,
                                   pnb_error *err)
{
    if (n == 0 || n > p->n_batch)
        return pnb__fail(err, PNB_ARG, "%zu pictures in a batch that was planned for %zu", n,
                         p->n_batch);
    write_batch(p, pixels, label, n);
    pnb_status status = pnb__graph_run(p->graph, err);
    if (status != PNB_OK)
        return status;
    pnb__read_f64(p->loss, p->losses);
    pnb__read_grad_f64(p->pixels, p->dx);
    status = pnb__graph_check(p->graph, err);
    if (status != PNB_OK)
        return status;
    read_batch(p, n, gradient);
    if (loss != NULL)
        memcpy(loss, p->losses, n * sizeof *loss);
    return PNB_OK;
}
