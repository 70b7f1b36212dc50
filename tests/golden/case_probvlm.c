/* ProbVLM in the golden family adapters: two BayesCaps, the loss with its cross-modal terms, all
 * gradients, and the statistics of passes with given dropout masks. */
#include "tests/golden/net.h"

#include <math.h>
#include <string.h>

#include "adapt/gen_gauss_loss.h"

enum { IMAGE, TEXT, N_SIDES };
static const char *const prefixes[N_SIDES] = {"img_BayesCap", "txt_BayesCap"};
static const char *const features[N_SIDES] = {"z_image", "z_text"};
static const char *const names[N_SIDES] = {"image", "text"};

/* x_r = x + mod(x); mean, 1/alpha and beta are heads of x_r. `keep` (B, hidden), or NULL, is what
 * dropout leaves before the last layer of mod, already scaled. */
static pnb__gen_gauss bayes_cap(golden_net *net, int side, pnb__tensor *keep, pnb__unary positive)
{
    static const int first[] = {0, 2, -1}, last[] = {5, -1}, two[] = {0, 2, -1};
    char name[96];
    pnb__tensor *x = net_leaf(net, features[side]);
    snprintf(name, sizeof name, "%s.mod", prefixes[side]);
    pnb__head lower = net_head(net, name, first), upper = net_head(net, name, last);
    pnb__tensor *h = pnb__apply(PNB__RELU, pnb__head_apply(&lower, x));
    if (keep != NULL)
        h = pnb__mul(h, keep);
    pnb__tensor *r = pnb__add(pnb__head_apply(&upper, h), x);
    static const char *const blocks[] = {"block_mu", "block_alpha", "block_beta"};
    pnb__tensor *out[3];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.%s", prefixes[side], blocks[i]);
        pnb__head block = net_head(net, name, two);
        out[i] = pnb__head_apply(&block, r);
        if (i > 0)
            out[i] = pnb__apply(positive, out[i]);
    }
    return (pnb__gen_gauss){out[0], out[1], out[2]};
}

