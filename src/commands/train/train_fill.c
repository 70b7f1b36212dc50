/* From words of the command line to pnb_train_opts: choices of other names, options that are two
 * fields or follow from others, and those that are refused.
 * The table of options is train_options.c's. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/train/train_args.h"
#include "commands/train/train_recipes.h"
#include "commands/train/train_words.h"
#include "program/together.h"

pnb_train_opts pnb__train_recipe_of(const pnb__train_args *a)
{
    const pnb__train_recipe *named = pnb__train_recipe_find(a->recipe);
    bool published = a->recipe != NULL && strcmp(a->recipe, "small") != 0;
    bool is_named = a->objective == PNB_OBJECTIVE_PROLIP && named != NULL; /* no other was given */
    return pnb_train_opts_of(is_named ? named->objective : a->objective, published);
}

/* Several sources are one spec, however they were typed: --train-data A B, twice, or A::B. */
static pnb_status join_data(pnb__app *app, pnb__train_args *a)
{
    pnb__buf all = {0};
    for (size_t i = 0; i < a->train_data.n; i++) {
        pnb__buf_puts(&all, i > 0 ? "::" : "");
        pnb__buf_puts(&all, a->train_data.items[i]);
    }
    pnb_status status = all.failed ? pnb__fail_nomem(&app->err, all.size) : PNB_OK;
    if (status == PNB_OK && all.size > 0)
        status = pnb__copy_text(&a->all_train_data, all.data, &app->err);
    a->job.train_data = a->all_train_data;
    pnb__buf_reset(&all);
    return status;
}

void pnb__train_args_reset(pnb__train_args *a)
{
    pnb__free(a->all_train_data);
    a->all_train_data = NULL;
}

static pnb_status fill_data(pnb__app *app, pnb__train_args *a)
{
    pnb_train_opts *o = &a->job;
    pnb_status joined = join_data(app, a);
    if (joined != PNB_OK)
        return joined;
    if (o->train_data == NULL && o->dataset.kind != PNB_DATASET_SYNTHETIC)
        return pnb__usage(app, "--train-data is required, except with --dataset-type synthetic");
    if (a->csv_separator != NULL && !pnb__separator(a->csv_separator, &o->dataset.csv_separator))
        return pnb__usage(app, "--csv-separator %s: one character is wanted", a->csv_separator);
    if (a->augment != NULL)
        o->augment = pnb__augment_recipe(a->augment);
    for (size_t i = 0; i < a->aug_cfg.n; i++)
        if (!pnb__augment_set(&o->augment, a->aug_cfg.items[i]))
            return pnb__usage(app, "--aug-cfg %s: not a known key with numbers; keys are %s",
                              a->aug_cfg.items[i], pnb__augment_keys());
    return PNB_OK;
}

/* 2::1, as open_clip writes them. */
static pnb_status fill_factors(pnb__app *app, pnb__train_args *a)
{
    size_t n = 0;
    for (const char *p = a->upsampling; p != NULL;) {
        char *end = NULL;
        double factor = strtod(p, &end);
        if (end == p || (*end != '\0' && strncmp(end, "::", 2) != 0) || !(factor >= 0) ||
            n == PNB_COUNT(a->factors))
            return pnb__usage(app,
                              "--train-data-upsampling-factors %s: up to %zu numbers of 0 and more "
                              "with \"::\" between are wanted",
                              a->upsampling, PNB_COUNT(a->factors));
        a->factors[n++] = factor;
        p = *end != '\0' ? end + 2 : NULL;
    }
    a->job.upsampling_factors = a->factors;
    a->job.n_upsampling_factors = n;
    return PNB_OK;
}

/* A weight and a form without a teacher would be ignored. */
static pnb_status fill_distill(pnb__app *app, pnb__train_args *a)
{
    pnb_train_opts *o = &a->job;
    bool has_teacher = o->distill_images != NULL || o->distill_texts != NULL;
    bool is_kl = strcmp(a->distill_loss, "kl") == 0;
    if (!has_teacher && (!isnan(a->distill_weight) || is_kl))
        return pnb__usage(app, "--distill-weight and --distill-loss are of a teacher: give "
                               "--distill-images and --distill-texts");
    if (has_teacher)
        o->loss.weight[is_kl ? PNB_LOSS_DISTILL_KL : PNB_LOSS_DISTILL] =
            isnan(a->distill_weight) ? 1 : a->distill_weight;
    return PNB_OK;
}

/* --lr-milestones 15 20; without it those of the recipe. */
static pnb_status fill_milestones(pnb__app *app, pnb__train_args *a)
{
    pnb_train_opts *o = &a->job;
    if (a->milestones.n == 0)
        return PNB_OK;
    if (o->lr_scheduler != PNB_SCHEDULE_MULTISTEP)
        return pnb__usage(app, "--lr-milestones are those of --lr-scheduler multistep");
    if (a->milestones.n > PNB_MAX_MILESTONES)
        return pnb__usage(app, "--lr-milestones: %zu epochs, at most %d are possible",
                          a->milestones.n, (int)PNB_MAX_MILESTONES);
    memset(o->lr_milestones, 0, sizeof o->lr_milestones);
    for (size_t i = 0; i < a->milestones.n; i++) {
        char *end = NULL;
        o->lr_milestones[i] = strtoll(a->milestones.items[i], &end, 10);
        if (end == a->milestones.items[i] || *end != '\0' || o->lr_milestones[i] < 1)
            return pnb__usage(app, "--lr-milestones %s: an epoch, 1 or more, is wanted",
                              a->milestones.items[i]);
    }
    return PNB_OK;
}

