/* PNG writing by libspng: 8 bit, 1 to 4 channels, no metadata, so that the same pixels always give
 * the same bytes. Used for synthetic data sets and for the thumbnails of reports; reading is
 * png.c. */
#include <string.h>

#include <spng.h>

#include "io/image/formats/codec.h"

static const unsigned char color_types[5] = {
    0, SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, SPNG_COLOR_TYPE_TRUECOLOR,
    SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};

static spng_ctx *open_encoder(void)
{
    struct spng_alloc alloc = {.malloc_fn = pnb__alloc,
                               .realloc_fn = pnb__realloc,
                               .calloc_fn = pnb__alloc_zero,
                               .free_fn = pnb__free};
    return spng_ctx_new2(&alloc, SPNG_CTX_ENCODER);
}

pnb_status pnb_image_encode_png(const pnb_image *image, unsigned char **bytes, size_t *n_bytes,
                                pnb_error *err)
{
    *bytes = NULL;
    *n_bytes = 0;
    if (image->pixels == NULL || image->width < 1 || image->height < 1 ||
        image->mode != PNB_IMAGE_PLAIN || image->channels < 1 || image->channels > 4)
        return pnb__fail(err, PNB_ARG, "PNG: the picture is empty or not grey or RGB: convert it");
    spng_ctx *ctx = open_encoder();
    if (ctx == NULL)
        return pnb__fail_nomem(err, 0);
    struct spng_ihdr header = {.width = (uint32_t)image->width,
                               .height = (uint32_t)image->height,
                               .bit_depth = 8,
                               .color_type = color_types[image->channels]};
    size_t n_pixels = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    int code = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    if (code == 0)
        code = spng_set_ihdr(ctx, &header);
    if (code == 0)
        code = spng_encode_image(ctx, image->pixels, n_pixels, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (code == 0)
        *bytes = spng_get_png_buffer(ctx, n_bytes, &code);
    spng_ctx_free(ctx);
    if (code == SPNG_EMEM || code == SPNG_EZLIB_INIT || code == SPNG_EZLIB)
        return pnb__fail(err, PNB_NOMEM, "PNG: out of memory: %s", spng_strerror(code));
    if (code != 0)
        return pnb__fail(err, PNB_IO, "PNG: %s", spng_strerror(code));
    return PNB_OK;
}

void pnb_image_bytes_free(unsigned char *bytes)
{
    pnb__free(bytes);
}

pnb_status pnb_image_save_png(const pnb_image *image, const char *path, pnb_error *err)
{
    unsigned char *bytes;
    size_t n_bytes;
    pnb_status status = pnb_image_encode_png(image, &bytes, &n_bytes, err);
    if (status != PNB_OK)
        return status;
    status = pnb__write_file(path, bytes, n_bytes, err);
    pnb_image_bytes_free(bytes);
    return status;
}
