/* Optimisers over parameter lists: which parameters decay, gradient clipping, one update.
 *
 * The loops are kernels (kernels.h: sgd, adam, adamw, adamp, sgdp) over flat lists of buffers, one
 * call for the norm and one for the update, so that a device answers once and not once a parameter.
 * This file makes the lists: the view of a parameter and its weight decay, following open_clip's
 * rule: parameters with fewer than two dimensions and names holding "bn", "ln", "bias" or
 * "logit_scale" have none; and which share of the rate it takes in which phase. */
#include "train/optim/optim.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "peers/peers.h"

PNB_DEFINE_NAME(pnb_optim_name, pnb_optim_kind, PNB_NAMES_OF_IDENTS(PNB_OPTIM_LIST), NULL)

pnb_optim_opts pnb_optim_opts_default(void)
{
    return (pnb_optim_opts){.kind = PNB_OPTIM_ADAMW,
                            .lr = 5e-4,   /* these four as ProLIP trains ViT-B/16; */
                            .beta1 = 0.9, /* open_clip's beta2 for ViT is 0.98 */
                            .beta2 = 0.95,
                            .eps = 1e-6,
                            .momentum = 0.9,
                            .weight_decay = 0.2,
                            .delta = 0.1, /* AdamP's own two */
                            .wd_ratio = 0.1};
}

/* open_clip's rule by name and shape: what scales or shifts (norms, biases, a) must be free to be
 * far from 0. Class and uncertainty tokens are vectors and so are left alone, position tables
 * decay. */
bool pnb_optim_is_excluded(const char *name, int n_dims)
{
    static const char *const parts[] = {"bn", "ln", "bias", "logit_scale"};
    if (n_dims < 2)
        return true;
    for (size_t i = 0; i < PNB_COUNT(parts); i++)
        if (strstr(name, parts[i]) != NULL)
            return true;
    return false;
}

static bool is_momentum_kind(pnb_optim_kind kind)
{
    return kind == PNB_OPTIM_SGD || kind == PNB_OPTIM_SGDP;
}

/* Ranges in which the updates are defined: 1 - beta^t > 0, and nothing grows by decaying. */
pnb_status pnb__optim_check_opts(const pnb_optim_opts *o, pnb_error *err)
{
    if ((unsigned)o->kind >= PNB_N_OPTIM_KINDS)
        return pnb__fail(err, PNB_ARG, "there is no optimiser number %d", (int)o->kind);
    if (!(o->lr >= 0) || !isfinite(o->lr))
        return pnb__fail(err, PNB_ARG, "learning rate is %g, it must be 0 or more", o->lr);
    if (!(o->beta1 >= 0 && o->beta1 < 1) || !(o->beta2 >= 0 && o->beta2 < 1))
        return pnb__fail(err, PNB_ARG, "betas are %g and %g, both must lie in [0, 1)", o->beta1,
                         o->beta2);
    if (!(o->eps >= 0) || !(o->weight_decay >= 0) || !(o->grad_clip_norm >= 0))
        return pnb__fail(err, PNB_ARG,
                         "eps %g, weight decay %g and clipping norm %g must be 0 or more", o->eps,
                         o->weight_decay, o->grad_clip_norm);
    return PNB_OK;
}

/* m_0 = v_0 = 0; the factors 1 / (1 - beta^t) make up for it. */
static pnb_status make_zeroed(const pnb__optim *o, size_t n, void **out, pnb_error *err)
{
    size_t bytes = n * PNB__REAL_SIZE(o->kernels.real);
    pnb_status status = o->kernels.mem_alloc(o->ctx, out, bytes, err);
    return status == PNB_OK ? o->kernels.mem_zero(o->ctx, *out, bytes, err) : status;
}

/* Adam keeps two moments a number, SGD one: that is what a run costs beside weights and
 * gradients. */
static void add_slot(pnb__optim *o, pnb__param *param)
{
    bool excluded = pnb_optim_is_excluded(param->name, param->n_dims);
    o->slots[o->n_slots++] = (pnb__optim_slot){.param = param,
                                               .n = param->n,
                                               .weight_decay = excluded ? 0 : o->opts.weight_decay,
                                               .group = {1, 1, 0}};
}

/* AdamP and SGDP compare directions of whole channels: half of one would have another. All others
 * update number by number, and may be cut anywhere. */
static bool looks_at_rows(const pnb__optim *o)
{
    return o->opts.kind == PNB_OPTIM_ADAMP || o->opts.kind == PNB_OPTIM_SGDP;
}

