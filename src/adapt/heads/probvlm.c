/* ProbVLM: a network of each side rebuilds its row as a generalised Gaussian, and, with a small
 * weight, the row of the other side.
 *
 *   r = x + W drop(relu(W relu(W x))),   mean, 1/alpha and beta are heads of r, softplus on the
 * last two T1 |mean - z| + T2 NLL for z of its own side, and lambda times that for the other's
 *
 * (gen_gauss_loss.c). Softplus is AsymVLM's benchmark's; ProbVLM's own ReLU lets 1/alpha and beta
 * be exactly 0. The released scheduler stands outside its loop over epochs, so its rate never
 * decays; the cosine of the paper does here.
 *
 * Applied, K passes with dropout give each dimension
 *   aleatoric = mean over passes of alpha^2 G(3/beta)/G(1/beta),  epistemic = variance of the means
 * and the row is the generalised Gaussian of the mean mean, the mean beta and their sum as its
 * variance: the law of total variance, where the released code multiplies the variance of the
 * uncertainties over the whole batch with that of the means and takes the root. The epistemic part
 * stands in the set beside it. Its clips of alpha and beta are kept. Draws of a row depend on its
 * number, not on its block. */
#include <math.h>
#include <string.h>

#include "adapt/heads/learned.h"
#include "penumbra/distributions.h"

enum { LOWER, UPPER, MEAN, INV_ALPHA, BETA }; /* heads of a side */
enum { MAX_PASSES = 4096 };

static const double t1 = 1.0, t2 = 0.05;

/* ---- shape ---- */

static void declare_side(const pnb_adapter *a, pnb__learned *l, int side)
{
    size_t dim = a->part[side].dim, hidden = (size_t)a->opts.hidden;
    const pnb__head_shape shapes[] = {
        [LOWER] = {"lower", dim, hidden, 1, hidden, (double)NAN},
        [UPPER] = {"upper", hidden, 0, 0, dim, (double)NAN},
        [MEAN] = {"mean", dim, dim, 1, dim, (double)NAN},
        [INV_ALPHA] = {"inv_alpha", dim, dim, 1, dim, (double)NAN},
        [BETA] = {"beta", dim, dim, 1, dim, (double)NAN},
    };
    for (int place = 0; place < (int)PNB_COUNT(shapes); place++)
        pnb__learned_add_head(l, side, place, &shapes[place]);
    pnb__learned_add_length(l, side);
}

/* Without passes to compare nothing is known of what was not learned. */
static bool draws_passes(const pnb_adapter *a)
{
    return a->opts.mc_samples > 0 && a->opts.dropout > 0;
}

static pnb_status declare(pnb_adapter *a, pnb__learned *l, pnb_error *err)
{
    pnb_adapter_opts *o = &a->opts;
    o->cross_modal = isnan(o->cross_modal) ? 1e-4 : o->cross_modal;
    o->dropout = isnan(o->dropout) ? 0.3 : o->dropout;
    pnb_status status = pnb__learned_check_range(a, "cross_modal", o->cross_modal, 0, 1e6, err);
    if (status == PNB_OK)
        status = pnb__learned_check_range(a, "dropout", o->dropout, 0, 0.99, err);
    if (status == PNB_OK)
        status =
            pnb__learned_check_range(a, "mc_samples", (double)o->mc_samples, 0, MAX_PASSES, err);
    a->has_epistemic = draws_passes(a);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES && status == PNB_OK; s++)
        declare_side(a, l, s);
    return status;
}

static bool is_apart(const pnb_adapter *a, bool has_model)
{
    (void)has_model;
    return a->opts.cross_modal == 0;
}

/* ---- graph ---- */

static pnb__tensor *dropped(pnb__learned_graph *lg, int side, pnb__tensor *h)
{
    double p = lg->a->opts.dropout;
    if (lg->wants_keep) {
        lg->keep[side] = pnb__input(lg->g, PNB__REAL, 2, (size_t[]){lg->n, pnb__dim(h, 1)});
        return pnb__mul(h, lg->keep[side]);
    }
    if (!lg->is_training || !(p > 0))
        return h;
    return pnb__dropout(h, p, lg->a->opts.seed, (uint64_t)side);
}

