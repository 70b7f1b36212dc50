/* Latents of new embeddings by a damped Newton method.
 *
 * Of a fitted side the negative expected log likelihood of an embedding y at a latent x is
 *   f(x) = sum_d [(y_d - c_d - m_d.b)^2 + k(x,x) - |b|^2 + |C_d^T b|^2] / (2 s_d),  b = L^-1 k(Z,x)
 * a quadratic form in b whatever D is, and so in k = k(Z,x):
 *   f(x) = 1/2 k^T G k - k^T h + const,     G = L^-T P L^-1,  h = L^-T sum_d m_d (y_d - c_d) / s_d
 *   P = sum_d (m_d m_d^T + C_d C_d^T - I) / s_d
 * With w = G k - h and J = dk/dx, gradient and Hessian are J^T w and J^T G J + sum_j w_j d2k_j, so
 * that a step costs M^2 (Q + 1) products, where the released code (20 steps of Adam from random
 * points: the golden runner has it) runs D processes. k(x,x) is a constant of stationary kernels.
 *
 * Damping as Levenberg's: H + lambda I is solved, lambda grows where it is not positive definite or
 * the value does not fall, and shrinks where it does. */
#include "adapt/gp/latent.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "adapt/gp/factors/dense.h"
#include "base/wide.h"

/* P of the header comment; `scaled` (D,M) receives m_d / sqrt(s_d). */
static void gather_form(const pnb__inducing *p, const pnb__latent_model *model, double *scaled,
                        double *factor, double *form)
{
    size_t m = model->m, d = model->n_outputs;
    double precision = 0;
    pnb__dense_product spread = {
        .m = m, .n = m, .k = m, .a = factor, .b = factor, .trans_b = true, .alpha = 1, .add = true};
    for (size_t i = 0; i < d * m; i++)
        scaled[i] = model->q_mean[i] / sqrt(model->noise[i / m]);
    pnb__dense_product means = {
        .m = m, .n = m, .k = d, .a = scaled, .trans_a = true, .b = scaled, .alpha = 1};
    pnb__dense_multiply(&p->kernels, p->ctx, &means, form);
    for (size_t i = 0; i < d; i++)
        precision += 1 / model->noise[i];
    for (size_t i = 0; model->gram != NULL && i < m * m; i++)
        form[i] += model->gram[i];
    for (size_t i = 0; model->gram == NULL && i < (model->one_factor ? 1 : d); i++) {
        model->factor(model->user, i, factor);
        double scale = sqrt(model->one_factor ? precision : 1 / model->noise[i]);
        for (size_t j = 0; j < m * m; j++)
            factor[j] *= scale;
        pnb__dense_multiply(&p->kernels, p->ctx, &spread, form);
    }
    for (size_t i = 0; i < m; i++)
        form[i * m + i] -= precision;
}

pnb_status pnb__latent_search_init(pnb__latent_search *s, const pnb__inducing *p,
                                   const pnb__latent_model *model, pnb_error *err)
{
    size_t m = model->m, d = model->n_outputs;
    const double *chol = model->set->chol;
    pnb_status status = PNB_OK;
    *s = (pnb__latent_search){.ctx = p->ctx,
                              .alone = *p->ctx,
                              .kernels = p->kernels,
                              .kernel = model->set->kernel,
                              .z = model->set->z,
                              .m = m,
                              .n_outputs = d,
                              .constant = model->constant};
    s->alone.n_threads = 1;
    double *columns = pnb__alloc_array(m * PNB_MAX(d, m), sizeof *columns);
    s->form = pnb__alloc_array(m * m, sizeof *s->form);
    s->pull = pnb__alloc_array(d * m, sizeof *s->pull);
    if (columns == NULL || s->form == NULL || s->pull == NULL)
        PNB_TRY(pnb__fail_nomem(err, m * (m + 2 * d) * sizeof(double)));
    gather_form(p, model, s->pull, columns, s->form);
    p->kernels.tri_solve(p->ctx, m, m, true, chol, s->form, s->form);
    pnb__dense_transpose(s->form, m);
    p->kernels.tri_solve(p->ctx, m, m, true, chol, s->form, s->form);
    for (size_t i = 0; i < m; i++) /* what rounding left apart */
        for (size_t j = 0; j < i; j++)
            s->form[i * m + j] = s->form[j * m + i] =
                0.5 * (s->form[i * m + j] + s->form[j * m + i]);
    for (size_t j = 0; j < m; j++) /* L^-T of the means, a column an output */
        for (size_t i = 0; i < d; i++)
            columns[j * d + i] = model->q_mean[i * m + j] / model->noise[i];
    p->kernels.tri_solve(p->ctx, m, d, true, chol, columns, columns);
    for (size_t j = 0; j < m; j++)
        for (size_t i = 0; i < d; i++)
            s->pull[i * m + j] = columns[j * d + i];
done:
    pnb__free(columns);
    if (status != PNB_OK)
        pnb__latent_search_reset(s);
    return status;
}

