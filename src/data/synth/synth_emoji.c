/* Makes the `emoji` data set: texts by emoji_list.c, pictures by emoji_glyph.c, here the split, the
 * captions with their truth, and the files.
 *
 * Levels: 0 group, 1 subgroup, 2 keyword, 3 name. A caption is true of the pictures that carry it
 * and of pictures equal to one of them, pixel for pixel (a few flags). Keywords are as complete as
 * CLDR's, so the truth at level 2 is a lower bound.
 * Split: val and test get 189 / 1870 and 284 / 1870 of each subgroup (largest remainders), drawn
 * with the seed; equal pictures all go to train, so that none is in two splits. Pictures are
 * centred on a white square and resized with Pillow's bicubic filter; KEY.png has `size` pixels a
 * side, the member KEY.128.png or KEY.64.png the other one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/synth/emoji.h"
#include "data/synth/synth_write.h"
#include "io/json/json.h"

enum { TRAIN, VAL, TEST, N_SPLITS };
static const char *const SPLIT_NAMES[N_SPLITS] = {"train", "val", "test"};
static const size_t SHARE_OF[N_SPLITS] = {0, 189, 284}, SHARE_TOTAL = 1870;

static const char *const TEMPLATES[] = {"a picture of {c}", "an emoji of {c}",
                                        "an icon showing {c}", "a small drawing of {c}",
                                        "{c} as an emoji"};

/* A caption of one picture; sorted, equal ones stand together and form one caption of the set. */
typedef struct text_ref {
    const char *text;
    int level;
    uint32_t emoji;
    uint32_t text_index; /* index among the distinct captions */
} text_ref;

typedef struct emoji_set {
    const pnb_emoji_opts *opts;
    pnb__emoji_list list;
    text_ref *refs; /* sorted by level, text, emoji */
    size_t n_refs, n_texts;
    char (*ids)[16]; /* of the distinct captions */
} emoji_set;

pnb_emoji_opts pnb_emoji_opts_default(void)
{
    return (pnb_emoji_opts){.size = 64, .shard_size = 1000};
}

const char *const *pnb_emoji_templates(size_t *n)
{
    *n = PNB_COUNT(TEMPLATES);
    return TEMPLATES;
}

/* ---- split --------------------------------------------------------------------------------- */

typedef struct subgroup {
    const char *group, *name;
    size_t n, quota[N_SPLITS];
} subgroup;

static size_t find_subgroups(const emoji_set *s, subgroup *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s->list.n; i++) {
        const pnb__emoji *e = &s->list.items[i];
        size_t k = 0;
        while (k < n &&
               (strcmp(out[k].name, e->subgroup) != 0 || strcmp(out[k].group, e->group) != 0))
            k++;
        if (k == n)
            out[n++] = (subgroup){.group = e->group, .name = e->subgroup};
        out[k].n++;
    }
    return n;
}

/* Whole places first, then one more to the subgroups with the largest remainders. */
static void share_out(subgroup *groups, size_t n_groups, size_t n, int split)
{
    size_t total = (n * SHARE_OF[split] + SHARE_TOTAL / 2) / SHARE_TOTAL, given = 0;
    for (size_t k = 0; k < n_groups; k++) {
        groups[k].quota[split] = groups[k].n * total / n;
        given += groups[k].quota[split];
    }
    for (; given < total; given++) {
        size_t best = 0, best_rest = 0;
        for (size_t k = 0; k < n_groups; k++) {
            size_t exact = groups[k].n * total, got = groups[k].quota[split] * n;
            size_t rest = exact > got ? exact - got : 0;
            if (rest > best_rest) {
                best = k;
                best_rest = rest;
            }
        }
        groups[best].quota[split]++;
    }
}

static bool has_twin(const emoji_set *s, size_t i)
{
    if (s->list.items[i].first_equal != i)
        return true;
    for (size_t j = i + 1; j < s->list.n; j++)
        if (s->list.items[j].first_equal == i)
            return true;
    return false;
}

