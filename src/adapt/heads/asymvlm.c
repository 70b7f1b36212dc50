/* AsymVLM: captions become densities on the sphere, pictures stay points.
 *
 *   eta = g(t), kappa = |eta|, mu = eta/kappa;   L_it = log p(z_i/|z_i| ; mu_t, kappa_t)
 *   symmetric InfoNCE of tau L, tau raw and beginning at 1, or SigLIP's tau (L - c) + b
 *
 * g is four layers with ReLU between, on the caption's vector with its length, to the width of the
 * pictures. Densities and their
 * normalisers: sphere_loss.c. The ablations of section 5.2 exchange the roles of the sides, take
 * densities on both (L the mean of both likelihoods, each of the other's mean), put a Gaussian of
 * variance 1/kappa around mu in place of the density on the sphere,
 *   L_it = D/2 log kappa - kappa (1 - mu.z)   up to a constant,
 * or leave the density out (deterministic.c). The paper says of its Gaussian only that the
 * architecture is the same and the mean normalised; of those the one variance is what eta can hold.
 */
#include <math.h>

#include "adapt/heads/deterministic.h"
#include "adapt/sphere_loss.h"
#include "penumbra/distributions.h"

static bool has_density(const pnb_adapter *a, int side)
{
    switch (a->opts.ablation) {
    case PNB_ADAPT_ABLATION_IMAGE_SIDE:
        return side == PNB_ADAPTER_IMAGES;
    case PNB_ADAPT_ABLATION_SYMMETRIC:
        return true;
    default:
        return side == PNB_ADAPTER_TEXTS;
    }
}

/* A side that is left alone says how wide the densities are. */
static bool is_apart(const pnb_adapter *a, bool has_model)
{
    (void)has_model;
    return a->opts.ablation != PNB_ADAPT_ABLATION_SYMMETRIC;
}

static bool is_power(const pnb_adapter *a)
{
    return a->about->family == PNB_POWER_SPHERICAL;
}

/* ---- shape ---- */

static void declare_side(pnb_adapter *a, pnb__learned *l, int side)
{
    const pnb__head_shape shape = {"etta",
                                   a->part[side].dim,
                                   (size_t)a->opts.hidden,
                                   (size_t)a->opts.layers,
                                   a->part[1 - side].dim,
                                   (double)NAN};
    a->part[side].is_adapted = has_density(a, side);
    l->is_unit[side] = !a->part[side].is_adapted;
    if (!a->part[side].is_adapted)
        return;
    a->part[side].dim_out = shape.out;
    pnb__learned_add_head(l, side, 0, &shape);
    l->head[side][0].may_start_as_rows = shape.in == shape.out;
    pnb__learned_add_length(l, side);
}

static pnb_status declare(pnb_adapter *a, pnb__learned *l, pnb_error *err)
{
    bool is_exact = a->opts.normaliser == PNB_ADAPT_NORMALISER_EXACT;
    (void)err;
    if (a->opts.ablation == PNB_ADAPT_ABLATION_DETERMINISTIC_FT) {
        pnb__deterministic_declare(a, l);
        return PNB_OK;
    }
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        declare_side(a, l, s);
    pnb__contrast_declare(a, l, "temperature", 1.0);
    bool is_gaussian = a->opts.ablation == PNB_ADAPT_ABLATION_GAUSSIAN;
    a->family = is_gaussian ? PNB_GAUSSIAN_DIAG : a->about->family;
    a->measure = is_gaussian ? "elk" : is_exact ? "vmf_exact" : a->about->measure;
    return PNB_OK;
}

static void side(pnb__learned_graph *lg, int number, pnb__tensor *x, pnb__learned_side *out)
{
    if (lg->a->opts.ablation == PNB_ADAPT_ABLATION_DETERMINISTIC_FT) {
        pnb__deterministic_side(lg, number, x, out);
        return;
    }
    pnb__directions d = pnb__directions_of(pnb__learned_apply(lg, number, 0, x));
    out->mean = d.mu;
    out->kappa = d.kappa;
}

/* ---- scores ---- */

static pnb__sphere_density density_of(const pnb_adapter *a)
{
    if (is_power(a))
        return PNB__SPHERE_POWER_SPHERICAL;
    return a->opts.normaliser == PNB_ADAPT_NORMALISER_EXACT ? PNB__SPHERE_VMF_EXACT
                                                            : PNB__SPHERE_VMF;
}

static pnb__directions directions(const pnb__learned_side *s)
{
    return (pnb__directions){s->mean, s->kappa};
}

