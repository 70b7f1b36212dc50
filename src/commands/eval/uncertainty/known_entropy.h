/* Learned uncertainty beside a known one: pictures and captions, by level, with controls. */
#ifndef PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_ENTROPY_H
#define PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_ENTROPY_H

#include "commands/eval/uncertainty/known_matches.h"
#include "commands/eval/uncertainty/known_rows.h"
#include "penumbra/rank_agreement.h"
#include "penumbra/truth.h"
#include "program/app.h"
#include "program/result_end.h"

/* All but a field and its set may be NULL. */
typedef struct pnb__known_opts {
    const char *images, *texts;                 /* embedding sets */
    const char *control_images, *control_texts; /* the same rows by an untrained head */
    const char *truth;
    pnb_truth_read_opts read;
    const char *image_field;  /* of the pictures' further fields; NULL: pictures are left out */
    const char *text_field;   /* of the captions'; NULL: log2 of the pictures that a caption fits */
    const char *label_counts; /* of the pictures, in place of a field: the entropy of labels */
    const char *class_key;    /* field of the pictures: nearest neighbours (nearest.h) */
    const char *image_data;   /* data set that the pictures are read from again */
    const char *control_field;      /* of the pictures: what can be counted of them; NULL: none */
    const char *text_control_field; /* of the captions */
    pnb__known_matching matches;    /* what matches leave open, in place of a row's variance */
    const char *cluster;            /* field of the ids files; NULL: what the truth connects */
    size_t n_resamples;
} pnb__known_opts;

/* What came out of one side, all levels together. */
typedef struct pnb__known_found {
    size_t n;                                /* rows; 0: this side was not measured */
    const char *name[PNB__MAX_KNOWN_SCORES]; /* NULL: this score is not there; [0] the model's */
    pnb_rank_agreement score[PNB__MAX_KNOWN_SCORES];
} pnb__known_found;
/* The figures alone, of pictures and of captions.
 * Errors  as below */
pnb_status pnb__known_measure(pnb__app *app, const pnb__known_opts *opts, pnb__known_found out[2]);

/* The object "known_entropy", whose headline comes first.
 * Errors  ARG, SHAPE (a control of other rows), NOT_FOUND, FORMAT, NOMEM and those of loading */
pnb_status pnb__known_entropy_run(pnb__app *app, const pnb__known_opts *opts, pnb__result *r);

#endif