/* Deals one subgroup: its pictures in a drawn order, val first, then test, the rest to train. */
static void deal_subgroup(emoji_set *s, const subgroup *g, size_t which, uint32_t *order)
{
    size_t n = 0, quota[N_SPLITS] = {0, g->quota[VAL], g->quota[TEST]};
    pnb__rng rng;
    for (size_t i = 0; i < s->list.n; i++) {
        const pnb__emoji *e = &s->list.items[i];
        if (!strcmp(e->subgroup, g->name) && !strcmp(e->group, g->group))
            order[n++] = (uint32_t)i;
    }
    pnb__rng_init(&rng, s->opts->seed, (6ULL << 56) | which);
    pnb__rng_shuffle(&rng, order, n);
    for (size_t k = 0; k < n; k++) {
        int split = has_twin(s, order[k]) ? TRAIN : quota[VAL] ? VAL : quota[TEST] ? TEST : TRAIN;
        s->list.items[order[k]].split = split;
        quota[split] -= split != TRAIN;
    }
}

static pnb_status split_images(emoji_set *s, pnb_error *err)
{
    subgroup *groups = pnb__alloc_zero(s->list.n, sizeof *groups);
    uint32_t *order = pnb__alloc_array(s->list.n, sizeof *order);
    pnb_status status = groups && order ? PNB_OK : pnb__fail_nomem(err, s->list.n * 64);
    if (status == PNB_OK) {
        size_t n_groups = find_subgroups(s, groups);
        share_out(groups, n_groups, s->list.n, VAL);
        share_out(groups, n_groups, s->list.n, TEST);
        for (size_t k = 0; k < n_groups; k++)
            deal_subgroup(s, &groups[k], k, order);
    }
    pnb__free(groups);
    pnb__free(order);
    return status;
}

/* ---- captions ------------------------------------------------------------------------------ */

static int compare_refs(const void *a, const void *b)
{
    const text_ref *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->emoji > y->emoji) - (x->emoji < y->emoji);
}

static bool same_text(const text_ref *a, const text_ref *b)
{
    return a->level == b->level && !strcmp(a->text, b->text);
}

static pnb_status collect_texts(emoji_set *s, pnb_error *err)
{
    size_t n = 0, first_of_level = 0;
    for (size_t i = 0; i < s->list.n; i++)
        n += 3 + (size_t)s->list.items[i].n_words;
    s->refs = pnb__alloc_array(n, sizeof *s->refs);
    s->ids = pnb__alloc_array(n, sizeof *s->ids);
    if (!s->refs || !s->ids)
        return pnb__fail_nomem(err, n * sizeof *s->refs);
    for (size_t i = 0; i < s->list.n; i++) {
        const pnb__emoji *e = &s->list.items[i];
        s->refs[s->n_refs++] = (text_ref){e->group, 0, (uint32_t)i, 0};
        s->refs[s->n_refs++] = (text_ref){e->subgroup, 1, (uint32_t)i, 0};
        for (int w = 0; w < e->n_words; w++)
            s->refs[s->n_refs++] = (text_ref){e->words[w], 2, (uint32_t)i, 0};
        s->refs[s->n_refs++] = (text_ref){e->name, 3, (uint32_t)i, 0};
    }
    qsort(s->refs, s->n_refs, sizeof *s->refs, compare_refs);
    for (size_t r = 0; r < s->n_refs; r++) {
        bool is_new = r == 0 || !same_text(&s->refs[r], &s->refs[r - 1]);
        if (r == 0 || s->refs[r].level != s->refs[r - 1].level)
            first_of_level = s->n_texts;
        s->n_texts += is_new;
        s->refs[r].text_index = (uint32_t)(s->n_texts - 1);
        if (is_new)
            snprintf(s->ids[s->n_texts - 1], sizeof s->ids[0], "e%d-%04u", s->refs[r].level,
                     (unsigned)(s->n_texts - 1 - first_of_level));
    }
    return PNB_OK;
}

static const text_ref *find_ref(const emoji_set *s, const char *text, int level, size_t emoji)
{
    text_ref key = {text, level, (uint32_t)emoji, 0};
    return bsearch(&key, s->refs, s->n_refs, sizeof *s->refs, compare_refs);
}

