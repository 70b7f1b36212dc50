/* Reads, prepares and encodes one batch.
 *
 * Pictures are read ahead by threads of their own (embed_ahead.c) while the encoder works;
 * tokenising is so fast that it runs between two batches, on the encoder's threads, and so are rows
 * that are ready. A batch is so many inputs of the list, whichever of them can be read, so that
 * several processes cut the list alike; in place of what cannot be read a copy of another row is
 * encoded and dropped: the encoder sees one batch size until the very end and plans once. Masked
 * copies draw from (seed, input): a caption loses the same words whatever the batch; the patches
 * kept are shared by a batch, because the image tower takes one list for all. */
#include "encode/job/embed_batch.h"

#include <string.h>

#include "adapt/adapter.h"
#include "encode/job/embed_passes.h"
#include "models/model.h"

enum { STREAM_TEXT_MASK = 0x7e47, STREAM_PATCHES = 0x9a7c };

static size_t width_of(const pnb_encoder *e, const pnb__embed_source *source)
{
    if (!source->is_text)
        return 3 * e->info->vision.image_width * e->info->vision.image_height;
    return source->n_tokens > 0 ? source->n_tokens : e->info->text.context_length;
}

/* Floats or ids of an input: of all its passes, one behind the other. */
static size_t stride_of(const pnb__embed_batch *b)
{
    return b->width * PNB_MAX(b->opts->ttda, (size_t)1);
}

/* False: out of memory. */
static bool allocate(pnb__embed_batch *b)
{
    size_t n = b->capacity;
    bool is_masked = b->opts->masked && !b->source->is_text;
    b->input = pnb__alloc_array(n, sizeof *b->input);
    b->cut = pnb__alloc_zero(n, sizeof *b->cut);
    b->unknown = pnb__alloc_zero(n, sizeof *b->unknown);
    b->why = pnb__alloc_zero(n, sizeof *b->why);
    if (b->source->is_text)
        b->tokens = pnb__alloc_array(n, stride_of(b) * sizeof *b->tokens);
    else
        b->pixels = pnb__alloc_array(n, stride_of(b) * sizeof *b->pixels);
    if (is_masked)
        b->kept = pnb__alloc_array(b->encoder->info->vision.n_patches, sizeof *b->kept);
    return b->input != NULL && b->cut != NULL && b->unknown != NULL && b->why != NULL &&
           (b->pixels != NULL || b->tokens != NULL) && (!is_masked || b->kept != NULL);
}

/* Sums over passes, room for one, and the rows of the tower. */
static pnb_status init_passes(pnb__embed_batch *b, pnb_error *err)
{
    size_t n = b->capacity, dim = b->encoder->info->embed_dim;
    pnb_status status = pnb__encoder_need_plain(b->encoder, "encoding augmented passes", err);
    if (status != PNB_OK)
        return status;
    if (b->source->row != NULL || b->opts->ttda < 2 || b->opts->masked || b->opts->activations ||
        b->opts->raw)
        return pnb__fail(err, PNB_ARG,
                         "augmented passes are 2 or more of pictures or captions that are read, "
                         "of unit length, neither masked nor before the projection");
    b->sums = pnb__alloc_array(n, 2 * dim * sizeof *b->sums);
    b->pass = pnb__alloc_array(n, b->width * sizeof(float));
    if (b->sums == NULL || b->pass == NULL)
        return pnb__fail_nomem(err, n * (2 * dim + b->width) * sizeof(double));
    return pnb__encoder_make_set(
        b->encoder, b->source->is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES, n, &b->raw, err);
}

