/* Where a search takes its probabilities from, and where its lists end. */
#ifndef PNB_APP_MATCH_ODDS_H
#define PNB_APP_MATCH_ODDS_H

#include "app/app.h"
#include "penumbra/calibrate.h"
#include "penumbra/embeddings.h"

/* How a search limits its lists; NaN: no such limit. */
typedef struct pnb__list_limits {
    double min_probability;   /* lists end where p(match) falls below */
    double conformal_alpha;   /* lists hold a match but for this share of queries */
    const char *conformal_by; /* score, margin, rank; NULL: what the calibration found best */
    const char *calibration;  /* file; NULL: beside the set if there; "none": the model's a, b */
} pnb__list_limits;

bool pnb__has_limits(const pnb__list_limits *limits);

typedef struct pnb__match_odds {
    bool has_fit, has_model;
    pnb_match_fit fit;
    double a, b; /* the model's, with has_model */
    size_t n_gallery;
    char *path; /* of the calibration file; NULL: none */
    pnb__list_limits limits;
    pnb_conformal_kind kind; /* of conformal lists, with their cut-off */
    double cutoff;
} pnb__match_odds;

/* Reads the calibration of the set at `path` and works out the limits. A file beside the set that
 * was made for another measure or other weights is left aside with a warning, unless a limit or the
 * file was asked for. `odds` is released by pnb__match_odds_reset in any case.
 * Errors  ARG (the calibration is of something else, a limit it cannot give), NOT_FOUND (a limit
 *         without a calibration), and as pnb_match_fit_load */
pnb_status pnb__match_odds_load(pnb__app *app, const char *path, const pnb_embeddings *set,
                                pnb_measure measure, const pnb__list_limits *limits,
                                pnb__match_odds *odds);
void pnb__match_odds_reset(pnb__match_odds *odds);

/* p(match) of a score, NaN when nothing is known. */
double pnb__match_odds_p(const pnb__match_odds *odds, double score);
/* That a query's first hit of this score matches; NaN when unknown. */
double pnb__match_odds_first(const pnb__match_odds *odds, double score);
/* How many of n hits, best first, stay within the limits. */
size_t pnb__match_odds_list(const pnb__match_odds *odds, const double *score, size_t n);

#endif
