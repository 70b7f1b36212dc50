/* The training losses as graph operations (formulas in include/penumbra/loss.h).
 *
 * Every pairwise loss is built from logits l_ij through one identity: with y = +1 on the diagonal
 * and -1 elsewhere, sum_ij -log s(y_ij l_ij) = sum_ij softplus(l_ij) - sum_i l_ii, so that no B x B
 * label matrix exists. Scale and variances are folded into the rows before the matrix product.
 * Terms are safe at any log-variance: they are clipped far outside what a model reaches, and a term
 * over its limit is multiplied by an exact 0 (see `gate`). Following the paper, VIB uses log
 * sigma^2; the released code halves it, and `vib_official` does so too. */
#include "train/loss.h"

#include <math.h>

#include "base/names.h"
#include "train/losses/pair_loss.h"
#include "train/losses/soft_contrastive.h"
#include "train/losses/triplet.h"

PNB_DEFINE_NAME(pnb_loss_name, pnb_loss_term, PNB_NAMES_OF_IDENTS(PNB_LOSS_LIST), NULL)
PNB_DEFINE_NAME(pnb_loss_meaning, pnb_loss_term, PNB_SENTENCES(PNB_LOSS_LIST), NULL)

pnb_loss_opts pnb_loss_opts_default(void)
{
    pnb_loss_opts o = {.inclusion_scale = 1000,
                       .inclusion_eps = -10,
                       .inclusion_limit = 1e5,
                       .vib_limit = 1e4,
                       .n_samples = 7,
                       .triplet_margin = 0.2};
    /* docs/numerics-training.md says what was tried: with a scale of 1000 the inclusion term is
     * nearly a hinge on the order of variances, and its weight is all that matters */
    o.weight[PNB_LOSS_PPCL] = 1;
    o.weight[PNB_LOSS_INCLUSION] = 1e-4;
    o.weight[PNB_LOSS_IMG_INCLUSION] = 1e-3;
    o.weight[PNB_LOSS_TXT_INCLUSION] = 1e-3;
    o.weight[PNB_LOSS_VIB] = 1e-4;
    return o;
}

/* Table of hyperparameters of the ProLIP paper's main runs. */
pnb_loss_opts pnb_loss_opts_published(void)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    o.inclusion_eps = -20;
    o.weight[PNB_LOSS_INCLUSION] = 1e-7;
    return o;
}

/* Draws of samples share no stream with whatever else the seed of a run decides. */
#define NOISE_SEED 0x9e3779b97f4a7c15U

/* What every term is built from: the graph, its inputs clipped, where it puts results. */
typedef struct build {
    pnb__graph *g;
    const pnb__loss_in *in;
    const pnb_loss_opts *opts;
    pnb__loss *out;
} build;

static pnb__tensor *sum_all(pnb__tensor *x)
{
    return pnb__sum(x, PNB__ALL_AXES);
}

static pnb__tensor *mean_all(pnb__tensor *x)
{
    return pnb__mean(x, PNB__ALL_AXES);
}

/* The log-variance held within [-cap, cap], exactly unchanged inside: x - relu(x - cap) +
 * relu(-cap - x). At the cap a float still holds sums of a few thousand exp(x) times the scale. */
static pnb__tensor *clipped(pnb__graph *g, pnb__tensor *x)
{
    double cap = pnb__graph_kernels(g)->real == PNB__F32 ? 60 : 600;
    if (x == NULL)
        return NULL;
    pnb__tensor *over = pnb__apply(PNB__RELU, pnb__affine(x, 1, -cap));
    pnb__tensor *under = pnb__apply(PNB__RELU, pnb__affine(x, -1, -cap));
    return pnb__add(pnb__sub(x, over), under);
}

/* Shapes: image, text (B,D); masked ones (M,D) with M <= B. Means are not clipped: they are
 * unit. */
