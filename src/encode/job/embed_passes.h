/* Augmented passes of pictures and captions, and the Gaussians that they make. */
#ifndef PNB_ENCODE_JOB_EMBED_PASSES_H
#define PNB_ENCODE_JOB_EMBED_PASSES_H

#include "base/base.h"
#include "penumbra/embeddings.h"
#include "penumbra/image.h"

/* n_passes pictures of pp's size, one behind the other. Errors  those of pnb_augment_apply */
pnb_status pnb__passes_image(const pnb_preprocess *pp, const pnb_image *image, uint64_t seed,
                             size_t input, size_t n_passes, float *out, pnb_error *err);
/* What is left of a caption in one pass. NULL: out of memory. */
char *pnb__passes_text(const char *text, uint64_t seed, size_t input, size_t pass);

/* sums (2,n,dim): of the rows (n,dim) of one pass, and of their squares. */
void pnb__passes_add(double *sums, const float *mean, size_t n, size_t dim);
/* Rows first .. first + n of a Gaussian set. NUMERIC where the passes of a row cancel out. */
pnb_status pnb__passes_finish(const double *sums, size_t n, size_t n_passes, pnb_embeddings *set,
                              size_t first, pnb_error *err);

#endif
