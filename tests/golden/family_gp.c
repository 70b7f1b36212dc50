/* Golden family gp: kernels with their derivatives, divergences, exact regression, sparse
 * variational processes in both parameterisations. Which of them a case is shows in its tensors.
 * GroVE's own step and inference are in case_grove.c. */
#include "tests/golden/golden.h"

#include <math.h>
#include <string.h>

#include "adapt/gp/gp_exact.h"
#include "adapt/gp/svgp.h"

/* GPyTorch's names; its cosine kernel is a wave over the distance. */
static const struct {
    const char *name;
    pnb__gp_kind kind;
} kinds[] = {
    {"rbf", PNB__GP_RBF},           {"matern12", PNB__GP_MATERN12}, {"matern32", PNB__GP_MATERN32},
    {"matern52", PNB__GP_MATERN52}, {"cosine", PNB__GP_WAVE},
};

static double scalar(const golden_case *c, const char *name, pnb_error *err)
{
    double *value = golden_f64(c, name, NULL, err), v = value == NULL ? NAN : value[0];
    pnb__free(value);
    return v;
}

static pnb__gp_kind kind_of(const char *name)
{
    for (size_t i = 0; i < PNB_COUNT(kinds); i++)
        if (name != NULL && strcmp(name, kinds[i].name) == 0)
            return kinds[i].kind;
    return PNB__N_GP_KINDS;
}

/* ---- kernels ---- */
typedef struct kernel_case {
    size_t n, m, q;
    double *x, *z, *cotangent, *lengthscale[2]; /* one for all axes; one for each */
    double scale;
} kernel_case;

static void give_kernel(golden_case *c, const kernel_case *k, size_t at, bool is_ard)
{
    char name[64];
    double *room = pnb__alloc_zero(k->n * k->m + (k->n + k->m + 1) * k->q + 1, sizeof *room);
    if (room == NULL)
        return;
    double *value = room, *dx = value + k->n * k->m, *dz = dx + k->n * k->q, *dl = dz + k->m * k->q;
    double dscale = 0;
    pnb__gp_kernel kernel = {kinds[at].kind, k->q, is_ard ? k->q : 1, k->lengthscale[is_ard],
                             k->scale};
    pnb__gp_kernel_grad grad = {dx, dz, dl, &dscale};
    pnb__gp_kernel_matrix(&kernel, k->x, k->n, k->z, k->m, value);
    pnb__gp_kernel_backward(&kernel, k->x, k->n, k->z, k->m, k->cotangent, &grad);
    const char *tail = is_ard ? "_ard" : "", *of = kinds[at].name;
#define NAMED(text) (snprintf(name, sizeof name, text, of, tail), name)
    golden_give(c, NAMED("%s%s.K"), value, k->n * k->m);
    golden_give(c, NAMED("grad.%s%s.x1"), dx, k->n * k->q);
    golden_give(c, NAMED("grad.%s%s.x2"), dz, k->m * k->q);
    golden_give_scalar(c, NAMED("grad.%s%s.outputscale"), dscale);
    snprintf(name, sizeof name, "grad.%s%s.lengthscale%s", of, tail, tail);
    golden_give(c, name, dl, kernel.n_lengthscales);
#undef NAMED
    pnb__free(room);
}

static pnb_status run_kernels(golden_case *c, pnb_error *err)
{
    kernel_case k = {.scale = scalar(c, "outputscale", err)};
    size_t n = 0, m = 0;
    k.x = golden_f64(c, "x1", &n, err);
    k.z = golden_f64(c, "x2", &m, err);
    k.cotangent = golden_f64(c, "cotangent", NULL, err);
    k.lengthscale[0] = golden_f64(c, "lengthscale", NULL, err);
    k.lengthscale[1] = golden_f64(c, "lengthscale_ard", &k.q, err);
    if (err->status == PNB_OK) {
        k.n = n / k.q;
        k.m = m / k.q;
        for (size_t i = 0; i < PNB_COUNT(kinds); i++) {
            give_kernel(c, &k, i, false);
            give_kernel(c, &k, i, true);
        }
    }
    pnb__free(k.x);
    pnb__free(k.z);
    pnb__free(k.cotangent);
    pnb__free(k.lengthscale[0]);
    pnb__free(k.lengthscale[1]);
    return err->status;
}

/* ---- divergences ---- */

