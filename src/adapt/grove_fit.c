/* GroVE's training through the loop that all training goes through.
 *
 * A step:  marginals.c of either side at the batch's latents; from there on a graph (likelihood and
 * alignment, which are D N numbers); back through the marginals. Scales are trained by their
 * logarithms. Parameters are floats where each output has a factor of its own, doubles otherwise;
 * everything but the products with those factors is computed in doubles either way.
 *
 * "collapsed": q(v) is the bound's optimum at every step and no parameter; the slope of the bound
 * by all that remains is that of the objective with q(v) held fixed (the optimum is flat in it).
 * The sides are tied by their latents alone. "exact" ties an inducing point to every latent. */
#include <math.h>
#include <string.h>

#include "adapt/gp/gp_exact.h"
#include "adapt/gp/pair_terms.h"
#include "adapt/grove.h"

enum { STREAM_EPOCH = 16 };
enum { KERNEL_LENGTHSCALE, KERNEL_SCALE, KERNEL_NOISE, N_KERNEL };
enum { P_Z, P_KERNEL, P_CONSTANT, P_Q_MEAN, P_FACTORS, N_SIDE_PARAMS };
enum { N_PARAMS = PNB_N_ADAPTER_SIDES * N_SIDE_PARAMS + 1 };

typedef struct side {
    pnb__marginals marginals;
    pnb__param params[N_SIDE_PARAMS];
    double *z, *constant, *q_mean, kernel[N_KERNEL];     /* as doubles, kernel without logarithm */
    double *dz, *dconstant, *dq_mean, dkernel[N_KERNEL]; /* slopes */
    double *mean, *var, *dmean, *dvar, *y, *rows;
    double *q_chol; /* (M,M) and a factor in doubles, where that is no parameter */
    void *collapsed;
} side;

typedef struct pnb__grove_fit {
    pnb_ctx host; /* parameters lie in the host's memory, whatever device the context has */
    pnb__grove *g;
    pnb__grove_pairs *pairs;
    const pnb_adapter_opts *opts;
    double jitter; /* the largest that was needed */
    pnb__kernels kernels;
    pnb__real real;
    size_t n; /* of a batch */
    bool is_collapsed, is_exact;
    side side[PNB_N_ADAPTER_SIDES];
    pnb__param latents, *params[N_PARAMS];
    uint32_t *order; /* (N) pairs of this epoch */
    double *x, *dx;  /* (n,Q) */
    double *room;
    pnb__grove_loss_opts loss;
    pnb__pair_side terms[PNB_N_ADAPTER_SIDES];
    pnb_loader_position at;
} fit;

static double elbo_weight(const fit *f)
{
    if (f->is_collapsed)
        return 1;
    return isnan(f->opts->elbo_weight) ? 1 : f->opts->elbo_weight;
}

static double align_weight(const fit *f)
{
    if (f->is_collapsed)
        return 0;
    return isnan(f->opts->align_weight) ? 1 : f->opts->align_weight;
}

/* ---- parameters ---- */

static pnb_status add_param(fit *f, pnb__param *p, const char *name, size_t n, bool trainable,
                            pnb_error *err)
{
    size_t bytes = n * PNB__REAL_SIZE(f->real);
    *p = (pnb__param){.name = name, .n_dims = 1, .shape = {n}, .n = n, .trainable = trainable};
    pnb_status status = pnb__param_alloc(p, &f->kernels, bytes, err);
    if (status != PNB_OK || !trainable)
        return status;
    p->grad = pnb__alloc_zero(n, PNB__REAL_SIZE(f->real));
    return p->grad != NULL ? PNB_OK : pnb__fail_nomem(err, bytes);
}

static void free_param(fit *f, pnb__param *p)
{
    if (p->name == NULL)
        return;
    pnb__free(p->grad);
    pnb__param_free(p, &f->kernels, p->n * PNB__REAL_SIZE(f->real));
}

/* Of other memory than the parameter's: slopes become numbers of its type. */
static void put_slopes(const fit *f, pnb__param *p, const double *slopes)
{
    if (f->real == PNB__F64) {
        memcpy(p->grad, slopes, p->n * sizeof *slopes);
        return;
    }
    for (size_t i = 0; i < p->n; i++)
        ((float *)p->grad)[i] = (float)slopes[i];
}

