/* Rows that training did not see. Their latent is where the process explains them best (latent.c);
 * from there the process says mean and variance.
 *
 *   x* = argmin -E log N(y | f(x), s2),   mean = unit mean(x*),   var = unit^2 (var(x*) + s2)
 * The latent's own spread V is propagated, as the paper's section 3.3 has it and its code has not:
 *   var_d += J_d V J_d^T,   J_d = d mean_d / dx
 * "laplace": V = (H + I)^-1, H the second derivatives at x*. With hundreds of outputs that is next
 * to nothing: a row says very well where it lies itself. What an ambiguous row does not say is
 * where its counterpart lies, and training knows that: "counterparts" adds the mean of what those
 * of similar rows strayed (grove_strays.c), "pairs" takes for V the mean of e e^T over the NEAREST
 * of a sample of pairs, e from the latent of the row alone to that of the pair. Searches begin at
 * the recogniser's latent and at the inducing point where the row is likeliest; per output
 * (lmc_latent.c), where every output has points of its own, at the recogniser's alone.
 */
#include <math.h>
#include <string.h>

#include "adapt/gp/factors/dense.h"
#include "adapt/gp/lmc_latent.h"
#include "adapt/grove/grove.h"

enum {
    CHUNK = PNB__GROVE_CHUNK,
    LMC_STEPS = 20,
    N_STARTS = 2,
    ADAM_STEPS = 20,
    STREAM_ADAM = 64,
    NEAREST = 48, /* pairs */
    NEAREST_COUNTERPARTS = 32
};
#define ADAM_RATE 0.1

struct pnb__grove_reader {
    const pnb_ctx *ctx;
    pnb__kernels kernels;
    pnb__process process;
    pnb__inducing inducing;
    pnb__inducing_set set;
    pnb__latent_search search;
    pnb__lmc_search lmc;              /* per output, instead of all below */
    double *chol, *noise, *k, *level; /* (M,M), (D), k(Z,Z) (M,M), value at each point (M) */
};

/* ---- once for a side ---- */

void pnb__grove_reader_free(pnb__grove_reader *r)
{
    if (r == NULL)
        return;
    pnb__latent_search_reset(&r->search);
    pnb__lmc_search_reset(&r->lmc);
    pnb__inducing_reset(&r->inducing);
    pnb__free(r->chol);
    pnb__free(r);
}

/* sum_d C_d C_d^T / s2 */
static pnb_status make_gram(const pnb__grove *g, int side, const pnb_ctx *ctx, double *gram,
                            pnb_error *err)
{
    const pnb__grove_part *part = &g->part[side];
    pnb__factors f;
    size_t n = pnb__grove_n_factors(g, side);
    pnb_status status =
        pnb__factors_init(&f, ctx, g->is_shared ? PNB__F64 : PNB__F32, g->m, n, 1, err);
    if (status == PNB_OK)
        status = pnb__factors_gram(&f, part->factors, gram, err);
    for (size_t i = 0; status == PNB_OK && i < g->m * g->m; i++)
        gram[i] *= (double)part->d / ((double)n * part->number[PNB__GROVE_NOISE][0]);
    pnb__factors_reset(&f);
    return status;
}

/* 1/2 k^T G k of every inducing point's k. */
static void find_levels(pnb__grove_reader *r, double *room)
{
    size_t m = r->search.m;
    pnb__gp_kernel_matrix(&r->process.kernel, r->process.z, m, r->process.z, m, r->k);
    pnb__dense_multiply(
        &r->kernels, r->ctx,
        &(pnb__dense_product){.m = m, .n = m, .k = m, .a = r->k, .b = r->search.form, .alpha = 1},
        room);
    for (size_t i = 0; i < m; i++)
        r->level[i] = 0.5 * pnb__dense_dot(room + i * m, r->k + i * m, m);
}

