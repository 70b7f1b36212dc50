/* PCME++ on frozen rows: unit means stay, log-variances are heads.
 *
 *   2 mean BCE(-a csd + b), pseudo positives, and the divergence from N(0, I)  (pair_loss.c)
 *
 * a and b begin at 5 and are learned. The factor 2 is the released code's. AsymVLM's benchmark, the
 * only released use of it on frozen rows, leaves both further terms out: --pseudo 0 --vib 0. */
#include <math.h>

#include "adapt/heads/learned.h"

static pnb_status declare(pnb_adapter *a, pnb__learned *l, pnb_error *err)
{
    pnb_adapter_opts *o = &a->opts;
    o->vib = isnan(o->vib) ? 1e-4 : o->vib;
    o->pseudo = isnan(o->pseudo) ? 0.1 : o->pseudo;
    pnb_status status = pnb__learned_check_range(a, "vib", o->vib, 0, 1e6, err);
    if (status == PNB_OK)
        status = pnb__learned_check_range(a, "pseudo", o->pseudo, 0, 1e6, err);
    if (status != PNB_OK)
        return status;
    l->scale = pnb__learned_add_scalar(l, "negative_scale", 5.0);
    l->shift = pnb__learned_add_scalar(l, "shift", 5.0);
    return pnb__learned_declare_gaussians(a, l);
}

static void loss(pnb__learned_graph *lg)
{
    const pnb__learned_side *i = &lg->side[PNB_ADAPTER_IMAGES], *t = &lg->side[PNB_ADAPTER_TEXTS];
    const pnb_adapter_opts *o = &lg->a->opts;
    bool has_pseudo = o->pseudo > 0;
    const pnb__pcmepp_in in = {.images = {.mean = i->mean, .log_var = i->log_var},
                               .texts = {.mean = t->mean, .log_var = t->log_var},
                               .scale = pnb__learned_scale(lg),
                               .shift = pnb__learned_shift(lg),
                               .matched = pnb__learned_identity(lg),
                               .first = {has_pseudo ? pnb__learned_first(lg) : NULL,
                                         has_pseudo ? pnb__learned_first(lg) : NULL},
                               .factor = PNB_PCMEPP_FACTOR,
                               .vib_beta = o->vib,
                               .smoothness = o->pseudo};
    pnb__learned_tell(lg, "matching", pnb__pcmepp_build(&in).loss);
}

/* AsymVLM's Table A.1. */
static const pnb__learned_calls learned = {.published =
                                               PNB__LEARNED_BENCHMARK(PNB_OPTIM_SGD, 5e-4, 5e-4),
                                           .declare = declare,
                                           .side = pnb__learned_gaussian_side,
                                           .loss = loss};

static const pnb__field fields[] = {
    PNB__LEARNED_FIELDS(PNB__LEARNED_FIELD)
        PNB__LEARNED_FIELD("layers", layers, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)
            PNB__LEARNED_FIELD("vib", vib, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN)
                PNB__LEARNED_FIELD("pseudo", pseudo, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN)};

const pnb__adapter_calls pnb__adapter_pcmepp = {PNB__LEARNED_CALLS(learned, fields)};
