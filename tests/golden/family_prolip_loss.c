/* Golden family prolip_loss: ProLIPLoss terms and gradients, pairwise inclusion and CSD matrices,
 * and the one-dimensional inclusion integral. Which of the three a case is shows in its tensors. */
#include <math.h>
#include <string.h>

#include "penumbra/loss.h"
#include "penumbra/prob.h"
#include "tests/golden/golden.h"

enum { IMAGE, TEXT, MASKED_IMAGE, MASKED_TEXT, N_SIDES };
static const char *const side_names[N_SIDES] = {"image", "text", "masked_image", "masked_text"};

/* Every input of a loss case and room for its gradients. */
typedef struct loss_case {
    size_t n[N_SIDES], dim;
    double *mean[N_SIDES], *log_var[N_SIDES], *d_mean[N_SIDES], *d_log_var[N_SIDES];
} loss_case;

static void free_case(loss_case *l)
{
    for (int s = 0; s < N_SIDES; s++) {
        pnb__free(l->mean[s]);
        pnb__free(l->log_var[s]);
        pnb__free(l->d_mean[s]);
        pnb__free(l->d_log_var[s]);
    }
}

static pnb_status read_case(loss_case *l, const golden_case *c, pnb_error *err)
{
    char name[64];
    for (int s = 0; s < N_SIDES; s++) {
        snprintf(name, sizeof name, "%s.mean", side_names[s]);
        const pnb_array_view *view = golden_find(c, name);
        if (view == NULL)
            continue;
        l->n[s] = (size_t)view->shape[0];
        l->dim = (size_t)view->shape[1];
        size_t n = l->n[s] * l->dim;
        l->mean[s] = golden_f64(c, name, NULL, err);
        snprintf(name, sizeof name, "%s.std", side_names[s]);
        l->log_var[s] = golden_f64(c, name, NULL, err);
        l->d_mean[s] = pnb__alloc_zero(n + 1, sizeof(double));
        l->d_log_var[s] = pnb__alloc_zero(n + 1, sizeof(double));
        if (l->mean[s] == NULL || l->log_var[s] == NULL || l->d_mean[s] == NULL ||
            l->d_log_var[s] == NULL)
            return err->status != PNB_OK ? err->status : pnb__fail_nomem(err, n);
    }
    return PNB_OK;
}

static double scalar(const golden_case *c, const char *name, pnb_error *err)
{
    double *value = golden_f64(c, name, NULL, err), v = value == NULL ? NAN : value[0];
    pnb__free(value);
    return v;
}

/* Weights of the case over the defaults of the reference's ProLIPLoss class. */
static pnb_loss_opts read_opts(const golden_case *c)
{
    pnb_loss_opts o = pnb_loss_opts_published();
    double occ = golden_number(c, "inclusion_alpha_occ", 0);
    memset(o.weight, 0, sizeof o.weight);
    o.weight[PNB_LOSS_PPCL] = golden_number(c, "ppcl_lambda", 1);
    o.weight[PNB_LOSS_SIGLIP] = golden_number(c, "siglip_lambda", 0);
    o.weight[PNB_LOSS_INCLUSION] = golden_number(c, "inclusion_alpha", 0);
    o.weight[PNB_LOSS_VIB] = golden_number(c, "vib_beta", 1e-5);
    if (golden_find(c, "masked_image.mean") != NULL)
        o.weight[PNB_LOSS_IMG_INCLUSION] = occ;
    if (golden_find(c, "masked_text.mean") != NULL)
        o.weight[PNB_LOSS_TXT_INCLUSION] = occ;
    o.inclusion_scale = golden_number(c, "inclusion_loss_scale", 1000);
    o.inclusion_eps = golden_number(c, "inclusion_loss_eps", -10);
    o.vib_official = true;
    return o;
}

