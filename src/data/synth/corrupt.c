/* Spoils a set on purpose and writes down what was done: doses of pictures, captions of others.
 *
 * Samples to swap are the first round(share n) of a shuffle by the seed; each takes the captions of
 * the next one of them, the last those of the first, so that none keeps its own. Doses are drawn
 * from a stream of the sample's number. Order and keys stay, so that the truth of the clean set
 * still speaks of the pictures. */
#include "penumbra/corrupt.h"

#include <math.h>
#include <string.h>

#include "base/names.h"
#include "data/synth/dose.h"
#include "data/synth/synth_write.h"
#include "io/json/json.h"

PNB_DEFINE_NAME(pnb_change_name, pnb_change, PNB_NAMES(PNB_CHANGE_LIST), "unknown")

/* Streams of the seed: the swap, then two for each sample. */
enum { SWAP_STREAM = 0, FIRST_DOSE_STREAM = 1 };

pnb_corrupt_opts pnb_corrupt_opts_default(void)
{
    return (pnb_corrupt_opts){.max_dose = 1.0, .shard_size = 1000, .split = "train"};
}

typedef struct builder {
    const pnb_dataset *data;
    const pnb_corrupt_opts *opts;
    pnb__synth_out out;
    pnb__synth_split split;
    size_t n;
    size_t *texts_of; /* [n] sample whose captions each has */
    pnb_corrupt_stats stats;
} builder;

static pnb_status check_opts(const pnb_corrupt_opts *o, pnb_error *err)
{
    if ((unsigned)o->change >= PNB_N_CHANGES)
        return pnb__fail(err, PNB_ARG, "corrupt: change %d does not exist", (int)o->change);
    if (o->change == PNB_CHANGE_NONE && o->swap_share == 0.0)
        return pnb__fail(err, PNB_ARG,
                         "corrupt: nothing to do, neither a change of the pictures "
                         "nor captions to swap");
    if (!(o->max_dose > 0.0 && o->max_dose <= 1.0))
        return pnb__fail(err, PNB_ARG, "corrupt: largest dose %g, wanted above 0 and at most 1",
                         o->max_dose);
    if (!(o->swap_share >= 0.0 && o->swap_share <= 1.0))
        return pnb__fail(err, PNB_ARG, "corrupt: share %g of swapped captions, wanted 0..1",
                         o->swap_share);
    if (o->shard_size < 1 || o->split == NULL || o->split[0] == '\0' ||
        strchr(o->split, '/') != NULL)
        return pnb__fail(err, PNB_ARG, "corrupt: shards of %zu samples in the split '%s'",
                         o->shard_size, o->split == NULL ? "" : o->split);
    return PNB_OK;
}

/* ---- who gets whose captions ---- */

static pnb_status draw_swaps(builder *b, pnb_error *err)
{
    size_t n_swapped = (size_t)llround(b->opts->swap_share * (double)b->n);
    uint32_t *order = NULL;
    pnb__rng rng;
    pnb_status status;
    if (b->n > UINT32_MAX || (b->opts->swap_share > 0.0 && n_swapped < 2))
        return pnb__fail(err, PNB_ARG,
                         "corrupt: %g of %zu samples are %zu; captions change places "
                         "between two at least",
                         b->opts->swap_share, b->n, n_swapped);
    PNB_TRY(PNB_ALLOC(b->texts_of, b->n, err));
    PNB_TRY(PNB_ALLOC(order, b->n, err));
    for (size_t i = 0; i < b->n; i++) {
        b->texts_of[i] = i;
        order[i] = (uint32_t)i;
    }
    pnb__rng_init(&rng, b->opts->seed, SWAP_STREAM);
    pnb__rng_shuffle(&rng, order, b->n);
    for (size_t k = 0; k < n_swapped; k++)
        b->texts_of[order[k]] = order[(k + 1) % n_swapped];
done:
    pnb__free(order);
    return status;
}

/* ---- records ---- */

static pnb_status load_record(const pnb_sample *sample, json_t **out, pnb_error *err)
{
    *out = NULL;
    if (sample->json != NULL) {
        pnb_status status =
            pnb__json_load_bytes(out, sample->json, strlen(sample->json), sample->key, err);
        if (status != PNB_OK || json_is_object(*out))
            return status;
        json_decref(*out);
    }
    *out = json_object();
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, 64);
}

