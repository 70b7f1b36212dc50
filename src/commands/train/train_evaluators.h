/* What is measured between the steps of a training by the code of other commands. */
#ifndef PNB_COMMANDS_TRAIN_TRAIN_EVALUATORS_H
#define PNB_COMMANDS_TRAIN_TRAIN_EVALUATORS_H

#include "commands/classify/classify.h"
#include "commands/train/train_args.h"

/* All zero is empty; what it holds must outlive the training. */
typedef struct pnb__train_evaluators {
    pnb__app *app;
    pnb__classify_opts zeroshot;
    pnb__class_source images; /* of retrieval, with their set while one is measured */
    pnb__text_inputs texts;
    size_t *image_of; /* [texts.n] the input that a caption belongs to */
} pnb__train_evaluators;

/* Opens what --imagenet-val and --retrieval-frequency ask for, so that what is wrong with it is
 * said before the first step, and adds the evaluators to a->job. Release with
 * pnb__train_evaluators_reset in any case.
 * Errors  those of opening the data, ARG (no labels), USAGE */
pnb_status pnb__train_evaluators_open(pnb__train_evaluators *e, pnb__app *app, pnb__train_args *a);
void pnb__train_evaluators_reset(pnb__train_evaluators *e);

#endif
