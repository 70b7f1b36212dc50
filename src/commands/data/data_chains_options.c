/* penumbra data chains: hierarchies of pictures from COCO segmentations.
 *
 * Options and the counts; masks, chains and files are src/data's. */
#include <string.h>

#include "commands/commands.h"
#include "penumbra/chains.h"
#include "program/result.h"

struct chains_args {
    const char *instances, *pictures, *out, *captions, *show;
    int64_t segments, min_pixels, fill, max_pictures, shard_size;
    bool drop_small, crowds;
};

#define AT(field) offsetof(struct chains_args, field)
static const pnb__option options[] = {
    {.name = "instances",
     .kind = PNB__OPT_FILE,
     .at = AT(instances),
     .value = "JSON",
     .required = true,
     .help = "COCO's instances_*.json"},
    {.name = "pictures",
     .kind = PNB__OPT_FILE,
     .at = AT(pictures),
     .value = "DIR",
     .required = true,
     .help = "Folder of the pictures it names"},
    {.name = "out",
     .kind = PNB__OPT_FILE,
     .writes = "/",
     .at = AT(out),
     .value = "DIR",
     .required = true,
     .help = "Folder to write; one that already holds this very set is left alone"},
    {.name = "captions",
     .kind = PNB__OPT_FILE,
     .at = AT(captions),
     .value = "JSON",
     .help = "COCO's captions_*.json: captions of the whole pictures, in place of category names"},
    {.name = "segments",
     .kind = PNB__OPT_INT,
     .at = AT(segments),
     .value = "N",
     .fallback = "3",
     .min = 1,
     .max = PNB_CHAINS_MAX_SEGMENTS,
     .group = "Chains",
     .help = "Segments of a chain, the largest ones; it has one level more"},
    {.name = "min-pixels",
     .kind = PNB__OPT_INT,
     .at = AT(min_pixels),
     .value = "N",
     .fallback = "5000",
     .min = 0,
     .max = 1e9,
     .help = "Pictures with a segment that is not larger are left out"},
    {.name = "drop-small",
     .kind = PNB__OPT_FLAG,
     .at = AT(drop_small),
     .help = "Leave out such segments instead of their pictures"},
    {.name = "crowds",
     .kind = PNB__OPT_FLAG,
     .at = AT(crowds),
     .help = "Count crowd annotations as segments"},
    {.name = "show",
     .kind = PNB__OPT_CHOICE,
     .at = AT(show),
     .value = "HOW",
     .fallback = "mask",
     .choices = "mask|crop",
     .help = "Segments on a blank canvas, or the rectangle around them"},
    {.name = "fill",
     .kind = PNB__OPT_INT,
     .at = AT(fill),
     .value = "VALUE",
     .min = 0,
     .max = 255,
     .help = "Grey value of the canvas; 255, white, by default"},
    {.name = "max-pictures",
     .kind = PNB__OPT_INT,
     .at = AT(max_pictures),
     .value = "N",
     .fallback = "0",
     .min = 0,
     .max = 1e9,
     .help = "Stop after that many chains; 0 is all"},
    {.name = "shard-size",
     .kind = PNB__OPT_INT,
     .at = AT(shard_size),
     .value = "N",
     .fallback = "1000",
     .min = 1,
     .max = 1e7,
     .help = "Samples in one tar file"},
};
#undef AT

static void report_skipped(void *user, const char *picture, const char *why)
{
    pnb__skipped(user, picture, why);
}

static void put_stats(const struct chains_args *a, const pnb_chains_stats *s, pnb__result *r)
{
    pnb__result_text(r, "dir", "folder", a->out);
    pnb__result_flag(r, "reused", "was there already", s->reused);
    pnb__result_int(r, "n_chains", "chains", (int64_t)s->n_chains);
    pnb__result_int(r, "n_levels", "levels", a->segments + 1);
    pnb__result_int(r, "n_pictures", "pictures written", (int64_t)s->n_pictures);
    if (s->reused)
        return;
    pnb__result_int(r, "n_listed", "pictures listed", (int64_t)s->n_listed);
    pnb__result_int(r, "n_few", "left out: too few segments", (int64_t)s->n_few);
    pnb__result_int(r, "n_small", "left out: a small segment", (int64_t)s->n_small);
    pnb__result_int(r, "n_skipped", "left out: unreadable", (int64_t)s->n_skipped);
}

static pnb_status run(pnb__app *app, const void *args)
{
    const struct chains_args *a = args;
    pnb_chains_opts opts = pnb_chains_opts_default();
    pnb_chains_stats stats;
    bool is_crop = strcmp(a->show, "crop") == 0;
    if (is_crop && a->fill != PNB__INT_UNSET)
        return pnb__usage(app, "--show crop has no canvas: --fill does nothing there");
    opts.n_segments = (size_t)a->segments;
    opts.min_pixels = (size_t)a->min_pixels;
    opts.drop_small = a->drop_small;
    opts.crowds = a->crowds;
    opts.show = is_crop ? PNB_CHAINS_CROP : PNB_CHAINS_MASK;
    if (a->fill != PNB__INT_UNSET)
        opts.fill = (int)a->fill;
    opts.max_pictures = (size_t)a->max_pictures;
    opts.shard_size = (size_t)a->shard_size;
    opts.captions = a->captions;
    opts.skipped = report_skipped;
    opts.user = app;
    pnb_status status =
        pnb_chains_build(app->ctx, a->instances, a->pictures, a->out, &opts, &stats, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    put_stats(a, &stats, r);
    status = pnb__result_print(r, app->out, app->common.json, &app->err);
    pnb__result_free(r);
    return status;
}

const pnb__command pnb__cmd_data_chains = {
    .name = "chains",
    .summary = "build hierarchies of pictures from COCO segmentations",
    .about = "Each picture with enough large segments becomes a chain: level 0 shows its largest "
             "segment alone, each level one more, the last level is the picture. Written with the "
             "split `test` and captions of category names at the same levels; `probe --chains` "
             "measures on it. Polygons, uncompressed and compressed RLE are read.",
    .examples = "penumbra data chains --instances annotations/instances_val2014.json --pictures "
                "val2014 --out chains",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct chains_args),
    .run = run};
