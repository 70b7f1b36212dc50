/* The losses as part of a graph; what each computes is said in include/penumbra/loss.h. */
#ifndef PNB_TRAIN_LOSS_H
#define PNB_TRAIN_LOSS_H

#include "models/tower.h"
#include "penumbra/loss.h"
#include "tensor/graph.h"

/* Distributions of B pairs, of the masked inputs (rows belong to the first pairs; mean NULL: no
 * masked pass) and the two scalars of the logits. */
typedef struct pnb__loss_in {
    pnb__dist image, text, masked_image, masked_text;
    pnb__tensor *scale, *bias;             /* a and b, shape (); bias NULL: 0 */
    pnb__tensor *point_scale, *point_bias; /* of siglip and pcmepp; NULL: scale and bias */
    bool negative_only;
} pnb__loss_in;

/* What must be drawn for a step: N(0,1), (B,J,D) of images and of texts. */
enum { PNB__LOSS_N_DRAWN = 2 };

typedef struct pnb__loss {
    pnb__tensor *term[PNB_N_LOSS_TERMS];   /* weighted, kept; NULL where the weight is 0 */
    pnb__tensor *total;                    /* kept */
    pnb__tensor *targets;                  /* row numbers, an input; NULL without clip */
    pnb__tensor *noise[PNB__LOSS_N_DRAWN]; /* inputs; NULL without a term over samples */
    bool negative_only;
    int64_t triplet_warmup;
    pnb__tensor *triplet_share;  /* () input: of the nearest negatives; NULL: no warm-up */
    pnb__tensor *signs, *others; /* (B,B) inputs: 1 of pairs and -1, 0 of pairs and 1 */
} pnb__loss;

/* Errors  ARG: weights, limits or factors that no model could train with; also checked below. */
pnb_status pnb__loss_check_opts(const pnb_loss_opts *o, pnb_error *err);
/* Adds every term with a weight to the graph.
 * Errors  ARG (bad weights, a term that needs a log-variance on a tower without one), SHAPE */
pnb_status pnb__loss_build(pnb__loss *out, pnb__graph *g, const pnb__loss_in *in,
                           const pnb_loss_opts *opts, pnb_error *err);
/* Once after planning: fills the constant inputs. */
pnb_status pnb__loss_start(const pnb__loss *loss, pnb_error *err);
/* Before each run of a step: draws the noise, that of pair p a function of seed, step and p alone,
 * into row row_of[p] (NULL: row p), and says which negatives count. */
pnb_status pnb__loss_set_step(const pnb__loss *loss, uint64_t seed, int64_t step,
                              const size_t *row_of, pnb_error *err);
/* The PPCL logits (B,B), rows are images. */
pnb__tensor *pnb__loss_logits(pnb__graph *g, const pnb__loss_in *in);

#endif
