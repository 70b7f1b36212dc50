/* The terms of the training losses, one function each (formulas in include/penumbra/loss.h).
 *
 * Every pairwise loss is built from logits l_ij through one identity: with y = +1 on the diagonal
 * and -1 elsewhere, sum_ij -log s(y_ij l_ij) = sum_ij softplus(l_ij) - sum_i l_ii, so that no B x B
 * label matrix exists, nor one of logits (pnb__pair_softplus); with labels Y_ij of mixed pictures
 * the second sum is that of Y_ij l_ij, Y by a few marks a row (pnb__pair_labelled). Scale and
 * variances are folded into the rows before the matrix product. Terms are safe at any log-variance:
 * they are clipped far outside what a model reaches, and a term over its limit is multiplied by an
 * exact 0 (see `gate`). Following the paper, VIB uses log sigma^2; the released code halves it, and
 * `vib_official` does so too. */
#include "train/losses/loss_terms.h"

#include "train/losses/distill.h"
#include "train/losses/sampled_terms.h"
#include "train/losses/triplet.h"

typedef pnb__term_build build;

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
    size_t begin = pnb__segment_begin(g);
    pnb__tensor *over = pnb__apply(PNB__RELU, pnb__affine(x, 1, -cap));
    pnb__tensor *under = pnb__apply(PNB__RELU, pnb__affine(x, -1, -cap));
    pnb__tensor *held = pnb__add(pnb__sub(x, over), under);
    pnb__segment_end(g, begin, held);
    return held;
}

pnb__loss_in pnb__terms_clip(pnb__graph *g, const pnb__loss_in *in)
{
    pnb__loss_in out = *in;
    out.image.log_var = clipped(g, in->image.log_var);
    out.text.log_var = clipped(g, in->text.log_var);
    out.masked_image.log_var = clipped(g, in->masked_image.log_var);
    out.masked_text.log_var = clipped(g, in->masked_text.log_var);
    out.negative.log_var = clipped(g, in->negative.log_var);
    return out;
}

/* ---- rows ---- */

/* The mean over all places of what our rows have, as it counts in that of the batch. */
static pnb__tensor *share_mean(const build *b, pnb__tensor *x)
{
    return pnb__share_part(&b->in->share, mean_all(x));
}

/* x where x <= limit, else 0, and with it the gradient: x times relu(1 - 1e20 relu(x - limit)). The
 * smallest excess a double can show over a limit of 1 or more is 2e-16, so the factor is 0 or 1. */
static pnb__tensor *gate(pnb__tensor *x, double limit)
{
    pnb__tensor *over = pnb__apply(PNB__RELU, pnb__affine(x, 1, -limit));
    return pnb__mul(x, pnb__apply(PNB__RELU, pnb__affine(over, -1e20, 1)));
}

/* The same of a term of which our rows have a share: the limit is that of the whole term, which the
 * processes know together and behind a run: whoever runs the graph opens and closes it. */
static pnb__tensor *gate_share(build *b, pnb__tensor *x, double limit)
{
    pnb__loss *out = b->out;
    if (!pnb__is_shared(&b->in->share))
        return gate(x, limit);
    pnb__loss_gate *mine = &out->gates[out->n_gates++];
    *mine = (pnb__loss_gate){x, pnb__input(b->g, PNB__REAL, 0, NULL), limit};
    if (x != NULL)
        pnb__keep(x);
    return pnb__mul(x, mine->open);
}

/* u = tr Sigma = sum_d exp(lv): the uncertainty of a row. (B,D) -> (B) */
static pnb__tensor *trace(pnb__graph *g, const pnb__dist *d)
{
    size_t begin = pnb__segment_begin(g);
    pnb__tensor *u = pnb__sum(pnb__apply(PNB__EXP, d->log_var), -1);
    pnb__segment_end(g, begin, u);
    return u;
}

/* l_ij = left_i . right_j + row_i + col_j, left (B,D) and right (B,D), or (H,D) of negatives; row
 * (B) and col (B or H) may be NULL. Left and row are of our rows alone. */
typedef struct pairs {
    pnb__tensor *left, *right, *row, *col;
} pairs;

