/* The losses of probabilistic image-text training, by name and weight.
 *
 * B pairs, D embedding; mu unit means, lv = log sigma^2, u = sum_d exp(lv); a = scale, b = bias.
 *   ppcl       (1/B) sum_ij -log s(y_ij (a (mu_i.mu_j - (u_i + u_j)/2) + b)), y = 1 on the diagonal
 *   siglip     the same without u
 *   clip       InfoNCE: mean of the two cross-entropies of a mu_i.mu_j
 *   pcmepp     (1/B^2) sum_ij BCE(-a csd_ij + b), csd = ||mu_i - mu_j||^2 + u_i + u_j
 *   inclusion  mean_{B,D} -log s(c H_d(image in text))
 *   img_inclusion, txt_inclusion   the same for (original in masked), first rows of the batch
 *   vib        -1/2 mean_{B,D}(1 + lv - mu^2 - exp(lv)), image + text
 *   pcme       2 sum_ij -log (1/J^2) sum_jk s(2 y_ij (-a sqrt(|z_ij - z_jk|^2 + 1e-6) + b)) over J
 *              samples z of each side: the sum that the reference takes, both of its directions
 *   pcme_kl    -1/2 sum_{B,D}(1 + lv - mu^2 - exp(lv)), image + text
 *   uniformity log mean_{i<j} exp(-2 |z_i - z_j|^2) over the samples of both sides
 *   triplet    sum over negatives of [margin + s_ij - s_ii]+, rows and columns, of cosines s; of
 *              K embeddings a row the best of their K^2 pairs
 *   pcmepp_pseudo  (1/B^2) sum_ij BCE(l_ij, y'_ij) of pcmepp's logits l, y' = 1 where l_ij is at
 *              least the row's l_ii; the same by columns, and both added
 *   diversity  mean_B ||G - I||_F / K^2, G the cosines of what attention adds to a row's K
 *              embeddings; image + text
 *   mmd        maximum mean discrepancy between all embeddings of the two sides, a Gaussian kernel
 *              exp(-|x - y|^2 / 2)
 * With a teacher of the same pairs (distillation), t_i and v_j its unit means, c its scale, KL from
 * its Gaussians to ours
 *   distill    mean of both ways of -(1/B) sum_ij P_ij log Q_ij, P and Q the softmax over j of
 *              c t_i.v_j and of a mu_i.mu_j; the widths may differ
 *   distill_kl 1/2 mean_{B,D}(lv - lv' + (exp(lv') + (mu' - mu)^2) / exp(lv) - 1), image + text,
 *              mu' and lv' the teacher's, of the same width
 *
 * With H negatives, captions that match no image
 *   ppcl, siglip   their B H pairs are added with y = -1, still over B
 *   clip           they are further columns of the rows that images ask
 *
 * An inclusion term over its limit, and one side's VIB over its own, count 0 for that step, with
 * zero gradient. Log-variances are held within +-600 (+-60 in the trainer's f32), with zero
 * gradient beyond: every value and gradient is finite at any log-variance. A term over a batch is
 * one number, so weights do not depend on B. docs/numerics-training.md says where released code
 * differs.
 *
 * With labels Y_ij between 0 and 1 (a picture mixed of two) the pairwise terms are
 *   ppcl, siglip, pcmepp, pcmepp_pseudo   BCE with Y in place of y; a pseudo positive takes its
 *              row's largest label
 *   pcme       Y_ij times the match's loss and 1 - Y_ij times the other's
 *
 * Source  ProLIP sections 3.2 to 3.4 (ppcl, inclusion, vib); SigLIP; CLIP; PCME++ sections 3.2 to
 *         3.4 (pcmepp, pcmepp_pseudo); PCME sections 3.1 and 3.2 (pcme, pcme_kl, uniformity);
 *         VSE++, PVSE (triplet, diversity, mmd); open_clip's DistillClipLoss (distill); NegCLIP,
 *         Yuksekgonul et al. 2023 (negatives) */
#ifndef PENUMBRA_LOSS_H
#define PENUMBRA_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name, what): the one list behind the enum, the log keys and the help. PPCL, PCMEPP, VIB
 * and the inclusion terms need log-variances; SIGLIP and CLIP train towers without. */
