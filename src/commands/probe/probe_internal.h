/* What the pieces of a probe share: one model, its inputs, and rows of embeddings. */
#ifndef PNB_COMMANDS_PROBE_PROBE_INTERNAL_H
#define PNB_COMMANDS_PROBE_PROBE_INTERNAL_H

#include "commands/common/encode_use.h"
#include "commands/probe/probe.h"
#include "penumbra/view.h"

typedef struct pnb__probing {
    pnb__app *app;
    const pnb__probe_cmd *cmd;
    pnb_encoder encoder;
    pnb__image_inputs *sources;
    pnb__pixel_set pixels;
    pnb__text_inputs texts; /* all of them */
    const char *unknown;    /* word in the place of those that go; NULL: nothing */
    pnb__probe *out;
} pnb__probing;

/* Rows of Gaussians that belong to the run. */
typedef struct pnb__probe_rows {
    pnb_embeddings *set;
    pnb_view view; /* as Gaussians, whatever family of variances the model ends in */
} pnb__probe_rows;

void pnb__probe_rows_reset(pnb__probe_rows *rows);
/* The uncertainty of each row: its trace, on the sphere 1/kappa. */
pnb_status pnb__probe_traces(const pnb_gaussians *view, double **out, pnb_error *err);
/* Rows of the largest and smallest change, with what their uncertainty was and is. */
pnb_status pnb__probe_find_examples(pnb__probing *run, const pnb_gaussians *original,
                                    const pnb_gaussians *changed, size_t row[2]);
/* Point `at` of a curve: how `changed` stands to its originals. */
pnb_status pnb__probe_add_point(const pnb__probing *run, const pnb_gaussians *original,
                                const pnb_gaussians *changed, size_t at, pnb__probe_curve *curve);
/* Whether an original lies in its changed copy, by H and by the difference of divergences. */
pnb_status pnb__probe_compare(const pnb__probing *run, const pnb__probe_rows *original,
                              const pnb__probe_rows *changed, pnb_inclusion_contest *out);

/* ---- probe_texts.c ---- Levels, lengths and dropped words of run->texts. */
pnb_status pnb__probe_texts(pnb__probing *run);

#endif
