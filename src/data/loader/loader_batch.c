/* Prepares one batch: for each place the sample's record, a caption, its tokens and the augmented
 * picture. Every draw is keyed by (seed, epoch, sample) or (seed, epoch, place), so the batch is a
 * function of the job alone. A sample that cannot be read is replaced by another drawn from (seed,
 * epoch, place, attempt) and reported. */
#include <string.h>

#include "base/grow.h"
#include "data/loader/loader_internal.h"
#include "data/sources/dataset_internal.h"

enum { MAX_ATTEMPTS = 64, N_LEVELS = 4 };

/* Purposes of draws: part of the key, so that they are independent. */
enum { DRAW_TEXT = 0x63617074, DRAW_REPLACEMENT = 0x7265706c, DRAW_NEGATIVE = 0x6e656761 };

size_t pnb__texts_per_image(const pnb_loader_opts *opts)
{
    return opts->texts == PNB_TEXT_ALL_LEVELS ? N_LEVELS : 1;
}

size_t pnb__first_negative(const pnb_loader_opts *opts)
{
    return opts->batch_size * pnb__texts_per_image(opts);
}

static void draw_init(pnb__rng *rng, const pnb_loader_opts *opts, uint64_t epoch, uint64_t purpose,
                      uint64_t stream)
{
    uint64_t key[2] = {opts->seed, epoch};
    pnb__rng_init(rng, pnb__hash_bytes(key, sizeof key, purpose), stream);
}

/* ---- room ---------------------------------------------------------------------------------- */

pnb_status pnb__batch_room_create(pnb__batch_room *room, const pnb_loader_opts *opts,
                                  pnb_error *err)
{
    size_t n = opts->batch_size, n_texts = pnb__first_negative(opts) + n * opts->n_negatives;
    size_t n_pixels = n * 3 * (size_t)opts->preprocess.width * (size_t)opts->preprocess.height;
    size_t n_tokens = opts->tokenizer ? n_texts * (size_t)opts->context_length : 0;
    *room = (pnb__batch_room){0};
    room->pixels = pnb__alloc_array(n_pixels, sizeof *room->pixels);
    room->tokens = n_tokens ? pnb__alloc_array(n_tokens, sizeof *room->tokens) : NULL;
    room->levels = pnb__alloc_array(n_texts, sizeof *room->levels);
    room->picks = pnb__alloc_array(n_texts, sizeof *room->picks);
    room->samples = pnb__alloc_array(n, sizeof *room->samples);
    room->rows = pnb__alloc_array(n_texts, sizeof *room->rows);
    room->text_pointers = pnb__alloc_array(n_texts, sizeof *room->text_pointers);
    if (!room->pixels || (n_tokens && !room->tokens) || !room->levels || !room->picks ||
        !room->samples || !room->rows || !room->text_pointers) {
        pnb__batch_room_free(room);
        return pnb__fail_nomem(err, n_pixels * sizeof *room->pixels);
    }
    return PNB_OK;
}

void pnb__batch_room_free(pnb__batch_room *room)
{
    pnb__free(room->pixels);
    pnb__free(room->tokens);
    pnb__free(room->levels);
    pnb__free(room->picks);
    pnb__free(room->samples);
    pnb__free(room->rows);
    pnb__free(room->text_pointers);
    pnb__buf_reset(&room->texts);
    pnb__skips_free(&room->skips);
    *room = (pnb__batch_room){0};
}

void pnb__skips_free(pnb__skips *skips)
{
    for (size_t i = 0; i < skips->n; i++)
        pnb__free(skips->items[i].why);
    pnb__free(skips->items);
    *skips = (pnb__skips){0};
}

pnb_status pnb__skips_add(pnb__skips *skips, int64_t sample, char *why_take, pnb_error *err)
{
    for (size_t i = 0; i < skips->n; i++)
        if (skips->items[i].sample == sample) {
            pnb__free(why_take);
            return PNB_OK;
        }
    pnb_status status = PNB_PUSH(skips->items, skips->n, err, (pnb__skip){sample, why_take});
    if (status != PNB_OK)
        pnb__free(why_take);
    return status;
}

/* ---- captions ------------------------------------------------------------------------------ */

/* How many captions have this level, and the pick-th of them. */
static size_t count_level(const pnb_sample *s, int level)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_texts; i++)
        n += s->levels[i] == level;
    return n;
}

