/* Exact regression (Rasmussen and Williams 2006, algorithm 2.1 and Eq. 5.9) and Titsias' collapsed
 * bound (2009), both in doubles by Cholesky factors.
 *
 * Derivative of the marginal likelihood by K:   1/2 (sum_d alpha_d alpha_d^T - D (K + s2 I)^-1). */
#include "adapt/gp/gp_exact.h"

#include <math.h>
#include <string.h>

#include "adapt/gp/factors/dense.h"

#define LOG_2PI 1.83787706640934548356

static pnb_status check_data(const pnb__gp_data *data, pnb_error *err)
{
    if (data->n == 0 || data->n_outputs == 0)
        return pnb__fail(err, PNB_ARG, "%zu points with %zu outputs", data->n, data->n_outputs);
    if (!(data->noise > 0) || !isfinite(data->noise))
        return pnb__fail(err, PNB_ARG, "the noise %g is not a positive variance", data->noise);
    return PNB_OK;
}

/* y - constant, (N,D) */
static void residuals(const pnb__gp_data *data, double *out)
{
    size_t d = data->n_outputs;
    for (size_t i = 0; i < data->n * d; i++)
        out[i] = data->y[i] - data->constant[i % d];
}

static double log_diagonal(const double *chol, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += log(chol[i * n + i]);
    return sum;
}

pnb_status pnb__gp_exact_fit(pnb__gp_exact *out, const pnb_ctx *ctx, const pnb__gp_kernel *kernel,
                             const pnb__gp_data *data, pnb_error *err)
{
    pnb__gp_exact gp = {.ctx = ctx, .kernel = *kernel, .data = *data};
    size_t n = data->n, d = data->n_outputs;
    double *r = NULL;
    pnb_status status = check_data(data, err);
    if (status != PNB_OK)
        return status;
    pnb__kernels_fill_host(&gp.kernels, ctx, PNB__F64);
    gp.chol = pnb__alloc_array(n * n, sizeof(double));
    gp.alpha = pnb__alloc_array(n * d, sizeof(double));
    r = pnb__alloc_array(n * d, sizeof(double));
    if (gp.chol == NULL || gp.alpha == NULL || r == NULL)
        PNB_TRY(pnb__fail_nomem(err, (n + 2 * d) * n * sizeof(double)));
    pnb__gp_kernel_matrix(kernel, data->x, n, data->x, n, gp.chol);
    for (size_t i = 0; i < n; i++)
        gp.chol[i * n + i] += data->noise;
    if (!gp.kernels.cholesky(ctx, n, gp.chol, gp.chol))
        PNB_TRY(pnb__fail(err, PNB_NUMERIC,
                          "the covariance of %zu points is not positive definite with a noise of "
                          "%g: points repeat, or values are not finite",
                          n, data->noise));
    residuals(data, r);
    gp.kernels.tri_solve(ctx, n, d, false, gp.chol, r, gp.alpha);
    gp.kernels.tri_solve(ctx, n, d, true, gp.chol, gp.alpha, gp.alpha);
    gp.log_marginal = -0.5 * pnb__dense_dot(r, gp.alpha, n * d) -
                      (double)d * log_diagonal(gp.chol, n) - 0.5 * (double)(n * d) * LOG_2PI;
done:
    pnb__free(r);
    if (status == PNB_OK)
        *out = gp;
    else
        pnb__gp_exact_reset(&gp);
    return status;
}

void pnb__gp_exact_reset(pnb__gp_exact *gp)
{
    pnb__free(gp->chol);
    pnb__free(gp->alpha);
    *gp = (pnb__gp_exact){0};
}

pnb_status pnb__gp_exact_predict(const pnb__gp_exact *gp, const double *x, size_t n, double *mean,
                                 double *var, pnb_error *err)
{
    size_t known = gp->data.n, d = gp->data.n_outputs;
    double *k = pnb__alloc_array(known * n + 1, sizeof *k);
    if (k == NULL)
        return pnb__fail_nomem(err, known * n * sizeof *k);
    pnb__gp_kernel_matrix(&gp->kernel, gp->data.x, known, x, n, k);
    if (mean != NULL) {
        pnb__dense_multiply(
            &gp->kernels, gp->ctx,
            &(pnb__dense_product){
                .m = n, .n = d, .k = known, .a = k, .trans_a = true, .b = gp->alpha, .alpha = 1},
            mean);
        for (size_t i = 0; i < n * d; i++)
            mean[i] += gp->data.constant[i % d];
    }
    if (var != NULL) {
        gp->kernels.tri_solve(gp->ctx, known, n, false, gp->chol, k, k);
        for (size_t j = 0; j < n; j++) {
            var[j] = gp->kernel.scale;
            for (size_t i = 0; i < known; i++)
                var[j] -= k[i * n + j] * k[i * n + j];
        }
    }
    pnb__free(k);
    return PNB_OK;
}

