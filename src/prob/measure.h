/* What the files of this folder and src/index share about measures. */
#ifndef PNB_PROB_MEASURE_H
#define PNB_PROB_MEASURE_H

#include "base/base.h"
#include "penumbra/prob.h"

/* The opts to use when the caller gave NULL. */
pnb_measure_opts pnb__measure_opts_or_default(const pnb_measure_opts *opts);

/* Whether the measure can be taken between these two sides: same width, variances where needed. */
pnb_status pnb__measure_check(pnb_measure measure, const pnb_gaussians *a, const pnb_gaussians *b,
                              const pnb_measure_opts *opts, pnb_error *err);

/* Samples of row `row`: value j,d is a function of (seed, side, row, j, d) alone. */
double pnb__sample(const pnb_gaussians *g, size_t row, size_t d, size_t j, unsigned side,
                   uint64_t seed);

/* One sample pair's contribution: sqrt(d2) for avg_l2, s(factor*l) for match_prob. */
double pnb__sample_term(pnb_measure measure, double distance2, const pnb_measure_opts *opts);

/* Rows begin .. begin+n of one side, unpacked to f64 with what the fused loops need. */
typedef struct pnb__tile {
    size_t n, dim;
    double *mean, *var;
    double *aux;     /* w2: std; kl, jeffreys: 1/var; Monte-Carlo: samples [n][J][dim] */
    double *log_sum; /* per row: sum of log-variances (mean: norm of the mean) */
    void *memory;
    size_t capacity;
} pnb__tile;

/* Memory for up to `capacity` rows; free with pnb__tile_free. NOMEM */
pnb_status pnb__tile_alloc(pnb__tile *tile, pnb_measure measure, size_t capacity, size_t dim,
                           const pnb_measure_opts *opts, pnb_error *err);
void pnb__tile_free(pnb__tile *tile);
void pnb__tile_fill(pnb__tile *tile, pnb_measure measure, const pnb_gaussians *g, size_t begin,
                    size_t n, unsigned side, const pnb_measure_opts *opts);

/* out[i*stride[0] + j*stride[1]] = value of row i of a against row j of b. */
void pnb__tile_measure(pnb_measure measure, const pnb__tile *a, const pnb__tile *b,
                       const pnb_measure_opts *opts, double *out, const size_t stride[2]);

#endif
