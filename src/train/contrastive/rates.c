/* Which share of the learning rate each weight takes, and from which step on.
 *
 *     second phase, or one phase alone     rate(t) r_tower d^(L - i)    block i of L of a tower
 *                                          rate(t) r_tower              its embeddings and norms
 *                                          rate(t) r_tower r_head       heads of transformers
 *                                          rate(t) r_head               heads over pretrained
 * towers rate(t)                      a, b first phase                          0 for the
 * pretrained parts r_tower is --image-lr-ratio or --text-lr-ratio, r_head --head-lr-ratio, d
 * --layer-lr-decay; --trunk-lr-ratio is one more factor of the second phase. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/contrastive/contrastive.h"

/* "<stem>.resblocks.<i>.": i, and in *n_stem the bytes in front of it; -1: of no block. */
static int64_t block_of(const char *name, size_t *n_stem)
{
    static const char word[] = ".resblocks.";
    const char *at = strstr(name, word);
    if (at == NULL)
        return -1;
    *n_stem = (size_t)(at - name) + strlen(word);
    return strtoll(name + *n_stem, NULL, 10);
}

/* decay^(L - i) of block i of the L of its stack, so that the last one takes one factor; 1 for what
 * is in no block: embeddings, norms. Source  configure_optimizers of PCME++'s code */
static double layer_share(const pnb__contrastive *c, const char *name)
{
    size_t n_stem = 0, other = 0;
    int64_t i = block_of(name, &n_stem), last = i;
    for (size_t p = 0; i >= 0 && p < pnb__model_n_params(c->model); p++) {
        const char *of = pnb__model_param(c->model, p)->name;
        if (strncmp(of, name, n_stem) == 0)
            last = PNB_MAX(last, block_of(of, &other));
    }
    return i < 0 ? 1 : pow(c->opts->layer_lr_decay, (double)(last + 1 - i));
}

/* Of the rate of the schedule, in every phase. a and b are of neither tower. */
static double share_of(const pnb__contrastive *c, const char *name)
{
    const pnb__family_calls *family = pnb__family_of(&c->model->config);
    bool is_image = pnb__starts_with(name, "visual."), is_text = pnb__starts_with(name, "text.");
    if (!is_image && !is_text)
        return 1;
    if (family->is_head != NULL && family->is_head(name))
        return c->opts->head_lr_ratio;
    pnb__layer at = pnb__contrastive_layer(c->model, name);
    double head = at.group >= 0 && at.group == at.n_groups - 1 ? c->opts->head_lr_ratio : 1;
    double tower = is_image ? c->opts->image_lr_ratio : c->opts->text_lr_ratio;
    return tower * head * layer_share(c, name);
}

/* In the first phase the pretrained parts stand still; in the second all take a share of the rate.
 * The reference does not ask gradients of what stands still, but leaves its batch norms in
 * training: running moments move in both phases, here too. */
pnb__optim_group pnb__contrastive_group(const void *self, const pnb__param *param)
{
    const pnb__contrastive *c = self;
    const pnb__family_calls *family = pnb__family_of(&c->model->config);
    const pnb_train_opts *o = c->opts;
    bool is_trunk = family->is_trunk != NULL && family->is_trunk(param->name);
    double share = share_of(c, param->name);
    if (o->head_epochs == 0)
        return (pnb__optim_group){share, share, 0};
    return (pnb__optim_group){is_trunk ? 0 : share, share * o->trunk_lr_ratio,
                              o->head_epochs * c->steps_per_epoch};
}

/* A family without a trunk would train as ever, and nobody would see that a phase is missing. */
static pnb_status check_phases(const pnb__contrastive *c, pnb_error *err)
{
    const pnb__family_calls *family = pnb__family_of(&c->model->config);
    if (c->opts->head_epochs == 0 || family->is_trunk != NULL)
        return PNB_OK;
    return pnb__fail(
        err, PNB_ARG,
        "--head-epochs: a %s model has no pretrained trunk to stand still; --lock-image "
        "and --lock-text freeze a tower",
        family->name);
}

/* A decay by blocks of a model that has none would be ignored without a word. */
static pnb_status check_layers(const pnb__contrastive *c, pnb_error *err)
{
    size_t n_stem = 0;
    for (size_t i = 0; i < pnb__model_n_params(c->model); i++)
        if (block_of(pnb__model_param(c->model, i)->name, &n_stem) >= 0)
            return PNB_OK;
    if (c->opts->layer_lr_decay == 1)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG,
                     "--layer-lr-decay: this %s model has no blocks of a transformer that could "
                     "take less than the next one; leave the option out",
                     c->info->family);
}

pnb_status pnb__contrastive_check_rates(const pnb__contrastive *c, pnb_error *err)
{
    pnb_status status = check_phases(c, err);
    return status == PNB_OK ? check_layers(c, err) : status;
}
