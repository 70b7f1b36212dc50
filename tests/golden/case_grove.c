/* GroVE's released step (`grove_step`) and latent search (`grove_infer`) of the golden family gp: D
 * processes, each with inducing points and a kernel of its own, mixed by a dense matrix. */
#include "tests/golden/golden.h"

#include <math.h>
#include <string.h>

#include "adapt/gp/grove_loss.h"
#include "adapt/gp/inducing.h"

/* One side: what the case holds, and what its graph is fed with. */
typedef struct side {
    const char *prefix; /* "image.", "text." or "" */
    size_t d, m, q, n;
    double jitter;
    double *z, *raw_scale, *raw_lengthscale, *values[6];
    double *chol, *b, *db, *prior, *scale, *lengthscale;
    pnb__inducing inducing;
    pnb__inducing_set *sets;
    pnb__tensor *leaf[6], *prior_leaf, *b_leaf;
    pnb__grove_side graph;
} side;

/* Parameters that the graph has as they are, by their names in the case. */
enum { Q_MEAN, Q_CHOL, CONSTANT, TASK_NOISE, NOISE, MIXING };
static const char *const leaf_names[6] = {"q_mean",         "q_chol",    "mean_const",
                                          "raw_task_noise", "raw_noise", "lmc"};

static double *read(const side *s, const golden_case *c, const char *name, size_t *n,
                    pnb_error *err)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", s->prefix, name);
    return golden_f64(c, full, n, err);
}

static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

static pnb_status read_side(side *s, const golden_case *c, pnb_error *err)
{
    s->d = (size_t)golden_number(c, "D", 0);
    s->m = (size_t)golden_number(c, "M", 0);
    s->q = (size_t)golden_number(c, "Q", 0);
    s->n = (size_t)golden_number(c, "B", 0);
    s->jitter = golden_number(c, "jitter", 0);
    s->z = read(s, c, "Z", NULL, err);
    s->raw_scale = read(s, c, "raw_outputscale", NULL, err);
    s->raw_lengthscale = read(s, c, "raw_lengthscale", NULL, err);
    for (int i = 0; i < 6; i++)
        s->values[i] = read(s, c, leaf_names[i], NULL, err);
    if (err->status != PNB_OK)
        return err->status;
    size_t d = s->d, m = s->m;
    s->sets = pnb__alloc_zero(d, sizeof *s->sets);
    s->chol = pnb__alloc_zero(d * m * m + 2 * d * m * s->n + 3 * d, sizeof(double));
    if (s->sets == NULL || s->chol == NULL)
        return pnb__fail_nomem(err, d * m * m * sizeof(double));
    s->b = s->chol + d * m * m;
    s->db = s->b + d * m * s->n;
    s->prior = s->db + d * m * s->n;
    s->scale = s->prior + d;
    s->lengthscale = s->scale + d;
    for (size_t i = 0; i < d; i++) {
        s->scale[i] = softplus(s->raw_scale[i]);
        s->lengthscale[i] = softplus(s->raw_lengthscale[i]);
        s->prior[i] = s->scale[i] + s->jitter;
        s->sets[i] =
            (pnb__inducing_set){.kernel = {PNB__GP_RBF, s->q, 1, &s->lengthscale[i], s->scale[i]},
                                .z = s->z + i * m * s->q,
                                .chol = s->chol + i * m * m,
                                .b = s->b + i * m * s->n};
    }
    return pnb__inducing_init(&s->inducing, c->ctx, m, s->n, s->jitter, err);
}

static void free_side(side *s)
{
    pnb__inducing_reset(&s->inducing);
    pnb__free(s->z);
    pnb__free(s->raw_scale);
    pnb__free(s->raw_lengthscale);
    for (int i = 0; i < 6; i++)
        pnb__free(s->values[i]);
    pnb__free(s->sets);
    pnb__free(s->chol);
}

static pnb__tensor *leaf(pnb__graph *g, int n_dims, const size_t *shape)
{
    pnb__tensor *t = pnb__input_with_grad(g, n_dims, shape);
    pnb__keep_grad(t);
    return t;
}

/* noise of output t = softplus(task_t) + 1e-4 + softplus(all) + 1e-4 */
static pnb__tensor *noise_of(side *s)
{
    return pnb__affine(pnb__add(pnb__apply(PNB__SOFTPLUS, s->leaf[TASK_NOISE]),
                                pnb__apply(PNB__SOFTPLUS, s->leaf[NOISE])),
                       1, 2e-4);
}