static size_t pick_of_level(const pnb_sample *s, int level, size_t n, pnb__rng *rng)
{
    size_t pick = (size_t)pnb__rng_below(rng, n);
    for (size_t i = 0; i < s->n_texts; i++)
        if (s->levels[i] == level && pick-- == 0)
            return i;
    return 0;
}

/* A level uniformly among those the sample has, then a caption of it. */
static size_t pick_by_level(const pnb_sample *s, int level, pnb__rng *rng)
{
    size_t n_of_level = level >= 0 ? count_level(s, level) : 0, n_levels = 0;
    if (n_of_level > 0)
        return pick_of_level(s, level, n_of_level, rng);
    for (size_t i = 0; i < s->n_texts; i++) { /* count each level at its first caption */
        bool is_first = true;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = s->levels[j] != s->levels[i];
        n_levels += is_first;
    }
    size_t wanted = (size_t)pnb__rng_below(rng, n_levels);
    for (size_t i = 0; i < s->n_texts; i++) {
        bool is_first = true;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = s->levels[j] != s->levels[i];
        if (is_first && wanted-- == 0)
            return pick_of_level(s, s->levels[i], count_level(s, s->levels[i]), rng);
    }
    return 0;
}

/* The level itself or, where the sample lacks it, the nearest one it has; lower first. */
static size_t pick_near_level(const pnb_sample *s, int level, pnb__rng *rng)
{
    int best = s->levels[0];
    for (size_t i = 0; i < s->n_texts; i++) {
        int distance = PNB_MAX(s->levels[i], level) - PNB_MIN(s->levels[i], level);
        int best_distance = PNB_MAX(best, level) - PNB_MIN(best, level);
        if (distance < best_distance || (distance == best_distance && s->levels[i] < best))
            best = s->levels[i];
    }
    return pick_of_level(s, best, count_level(s, best), rng);
}

static size_t pick_text(const pnb_sample *s, const pnb_loader_opts *opts, int text, pnb__rng *rng)
{
    switch (opts->texts) {
    case PNB_TEXT_LEVEL:
        return pick_by_level(s, opts->level, rng);
    case PNB_TEXT_ANY:
        return (size_t)pnb__rng_below(rng, s->n_texts);
    case PNB_TEXT_ALL_LEVELS:
        return pick_near_level(s, text, rng);
    default:
        return 0;
    }
}

void pnb__template_fill(pnb__buf *b, const char *form, const char *text)
{
    const char *hole = strstr(form, "{c}");
    size_t n_hole = 3;
    if (!hole) {
        hole = strstr(form, "{}");
        n_hole = 2;
    }
    if (!hole) { /* checked when the loader was created */
        pnb__buf_puts(b, text);
        return;
    }
    pnb__buf_append(b, form, (size_t)(hole - form));
    pnb__buf_puts(b, text);
    pnb__buf_puts(b, hole + n_hole);
}

/* Appends the caption, in a template when the draw says so. */
static void append_text(pnb__buf *b, const char *text, const pnb_loader_opts *opts, pnb__rng *rng)
{
    bool in_template = pnb__rng_uniform(rng) < opts->template_share && opts->n_templates > 0;
    if (in_template)
        pnb__template_fill(b, opts->templates[pnb__rng_below(rng, opts->n_templates)], text);
    else
        pnb__buf_puts(b, text);
}

static pnb_status fill_texts(const pnb_loader_opts *opts, const pnb_sample *s, uint64_t epoch,
                             int64_t sample, size_t place, pnb__batch_room *room)
{
    size_t n_texts = pnb__texts_per_image(opts);
    pnb__rng rng;
    draw_init(&rng, opts, epoch, DRAW_TEXT, (uint64_t)sample);
    for (size_t t = 0; t < n_texts; t++) {
        size_t row = place * n_texts + t, pick = pick_text(s, opts, (int)t, &rng);
        size_t offset = room->texts.size;
        append_text(&room->texts, s->texts[pick], opts, &rng);
        if (room->texts.failed)
            return pnb__fail_nomem(&room->error, room->texts.size);
        room->rows[row] = (pnb__text_row){offset, room->texts.size - offset};
        pnb__buf_putc(&room->texts, 0);
        room->levels[row] = s->levels[pick];
        room->picks[row] = (int32_t)pick;
    }
    return PNB_OK;
}

/* n_negatives of a sample's from one that is drawn on, each once where there are as many. Never in
 * a template: a negative is made to differ from its caption by a word. */