pnb_status pnb__embed_batch_init(pnb__embed_batch *b, pnb_encoder *encoder,
                                 const pnb__embed_source *source, const pnb_encode_opts *opts,
                                 pnb_error *err)
{
    int64_t max_pixels = encoder->max_image_pixels;
    pnb_status status = PNB_OK;
    *b = (pnb__embed_batch){.source = source,
                            .encoder = encoder,
                            .opts = opts,
                            .width = width_of(encoder, source),
                            .max_pixels = max_pixels > 0 ? max_pixels : PNB_IMAGE_DEFAULT_PIXELS,
                            .capacity = PNB_MIN(opts->batch_size, PNB_MAX(source->n, (size_t)1))};
    if (opts->masked && !source->is_text && encoder->info->vision.n_patches == 0)
        PNB_TRY(pnb__fail(err, PNB_UNSUPPORTED,
                          "%s: its image tower sees no patches, so none can be masked",
                          encoder->name));
    if (opts->ttda > 0)
        PNB_TRY(init_passes(b, err));
    if (source->image != NULL)
        PNB_TRY(pnb_image_budget_create(&b->budget, b->max_pixels, err));
    if (!allocate(b))
        PNB_TRY(pnb__fail_nomem(err, b->capacity * b->width * sizeof(float)));
    if (pnb__encoder_adapts(encoder, source->is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES))
        PNB_TRY(pnb__encoder_make_set(encoder,
                                      source->is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES,
                                      b->capacity, &b->raw, err));
    status = pnb__worker_take(&b->worker, &encoder->workers, err);
done:
    if (status != PNB_OK)
        pnb__embed_batch_free(b);
    return status;
}

void pnb__embed_batch_free(pnb__embed_batch *b)
{
    pnb__embed_ahead_free(b->ahead);
    if (b->worker != NULL)
        pnb__worker_give(b->worker, &b->encoder->workers);
    pnb_image_budget_free(b->budget);
    pnb_embeddings_free(b->raw);
    pnb__free(b->input);
    pnb__free(b->cut);
    pnb__free(b->unknown);
    pnb__free(b->why);
    pnb__free(b->pixels);
    pnb__free(b->tokens);
    pnb__free(b->kept);
    pnb__free(b->sums);
    pnb__free(b->pass);
    *b = (pnb__embed_batch){0};
}

/* ---- one input ---- */

/* pnb__embed_read_fn. Pipelines that resize before they convert to RGB need the file's own mode. */
static pnb_status read_image(void *user, size_t input, float *pixels, pnb_error *err)
{
    const pnb__embed_batch *b = user;
    pnb_image image = {0};
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = b->encoder->preprocess.resize_first;
    opts.exif = b->opts->exif;
    opts.max_pixels = b->max_pixels;
    opts.budget = b->budget;
    if (b->stamps != NULL) /* before reading: one replaced meanwhile is told by the next run */
        b->stamps[input] = b->source->stamp(b->source->user, input);
    pnb_status status = b->source->image(b->source->user, input, &opts, &image, err);
    if (status == PNB_OK && b->opts->ttda > 0)
        status = pnb__passes_image(&b->encoder->preprocess, &image, b->opts->seed, input,
                                   b->opts->ttda, pixels, err);
    else if (status == PNB_OK)
        status = pnb_preprocess_apply(&b->encoder->preprocess, &image, pixels, err);
    pnb_image_free(&image);
    return status;
}

/* Deletes each text token with probability mask_drop; at least one stays, as an empty caption says
 * nothing that could be included. */
