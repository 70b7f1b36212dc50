/* Pictures of the `emoji` set: HarfBuzz turns a sequence (without U+FE0F) into the one glyph the
 * font has for it, FreeType gives that glyph's colour bitmap (136 x 128 BGRA of the 109 ppem
 * strike, premultiplied), which is put on white. Without the two libraries this file only says so.
 */
#include <string.h>

#include "data/synth/emoji.h"

#ifndef PNB_HAVE_FREETYPE

pnb_status pnb__emoji_render(pnb__emoji_list *list, const char *font, pnb_error *err)
{
    (void)list;
    return pnb__fail(err, PNB_UNSUPPORTED,
                     "%s cannot be drawn: this build lacks FreeType and HarfBuzz "
                     "(apt-get install libfreetype-dev libharfbuzz-dev, then build again)",
                     font);
}

#else

#include <dlfcn.h>
#include <ft2build.h>
#include FT_FREETYPE_H
#include <hb.h>

#include "base/library.h"

/* Opened when emoji are drawn: with GLib they bring eight libraries. */
#define FREETYPE_FUNCTIONS(X)                                                                      \
    X(FT_Done_Face)                                                                                \
    X(FT_Done_FreeType)                                                                            \
    X(FT_Init_FreeType)                                                                            \
    X(FT_Load_Glyph)                                                                               \
    X(FT_New_Face)                                                                                 \
    X(FT_Select_Size)

#define HARFBUZZ_FUNCTIONS(X)                                                                      \
    X(hb_blob_create_from_file)                                                                    \
    X(hb_blob_destroy)                                                                             \
    X(hb_buffer_add)                                                                               \
    X(hb_buffer_allocation_successful)                                                             \
    X(hb_buffer_clear_contents)                                                                    \
    X(hb_buffer_create)                                                                            \
    X(hb_buffer_destroy)                                                                           \
    X(hb_buffer_get_glyph_infos)                                                                   \
    X(hb_buffer_guess_segment_properties)                                                          \
    X(hb_buffer_set_content_type)                                                                  \
    X(hb_face_create)                                                                              \
    X(hb_face_destroy)                                                                             \
    X(hb_font_create)                                                                              \
    X(hb_font_destroy)                                                                             \
    X(hb_shape)

typedef struct renderer {
    void *freetype, *harfbuzz; /* libraries */
    FREETYPE_FUNCTIONS(PNB__LIBRARY_FIELD)
    HARFBUZZ_FUNCTIONS(PNB__LIBRARY_FIELD)
    FT_Library library;
    FT_Face face;
    hb_blob_t *blob;
    hb_face_t *hb_face;
    hb_font_t *hb_font;
    hb_buffer_t *buffer;
} renderer;

static pnb_status open_libraries(renderer *lib, pnb_error *err)
{
    static const pnb__library freetype = {"libfreetype.so.6", "libfreetype6", "no emoji is drawn",
                                          false};
    static const pnb__library harfbuzz = {"libharfbuzz.so.0", "libharfbuzz0b", "no emoji is drawn",
                                          false};
    pnb_status status = PNB__LIBRARY_OPEN(&lib->freetype, &freetype, FREETYPE_FUNCTIONS, err);
    if (status == PNB_OK)
        status = PNB__LIBRARY_OPEN(&lib->harfbuzz, &harfbuzz, HARFBUZZ_FUNCTIONS, err);
    return status;
}

static void close_libraries(renderer *r)
{
    if (r->harfbuzz != NULL)
        dlclose(r->harfbuzz);
    if (r->freetype != NULL)
        dlclose(r->freetype);
}

static void close_renderer(renderer *r)
{
    if (r->harfbuzz != NULL) {
        r->hb_buffer_destroy(r->buffer);
        r->hb_font_destroy(r->hb_font);
        r->hb_face_destroy(r->hb_face);
        r->hb_blob_destroy(r->blob);
    }
    if (r->face)
        r->FT_Done_Face(r->face);
    if (r->library)
        r->FT_Done_FreeType(r->library);
    close_libraries(r);
}

/* One of memory is no fault of the font. */
static bool is_memory(FT_Error error)
{
    return FT_ERROR_BASE(error) == FT_Err_Out_Of_Memory;
}

static pnb_status open_renderer(renderer *r, const char *font, pnb_error *err)
{
    if (!pnb__path_is_file(font))
        return pnb__fail(err, PNB_NOT_FOUND,
                         "%s does not exist: apt-get install fonts-noto-color-emoji", font);
    pnb_status status = open_libraries(r, err);
    if (status != PNB_OK)
        return status;
    if (r->FT_Init_FreeType(&r->library))
        return pnb__fail_nomem(err, 0);
    FT_Error error = r->FT_New_Face(r->library, font, 0, &r->face);
    if (is_memory(error))
        return pnb__fail_nomem(err, 0);
    if (error)
        return pnb__fail(err, PNB_FORMAT, "%s: FreeType cannot open this font", font);
    error = r->face->num_fixed_sizes < 1 ? FT_Err_Invalid_Argument : r->FT_Select_Size(r->face, 0);
    if (is_memory(error))
        return pnb__fail_nomem(err, 0);
    if (error)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: the font has no bitmaps; wanted NotoColorEmoji.ttf with CBDT", font);
    r->blob = r->hb_blob_create_from_file(font);
    r->hb_face = r->hb_face_create(r->blob, 0);
    r->hb_font = r->hb_font_create(r->hb_face);
    r->buffer = r->hb_buffer_create();
    if (!r->hb_buffer_allocation_successful(r->buffer))
        return pnb__fail_nomem(err, 0);
    return PNB_OK;
}

