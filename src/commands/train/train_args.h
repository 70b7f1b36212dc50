/* What the command line of train says, before it is a pnb_train_opts. */
#ifndef PNB_COMMANDS_TRAIN_TRAIN_ARGS_H
#define PNB_COMMANDS_TRAIN_TRAIN_ARGS_H

#include "penumbra/train.h"
#include "program/app.h"

/* What the trainer takes, what is handed in to it, and words of open_clip's command line that are
 * answered. */
typedef struct pnb__train_args {
    pnb_train_opts job;
    pnb_objective objective;
    const char *recipe, *pretrained, *csv_separator, *augment, *precision, *report_to,
        *imagenet_val, *coco_test, *zeroshot_classnames, *zeroshot_templates, *zeroshot_split,
        *lora_towers, *upsampling, *distill_loss, *grad_cache, *memory;
    double inclusion_alpha_occ; /* one weight for both masked terms */
    double distill_weight;      /* of the term that distill_loss names; NaN: 1 with a teacher */
    double factors[16];         /* of upsampling */
    int64_t zeroshot_frequency, retrieval_frequency;
    pnb__text_list train_data; /* joined by "::" in: */
    char *all_train_data;      /* owned; pnb__train_args_reset */
    pnb__text_list aug_cfg, milestones;
    int64_t rank_timeout;
    bool show, freeze_bn_stats, freeze_layer_norm;
    bool prolip, adamp, gather_with_grad;
} pnb__train_args;

/* What --recipe and --objective say, before anything else does. */
pnb_train_opts pnb__train_recipe_of(const pnb__train_args *a);

/* a->job from all that is not in it yet. Errors  USAGE (as app->usage), naming the option */
pnb_status pnb__train_fill(pnb__app *app, pnb__train_args *a);
/* Of a->job as it is to be trained, its model found: refuses what is of no use without another
 * option. Errors  USAGE, naming both */
pnb_status pnb__train_check_companions(pnb__app *app, const pnb__train_args *a);
/* Gives back what fill made; a->job may not be used any more. */
void pnb__train_args_reset(pnb__train_args *a);

#endif
