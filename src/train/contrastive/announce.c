/* What out.log says before the first step: what was settled for the user and shapes the run.
 *
 * Nothing is decided here: rates, sizes and sources are as the options and the model have them. */
#include "train/contrastive/contrastive.h"

/* Rates of pretrained towers leave new ones where they are, which no loss would tell in time. */
static pnb_status announce_rates(const pnb__contrastive *c, pnb__trainer *t, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    if (o->head_lr_ratio != 1) {
        pnb_status status =
            pnb__record_info(t, err, "Rates: heads %g of the rest", o->head_lr_ratio);
        if (status != PNB_OK)
            return status;
    }
    if (o->image_lr_ratio == 1 && o->text_lr_ratio == 1 && o->layer_lr_decay == 1)
        return PNB_OK;
    return pnb__record_info(
        t, err, "Rates: image tower %g of the whole, text tower %g, each block %g of the next%s",
        o->image_lr_ratio, o->text_lr_ratio, o->layer_lr_decay,
        c->is_fresh ? "; all weights are new, and such rates are made for pretrained ones: start "
                      "from a model directory, or set --image-lr-ratio, --text-lr-ratio and "
                      "--layer-lr-decay to 1"
                    : "");
}

/* The recipe of PCME goes by the objective, and its rate is a narrow ResNet's: under it new
 * transformers stay at chance (docs/numerics-training.md#pcme). */
static pnb_status announce_large_rate(const pnb__contrastive *c, pnb__trainer *t, pnb_error *err)
{
    const double most = 1e-3;
    bool has_transformer = c->info->vision.n_layers > 0 || c->info->text.n_layers > 0;
    bool is_pcme = pnb__family_of(&c->model->config)->scale_is_match;
    if (!c->is_fresh || !is_pcme || !has_transformer || c->opts->optim.lr <= most)
        return PNB_OK;
    return pnb__record_info(t, err,
                            "Learning rate %g: made for a ResNet and GRUs; new transformers under "
                            "PCME's heads learn at a smaller one: --lr 5e-4",
                            c->opts->optim.lr);
}

/* Shares of the sources, before hours of training with others than were meant. */
static pnb_status announce_mix(const pnb__contrastive *c, pnb__trainer *t, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    double total = 0; /* of samples, each by its factor */
    pnb_status status = PNB_OK;
    for (size_t p = 0; p < o->n_upsampling_factors; p++)
        total += o->upsampling_factors[p] * (double)(pnb_dataset_part_first(c->train, p + 1) -
                                                     pnb_dataset_part_first(c->train, p));
    for (size_t p = 0; p < o->n_upsampling_factors && status == PNB_OK; p++) {
        size_t n = pnb_dataset_part_first(c->train, p + 1) - pnb_dataset_part_first(c->train, p);
        status = pnb__record_info(t, err,
                                  "Mix: source %zu has %zu samples, factor %g: %.2f%% of "
                                  "the draws",
                                  p + 1, n, o->upsampling_factors[p],
                                  100 * o->upsampling_factors[p] * (double)n / total);
    }
    if (status == PNB_OK && o->n_upsampling_factors > 0)
        status = pnb__record_info(t, err, "Mix: an epoch is %lld draws, %lld steps",
                                  (long long)(o->train_num_samples > 0
                                                  ? o->train_num_samples
                                                  : (int64_t)pnb_dataset_size(c->train)),
                                  (long long)c->steps_per_epoch);
    return status;
}

/* What was settled for the user and shapes the run. */
pnb_status pnb__contrastive_announce(void *self, pnb__trainer *t, pnb_error *err)
{
    const pnb__contrastive *c = self;
    pnb_status status = PNB_OK;
    if (c->info->text.has_unc)
        status = pnb__record_info(t, err, "Log-variance of captions from: %s",
                                  pnb_text_unc_source_name(c->info->text_unc_source));
    if (status == PNB_OK && c->n_words > 0)
        status = pnb__record_info(t, err, "Word vectors: %zu of %zu words found in %s",
                                  c->n_words_found, c->n_words, c->opts->word_vectors);
    if (status == PNB_OK && c->n_trunk_arrays > 0)
        status = pnb__record_info(t, err, "Image trunk: %zu arrays of %s", c->n_trunk_arrays,
                                  c->opts->image_trunk);
    if (status == PNB_OK)
        status = pnb__contrastive_announce_lora(c, t, err);
    if (status == PNB_OK)
        status = announce_rates(c, t, err);
    if (status == PNB_OK)
        status = announce_large_rate(c, t, err);
    if (status == PNB_OK)
        status = announce_mix(c, t, err);
    if (status == PNB_OK)
        status = pnb__contrastive_announce_fit(c, t, err);
    if (status == PNB_OK && c->context.n_texts > 0)
        status = pnb__record_info(
            t, err,
            "Context: %d tokens, which %.2f%% of the training captions fit into as they are drawn "
            "(the longest has %d); --force-context-length sets another",
            c->context.length, 100 * c->context.share_within, c->context.longest);
    return status;
}
