/* Changed copies of pictures.
 *
 * Erasing fills with the mean colour of the preprocessing, which the encoder sees as zero. Pictures
 * are changed after resizing and cropping. Captions are changed by word_list.c. */
#include "encode/perturb.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "encode/job/embed_job.h"

/* ---- pictures ---- */

static pnb_status load_one(const pnb_encoder *encoder, const pnb__image_inputs *images, size_t i,
                           bool exif, pnb_image *out, pnb_error *err)
{
    pnb_image image = {0};
    pnb_image_opts opts = pnb_image_opts_default();
    opts.native = encoder->preprocess.resize_first;
    opts.exif = exif;
    if (encoder->max_image_pixels > 0)
        opts.max_pixels = encoder->max_image_pixels;
    pnb_status status = pnb__image_inputs_load(images, i, &opts, &image, err);
    if (status == PNB_OK)
        status = pnb_preprocess_pixels(&encoder->preprocess, &image, out, err);
    pnb_image_free(&image);
    return status;
}

pnb_status pnb__pixels_load_these(const pnb_encoder *encoder, const pnb__image_inputs *images,
                                  const size_t *input, size_t n, const pnb_encode_opts *opts,
                                  pnb__pixel_set *out, pnb_error *err)
{
    char name[512];
    *out = (pnb__pixel_set){0};
    out->items = pnb__alloc_zero(PNB_MAX(n, (size_t)1), sizeof *out->items);
    out->names = pnb__alloc_zero(PNB_MAX(n, (size_t)1), sizeof *out->names);
    out->input = pnb__alloc_zero(PNB_MAX(n, (size_t)1), sizeof *out->input);
    if (out->items == NULL || out->names == NULL || out->input == NULL)
        return pnb__fail_nomem(err, n * sizeof *out->items);
    for (size_t i = 0; i < n; i++) {
        pnb_error why = PNB_ERROR_INIT;
        pnb_status status = pnb__image_inputs_name(images, input[i], name, sizeof name, &why);
        if (status == PNB_OK)
            status = load_one(encoder, images, input[i], opts->exif, &out->items[out->n], &why);
        if (status == PNB_NOMEM)
            return pnb__fail(err, status, "%s", why.text);
        if (status != PNB_OK) {
            opts->skipped(opts->skipped_user, name, why.text);
            continue;
        }
        out->input[out->n] = input[i];
        out->names[out->n++] = pnb__strdup(name);
        if (out->names[out->n - 1] == NULL)
            return pnb__fail_nomem(err, strlen(name));
    }
    if (out->n == 0)
        return pnb__fail(err, PNB_NOT_FOUND, "none of %zu pictures could be read", n);
    return PNB_OK;
}

pnb_status pnb__pixels_load(const pnb_encoder *encoder, const pnb__image_inputs *images,
                            size_t limit, const pnb_encode_opts *opts, pnb__pixel_set *out,
                            pnb_error *err)
{
    size_t total = pnb__image_inputs_count(images), n = PNB_MIN(total, limit);
    size_t *input = pnb__alloc_array(PNB_MAX(n, (size_t)1), sizeof *input);
    *out = (pnb__pixel_set){0};
    if (input == NULL)
        return pnb__fail_nomem(err, n * sizeof *input);
    for (size_t i = 0; i < n; i++)
        input[i] = (size_t)((double)i * (double)total / (double)n);
    pnb_status status = pnb__pixels_load_these(encoder, images, input, n, opts, out, err);
    pnb__free(input);
    return status;
}

void pnb__pixels_reset(pnb__pixel_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        pnb_image_free(&set->items[i]);
        pnb__free(set->names[i]);
    }
    pnb__free(set->items);
    pnb__free(set->names);
    pnb__free(set->input);
    *set = (pnb__pixel_set){0};
}

void pnb__fill_colour(const pnb_preprocess *pp, unsigned char rgb[3])
{
    for (int c = 0; c < 3; c++)
        rgb[c] = (unsigned char)lround(fmin(fmax(255.0 * (double)pp->mean[c], 0.0), 255.0));
}

void pnb__erase_rect(pnb_image *image, const int box[4], const unsigned char rgb[3])
{
    for (int y = PNB_MAX(box[1], 0); y < PNB_MIN(box[3], image->height); y++)
        for (int x = PNB_MAX(box[0], 0); x < PNB_MIN(box[2], image->width); x++)
            memcpy(image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x), rgb, 3);
}

void pnb__erase_share(pnb_image *image, double share, const double at[2],
                      const unsigned char rgb[3])
{
    double side = sqrt(fmin(fmax(share, 0.0), 1.0));
    int width = (int)lround(side * image->width), height = (int)lround(side * image->height);
    int x = (int)lround(at[0] * (image->width - width));
    int y = (int)lround(at[1] * (image->height - height));
    const int box[4] = {x, y, x + width, y + height};
    pnb__erase_rect(image, box, rgb);
}

static size_t n_bytes(const pnb_image *image)
{
    return 3 * (size_t)image->width * (size_t)image->height;
}

void pnb__mix_blend(const pnb_image *a, const pnb_image *b, pnb_image *out)
{
    for (size_t i = 0; i < n_bytes(a); i++)
        out->pixels[i] = (unsigned char)((a->pixels[i] + b->pixels[i] + 1) / 2);
}

void pnb__mix_halves(const pnb_image *a, const pnb_image *b, pnb_image *out)
{
    size_t row = 3 * (size_t)a->width, left = 3 * (size_t)(a->width / 2);
    for (size_t y = 0; y < (size_t)a->height; y++) {
        memcpy(out->pixels + y * row, a->pixels + y * row, left);
        memcpy(out->pixels + y * row + left, b->pixels + y * row + left, row - left);
    }
}

pnb_status pnb__copy_pixels(const pnb_image *from, pnb_image *to, pnb_error *err)
{
    pnb_status status = pnb_image_create(to, from->width, from->height, 3, err);
    if (status == PNB_OK)
        memcpy(to->pixels, from->pixels, n_bytes(from));
    return status;
}

typedef struct made {
    const pnb_preprocess *preprocess;
    pnb__make_fn make;
    const void *user;
} made;

static pnb_status make_row(const void *user, size_t i, void *row, pnb_error *err)
{
    const made *m = user;
    const pnb_preprocess *pp = m->preprocess;
    pnb_image image = {0};
    pnb_status status = pnb_image_create(&image, pp->width, pp->height, 3, err);
    if (status != PNB_OK)
        return status;
    m->make(m->user, i, &image);
    status = pnb_image_to_chw(&image, pp->mean, pp->std, row, err);
    pnb_image_free(&image);
    return status;
}

pnb_status pnb__encode_made(pnb_encoder *encoder, size_t n_rows, pnb__make_fn make,
                            const void *user, const pnb_encode_opts *opts, pnb_embeddings **out,
                            pnb_error *err)
{
    const made all = {&encoder->preprocess, make, user};
    const pnb__embed_source source = {.n = n_rows, .user = &all, .row = make_row};
    return pnb__embed_set(encoder, &source, opts, out, NULL, err);
}
