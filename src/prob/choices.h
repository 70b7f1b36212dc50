/* The words of an option that names a choice, made from its list: measures and uncertainties here,
 * any other by PNB__CHOICE_OF. Each begins with '|': "auto" PNB__MEASURE_CHOICES, or
 * PNB__CHOICES(...) where nothing comes first. */
#ifndef PNB_PROB_CHOICES_H
#define PNB_PROB_CHOICES_H

#include "base/names.h"
#include "penumbra/prob.h"
#include "prob/measures.def"

#define PNB__CHOICES(list) (&(list)[1])

#define PNB__CHOICE_OF(name, text, ...) "|" text
#define PNB__CHOICE_WORD(name, text) "|" text     /* of a list of two columns */
#define PNB__CHOICE_IDENT(name, ident) "|" #ident /* the same of identifiers */
#define PNB__MEASURE_CHOICES PNB__MEASURES(PNB__CHOICE_OF)
/* For a row that fills the enum: pnb__option.names. */
#define PNB__MEASURE_NAMES PNB_NAMES(PNB__MEASURES)
#define PNB__UNCERTAINTY_NAMES PNB_NAMES(PNB_UNCERTAINTY_LIST)
#define PNB__UNCERTAINTY_CHOICES PNB_UNCERTAINTY_LIST(PNB__CHOICE_OF)

/* Closed forms between Gaussians in which the two sides are exchangeable: what rows of one set can
 * be compared by, beside mean. */
#define PNB__CHOICE_IF_SYMMETRIC_GAUSSIAN(text) "|" text
#define PNB__CHOICE_IF_SYMMETRIC_ALL(text)
#define PNB__CHOICE_IF_SYMMETRIC_VMF(text)
#define PNB__CHOICE_IF_SYMMETRIC_POWER(text)
#define PNB__CHOICE_IF_DIRECTED_GAUSSIAN(text)
#define PNB__CHOICE_OF_SYMMETRIC(name, text, score, symmetry, takes, ...)                          \
    PNB__CHOICE_IF_##symmetry##_##takes(text)
#define PNB__SYMMETRIC_MEASURE_CHOICES PNB__MEASURES(PNB__CHOICE_OF_SYMMETRIC)

/* Uncertainties that are functions of a row's variances. */
#define PNB__CHOICE_IF_VARIANCES(text) "|" text
#define PNB__CHOICE_IF_KAPPA(text)
#define PNB__CHOICE_IF_SHAPE(text)
#define PNB__CHOICE_IF_PARTS(text)
#define PNB__CHOICE_IF_PARTNER(text)
#define PNB__CHOICE_OF_VARIANCES(name, text, of, ...) PNB__CHOICE_IF_##of(text)
#define PNB__VARIANCE_UNCERTAINTY_CHOICES PNB_UNCERTAINTY_LIST(PNB__CHOICE_OF_VARIANCES)

/* Uncertainties that a row has by itself and that ask for a word: those of variances, and the two
 * parts of a generalised Gaussian's. A row of another family has its one. */
#define PNB__ROW_CHOICE_IF_VARIANCES(text) "|" text
#define PNB__ROW_CHOICE_IF_KAPPA(text)
#define PNB__ROW_CHOICE_IF_SHAPE(text)
#define PNB__ROW_CHOICE_IF_PARTS(text) "|" text
#define PNB__ROW_CHOICE_IF_PARTNER(text)
#define PNB__ROW_CHOICE_OF(name, text, of, ...) PNB__ROW_CHOICE_IF_##of(text)
#define PNB__ROW_UNCERTAINTY_CHOICES PNB_UNCERTAINTY_LIST(PNB__ROW_CHOICE_OF)

#endif
