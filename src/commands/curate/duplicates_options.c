/* penumbra curate duplicates: rows of a set that nearly repeat each other.
 *
 * Options only; what happens is in src/commands/curate/curate.c and src/eval/curation/duplicates.c.
 */
#include <math.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/curate/curate.h"
#include "prob/choices.h"
#include "program/result_end.h"

#define AT(field) PNB__FIELD(pnb__duplicates_opts, field)
static const pnb__option options[] = {
    PNB__SET_ROW(AT(set)),
    PNB__ROW_REAL("min-score", AT(find.min_score), "X",
                  "Rows with at least this score are near-duplicates", .fallback = "0.95"),
    PNB__ROW_CHOICE(
        "measure", AT(find.measure), "NAME", "mean" PNB__SYMMETRIC_MEASURE_CHOICES,
        "Measure between two rows, as a score that is larger for nearer ones; mean is the "
        "cosine",
        .names = PNB__MEASURE_NAMES, .fallback = "mean"),
    PNB__MATCH_ROWS(AT(match.n_samples), AT(match.a), AT(match.b)),
    PNB__ROW_CHOICE("uncertainty", AT(uncertainty), "NAME",
                    PNB__CHOICES(PNB__VARIANCE_UNCERTAINTY_CHOICES),
                    "Scalar uncertainty that decides which row of a group stays",
                    .names = PNB__UNCERTAINTY_NAMES, .fallback = "trace"),
    PNB__ROW_INT("max-pairs", AT(find.max_pairs), "N",
                 "All pairs are found while there are no more than this", PNB__RANGE(1, 1e11),
                 .fallback = "20000000"),
    PNB__ROW_INT("max-neighbours", AT(find.max_neighbours), "N",
                 "Where there are more, only so many near-duplicates of each row are looked at",
                 PNB__RANGE(1, 1e9), .fallback = "100"),
    PNB__ROW_INT("show", AT(n_shown), "N", "Groups to print, the largest first", PNB__RANGE(0, 1e9),
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

static void defaults(void *args)
{
    *(pnb__duplicates_opts *)args = (pnb__duplicates_opts){.find = pnb_duplicates_opts_default(),
                                                           .match = {.a = NAN, .b = NAN}};
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
    .defaults = defaults,
    PNB__RUNS(options, pnb__duplicates_opts, pnb__duplicates_run)};
