/* The mean of several models' weights, number by number: WiSE-FT's path between a pretrained model
 * and one fine-tuned from it (Wortsman et al. 2022, robust fine-tuning), and model soups.
 *
 * Only models that are one architecture have such a mean: the same configuration, arrays of the
 * same names and shapes. That they also come from one training is for the caller to know: weights
 * of two that started apart are averaged without complaint and are of no use. */
#include <math.h>
#include <string.h>

#include "io/json/json.h"
#include "models/model.h"

static pnb_status check_shares(const double *shares, size_t n, pnb_error *err)
{
    double sum = 0;
    if (n < 2)
        return pnb__fail(err, PNB_ARG, "a mean is of two models and more, %zu given", n);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(shares[i]))
            return pnb__fail(err, PNB_ARG, "the share of model %zu is %g", i, shares[i]);
        sum += shares[i];
    }
    if (!(fabs(sum - 1) <= 1e-9))
        return pnb__fail(err, PNB_ARG, "the shares of a mean add up to %.17g, not to 1", sum);
    return PNB_OK;
}

/* Activations and sizes stand in no array's shape: all of the configuration must agree. */
static pnb_status check_config(const pnb_model *a, const pnb_model *b, const char *dir,
                               pnb_error *err)
{
    json_t *one = NULL, *two = NULL;
    pnb_status status;
    PNB_TRY(
        pnb__json_load_bytes(&one, a->config_text, strlen(a->config_text), "configuration", err));
    PNB_TRY(pnb__json_load_bytes(&two, b->config_text, strlen(b->config_text), dir, err));
    if (!json_equal(one, two))
        status = pnb__fail(err, PNB_SHAPE,
                           "%s: its configuration is not that of the first model; weights are "
                           "averaged of one architecture, told in one layout (penumbra convert)",
                           dir);
done:
    json_decref(one);
    json_decref(two);
    return status;
}

/* Arrays may lie in another order: they are found by their names. */
static pnb_status check_arrays(pnb_model *a, pnb_model *b, const char *dir, pnb_error *err)
{
    if (a->weights.record != NULL || b->weights.record != NULL)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "%s: weights that are small already have no mean; start from the models "
                         "they were made from",
                         dir);
    if (pnb__model_n_params(a) != pnb__model_n_params(b))
        return pnb__fail(err, PNB_SHAPE, "%s has %zu arrays, the first model %zu", dir,
                         pnb__model_n_params(b), pnb__model_n_params(a));
    for (size_t i = 0; i < pnb__model_n_params(a); i++) {
        const pnb__param *p = pnb__model_param(a, i), *q = pnb__model_find_param(b, p->name);
        if (q == NULL || q->n_dims != p->n_dims ||
            memcmp(q->shape, p->shape, (size_t)p->n_dims * sizeof *p->shape) != 0)
            return pnb__fail(err, PNB_SHAPE, "%s: %s %s", dir, p->name,
                             q == NULL ? "is missing" : "has another shape than the first model's");
    }
    return PNB_OK;
}

/* w = keep w + share v, array by array */
static void mix_in(pnb_model *to, double keep, pnb_model *from, double share)
{
    for (size_t i = 0; i < pnb__model_n_params(to); i++) {
        pnb__param *p = pnb__model_param(to, i);
        pnb__param_mix(p, keep, pnb__model_find_param(from, p->name), share, &to->weights.kernels);
    }
}

pnb_status pnb_model_average(pnb_model **out, const pnb_ctx *ctx, const char *const *dirs,
                             const double *shares, size_t n, pnb_error *err)
{
    pnb_model *mean = NULL, *next = NULL;
    pnb_status status;
    *out = NULL;
    PNB_TRY(check_shares(shares, n, err));
    PNB_TRY(pnb_model_load(&mean, ctx, dirs[0], err));
    PNB_TRY(pnb__weights_make_owned(&mean->weights, err));
    for (size_t i = 1; i < n; i++) {
        PNB_TRY(pnb_model_load(&next, ctx, dirs[i], err));
        PNB_TRY(check_config(mean, next, dirs[i], err));
        PNB_TRY(check_arrays(mean, next, dirs[i], err));
        mix_in(mean, i == 1 ? shares[0] : 1, next, shares[i]);
        pnb_model_free(next);
        next = NULL;
    }
    PNB_TRY(pnb__model_weights_changed(mean, err));
done:
    pnb_model_free(next);
    if (status == PNB_OK)
        *out = mean;
    else
        pnb_model_free(mean);
    return status;
}