/* l_ii (B), a sum over rows of its own: there is no (B,B) to pick it out of. */
static pnb__tensor *diagonal(const build *b, const pairs *p)
{
    const pnb__row_share *share = &b->in->share;
    pnb__tensor *own = pnb__sum(pnb__mul(p->left, pnb__share_rows(share, p->right)), -1);
    if (p->row != NULL)
        own = pnb__add(own, p->row);
    return p->col != NULL ? pnb__add(own, pnb__share_rows(share, p->col)) : own;
}

/* All l_ij, (B,B), for who asks for the logits themselves; what a step computes never comes here.
 */
static pnb__tensor *all_pairs(const pairs *p)
{
    pnb__tensor *all = pnb__matmul(p->left, false, p->right, true);
    if (p->row != NULL)
        all = pnb__add(all, pnb__reshape(p->row, 2, (size_t[]){pnb__dim(p->left, 0), 1}));
    return p->col != NULL ? pnb__add(all, p->col) : all;
}

/* factor * sum_ij -log s(y_ij l_ij), as softplus(-l) = softplus(l) - l. With negative_only every y
 * is -1: the pairs of other processes' rows have no diagonal. */
static pnb__tensor *pair_loss(const build *b, pairs p, double factor)
{
    if (b->in->has_labels) {
        const pnb__marks marks = pnb__term_marks(b, 0);
        return pnb__affine(sum_all(pnb__pair_labelled(p.left, p.right, p.row, p.col, &marks)),
                           factor, 0);
    }
    pnb__tensor *sum = sum_all(pnb__pair_softplus(p.left, p.right, p.row, p.col));
    if (!b->in->negative_only)
        sum = pnb__sub(sum, sum_all(diagonal(b, &p)));
    return pnb__affine(sum, factor, 0);
}

/* Adds what pairs with negatives cost: y = -1 for all of them, so softplus(l_ij). */
static pnb__tensor *add_negatives(pnb__tensor *loss, pairs p, double factor)
{
    pnb__tensor *sum = sum_all(pnb__pair_softplus(p.left, p.right, p.row, p.col));
    return pnb__add(loss, pnb__affine(sum, factor, 0));
}

/* The batch with the negatives in place of its texts. */
static pnb__loss_in with_negatives(const pnb__loss_in *in)
{
    pnb__loss_in out = *in;
    out.text = in->negative;
    return out;
}

/* bias as a row to add, (B); NULL when there is none. */
static pnb__tensor *bias_row(pnb__tensor *bias, size_t n)
{
    return bias == NULL ? NULL : pnb__broadcast_to(bias, 1, &n);
}

/* ProLIP Eq. 2: csd = 2 - 2 mu_i.mu_j + u_i + u_j for unit means, l_ij = -a/2 csd + a + b, that is
 *   l_ij = a mu_i.mu_j + (b - a/2 u_i) - a/2 u_j
 * a goes into the left rows, so that no (B,B) matrix is scaled. */
static pairs ppcl_pairs(pnb__graph *g, const pnb__loss_in *in)
{
    const pnb__dist image = pnb__term_share(in, &in->image);
    pnb__tensor *half = pnb__affine(in->scale, -0.5, 0);
    pnb__tensor *row = pnb__mul(trace(g, &image), half);
    pnb__tensor *col = pnb__mul(trace(g, &in->text), half);
    if (in->bias != NULL)
        row = pnb__add(row, in->bias);
    return (pairs){pnb__mul(image.mean, in->scale), in->text.mean, row, col};
}

pnb__tensor *pnb__loss_logits(pnb__graph *g, const pnb__loss_in *in)
{
    const pnb__loss_in safe = pnb__terms_clip(g, in);
    const pairs p = ppcl_pairs(g, &safe);
    return all_pairs(&p);
}

/* B, the rows of a side. */
static double n_pairs(const build *b)
{
    return (double)pnb__dim(b->in->image.mean, 0);
}

