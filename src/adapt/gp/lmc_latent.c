/* With mu (D) the processes' means at x, v (D) their variances, W the mixing and s the noises
 *   f(x) = 1/2 mu^T A mu - mu^T W (y/s) + 1/2 sum_l A_ll v_l + const,   A = W diag(1/s) W^T
 * so that the outputs are met in A alone. With k = k_l(Z_l,x):
 *   mu_l = c_l + k.pull_l,   pull_l = L^-T m_l,   v_l = scale + jitter + k^T G_l k,
 *   G_l = L^-T (C C^T - I) L^-1
 * A block of rows goes through process after process, a thread each. Second derivatives begin as
 * Gauss and Newton's, J^T A J with J = d mu / dx, and learn the rest from the steps (BFGS): what
 * the variances add would cost Q times a whole look. */
#include "adapt/gp/lmc_latent.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "adapt/gp/factors/dense.h"

/* ---- once for a side ---- */

typedef struct making {
    pnb__lmc_search *s;
    const pnb__lmc_opts *opts;
    pnb_error *errs; /* one a thread */
} making;

/* G and pull of process l; factor and p (M,M) are room. */
static pnb_status make_process(const making *k, pnb__inducing *inducing, pnb__factors *one,
                               size_t l, double *room, pnb_error *err)
{
    pnb__lmc_search *s = k->s;
    size_t m = s->m, bytes = k->opts->real == PNB__F32 ? sizeof(float) : sizeof(double);
    double *chol = room, *factor = room + m * m, *form = s->form + l * m * m;
    pnb__inducing_set set = {.kernel = {s->p.kind, s->q, 1, s->p.lengthscale + l, s->p.scale[l]},
                             .z = s->p.z + l * m * s->q,
                             .chol = chol};
    pnb_status status = pnb__inducing_factorise(inducing, &set, err);
    if (status != PNB_OK)
        return status;
    pnb__factors_read(one, (const char *)s->p.factors + l * pnb__factors_size(m, 1) * bytes, 0,
                      factor);
    pnb__dense_multiply(
        &s->kernels, &s->alone,
        &(pnb__dense_product){
            .m = m, .n = m, .k = m, .a = factor, .b = factor, .trans_b = true, .alpha = 1},
        form);
    for (size_t i = 0; i < m; i++)
        form[i * m + i] -= 1;
    pnb__factor_slopes_invert(&inducing->slopes, chol);
    pnb__factor_slopes_find(&inducing->slopes, form, form, 0, form, form);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j <= i; j++)
            form[i * m + j] = form[j * m + i] = 2 * form[i * m + j];
    memcpy(s->pull + l * m, s->p.q_mean + l * m, m * sizeof *s->pull);
    s->kernels.tri_solve(&s->alone, m, 1, true, chol, s->pull + l * m, s->pull + l * m);
    return PNB_OK;
}

static void make_range(void *user, size_t begin, size_t end, int thread)
{
    const making *k = user;
    pnb_error *err = &k->errs[thread];
    pnb__inducing inducing = {0};
    pnb__factors one = {0};
    size_t m = k->s->m;
    double *room = pnb__alloc_array(2 * m, m * sizeof *room);
    pnb_status status = room != NULL ? PNB_OK : pnb__fail_nomem(err, 2 * m * m * sizeof *room);
    if (status == PNB_OK)
        status = pnb__inducing_init(&inducing, &k->s->alone, m, 1, k->opts->jitter, err);
    if (status == PNB_OK)
        status = pnb__factors_init(&one, &k->s->alone, k->opts->real, m, 1, 1, err);
    for (size_t l = begin; l < end && status == PNB_OK; l++)
        status = make_process(k, &inducing, &one, l, room, err);
    pnb__inducing_reset(&inducing);
    pnb__factors_reset(&one);
    pnb__free(room);
}

static void make_precision(pnb__lmc_search *s, const double *noise)
{
    size_t d = s->d;
    for (size_t i = 0; i < d * d; i++)
        s->gain[i] = s->p.mixing[i] / noise[i % d];
    pnb__dense_multiply(
        &s->kernels, s->ctx,
        &(pnb__dense_product){
            .m = d, .n = d, .k = d, .a = s->gain, .b = s->p.mixing, .trans_b = true, .alpha = 1},
        s->precision);
}