static pnb_status fill_reader(pnb__grove_reader *r, const pnb__grove *g, int side, double *gram,
                              pnb_error *err)
{
    const pnb__grove_part *part = &g->part[side];
    size_t m = g->m;
    pnb_status status;
    r->process = pnb__grove_process(g, side);
    r->set =
        (pnb__inducing_set){.kernel = r->process.kernel, .z = part->z, .chol = r->chol, .b = r->k};
    PNB_TRY(pnb__inducing_init(&r->inducing, r->ctx, m, 1, PNB__GROVE_JITTER, err));
    PNB_TRY(pnb__inducing_factorise(&r->inducing, &r->set, err));
    PNB_TRY(make_gram(g, side, r->ctx, gram, err));
    for (size_t i = 0; i < part->d; i++)
        r->noise[i] = part->number[PNB__GROVE_NOISE][0];
    const pnb__latent_model model = {.set = &r->set,
                                     .m = m,
                                     .n_outputs = part->d,
                                     .q_mean = part->q_mean,
                                     .constant = part->constant,
                                     .noise = r->noise,
                                     .gram = gram};
    PNB_TRY(pnb__latent_search_init(&r->search, &r->inducing, &model, err));
    find_levels(r, gram);
done:
    return status;
}

/* Per output. */
static pnb_status make_lmc_reader(pnb__grove *g, int side, const pnb_ctx *ctx, pnb_error *err)
{
    const pnb__grove_part *part = &g->part[side];
    const pnb__lmc_process process = pnb__grove_lmc_process(g, side);
    const pnb__lmc_opts opts = {part->d, g->m, g->q, CHUNK, pnb__grove_jitter(g), PNB__F32};
    pnb__grove_reader *r = pnb__alloc_zero(1, sizeof *r);
    if (r == NULL)
        return pnb__fail_nomem(err, sizeof *r);
    r->ctx = ctx;
    pnb__kernels_fill_host(&r->kernels, ctx, PNB__F64);
    pnb_status status =
        pnb__lmc_search_init(&r->lmc, ctx, &process, &opts, part->number[PNB__GROVE_NOISE], err);
    if (status != PNB_OK) {
        pnb__grove_reader_free(r);
        return status;
    }
    g->reader[side] = r;
    return PNB_OK;
}

pnb_status pnb__grove_reader_make(pnb__grove *g, int side, const pnb_ctx *ctx, pnb_error *err)
{
    pnb__grove_reader_free(g->reader[side]);
    g->reader[side] = NULL;
    if (g->is_mixed)
        return make_lmc_reader(g, side, ctx, err);
    size_t m = g->m, d = g->part[side].d;
    pnb__grove_reader *r = pnb__alloc_zero(1, sizeof *r);
    double *gram = pnb__alloc_array(m, m * sizeof *gram);
    pnb_status status = PNB_OK;
    if (r == NULL || gram == NULL)
        PNB_TRY(pnb__fail_nomem(err, m * m * sizeof *gram));
    r->ctx = ctx;
    pnb__kernels_fill_host(&r->kernels, ctx, PNB__F64);
    r->chol = pnb__alloc_array(2 * m * m + m + d, sizeof *r->chol);
    if (r->chol == NULL)
        PNB_TRY(pnb__fail_nomem(err, 2 * m * m * sizeof *r->chol));
    r->k = r->chol + m * m;
    r->level = r->k + m * m;
    r->noise = r->level + m;
    PNB_TRY(fill_reader(r, g, side, gram, err));
    g->reader[side] = r;
    r = NULL;
done:
    pnb__grove_reader_free(r);
    pnb__free(gram);
    return status;
}

/* ---- rows ---- */

struct pnb__grove_reading {
    const pnb__grove *g;
    const pnb__grove_part *part;
    const pnb__grove_reader *r;
    const pnb_adapter_opts *opts;
    bool has_marginals; /* made when they are asked for: their room is the largest */
    pnb__marginals marginals;
    double *y, *centred, *start, *x, *hessian; /* (n,D), (n,D), (n,2,Q), (n,Q), (n,Q,Q) */
    double *pulled, *scores;                   /* (n,M) twice */
    double *mean, *var;                        /* (D,n), (F,n) */
    double *slopes, *jacobian;                 /* k' of one row (M,Q), (D,Q) */
    double *jacobians;                         /* per output (D,n,Q): of all rows */
};
typedef struct pnb__grove_reading reading;