#define PNB_LOSS_LIST(X)                                                                           \
    X(PPCL, ppcl, "probabilistic pairwise contrastive loss")                                       \
    X(SIGLIP, siglip, "pairwise sigmoid loss of the means")                                        \
    X(CLIP, clip, "InfoNCE of the means")                                                          \
    X(PCMEPP, pcmepp, "matching loss of PCME++")                                                   \
    X(INCLUSION, inclusion, "image included in its text")                                          \
    X(IMG_INCLUSION, img_inclusion, "image included in its masked image")                          \
    X(TXT_INCLUSION, txt_inclusion, "text included in its masked text")                            \
    X(VIB, vib, "divergence from N(0, I)")                                                         \
    X(PCME, pcme, "soft contrastive loss over samples of PCME")                                    \
    X(PCME_KL, pcme_kl, "divergence from N(0, I), summed as in PCME")                              \
    X(UNIFORMITY, uniformity, "how evenly samples of all rows lie")                                \
    X(TRIPLET, triplet, "margin to the negatives of VSE and PVSE")                                 \
    X(PCMEPP_PSEUDO, pcmepp_pseudo, "matching loss of PCME++'s pseudo positives")                  \
    X(MMD, mmd, "maximum mean discrepancy of the two sides")                                       \
    X(DIVERSITY, diversity, "how far the embeddings of an input are from each other")              \
    X(DISTILL, distill, "cross-entropy of a teacher's matches in the batch")                       \
    X(DISTILL_KL, distill_kl, "divergence from a teacher's Gaussians")

/* PCME++'s code takes its matching loss twice, once a direction: they are equal. */
#define PNB_PCMEPP_FACTOR 2.0

/* Samples that uniformity draws in its published form, with replacement. */
#define PNB_UNIFORMITY_DRAWN 128

/* In the order of the list, which is that of every array by term. */
typedef enum pnb_loss_term {
#define PNB_LOSS_ENUM(NAME, name, what) PNB_LOSS_##NAME,
    PNB_LOSS_LIST(PNB_LOSS_ENUM)
#undef PNB_LOSS_ENUM
        PNB_N_LOSS_TERMS /* how many there are */
} pnb_loss_term;

/* Name as in results.jsonl ("ppcl"); NULL outside the list. */
const char *pnb_loss_name(pnb_loss_term term);
/* One line for --help; NULL outside the list. */
const char *pnb_loss_meaning(pnb_loss_term term);

/* Which terms, and their constants. With c = 1000 an inclusion term is close to a hinge on the
 * order of the variances: its weight is what matters. */
typedef struct pnb_loss_opts {
    double weight[PNB_N_LOSS_TERMS]; /* 0 or more, one above; 0: the term is not computed */
    double inclusion_scale;          /* c, above 0; 1000 */
    double inclusion_eps;            /* published form: 1/sigma^2 is multiplied by exp(eps). -10 */
    bool inclusion_exact;            /* the exact integral instead of the published form */
    bool vib_official;               /* lv/2 in place of lv, as the released code has it */
    double inclusion_limit;          /* of a term before its weight, 1 or more; 1e5 */
    double vib_limit;                /* of one side's divergence, likewise; 1e4 */
    size_t n_samples;                /* J of pcme and uniformity, 1 to 64; 7 */
    bool pcme_kl_published;          /* as the released code: log sigma in place of lv, and the mean
                                      * of the samples in place of mu */
    bool uniformity_published;       /* as the released code: of more than PNB_UNIFORMITY_DRAWN
                                      * samples so many are drawn, and all their pairs taken */
    double triplet_margin;           /* above 0; 0.2 */
    bool triplet_hardest;   /* VSE++: the nearest negative of a row alone, else all: VSE0 */
    bool triplet_mean;      /* PVSE's code: the mean over rows, over B^2 places where all count */
    bool mmd_published;     /* PVSE's code: |x - y| in place of its square */
    int64_t triplet_warmup; /* steps of training in which all count even so, 0 or more: a fresh
                             * model whose nearest negatives alone count makes all rows alike. A
                             * call of pnb_loss_compute is behind them. 0 */
} pnb_loss_opts;

/* Small training: ppcl 1, inclusion 1e-4, masked inclusions 1e-3, vib 1e-4, c 1000, eps -10, the
 * published form of H, the paper's VIB. */