pnb_status pnb__lmc_search_init(pnb__lmc_search *s, const pnb_ctx *ctx, const pnb__lmc_process *p,
                                const pnb__lmc_opts *o, const double *noise, pnb_error *err)
{
    size_t d = o->d, m = o->m, size = 0;
    pnb_status status = PNB_OK;
    *s = (pnb__lmc_search){
        .ctx = ctx, .alone = *ctx, .p = *p, .d = d, .m = m, .q = o->q, .jitter = o->jitter};
    s->alone.n_threads = 1;
    pnb__kernels_fill_host(&s->kernels, ctx, PNB__F64);
    pnb_error *errs = pnb__alloc_zero((size_t)ctx->n_threads, sizeof *errs);
    if (pnb__mul_overflows(m, m + 1, &size) || pnb__mul_overflows(d, size + 2 * d, &size))
        PNB_TRY(pnb__fail_nomem(err, SIZE_MAX));
    s->form = pnb__alloc_array(size, sizeof *s->form);
    if (s->form == NULL || errs == NULL)
        PNB_TRY(pnb__fail_nomem(err, size * sizeof *s->form));
    s->pull = s->form + d * m * m;
    s->precision = s->pull + d * m;
    s->gain = s->precision + d * d;
    making k = {.s = s, .opts = o, .errs = errs};
    pnb__parallel_for(ctx, d, 1, make_range, &k);
    for (int i = 0; i < ctx->n_threads; i++)
        if (errs[i].status != PNB_OK)
            PNB_TRY(pnb__fail(err, errs[i].status, "%s", errs[i].text));
    make_precision(s, noise);
done:
    pnb__free(errs);
    if (status != PNB_OK)
        pnb__lmc_search_reset(s);
    return status;
}

void pnb__lmc_search_reset(pnb__lmc_search *s)
{
    pnb__free(s->form);
    *s = (pnb__lmc_search){0};
}

/* ---- a block of rows ---- */

/* What is found at the latents of n rows; arrays of processes have them first. */
typedef struct look {
    const pnb__lmc_search *s;
    size_t n;
    bool has_variances;
    const double *x;
    double *aim;                   /* (D,n) W (y/s) */
    double *mu, *v, *met;          /* (D,n): means, variances, A mu */
    double *jacobian, *bent;       /* (D,n,Q): J and A J */
    double *by_v;                  /* (D,n,Q): 1/2 A_ll dv/dx */
    double *value, *slope, *curve; /* (n), (n,Q), (n,Q,Q) */
    atomic_bool out_of_memory;
} look;

/* A thread's room for one process: k, h and weights (n,M), Z / l^2 and 1 (M,Q + 1), and products
 * with those (n,Q + 1). */
typedef struct glance {
    double *cross, *shape, *weights, *points, *pulled;
} glance;

static size_t glance_doubles(const look *k)
{
    return 3 * k->n * k->s->m + (k->n + k->s->m) * (k->s->q + 1);
}

static glance glance_in(const look *k, double *room)
{
    size_t nm = k->n * k->s->m;
    glance g = {.cross = room, .shape = room + nm, .weights = room + 2 * nm};
    g.points = room + 3 * nm;
    g.pulled = g.points + k->s->m * (k->s->q + 1);
    return g;
}

/* out (n,Q) = by d/dx sum_j w_ij k_ij. */
static void pull(const look *k, const pnb__gp_kernel *kernel, const double *z, glance *g, double by,
                 double *out)
{
    const pnb__lmc_search *s = k->s;
    size_t n = k->n, m = s->m, q = s->q;
    for (size_t i = 0; kernel->kind != PNB__GP_COSINE && i < n * m; i++)
        g->weights[i] *= by * g->shape[i];
    if (kernel->kind == PNB__GP_COSINE) {
        for (size_t i = 0; i < n * m; i++)
            g->weights[i] *= by;
        memset(out, 0, n * q * sizeof *out);
        pnb__gp_kernel_backward(kernel, k->x, n, z, m, g->weights,
                                &(pnb__gp_kernel_grad){.dx = out});
        return;
    }
    pnb__dense_multiply(
        &s->kernels, &s->alone,
        &(pnb__dense_product){
            .m = n, .n = q + 1, .k = m, .a = g->weights, .b = g->points, .alpha = 1},
        g->pulled);
    double inverse = 1 / (kernel->lengthscale[0] * kernel->lengthscale[0]);
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < q; a++)
            out[i * q + a] =
                k->x[i * q + a] * inverse * g->pulled[i * (q + 1) + q] - g->pulled[i * (q + 1) + a];
}