static void give_terms(golden_case *c, const pnb_loss_out *out)
{
    char name[64];
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++) {
        snprintf(name, sizeof name, "loss.%s", pnb_loss_name((pnb_loss_term)i));
        golden_give_scalar(c, name, out->term[i]);
    }
    golden_give_scalar(c, "loss.total", out->total);
}

static void give_grads(golden_case *c, const loss_case *l, const pnb_loss_out *out)
{
    char name[64];
    for (int s = 0; s < N_SIDES; s++) {
        if (l->mean[s] == NULL)
            continue;
        snprintf(name, sizeof name, "grad.%s.mean", side_names[s]);
        golden_give(c, name, l->d_mean[s], l->n[s] * l->dim);
        snprintf(name, sizeof name, "grad.%s.std", side_names[s]);
        golden_give(c, name, l->d_log_var[s], l->n[s] * l->dim);
    }
    golden_give_scalar(c, "grad.logit_scale", out->d_scale);
    golden_give_scalar(c, "grad.logit_bias", out->d_bias);
    golden_give_scalar(c, "grad.negative_scale", out->d_point_scale);
    golden_give_scalar(c, "grad.shift", out->d_point_bias);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double trace(const double *log_var, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp(log_var[i]);
    return sum;
}

/* Intermediate matrices, straight from their definitions. */
static void give_matrices(golden_case *c, const loss_case *l, double scale, double bias, double eps)
{
    size_t n = l->n[IMAGE], d = l->dim;
    double *out = pnb__alloc_zero(3 * n * n + 2 * n * d + 1, sizeof *out);
    if (out == NULL)
        return;
    double *mu = out, *sigma = mu + n * n, *logits = sigma + n * n;
    double *in_text = logits + n * n, *in_image = in_text + n * d;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            size_t at = i * n + j;
            mu[at] = dot(l->mean[IMAGE] + i * d, l->mean[TEXT] + j * d, d);
            sigma[at] = trace(l->log_var[IMAGE] + i * d, d) + trace(l->log_var[TEXT] + j * d, d);
            logits[at] = scale * (mu[at] - sigma[at] / 2) + bias;
        }
    for (size_t i = 0; i < n * d; i++) {
        const double *m[2] = {l->mean[IMAGE] + i, l->mean[TEXT] + i};
        const double *v[2] = {l->log_var[IMAGE] + i, l->log_var[TEXT] + i};
        in_text[i] = pnb_inclusion_published(m[0], v[0], m[1], v[1], 1, eps);
        in_image[i] = pnb_inclusion_published(m[1], v[1], m[0], v[0], 1, eps);
    }
    golden_give(c, "mu_pdist", mu, n * n);
    golden_give(c, "sigma_pdist", sigma, n * n);
    golden_give(c, "logits", logits, n * n);
    golden_give(c, "inclusion_test_image_in_text", in_text, n * d);
    golden_give(c, "inclusion_test_text_in_image", in_image, n * d);
    pnb__free(out);
}

static bool has_weight(const pnb_loss_opts *o)
{
    double sum = 0;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        sum += o->weight[i];
    return sum > 0;
}

