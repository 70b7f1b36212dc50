/* penumbra data shapes | emoji: image-caption sets made on this machine.
 *
 * Options and the table of what was made; drawing, captions and files are src/data's. */
#include "commands/commands.h"
#include "penumbra/synth.h"
#include "program/result.h"

/* ---- shapes ---- */

struct shapes_args {
    const char *out;
    int64_t n, size, shard_size;
    double val_share, test_share, blur, occlude, grey, max_blur;
};

#define AT(field) offsetof(struct shapes_args, field)
static const pnb__option shapes_options[] = {
    PNB__ROW_FILE("out", AT(out), "DIR",
                  "Folder to write; one that already holds this very set is left alone",
                  .required = true, .writes = "/"),
    PNB__ROW_INT("n", AT(n), "N", "Scenes over all splits", PNB__RANGE(1, 1e8), .fallback = "5000"),
    PNB__ROW_INT("size", AT(size), "PIXELS", "Width and height of a picture", PNB__RANGE(16, 4096),
                 .fallback = "64"),
    PNB__ROW_REAL("val-share", AT(val_share), "SHARE",
                  "Share of the scenes in the validation split", PNB__RANGE(0, 0.9),
                  .fallback = "0.1"),
    PNB__ROW_REAL("test-share", AT(test_share), "SHARE", "Share of the scenes in the test split",
                  PNB__RANGE(0, 0.9), .fallback = "0.1"),
    PNB__ROW_INT("shard-size", AT(shard_size), "N", "Samples in one tar file", PNB__RANGE(1, 1e7),
                 .fallback = "1000"),
    PNB__ROW_REAL("blur", AT(blur), "P", "Probability that a scene is blurred", PNB__RANGE(0, 1),
                  .fallback = "0", .group = "Pictures that are ambiguous, with a known truth"),
    PNB__ROW_REAL("max-blur", AT(max_blur), "SHARE",
                  "Largest blur, as a standard deviation relative to the width", PNB__RANGE(0, 1),
                  .fallback = "0.12"),
    PNB__ROW_REAL("occlude", AT(occlude), "P", "Probability that something hides part of a scene",
                  PNB__RANGE(0, 1), .fallback = "0"),
    PNB__ROW_REAL("grey", AT(grey), "P", "Probability that a scene loses its colours",
                  PNB__RANGE(0, 1), .fallback = "0"),
};
#undef AT

static pnb_status print_stats(pnb__app *app, const char *dir, const pnb_synth_stats *stats)
{
    static const pnb__column columns[] = {{"level", "level"},
                                          {"captions", "captions"},
                                          {"captions_per_image", "a picture"},
                                          {"images_per_caption", "pictures a caption fits"}};
    pnb__result *r = pnb__result_create();
    pnb__result_text(r, "dir", "folder", dir);
    pnb__result_flag(r, "reused", "was there already", stats->reused);
    pnb__result_int(r, "n_train", "train pictures", (int64_t)stats->n_train);
    pnb__result_int(r, "n_val", "val pictures", (int64_t)stats->n_val);
    pnb__result_int(r, "n_test", "test pictures", (int64_t)stats->n_test);
    pnb__result_int(r, "n_words", "distinct words", (int64_t)stats->n_words);
    pnb__result_int(r, "n_ambiguous", stats->n_ambiguous > 0 ? "ambiguous pictures" : NULL,
                    (int64_t)stats->n_ambiguous);
    pnb__result_table(r, "levels", "captions by level (0 most general)", columns, 4);
    for (int level = 0; level < PNB_SYNTH_N_LEVELS; level++) {
        pnb__result_cell_int(r, level);
        pnb__result_cell_int(r, (int64_t)stats->n_captions[level]);
        pnb__result_cell_real(r, stats->captions_per_image[level], 2);
        pnb__result_cell_real(r, stats->images_per_caption[level], 1);
    }
    return pnb__result_finish(r, app, PNB_OK);
}

static pnb_status run_shapes(pnb__app *app, const void *args)
{
    const struct shapes_args *a = args;
    pnb_shapes_opts opts = pnb_shapes_opts_default();
    pnb_synth_stats stats = {0};
    if (a->val_share + a->test_share >= 1.0)
        return pnb__usage(app, "--val-share and --test-share leave nothing to train on");
    opts.n_scenes = (size_t)a->n;
    opts.width = opts.height = (int)a->size;
    opts.seed = (uint64_t)app->common.seed;
    opts.val_share = a->val_share;
    opts.test_share = a->test_share;
    opts.shard_size = (size_t)a->shard_size;
    opts.blur_p = a->blur;
    opts.max_blur = a->max_blur;
    opts.occlude_p = a->occlude;
    opts.grey_p = a->grey;
    pnb_status status = pnb_synth_shapes(app->ctx, &opts, a->out, &stats, &app->err);
    return status == PNB_OK ? print_stats(app, a->out, &stats) : status;
}