static void look_at_process(const look *k, size_t l, glance *g)
{
    const pnb__lmc_search *s = k->s;
    size_t m = s->m, n = k->n, q = s->q;
    const pnb__gp_kernel kernel = {s->p.kind, q, 1, s->p.lengthscale + l, s->p.scale[l]};
    const double *z = s->p.z + l * m * q, inverse = 1 / (s->p.lengthscale[l] * s->p.lengthscale[l]);
    if (kernel.kind == PNB__GP_COSINE)
        pnb__gp_kernel_matrix(&kernel, k->x, n, z, m, g->cross);
    else
        pnb__gp_kernel_shapes(&kernel, k->x, n, z, m, g->cross, g->shape);
    for (size_t j = 0; j < m; j++) {
        for (size_t a = 0; a < q; a++)
            g->points[j * (q + 1) + a] = z[j * q + a] * inverse;
        g->points[j * (q + 1) + q] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        k->mu[l * n + i] = s->p.constant[l] + pnb__dense_dot(g->cross + i * m, s->pull + l * m, m);
        memcpy(g->weights + i * m, s->pull + l * m, m * sizeof *g->weights);
    }
    pull(k, &kernel, z, g, 1, k->jacobian + l * n * q);
    if (!k->has_variances) {
        memset(k->by_v + l * n * q, 0, n * q * sizeof *k->by_v);
        return;
    }
    pnb__dense_multiply(
        &s->kernels, &s->alone,
        &(pnb__dense_product){
            .m = n, .n = m, .k = m, .a = g->cross, .b = s->form + l * m * m, .alpha = 1},
        g->weights);
    for (size_t i = 0; i < n; i++)
        k->v[l * n + i] =
            kernel.scale + s->jitter + pnb__dense_dot(g->cross + i * m, g->weights + i * m, m);
    pull(k, &kernel, z, g, s->precision[l * s->d + l], k->by_v + l * n * q);
}

static void look_range(void *user, size_t begin, size_t end, int thread)
{
    look *k = user;
    (void)thread;
    double *room = pnb__alloc_array(glance_doubles(k), sizeof *room);
    if (room == NULL) {
        atomic_store(&k->out_of_memory, true);
        return;
    }
    glance g = glance_in(k, room);
    for (size_t l = begin; l < end; l++)
        look_at_process(k, l, &g);
    pnb__free(room);
}

/* c (D,n) = a (D,D) b, or a^T b */
static void by_outputs(const pnb__lmc_search *s, const double *a, bool transpose, const double *b,
                       size_t n, double *c)
{
    pnb__dense_multiply(
        &s->kernels, s->ctx,
        &(pnb__dense_product){
            .m = s->d, .n = n, .k = s->d, .a = a, .trans_a = transpose, .b = b, .alpha = 1},
        c);
}

/* Value, slope and curvature of f at x (n,Q). */
static pnb_status look_at(look *k, const double *x, size_t n, pnb_error *err)
{
    const pnb__lmc_search *s = k->s;
    size_t q = s->q, d = s->d;
    k->x = x;
    k->n = n;
    pnb__parallel_for(s->ctx, d, 1, look_range, k);
    if (atomic_load(&k->out_of_memory))
        return pnb__fail_nomem(err, glance_doubles(k) * sizeof(double));
    by_outputs(s, s->precision, false, k->mu, n, k->met);
    by_outputs(s, s->precision, false, k->jacobian, n * q, k->bent);
    memset(k->value, 0, n * sizeof *k->value);
    memset(k->slope, 0, n * q * sizeof *k->slope);
    memset(k->curve, 0, n * q * q * sizeof *k->curve);
    for (size_t l = 0; l < d; l++)
        for (size_t i = 0; i < n; i++) {
            size_t at = l * n + i;
            const double *j = k->jacobian + at * q, *bent = k->bent + at * q;
            k->value[i] += k->mu[at] * (0.5 * k->met[at] - k->aim[at]);
            if (k->has_variances)
                k->value[i] += 0.5 * s->precision[l * d + l] * k->v[at];
            for (size_t a = 0; a < q; a++) {
                k->slope[i * q + a] += j[a] * (k->met[at] - k->aim[at]) + k->by_v[at * q + a];
                for (size_t b = 0; b < q; b++)
                    k->curve[(i * q + a) * q + b] += j[a] * bent[b];
            }
        }
    return PNB_OK;
}

