/* A side in a step. With one kernel for all outputs marginals.c has what is computed of it, with
 * processes of their own lmc.c; the parameters are lists of the same kinds either way, with K = 1
 * or K = D kernels.
 *
 * "collapsed": q(v) is the bound's optimum at every step and no parameter; the slope of the bound
 * by all that remains is that of the objective with q(v) held fixed (the optimum is flat in it).
 * "exact" ties an inducing point to every latent: there are no points of its own. */
#include "adapt/grove/grove_side.h"

#include <math.h>
#include <string.h>

#include "adapt/gp/gp_exact.h"

enum { Z, KERNEL, CONSTANT, Q_MEAN, MIXING, N_SMALL };

/* ---- parameters ---- */

pnb_status pnb__fit_side_param(const pnb__fit_side *w, pnb__param *p, const char *name, size_t n,
                               pnb_error *err)
{
    size_t bytes = n * PNB__REAL_SIZE(w->real);
    *p = (pnb__param){.name = name, .n_dims = 1, .shape = {n}, .n = n, .trainable = true};
    pnb_status status = pnb__param_alloc(p, &w->kernels, bytes, err);
    if (status != PNB_OK)
        return status;
    p->grad = pnb__alloc_zero(n, PNB__REAL_SIZE(w->real));
    return p->grad != NULL ? PNB_OK : pnb__fail_nomem(err, bytes);
}

void pnb__fit_side_free_param(const pnb__fit_side *w, pnb__param *p)
{
    if (p->name == NULL)
        return;
    pnb__free(p->grad);
    pnb__param_free(p, &w->kernels, p->n * PNB__REAL_SIZE(w->real));
}

void pnb__fit_side_put_slopes(const pnb__fit_side *w, pnb__param *p, const double *slopes)
{
    if (w->real == PNB__F64) {
        memcpy(p->grad, slopes, p->n * sizeof *slopes);
        return;
    }
    for (size_t i = 0; i < p->n; i++)
        ((float *)p->grad)[i] = (float)slopes[i];
}

static const char *const names[PNB_N_ADAPTER_SIDES][PNB__GROVE_N_PARAMS] = {
    {"image.z", "image.kernel", "image.constant", "image.q_mean", "image.mixing", "image.factors"},
    {"text.z", "text.kernel", "text.constant", "text.q_mean", "text.mixing", "text.factors"}};

static size_t n_kernels(const pnb__fit_side *w)
{
    return pnb__grove_n_kernels(w->g, w->number);
}

/* Numbers in each of the kinds; of what is no parameter too, where it has doubles. */
static void find_sizes(const pnb__fit_side *w, size_t sizes[N_SMALL])
{
    size_t d = w->g->part[w->number].d, m = w->g->m;
    sizes[Z] = n_kernels(w) * m * w->g->q;
    sizes[KERNEL] = n_kernels(w) * PNB__GROVE_N_NUMBERS;
    sizes[CONSTANT] = d;
    sizes[Q_MEAN] = d * m;
    sizes[MIXING] = w->g->is_mixed ? d * d : 0;
}

static bool is_trained(const pnb__fit_side *w, int kind)
{
    if (kind == Z)
        return !w->is_exact;
    return kind == MIXING ? w->g->is_mixed : kind != Q_MEAN || !w->is_collapsed;
}

static pnb_status open_params(pnb__fit_side *w, const size_t sizes[N_SMALL], pnb_error *err)
{
    pnb__grove_part *part = &w->g->part[w->number];
    const double *const values[] = {part->z, w->numbers, part->constant, part->q_mean,
                                    part->mixing};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < sizes[KERNEL]; i++)
        w->numbers[i] = log(part->number[0][i]);
    for (int i = 0; i < N_SMALL && status == PNB_OK; i++) {
        pnb__param *p = &w->params[i];
        if (!is_trained(w, i))
            continue;
        status = pnb__fit_side_param(w, p, names[w->number][i], sizes[i], err);
        if (status == PNB_OK)
            status = pnb__param_write(p, &w->kernels, 0, p->n, values[i], err);
    }
    if (status != PNB_OK || w->is_collapsed)
        return status;
    size_t bytes = pnb__grove_factor_bytes(w->g, w->number);
    pnb__param *p = &w->params[PNB__GROVE_P_FACTORS];
    status = pnb__fit_side_param(w, p, names[w->number][PNB__GROVE_P_FACTORS],
                                 bytes / PNB__REAL_SIZE(w->real), err);
    if (status != PNB_OK)
        return status;
    memcpy(pnb__param_on_host(p, &w->kernels), part->factors, bytes);
    pnb__free(
        part->factors); /* as large as all else of the model: pnb__fit_side_take has it again */
    part->factors = NULL;
    return PNB_OK;
}

