/* The built-in configurations: those of the released ProLIP models (prolip/model_configs) and one
 * for learning. init_logit_scale is log 10, the value of the reference's training runs (SPEC:
 * a=10). New models take a caption's log-variance from its projected mean, as released ones do;
 * [UNC], which the paper describes, did not learn the order of general and exact captions in short
 * trainings (docs/numerics.md#prolip-text-log-variance). */
#include "models/config/builtin.h"

#include <stdlib.h>
#include <string.h>

/* The text section of the models trained on DataComp-1B: a T5 vocabulary of 32,100 pieces with
 * SigLIP's cleaning, both tokens appended, no mask, eps 1e-6 as in SigLIP's text tower. */
#define PNB__TEXT_PRETRAINED(WIDTH, HEADS, LAYERS, CONTEXT, EXTRA)                                 \
    "  \"text_cfg\": {\n"                                                                          \
    "    \"context_length\": " CONTEXT ", \"vocab_size\": 32100,\n"                                \
    "    \"hf_tokenizer_name\": \"timm/ViT-B-16-SigLIP\",\n"                                       \
    "    \"tokenizer_kwargs\": {\"clean\": \"canonicalize\"},\n"                                   \
    "    \"width\": " WIDTH ", \"heads\": " HEADS ", \"layers\": " LAYERS ",\n" EXTRA              \
    "    \"no_causal_mask\": true, \"proj_bias\": true, \"pool_type\": \"last\",\n"                \
    "    \"embed_cls\": true, \"embed_unc\": true, \"norm_kwargs\": {\"eps\": 1e-06},\n"           \
    "    \"init_unc_bias\": -10\n"                                                                 \
    "  }"

#define PNB__TOP(EMBED, EXTRA)                                                                     \
    "{\n  \"embed_dim\": " EMBED ", \"init_logit_bias\": -10,\n"                                   \
    "  \"init_logit_scale\": 2.302585092994046," EXTRA                                             \
    "\n  \"text_uncertainty_source\": \"projected_mean\",\n"

static const char vit_b_16[] = PNB__TOP(
    "768",
    "") "  \"vision_cfg\": {\"image_size\": 224, \"layers\": 12, \"width\": 768, "
        "\"patch_size\": 16, \"embed_unc\": true, \"init_unc_bias\": -10},\n" PNB__TEXT_PRETRAINED(
            "768", "12", "12", "64", "") "\n}\n";

static const char vit_b_16_long[] = PNB__TOP(
    "768",
    "") "  \"vision_cfg\": {\"image_size\": 224, \"layers\": 12, \"width\": 768, "
        "\"patch_size\": 16, \"embed_unc\": true, \"init_unc_bias\": -10},\n" PNB__TEXT_PRETRAINED(
            "768", "12", "12", "256", "") "\n}\n";

static const char vit_l_16[] = PNB__TOP(
    "1024",
    "") "  \"vision_cfg\": {\"image_size\": 256, \"layers\": 24, \"width\": 1024, "
        "\"patch_size\": 16, \"embed_unc\": true, \"init_unc_bias\": -10},\n" PNB__TEXT_PRETRAINED(
            "1024", "16", "24", "64", "") "\n}\n";

static const char so400m_14[] =
    PNB__TOP("1152", "") "  \"vision_cfg\": {\"image_size\": 224, \"layers\": 27, \"width\": 1152, "
                         "\"head_width\": 72, \"patch_size\": 14, \"mlp_ratio\": 3.7362, "
                         "\"embed_unc\": true, \"init_unc_bias\": -10},\n" PNB__TEXT_PRETRAINED(
                             "1152", "16", "27", "64", "    \"mlp_ratio\": 3.7362,\n") "\n}\n";

