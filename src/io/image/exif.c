/* EXIF orientation: finds tag 0x0112 in the first directory of a TIFF block and turns a picture
 * by it. The reference pipelines ignore it; it is applied only when asked for. Values:
 * 2 mirror, 3 half turn, 4 flip, 5 transpose, 6 quarter turn right, 7 transverse, 8 left. */
#include <string.h>

#include "io/image/formats/codec.h"

static unsigned read_u16(const unsigned char *p, bool big)
{
    return big ? (unsigned)p[0] << 8 | p[1] : (unsigned)p[1] << 8 | p[0];
}

static size_t read_u32(const unsigned char *p, bool big)
{
    size_t first = read_u16(p, big), second = read_u16(p + 2, big);
    return big ? first << 16 | second : second << 16 | first;
}

int pnb__exif_orientation(const unsigned char *tiff, size_t n_bytes)
{
    if (n_bytes < 14 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return 1;
    bool big = tiff[0] == 'M';
    size_t at = read_u32(tiff + 4, big);
    if (at > n_bytes - 2)
        return 1;
    size_t n_entries = read_u16(tiff + at, big);
    for (size_t i = 0; i < n_entries; i++) {
        size_t entry = at + 2 + 12 * i;
        if (entry > n_bytes - 12)
            return 1;
        if (read_u16(tiff + entry, big) == 0x0112) {
            unsigned value = read_u16(tiff + entry + 8, big);
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    }
    return 1;
}

pnb_status pnb__image_orient(pnb_image *image, int o, pnb_error *err)
{
    pnb_image turned;
    if (o < 2 || o > 8)
        return PNB_OK;
    bool swap = o >= 5;
    int w = swap ? image->height : image->width, h = swap ? image->width : image->height;
    pnb_status status = pnb_image_create(&turned, w, h, image->channels, err);
    if (status != PNB_OK)
        return status;
    /* Source pixel of (x, y): swap the axes for 5..8, then mirror each where the value says so. */
    bool mirror_x = o == 2 || o == 3 || o == 7 || o == 8;
    bool mirror_y = o == 3 || o == 4 || o == 6 || o == 7;
    size_t pixel = (size_t)image->channels;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            int sx = swap ? y : x, sy = swap ? x : y;
            sx = mirror_x ? image->width - 1 - sx : sx;
            sy = mirror_y ? image->height - 1 - sy : sy;
            memcpy(turned.pixels + ((size_t)y * (size_t)w + (size_t)x) * pixel,
                   image->pixels + ((size_t)sy * (size_t)image->width + (size_t)sx) * pixel, pixel);
        }
    }
    turned.mode = image->mode;
    turned.palette = image->palette;
    image->palette = NULL;
    pnb_image_free(image);
    *image = turned;
    return PNB_OK;
}
