/* penumbra data shapes | emoji: image-caption sets made on this machine.
 *
 * Options and the table of what was made; drawing, captions and files are src/data's. */
#include "commands/commands.h"
#include "commands/data/data_stats.h"
#include "penumbra/synth.h"

/* ---- shapes ---- */

struct shapes_args {
    const char *out;
    pnb_shapes_opts job;
};

#define AT(field) PNB__FIELD(struct shapes_args, field)
static const pnb__option shapes_options[] = {
    PNB__MADE_OUT_ROW(AT(out)),
    PNB__ROW_INT("n", AT(job.n_scenes), "N", "Scenes over all splits", PNB__RANGE(1, 1e8),
                 .fallback = "5000"),
    PNB__ROW_INT("size", AT(job.width), "PIXELS", "Width and height of a picture",
                 PNB__RANGE(16, 4096), .fallback = "64"),
    PNB__MADE_SPLIT_ROWS("scenes", AT(job.val_share), AT(job.test_share)),
    PNB__MADE_SHARD_ROW(AT(job.shard_size)),
    PNB__ROW_REAL("blur", AT(job.blur_p), "P", "Probability that a scene is blurred",
                  PNB__RANGE(0, 1), .fallback = "0",
                  .group = "Pictures that are ambiguous, with a known truth"),
    PNB__ROW_REAL("max-blur", AT(job.max_blur), "SHARE",
                  "Largest blur, as a standard deviation relative to the width", PNB__RANGE(0, 1),
                  .fallback = "0.12"),
    PNB__ROW_REAL("occlude", AT(job.occlude_p), "P",
                  "Probability that something hides part of a scene", PNB__RANGE(0, 1),
                  .fallback = "0"),
    PNB__ROW_REAL("grey", AT(job.grey_p), "P", "Probability that a scene loses its colours",
                  PNB__RANGE(0, 1), .fallback = "0"),
    PNB__ROW_REAL("wordy", AT(job.wordy), "P",
                  "Probability that a caption stands in words that say nothing more, as \"one can "
                  "see ... in this picture\": its length does not tell then what it leaves open",
                  PNB__RANGE(0, 1), .fallback = "0"),
};
#undef AT

static void shapes_defaults(void *args)
{
    *(struct shapes_args *)args = (struct shapes_args){.job = pnb_shapes_opts_default()};
}

static pnb_status run_shapes(pnb__app *app, void *args, pnb__result *r)
{
    struct shapes_args *a = args;
    pnb_synth_stats stats = {0};
    if (pnb__data_check_shares(app, a->job.val_share, a->job.test_share) != PNB_OK)
        return app->err.status;
    a->job.height = a->job.width;
    a->job.seed = (uint64_t)app->common.seed;
    pnb_status status = pnb_synth_shapes(app->ctx, &a->job, a->out, &stats, &app->err);
    if (status == PNB_OK)
        pnb__data_put_stats(a->out, &stats, PNB_SYNTH_N_LEVELS, r);
    return status;
}

/* ---- emoji ---- */

struct emoji_args {
    const char *out, *size;
    pnb_emoji_opts job;
};

#define AT(field) PNB__FIELD(struct emoji_args, field)
static const pnb__option emoji_options[] = {
    PNB__MADE_OUT_ROW(AT(out)),
    PNB__ROW_CHOICE("size", AT(size), "PIXELS", "64|128",
                    "Which of the two sizes written is KEY.png", .fallback = "64"),
    PNB__ROW_FLAG("skin-tones", AT(job.skin_tones),
                  "Keep the skin tone variants, which are nearly the same pictures"),
    PNB__ROW_FLAG(
        "sensitive", AT(job.sensitive),
        "Keep the emoji and keywords left out by default: insults, and words for faiths and "
        "descents (listed in docs/data.md)"),
    PNB__MADE_SHARD_ROW(AT(job.shard_size)),
    PNB__ROW_FILE("font", AT(job.font), "FILE", "NotoColorEmoji.ttf of fonts-noto-color-emoji",
                  .group = "Sources (by default where Debian installs them)"),
    PNB__ROW_FILE("emoji-test", AT(job.emoji_test), "FILE", "emoji-test.txt of unicode-data"),
    PNB__ROW_FILE("cldr", AT(job.cldr_common), "DIR", "The `common` folder of unicode-cldr-core"),
};
#undef AT

static void emoji_defaults(void *args)
{
    *(struct emoji_args *)args = (struct emoji_args){.job = pnb_emoji_opts_default()};
}

static pnb_status run_emoji(pnb__app *app, void *args, pnb__result *r)
{
    struct emoji_args *a = args;
    pnb_synth_stats stats = {0};
    a->job.seed = (uint64_t)app->common.seed;
    a->job.size = a->size[0] == '6' ? 64 : 128;
    pnb_status status = pnb_synth_emoji(app->ctx, &a->job, a->out, &stats, &app->err);
    if (status == PNB_OK)
        pnb__data_put_stats(a->out, &stats, PNB_SYNTH_N_LEVELS, r);
    return status;
}

static const pnb__command shapes = {
    .name = "shapes",
    .summary = "render scenes of coloured shapes with captions at four levels",
    .about = "One to three shapes of 6 forms, 7 colours and 2 sizes on an off-white ground. "
             "Captions are true statements at four levels of generality, and the exact "
             "many-to-many truth is written beside them. Needs no other package.",
    .examples = "penumbra data shapes --out shapes\n"
                "penumbra data shapes --out foggy --n 2000 --blur 0.3 --occlude 0.3 --seed 1",
    .defaults = shapes_defaults,
    PNB__RUNS(shapes_options, struct shapes_args, run_shapes)};

static const pnb__command emoji = {
    .name = "emoji",
    .summary = "build a set from the colour emoji font and the Unicode names",
    .about = "Glyphs of fonts-noto-color-emoji on white, with captions from unicode-data and "
             "unicode-cldr-core: group, subgroup, keyword, full name. The split is by picture and "
             "stratified by subgroup.",
    .examples = "penumbra data emoji --out emoji",
    .defaults = emoji_defaults,
    PNB__RUNS(emoji_options, struct emoji_args, run_emoji)};

static const pnb__command *const subs[] = {&shapes,
                                           &emoji,
                                           &pnb__cmd_data_clipart,
                                           &pnb__cmd_data_stamps,
                                           &pnb__cmd_data_mixed,
                                           &pnb__cmd_data_chains,
                                           &pnb__cmd_data_ambiguous,
                                           &pnb__cmd_data_corrupt,
                                           NULL};
const pnb__command pnb__cmd_data = {
    .name = "data",
    .summary = "make an image-caption data set without a download",
    .about = "Shapes, emoji, clipart, stamps and mixed write {train,val,test}/NNNNN.tar with "
             "KEY.png and KEY.json, "
             "captions.jsonl and images.jsonl beside them, and truth/SPLIT.pairs with every "
             "picture-caption pair that is true. ambiguous writes embedding sets, corrupt a copy "
             "of any set that is spoiled by a known amount.",
    .subs = subs};