/* The one of the family that speaks as CLIP does: 49,408 byte pairs, 77 tokens, QuickGELU. */
static const char vit_h_14[] = PNB__TOP(
    "1024",
    " \"quick_gelu\": true,") "  \"vision_cfg\": {\"image_size\": 224, \"layers\": 32, \"width\": "
                              "1280, \"head_width\": 80, "
                              "\"patch_size\": 14, \"embed_unc\": true, \"init_unc_bias\": -10},\n"
                              "  \"text_cfg\": {\n"
                              "    \"context_length\": 77, \"vocab_size\": 49408, \"width\": 1024, "
                              "\"heads\": 16,\n"
                              "    \"layers\": 24, \"no_causal_mask\": true, \"proj_bias\": true, "
                              "\"pool_type\": \"last\",\n"
                              "    \"embed_cls\": true, \"embed_unc\": true, \"init_unc_bias\": "
                              "-10\n  }\n}\n";

/* About a million weights: learns from a few thousand pictures in minutes on two cores. The biases
 * follow small batches and widths: -log(128) and -10 + log(768/128); the log-variance heads start
 * almost flat, at 0.03 of the reference's spread (docs/numerics-training.md#initial-values). */
static const char tiny[] =
    "{\n  \"embed_dim\": 128, \"init_logit_bias\": -4.852030263919617,\n"
    "  \"init_logit_scale\": 2.302585092994046,\n"
    "  \"text_uncertainty_source\": \"projected_mean\",\n"
    "  \"vision_cfg\": {\"image_size\": 48, \"layers\": 3, \"width\": 128, \"head_width\": 64, "
    "\"patch_size\": 8, \"embed_unc\": true, \"init_unc_bias\": -8.208240530771945, "
    "\"init_unc_std\": 0.00265},\n"
    "  \"text_cfg\": {\n"
    "    \"context_length\": 16, \"vocab_size\": 1500, \"width\": 128, \"heads\": 2,\n"
    "    \"layers\": 2, \"no_causal_mask\": true, \"proj_bias\": true, \"pool_type\": \"last\",\n"
    "    \"embed_cls\": true, \"embed_unc\": true, \"norm_kwargs\": {\"eps\": 1e-06},\n"
    "    \"init_unc_bias\": -8.208240530771945, \"init_unc_std\": 0.00265\n  }\n}\n";

/* PCME as released: ResNet-152 and words of 300 (config/coco/pcme_coco.yaml), a = b = 15; on CUB
 * ResNet-50, D 512 and 5. The vocabulary's size comes from the tokenizer. */
#define PNB__PCME(EMBED, LOG_AB, B, HEADS, TRUNK, WORDS)                                           \
    "{\n  \"model_type\": \"pcme\", \"embed_dim\": " EMBED ", \"init_logit_scale\": " LOG_AB ",\n" \
    "  \"init_logit_bias\": " B ", " HEADS ",\n  \"vision_cfg\": {" TRUNK "},\n"                   \
    "  \"text_cfg\": {\"vocab_size\": 11755, " WORDS "}\n}\n"
#define PNB__GAUSSIAN_HEADS "\"attention\": true, \"uncertainty\": true"
/* Deviations begin small: samples as far apart as those of sigma = 1 take a hundred steps to come
 * near each other (docs/numerics-training.md#pcme). */
#define PNB__SMALL_HEADS PNB__GAUSSIAN_HEADS ", \"init_log_std\": -3"
#define PNB__PVSE_HEADS "\"n_embeddings\": 2, \"attention\": true, \"uncertainty\": false"
#define PNB__VSE_HEADS "\"attention\": false, \"uncertainty\": false"
#define PNB__COCO_TRUNK "\"trunk\": \"resnet152\", \"image_size\": 224"
#define PNB__WORDS "\"word_dim\": 300, \"context_length\": 64"
/* Maps of 4 x 4 places: attention has something to choose from. */
#define PNB__NARROW_TRUNK                                                                          \
    "\"layers\": [1, 1, 1, 1], \"base\": 16, \"bottleneck\": false, \"image_size\": 64"
#define PNB__NARROW_WORDS "\"word_dim\": 64, \"context_length\": 24"

