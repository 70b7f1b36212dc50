/* Builds chains of pictures from COCO segmentations (Chun et al. 2025, appendix B.3).
 *
 * The paper keeps pictures whose smallest segment is larger than 5000 pixels and pastes the largest
 * three onto a blank canvas in descending order of size: level 0 shows one, level 2 all three, the
 * last level the whole picture. Ties in size go to the lower annotation id. It does not say whether
 * crowds count; here they do not, as their mask is many objects. One picture is in memory at a
 * time; folders and shards are synth_write.c's, masks coco_mask.c's, captions
 * image_hierarchy_texts.c's. */
#include "penumbra/image_hierarchy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/sources/coco/coco_instances.h"
#include "data/sources/coco/coco_mask.h"
#include "data/synth/image_hierarchy_texts.h"
#include "data/synth/synth_write.h"
#include "io/json/json.h"
#include "penumbra/image.h"

enum { MAX_LEVELS = PNB_IMAGE_HIERARCHY_MAX_SEGMENTS + 1, KEY = 48 };

typedef struct segment {
    const pnb__coco_annotation *annotation;
    size_t n_pixels;
} segment;

typedef struct builder {
    const pnb_image_hierarchy_opts *opts;
    const char *images;
    pnb__coco_instances coco;
    pnb__synth_out out;
    pnb__synth_split split;
    pnb__out_file truth;
    pnb__chain_texts texts;
    pnb_image_hierarchy_stats stats;
} builder;

/* The picture at work. */
typedef struct chain {
    const pnb__coco_image *annotated;
    segment *segments; /* largest first */
    size_t n_segments;
    unsigned char *mask, *shown; /* [height][width] of one segment; of all shown so far */
    pnb_image image;
    size_t text[MAX_LEVELS]; /* numbers in builder.captions */
} chain;

pnb_image_hierarchy_opts pnb_image_hierarchy_opts_default(void)
{
    return (pnb_image_hierarchy_opts){
        .n_segments = 3, .min_pixels = 5000, .fill = 255, .shard_size = 1000};
}

static pnb_status check_opts(const pnb_image_hierarchy_opts *o, pnb_error *err)
{
    if (o->n_segments < 1 || o->n_segments > PNB_IMAGE_HIERARCHY_MAX_SEGMENTS)
        return pnb__fail(err, PNB_ARG, "chains of %zu segments; 1 to %d are possible",
                         o->n_segments, PNB_IMAGE_HIERARCHY_MAX_SEGMENTS);
    if (o->fill < 0 || o->fill > 255 || o->shard_size < 1)
        return pnb__fail(err, PNB_ARG,
                         "a canvas of %d and %zu samples a shard; 0 to 255 and 1 or more", o->fill,
                         o->shard_size);
    return PNB_OK;
}

/* ---- segments ---- */

static int larger_first(const void *a, const void *b)
{
    const segment *x = a, *y = b;
    if (x->n_pixels != y->n_pixels)
        return x->n_pixels > y->n_pixels ? -1 : 1;
    return (x->annotation->id > y->annotation->id) - (x->annotation->id < y->annotation->id);
}

static size_t chain_pixels(const chain *c)
{
    return (size_t)c->annotated->width * (size_t)c->annotated->height;
}

static pnb_status draw_segment(chain *c, const pnb__coco_annotation *a, pnb_error *err)
{
    pnb_status status =
        pnb__coco_mask(a->segmentation, c->annotated->width, c->annotated->height, c->mask, err);
    if (status != PNB_OK)
        pnb__error_prefix(err, "annotation %lld", (long long)a->id);
    return status;
}

/* All segments that count, largest first, and the size of the smallest that was seen. */
static pnb_status collect_segments(const builder *b, chain *c, size_t *smallest, pnb_error *err)
{
    const pnb__coco_annotation *all = b->coco.annotation + c->annotated->first;
    *smallest = SIZE_MAX;
    for (size_t i = 0; i < c->annotated->n; i++) {
        size_t n_pixels = 0;
        if (all[i].is_crowd && !b->opts->crowds)
            continue;
        pnb_status status = draw_segment(c, &all[i], err);
        if (status != PNB_OK)
            return status;
        for (size_t p = 0; p < chain_pixels(c); p++)
            n_pixels += c->mask[p];
        *smallest = PNB_MIN(*smallest, n_pixels);
        if (n_pixels > b->opts->min_pixels || !b->opts->drop_small)
            c->segments[c->n_segments++] = (segment){&all[i], n_pixels};
    }
    if (c->n_segments > 1)
        qsort(c->segments, c->n_segments, sizeof *c->segments, larger_first);
    return PNB_OK;
}

/* ---- pictures ---- */