/* The glyph of a sequence. The font has one for each; several mean a font that is too old. */
static pnb_status find_glyph(renderer *r, const pnb__emoji *e, unsigned *glyph, pnb_error *err)
{
    unsigned n = 0;
    r->hb_buffer_clear_contents(r->buffer);
    for (int i = 0; i < e->n_points; i++)
        if (e->points[i] != 0xfe0f)
            r->hb_buffer_add(r->buffer, e->points[i], (unsigned)i);
    r->hb_buffer_set_content_type(r->buffer, HB_BUFFER_CONTENT_TYPE_UNICODE);
    r->hb_buffer_guess_segment_properties(r->buffer);
    r->hb_shape(r->hb_font, r->buffer, NULL, 0);
    if (!r->hb_buffer_allocation_successful(r->buffer))
        return pnb__fail_nomem(err, 0);
    const hb_glyph_info_t *info = r->hb_buffer_get_glyph_infos(r->buffer, &n);
    if (n != 1 || info[0].codepoint == 0)
        return pnb__fail(err, PNB_NOT_FOUND,
                         "the font has no single picture for %s (%s): found %u glyphs", e->key,
                         e->name, n);
    *glyph = info[0].codepoint;
    return PNB_OK;
}

static pnb_status draw_glyph(renderer *r, unsigned glyph, pnb__emoji *e, pnb_error *err)
{
    FT_Error error = r->FT_Load_Glyph(r->face, glyph, FT_LOAD_COLOR);
    if (is_memory(error))
        return pnb__fail_nomem(err, 0);
    if (error)
        return pnb__fail(err, PNB_FORMAT, "the picture of %s (%s) cannot be read", e->key, e->name);
    const FT_Bitmap *b = &r->face->glyph->bitmap;
    if (b->pixel_mode != FT_PIXEL_MODE_BGRA || b->width < 1 || b->rows < 1 || b->pitch < 0)
        return pnb__fail(err, PNB_FORMAT, "the picture of %s (%s) is not a colour bitmap", e->key,
                         e->name);
    pnb_status status = pnb_image_create(&e->image, (int)b->width, (int)b->rows, 3, err);
    if (status != PNB_OK)
        return status;
    for (unsigned y = 0; y < b->rows; y++)
        for (unsigned x = 0; x < b->width; x++) {
            const unsigned char *in = b->buffer + (size_t)y * (size_t)b->pitch + 4 * (size_t)x;
            unsigned char *out = e->image.pixels + 3 * ((size_t)y * b->width + x);
            for (int c = 0; c < 3; c++) {
                int value = in[2 - c] + 255 - in[3];
                out[c] = (unsigned char)PNB_MIN(value, 255);
            }
        }
    return PNB_OK;
}

static bool same_image(const pnb_image *a, const pnb_image *b)
{
    return a->width == b->width && a->height == b->height &&
           !memcmp(a->pixels, b->pixels, (size_t)a->width * (size_t)a->height * 3);
}

static pnb_status find_equal(pnb__emoji_list *list, pnb_error *err)
{
    uint64_t *hashes = pnb__alloc_array(list->n, sizeof *hashes);
    if (!hashes)
        return pnb__fail_nomem(err, list->n * sizeof *hashes);
    for (size_t i = 0; i < list->n; i++) {
        pnb__emoji *e = &list->items[i];
        size_t n = (size_t)e->image.width * (size_t)e->image.height * 3, j = 0;
        hashes[i] = pnb__hash_bytes(e->image.pixels, n, 0);
        while (j < i && !(hashes[j] == hashes[i] && same_image(&list->items[j].image, &e->image)))
            j++;
        e->first_equal = j < i ? list->items[j].first_equal : i;
    }
    pnb__free(hashes);
    return PNB_OK;
}

pnb_status pnb__emoji_render(pnb__emoji_list *list, const char *font, pnb_error *err)
{
    renderer r = {0};
    unsigned glyph = 0;
    pnb_status status = PNB_OK;
    PNB_TRY(open_renderer(&r, font, err));
    for (size_t i = 0; i < list->n; i++) {
        PNB_TRY(find_glyph(&r, &list->items[i], &glyph, err));
        PNB_TRY(draw_glyph(&r, glyph, &list->items[i], err));
    }
    status = find_equal(list, err);
done:
    close_renderer(&r);
    return status;
}

#endif