static void declare_side(side *s, pnb__graph *g)
{
    size_t d = s->d, m = s->m, column[] = {d, 1}, one[] = {1, 1};
    s->leaf[Q_MEAN] = leaf(g, 2, (size_t[]){d, m});
    s->leaf[Q_CHOL] = leaf(g, 3, (size_t[]){d, m, m});
    s->leaf[CONSTANT] = leaf(g, 2, column);
    s->leaf[TASK_NOISE] = leaf(g, 2, column);
    s->leaf[NOISE] = leaf(g, 2, one);
    s->leaf[MIXING] = leaf(g, 2, (size_t[]){d, d});
    s->prior_leaf = leaf(g, 2, column);
    s->b_leaf = leaf(g, 3, (size_t[]){d, m, s->n});
    s->graph = (pnb__grove_side){.f = {.form = PNB__SVGP_PER_OUTPUT,
                                       .n_outputs = d,
                                       .m = m,
                                       .n = s->n,
                                       .b = s->b_leaf,
                                       .prior = s->prior_leaf,
                                       .q_mean = s->leaf[Q_MEAN],
                                       .q_chol = s->leaf[Q_CHOL],
                                       .constant = s->leaf[CONSTANT]},
                                 .noise = noise_of(s),
                                 .y = pnb__input(g, PNB__REAL, 2, (size_t[]){d, s->n}),
                                 .mixing = s->leaf[MIXING],
                                 .added_var = s->jitter};
    pnb__svgp_inputs(g, &s->graph.f);
}

/* y of the case is (N,D) */
static pnb_status write_side(side *s, const golden_case *c, const char *y_name, pnb_error *err)
{
    double *y = golden_f64(c, y_name, NULL, err);
    double *columns = pnb__alloc_array(s->n * s->d, sizeof *columns);
    pnb_status status = err->status;
    if (y == NULL || columns == NULL)
        PNB_TRY(status != PNB_OK ? status : pnb__fail_nomem(err, s->n * s->d * sizeof *columns));
    for (size_t i = 0; i < s->n * s->d; i++)
        columns[i % s->d * s->n + i / s->d] = y[i];
    pnb__write_f64(s->graph.y, columns);
    for (int i = 0; i < 6; i++)
        pnb__write_f64(s->leaf[i], s->values[i]);
    pnb__write_f64(s->prior_leaf, s->prior);
    for (size_t i = 0; i < s->d; i++)
        PNB_TRY(pnb__inducing_factorise(&s->inducing, &s->sets[i], err));
    status = pnb__svgp_write_inputs(&s->graph.f, err);
done:
    pnb__free(y);
    pnb__free(columns);
    return status;
}

static void project_side(side *s, const double *x)
{
    for (size_t i = 0; i < s->d; i++)
        pnb__inducing_project(&s->inducing, &s->sets[i], x, s->n);
    pnb__write_f64(s->b_leaf, s->b);
}

/* Adds to dx, and to the others where they are not NULL, what the graph's run left at B. */
typedef struct side_grad {
    double *dx, *dz, *dscale, *dlengthscale; /* (N,Q), (D,M,Q), (D), (D) */
} side_grad;
static void backward_side(side *s, const double *x, const side_grad *out)
{
    double *dprior = s->prior; /* written anew before every use */
    pnb__read_grad_f64(s->b_leaf, s->db);
    pnb__read_grad_f64(s->prior_leaf, dprior);
    for (size_t i = 0; i < s->d; i++) {
        pnb__inducing_slopes slopes = {.db = s->db + i * s->m * s->n, .dprior = dprior[i]};
        pnb__gp_kernel_grad grad = {out->dx, out->dz != NULL ? out->dz + i * s->m * s->q : NULL,
                                    out->dlengthscale != NULL ? out->dlengthscale + i : NULL,
                                    out->dscale != NULL ? out->dscale + i : NULL};
        pnb__inducing_backward(&s->inducing, &s->sets[i], x, s->n, &slopes, &grad);
    }
}

static void give(golden_case *c, const char *kind, const side *s, const char *name,
                 const double *values, size_t n)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s%s", kind, s->prefix, name);
    golden_give(c, full, values, n);
}