static void side(pnb__learned_graph *lg, int number, pnb__tensor *x, pnb__learned_side *out)
{
    pnb__tensor *h = pnb__apply(PNB__RELU, pnb__learned_apply(lg, number, LOWER, x));
    pnb__tensor *away = pnb__learned_apply(lg, number, UPPER, dropped(lg, number, h));
    pnb__tensor *r = pnb__add(away, x);
    out->mean = pnb__learned_apply(lg, number, MEAN, r);
    out->inv_alpha = pnb__apply(PNB__SOFTPLUS, pnb__learned_apply(lg, number, INV_ALPHA, r));
    out->beta = pnb__apply(PNB__SOFTPLUS, pnb__learned_apply(lg, number, BETA, r));
}

static pnb__tensor *term(const pnb__learned_graph *lg, int from, int to, double weight)
{
    const pnb__learned_side *s = &lg->side[from];
    const pnb__gen_gauss p = {s->mean, s->inv_alpha, s->beta};
    pnb__gen_gauss_form form = lg->a->opts.likelihood == PNB_ADAPT_LIKELIHOOD_TRUE
                                   ? PNB__GEN_GAUSS_TRUE
                                   : PNB__GEN_GAUSS_RELEASED;
    return pnb__affine(pnb__gen_gauss_loss(form, p, lg->x[to], t1, t2), weight, 0);
}

static void loss(pnb__learned_graph *lg)
{
    double lambda = lg->a->opts.cross_modal;
    pnb__learned_tell(lg, "image", term(lg, PNB_ADAPTER_IMAGES, PNB_ADAPTER_IMAGES, 1));
    pnb__learned_tell(lg, "text", term(lg, PNB_ADAPTER_TEXTS, PNB_ADAPTER_TEXTS, 1));
    if (lambda > 0)
        pnb__learned_tell(lg, "cross_modal",
                          pnb__add(term(lg, PNB_ADAPTER_IMAGES, PNB_ADAPTER_TEXTS, lambda),
                                   term(lg, PNB_ADAPTER_TEXTS, PNB_ADAPTER_IMAGES, lambda)));
}

/* ---- applying ---- */

/* Sums over passes, (n dim) each; means relative to the first pass's, which is exact where all are
 * the same. */
typedef struct sums {
    float *mean, *inv_alpha, *beta; /* of one pass */
    double *first, *away, *away2, *aleatoric, *shape;
    size_t n;
} sums;

static pnb_status make_room(sums *s, size_t n, pnb_error *err)
{
    pnb_status status;
    *s = (sums){.n = n};
    PNB_TRY(PNB_ALLOC(s->mean, 3 * n, err));
    s->inv_alpha = s->mean + n;
    s->beta = s->inv_alpha + n;
    PNB_TRY(PNB_ALLOC_ZERO(s->first, 5 * n, err));
    s->away = s->first + n;
    s->away2 = s->away + n;
    s->aleatoric = s->away2 + n;
    s->shape = s->aleatoric + n;
done:
    return status;
}