static pnb__loss_in clip_all(pnb__graph *g, const pnb__loss_in *in)
{
    pnb__loss_in out = *in;
    out.image.log_var = clipped(g, in->image.log_var);
    out.text.log_var = clipped(g, in->text.log_var);
    out.masked_image.log_var = clipped(g, in->masked_image.log_var);
    out.masked_text.log_var = clipped(g, in->masked_text.log_var);
    return out;
}

/* x where x <= limit, else 0, and with it the gradient: x times relu(1 - 1e20 relu(x - limit)). The
 * smallest excess a double can show over a limit of 1 or more is 2e-16, so the factor is 0 or 1. */
static pnb__tensor *gate(pnb__tensor *x, double limit)
{
    pnb__tensor *over = pnb__apply(PNB__RELU, pnb__affine(x, 1, -limit));
    return pnb__mul(x, pnb__apply(PNB__RELU, pnb__affine(over, -1e20, 1)));
}

/* u = tr Sigma = sum_d exp(lv): the uncertainty of a row. (B,D) -> (B) */
static pnb__tensor *trace(const pnb__dist *d)
{
    return pnb__sum(pnb__apply(PNB__EXP, d->log_var), -1);
}

/* l_ij = left_i . right_j + row_i + col_j: all of them (B,B) and the diagonal (B). The diagonal is
 * a sum over rows of its own, since a matrix product's l_ii is not to be picked out of (B,B). row
 * and col (B) may be NULL. */
typedef struct pairs {
    pnb__tensor *all, *diagonal;
} pairs;

static pairs make_pairs(pnb__tensor *left, pnb__tensor *right, pnb__tensor *row, pnb__tensor *col)
{
    pairs p;
    size_t n = pnb__dim(left, 0);
    p.all = pnb__matmul(left, false, right, true);
    p.diagonal = pnb__sum(pnb__mul(left, right), -1);
    if (row != NULL) {
        p.all = pnb__add(p.all, pnb__reshape(row, 2, (size_t[]){n, 1}));
        p.diagonal = pnb__add(p.diagonal, row);
    }
    if (col != NULL) {
        p.all = pnb__add(p.all, col);
        p.diagonal = pnb__add(p.diagonal, col);
    }
    return p;
}

/* factor * sum_ij -log s(y_ij l_ij), as softplus(-l) = softplus(l) - l. With negative_only every y
 * is -1: the pairs of other processes' rows have no diagonal. */
static pnb__tensor *pair_loss(const build *b, pairs p, double factor)
{
    pnb__tensor *all = sum_all(pnb__apply(PNB__SOFTPLUS, p.all));
    if (!b->in->negative_only)
        all = pnb__sub(all, sum_all(p.diagonal));
    return pnb__affine(all, factor, 0);
}

/* bias as a row to add, (B); NULL when there is none. */
static pnb__tensor *bias_row(pnb__tensor *bias, size_t n)
{
    return bias == NULL ? NULL : pnb__broadcast_to(bias, 1, &n);
}

/* ProLIP Eq. 2: csd = 2 - 2 mu_i.mu_j + u_i + u_j for unit means, l_ij = -a/2 csd + a + b, that is
 *   l_ij = a mu_i.mu_j + (b - a/2 u_i) - a/2 u_j
 * a goes into the left rows, so that no (B,B) matrix is scaled. */
static pairs ppcl_pairs(const pnb__loss_in *in)
{
    pnb__tensor *half = pnb__affine(in->scale, -0.5, 0);
    pnb__tensor *row = pnb__mul(trace(&in->image), half);
    pnb__tensor *col = pnb__mul(trace(&in->text), half);
    if (in->bias != NULL)
        row = pnb__add(row, in->bias);
    return make_pairs(pnb__mul(in->image.mean, in->scale), in->text.mean, row, col);
}

pnb__tensor *pnb__loss_logits(pnb__graph *g, const pnb__loss_in *in)
{
    const pnb__loss_in safe = clip_all(g, in);
    return ppcl_pairs(&safe).all;
}

/* B, the rows of a side. */
static double n_pairs(const build *b)
{
    return (double)pnb__dim(b->in->image.mean, 0);
}

