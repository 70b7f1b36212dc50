/* What methods that train a head on frozen rows share: parameters, the graph of a batch, the
 * training and the five calls of an adapter.
 *
 * A method says by its options which sides have heads and what family they end in (`declare`), what
 * a side makes of its rows (`side`), and what is made small (`loss`). Training, validation,
 * resuming and applying build their graphs from these three, so that what is applied is what was
 * trained. */
#ifndef PNB_ADAPT_HEADS_LEARNED_H
#define PNB_ADAPT_HEADS_LEARNED_H

#include "adapt/adapter.h"
#include "adapt/gen_gauss_loss.h"
#include "adapt/head.h"
#include "penumbra/optim.h"
#include "tensor/graph.h"
#include "train/losses/pair_loss.h"
#include "train/ranks/exchange.h"

enum {
    PNB__LEARNED_MAX_PARAMS = 48,
    PNB__LEARNED_MAX_TERMS = 6,
    PNB__LEARNED_MAX_HEADS = 5, /* of a side */
    PNB__LEARNED_MAX_WIDTH = 65536
};

/* What is drawn has a stream of its own, plus a number of its kind. */
#define PNB__STREAM_EPOCH ((uint64_t)1 << 40)   /* the order of an epoch */
#define PNB__STREAM_WEIGHTS ((uint64_t)2 << 40) /* fresh weights of a parameter */
#define PNB__STREAM_NOISE ((uint64_t)3 << 40)   /* samples of a step: 2 step + side */
#define PNB__STREAM_PASSES ((uint64_t)4 << 40)  /* passes with dropout of a row */

/* ---- parameters: learned_params.c ---- */

typedef struct pnb__learned_head {
    size_t n_layers;
    bool may_start_as_rows; /* its output stands for its input, of the same width */
    pnb__param *w[PNB__HEAD_MAX_LAYERS], *b[PNB__HEAD_MAX_LAYERS];
} pnb__learned_head;

/* A method's own struct. */
typedef struct pnb__learned {
    pnb__kernels kernels;
    pnb__param params[PNB__LEARNED_MAX_PARAMS], *list[PNB__LEARNED_MAX_PARAMS];
    char names[PNB__LEARNED_MAX_PARAMS][40];
    double start[PNB__LEARNED_MAX_PARAMS]; /* of scalars and of a last layer's biases; NaN: drawn */
    size_t n_params, n_weights;
    pnb__learned_head head[PNB_N_ADAPTER_SIDES][PNB__LEARNED_MAX_HEADS];
    pnb__param *scale, *shift;         /* of the loss; NULL without */
    bool is_unit[PNB_N_ADAPTER_SIDES]; /* rows of this side are read with unit length */
    /* mean length of the rows learned from where lengths are read: 1 exactly when all are unit */
    pnb__param *length[PNB_N_ADAPTER_SIDES];
    double mean_length[PNB_N_ADAPTER_SIDES]; /* its value */
    float *host; /* (n_weights) all parameters, once nothing changes them any more */
} pnb__learned;

/* For `declare`: a head of layers from `in` over n_hidden times `hidden` to `out`, named
 * <side>_<what>. `last_bias` is where the biases of the last layer begin, NaN: drawn. */
typedef struct pnb__head_shape {
    const char *what;
    size_t in, hidden, n_hidden, out;
    double last_bias;
} pnb__head_shape;
void pnb__learned_add_head(pnb__learned *l, int side, int place, const pnb__head_shape *shape);
/* A trained number that begins at `start`. */
pnb__param *pnb__learned_add_scalar(pnb__learned *l, const char *name, double start);
/* That a side reads rows with their lengths. */
void pnb__learned_add_length(pnb__learned *l, int side);
/* Memory, and fresh values as torch's Linear has them, drawn from `seed`. Errors  NOMEM */
pnb_status pnb__learned_fresh(pnb__learned *l, uint64_t seed, pnb_error *err);
/* Memory, and the values of a file. Errors  FORMAT, SHAPE, DTYPE, NUMERIC, NOMEM */
pnb_status pnb__learned_load(pnb__learned *l, const pnb_safetensors *file, const char *where,
                             pnb_error *err);
/* All numbers, in the order of the parameters: to or from x (n_weights). */
pnb_status pnb__learned_get(const pnb__learned *l, float *x, pnb_error *err);
pnb_status pnb__learned_set(pnb__learned *l, const float *x, pnb_error *err);
/* Views of x (n_weights) by the parameters' names, each with `prefix` before it, which must be a
 * constant text: names are made in `names`. */