static const char *const side_names[PNB_N_ADAPTER_SIDES][N_SIDE_PARAMS] = {
    {"image.z", "image.kernel", "image.constant", "image.q_mean", "image.factors"},
    {"text.z", "text.kernel", "text.constant", "text.q_mean", "text.factors"}};

static pnb_status open_side_params(fit *f, int s, pnb_error *err)
{
    const pnb__grove_part *part = &f->g->part[s];
    size_t m = f->g->m;
    const size_t sizes[N_SIDE_PARAMS] = {
        m * f->g->q, N_KERNEL, part->d, f->is_collapsed ? 0 : part->d * m,
        f->is_collapsed ? 0 : pnb__factors_size(m, pnb__grove_n_factors(f->g, s))};
    pnb__param *p = f->side[s].params;
    pnb_status status = PNB_OK;
    for (int i = 0; i < N_SIDE_PARAMS && status == PNB_OK; i++) {
        if (sizes[i] == 0 || (i == P_Z && f->is_exact))
            continue;
        status = add_param(f, &p[i], side_names[s][i], sizes[i], true, err);
        f->params[s * N_SIDE_PARAMS + i] = &p[i];
    }
    if (status != PNB_OK)
        return status;
    const double kernel[N_KERNEL] = {log(part->number[PNB__GROVE_LENGTHSCALE]),
                                     log(part->number[PNB__GROVE_SCALE]),
                                     log(part->number[PNB__GROVE_NOISE])};
    const double *const values[] = {part->z, kernel, part->constant, part->q_mean};
    for (int i = 0; i < P_FACTORS && status == PNB_OK; i++)
        if (p[i].name != NULL)
            status = pnb__param_write(&p[i], &f->kernels, 0, p[i].n, values[i], err);
    if (p[P_FACTORS].name != NULL)
        memcpy(pnb__param_on_host(&p[P_FACTORS], &f->kernels), part->factors,
               pnb__grove_factor_bytes(f->g, s));
    return status;
}

/* ---- opening ---- */

static pnb_status open_side_room(fit *f, int s, pnb_error *err)
{
    side *w = &f->side[s];
    const pnb__grove *g = f->g;
    size_t n = f->n, d = g->part[s].d, m = g->m, factors = pnb__grove_n_factors(g, s);
    const pnb__marginals_opts opts = {.n_outputs = d,
                                      .m = m,
                                      .n_max = n,
                                      .jitter = PNB__GROVE_JITTER,
                                      .is_shared = g->is_shared,
                                      .real = f->real};
    pnb_status status = pnb__marginals_init(&w->marginals, &f->host, &opts, err);
    if (status != PNB_OK)
        return status;
    size_t small = 2 * (m * g->q + d + d * m), wide = 4 * d * n + 2 * factors * n;
    w->z = pnb__alloc_zero(small + wide + (f->is_collapsed ? m * m : 0), sizeof(double));
    if (w->z == NULL)
        return pnb__fail_nomem(err, (small + wide) * sizeof(double));
    w->dz = w->z + m * g->q;
    w->constant = w->dz + m * g->q;
    w->dconstant = w->constant + d;
    w->q_mean = w->dconstant + d;
    w->dq_mean = w->q_mean + d * m;
    w->mean = w->dq_mean + d * m;
    w->dmean = w->mean + d * n;
    w->y = w->dmean + d * n;
    w->rows = w->y + d * n;
    w->var = w->rows + d * n;
    w->dvar = w->var + factors * n;
    if (!f->is_collapsed)
        return PNB_OK;
    w->q_chol = w->dvar + factors * n;
    w->collapsed = pnb__alloc_array(pnb__factors_size(m, 1), sizeof(double));
    return w->collapsed != NULL ? PNB_OK : pnb__fail_nomem(err, m * m * sizeof(double));
}

