/* Options of train that are of use with another one alone: typed without it they would change
 * nothing, and whoever typed them would believe that they do.
 *
 * One row an option: when it is of use, and what it goes with. What counts is the word on the
 * command line: a recipe, a config file or the environment may hold values for trainings of several
 * kinds. A run that goes on is asked for what cannot be trained at all alone: its checkpoint knows
 * the options it began with, and what it has of no use it must go on having. */
#include <string.h>

#include "base/base.h"
#include "commands/train/train_args.h"
#include "penumbra/checkpoint.h"

/* ---- when ---- */

static bool has_weight(const pnb__train_args *a, pnb_loss_term term)
{
    return a->job.loss.weight[term] > 0;
}

static bool is_multistep(const pnb__train_args *a)
{
    return a->job.lr_scheduler == PNB_SCHEDULE_MULTISTEP;
}

static bool cools_down(const pnb__train_args *a)
{
    return a->job.lr_scheduler == PNB_SCHEDULE_COOLDOWN;
}

static bool has_phases(const pnb__train_args *a)
{
    return a->job.head_epochs > 0;
}

static bool draws_samples(const pnb__train_args *a)
{
    return has_weight(a, PNB_LOSS_PCME) || has_weight(a, PNB_LOSS_UNIFORMITY) ||
           (has_weight(a, PNB_LOSS_PCME_KL) && a->job.loss.pcme_kl_published);
}

static bool has_triplets(const pnb__train_args *a)
{
    return has_weight(a, PNB_LOSS_TRIPLET);
}

static bool has_hardest(const pnb__train_args *a)
{
    return has_triplets(a) && a->job.loss.triplet_hardest;
}

static bool has_pcme_kl(const pnb__train_args *a)
{
    return has_weight(a, PNB_LOSS_PCME_KL);
}

static bool has_uniformity(const pnb__train_args *a)
{
    return has_weight(a, PNB_LOSS_UNIFORMITY);
}

static bool has_mmd(const pnb__train_args *a)
{
    return has_weight(a, PNB_LOSS_MMD);
}

static bool replaces_tokens(const pnb__train_args *a)
{
    return a->job.text_mask == PNB_TEXT_MASK_REPLACE && has_weight(a, PNB_LOSS_TXT_INCLUSION);
}

static bool drops_words(const pnb__train_args *a)
{
    return a->job.word_drop > 0;
}

static bool mixes(const pnb__train_args *a)
{
    return a->job.mix_share > 0;
}

static bool validates(const pnb__train_args *a)
{
    return a->job.val_data != NULL;
}

/* Figures of validation, of retrieval and of zero-shot classification are told by their names. */
static bool measures_best(const pnb__train_args *a)
{
    const char *best = a->job.best_by;
    if (pnb__starts_with(best, "zeroshot_"))
        return a->imagenet_val != NULL;
    if (pnb__starts_with(best, "retrieval_"))
        return validates(a) && a->retrieval_frequency != PNB__INT_UNSET;
    return validates(a);
}

static bool locks_image(const pnb__train_args *a)
{
    return a->job.lock_image;
}

static bool locks_text(const pnb__train_args *a)
{
    return a->job.lock_text;
}

static bool resamples(const pnb__train_args *a)
{
    return a->job.dataset_resampled;
}

static bool has_negatives_key(const pnb__train_args *a)
{
    return a->job.dataset.negatives_key != NULL;
}

static bool takes_negatives(const pnb__train_args *a)
{
    return a->job.n_negatives > 0;
}

/* Weights that cannot be looked for are of another complaint. */
static bool is_fresh(const pnb__train_args *a)
{
    char path[4096];
    return !pnb__path_is_dir(a->job.model) ||
           pnb_checkpoint_locate(path, sizeof path, a->job.model, NULL) != PNB_OK;
}

static bool trains_tokenizer(const pnb__train_args *a)
{
    return a->job.tokenizer == NULL && is_fresh(a);
}

/* ---- which ---- */

typedef struct companion {
    const char *option;
    bool (*is_of_use)(const pnb__train_args *a);
    const char *with;
    unsigned flags;
} companion;

enum {
    OFF_AT_0 = 1, /* where 0 asks for nothing */
    ALWAYS = 2    /* no run has ever had it alone, so one that goes on has not either */
};