/* What the process says at x (n,Q) into w->mean and, where it is wanted, w->var. */
static pnb_status say_here(reading *w, const double *x, size_t n, bool wants_var, pnb_error *err)
{
    const pnb__marginals_opts opts = {.n_outputs = w->part->d,
                                      .m = w->g->m,
                                      .n_max = CHUNK,
                                      .jitter = PNB__GROVE_JITTER,
                                      .is_shared = w->g->is_shared,
                                      .real = PNB__F32};
    pnb_status status = PNB_OK;
    if (!w->has_marginals) {
        PNB_TRY(pnb__marginals_init(&w->marginals, w->r->ctx, &opts, err));
        w->has_marginals = true;
        status = pnb__marginals_factorise(&w->marginals, &w->r->process, err);
    }
done:
    if (status == PNB_OK)
        pnb__marginals_at(&w->marginals, &w->r->process, x, n, w->mean, wants_var ? w->var : NULL);
    return status;
}

static pnb_status open_reading(reading *w, pnb_error *err)
{
    size_t n = CHUNK, d = w->part->d, q = w->g->q, m = w->g->m;
    size_t factors = w->g->is_shared ? 1 : d, all = w->g->is_mixed ? n * d * q : 0;
    size_t size = n * (3 * d + factors + q * (3 + q) + 2 * m) + (m + d) * q + all;
    w->y = pnb__alloc_array(size, sizeof *w->y);
    if (w->y == NULL)
        return pnb__fail_nomem(err, size * sizeof *w->y);
    w->centred = w->y + n * d;
    w->mean = w->centred + n * d;
    w->var = w->mean + n * d;
    w->start = w->var + n * factors;
    w->x = w->start + n * N_STARTS * q;
    w->hessian = w->x + n * q;
    w->pulled = w->hessian + n * q * q;
    w->scores = w->pulled + n * m;
    w->slopes = w->scores + n * m;
    w->jacobian = w->slopes + m * q;
    w->jacobians = w->jacobian + d * q;
    return PNB_OK;
}

static pnb_status take_rows(reading *w, const pnb__adapter_block *block, size_t begin, size_t n,
                            pnb_error *err)
{
    size_t d = w->part->d;
    double square;
    for (size_t i = 0; i < n; i++) {
        const float *x = block->x + (begin + i) * d;
        pnb_status status =
            pnb__adapter_square(x, d, block->first + begin + i, block->what, &square, err);
        if (status != PNB_OK)
            return status;
        for (size_t k = 0; k < d; k++) {
            w->y[i * d + k] = (double)x[k] / w->g->unit;
            w->centred[i * d + k] = w->y[i * d + k] - w->part->constant[k];
        }
    }
    return PNB_OK;
}

/* The recogniser's latent of row i. */
static void recognise(const reading *w, size_t i, double *out)
{
    size_t d = w->part->d;
    for (size_t q = 0; q < w->g->q; q++) {
        const double *row = w->part->recognise + q * (d + 1);
        out[q] = pnb__dense_dot(row, w->centred + i * d, d) + row[d];
    }
}

/* Of the points' values 1/2 k^T G k - k^T h the lowest: h = pull^T centred. */
static void best_points(reading *w, size_t n)
{
    const pnb__grove_reader *r = w->r;
    size_t m = w->g->m, q = w->g->q;
    pnb__dense_multiply(
        &r->kernels, r->ctx,
        &(pnb__dense_product){
            .m = n, .n = m, .k = w->part->d, .a = w->centred, .b = r->search.pull, .alpha = 1},
        w->pulled);
    pnb__dense_multiply(
        &r->kernels, r->ctx,
        &(pnb__dense_product){.m = n, .n = m, .k = m, .a = w->pulled, .b = r->k, .alpha = 1},
        w->scores);
    for (size_t i = 0; i < n; i++) {
        size_t best = 0;
        for (size_t k = 1; k < m; k++)
            if (r->level[k] - w->scores[i * m + k] < r->level[best] - w->scores[i * m + best])
                best = k;
        memcpy(w->start + (i * N_STARTS + 1) * q, w->part->z + best * q, q * sizeof *w->start);
    }
}

/* Where the released search begins: of the row, not the block. */
static void draw_starts(reading *w, size_t n, size_t first)
{
    size_t q = w->g->q;
    for (size_t i = 0; i < n; i++) {
        pnb__rng rng;
        pnb__rng_init(&rng, w->opts->seed, STREAM_ADAM + first + i);
        for (size_t k = 0; k < q; k++)
            w->start[i * q + k] = pnb__rng_normal(&rng);
    }
}

