/* penumbra data clipart, stamps and mixed: sets of real pictures from Debian packages.
 *
 * Options and counts; reading, drawing and dealing are src/data/collections. */
#include <string.h>

#include "commands/commands.h"
#include "commands/data/data_stats.h"
#include "penumbra/collections.h"
#include "program/result_end.h"

struct collection_args {
    const char *out, *held_out;
    bool hold_none;
    pnb_collection_opts job;
};

#define AT(field) PNB__FIELD(struct collection_args, field)
#define SIZE_ROW                                                                                   \
    PNB__ROW_INT("size", AT(job.size), "PIXELS", "Width and height of a picture",                  \
                 PNB__RANGE(16, 512), .fallback = "64")
#define SPLIT_ROWS                                                                                 \
    PNB__ROW_REAL("val-share", AT(job.val_share), "SHARE",                                         \
                  "Share of the pictures in the validation split", PNB__RANGE(0, 0.9),             \
                  .fallback = "0.1"),                                                              \
        PNB__ROW_REAL("test-share", AT(job.test_share), "SHARE",                                   \
                      "Share of the pictures in the test split", PNB__RANGE(0, 0.9),               \
                      .fallback = "0.15")
#define NEAR_ROW                                                                                   \
    PNB__ROW_REAL(                                                                                 \
        "near", AT(job.near), "X",                                                                 \
        "Pictures whose thumbnails correlate at least so much are near-duplicates, kept "          \
        "on one side of the split",                                                                \
        PNB__RANGE(0.5, 1), .fallback = "0.97")
#define SENSITIVE_ROW                                                                              \
    PNB__ROW_FLAG("sensitive", AT(job.sensitive),                                                  \
                  "Keep what is left out by default (listed in docs/data.md)")
#define CLIPART_ROWS                                                                               \
    PNB__ROW_FLAG("icon-themes", AT(job.icon_themes),                                              \
                  "Keep the four themes of computer icons, whose titles name the theme"),          \
        PNB__ROW_FLAG("stars", AT(job.stars), "Keep the 1,378 stars that one program drew")
#define CLIPART_SOURCE                                                                             \
    PNB__ROW_FILE("clipart", AT(job.clipart), "DIR",                                               \
                  "Folder that holds svg and png of Open Clip Art",                                \
                  .group = "Sources (by default where Debian installs them)")
#define STAMPS_SOURCE(...)                                                                         \
    PNB__ROW_FILE("stamps", AT(job.stamps), "DIR", "Folder of the stamps of Tux Paint", __VA_ARGS__)

static const pnb__option clipart_options[] = {
    PNB__MADE_OUT_ROW(AT(out)),
    SIZE_ROW,
    SPLIT_ROWS,
    NEAR_ROW,
    PNB__MADE_SHARD_ROW(AT(job.shard_size)),
    CLIPART_ROWS,
    PNB__ROW_FLAG("noisy", AT(job.noisy),
                  "Titles and keywords as they came; those that do not describe are marked"),
    SENSITIVE_ROW,
    CLIPART_SOURCE,
};

static const pnb__option stamps_options[] = {
    PNB__MADE_OUT_ROW(AT(out)),
    SIZE_ROW,
    SPLIT_ROWS,
    NEAR_ROW,
    PNB__MADE_SHARD_ROW(AT(job.shard_size)),
    PNB__ROW_TEXT("language", AT(job.language), "CODE",
                  "Of the sentences: en, de, fr, pt_BR ...; other than en there are no levels",
                  .fallback = "en"),
    SENSITIVE_ROW,
    STAMPS_SOURCE(.group = "Sources (by default where Debian installs them)"),
};

static const pnb__option mixed_options[] = {
    PNB__MADE_OUT_ROW(AT(out)),
    SIZE_ROW,
    SPLIT_ROWS,
    PNB__ROW_TEXT("hold-out", AT(held_out), "STYLES",
                  "Styles that only the test split has, joined by commas: photo, drawing, clipart, "
                  "emoji; or none",
                  .fallback = "photo"),
    NEAR_ROW,
    PNB__MADE_SHARD_ROW(AT(job.shard_size)),
    CLIPART_ROWS,
    SENSITIVE_ROW,
    CLIPART_SOURCE,
    STAMPS_SOURCE(.required = false),
    PNB__ROW_FILE("font", AT(job.emoji.font), "FILE", "NotoColorEmoji.ttf"),
    PNB__ROW_FILE("emoji-test", AT(job.emoji.emoji_test), "FILE", "emoji-test.txt of unicode-data"),
    PNB__ROW_FILE("cldr", AT(job.emoji.cldr_common), "DIR",
                  "The `common` folder of unicode-cldr-core"),
};
#undef AT

static void defaults(void *args)
{
    *(struct collection_args *)args =
        (struct collection_args){.job = pnb_collection_opts_default()};
}

static void report_skipped(void *user, const char *file, const char *why)
{
    pnb__skipped(user, file, why);
}

