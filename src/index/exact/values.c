/* Which pairs of a block of bounds may reach a limit.
 *
 * Most groups of LOOK values hold none and are passed over without a look at single ones. A value
 * is an upper bound already (bound.h); what is taken has both bounds in doubles, with the margin of
 * f64. */
#include <math.h>

#include "index/exact/bound.h"

static pnb_status above_exact(const pnb__values *v, const float *limit, pnb__bounds_fn take,
                              void *user)
{
    for (size_t j = 0; j < v->n_queries; j++)
        for (size_t i = 0; i < v->n_items; i++) {
            double score = v->exact[j * v->ld + i];
            if (!(score >= (double)limit[j]))
                continue;
            const pnb__bounds pair = {v->query + j, v->item + i, score, score};
            pnb_status status = take(user, &pair);
            if (status != PNB_OK)
                return status;
        }
    return PNB_OK;
}

#define LOOK 32 /* values looked at together: most such groups hold none above the limit */

/* v of one item and query j. */
static inline float value_at(const pnb__values *v, size_t i, size_t j)
{
    float value = v->value[i * v->ld + j] * v->mul[i] + v->upper[i];
    if (v->spread != NULL)
        value += (float)v->spread_bound * v->spread[i * v->ld + j];
    return value;
}

static bool any_above(const pnb__values *v, size_t i, size_t begin, size_t n, const float *limit)
{
    const float *value = v->value + i * v->ld + begin;
    const float *spread = v->spread != NULL ? v->spread + i * v->ld + begin : NULL;
    float mul = v->mul[i], upper = v->upper[i], bound = (float)v->spread_bound;
    int any = 0;
    if (spread == NULL) {
#pragma omp simd reduction(| : any)
        for (size_t j = 0; j < n; j++)
            any |= value[j] * mul + upper >= limit[begin + j];
    } else {
#pragma omp simd reduction(| : any)
        for (size_t j = 0; j < n; j++)
            any |= value[j] * mul + upper + bound * spread[j] >= limit[begin + j];
    }
    return any != 0;
}

/* slack[i] is in upper once; twice off gives the lower bound, and once more a unit for rounding. */
void pnb__values_bounds(const pnb__values *v, size_t i, size_t begin, size_t n, float *low,
                        float *high)
{
    if (v->exact != NULL) {
        for (size_t j = 0; j < n; j++) {
            float score = (float)v->exact[(begin + j) * v->ld + i];
            low[j] = nextafterf(score, -INFINITY);
            high[j] = nextafterf(score, INFINITY);
        }
        return;
    }
    const float *value = v->value + i * v->ld + begin;
    const float *spread = v->spread != NULL ? v->spread + i * v->ld + begin : NULL;
    float mul = v->mul[i], upper = v->upper[i], bound = (float)v->spread_bound;
    float lower = nextafterf((float)((double)upper - 2.0 * v->slack[i]), -INFINITY);
    for (size_t j = 0; j < n; j++) {
        float product = value[j] * mul;
        low[j] = product + lower;
        high[j] = product + upper;
    }
    for (size_t j = 0; spread != NULL && j < n; j++) {
        low[j] -= bound * spread[j];
        high[j] += bound * spread[j];
    }
}

/* A pair that may reach its limit, where values say no more than that: as a distance it is a score
 * with its sign changed. */
static pnb__bounds bounds_within(const pnb__exact_run *run, const pnb__values *v, size_t i,
                                 size_t j)
{
    double value[2], mul = (double)v->mul[i];
    size_t query = v->query + j, item = v->item + i;
    pnb__sample_pair(&v->within->samples, &v->work->samples, query, item, value);
    double slack = value[1] + pnb__bound_margin(run, query), at = mul * value[0];
    return (pnb__bounds){query, item, at - slack, at + slack};
}

static pnb__bounds bounds_at(const pnb__exact_run *run, const pnb__values *v, size_t i, size_t j,
                             float value)
{
    if (v->within != NULL)
        return bounds_within(run, v, i, j);
    size_t query = v->query + j;
    double high = (double)value + pnb__bound_term(run, query), slack = v->slack[i];
    double margin = pnb__bound_margin(run, query);
    if (v->spread != NULL)
        slack += v->spread_bound * (double)v->spread[i * v->ld + j];
    return (pnb__bounds){query, v->item + i, high - 2.0 * slack - margin, high + margin};
}

/* One query, values next to each other: groups of items in place of groups of queries. */
static pnb_status above_one(const pnb__exact_run *run, const pnb__values *v, const float *limit,
                            pnb__bounds_fn take, void *user)
{
    for (size_t begin = 0; begin < v->n_items; begin += LOOK) {
        size_t n = PNB_MIN((size_t)LOOK, v->n_items - begin);
        const float *value = v->value + begin, *mul = v->mul + begin, *upper = v->upper + begin;
        float least = *limit;
        int any = 0;
#pragma omp simd reduction(| : any)
        for (size_t i = 0; i < n; i++)
            any |= value[i] * mul[i] + upper[i] >= least;
        for (size_t i = begin; any && i < begin + n; i++) {
            float at = value_at(v, i, 0);
            if (!(at >= *limit))
                continue;
            const pnb__bounds pair = bounds_at(run, v, i, 0, at);
            pnb_status status = take(user, &pair);
            if (status != PNB_OK)
                return status;
        }
    }
    return PNB_OK;
}

pnb_status pnb__values_above(const pnb__exact_run *run, const pnb__values *v, const float *limit,
                             pnb__bounds_fn take, void *user)
{
    if (v->exact != NULL)
        return above_exact(v, limit, take, user);
    if (v->ld == 1 && v->spread == NULL)
        return above_one(run, v, limit, take, user);
    for (size_t i = 0; i < v->n_items; i++)
        for (size_t begin = 0; begin < v->n_queries; begin += LOOK) {
            size_t n = PNB_MIN((size_t)LOOK, v->n_queries - begin);
            if (!any_above(v, i, begin, n, limit))
                continue;
            for (size_t j = begin; j < begin + n; j++) {
                float value = value_at(v, i, j);
                if (!(value >= limit[j]))
                    continue;
                const pnb__bounds pair = bounds_at(run, v, i, j, value);
                if (v->within != NULL && !(pair.high >= (double)limit[j]))
                    continue;
                pnb_status status = take(user, &pair);
                if (status != PNB_OK)
                    return status;
            }
        }
    return PNB_OK;
}
