/* penumbra include: inclusion search, captions that contain a picture and the reverse.
 *
 * Options only; the search is pnb_members_find, its table in src/app/members.c. */
#include <math.h>
#include <string.h>

#include "app/members.h"
#include "commands.h"
#include "rows.h"

struct include_args {
    const char *index, *model, *queries, *find, *order, *tokenizer, *preprocess;
    pnb__text_list texts, images;
    int64_t k;
    double near;
    bool exif, published;
};

#define AT(field) offsetof(struct include_args, field)
static const pnb__option options[] = {
    {.name = "index",
     .kind = PNB__OPT_FILE,
     .at = AT(index),
     .value = "SET",
     .required = true,
     .help = "Embedding set to search in"},
    {.name = "find",
     .kind = PNB__OPT_CHOICE,
     .at = AT(find),
     .value = "WHAT",
     .fallback = "containing",
     .choices = "containing|inside",
     .help = "Rows that contain the query, or rows inside it"},
    {.name = "query-text",
     .kind = PNB__OPT_LIST,
     .at = AT(texts),
     .value = "STR...",
     .group = "Queries (one kind)",
     .help = "Captions"},
    {.name = "query-image",
     .kind = PNB__OPT_FILES,
     .at = AT(images),
     .value = "PATH...",
     .help = "Pictures"},
    {.name = "queries",
     .kind = PNB__OPT_FILE,
     .at = AT(queries),
     .value = "SET",
     .help = "Embedding set of queries, no model needed"},
    {.name = "model",
     .letter = 'm',
     .kind = PNB__OPT_FILE,
     .at = AT(model),
     .value = "DIR",
     .group = "How",
     .help = "Model directory that made the index; for --query-text and --query-image"},
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    {.name = "exif",
     .kind = PNB__OPT_FLAG,
     .at = AT(exif),
     .help = "Turn pictures as their EXIF orientation says; as given to embed for the index"},
    {.name = "k",
     .letter = 'k',
     .kind = PNB__OPT_INT,
     .at = AT(k),
     .value = "N",
     .fallback = "10",
     .min = 1,
     .max = 1e6,
     .help = "Members shown of a query"},
    {.name = "order",
     .kind = PNB__OPT_CHOICE,
     .at = AT(order),
     .value = "NAME",
     .fallback = "inclusion",
     .choices = "inclusion|nearness",
     .help = "Sort members by H, or by their csd similarity to the query"},
    {.name = "near",
     .kind = PNB__OPT_REAL,
     .at = AT(near),
     .value = "SCORE",
     .help = "Leave out rows whose csd similarity to the query is smaller"},
    {.name = "published",
     .kind = PNB__OPT_FLAG,
     .at = AT(published),
     .help = "Take the inclusion as ProLIP's code has it instead of the exact one"},
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct include_args *a = args;
    int kinds = (a->texts.n > 0) + (a->images.n > 0) + (a->queries != NULL);
    if (kinds != 1)
        return pnb__usage(app, "%s of --query-text, --query-image, --queries is wanted",
                          kinds == 0 ? "one" : "only one");
    if (a->queries == NULL && a->model == NULL)
        return pnb__usage(app, "--model is missing: it encodes the query");
    if (a->exif && a->images.n == 0)
        return pnb__usage(app, "--exif needs --query-image");
    pnb__members_cmd cmd = {.index = a->index,
                            .model = a->model,
                            .tokenizer = a->tokenizer,
                            .preprocess = a->preprocess,
                            .queries = {a->queries, &a->texts, &a->images, a->exif},
                            .opts = pnb_members_opts_default()};
    cmd.opts.inside = strcmp(a->find, "inside") == 0;
    cmd.opts.published = a->published;
    cmd.opts.k = (size_t)a->k;
    if (!isnan(a->near))
        cmd.opts.min_nearness = a->near;
    pnb_status status = pnb_member_order_parse(&cmd.opts.order, a->order, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__members_run(app, &cmd, r);
    if (status == PNB_OK)
        status = pnb__result_print(r, app->out, app->common.json, &app->err);
    pnb__result_free(r);
    return status;
}

const pnb__command pnb__cmd_include = {
    .name = "include",
    .summary = "find the rows that contain a query, or lie inside it",
    .about =
        "A caption that leaves things open is a wide distribution and contains the pictures it is "
        "true of. A row is a member when the inclusion test H is positive; other rows are never "
        "shown, so the answer may be empty. H grows with the distance of the means too: a very "
        "wide row contains nearly everything, related or not. --near and --order nearness bring "
        "the csd similarity in.",
    .examples =
        "penumbra include --index texts.safetensors -m model --query-image cat.jpg\n"
        "penumbra include --index images.safetensors --find inside -m model --query-text 'an "
        "animal' --order nearness",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct include_args),
    .run = run};