static pnb_status find_lmc_latents(reading *w, size_t n, size_t first, pnb_error *err)
{
    size_t q = w->g->q;
    bool is_adam = w->opts->inference == PNB_GROVE_ADAM;
    const pnb__lmc_search_opts newton = {LMC_STEPS, 1e-3, 0}, adam = {ADAM_STEPS, 0, ADAM_RATE};
    const pnb__lmc_reading out = {w->x, w->hessian, w->mean, w->var, w->jacobians};
    if (is_adam)
        draw_starts(w, n, first);
    for (size_t i = 0; i < n && !is_adam; i++)
        recognise(w, i, w->start + i * q);
    memcpy(w->x, w->start, n * q * sizeof *w->x);
    return pnb__lmc_search_run(&w->r->lmc, w->y, n, is_adam ? &adam : &newton, &out, err);
}

/* Latents of n rows; per output what the processes say of them too. */
static pnb_status find_latents(reading *w, size_t n, size_t first, pnb_error *err)
{
    size_t q = w->g->q;
    bool is_adam = w->opts->inference == PNB_GROVE_ADAM;
    pnb__latent_opts opts = pnb__latent_opts_default();
    const pnb__latent_out out = {.x = w->x, .hessian = w->hessian};
    if (w->g->is_mixed)
        return find_lmc_latents(w, n, first, err);
    if (is_adam) {
        opts = (pnb__latent_opts){.max_steps = ADAM_STEPS, .adam_rate = ADAM_RATE};
        draw_starts(w, n, first);
    }
    for (size_t i = 0; i < n && !is_adam; i++)
        recognise(w, i, w->start + i * N_STARTS * q);
    if (!is_adam)
        best_points(w, n);
    return pnb__latent_search_run(&w->r->search, w->y, n, w->start, is_adam ? 1 : N_STARTS, &opts,
                                  &out, err);
}

/* Lower factor of a (Q,Q) in place, Q is small; where it is not positive it counts as flat. */
static void factor_small(double *h, size_t q)
{
    for (size_t i = 0; i < q; i++)
        for (size_t j = 0; j <= i; j++) {
            double v = h[i * q + j];
            for (size_t p = 0; p < j; p++)
                v -= h[i * q + p] * h[j * q + p];
            h[i * q + j] = i == j ? sqrt(fmax(v, 1e-12)) : v / h[j * q + j];
        }
}

/* J = d mean / dx (D,Q) at the latent of row i of n. */
static void mean_slopes(reading *w, size_t i, size_t n)
{
    size_t q = w->g->q;
    for (size_t k = 0; w->g->is_mixed && k < w->part->d; k++)
        memcpy(w->jacobian + k * q, w->jacobians + (k * n + i) * q, q * sizeof *w->jacobian);
    if (w->g->is_mixed)
        return;
    pnb__gp_kernel_slopes(&w->r->process.kernel, w->x + i * w->g->q, w->part->z, w->g->m,
                          w->slopes);
    pnb__dense_multiply(&w->r->kernels, w->r->ctx,
                        &(pnb__dense_product){.m = w->part->d,
                                              .n = w->g->q,
                                              .k = w->g->m,
                                              .a = w->r->search.pull,
                                              .b = w->slopes,
                                              .alpha = w->part->number[PNB__GROVE_NOISE][0]},
                        w->jacobian);
}

/* added_d = J_d (H + I)^-1 J_d^T */
static void by_curvature(reading *w, size_t i, double *added)
{
    size_t q = w->g->q;
    double *h = w->hessian + i * q * q;
    for (size_t a = 0; a < q; a++)
        h[a * q + a] = fmax(h[a * q + a], 0) + 1;
    factor_small(h, q);
    for (size_t k = 0; k < w->part->d; k++) {
        double *j = w->jacobian + k * q;
        for (size_t a = 0; a < q; a++) {
            for (size_t b = 0; b < a; b++)
                j[a] -= h[a * q + b] * j[b];
            j[a] /= h[a * q + a];
            added[k] += j[a] * j[a];
        }
    }
}

/* Numbers of the `most` (up to NEAREST) kept latents nearest to x, in no order; how many. */
static size_t nearest_kept(const reading *w, const double *x, size_t most, size_t near[NEAREST])
{
    double apart[NEAREST];
    size_t n = 0, q = w->g->q, worst = 0;
    for (size_t s = 0; s < w->part->n_missed; s++) {
        double sum = 0;
        for (size_t a = 0; a < q; a++) {
            double by = w->part->found[s * q + a] - x[a];
            sum += by * by;
        }
        if (n == most && sum >= apart[worst])
            continue;
        size_t at = n < most ? n++ : worst;
        near[at] = s;
        apart[at] = sum;
        for (size_t i = worst = 0; i < n; i++)
            worst = apart[i] > apart[worst] ? i : worst;
    }
    return n;
}

