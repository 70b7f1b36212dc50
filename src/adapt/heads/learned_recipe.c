/* How long, how fast and in what batches a head is trained.
 *
 *   published  each method's own (SPEC of the table in its file): SGD with momentum at rates and
 *              batches for hundreds of thousands of pairs, a cosine to 1e-6
 *   small      AdamW at 1e-3 in batches of 256 for 600 steps, heads of 512, clipped, a cosine to
 * 2%: with few pairs the published steps are far too few
 *
 * What is chosen is put into the adapter's options, so that config.json says what was done. */
#include <math.h>

#include "adapt/heads/learned.h"

/* beta2 as in LEARNING's runs of a few hundred steps: a moment of 1000 steps would never be one. */
static const pnb__learned_recipe small_recipe = {.kind = PNB_OPTIM_ADAMW,
                                                 .lr = 1e-3,
                                                 .weight_decay = 0.01,
                                                 .clip = 1.0,
                                                 .batch_size = 256,
                                                 .hidden = 512,
                                                 .layers = 3};
enum { SMALL_STEPS = 600 };

static const pnb__learned_recipe *recipe_of(const pnb_adapter *a)
{
    return a->opts.recipe == PNB_ADAPT_RECIPE_SMALL ? &small_recipe : &a->calls->learned->published;
}

pnb_status pnb__learned_check_range(const pnb_adapter *a, const char *name, double x, double low,
                                    double high, pnb_error *err)
{
    if (x >= low && x <= high)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG, "%s: %s is %g, it must be from %g to %g", a->about->name, name,
                     x, low, high);
}

/* What was given; 0 and NaN stand for what the recipe chooses. */
static pnb_status check_given(const pnb_adapter *a, pnb_error *err)
{
    const pnb_adapter_opts *o = &a->opts;
    pnb_status status;
    if (!isnan(o->lr))
        PNB_TRY(pnb__learned_check_range(a, "lr", o->lr, 0, 1e3, err));
    if (o->batch_size != 0)
        PNB_TRY(pnb__learned_check_range(a, "batch_size", (double)o->batch_size, 2, 32768, err));
    PNB_TRY(pnb__learned_check_range(a, "epochs", (double)o->epochs, 0, 1e6, err));
    PNB_TRY(pnb__learned_check_range(a, "steps", (double)o->steps, 0, 1e9, err));
    PNB_TRY(pnb__learned_check_range(a, "patience", (double)o->patience, 0, 1e9, err));
    PNB_TRY(
        pnb__learned_check_range(a, "hidden", (double)o->hidden, 0, PNB__LEARNED_MAX_WIDTH, err));
    status =
        pnb__learned_check_range(a, "layers", (double)o->layers, 0, PNB__HEAD_MAX_LAYERS - 1, err);
    if (status == PNB_OK && o->epochs != 0 && o->steps != 0)
        status = pnb__fail(err, PNB_ARG, "%s: epochs and steps were given, one of them is enough",
                           a->about->name);
done:
    return status;
}

/* The small recipe with what the method has in its place, or the published one. */
static pnb__learned_recipe recipe_for(const pnb_adapter *a, int64_t *steps)
{
    pnb__learned_recipe r = *recipe_of(a);
    const pnb__learned_calls *c = a->calls->learned;
    *steps = 0;
    if (recipe_of(a) != &small_recipe)
        return r;
    *steps = c->small.steps != 0 ? c->small.steps : SMALL_STEPS;
    r.lr = c->small.lr != 0 ? c->small.lr : r.lr;
    r.batch_size = c->small.batch_size != 0 ? c->small.batch_size : r.batch_size;
    return r;
}

static void choose_length(pnb_adapter_opts *o, const pnb__learned_recipe *r, int64_t steps)
{
    if (o->epochs != 0 || o->steps != 0)
        return;
    o->steps = steps;
    o->epochs = steps == 0 ? r->epochs : 0;
}

/* A batch that was asked for is not made smaller in silence. */
static pnb_status choose_batch(pnb_adapter *a, int64_t recipe_batch, size_t n_epoch, pnb_error *err)
{
    pnb_adapter_opts *o = &a->opts;
    if (o->batch_size == 0)
        o->batch_size = PNB_MIN(recipe_batch, (int64_t)n_epoch);
    if ((size_t)o->batch_size <= n_epoch)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG, "%s: batches of %lld, but an epoch has %zu pairs",
                     a->about->name, (long long)o->batch_size, n_epoch);
}

pnb_status pnb__learned_choose(pnb_adapter *a, const pnb__learned_pairs *pairs, pnb_error *err)
{
    pnb_adapter_opts *o = &a->opts;
    size_t n_pairs = pairs->n_order;
    bool was_asked = o->recipe != PNB_ADAPT_RECIPE_AUTO;
    pnb_status status = check_given(a, err);
    if (status != PNB_OK)
        return status;
    if (!was_asked)
        o->recipe =
            n_pairs < PNB_ADAPT_SMALL_PAIRS ? PNB_ADAPT_RECIPE_SMALL : PNB_ADAPT_RECIPE_PUBLISHED;
    int64_t steps;
    const pnb__learned_recipe r = recipe_for(a, &steps);
    o->lr = isnan(o->lr) ? r.lr : o->lr;
    o->hidden = o->hidden == 0 ? r.hidden : o->hidden;
    o->layers = o->layers == 0 ? r.layers : o->layers;
    choose_length(o, &r, steps);
    status = choose_batch(a, r.batch_size, pairs->n_order, err);
    if (status == PNB_OK)
        pnb__log(
            a->ctx, PNB_LOG_INFO,
            "%s: %zu pairs an epoch, the %s recipe%s: %s at %g in batches of %lld, heads of %lld",
            a->about->name, n_pairs, pnb__adapt_recipe_word((int)o->recipe),
            was_asked ? "" : " (--recipe chooses)", pnb_optim_name(r.kind), o->lr,
            (long long)o->batch_size, (long long)o->hidden);
    return status;
}

pnb_optim_opts pnb__learned_optim(const pnb_adapter *a)
{
    const pnb__learned_recipe *r = recipe_of(a);
    pnb_optim_opts o = pnb_optim_opts_default();
    o.kind = r->kind;
    o.lr = a->opts.lr;
    o.weight_decay = r->weight_decay;
    o.grad_clip_norm = r->clip;
    o.beta2 = r == &small_recipe ? 0.98 : 0.999;
    o.eps = 1e-8;
    return o;
}