static pnb_status load_image(const builder *b, chain *c, pnb_error *err)
{
    char *path = pnb__path_join(b->images, c->annotated->file_name);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(b->images));
    pnb_status status = pnb_image_load(&c->image, path, NULL, err);
    if (status == PNB_OK &&
        (c->image.width != c->annotated->width || c->image.height != c->annotated->height))
        status =
            pnb__fail(err, PNB_SHAPE, "the picture is %dx%d, its annotations are of %dx%d",
                      c->image.width, c->image.height, c->annotated->width, c->annotated->height);
    pnb__free(path);
    return status;
}

/* The pixels of `shown` on the canvas. */
static pnb_status paste(const chain *c, int fill, pnb_image *out, pnb_error *err)
{
    pnb_status status = pnb_image_create(out, c->image.width, c->image.height, 3, err);
    if (status != PNB_OK)
        return status;
    memset(out->pixels, fill, 3 * chain_pixels(c));
    for (size_t p = 0; p < chain_pixels(c); p++)
        if (c->shown[p])
            memcpy(out->pixels + 3 * p, c->image.pixels + 3 * p, 3);
    return PNB_OK;
}

/* The rectangle around the pixels of `shown`. */
static pnb_status cut_out(const chain *c, pnb_image *out, pnb_error *err)
{
    int box[4] = {c->image.width, c->image.height, 0, 0};
    for (int y = 0; y < c->image.height; y++)
        for (int x = 0; x < c->image.width; x++)
            if (c->shown[(size_t)y * (size_t)c->image.width + (size_t)x]) {
                box[0] = PNB_MIN(box[0], x);
                box[1] = PNB_MIN(box[1], y);
                box[2] = PNB_MAX(box[2], x + 1);
                box[3] = PNB_MAX(box[3], y + 1);
            }
    return pnb_image_crop(out, &c->image, box[0], box[1], box[2] - box[0], box[3] - box[1], 0, err);
}

/* Picture of a level as PNG; levels come in order, each adds its segment to `shown`. */
static pnb_status draw_level(const builder *b, chain *c, size_t level, unsigned char **png,
                             size_t *n_png, pnb_error *err)
{
    pnb_image drawn = {0};
    pnb_status status;
    if (level == b->opts->n_segments)
        return pnb_image_encode_png(&c->image, png, n_png, err);
    PNB_TRY(draw_segment(c, c->segments[level].annotation, err));
    for (size_t p = 0; p < chain_pixels(c); p++)
        c->shown[p] |= c->mask[p];
    PNB_TRY(b->opts->show == PNB_IMAGE_HIERARCHY_CROP ? cut_out(c, &drawn, err)
                                                      : paste(c, b->opts->fill, &drawn, err));
    status = pnb_image_encode_png(&drawn, png, n_png, err);
done:
    pnb_image_free(&drawn);
    return status;
}

/* ---- captions and records ---- */

/* Level l names the segments it shows; the last one has the file's caption or names them all. */
static pnb_status name_levels(builder *b, chain *c, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const char **names = pnb__alloc_array(c->n_segments, sizeof *names);
    if (names == NULL)
        return pnb__fail_nomem(err, c->n_segments * sizeof *names);
    for (size_t i = 0; i < c->n_segments; i++)
        names[i] = c->segments[i].annotation->category;
    for (size_t level = 0; level <= b->opts->n_segments && status == PNB_OK; level++) {
        bool is_last = level == b->opts->n_segments;
        pnb__buf text = {0};
        if (is_last && c->annotated->text != NULL)
            pnb__buf_puts(&text, c->annotated->text);
        else
            pnb__join_names(&text, names, is_last ? c->n_segments : level + 1);
        status = text.failed
                     ? pnb__fail_nomem(err, 256)
                     : pnb__chain_texts_add(&b->texts, text.data, (int)level, &c->text[level], err);
        pnb__buf_reset(&text);
    }
    pnb__free(names);
    return status;
}

static void append_texts(const builder *b, const chain *c, size_t level, pnb__buf *json)
{
    pnb__buf_puts(json, ", \"captions\": [");
    for (size_t l = 0; l <= level; l++) {
        pnb__buf_puts(json, l > 0 ? ", " : "");
        pnb__json_append_string(json, b->texts.items[c->text[l]].text);
    }
    pnb__buf_puts(json, "], \"levels\": [");
    for (size_t l = 0; l <= level; l++)
        pnb__buf_printf(json, "%s%zu", l > 0 ? ", " : "", l);
    pnb__buf_puts(json, "], \"caption_ids\": [");
    for (size_t l = 0; l <= level; l++)
        pnb__buf_printf(json, "%s\"%s\"", l > 0 ? ", " : "", b->texts.items[c->text[l]].id);
    pnb__buf_puts(json, "]");
}