static pnb_status run_loss(golden_case *c, pnb_error *err)
{
    loss_case l = {0};
    pnb_loss_out out = {0};
    pnb_loss_opts opts = read_opts(c);
    pnb_status status = read_case(&l, c, err);
    if (status != PNB_OK)
        goto done;
    double scale = scalar(c, "logit_scale", err);
    double bias = golden_find(c, "logit_bias") != NULL ? scalar(c, "logit_bias", err) : 0;
    double point[2] = {0, 0};
    bool has_point = golden_find(c, "negative_scale") != NULL;
    if (has_point) {
        point[0] = scalar(c, "negative_scale", err);
        point[1] = scalar(c, "shift", err);
    }
    pnb_loss_in in = {
        .n = l.n[IMAGE],
        .n_masked = PNB_MAX(l.n[MASKED_IMAGE], l.n[MASKED_TEXT]),
        .dim = l.dim,
        .image = {.mean = l.mean[IMAGE], .log_var = l.log_var[IMAGE]},
        .text = {.mean = l.mean[TEXT], .log_var = l.log_var[TEXT]},
        .masked_image = {.mean = l.mean[MASKED_IMAGE], .log_var = l.log_var[MASKED_IMAGE]},
        .masked_text = {.mean = l.mean[MASKED_TEXT], .log_var = l.log_var[MASKED_TEXT]},
        .scale = scale,
        .bias = bias,
        .point_scale = has_point ? &point[0] : NULL,
        .point_bias = has_point ? &point[1] : NULL,
        .negative_only = golden_flag(c, "negative_only", false)};
    memcpy(out.d_mean, l.d_mean, sizeof out.d_mean);
    memcpy(out.d_log_var, l.d_log_var, sizeof out.d_log_var);
    status = err->status;
    if (status == PNB_OK && has_weight(&opts))
        status = pnb_loss_compute(c->ctx, &opts, &in, &out, err);
    if (status == PNB_OK) {
        give_terms(c, &out);
        give_grads(c, &l, &out);
        give_matrices(c, &l, scale, bias, opts.inclusion_eps);
    }
done:
    free_case(&l);
    return status;
}

/* ---- pairwise matrices ---- */

/* Two sets of Gaussians, n1 x dim and n2 x dim. */
typedef struct two_sets {
    size_t n1, n2, dim;
    double *m1, *v1, *m2, *v2;
} two_sets;

static void free_sets(two_sets *t)
{
    pnb__free(t->m1);
    pnb__free(t->v1);
    pnb__free(t->m2);
    pnb__free(t->v2);
}

static pnb_status read_sets(two_sets *t, const golden_case *c, pnb_error *err)
{
    *t = (two_sets){0};
    t->m1 = golden_f64(c, "mu1", &t->n1, err);
    t->v1 = golden_f64(c, "logvar1", NULL, err);
    t->m2 = golden_f64(c, "mu2", &t->n2, err);
    t->v2 = golden_f64(c, "logvar2", NULL, err);
    const pnb_array_view *view = golden_find(c, "mu1");
    if (err->status != PNB_OK || view == NULL)
        return err->status != PNB_OK ? err->status : PNB_NOT_FOUND;
    t->dim = view->n_dims == 2 ? (size_t)view->shape[1] : 1;
    t->n1 /= t->dim;
    t->n2 /= t->dim;
    return PNB_OK;
}

typedef struct pair {
    const double *m1, *v1, *m2, *v2;
    size_t dim;
    double eps;
} pair;

static double pair_published(const pair *p)
{
    return pnb_inclusion_published(p->m1, p->v1, p->m2, p->v2, p->dim, p->eps);
}

static double pair_exact(const pair *p)
{
    return pnb_inclusion_exact(p->m1, p->v1, p->m2, p->v2, p->dim);
}

static double pair_csd(const pair *p)
{
    double sum = trace(p->v1, p->dim) + trace(p->v2, p->dim);
    for (size_t d = 0; d < p->dim; d++)
        sum += (p->m1[d] - p->m2[d]) * (p->m1[d] - p->m2[d]);
    return sum;
}

static double pair_similarity(const pair *p)
{
    return dot(p->m1, p->m2, p->dim) - (trace(p->v1, p->dim) + trace(p->v2, p->dim)) / 2;
}

static void give_pairs(golden_case *c, const char *name, const two_sets *t, double eps,
                       double (*measure)(const pair *))
{
    double *out = pnb__alloc_zero(t->n1 * t->n2 + 1, sizeof *out);
    for (size_t i = 0; out != NULL && i < t->n1; i++)
        for (size_t j = 0; j < t->n2; j++) {
            size_t a = i * t->dim, b = j * t->dim;
            pair p = {t->m1 + a, t->v1 + a, t->m2 + b, t->v2 + b, t->dim, eps};
            out[i * t->n2 + j] = measure(&p);
        }
    if (out != NULL)
        golden_give(c, name, out, t->n1 * t->n2);
    pnb__free(out);
}

