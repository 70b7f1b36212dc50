/* Correlations and ranking statistics, exact and with ties as SciPy and scikit-learn take them.
 *
 * - Spearman: Pearson of average ranks.
 * - Kendall tau-b: (C-D)/sqrt((n0-n1)(n0-n2)), discordant pairs counted by Knight's merge sort.
 * - AUROC: Mann-Whitney U / (n1 n0), ties 1/2.
 * - AP: sum (R_k - R_k-1) P_k over distinct thresholds.
 *
 * Input that has no answer (constant values, one class) is an error, never NaN. */
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "eval/sorted.h"
#include "penumbra/statistics.h"

pnb_status pnb__sorted(pnb__valued **out, const double *values, size_t n, const char *what,
                       pnb_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return pnb__fail(err, PNB_NUMERIC, "%s %zu is %g, a finite value is needed", what, i,
                             values[i]);
    pnb__valued *sorted = pnb__alloc_array(PNB_MAX(n, 1), sizeof *sorted);
    if (sorted == NULL)
        return pnb__fail_nomem(err, n * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (pnb__valued){values[i], i};
    qsort(sorted, n, sizeof *sorted, pnb__by_value);
    *out = sorted;
    return PNB_OK;
}

/* End of the run of equal values that begins at i. */
static size_t run_end(const pnb__valued *sorted, size_t n, size_t i)
{
    size_t end = i + 1;
    while (end < n && sorted[end].value == sorted[i].value)
        end++;
    return end;
}

pnb_status pnb_average_ranks(const double *x, size_t n, double *rank, pnb_error *err)
{
    pnb__valued *sorted;
    pnb_status status = pnb__sorted(&sorted, x, n, "value", err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n;) {
        size_t end = run_end(sorted, n, i);
        for (size_t j = i; j < end; j++)
            rank[sorted[j].place] = 0.5 * (double)(i + 1 + end);
        i = end;
    }
    pnb__free(sorted);
    return PNB_OK;
}

/* A power of two that brings the largest value to [1/2, 1): squares neither overflow nor vanish,
 * and no digit changes. */
static double scale_of(const double *x, size_t n)
{
    double most = 0.0;
    int exponent;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    (void)frexp(most, &exponent);
    return ldexp(1.0, PNB_MIN(-exponent, 1022));
}

pnb_status pnb_pearson(const double *x, const double *y, size_t n, double *out, pnb_error *err)
{
    double mean_x = 0.0, mean_y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
    if (n < 2)
        return pnb__fail(err, PNB_ARG, "%zu pairs of values; a correlation needs at least 2", n);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i]))
            return pnb__fail(err, PNB_NUMERIC, "pair %zu is (%g, %g), finite values are needed", i,
                             x[i], y[i]);
    }
    double scale_x = scale_of(x, n), scale_y = scale_of(y, n);
    for (size_t i = 0; i < n; i++) {
        mean_x += scale_x * x[i] / (double)n;
        mean_y += scale_y * y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double dx = scale_x * x[i] - mean_x, dy = scale_y * y[i] - mean_y;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    /* Rounding of the mean leaves a spread of some ulps in constant data. */
    double floor_x = 1e-30 * mean_x * mean_x * (double)n;
    double floor_y = 1e-30 * mean_y * mean_y * (double)n;
    if (!(xx > floor_x) || !(yy > floor_y))
        return pnb__fail(err, PNB_ARG, "all values are equal; a correlation is not defined");
    *out = xy / (sqrt(xx) * sqrt(yy));
    return PNB_OK;
}

pnb_status pnb_spearman(const double *x, const double *y, size_t n, double *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    double *ranks = NULL;
    PNB_TRY(PNB_ALLOC_ROWS(ranks, PNB_MAX(n, 1), 2, err));
    PNB_TRY(pnb_average_ranks(x, n, ranks, err));
    PNB_TRY(pnb_average_ranks(y, n, ranks + n, err));
    status = pnb_pearson(ranks, ranks + n, n, out, err);
done:
    pnb__free(ranks);
    return status;
}

/* ---- Kendall ---- */

typedef struct point {
    double x, y;
} point;

static int compare_points(const void *a, const void *b)
{
    const point *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* Merge sort by y; returns the number of exchanges a bubble sort would need (discordant pairs). */
static double count_exchanges(point *p, point *spare, size_t n)
{
    if (n < 2)
        return 0.0;
    size_t middle = n / 2, i = 0, j = middle;
    double count =
        count_exchanges(p, spare, middle) + count_exchanges(p + middle, spare, n - middle);
    for (size_t k = 0; k < n; k++) {
        if (j >= n || (i < middle && p[i].y <= p[j].y)) {
            spare[k] = p[i++];
        } else {
            count += (double)(middle - i);
            spare[k] = p[j++];
        }
    }
    for (size_t k = 0; k < n; k++)
        p[k] = spare[k];
    return count;
}

/* Pairs tied in x (sorted by x), and in both. */
static double count_ties(const point *p, size_t n, bool both)
{
    double ties = 0.0;
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && p[end].x == p[i].x && (!both || p[end].y == p[i].y))
            end++;
        ties += 0.5 * (double)(end - i) * (double)(end - i - 1);
    }
    return ties;
}