/* added_d = mean over the nearest of (J_d e)^2, e by how far their pairs' latents were missed */
static void by_pairs(reading *w, size_t i, double *added)
{
    size_t q = w->g->q, near[NEAREST];
    size_t n = nearest_kept(w, w->x + i * q, NEAREST, near);
    double *spread = w->hessian + i * q * q;
    memset(spread, 0, q * q * sizeof *spread);
    for (size_t s = 0; s < n; s++)
        for (size_t a = 0; a < q; a++)
            for (size_t b = 0; b < q; b++)
                spread[a * q + b] +=
                    w->part->missed[near[s] * q + a] * w->part->missed[near[s] * q + b] / (double)n;
    for (size_t k = 0; k < w->part->d; k++)
        for (size_t a = 0; a < q; a++)
            for (size_t b = 0; b < q; b++)
                added[k] += w->jacobian[k * q + a] * spread[a * q + b] * w->jacobian[k * q + b];
}

/* added_d = mean over the nearest of what their counterparts strayed */
static void by_counterparts(const reading *w, size_t i, double *added)
{
    size_t near[NEAREST], d = w->part->d;
    size_t n = nearest_kept(w, w->x + i * w->g->q, NEAREST_COUNTERPARTS, near);
    for (size_t s = 0; s < n; s++)
        for (size_t k = 0; k < d; k++)
            added[k] += w->part->strayed[near[s] * d + k] / (double)n;
}

static void put_row(reading *w, const pnb__adapter_block *block, size_t begin, size_t i, size_t n)
{
    size_t d = w->part->d;
    double unit = w->g->unit, *added = w->y; /* the row's numbers are not wanted any more */
    float *mean = block->out->mean + (begin + i) * d, *log_var = block->out->log_var;
    log_var += (begin + i) * d;
    memset(added, 0, d * sizeof *added);
    pnb_grove_latent how = w->opts->latent_uncertainty;
    if (how == PNB_GROVE_LATENT_LAPLACE || how == PNB_GROVE_LATENT_PAIRS)
        mean_slopes(w, i, n);
    if (how == PNB_GROVE_LATENT_LAPLACE)
        by_curvature(w, i, added);
    if (how == PNB_GROVE_LATENT_PAIRS)
        by_pairs(w, i, added);
    if (how == PNB_GROVE_LATENT_COUNTERPARTS)
        by_counterparts(w, i, added);
    for (size_t k = 0; k < d; k++) {
        double var = w->var[w->g->is_shared ? i : k * n + i];
        mean[k] = (float)(unit * w->mean[k * n + i]);
        double noise = w->part->number[PNB__GROVE_NOISE][w->g->is_mixed ? k : 0];
        log_var[k] = (float)log(unit * unit * (fmax(var, 0) + fmax(added[k], 0) + noise));
    }
}

/* Latents of the rows of pairs, as if they were new, into w->x. */
static pnb_status place(reading *w, const pnb__grove_pairs *pairs, int side, const uint32_t *pair,
                        size_t n, pnb_error *err)
{
    size_t d = w->part->d;
    pnb__grove_rows(w->g, pairs, side, pair, n, w->y);
    for (size_t i = 0; i < n * d; i++)
        w->centred[i] = w->y[i] - w->part->constant[i % d];
    return find_latents(w, n, 0, err);
}

static void close_reading(reading *w)
{
    pnb__marginals_reset(&w->marginals);
    pnb__free(w->y);
}

pnb_status pnb__grove_reading_open(pnb__grove_reading **out, const pnb__grove *g, int side,
                                   pnb_error *err)
{
    static const pnb_adapter_opts by_newton = {.inference = PNB_GROVE_NEWTON};
    reading *w = pnb__alloc_zero(1, sizeof *w);
    if (w == NULL)
        return pnb__fail_nomem(err, sizeof *w);
    *w = (reading){.g = g, .part = &g->part[side], .r = g->reader[side], .opts = &by_newton};
    pnb_status status = open_reading(w, err);
    if (status != PNB_OK) {
        pnb__grove_reading_free(w);
        return status;
    }
    *out = w;
    return PNB_OK;
}