static void delete_tokens(const pnb__embed_batch *b, size_t slot, const unsigned char *maskable,
                          size_t n_maskable)
{
    size_t n = b->width, to = 0;
    int32_t *ids = b->tokens + slot * n;
    int32_t pad = pnb_tokenizer_pad_id(b->encoder->tokenizer);
    pnb__rng rng;
    pnb__rng_init(&rng, b->opts->seed,
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

/* The captions of all passes. */
static pnb_status read_passes(pnb__embed_batch *b, size_t slot, pnb_error *err)
{
    const char *text = b->source->text(b->source->user, b->input[slot]);
    pnb_status status = PNB_OK;
    b->cut[slot] = b->unknown[slot] = false;
    for (size_t p = 0; p < b->opts->ttda && status == PNB_OK; p++) {
        pnb_token_count count = {0};
        char *left = pnb__passes_text(text, b->opts->seed, b->input[slot], p);
        if (left == NULL)
            return pnb__fail_nomem(err, strlen(text));
        status = pnb_tokenizer_encode(b->encoder->tokenizer, left, strlen(left), (int)b->width,
                                      b->tokens + slot * stride_of(b) + p * b->width, &count, err);
        b->cut[slot] |= count.truncated;
        b->unknown[slot] |= count.is_unknown;
        pnb__free(left);
    }
    return status;
}

static pnb_status read_text(pnb__embed_batch *b, size_t slot, pnb_error *err)
{
    if (b->opts->ttda > 0)
        return read_passes(b, slot, err);
    const char *text = b->source->text(b->source->user, b->input[slot]);
    size_t n = b->width;
    int32_t *ids = b->tokens + slot * n;
    pnb_token_count count = {0};
    pnb_status status =
        pnb_tokenizer_encode(b->encoder->tokenizer, text, strlen(text), (int)n, ids, &count, err);
    b->cut[slot] = count.truncated;
    b->unknown[slot] = count.is_unknown;
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

static void *row_at(const pnb__embed_batch *b, size_t slot)
{
    return b->tokens != NULL ? (void *)(b->tokens + slot * stride_of(b))
                             : (void *)(b->pixels + slot * stride_of(b));
}

/* pnb__range_fn: inputs of one batch, one slot each. */
static void read_range(void *user, size_t begin, size_t end, int thread)
{
    pnb__embed_batch *b = user;
    const pnb__embed_source *source = b->source;
    (void)thread;
    for (size_t slot = begin; slot < end; slot++) {
        pnb_error *why = &b->why[slot];
        pnb_error_reset(why);
        pnb_status status = source->text != NULL
                                ? read_text(b, slot, why)
                                : source->row(source->user, b->input[slot], row_at(b, slot), why);
        if (status != PNB_OK)
            pnb__fail(why, status, "cannot be read"); /* keeps a text that is there */
    }
}

/* ---- the batch ---- */

static void move_row(pnb__embed_batch *b, size_t to, size_t from)
{
    if (to == from)
        return;
    b->input[to] = b->input[from];
    b->cut[to] = b->cut[from];
    b->unknown[to] = b->unknown[from];
    memcpy(row_at(b, to), row_at(b, from), stride_of(b) * sizeof(float));
}

_Static_assert(sizeof(float) == sizeof(int32_t),
               "rows of pixels and of ids have values of one size");

/* The first n_kept of a shuffled list, in ascending order; `begin` is the batch's first input, read
 * or not. */
static void draw_patches(pnb__embed_batch *b, size_t begin)
{
    size_t n = b->encoder->info->vision.n_patches, left;
    pnb__rng rng;
    b->n_kept = PNB_MAX((size_t)((double)n * b->opts->mask_keep), (size_t)1);
    pnb__rng_init(&rng, b->opts->seed, pnb__hash_bytes(&begin, sizeof begin, STREAM_PATCHES));
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

/* Texts and ready rows. */
static pnb_status fill_now(pnb__embed_batch *b, const pnb_ctx *ctx, size_t begin, size_t n,
                           pnb__embed_skip_fn skip, void *user, pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        b->input[i] = begin + i;
    pnb__parallel_for(ctx, n, 1, read_range, b);
    for (size_t i = 0; i < n; i++) {
        if (b->why[i].status == PNB_OK) {
            move_row(b, b->n++, i);
            continue;
        }
        pnb_status status = leave_out(&b->why[i], b->input[i], skip, user, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* What is read ahead ends with the stretch; the next one has readers of its own. */
static pnb_status read_ahead(pnb__embed_batch *b, const pnb_ctx *ctx, size_t begin, size_t end,
                             pnb_error *err)
{
    if (b->ahead != NULL && b->ahead_at == begin && b->ahead_end == end)
        return PNB_OK;
    const pnb__embed_ahead_opts opts = {.read = read_image,
                                        .user = b,
                                        .first = begin,
                                        .end = end,
                                        .row_values = stride_of(b),
                                        .n_rows = PNB_MIN(2 * b->capacity, end - begin),
                                        .n_threads = ctx->n_threads};
    pnb__embed_ahead_free(b->ahead);
    b->ahead = NULL;
    b->ahead_end = end;
    return pnb__embed_ahead_start(&b->ahead, &opts, err);
}

static pnb_status fill_images(pnb__embed_batch *b, const pnb_ctx *ctx, size_t begin, size_t n,
                              size_t end, pnb__embed_skip_fn skip, void *user, pnb_error *err)
{
    pnb_status status = read_ahead(b, ctx, begin, end, err);
    b->ahead_at = begin + n;
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        pnb_error *why = &b->why[b->n];
        if (!pnb__embed_ahead_next(b->ahead, &b->input[b->n], row_at(b, b->n), why))
            break;
        if (why->status == PNB_OK)
            b->n++;
        else
            status = leave_out(why, b->input[b->n], skip, user, err);
    }
    return status;
}

pnb_status pnb__embed_batch_fill(pnb__embed_batch *b, size_t *next, size_t end,
                                 pnb__embed_skip_fn skip, void *user, pnb_error *err)
{
    const pnb_ctx *ctx = pnb__model_ctx(b->encoder->model);
    size_t begin = *next, n = PNB_MIN(b->capacity, end - begin);
    b->n = 0;
    if (n == 0)
        return PNB_OK;
    pnb_status status = b->source->image != NULL
                            ? fill_images(b, ctx, begin, n, end, skip, user, err)
                            : fill_now(b, ctx, begin, n, skip, user, err);
    *next = begin + n;
    b->n_run = b->n > 0 ? n : 0;
    for (size_t i = b->n; status == PNB_OK && i < b->n_run; i++)
        memcpy(row_at(b, i), row_at(b, 0), stride_of(b) * sizeof(float));
    if (status == PNB_OK && b->kept != NULL && b->n > 0)
        draw_patches(b, begin);
    return status;
}

/* Inputs ids or pixels, whichever the side has. */
static pnb_status run_tower(pnb__embed_batch *b, const int32_t *tokens, const float *pixels,
                            pnb_embeddings *set, size_t first, pnb_error *err)
{
    pnb_encode_out out = b->opts->activations
                             ? (pnb_encode_out){.activations = set->mean + first * set->dim}
                             : pnb__encode_rows(set, first);
    out.skip_normalize =
        b->opts->raw || pnb__encoder_keeps_lengths(
                            b->encoder, b->source->is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES);
    pnb__towers *towers = pnb__worker_towers(b->worker);
    pnb_model *model = b->encoder->model;
    if (tokens != NULL)
        return pnb__towers_encode_text(towers, model, tokens, b->n_run, b->width, &out, err);
    return pnb__towers_encode_image(towers, model, pixels, b->n_run, b->kept,
                                    b->kept != NULL ? b->n_kept : 0, &out, err);
}

static pnb_status run_passes(pnb__embed_batch *b, pnb_embeddings *set, size_t first, pnb_error *err)
{
    size_t n_bytes = b->width * sizeof(float);
    pnb_status status = PNB_OK;
    memset(b->sums, 0, 2 * b->n * set->dim * sizeof *b->sums);
    for (size_t p = 0; p < b->opts->ttda && status == PNB_OK; p++) {
        for (size_t i = 0; i < b->n_run; i++)
            memcpy((char *)b->pass + i * n_bytes, (const char *)row_at(b, i) + p * n_bytes,
                   n_bytes);
        status = run_tower(b, b->tokens != NULL ? (const int32_t *)b->pass : NULL, b->pass, b->raw,
                           0, err);
        if (status == PNB_OK)
            pnb__passes_add(b->sums, b->raw->mean, b->n, set->dim);
    }
    return status == PNB_OK ? pnb__passes_finish(b->sums, b->n, b->opts->ttda, set, first, err)
                            : status;
}

pnb_status pnb__embed_batch_encode(pnb__embed_batch *b, pnb_embeddings *set, size_t first,
                                   size_t number, pnb_error *err)
{
    if (b->opts->ttda > 0)
        return run_passes(b, set, first, err);
    if (b->raw == NULL)
        return run_tower(b, b->tokens, b->pixels, set, first, err);
    pnb_status status = run_tower(b, b->tokens, b->pixels, b->raw, 0, err);
    if (status == PNB_OK)
        status = pnb__adapter_apply_rows(
            b->encoder->adapter, b->source->is_text ? PNB_ADAPTER_TEXTS : PNB_ADAPTER_IMAGES,
            b->raw->mean, b->n, number, set, first, err);
    return status;
}