pnb_status pnb__gp_exact_slopes(const pnb__gp_exact *gp, const pnb__gp_kernel_grad *out,
                                double *dconstant, double *dnoise, pnb_error *err)
{
    size_t n = gp->data.n, d = gp->data.n_outputs;
    double *inverse = pnb__alloc_zero(n * n, sizeof *inverse);
    double *slope = pnb__alloc_array(n * n, sizeof *slope);
    pnb_status status = PNB_OK;
    if (inverse == NULL || slope == NULL)
        PNB_TRY(pnb__fail_nomem(err, 2 * n * n * sizeof *slope));
    for (size_t i = 0; i < n; i++)
        inverse[i * n + i] = 1;
    gp->kernels.tri_solve(gp->ctx, n, n, false, gp->chol, inverse, inverse);
    gp->kernels.tri_solve(gp->ctx, n, n, true, gp->chol, inverse, inverse);
    pnb__dense_multiply(
        &gp->kernels, gp->ctx,
        &(pnb__dense_product){
            .m = n, .n = n, .k = d, .a = gp->alpha, .b = gp->alpha, .trans_b = true, .alpha = 1},
        slope);
    for (size_t i = 0; i < n * n; i++)
        slope[i] = 0.5 * (slope[i] - (double)d * inverse[i]);
    pnb__gp_kernel_grad both = {out->dx, out->dx, out->dlengthscale, out->dscale};
    pnb__gp_kernel_backward(&gp->kernel, gp->data.x, n, gp->data.x, n, slope, &both);
    for (size_t i = 0; dnoise != NULL && i < n; i++)
        *dnoise += slope[i * n + i];
    for (size_t i = 0; dconstant != NULL && i < n * d; i++)
        dconstant[i % d] += gp->alpha[i];
done:
    pnb__free(inverse);
    pnb__free(slope);
    return status;
}

/* ---- the collapsed bound ---- */
typedef struct collapsed {
    double *inner;    /* (M,M) I + B B^T / s2, then its factor */
    double *residual; /* (N,D) */
    double *mean;     /* (M,D) B r / s2, then inner^-1 of it, by halves */
} collapsed;

/* log N(Y | c, B^T B + s2 I) by the matrix inversion lemma, less the trace of what B leaves out */
static double collapsed_value(const pnb__inducing_set *set, const pnb__gp_data *data, size_t m,
                              const collapsed *c)
{
    size_t n = data->n, d = data->n_outputs;
    double outputs = (double)d, points = (double)n, s2 = data->noise;
    double fit = pnb__dense_dot(c->residual, c->residual, n * d) / s2 -
                 pnb__dense_dot(c->mean, c->mean, m * d);
    double log_det = 2 * log_diagonal(c->inner, m) + points * log(s2);
    double left = points * set->kernel.scale - pnb__dense_dot(set->b, set->b, m * n);
    return -0.5 * (fit + outputs * (log_det + points * LOG_2PI + left / s2));
}

/* C lower with C C^T = inner^-1: the factor of the inverse itself. */
static bool inverse_factor(const pnb__inducing *p, const collapsed *c, double *q_chol)
{
    size_t m = p->m;
    memset(q_chol, 0, m * m * sizeof *q_chol);
    for (size_t i = 0; i < m; i++)
        q_chol[i * m + i] = 1;
    p->kernels.tri_solve(p->ctx, m, m, false, c->inner, q_chol, q_chol);
    p->kernels.tri_solve(p->ctx, m, m, true, c->inner, q_chol, q_chol);
    return p->kernels.cholesky(p->ctx, m, q_chol, q_chol);
}

/* I + B B^T / s2 factored, and half of its solution for B r / s2 */
static pnb_status collapse(const pnb__inducing *p, const pnb__inducing_set *set,
                           const pnb__gp_data *data, collapsed *c, pnb_error *err)
{
    size_t n = data->n, d = data->n_outputs, m = p->m;
    pnb__inducing_project(p, set, data->x, n);
    residuals(data, c->residual);
    pnb__dense_multiply(
        &p->kernels, p->ctx,
        &(pnb__dense_product){
            .m = m, .n = m, .k = n, .a = set->b, .b = set->b, .trans_b = true, .alpha = 1},
        c->inner);
    for (size_t i = 0; i < m * m; i++)
        c->inner[i] = c->inner[i] / data->noise + (i % (m + 1) == 0);
    pnb__dense_multiply(
        &p->kernels, p->ctx,
        &(pnb__dense_product){.m = m, .n = d, .k = n, .a = set->b, .b = c->residual, .alpha = 1},
        c->mean);
    for (size_t i = 0; i < m * d; i++)
        c->mean[i] /= data->noise;
    if (!p->kernels.cholesky(p->ctx, m, c->inner, c->inner))
        return pnb__fail(err, PNB_NUMERIC,
                         "the bound's inner matrix is not positive definite: "
                         "values are not finite, or the noise is far too small");
    p->kernels.tri_solve(p->ctx, m, d, false, c->inner, c->mean, c->mean);
    return PNB_OK;
}

pnb_status pnb__gp_collapsed(const pnb__inducing *p, const pnb__inducing_set *set,
                             const pnb__gp_data *data, pnb__gp_collapsed_out *out, pnb_error *err)
{
    size_t n = data->n, d = data->n_outputs, m = p->m;
    collapsed c = {0};
    pnb_status status = check_data(data, err);
    if (status != PNB_OK)
        return status;
    if (n > p->n_max)
        return pnb__fail(err, PNB_ARG, "%zu points, room for %zu", n, p->n_max);
    c.inner = pnb__alloc_array(m * m, sizeof(double));
    c.residual = pnb__alloc_array(n * d, sizeof(double));
    c.mean = pnb__alloc_array(m * d, sizeof(double));
    if (c.inner == NULL || c.residual == NULL || c.mean == NULL)
        PNB_TRY(pnb__fail_nomem(err, (m * m + (n + m) * d) * sizeof(double)));
    PNB_TRY(collapse(p, set, data, &c, err));
    out->bound = collapsed_value(set, data, m, &c);
    p->kernels.tri_solve(p->ctx, m, d, true, c.inner, c.mean, c.mean);
    for (size_t i = 0; out->q_mean != NULL && i < m * d; i++)
        out->q_mean[(i % d) * m + i / d] = c.mean[i];
    if (out->q_chol != NULL && !inverse_factor(p, &c, out->q_chol))
        PNB_TRY(pnb__fail(err, PNB_NUMERIC, "the optimal covariance is not positive definite"));
done:
    pnb__free(c.inner);
    pnb__free(c.residual);
    pnb__free(c.mean);
    return status;
}
