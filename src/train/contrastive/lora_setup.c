/* LoRA in contrastive training: what goes with it, what trains, and what a checkpoint is.
 *
 * The matrices hold the sum of base and factors all the time (models/lora/lora.h), so that steps,
 * micro-batches, bfloat16 products and validation know nothing of it: behind a step gradients of
 * matrices become those of factors, behind an update the sums are made again. A gradient of each
 * adapted matrix is the price; moments of the optimiser are the factors' alone. */
#include <math.h>
#include <string.h>

#include "train/contrastive/contrastive.h"

/* What would change the base, train it beside its factors, or average factors, is refused. */
pnb_status pnb__contrastive_check_lora(const pnb_train_opts *o, pnb_error *err)
{
    const char *with = NULL;
    if (o->lora_rank == 0) {
        if (!isnan(o->lora_alpha) || o->lora_targets != NULL || !o->lora_image || !o->lora_text)
            return pnb__fail(err, PNB_ARG,
                             "--lora-alpha, --lora-targets and --lora-towers say how matrices are "
                             "changed by factors, and none are: give --lora-rank");
        return PNB_OK;
    }
    if (o->force_image_size > 0 || o->force_context_length > 0 || o->force_resize_pos_emb)
        with = "other sizes (--force-...): convert the base to them first";
    else if (o->reinit_unc)
        with = "--reinit-unc: train fresh heads once, then adapt that model";
    else if (o->image_unlocked_groups > 0 || o->text_unlocked_layers > 0)
        with = "unlocked groups: --lora-targets names blocks";
    else if (o->ema_decay > 0 || o->swa_start > 0)
        with = "--ema-decay and --swa-start: a mean of factors is no mean of weights";
    else if (o->head_epochs > 0)
        with = "--head-epochs";
    else if (!o->lora_image && !o->lora_text)
        with = "no tower";
    return with == NULL ? PNB_OK : pnb__fail(err, PNB_ARG, "--lora-rank does not go with %s", with);
}

/* Heads and the scalars of the logits go on, where no lock holds them; in the blocks the matrices
 * alone have a gradient. */
/* Called once: a lock before it has said what of the heads stands still. */
static void choose_trainable(pnb__contrastive *c)
{
    for (size_t i = 0; i < pnb__model_n_params(c->model); i++) {
        pnb__param *p = pnb__model_param(c->model, i);
        pnb__layer at = pnb__contrastive_layer(c->model, p->name);
        bool is_rest = at.group >= 0 && at.group < at.n_groups - 1;
        p->trainable = p->trainable && !is_rest;
    }
}

/* Matrices have a gradient, and are no parameters of the optimiser. */
static bool is_adapted(const pnb__lora *l, const pnb__param *p)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].w == p)
            return true;
    return false;
}

/* Whole ones first, as in list_params: what is read and written beside the factors. */
static size_t n_whole(const pnb__contrastive *c)
{
    size_t n = 0;
    for (size_t i = 0; i < pnb__model_n_params(c->model); i++) {
        const pnb__param *p = pnb__model_param(c->model, i);
        n += p->trainable && !is_adapted(c->lora, p);
    }
    return n;
}

/* c->params: those that train whole, then the factors. */
static pnb_status list_params(pnb__contrastive *c, pnb_error *err)
{
    size_t at = 0;
    if (PNB_ALLOC(c->params, n_whole(c) + 2 * c->lora->n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < pnb__model_n_params(c->model); i++) {
        pnb__param *p = pnb__model_param(c->model, i);
        if (p->trainable && !is_adapted(c->lora, p))
            c->params[at++] = p;
    }
    for (size_t i = 0; i < c->lora->n; i++) {
        c->params[at++] = &c->lora->items[i].a;
        c->params[at++] = &c->lora->items[i].b;
    }
    c->n_adapted = at;
    return PNB_OK;
}

/* Moments of batch norms move without a gradient and are no part of an adapter. */
static pnb_status check_base(const pnb__contrastive *c, pnb_error *err)
{
    const pnb__family_calls *family = pnb__family_of(&c->model->config);
    if (c->is_fresh)
        return pnb__fail(
            err, PNB_ARG,
            "--lora-rank changes a trained model: give a model directory with --model");
    if (family->needs_whole_batch != NULL && family->needs_whole_batch(&c->model->config))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "--lora-rank: a %s model has batch norms that move in training, which an "
                         "adapter does not hold",
                         family->name);
    return PNB_OK;
}

/* Behind the locks, which hold heads too; the sum last, so that the first step sees what a resumed
 * run had. */
pnb_status pnb__contrastive_adapt(pnb__contrastive *c, const char *checkpoint, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    pnb_status status;
    if (o->lora_rank == 0)
        return PNB_OK;
    const pnb__lora_spec spec = {.rank = o->lora_rank,
                                 .alpha =
                                     isnan(o->lora_alpha) ? (double)o->lora_rank : o->lora_alpha,
                                 .targets = o->lora_targets != NULL ? o->lora_targets : "all",
                                 .image = o->lora_image,
                                 .text = o->lora_text,
                                 .seed = o->seed};
    PNB_TRY(check_base(c, err));
    choose_trainable(c);
    PNB_TRY(pnb__lora_create(&c->lora, c->model, &spec, c->base_sha256, err));
    for (size_t i = 0; i < c->lora->n; i++)
        c->lora->items[i].w->trainable = true;
    PNB_TRY(list_params(c, err));
    if (checkpoint != NULL)
        PNB_TRY(pnb__lora_load(c->lora, c->params, n_whole(c), checkpoint, err));
    status = pnb__lora_apply(c->lora, err);
done:
    return status;
}

/* Beside it lie tokenizer and preprocessing, as in every checkpoint. */
pnb_status pnb__contrastive_save_adapter(const pnb__contrastive *c, const char *dir, pnb_error *err)
{
    return pnb__lora_save(c->lora, c->params, n_whole(c), c->opts->model, dir, err);
}

/* Of all that would train without LoRA the state is in proportion: so many moments a number. */
pnb_status pnb__contrastive_announce_lora(const pnb__contrastive *c, pnb__trainer *t,
                                          pnb_error *err)
{
    size_t n = 0;
    if (c->lora == NULL)
        return PNB_OK;
    for (size_t i = 0; i < t->objective.n_params; i++)
        n += t->objective.params[i]->n;
    const double moments = pnb__optim_state_bytes(t->optim);
    return pnb__record_info(
        t, err,
        "LoRA: %zu matrices (%zu weights) of the %zu weights by factors of rank %g and alpha %g; "
        "%zu numbers train, whose optimiser state takes %.3f MB in place of %.3f MB",
        c->lora->n, c->lora->n_matrices, c->info->n_params, c->lora->rank, c->lora->alpha, n,
        moments / 1e6, moments / 1e6 * (double)c->info->n_params / (double)n);
}