/* An even cut; where rows are looked at, moved back to the beginning of a parameter. */
size_t pnb__optim_share_at(const pnb__optim *o, size_t rank)
{
    size_t total = 0, at = 0;
    for (size_t i = 0; i < o->n_slots; i++)
        total += o->slots[i].param->n;
    size_t n_ranks = o->share.n_ranks;
    size_t cut = pnb__peers_part_at(total, n_ranks, rank);
    for (size_t i = 0; i < o->n_slots && looks_at_rows(o) && rank < n_ranks; i++) {
        if (at + o->slots[i].param->n > cut)
            return at;
        at += o->slots[i].param->n;
    }
    return cut;
}

/* What of each parameter is ours, and its state. */
static pnb_status make_state(pnb__optim *o, pnb_error *err)
{
    size_t from = pnb__optim_share_at(o, o->share.rank), at = 0;
    size_t to = pnb__optim_share_at(o, o->share.rank + 1);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < o->n_slots && status == PNB_OK; i++) {
        pnb__optim_slot *s = &o->slots[i];
        size_t n = s->param->n, end = PNB_MIN(at + n, to);
        s->at = PNB_MIN(PNB_MAX(from, at) - at, n);
        s->n = end > at + s->at ? end - at - s->at : 0;
        at += n;
        if (s->n > 0 || o->share.n_ranks == 1)
            status = make_zeroed(o, s->n, &s->m, err);
        if (status == PNB_OK && s->m != NULL && !is_momentum_kind(o->opts.kind))
            status = make_zeroed(o, s->n, &s->v, err);
    }
    return status;
}

pnb_status pnb__optim_create(pnb__optim **out, const pnb_ctx *ctx, pnb__real real,
                             pnb__param *const *params, size_t n, const pnb_optim_opts *opts,
                             pnb_error *err)
{
    static const pnb__optim_share all = {0, 1};
    return pnb__optim_create_share(out, ctx, real, params, n, opts, &all, err);
}

pnb_status pnb__optim_create_share(pnb__optim **out, const pnb_ctx *ctx, pnb__real real,
                                   pnb__param *const *params, size_t n, const pnb_optim_opts *opts,
                                   const pnb__optim_share *share, pnb_error *err)
{
    *out = NULL;
    pnb_status status = pnb__optim_check_opts(opts, err);
    if (status != PNB_OK)
        return status;
    pnb__optim *o = pnb__alloc_zero(1, sizeof *o);
    if (o == NULL)
        return pnb__fail_nomem(err, sizeof *o);
    o->ctx = ctx;
    o->opts = *opts;
    o->share = *share;
    pnb__kernels_fill(&o->kernels, ctx, real);
    o->slots = pnb__alloc_zero(n + 1, sizeof *o->slots);
    o->grads = pnb__alloc_zero(n + 1, sizeof *o->grads);
    o->list = pnb__alloc_zero(n + 1, sizeof *o->list);
    if (o->slots == NULL || o->grads == NULL || o->list == NULL) {
        pnb__optim_free(o);
        return pnb__fail_nomem(err, n * sizeof(pnb__optim_slot));
    }
    for (size_t i = 0; i < n; i++)
        if (params[i]->trainable) /* a frozen one has no moments */
            add_slot(o, params[i]);
    status = make_state(o, err);
    if (status != PNB_OK) {
        pnb__optim_free(o);
        return status;
    }
    *out = o;
    return PNB_OK;
}

void pnb__optim_free(pnb__optim *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->n_slots; i++) {
        size_t bytes = o->slots[i].n * PNB__REAL_SIZE(o->kernels.real);
        o->kernels.mem_free(o->ctx, o->slots[i].m, bytes);
        o->kernels.mem_free(o->ctx, o->slots[i].v, bytes);
    }
    pnb__free(o->whole);
    pnb__free(o->slots);
    pnb__free(o->grads);
    pnb__free(o->list);
    pnb__free(o);
}

/* What a run keeps beside weights and gradients: none of frozen parameters, one or two each. */
double pnb__optim_state_bytes(const pnb__optim *o)
{
    double bytes = 0;
    for (size_t i = 0; i < o->n_slots; i++) {
        const pnb__optim_slot *s = &o->slots[i];
        int n_moments = (s->m != NULL) + (s->v != NULL);
        bytes += (double)s->n * n_moments * (double)PNB__REAL_SIZE(o->kernels.real);
    }
    return bytes;
}

/* Checked here and not with the options: groups are an objective's. */
pnb_status pnb__optim_set_group(pnb__optim *o, const pnb__param *param,
                                const pnb__optim_group *group, pnb_error *err)
{
    bool is_bad = !(group->early >= 0) || !(group->rate >= 0) || !isfinite(group->early) ||
                  !isfinite(group->rate) || group->from_step < 0;
    if (is_bad)
        return pnb__fail(err, PNB_ARG,
                         "%s: shares %g and %g of the learning rate from step %lld; 0 and more are "
                         "possible",
                         param->name, group->early, group->rate, (long long)group->from_step);
    for (size_t i = 0; i < o->n_slots; i++)
        if (o->slots[i].param == param)
            o->slots[i].group = *group;
    return PNB_OK;
}