void pnb__latent_search_reset(pnb__latent_search *s)
{
    pnb__free(s->form);
    pnb__free(s->pull);
    *s = (pnb__latent_search){0};
}

pnb__latent_opts pnb__latent_opts_default(void)
{
    return (pnb__latent_opts){.max_steps = 50, .tolerance = 1e-8};
}

/* One thread's room; `at` is the point whose gradient and Hessian are held, where has_slopes. */
typedef struct walker {
    const pnb__latent_search *s;
    double *k, *gk, *h, *jacobian, *gj; /* (M), (M), (M), (M,Q), (Q,M) */
    double *at, *trial, *gradient, *step, *hessian, *factor;
    bool has_slopes;
} walker;

static size_t walker_doubles(const pnb__latent_search *s)
{
    size_t q = s->kernel.dim;
    return s->m * (3 + 2 * q) + 4 * q + 2 * q * q;
}

static walker walker_in(const pnb__latent_search *s, double *room)
{
    size_t m = s->m, q = s->kernel.dim;
    walker w = {.s = s, .k = room, .gk = room + m, .h = room + 2 * m, .jacobian = room + 3 * m};
    w.gj = w.jacobian + m * q;
    w.at = w.gj + m * q;
    w.trial = w.at + q;
    w.gradient = w.trial + q;
    w.step = w.gradient + q;
    w.hessian = w.step + q;
    w.factor = w.hessian + q * q;
    return w;
}

/* out (M) = G in, by rows of the symmetric G: what is added up is a vector, never the elements of a
 * row. */
PNB__WIDE static void apply_form(const double *form, size_t m, const double *in,
                                 double *restrict out)
{
    size_t j = 0;
    memset(out, 0, m * sizeof *out);
    for (; j + 4 <= m; j += 4) {
        const double *row = form + j * m, *by = in + j;
        for (size_t i = 0; i < m; i++)
            out[i] += by[0] * row[i] + by[1] * row[m + i] + by[2] * row[2 * m + i] +
                      by[3] * row[3 * m + i];
    }
    for (; j < m; j++)
        for (size_t i = 0; i < m; i++)
            out[i] += in[j] * form[j * m + i];
}

/* f without its constant; leaves k and G k. */
static double value_at(walker *w, const double *x)
{
    size_t m = w->s->m;
    double value = 0;
    pnb__gp_kernel_matrix(&w->s->kernel, x, 1, w->s->z, m, w->k);
    apply_form(w->s->form, m, w->k, w->gk);
    for (size_t i = 0; i < m; i++)
        value += w->k[i] * (0.5 * w->gk[i] - w->h[i]);
    return value;
}

/* After value_at of w->at: gradient and Hessian there. G k is overwritten. gj is (Q,M). */
static void slopes_here(walker *w)
{
    size_t m = w->s->m, q = w->s->kernel.dim;
    for (size_t i = 0; i < m; i++)
        w->gk[i] -= w->h[i];
    pnb__gp_kernel_slopes(&w->s->kernel, w->at, w->s->z, m, w->jacobian);
    pnb__gp_kernel_curvature(&w->s->kernel, w->at, w->s->z, m, w->gk, w->gradient, w->hessian);
    pnb__dense_multiply(
        &w->s->kernels, &w->s->alone,
        &(pnb__dense_product){
            .m = q, .n = m, .k = m, .a = w->jacobian, .trans_a = true, .b = w->s->form, .alpha = 1},
        w->gj);
    pnb__dense_multiply(
        &w->s->kernels, &w->s->alone,
        &(pnb__dense_product){
            .m = q, .n = q, .k = m, .a = w->gj, .b = w->jacobian, .alpha = 1, .add = true},
        w->hessian);
    w->has_slopes = true;
}

