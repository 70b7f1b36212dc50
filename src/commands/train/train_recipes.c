/* Recipes by name: options that the papers' trainings, or what was tried here, had.
 *
 * A recipe stands below what the environment, the config file and the command line say. Each row
 * has where it is from; what of a whole recipe was run here is in `tried`. `--show` writes a recipe
 * in the form of a config file, and that is what is installed under share/penumbra/recipes. */
#include "commands/train/train_recipes.h"

#include <string.h>

#include "base/base.h"

#define ROWS(rows) rows, PNB_COUNT(rows)

static const pnb__preset small[] = {
    {"model", "tiny", "trains in minutes on a CPU"},
    {"batch-size", "128", "docs/numerics-training.md"},
    {"opt", "adamw", "as the paper"},
    {"lr", "1e-3", "a small model takes, and needs, larger steps"},
    {"wd", "0.1", "docs/numerics-training.md"},
    {"grad-clip-norm", "1", "docs/numerics-training.md"},
    {"warmup", "40", "of hundreds of steps, not of hundreds of thousands"},
    {"lr-min-ratio", "0.02", "at 0 the last steps do nothing"},
    {"inclusion-alpha", "1e-4", "docs/numerics-training.md"},
    {"inclusion-eps", "-10", "recommended by ProLIP, appendix B.1"},
    {"text-mask", "delete", "a shorter caption is one that people write"},
    {"augment", "small", "zoom, shift, turns, gain"},
    {"template-share", "0.3", "names of classes become captions"},
};

/* ProLIP, appendix B.1, but for what says another place. */
static const pnb__preset prolip_pretrain[] = {
    {"model", "ViT-B-16", "section 4.1"},
    {"precision", "amp_bf16", "section 4: bfloat16"},
    {"batch-size", "512", "of each of 32 GPUs"},
    {"accum-freq", "32", "one process in place of 32: 16,384 pairs a step"},
    {"opt", "adamw", "appendix B.1"},
    {"lr", "5e-4", "appendix B.1"},
    {"beta1", "0.9", "appendix B.1"},
    {"beta2", "0.95", "appendix B.1"},
    {"eps", "1e-6", "open_clip's for ViTs"},
    {"wd", "0.2", "appendix B.1"},
    {"warmup", "10000", "appendix B.1"},
    {"lr-scheduler", "cosine", "appendix B.1"},
    {"lr-min-ratio", "0", "open_clip's cosine"},
    {"augment", "published", "scaling 0.8 to 1, colour jitter, grey"},
    {"drop-ratio", "0.125", "12.5% of the pairs"},
    {"drop-prob", "0.75", "75% of their tokens"},
    {"mask-keep", "0.25", "the paper drops 75% of the patches; its code keeps them"},
    {"text-mask", "replace", "section 4: [MASK]"},
    {"inclusion-alpha", "1e-7", "appendix B.1"},
    {"inclusion-alpha-occ", "1e-3", "appendix B.1"},
    {"inclusion-scale", "1000", "appendix B.1; 10 is recommended with eps -10"},
    {"inclusion-eps", "-20", "appendix B.1"},
    {"vib-beta", "1e-4", "section 3.4"},
    {"train-num-samples", "128000000", "an epoch; 1.28 billion seen"},
    {"epochs", "10", "1.28 billion seen; 100 of them are 12.8 billion"},
    {"dataset-resampled", "true", "open_clip's way with shards of this number"},
};

static const pnb__preset prolip_from_siglip[] = {
    {"precision", "amp_bf16", "as prolip-pretrain"},
    {"batch-size", "512", "as prolip-pretrain"},
    {"accum-freq", "32", "as prolip-pretrain"},
    {"opt", "adamw", "as prolip-pretrain"},
    {"lr", "5e-4", "as prolip-pretrain: the paper names no other"},
    {"beta2", "0.95", "as prolip-pretrain"},
    {"wd", "0.2", "as prolip-pretrain"},
    {"warmup", "10000", "as prolip-pretrain"},
    {"lr-min-ratio", "0", "as prolip-pretrain"},
    {"image-lr-ratio", "0.1", "ours: the towers are trained already"},
    {"text-lr-ratio", "0.1", "ours"},
    {"head-lr-ratio", "10", "ours: [UNC] and its projections are new, at the whole rate"},
    {"augment", "published", "as prolip-pretrain"},
    {"inclusion-alpha", "1e-7", "appendix B.1"},
    {"inclusion-scale", "10", "appendix B.1 recommends it"},
    {"inclusion-eps", "-10", "appendix B.1 recommends it"},
    {"train-num-samples", "128000000", "an epoch; 1.28 billion seen (table C.2)"},
    {"epochs", "10", "table C.2"},
};

