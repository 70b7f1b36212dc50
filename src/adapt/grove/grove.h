/* GroVE between its files: what is learned, how it is started, trained, kept and read.
 *
 * grove.c the method's calls and its file; grove_start.c pairs, latents and inducing points before
 * the first step; grove_fit.c the training and grove_side.c what a step is to one side;
 * grove_read.c distributions of rows and grove_strays.c what they say of their counterparts. All
 * numbers are of embeddings divided by `unit`, so that outputs vary by about 1. Shape letters: N
 * pairs, D width of a side, Q latent axes, M inducing points; K kernels: 1, or D where outputs are
 * mixed of processes of their own (lmc.h, "per output"). */
#ifndef PNB_ADAPT_GROVE_H
#define PNB_ADAPT_GROVE_H

#include "adapt/adapter.h"
#include "adapt/gp/grove_loss.h"
#include "adapt/gp/latent.h"
#include "adapt/gp/lmc.h"
#include "adapt/gp/marginals.h"
#include "train/trainer.h"

#define PNB__GROVE_JITTER 1e-6     /* on the diagonal of k(Z,Z), where k(x,x) begins as 1 */
#define PNB__GROVE_LMC_JITTER 1e-4 /* the released code's, with floats: per output */

/* Rows of numbers of a side, K each; noise is the variance of the likelihood. */
enum { PNB__GROVE_LENGTHSCALE, PNB__GROVE_SCALE, PNB__GROVE_NOISE, PNB__GROVE_N_NUMBERS };

/* One side: the process of its outputs. */
typedef struct pnb__grove_part {
    size_t d;
    double *number[PNB__GROVE_N_NUMBERS]; /* (K) each, one array */
    double *z;                            /* (K,M,Q) */
    double *constant;                     /* (D) */
    double *q_mean;                       /* (D,M) */
    void *factors;     /* factors.h: D of them in floats, or one in doubles; per output D times one
                        * in floats */
    double *mixing;    /* (D,D) [process][output]; NULL: outputs are the processes */
    double *recognise; /* (Q, D + 1): of an embedding less `constant`, and 1: a latent to
                          start from */
    size_t n_missed;   /* S: pairs of a sample, */
    double *found;     /* (S,Q) the latent that a row alone is given, */
    double *missed;    /* (S,Q) and how far from it its pair's is; the sides have the same sample */
    double *strayed;   /* (S,D) grove_strays.c; NULL: not wanted */
} pnb__grove_part;

typedef struct pnb__grove_reader pnb__grove_reader;

/* Most pairs that a side's misses are kept of; per output, where a row takes D times as long. */
enum { PNB__GROVE_SAMPLE = 1024, PNB__GROVE_LMC_SAMPLE = 256 };

typedef struct pnb__grove {
    pnb__gp_kind kind;
    size_t q, m;
    bool is_shared; /* one covariance for all outputs */
    bool is_mixed;  /* per output */
    double unit;
    pnb__grove_part part[PNB_N_ADAPTER_SIDES];
    pnb__grove_reader *reader[PNB_N_ADAPTER_SIDES];
} pnb__grove;

size_t pnb__grove_n_kernels(const pnb__grove *g, int side); /* K */
/* Factors beside each other: with processes of their own, of each. */
size_t pnb__grove_n_factors(const pnb__grove *g, int side);
size_t pnb__grove_factor_bytes(const pnb__grove *g, int side); /* of all */
double pnb__grove_jitter(const pnb__grove *g);
/* Memory for the arrays of a side, its d and n_missed set.  Errors  NOMEM */
pnb_status pnb__grove_alloc(pnb__grove *g, int side, pnb_error *err);
void pnb__grove_reset(pnb__grove *g);
/* A side as marginals.h reads it, or lmc.h. */
pnb__process pnb__grove_process(const pnb__grove *g, int side);
pnb__lmc_process pnb__grove_lmc_process(const pnb__grove *g, int side);

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
/* The pairs of a job's truth, with room for their latents. A pair has a latent of its own, so where
 * a caption fits many pictures one is drawn once and for all from opts->seed (opts->captions; one:
 * of a picture's captions).  Errors  ARG (fewer than two), LIMIT, NOMEM */
pnb_status pnb__grove_list(pnb__grove_pairs *out, const pnb__adapter_job *job, size_t q,
                           const pnb_adapter_opts *opts, pnb_error *err);
void pnb__grove_pairs_reset(pnb__grove_pairs *pairs);
/* Rows `pair` (n) of a side over `unit`, a column each: y (D,n), or a row each: (n,D). */
void pnb__grove_columns(const pnb__grove *g, const pnb__grove_pairs *pairs, int side,
                        const uint32_t *pair, size_t n, double *y);
void pnb__grove_rows(const pnb__grove *g, const pnb__grove_pairs *pairs, int side,
                     const uint32_t *pair, size_t n, double *y);
/* `n` different numbers below `n_all`, the same for a seed, first in a list of all; in order where
 * n is n_all. Free with pnb__free.  Errors  NOMEM */
pnb_status pnb__grove_sample(uint32_t **out, size_t n_all, size_t n, uint64_t seed, pnb_error *err);

/* ---- grove_recognise.c ---- */

/* recognise of a side by ridge regression of the latents on (at most 8,192 of) its embeddings. */
pnb_status pnb__grove_recognise(pnb__grove *g, const pnb_ctx *ctx, const pnb__grove_pairs *pairs,
                                int side, pnb_error *err);

