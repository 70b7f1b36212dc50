/* ResNet (He et al. 2016) as torchvision 0.14 has it, without its classifier.
 *
 *     stem     7x7/2 convolution, batch norm, ReLU, 3x3/2 maximum
 *     stage s  layers[s] blocks of width base * 2^s; the first of stages 2 to 4 halves the picture
 * A basic block ends in its width, a bottleneck in four times it. The first block of a stage has a
 * 1x1 shortcut where stride or width change, which in a bottleneck they do in stage 1 too. */
#include "models/resnet/resnet.h"

#include <math.h>
#include <string.h>

enum { MAX_BASE = 1024, MAX_LAYERS = 128, BOTTLENECK = 4 };

/* Table 1 of the paper; 34 and 50 have the same numbers of different blocks. */
static const struct {
    const char *name;
    size_t layers[PNB__RESNET_STAGES];
    bool bottleneck;
} known[] = {
    {"resnet18", {2, 2, 2, 2}, false},  {"resnet34", {3, 4, 6, 3}, false},
    {"resnet50", {3, 4, 6, 3}, true},   {"resnet101", {3, 4, 23, 3}, true},
    {"resnet152", {3, 8, 36, 3}, true},
};

pnb_status pnb__resnet_config_named(pnb__resnet_config *out, const char *name, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(known); i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        *out = (pnb__resnet_config){.base = 64, .bottleneck = known[i].bottleneck};
        memcpy(out->layers, known[i].layers, sizeof out->layers);
        return PNB_OK;
    }
    return pnb__fail(err, PNB_ARG,
                     "%s is no image trunk; resnet18, resnet34, resnet50, resnet101 and resnet152 "
                     "are",
                     name);
}

pnb_status pnb__resnet_config_check(const pnb__resnet_config *c, size_t height, size_t width,
                                    pnb_error *err)
{
    if (c->base == 0 || c->base > MAX_BASE)
        return pnb__fail(err, PNB_ARG, "a ResNet of base width %zu; it is 1 to %d", c->base,
                         MAX_BASE);
    for (size_t s = 0; s < PNB__RESNET_STAGES; s++)
        if (c->layers[s] == 0 || c->layers[s] > MAX_LAYERS)
            return pnb__fail(err, PNB_ARG, "stage %zu of a ResNet has %zu blocks; it has 1 to %d",
                             s + 1, c->layers[s], MAX_LAYERS);
    if (height < PNB__RESNET_MIN_PIXELS || width < PNB__RESNET_MIN_PIXELS)
        return pnb__fail(err, PNB_ARG, "pictures of %zux%zu pixels; a ResNet needs %dx%d or more",
                         height, width, PNB__RESNET_MIN_PIXELS, PNB__RESNET_MIN_PIXELS);
    return PNB_OK;
}

/* Outputs of a block by its width. */
static size_t expansion(const pnb__resnet_config *c)
{
    return c->bottleneck ? BOTTLENECK : 1;
}

size_t pnb__resnet_width(const pnb__resnet_config *c)
{
    return (c->base << (PNB__RESNET_STAGES - 1)) * expansion(c);
}

/* ---- parameters ---- */

/* Names are written behind a prefix that grows and is cut back: visual.cnn. layer2.0. bn1.weight */
typedef struct declaring {
    pnb__weights *w;
    char name[160];
    size_t n; /* of the prefix */
} declaring;

/* The prefix, a part's name and what of it: "conv1" and ".weight". */
static const char *named(declaring *d, const char *tail, const char *end)
{
    snprintf(d->name + d->n, sizeof d->name - d->n, "%s%s", tail, end);
    return d->name;
}

/* He et al. 2015 by fan-out, as torchvision: std = (2 / (O K K))^1/2 keeps the variance of
 * gradients through ReLU. */
static pnb__param *declare_conv(declaring *d, const char *name, size_t out, size_t in,
                                size_t kernel)
{
    return pnb__declare(d->w, PNB__IMAGE_SIDE,
                        &(pnb__declared){.name = named(d, name, ".weight"),
                                         .n_dims = 4,
                                         .shape = {out, in, kernel, kernel},
                                         .init = PNB__INIT_NORMAL,
                                         .value = sqrt(2 / (double)(out * kernel * kernel))});
}

/* Of a batch norm: two that are trained, two that are moved by training. */
static pnb__param *declare_vector(declaring *d, const char *norm, const char *end, size_t n,
                                  double value, bool is_buffer)
{
    return pnb__declare(d->w, PNB__IMAGE_SIDE,
                        &(pnb__declared){.name = named(d, norm, end),
                                         .n_dims = 1,
                                         .shape = {n},
                                         .init = PNB__INIT_CONSTANT,
                                         .value = value,
                                         .is_buffer = is_buffer});
}