static double clip(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* Gamma(3/b)/Gamma(1/b); lgamma itself writes a variable of the process */
static double variance_of_shape(double beta)
{
    int sign;
    return exp(lgamma_r(3 / beta, &sign) - lgamma_r(1 / beta, &sign));
}

static void add_pass(sums *s, bool is_first)
{
    for (size_t i = 0; i < s->n; i++) {
        double alpha = clip(1 / ((double)s->inv_alpha[i] + 1e-5), 1e-4, 5);
        double beta = clip((double)s->beta[i] + 0.1, 0.1, 5);
        if (is_first)
            s->first[i] = (double)s->mean[i];
        double away = (double)s->mean[i] - s->first[i];
        s->away[i] += away;
        s->away2[i] += away * away;
        s->aleatoric[i] += alpha * alpha * variance_of_shape(beta);
        s->shape[i] += beta;
    }
}

static void write_rows(const sums *s, size_t n_passes, pnb_embeddings *out)
{
    double k = (double)n_passes;
    for (size_t i = 0; i < s->n; i++) {
        double away = s->away[i] / k, beta = s->shape[i] / k;
        double epistemic = fmax(s->away2[i] / k - away * away, 0.0);
        double variance = s->aleatoric[i] / k + epistemic;
        out->mean[i] = (float)(s->first[i] + away);
        out->beta[i] = (float)beta;
        out->inv_alpha[i] = (float)sqrt(variance_of_shape(beta) / variance);
        if (out->has_epistemic)
            out->epistemic[i] = (float)epistemic;
    }
}

/* Masks of one pass: 0, or 1/(1 - p). */
static void draw_masks(const pnb_adapter *a, const pnb__adapter_block *block, size_t pass,
                       float *keep)
{
    size_t hidden = (size_t)a->opts.hidden;
    double p = a->opts.dropout;
    uint32_t bar = (uint32_t)(p * 4294967296.0);
    float scale = (float)(1 / (1 - p));
    for (size_t i = 0; i < block->n; i++) {
        pnb__rng rng;
        pnb__rng_init(&rng, a->opts.seed,
                      PNB__STREAM_PASSES + (block->first + i) * MAX_PASSES + pass);
        for (size_t j = 0; j < hidden; j++)
            keep[i * hidden + j] = pnb__rng_u32(&rng) >= bar ? scale : 0.0f;
    }
}

static pnb_status run_pass(pnb__learned_graph *lg, int number, sums *s, pnb_error *err)
{
    const pnb__learned_side *made = &lg->side[number];
    pnb_status status = pnb__graph_run(lg->g, err);
    if (status != PNB_OK)
        return status;
    pnb__read_f32(made->mean, s->mean);
    pnb__read_f32(made->inv_alpha, s->inv_alpha);
    pnb__read_f32(made->beta, s->beta);
    return pnb__graph_check(lg->g, err);
}

static pnb_status apply(const pnb_adapter *a, const pnb__adapter_block *block, pnb_error *err)
{
    int number = (int)block->side;
    bool draws = draws_passes(a);
    size_t n_passes = draws ? (size_t)a->opts.mc_samples : 1;
    pnb__learned_graph lg = {0};
    float *x = NULL, *keep = NULL;
    sums s = {0};
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(x, block->n, block->dim, err));
    PNB_TRY(PNB_ALLOC_ROWS(keep, block->n, (size_t)a->opts.hidden, err));
    PNB_TRY(make_room(&s, block->n * block->dim, err));
    PNB_TRY(pnb__learned_read_block(a, block, x, err));
    PNB_TRY(pnb__learned_graph_side(&lg, a, number, block->n, draws, err));
    pnb__write_f32(lg.x[number], x);
    for (size_t k = 0; k < n_passes; k++) {
        if (draws) {
            draw_masks(a, block, k, keep);
            pnb__write_f32(lg.keep[number], keep);
        }
        PNB_TRY(run_pass(&lg, number, &s, err));
        add_pass(&s, k == 0);
    }
    write_rows(&s, n_passes, block->out);
done:
    pnb__learned_graph_reset(&lg);
    pnb__free(x);
    pnb__free(keep);
    pnb__free(s.mean);
    pnb__free(s.first);
    return status;
}

/* AsymVLM's Table A.1; ProbVLM's section 4. */
static const pnb__learned_calls learned = {.published = {.kind = PNB_OPTIM_ADAMW,
                                                         .lr = 1e-4,
                                                         .weight_decay = 0.01,
                                                         .batch_size = 2048,
                                                         .epochs = 200,
                                                         .hidden = 1024,
                                                         .layers = 2},
                                           .declare = declare,
                                           .side = side,
                                           .loss = loss,
                                           .apply = apply};

static const pnb__field fields[] = {
    PNB__LEARNED_FIELDS(PNB__LEARNED_FIELD) PNB__LEARNED_FIELD(
        "likelihood", likelihood, pnb__adapt_likelihood_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)
        PNB__LEARNED_FIELD("cross_modal", cross_modal, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN)
            PNB__LEARNED_FIELD("dropout", dropout, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN)
                PNB__LEARNED_FIELD("mc_samples", mc_samples, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)};

const pnb__adapter_calls pnb__adapter_probvlm = {PNB__LEARNED_CALLS(learned, fields),
                                                 .is_apart = is_apart, .draws = true};
