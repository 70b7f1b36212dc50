/* Which weights a configuration has: the numbers of the pair, then those of its towers, in the
 * order that their family declares them (tower.h). One list serves loading, saving, initialisation
 * and the optimiser; the families are the only places that know Penumbra's names, key_mapping.c has
 * what other files call them. The numbers themselves are drawn in weights.c. */
#include <string.h>

#include "models/tower.h"
#include "models/weights/weights.h"

/* a and b of logit = exp(a') cos + b, of the pair and of no tower: their own names, shape (). */
static pnb__param *declare_scalar(pnb__weights *w, const char *name, double value)
{
    return pnb__declare(w, PNB__IMAGE_SIDE,
                        &(pnb__declared){.name = name, .init = PNB__INIT_CONSTANT, .value = value});
}

static void declare_all(pnb__weights *w, void *user)
{
    const pnb__config *c = user;
    if (c->has_logit_scale)
        w->logit_scale = declare_scalar(w, "logit_scale", c->init_logit_scale);
    if (c->has_logit_bias)
        w->logit_bias = declare_scalar(w, "logit_bias", c->init_logit_bias);
    for (pnb__side side = PNB__IMAGE_SIDE; side < PNB__N_TOWERS; side++)
        if (pnb__has_tower(c, side))
            pnb__tower_of(c, side)->declare(w, c);
}

pnb_status pnb__weights_declare_by(pnb__weights *w, const pnb_ctx *ctx, pnb__real real,
                                   pnb__declare_fn declare, void *user, pnb_error *err)
{
    memset(w, 0, sizeof *w);
    pnb__arena_init(&w->arena, 16 * 1024);
    pnb__kernels_fill(&w->kernels, ctx, real);
    w->half = PNB_F32;
    declare(w, user); /* counts them */
    w->items = pnb__alloc_zero(w->capacity + 1, sizeof *w->items);
    if (w->items != NULL && !w->failed)
        declare(w, user);
    if (w->items == NULL || w->failed) {
        size_t n_bytes = (w->capacity + 1) * sizeof *w->items;
        pnb__weights_reset(w);
        return pnb__fail_nomem(err, n_bytes);
    }
    return PNB_OK;
}

pnb_status pnb__weights_declare(pnb__weights *w, const pnb__config *c, const pnb_ctx *ctx,
                                pnb__real real, pnb_error *err)
{
    pnb__config config = *c;
    pnb_status status = pnb__weights_declare_by(w, ctx, real, declare_all, &config, err);
    if (status == PNB_OK)
        w->layout = pnb__family_own_keys(c);
    return status;
}