static pnb_status fill_negatives(const pnb_loader_opts *opts, const pnb_sample *s, uint64_t epoch,
                                 int64_t sample, size_t place, pnb__batch_room *room)
{
    size_t n = s->n_negatives;
    pnb__rng rng;
    draw_init(&rng, opts, epoch, DRAW_NEGATIVE, (uint64_t)sample);
    size_t pick = opts->n_negatives > 0 ? (size_t)pnb__rng_below(&rng, n) : 0;
    for (size_t k = 0; k < opts->n_negatives; k++) {
        size_t row = pnb__first_negative(opts) + place * opts->n_negatives + k;
        size_t offset = room->texts.size;
        pnb__buf_puts(&room->texts, s->negatives[(pick + k) % n]);
        if (room->texts.failed)
            return pnb__fail_nomem(&room->error, room->texts.size);
        room->rows[row] = (pnb__text_row){offset, room->texts.size - offset};
        pnb__buf_putc(&room->texts, 0);
    }
    return PNB_OK;
}

/* n rows from `first` on, after all texts are in the buffer, which may have moved while growing. */
static pnb_status tokenise(const pnb_loader_opts *opts, pnb__batch_room *room, size_t first,
                           size_t n)
{
    pnb_batch *b = &room->batch;
    if (room->texts.failed)
        return pnb__fail_nomem(&room->error, room->texts.size);
    for (size_t row = first; row < first + n; row++) {
        const pnb__text_row *r = &room->rows[row];
        pnb_token_count count = {0};
        room->text_pointers[row] = room->texts.data + r->offset;
        if (!opts->tokenizer)
            continue;
        pnb_status status = pnb_tokenizer_encode(
            opts->tokenizer, room->text_pointers[row], r->n_bytes, opts->context_length,
            room->tokens + row * (size_t)opts->context_length, &count, &room->error);
        if (status != PNB_OK)
            return status;
        b->n_truncated += count.truncated;
    }
    return PNB_OK;
}

/* ---- pictures ------------------------------------------------------------------------------ */

static bool cache_find(pnb__image_cache *cache, size_t i, pnb_image *out)
{
    if (cache->limit_bytes == 0)
        return false;
    pthread_mutex_lock(&cache->lock);
    *out = cache->images[i];
    pthread_mutex_unlock(&cache->lock);
    return out->pixels != NULL;
}

