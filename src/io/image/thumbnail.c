/* A picture in few bytes: the longer side at most PNB__THUMBNAIL_SIDE, JPEG without metadata.
 *
 * Alpha is dropped as everywhere in the library, and nothing of where or when a picture was taken
 * goes along. */
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
    pnb_image rgb = {0}, small = {0};
    int longest = PNB_MAX(image->width, image->height);
    bool is_rgb = image->mode == PNB_IMAGE_PLAIN && image->channels == 3;
    pnb_status status = PNB_OK;
    if (!is_rgb)
        PNB_TRY(pnb_image_to_rgb(&rgb, image, err));
    const pnb_image *shown = is_rgb ? image : &rgb;
    if (longest > PNB__THUMBNAIL_SIDE) {
        PNB_TRY(pnb_image_resize(&small, shown, shorter(image->width, longest),
                                 shorter(image->height, longest), PNB_FILTER_BILINEAR, NULL, err));
        shown = &small;
    }
    status = pnb__jpeg_encode(shown, QUALITY, out, err);
done:
    pnb_image_free(&small);
    pnb_image_free(&rgb);
    return status;
}