static const char pcme_coco[] =
    PNB__PCME("1024", "2.70805020110221", "15", PNB__GAUSSIAN_HEADS, PNB__COCO_TRUNK, PNB__WORDS);
static const char pcme_cub[] =
    PNB__PCME("512", "1.6094379124341003", "5", PNB__GAUSSIAN_HEADS,
              "\"trunk\": \"resnet50\", \"image_size\": 224", PNB__WORDS);
static const char pcme_tiny[] = PNB__PCME("128", "1.6094379124341003", "5", PNB__SMALL_HEADS,
                                          PNB__NARROW_TRUNK, PNB__NARROW_WORDS);
/* The heads over transformers, in the sizes of `tiny`: 36 patches, whose mean is the picture's own
 * vector as it is over a ResNet. */
static const char pcme_vit_tiny[] =
    "{\n  \"model_type\": \"pcme\", \"embed_dim\": 128, \"init_logit_scale\": "
    "1.6094379124341003,\n  \"init_logit_bias\": 5, " PNB__SMALL_HEADS ",\n"
    "  \"vision_cfg\": {\"image_size\": 48, \"patch_size\": 8, \"layers\": 3, \"width\": 128, "
    "\"head_width\": 64, \"pool_type\": \"avg\"},\n"
    "  \"text_cfg\": {\"vocab_size\": 11755, \"context_length\": 24, \"layers\": 2, "
    "\"width\": 128, \"heads\": 2}\n}\n";
static const char pvse_coco[] =
    PNB__PCME("1024", "0", "0", PNB__PVSE_HEADS, PNB__COCO_TRUNK, PNB__WORDS);
static const char pvse_tiny[] =
    PNB__PCME("128", "0", "0", PNB__PVSE_HEADS, PNB__NARROW_TRUNK, PNB__NARROW_WORDS);
static const char vse_coco[] =
    PNB__PCME("1024", "0", "0", PNB__VSE_HEADS, PNB__COCO_TRUNK, PNB__WORDS);
static const char vse_tiny[] =
    PNB__PCME("128", "0", "0", PNB__VSE_HEADS, PNB__NARROW_TRUNK, PNB__NARROW_WORDS);

/* PCME++ as released, whose folder has just these arguments; a = b = 5 where training begins. */
static const char pcmepp_vit_b_16[] =
    "{\n  \"embed_dim\": 512,\n"
    "  \"vision_cfg\": {\"image_size\": 224, \"layers\": 12, \"patch_size\": 16, "
    "\"unc_layers\": 2, \"width\": 768},\n"
    "  \"text_cfg\": {\"context_length\": 77, \"heads\": 8, \"layers\": 12, \"unc_layers\": 2, "
    "\"vocab_size\": 49408, \"width\": 512}\n}\n";

/* Its towers in the sizes of `tiny`: one block is shared, one stands twice. Tokenizers that are
 * trained here have their end token at 1, so texts are not read at the largest id. From variances
 * of 1 all means become alike before these are small (docs/numerics.md#pcmepp). */
#define PNB__SMALL_START "\"init_unc_bias\": -8.208240530771945, \"init_unc_std\": 0.00265"
static const char pcmepp_tiny[] =
    "{\n  \"embed_dim\": 128,\n"
    "  \"vision_cfg\": {\"image_size\": 48, \"layers\": 3, \"width\": 128, \"head_width\": 64, "
    "\"patch_size\": 8, \"unc_layers\": 1, " PNB__SMALL_START "},\n"
    "  \"text_cfg\": {\"context_length\": 16, \"vocab_size\": 1500, \"width\": 128, "
    "\"heads\": 2, \"layers\": 2,\n"
    "    \"unc_layers\": 1, " PNB__SMALL_START ",\n"
    "    \"pool_type\": \"eos\", \"eos_id\": 1}\n}\n";

