/* Selective prediction: what a model gets wrong when it answers only its most certain queries.
 *
 *   risk(i) = E_i / i, E_i = errors among the i most certain answers
 *   AURC  = (1/N) sum_i E_i / i                (Geifman and El-Yaniv 2017)
 *   AUGRC = (1/N^2) sum_i (E_{i-1} + E_i)/2 = m k (1 - AUROC)/N^2 + m^2 / (2 N^2)
 *           with m errors and k right answers  (Traub et al. 2024)
 * Answers of equal uncertainty come in random order, so inside a run of g of them with e errors the
 * mean of E grows by e/g an answer: no figure depends on the order of the rows. */
#include <math.h>

#include "eval/sorted.h"
#include "eval/weighted.h"

/* A run of answers with equal uncertainty. */
typedef struct run {
    double n, wrong;
    size_t end; /* place in the order behind the run */
} run;

static run next_run(const pnb__answers *a, const uint32_t *weight, size_t begin)
{
    run r = {.end = begin};
    double value = a->uncertainty[a->order[begin]];
    while (r.end < a->n && a->uncertainty[a->order[r.end]] == value) {
        size_t row = a->order[r.end++];
        double w = (double)pnb__weight(weight, row);
        r.n += w;
        r.wrong += w * (1.0 - a->correct[row]);
    }
    return r;
}

pnb_selective pnb__selective_weighted(const pnb__answers *a, const uint32_t *weight)
{
    pnb_selective s = {0};
    double n = 0.0, wrong = 0.0, pairs = 0.0, risk = 0.0, area = 0.0;
    for (size_t i = 0; i < a->n;) {
        run r = next_run(a, weight, i);
        i = r.end;
        if (r.n == 0.0)
            continue;
        for (size_t j = 1; j <= (size_t)r.n; j++)
            risk += (wrong + r.wrong * (double)j / r.n) / (n + (double)j);
        area += r.n * (wrong + 0.5 * r.wrong);
        pairs += r.wrong * ((n - wrong) + 0.5 * (r.n - r.wrong));
        n += r.n;
        wrong += r.wrong;
    }
    s.error = wrong / n;
    s.auroc = wrong > 0.0 && wrong < n ? pairs / (wrong * (n - wrong)) : (double)NAN;
    s.aurc = risk / n;
    s.augrc = area / (n * n);
    return s;
}

/* Pearson of average ranks. Of the two ranks of `correct` only the order matters, so it enters as
 * it is; runs of equal uncertainty have the mean of their places. Two walks: about the mean rank.
 */
double pnb__query_spearman_weighted(const pnb__answers *a, const uint32_t *weight)
{
    double n = 0.0, right = 0.0, seen = 0.0, uu = 0.0, uc = 0.0;
    for (size_t i = 0; i < a->n; i++) {
        n += (double)pnb__weight(weight, i);
        right += (double)pnb__weight(weight, i) * a->correct[i];
    }
    for (size_t i = 0; i < a->n;) {
        run r = next_run(a, weight, i);
        double rank = seen + 0.5 * (r.n + 1.0) - 0.5 * (n + 1.0);
        uu += r.n * rank * rank;
        uc += (r.n - r.wrong) * rank;
        seen += r.n;
        i = r.end;
    }
    double cc = right * (1.0 - right / n);
    return uu > 0.0 && cc > 0.0 ? uc / sqrt(uu * cc) : (double)NAN;
}

/* ---- public ---- */

static pnb_status order_answers(const double *uncertainty, const double *correct, size_t n,
                                size_t **order, pnb_error *err)
{
    pnb__valued *sorted = NULL;
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no answers; at least one is needed");
    for (size_t i = 0; i < n; i++)
        if (!(correct[i] >= 0.0 && correct[i] <= 1.0))
            return pnb__fail(err, PNB_NUMERIC, "correct %zu is %g; it must lie in [0,1]", i,
                             correct[i]);
    pnb_status status = pnb__sorted(&sorted, uncertainty, n, "uncertainty", err);
    if (status != PNB_OK)
        return status;
    *order = pnb__alloc_array(n, sizeof **order);
    for (size_t i = 0; *order != NULL && i < n; i++)
        (*order)[i] = sorted[i].place;
    pnb__free(sorted);
    return *order == NULL ? pnb__fail_nomem(err, n * sizeof **order) : PNB_OK;
}

pnb_status pnb_selective_compute(const double *uncertainty, const double *correct, size_t n,
                                 pnb_selective *out, pnb_error *err)
{
    size_t *order = NULL;
    pnb_status status = order_answers(uncertainty, correct, n, &order, err);
    if (status != PNB_OK)
        return status;
    const pnb__answers a = {order, uncertainty, correct, n};
    *out = pnb__selective_weighted(&a, NULL);
    pnb__free(order);
    return PNB_OK;
}

pnb_status pnb_risk_coverage(const double *uncertainty, const double *correct, size_t n,
                             size_t n_points, double *coverage, double *risk, pnb_error *err)
{
    size_t *order = NULL, point = 0;
    if (n_points == 0)
        return pnb__fail(err, PNB_ARG, "a curve of 0 points; at least one is needed");
    pnb_status status = order_answers(uncertainty, correct, n, &order, err);
    if (status != PNB_OK)
        return status;
    const pnb__answers a = {order, uncertainty, correct, n};
    double seen = 0.0, wrong = 0.0;
    for (size_t i = 0; i < n;) {
        run r = next_run(&a, NULL, i);
        i = r.end;
        for (; point < n_points; point++) {
            double at = ceil((double)n * (double)(point + 1) / (double)n_points);
            if (at > seen + r.n)
                break;
            coverage[point] = at / (double)n;
            risk[point] = (wrong + r.wrong * (at - seen) / r.n) / at;
        }
        seen += r.n;
        wrong += r.wrong;
    }
    pnb__free(order);
    return PNB_OK;
}
