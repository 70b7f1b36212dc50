/* Reads, prepares and encodes one batch.
 *
 * Pictures are read ahead by threads of their own (embed_ahead.c) while the encoder works;
 * tokenising is so fast that it runs between two batches, on the encoder's threads. A batch is
 * filled up past unreadable inputs, so that the encoder sees one batch size until the very end and
 * plans once. Masked copies draw from (seed, input): a caption loses the same words whatever the
 * batch; the patches kept are shared by a batch, because the image tower takes one list for all. */
#include "encode/embed_batch.h"

#include <string.h>

#include "base/base.h"

enum { STREAM_TEXT_MASK = 0x7e47, STREAM_PATCHES = 0x9a7c };

static size_t n_pixels(const pnb__embedder *e)
{
    return 3 * e->info->vision.image_width * e->info->vision.image_height;
}

pnb_status pnb__embed_batch_init(pnb__embed_batch *b, pnb__embedder *encoder,
                                 const pnb__pictures *pictures, const pnb__captions *captions,
                                 const pnb__embed_opts *opts, uint64_t seed, pnb_error *err)
{
    size_t total = pictures != NULL ? pnb__pictures_count(pictures) : captions->n;
    size_t n = PNB_MIN(opts->batch_size, PNB_MAX(total, (size_t)1));
    *b = (pnb__embed_batch){.pictures = pictures,
                            .captions = captions,
                            .encoder = encoder,
                            .opts = opts,
                            .seed = seed,
                            .capacity = n};
    b->max_pixels =
        encoder->max_image_pixels > 0 ? encoder->max_image_pixels : PNB_IMAGE_DEFAULT_PIXELS;
    if (pictures != NULL) {
        pnb_status status = pnb_image_budget_create(&b->budget, b->max_pixels, err);
        if (status != PNB_OK)
            return status;
    }
    b->input = pnb__alloc_array(n, sizeof *b->input);
    b->ok = pnb__alloc_array(n, sizeof *b->ok);
    b->cut = pnb__alloc_zero(n, sizeof *b->cut);
    b->why = pnb__alloc_zero(n, sizeof *b->why);
    if (pictures != NULL)
        b->pixels = pnb__alloc_array(n, n_pixels(encoder) * sizeof *b->pixels);
    else
        b->tokens = pnb__alloc_array(n, encoder->info->text.context_length * sizeof *b->tokens);
    if (opts->masked && pictures != NULL)
        b->kept = pnb__alloc_array(encoder->info->vision.n_patches, sizeof *b->kept);
    bool missing = b->input == NULL || b->ok == NULL || b->cut == NULL || b->why == NULL ||
                   (b->pixels == NULL && b->tokens == NULL) ||
                   (opts->masked && pictures != NULL && b->kept == NULL);
    if (!missing)
        return PNB_OK;
    pnb__embed_batch_free(b);
    return pnb__fail_nomem(err, n * (pictures != NULL ? n_pixels(encoder) * sizeof(float) : 64));
}

void pnb__embed_batch_free(pnb__embed_batch *b)
{
    pnb__embed_ahead_free(b->ahead);
    pnb_image_budget_free(b->budget);
    pnb__free(b->input);
    pnb__free(b->ok);
    pnb__free(b->cut);
    pnb__free(b->why);
    pnb__free(b->pixels);
    pnb__free(b->tokens);
    pnb__free(b->kept);
    *b = (pnb__embed_batch){0};
}

/* ---- one input ---- */