static pnb_status add_level(builder *b, chain *c, size_t level, pnb_error *err)
{
    char key[KEY], subgroup[KEY];
    const char *group = c->segments[0].annotation->category;
    pnb__buf json = {0};
    unsigned char *png = NULL;
    size_t n_png = 0;
    pnb_status status;
    snprintf(key, sizeof key, "%012lld_%zu", (long long)c->annotated->id, level);
    snprintf(subgroup, sizeof subgroup, "level %zu", level);
    PNB_TRY(draw_level(b, c, level, &png, &n_png, err));
    pnb__json_put(&json, "{\"caption\": %s", b->texts.items[c->text[level]].text);
    append_texts(b, c, level, &json);
    pnb__json_put(
        &json,
        ", \"name\": %s, \"group\": %s, \"subgroup\": %s, \"level\": %zu, \"image_id\": %lld}",
        c->annotated->file_name, group, subgroup, level, (long long)c->annotated->id);
    PNB_TRY(pnb__buf_check(&json, err));
    const pnb__synth_item item = {.key = key,
                                  .name = c->annotated->file_name,
                                  .group = group,
                                  .subgroup = subgroup,
                                  .json = json.data,
                                  .png = png,
                                  .n_png = n_png};
    PNB_TRY(pnb__split_add(&b->split, &item, err));
    for (size_t l = 0; l <= level; l++) {
        pnb__chain_text *own = &b->texts.items[c->text[l]];
        own->n_true++;
        fprintf(b->truth.file, "%s\t%s\n", key, own->id);
    }
done:
    pnb__buf_reset(&json);
    pnb_image_bytes_free(png);
    return status;
}

/* ---- one picture ---- */

static void reset_chain(chain *c)
{
    pnb_image_free(&c->image);
    pnb__free(c->segments);
    pnb__free(c->mask);
    pnb__free(c->shown);
}

/* Everything that can be wrong with a picture, before anything of it is written. *wanted is false
 * when it was left out as asked. */
static pnb_status prepare(builder *b, chain *c, bool *wanted, pnb_error *err)
{
    size_t smallest = 0;
    pnb_status status;
    *wanted = false;
    PNB_TRY(PNB_ALLOC(c->segments, c->annotated->n + 1, err));
    PNB_TRY(PNB_ALLOC_ZERO(c->mask, chain_pixels(c), err));
    PNB_TRY(PNB_ALLOC_ZERO(c->shown, chain_pixels(c), err));
    PNB_TRY(collect_segments(b, c, &smallest, err));
    if (smallest <= b->opts->min_pixels && !b->opts->drop_small) {
        b->stats.n_small++;
        return PNB_OK;
    }
    if (c->n_segments < b->opts->n_segments) {
        b->stats.n_few++;
        return PNB_OK;
    }
    *wanted = true;
    status = load_image(b, c, err);
done:
    return status;
}

static pnb_status add_image(builder *b, const pnb__coco_image *image, pnb_error *err)
{
    chain c = {.annotated = image};
    pnb_error why = PNB_ERROR_INIT;
    bool wanted = false;
    pnb_status status = prepare(b, &c, &wanted, &why);
    if (status != PNB_OK && status != PNB_NOMEM) { /* this picture's fault: the set goes on */
        b->stats.n_skipped++;
        if (b->opts->skipped != NULL)
            b->opts->skipped(b->opts->user, image->file_name, why.text);
        reset_chain(&c);
        return PNB_OK;
    }
    if (status != PNB_OK)
        PNB_TRY(pnb__fail(err, status, "%s", why.text));
    if (wanted) {
        PNB_TRY(name_levels(b, &c, err));
        for (size_t level = 0; level <= b->opts->n_segments; level++)
            PNB_TRY(add_level(b, &c, level, err));
        b->stats.n_chains++;
    }
done:
    reset_chain(&c);
    return status;
}

/* ---- the set ---- */

static pnb_status hash_file(const char *path, char hex[65], pnb_error *err)
{
    pnb__map map;
    pnb__sha256 hash;
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, map.data, map.size);
    pnb__sha256_hex(&hash, hex);
    pnb__map_close(&map);
    return PNB_OK;
}

/* What identifies the set. */
static pnb_status describe(const pnb_image_hierarchy_opts *o, const char *instances,
                           const char *images, pnb__buf *out, pnb_error *err)
{
    char hex[65], texts[65] = "";
    pnb_status status;
    PNB_TRY(hash_file(instances, hex, err));
    if (o->texts != NULL)
        PNB_TRY(hash_file(o->texts, texts, err));
    pnb__json_put(out,
                  "{\"kind\": \"chains\", \"instances_sha256\": %s, \"captions_sha256\": %s, "
                  "\"pictures\": %s, \"n_segments\": %zu, \"min_pixels\": %zu, \"drop_small\": %i, "
                  "\"crowds\": %i, \"show\": %s, \"fill\": %d, \"max_pictures\": %zu, "
                  "\"shard_size\": %zu}",
                  hex, texts, images, o->n_segments, o->min_pixels, o->drop_small, o->crowds,
                  o->show == PNB_IMAGE_HIERARCHY_CROP ? "crop" : "mask", o->fill, o->max_images,
                  o->shard_size);
    status = pnb__buf_check(out, err);
done:
    return status;
}

