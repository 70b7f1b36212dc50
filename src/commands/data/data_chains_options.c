/* penumbra data chains: hierarchies of pictures from COCO segmentations.
 *
 * Options and the counts; masks, chains and files are src/data's. */
#include <string.h>

#include "commands/commands.h"
#include "commands/data/data_stats.h"
#include "penumbra/image_hierarchy.h"
#include "program/result_end.h"

struct chains_args {
    const char *instances, *images, *out;
    pnb_image_hierarchy_opts job;
};

enum { NO_FILL = -1 }; /* --fill was not given: what it is follows from --show */

#define AT(field) PNB__FIELD(struct chains_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("instances", AT(instances), "JSON", "COCO's instances_*.json", .required = true),
    PNB__ROW_FILE("pictures", AT(images), "DIR", "Folder of the pictures it names",
                  .required = true),
    PNB__MADE_OUT_ROW(AT(out)),
    PNB__ROW_FILE(
        "captions", AT(job.texts), "JSON",
        "COCO's captions_*.json: captions of the whole pictures, in place of category names"),
    PNB__ROW_INT("segments", AT(job.n_segments), "N",
                 "Segments of a chain, the largest ones; it has one level more",
                 PNB__RANGE(1, PNB_IMAGE_HIERARCHY_MAX_SEGMENTS), .fallback = "3",
                 .group = "Chains"),
    PNB__ROW_INT("min-pixels", AT(job.min_pixels), "N",
                 "Pictures with a segment that is not larger are left out", PNB__RANGE(0, 1e9),
                 .fallback = "5000"),
    PNB__ROW_FLAG("drop-small", AT(job.drop_small),
                  "Leave out such segments instead of their pictures"),
    PNB__ROW_FLAG("crowds", AT(job.crowds), "Count crowd annotations as segments"),
    PNB__ROW_CHOICE("show", AT(job.show), "HOW", "mask|crop",
                    "Segments on a blank canvas, or the rectangle around them", .fallback = "mask"),
    PNB__ROW_INT("fill", AT(job.fill), "VALUE", "Grey value of the canvas; 255, white, by default",
                 PNB__RANGE(0, 255)),
    PNB__ROW_INT("max-pictures", AT(job.max_images), "N", "Stop after that many chains; 0 is all",
                 PNB__RANGE(0, 1e9), .fallback = "0"),
    PNB__MADE_SHARD_ROW(AT(job.shard_size)),
};
#undef AT

static void report_skipped(void *user, const char *image, const char *why)
{
    pnb__skipped(user, image, why);
}

static void put_stats(const struct chains_args *a, const pnb_image_hierarchy_stats *s,
                      pnb__result *r)
{
    pnb__result_text(r, "dir", "folder", a->out);
    pnb__result_flag(r, "reused", "was there already", s->reused);
    pnb__result_int(r, "n_chains", "chains", (int64_t)s->n_chains);
    pnb__result_int(r, "n_levels", "levels", (int64_t)a->job.n_segments + 1);
    pnb__result_int(r, "n_images", "pictures written", (int64_t)s->n_images);
    if (s->reused)
        return;
    pnb__result_int(r, "n_listed", "pictures listed", (int64_t)s->n_listed);
    pnb__result_int(r, "n_few", "left out: too few segments", (int64_t)s->n_few);
    pnb__result_int(r, "n_small", "left out: a small segment", (int64_t)s->n_small);
    pnb__result_int(r, "n_skipped", "left out: unreadable", (int64_t)s->n_skipped);
}

static void defaults(void *args)
{
    struct chains_args *a = args;
    *a = (struct chains_args){.job = pnb_image_hierarchy_opts_default()};
    a->job.fill = NO_FILL;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct chains_args *a = args;
    pnb_image_hierarchy_stats stats;
    if (a->job.show == PNB_IMAGE_HIERARCHY_CROP && a->job.fill != NO_FILL)
        return pnb__usage(app, "--show crop has no canvas: --fill does nothing there");
    if (a->job.fill == NO_FILL)
        a->job.fill = pnb_image_hierarchy_opts_default().fill;
    a->job.skipped = report_skipped;
    a->job.user = app;
    pnb_status status = pnb_image_hierarchy_build(app->ctx, a->instances, a->images, a->out,
                                                  &a->job, &stats, &app->err);
    if (status == PNB_OK)
        put_stats(a, &stats, r);
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
    .defaults = defaults,
    PNB__RUNS(options, struct chains_args, run)};
