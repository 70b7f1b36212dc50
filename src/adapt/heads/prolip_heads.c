/* ProLIP's heads on frozen rows: unit means stay, log-variances are heads, the loss is PPCL with
 * the divergence from N(0, I) and the inclusion of pictures in their captions
 * (train/losses/loss.c).
 *
 * The masked copies of ProLIP's inclusion have no embedding here and are left out; the scale of the
 * logits is exp(s) beginning at 10, their bias at -log B. AsymVLM's benchmark keeps both at 1 and 0
 * and has no inclusion, which its code gives no way to change. */
#include <math.h>
#include <string.h>

#include "adapt/heads/learned.h"
#include "train/losses/loss.h"

static pnb_status declare(pnb_adapter *a, pnb__learned *l, pnb_error *err)
{
    pnb_adapter_opts *o = &a->opts;
    o->vib = isnan(o->vib) ? 1e-4 : o->vib;
    pnb_status status = pnb__learned_check_range(a, "vib", o->vib, 0, 1e6, err);
    if (status != PNB_OK)
        return status;
    l->scale = pnb__learned_add_scalar(l, "log_scale", log(10.0));
    l->shift = pnb__learned_add_scalar(l, "shift", -log((double)o->batch_size));
    return pnb__learned_declare_gaussians(a, l);
}

/* The published weights of the terms that frozen rows have. */
static pnb_loss_opts weights(const pnb_adapter_opts *o)
{
    pnb_loss_opts w = pnb_loss_opts_default();
    memset(w.weight, 0, sizeof w.weight);
    w.weight[PNB_LOSS_PPCL] = 1;
    w.weight[PNB_LOSS_VIB] = o->vib;
    w.weight[PNB_LOSS_INCLUSION] = o->recipe == PNB_ADAPT_RECIPE_SMALL ? 1e-4 : 1e-7;
    return w;
}

static void loss(pnb__learned_graph *lg)
{
    const pnb__learned_side *i = &lg->side[PNB_ADAPTER_IMAGES], *t = &lg->side[PNB_ADAPTER_TEXTS];
    const pnb_loss_opts opts = weights(&lg->a->opts);
    const pnb__loss_in in = {.image = {.mean = i->mean, .log_var = i->log_var},
                             .text = {.mean = t->mean, .log_var = t->log_var},
                             .scale = pnb__apply(PNB__EXP, pnb__learned_scale(lg)),
                             .bias = pnb__learned_shift(lg)};
    pnb__loss made = {0};
    pnb_error ignored = PNB_ERROR_INIT; /* the graph's plan says what went wrong */
    if (pnb__loss_build(&made, lg->g, &in, &opts, &ignored) != PNB_OK)
        return;
    for (int k = 0; k < PNB_N_LOSS_TERMS; k++)
        if (made.term[k] != NULL)
            pnb__learned_tell(lg, pnb_loss_name((pnb_loss_term)k), made.term[k]);
}

/* SPEC of the benchmark: AdamW at 5e-4; the rest as the other heads. */
static const pnb__learned_calls learned = {.published =
                                               PNB__LEARNED_BENCHMARK(PNB_OPTIM_ADAMW, 5e-4, 0.01),
                                           .declare = declare,
                                           .side = pnb__learned_gaussian_side,
                                           .loss = loss};

static const pnb__field fields[] = {
    PNB__LEARNED_FIELDS(PNB__LEARNED_FIELD)
        PNB__LEARNED_FIELD("layers", layers, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)
            PNB__LEARNED_FIELD("vib", vib, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN)};

const pnb__adapter_calls pnb__adapter_prolip = {PNB__LEARNED_CALLS(learned, fields)};