/* ---- the search ---- */

/* Rows on their way; what `look` holds is of those that still move, side by side. */
typedef struct walk {
    size_t n, q;
    double *x, *value, *slope, *curve, *lambda; /* (n,Q), (n), (n,Q), (n,Q,Q), (n) */
    double *trial, *room;                       /* (n,Q); (Q,Q) and (Q) */
    size_t *moving;                             /* numbers of rows */
} walk;

/* step = (H + lambda I)^-1 slope of row i in w->room; false where that is not positive definite. */
static bool solve_row(const walk *w, size_t i, double *step)
{
    size_t q = w->q;
    double *l = w->room;
    for (size_t a = 0; a < q; a++)
        for (size_t b = 0; b <= a; b++) {
            double v = w->curve[(i * q + a) * q + b] + (a == b ? w->lambda[i] : 0);
            for (size_t p = 0; p < b; p++)
                v -= l[a * q + p] * l[b * q + p];
            if (a == b && !(v > 0 && isfinite(v)))
                return false;
            l[a * q + b] = a == b ? sqrt(v) : v / l[b * q + b];
        }
    for (size_t a = 0; a < q; a++) {
        step[a] = w->slope[i * q + a];
        for (size_t p = 0; p < a; p++)
            step[a] -= l[a * q + p] * step[p];
        step[a] /= l[a * q + a];
    }
    for (size_t a = q; a-- > 0;) {
        for (size_t p = a + 1; p < q; p++)
            step[a] -= l[p * q + a] * step[p];
        step[a] /= l[a * q + a];
    }
    return true;
}

static double scale_of(const walk *w, size_t i)
{
    double scale = 0;
    for (size_t a = 0; a < w->q; a++)
        scale = PNB_MAX(scale, fabs(w->curve[(i * w->q + a) * w->q + a]));
    return scale;
}

static void damp(walk *w, size_t i)
{
    w->lambda[i] = PNB_MAX(4 * w->lambda[i], 1e-3 * scale_of(w, i) + 1e-12);
}

/* A trial point for row i; false where it has arrived. */
static bool try_row(walk *w, size_t i, double tolerance, double *trial)
{
    double most = 1e8 * scale_of(w, i) + 1;
    double *step = w->room + w->q * w->q;
    while (!solve_row(w, i, step)) {
        damp(w, i);
        if (w->lambda[i] > most)
            return false;
    }
    if (w->lambda[i] > most || 0.5 * pnb__dense_dot(w->slope + i * w->q, step, w->q) < tolerance)
        return false;
    for (size_t a = 0; a < w->q; a++)
        trial[a] = w->x[i * w->q + a] - step[a];
    return true;
}

static void take_row(walk *w, const look *k, size_t from, const double *x, size_t i)
{
    size_t q = w->q;
    for (size_t a = 0; a < q; a++)
        w->x[i * q + a] = x[from * q + a];
    w->value[i] = k->value[from];
    memcpy(w->slope + i * q, k->slope + from * q, q * sizeof *x);
    memcpy(w->curve + i * q * q, k->curve + from * q * q, q * q * sizeof *x);
}

/* H += d d^T / d.s - H s s^T H / s.H s by the step s and what the slope changed by, d; d is bent
 * towards H s where it bends down (Powell's damping), so that H stays positive definite. `room`
 * (2,Q). */
static void learn_curvature(size_t q, double *h, const double *s, double *d, double *room)
{
    double *hs = room, shs = 0, sd = 0;
    for (size_t a = 0; a < q; a++) {
        hs[a] = pnb__dense_dot(h + a * q, s, q);
        shs += s[a] * hs[a];
        sd += s[a] * d[a];
    }
    if (!(shs > 0))
        return;
    double keep = sd < 0.2 * shs ? 0.8 * shs / (shs - sd) : 1;
    for (size_t a = 0; a < q; a++)
        d[a] = keep * d[a] + (1 - keep) * hs[a];
    sd = keep * sd + (1 - keep) * shs;
    for (size_t a = 0; a < q; a++)
        for (size_t b = 0; b < q; b++)
            h[a * q + b] += d[a] * d[b] / sd - hs[a] * hs[b] / shs;
}