static double clip(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* alpha^2 G(3/b) / G(1/b) with the released code's clips */
static double variance(double inv_alpha, double beta)
{
    double a = clip(1 / (inv_alpha + 1e-5), 1e-4, 5), b = clip(beta + 0.1, 0.1, 5);
    return a * a * exp(lgamma(3 / b) - lgamma(1 / b));
}

static pnb_status give_variances(golden_case *c, int side, pnb__gen_gauss p, pnb_error *err)
{
    size_t n = pnb__n(p.mean), dim = pnb__dim(p.mean, 1);
    char name[64];
    double *inv_alpha = pnb__alloc_zero(3 * n, sizeof *inv_alpha), *beta = inv_alpha + n;
    if (inv_alpha == NULL)
        return pnb__fail_nomem(err, 3 * n * sizeof *inv_alpha);
    double *mean = beta + n;
    pnb__read_f64(p.inv_alpha, inv_alpha);
    pnb__read_f64(p.beta, beta);
    for (size_t i = 0; i < n; i++) {
        inv_alpha[i] = variance(inv_alpha[i], beta[i]);
        mean[i / dim] += inv_alpha[i] / (double)dim;
    }
    snprintf(name, sizeof name, "%s.ggvar", names[side]);
    golden_give(c, name, inv_alpha, n);
    for (size_t i = 0; i < n / dim; i++) /* an inverse, as adapt_* returns it */
        mean[i] = 1 / mean[i];
    snprintf(name, sizeof name, "%s.uncertainty", names[side]);
    golden_give(c, name, mean, n / dim);
    pnb__free(inv_alpha);
    return PNB_OK;
}

/* Cosines of the means that the heads gave. */
static pnb_status give_similarity(golden_case *c, const pnb__gen_gauss p[N_SIDES], pnb_error *err)
{
    size_t n = pnb__n(p[IMAGE].mean);
    double *x = pnb__alloc_array(2 * n, sizeof *x);
    if (x == NULL)
        return pnb__fail_nomem(err, 2 * n * sizeof *x);
    pnb__read_f64(p[IMAGE].mean, x);
    pnb__read_f64(p[TEXT].mean, x + n);
    golden_give_cosines(c, x, x + n, pnb__dim(p[IMAGE].mean, 0), pnb__dim(p[IMAGE].mean, 1));
    pnb__free(x);
    return PNB_OK;
}

static pnb_status run_loss(golden_case *c, pnb__unary positive, pnb_error *err)
{
    golden_net net;
    pnb__gen_gauss p[N_SIDES];
    char name[64];
    pnb_status status = net_init(&net, c, err);
    for (int s = 0; s < N_SIDES; s++) {
        p[s] = bayes_cap(&net, s, NULL, positive);
        snprintf(name, sizeof name, "%s.mu", names[s]);
        net_output(&net, name, p[s].mean);
        snprintf(name, sizeof name, "%s.one_over_alpha", names[s]);
        net_output(&net, name, p[s].inv_alpha);
        snprintf(name, sizeof name, "%s.beta", names[s]);
        net_output(&net, name, p[s].beta);
    }
    pnb__tensor *loss = NULL;
    for (int s = 0; s < N_SIDES; s++)
        for (int to = 0; to < N_SIDES; to++) {
            pnb__tensor *term =
                pnb__gen_gauss_loss(PNB__GEN_GAUSS_RELEASED, p[s], net_leaf(&net, features[to]),
                                    golden_number(c, "T1", 1), golden_number(c, "T2", 0.05));
            term = pnb__affine(term, s == to ? 1 : golden_number(c, "cross_modal_lambda", 1e-4), 0);
            loss = loss == NULL ? term : pnb__add(loss, term);
        }
    net_output(&net, "loss", loss);
    if (status == PNB_OK)
        status = net_run(&net, loss, "");
    for (int s = 0; status == PNB_OK && s < N_SIDES; s++)
        status = give_variances(c, s, p[s], err);
    if (status == PNB_OK)
        status = give_similarity(c, p, err);
    net_reset(&net);
    return status;
}

/* ---- passes with dropout ---- */
typedef struct passes {
    size_t n_passes, n, dim;
    double *mean, *inv_alpha, *beta; /* [pass][n] */
} passes;

static double unbiased_variance(const double *x, size_t n, size_t stride)
{
    double mean = x[0], sum = 0; /* exact where all are the same: others are as large as 1e26 */
    for (size_t i = 0; i < n; i++)
        mean += (x[i * stride] - x[0]) / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (x[i * stride] - mean) * (x[i * stride] - mean);
    return sum / (double)(n - 1);
}

static void give_mean(golden_case *c, int side, const char *what, const passes *p,
                      const double *values, double *room)
{
    char name[64];
    for (size_t i = 0; i < p->n; i++) {
        room[i] = 0;
        for (size_t k = 0; k < p->n_passes; k++)
            room[i] += values[k * p->n + i] / (double)p->n_passes;
    }
    snprintf(name, sizeof name, "mc.%s.%s", names[side], what);
    golden_give(c, name, room, p->n);
}

/* The released code's epistemic part: the variance of its uncertainties runs over the batch too. */
static void give_statistics(golden_case *c, int side, passes *p, double *room)
{
    char name[64];
    give_mean(c, side, "mu_mean", p, p->mean, room);
    give_mean(c, side, "one_over_alpha_mean", p, p->inv_alpha, room);
    give_mean(c, side, "beta_mean", p, p->beta, room);
    size_t all = p->n_passes * p->n;
    for (size_t i = 0; i < all; i++)
        p->beta[i] = variance(p->inv_alpha[i], p->beta[i]);
    for (size_t i = 0; i < p->n; i++) {
        double of_means = unbiased_variance(p->mean + i, p->n_passes, p->n);
        double of_variances = unbiased_variance(p->beta + i % p->dim, all / p->dim, p->dim);
        room[i] = sqrt(of_variances * of_means);
    }
    snprintf(name, sizeof name, "mc.%s.epistemic", names[side]);
    golden_give(c, name, room, p->n);
}

static pnb_status run_passes(golden_case *c, int side, pnb__unary positive, pnb_error *err)
{
    const pnb_array_view *masks = golden_find(c, "dropout_keep");
    size_t rows = (size_t)masks->shape[2], hidden = (size_t)masks->shape[3], each = rows * hidden;
    double *keep = golden_f64(c, "dropout_keep", NULL, err);
    double scale = 1 / (1 - golden_number(c, "p_drop", 0.3));
    golden_net net;
    pnb_status status = net_init(&net, c, err);
    pnb__tensor *mask = pnb__input(net.g, PNB__REAL, 2, (size_t[]){rows, hidden});
    pnb__gen_gauss g = bayes_cap(&net, side, mask, positive);
    passes p = {(size_t)masks->shape[0], pnb__n(g.mean), pnb__dim(g.mean, 1), NULL, NULL, NULL};
    size_t all = p.n_passes * p.n;
    double *room = pnb__alloc_array(3 * all + p.n + 1, sizeof *room);
    if (keep == NULL || room == NULL || status != PNB_OK)
        PNB_TRY(status != PNB_OK ? status : pnb__fail_nomem(err, 3 * all * sizeof *room));
    p.mean = room;
    p.inv_alpha = room + all;
    p.beta = room + 2 * all;
    pnb__keep(g.mean);
    pnb__keep(g.inv_alpha);
    pnb__keep(g.beta);
    pnb__tensor *used = pnb__add(pnb__add(g.mean, g.inv_alpha), g.beta);
    PNB_TRY(net_plan(&net, pnb__sum(used, PNB__ALL_AXES)));
    for (size_t i = 0; i < p.n_passes * N_SIDES * each; i++)
        keep[i] *= scale;
    for (size_t k = 0; k < p.n_passes; k++) {
        pnb__write_f64(mask, keep + (k * N_SIDES + (size_t)side) * each);
        PNB_TRY(net_finish(&net, "pass."));
        pnb__read_f64(g.mean, p.mean + k * p.n);
        pnb__read_f64(g.inv_alpha, p.inv_alpha + k * p.n);
        pnb__read_f64(g.beta, p.beta + k * p.n);
    }
    give_statistics(c, side, &p, room + 3 * all);
done:
    pnb__free(keep);
    pnb__free(room);
    net_reset(&net);
    return status;
}

pnb_status golden_case_probvlm(golden_case *c, pnb_error *err)
{
    bool is_official = golden_find(c, "dropout_keep") != NULL;
    pnb__unary positive = is_official ? PNB__RELU : PNB__SOFTPLUS;
    pnb_status status = run_loss(c, positive, err);
    for (int s = 0; status == PNB_OK && is_official && s < N_SIDES; s++)
        status = run_passes(c, s, positive, err);
    return status;
}