static const pnb__preset longprolip[] = {
    {"force-context-length", "256", "released LongProLIP models"},
    {"force-resize-pos-emb", "true", "20 first and 2 last positions kept, the middle stretched"},
    {"precision", "amp_bf16", "as prolip-pretrain"},
    {"batch-size", "512", "as prolip-pretrain"},
    {"accum-freq", "32", "as prolip-pretrain"},
    {"lr", "5e-5", "ours: a tenth of the pretraining's"},
    {"beta2", "0.95", "as prolip-pretrain"},
    {"warmup", "500", "ours: of 7,800 steps"},
    {"lr-min-ratio", "0", "as prolip-pretrain"},
    {"inclusion-scale", "10", "LongProLIP's script"},
    {"inclusion-eps", "-100", "LongProLIP's script"},
    {"train-num-samples", "128000000", "SHD128M"},
    {"epochs", "1", "SHD128M"},
};

static const pnb__preset finetune_coco[] = {
    {"batch-size", "128", "PCME++ on COCO"},
    {"lr", "1e-5", "ours: a fiftieth of the pretraining's"},
    {"beta2", "0.95", "as prolip-pretrain"},
    {"wd", "0.2", "as prolip-pretrain"},
    {"warmup", "500", "ours: of 22,000 steps"},
    {"lr-min-ratio", "0", "as prolip-pretrain"},
    {"layer-lr-decay", "0.7", "PCME++ on COCO"},
    {"captions", "any", "five captions a picture"},
    {"augment", "published", "as prolip-pretrain"},
    {"inclusion-scale", "10", "ProLIP, appendix B.1 recommends it"},
    {"inclusion-eps", "-10", "ProLIP, appendix B.1 recommends it"},
    {"ema-decay", "0.999", "ours"},
    {"epochs", "25", "PCME++ on COCO"},
};

static const pnb__preset finetune_lora[] = {
    {"lora-rank", "8", "Hu et al. 2021, section 7.2: small ranks do as well as large ones"},
    {"lora-alpha", "16", "ours: factors count twice"},
    {"lora-targets", "attn", "Hu et al. 2021, section 4.2: the matrices of attention alone"},
    {"batch-size", "128", "as finetune-coco"},
    {"lr", "1e-4", "ours: ten times finetune-coco's, for factors that begin at 0"},
    {"beta2", "0.95", "as prolip-pretrain"},
    {"wd", "0", "ours: 0 is the base"},
    {"warmup", "500", "as finetune-coco"},
    {"lr-min-ratio", "0", "as prolip-pretrain"},
    {"captions", "any", "five captions a picture"},
    {"augment", "published", "as prolip-pretrain"},
    {"inclusion-scale", "10", "as finetune-coco"},
    {"inclusion-eps", "-10", "as finetune-coco"},
    {"epochs", "5", "ours"},
};

static const pnb__preset distill_clip[] = {
    {"objective", "clip", "open_clip adds the teacher's loss to its own"},
    {"distill-loss", "contrastive", "DistillClipLoss of open_clip"},
    {"distill-weight", "1", "DistillClipLoss of open_clip: both losses count the same"},
    {"lr", "5e-4", "open_clip's default"},
    {"beta1", "0.9", "open_clip's default"},
    {"beta2", "0.98", "open_clip's default for ViTs"},
    {"eps", "1e-6", "open_clip's default for ViTs"},
    {"wd", "0.2", "open_clip's default"},
    {"warmup", "10000", "open_clip's default"},
    {"lr-scheduler", "cosine", "open_clip's default"},
    {"lr-min-ratio", "0", "open_clip's cosine"},
    {"epochs", "32", "open_clip's default"},
};

