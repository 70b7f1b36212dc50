/* Adapters from the command line: learning one, applying one, and what the methods are. */
#ifndef PNB_COMMANDS_ADAPT_ADAPT_H
#define PNB_COMMANDS_ADAPT_ADAPT_H

#include "commands/adapt/fewer_pairs.h"
#include "penumbra/adapt.h"
#include "program/app.h"
#include "program/options.h"
#include "program/result_end.h"

typedef struct pnb__adapt_train_opts {
    const char *method;
    const char *images, *texts; /* sets; one may be NULL */
    const char *truth;          /* NULL: all rows */
    pnb_truth_read_opts read;
    pnb__fewer_pairs_opts fewer;                                /* of the truth */
    const char *val_images, *val_texts, *val_truth, *val_split; /* held out: all or none */
    const char *logs, *name, *resume;                           /* of a run that is kept */
    pnb_adapter_opts options;
    const char *model;    /* whose activations the sets are; NULL: they are embeddings */
    const char *hessians; /* folder of released factors; NULL: none */
    const char *out;      /* folder of the adapter */
    int64_t n_passes, rank_timeout;
} pnb__adapt_train_opts;
pnb_status pnb__adapt_train(pnb__app *app, const pnb__adapt_train_opts *opts, pnb__result *r);

typedef struct pnb__adapt_apply_opts {
    const char *adapter;        /* folder */
    const char *images, *texts; /* the set: one of them */
    const char *out;            /* .safetensors or .npy */
} pnb__adapt_apply_opts;
pnb_status pnb__adapt_apply(pnb__app *app, const pnb__adapt_apply_opts *opts, pnb__result *r);

typedef struct pnb__adapt_attach_opts {
    pnb__text_list folders; /* the model, as --model takes it, and the adapter */
    const char *out;
} pnb__adapt_attach_opts;
pnb_status pnb__adapt_attach(pnb__app *app, const pnb__adapt_attach_opts *opts, pnb__result *r);

/* ---- adapt_show.c ---- */

/* The list of methods. */
void pnb__adapt_put_methods(pnb__result *r);
/* What an adapter is: of `info`, and at the end of train. */
void pnb__adapt_put(const pnb_adapter *adapter, pnb__result *r);

#endif