/* A (D,N) tensor under a name that wants (N,D), `added` (D) to every column or NULL. */
static void give_rows(golden_case *c, const side *s, const char *name, const pnb__tensor *t,
                      const double *added)
{
    double *in = pnb__alloc_array(2 * s->n * s->d, sizeof *in), *out = in + s->n * s->d;
    if (in == NULL)
        return;
    pnb__read_f64(t, in);
    for (size_t i = 0; i < s->n * s->d; i++)
        out[i] = in[i % s->d * s->n + i / s->d] + (added != NULL ? added[i % s->d] : 0);
    give(c, "", s, name, out, s->n * s->d);
    pnb__free(in);
}

static pnb_status give_side(golden_case *c, side *s, const double *x, double *dx, pnb_error *err)
{
    size_t d = s->d, most = d * s->m * PNB_MAX(s->m, s->q) + d * d;
    double *room = pnb__alloc_zero(most + d * s->m * s->q + 2 * d, sizeof *room);
    if (room == NULL)
        return pnb__fail_nomem(err, most * sizeof *room);
    double *dz = room + most, *dscale = dz + d * s->m * s->q, *dlengthscale = dscale + d;
    side_grad grad = {dx, dz, dscale, dlengthscale};
    give_rows(c, s, "mean", s->graph.mean, NULL);
    give_rows(c, s, "var", s->graph.var, NULL);
    double terms[] = {pnb__read_scalar(s->graph.log_lik), pnb__read_scalar(s->graph.kl),
                      pnb__read_scalar(s->graph.neg_elbo)};
    give(c, "", s, "elbo_ll", &terms[0], 1);
    give(c, "", s, "kl_u", &terms[1], 1);
    give(c, "", s, "neg_elbo", &terms[2], 1);
    for (int i = 0; i < 6; i++) {
        pnb__read_grad_f64(s->leaf[i], room);
        give(c, "grad.", s, leaf_names[i], room, pnb__n(s->leaf[i]));
    }
    backward_side(s, x, &grad);
    for (size_t i = 0; i < d; i++) { /* through softplus */
        dscale[i] /= 1 + exp(-s->raw_scale[i]);
        dlengthscale[i] /= 1 + exp(-s->raw_lengthscale[i]);
    }
    give(c, "grad.", s, "Z", dz, d * s->m * s->q);
    give(c, "grad.", s, "raw_outputscale", dscale, d);
    give(c, "grad.", s, "raw_lengthscale", dlengthscale, d);
    pnb__free(room);
    return PNB_OK;
}

static void keep_side(const side *s)
{
    pnb__keep(s->graph.mean);
    pnb__keep(s->graph.var);
    pnb__keep(s->graph.log_lik);
    pnb__keep(s->graph.kl);
    pnb__keep(s->graph.neg_elbo);
}

static pnb_status run_step(golden_case *c, pnb_error *err)
{
    side sides[2] = {{.prefix = "image."}, {.prefix = "text."}};
    static const char *const y_names[2] = {"y.image", "y.text"};
    pnb__graph *g = NULL;
    double *x = golden_f64(c, "X", NULL, err), *dx = NULL, *kl = NULL;
    pnb__grove_loss_opts opts = {.elbo_weight = 1 / golden_number(c, "elbo_divisor", 100),
                                 .align_weight = 2 * golden_number(c, "LOSS_WEIGHT", 200),
                                 .align = PNB__ALIGN_KL,
                                 .n_data = golden_number(c, "num_data", 1)};
    pnb__grove_side graphs[2];
    pnb_status status = err->status;
    PNB_TRY(status);
    PNB_TRY(pnb__graph_create(&g, c->ctx, PNB__F64, true, err));
    for (int s = 0; s < 2; s++) {
        PNB_TRY(read_side(&sides[s], c, err));
        declare_side(&sides[s], g);
        graphs[s] = sides[s].graph;
    }
    pnb__tensor *total = pnb__grove_loss_build(graphs, &opts), *ways[2];
    for (int s = 0; s < 2; s++) {
        sides[s].graph = graphs[s];
        keep_side(&sides[s]);
        ways[s] = pnb__gauss_kl((pnb__gauss){graphs[s].mean, graphs[s].var},
                                (pnb__gauss){graphs[1 - s].mean, graphs[1 - s].var});
        pnb__keep(ways[s]);
    }
    pnb__keep(total);
    PNB_TRY(pnb__graph_plan(g, total, err));
    dx = pnb__alloc_zero(sides[0].n * sides[0].q, sizeof *dx);
    kl = pnb__alloc_zero(sides[0].n, sizeof *kl);
    if (dx == NULL || kl == NULL)
        PNB_TRY(pnb__fail_nomem(err, sides[0].n * sides[0].q * sizeof *dx));
    for (int s = 0; s < 2; s++) {
        PNB_TRY(write_side(&sides[s], c, y_names[s], err));
        project_side(&sides[s], x);
    }
    PNB_TRY(pnb__graph_run(g, err));
    golden_give_scalar(c, "total", pnb__read_scalar(total));
    for (int s = 0; s < 2; s++) {
        pnb__read_f64(ways[s], kl);
        golden_give(c, s == 0 ? "kl_im2txt" : "kl_txt2im", kl, sides[s].n);
        PNB_TRY(give_side(c, &sides[s], x, dx, err));
    }
    golden_give(c, "grad.X", dx, sides[0].n * sides[0].q);
done:
    pnb__graph_free(g);
    free_side(&sides[0]);
    free_side(&sides[1]);
    pnb__free(x);
    pnb__free(dx);
    pnb__free(kl);
    return status;
}