/* pnb__embed_read_fn. Pipelines that resize before they convert to RGB need the file's own mode. */
static pnb_status read_picture(void *user, size_t input, float *pixels, pnb_error *err)
{
    const pnb__embed_batch *b = user;
    pnb_image image = {0};
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = b->encoder->preprocess.resize_first;
    opts.exif = b->opts->exif;
    opts.max_pixels = b->max_pixels;
    opts.budget = b->budget;
    if (b->stamps != NULL) /* before reading: one replaced meanwhile is told by the next run */
        b->stamps[input] = pnb__pictures_stamp(b->pictures, input);
    pnb_status status = pnb__pictures_load(b->pictures, input, &opts, &image, err);
    if (status == PNB_OK)
        status = pnb_preprocess_apply(&b->encoder->preprocess, &image, pixels, err);
    pnb_image_free(&image);
    return status;
}

/* Deletes each text token with probability mask_drop; at least one stays, as an empty caption says
 * nothing that could be included. */
static void delete_tokens(const pnb__embed_batch *b, size_t slot, const unsigned char *maskable,
                          size_t n_maskable)
{
    size_t n = b->encoder->info->text.context_length, to = 0;
    int32_t *ids = b->tokens + slot * n;
    int32_t pad = pnb_tokenizer_pad_id(b->encoder->tokenizer);
    pnb__rng rng;
    pnb__rng_init(&rng, b->seed,
                  pnb__hash_bytes(&b->input[slot], sizeof(size_t), STREAM_TEXT_MASK));
    size_t spared = n_maskable > 0 ? pnb__rng_below(&rng, n_maskable) : 0, seen = 0;
    for (size_t t = 0; t < n; t++) {
        bool drop = false;
        if (maskable[t]) {
            drop = pnb__rng_uniform(&rng) < b->opts->mask_drop && seen != spared;
            seen++;
        }
        if (!drop)
            ids[to++] = ids[t];
    }
    for (; to < n; to++)
        ids[to] = pad >= 0 ? pad : 0;
}

static pnb_status read_caption(pnb__embed_batch *b, size_t slot, pnb_error *err)
{
    const char *text = b->captions->items[b->input[slot]].text;
    size_t n = b->encoder->info->text.context_length;
    int32_t *ids = b->tokens + slot * n;
    pnb_token_count count = {0};
    pnb_status status =
        pnb_tokenizer_encode(b->encoder->tokenizer, text, strlen(text), (int)n, ids, &count, err);
    b->cut[slot] = count.truncated;
    if (status != PNB_OK || !b->opts->masked)
        return status;
    unsigned char *maskable = pnb__alloc_zero(n, 1);
    if (maskable == NULL)
        return pnb__fail_nomem(err, n);
    size_t n_maskable = pnb_tokenizer_text_mask(b->encoder->tokenizer, ids, n, maskable);
    delete_tokens(b, slot, maskable, n_maskable);
    pnb__free(maskable);
    return PNB_OK;
}

/* pnb__range_fn: inputs first .. of one batch, one slot each. */
typedef struct read_job {
    pnb__embed_batch *batch;
    size_t first_slot;
} read_job;

static void read_range(void *user, size_t begin, size_t end, int thread)
{
    read_job *job = user;
    pnb__embed_batch *b = job->batch;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        size_t slot = job->first_slot + i;
        pnb_error_reset(&b->why[slot]);
        b->ok[slot] = read_caption(b, slot, &b->why[slot]) == PNB_OK;
    }
}

/* ---- the batch ---- */

static void move_row(pnb__embed_batch *b, size_t to, size_t from)
{
    size_t width = b->encoder->info->text.context_length;
    if (to == from)
        return;
    b->input[to] = b->input[from];
    b->cut[to] = b->cut[from];
    memcpy(b->tokens + to * width, b->tokens + from * width, width * sizeof *b->tokens);
}

/* The first n_kept of a shuffled list, in ascending order. */
static void draw_patches(pnb__embed_batch *b)
{
    size_t n = b->encoder->info->vision.n_patches, left;
    pnb__rng rng;
    b->n_kept = PNB_MAX((size_t)((double)n * b->opts->mask_keep), (size_t)1);
    pnb__rng_init(&rng, b->seed, pnb__hash_bytes(&b->input[0], sizeof(size_t), STREAM_PATCHES));
    left = b->n_kept; /* selection sampling: ascending without sorting */
    for (size_t i = 0, k = 0; i < n && left > 0; i++)
        if (pnb__rng_below(&rng, n - i) < left) {
            b->kept[k++] = (int32_t)i;
            left--;
        }
}