typedef char pnb__learned_names[PNB__LEARNED_MAX_PARAMS][48];
void pnb__learned_views(const pnb__learned *l, const float *x, const char *prefix,
                        pnb__learned_names names, pnb_array_view *views);
void pnb__learned_reset(void *self);

/* ---- a batch in a graph: learned_graph.c ---- */

/* What a side makes of its rows, (B,D) but kappa (B). What the family does not have is NULL. */
typedef struct pnb__learned_side {
    pnb__tensor *mean, *log_var, *var, *kappa, *inv_alpha, *beta;
} pnb__learned_side;

typedef struct pnb__learned_graph {
    const pnb_adapter *a;
    const pnb__learned *l;
    pnb__graph *g;
    size_t n; /* B */
    bool is_training;
    pnb__tensor *x[PNB_N_ADAPTER_SIDES]; /* rows as they are read */
    pnb__learned_side side[PNB_N_ADAPTER_SIDES];
    struct {
        const char *name;
        pnb__tensor *value;
    } term[PNB__LEARNED_MAX_TERMS];
    size_t n_terms;
    pnb__tensor *total;
    /* Made on demand below and filled once, but noise, which is drawn each step. */
    pnb__tensor *matches, *signs, *identity, *first;
    pnb__tensor *noise[PNB_N_ADAPTER_SIDES]; /* (B,J,D) */
    pnb__tensor *keep[PNB_N_ADAPTER_SIDES];  /* (B,hidden): filled by whoever draws passes */
    bool wants_keep;                         /* before `side`: that `keep` is made */
} pnb__learned_graph;

/* How the papers train; the small recipe is one for all. */
typedef struct pnb__learned_recipe {
    pnb_optim_kind kind;
    double lr, weight_decay, clip;
    int64_t batch_size, epochs, hidden, layers;
} pnb__learned_recipe;

typedef struct pnb__learned_calls {
    pnb__learned_recipe published;
    /* In place of the small recipe's where not 0. */
    struct {
        double lr;
        int64_t batch_size, steps;
    } small;
    /* By a->opts and the widths of a->part: which sides are adapted, family and measure of the
     * sets, and the parameters. Errors  ARG (an option out of range) */
    pnb_status (*declare)(pnb_adapter *a, pnb__learned *l, pnb_error *err);
    /* x (B,dim) of a side that is adapted. */
    void (*side)(pnb__learned_graph *lg, int side, pnb__tensor *x, pnb__learned_side *out);
    /* Both sides are there; one that is not adapted has x as its mean. Tells terms. */
    void (*loss)(pnb__learned_graph *lg);
    /* Concentration of a head's first outputs where rows of pairs have this mean cosine, in
     * (0, 0.99]; NULL: 1. */
    double (*first_kappa)(const pnb_adapter *a, size_t dim, double cosine);
    /* In place of one pass through `side`, or NULL. */
    pnb_status (*apply)(const pnb_adapter *a, const pnb__adapter_block *block, pnb_error *err);
    /* The scale of scores by the sets' measure from the learned one, or NULL: the model's stays. */
    double (*score_scale)(const pnb_adapter *a, double learned);
    bool learns_match; /* scale and shift are a and b of match_prob */
} pnb__learned_calls;

/* The graph of a batch of n pairs; `lg` need not be initialised. Free with
 * pnb__learned_graph_reset. */
pnb_status pnb__learned_graph_init(pnb__learned_graph *lg, const pnb_adapter *a, size_t n,
                                   bool is_training, pnb_error *err);
/* The graph of one side alone, of n rows. `wants_keep` as above. */
pnb_status pnb__learned_graph_side(pnb__learned_graph *lg, const pnb_adapter *a, int side, size_t n,
                                   bool wants_keep, pnb_error *err);
void pnb__learned_graph_reset(pnb__learned_graph *lg);
/* x[s] (n, dim) of both sides; everything random is drawn from a->opts.seed and `step`. */
pnb_status pnb__learned_graph_run(pnb__learned_graph *lg, float *const x[PNB_N_ADAPTER_SIDES],
                                  uint64_t step, pnb_error *err);

/* Parts of a side by their number, in the order of its struct. */
enum { PNB__LEARNED_N_PARTS = 6 };
pnb__tensor **pnb__learned_part(pnb__learned_side *s, int part);
/* Both sides of n rows as training has them, without a loss; to be planned by the caller. */
pnb_status pnb__learned_graph_sides(pnb__learned_graph *lg, const pnb_adapter *a, size_t n,
                                    bool with_grad, pnb_error *err);
