/* AVIF and HEIC by libheif: the primary picture, turned and cropped as the file's own properties
 * say (libheif and pillow_heif do so; an EXIF orientation beside them is ignored, as they require).
 * Depths above 8 bits are brought to 8 by libheif; alpha is not premultiplied.
 *
 * libheif brings six codecs, whose loading alone would double the start of every program, so it is
 * opened when the first such picture comes. It stays open (RTLD_NODELETE), and opening it again
 * only counts, so nothing has to be kept here. */
#include <dlfcn.h>
#include <string.h>

#include <libheif/heif.h>

#include "base/library.h"
#include "io/image/formats/codec.h"

#define FUNCTIONS(X)                                                                               \
    X(heif_context_alloc)                                                                          \
    X(heif_context_free)                                                                           \
    X(heif_context_read_from_memory_without_copy)                                                  \
    X(heif_context_set_maximum_image_size_limit)                                                   \
    X(heif_context_get_primary_image_handle)                                                       \
    X(heif_image_handle_release)                                                                   \
    X(heif_image_handle_get_width)                                                                 \
    X(heif_image_handle_get_height)                                                                \
    X(heif_image_handle_has_alpha_channel)                                                         \
    X(heif_image_handle_is_premultiplied_alpha)                                                    \
    X(heif_decode_image)                                                                           \
    X(heif_image_get_width)                                                                        \
    X(heif_image_get_height)                                                                       \
    X(heif_image_get_plane_readonly)                                                               \
    X(heif_image_release)

typedef struct library {
    void *handle;
    FUNCTIONS(PNB__LIBRARY_FIELD)
} library;

static pnb_status open_library(library *lib, pnb_error *err)
{
    static const pnb__library heif = {"libheif.so.1", "libheif1, or convert the picture to PNG",
                                      "AVIF and HEIC are not read", false};
    return PNB__LIBRARY_OPEN(&lib->handle, &heif, FUNCTIONS, err);
}

static pnb_status check_code(struct heif_error code, pnb_error *err)
{
    if (code.code == heif_error_Ok)
        return PNB_OK;
    pnb_status status = code.code == heif_error_Memory_allocation_error ? PNB_NOMEM
                        : code.code == heif_error_Unsupported_filetype ||
                                code.code == heif_error_Unsupported_feature
                            ? PNB_UNSUPPORTED
                            : PNB_FORMAT;
    return pnb__fail(err, status, "HEIF: %s", code.message != NULL ? code.message : "damaged");
}

static pnb_status copy_rows(pnb_image *out, const library *lib, const struct heif_image *decoded,
                            pnb_error *err)
{
    int stride = 0, width = lib->heif_image_get_width(decoded, heif_channel_interleaved);
    int height = lib->heif_image_get_height(decoded, heif_channel_interleaved);
    const uint8_t *plane =
        lib->heif_image_get_plane_readonly(decoded, heif_channel_interleaved, &stride);
    size_t row = (size_t)out->width * (size_t)out->channels;
    if (plane == NULL || width != out->width || height != out->height || stride < 0 ||
        (size_t)stride < row)
        return pnb__fail(err, PNB_FORMAT, "HEIF: decoded to %dx%d pixels, the file claims %dx%d",
                         width, height, out->width, out->height);
    for (int y = 0; y < height; y++)
        memcpy(out->pixels + (size_t)y * row, plane + (size_t)y * (size_t)stride, row);
    return PNB_OK;
}

static void divide_by_alpha(pnb_image *image)
{
    size_t n = (size_t)image->width * (size_t)image->height;
    unsigned char *p = image->pixels;
    for (size_t i = 0; i < n; i++, p += 4)
        for (int c = 0; c < 3 && p[3] != 255; c++) {
            unsigned v = p[3] != 0 ? p[c] * 255u / p[3] : 0;
            p[c] = (unsigned char)PNB_MIN(v, 255u);
        }
}

static pnb_status decode_primary(pnb_image *out, const library *lib, struct heif_context *context,
                                 const pnb_image_opts *opts, pnb_error *err)
{
    struct heif_image_handle *handle = NULL;
    struct heif_image *decoded = NULL;
    pnb_status status;
    PNB_TRY(check_code(lib->heif_context_get_primary_image_handle(context, &handle), err));
    int width = lib->heif_image_handle_get_width(handle);
    int height = lib->heif_image_handle_get_height(handle);
    bool has_alpha = lib->heif_image_handle_has_alpha_channel(handle) != 0;
    /* planes of YCbCr, of RGB and the rows libheif makes of them, at up to 16 bits */
    PNB_TRY(pnb__image_admit(width, height, 20, opts, err));
    PNB_TRY(pnb_image_create(out, width, height, has_alpha ? 4 : 3, err));
    PNB_TRY(check_code(lib->heif_decode_image(handle, &decoded, heif_colorspace_RGB,
                                              has_alpha ? heif_chroma_interleaved_RGBA
                                                        : heif_chroma_interleaved_RGB,
                                              NULL),
                       err));
    PNB_TRY(copy_rows(out, lib, decoded, err));
    if (has_alpha && lib->heif_image_handle_is_premultiplied_alpha(handle))
        divide_by_alpha(out);
done:
    if (decoded != NULL)
        lib->heif_image_release(decoded);
    if (handle != NULL)
        lib->heif_image_handle_release(handle);
    if (status != PNB_OK)
        pnb_image_free(out);
    return status;
}

pnb_status pnb__heif_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                            const pnb_image_opts *opts, int *orientation, pnb_error *err)
{
    library lib = {0};
    (void)orientation; /* libheif turned it already */
    *out = (pnb_image){0};
    pnb_status status = open_library(&lib, err);
    if (status != PNB_OK)
        return status;
    struct heif_context *context = lib.heif_context_alloc();
    if (context == NULL) {
        status = pnb__fail_nomem(err, 0);
    } else {
        int side = (int)PNB_MIN(opts->max_pixels, (int64_t)32768);
        lib.heif_context_set_maximum_image_size_limit(context, side);
        status = check_code(
            lib.heif_context_read_from_memory_without_copy(context, bytes, n_bytes, NULL), err);
        if (status == PNB_OK)
            status = decode_primary(out, &lib, context, opts, err);
        lib.heif_context_free(context);
    }
    dlclose(lib.handle);
    return status;
}
