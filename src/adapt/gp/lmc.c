/* Processes of their own for all outputs, and their mixing.
 *
 * A worker is a thread's room for one process; it goes through inducing.c and factors.c, which run
 * on one thread inside of it. Backwards, with g and h the slopes of the outputs' mean and var:
 *   mean_l' = W g,   var_l' = W^2 h,   W' = mean_l g^T + 2 W (var_l + jitter) h^T
 *   m_l' = B_l mean_l' + weight m_l,   c_l' = sum_n mean_l'
 *   B_l' = m_l mean_l'^T - 2 B_l diag(var_l') + what the factor adds
 * and inducing.c takes B_l' on to points and kernel. */
#include "adapt/gp/lmc.h"

#include <string.h>

#include "adapt/gp/factors/dense.h"

struct pnb__lmc_worker {
    pnb__inducing inducing;
    pnb__inducing_set set;
    pnb__factors factors; /* one at a time */
    double *room;         /* chol (M,M), B (M,N), dB (M,N) */
    double *db;
    pnb_error err;
};

/* ---- memory ---- */

static pnb_status open_worker(pnb__lmc *lmc, pnb__lmc_worker *w, pnb_error *err)
{
    size_t m = lmc->m, n = lmc->n_max;
    pnb_status status = pnb__inducing_init(&w->inducing, &lmc->alone, m, n, lmc->jitter, err);
    if (status == PNB_OK && lmc->real == PNB__F32)
        status = pnb__inducing_narrow(&w->inducing, err);
    if (status == PNB_OK)
        status = pnb__factors_init(&w->factors, &lmc->alone, lmc->real, m, 1, n, err);
    if (status != PNB_OK)
        return status;
    w->room = pnb__alloc_array(m * (m + 2 * n), sizeof *w->room);
    if (w->room == NULL)
        return pnb__fail_nomem(err, m * (m + 2 * n) * sizeof *w->room);
    w->set.chol = w->room;
    w->set.b = w->room + m * m;
    w->db = w->set.b + m * n;
    return PNB_OK;
}

static size_t real_bytes(const pnb__lmc *lmc)
{
    return lmc->real == PNB__F32 ? sizeof(float) : sizeof(double);
}

static size_t kept_bytes(const pnb__lmc *lmc)
{
    return (pnb__factor_slopes_kept(lmc->m) + lmc->m * lmc->n_max) * real_bytes(lmc);
}

pnb_status pnb__lmc_init(pnb__lmc *lmc, const pnb_ctx *ctx, const pnb__lmc_opts *o, pnb_error *err)
{
    size_t d = o->d, dn = o->d * o->n_max;
    size_t size = dn * (4 + o->q) + d * (d + 2);
    pnb_status status = PNB_OK;
    *lmc = (pnb__lmc){.ctx = ctx,
                      .alone = *ctx,
                      .d = d,
                      .m = o->m,
                      .q = o->q,
                      .n_max = o->n_max,
                      .jitter = o->jitter,
                      .real = o->real,
                      .n_workers = PNB_MIN((size_t)ctx->n_threads, d)};
    lmc->alone.n_threads = 1;
    pnb__kernels_fill_host(&lmc->kernels, ctx, PNB__F64);
    lmc->workers = pnb__alloc_zero(lmc->n_workers, sizeof *lmc->workers);
    lmc->room = pnb__alloc_array(size, sizeof *lmc->room);
    lmc->status = pnb__alloc_zero(d, sizeof *lmc->status);
    lmc->kept = pnb__alloc_array(d, kept_bytes(lmc));
    if (lmc->workers == NULL || lmc->room == NULL || lmc->status == NULL || lmc->kept == NULL)
        PNB_TRY(pnb__fail_nomem(err, size * sizeof *lmc->room));
    for (size_t i = 0; i < lmc->n_workers; i++)
        PNB_TRY(open_worker(lmc, &lmc->workers[i], err));
    lmc->f_mean = lmc->room;
    lmc->f_var = lmc->f_mean + dn;
    lmc->df_mean = lmc->f_var + dn;
    lmc->df_var = lmc->df_mean + dn;
    lmc->dx = lmc->df_var + dn;
    lmc->squares = lmc->dx + dn * o->q;
    lmc->divergence = lmc->squares + d * d;
    lmc->jitter_used = lmc->divergence + d;
done:
    if (status != PNB_OK)
        pnb__lmc_reset(lmc);
    return status;
}

void pnb__lmc_reset(pnb__lmc *lmc)
{
    for (size_t i = 0; lmc->workers != NULL && i < lmc->n_workers; i++) {
        pnb__inducing_reset(&lmc->workers[i].inducing);
        pnb__factors_reset(&lmc->workers[i].factors);
        pnb__free(lmc->workers[i].room);
    }
    pnb__free(lmc->workers);
    pnb__free(lmc->room);
    pnb__free(lmc->kept);
    pnb__free(lmc->status);
    *lmc = (pnb__lmc){0};
}

/* ---- a process ---- */