/* Marks the pictures the caption of refs[begin..end) is true of: carriers and their equals. */
static size_t mark_true(const emoji_set *s, size_t begin, size_t end, unsigned char *is_true)
{
    size_t n = 0;
    memset(is_true, 0, s->list.n);
    for (size_t r = begin; r < end; r++)
        is_true[s->list.items[s->refs[r].emoji].first_equal] = 1;
    for (size_t i = 0; i < s->list.n; i++) {
        is_true[i] = is_true[s->list.items[i].first_equal];
        n += is_true[i];
    }
    return n;
}

static size_t end_of_text(const emoji_set *s, size_t begin)
{
    size_t end = begin + 1;
    while (end < s->n_refs && s->refs[end].text_index == s->refs[begin].text_index)
        end++;
    return end;
}

/* ---- files --------------------------------------------------------------------------------- */

static void append_texts(pnb__buf *b, const emoji_set *s, const pnb__emoji *e, int what)
{
    static const char *const KEYS[] = {"captions", "levels", "caption_ids", "template_captions"};
    size_t emoji = (size_t)(e - s->list.items);
    pnb__rng rng;
    pnb__rng_init(&rng, s->opts->seed, (7ULL << 56) | emoji);
    pnb__buf_printf(b, ", \"%s\": [", KEYS[what]);
    for (int k = 0; k < e->n_words + 3; k++) {
        const char *text = k == 0               ? e->group
                           : k == 1             ? e->subgroup
                           : k < e->n_words + 2 ? e->words[k - 2]
                                                : e->name;
        int level = k < 2 ? k : k < e->n_words + 2 ? 2 : 3;
        pnb__buf_puts(b, k ? ", " : "");
        if (what == 0) {
            pnb__json_append_string(b, text);
        } else if (what == 1) {
            pnb__buf_printf(b, "%d", level);
        } else if (what == 2) {
            const text_ref *ref = find_ref(s, text, level, emoji);
            pnb__json_append_string(b, ref ? s->ids[ref->text_index] : "");
        } else {
            const char *form = TEMPLATES[pnb__rng_below(&rng, PNB_COUNT(TEMPLATES))];
            const char *hole = strstr(form, "{c}");
            char *full = pnb__format("%.*s%s%s", (int)(hole - form), form, text, hole + 3);
            b->failed |= !full;
            if (full)
                pnb__json_append_string(b, full);
            pnb__free(full);
        }
    }
    pnb__buf_putc(b, ']');
}

static void write_record(pnb__buf *b, const emoji_set *s, const pnb__emoji *e)
{
    pnb__json_put(b, "{\"caption\": %s", e->name);
    for (int what = 0; what < 4; what++)
        append_texts(b, s, e, what);
    pnb__json_put(b, ", \"name\": %s, \"group\": %s, \"subgroup\": %s, \"sequence\": %s}\n",
                  e->name, e->group, e->subgroup, e->key);
}

/* The picture on a white square, resized and encoded. */
static pnb_status encode(const pnb_image *image, int size, unsigned char **png, size_t *n,
                         pnb_error *err)
{
    pnb_image square = {0}, resized = {0};
    int side = PNB_MAX(image->width, image->height);
    pnb_status status = PNB_OK;
    PNB_TRY(pnb_image_crop(&square, image, (image->width - side) / 2, (image->height - side) / 2,
                           side, side, 255, err));
    PNB_TRY(pnb_image_resize(&resized, &square, size, size, PNB_FILTER_BICUBIC, NULL, err));
    PNB_TRY(pnb_image_encode_png(&resized, png, n, err));
done:
    pnb_image_free(&square);
    pnb_image_free(&resized);
    return status;
}

