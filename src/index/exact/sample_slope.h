/* A closer bound on match probabilities from bytes, by what rounding takes from all samples of a
 * row together. */
#ifndef PNB_INDEX_EXACT_SAMPLE_SLOPE_H
#define PNB_INDEX_EXACT_SAMPLE_SLOPE_H

#include "kernels/kernels.h"

/* A sample less the centre, rounded to floats, and what that took. */
typedef struct pnb__float_sample {
    const float *row;
    double square, off;
} pnb__float_sample;

/* The samples of a row so far: their sum, and the sum of what bytes took of them. */
typedef struct pnb__byte_sums {
    size_t dim;
    float *row, *lost;  /* [dim], zeros at first */
    double length, off; /* sums of the samples' lengths, and of what floats took */
} pnb__byte_sums;

/* bytes: the sample as it was rounded, `scale` apart. */
void pnb__byte_sums_add(pnb__byte_sums *sums, const pnb__float_sample *sample,
                        const signed char *bytes, float scale);

/* At least the length of the sum of a row's samples, and of what bytes took of it. */
typedef struct pnb__byte_lengths {
    float all, lost;
} pnb__byte_lengths;

/* Of the n samples that were added; the sums begin again. */
pnb__byte_lengths pnb__byte_sums_end(pnb__byte_sums *sums, size_t n);

/* A pair of rows by its n pairs of samples, in the terms of sample_nearest (kernels.h): products of
 * bytes less the second's sum, and of both samples the squares together, the scales' product, and
 * the off. The last five are scratch, the first of them zeros. */
typedef struct pnb__slope_pair {
    size_t n;
    int32_t *products, *no_sum;
    float *square, *scale, *off;
    float *against, *one, *high, *low;
} pnb__slope_pair;

/* Errors  NOMEM */
pnb_status pnb__slope_pair_init(pnb__slope_pair *pair, size_t n, pnb_error *err);
void pnb__slope_pair_reset(pnb__slope_pair *pair);

/* At least mean s(b - a sqrt(d2 + 1e-6)) of the pair, a > 0; `value` is, and is what comes back
 * where no closer one is known. */
float pnb__slope_bound(const pnb__slope_pair *pair, const pnb__kernels *k, const pnb_ctx *ctx,
                       const double match[2], const pnb__byte_lengths lengths[2], float value);

#endif
