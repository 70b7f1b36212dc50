/* penumbra select: rows of a set to label next.
 *
 * Options only; what happens is in src/commands/curate/curate.c and src/eval/curation/selection.c.
 */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/curate/curate.h"
#include "program/result.h"

struct select_args {
    const char *set, *by, *uncertainty, *labelled, *out;
    int64_t count;
    bool with_spread;
};

#define AT(field) offsetof(struct select_args, field)
static const pnb__option options[] = {
    PNB__SET_ROW(AT(set)),
    {.name = "count",
     .letter = 'n',
     .kind = PNB__OPT_INT,
     .at = AT(count),
     .value = "N",
     .required = true,
     .min = 1,
     .max = 1e12,
     .help = "Rows to choose"},
    {.name = "by",
     .kind = PNB__OPT_CHOICE,
     .at = AT(by),
     .value = "HOW",
     .fallback = "uncertain",
     .choices = "uncertain|random|k_centre",
     .help = "The most uncertain rows, rows drawn with --seed, or rows that cover the set: always "
             "the one furthest from those labelled or chosen"},
    {.name = "labelled",
     .kind = PNB__OPT_FILE,
     .at = AT(labelled),
     .value = "FILE",
     .help = "Ids of rows that are labelled already, one a line: never chosen, and covered by "
             "k_centre"},
    PNB__UNCERTAINTY_ROW(AT(uncertainty)),
    {.name = "with-spread",
     .kind = PNB__OPT_FLAG,
     .at = AT(with_spread),
     .help = "k_centre measures distance by means and standard deviations (2-Wasserstein), not by "
             "means alone"},
    {.name = "out",
     .letter = 'o',
     .kind = PNB__OPT_FILE,
     .writes = "*",
     .at = AT(out),
     .value = "FILE",
     .group = "Result",
     .help = "The ranked list: .jsonl with figures, any other name ids, one a line"},
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct select_args *a = args;
    pnb__select_opts o = {.set = a->set,
                          .by = a->by,
                          .count = (size_t)a->count,
                          .with_spread = a->with_spread,
                          .labelled = a->labelled,
                          .out = a->out};
    if (a->with_spread && strcmp(a->by, "k_centre") != 0)
        return pnb__usage(app, "--with-spread belongs to --by k_centre");
    pnb__result *r = pnb__result_create();
    pnb_status status = pnb_uncertainty_parse(&o.uncertainty, a->uncertainty, &app->err);
    if (status == PNB_OK)
        status = pnb__select_run(app, &o, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_select = {
    .name = "select",
    .summary = "choose the rows of a set to label next",
    .about = "A ranked list for active learning, the same for the same seed. Label the rows, name "
             "all labelled ones in --labelled, and choose the next round.",
    .examples =
        "penumbra select --set images.safetensors -n 500 --out round1.txt\n"
        "penumbra select --set images.safetensors -n 500 --by k_centre --labelled round1.txt "
        "--out round2.txt",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct select_args),
    .run = run};