/* (1/B) sum_ij -log s(y_ij l_ij): a sum over B^2 pairs divided by B, as SigLIP does. */
static pnb__tensor *build_ppcl(const build *b)
{
    return pair_loss(b, ppcl_pairs(b->in), 1 / n_pairs(b));
}

/* SigLIP: l_ij = a mu_i.mu_j + b on the means alone, with scalars of its own where there are
 * any. */
static pnb__tensor *build_siglip(const build *b)
{
    const pnb__loss_in *in = b->in;
    pnb__tensor *scale = in->point_scale != NULL ? in->point_scale : in->scale;
    pnb__tensor *bias = in->point_scale != NULL ? in->point_bias : in->bias;
    pnb__tensor *row = bias_row(bias, pnb__dim(in->image.mean, 0));
    pairs p = make_pairs(pnb__mul(in->image.mean, scale), in->text.mean, row, NULL);
    return pair_loss(b, p, 1 / n_pairs(b));
}

/* CLIP: (1/2B) sum_i (CE(row i of L, i) + CE(column i of L, i)), L = a V T^T without a bias.
 * Columns are the rows of the product taken the other way round: cheaper than a transposed
 * (B,B). */
static pnb__tensor *build_clip(const build *b)
{
    const pnb__loss_in *in = b->in;
    size_t n = pnb__dim(in->image.mean, 0);
    b->out->targets = pnb__input(b->g, PNB__INT32, 1, &n);
    pnb__tensor *image = pnb__mul(in->image.mean, in->scale);
    pnb__tensor *rows = pnb__matmul(image, false, in->text.mean, true);
    pnb__tensor *cols = pnb__matmul(in->text.mean, false, image, true);
    pnb__tensor *i2t = mean_all(pnb__cross_entropy(rows, b->out->targets));
    pnb__tensor *t2i = mean_all(pnb__cross_entropy(cols, b->out->targets));
    return pnb__affine(pnb__add(i2t, t2i), 0.5, 0);
}

/* PCME++'s matching loss once, where its code counts it twice: l = -a csd + b, BCE, mean over B^2.
 */
static pnb__tensor *build_pcmepp(const build *b)
{
    const pnb__loss_in *in = b->in;
    pnb__tensor *scale = in->point_scale != NULL ? in->point_scale : in->scale;
    pnb__tensor *bias = in->point_scale != NULL ? in->point_bias : in->bias;
    const pnb__pcmepp_in pairs_of = {
        .images = {.mean = in->image.mean, .log_var = in->image.log_var},
        .texts = {.mean = in->text.mean, .log_var = in->text.log_var},
        .scale = scale,
        .shift = bias,
        .negative_only = in->negative_only,
        .factor = 1};
    return pnb__pcmepp_build(&pairs_of).loss;
}

/* ProLIP Eq. 4: mean over rows and d of -log s(c H_d(1 in 2)) = softplus(-c H_d). H (B,D) is the
 * test of one dimension at a time; c is large because H of near-equal Gaussians is small. */
static pnb__tensor *inclusion_of(const build *b, const pnb__dist *one, const pnb__dist *two)
{
    const pnb__search_inclusion_opts opts = {!b->opts->inclusion_exact, b->opts->inclusion_eps};
    pnb__tensor *h = pnb__inclusion(one->mean, one->log_var, two->mean, two->log_var, &opts);
    pnb__tensor *minus = pnb__affine(h, -b->opts->inclusion_scale, 0);
    return gate(mean_all(pnb__apply(PNB__SOFTPLUS, minus)), b->opts->inclusion_limit);
}

/* An image says more than its caption: image inside text. */
static pnb__tensor *build_inclusion(const build *b)
{
    return inclusion_of(b, &b->in->image, &b->in->text);
}

/* An original must lie inside its masked copy, which says less. The originals of the M masked rows
 * are the first M rows of the batch. */
