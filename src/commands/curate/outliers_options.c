/* penumbra curate outliers: rows of a set that stand alone.
 *
 * Options only; what happens is in src/commands/curate/curate.c and src/eval/curation/outliers.c.
 */
#include <math.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/curate/curate.h"
#include "prob/choices.h"
#include "program/result_end.h"

#define AT(field) PNB__FIELD(pnb__outliers_opts, field)
static const pnb__option options[] = {
    PNB__SET_ROW(AT(set)),
    PNB__ROW_CHOICE(
        "by", AT(rank.kind), "KIND", PNB__CHOICES(PNB_OUTLIER_LIST(PNB__CHOICE_OF)),
        "Lowest mean score to the k nearest rows, lowest score to the nearest or to the k-th, "
        "or highest uncertainty",
        .fallback = "knn"),
    PNB__ROW_INT("k", AT(rank.k), "N",
                 "Neighbours of a row, itself not counted, for knn and kth; 10 by default",
                 PNB__RANGE(1, 1e6), .letter = 'k'),
    PNB__ROW_CHOICE("measure", AT(rank.measure), "NAME", "mean" PNB__SYMMETRIC_MEASURE_CHOICES,
                    "Measure between two rows; mean, the default, is the cosine",
                    .names = PNB__MEASURE_NAMES),
    PNB__MATCH_ROWS(AT(match.n_samples), AT(match.a), AT(match.b)),
    PNB__UNCERTAINTY_ROW(AT(uncertainty)),
    PNB__ROW_INT("count", AT(count), "N", "Rows to list", PNB__RANGE(1, 1e12), .fallback = "100",
                 .group = "Result", .letter = 'n'),
    PNB__ROW_FILE("out", AT(out), "FILE",
                  "The list: .jsonl with figures, any other name ids, one a line", .letter = 'o',
                  .writes = "*"),
};
#undef AT

static void defaults(void *args)
{
    pnb__outliers_opts *o = args;
    *o = (pnb__outliers_opts){.rank = pnb_outliers_opts_default(), .match = {.a = NAN, .b = NAN}};
    o->rank.k = 0; /* both are told from what is given, for not every ranking takes them */
    o->rank.measure = PNB_N_MEASURES;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb_outliers_opts usual = pnb_outliers_opts_default();
    pnb__outliers_opts *o = args;
    pnb_outliers_opts *rank = &o->rank;
    if (rank->k > 0 && rank->kind != PNB_OUTLIER_KNN && rank->kind != PNB_OUTLIER_KTH)
        return pnb__usage(app, "-k belongs to --by knn and --by kth");
    if (rank->measure != PNB_N_MEASURES && rank->kind == PNB_OUTLIER_UNCERTAINTY)
        return pnb__usage(app, "--by uncertainty compares no rows: --measure does nothing there");
    rank->k = rank->k > 0 ? rank->k : usual.k;
    rank->measure = rank->measure != PNB_N_MEASURES ? rank->measure : usual.measure;
    return pnb__outliers_run(app, o, r);
}

const pnb__command pnb__cmd_outliers = {
    .name = "outliers",
    .summary = "list rows of a set that stand alone or are most uncertain",
    .about = "Rows ranked by how far out they are, the furthest first. An exact copy of a row is "
             "one of its neighbours: list near-duplicates first.",
    .examples =
        "penumbra curate outliers --set images.safetensors --by kth -k 5 -n 50 --out far.jsonl",
    .defaults = defaults,
    PNB__RUNS(options, pnb__outliers_opts, run)};
