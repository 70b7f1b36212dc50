/* Is the general more uncertain than the specific? Means by level, shares of pairs in the expected
 * order, shares of inclusion tests passed. Every share needs the same figure of an untrained head
 * beside it: order of levels alone can come from the means of the captions. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/order.h"
#include "penumbra/hierarchy.h"
#include "penumbra/statistics.h"

pnb_status pnb_mean_by_group(const double *values, const int *group, size_t n, size_t n_groups,
                             double *mean, size_t *count, pnb_error *err)
{
    for (size_t g = 0; g < n_groups; g++) {
        mean[g] = 0.0;
        count[g] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (group[i] < 0 || isnan(values[i]))
            continue;
        if ((size_t)group[i] >= n_groups)
            return pnb__fail(err, PNB_ARG, "row %zu is of group %d; there are %zu groups", i,
                             group[i], n_groups);
        mean[group[i]] += values[i];
        count[group[i]]++;
    }
    for (size_t g = 0; g < n_groups; g++)
        mean[g] = count[g] > 0 ? mean[g] / (double)count[g] : (double)NAN;
    return PNB_OK;
}

pnb_status pnb_share_group_above(const double *u, const int *group, size_t n, int a, int b,
                                 double *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n_kept = 0, n_a = 0;
    double *kept = NULL;
    int *label = NULL;
    PNB_TRY(PNB_ALLOC(kept, PNB_MAX(n, 1), err));
    PNB_TRY(PNB_ALLOC(label, PNB_MAX(n, 1), err));
    for (size_t i = 0; i < n; i++) {
        if (group[i] != a && group[i] != b)
            continue;
        n_a += group[i] == a;
        kept[n_kept] = u[i];
        label[n_kept++] = group[i] == a;
    }
    if (a == b || n_a == 0 || n_a == n_kept)
        PNB_TRY(
            pnb__fail(err, PNB_ARG,
                      "group %d has %zu rows, group %d has %zu; two groups with rows are needed", a,
                      n_a, b, n_kept - n_a));
    /* P(u_a > u_b) + P(=)/2 over all pairs is the area under the ROC curve of u for "in a". */
    status = pnb_auroc(kept, label, n_kept, out, err);
done:
    pnb__free(kept);
    pnb__free(label);
    return status;
}

pnb_status pnb_share_above(const double *x, const double *y, size_t n, double *out, pnb_error *err)
{
    size_t above = 0;
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no rows to compare; at least one is needed");
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i]))
            return pnb__fail(err, PNB_NUMERIC, "row %zu is (%g, %g), finite values are needed", i,
                             x[i], y[i]);
        above += x[i] > y[i];
    }
    *out = (double)above / (double)n;
    return PNB_OK;
}

pnb_status pnb_share_included(const pnb_gaussians *a, const pnb_gaussians *b, bool published,
                              const pnb_measure_opts *opts, double *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb_measure measure = published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    size_t included = 0;
    double *h = NULL;
    PNB_TRY(PNB_ALLOC(h, PNB_MAX(a->n, 1), err));
    if (a->n == 0)
        PNB_TRY(pnb__fail(err, PNB_ARG, "no rows to compare; at least one is needed"));
    PNB_TRY(pnb_measure_rows(measure, a, b, opts, h, err));
    for (size_t i = 0; i < a->n; i++)
        included += h[i] > 0.0;
    *out = (double)included / (double)a->n;
done:
    pnb__free(h);
    return status;
}

/* ---- order of levels within one owner ---- */

static void judge_owner(const double *sum, const size_t *count, size_t n_levels,
                        pnb_level_order *out)
{
    size_t last = n_levels - 1;
    bool complete = true, in_order = true;
    for (size_t l = 0; l < n_levels; l++)
        complete = complete && count[l] > 0;
    for (size_t l = 0; complete && l < last; l++)
        in_order = in_order && sum[l] / (double)count[l] > sum[l + 1] / (double)count[l + 1];
    out->n_complete += complete;
    out->share_in_order += complete && in_order;
    if (count[0] == 0 || count[last] == 0)
        return;
    out->n_first_last++;
    out->share_first_above_last += sum[0] / (double)count[0] > sum[last] / (double)count[last];
}

static pnb_status check_levels(const double *u, const int *level, size_t n, int n_levels,
                               pnb_error *err)
{
    if (n_levels < 2)
        return pnb__fail(err, PNB_ARG, "%d levels; an order needs at least 2", n_levels);
    for (size_t i = 0; i < n; i++) {
        if (level[i] >= n_levels)
            return pnb__fail(err, PNB_ARG, "row %zu is of level %d; there are %d levels", i,
                             level[i], n_levels);
        if (!isfinite(u[i]))
            return pnb__fail(err, PNB_NUMERIC, "row %zu: uncertainty is %g", i, u[i]);
    }
    return PNB_OK;
}

pnb_status pnb_level_order_compute(const double *u, const int *level, const int64_t *owner,
                                   size_t n, int n_levels, pnb_level_order *out, pnb_error *err)
{
    pnb_level_order result = {0};
    pnb_status status = check_levels(u, level, n, n_levels, err);
    if (status != PNB_OK)
        return status;
    size_t levels = (size_t)n_levels;
    pnb__labelled *rows = NULL;
    double *sum = NULL;
    size_t *count = NULL;
    PNB_TRY(pnb__labels_sort(&rows, owner, n, err));
    PNB_TRY(PNB_ALLOC_ZERO(sum, levels, err));
    PNB_TRY(PNB_ALLOC_ZERO(count, levels, err));
    for (size_t i = 0; i < n; i++) {
        size_t row = rows[i].place;
        if (level[row] >= 0) {
            sum[level[row]] += u[row];
            count[level[row]]++;
        }
        if (i + 1 < n && rows[i + 1].label == rows[i].label)
            continue;
        judge_owner(sum, count, levels, &result);
        for (size_t l = 0; l < levels; l++) {
            sum[l] = 0.0;
            count[l] = 0;
        }
    }
    if (result.n_first_last == 0)
        PNB_TRY(pnb__fail(err, PNB_ARG, "no owner has captions at both level 0 and level %d",
                          n_levels - 1));
    result.share_first_above_last /= (double)result.n_first_last;
    result.share_in_order /= (double)PNB_MAX(result.n_complete, 1);
    *out = result;
done:
    pnb__free(rows);
    pnb__free(sum);
    pnb__free(count);
    return status;
}
