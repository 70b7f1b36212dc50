/* Timing of search and of retrieval's evaluation on synthetic sets. */
#ifndef PNB_COMMANDS_BENCH_BENCH_SEARCH_H
#define PNB_COMMANDS_BENCH_BENCH_SEARCH_H

#include "commands/bench/bench.h"
#include "penumbra/prob.h"

typedef struct pnb__bench_search_opts {
    pnb__bench_opts times;
    size_t n, dim, n_queries, k;
    size_t n_centres;  /* directions around which rows lie; 0: anywhere */
    size_t n_factors;  /* directions of which rows are sums; 0: anywhere */
    const char *index; /* "flat" or a kind of index */
    double recall;     /* of those that aim at one */
    pnb_measure measure;
    int64_t n_samples; /* of avg_l2 and match_prob; 0: the measure's own */
} pnb__bench_search_opts;

/* One call of a prepared index. Fills median_s, min_s, max_s, prepare_s, gflops beside sgemm_gflops
 * (the faster of our kernels and OpenBLAS), read_gb_s beside bandwidth_gb_s, both shares, and
 * recall of the hits against all pairs in f64.  Errors  NOT_FOUND (measure), NOMEM, those of search
 */
pnb_status pnb__bench_search(pnb__app *app, void *args, pnb__result *r);

/* Retrieval both ways, n captions of n_queries pictures, n / n_queries each. */
pnb_status pnb__bench_eval(pnb__app *app, void *args, pnb__result *r);

/* Row i of a synthetic set: a unit mean in a random direction and log-variances around -8,
 * functions of (seed, i) alone. log_var may be NULL. */
void pnb__bench_fill_row(uint64_t seed, uint64_t row, size_t dim, float *mean, float *log_var);

#endif