static pnb__tensor *masked_inclusion(const build *b, const pnb__dist *all, const pnb__dist *masked)
{
    size_t n = pnb__dim(masked->mean, 0);
    pnb__dist first = {.mean = pnb__slice(all->mean, 0, 0, n),
                       .log_var = pnb__slice(all->log_var, 0, 0, n)};
    return inclusion_of(b, &first, masked);
}

/* The whole picture lies inside the one that lost patches, */
static pnb__tensor *build_img_inclusion(const build *b)
{
    return masked_inclusion(b, &b->in->image, &b->in->masked_image);
}

/* and the whole caption inside the one that lost words (ProLIP section 3.3). */
static pnb__tensor *build_txt_inclusion(const build *b)
{
    return masked_inclusion(b, &b->in->text, &b->in->masked_text);
}

/* KL(N(mu, exp lv) || N(0, 1)) per dimension: 1/2 mean_{B,D}(mu^2 + exp(lv) - lv - 1); official:
 * lv/2 in place of lv, the standard deviation where the formula has the variance. */
static pnb__tensor *divergence(const build *b, const pnb__dist *d)
{
    pnb__tensor *lv = b->opts->vib_official ? pnb__affine(d->log_var, 0.5, 0) : d->log_var;
    pnb__tensor *spread = pnb__sub(pnb__apply(PNB__EXP, lv), lv);
    pnb__tensor *all = mean_all(pnb__add(pnb__apply(PNB__SQUARE, d->mean), spread));
    return gate(pnb__affine(all, 0.5, -0.5), b->opts->vib_limit);
}

/* Both towers, each gated by itself: one that runs away does not switch the other's term off. */
static pnb__tensor *build_vib(const build *b)
{
    return pnb__add(divergence(b, &b->in->image), divergence(b, &b->in->text));
}

/* ---- terms over samples, and of points ----
 *
 * Samples are drawn once a step for all terms: z = mean + exp(lv / 2) noise, noise an input, so
 * that a gradient can be checked by differences and a step repeated. The operations are those of
 * losses/, which the adapters' heads have too. Sums over the batch stay sums, as in the reference:
 * its weights (KL 1e-5, uniformity 10) and its clipping at a norm of 2 are made for them. */

/* (B,B) filled by pnb__loss_start, once for all terms that read it. */
static pnb__tensor *pair_input(const build *b, pnb__tensor **kept)
{
    size_t n = pnb__dim(b->in->image.mean, 0);
    if (*kept == NULL)
        *kept = pnb__input(b->g, PNB__REAL, 2, (size_t[]){n, n});
    return *kept;
}

/* z_j = mean + exp(lv / 2) noise_j; all terms of a step see the same draws. */
static pnb__sampled_side sampled(const build *b, int side)
{
    const pnb__dist *d = side == 0 ? &b->in->image : &b->in->text;
    const size_t shape[3] = {pnb__dim(d->mean, 0), b->opts->n_samples, pnb__dim(d->mean, 1)};
    if (b->out->noise[side] == NULL)
        b->out->noise[side] = pnb__input(b->g, PNB__REAL, 3, shape);
    return (pnb__sampled_side){d->mean, d->log_var, b->out->noise[side]};
}

/* PCME Eq. (4) to (7): every pair of the batch, and of each J x J samples. b 0 where the model has
 * none. */
static pnb__tensor *build_pcme(const build *b)
{
    return pnb__soft_contrastive(sampled(b, 0), sampled(b, 1), b->in->scale,
                                 b->in->bias != NULL ? b->in->bias : pnb__constant(b->g, 0),
                                 pair_input(b, &b->out->signs));
}

/* PCME Eq. (8), of both sides; the published form has the samples' mean for the mean. */
static pnb__tensor *build_pcme_kl(const build *b)
{
    pnb__tensor *kl[2];
    for (int s = 0; s < 2; s++) {
        const pnb__dist *d = s == 0 ? &b->in->image : &b->in->text;
        kl[s] = b->opts->pcme_kl_published
                    ? pnb__sampled_divergence_published(sampled(b, s))
                    : pnb__sampled_divergence((pnb__sampled_side){d->mean, d->log_var, NULL});
    }
    return pnb__add(kl[0], kl[1]);
}