/* Captions as they are read, whatever file they came from. */
static void put_texts(json_t *record, const json_t *donor, const pnb_sample *texts)
{
    static const char *const beside[] = {"caption_ids", "template_captions", "noise"};
    if (texts->n_texts == 0)
        return;
    json_t *all = json_array(), *levels = json_array();
    for (size_t k = 0; k < texts->n_texts; k++) {
        json_array_append_new(all, json_string(texts->texts[k]));
        json_array_append_new(levels, json_integer(texts->levels != NULL ? texts->levels[k] : -1));
    }
    json_object_set_new(record, "caption", json_string(texts->texts[texts->n_texts - 1]));
    json_object_set_new(record, "captions", all);
    json_object_set_new(record, "levels", levels);
    for (size_t i = 0; i < PNB_COUNT(beside); i++) {
        json_t *value = json_object_get(donor, beside[i]);
        if (value != NULL)
            json_object_set(record, beside[i], value);
        else
            json_object_del(record, beside[i]);
    }
}

static pnb_status make_record(const builder *b, size_t i, const pnb_sample *own,
                              const pnb_sample *texts, double dose, pnb__buf *out, pnb_error *err)
{
    json_t *record = NULL, *donor = NULL;
    pnb_status status;
    PNB_TRY(load_record(own, &record, err));
    PNB_TRY(load_record(texts, &donor, err));
    put_texts(record, donor, texts);
    if (b->opts->change != PNB_CHANGE_NONE) {
        json_object_set_new(record, "dose", json_real(dose));
        json_object_set_new(record, "dose_kind", json_string(pnb_change_name(b->opts->change)));
    }
    if (b->opts->swap_share > 0.0) {
        json_object_set_new(record, "swapped", json_integer(b->texts_of[i] != i));
        json_object_set_new(record, "captions_of", json_string(texts->key));
    }
    pnb__json_append_value(out, record);
    pnb__buf_putc(out, '\n');
    status = pnb__buf_check(out, err);
done:
    json_decref(record);
    json_decref(donor);
    return status;
}

/* ---- pictures ---- */

/* Another sample than i, drawn; pictures that cannot be read are somebody else's failure. */
static size_t other_than(size_t i, size_t n, pnb__rng *rng)
{
    size_t other = n < 2 ? i : (size_t)pnb__rng_below(rng, n - 1);
    return other + (n >= 2 && other >= i);
}

static pnb_status make_image(const builder *b, size_t i, double *dose, pnb_image *out,
                             pnb_error *err)
{
    pnb_image other = {0};
    pnb__rng rng;
    pnb_status status;
    pnb__rng_init(&rng, b->opts->seed, FIRST_DOSE_STREAM + i);
    *dose = b->opts->change == PNB_CHANGE_NONE ? 0.0 : b->opts->max_dose * pnb__rng_uniform(&rng);
    PNB_TRY(pnb_dataset_image(b->data, i, out, err));
    if (b->opts->change == PNB_CHANGE_MIX)
        PNB_TRY(pnb_dataset_image(b->data, other_than(i, b->n, &rng), &other, err));
    status = pnb__dose_apply(out, b->opts->change, *dose, &rng, &other, err);
done:
    pnb_image_free(&other);
    return status;
}

/* ---- one sample ---- */

/* The last part of a key is its name in the shard. */
static const char *key_of(const pnb_sample *sample)
{
    const char *slash = strrchr(sample->key, '/');
    return slash != NULL ? slash + 1 : sample->key;
}

/* What was made of a sample, before anything of it is written. */
typedef struct made {
    pnb_sample own, texts;
    pnb_image image;
    pnb__buf record;
    unsigned char *png;
    size_t n_png;
} made;

static void made_reset(made *m)
{
    pnb_sample_reset(&m->own);
    pnb_sample_reset(&m->texts);
    pnb_image_free(&m->image);
    pnb__buf_reset(&m->record);
    pnb_image_bytes_free(m->png);
}