/* What the workers share in a pass over all processes. */
typedef struct pass {
    pnb__lmc *lmc;
    const pnb__lmc_process *p;
    const double *x;
    size_t n;
    double weight;
    const pnb__lmc_grad *out; /* NULL: forward */
} pass;

static const void *factor_of(const pass *s, size_t l, const void *factors)
{
    return (const char *)factors + l * pnb__factors_size(s->lmc->m, 1) * real_bytes(s->lmc);
}

static void set_process(const pass *s, pnb__lmc_worker *w, size_t l)
{
    const pnb__lmc_process *p = s->p;
    w->set.kernel = (pnb__gp_kernel){p->kind, s->lmc->q, 1, p->lengthscale + l, p->scale[l]};
    w->set.z = p->z + l * s->lmc->m * s->lmc->q;
}

/* L^-1 and B of process l into what is kept, or B back from there. */
static void keep(const pnb__lmc *lmc, pnb__lmc_worker *w, size_t l, size_t n)
{
    char *kept = (char *)lmc->kept + l * kept_bytes(lmc);
    float *b = (float *)(kept + pnb__factor_slopes_kept(lmc->m) * real_bytes(lmc));
    pnb__factor_slopes_invert(&w->inducing.slopes, w->set.chol);
    pnb__factor_slopes_keep(&w->inducing.slopes, kept);
    if (lmc->real == PNB__F64)
        memcpy(b, w->set.b, lmc->m * n * sizeof(double));
    for (size_t i = 0; lmc->real == PNB__F32 && i < lmc->m * n; i++)
        b[i] = (float)w->set.b[i];
}

static const void *put_back(const pnb__lmc *lmc, pnb__lmc_worker *w, size_t l, size_t n)
{
    const char *kept = (const char *)lmc->kept + l * kept_bytes(lmc);
    const float *b = (const float *)(kept + pnb__factor_slopes_kept(lmc->m) * real_bytes(lmc));
    if (lmc->real == PNB__F64)
        memcpy(w->set.b, b, lmc->m * n * sizeof(double));
    for (size_t i = 0; lmc->real == PNB__F32 && i < lmc->m * n; i++)
        w->set.b[i] = (double)b[i];
    return kept;
}

static pnb_status process_forward(const pass *s, pnb__lmc_worker *w, size_t l)
{
    pnb__lmc *lmc = s->lmc;
    size_t m = lmc->m, n = s->n;
    const double *q_mean = s->p->q_mean + l * m;
    double *mean = lmc->f_mean + l * n, *var = lmc->f_var + l * n;
    set_process(s, w, l);
    pnb_status status = pnb__inducing_factorise(&w->inducing, &w->set, &w->err);
    if (status != PNB_OK)
        return status;
    lmc->jitter_used[l] = w->set.jitter_used;
    pnb__inducing_project(&w->inducing, &w->set, s->x, n);
    keep(lmc, w, l, n);
    pnb__factors_forward(&w->factors, factor_of(s, l, s->p->factors), w->set.b, n, var);
    for (size_t j = 0; j < n; j++) {
        mean[j] = s->p->constant[l];
        var[j] += s->p->scale[l] + lmc->jitter;
    }
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double b = w->set.b[i * n + j];
            mean[j] += q_mean[i] * b;
            var[j] -= b * b;
        }
    lmc->divergence[l] = 0.5 * pnb__dense_dot(q_mean, q_mean, m) +
                         pnb__factors_divergence(&w->factors, factor_of(s, l, s->p->factors));
    return PNB_OK;
}

static void process_backward(const pass *s, pnb__lmc_worker *w, size_t l)
{
    pnb__lmc *lmc = s->lmc;
    size_t m = lmc->m, n = s->n, q = lmc->q;
    const pnb__lmc_grad *out = s->out;
    const double *q_mean = s->p->q_mean + l * m, *g = lmc->df_mean + l * n;
    const double *h = lmc->df_var + l * n;
    double *dq_mean = out->q_mean + l * m, prior = 0;
    const void *inverse = put_back(lmc, w, l, n);
    const void *factor = factor_of(s, l, s->p->factors);
    set_process(s, w, l);
    pnb__factors_forward(&w->factors, factor, w->set.b, n, lmc->f_var + l * n); /* for C^T B */
    out->constant[l] = out->lengthscale[l] = out->scale[l] = 0;
    for (size_t j = 0; j < n; j++) {
        out->constant[l] += g[j];
        prior += h[j];
    }
    for (size_t i = 0; i < m; i++) {
        const double *b = w->set.b + i * n;
        dq_mean[i] = s->weight * q_mean[i] + pnb__dense_dot(b, g, n);
        for (size_t j = 0; j < n; j++)
            w->db[i * n + j] = q_mean[i] * g[j] - 2 * b[j] * h[j];
    }
    const pnb__factors_grad by_factor = {(void *)(uintptr_t)factor_of(s, l, out->factors), w->db,
                                         NULL};
    pnb__factors_backward(&w->factors, factor, h, s->weight, n, &by_factor);
    const pnb__gp_kernel_grad by_kernel = {lmc->dx + l * n * q, out->z + l * m * q,
                                           out->lengthscale + l, out->scale + l};
    memset(by_kernel.dx, 0, n * q * sizeof *by_kernel.dx);
    memset(by_kernel.dz, 0, m * q * sizeof *by_kernel.dz);
    pnb__inducing_backward(
        &w->inducing, &w->set, s->x, n,
        &(pnb__inducing_slopes){.db = w->db, .inverse = inverse, .dprior = prior}, &by_kernel);
}