void pnb__grove_order(uint32_t *order, size_t n, size_t batch, uint64_t seed, uint64_t epoch)
{
    pnb__rng rng;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (batch == n)
        return;
    pnb__rng_init(&rng, seed, STREAM_EPOCH + epoch);
    pnb__rng_shuffle(&rng, order, n);
}

static void draw_order(fit *f)
{
    pnb__grove_order(f->order, f->pairs->n, f->n, f->opts->seed, (uint64_t)f->at.epoch);
}

static pnb_status open_fit(void *self, const char *checkpoint, pnb__objective *o, pnb_error *err)
{
    fit *f = self;
    size_t n_pairs = f->pairs->n, q = f->g->q;
    pnb_status status = PNB_OK;
    (void)checkpoint; /* nobody writes one: what is learned is an adapter */
    pnb__kernels_fill_host(&f->kernels, &f->host, f->real);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        PNB_TRY(open_side_params(f, s, err));
        PNB_TRY(open_side_room(f, s, err));
    }
    PNB_TRY(add_param(f, &f->latents, "latents", n_pairs * q, true, err));
    PNB_TRY(pnb__param_write(&f->latents, &f->kernels, 0, n_pairs * q, f->pairs->x, err));
    f->params[N_PARAMS - 1] = &f->latents;
    f->order = pnb__alloc_array(n_pairs, sizeof *f->order);
    f->x = pnb__alloc_array(2 * f->n + n_pairs, q * sizeof *f->x);
    if (f->order == NULL || f->x == NULL)
        PNB_TRY(pnb__fail_nomem(err, n_pairs * (q + 1) * sizeof *f->x));
    f->dx = f->x + f->n * q;
    f->room = f->dx + f->n * q;
    o->params = f->params;
    o->n_params = 0;
    for (size_t i = 0; i < N_PARAMS; i++) /* without those that this fit does not have */
        if (f->params[i] != NULL)
            f->params[o->n_params++] = f->params[i];
    o->real = f->real;
    o->n_samples = n_pairs;
    o->steps_per_epoch = (int64_t)(n_pairs / f->n);
done:
    return status;
}

static pnb_status start_fit(void *self, pnb_loader_position at, pnb__objective *o, pnb_error *err)
{
    fit *f = self;
    (void)o, (void)err;
    f->at = at;
    f->loss = (pnb__grove_loss_opts){.elbo_weight = elbo_weight(f),
                                     .align_weight = align_weight(f),
                                     .align = (pnb__align)f->opts->align,
                                     .n_data = (double)f->pairs->n};
    draw_order(f);
    return PNB_OK;
}

static void close_fit(void *self)
{
    fit *f = self;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        for (int i = 0; i < N_SIDE_PARAMS; i++)
            free_param(f, &f->side[s].params[i]);
        pnb__marginals_reset(&f->side[s].marginals);
        pnb__free(f->side[s].z);
        pnb__free(f->side[s].collapsed);
    }
    free_param(f, &f->latents);
    pnb__free(f->order);
    pnb__free(f->x);
}

/* ---- a step ---- */

static pnb__process process_of(const fit *f, int s)
{
    const side *w = &f->side[s];
    return (pnb__process){
        .kernel = {f->g->kind, f->g->q, 1, &w->kernel[KERNEL_LENGTHSCALE], w->kernel[KERNEL_SCALE]},
        .z = f->is_exact ? f->x : w->z,
        .constant = w->constant,
        .q_mean = w->q_mean,
        .factors = f->is_collapsed ? w->collapsed
                                   : pnb__param_on_host(&w->params[P_FACTORS], &f->kernels)};
}

/* Parameters of a side as doubles. */
static pnb_status read_side(fit *f, int s, pnb_error *err)
{
    side *w = &f->side[s];
    double *const to[] = {w->z, w->kernel, w->constant, w->q_mean};
    pnb_status status = PNB_OK;
    for (int i = 0; i < P_FACTORS && status == PNB_OK; i++)
        if (w->params[i].name != NULL)
            status = pnb__param_read(&w->params[i], &f->kernels, 0, w->params[i].n, to[i], err);
    for (int i = 0; i < N_KERNEL; i++)
        w->kernel[i] = exp(w->kernel[i]);
    return status;
}

