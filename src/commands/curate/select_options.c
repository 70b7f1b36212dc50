/* penumbra curate select: rows of a set to label next.
 *
 * Options only; what happens is in src/commands/curate/curate.c and src/eval/curation/selection.c.
 */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/curate/curate.h"
#include "program/result_end.h"

#define AT(field) PNB__FIELD(pnb__select_opts, field)
static const pnb__option options[] = {
    PNB__SET_ROW(AT(set)),
    PNB__ROW_INT("count", AT(count), "N", "Rows to choose", PNB__RANGE(1, 1e12), .letter = 'n',
                 .required = true),
    PNB__ROW_CHOICE(
        "by", AT(by), "HOW", "uncertain|random|k_centre",
        "The most uncertain rows, rows drawn with --seed, or rows that cover the set: always "
        "the one furthest from those labelled or chosen",
        .fallback = "uncertain"),
    PNB__ROW_FILE("labelled", AT(labelled), "FILE",
                  "Ids of rows that are labelled already, one a line: never chosen, and covered by "
                  "k_centre"),
    PNB__UNCERTAINTY_ROW(AT(uncertainty)),
    PNB__ROW_FLAG(
        "with-spread", AT(with_spread),
        "k_centre measures distance by means and standard deviations (2-Wasserstein), not by "
        "means alone"),
    PNB__ROW_FILE("out", AT(out), "FILE",
                  "The ranked list: .jsonl with figures, any other name ids, one a line",
                  .group = "Result", .letter = 'o', .writes = "*"),
};
#undef AT

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__select_opts *o = args;
    if (o->with_spread && strcmp(o->by, "k_centre") != 0)
        return pnb__usage(app, "--with-spread belongs to --by k_centre");
    return pnb__select_run(app, o, r);
}

const pnb__command pnb__cmd_select = {
    .name = "select",
    .summary = "choose the rows of a set to label next",
    .about = "A ranked list for active learning, the same for the same seed. Label the rows, name "
             "all labelled ones in --labelled, and choose the next round.",
    .examples = "penumbra curate select --set images.safetensors -n 500 --out round1.txt\n"
                "penumbra curate select --set images.safetensors -n 500 --by k_centre --labelled "
                "round1.txt "
                "--out round2.txt",
    PNB__RUNS(options, pnb__select_opts, run)};
