/* The two passes of the resampler on raw rows; see resize.c for the equation. */
#ifndef PNB_IO_IMAGE_RESAMPLE_H
#define PNB_IO_IMAGE_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Weights of every output position along one axis: output i reads inputs first[i] .. first[i] +
 * count[i] with weight[i * stride + j], fixed point with PNB__RESAMPLE_BITS. stride is a multiple
 * of 4 and what follows count[i] is zero. low/high split a weight for 16-bit multiplies: weight =
 * high * 2^15 + low. */
#define PNB__RESAMPLE_BITS 22
typedef struct pnb__taps {
    int n, stride;
    int *first, *count;
    int32_t *weight;
    int16_t *low, *high;
    double *exact; /* the weights unrounded, for 16-bit grey; else NULL */
} pnb__taps;

/* Bytes that may be read behind the last pixel of `in` by the horizontal pass. */
#define PNB__RESAMPLE_SLACK 16

/* out[x][c] = clip(sum_j in[first[x] + j][c] * weight[x][j]) for all x of `taps`. */
typedef void (*pnb__horizontal_fn)(unsigned char *out, const unsigned char *in,
                                   const pnb__taps *taps, int channels);
/* out[b] = clip(sum_j in[(first[y] + j) * row_bytes + b] * weight[y][j]), one output row y. */
typedef void (*pnb__vertical_fn)(unsigned char *out, const unsigned char *in, size_t row_bytes,
                                 const pnb__taps *taps, int y);

typedef struct pnb__resampler {
    pnb__horizontal_fn horizontal;
    pnb__vertical_fn vertical;
} pnb__resampler;

/* Plain C, and the fastest this machine runs; both give the same bytes. */
pnb__resampler pnb__resampler_plain(void);
pnb__resampler pnb__resampler_best(void);

#endif
