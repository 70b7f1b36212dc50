/* s(a cos + b) of a cosine with a mean m and a variance v (prob/cosine.c), BayesVLM's predictions
 * for one pair: s of the probit's logit (a m + b) / sqrt(1 + pi/8 a^2 v), or the mean over draws.
 */
#include "commands/search/search_predict.h"

#include <math.h>

#include "base/base.h"
#include "prob/cosine.h"

enum { DRAWS = 400 }; /* as BayesVLM draws */

static pnb_status check(const pnb__search_prediction *j, pnb_error *err)
{
    if (j->measure != PNB_MEASURE_MEAN)
        return pnb__fail(err, PNB_ARG,
                         "--predict is about the variance of a cosine: --measure mean, not %s",
                         pnb_measure_name(j->measure));
    if (j->queries->kappa != NULL || j->index->kappa != NULL ||
        (j->queries->log_var == NULL && j->index->log_var == NULL))
        return pnb__fail(err, PNB_ARG,
                         "--predict needs variances of queries or rows: put them through an "
                         "adapter that gives them");
    if (!j->odds->has_model || j->odds->has_fit)
        return pnb__fail(err, PNB_ARG,
                         "--predict is about s(a score + b) with the model's a and b, %s",
                         j->odds->has_fit ? "and a calibration lies beside the set: --calibration "
                                            "none leaves it aside"
                                          : "which are not known of these sets");
    return PNB_OK;
}

static double probability_of(const pnb__search_prediction *j, size_t query, size_t row)
{
    double m, v, sum = 0.0, a = j->odds->a, b = j->odds->b;
    size_t n = j->n_draws > 0 ? j->n_draws : DRAWS;
    pnb__cosine_moments(j->queries, query, j->index, row, &m, &v);
    if (j->prediction == PNB_PREDICTION_PROBIT)
        return pnb_sigmoid(pnb__probit_logit(a * m + b, a * a * v));
    pnb__rng rng; /* of the pair: the same wherever it stands in a list */
    pnb__rng_init(&rng, j->seed, query * j->index->n + row);
    for (size_t s = 0; s < n; s++)
        sum += pnb_sigmoid(a * (m + sqrt(v) * pnb__rng_normal(&rng)) + b);
    return sum / (double)n;
}

pnb_status pnb__search_predict(const pnb__search_prediction *j, double **out, pnb_error *err)
{
    double *p = NULL;
    if (j->prediction == PNB_PREDICTION_PLAIN)
        return PNB_OK;
    pnb_status status = check(j, err);
    if (status == PNB_OK)
        status = PNB_ALLOC_ROWS(p, j->hits->n_queries, j->hits->k, err);
    if (status != PNB_OK)
        return status;
    for (size_t q = 0; q < j->hits->n_queries; q++)
        for (size_t i = 0; i < j->hits->k; i++)
            p[q * j->hits->k + i] =
                probability_of(j, q, (size_t)j->hits->index[q * j->hits->k + i]);
    *out = p;
    return PNB_OK;
}
