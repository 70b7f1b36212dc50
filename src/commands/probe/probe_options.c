/* penumbra probe: how uncertainty answers to changed pictures and captions.
 *
 * Options only; the measuring is in src/commands/probe/probe.c, its tables and charts in
 * probe_report.c. */
#include <math.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/probe/probe.h"

struct probe_args {
    pnb__probe_cmd job;
    pnb__text_list shares;
};

#define AT(field) PNB__FIELD(struct probe_args, field)
static const pnb__option options[] = {
    PNB__MODEL_ROW(AT(job.model)),
    PNB__ROW_FILE("control", AT(job.control), "DIR",
                  "Model whose log-variance head is untrained: every figure again, beside"),
    PNB__ROW_FILES("images", AT(job.images), "PATH...",
                   "Pictures, folders or data sets: occlusion, mixed and erased pictures"),
    PNB__ROW_FILES("texts", AT(job.texts), "FILE...",
                   "Captions, as for embed: levels, lengths, dropped words"),
    PNB__TEXT_KEY_ROW(AT(job.caption_key)),
    PNB__ROW_FILE("chains", AT(job.chains), "PATH",
                  "Data set made by `penumbra data chains`: uncertainty by level of a picture, and "
                  "whether its parts contain it"),
    PNB__ROW_INT("limit", AT(job.limit), "N",
                 "Pictures and captions of the curves, evenly spaced over what is given",
                 PNB__RANGE(1, 1e6), .fallback = "256", .group = "How"),
    PNB__ROW_LIST("shares", AT(shares), "SHARE...",
                  "Points of the curves, ascending; 0 0.025 0.05 0.075 0.1 0.2 ... 0.9 by default"),
    PNB__ROW_REAL("erased", AT(job.erased), "SHARE",
                  "Erased share of the inclusion test; 0.2 by default", PNB__RANGE(0.001, 1)),
    PNB__ROW_FLAG("random-place", AT(job.random_place),
                  "Erase at a random place of each picture instead of in its middle"),
    PNB__ROW_CHOICE("words", AT(job.words), "HOW", "drop|unk",
                    "What a dropped word leaves: nothing, or the unknown word; unk by default for "
                    "PCME, whose captions were trained so, else drop"),
    PNB__ROW_INT("bins", AT(job.n_bins), "N", "Bins of caption length; 10 by default",
                 PNB__RANGE(1, PNB__MAX_LENGTH_BINS)),
    PNB__ROW_FLAG("published", AT(job.published),
                  "Take the inclusion as ProLIP's code has it instead of the exact one"),
    PNB__MODEL_PARTS_ROWS(AT(job.tokenizer), AT(job.preprocess)),
    PNB__EXIF_ROW(AT(job.exif)),
    PNB__ROW_FILE("html", AT(job.html), "FILE", "Write a page with charts of everything measured",
                  .group = "Result", .writes = "*"),
};
#undef AT

static pnb_status read_shares(pnb__app *app, const pnb__text_list *list, pnb__probe_cmd *cmd)
{
    static const double usual[] = {0,   0.025, 0.05, 0.075, 0.1, 0.2, 0.3,
                                   0.4, 0.5,   0.6,  0.7,   0.8, 0.9};
    if (list->n == 0) {
        for (size_t i = 0; i < PNB_COUNT(usual); i++)
            cmd->share[i] = usual[i];
        cmd->n_shares = PNB_COUNT(usual);
        return PNB_OK;
    }
    if (list->n > PNB__MAX_SHARES)
        return pnb__usage(app, "--shares takes at most %d values", PNB__MAX_SHARES);
    for (size_t i = 0; i < list->n; i++) {
        double *share = &cmd->share[i];
        if (!pnb__read_real(list->items[i], share) || !(*share >= 0 && *share <= 1))
            return pnb__usage(app, "--shares %s: a number from 0 to 1 is wanted", list->items[i]);
        if (i > 0 && !(*share > share[-1]))
            return pnb__usage(app, "--shares %s: it follows %s, and they must ascend",
                              list->items[i], list->items[i - 1]);
    }
    cmd->n_shares = list->n;
    return PNB_OK;
}

/* What is asked for can be measured on what is given. */
static pnb_status check(pnb__app *app, const pnb__probe_cmd *cmd, bool has_shares)
{
    bool no_images = cmd->images.n == 0, no_texts = cmd->texts.n == 0;
    if (no_images && no_texts && cmd->chains == NULL)
        return pnb__usage(app, "--images, --texts or --chains is wanted");
    if (cmd->exif && no_images)
        return pnb__usage(app, "--exif needs --images");
    if (no_images && (cmd->random_place || !isnan(cmd->erased)))
        return pnb__usage(app,
                          "--erased and --random-place are about pictures: they need --images");
    if (no_texts && cmd->words != PNB__WORDS_USUAL)
        return pnb__usage(app, "--words is about captions: it needs --texts");
    if (no_texts && cmd->n_bins > 0)
        return pnb__usage(app, "--bins is about the length of captions: it needs --texts");
    if (no_images && no_texts && has_shares)
        return pnb__usage(app, "--shares belongs to the curves: it needs --images or --texts");
    return PNB_OK;
}

static void defaults(void *args)
{
    *(struct probe_args *)args =
        (struct probe_args){.job = {.erased = NAN, .words = PNB__WORDS_USUAL}};
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct probe_args *a = args;
    pnb__probe_cmd *cmd = &a->job;
    pnb_status status = check(app, cmd, a->shares.n > 0);
    if (status == PNB_OK)
        status = read_shares(app, &a->shares, cmd);
    if (status != PNB_OK)
        return status;
    if (isnan(cmd->erased))
        cmd->erased = 0.2;
    if (cmd->n_bins == 0)
        cmd->n_bins = 10;
    return pnb__probe_run(app, cmd, r);
}

const pnb__command pnb__cmd_probe = {
    .name = "probe",
    .summary = "measure how uncertainty answers to changed inputs",
    .about =
        "Uncertainty by caption level and length; curves over a growing share of erased pixels and "
        "of dropped words, with the share of originals that lie inside their changed copies; "
        "pictures mixed by averaging and by halves. Pictures are changed at the encoder's size, "
        "the erased part filled with the mean colour. What a control shows as well was not "
        "learned. The default shares begin with the 0 to 10% of the published occlusion test.",
    .examples = "penumbra probe -m model --control control --images shapes/test --texts "
                "shapes/test/captions.jsonl --html probe.html",
    .defaults = defaults,
    PNB__RUNS(options, struct probe_args, run)};