static pnb_status read_latents(fit *f, const uint32_t *batch, pnb_error *err)
{
    size_t q = f->g->q;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < f->n && status == PNB_OK; i++)
        status = pnb__param_read(&f->latents, &f->kernels, batch[i] * q, q, f->x + i * q, err);
    return status;
}

/* The best q(v) for this step's kernel, points and latents. */
static pnb_status collapse_side(fit *f, int s, const uint32_t *batch, pnb_error *err)
{
    side *w = &f->side[s];
    pnb__process p = process_of(f, s);
    pnb__marginals *mg = &w->marginals;
    pnb_status status = pnb__marginals_factorise(mg, &p, err);
    if (status != PNB_OK)
        return status;
    pnb__grove_rows(f->g, f->pairs, s, batch, f->n, w->rows);
    pnb__gp_data data = {.n = f->n,
                         .n_outputs = f->g->part[s].d,
                         .x = f->x,
                         .y = w->rows,
                         .constant = w->constant,
                         .noise = w->kernel[KERNEL_NOISE]};
    pnb__gp_collapsed_out out = {.q_mean = w->q_mean, .q_chol = w->q_chol};
    status = pnb__gp_collapsed(&mg->inducing, &mg->set, &data, &out, err);
    if (status == PNB_OK)
        pnb__factors_fill(&mg->factors, w->q_chol, w->collapsed);
    return status;
}

static pnb_status forward_side(fit *f, int s, const uint32_t *batch, pnb_error *err)
{
    side *w = &f->side[s];
    pnb_status status = read_side(f, s, err);
    pnb__process p = process_of(f, s);
    if (status == PNB_OK)
        status = f->is_collapsed ? collapse_side(f, s, batch, err)
                                 : pnb__marginals_factorise(&w->marginals, &p, err);
    if (status != PNB_OK)
        return status;
    pnb__marginals_at(&w->marginals, &p, f->x, f->n, w->mean, w->var);
    f->jitter = fmax(f->jitter, w->marginals.set.jitter_used);
    pnb__grove_columns(f->g, f->pairs, s, batch, f->n, w->y);
    f->terms[s] = (pnb__pair_side){.n_outputs = f->g->part[s].d,
                                   .n_factors = w->marginals.factors.n_factors,
                                   .y = w->y,
                                   .mean = w->mean,
                                   .var = w->var,
                                   .noise = w->kernel[KERNEL_NOISE],
                                   .dmean = w->dmean,
                                   .dvar = w->dvar};
    return PNB_OK;
}

/* Slopes of a side into its parameters; what the latents get is added to f->dx. */
static void backward_side(fit *f, int s, double weight)
{
    side *w = &f->side[s];
    pnb__param *p = w->params;
    pnb__process process = process_of(f, s);
    w->dkernel[KERNEL_NOISE] = f->terms[s].dnoise;
    w->dkernel[KERNEL_LENGTHSCALE] = w->dkernel[KERNEL_SCALE] = 0;
    memset(w->dz, 0, f->g->m * f->g->q * sizeof *w->dz);
    const pnb__process_grad grad = {.kernel = {f->dx, f->is_exact ? f->dx : w->dz,
                                               &w->dkernel[KERNEL_LENGTHSCALE],
                                               &w->dkernel[KERNEL_SCALE]},
                                    .constant = w->dconstant,
                                    .q_mean = f->is_collapsed ? NULL : w->dq_mean,
                                    .factors = f->is_collapsed ? NULL : p[P_FACTORS].grad};
    const pnb__marginals_slopes slopes = {w->dmean, w->dvar, weight};
    pnb__marginals_backward(&w->marginals, &process, f->x, f->n, &slopes, &grad);
    for (int i = 0; i < N_KERNEL; i++) /* by the logarithm */
        w->dkernel[i] *= w->kernel[i];
    const double *const from[] = {w->dz, w->dkernel, w->dconstant, w->dq_mean};
    for (int i = 0; i < P_FACTORS; i++)
        if (p[i].name != NULL)
            put_slopes(f, &p[i], from[i]);
}

