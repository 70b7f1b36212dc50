/* Marginals of processes that share a kernel, and their slopes, without a graph: the factors of D
 * outputs are the whole cost of a step, and factors.c takes them together.
 *
 * Backwards, with g and h the slopes of mean and var:
 *   m' = g B^T + weight m,   c' = sum_n g,   k(x,x)' = sum h
 *   B' = m^T g - 2 B diag(sum_f h_f) + what the factors add
 * and inducing.c takes B' on to points and kernel. With one factor for D outputs the divergence of
 * its covariance counts D times. */
#include "adapt/gp/marginals.h"

#include <string.h>

#include "adapt/gp/factors/dense.h"

pnb_status pnb__marginals_init(pnb__marginals *mg, const pnb_ctx *ctx, const pnb__marginals_opts *o,
                               pnb_error *err)
{
    size_t m = o->m, n = o->n_max, room = 0;
    *mg = (pnb__marginals){.ctx = ctx, .d = o->n_outputs, .m = m, .n_max = n};
    pnb_status status;
    PNB_TRY(pnb__inducing_init(&mg->inducing, ctx, m, n, o->jitter, err));
    PNB_TRY(pnb__factors_init(&mg->factors, ctx, o->is_shared ? PNB__F64 : o->real, m,
                              o->is_shared ? 1 : o->n_outputs, n, err));
    if (pnb__mul_overflows(m, m + 2 * n + 1, &room) || pnb__mul_overflows(room, 8, &room))
        PNB_TRY(pnb__fail_nomem(err, SIZE_MAX));
    mg->room = pnb__alloc_array(m * (m + 2 * n) + n, sizeof(double));
    if (mg->room == NULL)
        PNB_TRY(pnb__fail_nomem(err, room));
    mg->db = mg->room + m * (m + n);
    mg->known = mg->db + m * n;
done:
    if (status != PNB_OK)
        pnb__marginals_reset(mg);
    return status;
}

void pnb__marginals_reset(pnb__marginals *mg)
{
    pnb__inducing_reset(&mg->inducing);
    pnb__factors_reset(&mg->factors);
    pnb__free(mg->room);
    *mg = (pnb__marginals){0};
}

/* |b_n|^2 */
static void find_known(pnb__marginals *mg, size_t n)
{
    memset(mg->known, 0, n * sizeof *mg->known);
    for (size_t i = 0; i < mg->m; i++)
        for (size_t j = 0; j < n; j++)
            mg->known[j] += mg->set.b[i * n + j] * mg->set.b[i * n + j];
}

pnb_status pnb__marginals_factorise(pnb__marginals *mg, const pnb__process *p, pnb_error *err)
{
    mg->set = (pnb__inducing_set){
        .kernel = p->kernel, .z = p->z, .chol = mg->room, .b = mg->room + mg->m * mg->m};
    return pnb__inducing_factorise(&mg->inducing, &mg->set, err);
}

void pnb__marginals_at(pnb__marginals *mg, const pnb__process *p, const double *x, size_t n,
                       double *mean, double *var)
{
    size_t m = mg->m, d = mg->d;
    pnb__inducing_project(&mg->inducing, &mg->set, x, n);
    pnb__dense_multiply(
        &mg->inducing.kernels, mg->ctx,
        &(pnb__dense_product){.m = d, .n = n, .k = m, .a = p->q_mean, .b = mg->set.b, .alpha = 1},
        mean);
    for (size_t i = 0; i < d * n; i++)
        mean[i] += p->constant[i / n];
    if (var == NULL)
        return;
    find_known(mg, n);
    pnb__factors_forward(&mg->factors, p->factors, mg->set.b, n, var);
    for (size_t i = 0; i < mg->factors.n_factors * n; i++)
        var[i] += p->kernel.scale - mg->known[i % n];
}

static double repeats(const pnb__marginals *mg)
{
    return (double)mg->d / (double)mg->factors.n_factors;
}

static double with_means(const pnb__marginals *mg, const pnb__process *p, double of_factors)
{
    return 0.5 * pnb__dense_dot(p->q_mean, p->q_mean, mg->d * mg->m) + repeats(mg) * of_factors;
}

double pnb__marginals_divergence(const pnb__marginals *mg, const pnb__process *p)
{
    return with_means(mg, p, pnb__factors_divergence(&mg->factors, p->factors));
}

/* B' without the factors' part, in mg->db; sum of h */
static double slopes_of_b(pnb__marginals *mg, const pnb__process *p, size_t n,
                          const pnb__marginals_slopes *slopes)
{
    double *by_known = mg->known, total = 0;
    pnb__dense_multiply(&mg->inducing.kernels, mg->ctx,
                        &(pnb__dense_product){.m = mg->m,
                                              .n = n,
                                              .k = mg->d,
                                              .a = p->q_mean,
                                              .trans_a = true,
                                              .b = slopes->mean,
                                              .alpha = 1},
                        mg->db);
    memset(by_known, 0, n * sizeof *by_known);
    for (size_t i = 0; i < mg->factors.n_factors * n; i++)
        by_known[i % n] += slopes->var[i];
    for (size_t i = 0; i < mg->m * n; i++)
        mg->db[i] -= 2 * mg->set.b[i] * by_known[i % n];
    for (size_t i = 0; i < n; i++)
        total += by_known[i];
    return total;
}

static void means_backward(const pnb__marginals *mg, const pnb__process *p, size_t n,
                           const pnb__marginals_slopes *slopes, const pnb__process_grad *out)
{
    size_t m = mg->m, d = mg->d;
    for (size_t i = 0; i < d; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += slopes->mean[i * n + j];
        out->constant[i] = sum;
    }
    if (out->q_mean == NULL)
        return;
    pnb__dense_multiply(
        &mg->inducing.kernels, mg->ctx,
        &(pnb__dense_product){
            .m = d, .n = m, .k = n, .a = slopes->mean, .b = mg->set.b, .trans_b = true, .alpha = 1},
        out->q_mean);
    for (size_t i = 0; i < d * m; i++)
        out->q_mean[i] += slopes->weight * p->q_mean[i];
}

void pnb__marginals_backward(pnb__marginals *mg, const pnb__process *p, const double *x, size_t n,
                             const pnb__marginals_slopes *slopes, const pnb__process_grad *out)
{
    means_backward(mg, p, n, slopes, out);
    double prior = slopes_of_b(mg, p, n, slopes);
    pnb__factors_backward(&mg->factors, p->factors, slopes->var, repeats(mg) * slopes->weight, n,
                          &(pnb__factors_grad){out->factors, mg->db, out->divergence});
    if (out->divergence != NULL)
        *out->divergence = with_means(mg, p, *out->divergence);
    pnb__inducing_slopes by = {.db = mg->db, .dprior = prior};
    pnb__inducing_backward(&mg->inducing, &mg->set, x, n, &by, &out->kernel);
}
