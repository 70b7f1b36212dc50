/* penumbra traverse: the captions between a picture and the root.
 *
 * Options only; the walk is pnb_traverse, inputs and tables are in
 * src/commands/traverse/traverse.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/traverse/traverse.h"

struct traverse_args {
    const char *images, *texts, *truth, *model, *root, *measure, *including, *tokenizer,
        *preprocess, *cluster;
    pnb__text_list pictures, captions;
    int64_t steps, show;
    bool exif, released, from_picture;
};

#define AT(field) offsetof(struct traverse_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("images", AT(images), "SET", "Embedding set of pictures",
                  .group = "Pictures (one kind)"),
    PNB__ROW_FILES("query-image", AT(pictures), "PATH...",
                   "Pictures, folders or data sets; needs --model"),
    PNB__ROW_FILE("texts", AT(texts), "SET", "Embedding set of captions",
                  .group = "Captions (one kind; without them those of --truth)"),
    PNB__ROW_LIST("text", AT(captions), "STR...", "Captions; needs --model",
                  .instead_of_file = "--texts takes an embedding set"),
    PNB__ROW_FILE(
        "truth", AT(truth), "CSV",
        "HierarCaps csv: id, captions joined by =>, image_url; gives precision, recall, R@1 "
        "and R@1[ROOT] of the pictures it names"),
    PNB__PICTURE_CLUSTER_ROW(AT(cluster)),
    PNB__ROW_FILE("model", AT(model), "DIR",
                  "Model directory that made the sets: encodes the empty text and what is no set",
                  .group = "How", .letter = 'm'),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__EXIF_ROW(AT(exif)),
    PNB__ROW_CHOICE(
        "root", AT(root), "NAME", "average|null|including",
        "The empty text (deterministic), the caption that includes the picture most, or their "
        "average; by default average, without --model including, for points null"),
    PNB__ROW_CHOICE(
        "including", AT(including), "HOW", "integral|published|h",
        "How captions are ranked for including a picture: by log int p1^2 p2 (integral, the "
        "default), by the same as ProLIP's code has it, or by the test H"),
    PNB__ROW_INT("steps", AT(steps), "N", "Points between picture and root", PNB__RANGE(2, 100000),
                 .fallback = "50"),
    PNB__ROW_CHOICE("measure", AT(measure), "NAME", "mean|csd|w2",
                    "What the nearest caption of a point is nearest by", .fallback = "mean"),
    PNB__ROW_FLAG("from-picture", AT(from_picture),
                  "Start at the picture itself instead of at its nearest caption"),
    PNB__ROW_FLAG(
        "released", AT(released),
        "As ProLIP's released evaluation: stop one step before the root, and the published "
        "form of the inclusion"),
    PNB__ROW_INT("show", AT(show), "N", "Pictures whose way is printed", PNB__RANGE(0, 1e9),
                 .fallback = "10", .group = "Result"),
};
#undef AT

/* What is asked for fits together. */
static pnb_status check(pnb__app *app, const struct traverse_args *a)
{
    if ((a->images != NULL) == (a->pictures.n > 0))
        return pnb__usage(app, "%s of --images and --query-image is wanted",
                          a->images == NULL ? "one" : "only one");
    if (a->texts != NULL && a->captions.n > 0)
        return pnb__usage(app, "only one of --texts and --text is wanted");
    if (a->texts == NULL && a->captions.n == 0 && a->truth == NULL)
        return pnb__usage(app, "captions are missing: give --texts, --text or --truth");
    if (a->model == NULL && a->pictures.n > 0)
        return pnb__usage(app, "--model is missing: it encodes the pictures");
    if (a->model == NULL && a->texts == NULL)
        return pnb__usage(app, "--model is missing: it encodes the captions");
    if (a->cluster != NULL && a->truth == NULL)
        return pnb__usage(app, "--cluster is of the intervals against --truth, and none is given");
    if (a->exif && a->pictures.n == 0)
        return pnb__usage(app, "--exif needs --query-image");
    if (a->model == NULL && (a->tokenizer != NULL || a->preprocess != NULL))
        return pnb__usage(app,
                          "--tokenizer and --preprocess are parts of --model, which is missing");
    if (a->including != NULL && a->root != NULL && strcmp(a->root, "null") == 0)
        return pnb__usage(app, "--root null asks for no caption that includes the picture: "
                               "--including does nothing there");
    return PNB_OK;
}

static pnb_status run(pnb__app *app, const void *args)
{
    const struct traverse_args *a = args;
    pnb_status status = check(app, a);
    pnb__traverse_cmd cmd = {.pictures = {a->images, NULL, &a->pictures, a->exif},
                             .captions = {a->texts, &a->captions, NULL, false},
                             .model = a->model,
                             .tokenizer = a->tokenizer,
                             .preprocess = a->preprocess,
                             .truth = a->truth,
                             .root = a->root,
                             .cluster = a->cluster,
                             .opts = a->released ? pnb_traverse_opts_released()
                                                 : pnb_traverse_opts_default(),
                             .n_shown = (size_t)a->show};
    cmd.opts.n_steps = (size_t)a->steps;
    cmd.opts.from_picture = a->from_picture;
    if (status == PNB_OK && a->including != NULL)
        status = pnb_including_parse(&cmd.opts.including, a->including, &app->err);
    if (status == PNB_OK)
        status = pnb_measure_parse(&cmd.opts.measure, a->measure, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__traverse_run(app, &cmd, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_traverse = {
    .name = "traverse",
    .summary = "walk from a picture through the captions to the root",
    .about = "From the caption nearest to the picture in equal steps to the root, each point "
             "brought to unit length and given its nearest caption: the specific first, the "
             "general last. With a file of caption hierarchies the ways are scored, with 95% "
             "bootstrap intervals over pictures, or over what --cluster says was taken together.",
    .examples = "penumbra traverse --images images.safetensors --texts texts.safetensors -m model\n"
                "penumbra traverse --images images.safetensors --truth HierarCaps.csv -m model "
                "--released --json",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct traverse_args),
    .run = run};