pnb_loss_opts pnb_loss_opts_default(void);
/* ProLIP's main runs: inclusion 1e-7, masked inclusions 1e-3, vib 1e-4, c 1000, eps -20. */
pnb_loss_opts pnb_loss_opts_published(void);

/* One side: n rows of D each, row-major, borrowed during the call. Row i of image and row i of text
 * are a pair; row i of a masked side is the masked form of row i of the batch. */
typedef struct pnb_loss_side {
    const double *mean;     /* unit rows; not checked, so that gradients can be tested anywhere */
    const double *log_var;  /* natural log of the variances; NULL where no term reads them */
    const double *residual; /* what attention adds to the embeddings of a row; only diversity reads
                             * it, else NULL */
} pnb_loss_side;

/* A batch. Only the terms with a weight read what they need of it. */
typedef struct pnb_loss_in {
    size_t n;                                /* B, 1 or more */
    size_t n_masked;                         /* rows of the masked pass, 0 to B */
    size_t dim;                              /* D, 1 or more */
    pnb_loss_side image, text;               /* n rows */
    pnb_loss_side masked_image, masked_text; /* n_masked rows; NULL when n_masked is 0 */
    double scale, bias;                      /* a = exp(logit_scale) and b = logit_bias */
    const double *point_scale, *point_bias;  /* of siglip and pcmepp, both or none; NULL: scale
                                              * and bias */
    bool negative_only;                      /* no pair matches: y = -1 everywhere */
    const double *image_noise, *text_noise;  /* (B,J,D) of N(0,1): the draws of pcme and uniformity;
                                              * NULL where neither has a weight */
    size_t n_embeddings; /* K of triplet, diversity and mmd: a row of mean is K of width D / K; 0: 1
                          */
    size_t n_negatives;  /* H */
    pnb_loss_side negative; /* H rows of texts; read where n_negatives is not 0 */
    /* of distill and distill_kl: B rows each of width teacher_dim, 0: D; log_var of distill_kl */
    pnb_loss_side teacher_image, teacher_text;
    size_t teacher_dim;
    double teacher_scale; /* c, above 0; of distill */
    const double *labels; /* (B,B) Y of 0 to 1, rows images; NULL: pair i matches i alone */
    const int32_t *drawn; /* (PNB_UNIFORMITY_DRAWN) of the 2 B J samples, images' first, that the
                           * published uniformity compares; NULL where it draws none */
} pnb_loss_in;

/* Where a gradient goes, in the order image, text, masked image, masked text; NULL: not wanted. */
typedef struct pnb_loss_out {
    double term[PNB_N_LOSS_TERMS]; /* weighted; 0 where the weight is 0 */
    double total;                  /* their sum: what training descends */
    double *d_mean[4];             /* d total / d mean, written, not added to */
    double *d_log_var[4];          /* d total / d log_var, likewise */
    double *d_residual[2];         /* d total / d residual of image and text, likewise */
    double *d_negative[2];         /* d total / d mean and d log_var of the negatives, likewise */
    double d_scale, d_bias;        /* by a itself, not by its logarithm */
    double d_point_scale;          /* 0 where point_scale is NULL: that part is in d_scale */
    double d_point_bias;           /* likewise, in d_bias */
} pnb_loss_out;

/* Values and gradients in double precision on plain arrays: the oracle of the trainer's graph, and
 * the way to use a loss without a model. Of the gradients d_mean, d_log_var and d_residual are set
 * before the call, to arrays of the caller's or NULL; the rest of `out` is written.
 * Shape   image, text (B,D); masked sides (M,D), M = n_masked
 * Memory  O(B D) f64, and three times the labels where they are given
 * Errors  ARG (n or dim is 0, means missing, a weight negative, all weights 0, a limit below 1, c
 *         not above 0, one point scalar of two, a term that needs a log-variance without one, draws
 *         missing, a teacher missing, negatives beside pcme, pcmepp, triplet or labels,
 *         K that does not divide D, labels beside clip, triplet or inclusion, diversity
 *         without residuals or with K = 1),
 *         SHAPE (a masked term without masked rows, n_masked > n), NUMERIC (a term is not finite:
 *         named), NOMEM */
pnb_status pnb_loss_compute(const pnb_ctx *ctx, const pnb_loss_opts *opts, const pnb_loss_in *in,
                            pnb_loss_out *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
