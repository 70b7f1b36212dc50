/* PCME on frozen rows: unit means stay, log-variances are heads, the soft contrastive loss over
 * samples of all pairs (soft_contrastive.c) per pair of the batch, and the divergence from N(0, I).
 *
 * a and b begin at 15 and are learned, J samples are drawn of each row and step. The uniformity
 * term is about where samples lie; with frozen means it has nothing to move and is left out. */
#include <math.h>

#include "adapt/heads/learned.h"
#include "train/losses/soft_contrastive.h"

static pnb_status declare(pnb_adapter *a, pnb__learned *l, pnb_error *err)
{
    pnb_adapter_opts *o = &a->opts;
    o->vib = isnan(o->vib) ? 1e-5 : o->vib;
    pnb_status status = pnb__learned_check_range(a, "vib", o->vib, 0, 1e6, err);
    if (status == PNB_OK)
        status = pnb__learned_check_range(a, "samples", (double)o->samples, 1, 64, err);
    if (status == PNB_OK && (double)(o->batch_size * o->samples) > 32768)
        status = pnb__fail(err, PNB_ARG,
                           "pcme: batches of %lld with %lld samples of each row: all pairs of at "
                           "most 32768 samples are compared in a step",
                           (long long)o->batch_size, (long long)o->samples);
    if (status != PNB_OK)
        return status;
    l->scale = pnb__learned_add_scalar(l, "negative_scale", 15.0);
    l->shift = pnb__learned_add_scalar(l, "shift", 15.0);
    return pnb__learned_declare_gaussians(a, l);
}

static pnb__sampled_side sampled(pnb__learned_graph *lg, int side)
{
    return (pnb__sampled_side){.mean = lg->side[side].mean,
                               .log_var = lg->side[side].log_var,
                               .noise = pnb__learned_noise(lg, side, (size_t)lg->a->opts.samples),
                               .n_samples = (size_t)lg->a->opts.samples};
}

static void loss(pnb__learned_graph *lg)
{
    const pnb__sampled_side images = sampled(lg, PNB_ADAPTER_IMAGES);
    const pnb__sampled_side texts = sampled(lg, PNB_ADAPTER_TEXTS);
    double share = 1 / (double)lg->n;
    pnb__tensor *sum = pnb__soft_contrastive(&images, &texts, pnb__learned_scale(lg),
                                             pnb__learned_shift(lg), pnb__learned_signs(lg));
    pnb__learned_tell(lg, "match", pnb__affine(sum, share, 0));
    if (!(lg->a->opts.vib > 0))
        return;
    pnb__tensor *vib = pnb__add(pnb__sampled_divergence(images.mean, images.log_var),
                                pnb__sampled_divergence(texts.mean, texts.log_var));
    pnb__learned_tell(lg, "vib", pnb__affine(vib, share * lg->a->opts.vib, 0));
}

/* PCME's own on COCO, its 30 epochs of heads alone. */
static const pnb__learned_calls learned = {.published = {.kind = PNB_OPTIM_ADAMP,
                                                         .lr = 2e-4,
                                                         .clip = 2.0,
                                                         .batch_size = 128,
                                                         .epochs = 30,
                                                         .hidden = 1024,
                                                         .layers = 3},
                                           .small = {.batch_size = 64},
                                           .declare = declare,
                                           .side = pnb__learned_gaussian_side,
                                           .loss = loss,
                                           .learns_match = true};

static const pnb__field fields[] = {
    PNB__LEARNED_FIELDS(PNB__LEARNED_FIELD)
        PNB__LEARNED_FIELD("layers", layers, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)
            PNB__LEARNED_FIELD("samples", samples, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)
                PNB__LEARNED_FIELD("vib", vib, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN)};

const pnb__adapter_calls pnb__adapter_pcme = {PNB__LEARNED_CALLS(learned, fields)};
