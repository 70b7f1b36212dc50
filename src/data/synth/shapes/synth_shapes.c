/* Makes the `shapes` data set: draws the scenes, collects their captions, and writes shards, lists
 * and truth, which shapes_truth.c finds. The first scenes are the training split, then validation,
 * then test: scenes are independent draws, so no shuffling is needed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "data/synth/shapes/shapes_set.h"
#include "data/synth/synth_write.h"
#include "io/json/json.h"

static const char *const SPLIT_NAMES[PNB__N_SPLITS] = {"train", "val", "test"};

pnb_shapes_opts pnb_shapes_opts_default(void)
{
    return (pnb_shapes_opts){.n_scenes = 5000,
                             .width = 64,
                             .height = 64,
                             .val_share = 0.1,
                             .test_share = 0.1,
                             .shard_size = 1000,
                             .max_blur = 0.12};
}

static pnb_status check_opts(const pnb_shapes_opts *o, pnb_error *err)
{
    if (o->n_scenes < 1 || o->n_scenes > 10000000)
        return pnb__fail(err, PNB_ARG, "shapes: %zu scenes, wanted 1 to 10000000", o->n_scenes);
    if (o->width < 16 || o->height < 16 || o->width > 4096 || o->height > 4096)
        return pnb__fail(err, PNB_ARG, "shapes: pictures of %d x %d, wanted 16 to 4096 a side",
                         o->width, o->height);
    if (PNB_MAX(o->width, o->height) > 2 * PNB_MIN(o->width, o->height))
        return pnb__fail(err, PNB_ARG, "shapes: one side may be at most twice the other");
    if (!(o->val_share >= 0 && o->test_share >= 0 && o->val_share + o->test_share <= 1))
        return pnb__fail(err, PNB_ARG, "shapes: val and test shares must be >= 0 with sum <= 1");
    if (o->shard_size < 1)
        return pnb__fail(err, PNB_ARG, "shapes: shard size 0, wanted at least 1");
    const double p[] = {o->blur_p, o->occlude_p, o->grey_p, o->wordy};
    for (size_t i = 0; i < PNB_COUNT(p); i++)
        if (!(p[i] >= 0 && p[i] <= 1))
            return pnb__fail(err, PNB_ARG,
                             "shapes: a probability of blur, occlusion, grey or more words is %g, "
                             "wanted 0..1",
                             p[i]);
    if (!(o->max_blur > 0 && o->max_blur <= 1))
        return pnb__fail(err, PNB_ARG, "shapes: largest blur %g, wanted above 0 and at most 1",
                         o->max_blur);
    return PNB_OK;
}

static bool has_ambiguity(const pnb_shapes_opts *o)
{
    return o->blur_p > 0 || o->occlude_p > 0 || o->grey_p > 0;
}

/* The JSON object that identifies the set. */
static char *options_json(const pnb_shapes_opts *o)
{
    pnb__buf b = {0};
    pnb__buf_printf(&b,
                    "{\"kind\": \"shapes\", \"version\": 5, \"n_scenes\": %zu, \"width\": %d, "
                    "\"height\": %d, \"seed\": \"%llu\", \"shard_size\": %zu",
                    o->n_scenes, o->width, o->height, (unsigned long long)o->seed, o->shard_size);
    const char *const keys[] = {"val_share", "test_share", "blur_p", "occlude_p",
                                "grey_p",    "max_blur",   "wordy"};
    const double values[] = {o->val_share, o->test_share, o->blur_p, o->occlude_p,
                             o->grey_p,    o->max_blur,   o->wordy};
    for (size_t i = 0; i < PNB_COUNT(keys); i++)
        pnb__json_put(&b, ", %s: %f", keys[i], values[i]);
    pnb__buf_putc(&b, '}');
    if (!b.failed)
        return b.data;
    pnb__buf_reset(&b);
    return NULL;
}

/* ---- scenes and captions ------------------------------------------------------------------ */

static void draw_range(void *user, size_t begin, size_t end, int thread)
{
    pnb__shapes_set *s = user;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        pnb__shape_query queries[PNB__MAX_SCENE_QUERIES];
        pnb__scene_draw(&s->scenes[i], s->opts, i);
        int n = pnb__scene_queries(&s->scenes[i], s->opts, i, queries);
        s->n_queries[i] = (uint32_t)n;
        for (int k = 0; k < n; k++)
            s->queries[i * PNB__MAX_SCENE_QUERIES + (size_t)k] = pnb__query_pack(&queries[k]);
    }
}

