/* The factor of the inducing points and its derivative.
 *
 * Backwards, with bars for derivatives:
 *   B = L^-1 k(Z,X):   k(Z,X)bar = L^-T Bbar,   Lbar = -tril(k(Z,X)bar B^T) + Lbar of the outputs
 *   K = L L^T:         Kbar = 1/2 L^-T (P + P^T) L^-1,  P = tril(L^T Lbar) with half its diagonal
 * and then through the kernel by both of its arguments; the jitter is a constant. Of L^T Lbar the
 * part by B is -Bbar B^T in the lower triangle: nothing that stands above L's diagonal reaches
 * it. */
#include "adapt/gp/inducing.h"

#include <math.h>
#include <string.h>

#include "adapt/gp/dense.h"

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
    return p->work != NULL ? PNB_OK : pnb__fail_nomem(err, 2 * wide * m * sizeof(double));
}

void pnb__inducing_reset(pnb__inducing *p)
{
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

/* P + P^T from its lower triangle in `room`; Kbar (M,M) into kbar. */
static void factor_backward(const pnb__inducing *p, const double *chol, double *room, double *kbar)
{
    size_t m = p->m;
    for (size_t i = 0; i < m; i++) /* the halves of the diagonal add up again */
        for (size_t j = 0; j < i; j++)
            room[j * m + i] = room[i * m + j];
    p->kernels.tri_solve(p->ctx, m, m, true, chol, room, kbar); /* L^-T (P + P^T) */
    pnb__dense_transpose(kbar, m);                              /* symmetric: ... L^-1 too */
    p->kernels.tri_solve(p->ctx, m, m, true, chol, kbar, kbar);
    for (size_t i = 0; i < m * m; i++)
        kbar[i] *= 0.5;
}

/* P before its diagonal is halved, in `room`: L^T Lbar = L^T dL - Bbar B^T where it is read. */
static void find_p(const pnb__inducing *p, const pnb__inducing_set *set, size_t n,
                   const pnb__inducing_slopes *slopes, double *room, double *lower)
{
    size_t m = p->m;
    pnb__dense_product by_b = {
        .m = m, .n = m, .k = n, .a = slopes->db, .b = set->b, .trans_b = true, .alpha = -1};
    if (slopes->dchol != NULL) {
        pnb__dense_product by_chol = {
            .m = m, .n = m, .k = m, .a = set->chol, .trans_a = true, .b = lower, .alpha = 1};
        memcpy(lower, slopes->dchol, m * m * sizeof *lower);
        pnb__dense_clear_upper(lower, m);
        pnb__dense_multiply(&p->kernels, p->ctx, &by_chol, room);
        by_b.add = true;
    }
    pnb__dense_multiply(&p->kernels, p->ctx, &by_b, room);
}

void pnb__inducing_backward(const pnb__inducing *p, const pnb__inducing_set *set, const double *x,
                            size_t n, const pnb__inducing_slopes *slopes,
                            const pnb__gp_kernel_grad *out)
{
    size_t m = p->m, wide = PNB_MAX(m, p->n_max);
    double *db = slopes->db, *kbar = p->work, *room = p->work + m * wide;
    find_p(p, set, n, slopes, room, kbar);
    factor_backward(p, set->chol, room, kbar);
    p->kernels.tri_solve(p->ctx, m, n, true, set->chol, db, db); /* k(Z,X)bar */
    /* k(Z,X) has Z first; K has it on both sides */
    pnb__gp_kernel_grad by_x = {out->dz, out->dx, out->dlengthscale, out->dscale};
    pnb__gp_kernel_grad by_z = {out->dz, NULL, out->dlengthscale, out->dscale};
    pnb__gp_kernel_backward(&set->kernel, set->z, m, x, n, db, &by_x);
    pnb__gp_kernel_backward_lower(&set->kernel, set->z, m, kbar, &by_z);
    if (out->dscale != NULL)
        *out->dscale += slopes->dprior;
}