static pnb_status step_fit(void *self, int64_t step, pnb__step_values *out, pnb_error *err)
{
    fit *f = self;
    size_t q = f->g->q;
    const uint32_t *batch = f->order + (size_t)f->at.batch * f->n;
    double weight = elbo_weight(f) / (double)f->pairs->n, divergence = 0;
    pnb_status status;
    (void)step;
    PNB_TRY(read_latents(f, batch, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        PNB_TRY(forward_side(f, s, batch, err));
    const pnb__pair_loss_terms terms = pnb__pair_terms(f->terms, f->n, &f->loss);
    memset(f->dx, 0, f->n * q * sizeof *f->dx);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        pnb__process p = process_of(f, s);
        divergence += pnb__marginals_divergence(&f->side[s].marginals, &p);
        backward_side(f, s, weight);
    }
    memset(f->room, 0, f->pairs->n * q * sizeof *f->room);
    for (size_t i = 0; i < f->n; i++)
        memcpy(f->room + batch[i] * q, f->dx + i * q, q * sizeof *f->dx);
    put_slopes(f, &f->latents, f->room);
    pnb__figures_add(&out->terms, "fit", NULL, terms.fit);
    pnb__figures_add(&out->terms, "align", NULL, terms.align);
    pnb__figures_add(&out->terms, "divergence", NULL, weight * divergence);
    out->total = terms.fit + terms.align + weight * divergence;
    if ((size_t)++f->at.batch == f->pairs->n / f->n) {
        f->at = (pnb_loader_position){.epoch = f->at.epoch + 1};
        draw_order(f);
    }
done:
    return status;
}

static pnb_loader_position position_fit(const void *self)
{
    return ((const fit *)self)->at;
}

static const pnb__objective_calls fit_calls = {.open = open_fit,
                                               .start = start_fit,
                                               .step = step_fit,
                                               .position = position_fit,
                                               .close = close_fit};

/* ---- a whole training ---- */

/* What was trained, back into the model and the pairs. */
static pnb_status take_result(fit *f, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t m = f->g->m;
    for (size_t i = 0; i < f->pairs->n; i++)
        f->order[i] = (uint32_t)i;
    PNB_TRY(pnb__param_read(&f->latents, &f->kernels, 0, f->latents.n, f->pairs->x, err));
    if (f->is_collapsed) /* q(v) belongs to the last step's parameters */
        PNB_TRY(read_latents(f, f->order, err));
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        side *w = &f->side[s];
        pnb__grove_part *part = &f->g->part[s];
        PNB_TRY(read_side(f, s, err));
        if (f->is_collapsed)
            PNB_TRY(collapse_side(f, s, f->order, err));
        pnb__process p = process_of(f, s);
        memcpy(part->z, p.z, m * f->g->q * sizeof *part->z);
        memcpy(part->constant, p.constant, part->d * sizeof *part->constant);
        memcpy(part->q_mean, p.q_mean, part->d * m * sizeof *part->q_mean);
        memcpy(part->factors, p.factors, pnb__grove_factor_bytes(f->g, s));
        part->number[PNB__GROVE_LENGTHSCALE] = w->kernel[KERNEL_LENGTHSCALE];
        part->number[PNB__GROVE_SCALE] = w->kernel[KERNEL_SCALE];
        part->number[PNB__GROVE_NOISE] = w->kernel[KERNEL_NOISE];
    }
done:
    return status;
}

static pnb_status run_steps(pnb__trainer *t, const pnb_watch *watch, pnb__grove_result *out,
                            pnb_error *err)
{
    int64_t tenth = (t->n_steps + 9) / 10;
    for (int64_t i = 0; i < t->n_steps; i++) {
        pnb__step_values v;
        if (watch->step != NULL && !watch->step(watch->user, (size_t)i, (size_t)t->n_steps))
            return pnb__fail(err, PNB_INTERRUPTED, "stopped after %lld of %lld steps", (long long)i,
                             (long long)t->n_steps);
        pnb_status status = pnb__trainer_step(t, &v, err);
        if (status == PNB_OK)
            status = pnb__trainer_update(t, &v, err);
        if (status != PNB_OK)
            return status;
        out->first += i < tenth ? v.total / (double)tenth : 0;
        out->last += i >= t->n_steps - tenth ? v.total / (double)tenth : 0;
    }
    out->steps = t->n_steps;
    return PNB_OK;
}

