/* Rows of one embedding set worth a look: near-duplicates, outliers, and those to label next. */
#ifndef PNB_COMMANDS_CURATE_CURATE_H
#define PNB_COMMANDS_CURATE_CURATE_H

#include "commands/common/match_use.h"
#include "penumbra/duplicates.h"
#include "penumbra/outliers.h"
#include "program/app.h"
#include "program/result_end.h"

/* Files are .jsonl with all figures; any other name holds ids, one a line. NULL: not written. */
typedef struct pnb__duplicates_opts {
    const char *set;
    pnb_uncertainty uncertainty; /* decides which row of a group stays */
    pnb_duplicates_opts find;
    pnb__match_words match;        /* constants of its measure */
    size_t n_shown;                /* groups printed */
    const char *out, *keep, *drop; /* groups; ids of all rows but the dropped; of the dropped */
} pnb__duplicates_opts;
pnb_status pnb__duplicates_run(pnb__app *app, void *args, pnb__result *r);

typedef struct pnb__outliers_opts {
    const char *set;
    pnb_uncertainty uncertainty;
    pnb_outliers_opts rank;
    pnb__match_words match; /* constants of its measure */
    size_t count;           /* rows listed, at most the set's */
    const char *out;
} pnb__outliers_opts;
pnb_status pnb__outliers_run(pnb__app *app, const pnb__outliers_opts *opts, pnb__result *r);

typedef struct pnb__select_opts {
    const char *set, *by; /* uncertain, random, k_centre */
    pnb_uncertainty uncertainty;
    size_t count;
    bool with_spread;
    const char *labelled; /* ids of rows that are labelled, one a line, or NULL */
    const char *out;
} pnb__select_opts;
pnb_status pnb__select_run(pnb__app *app, const pnb__select_opts *opts, pnb__result *r);

#endif
