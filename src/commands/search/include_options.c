/* penumbra include: the word of release 0.1 for `penumbra search --inclusion`, with its options.
 *
 * Goes with the next release (retired.c). */
#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/search/search_inclusion.h"

#define AT(field) PNB__FIELD(pnb__search_inclusion_opts, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("index", AT(in.index), "SET", "Embedding set to search in", .required = true),
    PNB__ROW_CHOICE("find", AT(opts.inside), "WHAT", "containing|inside",
                    "Rows that contain the query, or rows inside it", .fallback = "containing"),
    PNB__QUERY_ROWS(AT(in.queries.texts), AT(in.queries.images), AT(in.queries.set), AT(in.model)),
    PNB__MODEL_PARTS_ROWS(AT(in.parts.tokenizer), AT(in.parts.preprocess)),
    PNB__PRECISION_ROW(AT(in.parts.precision)),
    PNB__QUERY_EXIF_ROW(AT(in.queries.exif)),
    PNB__ROW_INT("k", AT(opts.k), "N", "Members shown of a query", PNB__RANGE(1, 1e6),
                 .fallback = "10", .letter = 'k'),
    PNB__ROW_CHOICE(
        "order", AT(opts.order), "NAME", PNB__CHOICES(PNB_INCLUSION_ORDER_LIST(PNB__CHOICE_OF)),
        "Sort members by H, or by their csd similarity to the query", .fallback = "inclusion"),
    PNB__ROW_REAL("near", AT(opts.min_nearness), "SCORE",
                  "Leave out rows whose csd similarity to the query is smaller"),
    PNB__ROW_FLAG("published", AT(opts.published),
                  "Take the inclusion as ProLIP's code has it instead of the exact one"),
};
#undef AT

static void defaults(void *args)
{
    *(pnb__search_inclusion_opts *)args =
        (pnb__search_inclusion_opts){.opts = pnb_inclusion_search_opts_default()};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__search_inclusion_opts *job = args;
    const pnb__search_input *in = &job->in;
    if (pnb__query_check(app, &in->queries, in->model) != PNB_OK)
        return app->err.status;
    if (in->queries.set != NULL &&
        (in->model != NULL || in->parts.tokenizer != NULL || in->parts.preprocess != NULL))
        return pnb__usage(app, "--queries is encoded already: --model and its parts do nothing");
    return pnb__search_inclusion_run(app, job, r);
}

const pnb__command pnb__cmd_include = {
    .name = "include",
    .summary = "find the rows that contain a query, or lie inside it",
    .about = "The older word for `penumbra search --inclusion`.",
    .examples =
        "penumbra include --index texts.safetensors -m model --query-image cat.jpg\n"
        "penumbra include --index images.safetensors --find inside -m model --query-text 'an "
        "animal' --order nearness",
    .defaults = defaults,
    PNB__RUNS(options, pnb__search_inclusion_opts, run)};
