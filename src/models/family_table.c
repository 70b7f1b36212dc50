/* The families of models, made of the list in model_families.def; looking through it is tower.c's.
 * Nothing else stands here, so that a test program that defines the same two names with a row of
 * its own is linked without this file. */
#include "models/tower.h"

#define PNB__DECLARE_CALLS(NAME, word) extern const pnb__family_calls pnb__##word##_calls;
PNB__MODEL_FAMILY_LIST(PNB__DECLARE_CALLS)

#define PNB__CALLS_OF(NAME, word) &pnb__##word##_calls,
const pnb__family_calls *const pnb__model_families[] = {PNB__MODEL_FAMILY_LIST(PNB__CALLS_OF)};
const size_t pnb__n_model_families = PNB_COUNT(pnb__model_families);
