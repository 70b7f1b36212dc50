/* penumbra data chains: hierarchies of pictures from COCO segmentations.
 *
 * Options and the counts; masks, chains and files are src/data's. */
#include <string.h>

#include "commands/commands.h"
#include "penumbra/image_hierarchy.h"
#include "program/result.h"

struct chains_args {
    const char *instances, *pictures, *out, *captions, *show;
    int64_t segments, min_pixels, fill, max_pictures, shard_size;
    bool drop_small, crowds;
};

#define AT(field) offsetof(struct chains_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("instances", AT(instances), "JSON", "COCO's instances_*.json", .required = true),
    PNB__ROW_FILE("pictures", AT(pictures), "DIR", "Folder of the pictures it names",
                  .required = true),
    PNB__ROW_FILE("out", AT(out), "DIR",
                  "Folder to write; one that already holds this very set is left alone",
                  .required = true, .writes = "/"),
    PNB__ROW_FILE(
        "captions", AT(captions), "JSON",
        "COCO's captions_*.json: captions of the whole pictures, in place of category names"),
    PNB__ROW_INT("segments", AT(segments), "N",
                 "Segments of a chain, the largest ones; it has one level more",
                 PNB__RANGE(1, PNB_IMAGE_HIERARCHY_MAX_SEGMENTS), .fallback = "3",
                 .group = "Chains"),
    PNB__ROW_INT("min-pixels", AT(min_pixels), "N",
                 "Pictures with a segment that is not larger are left out", PNB__RANGE(0, 1e9),
                 .fallback = "5000"),
    PNB__ROW_FLAG("drop-small", AT(drop_small),
                  "Leave out such segments instead of their pictures"),
    PNB__ROW_FLAG("crowds", AT(crowds), "Count crowd annotations as segments"),
    PNB__ROW_CHOICE("show", AT(show), "HOW", "mask|crop",
                    "Segments on a blank canvas, or the rectangle around them", .fallback = "mask"),
    PNB__ROW_INT("fill", AT(fill), "VALUE", "Grey value of the canvas; 255, white, by default",
                 PNB__RANGE(0, 255)),
    PNB__ROW_INT("max-pictures", AT(max_pictures), "N", "Stop after that many chains; 0 is all",
                 PNB__RANGE(0, 1e9), .fallback = "0"),
    PNB__ROW_INT("shard-size", AT(shard_size), "N", "Samples in one tar file", PNB__RANGE(1, 1e7),
                 .fallback = "1000"),
};
#undef AT

static void report_skipped(void *user, const char *picture, const char *why)
{
    pnb__skipped(user, picture, why);
}

static void put_stats(const struct chains_args *a, const pnb_image_hierarchy_stats *s,
                      pnb__result *r)
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
    pnb_image_hierarchy_opts opts = pnb_image_hierarchy_opts_default();
    pnb_image_hierarchy_stats stats;
    bool is_crop = strcmp(a->show, "crop") == 0;
    if (is_crop && a->fill != PNB__INT_UNSET)
        return pnb__usage(app, "--show crop has no canvas: --fill does nothing there");
    opts.n_segments = (size_t)a->segments;
    opts.min_pixels = (size_t)a->min_pixels;
    opts.drop_small = a->drop_small;
    opts.crowds = a->crowds;
    opts.show = is_crop ? PNB_IMAGE_HIERARCHY_CROP : PNB_IMAGE_HIERARCHY_MASK;
    if (a->fill != PNB__INT_UNSET)
        opts.fill = (int)a->fill;
    opts.max_pictures = (size_t)a->max_pictures;
    opts.shard_size = (size_t)a->shard_size;
    opts.captions = a->captions;
    opts.skipped = report_skipped;
    opts.user = app;
    pnb_status status = pnb_image_hierarchy_build(app->ctx, a->instances, a->pictures, a->out,
                                                  &opts, &stats, &app->err);
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
