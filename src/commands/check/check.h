/* `penumbra check`: everything about a model folder that can be found out beforehand. */
#ifndef PNB_COMMANDS_CHECK_CHECK_H
#define PNB_COMMANDS_CHECK_CHECK_H

#include "encode/encoder.h"
#include "encode/inputs/inputs.h"
#include "program/app.h"
#include "program/result_end.h"

/* What the model is shown beside what is built in; any may be NULL. */
typedef struct pnb__check_inputs {
    const char *photo;
    const pnb__image_inputs *images; /* embedded in every precision */
    const pnb__text_inputs *texts;
} pnb__check_inputs;

typedef struct pnb__verdict {
    size_t n_errors, n_warnings;
} pnb__verdict;

typedef enum pnb__finding_level {
    PNB__FINDING_OK,
    PNB__FINDING_WARNING,
    PNB__FINDING_ERROR
} pnb__finding_level;

typedef struct pnb__finding {
    pnb__finding_level level;
    const char *part; /* "keys", "tokenizer", ... */
    char *text;
} pnb__finding;

/* A visit: what was found so far. */
typedef struct pnb__visit {
    pnb__app *app;
    const char *dir;
    const pnb__check_inputs *inputs;
    pnb_encoder model; /* tokenizer NULL where none could be opened */
    pnb__finding *items;
    size_t n;
    pnb__verdict verdict;
    bool no_memory; /* says nothing about the model: the visit fails */
} pnb__visit;

void pnb__finding_add(pnb__visit *v, pnb__finding_level level, const char *part, const char *fmt,
                      ...) __attribute__((format(printf, 4, 5)));
/* What a call of the library found fault with. */
void pnb__finding_fault(pnb__visit *v, const char *part, const pnb_error *err);

/* Fills r and *verdict. An unusable folder is a finding, not a failure.
 * Errors  those of finding the folder, NOMEM */
pnb_status pnb__check_model(pnb__app *app, const char *name, const pnb__check_inputs *inputs,
                            pnb__verdict *verdict, pnb__result *r);

/* The parts that run the model (check_run.c). */
void pnb__check_forward(pnb__visit *v);
void pnb__check_golden(pnb__visit *v);
void pnb__check_published(pnb__visit *v);
/* In every precision, with the table of them (check_precisions.c). The model is not what it was. */
void pnb__check_precisions(pnb__visit *v, pnb__result *r);

#endif