/* Samples of both sides together, (2 B J, D). */
static pnb__tensor *build_uniformity(const build *b)
{
    pnb__tensor *rows[2];
    for (int s = 0; s < 2; s++) {
        pnb__tensor *z = pnb__draw_samples(sampled(b, s));
        rows[s] = pnb__reshape(z, 2, (size_t[]){pnb__dim(z, 0) * pnb__dim(z, 1), pnb__dim(z, 2)});
    }
    return pnb__uniformity(pnb__concat(rows, 2, 0));
}

/* (B,K,D/K) of rows of K embeddings beside each other. */
static pnb__tensor *embeddings_of(const pnb__dist *d)
{
    size_t k = PNB_MAX(d->n_embeddings, (size_t)1);
    return pnb__reshape(d->mean, 3, (size_t[]){pnb__dim(d->mean, 0), k, pnb__dim(d->mean, 1) / k});
}

/* s_ij = cosine of the best of K x K embeddings; during the warm-up the share of the nearest
 * negatives is 0, behind it 1, so one graph serves both. */
static pnb__tensor *build_triplet(const build *b)
{
    pnb__tensor *scores =
        pnb__best_of_pairs(embeddings_of(&b->in->image), embeddings_of(&b->in->text));
    pnb__tensor *others = pair_input(b, &b->out->others);
    double margin = b->opts->triplet_margin;
    if (!b->opts->triplet_hardest)
        return pnb__triplet(scores, others, margin, PNB__NEGATIVES_ALL);
    pnb__tensor *nearest = pnb__triplet(scores, others, margin, PNB__NEGATIVES_HARDEST);
    if (b->opts->triplet_warmup == 0)
        return nearest;
    pnb__tensor *all = pnb__triplet(scores, others, margin, PNB__NEGATIVES_ALL);
    b->out->triplet_share = pnb__input(b->g, PNB__REAL, 0, NULL);
    b->out->triplet_warmup = b->opts->triplet_warmup;
    return pnb__add(pnb__mul(nearest, b->out->triplet_share),
                    pnb__mul(all, pnb__affine(b->out->triplet_share, -1, 1)));
}

/* What a term needs beside means, so that a model without it is refused by name. */
typedef struct term_row {
    pnb__tensor *(*build)(const build *b);
    bool needs_log_var, needs_masked_image, needs_masked_text;
} term_row;

static const term_row terms[PNB_N_LOSS_TERMS] = {
    [PNB_LOSS_PPCL] = {build_ppcl, true, false, false},
    [PNB_LOSS_SIGLIP] = {build_siglip, false, false, false},
    [PNB_LOSS_CLIP] = {build_clip, false, false, false},
    [PNB_LOSS_PCMEPP] = {build_pcmepp, true, false, false},
    [PNB_LOSS_INCLUSION] = {build_inclusion, true, false, false},
    [PNB_LOSS_IMG_INCLUSION] = {build_img_inclusion, true, true, false},
    [PNB_LOSS_TXT_INCLUSION] = {build_txt_inclusion, true, false, true},
    [PNB_LOSS_VIB] = {build_vib, true, false, false},
    [PNB_LOSS_PCME] = {build_pcme, true, false, false},
    [PNB_LOSS_PCME_KL] = {build_pcme_kl, true, false, false},
    [PNB_LOSS_UNIFORMITY] = {build_uniformity, true, false, false},
    [PNB_LOSS_TRIPLET] = {build_triplet, false, false, false},
};

/* Weights of 0 and more: a negative one would push variances to infinity. Limits of 1 and more: see
 * `gate`. */
