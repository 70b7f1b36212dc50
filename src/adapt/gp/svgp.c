/* Marginals of sparse Gaussian processes, their divergence from the prior, and what a loss makes of
 * them (SPEC section 6; Hensman et al. 2013; whitened as in Matthews 2016).
 *
 *   mean[d][n] = c_d + sum_m m_d[m] B[m][n]
 *   var[d][n]  = k(x,x) - sum_m B[m][n]^2 + sum_m' T[d][m'][n]^2,   T_d = C_d^T B
 *   KL         = sum_d 1/2 (|m_d|^2 + |C_d|^2 - M) - sum_m log |C_d[m][m]|
 *
 * With one kernel the D products T_d are one: B^T (N,M) times C (M, D M), which is why C's outputs
 * stand between its rows and its columns. GroVE's Eq. (13) has var with S - K_VV negated; a
 * variance that falls below the prior's wherever S is large cannot be meant. */
#include "adapt/gp/svgp.h"

#define LOG_2PI 1.83787706640934548356

static size_t n_factors(const pnb__svgp *s)
{
    return s->form == PNB__SVGP_SHARED_COVARIANCE ? 1 : s->n_outputs;
}

void pnb__svgp_inputs(pnb__graph *g, pnb__svgp *s)
{
    size_t diagonal = n_factors(s) * s->m;
    s->lower = pnb__input(g, PNB__REAL, 2, (size_t[]){s->m, s->m});
    s->diagonal = pnb__input(g, PNB__INT32, 1, &diagonal);
}

pnb_status pnb__svgp_write_inputs(const pnb__svgp *s, pnb_error *err)
{
    size_t m = s->m, factors = n_factors(s);
    double *lower = pnb__alloc_zero(m * m, sizeof *lower);
    int32_t *at = pnb__alloc_array(factors * m, sizeof *at);
    pnb_status status = PNB_OK;
    if (lower == NULL || at == NULL)
        PNB_TRY(pnb__fail_nomem(err, (m + factors) * m * sizeof *lower));
    if (factors * m * m > INT32_MAX)
        PNB_TRY(pnb__fail(err, PNB_LIMIT, "%zu outputs of %zu inducing points: too many numbers",
                          factors, m));
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j <= i; j++)
            lower[i * m + j] = 1;
    for (size_t d = 0; d < factors; d++)
        for (size_t i = 0; i < m; i++)
            at[d * m + i] = (int32_t)(s->form == PNB__SVGP_PER_OUTPUT ? (d * m + i) * m + i
                                                                      : (i * factors + d) * m + i);
    pnb__write_f64(s->lower, lower);
    pnb__write_i32(s->diagonal, at);
done:
    pnb__free(lower);
    pnb__free(at);
    return status;
}

static pnb__tensor *square(pnb__tensor *x)
{
    return pnb__apply(PNB__SQUARE, x);
}

/* C with zeros above its diagonals, in the shape it came in. */
static pnb__tensor *lower_factor(const pnb__svgp *s)
{
    pnb__tensor *lower = s->lower;
    if (s->form != PNB__SVGP_PER_OUTPUT)
        lower = pnb__reshape(lower, 3, (size_t[]){s->m, 1, s->m});
    return pnb__mul(s->q_chol, lower);
}

/* sum_m' T^2: (D,N) or (1,N) */
static pnb__tensor *added_variance(const pnb__svgp *s, pnb__tensor *chol)
{
    if (s->form == PNB__SVGP_PER_OUTPUT)
        return pnb__sum(square(pnb__matmul(chol, true, s->b, false)), 1);
    size_t factors = n_factors(s);
    pnb__tensor *flat = pnb__reshape(chol, 2, (size_t[]){s->m, factors * s->m});
    pnb__tensor *t = pnb__matmul(s->b, true, flat, false);
    t = pnb__reshape(square(t), 3, (size_t[]){s->n, factors, s->m});
    return pnb__permute(pnb__sum(t, 2), (int[]){1, 0});
}

static pnb__tensor *marginal_mean(const pnb__svgp *s)
{
    size_t d = s->n_outputs;
    if (s->form != PNB__SVGP_PER_OUTPUT)
        return pnb__add(pnb__matmul(s->q_mean, false, s->b, false), s->constant);
    pnb__tensor *m = pnb__reshape(s->q_mean, 3, (size_t[]){d, 1, s->m});
    pnb__tensor *mean = pnb__matmul(m, false, s->b, false);
    return pnb__add(pnb__reshape(mean, 2, (size_t[]){d, s->n}), s->constant);
}