/* ---- emoji ---- */

struct emoji_args {
    const char *out, *font, *emoji_test, *cldr;
    const char *size;
    int64_t shard_size;
    bool skin_tones, sensitive;
};

#define AT(field) offsetof(struct emoji_args, field)
static const pnb__option emoji_options[] = {
    PNB__ROW_FILE("out", AT(out), "DIR",
                  "Folder to write; one that already holds this very set is left alone",
                  .required = true, .writes = "/"),
    PNB__ROW_CHOICE("size", AT(size), "PIXELS", "64|128",
                    "Which of the two sizes written is KEY.png", .fallback = "64"),
    PNB__ROW_FLAG("skin-tones", AT(skin_tones),
                  "Keep the skin tone variants, which are nearly the same pictures"),
    PNB__ROW_FLAG(
        "sensitive", AT(sensitive),
        "Keep the emoji and keywords left out by default: insults, and words for faiths and "
        "descents (listed in docs/data.md)"),
    PNB__ROW_INT("shard-size", AT(shard_size), "N", "Samples in one tar file", PNB__RANGE(1, 1e7),
                 .fallback = "1000"),
    PNB__ROW_FILE("font", AT(font), "FILE", "NotoColorEmoji.ttf of fonts-noto-color-emoji",
                  .group = "Sources (by default where Debian installs them)"),
    PNB__ROW_FILE("emoji-test", AT(emoji_test), "FILE", "emoji-test.txt of unicode-data"),
    PNB__ROW_FILE("cldr", AT(cldr), "DIR", "The `common` folder of unicode-cldr-core"),
};
#undef AT

static pnb_status run_emoji(pnb__app *app, const void *args)
{
    const struct emoji_args *a = args;
    pnb_emoji_opts opts = pnb_emoji_opts_default();
    pnb_synth_stats stats = {0};
    opts.seed = (uint64_t)app->common.seed;
    opts.size = a->size[0] == '6' ? 64 : 128;
    opts.skin_tones = a->skin_tones;
    opts.sensitive = a->sensitive;
    opts.shard_size = (size_t)a->shard_size;
    opts.font = a->font;
    opts.emoji_test = a->emoji_test;
    opts.cldr_common = a->cldr;
    pnb_status status = pnb_synth_emoji(app->ctx, &opts, a->out, &stats, &app->err);
    return status == PNB_OK ? print_stats(app, a->out, &stats) : status;
}

static const pnb__command shapes = {
    .name = "shapes",
    .summary = "render scenes of coloured shapes with captions at four levels",
    .about = "One to three shapes of 6 forms, 7 colours and 2 sizes on an off-white ground. "
             "Captions are true statements at four levels of generality, and the exact "
             "many-to-many truth is written beside them. Needs no other package.",
    .examples = "penumbra data shapes --out shapes\n"
                "penumbra data shapes --out foggy --n 2000 --blur 0.3 --occlude 0.3 --seed 1",
    .options = shapes_options,
    .n_options = sizeof shapes_options / sizeof *shapes_options,
    .args_bytes = sizeof(struct shapes_args),
    .run = run_shapes};

static const pnb__command emoji = {
    .name = "emoji",
    .summary = "build a set from the colour emoji font and the Unicode names",
    .about = "Glyphs of fonts-noto-color-emoji on white, with captions from unicode-data and "
             "unicode-cldr-core: group, subgroup, keyword, full name. The split is by picture and "
             "stratified by subgroup.",
    .examples = "penumbra data emoji --out emoji",
    .options = emoji_options,
    .n_options = sizeof emoji_options / sizeof *emoji_options,
    .args_bytes = sizeof(struct emoji_args),
    .run = run_emoji};

static const pnb__command *const subs[] = {&shapes, &emoji, &pnb__cmd_data_chains, NULL};
const pnb__command pnb__cmd_data = {
    .name = "data",
    .summary = "make an image-caption data set without a download",
    .about = "Writes {train,val,test}/NNNNN.tar with KEY.png and KEY.json, "
             "captions.jsonl and images.jsonl beside them, and truth/SPLIT.pairs with every "
             "picture-caption pair that is true.",
    .subs = subs};