/* The distinct captions of scenes [begin, end), ascending, into `out` (room for all of them). */
static size_t distinct_texts(const pnb__shapes_set *s, size_t begin, size_t end, uint64_t *out)
{
    size_t n = 0;
    for (size_t i = begin; i < end; i++) {
        memcpy(out + n, s->queries + i * PNB__MAX_SCENE_QUERIES, s->n_queries[i] * sizeof *out);
        n += s->n_queries[i];
    }
    return pnb__sort_distinct(out, n);
}

static pnb_status draw_scenes(pnb__shapes_set *s, pnb_error *err)
{
    size_t n_slots = s->n * PNB__MAX_SCENE_QUERIES;
    s->scenes = pnb__alloc_array(s->n, sizeof *s->scenes);
    s->n_queries = pnb__alloc_array(s->n, sizeof *s->n_queries);
    s->queries = pnb__alloc_array(n_slots, sizeof *s->queries);
    s->texts = pnb__alloc_array(n_slots, sizeof *s->texts);
    if (!s->scenes || !s->n_queries || !s->queries || !s->texts)
        return pnb__fail_nomem(err, n_slots * sizeof *s->queries);
    pnb__parallel_for(s->ctx, s->n, 16, draw_range, s);
    s->n_texts = distinct_texts(s, 0, s->n, s->texts);
    return PNB_OK;
}

/* ---- records ------------------------------------------------------------------------------- */

static void append_shape(pnb__buf *b, const pnb__shape *shape)
{
    pnb__buf_printf(b,
                    "{\"form\": \"%s\", \"colour\": \"%s\", \"size\": \"%s\", \"x\": %.3f, "
                    "\"y\": %.3f, \"radius\": %.3f, \"grey\": %s}",
                    pnb__form_name(shape->form), pnb__colour_name(shape->colour),
                    pnb__size_name(shape->size), shape->x, shape->y, shape->radius,
                    shape->is_grey ? "true" : "false");
}

static bool is_ambiguous(const pnb__ambiguity *a)
{
    return a->blur > 0 || a->has_occluder || a->n_grey > 0;
}

static void append_ambiguity(pnb__buf *b, const pnb__scene *scene, const pnb_shapes_opts *opts)
{
    const pnb__ambiguity *a = &scene->ambiguity;
    const char *comma = "";
    pnb__buf_puts(b, ", \"ambiguity\": {\"kinds\": [");
    if (a->blur > 0) {
        pnb__buf_puts(b, "\"blur\"");
        comma = ", ";
    }
    if (a->has_occluder) {
        pnb__buf_printf(b, "%s\"occlusion\"", comma);
        comma = ", ";
    }
    if (a->n_grey > 0)
        pnb__buf_printf(b, "%s\"grey\"", comma);
    pnb__buf_printf(b,
                    "], \"blur\": %.5f, \"occluded_share\": %.4f, \"occluded_shape\": %d, "
                    "\"grey_shapes\": %d, \"entropy_bits\": %.5f, \"form_bits\": %.5f, "
                    "\"colour_bits\": %.5f, \"size_bits\": %.5f, \"n_consistent\": %.0f, "
                    "\"n_shapes\": %zu}",
                    a->blur / opts->width, a->occluded_share, a->has_occluder ? a->occluded : -1,
                    a->n_grey, a->entropy_bits, a->form_bits, a->colour_bits, a->size_bits,
                    a->n_consistent, (size_t)scene->n_shapes);
}

static void append_list(pnb__buf *b, const pnb__shapes_set *s, size_t i, const char *key, int what)
{
    pnb__buf_printf(b, ", \"%s\": [", key);
    for (uint32_t k = 0; k < s->n_queries[i]; k++) {
        uint64_t packed = s->queries[i * PNB__MAX_SCENE_QUERIES + k];
        char text[PNB__QUERY_TEXT], id[PNB__QUERY_ID];
        pnb__shape_query q;
        pnb__query_unpack(packed, &q);
        pnb__query_say(&q, s->opts, text);
        pnb__query_id(packed, id);
        pnb__buf_puts(b, k ? ", " : "");
        if (what == 0)
            pnb__buf_printf(b, "\"%s\"", text);
        else if (what == 1)
            pnb__buf_printf(b, "%d", q.level);
        else
            pnb__buf_printf(b, "\"%s\"", id);
    }
    pnb__buf_putc(b, ']');
}

static void scene_name(const pnb__scene *scene, char *name, size_t capacity)
{
    size_t n = 0;
    for (int k = 0; k < scene->n_shapes; k++) {
        const pnb__shape *shape = &scene->shapes[k];
        n += (size_t)snprintf(name + n, capacity - n, "%s%s %s %s", k ? ", " : "",
                              pnb__size_name(shape->size), pnb__colour_name(shape->colour),
                              pnb__form_name(shape->form));
    }
}

