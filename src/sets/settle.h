/* What is compared and how unsure a row is, where the user leaves it to the families of the sets.
 */
#ifndef PNB_SETS_SETTLE_H
#define PNB_SETS_SETTLE_H

#include "penumbra/embeddings.h"
#include "penumbra/prob.h"

#define PNB__MEASURE_AUTO PNB_N_MEASURES          /* what the families of both sides suit */
#define PNB__UNCERTAINTY_AUTO PNB_N_UNCERTAINTIES /* what the families of both sides have */

/* A measure by name, or PNB__MEASURE_AUTO for "auto". Errors  as pnb_measure_parse */
pnb_status pnb__measure_parse(pnb_measure *out, const char *name, pnb_error *err);
/* What "auto" is where an adapter made one side and says by what its rows are compared; `asked` is
 * left as it is where it is a measure, or where no adapter or two of them say something.
 * Errors  NOT_FOUND (a measure of a later version) */
pnb_status pnb__measure_of_sets(pnb_measure *asked, const pnb_embeddings *a,
                                const pnb_embeddings *b, pnb_error *err);
/* What `asked` is between these sets: auto is csd, and on the sphere the likelihood of the family
 * (vmf, power_spherical). Errors  ARG (not between these families: the text names what would do) */
pnb_status pnb__measure_settle(pnb_measure *out, pnb_measure asked, const pnb_rows *a,
                               const pnb_rows *b, pnb_error *err);

/* Whether the measure reads the means of the set alone, though it has variances: a likelihood on
 * the sphere is of vectors. Results say so. */
bool pnb__is_taken_as_points(pnb_measure measure, const pnb_embeddings *set,
                             const pnb_embeddings *other);

/* The uncertainty that a family comes with: inv_kappa, gg_var, else trace. */
pnb_uncertainty pnb__own_uncertainty(const pnb_embeddings *set);
/* That of the side which has one, texts first; of two sets of points the cosine. */
pnb_uncertainty pnb__uncertainty_settle(pnb_uncertainty asked, const pnb_embeddings *images,
                                        const pnb_embeddings *texts);
/* Uncertainty of every row; free with pnb__free. Kinds of variances become inv_kappa on the sphere
 * and gg_var of generalised Gaussians; points have 0 of any kind. COSINE is not of one row and is
 * refused (ARG), as is a kind that the family lacks. */
pnb_status pnb__row_uncertainty(const pnb_embeddings *set, pnb_uncertainty kind, double **out,
                                pnb_error *err);

#endif
