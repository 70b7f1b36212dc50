/* Platt scaling: the sigmoid s(a score + b) of largest weighted likelihood, by Newton's method.
 *
 *   minimise f(a,b) = sum_i w_i [softplus(z_i) - t_i z_i],  z_i = a score_i + b
 *
 * f is convex; scores are standardised so that the 2x2 Hessian is well conditioned. A step that
 * moves every z by at most 1 is taken whole: there the Hessian changes by at most a factor e (its
 * terms are p(1-p)) and Newton converges; longer steps are halved until f falls. a > 0 holds
 * exactly when label 1 scores higher on average, because that is the sign of df/da at a = 0: it is
 * checked before. Targets: Platt 1999 with weights for counts; the method: Lin, Lin and Weng 2007.
 */
#include <math.h>

#include "eval/calibration/scored.h"

enum { MAX_STEPS = 200 };

static pnb_status check_row(const pnb_scored *data, size_t i, pnb_error *err)
{
    double w = pnb__scored_weight(data, i);
    if (!isfinite(data->score[i]))
        return pnb__fail(err, PNB_NUMERIC, "score %zu is %g, a finite value is needed", i,
                         data->score[i]);
    if (!(w > 0.0) || !isfinite(w))
        return pnb__fail(err, PNB_NUMERIC, "weight %zu is %g; weights are finite and above 0", i,
                         w);
    if (data->label[i] != 0 && data->label[i] != 1)
        return pnb__fail(err, PNB_ARG, "label %zu is %d; labels are 0 or 1", i, data->label[i]);
    return PNB_OK;
}

pnb_status pnb__scored_check(const pnb_scored *data, pnb__scored_sums *out, pnb_error *err)
{
    pnb__scored_sums s = {.low = {INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY}};
    if (data->n == 0)
        return pnb__fail(err, PNB_ARG, "no scored cases; a fit needs some of both labels");
    for (size_t i = 0; i < data->n; i++) {
        pnb_status status = check_row(data, i, err);
        if (status != PNB_OK)
            return status;
        int c = data->label[i];
        double w = pnb__scored_weight(data, i);
        s.weight[c] += w;
        s.mean_score[c] += (data->score[i] - s.mean_score[c]) * (w / s.weight[c]);
        s.low[c] = fmin(s.low[c], data->score[i]);
        s.high[c] = fmax(s.high[c], data->score[i]);
    }
    if (s.weight[0] == 0.0 || s.weight[1] == 0.0)
        return pnb__fail(err, PNB_ARG, "all %zu labels are %d; a fit needs cases of both labels",
                         data->n, data->label[0]);
    if (s.low[0] == s.high[0] && s.low[1] == s.high[1] && s.low[0] == s.low[1])
        return pnb__fail(err, PNB_ARG, "all %zu scores are %g; equal scores tell nothing apart",
                         data->n, s.low[0]);
    *out = s;
    return PNB_OK;
}

void pnb__platt_targets(const pnb__scored_sums *sums, bool smooth, double target[2])
{
    target[0] = smooth ? 1.0 / (sums->weight[0] + 2.0) : 0.0;
    target[1] = smooth ? (sums->weight[1] + 1.0) / (sums->weight[1] + 2.0) : 1.0;
}

/* ---- Newton ---- */

typedef struct problem {
    const pnb_scored *data;
    double target[2];
    double centre, scale; /* x = (score - centre) / scale */
    double x_max;         /* of |x| */
} problem;

typedef struct point {
    double slope, offset; /* z = slope x + offset */
} point;

typedef struct local {
    double f, g[2], h[3]; /* h: slope slope, slope offset, offset offset */
} local;

static local evaluate(const problem *p, point at)
{
    local l = {0};
    for (size_t i = 0; i < p->data->n; i++) {
        double x = (p->data->score[i] - p->centre) / p->scale, z = at.slope * x + at.offset;
        double w = pnb__scored_weight(p->data, i), t = p->target[p->data->label[i]];
        double s = pnb_sigmoid(z), curve = w * s * pnb_sigmoid(-z);
        /* s - t without the cancellation of 1 - s for labels 1 */
        double residual = w * (p->data->label[i] == 1 ? (1.0 - t) - pnb_sigmoid(-z) : s - t);
        l.f += w * (pnb_softplus(z) - t * z);
        l.g[0] += residual * x;
        l.g[1] += residual;
        l.h[0] += curve * x * x;
        l.h[1] += curve * x;
        l.h[2] += curve;
    }
    return l;
}

/* -H^-1 g, with a trace of damping for where all p are 0 or 1 to rounding. */
static point newton_step(const local *l)
{
    double damping = 1e-14 * (l->h[0] + l->h[2]) + 1e-300;
    double h0 = l->h[0] + damping, h2 = l->h[2] + damping, det = h0 * h2 - l->h[1] * l->h[1];
    return (point){-(h2 * l->g[0] - l->h[1] * l->g[1]) / det,
                   -(h0 * l->g[1] - l->h[1] * l->g[0]) / det};
}

/* How far a step moves z at most. */
static double reach(const problem *p, point d)
{
    return fabs(d.slope) * p->x_max + fabs(d.offset);
}