/* The eps of a tensor stands in its meaning ("same with eps=-2.5") or in the hyperparameters. */
static double eps_of(const golden_case *c, const char *name)
{
    const json_t *tensor = json_object_get(json_object_get(c->root, "tensors"), name);
    const char *meaning = json_string_value(json_object_get(tensor, "meaning"));
    const char *at = meaning == NULL ? NULL : strstr(meaning, "eps=");
    double eps = golden_number(c, "eps", 0);
    if (at != NULL)
        sscanf(at, "eps=%lf", &eps);
    return eps;
}

static pnb_status run_pairs(golden_case *c, pnb_error *err)
{
    two_sets t;
    pnb_status status = read_sets(&t, c, err);
    if (status == PNB_OK) {
        const two_sets reverse = {t.n2, t.n1, t.dim, t.m2, t.v2, t.m1, t.v1};
        give_pairs(c, "inclusion_published", &t, 0, pair_published);
        give_pairs(c, "inclusion_published_eps", &t, eps_of(c, "inclusion_published_eps"),
                   pair_published);
        give_pairs(c, "inclusion_published_reverse", &reverse, 0, pair_published);
        give_pairs(c, "csd", &t, 0, pair_csd);
        give_pairs(c, "prolip_similarity", &t, 0, pair_similarity);
        give_pairs(c, "inclusion_exact", &t, 0, pair_exact);
    }
    free_sets(&t);
    return status;
}

/* ---- one dimension ---- */

/* log of the integral of p1^2 p2 by Simpson's rule around the product's own centre. */
static double quadrature(double m1, double v1, double m2, double v2)
{
    double w1 = 2 * exp(-v1), w2 = exp(-v2), width = 14 / sqrt(w1 + w2);
    double centre = (w1 * m1 + w2 * m2) / (w1 + w2), sum = 0, top = -INFINITY;
    enum { STEPS = 4000 };
    double h = 2 * width / STEPS, log_f[STEPS + 1];
    for (int i = 0; i <= STEPS; i++) {
        double x = centre - width + h * i;
        log_f[i] = -1.5 * log(2 * 3.14159265358979323846) - v1 - 0.5 * v2 -
                   0.5 * w1 * (x - m1) * (x - m1) - 0.5 * w2 * (x - m2) * (x - m2);
        top = fmax(top, log_f[i]);
    }
    for (int i = 0; i <= STEPS; i++)
        sum += (i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2) * exp(log_f[i] - top);
    return top + log(sum * h / 3);
}

static pnb_status run_integral(golden_case *c, pnb_error *err)
{
    two_sets t;
    pnb_status status = read_sets(&t, c, err);
    double *out = status == PNB_OK ? pnb__alloc_zero(3 * t.n1 + 1, sizeof *out) : NULL;
    for (size_t i = 0; out != NULL && i < t.n1; i++) {
        pair p = {t.m1 + i, t.v1 + i, t.m2 + i, t.v2 + i, 1, 0};
        out[i] = quadrature(t.m1[i], t.v1[i], t.m2[i], t.v2[i]);
        out[t.n1 + i] = pair_exact(&p);
        out[2 * t.n1 + i] = pair_published(&p);
    }
    if (out != NULL) {
        golden_give(c, "log_integral_quad", out, t.n1);
        golden_give(c, "log_integral_exact", out + t.n1, t.n1);
        golden_give(c, "published_form", out + 2 * t.n1, t.n1);
    }
    pnb__free(out);
    free_sets(&t);
    return status;
}

pnb_status golden_family_prolip_loss(golden_case *c, pnb_error *err)
{
    const pnb_array_view *mu1 = golden_find(c, "mu1");
    if (mu1 == NULL)
        return run_loss(c, err);
    return mu1->n_dims == 2 ? run_pairs(c, err) : run_integral(c, err);
}
