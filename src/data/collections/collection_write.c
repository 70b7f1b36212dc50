/* Writes a collection: captions once each, with all pictures of a split that they are true of.
 *
 * A caption is true of the pictures that carry its text at any level (a keyword "frog" of those
 * titled "frog") and of pictures equal to one of these. In a noisy set captions that do not
 * describe their picture are marked, and truth/SPLIT.clean.pairs leaves them out: what differs is
 * the known label noise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/collections/collection.h"
#include "io/json/json.h"

static const char *const SPLIT_NAMES[PNB__N_SPLITS] = {"train", "val", "test"};

/* A caption of one picture; sorted by text, then level, so that equal texts stand together. */
typedef struct text_ref {
    const char *text;
    int level;
    uint32_t item;
    bool is_noise;
    uint32_t text_index; /* among the distinct captions: text and level */
} text_ref;

typedef struct writer {
    pnb__collection *c;
    text_ref *refs;
    size_t n_refs, n_texts;
    char (*ids)[16];        /* [n_texts] */
    unsigned char *is_true; /* [n] pictures the text at hand is true of */
} writer;

static int compare_refs(const void *a, const void *b)
{
    const text_ref *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    if (order == 0)
        order = (x->level > y->level) - (x->level < y->level);
    return order ? order : (x->item > y->item) - (x->item < y->item);
}

static pnb_status collect(writer *w, pnb_error *err)
{
    size_t n = 0, n_of_level[PNB_SYNTH_N_LEVELS] = {0};
    pnb_status status;
    for (size_t i = 0; i < w->c->n; i++)
        n += w->c->items[i].n_texts;
    PNB_TRY(PNB_ALLOC(w->refs, n + 1, err));
    PNB_TRY(PNB_ALLOC(w->ids, n + 1, err));
    PNB_TRY(PNB_ALLOC(w->is_true, w->c->n + 1, err));
    for (size_t i = 0; i < w->c->n; i++)
        for (size_t k = 0; k < w->c->items[i].n_texts; k++) {
            const pnb__text *t = &w->c->items[i].texts[k];
            w->refs[w->n_refs++] = (text_ref){t->text, t->level, (uint32_t)i, t->is_noise, 0};
        }
    qsort(w->refs, w->n_refs, sizeof *w->refs, compare_refs);
    for (size_t r = 0; r < w->n_refs; r++) {
        text_ref *ref = &w->refs[r], *last = r > 0 ? ref - 1 : NULL;
        bool is_new = !last || last->level != ref->level || strcmp(last->text, ref->text) != 0;
        if (is_new)
            snprintf(w->ids[w->n_texts++], sizeof w->ids[0], "c%d-%05zu", ref->level,
                     n_of_level[ref->level]++);
        ref->text_index = (uint32_t)(w->n_texts - 1);
    }
done:
    return status;
}

static const text_ref *find_ref(const writer *w, size_t item, const pnb__text *text)
{
    const text_ref key = {.text = text->text, .level = text->level, .item = (uint32_t)item};
    return bsearch(&key, w->refs, w->n_refs, sizeof *w->refs, compare_refs);
}

/* The end of the refs with the text of refs[begin], at whatever level. */
static size_t end_of_text(const writer *w, size_t begin)
{
    size_t end = begin + 1;
    while (end < w->n_refs && !strcmp(w->refs[end].text, w->refs[begin].text))
        end++;
    return end;
}

static size_t end_of_level(const writer *w, size_t begin, size_t end)
{
    size_t at = begin + 1;
    while (at < end && w->refs[at].level == w->refs[begin].level)
        at++;
    return at;
}

/* Carriers and their equals; without those it is only noise to. */
static size_t mark_true(writer *w, size_t begin, size_t end, bool with_noise)
{
    size_t n = 0;
    memset(w->is_true, 0, w->c->n);
    for (size_t r = begin; r < end; r++)
        if (with_noise || !w->refs[r].is_noise)
            w->is_true[w->c->items[w->refs[r].item].first_equal] = 1;
    for (size_t i = 0; i < w->c->n; i++) {
        w->is_true[i] = w->is_true[w->c->items[i].first_equal];
        n += w->is_true[i];
    }
    return n;
}

/* ---- records ---- */