static const char *count_name(const pnb__scene *scene)
{
    static const char *const NAMES[PNB__MAX_SHAPES + 1] = {"", "one shape", "two shapes",
                                                           "three shapes"};
    return NAMES[scene->n_shapes];
}

/* What one scene gives to a shard. */
typedef struct scene_files {
    unsigned char *png;
    size_t n_png;
    pnb__buf json;
    char key[16], name[80];
} scene_files;

static void write_record(const pnb__shapes_set *s, size_t i, scene_files *f)
{
    const pnb__scene *scene = &s->scenes[i];
    pnb__buf *b = &f->json;
    char text[PNB__QUERY_TEXT];
    pnb__shape_query last; /* the most specific statement */
    pnb__query_unpack(s->queries[i * PNB__MAX_SCENE_QUERIES + s->n_queries[i] - 1], &last);
    pnb__query_say(&last, s->opts, text);
    snprintf(f->key, sizeof f->key, "%07zu", i);
    scene_name(scene, f->name, sizeof f->name);
    pnb__buf_printf(b, "{\"caption\": \"%s\"", text);
    append_list(b, s, i, "captions", 0);
    append_list(b, s, i, "levels", 1);
    append_list(b, s, i, "caption_ids", 2);
    pnb__buf_printf(b, ", \"name\": \"%s\", \"group\": \"shapes\", \"subgroup\": \"%s\"", f->name,
                    count_name(scene));
    pnb__buf_puts(b, ", \"shapes\": [");
    for (int k = 0; k < scene->n_shapes; k++) {
        pnb__buf_puts(b, k ? ", " : "");
        append_shape(b, &scene->shapes[k]);
    }
    pnb__buf_putc(b, ']');
    if (has_ambiguity(s->opts))
        append_ambiguity(b, scene, s->opts);
    pnb__buf_puts(b, "}\n");
}

/* The scenes [first, first + n) being rendered for one shard. */
typedef struct shard_job {
    pnb__shapes_set *set;
    size_t first;
    scene_files *files;
    pnb_status *statuses;
} shard_job;

static pnb_status make_files(pnb__shapes_set *s, size_t i, scene_files *f)
{
    pnb_status status = PNB_OK;
    pnb_image image = {0};
    if (is_ambiguous(&s->scenes[i].ambiguity))
        PNB_TRY(pnb__scene_ambiguity(&s->scenes[i], s->opts, NULL));
    PNB_TRY(pnb__scene_render(&s->scenes[i], s->opts, i, &image, NULL));
    PNB_TRY(pnb_image_encode_png(&image, &f->png, &f->n_png, NULL));
    write_record(s, i, f);
    if (f->json.failed)
        status = PNB_NOMEM;
done:
    pnb_image_free(&image);
    return status;
}

static void shard_range(void *user, size_t begin, size_t end, int thread)
{
    shard_job *job = user;
    (void)thread;
    for (size_t k = begin; k < end; k++)
        job->statuses[k] = make_files(job->set, job->first + k, &job->files[k]);
}