/* The gradient alone. */
static void gradient_here(walker *w)
{
    size_t m = w->s->m, q = w->s->kernel.dim;
    pnb__gp_kernel_slopes(&w->s->kernel, w->at, w->s->z, m, w->jacobian);
    memset(w->gradient, 0, q * sizeof *w->gradient);
    for (size_t i = 0; i < m; i++)
        for (size_t a = 0; a < q; a++)
            w->gradient[a] += (w->gk[i] - w->h[i]) * w->jacobian[i * q + a];
}

/* step = (H + lambda I)^-1 gradient; false where that is not positive definite. Q is small. */
static bool solve_step(walker *w, double lambda)
{
    size_t q = w->s->kernel.dim;
    double *l = w->factor;
    for (size_t i = 0; i < q; i++)
        for (size_t j = 0; j <= i; j++) {
            double v = w->hessian[i * q + j] + (i == j ? lambda : 0);
            for (size_t p = 0; p < j; p++)
                v -= l[i * q + p] * l[j * q + p];
            if (i == j && !(v > 0 && isfinite(v)))
                return false;
            l[i * q + j] = i == j ? sqrt(v) : v / l[j * q + j];
        }
    for (size_t i = 0; i < q; i++) {
        w->step[i] = w->gradient[i];
        for (size_t p = 0; p < i; p++)
            w->step[i] -= l[i * q + p] * w->step[p];
        w->step[i] /= l[i * q + i];
    }
    for (size_t i = q; i-- > 0;) {
        for (size_t p = i + 1; p < q; p++)
            w->step[i] -= l[p * q + i] * w->step[p];
        w->step[i] /= l[i * q + i];
    }
    return true;
}

/* Walks w->at to a minimum and returns its value. */
static double descend(walker *w, const pnb__latent_opts *opts, bool *is_converged)
{
    size_t q = w->s->kernel.dim;
    double value = value_at(w, w->at), lambda = 0;
    *is_converged = false;
    for (size_t step = 0; step < opts->max_steps && !*is_converged; step++) {
        slopes_here(w);
        double scale = 0;
        for (size_t i = 0; i < q; i++)
            scale = PNB_MAX(scale, fabs(w->hessian[i * q + i]));
        const double least = 1e-8 * scale + 1e-12, most = 1e8 * scale + 1;
        for (bool moved = false; !moved;) {
            if (lambda > most) { /* no way down: a minimum as far as doubles tell */
                *is_converged = true;
                return value;
            }
            if (!solve_step(w, lambda)) {
                lambda = PNB_MAX(4 * lambda, PNB_MAX(1e-3 * scale, least));
                continue;
            }
            if (0.5 * pnb__dense_dot(w->gradient, w->step, q) < opts->tolerance) {
                *is_converged = true;
                break;
            }
            for (size_t i = 0; i < q; i++)
                w->trial[i] = w->at[i] - w->step[i];
            double next = value_at(w, w->trial);
            moved = next < value;
            if (moved) {
                w->has_slopes = false;
                memcpy(w->at, w->trial, q * sizeof *w->at);
                value = next;
                lambda = lambda / 8 < least ? 0 : lambda / 8;
            } else {
                lambda = PNB_MAX(4 * lambda, PNB_MAX(1e-3 * scale, least));
            }
        }
    }
    return value;
}

