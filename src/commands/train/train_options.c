/* penumbra train: open_clip's flag names in front of pnb_train.
 *
 * A value that is not given stays what the recipe says; only then is a default of one place. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/model_path.h"
#include "commands/common/option_rows.h"
#include "commands/train/train_args.h"
#include "commands/train/train_evaluators.h"
#include "commands/train/train_recipes.h"
#include "commands/train/train_run.h"
#include "train/losses/triplet.h"

/* What can be trained on: of a kind that has classes alone the first sample would end the run. */
#define KIND_IF_TEXTS(text) "|" text
#define KIND_IF_CLASSES(text)
#define KIND_OF(name, text, has) KIND_IF_##has(text)
#define KINDS_WITH_TEXTS PNB__CHOICES(PNB_DATASET_LIST(KIND_OF))

#define AT(field) PNB__FIELD(pnb__train_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILES("train-data", AT(train_data), "SPEC...",
                   "Pictures and captions: tar shards (braces, globs), a csv, a jsonl, a folder or "
                   "Karpathy's json; several of them, or with \"::\" between, are one set; "
                   "\"#split=...,images=DIR\" behind the json and "
                   "\"#captions=DIR,classes=FILE,omit=FILE\" behind a folder say more",
                   .group = "Data"),
    PNB__ROW_FILE("val-data", AT(job.val_data), "SPEC", "The same for validation"),
    PNB__ROW_INT("train-num-samples", AT(job.train_num_samples), "N",
                 "Samples of one epoch; by default all", PNB__RANGE(1, 1000000000000000.0)),
    PNB__ROW_CHOICE(
        "dataset-type", AT(job.dataset.kind), "TYPE", KINDS_WITH_TEXTS,
        "Form of the data; told by the name by default. synthetic: random pixels, one caption "
        "and no files, --train-num-samples of them",
        .names = PNB_NAMES(PNB_DATASET_LIST), .fallback = "auto"),
    PNB__ROW_TEXT("train-data-upsampling-factors", AT(upsampling), "F::F...",
                  "With --dataset-resampled: how often a sample of each source between \"::\" of "
                  "--train-data is drawn beside one of factor 1, as in open_clip"),
    PNB__ROW_INT("hard-negatives", AT(job.n_negatives), "N",
                 "So many captions of each sample that fit no picture, as NegCLIP has them, for "
                 "ppcl, siglip and clip; with --hard-negatives-key",
                 PNB__RANGE(0, 64)),
    PNB__ROW_TEXT("hard-negatives-key", AT(job.dataset.negatives_key), "NAME",
                  "Field of a sample's record, a text or a list, or column of a table that has "
                  "them; samples without any are left out and named"),
    PNB__ROW_FLAG("dataset-resampled", AT(job.dataset_resampled),
                  "Draw training samples with replacement"),
    PNB__ROW_TEXT("csv-separator", AT(csv_separator), "CHAR",
                  "Separator of a table; told by the header by default"),
    PNB__ROW_TEXT("csv-img-key", AT(job.dataset.csv_img_key), "COLUMN", "Column of picture paths",
                  .fallback = "filepath"),
    PNB__TEXT_KEY_ROW(AT(job.dataset.csv_caption_key)),
    PNB__ROW_TEXT("image-key", AT(job.dataset.image_key), "SUFFIXES",
                  "Members of a tar that are pictures, \";\" between; without it "
                  "jpg;png;jpeg;webp;0.jpg, then any other picture ending"),
    PNB__ROW_TEXT("text-key", AT(job.dataset.text_key), "SUFFIXES",
                  "Members of a tar that are captions: json records, others text",
                  .fallback = "json;txt"),
    PNB__ROW_CHOICE("captions", AT(job.texts), "HOW", "level|any|first",
                    "Which caption of a sample: a level at random and one of it, any, the first",
                    .fallback = "level"),
    PNB__ROW_REAL("template-share", AT(job.template_share), "SHARE",
                  "Share of captions put into a template such as \"a picture of {}\"",
                  PNB__RANGE(0, 1)),
    PNB__ROW_INT("val-level", AT(job.val_level), "N",
                 "Caption level of validation where samples have levels", PNB__RANGE(-1, 7)),
    PNB__ROW_INT("workers", AT(job.workers), "N",
                 "Threads that read and augment ahead of the trainer", PNB__RANGE(0, 1024)),
    PNB__ROW_FLAG("pin-workers", AT(job.pin_workers),
                  "Keep these threads on processors of their own, the last ones, and computing "
                  "off them; --threads and --workers are then at most what there is together"),
    PNB__ROW_CHOICE("augment", AT(augment), "RECIPE", "none|small|published",
                    "Changes to training pictures; the recipe's by default"),
    PNB__ROW_LIST("aug-cfg", AT(aug_cfg), "K=V...",
                  "Single changes: scale=LO,HI ratio=LO,HI crop_scales=1,0.875,... zoom=LO,HI "
                  "shift= rotate= flip= gain= "
                  "color_jitter=B,C,S,H color_jitter_prob= gray_scale_prob= "
                  "interpolation=bicubic|bilinear|... re_prob= re_count= re_mode=pixel|const"),
    PNB__ROW_FILE(
        "model", AT(job.model), "NAME|DIR|FILE",
        "Built-in configuration, config.json, or a model directory to go on from; tiny in the "
        "small recipe, ViT-B-16 in the published one",
        .group = "Model", .letter = 'm'),
    PNB__ROW_FILE("pretrained", AT(pretrained), "DIR",
                  "Model directory to start from; the same as --model DIR"),
    PNB__ROW_FILE(
        "tokenizer", AT(job.tokenizer), "PATH",
        "tokenizer.json or folder; by default the model's, else one is trained on the captions"),
    PNB__ROW_CHOICE("tokenizer-kind", AT(job.tokenizer_kind), "KIND", "bpe|word",
                    "Kind of the tokenizer trained", .names = "word\0bpe\0"),
    PNB__ROW_INT("tokenizer-vocab-size", AT(job.tokenizer_vocab_size), "N",
                 "Entries of the tokenizer trained", PNB__RANGE(4, 10000000.0)),
    PNB__ROW_TEXT("override", AT(job.config_overrides), "JSON",
                  "JSON object merged into a configuration"),
    PNB__ROW_INT("force-image-size", AT(job.force_image_size), "PIXELS",
                 "Picture size instead of the configuration's", PNB__RANGE(1, 16384)),
    PNB__ROW_INT(
        "force-context-length", AT(job.force_context_length), "N",
        "Caption length in tokens instead of the configuration's; without it the built-in "
        "tiny takes the length that 99% of the training captions fit into, at most 77, and "
        "says it first",
        PNB__RANGE(2, 65536)),
    PNB__ROW_FLAG("force-resize-pos-emb", AT(job.force_resize_pos_emb),
                  "Interpolate the positions of a model directory to the forced sizes"),
    PNB__ROW_FLAG("reinit-unc", AT(job.reinit_unc),
                  "Start from a model directory with fresh uncertainty tokens and heads"),
    PNB__ROW_FILE(
        "word-vectors", AT(job.word_vectors), "FILE",
        "Word vectors (GloVe, fastText .vec or .bin, word2vec) that the words of a fresh PCME, "
        "VSE or PVSE model start with"),
    PNB__ROW_FILE("image-trunk", AT(job.image_trunk), "FILE",
                  "torchvision's weights of the ResNet (.pth, safetensors) that a fresh PCME, VSE "
                  "or PVSE model starts with; its classifier is passed over"),
    PNB__ROW_REAL("init-logit-scale", AT(job.init_logit_scale), "A", "Scale a of a fresh model",
                  PNB__RANGE(0.001, 1000)),
    PNB__ROW_REAL("init-logit-bias", AT(job.init_logit_bias), "B",
                  "Bias b of a fresh model; -log(batch) by default in the small recipe"),
    PNB__ROW_REAL(
        "init-unc-bias", AT(job.init_unc_bias), "LV",
        "Log-variance bias of a fresh model; -10 + log(768/D) by default in the small recipe"),
    PNB__ROW_FLAG("lock-image", AT(job.lock_image), "Freeze the image tower"),
    PNB__ROW_FLAG("lock-text", AT(job.lock_text), "Freeze the text tower"),
    PNB__ROW_INT("lock-image-unlocked-groups", AT(job.image_unlocked_groups), "N",
                 "Of the frozen image tower the last N groups go on: 1 its heads (projections, all "
                 "that gives uncertainty), 2 its last block too, ...",
                 PNB__RANGE(0, 1000)),
    PNB__ROW_FLAG(
        "lock-image-freeze-bn-stats", AT(freeze_bn_stats),
        "Accepted for compatibility: the statistics of a frozen tower stand still anyway"),
    PNB__ROW_INT("lock-text-unlocked-layers", AT(job.text_unlocked_layers), "N",
                 "The same of the text tower", PNB__RANGE(0, 1000)),
    PNB__ROW_FLAG("lock-text-freeze-layer-norm", AT(freeze_layer_norm),
                  "Accepted for compatibility: LayerNorms are frozen with their layers anyway"),
    PNB__ROW_INT(
        "lora-rank", AT(job.lora_rank), "R",
        "LoRA: of the chosen matrices of a model directory only factors of this rank train, "
        "and the heads unless locked; checkpoints are small adapter folders, which "
        "`penumbra convert --lora` makes models of; 0 is off",
        PNB__RANGE(0, 65536)),
    PNB__ROW_REAL("lora-alpha", AT(job.lora_alpha), "ALPHA",
                  "Factors count ALPHA / R; R by default", PNB__RANGE(1e-6, 1e6)),
    PNB__ROW_TEXT("lora-targets", AT(job.lora_targets), "WHICH",
                  "attn, mlp, all, parts of names (mlp.c_fc) or patterns of whole names "
                  "('visual.*.resblocks.11.*'), commas between; all by default"),
    PNB__ROW_CHOICE("lora-towers", AT(lora_towers), "WHICH", "both|image|text",
                    "Towers whose matrices are chosen", .fallback = "both"),
    PNB__ROW_CHOICE(
        "objective", AT(objective), "NAME", PNB__CHOICES(PNB_OBJECTIVE_LIST(PNB__CHOICE_OF)),
        "What is trained: losses, their weights and the model they are for",
        .names = PNB_NAMES(PNB_OBJECTIVE_LIST), .fallback = "prolip", .group = "Objective"),
    PNB__ROW_CHOICE(
        "recipe", AT(recipe), "NAME",
        "small|published|prolip-pretrain|prolip-from-siglip|longprolip|finetune-coco|finetune-lora|"
        "distill-clip|pcme-coco|"
        "pcme-cub",
        "Defaults of everything not given here: small fits minutes on a CPU, published is the "
        "objective's paper's; the others are whole trainings, which --show prints",
        .fallback = "small"),
    PNB__ROW_FLAG("show", AT(show), "Print the recipe, with the source of each value, and end"),
    PNB__ROW_FLAG("prolip", AT(prolip),
                  "Accepted for compatibility: the ProLIP objective is the default"),
    PNB__ROW_REAL("ppcl-lambda", AT(job.loss.weight[PNB_LOSS_PPCL]), "W",
                  "Weight of the probabilistic pairwise contrastive loss", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("siglip-lambda", AT(job.loss.weight[PNB_LOSS_SIGLIP]), "W",
                  "Weight of the pairwise sigmoid loss of the means", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("clip-lambda", AT(job.loss.weight[PNB_LOSS_CLIP]), "W",
                  "Weight of InfoNCE on the means", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("pcmepp-lambda", AT(job.loss.weight[PNB_LOSS_PCMEPP]), "W",
                  "Weight of the matching loss of PCME++", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("pcmepp-pseudo-weight", AT(job.loss.weight[PNB_LOSS_PCMEPP_PSEUDO]), "W",
                  "Weight of PCME++'s pseudo positives: pairs that score at least as high as the "
                  "match of their row or column",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("pcme-lambda", AT(job.loss.weight[PNB_LOSS_PCME]), "W",
                  "Weight of PCME's soft contrastive loss over samples", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("pcme-kl-beta", AT(job.loss.weight[PNB_LOSS_PCME_KL]), "W",
                  "Weight of the divergence from N(0, I), summed as in PCME",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_CHOICE("pcme-kl-form", AT(job.loss.pcme_kl_published), "FORM", "exact|published",
                    "The divergence itself, or the form of PCME's code: log sigma where log "
                    "sigma^2 stands, means of samples",
                    .fallback = "exact"),
    PNB__ROW_REAL("uniformity-lambda", AT(job.loss.weight[PNB_LOSS_UNIFORMITY]), "W",
                  "Weight of the uniformity of samples (PCME on CUB: 10)", PNB__RANGE(0, INFINITY)),
    PNB__ROW_CHOICE("uniformity-form", AT(job.loss.uniformity_published), "FORM", "exact|published",
                    "Over all pairs of samples, or of 128 drawn ones as in PCME's code",
                    .fallback = "exact"),
    PNB__ROW_INT("samples", AT(job.loss.n_samples), "J",
                 "Samples of an embedding in the losses over samples", PNB__RANGE(1, 64)),
    PNB__ROW_REAL("triplet-lambda", AT(job.loss.weight[PNB_LOSS_TRIPLET]), "W",
                  "Weight of the margin to negatives (VSE, PVSE)", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("triplet-margin", AT(job.loss.triplet_margin), "M", "That margin, of cosines",
                  PNB__RANGE(1e-9, 4)),
    PNB__ROW_CHOICE("triplet-negatives", AT(job.loss.triplet_hardest), "WHICH",
                    PNB__CHOICES(PNB__NEGATIVES_LIST(PNB__CHOICE_OF)),
                    "Negatives of a row that count"),
    PNB__ROW_INT("triplet-warmup", AT(job.loss.triplet_warmup), "STEPS",
                 "Steps in which all negatives count, also where the nearest ones will",
                 PNB__RANGE(0, 1e15)),
    PNB__ROW_CHOICE("triplet-form", AT(job.loss.triplet_mean), "FORM", "sum|mean",
                    "Sum of the margins of a batch, or PVSE's mean over rows"),
    PNB__ROW_REAL("diversity-lambda", AT(job.loss.weight[PNB_LOSS_DIVERSITY]), "W",
                  "Weight of PVSE's diversity of the embeddings of an input",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("mmd-lambda", AT(job.loss.weight[PNB_LOSS_MMD]), "W",
                  "Weight of the maximum mean discrepancy of pictures and captions (PVSE)",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_CHOICE("mmd-form", AT(job.loss.mmd_published), "FORM", "exact|published",
                    "Its kernel of squared distances, or of distances as in PVSE's code"),
    PNB__ROW_FILE("distill-images", AT(job.distill_images), "SET",
                  "Embedding set of the training pictures by a frozen teacher (penumbra embed)"),
    PNB__ROW_FILE("distill-texts", AT(job.distill_texts), "SET",
                  "The same of the training captions"),
    PNB__ROW_REAL("distill-weight", AT(distill_weight), "W",
                  "Weight of the teacher's loss; 1 by default", PNB__RANGE(0, INFINITY)),
    PNB__ROW_CHOICE("distill-loss", AT(distill_loss), "FORM", "contrastive|kl",
                    "Cross-entropy between the teacher's matches in the batch and ours, of any "
                    "width (open_clip), or the divergence from its Gaussians, of the same width",
                    .fallback = "contrastive"),
    PNB__ROW_REAL("distill-scale", AT(job.distill_scale), "A",
                  "Scale of the teacher's logits; its own by default, else 100",
                  PNB__RANGE(1e-6, 1e6)),
    PNB__ROW_INT("head-epochs", AT(job.head_epochs), "N",
                 "First phase: so many epochs in which a pretrained trunk and word vectors stand "
                 "still; the schedule begins anew behind it",
                 PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_REAL("trunk-lr-ratio", AT(job.trunk_lr_ratio), "SHARE",
                  "Share of the rate in the second phase", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("image-lr-ratio", AT(job.image_lr_ratio), "SHARE",
                  "Share of the rate for the image tower, but for the heads that PCME and PCME++ "
                  "put over pretrained towers (published PCME++: 0.01)",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("text-lr-ratio", AT(job.text_lr_ratio), "SHARE",
                  "The same for the text tower (published PCME++: 0.1)", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("layer-lr-decay", AT(job.layer_lr_decay), "SHARE",
                  "Share of the next block's rate that a block of a transformer takes, the last "
                  "block of its tower's (published PCME++: 0.7)",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("head-lr-ratio", AT(job.head_lr_ratio), "SHARE",
                  "Share of the rate for the heads of both towers, 10 for heads that are new over "
                  "pretrained towers",
                  PNB__RANGE(0, 1000)),
    PNB__ROW_REAL("vib-beta", AT(job.loss.weight[PNB_LOSS_VIB]), "W",
                  "Weight of the divergence from N(0, I)", PNB__RANGE(0, INFINITY)),
    PNB__ROW_CHOICE(
        "vib-form", AT(job.loss.vib_official), "FORM", "exact|official",
        "The divergence itself, or the form of the released code, with half the log-variance",
        .fallback = "exact"),
    PNB__ROW_REAL("vib-limit", AT(job.loss.vib_limit), "LOSS", "A divergence above it counts as 0",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-alpha", AT(job.loss.weight[PNB_LOSS_INCLUSION]), "W",
                  "Weight of: picture included in its caption", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-alpha-occ", AT(inclusion_alpha_occ), "W",
                  "Weight of: original included in its masked copy", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-scale", AT(job.loss.inclusion_scale), "C",
                  "Factor on the inclusion test", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("inclusion-eps", AT(job.loss.inclusion_eps), "EPS",
                  "log of the factor on 1/variance in the published inclusion"),
    PNB__ROW_CHOICE("inclusion-form", AT(job.loss.inclusion_exact), "FORM", "published|exact",
                    "The exact integral, or the form of the paper and code"),
    PNB__ROW_REAL("inclusion-limit", AT(job.loss.inclusion_limit), "LOSS",
                  "An inclusion loss above it counts as 0", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("drop-ratio", AT(job.drop_ratio), "SHARE",
                  "Share of the batch in the masked pass", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("drop-prob", AT(job.drop_prob), "P", "Probability that a text token is masked",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("mask-keep", AT(job.mask_keep), "SHARE",
                  "Share of patches a masked picture keeps", PNB__RANGE(1e-06, 1)),
    PNB__ROW_CHOICE("text-mask", AT(job.text_mask), "HOW", "delete|replace",
                    "Masked tokens are deleted, or replaced by the mask token as published"),
    PNB__ROW_INT("replace-token", AT(job.replace_token), "ID",
                 "Token that replaces; by default the tokenizer's mask token",
                 PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_REAL("word-drop", AT(job.word_drop), "P",
                  "Probability that a word of a training caption becomes the unknown token "
                  "(PCME: 0.1)",
                  PNB__RANGE(0, 1)),
    PNB__ROW_FLAG("word-drop-removes", AT(job.word_drop_removes),
                  "As PCME's code: int(n P) of a caption's n words are taken out besides"),
    PNB__ROW_REAL(
        "mix-share", AT(job.mix_share), "SHARE",
        "Share of a batch's pictures that take a part of another one, by mixup or CutMix; "
        "they match both captions by their shares (published PCME++: 0.25)",
        PNB__RANGE(0, 1)),
    PNB__ROW_REAL("mix-cutmix", AT(job.mix_cutmix), "P",
                  "Probability that a mixed picture is so by CutMix, else by mixup",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("mix-alpha", AT(job.mix_alpha), "A", "Shares are drawn from Beta(A, A)",
                  PNB__RANGE(1e-3, 1e6)),
    PNB__ROW_REAL("label-smoothing", AT(job.label_smoothing), "E",
                  "Pairs that match count as 1 - E, others as E (published PCME++: 1e-4)",
                  PNB__RANGE(0, 0.499999)),
    PNB__ROW_CHOICE("opt", AT(job.optim.kind), "NAME",
                    PNB__CHOICES(PNB_OPTIM_LIST(PNB__CHOICE_IDENT)), "Optimiser",
                    .group = "Optimisation"),
    PNB__ROW_FLAG("adamp", AT(adamp), "The same as --opt adamp"),
    PNB__ROW_REAL("lr", AT(job.optim.lr), "LR", "Learning rate", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("beta1", AT(job.optim.beta1), "B", "First moment", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("beta2", AT(job.optim.beta2), "B", "Second moment", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("eps", AT(job.optim.eps), "EPS", "Added to the root of the second moment",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("momentum", AT(job.optim.momentum), "M", "Momentum of sgd and sgdp",
                  PNB__RANGE(0, 1)),
    PNB__ROW_REAL("wd", AT(job.optim.weight_decay), "WD", "Weight decay of matrices",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_INT("warmup", AT(job.warmup), "STEPS", "Steps of linear warm-up",
                 PNB__RANGE(0, 1000000000000.0)),
    PNB__ROW_CHOICE("lr-scheduler", AT(job.lr_scheduler), "NAME",
                    PNB__CHOICES(PNB_SCHEDULE_LIST(PNB__CHOICE_WORD)),
                    "Course of the learning rate"),
    PNB__ROW_LIST("lr-milestones", AT(milestones), "EPOCH...",
                  "Epochs after which multistep multiplies the rate by --lr-gamma, at most 4 "
                  "(published PCME++: 15)"),
    PNB__ROW_REAL("lr-gamma", AT(job.lr_gamma), "SHARE", "That factor", PNB__RANGE(0, 1)),
    PNB__ROW_REAL("lr-min-ratio", AT(job.lr_min_ratio), "SHARE", "Share of lr the cosine ends at",
                  PNB__RANGE(0, 1)),
    PNB__ROW_INT("epochs-cooldown", AT(job.epochs_cooldown), "N",
                 "Epochs of cooling down (const-cooldown)", PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_REAL("lr-cooldown-end", AT(job.lr_cooldown_end), "LR",
                  "Rate at the end of cooling down", PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("lr-cooldown-power", AT(job.lr_cooldown_power), "P", "Power of the cooling",
                  PNB__RANGE(0, INFINITY)),
    PNB__ROW_REAL("grad-clip-norm", AT(job.optim.grad_clip_norm), "NORM",
                  "Gradients of a larger norm are scaled down; 0 is off", PNB__RANGE(0, INFINITY)),
    PNB__ROW_FLAG("batch-by-class", AT(job.batch_by_class),
                  "Each batch has one sample of every class (CUB Captions), or of --batch-size "
                  "different ones"),
    PNB__ROW_INT("batch-size", AT(job.batch_size), "N",
                 "Pairs of one forward pass; by default the recipe's, with --batch-by-class the "
                 "number of classes",
                 PNB__RANGE(1, 1000000.0), .letter = 'b'),
    PNB__ROW_INT("accum-freq", AT(job.accum_freq), "N",
                 "Forward passes of one step; the loss sees all their pairs",
                 PNB__RANGE(1, 1000000.0)),
    PNB__ROW_FLAG(
        "grad-checkpointing", AT(job.grad_checkpointing),
        "Keep less for the backward pass and compute it again: same bits, less memory, more time"),
    PNB__ROW_TEXT("memory", AT(memory), "SIZE",
                  "Of this process, as 8G or 900M: the pairs of a step, --batch-size times "
                  "--accum-freq or --global-batch, are cut into the forward passes, with "
                  "checkpointing or without, that fit in it and compute least; out.log says which"),
    PNB__ROW_CHOICE("grad-cache-precision", AT(grad_cache), "NAME", "fp32|bf16",
                    "With --accum-freq: how the distributions of all forward passes are kept until "
                    "the loss has seen them; bf16 is half as much, and the loss sees them rounded",
                    .fallback = "fp32"),
    PNB__ROW_INT("global-batch", AT(job.global_batch), "N",
                 "Pairs of one step in all processes, a multiple of --batch-size, in place of "
                 "--accum-freq: the same training whatever the number of processes",
                 PNB__RANGE(1, 2147483647.0)),
    PNB__ROW_FLAG("local-loss", AT(job.local_loss),
                  "Each of several processes computes the losses of its own pictures and captions "
                  "against all others, not of all: the same gradient but for rounding, for less "
                  "time; docs/scaling.md says how much"),
    PNB__ROW_FLAG("gather-with-grad", AT(gather_with_grad),
                  "Accepted for compatibility: distributions are always gathered with gradients"),
    PNB__ROW_FLAG("shard-optimizer", AT(job.shard_optimizer),
                  "Each of several processes keeps its part of the optimiser's state; checkpoints "
                  "are whole"),
    PNB__RANK_TIMEOUT_ROW(AT(rank_timeout)),
    PNB__ROW_INT("epochs", AT(job.epochs), "N", "Passes over the data",
                 PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_INT("max-steps", AT(job.max_steps), "N",
                 "End after so many steps, also for the schedule; 0 is off",
                 PNB__RANGE(0, 1000000000000000.0)),
    PNB__ROW_INT("swa-start", AT(job.swa_start), "EPOCH",
                 "The mean of the weights after this epoch and each behind it is written as "
                 "checkpoints/swa when the run is done (PCME++: 17); 0 is off",
                 PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_REAL("ema-decay", AT(job.ema_decay), "D",
                  "A moving mean of the weights, m <- D m + (1 - D) w after every step, is written "
                  "as checkpoints/ema when the run is done; 0 is off",
                  PNB__RANGE(0, 1)),
    PNB__ROW_CHOICE("precision", AT(precision), "NAME",
                    "fp32|amp|amp_bf16|amp_bfloat16|bf16|fp16|pure_bf16|pure_fp16",
                    "Arithmetic: fp32, or amp_bf16 (amp_bfloat16), where products with the blocks' "
                    "matrices round both factors to bfloat16 and sum in floats, and values between "
                    "them are kept in half the memory; weights, their gradients, optimiser, heads "
                    "and losses are floats in both",
                    .fallback = "fp32"),
    PNB__ROW_FILE("logs", AT(job.logs), "DIR", "Folder of runs", .fallback = "./logs",
                  .group = "Run", .writes = "/"),
    PNB__ROW_TEXT("name", AT(job.name), "RUN",
                  "Name of the run's folder; made from date, model, rate and batch by default"),
    PNB__ROW_FILE("resume", AT(job.resume), "latest|DIR",
                  "Continue from the newest checkpoint of the run, or from one"),
    PNB__ROW_INT("log-every-n-steps", AT(job.log_every_n_steps), "N", "Steps between two log lines",
                 PNB__RANGE(1, 1000000000.0)),
    PNB__ROW_INT("val-frequency", AT(job.val_frequency), "N",
                 "Epochs between validations; 0 is only at the end", PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_INT("val-every-n-steps", AT(job.val_every_n_steps), "N",
                 "Steps between validations; 0 goes by epochs", PNB__RANGE(0, 1000000000000.0)),
    PNB__ROW_INT(
        "save-frequency", AT(job.save_frequency), "N",
        "Every so many epochs a checkpoint is written and stays; 0 is only at the end. Without "
        "it each epoch's replaces the one before, and the last and the best stay",
        PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_INT(
        "save-every-n-steps", AT(job.save_every_n_steps), "N",
        "Steps between checkpoints, each of which replaces the one before; 0 goes by epochs",
        PNB__RANGE(0, 1000000000000.0)),
    PNB__ROW_FLAG("delete-previous-checkpoint", AT(job.delete_previous_checkpoint),
                  "With --save-frequency too, keep only the newest checkpoint and the best"),
    PNB__ROW_FLAG(
        "save-most-recent", AT(job.save_most_recent),
        "With --save-frequency too, a checkpoint after every epoch; those it does not ask for "
        "make room for the next. Without it this is so anyway"),
    PNB__ROW_FLAG(
        "save-best-unc", AT(job.save_best_unc),
        "Keep checkpoints/epoch_best_unc, where uncertainty foretells failed retrieval best"),
    PNB__ROW_TEXT("report-to", AT(report_to), "WHERE",
                  "tensorboard writes event files to LOGS/RUN/tensorboard"),
    PNB__ROW_FILE("imagenet-val", AT(imagenet_val), "WHAT",
                  "Pictures with classes, as `penumbra classify --images` reads data sets, to be "
                  "classified by the names of their classes between epochs",
                  .group = "Measured during training"),
    PNB__ROW_INT(
        "zeroshot-frequency", AT(zeroshot_frequency), "N",
        "Epochs between two such classifications, and at the end; 0 is never. 2 by default",
        PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_FILE("zeroshot-classnames", AT(zeroshot_classnames), "FILE|A,B,C",
                  "Names of the classes, as --classnames of classify"),
    PNB__ROW_FILE("zeroshot-templates", AT(zeroshot_templates), "FILE|openai|simple|none",
                  "Prompts around them, as --templates of classify"),
    PNB__ROW_TEXT("zeroshot-split", AT(zeroshot_split), "NAME",
                  "Split of a set that has several; test by default"),
    PNB__ROW_INT("retrieval-frequency", AT(retrieval_frequency), "N",
                 "Epochs between two retrievals among all pictures and captions of --val-data, as "
                 "`penumbra eval retrieval` ranks them, and at the end; 0 is only there",
                 PNB__RANGE(0, 1000000000.0)),
    PNB__ROW_TEXT("best-by", AT(job.best_by), "FIGURE",
                  "What checkpoints/best is best by: val_loss, i2t_r1, zeroshot_top1, "
                  "retrieval_t2i_r5, ... as results.jsonl names them; val_loss by default"),
    PNB__ROW_FILE("coco-test", AT(coco_test), "DIR", "Refused, with what to give in its place"),
};
#undef AT

/* What --opt, --batch-size and --save-frequency are without them is told behind the words: others
 * speak too. */
static void defaults(void *args)
{
    pnb__train_args *a = args;
    *a = (pnb__train_args){.job = pnb__train_recipe_of(a),
                           .inclusion_alpha_occ = NAN,
                           .distill_weight = NAN,
                           .zeroshot_frequency = PNB__INT_UNSET,
                           .retrieval_frequency = PNB__INT_UNSET};
    a->job.optim.kind = PNB_N_OPTIM_KINDS;
    a->job.save_frequency = -1;
    a->job.batch_size = 0;
    a->job.save_most_recent = false;
}

/* The rows of a named recipe; small's are what every run has anyway. */
static const pnb__preset *recipe_rows(const void *args, size_t *n)
{
    const pnb__train_args *a = args;
    const pnb__train_recipe *r = pnb__train_recipe_find(a->recipe);
    if (r == NULL || strcmp(r->name, "small") == 0)
        return NULL;
    *n = r->n_rows;
    return r->rows;
}

static pnb_status show_recipe(pnb__app *app, const char *name)
{
    const pnb__train_recipe *r = pnb__train_recipe_find(name);
    if (r == NULL)
        return pnb__usage(app,
                          "--recipe %s goes by the objective and has no rows of its own; "
                          "prolip-pretrain has those of ProLIP",
                          name);
    return pnb__train_recipe_show(r, app->out, &app->err);
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    pnb__train_args *a = args;
    pnb_train_opts *o = &a->job;
    pnb__train_evaluators evaluators = {0};
    char *model = NULL;
    pnb_status status;
    if (a->show)
        return show_recipe(app, a->recipe);
    const pnb__train_recipe *recipe = pnb__train_recipe_find(a->recipe);
    if (recipe != NULL && recipe->goes_on && a->pretrained == NULL && o->resume == NULL)
        return pnb__usage(app, "--recipe %s goes on from a model: give --pretrained", a->recipe);
    PNB_TRY(pnb__train_fill(app, a));
    o->ranks = app->ranks;
    pnb_peers_set_timeout(app->ranks, (double)a->rank_timeout);
    PNB_TRY(
        pnb__model_path(app, a->pretrained != NULL ? a->pretrained : o->model, &model, &app->err));
    o->model = model;
    PNB_TRY(pnb__train_check_companions(app, a));
    PNB_TRY(pnb__train_evaluators_open(&evaluators, app, a));
    status = pnb__train_run(app, o, r);
done:
    pnb__train_evaluators_reset(&evaluators);
    pnb__train_args_reset(a);
    pnb__free(model);
    return status;
}

const pnb__command pnb__cmd_train = {
    .name = "train",
    .summary = "train a ProLIP model on pictures and captions",
    .about =
        "Writes LOGS/RUN with params.txt, out.log, results.jsonl and checkpoints/, each checkpoint "
        "a model directory that every other command opens. Ctrl-C writes a checkpoint and exits "
        "with 130; --resume latest goes on from there, in the middle of an epoch too, and ends in "
        "the same bits as an uninterrupted run with the same number of threads. A checkpoint is "
        "written after every epoch and replaces the one before, which goes when the new one is "
        "whole; checkpoints/latest names it, checkpoints/best the one of the lowest val_loss, "
        "which stays. --save-frequency N keeps every N-th epoch's too. An epoch of tar shards "
        "rounds up to whole steps, as in open_clip; one of tables and folders rounds down.\n\n"
        "The small recipe is for minutes on a CPU: the bias follows the batch, masked captions "
        "lose tokens instead of getting mask tokens. The published recipe is the paper's. In both "
        "a "
        "new model reads a caption's log-variance from its projected mean, as released models do: "
        "[UNC], which --override '{\"text_uncertainty_source\":\"unc_token\"}' asks for, did not "
        "learn the order of general and exact captions in short trainings.\n\n"
        "Named recipes stand on the published one and below the config file, the environment and "
        "the command line: --recipe prolip-pretrain is ProLIP on DataComp 1B, prolip-from-siglip "
        "its start from SigLIP, longprolip goes on with captions of 256 tokens, finetune-coco with "
        "COCO's, finetune-lora by factors alone; distill-clip learns from a frozen teacher; "
        "pcme-coco and "
        "pcme-cub are PCME's trainings. --show prints one with the source of "
        "every value and what of it was tried; the "
        "same files are installed under share/penumbra/recipes.\n\n"
        "results.jsonl has one object a line. Of kind \"train\" every so many steps: step, epoch, "
        "samples, loss (total), one field for each weighted term (ppcl, inclusion, ...), lr, "
        "logit_scale, logit_bias, grad_norm, data_s and batch_s (seconds), samples_per_s, "
        "image_uncertainty and text_uncertainty (mean traces). Of kind \"eval\" after each "
        "validation: val_samples, val_loss and its terms (means over all pairs, the last "
        "incomplete "
        "batch too), img_inclusion and txt_inclusion (the masked terms, over the first "
        "--drop-ratio "
        "of the set with the same masks each time; no part of val_loss), i2t_r1 and t2i_r1 on the "
        "whole set, "
        "batch_i2t_r1 and batch_t2i_r1 in a batch, the uncertainties, and i2t_unc_r and t2i_unc_r: "
        "the correlation of a bin's number with its R@1 over ten bins of queries by uncertainty "
        "(null where it does not exist). --save-best-unc keeps the checkpoint with the most "
        "negative i2t_unc_r; --report-to tensorboard writes the same numbers as event files.\n\n"
        "Between epochs --imagenet-val classifies pictures by the names of their classes "
        "(zeroshot_top1, zeroshot_top5, zeroshot_class_mean) and --retrieval-frequency ranks all "
        "captions of --val-data (retrieval_i2t_r1 to retrieval_t2i_r10), by the code of `classify` "
        "and `eval retrieval`: what these find for the checkpoint of the step. --best-by makes any "
        "of the figures the one that checkpoints/best goes by. Ctrl-C waits for a measurement that "
        "has begun.\n\n"
        "An option that is of use with another one alone, as --lr-gamma with --lr-scheduler "
        "multistep, "
        "is refused without it on the command line; recipes, a config file and the environment may "
        "hold it.\n\n"
        "--lora-rank trains factors of chosen matrices in place of the weights (LoRA); --model "
        "names the base, in a resumed run too. Checkpoints are folders with adapter_config.json "
        "and "
        "adapter_model.safetensors, as peft names them, which `penumbra convert BASE --lora DIR "
        "--out MODEL` makes a model of.\n\n"
        "Started by mpirun, srun or torchrun the processes train one model: each reads its share "
        "of "
        "the samples, the loss is that of the whole batch, and rank 0 writes. With --global-batch "
        "the training is the same whatever the number of processes, also of a resumed run. Ctrl-C "
        "on any of them ends all with a checkpoint; what fails on one ends all with its number.",
    .examples =
        "penumbra train --train-data shapes/train --val-data shapes/val --name first --epochs 20\n"
        "penumbra train --train-data 'set/{00000..00099}.tar' --model ViT-B-16 --recipe published\n"
        "penumbra train --recipe finetune-coco --show\n"
        "penumbra train --train-data shapes/train --name first --resume latest\n"
        "mpirun -n 4 penumbra train --train-data shapes/train --global-batch 256 --batch-size 32",
    .defaults = defaults,
    .presets = recipe_rows,
    .joins = true,
    PNB__RUNS(options, pnb__train_args, run)};