/* The loss of n pairs whose sides are inputs with gradients, of the same parts as `of` makes. */
pnb_status pnb__learned_graph_loss(pnb__learned_graph *lg, const pnb_adapter *a, size_t n,
                                   const pnb__learned_graph *of, pnb_error *err);

/* ---- a step in passes, of several processes: learned_passes.c ---- */

typedef struct pnb__learned_passes {
    pnb_adapter *a;
    const pnb__exchange *exchange;
    size_t n_all, rows;                          /* passes of a step; rows of one */
    pnb__learned_graph encode, back, loss;       /* `rows` each, and those of the batch */
    pnb__learned_side seed[PNB_N_ADAPTER_SIDES]; /* of `back`: gradients by what it makes */
    struct {
        float *value, *d; /* (batch, width) */
        size_t width;     /* 0: no side makes it */
    } part[PNB_N_ADAPTER_SIDES * PNB__LEARNED_N_PARTS];
    pnb__flat stores[PNB__LEARNED_MAX_PARAMS];
    size_t n_stores;
    double *wide; /* a gradient as it is read */
    size_t *from; /* [processes + 1] */
} pnb__learned_passes;

/* n_all passes of a step of n_pairs; the exchange has sums of its own (pnb__exchange_create).
 * Reset whether it succeeded or not. Errors  ARG (the passes do not come out even, or are fewer
 * than the processes), NOMEM */
pnb_status pnb__learned_passes_init(pnb__learned_passes *p, pnb_adapter *a, size_t n_pairs,
                                    size_t n_all, const pnb__exchange *x, pnb_error *err);
void pnb__learned_passes_reset(pnb__learned_passes *p);
/* x[s] (n_pairs, dim) of both sides: gradients are ready to be summed, and p->loss has the terms.
 */
pnb_status pnb__learned_passes_run(pnb__learned_passes *p, float *const x[PNB_N_ADAPTER_SIDES],
                                   uint64_t step, pnb_error *err);

/* ---- for `side` and `loss` ---- */
pnb__tensor *pnb__learned_apply(const pnb__learned_graph *lg, int side, int place, pnb__tensor *x);
pnb__tensor *pnb__learned_scale(const pnb__learned_graph *lg); /* () */
pnb__tensor *pnb__learned_shift(const pnb__learned_graph *lg);
pnb__tensor *pnb__learned_matches(pnb__learned_graph *lg);  /* int32 (B): 0, 1, 2, ... */
pnb__tensor *pnb__learned_signs(pnb__learned_graph *lg);    /* (B,B): 1 on the diagonal, else -1 */
pnb__tensor *pnb__learned_identity(pnb__learned_graph *lg); /* (B,B) */
pnb__tensor *pnb__learned_first(pnb__learned_graph *lg);    /* int32 (B): b B + b */
pnb__tensor *pnb__learned_noise(pnb__learned_graph *lg, int side, size_t n_samples);
/* A term of the loss, weighted already: the total is the sum of all. */
void pnb__learned_tell(pnb__learned_graph *lg, const char *name, pnb__tensor *value);
/* The mean is the row as it is read, log-variances are the side's first head. */
void pnb__learned_gaussian_side(pnb__learned_graph *lg, int side, pnb__tensor *x,
                                pnb__learned_side *out);
/* For `declare`: both sides have such a head, the means are unit rows, ranked by their cosine. */
pnb_status pnb__learned_declare_gaussians(pnb_adapter *a, pnb__learned *l);

/* ---- rows and pairs: learned_rows.c ---- */

/* Pairs of rows in an order of their own. */
typedef struct pnb__learned_pairs {
    const pnb_embeddings *set[PNB_N_ADAPTER_SIDES];
    uint32_t *row[PNB_N_ADAPTER_SIDES]; /* [n] */
    uint32_t *group;                    /* [n_groups + 1]: pairs of a picture, or of a caption */
    uint32_t *order;                    /* [n_order] of pairs */
    size_t n, n_groups, n_order;
    size_t n_read_bytes; /* since pages were let go of */
} pnb__learned_pairs;

/* Errors  ARG (fewer than two pairs), LIMIT, NOMEM */
pnb_status pnb__learned_pairs_init(pnb__learned_pairs *p, const pnb_embeddings *images,
                                   const pnb_embeddings *texts, const pnb_truth *truth,
                                   pnb_adapt_texts order, pnb_error *err);