/* "8G", "1.5g", "900M", "4096": letters are powers of 1024, as in Slurm's --mem. */
static pnb_status fill_memory(pnb__app *app, pnb__train_args *a)
{
    static const char letters[] = "kmgt";
    char *end = NULL;
    if (a->memory == NULL)
        return PNB_OK;
    double size = strtod(a->memory, &end);
    bool is_number = end != a->memory;
    const char *letter = *end != '\0' ? strchr(letters, tolower((unsigned char)*end)) : NULL;
    for (const char *l = letters; letter != NULL && l <= letter; l++)
        size *= 1024;
    if (letter != NULL)
        end++;
    if (letter != NULL && (strcmp(end, "B") == 0 || strcmp(end, "iB") == 0))
        end += strlen(end);
    if (!is_number || *end != '\0' || !(size >= 1) || !isfinite(size))
        return pnb__usage(app, "--memory %s: a size such as 8G or 900M is wanted", a->memory);
    a->job.memory = size;
    return PNB_OK;
}

/* open_clip has two words for it. */
static bool is_amp_bf16(const char *precision)
{
    return strcmp(precision, "amp_bf16") == 0 || strcmp(precision, "amp_bfloat16") == 0;
}

/* What is one option for several fields, or follows from others. */
static void fill_rest(const pnb__app *app, pnb__train_args *a)
{
    pnb_train_opts *o = &a->job;
    o->max_image_pixels = app->common.max_image_pixels;
    o->seed = (uint64_t)app->common.seed;
    if (!isnan(a->inclusion_alpha_occ))
        o->loss.weight[PNB_LOSS_IMG_INCLUSION] = o->loss.weight[PNB_LOSS_TXT_INCLUSION] =
            a->inclusion_alpha_occ;
    if (o->optim.kind == PNB_N_OPTIM_KINDS)
        o->optim.kind = a->adamp ? PNB_OPTIM_ADAMP : pnb__train_recipe_of(a).optim.kind;
    if (o->batch_size == 0 && !o->batch_by_class)
        o->batch_size = pnb__train_recipe_of(a).batch_size;
    if (o->save_frequency < 0) {
        o->save_frequency = 0;
        o->save_most_recent = true;
    }
    o->grad_cache_bf16 = strcmp(a->grad_cache, "bf16") == 0;
    o->lora_image = strcmp(a->lora_towers, "text") != 0;
    o->lora_text = strcmp(a->lora_towers, "image") != 0;
    o->precision = is_amp_bf16(a->precision) ? PNB_TRAIN_AMP_BF16 : PNB_TRAIN_FP32;
    o->report_tensorboard = a->report_to != NULL && strstr(a->report_to, "tensorboard") != NULL;
}

/* Words of open_clip's command line that this program answers instead of obeying. */
static pnb_status check_unsupported(pnb__app *app, const pnb__train_args *a)
{
    if (strcmp(a->precision, "fp32") != 0 && !is_amp_bf16(a->precision))
        return pnb__usage(app,
                          "--precision %s: training runs in fp32 or amp_bf16 here, with weights, "
                          "gradients and optimiser state in fp32",
                          a->precision);
    if (a->coco_test != NULL)
        return pnb__usage(app,
                          "--coco-test %s: retrieval during training is that of --val-data: give "
                          "--val-data 'dataset_coco.json#split=test,images=DIR' "
                          "--retrieval-frequency N; the whole table of COCO is `penumbra eval "
                          "retrieval`'s",
                          a->coco_test);
    if (a->report_to != NULL && a->report_to[0] != '\0' && strcmp(a->report_to, "tensorboard") != 0)
        return pnb__usage(app,
                          "--report-to %s: only tensorboard is written, besides results.jsonl in "
                          "the run's folder, which always is",
                          a->report_to);
    if ((a->freeze_bn_stats && !a->job.lock_image) || (a->freeze_layer_norm && !a->job.lock_text))
        return pnb__usage(app, "--lock-image-freeze-bn-stats goes with --lock-image, "
                               "--lock-text-freeze-layer-norm with --lock-text");
    if ((a->job.local_loss || a->gather_with_grad) && app->ranks == NULL)
        pnb__say(app, "--local-loss and --gather-with-grad change nothing in one process: the loss "
                      "sees the whole batch with its gradient");
    return PNB_OK;
}

pnb_status pnb__train_fill(pnb__app *app, pnb__train_args *a)
{
    const pnb_train_opts *o = &a->job;
    pnb_status status;
    if (a->adamp && o->optim.kind != PNB_OPTIM_ADAMP && o->optim.kind != PNB_N_OPTIM_KINDS)
        return pnb__usage(app, "--adamp and --opt %s contradict each other",
                          pnb_optim_name(o->optim.kind));
    if (!(o->ema_decay < 1)) /* the range of an option is closed */
        return pnb__usage(app, "--ema-decay %g: it must be 0 or more, below 1", o->ema_decay);
    if (o->pin_workers && pnb__together_is_crowded(app))
        return pnb__usage(app,
                          "--pin-workers: %zu processes share the processors of this machine; "
                          "have the launcher bind each to its own (mpirun --bind-to core "
                          "--map-by slot:PE=N, srun --cpu-bind=cores -c N)",
                          app->launch.n_local);
    PNB_TRY(check_unsupported(app, a));
    PNB_TRY(fill_data(app, a));
    PNB_TRY(fill_milestones(app, a));
    PNB_TRY(fill_memory(app, a));
    PNB_TRY(fill_factors(app, a));
    PNB_TRY(fill_distill(app, a));
    fill_rest(app, a);
done:
    return status;
}
