/* GIF by giflib: the first picture of the file, as Pillow shows it before anything moves.
 *
 * The screen is filled with the transparent index, or 0 when there is none (the background colour
 * of the header is ignored), and the picture is laid over it at its place; a picture that leaves
 * the screen enlarges it. Indices keep their colour under transparency, since alpha is dropped. A
 * palette that is a grey ramp makes a grey picture (mode L). Codes that end early are an error.
 * Bytes between blocks that belong to none are skipped, as is what follows the first picture. */
#include <string.h>

#include <gif_lib.h>

#include "io/image/formats/codec.h"

#define MAX_PIXELS_PER_BYTE 4096 /* one code stands for a string of so many at most */

/* What giflib reads from. */
typedef struct reader {
    const unsigned char *bytes;
    size_t n_bytes, at;
} reader;

static int read_bytes(GifFileType *gif, GifByteType *out, int n)
{
    reader *r = gif->UserData;
    size_t count = PNB_MIN((size_t)PNB_MAX(n, 0), r->n_bytes - r->at);
    memcpy(out, r->bytes + r->at, count);
    r->at += count;
    return (int)count;
}

static pnb_status fail_gif(pnb_error *err, int code, const reader *r)
{
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return pnb__fail(err, PNB_NOMEM, "GIF: out of memory");
    const char *text = GifErrorString(code);
    bool is_short = r->at >= r->n_bytes;
    return pnb__fail(err, PNB_FORMAT, "GIF: %s%s", text != NULL ? text : "damaged",
                     is_short ? ": the file is truncated" : "");
}

/* Of the picture to come. A second block without an index leaves the first one's, as in Pillow. */
static void read_transparent(int *index, const GifByteType *block)
{
    if (block[0] >= 4 && (block[1] & 1) != 0)
        *index = block[4];
}

/* Moves on to the first picture and reads its header. */
static pnb_status find_image(GifFileType *gif, const reader *r, int *transparent, pnb_error *err)
{
    for (;;) {
        GifRecordType type;
        GifByteType *block = NULL;
        int code = 0;
        if (DGifGetRecordType(gif, &type) == GIF_ERROR) {
            if (gif->Error == D_GIF_ERR_WRONG_RECORD)
                continue; /* a stray byte; the end of the file is another error */
            return fail_gif(err, gif->Error, r);
        }
        if (type == TERMINATE_RECORD_TYPE)
            return pnb__fail(err, PNB_FORMAT, "GIF: holds no picture");
        if (type == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(gif) == GIF_ERROR ? fail_gif(err, gif->Error, r) : PNB_OK;
        if (DGifGetExtension(gif, &code, &block) == GIF_ERROR)
            return fail_gif(err, gif->Error, r);
        if (code == GRAPHICS_EXT_FUNC_CODE && block != NULL)
            read_transparent(transparent, block);
        while (block != NULL)
            if (DGifGetExtensionNext(gif, &block) == GIF_ERROR)
                return fail_gif(err, gif->Error, r);
    }
}

static bool is_grey_ramp(const ColorMapObject *map)
{
    for (int i = 0; i < map->ColorCount; i++) {
        const GifColorType *c = &map->Colors[i];
        if (c->Red != i || c->Green != i || c->Blue != i)
            return false;
    }
    return true;
}

/* The colours in use; NULL for grey. A local palette that is a grey ramp gives way to the global.
 */
static const ColorMapObject *choose_palette(const GifFileType *gif)
{
    const ColorMapObject *local = gif->Image.ColorMap, *global = gif->SColorMap;
    if (local != NULL && !is_grey_ramp(local))
        return local;
    return global != NULL && !is_grey_ramp(global) ? global : NULL;
}

/* Indices past the end of the palette show the grey of their number, as in Pillow. */
static pnb_status make_palette(pnb_image *image, const GifFileType *gif, pnb_error *err)
{
    const ColorMapObject *map = choose_palette(gif);
    if (map == NULL)
        return PNB_OK;
    image->palette = pnb__alloc(256 * 3);
    if (image->palette == NULL)
        return pnb__fail_nomem(err, 256 * 3);
    for (size_t i = 0; i < 256; i++)
        memset(image->palette + 3 * i, (int)i, 3);
    for (int i = 0; i < map->ColorCount && i < 256; i++) {
        unsigned char *p = image->palette + 3 * (size_t)i;
        p[0] = map->Colors[i].Red;
        p[1] = map->Colors[i].Green;
        p[2] = map->Colors[i].Blue;
    }
    image->mode = PNB_IMAGE_PALETTE;
    return PNB_OK;
}

static pnb_status read_rows(pnb_image *image, GifFileType *gif, const reader *r, pnb_error *err)
{
    static const int first[] = {0, 4, 2, 1, 0}, step[] = {8, 8, 4, 2, 1};
    const GifImageDesc *d = &gif->Image;
    for (int pass = d->Interlace ? 0 : 4; pass < (d->Interlace ? 4 : 5); pass++) {
        for (int y = first[pass]; y < d->Height; y += step[pass]) {
            size_t row = (size_t)(d->Top + y) * (size_t)image->width + (size_t)d->Left;
            if (DGifGetLine(gif, image->pixels + row, d->Width) == GIF_ERROR)
                return fail_gif(err, gif->Error, r);
        }
    }
    return PNB_OK;
}

static pnb_status check_claim(const GifFileType *gif, int width, int height, size_t n_bytes,
                              const pnb_image_opts *opts, pnb_error *err)
{
    pnb_status status = pnb__image_check_size(width, height, opts, err);
    if (status != PNB_OK)
        return status;
    const GifImageDesc *d = &gif->Image;
    if (d->Width < 1 || d->Height < 1)
        return pnb__fail(err, PNB_FORMAT, "GIF: a picture of %dx%d pixels", d->Width, d->Height);
    if ((int64_t)d->Width * d->Height / MAX_PIXELS_PER_BYTE > (int64_t)n_bytes)
        return pnb__fail(err, PNB_FORMAT,
                         "GIF: the header claims %dx%d pixels but only %zu bytes follow", d->Width,
                         d->Height, n_bytes);
    return PNB_OK;
}

pnb_status pnb__gif_decode(pnb_image *out, const unsigned char *bytes, size_t n_bytes,
                           const pnb_image_opts *opts, int *orientation, pnb_error *err)
{
    reader r = {bytes, n_bytes, 0};
    pnb_image image = {0};
    pnb_status status;
    int code = 0, transparent = -1;
    (void)orientation;
    *out = (pnb_image){0};
    GifFileType *gif = DGifOpen(&r, read_bytes, &code);
    if (gif == NULL)
        return fail_gif(err, code, &r);
    PNB_TRY(find_image(gif, &r, &transparent, err));
    int width = PNB_MAX(gif->SWidth, gif->Image.Left + gif->Image.Width);
    int height = PNB_MAX(gif->SHeight, gif->Image.Top + gif->Image.Height);
    PNB_TRY(check_claim(gif, width, height, n_bytes, opts, err));
    PNB_TRY(pnb__image_admit(width, height, 1, opts, err));
    PNB_TRY(pnb_image_create(&image, width, height, 1, err));
    PNB_TRY(make_palette(&image, gif, err));
    if (transparent > 0)
        memset(image.pixels, transparent, (size_t)width * (size_t)height);
    PNB_TRY(read_rows(&image, gif, &r, err));
    *out = image;
    image = (pnb_image){0};
done:
    pnb_image_free(&image);
    DGifCloseFile(gif, &code);
    return status;
}
