/* The experiment of a paper, run again: what an experiment is, and what it is given to run with.
 *
 * An experiment is one row of experiments.def and one file: a table of figures and rows, the lines
 * that the paper prints, stages, and a function that measures a stage with a seed. Folder, data,
 * seeds, resuming, the table with its files and the page are done around it. */
#ifndef PNB_COMMANDS_REPRODUCE_REPRODUCE_H
#define PNB_COMMANDS_REPRODUCE_REPRODUCE_H

#include "commands/adapt/compare.h"
#include "commands/reproduce/experiments.def"
#include "penumbra/synth.h"
#include "penumbra/train.h"
#include "program/app.h"
#include "program/options.h"
#include "report/page.h"
#include "report/result.h"

/* What the options of every experiment fill. */
typedef struct pnb__reproduce_opts {
    const char *data; /* NULL: a built-in set, made in the folder */
    const char *out;  /* folder of data, models, sets, results and tables */
    size_t n_seeds;   /* from --seed on */
    size_t n_items;   /* pictures of the built-in set, over all splits; without data of a batch */
    int64_t n_steps;  /* of a training */
    size_t batch_size;
    size_t n_stages;     /* the first ones that are run; 0: all */
    pnb__text_list only; /* names of stages that are run; none: all */
} pnb__reproduce_opts;

/* ---- what an experiment is ---- */

enum { PNB__MAX_FIGURES = 9 };

/* A column of the table. Values are kept as the paper prints them: `scale` times the share. */
typedef struct pnb__figure {
    const char *key, *heading;
    double scale;
    int digits;
} pnb__figure;

/* A line of the table: the key of its values, and what people read. */
typedef struct pnb__repro_row {
    const char *key, *label;
} pnb__repro_row;

/* What the paper prints in that line; NAN where it has nothing. `std` is looked at where `has_std`.
 * One row may have several, of different data. */
typedef struct pnb__paper_line {
    const char *row, *where; /* "Table 3, 5K test pictures" */
    double value[PNB__MAX_FIGURES];
    bool has_std;
    double std[PNB__MAX_FIGURES];
} pnb__paper_line;

/* A difference that the paper's text speaks of: of two rows, seed by seed. */
typedef struct pnb__repro_claim {
    const char *row, *than, *figure;
    const char *says; /* "a sampled match probability ranks no worse than the means" */
} pnb__repro_claim;

/* What it needs: pictures with captions, embedding sets of a frozen model, or no data. */
typedef enum pnb__repro_data {
    PNB__REPRO_IMAGES,
    PNB__REPRO_SETS,
    PNB__REPRO_NOTHING
} pnb__repro_data;

typedef struct pnb__reproduction pnb__reproduction;

typedef struct pnb__experiment {
    const char *word;  /* of the command */
    const char *paper; /* "PCME (Chun et al. 2021), Table 1" */
    pnb__repro_data needs;
    bool is_timed;     /* figures are times: a folder holds those of one device and its threads */
    bool splits_train; /* its test pictures come from the train split; the other is not read */
    const pnb__figure *figures;
    const pnb__repro_row *rows;
    const pnb__paper_line *lines;
    const pnb__repro_claim *claims;
    size_t n_figures, n_rows, n_lines, n_claims;
    const char *const
        *stages;    /* what is learned and measured at once; names of files; NULL-ended */
    double step_s;  /* of a stage on the built-in set, two cores, for the forecast */
    double stage_s; /* and what it takes beside its steps */
    const char *const *differs; /* sentences: what may differ from the paper; NULL-ended */
    /* Options of the built-in pictures beyond their number; NULL: plain scenes. */
    void (*shapes)(pnb_shapes_opts *opts);
    /* Refuses --data that has not what it needs, before anything is written; may be NULL. */
    pnb_status (*check)(const pnb__reproduction *run);
    /* Changes what was found or made before anything is learned from it; may be NULL. */
    pnb_status (*prepare)(pnb__reproduction *run);
    /* Learns and measures a stage; figures go into `found` by pnb__reproduce_put, and whatever else
     * the page draws under keys of its own. */
    pnb_status (*measure)(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found);
    /* Adds tables behind the common ones, draws on the page; may be NULL. */
    void (*put)(const pnb__reproduction *run, pnb__result *r);
    void (*draw)(const pnb__reproduction *run, pnb__page *page);
} pnb__experiment;

/* Tables of a file by their usual names. */
#define PNB__EXPERIMENT_TABLES                                                                     \
    .figures = figures, .n_figures = PNB_COUNT(figures), .rows = rows, .n_rows = PNB_COUNT(rows),  \
    .lines = lines, .n_lines = PNB_COUNT(lines), .claims = claims, .n_claims = PNB_COUNT(claims),  \
    .stages = stages, .differs = differs

#define PNB__EXPERIMENT_DECLARE(name, ...) extern const pnb__experiment pnb__experiment_##name;
PNB__EXPERIMENTS(PNB__EXPERIMENT_DECLARE)
#undef PNB__EXPERIMENT_DECLARE