static pnb_status add_image(const emoji_set *s, const pnb__emoji *e, pnb__synth_split *split,
                            pnb_error *err)
{
    unsigned char *png = NULL, *png2 = NULL;
    size_t n_png = 0, n_png2 = 0;
    int other = s->opts->size == 64 ? 128 : 64;
    pnb__buf json = {0};
    pnb_status status = PNB_OK;
    PNB_TRY(encode(&e->image, s->opts->size, &png, &n_png, err));
    PNB_TRY(encode(&e->image, other, &png2, &n_png2, err));
    write_record(&json, s, e);
    if (json.failed) {
        status = pnb__fail_nomem(err, json.size);
        goto done;
    }
    const pnb__synth_item item = {.key = e->key,
                                  .name = e->name,
                                  .group = e->group,
                                  .subgroup = e->subgroup,
                                  .json = json.data,
                                  .png = png,
                                  .png2 = png2,
                                  .n_png = n_png,
                                  .n_png2 = n_png2,
                                  .png2_suffix = other == 64 ? "64.png" : "128.png"};
    status = pnb__split_add(split, &item, err);
done:
    pnb__buf_reset(&json);
    pnb_image_bytes_free(png);
    pnb_image_bytes_free(png2);
    return status;
}

/* Captions that a picture of the split carries, and all their true pairs within it. */
static pnb_status write_lists(const emoji_set *s, int which, const pnb__synth_out *out,
                              const pnb__synth_split *split, pnb_error *err)
{
    pnb__out_file file = {0};
    size_t n = 0;
    pnb__synth_text *texts = pnb__alloc_array(s->n_texts, sizeof *texts);
    unsigned char *is_true = pnb__alloc_array(s->list.n, 1);
    pnb_status status = texts && is_true ? PNB_OK : pnb__fail_nomem(err, s->n_texts);
    if (status == PNB_OK)
        status = pnb__truth_open(&file, out, SPLIT_NAMES[which], err);
    if (status != PNB_OK)
        goto done;
    for (size_t begin = 0, end; begin < s->n_refs; begin = end) {
        const text_ref *ref = &s->refs[begin];
        bool is_here = false;
        end = end_of_text(s, begin);
        for (size_t r = begin; r < end; r++)
            is_here |= s->list.items[s->refs[r].emoji].split == which;
        if (!is_here)
            continue;
        /* of the whole set: what a caption leaves open is the same in every split */
        size_t n_true = mark_true(s, begin, end, is_true);
        texts[n++] = (pnb__synth_text){s->ids[ref->text_index], ref->text,   ref->level,
                                       log2((double)n_true),    (double)NAN, NULL};
        for (size_t i = 0; i < s->list.n; i++)
            if (is_true[i] && s->list.items[i].split == which)
                fprintf(file.file, "%s\t%s\n", s->list.items[i].key, s->ids[ref->text_index]);
    }
    PNB_TRY(pnb__out_commit(&file, err));
    status = pnb__split_texts(split, texts, n, err);
done:
    pnb__free(texts);
    pnb__free(is_true);
    return status;
}

/* Pictures of a split in an order drawn with the seed, so that a part of a shard is a fair sample.
 */