/* ---- the latent search of the released evaluation: Adam on the latents of a batch ---- */
typedef struct adam {
    double lr, beta1, beta2, eps;
    double *m, *v;
} adam;

static void adam_step(const adam *a, int step, const double *grad, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        a->m[i] = a->beta1 * a->m[i] + (1 - a->beta1) * grad[i];
        a->v[i] = a->beta2 * a->v[i] + (1 - a->beta2) * grad[i] * grad[i];
        double m = a->m[i] / (1 - pow(a->beta1, step)), v = a->v[i] / (1 - pow(a->beta2, step));
        x[i] -= a->lr * m / (sqrt(v) + a->eps);
    }
}

static pnb_status run_infer(golden_case *c, pnb_error *err)
{
    side s = {.prefix = ""};
    pnb__graph *g = NULL;
    double *room = NULL, *x = golden_f64(c, "X0", NULL, err), losses[256];
    int n_steps = (int)golden_number(c, "num_epochs", 20);
    pnb_status status = err->status;
    PNB_TRY(status);
    PNB_TRY(read_side(&s, c, err));
    if (n_steps > (int)PNB_COUNT(losses))
        PNB_TRY(pnb__fail(err, PNB_LIMIT, "%d steps", n_steps));
    size_t n = s.n * s.q;
    room = pnb__alloc_zero(3 * n + s.d, sizeof *room);
    if (room == NULL)
        PNB_TRY(pnb__fail_nomem(err, 3 * n * sizeof *room));
    adam a = {golden_number(c, "lr", 0.1), 0.9, 0.999, 1e-8, room + n, room + 2 * n};
    PNB_TRY(pnb__graph_create(&g, c->ctx, PNB__F64, true, err));
    declare_side(&s, g);
    pnb__grove_side_build(&s.graph, (double)s.n);
    keep_side(&s);
    PNB_TRY(pnb__graph_plan(g, s.graph.neg_elbo, err));
    PNB_TRY(write_side(&s, c, "y", err));
    for (int step = 1; step <= n_steps + 1; step++) {
        project_side(&s, x);
        PNB_TRY(pnb__graph_run(g, err));
        if (step > n_steps)
            break;
        losses[step - 1] = pnb__read_scalar(s.graph.neg_elbo);
        memset(room, 0, n * sizeof *room);
        backward_side(&s, x, &(side_grad){.dx = room});
        adam_step(&a, step, room, x, n);
    }
    double *noise = room + 3 * n;
    for (size_t i = 0; i < s.d; i++)
        noise[i] = softplus(s.values[TASK_NOISE][i]) + softplus(s.values[NOISE][0]) + 2e-4;
    golden_give(c, "X_final", x, n);
    golden_give(c, "losses", losses, (size_t)n_steps);
    give_rows(c, &s, "mean", s.graph.mean, NULL);
    give_rows(c, &s, "variance", s.graph.var, noise);
done:
    pnb__graph_free(g);
    free_side(&s);
    pnb__free(room);
    pnb__free(x);
    return status;
}

pnb_status golden_case_grove(golden_case *c, pnb_error *err)
{
    return golden_find(c, "X0") != NULL ? run_infer(c, err) : run_step(c, err);
}
