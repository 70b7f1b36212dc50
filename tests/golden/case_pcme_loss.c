/* PCME's loss over samples with given noise, its parts, and all gradients. The case's log sigma is
 * half of the log-variance that the losses take; its uniformity and divergence are those of the
 * released code, which reads log sigma as a log-variance there. */
#include "tests/golden/net.h"

#include <math.h>

#include "train/losses/soft_contrastive.h"

typedef struct loss_case {
    golden_net net;
    size_t n, j;
    pnb__sampled_side side[2]; /* images, texts */
    pnb__tensor *scale, *shift, *signs, *own, *other, *ones;
    pnb__tensor *squares; /* of all samples of one side from all of the other */
} loss_case;

/* A number of the hyperparameters as a leaf with a gradient. */
static pnb__tensor *number(golden_net *net, pnb__tensor **leaf)
{
    *leaf = pnb__input_with_grad(net->g, 0, NULL);
    pnb__keep_grad(*leaf);
    return *leaf;
}

static pnb__sampled_side side_of(golden_net *net, const char *name)
{
    char full[64];
    pnb__sampled_side s = {0};
    snprintf(full, sizeof full, "%s.mean", name);
    s.mean = net_leaf(net, full);
    snprintf(full, sizeof full, "%s.logsigma", name);
    s.log_var = pnb__affine(net_leaf(net, full), 2, 0);
    snprintf(full, sizeof full, "%s.eps", name);
    s.noise = net_leaf(net, full);
    s.n_samples = pnb__dim(s.noise, 1);
    return s;
}

static pnb__tensor *weighted_sum(pnb__tensor *each, pnb__tensor *weights)
{
    return pnb__sum(pnb__mul(each, weights), PNB__ALL_AXES);
}

static pnb__tensor *flat(pnb__tensor *samples)
{
    size_t rows = pnb__dim(samples, 0) * pnb__dim(samples, 1);
    return pnb__reshape(samples, 2, (size_t[]){rows, pnb__dim(samples, 2)});
}

/* Both directions are one sum, whose halves the case has by the sign of the pair. */
static pnb__tensor *build(loss_case *l)
{
    golden_net *net = &l->net;
    pnb__tensor *x = pnb__draw_samples(&l->side[0]), *y = pnb__draw_samples(&l->side[1]);
    pnb__tensor *each = pnb__soft_contrastive_pairs(x, y, l->scale, l->shift, l->signs);
    pnb__tensor *one_way = pnb__sum(each, PNB__ALL_AXES);
    pnb__tensor *as_matches = pnb__soft_contrastive_pairs(x, y, l->scale, l->shift, l->ones);
    net_output(net, "match_prob", pnb__apply(PNB__EXP, pnb__affine(as_matches, -1, 0)));
    l->squares = pnb__pairwise_sqdist(flat(x), flat(y));
    pnb__keep(l->squares);
    net_output(net, "i2t_loss", one_way);
    net_output(net, "t2i_loss", pnb__affine(one_way, 1, 0));
    net_output(net, "i2t_pos_loss", weighted_sum(each, l->own));
    net_output(net, "i2t_neg_loss", weighted_sum(each, l->other));
    const pnb__row_share all = {.n_all = 0};
    pnb__tensor *uniform = pnb__uniformity(pnb__concat((pnb__tensor *[]){flat(x), flat(y)}, 2, 0));
    pnb__tensor *vib = pnb__add(pnb__sampled_divergence_published(net->g, &l->side[0], &all, 0),
                                pnb__sampled_divergence_published(net->g, &l->side[1], &all, 0));
    double lambda = golden_number(net->c, "uniform_lambda", 0);
    double beta = golden_number(net->c, "vib_beta", 0);
    /* the reference does not compute what has no weight, and says 0 */
    net_output(net, "uniform_loss", pnb__affine(uniform, lambda != 0, 0));
    net_output(net, "vib_loss", pnb__affine(vib, beta != 0, 0));
    pnb__tensor *loss = pnb__affine(one_way, 2, 0);
    loss = pnb__add(loss, pnb__affine(uniform, lambda, 0));
    loss = pnb__add(loss, pnb__affine(vib, beta, 0));
    net_output(net, "loss", loss);
    return loss;
}

static pnb_status write_constants(const loss_case *l)
{
    double scale = golden_number(l->net.c, "negative_scale", 0);
    double shift = golden_number(l->net.c, "shift", 0);
    size_t n = l->n * l->n;
    double *v = pnb__alloc_array(4 * n, sizeof *v);
    if (v == NULL)
        return pnb__fail_nomem(l->net.err, 4 * n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        bool match = i / l->n == i % l->n;
        v[i] = match ? 1 : -1;
        v[n + i] = match;
        v[2 * n + i] = !match;
        v[3 * n + i] = 1;
    }
    pnb__write_f64(l->scale, &scale);
    pnb__write_f64(l->shift, &shift);
    pnb__write_f64(l->signs, v);
    pnb__write_f64(l->own, v + n);
    pnb__write_f64(l->other, v + 2 * n);
    pnb__write_f64(l->ones, v + 3 * n);
    pnb__free(v);
    return PNB_OK;
}

/* sqrt(|x_k - y_l|^2 + 1e-6) of matching rows, [N, K K], the caption's sample first. */
static pnb_status give_distances(golden_case *c, const loss_case *l, const pnb__tensor *squares,
                                 pnb_error *err)
{
    size_t n = l->n, j = l->j, width = n * j;
    double *all = pnb__alloc_array(width * width, sizeof *all);
    double *pair = pnb__alloc_array(n * j * j, sizeof *pair);
    pnb_status status = PNB_OK;
    if (all == NULL || pair == NULL)
        PNB_TRY(pnb__fail_nomem(err, width * width * sizeof *all));
    pnb__read_f64(squares, all);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < j * j; k++)
            pair[i * j * j + k] = sqrt(all[(i * j + k % j) * width + i * j + k / j] + 1e-6);
    golden_give(c, "pair_distance", pair, n * j * j);
done:
    pnb__free(all);
    pnb__free(pair);
    return status;
}

static void give_scalar_grad(golden_case *c, const char *name, const pnb__tensor *t)
{
    double v;
    if (pnb__read_grad_f64(t, &v))
        golden_give_scalar(c, name, v);
}

pnb_status golden_case_pcme_loss(golden_case *c, pnb_error *err)
{
    loss_case l = {0};
    pnb_status status = net_init(&l.net, c, err);
    if (status != PNB_OK)
        return status;
    l.side[0] = side_of(&l.net, "image");
    l.side[1] = side_of(&l.net, "text");
    l.n = pnb__dim(l.side[0].noise, 0);
    l.j = pnb__dim(l.side[0].noise, 1);
    size_t square[] = {l.n, l.n};
    number(&l.net, &l.scale);
    number(&l.net, &l.shift);
    l.signs = pnb__input(l.net.g, PNB__REAL, 2, square);
    l.own = pnb__input(l.net.g, PNB__REAL, 2, square);
    l.other = pnb__input(l.net.g, PNB__REAL, 2, square);
    l.ones = pnb__input(l.net.g, PNB__REAL, 2, square);
    PNB_TRY(net_plan(&l.net, build(&l)));
    PNB_TRY(write_constants(&l));
    PNB_TRY(net_finish(&l.net, ""));
    give_scalar_grad(c, "grad.negative_scale", l.scale);
    give_scalar_grad(c, "grad.shift", l.shift);
    status = give_distances(c, &l, l.squares, err);
done:
    net_reset(&l.net);
    return status;
}