static const pnb__preset pcme_coco[] = {
    {"objective", "pcme", "section 3"},
    {"model", "pcme-coco", "section 4.1: ResNet-152, D 1024, a = b = 15 at the start"},
    {"batch-size", "128", "its code's configuration"},
    {"opt", "adamp", "section 4.1"},
    {"lr", "2e-4", "its code's configuration"},
    {"wd", "0", "its code's configuration"},
    {"lr-scheduler", "cosine", "section 4.1; anew in each phase"},
    {"grad-clip-norm", "2", "its code's configuration"},
    {"head-epochs", "30", "section 4.1: heads alone"},
    {"epochs", "60", "30 more of all weights"},
    {"trunk-lr-ratio", "0.1", "its code's configuration"},
    {"samples", "7", "section 3.2"},
    {"pcme-kl-beta", "1e-5", "its code's configuration"},
    {"word-drop", "0.1", "section 4.1"},
    {"captions", "any", "five captions a picture"},
};

static const pnb__preset pcme_cub[] = {
    {"objective", "pcme", "section 3"},
    {"model", "pcme-cub", "section 4.1: ResNet-50, D 512, a = b = 5 at the start"},
    {"batch-by-class", "true", "pictures of one class are no strangers to each other"},
    {"batch-size", "128", "its code's configuration"},
    {"opt", "adamp", "section 4.1"},
    {"lr", "1e-4", "its code's configuration"},
    {"wd", "0", "its code's configuration"},
    {"lr-scheduler", "cosine", "section 4.1; anew in each phase"},
    {"grad-clip-norm", "2", "its code's configuration"},
    {"head-epochs", "10", "its code's configuration: heads alone"},
    {"epochs", "60", "50 more of all weights"},
    {"trunk-lr-ratio", "0.1", "its code's configuration"},
    {"samples", "7", "section 3.2"},
    {"pcme-kl-beta", "1e-3", "its code's configuration"},
    {"uniformity-lambda", "10", "its code's configuration"},
    {"word-drop", "0.1", "section 4.1"},
    {"captions", "any", "ten captions a picture"},
};

