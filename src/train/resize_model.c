/* A model directory into a model of another picture size or context, and with fresh uncertainty
 * heads where asked.
 *
 * Weights of the same shape are copied; position embeddings are interpolated. Pictures: the grid of
 * patch rows by separable bicubic (a = -0.5, antialiased where it shrinks), as open_clip does with
 * F.interpolate. Text: the first 20 rows and the extra tokens stay, the rows between are
 * interpolated linearly with align_corners=False, as LongProLIP does (64 -> 256 tokens). Reading
 * and initialising models is left to src/models. */
#include <math.h>
#include <string.h>

#include "train/resize_model.h"

enum { N_FIXED_TEXT_ROWS = 20 };

/* Cubic convolution (Keys 1981) with a = -1/2. */
static double cubic(double x)
{
    x = fabs(x);
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* The line of n numbers, `stride` apart, resampled to m numbers `out_stride` apart. */
typedef struct line {
    const float *in;
    float *out;
    size_t n, m, stride, out_stride;
} line;

static void resample_cubic(const line *l)
{
    double scale = (double)l->n / (double)l->m, width = PNB_MAX(scale, 1.0);
    for (size_t i = 0; i < l->m; i++) {
        double centre = ((double)i + 0.5) * scale, sum = 0, weights = 0;
        double low = PNB_MAX(floor(centre - 2 * width), 0.0);
        double high = PNB_MIN(ceil(centre + 2 * width), (double)l->n);
        for (size_t j = (size_t)low; j < (size_t)high; j++) {
            double w = cubic(((double)j + 0.5 - centre) / width);
            sum += w * (double)l->in[j * l->stride];
            weights += w;
        }
        l->out[i * l->out_stride] = (float)(sum / weights);
    }
}

static void resample_linear(const line *l)
{
    for (size_t i = 0; i < l->m; i++) {
        double x = ((double)i + 0.5) * (double)l->n / (double)l->m - 0.5;
        x = PNB_MAX(x, 0.0);
        size_t j = PNB_MIN((size_t)x, l->n - 1), next = PNB_MIN(j + 1, l->n - 1);
        double share = x - (double)j;
        l->out[i * l->out_stride] = (float)((1 - share) * (double)l->in[j * l->stride] +
                                            share * (double)l->in[next * l->stride]);
    }
}

pnb_status pnb__resize_grid(const float *in, const size_t from[2], float *out, const size_t to[2],
                            size_t width, pnb_error *err)
{
    float *half = pnb__alloc_array(from[0] * to[1], width * sizeof *half);
    if (half == NULL)
        return pnb__fail_nomem(err, from[0] * to[1] * width * sizeof *half);
    for (size_t row = 0; row < from[0]; row++)
        for (size_t c = 0; c < width; c++) {
            const line l = {in + row * from[1] * width + c,
                            half + row * to[1] * width + c,
                            from[1],
                            to[1],
                            width,
                            width};
            resample_cubic(&l);
        }
    for (size_t column = 0; column < to[1]; column++)
        for (size_t c = 0; c < width; c++) {
            const line l = {half + column * width + c,
                            out + column * width + c,
                            from[0],
                            to[0],
                            to[1] * width,
                            to[1] * width};
            resample_cubic(&l);
        }
    pnb__free(half);
    return PNB_OK;
}

void pnb__resize_context(const float *in, size_t from, float *out, size_t to, size_t n_extra,
                         size_t width)
{
    size_t fixed = PNB_MIN(from, to) > N_FIXED_TEXT_ROWS ? N_FIXED_TEXT_ROWS : 0;
    memcpy(out, in, fixed * width * sizeof *out);
    for (size_t c = 0; c < width; c++) {
        const line l = {in + fixed * width + c,
                        out + fixed * width + c,
                        from - fixed,
                        to - fixed,
                        width,
                        width};
        resample_linear(&l);
    }
    memcpy(out + to * width, in + from * width, n_extra * width * sizeof *out);
}

static pnb_status resize_param(const pnb__param *from, const pnb_model_info *old, pnb__param *to,
                               const pnb_model_info *now, pnb_error *err)
{
    const float *in = from->data;
    float *out = to->data;
    size_t width = to->shape[1];
    if (pnb__starts_with(to->name, "text.")) {
        pnb__resize_context(in, old->text.context_length, out, now->text.context_length,
                            to->shape[0] - now->text.context_length, width);
        return PNB_OK;
    }
    size_t extra = to->shape[0] - now->vision.n_patches;
    const pnb_tower_info *a = &old->vision, *b = &now->vision;
    memcpy(out, in, extra * width * sizeof *out);
    return pnb__resize_grid(
        in + extra * width, (size_t[]){a->image_height / a->patch, a->image_width / a->patch},
        out + extra * width, (size_t[]){b->image_height / b->patch, b->image_width / b->patch},
        width, err);
}

/* The uncertainty token and head of a tower. */
static bool is_uncertainty(const char *name)
{
    return strstr(name, "unc_embedding") != NULL || strstr(name, "unc_emb") != NULL ||
           strstr(name, "uncertainty") != NULL;
}

static bool is_positions(const char *name)
{
    return strcmp(name, "visual.positional_embedding") == 0 ||
           strcmp(name, "text.positional_embedding") == 0;
}

pnb_status pnb__model_retarget(pnb_model *from, pnb_model *to, bool keep_uncertainty,
                               pnb_error *err)
{
    pnb_status status = pnb__model_make_trainable(to, err);
    for (size_t i = 0; i < pnb__model_n_params(to) && status == PNB_OK; i++) {
        pnb__param *p = pnb__model_param(to, i);
        const pnb__param *old = pnb__model_find_param(from, p->name);
        if (!keep_uncertainty && is_uncertainty(p->name))
            continue;
        bool fits = old != NULL && old->n_dims == p->n_dims;
        bool same = fits && memcmp(old->shape, p->shape, (size_t)p->n_dims * sizeof *p->shape) == 0;
        if (same)
            memcpy(p->data, old->data, p->n * sizeof(float));
        else if (fits && is_positions(p->name))
            status = resize_param(old, pnb_model_get_info(from), p, pnb_model_get_info(to), err);
        else
            status = pnb__fail(err, PNB_SHAPE, "%s has another shape in the model to start from",
                               p->name);
    }
    return status;
}