/* (1/B) sum_ij -log s(y_ij l_ij): a sum over B^2 pairs divided by B, as SigLIP does. */
static pnb__tensor *build_ppcl(build *b)
{
    pnb__tensor *loss = pair_loss(b, ppcl_pairs(b->g, b->in), 1 / n_pairs(b));
    if (b->in->negative.mean == NULL)
        return loss;
    const pnb__loss_in negative = with_negatives(b->in);
    return add_negatives(loss, ppcl_pairs(b->g, &negative), 1 / n_pairs(b));
}

/* SigLIP: l_ij = a mu_i.mu_j + b on the means alone, with scalars of its own where there are
 * any. */
static pnb__tensor *build_siglip(build *b)
{
    const pnb__loss_in *in = b->in;
    pnb__tensor *scale = in->point_scale != NULL ? in->point_scale : in->scale;
    pnb__tensor *bias = in->point_scale != NULL ? in->point_bias : in->bias;
    pnb__tensor *row = bias_row(bias, pnb__term_rows_asked(b));
    pnb__tensor *image = pnb__share_rows(&in->share, in->image.mean);
    pairs p = {pnb__mul(image, scale), in->text.mean, row, NULL};
    pnb__tensor *loss = pair_loss(b, p, 1 / n_pairs(b));
    p.right = in->negative.mean; /* the same rows ask, with the same scale and bias */
    return p.right != NULL ? add_negatives(loss, p, 1 / n_pairs(b)) : loss;
}

/* Row i of a side belongs to row i of the other. */
static pnb__tensor *targets_of(build *b)
{
    size_t n = pnb__term_rows_asked(b);
    if (b->out->targets == NULL)
        b->out->targets = pnb__input(b->g, PNB__INT32, 1, &n);
    return b->out->targets;
}

/* CLIP: (1/2B) sum_i (CE(row i of L, i) + CE(column i of L, i)), L = a V T^T without a bias.
 * Columns are the rows of the product taken the other way round: cheaper than a transposed
 * (B,B). Negatives are texts that images are asked about, and ask nothing themselves. */
static pnb__tensor *build_clip(build *b)
{
    const pnb__loss_in *in = b->in;
    pnb__tensor *image = pnb__mul(in->image.mean, in->scale), *texts = in->text.mean;
    pnb__tensor *const both[] = {in->text.mean, in->negative.mean};
    if (in->negative.mean != NULL)
        texts = pnb__concat((pnb__tensor **)(uintptr_t)both, 2, 0);
    pnb__tensor *asking[] = {pnb__share_rows(&in->share, image),
                             pnb__share_rows(&in->share, in->text.mean)};
    pnb__tensor *i2t = share_mean(b, pnb__pair_cross_entropy(asking[0], texts, targets_of(b)));
    pnb__tensor *t2i = share_mean(b, pnb__pair_cross_entropy(asking[1], image, targets_of(b)));
    return pnb__affine(pnb__add(i2t, t2i), 0.5, 0);
}

/* Labels of a way with where the match of each row stands: what pseudo positives are measured by.
 */
static pnb__marks matched_marks(const build *b, int way)
{
    pnb__marks marks = pnb__term_marks(b, way);
    size_t n = pnb__term_rows_asked(b);
    if (b->out->match[way] == NULL)
        b->out->match[way] = pnb__input(b->g, PNB__INT32, 1, &n);
    marks.match = b->out->match[way];
    return marks;
}

/* PCME++'s matching loss once, where its code counts it twice: l = -a csd + b, BCE, mean over B^2;
 * and that of the pseudo labels of both ways. One graph for both terms. */
static const pnb__pcmepp_out *pcmepp_of(build *b)
{
    const pnb__loss_in *in = b->in;
    bool has_pseudo = b->opts->weight[PNB_LOSS_PCMEPP_PSEUDO] > 0;
    if (b->pcmepp.loss != NULL)
        return &b->pcmepp;
    pnb__pcmepp_in pairs_of = {.images = {.mean = in->image.mean, .log_var = in->image.log_var},
                               .texts = {.mean = in->text.mean, .log_var = in->text.log_var},
                               .scale = in->point_scale != NULL ? in->point_scale : in->scale,
                               .shift = in->point_scale != NULL ? in->point_bias : in->bias,
                               .share = in->share,
                               .negative_only = in->negative_only,
                               .factor = 1,
                               .smoothness = has_pseudo};
    if (in->has_labels)
        pairs_of.marks = pnb__term_marks(b, 0);
    for (int way = 0; way < 2 && has_pseudo; way++)
        pairs_of.pseudo[way] = matched_marks(b, way);
    b->pcmepp = pnb__pcmepp_build(&pairs_of);
    return &b->pcmepp;
}

