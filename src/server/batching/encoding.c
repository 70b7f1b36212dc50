/* Preparing on the request's own thread, encoding on the one of the batches.
 *
 * Pictures are decoded and resized here, a handful at a time, so that what a request holds does not
 * grow with the number of its pictures; the budget of the server bounds what all requests decode at
 * once. While a request prepares its first rows the batches know that it is coming. */
#include "server/batching/encoding.h"

#include <string.h>

#include "encode/job/embed_job.h"
#include "io/image/data_url.h"
#include "penumbra/tokenizer.h"
#include "server/batching/batcher.h"

enum { IMAGES_AT_ONCE = 32 };

/* ---- a batch ---- */

typedef struct ready_rows {
    const void *const *rows;
    size_t row_bytes;
} ready_rows;

static pnb_status copy_ready(const void *user, size_t i, void *row, pnb_error *err)
{
    const ready_rows *ready = user;
    (void)err;
    memcpy(row, ready->rows[i], ready->row_bytes);
    return PNB_OK;
}

static size_t bytes_of_row(const pnb_encoder *e, pnb_encode_side side)
{
    if (side == PNB_ENCODE_TEXTS)
        return e->info->text.context_length * sizeof(int32_t);
    return 3 * e->info->vision.image_width * e->info->vision.image_height * sizeof(float);
}

pnb_status pnb__server_encode_batch(void *user, pnb_encode_side side, const void *const *rows,
                                    size_t n, pnb_embeddings **out, pnb_error *err)
{
    pnb__served *s = user;
    bool is_text = side == PNB_ENCODE_TEXTS;
    const ready_rows ready = {rows, bytes_of_row(s->encoder, side)};
    const pnb__embed_source source = {
        .n = n, .is_text = is_text, .user = &ready, .row = copy_ready};
    pnb_encode_opts opts = pnb_encode_opts_default();
    double begin = pnb__now_s();
    opts.batch_size = n;
    pnb_status status = pnb__embed_set(s->encoder, &source, &opts, out, NULL, err);
    pnb__metrics_stage(&s->server->metrics,
                       is_text ? PNB__STAGE_TEXT_INFERENCE : PNB__STAGE_IMAGE_INFERENCE,
                       pnb__now_s() - begin);
    pnb__metrics_batch(&s->server->metrics, is_text, n);
    return status;
}

void pnb__server_waited(void *user, double seconds)
{
    pnb__served *s = user;
    pnb__metrics_stage(&s->server->metrics, PNB__STAGE_QUEUE, seconds);
}

/* ---- preparing ---- */

typedef struct preparing {
    pnb__served *s;
    const pnb__http_request *q;
    const pnb__inputs *in;
    pnb__encoded *out;
    bool is_expected; /* the batches wait for it */
} preparing;

static void expect(preparing *p, bool is_expected)
{
    if (p->is_expected != is_expected)
        pnb__batcher_expect(p->s->batcher, is_expected ? 1 : -1);
    p->is_expected = is_expected;
}

static pnb_status encode_rows(preparing *p, pnb_encode_side side, const void *rows, size_t n,
                              pnb_embeddings **out, pnb_error *err)
{
    const pnb__batch_rows ask = {.side = side,
                                 .rows = rows,
                                 .n = n,
                                 .row_bytes = bytes_of_row(p->s->encoder, side),
                                 .is_expected = p->is_expected,
                                 .is_gone = p->q->is_gone,
                                 .user = p->q->user};
    p->is_expected = false;
    return pnb__batcher_encode(p->s->batcher, &ask, out, err);
}

static pnb_status read_text(preparing *p, const pnb__input *input, int32_t *ids, pnb_error *err)
{
    pnb_token_count count = {0};
    pnb_status status =
        pnb_tokenizer_encode(p->s->encoder->tokenizer, input->text, input->n_bytes,
                             (int)p->s->encoder->info->text.context_length, ids, &count, err);
    p->out->n_tokens += (size_t)count.n_tokens;
    return status;
}

static pnb_status encode_texts(preparing *p, size_t n, pnb_error *err)
{
    size_t context = p->s->encoder->info->text.context_length, k = 0;
    double begin = pnb__now_s();
    int32_t *ids = NULL;
    pnb_status status;
    if (p->s->encoder->tokenizer == NULL)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s embeds no captions", p->s->server->name);
    PNB_TRY(PNB_ALLOC_ROWS(ids, n, context, err));
    for (size_t i = 0; i < p->in->n; i++)
        if (!p->in->items[i].is_image) {
            p->out->row[i] = k;
            PNB_TRY(read_text(p, &p->in->items[i], ids + k++ * context, err));
        }
    pnb__metrics_stage(&p->s->server->metrics, PNB__STAGE_TEXT_PREPRO, pnb__now_s() - begin);
    pnb__metrics_add(&p->s->server->metrics, &p->s->server->metrics.n_tokens, p->out->n_tokens);
    status = encode_rows(p, PNB_ENCODE_TEXTS, ids, n, &p->out->texts, err);
done:
    pnb__free(ids);
    return status;
}