static void write_record(pnb__buf *b, const writer *w, size_t i)
{
    const pnb__collected *item = &w->c->items[i];
    const pnb__text *last = &item->texts[item->n_texts - 1];
    pnb__json_put(b, "{\"caption\": %s, \"captions\": [", last->text);
    for (size_t k = 0; k < item->n_texts; k++) {
        pnb__buf_puts(b, k > 0 ? ", " : "");
        pnb__json_append_string(b, item->texts[k].text);
    }
    pnb__buf_puts(b, "], \"levels\": [");
    for (size_t k = 0; k < item->n_texts; k++)
        pnb__buf_printf(b, "%s%d", k > 0 ? ", " : "", item->texts[k].level);
    pnb__buf_puts(b, "], \"caption_ids\": [");
    for (size_t k = 0; k < item->n_texts; k++) {
        const text_ref *ref = find_ref(w, i, &item->texts[k]);
        pnb__buf_printf(b, "%s\"%s\"", k > 0 ? ", " : "",
                        ref != NULL ? w->ids[ref->text_index] : "");
    }
    pnb__buf_puts(b, "]");
    if (w->c->opts->noisy) {
        pnb__buf_puts(b, ", \"noise\": [");
        for (size_t k = 0; k < item->n_texts; k++)
            pnb__buf_printf(b, "%s%d", k > 0 ? ", " : "", item->texts[k].is_noise);
        pnb__buf_puts(b, "]");
    }
    pnb__json_put(b, ", \"name\": %s, \"group\": %s, \"subgroup\": %s, \"style\": %s, \"file\": %s",
                  item->name, item->group, item->subgroup, item->style, item->file);
    pnb__json_put(b, ", \"near_duplicates\": %s", w->c->items[item->twins].key);
    pnb__buf_puts(b, item->more != NULL ? item->more : "");
    if (item->concept != NULL)
        pnb__json_put(b, ", \"concept\": %s, \"new_style\": %i, \"new_concept\": %i", item->concept,
                      item->is_new_style, item->is_new_concept);
    pnb__buf_puts(b, "}\n");
}

static pnb_status add_image(const writer *w, size_t i, pnb__synth_split *split, pnb_error *err)
{
    const pnb__collected *item = &w->c->items[i];
    pnb__buf json = {0}, more = {0};
    write_record(&json, w, i);
    pnb__json_put(&more, ", \"style\": %s", item->style);
    if (item->concept != NULL)
        pnb__json_put(&more, ", \"concept\": %s, \"new_style\": %i, \"new_concept\": %i",
                      item->concept, item->is_new_style, item->is_new_concept);
    pnb_status status = pnb__buf_check(&json, err);
    if (status == PNB_OK)
        status = pnb__buf_check(&more, err);
    const pnb__synth_item out = {.key = item->key,
                                 .name = item->name,
                                 .group = item->group,
                                 .subgroup = item->subgroup,
                                 .more = more.data,
                                 .json = json.data,
                                 .png = item->encoded,
                                 .n_png = item->n_encoded};
    if (status == PNB_OK)
        status = pnb__split_add(split, &out, err);
    pnb__buf_reset(&json);
    pnb__buf_reset(&more);
    return status;
}

/* ---- lists ---- */

static bool is_carried(const writer *w, size_t begin, size_t end, int split, bool *is_noise)
{
    bool is = false;
    for (size_t r = begin; r < end; r++)
        if (w->c->items[w->refs[r].item].split == split) {
            is = true;
            *is_noise |= w->refs[r].is_noise;
        }
    return is;
}

static void write_pairs(writer *w, FILE *file, size_t text, int split)
{
    for (size_t i = 0; i < w->c->n; i++)
        if (w->is_true[i] && w->c->items[i].split == split)
            fprintf(file, "%s\t%s\n", w->c->items[i].key, w->ids[text]);
}

typedef struct lists {
    pnb__out_file truth, clean;
    pnb__synth_text *texts;
    size_t n;
} lists;

/* All levels of one text; refs[begin..end). What it leaves open is counted over the whole set and
 * without the pictures it is only noise to. */
static void list_text(writer *w, lists *l, size_t begin, size_t end, int split)
{
    const size_t n_fits = mark_true(w, begin, end, false);
    for (size_t at = begin, next; at < end; at = next) {
        bool is_noise = false;
        const text_ref *ref = &w->refs[at];
        next = end_of_level(w, at, end);
        if (!is_carried(w, at, next, split, &is_noise))
            continue;
        l->texts[l->n++] =
            (pnb__synth_text){.id = w->ids[ref->text_index],
                              .text = ref->text,
                              .level = ref->level,
                              .entropy_bits = n_fits > 0 ? log2((double)n_fits) : (double)NAN,
                              .expected_bits = (double)NAN,
                              .more = is_noise ? ", \"noise\": true" : NULL};
        mark_true(w, begin, end, true);
        write_pairs(w, l->truth.file, ref->text_index, split);
        if (l->clean.file != NULL) {
            mark_true(w, begin, end, false);
            write_pairs(w, l->clean.file, ref->text_index, split);
        }
    }
}