/* Released ones by size, then the one for long captions, then the one to learn with. */
static const char *const names[] = {
    "ViT-B-16",    "ViT-L-16",  "SO400M-14", "ViT-H-14",  "ViT-B-16-long",
    "tiny",        "pcme-coco", "pcme-cub",  "pcme-tiny", "pcme-vit-tiny",
    "pvse-coco",   "pvse-tiny", "vse-coco",  "vse-tiny",  "pcmepp-ViT-B-16",
    "pcmepp-tiny", NULL};
static const char *const texts[] = {vit_b_16,      vit_l_16,      so400m_14,       vit_h_14,
                                    vit_b_16_long, tiny,          pcme_coco,       pcme_cub,
                                    pcme_tiny,     pcme_vit_tiny, pvse_coco,       pvse_tiny,
                                    vse_coco,      vse_tiny,      pcmepp_vit_b_16, pcmepp_tiny};

const char *const *pnb_model_config_names(void)
{
    return names;
}

const char *pnb_model_config_json(const char *name)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (name != NULL && strcmp(names[i], name) == 0)
            return texts[i];
    return NULL;
}

/* Keys of `from` replace those of `into`; objects are merged key by key, lists and values whole. */
static bool merge(json_t *into, json_t *from)
{
    const char *key;
    json_t *value;
    json_object_foreach(from, key, value)
    {
        json_t *old = json_object_get(into, key);
        bool fine = json_is_object(old) && json_is_object(value)
                        ? merge(old, value)
                        : json_object_set(into, key, value) == 0;
        if (!fine)
            return false;
    }
    return true;
}

/* A name that is built in comes first, so that a file called "tiny" does not change what the word
 * means; text that begins with a brace is a configuration itself. */
pnb_status pnb__config_json_load(json_t **out, const char *config, pnb_error *err)
{
    const char *text = pnb_model_config_json(config);
    if (text != NULL)
        return pnb__json_load_bytes(out, text, strlen(text), config, err);
    if (config[0] == '{')
        return pnb__json_load_bytes(out, config, strlen(config), "configuration", err);
    if (!pnb__path_is_file(config)) {
        const char *near = pnb__nearest_name(config, names, PNB_COUNT(texts));
        return pnb__fail(err, PNB_NOT_FOUND,
                         "\"%s\" is neither a file nor a built-in configuration%s%s%s", config,
                         near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return pnb__json_load_file(out, config, 0, err);
}

/* 17 digits bring every double back; sorted keys make equal configurations equal files. */
char *pnb__config_json_dump(const json_t *root)
{
    return json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
}

/* The projected mean, ProLIP's, needs a text tower as wide as the embedding. Overrides that rule it
 * out without naming a source mean the other one; a file or overrides that name one are taken at
 * their word. */
static bool settle_source(json_t *root, const json_t *over)
{
    static const char key[] = "text_uncertainty_source";
    const json_t *text = json_object_get(root, "text_cfg");
    json_int_t width = json_integer_value(json_object_get(text, "width"));
    if (!json_is_true(json_object_get(text, "embed_unc"))) /* log-variances of another family */
        return true;
    if (json_object_get(over, key) != NULL || json_object_get(over, "text_unc_source") != NULL ||
        width == json_integer_value(json_object_get(root, "embed_dim")))
        return true;
    return json_object_set_new(root, key, json_string("unc_token")) == 0;
}

pnb_status pnb_model_config_merge(const char *config, const char *overrides, char **out_json,
                                  pnb_error *err)
{
    json_t *root = NULL, *over = NULL;
    pnb_status status = PNB_OK;
    *out_json = NULL;
    PNB_TRY(pnb__config_json_load(&root, config, err));
    PNB_TRY(pnb__json_load_bytes(&over, overrides, strlen(overrides), "overrides", err));
    if (!json_is_object(over) || !json_is_object(root))
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "a configuration and its overrides must be objects"));
    bool ok = merge(root, over);
    if (ok && pnb_model_config_json(config) != NULL)
        ok = settle_source(root, over);
    if (!ok || (*out_json = pnb__config_json_dump(root)) == NULL)
        PNB_TRY(pnb__fail_nomem(err, 0));
done:
    json_decref(root);
    json_decref(over);
    return status;
}
