/* Balanced accuracy and macro F1 with their intervals, accuracy by group, averages of suites.
 *
 * F1 of a class is 2 TP/(2 TP + FP + FN): defined wherever the class has a picture, 0 where none of
 * them is found. Only classes of the truth are averaged, as scikit-learn does with labels = those
 * of the truth and WILDS (iWildCam) with it: what is predicted falsely still counts, as a miss of
 * its own class. The bootstrap draws rows and counts classes and groups anew each time. */
#include "penumbra/class_scores.h"

#include <math.h>

#include "base/base.h"

/* ---- classes ---- */

typedef struct class_rows {
    const int32_t *label, *predicted;
    size_t n_classes;
    double *count;  /* [3][K] pictures, predictions, both */
    double *f1;     /* [K] of the last call; or NULL */
    bool is_recall; /* what is averaged */
} class_rows;

static double mean_of_classes(void *user, const size_t *row, size_t n)
{
    const class_rows *c = user;
    double *own = c->count, *called = own + c->n_classes, *right = called + c->n_classes;
    double sum = 0.0, n_present = 0.0;
    for (size_t k = 0; k < 3 * c->n_classes; k++)
        c->count[k] = 0.0;
    for (size_t i = 0; i < n; i++) {
        int32_t label = c->label[row[i]], predicted = c->predicted[row[i]];
        own[label]++;
        called[predicted]++;
        right[label] += label == predicted;
    }
    for (size_t k = 0; k < c->n_classes; k++) {
        double f1 = 2.0 * right[k] / (own[k] + called[k]);
        if (c->f1 != NULL)
            c->f1[k] = own[k] > 0.0 ? f1 : (double)NAN;
        if (own[k] == 0.0)
            continue;
        n_present++;
        sum += c->is_recall ? right[k] / own[k] : f1;
    }
    return sum / n_present;
}

static pnb_status check_numbers(const int32_t *number, size_t n, size_t n_classes, const char *what,
                                pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (number[i] < 0 || (size_t)number[i] >= n_classes)
            return pnb__fail(err, PNB_ARG, "row %zu has %s %d; there are %zu classes", i, what,
                             number[i], n_classes);
    return n > 0 ? PNB_OK : pnb__fail(err, PNB_ARG, "no pictures; at least one is needed");
}

/* The figure of all rows in order; with resamples, its interval. */
static pnb_status settle(pnb_statistic_fn statistic, void *user, size_t n,
                         const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err)
{
    size_t *row = NULL;
    pnb_status status;
    if (opts == NULL || opts->n_resamples > 0)
        return pnb_bootstrap(statistic, user, n, opts, out, err);
    PNB_TRY(PNB_ALLOC(row, n, err));
    for (size_t i = 0; i < n; i++)
        row[i] = i;
    *out = (pnb_interval){statistic(user, row, n), (double)NAN, (double)NAN};
done:
    pnb__free(row);
    return status;
}

pnb_status pnb_class_scores_compute(const int32_t *label, const int32_t *predicted, size_t n,
                                    size_t n_classes, const pnb_bootstrap_opts *opts,
                                    pnb_class_scores *out, double *f1, pnb_error *err)
{
    const pnb_bootstrap_opts none = {.n_resamples = 0};
    class_rows rows = {.label = label, .predicted = predicted, .n_classes = n_classes};
    pnb_class_scores found = {0};
    pnb_interval all;
    pnb_status status;
    PNB_TRY(check_numbers(label, n, n_classes, "label", err));
    PNB_TRY(check_numbers(predicted, n, n_classes, "prediction", err));
    PNB_TRY(PNB_ALLOC_ROWS(rows.count, n_classes, 3, err));
    rows.f1 = f1;
    PNB_TRY(settle(mean_of_classes, &rows, n, &none, &all, err));
    for (size_t k = 0; k < n_classes; k++)
        found.n_present += rows.count[k] > 0.0;
    rows.f1 = NULL;
    PNB_TRY(settle(mean_of_classes, &rows, n, opts, &found.macro_f1, err));
    rows.is_recall = true;
    PNB_TRY(settle(mean_of_classes, &rows, n, opts, &found.balanced, err));
    *out = found;
done:
    pnb__free(rows.count);
    return status;
}

/* ---- groups ---- */

typedef struct group_rows {
    const double *value; /* of the rows with a group */
    const int32_t *group;
    size_t n_groups;
    double *sum, *count;
    bool is_average; /* over the groups; else the smallest */
} group_rows;

static double figure_of_groups(void *user, const size_t *row, size_t n)
{
    const group_rows *g = user;
    double least = INFINITY, total = 0.0, n_present = 0.0;
    for (size_t k = 0; k < g->n_groups; k++)
        g->sum[k] = g->count[k] = 0.0;
    for (size_t i = 0; i < n; i++) {
        g->sum[g->group[row[i]]] += g->value[row[i]];
        g->count[g->group[row[i]]]++;
    }
    for (size_t k = 0; k < g->n_groups; k++) {
        if (g->count[k] == 0.0)
            continue;
        least = fmin(least, g->sum[k] / g->count[k]);
        total += g->sum[k] / g->count[k];
        n_present++;
    }
    return g->is_average ? total / n_present : least;
}