static int by_level_and_id(const void *a, const void *b)
{
    const pnb__synth_text *x = a, *y = b;
    return strcmp(x->id, y->id);
}

static pnb_status write_lists(writer *w, int split, const pnb__synth_out *out,
                              const pnb__synth_split *shards, pnb_error *err)
{
    lists l = {0};
    char name[16];
    pnb_status status;
    PNB_TRY(PNB_ALLOC(l.texts, w->n_texts + 1, err));
    PNB_TRY(pnb__truth_open(&l.truth, out, SPLIT_NAMES[split], err));
    snprintf(name, sizeof name, "%s.clean", SPLIT_NAMES[split]);
    if (w->c->opts->noisy)
        PNB_TRY(pnb__truth_open(&l.clean, out, name, err));
    for (size_t begin = 0, end; begin < w->n_refs; begin = end) {
        end = end_of_text(w, begin);
        list_text(w, &l, begin, end, split);
    }
    PNB_TRY(pnb__out_commit(&l.truth, err));
    if (l.clean.file != NULL)
        PNB_TRY(pnb__out_commit(&l.clean, err));
    qsort(l.texts, l.n, sizeof *l.texts, by_level_and_id);
    status = pnb__split_texts(shards, l.texts, l.n, err);
done:
    pnb__out_abort(&l.truth);
    pnb__out_abort(&l.clean);
    pnb__free(l.texts);
    return status;
}

/* Pictures in an order drawn with the seed, so that a part of a shard is a fair sample. */
static pnb_status write_split(writer *w, int split, const pnb__synth_out *out, pnb_error *err)
{
    pnb__synth_split shards = {0};
    uint32_t *order = NULL;
    size_t n = 0;
    pnb__rng rng;
    pnb_status status = PNB_ALLOC(order, w->c->n + 1, err);
    for (size_t i = 0; status == PNB_OK && i < w->c->n; i++)
        if (w->c->items[i].split == split)
            order[n++] = (uint32_t)i;
    if (status != PNB_OK)
        return status;
    pnb__rng_init(&rng, w->c->opts->seed, (10ULL << 56) + (unsigned)split);
    pnb__rng_shuffle(&rng, order, n);
    PNB_TRY(pnb__split_open(&shards, out, SPLIT_NAMES[split], w->c->opts->shard_size, err));
    for (size_t k = 0; k < n; k++)
        PNB_TRY(add_image(w, order[k], &shards, err));
    PNB_TRY(write_lists(w, split, out, &shards, err));
    status = pnb__split_close(&shards, err);
done:
    pnb__split_abort(&shards);
    pnb__free(order);
    return status;
}

/* ---- counts ---- */

static pnb_status count(writer *w, pnb_synth_stats *s, pnb_error *err)
{
    size_t n_given[PNB_SYNTH_N_LEVELS] = {0}, n_true[PNB_SYNTH_N_LEVELS] = {0};
    size_t *const n_of_split[PNB__N_SPLITS] = {&s->n_train, &s->n_val, &s->n_test};
    const char **texts = NULL;
    pnb_status status = PNB_ALLOC(texts, w->n_texts + 1, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < w->c->n; i++)
        ++*n_of_split[w->c->items[i].split];
    for (size_t begin = 0, end; begin < w->n_refs; begin = end) {
        end = end_of_text(w, begin);
        size_t n = mark_true(w, begin, end, true);
        for (size_t at = begin, next; at < end; at = next) {
            int level = w->refs[at].level;
            next = end_of_level(w, at, end);
            texts[w->refs[at].text_index] = w->refs[at].text;
            s->n_texts[level]++;
            n_given[level] += next - at;
            n_true[level] += n;
        }
    }
    for (int l = 0; l < PNB_SYNTH_N_LEVELS; l++) {
        s->texts_per_image[l] = (double)n_given[l] / (double)w->c->n;
        s->images_per_text[l] = s->n_texts[l] > 0 ? (double)n_true[l] / (double)s->n_texts[l] : 0;
    }
    s->n_words = pnb__count_words(texts, w->n_texts);
    if (s->n_words == SIZE_MAX)
        status = pnb__fail_nomem(err, w->n_texts);
    pnb__free(texts);
    return status;
}

pnb_status pnb__collection_write(pnb__collection *c, const pnb__synth_out *out, pnb_error *err)
{
    writer w = {.c = c};
    pnb_status status;
    PNB_TRY(collect(&w, err));
    PNB_TRY(count(&w, &c->stats->set, err));
    for (int split = 0; split < PNB__N_SPLITS; split++)
        PNB_TRY(write_split(&w, split, out, err));
done:
    pnb__free(w.refs);
    pnb__free(w.ids);
    pnb__free(w.is_true);
    return status;
}
