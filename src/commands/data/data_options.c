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
    {.name = "out",
     .kind = PNB__OPT_FILE,
     .writes = "/",
     .at = AT(out),
     .value = "DIR",
     .required = true,
     .help = "Folder to write; one that already holds this very set is left alone"},
    {.name = "n",
     .kind = PNB__OPT_INT,
     .at = AT(n),
     .value = "N",
     .fallback = "5000",
     .min = 1,
     .max = 1e8,
     .help = "Scenes over all splits"},
    {.name = "size",
     .kind = PNB__OPT_INT,
     .at = AT(size),
     .value = "PIXELS",
     .fallback = "64",
     .min = 16,
     .max = 4096,
     .help = "Width and height of a picture"},
    {.name = "val-share",
     .kind = PNB__OPT_REAL,
     .at = AT(val_share),
     .value = "SHARE",
     .fallback = "0.1",
     .max = 0.9,
     .help = "Share of the scenes in the validation split"},
    {.name = "test-share",
     .kind = PNB__OPT_REAL,
     .at = AT(test_share),
     .value = "SHARE",
     .fallback = "0.1",
     .max = 0.9,
     .help = "Share of the scenes in the test split"},
    {.name = "shard-size",
     .kind = PNB__OPT_INT,
     .at = AT(shard_size),
     .value = "N",
     .fallback = "1000",
     .min = 1,
     .max = 1e7,
     .help = "Samples in one tar file"},
    {.name = "blur",
     .kind = PNB__OPT_REAL,
     .at = AT(blur),
     .value = "P",
     .fallback = "0",
     .max = 1,
     .group = "Pictures that are ambiguous, with a known truth",
     .help = "Probability that a scene is blurred"},
    {.name = "max-blur",
     .kind = PNB__OPT_REAL,
     .at = AT(max_blur),
     .value = "SHARE",
     .fallback = "0.12",
     .max = 1,
     .help = "Largest blur, as a standard deviation relative to the width"},
    {.name = "occlude",
     .kind = PNB__OPT_REAL,
     .at = AT(occlude),
     .value = "P",
     .fallback = "0",
     .max = 1,
     .help = "Probability that something hides part of a scene"},
    {.name = "grey",
     .kind = PNB__OPT_REAL,
     .at = AT(grey),
     .value = "P",
     .fallback = "0",
     .max = 1,
     .help = "Probability that a scene loses its colours"},
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
    {.name = "out",
     .kind = PNB__OPT_FILE,
     .writes = "/",
     .at = AT(out),
     .value = "DIR",
     .required = true,
     .help = "Folder to write; one that already holds this very set is left alone"},
    {.name = "size",
     .kind = PNB__OPT_CHOICE,
     .at = AT(size),
     .value = "PIXELS",
     .fallback = "64",
     .choices = "64|128",
     .help = "Which of the two sizes written is KEY.png"},
    {.name = "skin-tones",
     .kind = PNB__OPT_FLAG,
     .at = AT(skin_tones),
     .help = "Keep the skin tone variants, which are nearly the same pictures"},
    {.name = "sensitive",
     .kind = PNB__OPT_FLAG,
     .at = AT(sensitive),
     .help = "Keep the emoji and keywords left out by default: insults, and words for faiths and "
             "descents (listed in docs/data.md)"},
    {.name = "shard-size",
     .kind = PNB__OPT_INT,
     .at = AT(shard_size),
     .value = "N",
     .fallback = "1000",
     .min = 1,
     .max = 1e7,
     .help = "Samples in one tar file"},
    {.name = "font",
     .kind = PNB__OPT_FILE,
     .at = AT(font),
     .value = "FILE",
     .group = "Sources (by default where Debian installs them)",
     .help = "NotoColorEmoji.ttf of fonts-noto-color-emoji"},
    {.name = "emoji-test",
     .kind = PNB__OPT_FILE,
     .at = AT(emoji_test),
     .value = "FILE",
     .help = "emoji-test.txt of unicode-data"},
    {.name = "cldr",
     .kind = PNB__OPT_FILE,
     .at = AT(cldr),
     .value = "DIR",
     .help = "The `common` folder of unicode-cldr-core"},
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