static pnb_status write_split(const emoji_set *s, int which, const pnb__synth_out *out,
                              pnb_error *err)
{
    pnb__synth_split split = {0};
    pnb_status status = PNB_OK;
    pnb__rng rng;
    size_t n = 0;
    uint32_t *order = pnb__alloc_array(s->list.n, sizeof *order);
    if (!order)
        return pnb__fail_nomem(err, s->list.n * sizeof *order);
    for (size_t i = 0; i < s->list.n; i++)
        if (s->list.items[i].split == which)
            order[n++] = (uint32_t)i;
    pnb__rng_init(&rng, s->opts->seed, (8ULL << 56) + (unsigned)which);
    pnb__rng_shuffle(&rng, order, n);
    PNB_TRY(pnb__split_open(&split, out, SPLIT_NAMES[which], s->opts->shard_size, err));
    for (size_t k = 0; k < n; k++)
        PNB_TRY(add_image(s, &s->list.items[order[k]], &split, err));
    PNB_TRY(write_lists(s, which, out, &split, err));
    PNB_TRY(pnb__split_close(&split, err));
done:
    pnb__split_abort(&split);
    pnb__free(order);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static pnb_status gather_stats(const emoji_set *s, pnb_synth_stats *stats, pnb_error *err)
{
    size_t n_given[PNB_SYNTH_N_LEVELS] = {0}, n_true[PNB_SYNTH_N_LEVELS] = {0};
    size_t *const n_of_split[N_SPLITS] = {&stats->n_train, &stats->n_val, &stats->n_test};
    unsigned char *is_true = pnb__alloc_array(s->list.n, 1);
    const char **texts = pnb__alloc_array(s->n_texts, sizeof *texts);
    if (is_true && texts) {
        for (size_t i = 0; i < s->list.n; i++)
            ++*n_of_split[s->list.items[i].split];
        for (size_t begin = 0, end, c = 0; begin < s->n_refs; begin = end, c++) {
            int level = s->refs[begin].level;
            end = end_of_text(s, begin);
            texts[c] = s->refs[begin].text;
            stats->n_texts[level]++;
            n_given[level] += end - begin;
            n_true[level] += mark_true(s, begin, end, is_true);
        }
        for (int l = 0; l < PNB_SYNTH_N_LEVELS; l++) {
            stats->texts_per_image[l] = (double)n_given[l] / (double)s->list.n;
            stats->images_per_text[l] = (double)n_true[l] / (double)stats->n_texts[l];
        }
        stats->n_words = pnb__count_words(texts, s->n_texts);
    }
    bool failed = !is_true || !texts || stats->n_words == SIZE_MAX;
    pnb__free(texts);
    pnb__free(is_true);
    return failed ? pnb__fail_nomem(err, s->n_texts * sizeof *texts) : PNB_OK;
}

static char *options_json(const pnb_emoji_opts *o, const char *font, const char *list,
                          const char *cldr)
{
    pnb__buf b = {0};
    pnb__json_put(&b,
                  "{\"kind\": \"emoji\", \"version\": 3, \"seed\": \"%llu\", \"size\": %d, "
                  "\"skin_tones\": %i, \"sensitive\": %i, \"shard_size\": %zu, \"font\": %s, "
                  "\"emoji_test\": %s, \"cldr_common\": %s}",
                  (unsigned long long)o->seed, o->size, o->skin_tones, o->sensitive, o->shard_size,
                  font, list, cldr);
    if (!b.failed)
        return b.data;
    pnb__buf_reset(&b);
    return NULL;
}

static pnb_status make_set(emoji_set *s, const pnb__synth_out *out, pnb_synth_stats *stats,
                           pnb_error *err)
{
    const pnb_emoji_opts *o = s->opts;
    pnb_status status = PNB_OK;
    s->list.sensitive = o->sensitive;
    PNB_TRY(pnb__emoji_read(&s->list, o->emoji_test, o->skin_tones, err));
    PNB_TRY(pnb__emoji_add_words(&s->list, o->cldr_common, err));
    PNB_TRY(pnb__emoji_render(&s->list, o->font, err));
    PNB_TRY(split_images(s, err));
    PNB_TRY(collect_texts(s, err));
    PNB_TRY(gather_stats(s, stats, err));
    for (int split = 0; split < N_SPLITS; split++)
        PNB_TRY(write_split(s, split, out, err));
done:
    return status;
}

pnb_status pnb_synth_emoji(const pnb_ctx *ctx, const pnb_emoji_opts *opts, const char *dir,
                           pnb_synth_stats *stats, pnb_error *err)
{
    pnb_synth_stats local = {0};
    pnb_emoji_opts o = opts ? *opts : pnb_emoji_opts_default();
    pnb__synth_out out = {0};
    emoji_set set = {.opts = &o};
    pnb_status status = PNB_OK;
    (void)ctx;
    o.font = o.font ? o.font : PNB__EMOJI_FONT;
    o.emoji_test = o.emoji_test ? o.emoji_test : PNB__EMOJI_LIST;
    o.cldr_common = o.cldr_common ? o.cldr_common : PNB__EMOJI_CLDR;
    if ((o.size != 64 && o.size != 128) || o.shard_size < 1)
        return pnb__fail(err, PNB_ARG, "emoji: size %d and shards of %zu, wanted 64 or 128 and 1..",
                         o.size, o.shard_size);
    char *options = options_json(&o, o.font, o.emoji_test, o.cldr_common);
    if (!options)
        return pnb__fail_nomem(err, 512);
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
    pnb__emoji_free(&set.list);
    pnb__free(set.refs);
    pnb__free(set.ids);
    return status;
}