/* The mean over B^2, its factor in the weight. */
static pnb__tensor *build_pcmepp(build *b)
{
    return pcmepp_of(b)->match;
}

/* PCME++ section 3.3; both ways are added up, as in its code. */
static pnb__tensor *build_pcmepp_pseudo(build *b)
{
    return pcmepp_of(b)->smooth;
}

/* ProLIP Eq. 4: mean over rows and d of -log s(c H_d(1 in 2)) = softplus(-c H_d). H (B,D) is the
 * test of one dimension at a time; c is large because H of near-equal Gaussians is small. */
static pnb__tensor *inclusion_of(build *b, const pnb__dist *one, const pnb__dist *two)
{
    const pnb__search_inclusion_opts opts = {!b->opts->inclusion_exact, b->opts->inclusion_eps};
    size_t begin = pnb__segment_begin(b->g);
    pnb__tensor *h = pnb__inclusion(one->mean, one->log_var, two->mean, two->log_var, &opts);
    pnb__tensor *minus = pnb__affine(h, -b->opts->inclusion_scale, 0);
    pnb__tensor *all = share_mean(b, pnb__apply(PNB__SOFTPLUS, minus));
    pnb__segment_end(b->g, begin, all);
    return gate_share(b, all, b->opts->inclusion_limit);
}

/* An image says more than its caption: image inside text. */
static pnb__tensor *build_inclusion(build *b)
{
    const pnb__dist image = pnb__term_share(b->in, &b->in->image),
                    text = pnb__term_share(b->in, &b->in->text);
    return inclusion_of(b, &image, &text);
}

/* An original must lie inside its masked copy, which says less. The originals of the M masked rows
 * are the first M rows of the batch. */
static pnb__tensor *masked_inclusion(build *b, const pnb__dist *all, const pnb__dist *masked)
{
    const pnb__row_share *s = &b->in->share;
    size_t n_all = pnb__dim(masked->mean, 0);
    size_t at = pnb__is_shared(s) ? s->begin[0] : 0, n = pnb__is_shared(s) ? s->n[0] : n_all;
    const pnb__row_share copies = {{at, 0}, {n, 0}, pnb__is_shared(s) ? n_all : 0};
    pnb__dist first = {.mean = pnb__slice(all->mean, 0, at, n),
                       .log_var = pnb__slice(all->log_var, 0, at, n)};
    const pnb__dist ours = {.mean = pnb__share_rows(&copies, masked->mean),
                            .log_var = pnb__share_rows(&copies, masked->log_var)};
    return inclusion_of(b, &first, &ours);
}

/* The whole picture lies inside the one that lost patches, */
static pnb__tensor *build_img_inclusion(build *b)
{
    return masked_inclusion(b, &b->in->image, &b->in->masked_image);
}

/* and the whole caption inside the one that lost words (ProLIP section 3.3). */
static pnb__tensor *build_txt_inclusion(build *b)
{
    return masked_inclusion(b, &b->in->text, &b->in->masked_text);
}

/* KL(N(mu, exp lv) || N(0, 1)) per dimension: 1/2 mean_{B,D}(mu^2 + exp(lv) - lv - 1); official:
 * lv/2 in place of lv, the standard deviation where the formula has the variance. */
