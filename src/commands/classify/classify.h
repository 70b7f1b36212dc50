/* Zero-shot classification of pictures by the names of classes: from files to figures. */
#ifndef PNB_COMMANDS_CLASSIFY_CLASSIFY_H
#define PNB_COMMANDS_CLASSIFY_CLASSIFY_H

#include "commands/classify/changed_tables.h"
#include "commands/classify/class_groups.h"
#include "commands/classify/class_inputs.h"
#include "commands/classify/class_names.h"
#include "commands/common/match_use.h"
#include "commands/common/rows/row_clusters.h"
#include "eval/sorted.h"
#include "penumbra/bootstrap.h"
#include "penumbra/calibrate.h"
#include "penumbra/classify.h"
#include "penumbra/selective.h"
#include "penumbra/uncertainty_calibration.h"
#include "program/app.h"
#include "program/result_end.h"
#include "sets/settle.h"

typedef struct pnb__classify_opts {
    const char *model, *tokenizer, *preprocess; /* model may be NULL when sets are given */
    pnb_encoder *encoder;        /* one that is open already, in place of the four; NULL: none */
    pnb_precision precision;     /* of what the model embeds */
    pnb__text_list image_words;  /* what was named, one word or several */
    const char *images, *labels; /* images: the first of the words */
    pnb__class_source_opts source;
    const char *classnames, *templates, *prompts; /* how classes are known; all may be NULL: the
                                                   * pictures' own names */
    pnb__text_list load_clfs;                     /* saved classifiers, averaged; none: n 0 */
    const char *dataset, *language;
    pnb_measure measure;    /* or PNB__MEASURE_AUTO */
    pnb__match_words match; /* its constants, where it has any */
    pnb_prediction prediction;
    size_t n_draws; /* of sampling; 0: 400 */
    double scale;   /* NaN: the fitted or the model's, else 100 */
    size_t n_bins;

    pnb_prompt_filter filter;
    double filter_value;
    bool bprw, bprw_released; /* released: the numbers of ProLIP's code, quirks included */
    const char *bprw_images;  /* labelled pictures: few-shot; NULL: those to be classified */
    const char *bprw_labels, *bprw_split;
    size_t shots;                /* pictures of a class of bprw_images; 0: all */
    double bprw_alpha, bprw_eps; /* NaN: the defaults of the case */
    size_t n_bprw_images, bprw_samples;
    const char *load_weights; /* file of weights in place of filter and bprw, or NULL */
    bool has_variance;        /* false: squared for bprw, mean otherwise, or as the file says */
    pnb_class_variance variance;

    bool has_none;
    pnb_none_rule none;
    pnb__text_list none_prompts; /* none: "a photo" */
    const char *none_set; /* embedding set of dummy prompts in place of none_prompts, or NULL */
    const char *negatives, *val_images, *val_labels, *val_negatives, *val_split;
    double none_threshold, none_reject, none_fpr; /* NaN: not given */

    bool fit_temperature, fit_platt;
    const char *save_scaling, *load_scaling;
    bool trust_scaling; /* one whose origin, or a set whose, is unknown is used */

    const char *save_clf, *save_prompts, *predictions, *confusion, *per_class, *weights,
        *weights_html, *html;   /* files to write, or NULL */
    const char *csv, *markdown; /* the result as a table */
    const char *cluster; /* field of the pictures' ids file whose values are drawn together; NULL:
                          * each picture by itself */
    const char *groups, *group_key; /* file, or field of the ids file, of the pictures' groups */
    pnb__changed_opts changed;
    const char *output; /* name of the JSON result, words in braces; written by the caller */
    bool skip_existing; /* nothing to do where it exists */
    bool dump_classnames, dump_templates;
    size_t n_listed; /* prompts in each of the uncertainty listings; 0: none */
} pnb__classify_opts;

/* What the command takes without a word about it, but for the pictures. */
pnb__classify_opts pnb__classify_opts_default(void);

/* Pictures with what was found about them. */
typedef struct pnb__classified {
    pnb__class_source source; /* set NULL: not asked for */
    pnb_predictions p;
    double *u;   /* (n) trace of each picture */
    double *ood; /* (n) by the rule of "none of the above"; NULL without */
} pnb__classified;

