/* penumbra search: the nearest rows of an embedding set.
 *
 * Options only; encoding the query and the table of hits are in src/app/query.c. */
#include "app/query.h"
#include "app/result.h"
#include "commands.h"
#include "rows.h"

struct search_args {
    const char *index, *model, *queries, *measure, *tokenizer, *preprocess;
    pnb__text_list texts, images;
    int64_t k;
    bool exif;
};

#define AT(field) offsetof(struct search_args, field)
static const pnb__option options[] = {
    {.name = "index",
     .kind = PNB__OPT_FILE,
     .at = AT(index),
     .value = "SET",
     .required = true,
     .help = "Embedding set to search in"},
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
     .help = "Hits of a query"},
    PNB__MEASURE_ROW(AT(measure)),
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct search_args *a = args;
    int kinds = (a->texts.n > 0) + (a->images.n > 0) + (a->queries != NULL);
    if (kinds != 1)
        return pnb__usage(app, "%s of --query-text, --query-image, --queries is wanted",
                          kinds == 0 ? "one" : "only one");
    if (a->queries == NULL && a->model == NULL)
        return pnb__usage(app, "--model is missing: it encodes the query");
    if (a->exif && a->images.n == 0)
        return pnb__usage(app, "--exif needs --query-image");
    const pnb__query_opts opts = {.index = a->index,
                                  .model = a->model,
                                  .queries = a->queries,
                                  .texts = &a->texts,
                                  .images = &a->images,
                                  .tokenizer = a->tokenizer,
                                  .preprocess = a->preprocess,
                                  .measure = a->measure,
                                  .exif = a->exif,
                                  .k = (size_t)a->k};
    pnb__result *r = pnb__result_create();
    pnb_status status = pnb__query_run(app, &opts, r);
    if (status == PNB_OK)
        status = pnb__result_print(r, app->out, app->common.json, &app->err);
    pnb__result_free(r);
    return status;
}

const pnb__command pnb__cmd_search = {
    .name = "search",
    .summary = "find the rows of a set nearest to a caption or picture",
    .about = "Hits come with their score (larger is nearer), the probability that the pair "
             "matches, s(a score + b) with the model's a and b (for csd and mean), and the "
             "uncertainty of the row.",
    .examples =
        "penumbra search --index images.safetensors --model model --query-text 'a red star'\n"
        "penumbra search --index texts.safetensors -m model --query-image cat.jpg -k 5 --json",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct search_args),
    .run = run};