/* ---- a run of one ---- */

/* Pictures with captions, train and test, however they came. */
typedef struct pnb__repro_images {
    char *train, *test; /* specs of pnb_dataset_open */
    char *texts;        /* captions of the test, .jsonl */
    char *truth;        /* which of them belong together */
    char *train_texts,
        *train_truth;         /* the same of what is learned from; NULL: only the samples say */
    char *labels;             /* label vectors of the test pictures, or NULL */
    pnb_truth_read_opts read; /* of the truth */
    bool by_class;            /* captions match every picture of their class */
} pnb__repro_images;

struct pnb__reproduction {
    pnb__app *app;
    const pnb__experiment *about;
    const pnb__reproduce_opts *opts;
    size_t n_stages;
    char *program;    /* which program measures: results of another are made again */
    char *data_words; /* which data were used, for people */
    pnb__repro_images images;
    pnb__pair_paths train, val, test; /* of sets, owned */
    pnb__pair_paths elsewhere;        /* other sets to learn from, or NULLs */
    char *known;                      /* what captions of the test set stand for, or NULL */
    json_t **found;                   /* [n_stages][n_seeds]; NULL: not yet */
};

pnb_status pnb__reproduce(pnb__app *app, const pnb__experiment *about,
                          const pnb__reproduce_opts *opts, pnb__result *r);

/* Keeps a figure of a row, a share as it is measured; NaN is kept as absent. */
void pnb__reproduce_put(const pnb__reproduction *run, json_t *found, const char *row,
                        const char *figure, double value);
/* What stage `stage` kept of a row with the i-th seed, as the paper prints it; NaN: nothing. */
double pnb__reproduce_value(const pnb__reproduction *run, size_t seed, const char *row,
                            const char *figure);
const char *pnb__reproduce_stage(const pnb__reproduction *run, size_t stage);
/* OUT/FOLDER/STAGE-SEED with an ending, the folder is made; free with pnb__free. */
pnb_status pnb__reproduce_path(const pnb__reproduction *run, const char *folder, const char *stage,
                               uint64_t seed, const char *ending, char **out);

/* ---- reproduce_data.c ---- Where --data has what the experiment needs; nothing is written, so
 * that a folder named by mistake leaves none of ours behind.
 * Errors  NOT_FOUND (no folder, or one of another layout: the text lists those understood; a split
 *         without a sample) */
pnb_status pnb__reproduce_find_data(pnb__reproduction *run);
/* Makes what is built in, without --data, and lists what is measured.
 * Errors  those of making and reading */
pnb_status pnb__reproduce_data(pnb__reproduction *run);
void pnb__reproduce_data_reset(pnb__reproduction *run);

/* For `prepare`: other pictures than those of the pool, of a folder its elsewhere/ where it has
 * one, of the built-in sets what is held out. */
pnb_status pnb__reproduce_elsewhere(pnb__reproduction *run);

void pnb__reproduce_images_reset(pnb__repro_images *images);

/* ---- reproduce_subset.c ---- For `prepare`: the first n_classes (to 16) of the pictures take
 * their place; a caption matches every picture of its class.
 * Errors  ARG (fewer classes, or pictures of one), and those of reading and writing */
pnb_status pnb__reproduce_subset(pnb__reproduction *run, size_t n_classes);

/* ---- reproduce_model.c ---- Trains a model on the pictures with a seed, or goes on with it; its
 * folder is *model, freed with pnb__free. Steps, batch, data, seed and Ctrl-C are put into `opts`.
 * Errors  those of pnb_train */
pnb_status pnb__reproduce_train(pnb__reproduction *run, const char *stage, uint64_t seed,
                                pnb_train_opts *opts, char **model);
/* Which pictures and captions are embedded, and how. */
typedef struct pnb__repro_part {
    const char *images, *texts, *truth;
    size_t ttda;    /* augmented passes; 0: none */
    bool as_points; /* the means alone */
    bool raw;       /* means with their lengths, which AsymVLM's captions want */
} pnb__repro_part;
/* Embeds them: *paths, freed with pnb__pair_paths_reset. */
pnb_status pnb__reproduce_embed_part(pnb__reproduction *run, const pnb__repro_part *part,
                                     const char *stage, uint64_t seed, const char *model,
                                     pnb__pair_paths *paths);
/* The same of the test. */
pnb_status pnb__reproduce_embed(pnb__reproduction *run, const char *stage, uint64_t seed,
                                const char *model, pnb__pair_paths *paths);
/* Stands in names of what is gone on with, so that it is this program's. */
unsigned pnb__reproduce_program(const pnb__reproduction *run);
void pnb__pair_paths_reset(pnb__pair_paths *paths);

/* ---- reproduce_table.c ---- The table with the paper's lines, what its claims come to, and
 * table.txt, .json, .csv, .md and index.html in the folder. */
pnb_status pnb__reproduce_show(pnb__reproduction *run, pnb__result *r);

#endif
