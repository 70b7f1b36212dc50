/* penumbra calibrate: match probabilities and lists at an error rate, learned from true pairs.
 *
 * Options only: fit, figures and file are in src/commands/calibrate/calibrate.c. */
#include "commands/calibrate/calibrate.h"

#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "sets/settle.h"

struct calibrate_args {
    pnb__calibrate_opts job;
    pnb__text_list alphas;
};

#define AT(field) PNB__FIELD(struct calibrate_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("images", AT(job.sets.images), "SET", "Embedding set of held-out pictures",
                  .required = true),
    PNB__ROW_FILE("texts", AT(job.sets.texts), "SET", "Embedding set of their captions",
                  .required = true),
    PNB__TRUTH_ROWS(AT(job.sets.truth), AT(job.sets.read.format), AT(job.sets.read.split),
                    AT(job.sets.read.by_class)),
    PNB__ROW_INT("level", AT(job.sets.level), "N", "Only captions of this level", PNB__RANGE(0, 7)),
    PNB__ROW_CHOICE("gallery", AT(job.gallery_is_texts), "WHICH", "images|texts",
                    "The set that is searched in; rows of the other are the queries",
                    .fallback = "images"),
    PNB__SETS_MEASURE_ROW(AT(job.sets.measure)),
    PNB__MATCH_ROWS(AT(job.sets.match.n_samples), AT(job.sets.match.a), AT(job.sets.match.b)),
    PNB__ROW_CHOICE(
        "method", AT(job.match.method), "NAME", "platt|isotonic|both",
        "s(a score + b), a step-free isotonic curve, or both, of which search takes the one "
        "with the lower held-out NLL",
        .fallback = "both", .group = "Fit"),
    PNB__ROW_INT(
        "depth", AT(job.match.depth), "K",
        "Fit to the first K hits of each query in place of all pairs: p(match) then speaks of "
        "a hit in such a list",
        PNB__RANGE(0, 1e6), .fallback = "0"),
    PNB__ROW_REAL("holdout", AT(job.match.holdout), "SHARE",
                  "Share of the queries, by --seed, that the fit is assessed on and does not see",
                  PNB__RANGE(0.01, 0.99), .fallback = "0.3"),
    PNB__ROW_INT(
        "folds", AT(job.match.n_folds), "K",
        "In place of --holdout: K parts of the queries, each assessed by a fit on the others; "
        "what is written is then fitted on all queries",
        PNB__RANGE(0, 20), .fallback = "0"),
    PNB__ROW_INT(
        "max-pairs", AT(job.match.max_pairs), "N",
        "Above that many pairs, of each query the first hits and a weighted random sample of "
        "the others are taken",
        PNB__RANGE(1000, 1e9), .fallback = "2000000"),
    PNB__ROW_LIST(
        "alphas", AT(alphas), "RATE...",
        "Error rates at which conformal lists are assessed, up to 16; 0.01 0.05 0.1 0.2 by "
        "default",
        .group = "Assessment"),
    PNB__ROW_INT("bins", AT(job.match.n_bins), "N",
                 "Bins of equal mass for the ECE and the reliability tables", PNB__RANGE(1, 256),
                 .fallback = "15"),
    PNB__ROW_FILE(
        "out", AT(job.out), "FILE",
        "Calibration file to write; by default SET.calibration.json beside the set searched "
        "in, where search finds it",
        .group = "Result", .letter = 'o', .writes = "*"),
    PNB__ROW_FILE("plot", AT(job.plot), "FILE",
                  "HTML page with reliability diagrams and the lengths of conformal lists",
                  .writes = "*"),
};
#undef AT

static void defaults(void *args)
{
    *(struct calibrate_args *)args = (struct calibrate_args){
        .job = {.sets = pnb__retrieval_opts_default(), .match = pnb_match_opts_default()}};
}

static pnb_status read_alphas(pnb__app *app, const pnb__text_list *words, pnb_match_opts *match)
{
    if (words->n > PNB_MAX_ALPHAS)
        return pnb__usage(app, "--alphas takes at most %d values", PNB_MAX_ALPHAS);
    for (size_t i = 0; i < words->n; i++) {
        double *alpha = &match->alpha[i];
        if (!pnb__read_real(words->items[i], alpha) || !(*alpha > 0 && *alpha < 1))
            return pnb__usage(app, "--alphas %s: a number between 0 and 1 is wanted",
                              words->items[i]);
        match->n_alphas = words->n;
    }
    return PNB_OK;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct calibrate_args *a = args;
    pnb_match_opts *match = &a->job.match;
    match->seed = match->search.measure_opts.seed = (uint64_t)app->common.seed;
    match->search.measure = a->job.sets.measure;
    if (a->job.sets.truth == NULL && a->job.sets.read.split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    if (match->n_folds == 1)
        return pnb__usage(app, "--folds 1 leaves nothing to fit on; 2 or more are wanted");
    pnb_status status = read_alphas(app, &a->alphas, match);
    return status == PNB_OK ? pnb__calibrate_run(app, &a->job, r) : status;
}

const pnb__command pnb__cmd_calibrate = {
    .name = "calibrate",
    .summary = "learn match probabilities and error-controlled lists of a set from true pairs",
    .about =
        "Pairs that the model was not trained on say what a score is worth: the fit is written "
        "beside the set searched in, where search finds it. A probability speaks of a random pair "
        "of "
        "a query like these and a row of this set; among pairs of the same score that share "
        "matches. "
        "The figures come from queries that the fit has not seen; with few queries, --folds 5 "
        "assesses all of them and fits on all.\n\n"
        "Conformal lists hold a match with a chosen probability: see search --conformal.",
    .examples = "penumbra calibrate --images images.safetensors --texts texts.safetensors --truth "
                "val.pairs\n"
                "penumbra calibrate --images i.safetensors --texts t.safetensors --gallery texts "
                "--method platt --json",
    .defaults = defaults,
    PNB__RUNS(options, struct calibrate_args, run)};