typedef struct pnb__classify {
    const pnb__classify_opts *opts;
    char *output;    /* opts->output with its words; NULL without */
    bool is_skipped; /* it exists already and nothing was done */
    pnb__texts classes;
    pnb__class_prompts texts;   /* n_classes 0: prompts came as a set or not at all */
    pnb_embeddings *prompts;    /* rows in order of class; NULL with a loaded classifier */
    size_t *offset;             /* (K + 1) prompts of each class */
    double *prompt_u;           /* trace of each prompt */
    double *weight;             /* of each prompt */
    char method[32];            /* what they come from: bprw, a filter's name, equal */
    pnb_classifier_opts making; /* how prompts become a class with them */
    pnb__valued *by_certainty;  /* prompts by their trace, where they are to be listed */
    pnb_bprw_summary bprw;
    pnb_embeddings *clf; /* K rows */
    pnb_embeddings *dummies;
    pnb__classified images, negatives, val_images, val_negatives;
    pnb__class_source shots; /* of few-shot re-weighting; what NULL: not asked for */
    pnb_measure measure;
    pnb_measure_opts measure_opts; /* its constants and the seed of its samples */
    double scale;
    pnb_scaling scaling; /* has_temperature or has_platt: fitted or loaded */
    bool has_figures, is_scaling_fitted;
    pnb_classification figures;
    double platt_ece;        /* of the first class's own probability; with a Platt scaling */
    pnb_interval acc1;       /* bootstrap 95% */
    pnb_class_scores scores; /* what counts classes alike */
    double *f1;              /* (K) of each class; NULL without figures */
    pnb__image_groups groups;
    pnb__changed changed;
    pnb__image_clusters clusters;           /* of the pictures with a label, that it is drawn in */
    pnb_uncertainty_calibration bins;       /* accuracy against the pictures' uncertainty */
    pnb_selective by_uncertainty, by_doubt; /* the pictures' own; 1 - largest probability */
    double none_threshold;
    const char *none_source; /* where the threshold comes from, in words */
    bool has_none_figures;
    pnb_none_figures none;
} pnb__classify;

#define PNB__CLASSIFY_TASK "zeroshot_classification"

/* Before hours pass until they are needed: that pictures, their classes and prompts can be had,
 * that pictures have labels, which are among the classes, and are to be embedded. What it opened is
 * closed again; *n_classes is how many there are. Errors  those of pnb__classify_run, ARG (an
 * embedding set, no label) */
pnb_status pnb__classify_preflight(pnb__app *app, const pnb__classify_opts *opts,
                                   size_t *n_classes);
/* Does everything that opts ask for but printing; release with pnb__classify_reset in any case. */
pnb_status pnb__classify_run(pnb__app *app, const pnb__classify_opts *opts, pnb__classify *run);
void pnb__classify_reset(pnb__classify *run);

/* ---- classify_check.c ---- What can be refused before anything is embedded: files to read that
 * are not there, files to write that cannot be, one file for two outputs. */
pnb_status pnb__classify_check(const pnb__classify_opts *opts, pnb_error *err);

/* ---- classify_prompts.c ---- Class names, prompts, weights and the classifier. */
/* Class names and prompts as texts; nothing is embedded. */
pnb_status pnb__classify_names(pnb__app *app, pnb__classify *run);
bool pnb__classify_wants_texts(const pnb__classify *run);
/* Embeds or loads the prompts; with a loaded classifier fills run->clf. */
pnb_status pnb__classify_prompts(pnb__app *app, pnb__classify *run, pnb_encoder *encoder);
/* Weights of the prompts and run->clf; run->images is embedded already. */
pnb_status pnb__classify_build(pnb__app *app, pnb__classify *run, pnb_encoder *encoder);

/* ---- classify_scaling.c ---- Temperature and Platt scaling. */
pnb_status pnb__classify_scale(pnb__app *app, pnb__classify *run);

/* ---- classify_none.c ---- Strangeness of every picture, threshold and figures, where opts ask for
 * them. */
pnb_status pnb__classify_reject(pnb__classify *run, pnb_error *err);

/* ---- changed_images.c ---- Changes the labelled pictures of a run that is classified already.
 * Errors  ARG (pictures that are an embedding set; no picture with a label), UNSUPPORTED (no
 *         gradient of such a model), those of encoding */
pnb_status pnb__classify_changed(pnb__app *app, pnb__classify *run, pnb_encoder *encoder);

/* ---- classify_report.c ---- */
void pnb__classify_report(const pnb__classify *run, pnb__result *r);

/* ---- classify_table.c ---- The result as a line of csv and as a table in Markdown. */
pnb_status pnb__classify_save_csv(const pnb__classify *run, const char *path, pnb_error *err);
pnb_status pnb__classify_save_markdown(const pnb__classify *run, const char *path, pnb_error *err);

/* ---- classify_files.c ---- Writes the files that opts name, but for the page. */
pnb_status pnb__classify_write(pnb__app *app, const pnb__classify *run);
/* Appends picture i of run->images or run->negatives as one JSON object: id, path, best classes. */
void pnb__classify_prediction(const pnb__classify *run, const pnb__classified *c, size_t i,
                              pnb__buf *b);

/* ---- classify_page.c ---- The page of the pictures with their classes, and of the figures of what
 * pnb__classify_report said. */
pnb_status pnb__classify_page(const pnb__classify *run, const pnb__result *r, const char *path,
                              pnb_error *err);

/* ---- class_weights.c ---- The weights as a JSON file. */
pnb_status pnb__classify_save_weights(const pnb__classify *run, const char *path, pnb_error *err);
/* Fills run->weight, method and making from opts->load_weights.
 * Errors  FORMAT, NOT_FOUND (a class), ARG (other prompts) */
pnb_status pnb__classify_load_weights(pnb__app *app, pnb__classify *run);
/* Text of prompt i, its id where the set has no texts. */
const char *pnb__prompt_text(const pnb__classify *run, size_t i);

/* ---- classify_weights.c ---- The page that draws the weights. */
pnb_status pnb__classify_draw(const pnb__classify *run, const char *path, pnb_error *err);

#endif