/* Takes the picture over if it fits and nobody was faster; tells whether it did. */
static bool cache_offer(pnb__image_cache *cache, size_t i, pnb_image *image)
{
    size_t bytes = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    bool is_taken = false;
    if (cache->limit_bytes == 0)
        return false;
    pthread_mutex_lock(&cache->lock);
    if (!cache->images[i].pixels && bytes <= cache->limit_bytes - cache->used_bytes) {
        pnb_image_release_budget(image);
        cache->images[i] = *image;
        cache->used_bytes += bytes;
        is_taken = true;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_taken;
}

/* As open_clip does: files on disk come in their own mode to pipelines that resize before they
 * convert, members of tar shards as RGB (its loader decodes "pilrgb"). */
static bool wants_own_mode(const pnb_loader_opts *opts, const pnb_sample *s)
{
    return opts->preprocess.resize_first && s->image_bytes == NULL;
}

static pnb_status fill_image(const pnb_dataset *ds, const pnb_loader_opts *opts,
                             pnb__image_cache *cache, const pnb_sample *s, const uint64_t key[3],
                             float *out, pnb_error *err)
{
    pnb_image image = {0};
    pnb_status status = PNB_OK;
    bool is_cached = cache_find(cache, (size_t)key[2], &image);
    if (!is_cached) {
        pnb_image_opts as = pnb_image_opts_default();
        as.native = wants_own_mode(opts, s);
        as.max_pixels = opts->max_image_pixels;
        as.budget = cache->budget;
        status = pnb_dataset_image_as(ds, (size_t)key[2], &as, &image, err);
        if (status != PNB_OK)
            return status;
        is_cached = cache_offer(cache, (size_t)key[2], &image);
    }
    status = pnb_augment_apply(&opts->augment, &opts->preprocess, &image, s->group, key, out, err);
    if (!is_cached)
        pnb_image_free(&image);
    return status;
}

/* ---- batch --------------------------------------------------------------------------------- */

/* Errors of one sample, which another sample can stand in for; the rest is ours or the machine's.
 */
static bool is_sample_error(pnb_status status)
{
    return status == PNB_FORMAT || status == PNB_IO || status == PNB_NOT_FOUND ||
           status == PNB_LIMIT || status == PNB_UNSUPPORTED;
}

/* Tries to put sample `i` at `place`; its error goes to `why`. */
static pnb_status fill_place(const pnb_dataset *ds, const pnb_loader_opts *opts,
                             pnb__image_cache *cache, const uint64_t key[3], size_t place,
                             pnb__batch_room *room, pnb_error *why)
{
    size_t plane = (size_t)opts->preprocess.width * (size_t)opts->preprocess.height;
    pnb_sample s = {0};
    pnb_status status = PNB_OK;
    PNB_TRY(pnb__dataset_record(ds, (size_t)key[2], &s, why));
    if (s.n_texts == 0) {
        status = pnb__fail(why, PNB_FORMAT, "sample %s has no caption", s.key);
        goto done;
    }
    if (opts->n_negatives > 0 && s.n_negatives == 0) {
        status = pnb__fail(why, PNB_FORMAT, "sample %s has no hard negative", s.key);
        goto done;
    }
    PNB_TRY(fill_image(ds, opts, cache, &s, key, room->pixels + place * 3 * plane, why));
    PNB_TRY(fill_texts(opts, &s, key[1], (int64_t)key[2], place, room));
    PNB_TRY(fill_negatives(opts, &s, key[1], (int64_t)key[2], place, room));
    room->samples[place] = (int64_t)key[2];
done:
    pnb_sample_reset(&s);
    return status;
}

static pnb_status fill_or_replace(const pnb_dataset *ds, const pnb_loader_opts *opts,
                                  pnb__image_cache *cache, const pnb__batch_job *job, size_t place,
                                  pnb__batch_room *room)
{
    pnb_error why = PNB_ERROR_INIT;
    uint64_t key[3] = {opts->seed, job->epoch, job->samples[place]};
    pnb__rng rng;
    draw_init(&rng, opts, job->epoch, DRAW_REPLACEMENT, job->batch * opts->batch_size + place);
    for (int attempt = 0;; attempt++) {
        pnb_error_reset(&why);
        pnb_status status = fill_place(ds, opts, cache, key, place, room, &why);
        if (status == PNB_OK)
            return status;
        if (!is_sample_error(status) || attempt == MAX_ATTEMPTS)
            return pnb__fail(&room->error, status, "%s", why.text);
        char *text = pnb__strdup(why.text);
        if (!text)
            return pnb__fail_nomem(&room->error, sizeof why.text);
        status = pnb__skips_add(&room->skips, (int64_t)key[2], text, &room->error);
        if (status != PNB_OK)
            return status;
        room->batch.n_replaced += attempt == 0;
        key[2] = job->classes != NULL ? pnb__class_other(job->classes, job->samples[place], &rng)
                                      : pnb__rng_below(&rng, pnb_dataset_size(ds));
    }
}

void pnb__batch_prepare(const pnb_dataset *ds, const pnb_loader_opts *opts, pnb__image_cache *cache,
                        const pnb__batch_job *job, pnb__batch_room *room)
{
    room->batch = (pnb_batch){.epoch = job->epoch,
                              .index = job->batch,
                              .n = job->n,
                              .n_texts = job->n * pnb__texts_per_image(opts),
                              .width = opts->preprocess.width,
                              .height = opts->preprocess.height,
                              .context_length = opts->context_length,
                              .pixels = room->pixels,
                              .tokens = room->tokens,
                              .levels = room->levels,
                              .samples = room->samples,
                              .picks = room->picks,
                              .texts = room->text_pointers};
    pnb_error_reset(&room->error);
    pnb__skips_free(&room->skips);
    room->texts.size = 0;
    room->texts.failed = false;
    room->status = PNB_OK;
    for (size_t place = 0; place < job->n && room->status == PNB_OK; place++)
        room->status = fill_or_replace(ds, opts, cache, job, place, room);
    if (room->status == PNB_OK)
        room->status = tokenise(opts, room, 0, room->batch.n_texts);
    if (room->status == PNB_OK && opts->n_negatives > 0)
        room->status = tokenise(opts, room, pnb__first_negative(opts), job->n * opts->n_negatives);
    if (opts->n_negatives > 0 && room->tokens != NULL)
        room->batch.negatives =
            room->tokens + pnb__first_negative(opts) * (size_t)opts->context_length;
}
