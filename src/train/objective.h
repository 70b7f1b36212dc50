/* What can be trained: all that the loop, the optimiser, checkpoints and the record know of it.
 *
 * An objective owns its parameters and its data. A step reads the next samples, turns them into
 * distributions, these into loss terms, and leaves the gradient of their sum in the parameters'
 * `grad`. The loop does what every training needs: it checks the numbers, sums gradients over
 * processes, clips, updates, validates when due, writes checkpoints and resumes from them. Towers
 * over pictures, a head on frozen features and an adapter on an embedding set differ in the table
 * below and in nothing above it. */
#ifndef PNB_TRAIN_OBJECTIVE_H
#define PNB_TRAIN_OBJECTIVE_H

#include "penumbra/dataset.h"
#include "tensor/graph.h"
#include "train/optim/optim.h"
#include "train/ranks/exchange.h"
#include "train/run/run_settings.h"

/* Named numbers in the order in which they are written. `title` is a number's name in out.log;
 * NULL: it stands in results.jsonl only. */
typedef struct pnb__figure {
    const char *name, *title;
    double value;
} pnb__figure;

enum { PNB__MAX_FIGURES = 24 };
typedef struct pnb__figures {
    pnb__figure items[PNB__MAX_FIGURES];
    size_t n;
} pnb__figures;

/* At most PNB__MAX_FIGURES: more is an objective's mistake. */
void pnb__figures_add(pnb__figures *f, const char *name, const char *title, double value);

/* One step. The objective fills the first part, the loop the second. */
typedef struct pnb__step_values {
    pnb__figures terms; /* of the loss, weighted: their sum is `total` */
    double total;
    pnb__figures batch; /* seen in this batch beside the losses */
    pnb__figures state; /* of the parameters after the update */
    double data_s;      /* waiting for data */
    int culprit;        /* rank whose samples gave no finite number; -1: none is known */

    double lr, grad_norm, batch_s;
} pnb__step_values;

/* One validation. A loss is the mean over its n samples. */
typedef struct pnb__eval_values {
    /* set by the loop: the validation set is due, and not other figures alone; nothing follows */
    bool has_losses, is_last;
    size_t n;
    pnb__figures terms;
    double total;
    pnb__figures figures;
    double best;  /* the checkpoint of the lowest one is the best; NaN: not measured. Without
                   * has_figures it is `total` */
    double unc_r; /* what save_best_unc ranks by, lower is better; NaN: nothing */
} pnb__eval_values;

typedef struct pnb__trainer pnb__trainer;
typedef struct pnb__objective pnb__objective;

/* Something that is read and must be the same on every rank, and in a run that goes on, as a number
 * that another content does not have. The name is for messages and state.json: "captions". */
typedef struct pnb__mark {
    const char *name;
    uint64_t value;
} pnb__mark;

enum { PNB__MAX_MARKS = 8 };

/* A row may leave out what says "or NULL". `self` is the objective's own struct. */
typedef struct pnb__objective_calls {
    /* Opens data and parameters: fresh ones, or those that `save` wrote into `checkpoint`. Fills
     * what pnb__objective says. Called once, before everything else. */
    pnb_status (*open)(void *self, const char *checkpoint, pnb__objective *o, pnb_error *err);
    /* Makes ready for the first step: the next sample to read is that of `at`. */
    pnb_status (*start)(void *self, pnb_loader_position at, pnb__objective *o, pnb_error *err);
    /* Lines of out.log (pnb__record_info) before the first step and after the last one, or NULL. */
    pnb_status (*announce)(void *self, pnb__trainer *t, pnb_error *err);
    pnb_status (*conclude)(void *self, pnb__trainer *t, pnb_error *err);
    /* Step number `step` from 0: gradients into the parameters, numbers into `out`. Everything
     * random is a function of seed and step. */
    pnb_status (*step)(void *self, int64_t step, pnb__step_values *out, pnb_error *err);
    /* After the update, or NULL: bounds that parameters must keep, and out->state. */
    pnb_status (*updated)(void *self, pnb__step_values *out, pnb_error *err);
    /* The phases of a parameter's learning rate, or NULL: {1, 1, 0} for all. Asked once for each
     * that is trained, after `open`; what it goes by must be a fixed option. */
    pnb__optim_group (*group)(const void *self, const pnb__param *param);
    /* Of the next step's first sample. */
    pnb_loader_position (*position)(const void *self);
    /* Whether figures beside those of the validation set are due after `step` steps, or NULL: there
     * are none. */
    bool (*has_figures)(const void *self, int64_t step, bool is_last);
    /* After `step` steps; never called unless `validates` or has_figures. Parameters stay as they
     * are. */
    pnb_status (*validate)(void *self, int64_t step, pnb__eval_values *out, pnb_error *err);
    /* Whether training ends before its last step, or NULL: asked after each one. What it goes by
     * must come back from a checkpoint. */
    bool (*is_done)(const void *self);
    /* Writes the parameters and all that opening them needs into the folder `dir`. */
    pnb_status (*save)(void *self, const char *dir, pnb_error *err);
    /* Makes what no gradient trains (statistics of batch norm) anew for the parameters as they are,
     * or NULL. Called for a mean of weights, behind the last step. */
    pnb_status (*refresh)(void *self, pnb_error *err);
    /* Gives back what open and start took, whether they succeeded or not. */
    void (*close)(void *self);
} pnb__objective_calls;

struct pnb__objective {
    /* given by whoever asks for the training */
    const pnb__objective_calls *calls;
    void *self;
    pnb__settings settings; /* its options; valid before `open` */

    /* given by the loop before `open` */
    const pnb__exchange *exchange;

    /* filled by `open` */
    pnb__param *const *params; /* all that a checkpoint holds; the trainable ones are trained */
    size_t n_params;
    pnb__real real;
    size_t n_samples; /* of the training data: a resumed run must find as many */
    /* of the contents of what it reads; none are compared where it has none */
    pnb__mark marks[PNB__MAX_MARKS];
    size_t n_marks;
    int64_t steps_per_epoch;
    size_t n_weights; /* numbers in all parameters, for the log */
    bool validates;

    /* filled by `start` */
    size_t graph_bytes; /* planned memory of a step */
};

#endif
