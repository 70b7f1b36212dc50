/* Timing of adapters: a training step, and a batch applied. */
#ifndef PNB_COMMANDS_BENCH_BENCH_ADAPT_H
#define PNB_COMMANDS_BENCH_BENCH_ADAPT_H

#include "commands/bench/bench.h"
#include "penumbra/adapt.h"

typedef struct pnb__bench_adapt_opts {
    pnb__bench_opts times; /* batch_size, seconds and min_repeats are read */
    const char *method;
    size_t dim;
    size_t n_pairs; /* 0: four batches, and no less than PNB__BENCH_ADAPT_PAIRS */
    pnb_adapter_opts options;
} pnb__bench_adapt_opts;
enum { PNB__BENCH_ADAPT_PAIRS = 1024 };

/* Learns from made pairs until enough steps were timed, then once more for a few steps, and applies
 * what comes of it to a batch of other captions. Fills median_s, min_s, max_s and items_per_s of a
 * step, or fit_s of a method without steps; infer_s of the batch; peak_rss_mb.
 * Errors  those of learning and applying; ARG (a batch larger than the pairs) */
pnb_status pnb__bench_adapt(pnb__app *app, void *args, pnb__result *r);

#endif