/* ---- memory ---- */

static pnb_status open_process(pnb__fit_side *w, pnb_error *err)
{
    const pnb__grove *g = w->g;
    size_t d = g->part[w->number].d;
    const pnb__marginals_opts shared = {.n_outputs = d,
                                        .m = g->m,
                                        .n_max = w->n,
                                        .jitter = pnb__grove_jitter(g),
                                        .is_shared = g->is_shared,
                                        .real = w->real};
    const pnb__lmc_opts own = {d, g->m, g->q, w->n, pnb__grove_jitter(g), w->real};
    return g->is_mixed ? pnb__lmc_init(&w->lmc, w->ctx, &own, err)
                       : pnb__marginals_init(&w->marginals, w->ctx, &shared, err);
}

pnb_status pnb__fit_side_open(pnb__fit_side *w, pnb_error *err)
{
    size_t m = w->g->m, d = w->g->part[w->number].d, dn = d * w->n, sizes[N_SMALL], small = 0;
    size_t n_var = w->g->is_mixed ? d : pnb__grove_n_factors(w->g, w->number);
    pnb__kernels_fill_host(&w->kernels, w->ctx, w->real);
    pnb_status status = open_process(w, err);
    if (status != PNB_OK)
        return status;
    find_sizes(w, sizes);
    for (int i = 0; i < N_SMALL; i++)
        small += 2 * sizes[i];
    size_t all = small + sizes[KERNEL] + 4 * dn + 2 * n_var * w->n + (w->is_collapsed ? m * m : 0);
    double *room = w->numbers = pnb__alloc_zero(all, sizeof *room);
    if (room == NULL)
        return pnb__fail_nomem(err, all * sizeof *room);
    room += sizes[KERNEL];
    for (int i = 0; i < N_SMALL; i++) {
        w->value[i] = room;
        w->slope[i] = room + sizes[i];
        room += 2 * sizes[i];
    }
    w->mean = room;
    w->dmean = w->mean + dn;
    w->y = w->dmean + dn;
    w->rows = w->y + dn;
    w->var = w->rows + dn;
    w->dvar = w->var + n_var * w->n;
    w->q_chol = w->dvar + n_var * w->n;
    if (w->is_collapsed) {
        w->collapsed = pnb__alloc_array(pnb__factors_size(m, 1), sizeof(double));
        if (w->collapsed == NULL)
            return pnb__fail_nomem(err, m * m * sizeof(double));
    }
    return open_params(w, sizes, err);
}

void pnb__fit_side_finish(pnb__fit_side *w)
{
    if (w->is_collapsed)
        return;
    pnb__marginals_reset(&w->marginals);
    pnb__lmc_reset(&w->lmc);
}

void pnb__fit_side_close(pnb__fit_side *w)
{
    for (int i = 0; i < PNB__GROVE_N_PARAMS; i++)
        pnb__fit_side_free_param(w, &w->params[i]);
    pnb__marginals_reset(&w->marginals);
    pnb__lmc_reset(&w->lmc);
    pnb__free(w->numbers);
    pnb__free(w->collapsed);
}

/* ---- a step ---- */

static pnb__process process_of(const pnb__fit_side *w, const double *x)
{
    const double *kernel = w->value[KERNEL];
    const pnb__param *factors = &w->params[PNB__GROVE_P_FACTORS];
    return (pnb__process){.kernel = {w->g->kind, w->g->q, 1, &kernel[PNB__GROVE_LENGTHSCALE],
                                     kernel[PNB__GROVE_SCALE]},
                          .z = w->is_exact ? x : w->value[Z],
                          .constant = w->value[CONSTANT],
                          .q_mean = w->value[Q_MEAN],
                          .factors = w->is_collapsed ? w->collapsed
                                                     : pnb__param_on_host(factors, &w->kernels)};
}