/* shape: outputs, inputs, kernel */
static pnb__conv_norm declare_conv_norm(declaring *d, const char *conv, const char *norm,
                                        const size_t shape[3])
{
    pnb__conv_norm c = {.conv = declare_conv(d, conv, shape[0], shape[1], shape[2])};
    c.w = declare_vector(d, norm, ".weight", shape[0], 1, false);
    c.b = declare_vector(d, norm, ".bias", shape[0], 0, false);
    c.mean = declare_vector(d, norm, ".running_mean", shape[0], 0, true);
    c.var = declare_vector(d, norm, ".running_var", shape[0], 1, true);
    return c;
}

/* width: of the block's inside; in: what it reads */
static void declare_block(declaring *d, pnb__residual *r, const pnb__resnet_config *c, size_t width,
                          size_t in)
{
    size_t out = width * expansion(c);
    if (c->bottleneck) {
        r->conv[0] = declare_conv_norm(d, "conv1", "bn1", (size_t[]){width, in, 1});
        r->conv[1] = declare_conv_norm(d, "conv2", "bn2", (size_t[]){width, width, 3});
        r->conv[2] = declare_conv_norm(d, "conv3", "bn3", (size_t[]){out, width, 1});
    } else {
        r->conv[0] = declare_conv_norm(d, "conv1", "bn1", (size_t[]){width, in, 3});
        r->conv[1] = declare_conv_norm(d, "conv2", "bn2", (size_t[]){width, width, 3});
    }
    if (r->stride != 1 || in != out)
        r->shortcut = declare_conv_norm(d, "downsample.0", "downsample.1", (size_t[]){out, in, 1});
}

/* In torchvision's order. A block reads what the one before it made: the stem's base channels at
 * first, then width times expansion. Stages 2 to 4 begin with a stride of 2. */
void pnb__resnet_declare(pnb__weights *w, pnb__resnet *out, const char *prefix,
                         const pnb__resnet_config *c)
{
    declaring d = {.w = w};
    size_t in = c->base, n_blocks = 0;
    for (size_t s = 0; s < PNB__RESNET_STAGES; s++)
        n_blocks += c->layers[s];
    *out = (pnb__resnet){.n_blocks = n_blocks,
                         .blocks = pnb__arena_alloc(&w->arena, n_blocks * sizeof *out->blocks)};
    if (out->blocks == NULL) {
        w->failed = true;
        return;
    }
    d.n = (size_t)snprintf(d.name, sizeof d.name, "%s", prefix);
    size_t n_prefix = d.n;
    out->stem = declare_conv_norm(&d, "conv1", "bn1", (size_t[]){c->base, 3, 7});
    pnb__residual *block = out->blocks;
    for (size_t s = 0; s < PNB__RESNET_STAGES; s++)
        for (size_t i = 0; i < c->layers[s]; i++, block++) {
            size_t width = c->base << s;
            d.n = n_prefix + (size_t)snprintf(d.name + n_prefix, sizeof d.name - n_prefix,
                                              "layer%zu.%zu.", s + 1, i);
            block->stride = s > 0 && i == 0 ? 2 : 1;
            declare_block(&d, block, c, width, in);
            in = width * expansion(c);
        }
}

/* ---- the graph ----
 *
 * Channels go innermost before the stem, whose 3 channels make that cheap, and stay there:
 *     (B,3,H,W) -> (B,H,W,3) -> (B,H/2,W/2,base) -> (B,H/4,W/4,base) -> .. -> (B,H/32,W/32,C)
 * Heads of local attention read the map as (B, places, C), which is a reshape. */
pnb__resnet_out pnb__resnet_build(const pnb__resnet *r, const pnb__resnet_config *c, pnb__graph *g,
                                  pnb__tensor *pixels)
{
    pnb__resnet_out none = {NULL, NULL};
    if (pixels == NULL)
        return none;
    const pnb__conv_norm_opts stem = {.stride = 2, .relu = true, .frozen = c->frozen};
    pnb__tensor *x = pnb__permute(pixels, (const int[]){0, 2, 3, 1});
    x = pnb__max_pool(pnb__conv_norm_apply(g, &r->stem, x, &stem), 3, 2, 1);
    for (size_t i = 0; i < r->n_blocks; i++)
        x = pnb__residual_apply(g, &r->blocks[i], x, c->frozen);
    if (x == NULL)
        return none;
    const size_t places[3] = {pnb__dim(x, 0), pnb__dim(x, 1) * pnb__dim(x, 2), pnb__dim(x, 3)};
    return (pnb__resnet_out){x, pnb__mean(pnb__reshape(x, 3, places), 1)};
}