static size_t batch_of(const pnb_adapter_opts *opts, size_t n_pairs)
{
    size_t wanted = opts->batch_size > 0 ? (size_t)opts->batch_size : 64;
    return opts->grove_fit != PNB_GROVE_STEPS ? n_pairs : PNB_MIN(wanted, n_pairs);
}

pnb_status pnb__grove_fit_create(pnb__grove_fit **out, pnb__grove *g, const pnb_ctx *ctx,
                                 pnb__grove_pairs *pairs, const pnb_adapter_opts *opts,
                                 pnb_error *err)
{
    fit *f = pnb__alloc_zero(1, sizeof *f);
    if (f == NULL)
        return pnb__fail_nomem(err, sizeof *f);
    *f = (fit){.host = *ctx,
               .g = g,
               .pairs = pairs,
               .opts = opts,
               .real = g->is_shared ? PNB__F64 : PNB__F32,
               .n = batch_of(opts, pairs->n),
               .is_collapsed = opts->grove_fit != PNB_GROVE_STEPS,
               .is_exact = opts->grove_fit == PNB_GROVE_EXACT};
    f->host.column = NULL;
    *out = f;
    return PNB_OK;
}

void pnb__grove_fit_free(pnb__grove_fit *f)
{
    pnb__free(f);
}

pnb__objective pnb__grove_fit_objective(pnb__grove_fit *f)
{
    return (pnb__objective){.calls = &fit_calls, .self = f};
}

/* Ten epochs, or as many as a thousand steps are where there are more pairs: at least one. */
static int64_t epochs_of(const pnb__grove_fit *f)
{
    enum { MOST_STEPS = 1000 };
    if (f->opts->epochs > 0)
        return f->opts->epochs;
    if (f->is_collapsed)
        return 200;
    size_t steps = PNB_MAX(f->pairs->n / f->n, (size_t)1);
    return PNB_MAX(1, PNB_MIN(10, (int64_t)(MOST_STEPS / steps)));
}

pnb__run_opts pnb__grove_fit_run(const pnb__grove_fit *f)
{
    const pnb_adapter_opts *opts = f->opts;
    pnb__run_opts run = {.optim = pnb_optim_opts_default(),
                         .lr_scheduler = PNB_SCHEDULE_COSINE,
                         .batch_size = f->n,
                         .accum_freq = 1,
                         .epochs = epochs_of(f),
                         .seed = opts->seed};
    run.optim.kind = PNB_OPTIM_ADAM;
    run.optim.lr = isnan(opts->lr) ? 0.01 : opts->lr;
    run.optim.beta2 = 0.999;
    run.optim.eps = 1e-8;
    run.optim.weight_decay = 0;
    return run;
}

pnb_status pnb__grove_train(pnb__grove *g, const pnb_ctx *ctx, pnb__grove_pairs *pairs,
                            const pnb_adapter_opts *opts, const pnb_watch *watch,
                            pnb__grove_result *out, pnb_error *err)
{
    fit *f = NULL;
    pnb__run_result result;
    pnb__trainer t;
    pnb_status status = pnb__grove_fit_create(&f, g, ctx, pairs, opts, err);
    if (status != PNB_OK)
        return status;
    const pnb__objective objective = pnb__grove_fit_objective(f);
    const pnb__run_opts run = pnb__grove_fit_run(f);
    *out = (pnb__grove_result){0};
    pnb__trainer_init(&t, &f->host, &run, &objective, &result);
    status = pnb__trainer_setup(&t, NULL, err);
    if (status == PNB_OK)
        status = run_steps(&t, watch, out, err);
    if (status == PNB_OK)
        status = take_result(f, err);
    out->jitter = f->jitter;
    pnb__trainer_reset(&t);
    pnb__grove_fit_free(f);
    return status;
}