pnb_status pnb__loss_check_opts(const pnb_loss_opts *o, pnb_error *err)
{
    double sum = 0;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++) {
        if (!(o->weight[i] >= 0) || !isfinite(o->weight[i]))
            return pnb__fail(err, PNB_ARG, "weight of loss %s is %g, it must be 0 or more",
                             pnb_loss_name((pnb_loss_term)i), o->weight[i]);
        sum += o->weight[i];
    }
    if (!(sum > 0))
        return pnb__fail(err, PNB_ARG, "every loss has weight 0: give at least one a weight");
    if (!(o->inclusion_limit >= 1) || !(o->vib_limit >= 1))
        return pnb__fail(err, PNB_ARG, "limits of inclusion and VIB are %g and %g, 1 is the least",
                         o->inclusion_limit, o->vib_limit);
    if (!isfinite(o->inclusion_eps) || !isfinite(o->inclusion_scale) || !(o->inclusion_scale > 0))
        return pnb__fail(err, PNB_ARG,
                         "inclusion eps is %g and scale %g; finite numbers and a scale above 0 are "
                         "needed",
                         o->inclusion_eps, o->inclusion_scale);
    if (o->n_samples < 1 || o->n_samples > 64)
        return pnb__fail(err, PNB_ARG, "%zu samples of a side; 1 to 64 are possible", o->n_samples);
    if (!(o->triplet_margin > 0) || !isfinite(o->triplet_margin))
        return pnb__fail(err, PNB_ARG, "a triplet margin of %g, it must be above 0",
                         o->triplet_margin);
    if (o->triplet_warmup < 0)
        return pnb__fail(err, PNB_ARG, "%lld steps of triplet warm-up, it must be 0 or more",
                         (long long)o->triplet_warmup);
    return PNB_OK;
}

/* Before a term is built: its graph would fail without saying why. */
static pnb_status check_term(const build *b, pnb_loss_term term, pnb_error *err)
{
    const pnb__loss_in *in = b->in;
    const term_row *row = &terms[term];
    size_t k = PNB_MAX(in->image.n_embeddings, (size_t)1);
    if (in->image.n_embeddings != in->text.n_embeddings || pnb__dim(in->image.mean, 1) % k != 0)
        return pnb__fail(err, PNB_ARG,
                         "%zu embeddings of an image and %zu of a text, in %zu numbers: as many of "
                         "both are wanted, of one width",
                         in->image.n_embeddings, in->text.n_embeddings,
                         pnb__dim(in->image.mean, 1));
    if (in->negative_only && term == PNB_LOSS_TRIPLET)
        return pnb__fail(err, PNB_ARG,
                         "loss %s measures negatives against matches, and none is there",
                         pnb_loss_name(term));
    if (k > 1 && term != PNB_LOSS_TRIPLET)
        return pnb__fail(err, PNB_ARG,
                         "loss %s compares single embeddings, and this model gives %zu an input: "
                         "train it with triplet",
                         pnb_loss_name(term), k);
    bool lacks_masked =
        (row->needs_masked_image && in->masked_image.mean != NULL &&
         in->masked_image.log_var == NULL) ||
        (row->needs_masked_text && in->masked_text.mean != NULL && in->masked_text.log_var == NULL);
    if (row->needs_log_var &&
        (in->image.log_var == NULL || in->text.log_var == NULL || lacks_masked))
        return pnb__fail(err, PNB_ARG,
                         "loss %s needs a log-variance, but a tower gives none: train this model "
                         "with siglip or clip",
                         pnb_loss_name(term));
    if ((row->needs_masked_image && in->masked_image.mean == NULL) ||
        (row->needs_masked_text && in->masked_text.mean == NULL))
        return pnb__fail(err, PNB_SHAPE,
                         "loss %s has weight %g, but no row of the batch is masked: raise the "
                         "batch or the drop ratio, or set the weight to 0",
                         pnb_loss_name(term), b->opts->weight[term]);
    return PNB_OK;
}

/* L = sum_k w_k L_k over the terms with w_k > 0. The weighted terms are kept readable:
 * results.jsonl has each of them, and their sum is the total to the last bit. */
