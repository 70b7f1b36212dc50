/* Split-conformal lists: prefixes of a ranking that hold a true match at a chosen error rate.
 *
 * A query's list is the smallest prefix with its best true match in it exactly when the cut-off
 * reaches that match's coordinate: its score (from above), its distance below the first hit, or its
 * rank. With coordinates V_1..V_n of calibration queries exchangeable with a new one, the cut-off
 * at the ceil((n+1)(1-alpha))-th smallest misses with probability at most alpha (Vovk et al. 2005;
 * Angelopoulos and Bates 2021). Scores run the other way: the floor(alpha (n+1))-th smallest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"
#include "eval/sorted.h"
#include "penumbra/calibrate.h"

PNB_DEFINE_NAME(pnb_conformal_name, pnb_conformal_kind, PNB_NAMES(PNB_CONFORMAL_LIST), "unknown")
PNB_DEFINE_PARSE(pnb_conformal_parse, pnb_conformal_kind, "kind of conformal list",
                 PNB_NAMES(PNB_CONFORMAL_LIST))

pnb_status pnb_conformal_create(pnb_conformal *out, const double *score, const double *margin,
                                const double *rank, size_t n, pnb_error *err)
{
    const double *const from[PNB_N_CONFORMALS] = {score, margin, rank};
    pnb_conformal c = {.n = n};
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no queries; conformal lists need some with a true match");
    for (size_t i = 0; i < n; i++)
        if (!isfinite(score[i]) || !(margin[i] >= 0.0) || !isfinite(margin[i]) ||
            !(rank[i] >= 1.0) || !isfinite(rank[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "query %zu has score %g, margin %g, rank %g; finite values, a margin "
                             "from 0 and a rank from 1 are needed",
                             i, score[i], margin[i], rank[i]);
    for (int k = 0; k < PNB_N_CONFORMALS; k++) {
        c.value[k] = pnb__alloc_array(n, sizeof(double));
        if (c.value[k] == NULL) {
            pnb_conformal_reset(&c);
            return pnb__fail_nomem(err, n * sizeof(double));
        }
        memcpy(c.value[k], from[k], n * sizeof(double));
        qsort(c.value[k], n, sizeof(double), pnb__compare_doubles);
    }
    *out = c;
    return PNB_OK;
}

void pnb_conformal_reset(pnb_conformal *c)
{
    if (c == NULL)
        return;
    for (int k = 0; k < PNB_N_CONFORMALS; k++)
        pnb__free(c->value[k]);
    *c = (pnb_conformal){0};
}

pnb_status pnb_conformal_cutoff(const pnb_conformal *c, pnb_conformal_kind kind, double alpha,
                                double *out, pnb_error *err)
{
    if (!(alpha > 0.0 && alpha < 1.0) || c->n == 0 || (unsigned)kind >= PNB_N_CONFORMALS)
        return pnb__fail(
            err, PNB_ARG,
            "error rate %g with %zu calibration queries; between 0 and 1 and at least 1 "
            "are needed",
            alpha, c->n);
    /* How many of the n + 1 may be missed. Rounding of the product downwards only lengthens lists.
     */
    size_t n_missed = (size_t)floor(alpha * ((double)c->n + 1.0));
    const double *value = c->value[kind];
    if (n_missed == 0)
        *out = kind == PNB_CONFORMAL_SCORE ? -INFINITY : INFINITY;
    else
        *out = kind == PNB_CONFORMAL_SCORE ? value[n_missed - 1] : value[c->n - n_missed];
    return PNB_OK;
}

size_t pnb_conformal_list(pnb_conformal_kind kind, double cutoff, const double *score, size_t n)
{
    if (kind == PNB_CONFORMAL_RANK) /* fmax: NaN lists nothing, as for the other two */
        return cutoff >= (double)n ? n : (size_t)fmax(cutoff, 0.0);
    size_t listed = 0;
    if (kind == PNB_CONFORMAL_SCORE)
        while (listed < n && score[listed] >= cutoff)
            listed++;
    else
        while (listed < n && score[0] - score[listed] <= cutoff)
            listed++;
    return listed;
}