void pnb__learned_pairs_reset(pnb__learned_pairs *p);
/* Draws the order of an epoch: a function of seed and epoch. */
void pnb__learned_pairs_shuffle(pnb__learned_pairs *p, uint64_t seed, uint64_t epoch);
/* Pairs first .. first+n of the order, which goes on from its beginning behind its end. */
void pnb__learned_pairs_read(pnb__learned_pairs *p, const pnb__learned *l, size_t first, size_t n,
                             float *const x[PNB_N_ADAPTER_SIDES]);
/* Rows as they are, or with unit length. */
void pnb__learned_copy_row(const float *row, size_t dim, bool is_unit, float *out);
/* All rows that pairs are made of: finite, of some length, not all the same. *length: the mean
 * length, 1 exactly where all are unit. Errors  NUMERIC */
pnb_status pnb__learned_check_rows(const pnb__adapter_rows *rows, double *length, pnb_error *err);

/* ---- recipes: learned_recipe.c ---- */

/* Puts what the recipe chooses into a->opts. Errors  ARG (out of range, a batch larger than an
 * epoch) */
pnb_status pnb__learned_choose(pnb_adapter *a, const pnb__learned_pairs *pairs, pnb_error *err);
/* The optimiser of a recipe that was chosen. */
pnb_optim_opts pnb__learned_optim(const pnb_adapter *a);
/* ARG unless low <= x <= high. */
pnb_status pnb__learned_check_range(const pnb_adapter *a, const char *name, double x, double low,
                                    double high, pnb_error *err);

/* ---- where heads begin: learned_start.c ---- */

/* Chooses a->opts.start and puts heads that may to where it says; fresh weights, the sides' lengths
 * and the recipe are there. Leaves the order of epoch 0 in `pairs`. Errors  ARG (hidden layers are
 * too narrow), NOMEM */
pnb_status pnb__learned_start(pnb_adapter *a, pnb__learned_pairs *pairs, pnb_error *err);

/* ---- training: learned_train.c ---- */

pnb_status pnb__learned_train(pnb_adapter *a, const pnb__adapter_job *job,
                              pnb__learned_pairs *pairs, pnb_error *err);

/* ---- the calls of an adapter: learned.c ---- */
pnb_status pnb__learned_fit(pnb_adapter *a, const pnb__adapter_job *job, pnb_error *err);
pnb_status pnb__learned_open(pnb_adapter *a, const pnb_safetensors *file, const char *where,
                             pnb_error *err);
pnb_status pnb__learned_arrays(const pnb_adapter *a, pnb__adapter_arrays *to, pnb_error *err);
pnb_status pnb__learned_apply_block(const pnb_adapter *a, const pnb__adapter_block *block,
                                    pnb_error *err);
/* Rows of a block as they are read; NUMERIC for one that cannot be. */
pnb_status pnb__learned_read_block(const pnb_adapter *a, const pnb__adapter_block *block, float *x,
                                   pnb_error *err);

/* The options of all these methods: rows of their tables. */
#define PNB__LEARNED_FIELDS(X)                                                                     \
    X("recipe", recipe, pnb__adapt_recipe_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)                   \
    X("captions", texts, pnb__adapt_texts_word, PNB__FIELD_ENUM, PNB__ALSO_NONE)                   \
    X("lr", lr, NULL, PNB__FIELD_DOUBLE, PNB__ALSO_NAN)                                            \
    X("batch_size", batch_size, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)                              \
    X("epochs", epochs, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)                                      \
    X("steps", steps, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)                                        \
    X("hidden", hidden, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)                                      \
    X("patience", patience, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)                                  \
    X("seed", seed, NULL, PNB__FIELD_U64, PNB__ALSO_NONE)
#define PNB__LEARNED_FIELD(word, member, names, kind, also)                                        \
    {word, offsetof(pnb_adapter_opts, member), names, kind, true, also},

/* The calls of such a method, for a pnb__adapter_calls: those of learned.c, with its own `of` (a
 * pnb__learned_calls) and the table of its options. */
#define PNB__LEARNED_CALLS(of, options)                                                            \
    .self_bytes = sizeof(pnb__learned), .learned = &(of), .fields = (options),                     \
    .n_fields = PNB_COUNT(options), .fit = pnb__learned_fit, .open = pnb__learned_open,            \
    .arrays = pnb__learned_arrays, .apply = pnb__learned_apply_block, .reset = pnb__learned_reset

/* AsymVLM's Table A.1: what its benchmark trains every method with but for optimiser and rate. */
#define PNB__LEARNED_BENCHMARK(optimiser, rate, decay)                                             \
    {                                                                                              \
        .kind = (optimiser), .lr = (rate), .weight_decay = (decay), .batch_size = 2048,            \
        .epochs = 200, .hidden = 1024, .layers = 3                                                 \
    }

#endif