static pnb_status add_files(const pnb__shapes_set *s, const shard_job *job, size_t n,
                            pnb__synth_split *split, pnb_error *err)
{
    for (size_t k = 0; k < n; k++) {
        const scene_files *f = &job->files[k];
        if (job->statuses[k] != PNB_OK)
            return pnb__fail(err, job->statuses[k], "shapes: scene %zu could not be rendered (%s)",
                             job->first + k, pnb_status_sentence(job->statuses[k]));
        pnb__synth_item item = {.key = f->key,
                                .name = f->name,
                                .group = "shapes",
                                .subgroup = count_name(&s->scenes[job->first + k]),
                                .json = f->json.data,
                                .png = f->png,
                                .n_png = f->n_png};
        pnb_status status = pnb__split_add(split, &item, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* Renders and writes scenes in blocks, each in parallel, always in the same order. */
static pnb_status write_scenes(pnb__shapes_set *s, size_t begin, size_t end,
                               pnb__synth_split *split, pnb_error *err)
{
    enum { BLOCK = 256 };
    pnb_status status = PNB_OK;
    shard_job job = {.set = s};
    job.files = pnb__alloc_zero(BLOCK, sizeof *job.files);
    job.statuses = pnb__alloc_zero(BLOCK, sizeof *job.statuses);
    if (!job.files || !job.statuses)
        status = pnb__fail_nomem(err, BLOCK * sizeof *job.files);
    for (size_t first = begin; status == PNB_OK && first < end; first += BLOCK) {
        size_t n = PNB_MIN((size_t)BLOCK, end - first);
        job.first = first;
        pnb__parallel_for(s->ctx, n, 4, shard_range, &job);
        status = add_files(s, &job, n, split, err);
        for (size_t k = 0; k < n; k++) {
            pnb_image_bytes_free(job.files[k].png);
            pnb__buf_reset(&job.files[k].json);
            job.files[k] = (scene_files){0};
        }
    }
    pnb__free(job.files);
    pnb__free(job.statuses);
    return status;
}

/* ---- lists and truth of a split ------------------------------------------------------------ */

/* A caption leaves open which of the scenes it fits was meant: log2 of their number in the whole
 * set, since what a caption says does not depend on the split that it is read in. */
static double text_entropy(const pnb__shapes_set *s, size_t c)
{
    return log2((double)(s->match_start[c + 1] - s->match_start[c]));
}

/* The captions of a split are among those of the set, both ascending. */
static pnb_status write_texts(const pnb__shapes_set *s, const uint64_t *packed, size_t n,
                              const pnb__synth_split *split, pnb_error *err)
{
    typedef struct text_room {
        char id[PNB__QUERY_ID], text[PNB__QUERY_TEXT];
    } text_room;
    pnb__synth_text *texts = pnb__alloc_array(PNB_MAX(n, 1), sizeof *texts);
    text_room *room = pnb__alloc_array(PNB_MAX(n, 1), sizeof *room);
    pnb_status status = texts && room ? PNB_OK : pnb__fail_nomem(err, n * sizeof *room);
    for (size_t k = 0, c = 0; status == PNB_OK && k < n; k++) {
        pnb__shape_query q;
        pnb__query_unpack(packed[k], &q);
        pnb__query_say(&q, s->opts, room[k].text);
        pnb__query_id(packed[k], room[k].id);
        while (s->texts[c] != packed[k])
            c++;
        texts[k] = (pnb__synth_text){room[k].id,         room[k].text,         q.level,
                                     text_entropy(s, c), log2(s->expected[c]), NULL};
    }
    if (status == PNB_OK)
        status = pnb__split_texts(split, texts, n, err);
    pnb__free(texts);
    pnb__free(room);
    return status;
}

static pnb_status write_truth(const pnb__shapes_set *s, const uint64_t *packed, size_t n, int split,
                              const pnb__synth_out *out, pnb_error *err)
{
    pnb__out_file file = {0};
    pnb_status status = pnb__truth_open(&file, out, SPLIT_NAMES[split], err);
    if (status != PNB_OK)
        return status;
    for (size_t k = 0, c = 0; k < n; k++) {
        char id[PNB__QUERY_ID];
        pnb__query_id(packed[k], id);
        while (s->texts[c] != packed[k])
            c++;
        for (size_t m = s->match_start[c]; m < s->match_start[c + 1]; m++)
            if (s->matches[m] >= s->split_start[split] && s->matches[m] < s->split_start[split + 1])
                fprintf(file.file, "%07u\t%s\n", s->matches[m], id);
    }
    return pnb__out_commit(&file, err);
}

static pnb_status write_split(pnb__shapes_set *s, int which, const pnb__synth_out *out,
                              pnb_error *err)
{
    size_t begin = s->split_start[which], end = s->split_start[which + 1];
    pnb_status status = PNB_OK;
    pnb__synth_split split = {0};
    uint64_t *packed = pnb__alloc_array((end - begin) * PNB__MAX_SCENE_QUERIES + 1, sizeof *packed);
    if (!packed)
        return pnb__fail_nomem(err, (end - begin) * PNB__MAX_SCENE_QUERIES * sizeof *packed);
    size_t n = distinct_texts(s, begin, end, packed);
    PNB_TRY(pnb__split_open(&split, out, SPLIT_NAMES[which], s->opts->shard_size, err));
    PNB_TRY(write_scenes(s, begin, end, &split, err));
    PNB_TRY(write_texts(s, packed, n, &split, err));
    PNB_TRY(write_truth(s, packed, n, which, out, err));
    PNB_TRY(pnb__split_close(&split, err));
done:
    pnb__split_abort(&split);
    pnb__free(packed);
    return status;
}

/* ---- statistics and the whole -------------------------------------------------------------- */

static pnb_status count_words(const pnb__shapes_set *s, size_t *n_words, pnb_error *err)
{
    char(*texts)[PNB__QUERY_TEXT] = pnb__alloc_array(s->n_texts, sizeof *texts);
    const char **pointers = pnb__alloc_array(s->n_texts, sizeof *pointers);
    size_t n = SIZE_MAX;
    for (size_t c = 0; texts && pointers && c < s->n_texts; c++) {
        pnb__shape_query q;
        pnb__query_unpack(s->texts[c], &q);
        pnb__query_say(&q, s->opts, texts[c]);
        pointers[c] = texts[c];
    }
    if (texts && pointers)
        n = pnb__count_words(pointers, s->n_texts);
    pnb__free(pointers);
    pnb__free(texts);
    *n_words = n;
    return n == SIZE_MAX ? pnb__fail_nomem(err, s->n_texts * PNB__QUERY_TEXT) : PNB_OK;
}

static pnb_status gather_stats(const pnb__shapes_set *s, pnb_synth_stats *stats, pnb_error *err)
{
    size_t n_matches[PNB_SYNTH_N_LEVELS] = {0}, n_given[PNB_SYNTH_N_LEVELS] = {0};
    pnb__shape_query q;
    for (size_t c = 0; c < s->n_texts; c++) {
        pnb__query_unpack(s->texts[c], &q);
        stats->n_texts[q.level]++;
        n_matches[q.level] += s->match_start[c + 1] - s->match_start[c];
    }
    for (size_t i = 0; i < s->n; i++) {
        stats->n_ambiguous += is_ambiguous(&s->scenes[i].ambiguity);
        for (uint32_t k = 0; k < s->n_queries[i]; k++) {
            pnb__query_unpack(s->queries[i * PNB__MAX_SCENE_QUERIES + k], &q);
            n_given[q.level]++;
        }
    }
    for (int l = 0; l < PNB_SYNTH_N_LEVELS; l++) {
        stats->texts_per_image[l] = (double)n_given[l] / (double)s->n;
        if (stats->n_texts[l])
            stats->images_per_text[l] = (double)n_matches[l] / (double)stats->n_texts[l];
    }
    stats->n_train = s->split_start[1];
    stats->n_val = s->split_start[2] - s->split_start[1];
    stats->n_test = s->split_start[3] - s->split_start[2];
    return count_words(s, &stats->n_words, err);
}

static void release(pnb__shapes_set *s)
{
    pnb__free(s->scenes);
    pnb__free(s->n_queries);
    pnb__free(s->queries);
    pnb__free(s->texts);
    pnb__free(s->match_start);
    pnb__free(s->matches);
    pnb__free(s->expected);
}

static void split_scenes(pnb__shapes_set *s)
{
    size_t n_val = (size_t)llround(s->opts->val_share * (double)s->n);
    size_t n_test = (size_t)llround(s->opts->test_share * (double)s->n);
    n_val = PNB_MIN(n_val, s->n);
    n_test = PNB_MIN(n_test, s->n - n_val);
    s->split_start[1] = s->n - n_val - n_test;
    s->split_start[2] = s->n - n_test;
    s->split_start[3] = s->n;
}

static pnb_status make_set(pnb__shapes_set *s, const pnb__synth_out *out, pnb_synth_stats *stats,
                           pnb_error *err)
{
    pnb_status status = PNB_OK;
    split_scenes(s);
    PNB_TRY(draw_scenes(s, err));
    PNB_TRY(pnb__shapes_find_truth(s, err));
    PNB_TRY(pnb__shapes_find_expected(s, err));
    PNB_TRY(gather_stats(s, stats, err));
    for (int split = 0; split < PNB__N_SPLITS; split++)
        PNB_TRY(write_split(s, split, out, err));
done:
    return status;
}

pnb_status pnb_synth_shapes(const pnb_ctx *ctx, const pnb_shapes_opts *opts, const char *dir,
                            pnb_synth_stats *stats, pnb_error *err)
{
    pnb_synth_stats local = {0};
    pnb_shapes_opts defaults = pnb_shapes_opts_default();
    pnb__synth_out out = {0};
    pnb__shapes_set set = {.ctx = ctx, .opts = opts ? opts : &defaults};
    pnb_status status = check_opts(set.opts, err);
    if (status != PNB_OK)
        return status;
    set.n = set.opts->n_scenes;
    char *options = options_json(set.opts);
    if (!options)
        return pnb__fail_nomem(err, 256);
    PNB_TRY(pnb__synth_begin(&out, dir, options, &local, err));
    if (!local.reused) {
        PNB_TRY(make_set(&set, &out, &local, err));
        PNB_TRY(pnb__synth_commit(&out, &local, err));
    }
    if (stats)
        *stats = local;
done:
    pnb__synth_abort(&out);
    pnb__free(options);
    release(&set);
    return status;
}