/* KL between full Gaussians by Cholesky factors: an oracle for the runner, not for the program. */
static pnb_status give_full_kl(golden_case *c, pnb_error *err)
{
    size_t n = 0;
    double *m0 = golden_f64(c, "full.m0", &n, err), *m1 = golden_f64(c, "full.m1", NULL, err);
    double *s0 = golden_f64(c, "full.S0", NULL, err), *s1 = golden_f64(c, "full.S1", NULL, err);
    pnb__kernels k;
    pnb__kernels_fill_host(&k, c->ctx, PNB__F64);
    if (err->status == PNB_OK && k.cholesky(c->ctx, n, s0, s0) && k.cholesky(c->ctx, n, s1, s1)) {
        double kl = -(double)n;
        for (size_t i = 0; i < n; i++) {
            kl += 2 * log(s1[i * n + i] / s0[i * n + i]);
            m0[i] -= m1[i];
        }
        k.tri_solve(c->ctx, n, n, false, s1, s0, s0); /* L1^-1 L0: its squares are the trace */
        k.tri_solve(c->ctx, n, 1, false, s1, m0, m0);
        for (size_t i = 0; i < n * n; i++)
            kl += s0[i] * s0[i];
        for (size_t i = 0; i < n; i++)
            kl += m0[i] * m0[i];
        golden_give_scalar(c, "full.kl", kl / 2);
    }
    pnb__free(m0);
    pnb__free(m1);
    pnb__free(s0);
    pnb__free(s1);
    return err->status;
}

static pnb__tensor *transposed(pnb__tensor *x)
{
    return pnb__permute(x, (int[]){1, 0});
}

static pnb_status give_diagonal_kl(golden_case *c, pnb_error *err)
{
    static const char *const names[] = {"mu0", "var0", "mu1", "var1"};
    pnb__graph *g = NULL;
    pnb__tensor *in[4] = {0};
    pnb_status status = PNB_OK;
    const pnb_array_view *view = golden_find(c, "mu0");
    size_t shape[2] = {(size_t)view->shape[0], (size_t)view->shape[1]}, n = shape[0] * shape[1];
    double *values = pnb__alloc_array(n + 1, sizeof *values);
    if (values == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * sizeof *values));
    PNB_TRY(pnb__graph_create(&g, c->ctx, PNB__F64, true, err));
    for (int i = 0; i < 4; i++) {
        in[i] = pnb__input_with_grad(g, 2, shape);
        pnb__keep_grad(in[i]);
    }
    pnb__tensor *kl = pnb__gauss_kl((pnb__gauss){transposed(in[0]), transposed(in[1])},
                                    (pnb__gauss){transposed(in[2]), transposed(in[3])});
    pnb__keep(kl);
    PNB_TRY(pnb__graph_plan(g, pnb__mean(kl, 0), err));
    for (int i = 0; i < 4; i++) {
        double *x = golden_f64(c, names[i], NULL, err);
        PNB_TRY(err->status);
        pnb__write_f64(in[i], x);
        pnb__free(x);
    }
    PNB_TRY(pnb__graph_run(g, err));
    pnb__read_f64(kl, values);
    golden_give(c, "kl", values, shape[0]);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "grad.%s", names[i]);
        pnb__read_grad_f64(in[i], values);
        golden_give(c, name, values, n);
    }
done:
    pnb__graph_free(g);
    pnb__free(values);
    return status;
}

static pnb_status run_kl(golden_case *c, pnb_error *err)
{
    pnb_status status = give_diagonal_kl(c, err);
    return status == PNB_OK ? give_full_kl(c, err) : status;
}

/* ---- one output over inducing points ---- */

/* A sparse process of one output: values of the case, and where derivatives are added. */
typedef struct svgp_case {
    size_t n, m, q;
    bool whitened;
    double n_data, jitter;
    double *x, *z, *y, *q_mean, *q_chol;
    double lengthscale, scale, noise, constant;

    double *dx, *dz, *db, *dchol, *room;
    double dlengthscale, dscale;
    pnb__inducing inducing;
    pnb__inducing_set set;
} svgp_case;

static void free_svgp(svgp_case *s)
{
    double *const all[] = {s->x,  s->z,  s->y,     s->q_mean, s->q_chol,   s->dx,
                           s->dz, s->db, s->dchol, s->room,   s->set.chol, s->set.b};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        pnb__free(all[i]);
    pnb__inducing_reset(&s->inducing);
}

