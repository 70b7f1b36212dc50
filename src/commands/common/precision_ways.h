/* What a model gives in each precision on inputs of the user's, beside what it gives in floats. */
#ifndef PNB_COMMANDS_COMMON_PRECISION_WAYS_H
#define PNB_COMMANDS_COMMON_PRECISION_WAYS_H

#include "encode/encoder.h"
#include "encode/inputs/inputs.h"
#include "program/app.h"
#include "program/result_end.h"

enum { PNB__WAY_IMAGES, PNB__WAY_TEXTS, PNB__N_WAY_KINDS };
enum { PNB__MOST_WAYS = 8 };

/* Of the pictures or of the captions, against the first way:
 *   cosine    mean and least cosine of the two means of an input
 *   rank      Spearman correlation of the two uncertainties (trace, or what the family has) of
 *             models that have one; else, and where all are alike before and after, 1
 *   variance  the largest relative change of such an uncertainty
 *   top1      share of inputs whose nearest item is the same: among the other kind (the caption of
 *             a picture) when both kinds are given, else among the other inputs of its own kind */
typedef struct pnb__way_figures {
    size_t n; /* 0: not asked for */
    double cosine, least_cosine, rank, variance, top1;
} pnb__way_figures;

typedef struct pnb__way {
    char name[64];
    pnb_precision precision;
    bool is_floats; /* another name of floats' own products on this processor: not run again */
    double seconds[PNB__N_WAY_KINDS]; /* reading the inputs too */
    pnb__way_figures found[PNB__N_WAY_KINDS];
} pnb__way;

typedef struct pnb__ways {
    pnb__app *app;
    pnb_encoder *encoder;
    const pnb__image_inputs *images; /* at least one of both */
    const pnb__text_inputs *texts;
    pnb_embeddings *first[PNB__N_WAY_KINDS]; /* what the first way gave: held in memory */
    pnb__way items[PNB__MOST_WAYS];
    size_t n;
} pnb__ways;

/* Embeds the inputs with the encoder as it is and compares with the first way.
 * Errors  those of embedding and comparing, NOMEM */
pnb_status pnb__ways_add(pnb__ways *w, const char *name, pnb_precision precision);
/* Floats first, then every other precision that the model takes and may be set back from; it is set
 * back. Nothing is said of sets that differ in precision from then on: that is the point. */
pnb_status pnb__ways_add_precisions(pnb__ways *w);
void pnb__ways_reset(pnb__ways *w);

/* Has the way what its precision promises (pnb_precision_promise)? */
bool pnb__way_holds(const pnb__way *way, int kind);
const char *pnb__way_kind(int kind); /* "images" */
/* A table `ways`: each kind in each way. */
void pnb__ways_report(const pnb__ways *w, pnb__result *r);

#endif