static pnb__tensor *divergence(build *b, const pnb__dist *side)
{
    const pnb__dist ours = pnb__term_share(b->in, side), *d = &ours;
    size_t begin = pnb__segment_begin(b->g);
    pnb__tensor *lv = b->opts->vib_official ? pnb__affine(d->log_var, 0.5, 0) : d->log_var;
    pnb__tensor *spread = pnb__sub(pnb__apply(PNB__EXP, lv), lv);
    pnb__tensor *all = mean_all(pnb__add(pnb__apply(PNB__SQUARE, d->mean), spread));
    pnb__segment_end(b->g, begin, all);
    pnb__tensor *kl = pnb__share_part(&b->in->share, pnb__affine(all, 0.5, -0.5));
    return gate_share(b, kl, b->opts->vib_limit);
}

/* Both towers, each gated by itself: one that runs away does not switch the other's term off. */
static pnb__tensor *build_vib(build *b)
{
    return pnb__add(divergence(b, &b->in->image), divergence(b, &b->in->text));
}

/* ---- terms of points ---- */

/* (B,K,D/K) of rows of K embeddings beside each other. */
static pnb__tensor *split(const pnb__dist *d, pnb__tensor *x)
{
    size_t k = PNB_MAX(d->n_embeddings, (size_t)1);
    return pnb__reshape(x, 3, (size_t[]){pnb__dim(x, 0), k, pnb__dim(x, 1) / k});
}

/* The margins of a batch: their sum as VSE++'s code has it, or the mean of PVSE's, over B rows and
 * columns where the nearest negative of each counts, over B^2 places where all do. */
static pnb__tensor *margins(const build *b, pnb__negatives which)
{
    const pnb__dist *image = &b->in->image, *text = &b->in->text;
    double n = (double)pnb__dim(image->mean, 0);
    double places = which == PNB__NEGATIVES_HARDEST ? n : n * n;
    pnb__tensor *sum = pnb__triplet(split(image, image->mean), split(text, text->mean),
                                    b->opts->triplet_margin, which, &b->in->share);
    return b->opts->triplet_mean ? pnb__affine(sum, 1 / places, 0) : sum;
}

/* s_ij = cosine of the best of K x K embeddings; during the warm-up the share of the nearest
 * negatives is 0, behind it 1, so one graph serves both. */
static pnb__tensor *build_triplet(build *b)
{
    if (!b->opts->triplet_hardest)
        return margins(b, PNB__NEGATIVES_ALL);
    pnb__tensor *nearest = margins(b, PNB__NEGATIVES_HARDEST);
    if (b->opts->triplet_warmup == 0)
        return nearest;
    pnb__tensor *all = margins(b, PNB__NEGATIVES_ALL);
    b->out->triplet_share = pnb__input(b->g, PNB__REAL, 0, NULL);
    b->out->triplet_warmup = b->opts->triplet_warmup;
    return pnb__add(pnb__mul(nearest, b->out->triplet_share),
                    pnb__mul(all, pnb__affine(b->out->triplet_share, -1, 1)));
}

/* PVSE Eq. (5) of both sides: what attention adds to the K embeddings of an input must differ. */
static pnb__tensor *build_diversity(build *b)
{
    const pnb__dist image = pnb__term_share(b->in, &b->in->image),
                    text = pnb__term_share(b->in, &b->in->text);
    size_t k = image.n_embeddings;
    b->out->off = pnb__input(b->g, PNB__REAL, 2, (size_t[]){k, k});
    pnb__tensor *both = pnb__add(pnb__diversity(split(&image, image.residual), b->out->off),
                                 pnb__diversity(split(&text, text.residual), b->out->off));
    return pnb__share_part(&b->in->share, both);
}

/* PVSE Eq. (6) between the B K embeddings of both sides, gamma 0.5 as in its code. Rows of one side
 * are its columns too: who has a share of them computes it all. */
static pnb__tensor *build_mmd(build *b)
{
    const pnb__dist *side[2] = {&b->in->image, &b->in->text};
    pnb__tensor *rows[2];
    for (int s = 0; s < 2; s++) {
        size_t k = PNB_MAX(side[s]->n_embeddings, (size_t)1);
        size_t n = pnb__dim(side[s]->mean, 0) * k, dim = pnb__dim(side[s]->mean, 1) / k;
        rows[s] = pnb__reshape(side[s]->mean, 2, (size_t[]){n, dim});
    }
    return pnb__share_part(&b->in->share,
                           pnb__domain_discrepancy(rows[0], rows[1], 0.5, b->opts->mmd_published));
}

