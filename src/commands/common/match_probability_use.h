/* Where a search takes its probabilities from, and where its lists end. */
#ifndef PNB_COMMANDS_COMMON_MATCH_PROBABILITY_USE_H
#define PNB_COMMANDS_COMMON_MATCH_PROBABILITY_USE_H

#include "penumbra/calibrate.h"
#include "penumbra/embeddings.h"
#include "program/app.h"

/* How a search limits its lists; NaN: no such limit. */
typedef struct pnb__list_limits {
    double min_probability;   /* lists end where p(match) falls below */
    double conformal_alpha;   /* lists hold a match but for this share of queries */
    const char *conformal_by; /* score, margin, rank; NULL: what the calibration found best */
    const char *calibration;  /* file; NULL: beside the set if there; "none": the model's a, b */
    bool trust;               /* a calibration whose origin, or a set whose, is unknown is used */
    bool
        for_figures; /* of an evaluation, without options: the model's a, b are the second choice */
} pnb__list_limits;

bool pnb__has_limits(const pnb__list_limits *limits);

/* What is searched, and how. */
typedef struct pnb__match_probability_use {
    const char *path; /* of the gallery; the calibration lies beside it */
    const pnb_embeddings *gallery, *queries;
    pnb_measure measure;
    const pnb_measure_opts *measure_opts;
    bool match_is_told;     /* a and b of match_prob were given, whatever the sets carry */
    bool gallery_is_sample; /* of `gallery` one row is there, whatever its n */
} pnb__match_probability_use;

/* "x.safetensors" or "x.npy" -> "x.calibration.json"; free with pnb__free. ARG for another ending.
 */
pnb_status pnb__calibration_path(char **out, const char *set_path, pnb_error *err);

/* As pnb_fit_origin_check wants it. */
pnb_fit_origin pnb__match_probability_origin(const pnb__match_probability_use *use);
/* The calibration read from `path` must speak of these rows: refused where it is known not to, and
 * where that is unknown unless `trust` takes it, with a warning.
 * Errors  ARG: says what differs, or what is not known */
pnb_status pnb__match_probability_require(pnb__app *app, const pnb__match_probability_use *use,
                                          const pnb_match_probability_fit *fit, const char *path,
                                          bool trust);
/* Whether a model's a and b speak of pairs of these rows: of a picture and a caption, both of the
 * same known weights, that went through no adapter, or by mean through one that leaves cosines as
 * they are (bayesvlm). `why` [size] receives the reason otherwise. */
bool pnb__model_speaks_of(const pnb_embeddings *a, const pnb_embeddings *b, pnb_measure measure,
                          char *why, size_t size);

/* Whether the scores are probabilities by themselves: match_prob, under an a and b that were told,
 * or that a set carries and that speak of these rows. `why` as above. */
bool pnb__measure_is_probability(const pnb__match_probability_use *use, char *why, size_t size);

typedef struct pnb__match_probability {
    bool has_fit, has_model;
    bool is_measure; /* the score is the probability: match_prob */
    pnb_match_probability_fit fit;
    double a, b; /* the model's, with has_model */
    size_t n_gallery;
    char *path; /* of the calibration file; NULL: none */
    pnb__list_limits limits;
    pnb_conformal_kind kind; /* of conformal lists, with their cut-off */
    double cutoff;
} pnb__match_probability;

/* Reads the calibration beside the gallery and works out the limits. A file that was made for
 * something else is left aside with a warning, and no probability is given, unless a limit or the
 * file was asked for; one whose origin, or a set whose, is unknown the same, unless `trust` takes
 * it. Without a file the model's a and b count where they speak of these rows; match_prob is the
 * probability itself where its a and b are told, or carried by a set and of such rows. `odds` is
 * released by pnb__match_probability_reset in any case. Errors  ARG (the calibration is of
 * something else, a limit it cannot give), NOT_FOUND (a limit without a calibration), and as
 * pnb_match_probability_fit_load */
pnb_status pnb__match_probability_load(pnb__app *app, const pnb__match_probability_use *use,
                                       const pnb__list_limits *limits,
                                       pnb__match_probability *odds);
void pnb__match_probability_reset(pnb__match_probability *odds);

/* Where probabilities come from: "calibration", "model", "measure"; NULL: there are none. */
const char *pnb__match_probability_source(const pnb__match_probability *odds);
/* p(match) of a score, NaN when nothing is known. */
double pnb__match_probability_of(const pnb__match_probability *odds, double score);
/* That a query's first hit of this score matches; NaN when unknown. */
double pnb__match_probability_first(const pnb__match_probability *odds, double score);
/* How many of n hits, best first, stay within the limits. */
size_t pnb__match_probability_list(const pnb__match_probability *odds, const double *score,
                                   size_t n);

#endif
