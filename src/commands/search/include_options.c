/* penumbra include: the word of release 0.1 for `penumbra search --inclusion`, with its options.
 *
 * Goes with the next release (retired.c). */
#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/search/search_inclusion.h"

struct include_args {
    const char *index, *model, *queries, *find, *order, *tokenizer, *preprocess;
    pnb__text_list texts, images;
    int64_t k;
    double near;
    bool exif, published;
};

#define AT(field) offsetof(struct include_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("index", AT(index), "SET", "Embedding set to search in", .required = true),
    PNB__ROW_CHOICE("find", AT(find), "WHAT", "containing|inside",
                    "Rows that contain the query, or rows inside it", .fallback = "containing"),
    PNB__QUERY_ROWS(AT(texts), AT(images), AT(queries), AT(model)),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__QUERY_EXIF_ROW(AT(exif)),
    PNB__ROW_INT("k", AT(k), "N", "Members shown of a query", PNB__RANGE(1, 1e6), .fallback = "10",
                 .letter = 'k'),
    PNB__ROW_CHOICE("order", AT(order), "NAME", "inclusion|nearness",
                    "Sort members by H, or by their csd similarity to the query",
                    .fallback = "inclusion"),
    PNB__ROW_REAL("near", AT(near), "SCORE",
                  "Leave out rows whose csd similarity to the query is smaller"),
    PNB__ROW_FLAG("published", AT(published),
                  "Take the inclusion as ProLIP's code has it instead of the exact one"),
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct include_args *a = args;
    const pnb__query queries = {a->queries, &a->texts, &a->images, a->exif};
    if (pnb__query_check(app, &queries, a->model) != PNB_OK)
        return app->err.status;
    if (a->queries != NULL && (a->model != NULL || a->tokenizer != NULL || a->preprocess != NULL))
        return pnb__usage(app, "--queries is encoded already: --model and its parts do nothing");
    pnb__search_inclusion_opts cmd = {.index = a->index,
                                      .model = a->model,
                                      .tokenizer = a->tokenizer,
                                      .preprocess = a->preprocess,
                                      .queries = queries,
                                      .opts = pnb_inclusion_search_opts_default()};
    cmd.opts.inside = strcmp(a->find, "inside") == 0;
    cmd.opts.published = a->published;
    cmd.opts.k = (size_t)a->k;
    if (!isnan(a->near))
        cmd.opts.min_nearness = a->near;
    pnb_status status = pnb_inclusion_order_parse(&cmd.opts.order, a->order, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__search_inclusion_run(app, &cmd, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_include = {
    .name = "include",
    .summary = "find the rows that contain a query, or lie inside it",
    .about = "The older word for `penumbra search --inclusion`.",
    .examples =
        "penumbra include --index texts.safetensors -m model --query-image cat.jpg\n"
        "penumbra include --index images.safetensors --find inside -m model --query-text 'an "
        "animal' --order nearness",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct include_args),
    .run = run};
