/* Uncertainty along chains of pictures (`penumbra data chains`): does a part contain the whole? */
#ifndef PNB_COMMANDS_PROBE_PROBE_HIERARCHIES_H
#define PNB_COMMANDS_PROBE_PROBE_HIERARCHIES_H

#include "encode/encoder.h"
#include "penumbra/embeddings.h"
#include "penumbra/hierarchy.h"
#include "program/app.h"

enum { PNB__CHAIN_LEVELS = 8 };

/* Means over the chains; level 0 is the single segment, the last the whole picture. */
typedef struct pnb__hierarchy_figures {
    size_t n, n_levels;                  /* n = 0: not measured */
    double trace[PNB__CHAIN_LEVELS];     /* mean uncertainty */
    double included[PNB__CHAIN_LEVELS];  /* share of chains with H(whole picture in level) > 0 */
    double uncertain[PNB__CHAIN_LEVELS]; /* share with a level more uncertain than the picture */
    pnb_inclusion_contest contest[PNB__CHAIN_LEVELS]; /* whole picture in level, by H and by KL;
                                                       * strangers are levels of the next chain.
                                                       * n = 0 of the last: it is the picture */
} pnb__hierarchy_figures;

/* Rows are KEY_LEVEL by id. Errors  FORMAT (another id, a chain without some level), SHAPE */
pnb_status pnb__hierarchy_figures_measure(const pnb_embeddings *set, bool published,
                                          pnb__hierarchy_figures *out, pnb_error *err);

/* Embeds the pictures of a data set and measures them. */
pnb_status pnb__probe_hierarchies(pnb__app *app, pnb_encoder *encoder, const char *spec,
                                  bool published, pnb__hierarchy_figures *out);

#endif