void pnb__grove_reading_free(pnb__grove_reading *w)
{
    if (w == NULL)
        return;
    close_reading(w);
    pnb__free(w);
}

pnb_status pnb__grove_place(pnb__grove_reading *w, const pnb__grove_pairs *pairs,
                            const uint32_t *pair, size_t n, double *x, pnb_error *err)
{
    int side = w->part == &w->g->part[1];
    pnb_status status = place(w, pairs, side, pair, n, err);
    if (status == PNB_OK)
        memcpy(x, w->x, n * w->g->q * sizeof *x);
    return status;
}

/* Per output. */
static pnb_status say_mixed(reading *w, const double *x, size_t n, pnb_error *err)
{
    const pnb__lmc_search_opts stay = {0, 0, 0};
    const pnb__lmc_reading out = {w->x, w->hessian, w->mean, w->var, w->jacobians};
    memset(w->y, 0, n * w->part->d * sizeof *w->y); /* nothing is looked for */
    memcpy(w->x, x, n * w->g->q * sizeof *x);
    return pnb__lmc_search_run(&w->r->lmc, w->y, n, &stay, &out, err);
}

pnb_status pnb__grove_say(pnb__grove_reading *w, const double *x, size_t n, double *mean,
                          double *var, pnb_error *err)
{
    size_t dn = w->part->d * n;
    if (w->g->is_mixed && var == NULL)
        return pnb__lmc_search_mean(&w->r->lmc, x, n, mean, err);
    pnb_status status =
        w->g->is_mixed ? say_mixed(w, x, n, err) : say_here(w, x, n, var != NULL, err);
    for (size_t i = 0; status == PNB_OK && i < dn; i++) {
        mean[i] = w->mean[i];
        if (var != NULL)
            var[i] = w->var[w->g->is_shared ? i % n : i];
    }
    return status;
}

/* How far the latents of pairs lie from those of their rows. */
static pnb_status find_chunk(reading *w, const pnb__grove_pairs *pairs, int side,
                             const uint32_t *sample, size_t begin, size_t n, pnb_error *err)
{
    size_t q = w->g->q;
    pnb_status status = place(w, pairs, side, sample + begin, n, err);
    for (size_t i = 0; status == PNB_OK && i < n * q; i++) {
        w->part->found[begin * q + i] = w->x[i];
        w->part->missed[begin * q + i] = pairs->x[sample[begin + i / q] * q + i % q] - w->x[i];
    }
    return status;
}

pnb_status pnb__grove_find_misses(pnb__grove *g, int side, const pnb__grove_pairs *pairs,
                                  pnb_error *err)
{
    size_t all = g->part[side].n_missed;
    uint32_t *sample = NULL;
    reading *w = NULL;
    pnb_status status;
    PNB_TRY(pnb__grove_reading_open(&w, g, side, err));
    PNB_TRY(pnb__grove_sample(&sample, pairs->n, all, 0, err));
    for (size_t begin = 0; begin < all; begin += CHUNK)
        PNB_TRY(
            find_chunk(w, pairs, side, sample, begin, PNB_MIN(all - begin, (size_t)CHUNK), err));
done:
    pnb__free(sample);
    pnb__grove_reading_free(w);
    return status;
}

pnb_status pnb__grove_read(const pnb__grove *g, const pnb_adapter_opts *opts,
                           const pnb__adapter_block *block, pnb_error *err)
{
    reading w = {.g = g, .part = &g->part[block->side], .r = g->reader[block->side], .opts = opts};
    pnb_status status;
    PNB_TRY(open_reading(&w, err));
    for (size_t begin = 0; begin < block->n; begin += CHUNK) {
        size_t n = PNB_MIN(block->n - begin, (size_t)CHUNK);
        PNB_TRY(take_rows(&w, block, begin, n, err));
        PNB_TRY(find_latents(&w, n, block->first + begin, err));
        if (!g->is_mixed)
            PNB_TRY(say_here(&w, w.x, n, true, err));
        for (size_t i = 0; i < n; i++)
            put_row(&w, block, begin, i, n);
    }
done:
    close_reading(&w);
    return status;
}
