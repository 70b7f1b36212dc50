/* A picture in few bytes: the longer side at most PNB__THUMBNAIL_SIDE, JPEG without metadata.
 *
 * Alpha is dropped as everywhere in the library, and nothing of where or when a picture was taken
 * goes along: where the picture says how it is held, the thumbnail is turned so. */
#include "io/image/thumbnail.h"

#include "io/image/formats/codec.h"

enum { QUALITY = 82 };

/* The side that belongs to the longer one, at least 1. */
static int shorter(int side, int longest)
{
    int64_t scaled = ((int64_t)side * PNB__THUMBNAIL_SIDE + longest / 2) / longest;
    return (int)PNB_MAX(scaled, (int64_t)1);
}

pnb_status pnb__thumbnail_make(const pnb_image *image, pnb__buf *out, pnb_error *err)
{
    pnb_image rgb = {0}, small = {0}, *own = NULL;
    int longest = PNB_MAX(image->width, image->height);
    bool is_rgb = image->mode == PNB_IMAGE_PLAIN && image->channels == 3;
    pnb_status status = PNB_OK;
    bool is_copied = !is_rgb || (image->orientation > 1 && longest <= PNB__THUMBNAIL_SIDE);
    if (is_copied) {
        PNB_TRY(pnb_image_to_rgb(&rgb, image, err));
        own = &rgb;
    }
    const pnb_image *shown = is_copied ? &rgb : image;
    if (longest > PNB__THUMBNAIL_SIDE) {
        PNB_TRY(pnb_image_resize(&small, shown, shorter(image->width, longest),
                                 shorter(image->height, longest), PNB_FILTER_BILINEAR, NULL, err));
        shown = own = &small;
    }
    if (own != NULL)
        PNB_TRY(pnb__image_orient(own, image->orientation, err));
    status = pnb__jpeg_encode(shown, QUALITY, out, err);
done:
    pnb_image_free(&small);
    pnb_image_free(&rgb);
    return status;
}
