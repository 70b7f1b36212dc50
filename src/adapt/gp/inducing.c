/* The factor of the inducing points and its derivative: K and k(Z,X) go back through their factor
 * (factor_slopes.c) and then through the kernel by both of its arguments; the jitter is a constant.
 * Nothing that stands above L's diagonal reaches P, so that of Lbar = -tril(k(Z,X)bar B^T) it takes
 * -Bbar B^T: a product less of (M,M). */
#include "adapt/gp/inducing.h"

#include <math.h>
#include <string.h>

#include "adapt/gp/factors/dense.h"

pnb_status pnb__inducing_init(pnb__inducing *p, const pnb_ctx *ctx, size_t m, size_t n_max,
                              double jitter, pnb_error *err)
{
    *p = (pnb__inducing){.ctx = ctx, .m = m, .n_max = n_max, .jitter = jitter};
    if (m == 0 || n_max == 0 || !(jitter >= 0))
        return pnb__fail(err, PNB_ARG, "%zu inducing points, batches of %zu and a jitter of %g", m,
                         n_max, jitter);
    size_t wide = PNB_MAX(m, n_max);
    pnb__kernels_fill_host(&p->kernels, ctx, PNB__F64);
    p->work = pnb__alloc_array(2 * m * wide, sizeof(double));
    if (p->work == NULL)
        return pnb__fail_nomem(err, 2 * wide * m * sizeof(double));
    return pnb__factor_slopes_init(&p->slopes, ctx, PNB__F64, m, n_max, err);
}

pnb_status pnb__inducing_narrow(pnb__inducing *p, pnb_error *err)
{
    pnb__factor_slopes_reset(&p->slopes);
    return pnb__factor_slopes_init(&p->slopes, p->ctx, PNB__F32, p->m, p->n_max, err);
}

void pnb__inducing_reset(pnb__inducing *p)
{
    pnb__factor_slopes_reset(&p->slopes);
    pnb__free(p->work);
    *p = (pnb__inducing){0};
}

static pnb_status check_finite(const pnb__inducing *p, const pnb__inducing_set *set, pnb_error *err)
{
    const pnb__gp_kernel *k = &set->kernel;
    bool is_fine = k->scale > 0 && isfinite(k->scale);
    for (size_t q = 0; q < k->n_lengthscales; q++)
        is_fine = is_fine && k->lengthscale[q] > 0 && isfinite(k->lengthscale[q]);
    if (!is_fine)
        return pnb__fail(err, PNB_NUMERIC,
                         "the kernel's lengthscale %g or scale %g is not a positive number",
                         k->lengthscale[0], k->scale);
    for (size_t i = 0; i < p->m * k->dim; i++)
        if (!isfinite(set->z[i]))
            return pnb__fail(err, PNB_NUMERIC, "inducing point %zu is not finite", i / k->dim);
    return PNB_OK;
}

pnb_status pnb__inducing_factorise(const pnb__inducing *p, pnb__inducing_set *set, pnb_error *err)
{
    pnb_status status = check_finite(p, set, err);
    if (status != PNB_OK)
        return status;
    size_t m = p->m;
    double *k = p->work, most = 1e-2 * set->kernel.scale, added = 0, jitter = p->jitter;
    pnb__gp_kernel_lower(&set->kernel, set->z, m, k);
    for (;;) {
        for (size_t i = 0; i < m; i++)
            k[i * m + i] += jitter - added;
        added = jitter;
        if (p->kernels.cholesky(p->ctx, m, k, set->chol)) {
            set->jitter_used = jitter;
            return PNB_OK;
        }
        double next = jitter > 0 ? 10 * jitter : 1e-10 * set->kernel.scale;
        if (next > most)
            return pnb__fail(err, PNB_NUMERIC,
                             "the kernel matrix of %zu inducing points is not positive definite "
                             "even with a jitter of %g: points repeat, or the lengthscale %g is "
                             "far larger than their distances",
                             m, jitter, set->kernel.lengthscale[0]);
        jitter = next;
    }
}

void pnb__inducing_project(const pnb__inducing *p, const pnb__inducing_set *set, const double *x,
                           size_t n)
{
    pnb__gp_kernel_matrix(&set->kernel, set->z, p->m, x, n, p->work);
    p->kernels.tri_solve(p->ctx, p->m, n, false, set->chol, p->work, set->b);
}

/* L^T Lbar of the outputs' share of Lbar. */
static void find_q(const pnb__inducing *p, const double *chol, const double *dchol, double *room,
                   double *q)
{
    size_t m = p->m;
    const pnb__dense_product by_chol = {
        .m = m, .n = m, .k = m, .a = chol, .trans_a = true, .b = room, .alpha = 1};
    memcpy(room, dchol, m * m * sizeof *room);
    pnb__dense_clear_upper(room, m);
    pnb__dense_multiply(&p->kernels, p->ctx, &by_chol, q);
}

void pnb__inducing_backward(pnb__inducing *p, const pnb__inducing_set *set, const double *x,
                            size_t n, const pnb__inducing_slopes *slopes,
                            const pnb__gp_kernel_grad *out)
{
    size_t m = p->m, wide = PNB_MAX(m, p->n_max);
    double *db = slopes->db, *kbar = p->work, *room = p->work + m * wide;
    if (slopes->dchol != NULL)
        find_q(p, set->chol, slopes->dchol, room, kbar);
    if (slopes->inverse != NULL)
        pnb__factor_slopes_put_back(&p->slopes, slopes->inverse);
    else
        pnb__factor_slopes_invert(&p->slopes, set->chol);
    pnb__factor_slopes_find(&p->slopes, set->b, db, n, slopes->dchol != NULL ? kbar : NULL, kbar);
    /* k(Z,X) has Z first; K has it on both sides */
    pnb__gp_kernel_grad by_x = {out->dz, out->dx, out->dlengthscale, out->dscale};
    pnb__gp_kernel_grad by_z = {out->dz, NULL, out->dlengthscale, out->dscale};
    pnb__gp_kernel_backward(&set->kernel, set->z, m, x, n, db, &by_x);
    pnb__gp_kernel_backward_lower(&set->kernel, set->z, m, kbar, &by_z);
    if (out->dscale != NULL)
        *out->dscale += slopes->dprior;
}