static pnb__lmc_process lmc_process_of(const pnb__fit_side *w)
{
    size_t k = n_kernels(w);
    const double *kernel = w->value[KERNEL];
    return (pnb__lmc_process){.kind = w->g->kind,
                              .z = w->value[Z],
                              .lengthscale = kernel + PNB__GROVE_LENGTHSCALE * k,
                              .scale = kernel + PNB__GROVE_SCALE * k,
                              .constant = w->value[CONSTANT],
                              .q_mean = w->value[Q_MEAN],
                              .factors =
                                  pnb__param_on_host(&w->params[PNB__GROVE_P_FACTORS], &w->kernels),
                              .mixing = w->value[MIXING]};
}

/* Parameters as doubles. */
static pnb_status read_params(pnb__fit_side *w, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (int i = 0; i < N_SMALL && status == PNB_OK; i++) {
        pnb__param *p = &w->params[i];
        if (p->name != NULL)
            status = pnb__param_read(p, &w->kernels, 0, p->n, w->value[i], err);
    }
    for (size_t i = 0; i < w->params[KERNEL].n; i++)
        w->value[KERNEL][i] = exp(w->value[KERNEL][i]);
    return status;
}

/* The best q(v) for this step's kernel, points and latents. */
static pnb_status collapse(pnb__fit_side *w, const pnb__grove_pairs *pairs, const uint32_t *batch,
                           const double *x, pnb_error *err)
{
    pnb__process p = process_of(w, x);
    pnb__marginals *mg = &w->marginals;
    pnb_status status = pnb__marginals_factorise(mg, &p, err);
    if (status != PNB_OK)
        return status;
    pnb__grove_rows(w->g, pairs, w->number, batch, w->n, w->rows);
    pnb__gp_data data = {.n = w->n,
                         .n_outputs = w->g->part[w->number].d,
                         .x = x,
                         .y = w->rows,
                         .constant = w->value[CONSTANT],
                         .noise = w->value[KERNEL][PNB__GROVE_NOISE]};
    pnb__gp_collapsed_out out = {.q_mean = w->value[Q_MEAN], .q_chol = w->q_chol};
    status = pnb__gp_collapsed(&mg->inducing, &mg->set, &data, &out, err);
    if (status == PNB_OK)
        pnb__factors_fill(&mg->factors, w->q_chol, w->collapsed);
    return status;
}

static pnb_status find_marginals(pnb__fit_side *w, const pnb__grove_pairs *pairs,
                                 const uint32_t *batch, const double *x, pnb_error *err)
{
    pnb_status status;
    if (w->g->is_mixed) {
        pnb__lmc_process own = lmc_process_of(w);
        status = pnb__lmc_at(&w->lmc, &own, x, w->n, w->mean, w->var, err);
        if (status == PNB_OK)
            w->jitter = fmax(w->jitter, pnb__lmc_jitter(&w->lmc));
        return status;
    }
    pnb__process p = process_of(w, x);
    status = w->is_collapsed ? collapse(w, pairs, batch, x, err)
                             : pnb__marginals_factorise(&w->marginals, &p, err);
    if (status != PNB_OK)
        return status;
    pnb__marginals_at(&w->marginals, &p, x, w->n, w->mean, w->var);
    w->jitter = fmax(w->jitter, w->marginals.set.jitter_used);
    return PNB_OK;
}

pnb_status pnb__fit_side_forward(pnb__fit_side *w, const pnb__grove_pairs *pairs,
                                 const uint32_t *batch, const double *x, pnb__pair_side *terms,
                                 pnb_error *err)
{
    size_t d = w->g->part[w->number].d, noise = PNB__GROVE_NOISE * n_kernels(w);
    pnb_status status = read_params(w, err);
    if (status == PNB_OK)
        status = find_marginals(w, pairs, batch, x, err);
    if (status != PNB_OK)
        return status;
    pnb__grove_columns(w->g, pairs, w->number, batch, w->n, w->y);
    *terms = (pnb__pair_side){.n_outputs = d,
                              .n_factors = w->g->is_mixed ? d : w->marginals.factors.n_factors,
                              .y = w->y,
                              .mean = w->mean,
                              .var = w->var,
                              .noise = w->value[KERNEL] + noise,
                              .n_noises = n_kernels(w),
                              .dmean = w->dmean,
                              .dvar = w->dvar,
                              .dnoise = w->slope[KERNEL] + noise};
    return PNB_OK;
}