static double count_ties_y(const point *p, size_t n)
{
    double ties = 0.0;
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && p[end].y == p[i].y)
            end++;
        ties += 0.5 * (double)(end - i) * (double)(end - i - 1);
    }
    return ties;
}

pnb_status pnb_kendall_tau_b(const double *x, const double *y, size_t n, double *out,
                             pnb_error *err)
{
    if (n < 2)
        return pnb__fail(err, PNB_ARG, "%zu pairs of values; a correlation needs at least 2", n);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]))
            return pnb__fail(err, PNB_NUMERIC, "pair %zu is (%g, %g), finite values are needed", i,
                             x[i], y[i]);
    point *p = pnb__alloc_array(n, 2 * sizeof *p);
    if (p == NULL)
        return pnb__fail_nomem(err, n * 2 * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = (point){x[i], y[i]};
    qsort(p, n, sizeof *p, compare_points);
    double all = 0.5 * (double)n * (double)(n - 1);
    double ties_x = count_ties(p, n, false), ties_both = count_ties(p, n, true);
    double discordant = count_exchanges(p, p + n, n);
    double ties_y = count_ties_y(p, n);
    pnb__free(p);
    if (ties_x == all || ties_y == all)
        return pnb__fail(err, PNB_ARG, "all values are equal; a correlation is not defined");
    double difference = all - ties_x - ties_y + ties_both - 2.0 * discordant;
    *out = difference / sqrt(all - ties_x) / sqrt(all - ties_y);
    return PNB_OK;
}

pnb_status pnb_geometric_mean_rows(const double *x, size_t n, size_t dim, double *out,
                                   pnb_error *err)
{
    if (dim == 0)
        return pnb__fail(err, PNB_SHAPE, "rows of 0 values have no mean");
    for (size_t i = 0; i < n * dim; i++)
        if (!isfinite(x[i]) || !(x[i] > 0.0))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu, column %zu is %g; finite values above 0 are needed", i / dim,
                             i % dim, x[i]);
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t d = 0; d < dim; d++)
            sum += log(x[i * dim + d]);
        out[i] = exp(sum / (double)dim);
    }
    return PNB_OK;
}

/* ---- two classes ---- */

static pnb_status count_classes(const int *label, size_t n, size_t *n_positive, pnb_error *err)
{
    *n_positive = 0;
    for (size_t i = 0; i < n; i++) {
        if (label[i] != 0 && label[i] != 1)
            return pnb__fail(err, PNB_ARG, "label %zu is %d; labels are 0 or 1", i, label[i]);
        *n_positive += label[i] == 1;
    }
    if (*n_positive == 0 || *n_positive == n)
        return pnb__fail(err, PNB_ARG, "%zu of %zu labels are positive; both classes are needed",
                         *n_positive, n);
    return PNB_OK;
}

pnb_status pnb_auroc(const double *score, const int *label, size_t n, double *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n_positive;
    double *rank = NULL, sum = 0.0;
    PNB_TRY(PNB_ALLOC(rank, PNB_MAX(n, 1), err));
    PNB_TRY(count_classes(label, n, &n_positive, err));
    PNB_TRY(pnb_average_ranks(score, n, rank, err));
    for (size_t i = 0; i < n; i++)
        sum += label[i] == 1 ? rank[i] : 0.0;
    double n1 = (double)n_positive, n0 = (double)(n - n_positive);
    *out = (sum - 0.5 * n1 * (n1 + 1.0)) / (n1 * n0);
done:
    pnb__free(rank);
    return status;
}

pnb_status pnb_average_precision(const double *score, const int *label, size_t n, double *out,
                                 pnb_error *err)
{
    size_t n_positive;
    pnb__valued *sorted = NULL;
    pnb_status status = count_classes(label, n, &n_positive, err);
    if (status == PNB_OK)
        status = pnb__sorted(&sorted, score, n, "score", err);
    if (status != PNB_OK)
        return status;
    double sum = 0.0, hits = 0.0;
    for (size_t end = n; end > 0;) { /* from the highest score down, one threshold a turn */
        size_t begin = end;
        double new_hits = 0.0;
        while (begin > 0 && sorted[begin - 1].value == sorted[end - 1].value)
            new_hits += label[sorted[--begin].place];
        hits += new_hits;
        sum += new_hits / (double)n_positive * hits / (double)(n - begin);
        end = begin;
    }
    pnb__free(sorted);
    *out = sum;
    return PNB_OK;
}
