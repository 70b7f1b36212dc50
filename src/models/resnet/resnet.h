/* ResNet as an image trunk: pixels to a map of features and its average. A family of models
 * declares it beside its own head, builds it in its image tower, and names its arrays in files by
 * one rule, since the names behind its prefix are torchvision's (conv1.weight, bn1.running_mean,
 * layer1.0.downsample.0.weight, ..). With the prefix "visual.cnn." the row of PCME's files is
 *     {"visual.cnn.*", "img_enc.cnn.*", PNB__KEY_WHOLE}
 * Counters of batches (num_batches_tracked) are passed over in any file. */
#ifndef PNB_MODELS_RESNET_RESNET_H
#define PNB_MODELS_RESNET_RESNET_H

#include "models/tower.h"
#include "nn/residual.h"

enum { PNB__RESNET_STAGES = 4, PNB__RESNET_MIN_PIXELS = 32 };

/* Small enough to be a part of a family's own configuration (pnb__config_set_own). */
typedef struct pnb__resnet_config {
    size_t base;                       /* channels of the stem: 64; a narrow one has fewer */
    size_t layers[PNB__RESNET_STAGES]; /* blocks a stage */
    bool bottleneck;
    bool frozen; /* batch norm by the running buffers while weights are trained */
} pnb__resnet_config;

/* "resnet18", 34, 50, 101 or 152. Errors  ARG (another name; the text lists these) */
pnb_status pnb__resnet_config_named(pnb__resnet_config *out, const char *name, pnb_error *err);
/* Errors  ARG (a width or a number of blocks of 0 or beyond the limits, pictures below 32 pixels)
 */
pnb_status pnb__resnet_config_check(const pnb__resnet_config *c, size_t height, size_t width,
                                    pnb_error *err);
size_t pnb__resnet_width(const pnb__resnet_config *c); /* channels of the map: 512 or 2048 */

typedef struct pnb__resnet {
    pnb__conv_norm stem;
    pnb__residual *blocks;
    size_t n_blocks;
} pnb__resnet;

/* Declares its parameters under names that begin with `prefix`; `out` gets them, with blocks from
 * w->arena. Called twice as pnb__declare wants it. Initialised as torchvision: convolutions normal
 * by fan-out (He et al. 2015), batch norm 1 and 0. */
void pnb__resnet_declare(pnb__weights *w, pnb__resnet *out, const char *prefix,
                         const pnb__resnet_config *c);

/* What a trunk ends in. */
typedef struct pnb__resnet_out {
    pnb__tensor *map;    /* (B,H/32,W/32,C), rounded up */
    pnb__tensor *pooled; /* (B,C): the average over places */
} pnb__resnet_out;

/* pixels (B,3,H,W), normalised. NULL in, NULL out. */
pnb__resnet_out pnb__resnet_build(const pnb__resnet *r, const pnb__resnet_config *c, pnb__graph *g,
                                  pnb__tensor *pixels);

#endif
