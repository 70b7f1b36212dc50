/* penumbra traverse: the captions between a picture and the root.
 *
 * Options only; the walk is pnb_traverse, inputs and tables are in
 * src/commands/traverse/traverse.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/traverse/traverse.h"

struct traverse_args {
    pnb__traverse_cmd job;
    bool released;
};

#define AT(field) PNB__FIELD(struct traverse_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("images", AT(job.images.set), "SET", "Embedding set of pictures",
                  .group = "Pictures (one kind)"),
    PNB__ROW_FILES("query-image", AT(job.images.images), "PATH...",
                   "Pictures, folders or data sets; needs --model"),
    PNB__ROW_FILE("texts", AT(job.texts.set), "SET", "Embedding set of captions",
                  .group = "Captions (one kind; without them those of --truth)"),
    PNB__ROW_LIST("text", AT(job.texts.texts), "STR...", "Captions; needs --model",
                  .instead_of_file = "--texts takes an embedding set"),
    PNB__ROW_FILE(
        "truth", AT(job.truth), "CSV",
        "HierarCaps csv: id, captions joined by =>, image_url; gives precision, recall, R@1 "
        "and R@1[ROOT] of the pictures it names"),
    PNB__IMAGE_CLUSTER_ROW(AT(job.cluster)),
    PNB__ROW_FILE("model", AT(job.model), "DIR",
                  "Model directory that made the sets: encodes the empty text and what is no set",
                  .group = "How", .letter = 'm'),
    PNB__MODEL_PARTS_ROWS(AT(job.parts.tokenizer), AT(job.parts.preprocess)),
    PNB__EXIF_ROW(AT(job.images.exif)),
    PNB__ROW_CHOICE(
        "root", AT(job.opts.root), "NAME", PNB__CHOICES(PNB_ROOT_LIST(PNB__CHOICE_OF)),
        "The empty text (deterministic), the caption that includes the picture most, or their "
        "average; by default average, without --model including, for points null"),
    PNB__ROW_CHOICE(
        "including", AT(job.opts.including), "HOW",
        PNB__CHOICES(PNB_INCLUDING_LIST(PNB__CHOICE_OF)),
        "How captions are ranked for including a picture: by log int p1^2 p2 (integral, the "
        "default), by the same as ProLIP's code has it, or by the test H"),
    PNB__ROW_INT("steps", AT(job.opts.n_steps), "N", "Points between picture and root",
                 PNB__RANGE(2, 100000), .fallback = "50"),
    PNB__ROW_CHOICE("measure", AT(job.opts.measure), "NAME", "mean|csd|w2",
                    "What the nearest caption of a point is nearest by",
                    .names = PNB__MEASURE_NAMES, .fallback = "mean"),
    PNB__ROW_FLAG("from-picture", AT(job.opts.from_image),
                  "Start at the picture itself instead of at its nearest caption"),
    PNB__ROW_FLAG(
        "released", AT(released),
        "As ProLIP's released evaluation: stop one step before the root, and the published "
        "form of the inclusion"),
    PNB__ROW_INT("show", AT(job.n_shown), "N", "Pictures whose way is printed", PNB__RANGE(0, 1e9),
                 .fallback = "10", .group = "Result"),
};
#undef AT

/* What is asked for fits together. */
static pnb_status check(pnb__app *app, const pnb__traverse_cmd *c)
{
    if ((c->images.set != NULL) == (c->images.images.n > 0))
        return pnb__usage(app, "%s of --images and --query-image is wanted",
                          c->images.set == NULL ? "one" : "only one");
    if (c->texts.set != NULL && c->texts.texts.n > 0)
        return pnb__usage(app, "only one of --texts and --text is wanted");
    if (c->texts.set == NULL && c->texts.texts.n == 0 && c->truth == NULL)
        return pnb__usage(app, "captions are missing: give --texts, --text or --truth");
    if (c->model == NULL && c->images.images.n > 0)
        return pnb__usage(app, "--model is missing: it encodes the pictures");
    if (c->model == NULL && c->texts.set == NULL)
        return pnb__usage(app, "--model is missing: it encodes the captions");
    if (c->cluster != NULL && c->truth == NULL)
        return pnb__usage(app, "--cluster is of the intervals against --truth, and none is given");
    if (c->images.exif && c->images.images.n == 0)
        return pnb__usage(app, "--exif needs --query-image");
    if (c->model == NULL && (c->parts.tokenizer != NULL || c->parts.preprocess != NULL))
        return pnb__usage(app,
                          "--tokenizer and --preprocess are parts of --model, which is missing");
    if (c->opts.including != PNB_N_INCLUDINGS && c->opts.root == PNB_ROOT_NULL_TEXT)
        return pnb__usage(app, "--root null asks for no caption that includes the picture: "
                               "--including does nothing there");
    return PNB_OK;
}

/* What the sets choose, and what --released does, holds a number behind the last. */
static void defaults(void *args)
{
    struct traverse_args *a = args;
    bool released = a->released;
    *a = (struct traverse_args){.job.opts = released ? pnb_traverse_opts_released()
                                                     : pnb_traverse_opts_default()};
    a->job.opts.root = PNB_N_ROOTS;
    a->job.opts.including = PNB_N_INCLUDINGS;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct traverse_args *a = args;
    pnb_status status = check(app, &a->job);
    if (a->job.opts.including == PNB_N_INCLUDINGS)
        a->job.opts.including =
            a->released ? PNB_INCLUDING_BY_PUBLISHED : pnb_traverse_opts_default().including;
    return status == PNB_OK ? pnb__traverse_run(app, &a->job, r) : status;
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
    .defaults = defaults,
    PNB__RUNS(options, struct traverse_args, run)};
