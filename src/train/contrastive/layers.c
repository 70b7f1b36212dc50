/* Where a weight stands in its tower: open_clip's groups of layers, by the names of the weights.
 *
 *     group 0        embeddings of patches, tokens and positions, [CLS], the norm in front
 *     group i        block i - 1 of L
 *     group L        the last block, and the norm behind it
 *     group L + 1    heads: projections, and all that gives uncertainty, the embedding of [UNC]
 * too, which pretrained models do not have Source  VisionTransformer.lock and lock_text_tower of
 * open_clip; that [UNC] goes with the heads is ours */
#include <stdlib.h>
#include <string.h>

#include "train/contrastive/contrastive.h"

static const char blocks[] = ".resblocks.";

/* Names of the towers' own arrays, as models/keys has them for all layouts; a family without blocks
 * has other ones, and is told by that. */

/* Whether one of the words begins what follows the name of the tower. */
static bool begins_with_one(const char *name, const char *const *words, size_t n)
{
    const char *rest = strchr(name, '.') + 1;
    for (size_t i = 0; i < n; i++)
        if (pnb__starts_with(rest, words[i]))
            return true;
    return false;
}

/* The heads of a variance, and the token it is read from, by the names that families give them. */
static bool is_uncertainty(const char *name)
{
    return strstr(name, "uncertainty") != NULL || strstr(name, "unc_emb") != NULL;
}

/* Blocks of the tower itself; those of a second path for the log-variance are heads. */
static int64_t n_blocks_of(const pnb_model *m, const char *prefix)
{
    int64_t n = 0;
    for (size_t i = 0; i < pnb__model_n_params(m); i++) {
        const char *name = pnb__model_param((pnb_model *)(uintptr_t)m, i)->name;
        const char *at = pnb__starts_with(name, prefix) ? strstr(name, blocks) : NULL;
        if (at != NULL && !is_uncertainty(name))
            n = PNB_MAX(n, strtoll(at + strlen(blocks), NULL, 10) + 1);
    }
    return n;
}

/* A name of no list is a head's: what a family adds is new, and what came pretrained has the names
 * above. */
pnb__layer pnb__contrastive_layer(const pnb_model *m, const char *name)
{
    static const char *const embeddings[] = {"conv1.",         "class_embedding", "cls_emb",
                                             "positional_emb", "token_embedding", "ln_pre."};
    static const char *const norms[] = {"ln_post.", "ln_final."};
    bool is_image = pnb__starts_with(name, "visual.");
    if (!is_image && !pnb__starts_with(name, "text."))
        return (pnb__layer){-1, 0};
    int64_t n = n_blocks_of(m, is_image ? "visual." : "text.");
    const char *block = strstr(name, blocks);
    pnb__layer at = {n + 1, n + 2};
    if (n == 0 || is_uncertainty(name))
        at.group = n == 0 ? -1 : n + 1;
    else if (block != NULL)
        at.group = strtoll(block + strlen(blocks), NULL, 10) + 1;
    else if (begins_with_one(name, embeddings, PNB_COUNT(embeddings)))
        at.group = 0;
    else if (begins_with_one(name, norms, PNB_COUNT(norms)))
        at.group = n;
    return at;
}

/* ---- what stands still ---- */

/* More groups than there are would lock nothing, and a tower without blocks has no layers to count:
 * both would pass for what was asked. */
static pnb_status check_unlocked(const pnb__contrastive *c, const char *prefix, const char *option,
                                 int64_t n_unlocked, pnb_error *err)
{
    int64_t n = n_blocks_of(c->model, prefix);
    if (n == 0)
        return pnb__fail(err, PNB_ARG,
                         "%s: this tower of a %s model has no blocks of a transformer to leave "
                         "unlocked; leave the option out",
                         option, c->info->family);
    if (n_unlocked > n + 2)
        return pnb__fail(
            err, PNB_ARG,
            "%s is %lld, and the tower has %lld groups: embeddings, %lld blocks, heads", option,
            (long long)n_unlocked, (long long)(n + 2), (long long)n);
    return PNB_OK;
}

/* Locked image tuning (Zhai et al. 2022) and its mirror image. A frozen weight has no gradient, no
 * moments and no share in the norm; the last `n_unlocked` groups go on. */
static pnb_status lock(pnb__contrastive *c, const char *prefix, const char *option,
                       int64_t n_unlocked, pnb_error *err)
{
    pnb_status status =
        n_unlocked > 0 ? check_unlocked(c, prefix, option, n_unlocked, err) : PNB_OK;
    for (size_t i = 0; i < pnb__model_n_params(c->model) && status == PNB_OK; i++) {
        pnb__param *p = pnb__model_param(c->model, i);
        if (!pnb__starts_with(p->name, prefix))
            continue;
        pnb__layer at = pnb__contrastive_layer(c->model, p->name);
        if (n_unlocked == 0 || at.group < at.n_groups - n_unlocked)
            p->trainable = false;
    }
    return status;
}

pnb_status pnb__contrastive_lock(pnb__contrastive *c, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    pnb_status status = PNB_OK;
    if (o->lock_image)
        status = lock(c, "visual.", "--lock-image-unlocked-groups", o->image_unlocked_groups, err);
    if (status == PNB_OK && o->lock_text)
        status = lock(c, "text.", "--lock-text-unlocked-layers", o->text_unlocked_layers, err);
    return status;
}