static const pnb__train_recipe recipes[] = {
    {"prolip-pretrain", "ProLIP from nothing on DataComp 1B",
     "Chun et al. 2025, Probabilistic Language-Image Pre-Training, sections 3 and 4, appendix B.1",
     "each value against the paper's text; losses and gradients against the released code; the "
     "training itself needs 32 GPUs and was not run",
     "penumbra train --recipe prolip-pretrain --train-data 'datacomp/{00000..12895}.tar'",
     ROWS(prolip_pretrain), PNB_OBJECTIVE_PROLIP, false},
    {"prolip-from-siglip", "ProLIP that starts from SigLIP's weights",
     "the same paper, section 4.1 and table C.2, which names the samples seen and no rates",
     "the conversion keeps SigLIP's weights and trains on; the training at this size was not run",
     "penumbra convert SIGLIP --to prolip --out start && penumbra train --recipe "
     "prolip-from-siglip --pretrained start --train-data SHARDS",
     ROWS(prolip_from_siglip), PNB_OBJECTIVE_PROLIP, true},
    {"longprolip", "a ProLIP of 64 tokens goes on with 256",
     "the released LongProLIP models' names and configurations; rates are ours",
     "positions are stretched as the reference's; the training at this size was not run",
     "penumbra train --recipe longprolip --pretrained PROLIP --train-data LONG_CAPTIONS",
     ROWS(longprolip), PNB_OBJECTIVE_PROLIP, true},
    {"finetune-coco", "a pretrained ProLIP goes on with COCO's captions",
     "PCME++'s training on COCO (Chun 2024) for batch, epochs and decay by layers; rates are ours",
     "the options together on the built-in shapes; COCO itself was not there",
     "penumbra train --recipe finetune-coco --pretrained PROLIP --train-data "
     "'dataset_coco.json#images=coco' --val-data 'dataset_coco.json#split=val,images=coco'",
     ROWS(finetune_coco), PNB_OBJECTIVE_PROLIP, true},
    {"finetune-lora", "factors of rank 8 beside a pretrained ProLIP's attention",
     "Hu et al. 2021, LoRA, for what is trained; the rest is finetune-coco's or ours",
     "the options together on the built-in shapes; memory of one step of a ViT-B/16 in "
     "docs/numerics-training.md; no figures on COCO",
     "penumbra train --recipe finetune-lora --pretrained PROLIP --train-data "
     "'dataset_coco.json#images=coco' && penumbra convert PROLIP --lora CHECKPOINT --out MODEL",
     ROWS(finetune_lora), PNB_OBJECTIVE_PROLIP, true},
    {"distill-clip", "a student learns InfoNCE and a frozen teacher's matches",
     "open_clip's DistillClipLoss and the defaults of its command line",
     "the options together on the built-in shapes, with a teacher of the same kind; the loss "
     "against "
     "plain loops; not run at size",
     "penumbra embed -m TEACHER --images TRAIN -o v.safetensors && penumbra embed -m TEACHER "
     "--texts "
     "TRAIN -o t.safetensors && penumbra train --recipe distill-clip --distill-images "
     "v.safetensors "
     "--distill-texts t.safetensors --train-data TRAIN",
     ROWS(distill_clip), PNB_OBJECTIVE_CLIP, false},
    {"pcme-coco", "PCME on COCO's captions, from ImageNet's ResNet-152 and GloVe",
     "Chun et al. 2021, Probabilistic Embeddings for Cross-Modal Retrieval, and its code",
     "the options together on the built-in shapes; losses and gradients against the released code; "
     "COCO itself was not there",
     "penumbra train --recipe pcme-coco --train-data "
     "'dataset_coco.json#split=train+restval,images=coco' --val-data "
     "'dataset_coco.json#split=val,images=coco' --image-trunk resnet152.pth --word-vectors "
     "glove.840B.300d.txt",
     ROWS(pcme_coco), PNB_OBJECTIVE_PCME, false},
    {"pcme-cub", "PCME on CUB Captions, from ImageNet's ResNet-50 and GloVe",
     "Chun et al. 2021, Probabilistic Embeddings for Cross-Modal Retrieval, and its code",
     "the options together on pictures of few classes; CUB itself was not there",
     "penumbra train --recipe pcme-cub --train-data "
     "'CUB/images#captions=CUB/text_c10,classes=CUB/trainvalclasses.txt' --image-trunk "
     "resnet50.pth --word-vectors "
     "glove.840B.300d.txt",
     ROWS(pcme_cub), PNB_OBJECTIVE_PCME, false},
    {"small", "what train does without --recipe: minutes on a CPU",
     "docs/numerics-training.md, where it differs from the paper and what that brought",
     "over seeds on the built-in sets: bench/results",
     "penumbra train --train-data shapes/train --val-data shapes/val", ROWS(small),
     PNB_OBJECTIVE_PROLIP, false},
};

const pnb__train_recipe *pnb__train_recipe_find(const char *name)
{
    for (size_t i = 0; name != NULL && i < PNB_COUNT(recipes); i++)
        if (strcmp(recipes[i].name, name) == 0)
            return &recipes[i];
    return NULL;
}

pnb_status pnb__train_recipe_show(const pnb__train_recipe *r, FILE *out, pnb_error *err)
{
    fprintf(out, "# %s: %s\n#\n# source  %s\n# tried   %s\n# use     %s\n\n[train]\n", r->name,
            r->meaning, r->source, r->tried, r->use);
    for (size_t i = 0; i < r->n_rows; i++)
        fprintf(out, "# %s\n%s = %s\n", r->rows[i].where, r->rows[i].name, r->rows[i].value);
    if (fflush(out) != 0 || ferror(out))
        return pnb__fail_errno(err, "cannot write", "standard output");
    return PNB_OK;
}
