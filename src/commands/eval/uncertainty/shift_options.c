/* penumbra eval shift: a calibration on another part of the data than it was fitted on.
 *
 * Options only: queries, lists and figures are in shift_run.c. */
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/eval/uncertainty/shift_run.h"

struct shift_args {
    pnb__shift_opts job;
    pnb__text_list alphas;
};

#define AT(field) PNB__FIELD(struct shift_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("calibration", AT(job.calibration), "FILE",
                  "Calibration that `penumbra calibrate` fitted on the other part: another style, "
                  "field or split",
                  .required = true),
    PNB__IMAGES_TEXTS_ROWS(AT(job.sets.images), AT(job.sets.texts)),
    PNB__TRUTH_ROWS(AT(job.sets.truth), AT(job.sets.read.format), AT(job.sets.read.split),
                    AT(job.sets.read.by_class)),
    PNB__ROW_INT("level", AT(job.sets.level), "N", "Only captions of this level", PNB__RANGE(0, 7)),
    PNB__ROW_CHOICE("gallery", AT(job.gallery_is_texts), "WHICH", "images|texts",
                    "The set that is searched in; rows of the other are the queries",
                    .fallback = "images"),
    PNB__TRUST_ROW(AT(job.trust)),
    PNB__ROW_INT("refit", AT(job.n_refit), "N",
                 "Queries of this part that lists and probabilities are fitted on again",
                 PNB__RANGE(1, 1e6), .fallback = "50", .group = "Assessment"),
    PNB__ROW_INT("splits", AT(job.n_splits), "N", "Draws of them, judged on the others",
                 PNB__RANGE(1, 1e6), .fallback = "100"),
    PNB__ROW_LIST("alphas", AT(alphas), "RATE...",
                  "Error rates of the lists, up to 16; 0.05 0.1 0.2 by default"),
    PNB__ROW_INT("bootstrap", AT(job.sets.n_resamples), "N",
                 "Resamples of the clusters for 95% intervals of what was brought along; 0 leaves "
                 "them out",
                 PNB__RANGE(0, 1000000), .fallback = "1000"),
    PNB__CLUSTER_ROW(AT(job.sets.cluster)),
};
#undef AT

static void defaults(void *args)
{
    struct shift_args *a = args;
    *a = (struct shift_args){.job = {.sets = pnb__retrieval_opts_default()}};
    const double usual[] = {0.05, 0.1, 0.2};
    memcpy(a->job.alpha, usual, sizeof usual);
    a->job.n_alphas = PNB_COUNT(usual);
}

static pnb_status read_alphas(pnb__app *app, struct shift_args *a)
{
    if (a->alphas.n > PNB_MAX_ALPHAS)
        return pnb__usage(app, "--alphas: at most %d error rates", PNB_MAX_ALPHAS);
    for (size_t i = 0; i < a->alphas.n; i++) {
        char *end;
        double alpha = strtod(a->alphas.items[i], &end);
        if (end == a->alphas.items[i] || *end != '\0' || !(alpha > 0.0 && alpha < 1.0))
            return pnb__usage(app, "--alphas %s: an error rate lies between 0 and 1",
                              a->alphas.items[i]);
        a->job.alpha[i] = alpha;
    }
    if (a->alphas.n > 0)
        a->job.n_alphas = a->alphas.n;
    return PNB_OK;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct shift_args *a = args;
    pnb_status status = read_alphas(app, a);
    if (status == PNB_OK && a->job.sets.truth == NULL && a->job.sets.read.split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    return status == PNB_OK ? pnb__shift_run(app, &a->job, r) : status;
}

const pnb__command pnb__cmd_eval_shift = {
    .name = "shift",
    .summary = "see what a calibration is worth on another part of the data",
    .about =
        "Conformal lists hold a match as often as they say where queries are drawn as those they "
        "were fitted on were. Here the queries of another style, field or split are listed by the "
        "cut-off that was brought along, by cut-offs of --refit queries of here, and, as the "
        "control where nothing shifts, by cut-offs of half of them; the last two are drawn anew "
        "in every split and judged on the others. The same is done with the probability that a "
        "first hit is right.",
    .examples =
        "penumbra calibrate --images emoji.i.safetensors --texts emoji.t.safetensors --truth "
        "emoji.pairs -o emoji.json\n"
        "penumbra eval shift --calibration emoji.json --images clipart.i.safetensors --texts "
        "clipart.t.safetensors --truth clipart.pairs",
    .defaults = defaults,
    PNB__RUNS(options, struct shift_args, run)};
