/* What the terms of a loss are built from: the distributions of a batch and its scalars, the inputs
 * that a step fills, and what several terms ask of them. Terms over points and Gaussians are in
 * loss_terms.c, those over samples in sampled_terms.c. */
#ifndef PNB_TRAIN_LOSSES_TERM_BUILD_H
#define PNB_TRAIN_LOSSES_TERM_BUILD_H

#include "models/tower.h"
#include "penumbra/loss.h"
#include "tensor/graph.h"
#include "train/losses/pair_loss.h"

/* Distributions of B pairs, of the masked inputs (rows belong to the first pairs; mean NULL: no
 * masked pass) and the two scalars of the logits. */
typedef struct pnb__loss_in {
    pnb__dist image, text, masked_image, masked_text;
    pnb__dist negative;                    /* texts that match no image; mean NULL: none */
    pnb__dist teacher[2];                  /* of images and texts, without gradient; mean NULL */
    double teacher_scale;                  /* of its logits */
    pnb__tensor *scale, *bias;             /* a and b, shape (); bias NULL: 0 */
    pnb__tensor *point_scale, *point_bias; /* of siglip and pcmepp; NULL: scale and bias */
    bool negative_only;
    bool has_labels; /* pairs match by labels of 0 to 1; false: row b matches row b alone */
    size_t n_marks;  /* labels of a row that are not label_base, at most; 0: 1 */
    double label_base;
    pnb__row_share share; /* the rows whose losses are computed; else all */
    /* Samples are drawn in the graph, of streams that pnb__loss_set_step says, and again for the
     * gradient; false: noise is an input of the loss. */
    bool draws;
    size_t block; /* numbers of samples that a block of drawn rows has at most; 0: 2^24 */
} pnb__loss_in;

/* Terms that are switched off over a limit, some a side. */
enum { PNB__LOSS_MOST_GATES = 5 };

/* One of them where no process sees the whole term: its share before it is switched, and the input
 * () of 1 or 0 that switches it. */
typedef struct pnb__loss_gate {
    pnb__tensor *share, *open;
    double limit;
} pnb__loss_gate;

/* What must be drawn for a step: N(0,1), (B,J,D) of images and of texts. */
enum { PNB__LOSS_N_DRAWN = 2 };

typedef struct pnb__loss {
    pnb__tensor *term[PNB_N_LOSS_TERMS]; /* weighted, kept; NULL where the weight is 0 */
    pnb__tensor *total;                  /* kept */
    pnb__tensor *targets;                /* row numbers, an input; NULL without clip */
    /* inputs of terms over samples, NULL without one: noise (B,J,D), or where samples are drawn the
     * pair of each row (B) and the stream of a side (4) */
    pnb__tensor *noise[PNB__LOSS_N_DRAWN], *pairs, *key[PNB__LOSS_N_DRAWN];
    bool negative_only;
    int64_t triplet_warmup;
    pnb__tensor *triplet_share; /* () input: of the nearest negatives; NULL: no warm-up */
    /* inputs, rows images and rows texts: (B,K) where a row's labels stand and by how much they
     * exceed the base, (B) where its match stands; NULL without a term that reads them */
    pnb__tensor *columns[2], *weights[2], *match[2];
    /* what the published uniformity compares: (PNB_UNIFORMITY_DRAWN) input of rows of samples; or
     * rows of either side, 1 where the image's counts and 0 where the text's, and noise (.,1,D) */
    pnb__tensor *drawn, *drawn_row[PNB__LOSS_N_DRAWN], *drawn_share, *drawn_noise;
    size_t n_samples; /* J */
    pnb__tensor *off; /* (K,K) input: 0 on the diagonal and 1 */
    pnb__row_share share;
    pnb__loss_gate gates[PNB__LOSS_MOST_GATES]; /* of a share of the rows; else none */
    size_t n_gates;
} pnb__loss;

/* What every term is built from: the graph, its inputs clipped, where it puts results. */
typedef struct pnb__term_build {
    pnb__graph *g;
    const pnb__loss_in *in;
    const pnb_loss_opts *opts;
    pnb__loss *out;
    pnb__pcmepp_out pcmepp; /* made once for its two terms */
} pnb__term_build;

/* Rows of a side that are ours. */
pnb__dist pnb__term_share(const pnb__loss_in *in, const pnb__dist *d);
/* Rows whose losses are computed. */
size_t pnb__term_rows_asked(const pnb__term_build *b);
/* Labels of the rows of images (way 0) or of texts, inputs made once for all terms that read them:
 * row b matches row b until pnb__loss_set_labels says otherwise. */
pnb__marks pnb__term_marks(const pnb__term_build *b, int way);

#endif
