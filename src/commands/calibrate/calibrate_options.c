/* penumbra calibrate: match probabilities and lists at an error rate, learned from true pairs.
 *
 * Options only: fit, figures and file are in src/commands/calibrate/calibrate.c. */
#include "commands/calibrate/calibrate.h"

#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "sets/settle.h"

struct calibrate_args {
    const char *images, *texts, *truth, *truth_format, *split, *gallery, *measure, *method, *out,
        *plot;
    pnb__text_list alphas;
    double holdout;
    int64_t bins, max_pairs, depth, level, folds;
    bool by_class;
};

#define AT(field) offsetof(struct calibrate_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("images", AT(images), "SET", "Embedding set of held-out pictures",
                  .required = true),
    PNB__ROW_FILE("texts", AT(texts), "SET", "Embedding set of their captions", .required = true),
    PNB__TRUTH_ROWS(AT(truth), AT(truth_format), AT(split), AT(by_class)),
    PNB__ROW_INT("level", AT(level), "N", "Only captions of this level", PNB__RANGE(0, 7)),
    PNB__ROW_CHOICE("gallery", AT(gallery), "WHICH", "images|texts",
                    "The set that is searched in; rows of the other are the queries",
                    .fallback = "images"),
    PNB__SETS_MEASURE_ROW(AT(measure)),
    PNB__ROW_CHOICE(
        "method", AT(method), "NAME", "platt|isotonic|both",
        "s(a score + b), a step-free isotonic curve, or both, of which search takes the one "
        "with the lower held-out NLL",
        .fallback = "both", .group = "Fit"),
    PNB__ROW_INT(
        "depth", AT(depth), "K",
        "Fit to the first K hits of each query in place of all pairs: p(match) then speaks of "
        "a hit in such a list",
        PNB__RANGE(0, 1e6), .fallback = "0"),
    PNB__ROW_REAL("holdout", AT(holdout), "SHARE",
                  "Share of the queries, by --seed, that the fit is assessed on and does not see",
                  PNB__RANGE(0.01, 0.99), .fallback = "0.3"),
    PNB__ROW_INT(
        "folds", AT(folds), "K",
        "In place of --holdout: K parts of the queries, each assessed by a fit on the others; "
        "what is written is then fitted on all queries",
        PNB__RANGE(0, 20), .fallback = "0"),
    PNB__ROW_INT(
        "max-pairs", AT(max_pairs), "N",
        "Above that many pairs, of each query the first hits and a weighted random sample of "
        "the others are taken",
        PNB__RANGE(1000, 1e9), .fallback = "2000000"),
    PNB__ROW_LIST(
        "alphas", AT(alphas), "RATE...",
        "Error rates at which conformal lists are assessed, up to 16; 0.01 0.05 0.1 0.2 by "
        "default",
        .group = "Assessment"),
    PNB__ROW_INT("bins", AT(bins), "N", "Bins of equal mass for the ECE and the reliability tables",
                 PNB__RANGE(1, 256), .fallback = "15"),
    PNB__ROW_FILE(
        "out", AT(out), "FILE",
        "Calibration file to write; by default SET.calibration.json beside the set searched "
        "in, where search finds it",
        .group = "Result", .letter = 'o', .writes = "*"),
    PNB__ROW_FILE("plot", AT(plot), "FILE",
                  "HTML page with reliability diagrams and the lengths of conformal lists",
                  .writes = "*"),
};
#undef AT

static pnb_status fill_opts(pnb__app *app, const struct calibrate_args *a, pnb__calibrate_opts *o)
{
    *o = (pnb__calibrate_opts){.images = a->images,
                               .texts = a->texts,
                               .truth = a->truth,
                               .gallery_is_texts = strcmp(a->gallery, "texts") == 0,
                               .out = a->out,
                               .plot = a->plot,
                               .level = a->level != PNB__INT_UNSET ? (int)a->level : -1,
                               .match = pnb_match_opts_default()};
    pnb_status status = pnb_truth_format_parse(&o->read.format, a->truth_format, &app->err);
    if (status != PNB_OK)
        return status;
    if (a->truth == NULL && a->split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    o->read.split = a->split;
    o->read.by_class = a->by_class;
    o->match.method = strcmp(a->method, "both") == 0       ? PNB_MATCH_BOTH
                      : strcmp(a->method, "isotonic") == 0 ? PNB_MATCH_ISOTONIC
                                                           : PNB_MATCH_PLATT;
    o->match.depth = (size_t)a->depth;
    o->match.holdout = a->holdout;
    o->match.n_folds = (size_t)a->folds;
    if (a->folds == 1)
        return pnb__usage(app, "--folds 1 leaves nothing to fit on; 2 or more are wanted");
    o->match.max_pairs = (size_t)a->max_pairs;
    o->match.n_bins = (size_t)a->bins;
    o->match.seed = (uint64_t)app->common.seed;
    o->match.search.measure_opts.seed = (uint64_t)app->common.seed;
    if (a->alphas.n > PNB_MAX_ALPHAS)
        return pnb__usage(app, "--alphas takes at most %d values", PNB_MAX_ALPHAS);
    for (size_t i = 0; i < a->alphas.n; i++) {
        double alpha = 0;
        if (!pnb__read_real(a->alphas.items[i], &alpha) || !(alpha > 0 && alpha < 1))
            return pnb__usage(app, "--alphas %s: a number between 0 and 1 is wanted",
                              a->alphas.items[i]);
        o->match.alpha[i] = alpha;
        o->match.n_alphas = a->alphas.n;
    }
    return pnb__measure_parse(&o->match.search.measure, a->measure, &app->err);
}

static pnb_status run(pnb__app *app, const void *args)
{
    pnb__calibrate_opts opts;
    pnb_status status = fill_opts(app, args, &opts);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__calibrate_run(app, &opts, r);
    return pnb__result_finish(r, app, status);
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
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct calibrate_args),
    .run = run};