static pnb_status read_svgp(svgp_case *s, const golden_case *c, pnb_error *err)
{
    const char *kernel = json_string_value(golden_value(c, "kernel"));
    s->q = (size_t)golden_number(c, "Q", 1);
    s->whitened = golden_flag(c, "whitened", false);
    s->n_data = golden_number(c, "num_data", 1);
    s->jitter = golden_number(c, "jitter_on_Kzz", 0);
    size_t n = 0, m = 0;
    s->x = golden_f64(c, "X", &n, err);
    s->z = golden_f64(c, "Z", &m, err);
    s->y = golden_f64(c, "y", NULL, err);
    s->q_mean = golden_f64(c, "q_mean", NULL, err);
    s->q_chol = golden_f64(c, "q_chol", NULL, err);
    s->lengthscale = scalar(c, "lengthscale", err);
    s->scale = scalar(c, "outputscale", err);
    s->noise = scalar(c, "noise", err);
    s->constant = scalar(c, "mean_const", err);
    if (err->status != PNB_OK)
        return err->status;
    s->n = n / s->q;
    s->m = m / s->q;
    s->dx = pnb__alloc_zero(n, sizeof *s->dx);
    s->dz = pnb__alloc_zero(m, sizeof *s->dz);
    s->db = pnb__alloc_zero(s->m * s->n, sizeof *s->db);
    s->dchol = pnb__alloc_zero(s->m * s->m, sizeof *s->dchol);
    s->room = pnb__alloc_zero(s->m * s->m + s->n, sizeof *s->room);
    s->set.chol = pnb__alloc_zero(s->m * s->m, sizeof *s->set.chol);
    s->set.b = pnb__alloc_zero(s->m * s->n, sizeof *s->set.b);
    s->set.kernel = (pnb__gp_kernel){kind_of(kernel), s->q, 1, &s->lengthscale, s->scale};
    s->set.z = s->z;
    pnb_status status = pnb__inducing_init(&s->inducing, c->ctx, s->m, s->n, s->jitter, err);
    if (status == PNB_OK)
        status = pnb__inducing_factorise(&s->inducing, &s->set, err);
    if (status == PNB_OK)
        pnb__inducing_project(&s->inducing, &s->set, s->x, s->n);
    return status;
}

/* The graph of the case: q(v) is the parameter itself where it is whitened; else q(u), whose mean
 * and factor L^-1 makes into q(v)'s. */
typedef struct svgp_graph {
    pnb__graph *g;
    pnb__svgp f;
    pnb__tensor *chol, *q_mean, *q_chol, *noise, *y, *log_lik, *elbo, *per_datum;
    pnb__svgp_out out;
} svgp_graph;

static pnb__tensor *leaf(svgp_graph *v, int n_dims, const size_t *shape)
{
    pnb__tensor *t = pnb__input_with_grad(v->g, n_dims, shape);
    pnb__keep_grad(t);
    return t;
}

static pnb_status build_svgp(svgp_graph *v, const svgp_case *s, const pnb_ctx *ctx, pnb_error *err)
{
    size_t m = s->m, one[] = {1, 1};
    pnb_status status = pnb__graph_create(&v->g, ctx, PNB__F64, true, err);
    if (status != PNB_OK)
        return status;
    v->f = (pnb__svgp){.form = PNB__SVGP_PER_OUTPUT, .n_outputs = 1, .m = m, .n = s->n};
    v->f.b = leaf(v, 3, (size_t[]){1, m, s->n});
    v->f.prior = leaf(v, 2, one);
    v->f.constant = leaf(v, 2, one);
    v->noise = leaf(v, 2, one);
    v->chol = leaf(v, 2, (size_t[]){m, m});
    v->q_mean = leaf(v, 2, (size_t[]){1, m});
    v->q_chol = leaf(v, 2, (size_t[]){m, m});
    v->y = pnb__input(v->g, PNB__REAL, 2, (size_t[]){1, s->n});
    pnb__svgp_inputs(v->g, &v->f);
    pnb__tensor *mean = v->q_mean, *factor = v->q_chol;
    if (!s->whitened) {
        pnb__tensor *apart = transposed(pnb__sub(v->q_mean, v->f.constant));
        mean = transposed(pnb__tri_solve(v->chol, apart, false));
        factor = pnb__tri_solve(v->chol, pnb__mul(v->q_chol, v->f.lower), false);
    }
    v->f.q_mean = mean;
    v->f.q_chol = pnb__reshape(factor, 3, (size_t[]){1, m, m});
    v->out = pnb__svgp_build(&v->f);
    v->log_lik = pnb__gauss_expected_log_lik(v->y, v->out.mean, v->out.var, v->noise);
    v->elbo = pnb__sub(v->log_lik, v->out.kl);
    v->per_datum = pnb__sub(pnb__affine(v->log_lik, 1 / (double)s->n, 0),
                            pnb__affine(v->out.kl, 1 / s->n_data, 0));
    pnb__keep(v->out.mean);
    pnb__keep(v->out.var);
    pnb__keep(v->out.kl);
    pnb__keep(v->elbo);
    pnb__keep(v->per_datum);
    return pnb__graph_plan(v->g, v->per_datum, err);
}

