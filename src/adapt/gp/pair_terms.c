/* Likelihood and alignment by element; svgp.c builds the same of ops. With p = N(m, v) of one side,
 * q = N(k, w) of the other, e = m - k, an output's share of a pair is
 *   kl   1/4 [(v + e^2)/w + (w + e^2)/v - 2]: the logarithms of both ways cancel
 *   js   1/4 [2 log c - log v - log w + e^2/(2c)],  c = (v + w)/2
 *   w2   e^2 + (sqrt v - sqrt w)^2 */
#include "adapt/gp/pair_terms.h"

#include <math.h>
#include <string.h>

#define LOG_2PI 1.83787706640934548356

/* E -log N(y | f, noise) times `weight`, and slopes. */
static double fit_side(pnb__pair_side *s, size_t n, double weight)
{
    double total = 0;
    memset(s->dvar, 0, s->n_factors * n * sizeof *s->dvar);
    memset(s->dnoise, 0, s->n_noises * sizeof *s->dnoise);
    for (size_t d = 0; d < s->n_outputs; d++) {
        size_t of = s->n_noises == 1 ? 0 : d;
        double inverse = 1 / s->noise[of], level = LOG_2PI + log(s->noise[of]);
        for (size_t i = 0; i < n; i++) {
            size_t at = d * n + i, var = s->n_factors == 1 ? i : at;
            double r = s->y[at] - s->mean[at], spread = (r * r + s->var[var]) * inverse;
            total += 0.5 * (level + spread);
            s->dmean[at] = -weight * r * inverse;
            s->dvar[var] += 0.5 * weight * inverse;
            s->dnoise[of] += 0.5 * weight * inverse * (1 - spread);
        }
    }
    return weight * total;
}

/* One output of one pair: its value, and slopes by e, v and w. */
typedef struct apart {
    double value, by_e, by_v, by_w;
} apart;

static apart apart_of(pnb__align kind, double e, double v, double w)
{
    double e2 = e * e;
    if (kind == PNB__ALIGN_JS) {
        double c = 0.5 * (v + w), bend = e2 / (4 * c * c);
        return (apart){0.25 * (2 * log(c) - log(v * w) + 0.5 * e2 / c), 0.25 * e / c,
                       0.25 * (1 / c - 1 / v - bend), 0.25 * (1 / c - 1 / w - bend)};
    }
    if (kind == PNB__ALIGN_W2) {
        double a = sqrt(v), b = sqrt(w);
        return (apart){e2 + (a - b) * (a - b), 2 * e, (a - b) / a, (b - a) / b};
    }
    return (apart){0.25 * ((v + e2) / w + (w + e2) / v - 2), 0.5 * e * (1 / v + 1 / w),
                   0.25 * (1 / w - (w + e2) / (v * v)), 0.25 * (1 / v - (v + e2) / (w * w))};
}

static double align(pnb__pair_side sides[2], size_t n, pnb__align kind, double weight)
{
    pnb__pair_side *p = &sides[0], *q = &sides[1];
    double total = 0;
    for (size_t at = 0; at < p->n_outputs * n; at++) {
        size_t i = p->n_factors == 1 ? at % n : at, j = q->n_factors == 1 ? at % n : at;
        apart a = apart_of(kind, p->mean[at] - q->mean[at], p->var[i], q->var[j]);
        total += a.value;
        p->dmean[at] += weight * a.by_e;
        q->dmean[at] -= weight * a.by_e;
        p->dvar[i] += weight * a.by_v;
        q->dvar[j] += weight * a.by_w;
    }
    return weight * total;
}

pnb__pair_loss_terms pnb__pair_terms(pnb__pair_side sides[2], size_t n,
                                     const pnb__grove_loss_opts *opts)
{
    pnb__pair_loss_terms out = {0};
    for (int s = 0; s < 2; s++)
        out.fit += fit_side(&sides[s], n, opts->elbo_weight / (double)n);
    if (opts->align_weight != 0)
        out.align = align(sides, n, opts->align, opts->align_weight / (double)n);
    return out;
}