/* The share of a long step that makes f fall; 0 when none does. */
static double share_of_step(const problem *p, point at, point d, const local *here)
{
    double descent = here->g[0] * d.slope + here->g[1] * d.offset;
    double share = 1.0;
    while (share > 1e-12) {
        point there = {at.slope + share * d.slope, at.offset + share * d.offset};
        if (evaluate(p, there).f <= here->f + 1e-4 * share * descent)
            return share;
        share /= 2.0;
    }
    return 0.0;
}

static pnb_status minimise(const problem *p, point *at, pnb_error *err)
{
    double last = INFINITY;
    for (int step = 0; step < MAX_STEPS; step++) {
        local here = evaluate(p, *at);
        point d = newton_step(&here);
        double length = reach(p, d), size = 1.0 + reach(p, *at);
        if (!isfinite(length))
            break;
        double share = length > 1.0 ? share_of_step(p, *at, d, &here) : 1.0;
        if (share == 0.0)
            break;
        at->slope += share * d.slope;
        at->offset += share * d.offset;
        /* below 1e-8 the next step is at rounding; stop when it no longer shrinks */
        if (length <= 1e-13 * size || (length <= 1e-8 * size && length >= last))
            return PNB_OK;
        last = length;
    }
    return pnb__fail(err, PNB_NUMERIC,
                     "the fit of a and b does not settle; are scores or weights of very different "
                     "sizes?");
}

/* Weighted mean and deviation; the middle of the classes when one of them outweighs the other. */
static pnb_status standardise(problem *p, const pnb__scored_sums *s, pnb_error *err)
{
    p->centre = s->mean_score[0] + 0.5 * (s->mean_score[1] - s->mean_score[0]);
    double square[2] = {0}, low = fmin(s->low[0], s->low[1]), high = fmax(s->high[0], s->high[1]);
    for (size_t i = 0; i < p->data->n; i++) {
        double d = p->data->score[i] - p->centre;
        int c = p->data->label[i];
        square[c] += d * d * (pnb__scored_weight(p->data, i) / s->weight[c]);
    }
    p->scale = sqrt(0.5 * (square[0] + square[1]));
    p->x_max = fmax(fabs(low - p->centre), fabs(high - p->centre)) / p->scale;
    if (!isfinite(p->scale) || !(p->scale > 0.0) || !isfinite(p->x_max))
        return pnb__fail(err, PNB_NUMERIC,
                         "scores from %g to %g span more or less than a double "
                         "can square",
                         low, high);
    return PNB_OK;
}

pnb_status pnb_platt_fit(const pnb_scored *data, bool smooth, pnb_platt *out, pnb_error *err)
{
    pnb__scored_sums sums;
    problem p = {.data = data};
    pnb_status status;
    PNB_TRY(pnb__scored_check(data, &sums, err));
    if (!(sums.mean_score[1] > sums.mean_score[0])) {
        status = pnb__fail(err, PNB_ARG,
                           "label 1 does not score higher (mean %g) than label 0 (mean %g): no "
                           "sigmoid that rises with the score fits",
                           sums.mean_score[1], sums.mean_score[0]);
        goto done;
    }
    bool is_smoothed = smooth || sums.high[0] <= sums.low[1];
    pnb__platt_targets(&sums, is_smoothed, p.target);
    PNB_TRY(standardise(&p, &sums, err));
    double mass = p.target[1] * sums.weight[1] + p.target[0] * sums.weight[0];
    double rest = (1.0 - p.target[1]) * sums.weight[1] + (1.0 - p.target[0]) * sums.weight[0];
    point at = {0.0, log(mass / rest)};
    PNB_TRY(minimise(&p, &at, err));
    double a = at.slope / p.scale, b = at.offset - at.slope * (p.centre / p.scale);
    if (!(a > 0.0) || !isfinite(a) || !isfinite(b)) {
        status =
            pnb__fail(err, PNB_NUMERIC, "the fit gives a = %g, b = %g; a must be above 0", a, b);
        goto done;
    }
    *out = (pnb_platt){a, b, is_smoothed};
done:
    return status;
}

double pnb_platt_apply(const pnb_platt *fit, double score)
{
    return pnb_match_probability(score, fit->a, fit->b);
}

pnb_status pnb_platt_fit_classes(const double *scores, const int *label, size_t n, size_t n_classes,
                                 pnb_platt *out, pnb_error *err)
{
    size_t n_cases;
    if (n == 0 || n_classes < 2 || pnb__mul_overflows(n, n_classes, &n_cases))
        return pnb__fail(err, PNB_ARG, "%zu rows of %zu classes; at least 1 and 2 are needed", n,
                         n_classes);
    int *is_class = pnb__alloc_zero(n_cases, sizeof *is_class);
    if (is_class == NULL)
        return pnb__fail_nomem(err, n_cases * sizeof *is_class);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        if (label[i] < 0 || (size_t)label[i] >= n_classes)
            status = pnb__fail(err, PNB_ARG, "label %zu is %d; there are %zu classes, from 0", i,
                               label[i], n_classes);
        else
            is_class[i * n_classes + (size_t)label[i]] = 1;
    }
    if (status == PNB_OK)
        status = pnb_platt_fit(&(pnb_scored){n_cases, scores, is_class, NULL}, false, out, err);
    pnb__free(is_class);
    return status;
}
