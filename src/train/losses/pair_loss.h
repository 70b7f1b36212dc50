/* Losses over pairs of Gaussians: PFE's and PCME++'s, on frozen rows and in training. ProLIP's is
 * src/train/losses/loss.h. */
#ifndef PNB_TRAIN_LOSSES_PAIR_LOSS_H
#define PNB_TRAIN_LOSSES_PAIR_LOSS_H

#include "penumbra/loss.h"
#include "tensor/graph.h"
#include "train/losses/row_share.h"

/* One side in a graph, (B,D). Which of the two spreads a loss reads is in its name. */
typedef struct pnb__side_rows {
    pnb__tensor *mean, *var, *log_var;
} pnb__side_rows;

/* Mutual likelihood of matching rows: mean over b of
 *   sum_d (m_i - m_t)^2 / (v_i + v_t) + log(v_i + v_t)
 * Only true pairs are seen; no half and no constant, as the released code has it.
 * Source  Shi and Jain 2019, Eq. (3) */
pnb__tensor *pnb__mutual_likelihood(pnb__side_rows images, pnb__side_rows texts);

/* ---- PCME++ ---- */
/* X(NAME, name, sentence) */
#define PNB__PCMEPP_DISTANCE_LIST(X)                                                               \
    X(CSD, "csd", "|m_i - m_t|^2 + tr V_i + tr V_t")                                               \
    X(W2, "wdist", "|m_i - m_t|^2 + sum_d (s_i - s_t)^2")
typedef enum pnb__pcmepp_distance {
#define PNB__PCMEPP_DISTANCE_ENUM(NAME, name, sentence) PNB__PCMEPP_##NAME,
    PNB__PCMEPP_DISTANCE_LIST(PNB__PCMEPP_DISTANCE_ENUM)
#undef PNB__PCMEPP_DISTANCE_ENUM
        PNB__N_PCMEPP_DISTANCES
} pnb__pcmepp_distance;

typedef struct pnb__pcmepp_in {
    pnb__side_rows images, texts; /* mean, log_var (B,D) */
    pnb__row_share share;         /* without `matched`: the rows that are compared with all */
    pnb__tensor *scale, *shift;   /* (): logits = -scale * distance + shift; shift NULL: 0 */
    pnb__tensor *matched;         /* (B,B) labels in [0,1], rows images: those of mixed samples lie
                                   * between; NULL: row b matches row b and no other */
    bool negative_only;           /* with neither labels: not even that one */
    pnb__marks marks;      /* labels in place of `matched`; columns NULL: none. Nothing of size
                            * B^2 is held then */
    pnb__marks pseudo[2];  /* of pseudo positives without `matched`: rows images, rows texts */
    double factor;         /* of the matching loss: PNB_PCMEPP_FACTOR published */
    pnb__tensor *first[2]; /* int32 (B): where the first match of image b stands in the
                            * rows, and of text b in the columns, laid out one after the
                            * other: b * B + column in both (the second of the transpose) */
    pnb__tensor *value[2]; /* (B,1): the label of that match; NULL: 1 */
    pnb__pcmepp_distance distance; /* csd */
    double vib_beta, smoothness;   /* weights: 1e-4 and 0.1 published; 0 leaves a term out */
} pnb__pcmepp_in;

typedef struct pnb__pcmepp_out {
    pnb__tensor *loss;      /* factor BCE + vib_beta VIB + smoothness (BCE of both pseudo labels) */
    pnb__tensor *match;     /* () BCE, once */
    pnb__tensor *vib;       /* () sum of both sides' KL, mean over B and D; NULL without weight */
    pnb__tensor *smooth;    /* () BCE of both pseudo labels; NULL without weight */
    pnb__tensor *pseudo[2]; /* (B,B) labels with pseudo positives, images' rows and texts' rows;
                             * NULL without weight */
} pnb__pcmepp_out;

/* Matching loss of PCME++: every pair that scores at least as high as its row's first true match is
 * a pseudo positive and takes that match's label, 1 but in rows of mixed pictures; its BCE weighs
 * `smoothness`. Labels carry no gradient; pseudo positives need `matched` or `pseudo`. The match of
 * a row is the first of its largest labels. Source  PCME++ sections 3.2 to 3.4; the factor 2 and
 * the mean over B^2 are its code's */
pnb__pcmepp_out pnb__pcmepp_build(const pnb__pcmepp_in *in);

#endif
