/* Pictures of a batch mixed with others of it (mixup, CutMix); every draw is f(seed, draw). */
#ifndef PNB_TRAIN_MIX_H
#define PNB_TRAIN_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a run mixes. */
typedef struct pnb__mixer {
    double share;  /* of a batch that is mixed, 0 to 1: int(share B) pictures, one at least */
    double cutmix; /* probability that a picture is mixed by a box rather than by weights */
    double alpha;  /* the share of a picture's own pixels is Beta(alpha, alpha) */
    uint64_t seed;
} pnb__mixer;

/* One mixed picture: way and share are its own, as PCME++'s code has it (mixup_mode elem). */
typedef struct pnb__mixed {
    size_t own, other; /* picture `own` takes of `other` */
    bool is_cutmix;
    double own_share;                /* the label of its own text */
    size_t left, top, width, height; /* CutMix: the box that is the other's */
} pnb__mixed;

/* What is mixed in one batch, in the caller's memory. */
typedef struct pnb__mix {
    size_t n;         /* pictures mixed */
    pnb__mixed *each; /* [pnb__mix_count] */
    uint32_t *order;  /* [batch] picture order[i] takes of order[i + 1], i < n */
} pnb__mix;

/* Pictures of a batch that are mixed. */
size_t pnb__mix_count(const pnb__mixer *m, size_t batch);
/* Draws a mix of `batch` pictures of height x width. `draw` numbers the batch among all of the run
 * and its processes. */
void pnb__mix_draw(const pnb__mixer *m, uint64_t draw, size_t batch, const size_t size[2],
                   pnb__mix *out);
/* (B,3,H,W) -> out, of the same shape, not the same memory. */
void pnb__mix_apply(const pnb__mix *m, const float *pixels, size_t batch, const size_t size[2],
                    float *out);
/* Labels of n pairs of which a row has two at most that are not the same everywhere, (n,2) each,
 * rows pictures and rows texts: where they stand, and by how much they exceed the others. */
enum { PNB__MIX_N_MARKS = 2 };
typedef struct pnb__mix_marks {
    int32_t *columns[2];
    float *weights[2];
} pnb__mix_marks;
/* Each pair matches its own, by 1. */
void pnb__mix_label_own(size_t n, pnb__mix_marks *out);
/* Then the labels of mixed pictures: the share at its own text, the rest at the other's. Pair p of
 * the batch stands at row_of[first + p] (NULL: at first + p). */
void pnb__mix_label(const pnb__mix *m, size_t first, const size_t *row_of, pnb__mix_marks *out);
/* Then label smoothing: Y -> e + (1 - 2 e) Y, so that 1 is 1 - e and 0 is e, of which e is what all
 * exceed. */
void pnb__mix_smooth(double e, size_t n, pnb__mix_marks *out);

#endif
