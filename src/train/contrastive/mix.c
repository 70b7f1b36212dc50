/* Mixed samples: mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019) of pictures in a batch, as
 * PCME++ (section 3.4) trains on them: the text stays, and a pair's label is the share of the
 * picture that belongs to the text.
 *
 *     mixup    x = l x_a + (1 - l) x_b                               l ~ Beta(alpha, alpha)
 *     CutMix   x = x_a but for a box of x_b, sides sqrt(1 - l) of the picture's, its middle
 * anywhere, cut at the borders; l is then the share of x_a that is left
 *
 * Whose picture is whose: a random order of the batch, in which the first n take of the next one,
 * so no picture is mixed with itself and each gives to one at most. Others are taken as they were
 * loaded, not as mixed. PCME++'s code takes of the mirrored place of a shuffled batch, each picture
 * by a coin of 0.25: as many on average. */
#include "train/contrastive/mix.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

#define MIX_SEED 0x94d049bb133111ebU

size_t pnb__mix_count(const pnb__mixer *m, size_t batch)
{
    size_t n = (size_t)((double)batch * m->share);
    return m->share > 0 && batch > 1 ? PNB_MAX(n, (size_t)1) : 0;
}

/* Gamma(shape) of Marsaglia and Tsang 2000; below 1 by Gamma(shape + 1) U^(1 / shape). */
static double draw_gamma(pnb__rng *rng, double shape)
{
    if (shape < 1)
        return draw_gamma(rng, shape + 1) * pow(1 - pnb__rng_uniform(rng), 1 / shape);
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = pnb__rng_normal(rng), v = 1 + c * x;
        double u = 1 - pnb__rng_uniform(rng);
        v = v * v * v;
        if (v > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}

/* Beta(alpha, alpha) as a share of two gammas; tiny alphas may leave both at 0. */
static double draw_share(pnb__rng *rng, double alpha)
{
    double a = draw_gamma(rng, alpha), b = draw_gamma(rng, alpha);
    return a + b > 0 ? a / (a + b) : (double)(pnb__rng_u32(rng) & 1);
}

/* One axis of the box: int(n cut) pixels about a middle drawn from n, cut at the borders. */
static void draw_axis(pnb__rng *rng, size_t n, double cut, size_t *first, size_t *length)
{
    int64_t sides = (int64_t)((double)n * cut), middle = (int64_t)pnb__rng_below(rng, n);
    int64_t low = PNB_MAX(middle - sides / 2, (int64_t)0);
    int64_t high = PNB_MIN(middle + sides / 2, (int64_t)n);
    *first = (size_t)low;
    *length = (size_t)(high - low);
}

/* The box of CutMix may be cut at a border: the share is counted again. size: height, width */
static void draw_one(const pnb__mixer *m, pnb__rng *rng, const size_t size[2], pnb__mixed *out)
{
    out->is_cutmix = pnb__rng_uniform(rng) < m->cutmix;
    out->own_share = draw_share(rng, m->alpha);
    if (!out->is_cutmix)
        return;
    double cut = sqrt(1 - out->own_share);
    draw_axis(rng, size[1], cut, &out->left, &out->width);
    draw_axis(rng, size[0], cut, &out->top, &out->height);
    out->own_share = 1 - (double)(out->width * out->height) / (double)(size[0] * size[1]);
}

/* Order before ways before shares, so that --mix-cutmix and --mix-alpha change nobody's partner. */
void pnb__mix_draw(const pnb__mixer *m, uint64_t draw, size_t batch, const size_t size[2],
                   pnb__mix *out)
{
    pnb__rng rng;
    pnb__rng_init(&rng, m->seed ^ MIX_SEED, draw);
    for (size_t i = 0; i < batch; i++)
        out->order[i] = (uint32_t)i;
    pnb__rng_shuffle(&rng, out->order, batch);
    out->n = pnb__mix_count(m, batch);
    for (size_t i = 0; i < out->n; i++) {
        out->each[i] = (pnb__mixed){.own = out->order[i], .other = out->order[(i + 1) % batch]};
        draw_one(m, &rng, size, &out->each[i]);
    }
}

/* x_a with the box of x_b, channel by channel. */
static void paste_box(const pnb__mixed *p, const float *from, const size_t size[2], float *to)
{
    for (size_t c = 0; c < 3; c++)
        for (size_t y = p->top; y < p->top + p->height; y++) {
            size_t at = (c * size[0] + y) * size[1] + p->left;
            memcpy(to + at, from + at, p->width * sizeof *to);
        }
}

/* mixup: x = l x_a + (1 - l) x_b on normalised pixels, where a mean of colours is a mean of
 * numbers. */
static void weigh(const pnb__mixed *p, const float *from, size_t n, float *to)
{
    float own_share = (float)p->own_share, other_share = (float)(1 - p->own_share);
    for (size_t k = 0; k < n; k++)
        to[k] = own_share * to[k] + other_share * from[k];
}

void pnb__mix_apply(const pnb__mix *m, const float *pixels, size_t batch, const size_t size[2],
                    float *out)
{
    size_t n = 3 * size[0] * size[1];
    memcpy(out, pixels, batch * n * sizeof *out);
    for (size_t i = 0; i < m->n; i++) {
        const pnb__mixed *p = &m->each[i];
        if (p->is_cutmix)
            paste_box(p, pixels + p->other * n, size, out + p->own * n);
        else
            weigh(p, pixels + p->other * n, n, out + p->own * n);
    }
}

/* Row a: l at a, 1 - l at b; column b has it too, whose other mark no other picture takes: each of
 * the first takes of the next. */
void pnb__mix_label(const pnb__mix *m, size_t first, const size_t *row_of, pnb__mix_marks *out)
{
    for (size_t i = 0; i < m->n; i++) {
        const pnb__mixed *p = &m->each[i];
        size_t row = row_of != NULL ? row_of[first + p->own] : first + p->own;
        size_t column = row_of != NULL ? row_of[first + p->other] : first + p->other;
        out->weights[0][2 * row] = out->weights[1][2 * row] = (float)p->own_share;
        out->columns[0][2 * row + 1] = (int32_t)column;
        out->columns[1][2 * column + 1] = (int32_t)row;
        out->weights[0][2 * row + 1] = out->weights[1][2 * column + 1] = (float)(1 - p->own_share);
    }
}

void pnb__mix_label_own(size_t n, pnb__mix_marks *out)
{
    for (size_t i = 0; i < 2 * n; i++)
        for (int way = 0; way < 2; way++) {
            out->columns[way][i] = (int32_t)(i / 2);
            out->weights[way][i] = i % 2 == 0 ? 1 : 0;
        }
}

void pnb__mix_smooth(double e, size_t n, pnb__mix_marks *out)
{
    for (size_t i = 0; i < 2 * n && e > 0; i++)
        for (int way = 0; way < 2; way++)
            out->weights[way][i] = (float)((1 - 2 * e) * out->weights[way][i]);
}