static pnb_status run_graph(svgp_graph *v, const svgp_case *s, pnb_error *err)
{
    pnb_status status = pnb__svgp_write_inputs(&v->f, err);
    if (status != PNB_OK)
        return status;
    pnb__write_f64(v->f.b, s->set.b);
    pnb__write_f64(v->f.prior, &s->scale);
    pnb__write_f64(v->f.constant, &s->constant);
    pnb__write_f64(v->noise, &s->noise);
    pnb__write_f64(v->chol, s->set.chol);
    pnb__write_f64(v->q_mean, s->q_mean);
    pnb__write_f64(v->q_chol, s->q_chol);
    pnb__write_f64(v->y, s->y);
    return pnb__graph_run(v->g, err);
}

static void give_svgp(golden_case *c, svgp_graph *v, svgp_case *s)
{
    double *room = s->room, single = 0;
    pnb__read_f64(v->out.mean, room);
    golden_give(c, "mean", room, s->n);
    double *y = s->y, *ll = pnb__alloc_array(s->n, sizeof *ll);
    double *var = pnb__alloc_array(s->n, sizeof *var);
    if (ll == NULL || var == NULL) {
        pnb__free(ll);
        pnb__free(var);
        return;
    }
    pnb__read_f64(v->out.var, var);
    golden_give(c, "var", var, s->n);
    for (size_t i = 0; i < s->n; i++)
        ll[i] = -0.5 * (log(2 * 3.14159265358979323846 * s->noise) +
                        ((y[i] - room[i]) * (y[i] - room[i]) + var[i]) / s->noise);
    golden_give(c, "expected_ll", ll, s->n);
    pnb__free(ll);
    pnb__free(var);
    golden_give_scalar(c, "kl", pnb__read_scalar(v->out.kl));
    golden_give_scalar(c, "elbo", pnb__read_scalar(v->elbo));
    golden_give_scalar(c, "elbo_gpytorch", pnb__read_scalar(v->per_datum));
    pnb__read_grad_f64(v->q_mean, room);
    golden_give(c, "grad.q_mean", room, s->m);
    pnb__read_grad_f64(v->q_chol, room);
    golden_give(c, "grad.q_chol", room, s->m * s->m);
    pnb__read_grad_f64(v->f.constant, &single);
    golden_give_scalar(c, "grad.mean_const", single);
    pnb__read_grad_f64(v->noise, &single);
    golden_give_scalar(c, "grad.noise", single);
}

static void give_inducing(golden_case *c, svgp_graph *v, svgp_case *s)
{
    pnb__inducing_slopes slopes = {.db = s->db, .dchol = s->dchol};
    pnb__gp_kernel_grad grad = {s->dx, s->dz, &s->dlengthscale, &s->dscale};
    pnb__read_grad_f64(v->f.b, s->db);
    pnb__read_grad_f64(v->f.prior, &slopes.dprior);
    if (!pnb__read_grad_f64(v->chol, s->dchol)) /* not read where q(v) is whitened */
        slopes.dchol = NULL;
    pnb__inducing_backward(&s->inducing, &s->set, s->x, s->n, &slopes, &grad);
    golden_give(c, "grad.X", s->dx, s->n * s->q);
    golden_give(c, "grad.Z", s->dz, s->m * s->q);
    golden_give_scalar(c, "grad.lengthscale", s->dlengthscale);
    golden_give_scalar(c, "grad.outputscale", s->dscale);
}

static pnb_status run_svgp(golden_case *c, pnb_error *err)
{
    svgp_case s = {0};
    svgp_graph v = {0};
    pnb_status status;
    PNB_TRY(read_svgp(&s, c, err));
    PNB_TRY(build_svgp(&v, &s, c->ctx, err));
    PNB_TRY(run_graph(&v, &s, err));
    give_svgp(c, &v, &s);
    give_inducing(c, &v, &s);
done:
    pnb__graph_free(v.g);
    free_svgp(&s);
    return status;
}

