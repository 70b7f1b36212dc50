/* Prompt filters of ProLIP (section 3.4; released as by_std_values_per_class, by_ranking,
 * by_std_values_all, by_abs_value): which prompts of a class count, told by their uncertainty u.
 *
 * Comparisons are `<=`, so ties at a limit are all kept; only the ranking cuts through ties, at the
 * lower row. The standard deviation has n - 1 below; a class of one prompt has none and keeps it.
 * How the kept prompts become a class is prompts.c's business. */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "eval/sorted.h"
#include "penumbra/classify.h"

PNB_DEFINE_NAME(pnb_prompt_filter_name, pnb_prompt_filter, PNB_NAMES(PNB_PROMPT_FILTER_LIST),
                "unknown")
PNB_DEFINE_PARSE(pnb_prompt_filter_parse, pnb_prompt_filter, "prompt filter",
                 PNB_NAMES(PNB_PROMPT_FILTER_LIST))

/* Keeps u <= limit, or the smallest where that leaves nothing. */
static void keep_below(const double *u, size_t n, double limit, double *weight)
{
    double smallest = INFINITY;
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        smallest = fmin(smallest, u[i]);
    if (!(smallest <= limit))
        limit = smallest;
    for (size_t i = 0; i < n; i++)
        n_kept += u[i] <= limit;
    for (size_t i = 0; i < n; i++)
        weight[i] = u[i] <= limit ? 1.0 / (double)n_kept : 0.0;
}

static double class_limit(const double *u, size_t n, double k)
{
    double mean = 0.0, square = 0.0;
    if (n < 2)
        return INFINITY;
    for (size_t i = 0; i < n; i++)
        mean += u[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++)
        square += (u[i] - mean) * (u[i] - mean);
    return mean + k * sqrt(square / (double)(n - 1));
}

static pnb_status keep_first(const double *u, size_t n, size_t k, double *weight, pnb_error *err)
{
    pnb__valued *sorted;
    pnb_status status = pnb__sorted(&sorted, u, n, "uncertainty of prompt", err);
    if (status != PNB_OK)
        return status;
    size_t n_kept = PNB_MIN(k, n);
    for (size_t i = 0; i < n; i++)
        weight[sorted[i].place] = i < n_kept ? 1.0 / (double)n_kept : 0.0;
    pnb__free(sorted);
    return PNB_OK;
}

static pnb_status check(const size_t *offset, size_t n_classes, const double *u, pnb_error *err)
{
    if (n_classes == 0)
        return pnb__fail(err, PNB_SHAPE, "no class");
    for (size_t c = 0; c < n_classes; c++)
        if (offset[c + 1] <= offset[c])
            return pnb__fail(err, PNB_SHAPE, "class %zu has no prompt", c);
    for (size_t i = 0; i < offset[n_classes]; i++)
        if (!isfinite(u[i]))
            return pnb__fail(err, PNB_NUMERIC, "the uncertainty of prompt %zu is %g", i, u[i]);
    return PNB_OK;
}

/* The value-th smallest of all. */
static pnb_status global_limit(const double *u, size_t n, double value, double *limit,
                               pnb_error *err)
{
    pnb__valued *sorted;
    pnb_status status = pnb__sorted(&sorted, u, n, "uncertainty of prompt", err);
    if (status != PNB_OK)
        return status;
    size_t k = value < (double)n ? (size_t)value : n;
    *limit = sorted[k - 1].value;
    pnb__free(sorted);
    return PNB_OK;
}

static pnb_status check_value(pnb_prompt_filter filter, double value, pnb_error *err)
{
    bool counts = filter == PNB_FILTER_PROMPTS_TOP_K || filter == PNB_FILTER_PROMPTS_GLOBAL_TOP;
    if (counts && !(value >= 1.0 && floor(value) == value && value <= 1e15))
        return pnb__fail(
            err, PNB_ARG,
            "prompt filter %s with value %g; a number of prompts, 1 or more, is wanted",
            pnb_prompt_filter_name(filter), value);
    if (filter != PNB_FILTER_PROMPTS_NONE && !isfinite(value))
        return pnb__fail(err, PNB_ARG, "prompt filter %s with value %g; a finite number is wanted",
                         pnb_prompt_filter_name(filter), value);
    return PNB_OK;
}

pnb_status pnb_prompts_filter(pnb_prompt_filter filter, double value, const size_t *offset,
                              size_t n_classes, const double *u, double *weight, pnb_error *err)
{
    double limit = filter == PNB_FILTER_PROMPTS_NONE ? INFINITY : value;
    pnb_status status = check(offset, n_classes, u, err);
    if (status == PNB_OK)
        status = check_value(filter, value, err);
    if (status == PNB_OK && filter == PNB_FILTER_PROMPTS_GLOBAL_TOP)
        status = global_limit(u, offset[n_classes], value, &limit, err);
    for (size_t c = 0; status == PNB_OK && c < n_classes; c++) {
        size_t first = offset[c], n = offset[c + 1] - first;
        if (filter == PNB_FILTER_PROMPTS_CLASS_STD)
            limit = class_limit(u + first, n, value);
        if (filter == PNB_FILTER_PROMPTS_TOP_K)
            status = keep_first(u + first, n, (size_t)value, weight + first, err);
        else
            keep_below(u + first, n, limit, weight + first);
    }
    return status;
}

pnb_status pnb_prompts_top_k(const size_t *k, const size_t *offset, size_t n_classes,
                             const double *u, double *weight, pnb_error *err)
{
    pnb_status status = check(offset, n_classes, u, err);
    for (size_t c = 0; status == PNB_OK && c < n_classes; c++) {
        size_t first = offset[c];
        if (k[c] == 0)
            status = pnb__fail(err, PNB_ARG, "class %zu would keep no prompt", c);
        else
            status = keep_first(u + first, offset[c + 1] - first, k[c], weight + first, err);
    }
    return status;
}
