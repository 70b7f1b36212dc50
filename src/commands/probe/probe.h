/* Probing a model's uncertainty with changed inputs: caption level and length, erased and mixed
 * pictures, dropped words; each figure of a control model beside it. */
#ifndef PNB_COMMANDS_PROBE_PROBE_H
#define PNB_COMMANDS_PROBE_PROBE_H

#include "commands/probe/probe_hierarchies.h"
#include "encode/perturb.h"
#include "penumbra/hierarchy.h"
#include "program/result_end.h"

enum { PNB__MAX_SHARES = 24, PNB__MAX_LENGTH_BINS = 16, PNB__PROBE_LEVELS = 8 };

typedef enum pnb__word_erasure {
    PNB__WORDS_DROP, /* a word that goes leaves nothing behind */
    PNB__WORDS_UNK,  /* the tokenizer's unknown word stands in its place */
    PNB__WORDS_USUAL /* as the option was not given: UNK of lists of words (PCME), else DROP */
} pnb__word_erasure;

typedef struct pnb__probe_cmd {
    const char *model, *control; /* control may be NULL */
    const char *tokenizer, *preprocess;
    pnb__text_list images;         /* pictures, folders, data sets; may be empty */
    pnb__text_list texts;          /* files of captions; may be empty */
    const char *chains;            /* data set of `penumbra data chains` or NULL */
    const char *caption_key;       /* column of a csv */
    size_t limit;                  /* pictures and captions of the curves */
    double share[PNB__MAX_SHARES]; /* erased shares of the curves, ascending, in [0, 1] */
    size_t n_shares;
    double erased; /* share of the inclusion test's erased pictures */
    size_t n_bins; /* of length */
    pnb__word_erasure words;
    bool random_place; /* erase at random places instead of the middle */
    bool published;    /* inclusion as ProLIP's code has it */
    bool exif;
    const char *html; /* page of the curves to write, or NULL */
} pnb__probe_cmd;

/* What a growing share of erased pixels or dropped words does. */
typedef struct pnb__probe_curve {
    size_t n;                                                                     /* inputs */
    double trace[PNB__MAX_SHARES], included[PNB__MAX_SHARES], h[PNB__MAX_SHARES]; /* means */
    double trace_half[PNB__MAX_SHARES]; /* half of the 95% interval of the mean trace */
} pnb__probe_curve;

/* The input whose uncertainty a change raised most, or least: a picture with its erased copy, a
 * caption with half of its words. Only for a page. */
typedef struct pnb__probe_example {
    pnb_image image, changed_image; /* empty: it is a caption */
    char *text, *changed_text;
    double before, after;
} pnb__probe_example;

/* Shares of rows that pass an inclusion test; NaN where it was not made. */
typedef struct pnb__probe_rates {
    double erased;                 /* original in erased picture */
    double half;                   /* caption in the caption without half of its words */
    pnb_mixed_share blend, halves; /* the two ways of mixing */
    double other;                  /* picture in another picture: what chance gives */
    double trace, blend_trace, halves_trace;
    pnb_inclusion_contest by_erased, by_half; /* the first two beside the difference of divergences;
                                               * strangers are the changed copies of other inputs.
                                               * n = 0: not made */
} pnb__probe_rates;

/* Everything about one model. */
typedef struct pnb__probe {
    char name[128];
    pnb__word_erasure erasure; /* of the captions' words; not USUAL */
    size_t n_levels;
    double level_mean[PNB__PROBE_LEVELS];
    double level_half[PNB__PROBE_LEVELS]; /* half of the 95% interval of the mean */
    size_t level_n[PNB__PROBE_LEVELS];
    double first_above_last;
    pnb_length_bin words[PNB__MAX_LENGTH_BINS], tokens[PNB__MAX_LENGTH_BINS];
    double words_half[PNB__MAX_LENGTH_BINS], tokens_half[PNB__MAX_LENGTH_BINS]; /* as level_half */
    size_t n_words, n_tokens; /* bins; 0: no captions */
    double words_rho, tokens_rho;
    pnb__probe_curve images, texts; /* n = 0: not measured */
    pnb__probe_rates rates;
    pnb__hierarchy_figures chains;
    bool has_examples;
    pnb__probe_example most, least; /* of the pictures, else of the captions */
} pnb__probe;
void pnb__probe_reset(pnb__probe *probe); /* frees the examples */

/* `out` is released by pnb__probe_reset in any case.
 * Errors  UNSUPPORTED (a model without uncertainty), NOT_FOUND (no input), and encoding */
pnb_status pnb__probe_model(pnb__app *app, const pnb__probe_cmd *cmd, const char *model,
                            pnb__probe *out);
pnb_status pnb__probe_run(pnb__app *app, const pnb__probe_cmd *cmd, pnb__result *r);
/* The page of cmd->html: the figures of `r` drawn, and the examples of a model. */
pnb_status pnb__probe_page(const pnb__probe_cmd *cmd, const pnb__probe *model, const pnb__result *r,
                           pnb_error *err);

#endif