/* What was not read is left out, unless memory ran out: then nothing more can be trusted. */
static pnb_status leave_out(const pnb_error *why, size_t input, pnb__embed_skip_fn skip, void *user,
                            pnb_error *err)
{
    if (why->status == PNB_NOMEM)
        return pnb__fail(err, PNB_NOMEM, "%s", why->text);
    return skip(user, input, why->text);
}

static pnb_status fill_captions(pnb__embed_batch *b, const pnb_ctx *ctx, size_t *next, size_t end,
                                pnb__embed_skip_fn skip, void *user, pnb_error *err)
{
    while (b->n < b->capacity && *next < end) {
        size_t n = PNB_MIN(b->capacity - b->n, end - *next);
        read_job job = {b, b->n};
        for (size_t i = 0; i < n; i++)
            b->input[b->n + i] = *next + i;
        pnb__parallel_for(ctx, n, 1, read_range, &job);
        *next += n;
        for (size_t i = job.first_slot; i < job.first_slot + n; i++) {
            if (b->ok[i]) {
                move_row(b, b->n++, i);
                continue;
            }
            pnb_status status = leave_out(&b->why[i], b->input[i], skip, user, err);
            if (status != PNB_OK)
                return status;
        }
    }
    return PNB_OK;
}

static pnb_status fill_pictures(pnb__embed_batch *b, const pnb_ctx *ctx, size_t *next, size_t end,
                                pnb__embed_skip_fn skip, void *user, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (b->ahead == NULL) {
        const pnb__embed_ahead_opts opts = {.read = read_picture,
                                            .user = b,
                                            .first = *next,
                                            .end = end,
                                            .row_values = n_pixels(b->encoder),
                                            .n_rows = PNB_MIN(2 * b->capacity, end - *next),
                                            .n_threads = ctx->n_threads};
        status = pnb__embed_ahead_start(&b->ahead, &opts, err);
    }
    while (status == PNB_OK && b->n < b->capacity) {
        pnb_error *why = &b->why[b->n];
        float *row = b->pixels + b->n * n_pixels(b->encoder);
        if (!pnb__embed_ahead_next(b->ahead, &b->input[b->n], row, why))
            break;
        (*next)++;
        if (why->status == PNB_OK)
            b->n++;
        else
            status = leave_out(why, b->input[b->n], skip, user, err);
    }
    return status;
}

pnb_status pnb__embed_batch_fill(pnb__embed_batch *b, const pnb_ctx *ctx, size_t *next, size_t end,
                                 pnb__embed_skip_fn skip, void *user, pnb_error *err)
{
    b->n = 0;
    if (*next >= end)
        return PNB_OK;
    pnb_status status = b->pictures != NULL ? fill_pictures(b, ctx, next, end, skip, user, err)
                                            : fill_captions(b, ctx, next, end, skip, user, err);
    if (status == PNB_OK && b->kept != NULL && b->n > 0)
        draw_patches(b);
    return status;
}

pnb_status pnb__embed_batch_encode(pnb__embed_batch *b, float *mean, float *log_var, pnb_error *err)
{
    pnb_encode_out out = {.mean = mean, .log_var = log_var};
    pnb_model *model = b->encoder->model;
    if (b->tokens != NULL)
        return pnb_model_encode_text(model, b->tokens, b->n, b->encoder->info->text.context_length,
                                     &out, err);
    if (b->kept != NULL)
        return pnb_model_encode_image_kept(model, b->pixels, b->n, b->kept, b->n_kept, &out, err);
    return pnb_model_encode_image(model, b->pixels, b->n, &out, err);
}
