/* GroVE between its files: what is learned, how it is started, trained, kept and read.
 *
 * grove.c the method's calls and its file; grove_start.c pairs, latents and inducing points before
 * the first step; grove_fit.c the training; grove_read.c distributions of rows.
 * All numbers are of embeddings divided by `unit`, so that outputs vary by about 1.
 * Shape letters: N pairs, D width of a side, Q latent axes, M inducing points. */
#ifndef PNB_ADAPT_GROVE_H
#define PNB_ADAPT_GROVE_H

#include "adapt/adapter.h"
#include "adapt/gp/grove_loss.h"
#include "adapt/gp/latent.h"
#include "adapt/gp/marginals.h"
#include "train/trainer.h"

#define PNB__GROVE_JITTER 1e-6 /* on the diagonal of k(Z,Z), where k(x,x) begins as 1 */

/* Numbers of a side; noise is the variance of the likelihood. */
enum {
    PNB__GROVE_LENGTHSCALE,
    PNB__GROVE_SCALE,
    PNB__GROVE_NOISE,
    PNB__GROVE_UNIT,
    PNB__GROVE_N_NUMBERS
};

/* One side: the process of its outputs. */
typedef struct pnb__grove_part {
    size_t d;
    double number[PNB__GROVE_N_NUMBERS];
    double *z;         /* (M,Q) */
    double *constant;  /* (D) */
    double *q_mean;    /* (D,M) */
    void *factors;     /* factors.h: D of them in floats, or one in doubles */
    double *recognise; /* (Q, D + 1): of an embedding less `constant`, and 1: a latent to
                          start from */
    size_t n_missed;   /* S: pairs of a sample, */
    double *found;     /* (S,Q) the latent that a row alone is given, */
    double *missed;    /* (S,Q) and how far from it its pair's is */
} pnb__grove_part;

typedef struct pnb__grove_reader pnb__grove_reader;

enum { PNB__GROVE_SAMPLE = 1024 }; /* most pairs that a side's misses are kept of */

typedef struct pnb__grove {
    pnb__gp_kind kind;
    size_t q, m;
    bool is_shared; /* one covariance for all outputs */
    double unit;
    pnb__grove_part part[PNB_N_ADAPTER_SIDES];
    pnb__grove_reader *reader[PNB_N_ADAPTER_SIDES];
} pnb__grove;

size_t pnb__grove_n_factors(const pnb__grove *g, int side);
size_t pnb__grove_factor_bytes(const pnb__grove *g, int side);
/* Memory for the arrays of a side, its d and n_missed set.  Errors  NOMEM */
pnb_status pnb__grove_alloc(pnb__grove *g, int side, pnb_error *err);
void pnb__grove_reset(pnb__grove *g);
/* A side as marginals.h reads it. */
pnb__process pnb__grove_process(const pnb__grove *g, int side);

/* ---- grove_start.c ---- */

/* Rows that belong together, and the latents of the pairs. */
typedef struct pnb__grove_pairs {
    const pnb__adapter_job *job;
    size_t n;
    size_t *row[PNB_N_ADAPTER_SIDES]; /* (N) rows of the sets */
    double *x;                        /* (N,Q) */
    double *z;                        /* (M,Q) before training, of both sides */
} pnb__grove_pairs;
/* Lists the pairs of the truth, checks the embeddings, finds g->unit, the sides' constants, latents
 * by the first Q principal axes of both sides together (of unit variance each), M of them as
 * inducing points, far apart, kernels, noise, and the best q(v) of these.
 * Errors  ARG (fewer than two pairs, M > N, Q not below the widths), NUMERIC (values that are not
 *         finite, rows that are all the same, fewer than M different latents), NOMEM */
pnb_status pnb__grove_start(pnb__grove *g, const pnb_ctx *ctx, const pnb__adapter_job *job,
                            const pnb_adapter_opts *opts, pnb__grove_pairs *out, pnb_error *err);
void pnb__grove_pairs_reset(pnb__grove_pairs *pairs);
/* Rows `pair` (n) of a side over `unit`, a column each: y (D,n), or a row each: (n,D). */
void pnb__grove_columns(const pnb__grove *g, const pnb__grove_pairs *pairs, int side,
                        const uint32_t *pair, size_t n, double *y);
void pnb__grove_rows(const pnb__grove *g, const pnb__grove_pairs *pairs, int side,
                     const uint32_t *pair, size_t n, double *y);
/* `n` different numbers below `n_all`, the same for a seed, first in a list of all; in order where
 * n is n_all. Free with pnb__free.  Errors  NOMEM */
pnb_status pnb__grove_sample(uint32_t **out, size_t n_all, size_t n, uint64_t seed, pnb_error *err);
/* recognise of a side by ridge regression of the latents on (at most 8,192 of) its embeddings. */
pnb_status pnb__grove_recognise(pnb__grove *g, const pnb_ctx *ctx, const pnb__grove_pairs *pairs,
                                int side, pnb_error *err);

/* ---- grove_fit.c ---- */

typedef struct pnb__grove_result {
    double first, last; /* mean loss of the first and the last tenth of the steps */
    double jitter;      /* the largest that a factor needed */
    int64_t steps;
} pnb__grove_result;
/* The training as the loop sees it; g, pairs and opts must outlive it. Parameters have the names of
 * the arrays on disk, the logarithms of "kernel" and "latents" (N Q); trainer_reset closes it.
 * Errors  NOMEM */
typedef struct pnb__grove_fit pnb__grove_fit;
pnb_status pnb__grove_fit_create(pnb__grove_fit **out, pnb__grove *g, const pnb_ctx *ctx,
                                 pnb__grove_pairs *pairs, const pnb_adapter_opts *opts,
                                 pnb_error *err);
void pnb__grove_fit_free(pnb__grove_fit *fit);
pnb__objective pnb__grove_fit_objective(pnb__grove_fit *fit);
pnb__run_opts pnb__grove_fit_run(const pnb__grove_fit *fit); /* optimiser, batch, steps */
/* The pairs of an epoch (n) in batches: a full batch has the order of the pairs, others are drawn
 * anew for every epoch and seed. */
void pnb__grove_order(uint32_t *order, size_t n, size_t batch, uint64_t seed, uint64_t epoch);
/* Trains g and the pairs' latents; `watch` is asked before every step.
 * Errors  ARG, NUMERIC, NOMEM, INTERRUPTED */
pnb_status pnb__grove_train(pnb__grove *g, const pnb_ctx *ctx, pnb__grove_pairs *pairs,
                            const pnb_adapter_opts *opts, const pnb_watch *watch,
                            pnb__grove_result *out, pnb_error *err);

/* ---- grove_read.c ---- */

/* Makes g->reader of a side: what is computed once for all rows.  Errors  NUMERIC, NOMEM */
pnb_status pnb__grove_reader_make(pnb__grove *g, int side, const pnb_ctx *ctx, pnb_error *err);
void pnb__grove_reader_free(pnb__grove_reader *r);
/* found and missed of a side, by its reader.  Errors  NUMERIC, NOMEM */
pnb_status pnb__grove_find_misses(pnb__grove *g, int side, const pnb__grove_pairs *pairs,
                                  pnb_error *err);
/* Latents of a block's rows, and what the process says of them. */
pnb_status pnb__grove_read(const pnb__grove *g, const pnb_ctx *ctx, const pnb_adapter_opts *opts,
                           const pnb__adapter_block *block, pnb_error *err);

#endif