static double shared_backward(pnb__fit_side *w, const double *x, double weight, double *dx)
{
    pnb__process process = process_of(w, x);
    double *kernel = w->slope[KERNEL], divergence = 0;
    kernel[PNB__GROVE_LENGTHSCALE] = kernel[PNB__GROVE_SCALE] = 0;
    memset(w->slope[Z], 0, w->g->m * w->g->q * sizeof *w->slope[Z]);
    const pnb__process_grad grad = {
        .kernel = {dx, w->is_exact ? dx : w->slope[Z], &kernel[PNB__GROVE_LENGTHSCALE],
                   &kernel[PNB__GROVE_SCALE]},
        .constant = w->slope[CONSTANT],
        .q_mean = w->is_collapsed ? NULL : w->slope[Q_MEAN],
        .factors = w->is_collapsed ? NULL : w->params[PNB__GROVE_P_FACTORS].grad,
        .divergence = w->is_collapsed ? NULL : &divergence};
    const pnb__marginals_slopes slopes = {w->dmean, w->dvar, weight};
    pnb__marginals_backward(&w->marginals, &process, x, w->n, &slopes, &grad);
    return w->is_collapsed ? pnb__marginals_divergence(&w->marginals, &process) : divergence;
}

static double lmc_backward(pnb__fit_side *w, const double *x, double weight, double *dx)
{
    size_t k = n_kernels(w);
    pnb__lmc_process process = lmc_process_of(w);
    const pnb__lmc_grad grad = {.x = dx,
                                .z = w->slope[Z],
                                .lengthscale = w->slope[KERNEL] + PNB__GROVE_LENGTHSCALE * k,
                                .scale = w->slope[KERNEL] + PNB__GROVE_SCALE * k,
                                .constant = w->slope[CONSTANT],
                                .q_mean = w->slope[Q_MEAN],
                                .factors = w->params[PNB__GROVE_P_FACTORS].grad,
                                .mixing = w->slope[MIXING]};
    const pnb__lmc_slopes slopes = {w->dmean, w->dvar, weight};
    pnb__lmc_backward(&w->lmc, &process, x, w->n, &slopes, &grad);
    return pnb__lmc_divergence(&w->lmc);
}

double pnb__fit_side_backward(pnb__fit_side *w, const double *x, double weight, double *dx)
{
    double divergence =
        w->g->is_mixed ? lmc_backward(w, x, weight, dx) : shared_backward(w, x, weight, dx);
    for (size_t i = 0; i < w->params[KERNEL].n; i++) /* by the logarithm */
        w->slope[KERNEL][i] *= w->value[KERNEL][i];
    for (int i = 0; i < N_SMALL; i++)
        if (w->params[i].name != NULL)
            pnb__fit_side_put_slopes(w, &w->params[i], w->slope[i]);
    return divergence;
}

/* ---- the end ---- */

pnb_status pnb__fit_side_take(pnb__fit_side *w, const pnb__grove_pairs *pairs,
                              const uint32_t *batch, const double *x, pnb_error *err)
{
    pnb__grove_part *part = &w->g->part[w->number];
    double *const to[] = {part->z, part->number[0], part->constant, part->q_mean, part->mixing};
    size_t sizes[N_SMALL];
    pnb_status status = read_params(w, err);
    if (status == PNB_OK && w->is_collapsed) /* q(v) belongs to the last step's parameters */
        status = collapse(w, pairs, batch, x, err);
    size_t bytes = pnb__grove_factor_bytes(w->g, w->number);
    if (status == PNB_OK && part->factors == NULL) {
        part->factors = pnb__alloc_array(bytes, 1);
        status = part->factors != NULL ? PNB_OK : pnb__fail_nomem(err, bytes);
    }
    if (status != PNB_OK)
        return status;
    find_sizes(w, sizes);
    for (int i = 0; i < N_SMALL; i++)
        if (sizes[i] > 0)
            memcpy(to[i], i == Z && w->is_exact ? x : w->value[i], sizes[i] * sizeof *to[i]);
    memcpy(part->factors,
           w->is_collapsed ? w->collapsed
                           : pnb__param_on_host(&w->params[PNB__GROVE_P_FACTORS], &w->kernels),
           bytes);
    return PNB_OK;
}