static const char fresh[] = "a model that starts anew, and --model names one that has weights";

static const char trained[] =
    "a tokenizer that is trained here, and --tokenizer or the model's folder brings one";

static const companion companions[] = {
    {"lr-gamma", is_multistep, "--lr-scheduler multistep", 0},
    {"epochs-cooldown", cools_down, "--lr-scheduler const-cooldown", OFF_AT_0},
    {"lr-cooldown-end", cools_down, "--lr-scheduler const-cooldown", 0},
    {"lr-cooldown-power", cools_down, "--lr-scheduler const-cooldown", 0},
    {"trunk-lr-ratio", has_phases, "--head-epochs, behind which its phase begins", 0},
    {"samples", draws_samples, "a loss over samples: --pcme-lambda or --uniformity-lambda", 0},
    {"triplet-margin", has_triplets, "--triplet-lambda", 0},
    {"triplet-negatives", has_triplets, "--triplet-lambda", 0},
    {"triplet-form", has_triplets, "--triplet-lambda", 0},
    {"triplet-warmup", has_hardest, "--triplet-lambda and --triplet-negatives hardest", OFF_AT_0},
    {"pcme-kl-form", has_pcme_kl, "--pcme-kl-beta", 0},
    {"uniformity-form", has_uniformity, "--uniformity-lambda", 0},
    {"mmd-form", has_mmd, "--mmd-lambda", 0},
    {"replace-token", replaces_tokens, "--text-mask replace and --inclusion-alpha-occ", 0},
    {"word-drop-removes", drops_words, "--word-drop", ALWAYS},
    {"mix-cutmix", mixes, "--mix-share", 0},
    {"mix-alpha", mixes, "--mix-share", 0},
    {"val-every-n-steps", validates, "--val-data", OFF_AT_0},
    {"val-level", validates, "--val-data", 0},
    {"save-best-unc", validates, "--val-data", ALWAYS},
    {"best-by", measures_best,
     "what measures its figure: --val-data, of retrieval_... with --retrieval-frequency, or "
     "--imagenet-val for zeroshot_...",
     ALWAYS},
    {"lock-image-unlocked-groups", locks_image, "--lock-image", OFF_AT_0 | ALWAYS},
    {"lock-text-unlocked-layers", locks_text, "--lock-text", OFF_AT_0 | ALWAYS},
    {"train-data-upsampling-factors", resamples, "--dataset-resampled", ALWAYS},
    {"hard-negatives", has_negatives_key, "--hard-negatives-key", OFF_AT_0 | ALWAYS},
    {"hard-negatives-key", takes_negatives, "--hard-negatives", ALWAYS},
    {"tokenizer-vocab-size", trains_tokenizer, trained, 0},
    {"tokenizer-kind", trains_tokenizer, trained, 0},
    {"init-logit-scale", is_fresh, fresh, 0},
    {"init-logit-bias", is_fresh, fresh, 0},
    {"init-unc-bias", is_fresh, fresh, 0},
};

/* A flag that says false, and a number that says 0 where that is off. */
static bool is_off(const pnb__app *app, const companion *c, const pnb__train_args *a)
{
    for (size_t i = 0; i < app->own->n; i++) {
        const pnb__option *row = &app->own->rows[i];
        if (strcmp(row->name, c->option) != 0)
            continue;
        const void *field = pnb__option_field(row, a);
        if (row->kind == PNB__OPT_FLAG)
            return !*(const bool *)field;
        return (c->flags & OFF_AT_0) != 0 && *(const int64_t *)field == 0;
    }
    return false;
}

pnb_status pnb__train_check_companions(pnb__app *app, const pnb__train_args *a)
{
    for (size_t i = 0; i < PNB_COUNT(companions); i++) {
        const companion *c = &companions[i];
        if (a->job.resume != NULL && (c->flags & ALWAYS) == 0)
            continue;
        if (pnb__is_typed(app, c->option) && !is_off(app, c, a) && !c->is_of_use(a))
            return pnb__usage(app,
                              "--%s changes nothing here: it goes with %s; give that too, or "
                              "leave it out",
                              c->option, c->with);
    }
    return PNB_OK;
}