/* D/2 log kappa - kappa (1 - mu.z), a column a text. */
static pnb__tensor *gaussian_log_lik(pnb__tensor *images, pnb__directions texts)
{
    double half_dim = 0.5 * (double)pnb__dim(images, 1);
    pnb__tensor *apart = pnb__affine(pnb__matmul(images, false, texts.mu, true), 1, -1);
    pnb__tensor *width = pnb__affine(pnb__apply(PNB__LOG, texts.kappa), half_dim, 0);
    return pnb__add(pnb__mul(apart, texts.kappa), width);
}

/* Rows images, columns texts. */
static pnb__tensor *ablated_scores(const pnb__learned_graph *lg)
{
    const pnb__learned_side *i = &lg->side[PNB_ADAPTER_IMAGES], *t = &lg->side[PNB_ADAPTER_TEXTS];
    pnb__sphere_density density = density_of(lg->a);
    if (lg->a->opts.ablation == PNB_ADAPT_ABLATION_GAUSSIAN)
        return gaussian_log_lik(i->mean, directions(t));
    pnb__tensor *under_images =
        pnb__permute(pnb__sphere_log_lik(density, t->mean, directions(i), NULL), (int[]){1, 0});
    if (lg->a->opts.ablation == PNB_ADAPT_ABLATION_IMAGE_SIDE)
        return under_images;
    pnb__tensor *under_texts = pnb__sphere_log_lik(density, i->mean, directions(t), NULL);
    return pnb__affine(pnb__add(under_images, under_texts), 0.5, 0);
}

/* tau itself, or of the deterministic ablation its logarithm. */
static double score_scale(const pnb_adapter *a, double learned)
{
    return a->opts.ablation == PNB_ADAPT_ABLATION_DETERMINISTIC_FT ? exp(learned) : learned;
}

/* Without ablation the temperature goes into the product that makes the scores. */
static void loss(pnb__learned_graph *lg)
{
    pnb__tensor *scale = pnb__learned_scale(lg), *scores;
    bool is_plain = lg->a->opts.ablation == PNB_ADAPT_ABLATION_NONE;
    if (lg->a->opts.ablation == PNB_ADAPT_ABLATION_DETERMINISTIC_FT) {
        pnb__deterministic_loss(lg);
        return;
    }
    scores = is_plain ? pnb__sphere_log_lik(density_of(lg->a), lg->side[PNB_ADAPTER_IMAGES].mean,
                                            directions(&lg->side[PNB_ADAPTER_TEXTS]), scale)
                      : pnb__mul(ablated_scores(lg), scale);
    pnb__learned_tell(lg, "contrast", pnb__contrast(lg, scores));
}

/* Where the likelihood of pairs of this mean cosine is the largest. */
static double first_kappa(const pnb_adapter *a, size_t dim, double cosine)
{
    switch (a->opts.ablation) {
    case PNB_ADAPT_ABLATION_DETERMINISTIC_FT:
        return 1;
    case PNB_ADAPT_ABLATION_GAUSSIAN:
        return (double)dim / (2 * (1 - cosine));
    default:
        return is_power(a) ? pnb_power_spherical_kappa_at(dim, cosine)
                           : pnb_vmf_kappa_at(dim, cosine);
    }
}

/* Table A.1; section B.4. */
static const pnb__learned_calls learned = {.published =
                                               PNB__LEARNED_BENCHMARK(PNB_OPTIM_SGD, 1e-2, 5e-4),
                                           .small = {.lr = 2e-3, .steps = 2000},
                                           .declare = declare,
                                           .side = side,
                                           .loss = loss,
                                           .first_kappa = first_kappa,
                                           .score_scale = score_scale};

#define ASYMVLM_FIELDS(X)                                                                          \
    PNB__LEARNED_FIELDS(X)                                                                         \
    X("layers", layers, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)                                      \
    X("start", start, pnb__adapt_start_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)                      \
    X("loss", loss, pnb__adapt_loss_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)                         \
    X("ablation", ablation, pnb__adapt_ablation_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)

static const pnb__field ps_fields[] = {ASYMVLM_FIELDS(PNB__LEARNED_FIELD)};
static const pnb__field vmf_fields[] = {ASYMVLM_FIELDS(PNB__LEARNED_FIELD) PNB__LEARNED_FIELD(
    "normaliser", normaliser, pnb__adapt_normaliser_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)};

const pnb__adapter_calls pnb__adapter_asymvlm_vmf = {PNB__LEARNED_CALLS(learned, vmf_fields),
                                                     .is_apart = is_apart};

const pnb__adapter_calls pnb__adapter_asymvlm_ps = {PNB__LEARNED_CALLS(learned, ps_fields),
                                                    .is_apart = is_apart};