static pnb__tensor *divergence(const pnb__svgp *s, pnb__tensor *chol)
{
    double d = (double)s->n_outputs, m = (double)s->m, repeats = d / (double)n_factors(s);
    pnb__tensor *table = pnb__reshape(chol, 2, (size_t[]){n_factors(s) * s->m * s->m, 1});
    pnb__tensor *diagonal = pnb__apply(PNB__ABS, pnb__gather(table, s->diagonal));
    pnb__tensor *log_det = pnb__sum(pnb__apply(PNB__LOG, diagonal), PNB__ALL_AXES);
    pnb__tensor *means = pnb__sum(square(s->q_mean), PNB__ALL_AXES);
    pnb__tensor *spread = pnb__sum(square(chol), PNB__ALL_AXES);
    pnb__tensor *kl = pnb__affine(means, 0.5, -0.5 * d * m);
    kl = pnb__add(kl, pnb__affine(spread, 0.5 * repeats, 0));
    return pnb__add(kl, pnb__affine(log_det, -repeats, 0));
}

pnb__svgp_out pnb__svgp_build(const pnb__svgp *s)
{
    pnb__tensor *chol = lower_factor(s);
    int axis = s->form == PNB__SVGP_PER_OUTPUT ? 1 : 0; /* of M in B */
    pnb__tensor *known = pnb__sum(square(s->b), axis);
    pnb__tensor *var = pnb__sub(added_variance(s, chol), known);
    return (pnb__svgp_out){marginal_mean(s), pnb__add(var, s->prior), divergence(s, chol)};
}

pnb__tensor *pnb__gauss_expected_log_lik(pnb__tensor *y, pnb__tensor *mean, pnb__tensor *var,
                                         pnb__tensor *noise)
{
    pnb__tensor *spread = pnb__add(square(pnb__sub(y, mean)), var);
    pnb__tensor *each = pnb__add(pnb__div(spread, noise), pnb__apply(PNB__LOG, noise));
    double n = (double)pnb__n(y);
    return pnb__affine(pnb__sum(each, PNB__ALL_AXES), -0.5, -0.5 * n * LOG_2PI);
}

/* 1/2 sum_d [log q.var - log p.var + (p.var + (p.mean - q.mean)^2) / q.var - 1] */
pnb__tensor *pnb__gauss_kl(pnb__gauss p, pnb__gauss q)
{
    pnb__tensor *apart = square(pnb__sub(p.mean, q.mean));
    pnb__tensor *ratio = pnb__div(pnb__add(p.var, apart), q.var);
    pnb__tensor *logs = pnb__sub(pnb__apply(PNB__LOG, q.var), pnb__apply(PNB__LOG, p.var));
    double d = (double)pnb__dim(p.mean, 0);
    return pnb__affine(pnb__sum(pnb__add(ratio, logs), 0), 0.5, -0.5 * d);
}

static pnb__tensor *mean_of(pnb__tensor *a, pnb__tensor *b)
{
    return pnb__affine(pnb__add(a, b), 0.5, 0);
}

/* |p.mean - q.mean|^2 + sum_d (p.std - q.std)^2 */
static pnb__tensor *wasserstein(pnb__gauss p, pnb__gauss q)
{
    pnb__tensor *std = pnb__sub(pnb__apply(PNB__SQRT, p.var), pnb__apply(PNB__SQRT, q.var));
    return pnb__sum(pnb__add(square(pnb__sub(p.mean, q.mean)), square(std)), 0);
}

pnb__tensor *pnb__gauss_align(pnb__align kind, pnb__gauss p, pnb__gauss q)
{
    pnb__gauss middle;
    switch (kind) {
    case PNB__ALIGN_JS:
        middle = (pnb__gauss){mean_of(p.mean, q.mean), mean_of(p.var, q.var)};
        return mean_of(pnb__gauss_kl(p, middle), pnb__gauss_kl(q, middle));
    case PNB__ALIGN_W2:
        return wasserstein(p, q);
    case PNB__ALIGN_KL:
    case PNB__N_ALIGNS:
        break;
    }
    return mean_of(pnb__gauss_kl(p, q), pnb__gauss_kl(q, p));
}
