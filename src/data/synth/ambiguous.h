/* The tree behind the `ambiguous` set: concepts with directions and concentrations. Internal. */
#ifndef PNB_DATA_SYNTH_AMBIGUOUS_H
#define PNB_DATA_SYNTH_AMBIGUOUS_H

#include "base/base.h"
#include "penumbra/ambiguous.h"
#include "penumbra/prob.h"

/* Concepts by level, children of a concept beside each other. A leaf is one of the last level. */
typedef struct pnb__ambiguous_tree {
    const pnb_ambiguous_opts *opts;
    size_t n, n_leaves;
    size_t start[PNB_SYNTH_N_LEVELS + 1]; /* first concept of each level, and n */
    size_t *parent;                       /* [n] SIZE_MAX of level 0 */
    size_t
        *child;   /* [n - n_leaves + 1] first child of each concept that is none of a leaf, and n */
    double *mass; /* [n] share of all pictures that lie below it */
    double *cosine;      /* [n] mean cosine of its pictures to its direction */
    pnb_embeddings *set; /* n rows: the distribution of each concept's pictures */
} pnb__ambiguous_tree;

/* Checks the options, then makes the tree of them: `opts` must outlive it. Reset in any case. */
pnb_status pnb__ambiguous_check(const pnb_ambiguous_opts *opts, pnb_error *err);
pnb_status pnb__ambiguous_tree_make(pnb__ambiguous_tree *tree, const pnb_ambiguous_opts *opts,
                                    pnb_error *err);
void pnb__ambiguous_tree_reset(pnb__ambiguous_tree *tree);

int pnb__ambiguous_level(const pnb__ambiguous_tree *tree, size_t concept);
/* The leaves below a concept: *n of them from the number that comes back. */
size_t pnb__ambiguous_leaves(const pnb__ambiguous_tree *tree, size_t concept, size_t *n);
/* Concentration of a family at which the mean cosine is `cosine`, in (0,1): the mean length of
 * samples on the sphere; for the others D / variance, where variance is 1/cosine^2 - 1. */
double pnb__ambiguous_kappa(pnb_family family, size_t dim, double cosine);

/* ---- ambiguous_rows.c: frozen rows of a concept ---- */

/* How captions are made of concepts. Reset in any case. */
typedef struct pnb__ambiguous_voice {
    const pnb__ambiguous_tree *tree;
    size_t dim;        /* of captions */
    pnb_rows wordings; /* directions of the concepts, with the concentration of captions */
    float *kappa;      /* [n] behind it */
    double *map;       /* (dim, tree's) NULL where the widths agree */
    double *code;      /* (PNB__AMBIGUOUS_CODE, dim) directions in which wording tells */
} pnb__ambiguous_voice;
enum { PNB__AMBIGUOUS_CODE = 8 };
pnb_status pnb__ambiguous_voice_make(pnb__ambiguous_voice *voice, const pnb__ambiguous_tree *tree,
                                     pnb_error *err);
void pnb__ambiguous_voice_reset(pnb__ambiguous_voice *voice);
/* Picture `j` of a concept into out (dim); caption `j` of a concept into out
 * (voice->dim). `scratch` has dim of both. */
void pnb__ambiguous_image_row(const pnb__ambiguous_tree *tree, size_t concept, size_t j,
                              double *scratch, float *out);
void pnb__ambiguous_text_row(const pnb__ambiguous_voice *voice, size_t concept, size_t j,
                             double *scratch, float *out);
/* What the caption says, at most PNB__AMBIGUOUS_TEXT bytes: the names of the concepts on the way to
 * it, and zero to four words that say nothing. */
enum { PNB__AMBIGUOUS_TEXT = 160, PNB__AMBIGUOUS_NAME = 48 };
void pnb__ambiguous_text(const pnb__ambiguous_tree *tree, size_t concept, size_t j,
                         char text[PNB__AMBIGUOUS_TEXT]);
/* "3.1.0": the numbers of the children on the way. */
void pnb__ambiguous_name(const pnb__ambiguous_tree *tree, size_t concept,
                         char name[PNB__AMBIGUOUS_NAME]);

#endif
