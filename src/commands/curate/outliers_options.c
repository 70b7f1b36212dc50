/* penumbra curate outliers: rows of a set that stand alone.
 *
 * Options only; what happens is in src/commands/curate/curate.c and src/eval/curation/outliers.c.
 */
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/curate/curate.h"
#include "prob/choices.h"
#include "program/result.h"

struct outliers_args {
    const char *set, *by, *measure, *uncertainty, *out;
    int64_t k, count;
};

#define AT(field) offsetof(struct outliers_args, field)
static const pnb__option options[] = {
    PNB__SET_ROW(AT(set)),
    PNB__ROW_CHOICE(
        "by", AT(by), "KIND", PNB__CHOICES(PNB_OUTLIER_LIST(PNB__CHOICE_OF)),
        "Lowest mean score to the k nearest rows, lowest score to the nearest or to the k-th, "
        "or highest uncertainty",
        .fallback = "knn"),
    PNB__ROW_INT("k", AT(k), "N",
                 "Neighbours of a row, itself not counted, for knn and kth; 10 by default",
                 PNB__RANGE(1, 1e6), .letter = 'k'),
    PNB__ROW_CHOICE("measure", AT(measure), "NAME", "mean" PNB__SYMMETRIC_MEASURE_CHOICES,
                    "Measure between two rows; mean, the default, is the cosine"),
    PNB__UNCERTAINTY_ROW(AT(uncertainty)),
    PNB__ROW_INT("count", AT(count), "N", "Rows to list", PNB__RANGE(1, 1e12), .fallback = "100",
                 .group = "Result", .letter = 'n'),
    PNB__ROW_FILE("out", AT(out), "FILE",
                  "The list: .jsonl with figures, any other name ids, one a line", .letter = 'o',
                  .writes = "*"),
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct outliers_args *a = args;
    pnb__outliers_opts o = {.set = a->set,
                            .rank = pnb_outliers_opts_default(),
                            .count = (size_t)a->count,
                            .out = a->out};
    pnb_status status = pnb_outlier_parse(&o.rank.kind, a->by, &app->err);
    if (status == PNB_OK && a->k != PNB__INT_UNSET && o.rank.kind != PNB_OUTLIER_KNN &&
        o.rank.kind != PNB_OUTLIER_KTH)
        return pnb__usage(app, "-k belongs to --by knn and --by kth");
    if (status == PNB_OK && a->measure != NULL && o.rank.kind == PNB_OUTLIER_UNCERTAINTY)
        return pnb__usage(app, "--by uncertainty compares no rows: --measure does nothing there");
    if (a->k != PNB__INT_UNSET)
        o.rank.k = (size_t)a->k;
    pnb__result *r = pnb__result_create();
    if (status == PNB_OK && a->measure != NULL)
        status = pnb_measure_parse(&o.rank.measure, a->measure, &app->err);
    if (status == PNB_OK)
        status = pnb_uncertainty_parse(&o.uncertainty, a->uncertainty, &app->err);
    if (status == PNB_OK)
        status = pnb__outliers_run(app, &o, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_outliers = {
    .name = "outliers",
    .summary = "list rows of a set that stand alone or are most uncertain",
    .about = "Rows ranked by how far out they are, the furthest first. An exact copy of a row is "
             "one of its neighbours: list near-duplicates first.",
    .examples =
        "penumbra curate outliers --set images.safetensors --by kth -k 5 -n 50 --out far.jsonl",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct outliers_args),
    .run = run};