/* ---- exact regression, and the sparse process with a point at every input ---- */
static pnb_status give_collapsed(golden_case *c, const pnb__gp_exact *gp, const double *x_test,
                                 size_t n_test, pnb_error *err)
{
    size_t n = gp->data.n;
    pnb__inducing inducing = {0};
    pnb__inducing_set set = {.kernel = gp->kernel, .z = gp->data.x};
    pnb__gp_collapsed_out out = {0};
    double *room = pnb__alloc_zero(3 * n * n + n * n_test + n + 2 * n_test, sizeof *room);
    pnb_status status = PNB_OK;
    if (room == NULL)
        PNB_TRY(pnb__fail_nomem(err, 3 * n * n * sizeof *room));
    set.chol = room;
    out.q_chol = set.chol + n * n;
    set.b = out.q_chol + n * n;
    out.q_mean = set.b + n * PNB_MAX(n, n_test);
    double *mean = out.q_mean + n, *var = mean + n_test;
    PNB_TRY(pnb__inducing_init(&inducing, c->ctx, n, PNB_MAX(n, n_test), 1e-12, err));
    PNB_TRY(pnb__inducing_factorise(&inducing, &set, err));
    PNB_TRY(pnb__gp_collapsed(&inducing, &set, &gp->data, &out, err));
    golden_give_scalar(c, "elbo", out.bound);
    pnb__inducing_project(&inducing, &set, x_test, n_test);
    for (size_t j = 0; j < n_test; j++) {
        mean[j] = gp->data.constant[0];
        var[j] = gp->kernel.scale;
        for (size_t i = 0; i < n; i++) {
            double b = set.b[i * n_test + j], t = 0;
            for (size_t p = i; p < n; p++)
                t += out.q_chol[p * n + i] * set.b[p * n_test + j];
            mean[j] += b * out.q_mean[i];
            var[j] += t * t - b * b;
        }
    }
    golden_give(c, "svgp_mean", mean, n_test);
    golden_give(c, "svgp_var", var, n_test);
done:
    pnb__inducing_reset(&inducing);
    pnb__free(room);
    return status;
}

static pnb_status run_exact(golden_case *c, pnb_error *err)
{
    size_t q = (size_t)golden_number(c, "Q", 1), n = 0, n_test = 0;
    double lengthscale = scalar(c, "lengthscale", err), constant = scalar(c, "mean_const", err);
    double *x = golden_f64(c, "X", &n, err), *y = golden_f64(c, "y", NULL, err);
    double *x_test = golden_f64(c, "Xtest", &n_test, err);
    double *out = pnb__alloc_array(2 * n_test + 1, sizeof *out);
    pnb__gp_kernel kernel = {kind_of(json_string_value(golden_value(c, "kernel"))), q, 1,
                             &lengthscale, scalar(c, "outputscale", err)};
    pnb__gp_data data = {n / q, 1, x, y, &constant, scalar(c, "noise", err)};
    pnb__gp_exact gp = {0};
    pnb_status status = err->status;
    if (status != PNB_OK || out == NULL)
        goto done;
    n_test /= q;
    PNB_TRY(pnb__gp_exact_fit(&gp, c->ctx, &kernel, &data, err));
    PNB_TRY(pnb__gp_exact_predict(&gp, x_test, n_test, out, out + n_test, err));
    golden_give_scalar(c, "log_marginal_likelihood", gp.log_marginal);
    golden_give(c, "exact_mean", out, n_test);
    golden_give(c, "exact_var", out + n_test, n_test);
    status = give_collapsed(c, &gp, x_test, n_test, err);
done:
    pnb__gp_exact_reset(&gp);
    pnb__free(x);
    pnb__free(y);
    pnb__free(x_test);
    pnb__free(out);
    return status;
}

pnb_status golden_family_gp(golden_case *c, pnb_error *err)
{
    if (golden_find(c, "cotangent") != NULL)
        return run_kernels(c, err);
    if (golden_find(c, "full.S0") != NULL)
        return run_kl(c, err);
    if (golden_find(c, "Xtest") != NULL)
        return run_exact(c, err);
    if (golden_find(c, "q_chol") != NULL && golden_find(c, "raw_noise") == NULL)
        return run_svgp(c, err);
    return golden_case_grove(c, err);
}
