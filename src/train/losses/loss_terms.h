/* The terms of a loss in a graph: what they read, and one row each of what it needs and how it is
 * built; loss.h weighs and sums them. What each computes is said in include/penumbra/loss.h. */
#ifndef PNB_TRAIN_LOSS_TERMS_H
#define PNB_TRAIN_LOSS_TERMS_H

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

/* What a term needs beside means, so that a model without it is refused by name. */
typedef struct pnb__term_row {
    pnb__tensor *(*build)(pnb__term_build *b);
    bool needs_log_var, needs_masked_image, needs_masked_text;
    bool needs_match;       /* measures something against the match of a row */
    bool needs_others;      /* is 0, and its gradient too, where a batch has one pair only */
    bool takes_labels;      /* of mixed pictures, between 0 and 1; or is not about matches */
    bool takes_several;     /* K embeddings of an input */
    bool refuses_negatives; /* is about matches, and knows no texts without one */
    bool needs_teacher, needs_spreads; /* its means; its log-variances, of the same width */
    bool asks_images; /* compares rows with all images: their gradient comes from all rows */
} pnb__term_row;

extern const pnb__term_row pnb__term_rows[PNB_N_LOSS_TERMS];

/* Shapes: image, text (B,D); masked ones (M,D) with M <= B. Means are not clipped: they are
 * unit. */
pnb__loss_in pnb__terms_clip(pnb__graph *g, const pnb__loss_in *in);
/* The PPCL logits (B,B), rows are images. */
pnb__tensor *pnb__loss_logits(pnb__graph *g, const pnb__loss_in *in);

#endif
