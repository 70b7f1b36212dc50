/* Ranks compare texts: options as params.txt has them, what their kernels run on, number
 * and marks of their samples, a hash of their weights. What differs is named with the rank. The
 * texts themselves are made by whoever trains; ties are src/peers. */
#include "train/ranks/agree.h"

#include "peers/peers.h"

/* All options, also those that shape no weight: a rank that was started otherwise was started by
 * mistake. */
pnb_status pnb__agree_options(const pnb__trainer *t, pnb_error *err)
{
    pnb__buf text = {0};
    if (t->exchange->ranks == NULL)
        return PNB_OK;
    pnb__settings_text(t->settings, PNB__N_SETTINGS, &text);
    /* other instructions round otherwise, and ranks whose weights drift apart are no ranks */
    pnb__buf_printf(&text, "instructions (PENUMBRA_CPU): %s\n", pnb_isa_name(t->ctx->isa));
    /* of which each has its own where there are several: the kind alone is compared */
    pnb__buf_printf(&text, "kind of device (--device): %s\n", pnb_device_name(t->ctx->device));
    pnb_status status = pnb__buf_check(&text, err);
    if (status == PNB_OK)
        status = pnb__peers_compare(t->exchange->ranks, "option", text.data, err);
    pnb__buf_reset(&text);
    return status;
}

/* A chain over all parameters, in their order, frozen ones as well: those come from files, of which
 * one may be another. On the host, whatever device they lie on. */
static pnb_status hash_weights(const pnb__trainer *t, uint64_t *out, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    const pnb__kernels *k = &t->optim->kernels;
    size_t most = 0;
    uint64_t hash = 0;
    for (size_t i = 0; i < o->n_params; i++)
        most = PNB_MAX(most, o->params[i]->n * PNB__REAL_SIZE(k->real));
    unsigned char *bytes = pnb__alloc(most + 1);
    pnb_status status = bytes != NULL ? PNB_OK : pnb__fail_nomem(err, most);
    for (size_t i = 0; i < o->n_params && status == PNB_OK; i++) {
        size_t n = o->params[i]->n * PNB__REAL_SIZE(k->real);
        status = pnb__param_read_bytes(o->params[i], k, n, bytes, err);
        hash = status == PNB_OK ? pnb__hash_bytes(bytes, n, hash) : hash;
    }
    pnb__free(bytes);
    *out = hash;
    return status;
}

/* Two copies of a folder need not be the same: the data may be older on one machine, the model
 * directory another. Weights of a new model come from the seed, so they are compared as well. */
pnb_status pnb__agree_start(const pnb__trainer *t, pnb_error *err)
{
    const pnb__objective *o = &t->objective;
    pnb__buf text = {0};
    uint64_t hash = 0;
    if (t->exchange->ranks == NULL)
        return PNB_OK;
    pnb_status status = hash_weights(t, &hash, err);
    if (status != PNB_OK)
        return status;
    pnb__buf_printf(&text, "samples: %zu\n", o->n_samples);
    for (size_t i = 0; i < o->n_marks; i++)
        pnb__buf_printf(&text, "%s: %016llx\n", o->marks[i].name,
                        (unsigned long long)o->marks[i].value);
    pnb__buf_printf(&text, "weights: %016llx\n", (unsigned long long)hash);
    status = pnb__buf_check(&text, err);
    if (status == PNB_OK)
        status = pnb__peers_compare(t->exchange->ranks, "data or model", text.data, err);
    pnb__buf_reset(&text);
    return status;
}

/* Never in a step, where it would cost a pass over the weights; a checkpoint is one anyway. */
pnb_status pnb__agree_weights(const pnb__trainer *t, pnb_error *err)
{
    char text[80];
    uint64_t hash = 0;
    if (t->exchange->ranks == NULL)
        return PNB_OK;
    pnb_status status = hash_weights(t, &hash, err);
    if (status != PNB_OK)
        return status;
    snprintf(text, sizeof text, "weights after step %lld: %016llx\n", (long long)t->state.step,
             (unsigned long long)hash);
    return pnb__peers_compare(t->exchange->ranks, "training", text, err);
}