pnb_status pnb__loss_build(pnb__loss *out, pnb__graph *g, const pnb__loss_in *in,
                           const pnb_loss_opts *opts, pnb_error *err)
{
    *out = (pnb__loss){.negative_only = in->negative_only};
    const pnb__loss_in safe = clip_all(g, in);
    build b = {g, &safe, opts, out};
    if (pnb__constant(g, 0) == NULL) /* a tower failed to build: the plan says why */
        return pnb__graph_plan(g, NULL, err);
    pnb_status status = pnb__loss_check_opts(opts, err);
    for (int i = 0; i < PNB_N_LOSS_TERMS && status == PNB_OK; i++) {
        if (!(opts->weight[i] > 0))
            continue;
        status = check_term(&b, (pnb_loss_term)i, err);
        if (status != PNB_OK)
            break;
        out->term[i] = pnb__affine(terms[i].build(&b), opts->weight[i], 0);
        if (out->term[i] != NULL)
            pnb__keep(out->term[i]);
        out->total = out->total == NULL ? out->term[i] : pnb__add(out->total, out->term[i]);
    }
    if (status == PNB_OK && out->total != NULL)
        pnb__keep(out->total);
    return status;
}

/* One value on the diagonal of (B,B), another off it: PCME's m = +1 of matches and -1, or 0 of
 * matches and 1 of what a margin counts as a negative. */
static pnb_status fill_pairs(pnb__tensor *t, double on, double off, pnb_error *err)
{
    size_t n = t != NULL ? pnb__dim(t, 0) : 0;
    float *values = t != NULL ? pnb__alloc_array(n * n, sizeof *values) : NULL;
    if (t == NULL)
        return PNB_OK;
    if (values == NULL)
        return pnb__fail_nomem(err, n * n * sizeof *values);
    for (size_t i = 0; i < n * n; i++)
        values[i] = (float)(i % (n + 1) == 0 ? on : off);
    pnb__write_f32(t, values);
    pnb__free(values);
    return PNB_OK;
}

/* (B,J,D) of a side; a stream a draw and side, in the order of the pairs. */
static pnb_status draw_side(pnb__tensor *noise, pnb__rng *rng, const size_t *row_of, pnb_error *err)
{
    size_t n = pnb__n(noise), n_rows = pnb__dim(noise, 0), width = n / n_rows;
    float *values = pnb__alloc_array(n, sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, n * sizeof *values);
    for (size_t p = 0; p < n_rows; p++) {
        float *row = values + (row_of != NULL ? row_of[p] : p) * width;
        for (size_t i = 0; i < width; i++)
            row[i] = (float)pnb__rng_normal(rng);
    }
    pnb__write_f32(noise, values);
    pnb__free(values);
    return PNB_OK;
}

pnb_status pnb__loss_set_step(const pnb__loss *loss, uint64_t seed, int64_t step,
                              const size_t *row_of, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const double share = step < loss->triplet_warmup ? 0 : 1;
    if (loss->triplet_share != NULL)
        pnb__write_f64(loss->triplet_share, &share);
    for (int s = 0; s < PNB__LOSS_N_DRAWN && status == PNB_OK; s++) {
        pnb__rng rng;
        pnb__rng_init(&rng, seed ^ NOISE_SEED, PNB__LOSS_N_DRAWN * (uint64_t)step + (uint64_t)s);
        if (loss->noise[s] != NULL)
            status = draw_side(loss->noise[s], &rng, row_of, err);
    }
    return status;
}

/* CLIP's targets: pair i belongs to row i. */
pnb_status pnb__loss_start(const pnb__loss *loss, pnb_error *err)
{
    pnb_status status = fill_pairs(loss->signs, loss->negative_only ? -1 : 1, -1, err);
    if (status == PNB_OK)
        status = fill_pairs(loss->others, 0, 1, err);
    if (status != PNB_OK || loss->targets == NULL)
        return status;
    size_t n = pnb__dim(loss->targets, 0);
    int32_t *rows = pnb__alloc_array(n, sizeof *rows);
    if (rows == NULL)
        return pnb__fail_nomem(err, n * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (int32_t)i;
    pnb__write_i32(loss->targets, rows);
    pnb__free(rows);
    return PNB_OK;
}