static pnb_status make_sample(const builder *b, size_t i, made *m, pnb_error *err)
{
    double dose;
    pnb_status status;
    PNB_TRY(pnb_dataset_get(b->data, i, &m->own, err));
    PNB_TRY(pnb_dataset_get(b->data, b->texts_of[i], &m->texts, err));
    PNB_TRY(make_image(b, i, &dose, &m->image, err));
    PNB_TRY(make_record(b, i, &m->own, &m->texts, dose, &m->record, err));
    status = pnb_image_encode_png(&m->image, &m->png, &m->n_png, err);
done:
    return status;
}

static pnb_status add_sample(builder *b, size_t i, pnb_error *err)
{
    made m = {0};
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status = make_sample(b, i, &m, &why);
    if (status == PNB_OK) {
        const pnb__synth_item item = {.key = key_of(&m.own),
                                      .name = m.own.name != NULL ? m.own.name : "",
                                      .group = m.own.group != NULL ? m.own.group : "",
                                      .subgroup = m.own.subgroup != NULL ? m.own.subgroup : "",
                                      .json = m.record.data,
                                      .png = m.png,
                                      .n_png = m.n_png};
        status = pnb__split_add(&b->split, &item, err);
        b->stats.n_swapped += b->texts_of[i] != i;
    } else if (status == PNB_NOMEM) {
        status = pnb__fail(err, status, "%s", why.text);
    } else { /* this sample's fault: the set goes on */
        char number[32];
        snprintf(number, sizeof number, "sample %zu", i);
        b->stats.n_skipped++;
        if (b->opts->skipped != NULL)
            b->opts->skipped(b->opts->user, m.own.key != NULL ? m.own.key : number, why.text);
        status = PNB_OK;
    }
    made_reset(&m);
    return status;
}

/* ---- the set ---- */

static pnb_status describe(const builder *b, const char *source, pnb__buf *out, pnb_error *err)
{
    const pnb_corrupt_opts *o = b->opts;
    pnb__json_put(out,
                  "{\"kind\": \"corrupt\", \"version\": 1, \"source\": %s, \"n_samples\": %zu, "
                  "\"change\": %s, \"max_dose\": %f, \"swap_share\": %f, \"split\": %s, "
                  "\"shard_size\": %zu, \"seed\": ",
                  source, b->n, pnb_change_name(o->change), o->max_dose, o->swap_share, o->split,
                  o->shard_size);
    pnb__buf_printf(out, "\"%llu\"}", (unsigned long long)o->seed);
    return pnb__buf_check(out, err);
}

static pnb_status make_set(builder *b, pnb_synth_stats *counts, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(draw_swaps(b, err));
    PNB_TRY(pnb__split_open(&b->split, &b->out, b->opts->split, b->opts->shard_size, err));
    for (size_t i = 0; i < b->n; i++)
        PNB_TRY(add_sample(b, i, err));
    if (b->split.n_items == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "corrupt: none of %zu samples could be read", b->n));
    counts->n_train = b->split.n_items;
    PNB_TRY(pnb__split_close(&b->split, err));
    status = pnb__synth_commit(&b->out, counts, err);
done:
    return status;
}

pnb_status pnb_corrupt_build(const pnb_dataset *data, const char *source, const char *dir,
                             const pnb_corrupt_opts *opts, pnb_corrupt_stats *stats, pnb_error *err)
{
    pnb_corrupt_opts o = opts == NULL ? pnb_corrupt_opts_default() : *opts;
    builder b = {.data = data, .opts = &o, .n = pnb_dataset_size(data)};
    pnb_synth_stats counts = {0};
    pnb__buf options = {0};
    pnb_status status;
    PNB_TRY(check_opts(&o, err));
    PNB_TRY(describe(&b, source, &options, err));
    PNB_TRY(pnb__synth_begin(&b.out, dir, options.data, &counts, err));
    if (!counts.reused)
        PNB_TRY(make_set(&b, &counts, err));
    b.stats.reused = counts.reused;
    b.stats.n_images = counts.n_train;
    if (stats != NULL)
        *stats = b.stats;
done:
    pnb__split_abort(&b.split);
    pnb__synth_abort(&b.out);
    pnb__buf_reset(&options);
    pnb__free(b.texts_of);
    return status;
}