/* An accepted step: what Gauss-Newton's derivatives leave out is learned from it. */
static void step_row(walk *w, const look *k, size_t from, const double *x, size_t i)
{
    size_t q = w->q;
    double *s = w->room, *d = s + q, *h = w->curve + i * q * q;
    for (size_t a = 0; a < q; a++) {
        s[a] = x[from * q + a] - w->x[i * q + a];
        d[a] = k->slope[from * q + a] - w->slope[i * q + a];
    }
    learn_curvature(q, h, s, d, d + q);
    memcpy(w->x + i * q, x + from * q, q * sizeof *x);
    memcpy(w->slope + i * q, k->slope + from * q, q * sizeof *x);
    w->value[i] = k->value[from];
}

/* Columns of the rows that move, in front of each other. */
static void gather_aim(const walk *w, const double *aim, size_t n_moving, look *k)
{
    for (size_t l = 0; l < k->s->d; l++)
        for (size_t i = 0; i < n_moving; i++)
            k->aim[l * n_moving + i] = aim[l * w->n + w->moving[i]];
}

static pnb_status descend(walk *w, look *k, const double *aim, const pnb__lmc_search_opts *o,
                          pnb_error *err)
{
    memcpy(k->aim, aim, k->s->d * w->n * sizeof *aim);
    pnb_status status = look_at(k, w->x, w->n, err);
    for (size_t i = 0; status == PNB_OK && i < w->n; i++) {
        take_row(w, k, i, w->x, i);
        w->lambda[i] = 0;
        w->moving[i] = i;
    }
    size_t n_moving = w->n;
    for (size_t step = 0; status == PNB_OK && step < o->max_steps; step++) {
        size_t n = 0;
        for (size_t i = 0; i < n_moving; i++)
            if (try_row(w, w->moving[i], o->tolerance, w->trial + n * w->q))
                w->moving[n++] = w->moving[i];
        n_moving = n;
        if (n == 0)
            break;
        gather_aim(w, aim, n, k);
        status = look_at(k, w->trial, n, err);
        for (size_t i = 0; status == PNB_OK && i < n; i++) {
            size_t row = w->moving[i];
            if (k->value[i] < w->value[row]) {
                step_row(w, k, i, w->trial, row);
                w->lambda[row] = w->lambda[row] < 1e-8 * scale_of(w, row) ? 0 : w->lambda[row] / 8;
            } else {
                damp(w, row);
            }
        }
    }
    return status;
}

/* The released code's: so many steps of Adam. */
static pnb_status descend_by_adam(walk *w, look *k, const double *aim,
                                  const pnb__lmc_search_opts *o, pnb_error *err)
{
    const double beta1 = 0.9, beta2 = 0.999;
    size_t n = w->n * w->q;
    double *first = w->slope, *second = w->trial;
    memset(first, 0, n * sizeof *first);
    memset(second, 0, n * sizeof *second);
    memcpy(k->aim, aim, k->s->d * w->n * sizeof *aim);
    for (size_t step = 1; step <= o->max_steps; step++) {
        double by1 = 1 - pow(beta1, (double)step), by2 = 1 - pow(beta2, (double)step);
        pnb_status status = look_at(k, w->x, w->n, err);
        if (status != PNB_OK)
            return status;
        for (size_t i = 0; i < n; i++) {
            double g = k->slope[i];
            first[i] = beta1 * first[i] + (1 - beta1) * g;
            second[i] = beta2 * second[i] + (1 - beta2) * g * g;
            w->x[i] -= o->adam_rate * first[i] / by1 / (sqrt(second[i] / by2) + 1e-8);
        }
    }
    return PNB_OK;
}

/* Of the outputs where the rows ended: mean, var and J by the mixing. */
static pnb_status read_outputs(const walk *w, look *k, const pnb__lmc_reading *out, pnb_error *err)
{
    const pnb__lmc_search *s = k->s;
    size_t n = w->n, d = s->d, q = s->q;
    pnb_status status = look_at(k, w->x, n, err);
    if (status != PNB_OK)
        return status;
    memcpy(out->x, w->x, n * q * sizeof *out->x);
    memcpy(out->hessian, k->curve, n * q * q * sizeof *out->hessian);
    by_outputs(s, s->p.mixing, true, k->mu, n, out->mean);
    by_outputs(s, s->p.mixing, true, k->jacobian, n * q, out->jacobian);
    for (size_t i = 0; i < d * n; i++)
        out->var[i] = s->jitter;
    for (size_t l = 0; l < d; l++)
        for (size_t t = 0; t < d; t++) {
            double by = s->p.mixing[l * d + t] * s->p.mixing[l * d + t];
            for (size_t i = 0; i < n; i++)
                out->var[t * n + i] += by * k->v[l * n + i];
        }
    return PNB_OK;
}

