/* The graphs and arrays of one optimiser step: step.c makes them, step_run.c runs them. */
#ifndef PNB_TRAIN_CONTRASTIVE_STEP_GRAPHS_H
#define PNB_TRAIN_CONTRASTIVE_STEP_GRAPHS_H

#include "train/contrastive/contrastive.h"
#include "train/contrastive/mix.h"

enum { IMAGE, TEXT, MASKED_IMAGE, MASKED_TEXT, NEGATIVE, N_SIDES };

/* Both towers and their masked passes on one micro-batch. */
typedef struct towers {
    pnb__graph *graph;
    pnb__tensor *pixels, *masked_ids, *kept, *kept_positions;
    pnb__tower_in text;     /* ids, and where captions end */
    pnb__tower_in negative; /* the same of hard negatives; ids NULL: there are none */
    pnb__dist side[N_SIDES];
} towers;

/* What losses read of a tower, (B,D) each; the residuals only where diversity has a weight. */
enum { MEAN, LOG_VAR, RESIDUAL, N_PARTS };

/* Distributions of a whole step on the host: a side's parts and their gradients. */
typedef struct side_arrays {
    float *value[N_PARTS], *d[N_PARTS]; /* value NULL where it is kept in fewer bits: */
    uint16_t *rounded[N_PARTS];         /* bfloat16; NULL else */
} side_arrays;

/* What a loss gave, and its gated terms before their gates: doubles alone, so that they are added
 * as an array. */
typedef struct pnb__step_loss_values {
    double term[PNB_N_LOSS_TERMS], total, unc[2], gated[PNB__LOSS_MOST_GATES];
} pnb__step_loss_values;

struct pnb__step_graphs {
    size_t n_negatives; /* rows of a micro-batch */
    size_t batch, n_masked, length, n_patches, n_kept, dim;
    size_t n_micro, first_micro, n_all; /* micro-batches: ours, number of our first, of all */
    towers whole;                       /* all parts in one when n_all is 1 */
    towers encode;                      /* part 1, no gradients */
    towers back;                        /* part 3 */
    pnb__graph *loss_graph;
    pnb__dist loss_side[N_SIDES]; /* inputs of part 2 */
    pnb__dist seed[N_SIDES];      /* inputs of part 3: gradients of the distributions */
    pnb__loss loss;
    bool shares_rows; /* each process computes the losses of its rows; else all do those of all */
    pnb__step_loss_values values; /* of all processes, where they share */
    bool is_closed[PNB__LOSS_MOST_GATES];
    pnb__tensor *image_unc, *text_unc; /* mean traces, NULL without uncertainty */
    side_arrays arrays[N_SIDES];       /* all micro-batches, n_all > 1 */
    float *pixels; /* copies of our batches, n_all > 1 or where pictures are mixed */
    pnb__mixer mixer;
    pnb__mix mix;          /* of the batch at hand; order NULL: none is mixed */
    pnb__mix_marks labels; /* of the pairs of the step; columns NULL: each matches its own, by 1 */
    int32_t *ids, *masked_ids, *negative_ids, *kept, *kept_positions;
    pnb__dist teacher[2];    /* inputs of the loss; mean NULL: no teacher */
    int32_t *teacher_row[2]; /* [pairs of the step] of pictures and captions, in their order */
    float *teacher_scratch;  /* (pairs of the step, D') */
    uint32_t *patch_scratch;
    unsigned char *text_scratch;
    size_t *from;         /* [processes + 1] what each has of an array, as it is exchanged */
    size_t *row_of;       /* [pairs of the step] where each stands; NULL: in their order */
    float *row_scratch;   /* rows of a micro-batch */
    double *grad_scratch; /* rows of a step */
    size_t n_pixels;      /* of a micro-batch */
    size_t host_bytes, sum_bytes; /* of all arrays here, stores included; of the exchange */
    pnb__flat *stores;            /* of all gradients, n_all > 1 */
    pnb__flat *sums; /* of those that are summed: all, or of LoRA what its adapter holds */
    size_t n_stores, n_sums;
    pnb_status begin_status; /* of sums that began within a graph's run */
    pnb_error begin_error;
    pnb__kernels kernels;
    pnb__contrastive *owner;
};

/* Number of a process's first micro-batch in the step; of the one behind the last, of all. */
static inline size_t pnb__step_first_micro(const pnb__step_graphs *s, size_t rank)
{
    return rank * s->n_all / s->owner->exchange->n_ranks;
}

/* The loss sees nothing but what one graph makes. */
static inline bool pnb__step_is_whole(const pnb__step_graphs *s)
{
    return s->n_all == 1;
}

/* B of a whole side, M of a masked one, those of negatives. */
static inline size_t pnb__step_side_rows(const pnb__step_graphs *s, int side)
{
    return side < MASKED_IMAGE ? s->batch : side < NEGATIVE ? s->n_masked : s->n_negatives;
}

/* Place of row `row` of our micro-batch `micro` among the step's rows: masked originals first. */
static inline size_t pnb__step_row(const pnb__step_graphs *s, int side, size_t micro, size_t row)
{
    micro += s->first_micro;
    if (side == NEGATIVE)
        return micro * s->n_negatives + row;
    if (side >= MASKED_IMAGE || row < s->n_masked)
        return micro * s->n_masked + row;
    return s->n_all * s->n_masked + micro * (s->batch - s->n_masked) + row - s->n_masked;
}

/* One of the three by its number, so that what is copied, kept or sent is one loop. */
static inline pnb__tensor **pnb__dist_part(pnb__dist *d, int part)
{
    return part == MEAN ? &d->mean : part == LOG_VAR ? &d->log_var : &d->residual;
}

/* Whether the loss reads part `i` of all sides' parts. */
static inline bool pnb__step_has_part(const pnb__step_graphs *s, int i)
{
    pnb__dist side = s->loss_side[i / N_PARTS];
    return *pnb__dist_part(&side, i % N_PARTS) != NULL;
}

static inline bool pnb__towers_has(const towers *tw, int side)
{
    return tw->side[side].mean != NULL;
}

/* ---- step_exchange.c ---- */

/* Our rows, where the processes share them. */
pnb__row_share pnb__step_row_share(const pnb__step_graphs *s);
/* The distributions of all processes into the arrays of the step. */
pnb_status pnb__step_gather_rows(const pnb__step_graphs *s, pnb_error *err);
/* Runs the graph of the loss until all agree on what it is. */
pnb_status pnb__step_run_loss(pnb__step_graphs *s, pnb_error *err);
/* Of the last run, all rows counted. */
pnb__step_loss_values pnb__step_loss_values_of(const pnb__step_graphs *s);
/* Gradients of distributions and of the logits' scalars, read from that graph, become such that
 * every part of the loss counts once over the processes. */
pnb_status pnb__step_settle_grads(const pnb__step_graphs *s, pnb_error *err);

#endif
