/* Timing of encoding, training, search and evaluation, with the machine's own sgemm rate beside it.
 */
#ifndef PNB_COMMANDS_BENCH_BENCH_H
#define PNB_COMMANDS_BENCH_BENCH_H

#include "penumbra/model.h"
#include "penumbra/train.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__bench_opts {
    const char *model; /* directory, built-in configuration or config.json; NULL: the objective's */
    bool is_text, resident, steps;
    pnb_precision precision; /* of encode */
    pnb_train_precision train_precision;
    pnb_objective objective; /* of train */
    int64_t n_samples;       /* of its losses over samples; not above 0: the objective's */
    size_t batch_size;
    double seconds;              /* measure at least this long */
    size_t min_repeats;          /* and this often */
    void (*between)(void *user); /* runs before every repeat, not part of its time; may be NULL */
} pnb__bench_opts;

/* Fills the result with median_s, p99_s, min_s, max_s, items_per_s, gflops, sgemm_gflops, share.
 * Errors  those of the model; ARG */
pnb_status pnb__bench_encode(pnb__app *app, void *args, pnb__result *r);

/* Sorts and reports seconds of one repeat; for tests too. n >= 1. */
typedef struct pnb__bench_times {
    double median_s, p99_s, min_s, max_s; /* p99_s: 99 in 100 took no longer */
    size_t n;
} pnb__bench_times;
pnb__bench_times pnb__bench_summarise(double *seconds, size_t n);

/* Repeats work(user) as long and as often as the options say, after two runs that are not
 * counted. */
typedef pnb_status (*pnb__bench_fn)(void *user, pnb_error *err);
pnb_status pnb__bench_measure(pnb__app *app, const pnb__bench_opts *opts, pnb__bench_fn work,
                              void *user, pnb__bench_times *out);
/* What one repeat does. */
typedef struct pnb__bench_amount {
    size_t n_items;
    double flops; /* 0: not counted */
} pnb__bench_amount;
/* Measures, with sgemm's rate before and after, and fills the result as pnb__bench_encode does. */
pnb_status pnb__bench_run(pnb__app *app, const pnb__bench_opts *opts, pnb__bench_fn work,
                          void *user, const pnb__bench_amount *each, pnb__result *r);
/* GFLOP/s of one square f32 product that fits the caches, best of five (one where `seconds`, what a
 * repeat of the bench is to last, is 0), with the kernels of an instruction set; GENERIC is
 * OpenBLAS.
 */
double pnb__bench_sgemm(const pnb_ctx *ctx, pnb_isa isa, double seconds);
double pnb__bench_peak_bytes(void); /* of this process so far */

#endif