static pnb_status write_texts(builder *b, pnb_synth_stats *stats, pnb_error *err)
{
    size_t n = b->texts.n;
    pnb__synth_text *list = NULL;
    const char **texts = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(list, n + 1, err));
    PNB_TRY(PNB_ALLOC(texts, n + 1, err));
    for (size_t i = 0; i < n; i++) {
        const pnb__chain_text *own = &b->texts.items[i];
        list[i] = (pnb__synth_text){own->id, own->text, own->level, (double)NAN, (double)NAN, NULL};
        texts[i] = own->text;
        stats->n_texts[own->level]++;
        stats->images_per_text[own->level] += (double)own->n_true;
    }
    for (int level = 0; level < PNB_SYNTH_N_LEVELS; level++) {
        double n_true = stats->images_per_text[level];
        stats->texts_per_image[level] = n_true / (double)b->split.n_items;
        if (stats->n_texts[level] > 0)
            stats->images_per_text[level] = n_true / (double)stats->n_texts[level];
    }
    stats->n_words = pnb__count_words(texts, n);
    if (stats->n_words == SIZE_MAX)
        PNB_TRY(pnb__fail_nomem(err, n * sizeof *texts));
    status = pnb__split_texts(&b->split, list, n, err);
done:
    pnb__free(list);
    pnb__free(texts);
    return status;
}

static pnb_status make_set(builder *b, const char *instances, pnb_synth_stats *stats,
                           pnb_error *err)
{
    pnb_status status;
    PNB_TRY(pnb__coco_instances_load(&b->coco, instances, b->opts->texts, err));
    PNB_TRY(pnb__split_open(&b->split, &b->out, "test", b->opts->shard_size, err));
    PNB_TRY(pnb__truth_open(&b->truth, &b->out, "test", err));
    b->stats.n_listed = b->coco.n_images;
    for (size_t i = 0; i < b->coco.n_images; i++) {
        if (b->opts->max_images != 0 && b->stats.n_chains == b->opts->max_images)
            break;
        PNB_TRY(add_image(b, &b->coco.image[i], err));
    }
    if (b->stats.n_chains == 0)
        PNB_TRY(pnb__fail(err, PNB_ARG,
                          "not one of %zu pictures makes a chain of %zu segments: %zu have fewer, "
                          "%zu a segment of %zu pixels or less, %zu could not be read",
                          b->stats.n_listed, b->opts->n_segments, b->stats.n_few, b->stats.n_small,
                          b->opts->min_pixels, b->stats.n_skipped));
    PNB_TRY(write_texts(b, stats, err));
    PNB_TRY(pnb__split_close(&b->split, err));
    status = pnb__out_commit(&b->truth, err);
    stats->n_test = b->split.n_items;
done:
    return status;
}

static void reset_builder(builder *b)
{
    pnb__out_abort(&b->truth);
    pnb__split_abort(&b->split);
    pnb__synth_abort(&b->out);
    pnb__coco_instances_free(&b->coco);
    pnb__chain_texts_reset(&b->texts);
}

pnb_status pnb_image_hierarchy_build(const pnb_ctx *ctx, const char *instances, const char *images,
                                     const char *dir, const pnb_image_hierarchy_opts *opts,
                                     pnb_image_hierarchy_stats *stats, pnb_error *err)
{
    pnb_image_hierarchy_opts o = opts == NULL ? pnb_image_hierarchy_opts_default() : *opts;
    builder b = {.opts = &o, .images = images};
    pnb_synth_stats counts = {0};
    pnb__buf options = {0};
    pnb_status status;
    (void)ctx;
    PNB_TRY(check_opts(&o, err));
    if (!pnb__path_is_dir(images))
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "%s: no such folder of pictures", images));
    PNB_TRY(describe(&o, instances, images, &options, err));
    PNB_TRY(pnb__synth_begin(&b.out, dir, options.data, &counts, err));
    if (!counts.reused) {
        PNB_TRY(make_set(&b, instances, &counts, err));
        PNB_TRY(pnb__synth_commit(&b.out, &counts, err));
    }
    b.stats.reused = counts.reused;
    b.stats.n_images = counts.n_test;
    b.stats.n_chains = counts.n_test / (o.n_segments + 1);
    if (stats != NULL)
        *stats = b.stats;
done:
    reset_builder(&b);
    pnb__buf_reset(&options);
    return status;
}