static void put_titles(const pnb_collection_stats *s, pnb__result *r)
{
    static const pnb__column columns[] = {{"kind", "what a title is"}, {"n", "pictures"}};
    static const char *const kinds[] = {"describes",        "missing",   "names a collection",
                                        "names the author", "is a code", "another language"};
    pnb__result_int(r, "n_from_file", "titles from file names", (int64_t)s->n_from_file);
    pnb__result_table(r, "titles", "titles as they came", columns, 2);
    for (size_t k = 0; k < PNB_COUNT(kinds); k++)
        pnb__result_row(r, "%s %zu", kinds[k], s->n_titles[k]);
}

static pnb_status run(pnb__app *app, struct collection_args *a, pnb_collection_kind kind,
                      pnb__result *r)
{
    pnb_collection_stats stats = {0};
    if (pnb__data_check_shares(app, a->job.val_share, a->job.test_share) != PNB_OK)
        return app->err.status;
    a->job.seed = (uint64_t)app->common.seed;
    a->job.skipped = report_skipped;
    a->job.user = app;
    pnb_status status = pnb_collection_build(app->ctx, kind, &a->job, a->out, &stats, &app->err);
    app->usage = status == PNB_ARG; /* of options, before anything is read */
    if (status != PNB_OK)
        return status;
    pnb__data_put_stats(a->out, &stats.set, PNB_SYNTH_N_LEVELS, r);
    if (stats.set.reused)
        return PNB_OK;
    pnb__result_int(r, "n_found", "pictures found", (int64_t)stats.n_found);
    pnb__result_int(r, "n_links", "further names of them", (int64_t)stats.n_links);
    pnb__result_int(r, "n_broken_links", "links that lead nowhere", (int64_t)stats.n_broken_links);
    pnb__result_int(r, "n_optional", "left out: icon themes, stars", (int64_t)stats.n_optional);
    pnb__result_int(r, "n_sensitive", "left out: sensitive", (int64_t)stats.n_sensitive);
    pnb__result_int(r, "n_wordless", "left out: no caption", (int64_t)stats.n_wordless);
    pnb__result_int(r, "n_blank", "left out: white all over", (int64_t)stats.n_blank);
    pnb__result_int(r, "n_skipped", "left out: unreadable", (int64_t)stats.n_skipped);
    pnb__result_int(r, "n_equal", "equal to another", (int64_t)stats.n_equal);
    pnb__result_int(r, "n_near", "near another", (int64_t)stats.n_near);
    if (kind != PNB_COLLECTION_STAMPS)
        put_titles(&stats, r);
    return PNB_OK;
}

static pnb_status run_clipart(pnb__app *app, void *args, pnb__result *r)
{
    return run(app, args, PNB_COLLECTION_CLIPART, r);
}

static pnb_status run_stamps(pnb__app *app, void *args, pnb__result *r)
{
    return run(app, args, PNB_COLLECTION_STAMPS, r);
}

static pnb_status run_mixed(pnb__app *app, void *args, pnb__result *r)
{
    struct collection_args *a = args;
    a->job.held_out = strcmp(a->held_out, "none") != 0 ? a->held_out : NULL;
    return run(app, a, PNB_COLLECTION_MIXED, r);
}

const pnb__command pnb__cmd_data_clipart = {
    .name = "clipart",
    .summary = "build a set from Open Clip Art, thousands of drawings by hundreds of authors",
    .about = "Drawings of openclipart-svg and openclipart-png (public domain; tools/install-deps "
             "--data clipart installs them), cut to what is drawn and put on white. Captions: "
             "category, sub-categories, keywords, and the title, cleaned of authors, codes, dates "
             "and names of collections. --noisy writes titles and keywords as they came and says "
             "which of them do not describe: label noise that is known.",
    .examples = "penumbra data clipart --out clipart\n"
                "penumbra data clipart --out noisy --noisy",
    .defaults = defaults,
    PNB__RUNS(clipart_options, struct collection_args, run_clipart)};

const pnb__command pnb__cmd_data_stamps = {
    .name = "stamps",
    .summary = "build a set from the stamps of Tux Paint, photos and drawings with a sentence each",
    .about = "Pictures of tuxpaint-stamps-default (GPL-2; tools/install-deps --data stamps "
             "installs it) with folders as levels 0 to 2 and an English sentence as level 3. The "
             "records hold the translations; --language writes one of them instead.",
    .examples = "penumbra data stamps --out stamps\n"
                "penumbra data stamps --out briefmarken --language de",
    .defaults = defaults,
    PNB__RUNS(stamps_options, struct collection_args, run_stamps)};

const pnb__command pnb__cmd_data_mixed = {
    .name = "mixed",
    .summary = "build a set from emoji, clip art and stamps, split by what they show",
    .about =
        "Records and images.jsonl have `style` (clipart, drawing, photo, emoji) and `concept`, "
        "the word that says what a picture is of. All pictures of a concept are in one "
        "split, and one style is in test alone: new_style and new_concept say what of a test "
        "picture the training split has not.",
    .examples = "penumbra data mixed --out mixed\n"
                "penumbra data mixed --out mixed --hold-out emoji",
    .defaults = defaults,
    PNB__RUNS(mixed_options, struct collection_args, run_mixed)};
