/* Which settings make a model, and which do not.
 *
 * The released ones are PCME on COCO with D 1024 and on CUB with D 512, words of 300, pictures of
 * 2048 channels, one embedding (config/coco/pcme_coco.yaml, config/cub/pcme_cub.yaml). */
#include "models/pcme/pcme_config.h"

#include "base/base.h"

/* Attention has half the width of what it reads, so neither can be 1. */
pnb_status pnb__pcme_config_check(const pnb__pcme_config *c, const char *where, pnb_error *err)
{
    if (c->embed_dim < 2 || c->embed_dim % 2 != 0)
        return pnb__fail(err, PNB_ARG,
                         "%s: embed_dim is %zu; each direction of the GRU has half of it, so it "
                         "must be even and at least 2",
                         where, c->embed_dim);
    if (c->word_dim < 2 || c->image_dim < 2)
        return pnb__fail(
            err, PNB_ARG,
            "%s: word vectors of %zu and features of %zu numbers; both need at least 2", where,
            c->word_dim, c->image_dim);
    if (c->vocab_size < 2)
        return pnb__fail(err, PNB_ARG, "%s: a vocabulary of %zu words; <pad> and one more at least",
                         where, c->vocab_size);
    if (c->n_embeddings < 1)
        return pnb__fail(err, PNB_ARG, "%s: n_embeddings is 0, it must be at least 1", where);
    if (c->n_embeddings > 1 && (!c->with_attention || c->with_uncertainty))
        return pnb__fail(err, PNB_ARG,
                         "%s: %zu embeddings come from as many heads of attention, and have no "
                         "uncertainty; ask for 1 embedding, or for attention alone",
                         where, c->n_embeddings);
    return PNB_OK;
}