static void run_processes(void *user, size_t begin, size_t end, int thread)
{
    const pass *s = user;
    pnb__lmc_worker *w = &s->lmc->workers[thread];
    pnb_status status = PNB_OK;
    for (size_t l = begin; l < end && status == PNB_OK; l++)
        if (s->out == NULL)
            status = s->lmc->status[l] = process_forward(s, w, l);
        else
            process_backward(s, w, l);
}

/* The first process that failed says why: its chunk's worker stopped there. */
static pnb_status run_forward(pass *s, pnb_error *err)
{
    pnb__lmc *lmc = s->lmc;
    for (size_t l = 0; l < lmc->d; l++)
        lmc->status[l] = PNB_OK;
    for (size_t i = 0; i < lmc->n_workers; i++)
        lmc->workers[i].err = (pnb_error)PNB_ERROR_INIT;
    pnb__parallel_for(lmc->ctx, lmc->d, 1, run_processes, s);
    for (size_t l = 0; l < lmc->d; l++)
        for (size_t i = 0; lmc->status[l] != PNB_OK && i < lmc->n_workers; i++)
            if (lmc->workers[i].err.status != PNB_OK)
                return pnb__fail(err, lmc->status[l], "process %zu: %s", l,
                                 lmc->workers[i].err.text);
    return PNB_OK;
}

/* ---- the mixing ---- */

/* c (D,n) = op(w) f, or (D,D) = a b^T */
static void mix(const pnb__lmc *lmc, const double *w, bool transpose, const double *f, size_t n,
                double *c)
{
    pnb__dense_multiply(
        &lmc->kernels, lmc->ctx,
        &(pnb__dense_product){
            .m = lmc->d, .n = n, .k = lmc->d, .a = w, .trans_a = transpose, .b = f, .alpha = 1},
        c);
}

static void outer(const pnb__lmc *lmc, const double *a, const double *b, size_t n, double *c)
{
    pnb__dense_multiply(
        &lmc->kernels, lmc->ctx,
        &(pnb__dense_product){
            .m = lmc->d, .n = lmc->d, .k = n, .a = a, .b = b, .trans_b = true, .alpha = 1},
        c);
}

static void square_mixing(pnb__lmc *lmc, const pnb__lmc_process *p)
{
    for (size_t i = 0; i < lmc->d * lmc->d; i++)
        lmc->squares[i] = p->mixing[i] * p->mixing[i];
}

pnb_status pnb__lmc_at(pnb__lmc *lmc, const pnb__lmc_process *p, const double *x, size_t n,
                       double *mean, double *var, pnb_error *err)
{
    pass s = {.lmc = lmc, .p = p, .x = x, .n = n};
    pnb_status status = run_forward(&s, err);
    if (status != PNB_OK)
        return status;
    square_mixing(lmc, p);
    mix(lmc, p->mixing, true, lmc->f_mean, n, mean);
    mix(lmc, lmc->squares, true, lmc->f_var, n, var);
    for (size_t i = 0; i < lmc->d * n; i++)
        var[i] += lmc->jitter;
    return PNB_OK;
}

double pnb__lmc_divergence(const pnb__lmc *lmc)
{
    double sum = 0;
    for (size_t l = 0; l < lmc->d; l++)
        sum += lmc->divergence[l];
    return sum;
}

double pnb__lmc_jitter(const pnb__lmc *lmc)
{
    double most = lmc->jitter;
    for (size_t l = 0; l < lmc->d; l++)
        most = PNB_MAX(most, lmc->jitter_used[l]);
    return most;
}

void pnb__lmc_backward(pnb__lmc *lmc, const pnb__lmc_process *p, const double *x, size_t n,
                       const pnb__lmc_slopes *slopes, const pnb__lmc_grad *out)
{
    pass s = {.lmc = lmc, .p = p, .x = x, .n = n, .weight = slopes->weight, .out = out};
    size_t d = lmc->d;
    square_mixing(lmc, p);
    mix(lmc, p->mixing, false, slopes->mean, n, lmc->df_mean);
    mix(lmc, lmc->squares, false, slopes->var, n, lmc->df_var);
    outer(lmc, lmc->f_mean, slopes->mean, n, out->mixing);
    outer(lmc, lmc->f_var, slopes->var, n, lmc->squares);
    for (size_t i = 0; i < d * d; i++)
        out->mixing[i] += 2 * p->mixing[i] * lmc->squares[i];
    pnb__parallel_for(lmc->ctx, d, 1, run_processes, &s);
    for (size_t l = 0; l < d; l++)
        for (size_t i = 0; i < n * lmc->q; i++)
            out->x[i] += lmc->dx[l * n * lmc->q + i];
}