/* Of the step after o->step updates. */
static double share_of(const pnb__optim *o, const pnb__optim_slot *s)
{
    return o->step < s->group.from_step ? s->group.early : s->group.rate;
}

/* A share of 0 that never ends would be a parameter that is not trainable: it is 0 for a phase. */
bool pnb__optim_is_moving(const pnb__optim *o, const pnb__optim_slot *s)
{
    return o->step >= s->group.from_step || s->group.early > 0;
}

/* Updates that the parameter has behind it after this one: 1 - beta^t makes up for moments that
 * began at 0 then. */
static int64_t updates_of(const pnb__optim *o, const pnb__optim_slot *s)
{
    return o->step + 1 - (s->group.early > 0 ? 0 : s->group.from_step);
}

/* Gradients of this step as a flat list, in the order of the parameters, which fixes the order of
 * every sum over them; the length is returned. */
static size_t list_grads(const pnb__optim *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_slots; i++) {
        const pnb__param *p = o->slots[i].param;
        if (p->grad != NULL && pnb__optim_is_moving(o, &o->slots[i]))
            o->grads[n++] = (pnb__flat){p->grad, p->n};
    }
    return n;
}

/* Between backward and clipping, so that the norm is that of the whole batch on every process. */
pnb_status pnb__optim_sum_grads(pnb__optim *o, const pnb__exchange *exchange, int *culprit,
                                pnb_error *err)
{
    return exchange->sum(exchange->self, &o->kernels, o->grads, list_grads(o), culprit, err);
}

/* ||g|| = sqrt(sum over parameters of sum g^2) */
double pnb__optim_grad_norm(const pnb__optim *o)
{
    return sqrt(o->kernels.sum_squares(o->ctx, o->grads, list_grads(o)));
}

/* torch's clip_grad_norm_: the factor goes to the update and not over the gradients, a pass
 * saved. */
double pnb__optim_clip_factor(const pnb__optim *o, double norm)
{
    if (!(o->opts.grad_clip_norm > 0))
        return 1;
    double factor = o->opts.grad_clip_norm / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

/* What the update of one parameter reads; hyperparameters are the same in all of them. */
static pnb__optim_args args_of(const pnb__optim *o, const pnb__optim_slot *s)
{
    const pnb_optim_opts *p = &o->opts;
    const pnb__param *param = s->param;
    /* a channel of AdamP is a row of the first dimension; a vector is one row */
    size_t rows = param->n_dims > 1 && param->shape[0] > 0 ? param->shape[0] : 1;
    if (s->n < param->n) /* a part of it, which looks at no rows */
        rows = 1;
    size_t at = s->at * PNB__REAL_SIZE(o->kernels.real);
    return (pnb__optim_args){.n = s->n,
                             .rows = rows,
                             .cols = s->n / rows,
                             .param = (unsigned char *)param->data + at,
                             .grad = (const unsigned char *)param->grad + at,
                             .m = s->m,
                             .v = s->v,
                             .beta1 = p->beta1,
                             .beta2 = p->beta2,
                             .eps = p->eps,
                             .weight_decay = s->weight_decay,
                             .momentum = p->momentum,
                             .dampening = p->dampening,
                             .delta = p->delta,
                             .wd_ratio = p->wd_ratio,
                             .nesterov = p->nesterov,
                             .project = param->n_dims > 1,
                             .step = updates_of(o, s)};
}

/* p_t from p_(t-1) and g factor; t counts updates from 1, not the steps a parameter had a gradient
 * in, as torch does for parameters that always have one. */
void pnb__optim_step(pnb__optim *o, double lr, double grad_scale)
{
    const pnb__kernels *k = &o->kernels;
    void (*const updates[PNB_N_OPTIM_KINDS])(const pnb_ctx *, const pnb__optim_args *, size_t) = {
        [PNB_OPTIM_SGD] = k->sgd,     [PNB_OPTIM_ADAM] = k->adam, [PNB_OPTIM_ADAMW] = k->adamw,
        [PNB_OPTIM_ADAMP] = k->adamp, [PNB_OPTIM_SGDP] = k->sgdp,
    };
    size_t n = 0;
    for (size_t i = 0; i < o->n_slots; i++) {
        const pnb__optim_slot *s = &o->slots[i];
        if (s->param->grad == NULL || !pnb__optim_is_moving(o, s) ||
            (s->n == 0 && o->share.n_ranks > 1))
            continue;
        o->list[n] = args_of(o, s);
        o->list[n].lr = lr * share_of(o, s);
        o->list[n].grad_scale = grad_scale;
        n++;
    }
    updates[o->opts.kind](o->ctx, o->list, n);
    o->step++;
}