static pnb_status check_groups(const double *value, const int32_t *group, size_t n, size_t n_groups,
                               size_t *n_kept, pnb_error *err)
{
    *n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (group[i] >= 0 && (size_t)group[i] >= n_groups)
            return pnb__fail(err, PNB_ARG, "row %zu is of group %d; there are %zu groups", i,
                             group[i], n_groups);
        if (group[i] >= 0 && !isfinite(value[i]))
            return pnb__fail(err, PNB_NUMERIC, "value %zu is %g, a finite value is needed", i,
                             value[i]);
        *n_kept += group[i] >= 0;
    }
    return *n_kept > 0 ? PNB_OK : pnb__fail(err, PNB_ARG, "none of %zu rows has a group", n);
}

/* Rows with a group, one behind the other. */
typedef struct kept_rows {
    double *value;
    int32_t *group;
    int64_t *cluster; /* NULL: each row by itself */
    size_t n;
} kept_rows;

static pnb_status keep_rows(const double *value, const int32_t *group, size_t n,
                            const int64_t *cluster, kept_rows *out, pnb_error *err)
{
    if (PNB_ALLOC(out->value, n, err) != PNB_OK || PNB_ALLOC(out->group, n, err) != PNB_OK ||
        (cluster != NULL && PNB_ALLOC(out->cluster, n, err) != PNB_OK))
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (group[i] < 0)
            continue;
        out->value[out->n] = value[i];
        if (cluster != NULL)
            out->cluster[out->n] = cluster[i];
        out->group[out->n++] = group[i];
    }
    return PNB_OK;
}

/* Group k alone: its rows one behind the other into `own`, then the mean as of any rows. */
static pnb_status one_group(const kept_rows *rows, size_t k, const pnb_bootstrap_opts *opts,
                            kept_rows *own, pnb_group_score *out, pnb_error *err)
{
    pnb_bootstrap_opts boot = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    double sum = 0.0;
    own->n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if ((size_t)rows->group[i] != k)
            continue;
        if (rows->cluster != NULL)
            own->cluster[own->n] = rows->cluster[i];
        sum += rows->value[i];
        own->value[own->n++] = rows->value[i];
    }
    boot.cluster = rows->cluster != NULL ? own->cluster : NULL;
    *out = (pnb_group_score){own->n, {sum / (double)own->n, (double)NAN, (double)NAN}};
    return own->n > 0 && boot.n_resamples > 0
               ? pnb_bootstrap_mean(own->value, own->n, &boot, &out->mean, err)
               : PNB_OK;
}

static void free_rows(kept_rows *rows)
{
    pnb__free(rows->value);
    pnb__free(rows->group);
    pnb__free(rows->cluster);
}

/* Each group by itself, and which has the smallest mean. */
static pnb_status each_group(const kept_rows *rows, size_t n_groups, const pnb_bootstrap_opts *opts,
                             pnb_group_score *groups, pnb_group_scores *out, pnb_error *err)
{
    kept_rows own = {0};
    double least = INFINITY;
    pnb_status status =
        keep_rows(rows->value, rows->group, rows->n, rows->cluster, &own, err); /* for its room */
    for (size_t k = 0; status == PNB_OK && k < n_groups; k++) {
        pnb_group_score score;
        status = one_group(rows, k, opts, &own, &score, err);
        if (groups != NULL)
            groups[k] = score;
        out->n_present += score.n > 0;
        if (score.n > 0 && score.mean.value < least) {
            least = score.mean.value;
            out->worst = k;
        }
    }
    free_rows(&own);
    return status;
}

pnb_status pnb_group_scores_compute(const double *value, const int32_t *group, size_t n,
                                    size_t n_groups, const pnb_bootstrap_opts *opts,
                                    pnb_group_score *groups, pnb_group_scores *out, pnb_error *err)
{
    pnb_bootstrap_opts boot = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    pnb_group_scores found = {0};
    group_rows rows = {.n_groups = n_groups};
    kept_rows kept = {0};
    pnb_status status;
    PNB_TRY(check_groups(value, group, n, n_groups, &found.n, err));
    PNB_TRY(keep_rows(value, group, n, boot.cluster, &kept, err));
    PNB_TRY(PNB_ALLOC(rows.sum, n_groups, err));
    PNB_TRY(PNB_ALLOC(rows.count, n_groups, err));
    PNB_TRY(each_group(&kept, n_groups, &boot, groups, &found, err));
    boot.cluster = kept.cluster;
    rows.value = kept.value;
    rows.group = kept.group;
    PNB_TRY(settle(figure_of_groups, &rows, kept.n, &boot, &found.worst_mean, err));
    rows.is_average = true;
    PNB_TRY(settle(figure_of_groups, &rows, kept.n, &boot, &found.average, err));
    *out = found;
done:
    free_rows(&kept);
    pnb__free(rows.sum);
    pnb__free(rows.count);
    return status;
}

/* ---- suites ---- */

pnb_status pnb_suite_mean(const pnb_interval *figure, size_t n, pnb_interval *out, pnb_error *err)
{
    double sum = 0.0, below = 0.0, above = 0.0;
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no data sets to average; at least one is needed");
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(figure[i].value))
            return pnb__fail(err, PNB_NUMERIC, "the figure of data set %zu is %g", i,
                             figure[i].value);
        sum += figure[i].value;
        below += (figure[i].value - figure[i].low) * (figure[i].value - figure[i].low);
        above += (figure[i].high - figure[i].value) * (figure[i].high - figure[i].value);
    }
    double mean = sum / (double)n;
    *out = (pnb_interval){mean, mean - sqrt(below) / (double)n, mean + sqrt(above) / (double)n};
    return PNB_OK;
}