/* ---- a teacher ---- */

/* Logits as CLIP's: a on the means, without a bias, which no softmax sees. */
static pnb__tensor *build_distill(build *b)
{
    const pnb__loss_in *in = b->in;
    const pnb__distill_in pairs_of = {.image = pnb__mul(in->image.mean, in->scale),
                                      .text = in->text.mean,
                                      .targets = targets_of(b),
                                      .teacher_image = in->teacher[0].mean,
                                      .teacher_text = in->teacher[1].mean,
                                      .teacher_scale = in->teacher_scale,
                                      .share = in->share};
    return pnb__distill_pairs(&pairs_of);
}

/* Each side's rows against the teacher's of the same inputs. */
static pnb__tensor *build_distill_kl(build *b)
{
    const pnb__loss_in *in = b->in;
    const pnb__dist image = pnb__term_share(in, &in->image), text = pnb__term_share(in, &in->text);
    const pnb__dist teacher[2] = {pnb__term_share(in, &in->teacher[0]),
                                  pnb__term_share(in, &in->teacher[1])};
    pnb__tensor *both = pnb__add(pnb__distill_gaussians(&image, &teacher[0]),
                                 pnb__distill_gaussians(&text, &teacher[1]));
    return pnb__share_part(&in->share, both);
}

/* Which are about matches, and what they know of them: margins and InfoNCE know one match a row. A
 * mixed picture is not included in the caption of either. */
const pnb__term_row pnb__term_rows[PNB_N_LOSS_TERMS] = {
    [PNB_LOSS_PPCL] = {build_ppcl, .needs_log_var = true, .takes_labels = true},
    [PNB_LOSS_SIGLIP] = {build_siglip, .takes_labels = true},
    [PNB_LOSS_CLIP] = {.build = build_clip, .needs_others = true, .asks_images = true},
    [PNB_LOSS_PCMEPP] = {build_pcmepp, .needs_log_var = true, .takes_labels = true,
                         .refuses_negatives = true},
    [PNB_LOSS_INCLUSION] = {build_inclusion, .needs_log_var = true},
    [PNB_LOSS_IMG_INCLUSION] = {build_img_inclusion, .needs_log_var = true,
                                .needs_masked_image = true, .takes_labels = true},
    [PNB_LOSS_TXT_INCLUSION] = {build_txt_inclusion, .needs_log_var = true,
                                .needs_masked_text = true, .takes_labels = true},
    [PNB_LOSS_VIB] = {build_vib, .needs_log_var = true, .takes_labels = true},
    [PNB_LOSS_PCME] = {pnb__build_pcme, .needs_log_var = true, .takes_labels = true,
                       .refuses_negatives = true},
    [PNB_LOSS_PCME_KL] = {pnb__build_pcme_kl, .needs_log_var = true, .takes_labels = true},
    [PNB_LOSS_UNIFORMITY] = {pnb__build_uniformity, .needs_log_var = true, .takes_labels = true,
                             .asks_images = true},
    [PNB_LOSS_TRIPLET] = {build_triplet, .needs_match = true, .needs_others = true,
                          .takes_several = true, .refuses_negatives = true, .asks_images = true},
    [PNB_LOSS_PCMEPP_PSEUDO] = {build_pcmepp_pseudo, .needs_log_var = true, .needs_match = true,
                                .takes_labels = true, .refuses_negatives = true,
                                .asks_images = true},
    [PNB_LOSS_DIVERSITY] = {build_diversity, .takes_labels = true, .takes_several = true},
    [PNB_LOSS_MMD] = {build_mmd, .takes_labels = true, .takes_several = true, .asks_images = true},
    [PNB_LOSS_DISTILL] = {.build = build_distill,
                          .needs_match = true,
                          .needs_others = true,
                          .needs_teacher = true,
                          .asks_images = true},
    [PNB_LOSS_DISTILL_KL] = {build_distill_kl, .needs_log_var = true, .needs_teacher = true,
                             .needs_spreads = true},
};
