/* The heads of PCME over a feature map, of whatever trunk; or over the states of a text's tokens.
 */
#ifndef PNB_MODELS_PCME_IMAGE_HEAD_H
#define PNB_MODELS_PCME_IMAGE_HEAD_H

#include "models/pcme/pcme_heads.h"

typedef struct pnb__pcme_image_head {
    pnb__param *fc[2];           /* (D,C), (D) */
    pnb__pie_head pie;           /* w1 NULL: without attention */
    pnb__log_std_head log_std;   /* w1 NULL: without uncertainty */
    pnb__param *log_std_side[2]; /* (D,C), (D) */
} pnb__pcme_image_head;

/* Declares it into `out`, which the image tower's own struct holds beside its trunk; after the
 * trunk, so that the order is the reference's. Names "visual.fc.weight", ... */
void pnb__pcme_declare_image_head(pnb__weights *w, const pnb__pcme_config *c,
                                  pnb__pcme_image_head *out);

/* The same over vectors of `width` of either tower, under "visual." or "text.". */
void pnb__pcme_declare_head(pnb__weights *w, pnb__side side, size_t width,
                            const pnb__pcme_config *c, pnb__pcme_image_head *out);

/* x (B,h w,C): a position's channels side by side, as words are; pooled (B,C) is their mean over
 * positions, NULL: it is taken here. The mean has L2 norm 1 if `unit`. */
pnb__pcme_embedding pnb__pcme_image_head_apply(pnb__graph *g, const pnb__pcme_image_head *h,
                                               pnb__tensor *x, pnb__tensor *pooled, bool unit);
/* x (B,T,C) and the item's own vector v (B,C); lengths as in attention_pool.h. */
pnb__pcme_embedding pnb__pcme_head_apply(pnb__graph *g, const pnb__pcme_image_head *h,
                                         pnb__tensor *x, pnb__tensor *v, pnb__tensor *lengths,
                                         bool unit);
/* Such positions of a map (B,C,h,w). */
pnb__tensor *pnb__pcme_positions_of(pnb__tensor *features);

#endif
