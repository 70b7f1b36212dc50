/* Temperature scaling: softmax(logits / t) with the t of largest likelihood.
 *
 *   f(beta) = sum_i [log sum_k e^(beta z_ik) - beta sum_k q_ik z_ik],   beta = 1/t
 *   f'  = sum_i (E_p[z_i] - E_q[z_i])      f'' = sum_i Var_p(z_i) >= 0
 *
 * q is 1 at the label (or smoothed, see calibrate.h). f is convex in beta, so the root of f' is
 * bracketed and found by Newton's method that falls back to bisection. Guo et al. 2017. */
#include <math.h>

#include "base/base.h"
#include "penumbra/scaling.h"

typedef struct problem {
    const double *logits;
    const int *label;
    size_t n, n_classes;
    double smoothing; /* weight of the uniform distribution in q */
} problem;

typedef struct row_facts {
    double max, mean;
} row_facts;

static row_facts look(const double *z, size_t n)
{
    row_facts r = {z[0], 0.0};
    for (size_t k = 0; k < n; k++) {
        r.max = fmax(r.max, z[k]);
        r.mean += (z[k] - r.mean) / (double)(k + 1);
    }
    return r;
}

/* f' and f'' at beta; every z is taken relative to the largest of its row. */
static void slopes(const problem *p, double beta, double *first, double *second)
{
    *first = *second = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        const double *z = p->logits + i * p->n_classes;
        row_facts r = look(z, p->n_classes);
        double sum = 0.0, mean = 0.0, square = 0.0;
        for (size_t k = 0; k < p->n_classes; k++) {
            double d = z[k] - r.max, e = exp(beta * d);
            sum += e;
            mean += e * d;
            square += e * d * d;
        }
        mean /= sum;
        double wanted =
            (1.0 - p->smoothing) * (z[p->label[i]] - r.max) + p->smoothing * (r.mean - r.max);
        *first += mean - wanted;
        *second += fmax(square / sum - mean * mean, 0.0);
    }
}

/* Mean negative log-likelihood of the labels themselves. The largest logit alone makes sum 1. */
static double label_nll(const problem *p, double beta)
{
    double total = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        const double *z = p->logits + i * p->n_classes;
        double max = look(z, p->n_classes).max, sum = 0.0;
        for (size_t k = 0; k < p->n_classes; k++)
            sum += exp(beta * (z[k] - max));
        total += log(fmax(sum, 1.0)) - beta * (z[p->label[i]] - max);
    }
    return total / (double)p->n;
}

static pnb_status check(const problem *p, pnb_error *err)
{
    size_t n_values;
    if (p->n == 0 || p->n_classes < 2 || pnb__mul_overflows(p->n, p->n_classes, &n_values))
        return pnb__fail(err, PNB_ARG, "%zu rows of %zu logits; at least 1 and 2 are needed", p->n,
                         p->n_classes);
    for (size_t i = 0; i < n_values; i++)
        if (!isfinite(p->logits[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "logit %zu of row %zu is %g, a finite value is needed",
                             i % p->n_classes, i / p->n_classes, p->logits[i]);
    for (size_t i = 0; i < p->n; i++)
        if (p->label[i] < 0 || (size_t)p->label[i] >= p->n_classes)
            return pnb__fail(err, PNB_ARG, "label %zu is %d; there are %zu classes, from 0", i,
                             p->label[i], p->n_classes);
    return PNB_OK;
}

/* Whether a positive finite beta is best: labels above average, and not all on top. Sets the
 * smoothing in the latter case, and `spread`, the mean distance from the largest logit. */
static pnb_status settle_targets(problem *p, double *spread, pnb_error *err)
{
    double above = 0.0;
    bool all_on_top = true;
    *spread = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        const double *z = p->logits + i * p->n_classes;
        row_facts r = look(z, p->n_classes);
        above += z[p->label[i]] - r.mean;
        *spread += (r.max - r.mean) / (double)p->n;
        all_on_top = all_on_top && z[p->label[i]] == r.max;
    }
    if (!(*spread > 0.0))
        return pnb__fail(err, PNB_ARG,
                         "the logits are equal within each of the %zu rows; no "
                         "temperature changes them",
                         p->n);
    if (!(above > 0.0))
        return pnb__fail(
            err, PNB_ARG,
            "the labels do not have more than the average logit (by %g on average): no "
            "temperature above 0 fits; do labels and columns belong together?",
            above / (double)p->n);
    p->smoothing = all_on_top ? 1.0 / ((double)p->n + 1.0) : 0.0;
    return PNB_OK;
}

/* Root of f' above 0: f' < 0 at 0 by settle_targets, > 0 far out because not all labels are on top
 * of their rows. */
static pnb_status find_root(const problem *p, double start, double *beta, pnb_error *err)
{
    double first, second, low = 0.0, high = start;
    for (slopes(p, high, &first, &second); first < 0.0; slopes(p, high, &first, &second)) {
        low = high;
        high *= 2.0;
        if (!isfinite(high))
            return pnb__fail(err, PNB_NUMERIC, "no temperature in the range of a double fits");
    }
    double at = 0.5 * (low + high);
    for (int step = 0; step < 300 && high - low > 1e-15 * high; step++) {
        slopes(p, at, &first, &second);
        if (first < 0.0)
            low = at;
        else
            high = at;
        double next = at - first / second;
        bool inside = second > 0.0 && next > low && next < high;
        next = inside ? next : 0.5 * (low + high);
        if (fabs(next - at) <= 1e-15 * at)
            break;
        at = next;
    }
    *beta = at;
    return PNB_OK;
}

pnb_status pnb_temperature_fit(const double *logits, const int *label, size_t n, size_t n_classes,
                               pnb_temperature *out, pnb_error *err)
{
    problem p = {logits, label, n, n_classes, 0.0};
    double spread, beta = 1.0;
    pnb_status status;
    PNB_TRY(check(&p, err));
    PNB_TRY(settle_targets(&p, &spread, err));
    PNB_TRY(find_root(&p, 1.0 / spread, &beta, err));
    *out = (pnb_temperature){.t = 1.0 / beta,
                             .is_smoothed = p.smoothing > 0.0,
                             .n = n,
                             .n_classes = n_classes,
                             .nll_before = label_nll(&p, 1.0),
                             .nll_after = label_nll(&p, beta)};
done:
    return status;
}

pnb_status pnb_temperature_apply(double t, const double *logits, size_t n, size_t n_classes,
                                 double *p, pnb_error *err)
{
    if (!(t > 0.0) || !isfinite(t) || n_classes == 0)
        return pnb__fail(err, t > 0.0 && isfinite(t) ? PNB_ARG : PNB_NUMERIC,
                         "temperature %g for %zu classes; above 0 and at least 1 are needed", t,
                         n_classes);
    for (size_t i = 0; i < n; i++) {
        const double *z = logits + i * n_classes;
        double *out = p + i * n_classes, max = -INFINITY, sum = 0.0;
        for (size_t k = 0; k < n_classes; k++) {
            if (!isfinite(z[k]))
                return pnb__fail(err, PNB_NUMERIC, "logit %zu of row %zu is %g", k, i, z[k]);
            max = fmax(max, z[k]);
        }
        for (size_t k = 0; k < n_classes; k++)
            sum += out[k] = exp((z[k] - max) / t);
        for (size_t k = 0; k < n_classes; k++)
            out[k] /= sum;
    }
    return PNB_OK;
}
