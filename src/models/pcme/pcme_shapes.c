/* PCME's configuration from the arrays of a released file (pcme_coco.pth), which comes alone: the
 * code that made it has the settings in a yaml file elsewhere.
 *
 *     img_enc.cnn.conv1.weight (base,3,7,7)      layerS.N.*: blocks of stage S; conv3: bottlenecks
 *     img_enc.fc.weight (D,C)                    txt_enc.embed.weight (V,word_dim)
 *     img_enc.pie_net.attention.w_2 (K,C/2)      there with attention
 *     img_enc.uncertain_net.fc.weight            there with uncertainty; txt_enc's always is
 * Pictures of 224 and texts of 64 tokens are what the shapes cannot tell: the released crop, and
 * more than any caption of COCO or CUB. */
#include <stdio.h>

#include "models/pcme/pcme_heads.h"

enum { MOST_BLOCKS = 1024, STAGES = 4 };

static size_t dim_of(const pnb__weight_file *f, const char *name, int axis)
{
    const pnb_array_view *a = pnb__weight_file_lookup(f, name);
    return a != NULL && axis < a->n_dims ? (size_t)a->shape[axis] : 0;
}

static bool has(const pnb__weight_file *f, const char *name)
{
    return pnb__weight_file_lookup(f, name) != NULL;
}

/* Blocks are numbered from 0 without a gap. */
static json_int_t count_blocks(const pnb__weight_file *f, int stage)
{
    char key[64];
    json_int_t n = 0;
    for (; n < MOST_BLOCKS; n++) {
        snprintf(key, sizeof key, "img_enc.cnn.layer%d.%lld.conv1.weight", stage + 1, n);
        if (!has(f, key))
            break;
    }
    return n;
}

json_t *pnb__pcme_config_of(const pnb__weight_file *f)
{
    json_int_t n[STAGES];
    size_t k = dim_of(f, "img_enc.pie_net.attention.w_2.weight", 0);
    if (!has(f, "img_enc.cnn.conv1.weight") || !has(f, "txt_enc.embed.weight"))
        return NULL;
    for (int s = 0; s < STAGES; s++)
        n[s] = count_blocks(f, s);
    return json_pack(
        "{s:s, s:I, s:I, s:b, s:b, s:{s:I, s:[I,I,I,I], s:b, s:i}, s:{s:I, s:I, s:i}}",
        "model_type", "pcme", "embed_dim", (json_int_t)dim_of(f, "img_enc.fc.weight", 0),
        "n_embeddings", (json_int_t)PNB_MAX(k, (size_t)1), "attention", (int)(k > 0), "uncertainty",
        (int)has(f, "img_enc.uncertain_net.fc.weight"), "vision_cfg", "base",
        (json_int_t)dim_of(f, "img_enc.cnn.conv1.weight", 0), "layers", n[0], n[1], n[2], n[3],
        "bottleneck", (int)has(f, "img_enc.cnn.layer1.0.conv3.weight"), "image_size", 224,
        "text_cfg", "vocab_size", (json_int_t)dim_of(f, "txt_enc.embed.weight", 0), "word_dim",
        (json_int_t)dim_of(f, "txt_enc.embed.weight", 1), "context_length", 64);
}