static pnb_status read_image(const preparing *p, const pnb__input *input, float *pixels,
                             pnb_error *err)
{
    const pnb_encoder *e = p->s->encoder;
    pnb_image_opts opts = pnb_image_opts_default();
    pnb__buf bytes = {0};
    pnb_image image = {0};
    pnb_status status;
    opts.native = e->preprocess.resize_first;
    opts.max_pixels = e->max_image_pixels > 0 ? e->max_image_pixels : PNB_IMAGE_DEFAULT_PIXELS;
    opts.budget = p->s->budget;
    PNB_TRY(pnb__image_text_read(&bytes, input->text, input->n_bytes, err));
    PNB_TRY(pnb_image_decode(&image, bytes.data, bytes.size, &opts, err));
    status = pnb_preprocess_apply(&e->preprocess, &image, pixels, err);
done:
    pnb_image_free(&image);
    pnb__buf_reset(&bytes);
    return status;
}

/* The next pictures from input *at on, as many as `pixels` has room for; how many in *n. */
static pnb_status read_images(preparing *p, size_t *at, float *pixels, size_t *n, pnb_error *err)
{
    size_t width = bytes_of_row(p->s->encoder, PNB_ENCODE_IMAGES) / sizeof(float);
    double begin = pnb__now_s();
    for (*n = 0; *at < p->in->n && *n < IMAGES_AT_ONCE; (*at)++) {
        if (!p->in->items[*at].is_image)
            continue;
        pnb_status status = read_image(p, &p->in->items[*at], pixels + *n * width, err);
        if (status != PNB_OK) {
            pnb__error_prefix(err, "input %zu", *at);
            return status;
        }
        (*n)++;
    }
    pnb__metrics_stage(&p->s->server->metrics, PNB__STAGE_IMAGE_PREPRO, pnb__now_s() - begin);
    return PNB_OK;
}

static pnb_status join(pnb_embeddings **all, pnb_embeddings *part, pnb_error *err)
{
    pnb_embeddings *both = NULL;
    if (*all == NULL) {
        *all = part;
        return PNB_OK;
    }
    const pnb_embeddings *parts[] = {*all, part};
    pnb_status status = pnb_embeddings_concat(&both, parts, PNB_COUNT(parts), err);
    pnb_embeddings_free(part);
    if (status != PNB_OK)
        return status;
    pnb_embeddings_free(*all);
    *all = both;
    return PNB_OK;
}

static pnb_status encode_images(preparing *p, size_t n, pnb_error *err)
{
    size_t bytes = bytes_of_row(p->s->encoder, PNB_ENCODE_IMAGES), at = 0, n_part = 0, k = 0;
    float *pixels = NULL;
    pnb_embeddings *part = NULL;
    pnb_status status;
    if (p->s->encoder->preprocess.width == 0)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s embeds no pictures", p->s->server->name);
    PNB_TRY(PNB_ALLOC_ROWS(pixels, PNB_MIN(n, (size_t)IMAGES_AT_ONCE), bytes / sizeof(float), err));
    for (size_t i = 0; i < p->in->n; i++)
        if (p->in->items[i].is_image)
            p->out->row[i] = k++;
    for (size_t n_done = 0; n_done < n; n_done += n_part) {
        expect(p, true);
        PNB_TRY(read_images(p, &at, pixels, &n_part, err));
        PNB_TRY(encode_rows(p, PNB_ENCODE_IMAGES, pixels, n_part, &part, err));
        PNB_TRY(join(&p->out->images, part, err));
    }
done:
    pnb__free(pixels);
    return status;
}

pnb_status pnb__server_encode(pnb__served *s, const pnb__http_request *q, const pnb__inputs *in,
                              pnb__encoded *out, pnb_error *err)
{
    preparing p = {s, q, in, out, false};
    size_t n_images = 0;
    pnb_status status;
    *out = (pnb__encoded){0};
    for (size_t i = 0; i < in->n; i++)
        n_images += in->items[i].is_image;
    expect(&p, true);
    PNB_TRY(PNB_ALLOC_ZERO(out->row, in->n, err));
    if (n_images < in->n)
        PNB_TRY(encode_texts(&p, in->n - n_images, err));
    if (n_images > 0)
        PNB_TRY(encode_images(&p, n_images, err));
done:
    expect(&p, false);
    return status;
}

void pnb__encoded_reset(pnb__encoded *e)
{
    pnb_embeddings_free(e->texts);
    pnb_embeddings_free(e->images);
    pnb__free(e->row);
    *e = (pnb__encoded){0};
}
