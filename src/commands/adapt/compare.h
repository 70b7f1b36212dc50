/* All methods on the same sets: a table of what each found, beside controls and the frozen rows. */
#ifndef PNB_COMMANDS_ADAPT_COMPARE_H
#define PNB_COMMANDS_ADAPT_COMPARE_H

#include "commands/adapt/fewer_pairs.h"
#include "penumbra/adapt.h"
#include "penumbra/known_truth.h"
#include "program/app.h"
#include "program/options.h"
#include "report/result.h"

/* Paths of two sets and their truth. */
typedef struct pnb__pair_paths {
    const char *images, *texts, *truth;
} pnb__pair_paths;

typedef struct pnb__adapt_compare_opts {
    pnb__text_list methods;           /* names; none or "all": every method */
    pnb__pair_paths train, val, test; /* val may be NULLs, test without truth: row i to row i */
    pnb_truth_read_opts read;         /* of all three; its split is not read */
    pnb__fewer_pairs_opts fewer;      /* of train's truth, drawn by each entry's seed */
    const char *split, *val_split, *test_split;
    const char *known;         /* set: what the captions of test stand for; NULL: nobody knows */
    const char *label_vectors; /* of the pictures of test, for PMRP; NULL: none */
    size_t n_seeds, n_bins, n_resamples;
    pnb_adapt_recipe recipe; /* of methods that train, and how many steps; 0: the recipe's */
    int64_t steps;
    pnb__text_list sweeps; /* "NAME=V1,V2": the option of every method that reads it, or one of
                            * `fewer`, one value at a time, all others as they are */
    const char *out;       /* folder */
} pnb__adapt_compare_opts;
pnb_status pnb__adapt_compare(pnb__app *app, const pnb__adapt_compare_opts *opts, pnb__result *r);

typedef enum pnb__entry_kind {
    PNB__ENTRY_FROZEN,
    PNB__ENTRY_CONTROL,
    PNB__ENTRY_METHOD
} pnb__entry_kind;

/* One line of sets: a method or a control with one seed. */
typedef struct pnb__compare_entry {
    const char *name;                /* of the line: the method, and "@NAME=VALUE" of a sweep */
    const pnb_adapter_about *method; /* NULL: nothing is learned */
    char *label, *option, *value;    /* of a sweep, owned; else NULL */
    pnb__entry_kind kind;
    uint64_t seed;
    char *images, *texts;    /* paths of the sets to be measured, owned */
    char *failed;            /* why there are none, or they cannot be measured; owned */
    double learn_s, apply_s; /* NaN: nothing was learned */
    pnb_family family;       /* of its captions */
    bool has_known;
    pnb_known_scores known;
} pnb__compare_entry;

/* Two sets with the truth between them, mapped. */
typedef struct pnb__pair_sets {
    pnb_embeddings *images, *texts;
    pnb_truth *truth;
} pnb__pair_sets;

/* Reads them; nothing where `paths` names none. `read` is of the truth, with its split in place of
 * read's. The error is app->err; reset in any case. */
pnb_status pnb__pair_load(pnb__app *app, const pnb__pair_paths *paths,
                          const pnb_truth_read_opts *read, const char *split, pnb__pair_sets *out);
void pnb__pair_reset(pnb__pair_sets *p);
/* A truth where none was given: row i to row i.  Errors  ARG (sides of different length), NOMEM */
pnb_status pnb__pair_align(pnb__pair_sets *p, const char *option, pnb_error *err);

typedef struct pnb__adapt_comparison {
    const pnb__adapt_compare_opts *opts;
    pnb__pair_sets train, val, test;
    pnb_embeddings *known;
    pnb__compare_entry *entry;
    size_t n, capacity;
    pnb__result *figures; /* of pnb__retrieval_compare */
} pnb__adapt_comparison;

/* ---- compare_entries.c ---- which entries there are, and the sets of each. A failure of one is
 * its own; NOMEM and INTERRUPTED are the job's. */
pnb_status pnb__compare_plan(pnb__app *app, pnb__adapt_comparison *c);
pnb_status pnb__compare_make(pnb__app *app, const pnb__adapt_comparison *c, pnb__compare_entry *e);
void pnb__compare_entries_reset(pnb__adapt_comparison *c);

/* ---- compare_tables.c ---- tables of what was found, and the files in the folder. */
void pnb__compare_put(const pnb__adapt_comparison *c, pnb__result *r);
pnb_status pnb__compare_save(pnb__app *app, const pnb__adapt_comparison *c, pnb__result *r);

/* ---- compare_words.c ---- a sentence a method, of n_bins and the rows of
 * "methods". */
void pnb__compare_put_words(pnb__result *r);

#endif