/* ---- grove_fit.c ---- */

typedef struct pnb__grove_result {
    double first, last; /* mean loss of the first and the last tenth of the steps */
    double jitter;      /* the largest that a factor needed in this process */
    int64_t steps;
    double best_loss, best_step; /* of the held-out pairs; NaN: there were none */
} pnb__grove_result;
/* The training as the loop sees it; g, pairs and opts must outlive it. Parameters have the names of
 * the arrays on disk, the logarithms of "kernel" and "latents" (N Q); trainer_reset closes it. With
 * data not NULL its held-out pairs validate; `settings` stand in a run's files.
 * Errors  NOMEM */
typedef struct pnb__grove_fit pnb__grove_fit;
typedef struct pnb__grove_run {
    const pnb_adapter_opts *opts;
    const pnb_adapter_data *data; /* NULL: nothing is held out, watched or kept */
    pnb__settings settings;
} pnb__grove_run;
pnb_status pnb__grove_fit_create(pnb__grove_fit **out, pnb__grove *g, const pnb_ctx *ctx,
                                 pnb__grove_pairs *pairs, const pnb__grove_run *run,
                                 pnb_error *err);
void pnb__grove_fit_free(pnb__grove_fit *fit);
pnb__objective pnb__grove_fit_objective(pnb__grove_fit *fit);
/* Optimiser, batch, steps, and where a run is kept. */
pnb__run_opts pnb__grove_fit_run(pnb__grove_fit *fit);
/* The pairs of an epoch (n) in batches: a full batch has the order of the pairs, others are drawn
 * anew for every epoch and seed. */
void pnb__grove_order(uint32_t *order, size_t n, size_t batch, uint64_t seed, uint64_t epoch);
/* Trains g and the pairs' latents.
 * Errors  ARG, NUMERIC, NOMEM, INTERRUPTED, those of a run's files */
pnb_status pnb__grove_train(pnb__grove *g, const pnb_ctx *ctx, pnb__grove_pairs *pairs,
                            const pnb__grove_run *run, pnb__grove_result *out, pnb_error *err);

/* ---- grove_held_out.c ---- */

/* Held-out pairs, at most 1,024 of them, the same ones every time. */
typedef struct pnb__grove_held_out {
    pnb__adapter_job job;
    pnb__grove_pairs pairs;
    uint32_t *sample;
    size_t n;
} pnb__grove_held_out;
/* Errors  ARG (fewer than two pairs), LIMIT, NOMEM */
pnb_status pnb__grove_held_out_open(pnb__grove_held_out *out, const pnb_adapter_data *data,
                                    size_t q, const pnb_adapter_opts *opts, pnb_error *err);
void pnb__grove_held_out_reset(pnb__grove_held_out *held);
/* The loss of a pair without the divergence, which is of the parameters alone, at the latent that
 * its picture alone is given and at the one of its caption: mean of both, and over the pairs. g's
 * arrays are those of the moment; its recognisers and readers are made anew.  Errors  NUMERIC,
 * NOMEM */
pnb_status pnb__grove_held_out_loss(const pnb__grove_held_out *held, pnb__grove *g,
                                    const pnb_ctx *ctx, const pnb__grove_pairs *pairs,
                                    const pnb__grove_loss_opts *loss, double *out, pnb_error *err);

/* ---- grove_read.c ---- */

/* Makes g->reader of a side anew: what is computed once for all rows.  Errors  NUMERIC, NOMEM */
pnb_status pnb__grove_reader_make(pnb__grove *g, int side, const pnb_ctx *ctx, pnb_error *err);
void pnb__grove_reader_free(pnb__grove_reader *r);
/* found and missed of a side, by its reader.  Errors  NUMERIC, NOMEM */
pnb_status pnb__grove_find_misses(pnb__grove *g, int side, const pnb__grove_pairs *pairs,
                                  pnb_error *err);
/* strayed of a side (grove_strays.c), by its reader and what both sides found.  Errors  NUMERIC,
 * NOMEM */
pnb_status pnb__grove_find_strays(pnb__grove *g, int side, pnb_error *err);
/* Room in which rows are read by a side's reader, for one thread; the reader stays where it is
 * meanwhile.  Errors  NOMEM */
typedef struct pnb__grove_reading pnb__grove_reading;
pnb_status pnb__grove_reading_open(pnb__grove_reading **out, const pnb__grove *g, int side,
                                   pnb_error *err);
void pnb__grove_reading_free(pnb__grove_reading *w); /* NULL is fine */
/* Of at most PNB__GROVE_CHUNK rows: latents x (n,Q) of the side's rows of pairs, and what the side
 * says at latents, mean and var (D,n) without noise; var may be NULL.  Errors  NUMERIC, NOMEM */
enum { PNB__GROVE_CHUNK = 128 };
pnb_status pnb__grove_place(pnb__grove_reading *w, const pnb__grove_pairs *pairs,
                            const uint32_t *pair, size_t n, double *x, pnb_error *err);
pnb_status pnb__grove_say(pnb__grove_reading *w, const double *x, size_t n, double *mean,
                          double *var, pnb_error *err);
/* Latents of a block's rows, and what the process says of them. */
pnb_status pnb__grove_read(const pnb__grove *g, const pnb_adapter_opts *opts,
                           const pnb__adapter_block *block, pnb_error *err);

#endif