/* The released code's search: opts->max_steps steps of Adam. */
static double descend_by_adam(walker *w, const pnb__latent_opts *opts, bool *is_converged)
{
    const double beta1 = 0.9, beta2 = 0.999;
    size_t q = w->s->kernel.dim;
    double *first = w->trial, *second = w->step;
    memset(first, 0, q * sizeof *first);
    memset(second, 0, q * sizeof *second);
    *is_converged = false;
    for (size_t step = 1; step <= opts->max_steps; step++) {
        double by1 = 1 - pow(beta1, (double)step), by2 = 1 - pow(beta2, (double)step);
        value_at(w, w->at);
        gradient_here(w);
        for (size_t i = 0; i < q; i++) {
            double g = w->gradient[i];
            first[i] = beta1 * first[i] + (1 - beta1) * g;
            second[i] = beta2 * second[i] + (1 - beta2) * g * g;
            w->at[i] -= opts->adam_rate * first[i] / by1 / (sqrt(second[i] / by2) + 1e-8);
        }
    }
    return value_at(w, w->at);
}

typedef struct job {
    const pnb__latent_search *s;
    const double *y, *start;
    size_t n_starts;
    const pnb__latent_opts *opts;
    const pnb__latent_out *out;
    atomic_bool out_of_memory;
} job;

static void find_latent(const job *j, walker *w, size_t row)
{
    size_t q = w->s->kernel.dim, d = w->s->n_outputs;
    double best = INFINITY;
    memcpy(j->out->x + row * q, j->start + row * j->n_starts * q, q * sizeof *w->at);
    memset(w->h, 0, w->s->m * sizeof *w->h);
    for (size_t i = 0; i < d; i++) {
        double apart = j->y[row * d + i] - w->s->constant[i];
        for (size_t p = 0; p < w->s->m; p++)
            w->h[p] += apart * w->s->pull[i * w->s->m + p];
    }
    for (size_t start = 0; start < j->n_starts; start++) {
        bool is_converged;
        w->has_slopes = false;
        memcpy(w->at, j->start + (row * j->n_starts + start) * q, q * sizeof *w->at);
        double value = j->opts->adam_rate > 0 ? descend_by_adam(w, j->opts, &is_converged)
                                              : descend(w, j->opts, &is_converged);
        if (!(value < best))
            continue;
        best = value;
        memcpy(j->out->x + row * q, w->at, q * sizeof *w->at);
        if (j->out->value != NULL)
            j->out->value[row] = value;
        if (j->out->is_converged != NULL)
            j->out->is_converged[row] = is_converged;
        if (j->out->hessian != NULL) {
            if (!w->has_slopes) {
                value_at(w, w->at);
                slopes_here(w);
            }
            memcpy(j->out->hessian + row * q * q, w->hessian, q * q * sizeof *w->hessian);
        }
    }
}

static void find_range(void *user, size_t begin, size_t end, int thread)
{
    (void)thread;
    job *j = user;
    double *room = pnb__alloc_array(walker_doubles(j->s), sizeof *room);
    if (room == NULL) {
        atomic_store(&j->out_of_memory, true);
        return;
    }
    walker w = walker_in(j->s, room);
    for (size_t row = begin; row < end; row++)
        find_latent(j, &w, row);
    pnb__free(room);
}

static pnb_status check_rows(const double *x, size_t n, size_t width, const char *what,
                             pnb_error *err)
{
    for (size_t i = 0; i < n * width; i++)
        if (!isfinite(x[i]))
            return pnb__fail(err, PNB_NUMERIC, "%s %zu is not finite", what, i / width);
    return PNB_OK;
}

pnb_status pnb__latent_search_run(const pnb__latent_search *s, const double *y, size_t n,
                                  const double *start, size_t n_starts,
                                  const pnb__latent_opts *opts, const pnb__latent_out *out,
                                  pnb_error *err)
{
    pnb__latent_opts given = opts != NULL ? *opts : pnb__latent_opts_default();
    job j = {s, y, start, n_starts, &given, out, false};
    if (n_starts == 0)
        return pnb__fail(err, PNB_ARG, "a latent needs a point to start from");
    pnb_status status = check_rows(y, n, s->n_outputs, "embedding", err);
    if (status == PNB_OK)
        status = check_rows(start, n * n_starts, s->kernel.dim, "start", err);
    if (status != PNB_OK)
        return status;
    pnb__parallel_for(s->ctx, n, 1, find_range, &j);
    return atomic_load(&j.out_of_memory) ? pnb__fail_nomem(err, walker_doubles(s) * sizeof(double))
                                         : PNB_OK;
}