static pnb_status open_walk(walk *w, look *k, double **aim, double **room, pnb_error *err)
{
    size_t n = w->n, q = w->q, d = k->s->d;
    size_t rows = n * (4 * q + 2 * q * q + 3) + q * q + 4 * q, each = d * n * (5 + 3 * q);
    *room = pnb__alloc_array(rows + each, sizeof **room);
    w->moving = pnb__alloc_array(n, sizeof *w->moving);
    if (*room == NULL || w->moving == NULL)
        return pnb__fail_nomem(err, (rows + each) * sizeof **room);
    k->aim = *room;
    *aim = k->aim + d * n;
    k->mu = *aim + d * n;
    k->v = k->mu + d * n;
    k->met = k->v + d * n;
    k->jacobian = k->met + d * n;
    k->bent = k->jacobian + d * n * q;
    k->by_v = k->bent + d * n * q;
    w->x = *room + each;
    w->slope = w->x + n * q;
    w->trial = w->slope + n * q;
    k->slope = w->trial + n * q;
    w->curve = k->slope + n * q;
    k->curve = w->curve + n * q * q;
    w->value = k->curve + n * q * q;
    k->value = w->value + n;
    w->lambda = k->value + n;
    w->room = w->lambda + n;
    return PNB_OK;
}

/* W (y/s): (D,n) */
static void find_aim(const pnb__lmc_search *s, const double *y, size_t n, double *aim)
{
    pnb__dense_multiply(
        &s->kernels, s->ctx,
        &(pnb__dense_product){
            .m = s->d, .n = n, .k = s->d, .a = s->gain, .b = y, .trans_b = true, .alpha = 1},
        aim);
}

static pnb_status check_rows(const double *x, size_t n, size_t width, const char *what,
                             pnb_error *err)
{
    for (size_t i = 0; i < n * width; i++)
        if (!isfinite(x[i]))
            return pnb__fail(err, PNB_NUMERIC, "%s %zu is not finite", what, i / width);
    return PNB_OK;
}

pnb_status pnb__lmc_search_run(const pnb__lmc_search *s, const double *y, size_t n,
                               const pnb__lmc_search_opts *o, const pnb__lmc_reading *out,
                               pnb_error *err)
{
    look k = {.s = s};
    walk w = {.n = n, .q = s->q};
    double *aim = NULL, *room = NULL;
    pnb_status status;
    PNB_TRY(check_rows(y, n, s->d, "embedding", err));
    PNB_TRY(check_rows(out->x, n, s->q, "start", err));
    PNB_TRY(open_walk(&w, &k, &aim, &room, err));
    find_aim(s, y, n, aim);
    memcpy(w.x, out->x, n * s->q * sizeof *w.x);
    if (o->adam_rate > 0) {
        k.has_variances = true;
        PNB_TRY(descend_by_adam(&w, &k, aim, o, err));
    } else {
        const pnb__lmc_search_opts roughly = {o->max_steps, 10 * o->tolerance, 0};
        PNB_TRY(descend(&w, &k, aim, &roughly, err));
        k.has_variances = true;
        PNB_TRY(descend(&w, &k, aim, o, err));
    }
    memcpy(k.aim, aim, s->d * n * sizeof *aim);
    status = read_outputs(&w, &k, out, err);
done:
    pnb__free(room);
    pnb__free(w.moving);
    return status;
}

pnb_status pnb__lmc_search_mean(const pnb__lmc_search *s, const double *x, size_t n, double *mean,
                                pnb_error *err)
{
    look k = {.s = s};
    walk w = {.n = n, .q = s->q};
    double *aim = NULL, *room = NULL;
    pnb_status status;
    PNB_TRY(check_rows(x, n, s->q, "latent", err));
    PNB_TRY(open_walk(&w, &k, &aim, &room, err));
    memset(k.aim, 0, s->d * n * sizeof *k.aim); /* its value is nobody's */
    PNB_TRY(look_at(&k, x, n, err));
    by_outputs(s, s->p.mixing, true, k.mu, n, mean);
done:
    pnb__free(room);
    pnb__free(w.moving);
    return status;
}
