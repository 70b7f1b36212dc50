/* What several terms of a loss ask of a batch (term_build.h): which of its rows a process computes
 * the losses of, and where the labels of these stand. Inputs are made by the first term that asks.
 */
#include "train/losses/term_build.h"

pnb__dist pnb__term_share(const pnb__loss_in *in, const pnb__dist *d)
{
    return (pnb__dist){.mean = pnb__share_rows(&in->share, d->mean),
                       .log_var = pnb__share_rows(&in->share, d->log_var),
                       .residual = pnb__share_rows(&in->share, d->residual),
                       .n_embeddings = d->n_embeddings};
}

/* All of them but where several processes share the losses out (--local-loss). */
size_t pnb__term_rows_asked(const pnb__term_build *b)
{
    return pnb__share_count(&b->in->share, pnb__dim(b->in->image.mean, 0));
}

pnb__marks pnb__term_marks(const pnb__term_build *b, int way)
{
    const size_t shape[2] = {pnb__term_rows_asked(b), PNB_MAX(b->in->n_marks, (size_t)1)};
    pnb__loss *out = b->out;
    if (out->columns[way] == NULL) {
        out->columns[way] = pnb__input(b->g, PNB__INT32, 2, shape);
        out->weights[way] = pnb__input(b->g, PNB__REAL, 2, shape);
    }
    return (pnb__marks){
        .columns = out->columns[way],
        .weights = out->weights[way],
        .base = b->in->label_base,
    };
}
