/* A point head: captions go through a network and are compared by their cosine, without any
 * uncertainty. What AsymVLM gains by its densities is what it has over this.
 *
 *   mu = g(t)/|g(t)|,  S_it = mu_t . z_i/|z_i|,  symmetric InfoNCE of a S or SigLIP's a S + b
 *
 * a = exp(s) is learned and begins at 1/0.07, CLIP's. Pictures are left alone. */
#include "adapt/heads/deterministic.h"

#include <math.h>

#include "adapt/sphere_loss.h"

/* ---- the two losses over a matrix of scores ---- */

void pnb__contrast_declare(const pnb_adapter *a, pnb__learned *l, const char *name, double scale)
{
    l->scale = pnb__learned_add_scalar(l, name, scale);
    if (a->opts.loss == PNB_ADAPT_LOSS_SIGLIP)
        l->shift = pnb__learned_add_scalar(l, "shift", -log((double)a->opts.batch_size));
}

static double same(double unused, double x)
{
    (void)unused;
    return x;
}

static double no_slope(double unused, double x)
{
    (void)unused;
    (void)x;
    return 0.0;
}

/* The mean of all scores as a constant: likelihoods are known up to one, and far from 0. */
static pnb__tensor *centred(pnb__tensor *scores)
{
    static const pnb__function detached = {same, no_slope, 0};
    return pnb__sub(scores, pnb__apply_function(pnb__mean(scores, PNB__ALL_AXES), &detached));
}

pnb__tensor *pnb__contrast(pnb__learned_graph *lg, pnb__tensor *scores)
{
    if (lg->a->opts.loss == PNB_ADAPT_LOSS_INFONCE)
        return pnb__symmetric_info_nce(scores, NULL, pnb__learned_matches(lg));
    return pnb__pairwise_sigmoid(centred(scores), pnb__constant(lg->g, 1), pnb__learned_shift(lg),
                                 pnb__constant(lg->g, 0), pnb__learned_signs(lg));
}

/* ---- the method ---- */

void pnb__deterministic_declare(pnb_adapter *a, pnb__learned *l)
{
    pnb__adapter_part *texts = &a->part[PNB_ADAPTER_TEXTS];
    const pnb__head_shape shape = {"head",
                                   texts->dim,
                                   (size_t)a->opts.hidden,
                                   (size_t)a->opts.layers,
                                   a->part[PNB_ADAPTER_IMAGES].dim,
                                   (double)NAN};
    texts->dim_out = shape.out;
    a->family = PNB_POINT;
    a->measure = "mean";
    a->part[PNB_ADAPTER_IMAGES].is_adapted = false;
    l->is_unit[PNB_ADAPTER_IMAGES] = true;
    pnb__learned_add_head(l, PNB_ADAPTER_TEXTS, 0, &shape);
    l->head[PNB_ADAPTER_TEXTS][0].may_start_as_rows = shape.in == shape.out;
    pnb__learned_add_length(l, PNB_ADAPTER_TEXTS);
    pnb__contrast_declare(a, l, "log_scale", log(1 / 0.07));
}

void pnb__deterministic_side(pnb__learned_graph *lg, int side, pnb__tensor *x,
                             pnb__learned_side *out)
{
    out->mean = pnb__l2_normalize(pnb__learned_apply(lg, side, 0, x), 1e-12);
}

void pnb__deterministic_loss(pnb__learned_graph *lg)
{
    pnb__tensor *scale = pnb__apply(PNB__EXP, pnb__learned_scale(lg));
    pnb__tensor *texts = pnb__mul(lg->side[PNB_ADAPTER_TEXTS].mean, scale);
    pnb__tensor *scores = pnb__matmul(lg->side[PNB_ADAPTER_IMAGES].mean, false, texts, true);
    pnb__learned_tell(lg, "contrast", pnb__contrast(lg, scores));
}

static double score_scale(const pnb_adapter *a, double learned)
{
    (void)a;
    return exp(learned);
}

static pnb_status declare(pnb_adapter *a, pnb__learned *l, pnb_error *err)
{
    (void)err;
    pnb__deterministic_declare(a, l);
    return PNB_OK;
}

/* The rate and length of AsymVLM's own training, of which it is an ablation. */
static const pnb__learned_calls learned = {.published =
                                               PNB__LEARNED_BENCHMARK(PNB_OPTIM_SGD, 1e-2, 5e-4),
                                           .small = {.lr = 2e-3, .steps = 2000},
                                           .declare = declare,
                                           .side = pnb__deterministic_side,
                                           .loss = pnb__deterministic_loss,
                                           .score_scale = score_scale};

static const pnb__field fields[] = {
    PNB__LEARNED_FIELDS(PNB__LEARNED_FIELD) PNB__LEARNED_FIELD("layers", layers, NULL,
                                                               PNB__FIELD_I64, PNB__ALSO_NONE)
        PNB__LEARNED_FIELD("start", start, pnb__adapt_start_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)
            PNB__LEARNED_FIELD("loss", loss, pnb__adapt_loss_word, PNB__FIELD_ENUM,
                               PNB__ALSO_NONE)};

const pnb__adapter_calls pnb__adapter_deterministic = {PNB__LEARNED_CALLS(learned, fields)};
