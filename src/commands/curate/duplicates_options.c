/* penumbra curate duplicates: rows of a set that nearly repeat each other.
 *
 * Options only; what happens is in src/commands/curate/curate.c and src/eval/curation/duplicates.c.
 */
#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/curate/curate.h"
#include "prob/choices.h"
#include "program/result.h"

struct duplicates_args {
    const char *set, *measure, *uncertainty, *out, *keep, *drop;
    double min_score;
    int64_t max_pairs, max_neighbours, show;
};

#define AT(field) offsetof(struct duplicates_args, field)
static const pnb__option options[] = {
    PNB__SET_ROW(AT(set)),
    PNB__ROW_REAL("min-score", AT(min_score), "X",
                  "Rows with at least this score are near-duplicates", .fallback = "0.95"),
    PNB__ROW_CHOICE(
        "measure", AT(measure), "NAME", "mean" PNB__SYMMETRIC_MEASURE_CHOICES,
        "Measure between two rows, as a score that is larger for nearer ones; mean is the "
        "cosine",
        .fallback = "mean"),
    PNB__ROW_CHOICE(
        "uncertainty", AT(uncertainty), "NAME", PNB__CHOICES(PNB__VARIANCE_UNCERTAINTY_CHOICES),
        "Scalar uncertainty that decides which row of a group stays", .fallback = "trace"),
    PNB__ROW_INT("max-pairs", AT(max_pairs), "N",
                 "All pairs are found while there are no more than this", PNB__RANGE(1, 1e11),
                 .fallback = "20000000"),
    PNB__ROW_INT("max-neighbours", AT(max_neighbours), "N",
                 "Where there are more, only so many near-duplicates of each row are looked at",
                 PNB__RANGE(1, 1e9), .fallback = "100"),
    PNB__ROW_INT("show", AT(show), "N", "Groups to print, the largest first", PNB__RANGE(0, 1e9),
                 .fallback = "20", .group = "Result"),
    PNB__ROW_FILE("out", AT(out), "FILE",
                  "All groups (.jsonl), or all pairs: id, tab, id, tab, score", .letter = 'o',
                  .writes = "*"),
    PNB__ROW_FILE("keep", AT(keep), "FILE",
                  "Ids of the rows that stay: one of each group, and all that are in none",
                  .writes = "*"),
    PNB__ROW_FILE("drop", AT(drop), "FILE", "Ids of the rows to drop", .writes = "*"),
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct duplicates_args *a = args;
    pnb__duplicates_opts o = {.set = a->set,
                              .find = pnb_duplicates_opts_default(),
                              .n_shown = (size_t)a->show,
                              .out = a->out,
                              .keep = a->keep,
                              .drop = a->drop};
    pnb__result *r = pnb__result_create();
    o.find.min_score = a->min_score;
    o.find.max_pairs = (size_t)a->max_pairs;
    o.find.max_neighbours = (size_t)a->max_neighbours;
    pnb_status status = pnb_measure_parse(&o.find.measure, a->measure, &app->err);
    if (status == PNB_OK)
        status = pnb_uncertainty_parse(&o.uncertainty, a->uncertainty, &app->err);
    if (status == PNB_OK)
        status = pnb__duplicates_run(app, &o, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_duplicates = {
    .name = "duplicates",
    .summary = "list rows of a set that nearly repeat each other",
    .about = "All pairs of rows whose score reaches the limit, and the groups they form: rows "
             "joined by a chain of such pairs. Of each group the most certain row is to be kept. "
             "Memory grows with the pairs found, up to a limit, never with the square of the rows.",
    .examples =
        "penumbra curate duplicates --set images.safetensors --min-score 0.97 --drop drop.txt\n"
        "penumbra curate duplicates --set images.safetensors --out groups.jsonl --json",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct duplicates_args),
    .run = run};
