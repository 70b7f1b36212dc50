/* Prompts to classes: the uncertainty of each prompt, and the Gaussian a class's prompts make.
 *
 *   mean_c = sum_i w_i mean_i, then to unit length        var_c = sum_i w_i var_i  (or w_i^2)
 *
 * On the sphere the natural parameters kappa_i mean_i take the place of the means, and the length
 * of their sum is the class's kappa. Equal weights are ProLIP's ensembling (section 4.1): the plain
 * mean of the variances ranks better than that of the mean's variance, which has 1/N^2. Which
 * weights is prompt_filter.c's and bprw.c's business. Sums run in f64 over prompts in their order.
 */
#include "eval/zeroshot/prompts.h"

#include <math.h>
#include <string.h>

pnb_status pnb__prompts_check(const pnb_prompts *p, pnb_error *err)
{
    if (p->n_classes == 0 || p->dim == 0)
        return pnb__fail(err, PNB_SHAPE, "%zu classes of width %zu; at least 1 and 1 are needed",
                         p->n_classes, p->dim);
    for (size_t c = 0; c < p->n_classes; c++)
        if (p->offset[c + 1] <= p->offset[c])
            return pnb__fail(err, PNB_SHAPE, "class %zu has no prompt", c);
    return PNB_OK;
}

void pnb__prompts_row(const pnb_prompts *p, size_t row, double *mean, double *var)
{
    size_t at = row * p->dim;
    for (size_t d = 0; d < p->dim; d++) {
        mean[d] = (double)p->mean[at + d];
        if (p->var != NULL)
            var[d] = (double)p->var[at + d];
        else
            var[d] = p->log_var != NULL ? exp((double)p->log_var[at + d]) : 0.0;
    }
}

pnb_status pnb_prompts_uncertainty(const pnb_prompts *p, double *out, pnb_error *err)
{
    pnb_status status = pnb__prompts_check(p, err);
    if (status != PNB_OK)
        return status;
    size_t n = p->offset[p->n_classes];
    if (p->kappa != NULL)
        return pnb_uncertainty_inv_kappa(p->kappa, n, out, err);
    if (p->var == NULL) {
        const pnb_gaussians rows = {.n = n, .dim = p->dim, .mean = p->mean, .log_var = p->log_var};
        return pnb_uncertainty_rows(PNB_UNCERTAINTY_TRACE, &rows, out, err);
    }
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t d = 0; d < p->dim; d++)
            sum += (double)p->var[i * p->dim + d];
        if (!isfinite(sum))
            return pnb__fail(err, PNB_NUMERIC, "prompt %zu has a variance that is not finite", i);
        out[i] = sum;
    }
    return PNB_OK;
}

/* ---- classes ---- */

pnb_classifier_opts pnb_classifier_opts_default(void)
{
    return (pnb_classifier_opts){.normalise = true, .variance = PNB_CLASS_VARIANCE_MEAN};
}

void pnb_classifier_reset(pnb_classifier *c)
{
    if (c == NULL)
        return;
    pnb__free(c->mean);
    pnb__free(c->var);
    pnb__free(c->kappa);
    *c = (pnb_classifier){0};
}

static pnb_status check_weights(const double *weight, size_t n, size_t class, pnb_error *err)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (!(weight[i] >= 0.0) || !isfinite(weight[i]))
            return pnb__fail(err, PNB_ARG, "class %zu: the weight of prompt %zu is %g", class, i,
                             weight[i]);
        sum += weight[i];
    }
    if (!(sum > 0.0))
        return pnb__fail(err, PNB_ARG, "class %zu: no prompt has a weight above 0", class);
    return PNB_OK;
}

/* To unit length; `length` may be NULL. */
static pnb_status normalise(double *mean, size_t dim, size_t class, double *length_out,
                            pnb_error *err)
{
    double square = 0.0;
    for (size_t d = 0; d < dim; d++)
        square += mean[d] * mean[d];
    if (!(square > 0.0) || !isfinite(square))
        return pnb__fail(err, PNB_NUMERIC,
                         "class %zu: the mean of its prompts has length %g and no direction", class,
                         sqrt(square));
    double length = sqrt(square);
    for (size_t d = 0; d < dim; d++)
        mean[d] /= length;
    if (length_out != NULL)
        *length_out = length;
    return PNB_OK;
}

/* row holds two rows of working memory. */
static void add_prompts(const pnb_prompts *p, size_t class, const double *weight, bool squared,
                        double *row, double *mean, double *var)
{
    size_t first = p->offset[class], n = p->offset[class + 1] - first;
    double *row_mean = row, *row_var = row + p->dim;
    for (size_t i = 0; i < n; i++) {
        double w = weight != NULL ? weight[i] : 1.0 / (double)n;
        if (w == 0.0)
            continue;
        pnb__prompts_row(p, first + i, row_mean, row_var);
        if (p->kappa != NULL) /* natural parameters add up */
            w *= (double)p->kappa[first + i];
        for (size_t d = 0; d < p->dim; d++) {
            mean[d] += w * row_mean[d];
            var[d] += (squared ? w * w : w) * row_var[d];
        }
    }
}

pnb_status pnb_classifier_build(pnb_classifier *out, const pnb_prompts *p, const double *weight,
                                const pnb_classifier_opts *opts, pnb_error *err)
{
    pnb_classifier_opts o = opts != NULL ? *opts : pnb_classifier_opts_default();
    pnb_classifier made = {.n_classes = p->n_classes, .dim = p->dim};
    double *row = NULL;
    size_t n;
    *out = (pnb_classifier){0};
    pnb_status status = pnb__prompts_check(p, err);
    if (status != PNB_OK)
        return status;
    if (pnb__mul_overflows(p->n_classes, p->dim, &n))
        return pnb__fail_nomem(err, SIZE_MAX);
    made.mean = pnb__alloc_zero(n, sizeof *made.mean);
    made.var = pnb__alloc_zero(n, sizeof *made.var);
    row = pnb__alloc_array(p->dim, 2 * sizeof *row);
    if (p->kappa != NULL)
        made.kappa = pnb__alloc_array(p->n_classes, sizeof *made.kappa);
    if (made.mean == NULL || made.var == NULL || row == NULL ||
        (p->kappa != NULL && made.kappa == NULL))
        PNB_TRY(pnb__fail_nomem(err, 2 * n * sizeof *made.mean));
    for (size_t c = 0; c < p->n_classes; c++) {
        const double *w = weight != NULL ? weight + p->offset[c] : NULL;
        double *mean = made.mean + c * p->dim, *var = made.var + c * p->dim;
        if (w != NULL)
            PNB_TRY(check_weights(w, p->offset[c + 1] - p->offset[c], c, err));
        add_prompts(p, c, w, o.variance == PNB_CLASS_VARIANCE_SQUARED, row, mean, var);
        if (o.normalise || p->kappa != NULL)
            PNB_TRY(normalise(mean, p->dim, c, made.kappa != NULL ? &made.kappa[c] : NULL, err));
    }
done:
    pnb__free(row);
    if (status == PNB_OK)
        *out = made;
    else
        pnb_classifier_reset(&made);
    return status;
}
