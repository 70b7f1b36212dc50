/* Times what a process of several computes of a loss: with --local-loss its own rows against all,
 * without it the losses of all rows. Forward and backward, the exchange not in it.
 *
 *   time_loss_share TERM B D RANKS REPEATS THREADS
 *
 * TERM is ppcl, siglip, clip, pcmepp, or of 7 samples of a row pcme or uniformity; rank 0's share
 * of B pairs, RANKS 1: all of them. Prints the least of the repeats in seconds, the operations of
 * the products, and the memory of the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "train/losses/loss.h"

typedef struct job {
    pnb_loss_term term;
    size_t n_pairs, dim, n_ranks;
    int repeats;
    pnb_ctx *ctx;
    pnb__graph *g;
    pnb__loss loss;
    pnb__dist side[2];
} job;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Gradients of all distributions are wanted, as in a step of several processes. */
static pnb_status build(job *j, pnb_error *err)
{
    const size_t shape[2] = {j->n_pairs, j->dim};
    pnb_loss_opts o = pnb_loss_opts_default();
    pnb_status status = pnb__graph_create(&j->g, j->ctx, PNB__F32, true, err);
    if (status != PNB_OK)
        return status;
    memset(o.weight, 0, sizeof o.weight);
    o.weight[j->term] = 1;
    pnb__graph_set_checkpointing(j->g, true);
    for (int s = 0; s < 2; s++)
        j->side[s] = (pnb__dist){.mean = pnb__input_with_grad(j->g, 2, shape),
                                 .log_var = pnb__input_with_grad(j->g, 2, shape)};
    pnb__loss_in in = {.image = j->side[0],
                       .text = j->side[1],
                       .scale = pnb__constant(j->g, 10),
                       .bias = pnb__constant(j->g, -10),
                       .draws = true};
    if (j->n_ranks > 1)
        in.share = (pnb__row_share){{0, 0}, {0, j->n_pairs / j->n_ranks}, j->n_pairs};
    status = pnb__loss_build(&j->loss, j->g, &in, &o, err);
    if (status == PNB_OK)
        status = pnb__graph_plan(j->g, j->loss.total, err);
    if (status == PNB_OK)
        status = pnb__loss_start(&j->loss, err);
    return status == PNB_OK ? pnb__loss_set_step(&j->loss, 1, 0, NULL, err) : status;
}

/* Rows of about unit length with variances of a thousandth. */
static pnb_status fill(const job *j, pnb_error *err)
{
    size_t n = j->n_pairs * j->dim;
    float *x = pnb__alloc_array(n, sizeof *x);
    if (x == NULL)
        return pnb__fail_nomem(err, n * sizeof *x);
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < n; i++)
            x[i] = (float)((i * 2654435761U + (size_t)s) % 1000) / 1000 / (float)j->dim;
        pnb__write_f32(j->side[s].mean, x);
        for (size_t i = 0; i < n; i++)
            x[i] = -7;
        pnb__write_f32(j->side[s].log_var, x);
    }
    pnb__free(x);
    return PNB_OK;
}

static pnb_status run(job *j, pnb_error *err)
{
    double least = 1e30;
    pnb_status status = build(j, err);
    for (int i = 0; i < j->repeats && status == PNB_OK; i++) {
        status = fill(j, err); /* backward takes the place of inputs */
        double start = seconds();
        if (status == PNB_OK)
            status = pnb__graph_run(j->g, err);
        least = PNB_MIN(least, seconds() - start);
    }
    if (status == PNB_OK)
        printf("%s B %zu D %zu, 1 of %zu: %.3f s, %.3g operations, %.1f MB, value %.6g\n",
               pnb_loss_name(j->term), j->n_pairs, j->dim, j->n_ranks, least,
               pnb__graph_flops(j->g), (double)pnb__graph_arena_bytes(j->g) / 1e6,
               pnb__read_scalar(j->loss.total));
    pnb__graph_free(j->g);
    return status;
}

int main(int argc, char **argv)
{
    pnb_error err = PNB_ERROR_INIT;
    job j = {.term = PNB_N_LOSS_TERMS};
    if (argc != 7) {
        fprintf(stderr, "usage: time_loss_share TERM B D RANKS REPEATS THREADS\n");
        return 2;
    }
    static const pnb_loss_term terms[] = {PNB_LOSS_PPCL,   PNB_LOSS_SIGLIP, PNB_LOSS_CLIP,
                                          PNB_LOSS_PCMEPP, PNB_LOSS_PCME,   PNB_LOSS_UNIFORMITY};
    for (size_t i = 0; i < PNB_COUNT(terms); i++)
        if (strcmp(argv[1], pnb_loss_name(terms[i])) == 0)
            j.term = terms[i];
    j.n_pairs = strtoul(argv[2], NULL, 10);
    j.dim = strtoul(argv[3], NULL, 10);
    j.n_ranks = strtoul(argv[4], NULL, 10);
    j.repeats = atoi(argv[5]);
    const pnb_ctx_opts opts = {.n_threads = atoi(argv[6])};
    pnb_status status = pnb__fail(&err, PNB_ARG, "no such term, or nothing to do");
    if (j.term < PNB_N_LOSS_TERMS && j.n_pairs > 0 && j.dim > 0 && j.n_ranks > 0)
        status = pnb_ctx_create(&j.ctx, &opts, &err);
    if (status == PNB_OK)
        status = run(&j, &err);
    pnb_ctx_free(j.ctx);
    if (status != PNB_OK)
        fprintf(stderr, "time_loss_share: %s\n", err.text);
    return status == PNB_OK ? 0 : 1;
}
