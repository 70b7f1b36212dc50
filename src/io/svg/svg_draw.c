/* SVG by librsvg on a cairo surface. The surface's size is the caller's, never the file's, and the
 * handle is made from memory without a base address, so that nothing else is read. What the drawing
 * costs is bounded before, by svg_facts.c.
 *
 * A page larger than what is kept is drawn shifted; librsvg clips to the page by itself. */
#include "io/svg/svg_draw.h"

#include "io/svg/svg_facts.h"

#ifndef PNB_HAVE_RSVG

pnb_status pnb__svg_draw(pnb_image *out, const char *bytes, size_t n, int side, const pnb_box *part,
                         pnb_error *err)
{
    (void)bytes;
    (void)n;
    (void)side;
    (void)part;
    *out = (pnb_image){0};
    return pnb__svg_check(err);
}

#else

#include <dlfcn.h>
#include <math.h>

#include <librsvg/rsvg.h>

#include "io/svg/svg_library.h"

enum { MAX_SIDE = 4096 };

#define FUNCTIONS(X)                                                                               \
    X(rsvg_handle_new_from_data)                                                                   \
    X(rsvg_handle_set_dpi)                                                                         \
    X(rsvg_handle_get_intrinsic_size_in_pixels)                                                    \
    X(rsvg_handle_get_intrinsic_dimensions)                                                        \
    X(rsvg_handle_render_document)                                                                 \
    X(g_object_unref)                                                                              \
    X(g_error_free)                                                                                \
    X(cairo_image_surface_create)                                                                  \
    X(cairo_surface_flush)                                                                         \
    X(cairo_surface_destroy)                                                                       \
    X(cairo_image_surface_get_data)                                                                \
    X(cairo_image_surface_get_stride)                                                              \
    X(cairo_create)                                                                                \
    X(cairo_set_source_rgb)                                                                        \
    X(cairo_paint)                                                                                 \
    X(cairo_status)                                                                                \
    X(cairo_destroy)

typedef struct library {
    void *handle;
    FUNCTIONS(PNB__LIBRARY_FIELD)
} library;

static pnb_status open_library(library *lib, pnb_error *err)
{
    static const pnb__library rsvg = {"librsvg-2.so.2", "librsvg2-2", PNB__SVG_LOST, false};
    return PNB__LIBRARY_OPEN(&lib->handle, &rsvg, FUNCTIONS, err);
}

pnb_status pnb__svg_check(pnb_error *err)
{
    library lib = {0};
    pnb__xml_library xml = {0};
    pnb_status status = open_library(&lib, err);
    if (status == PNB_OK)
        status = pnb__xml_open(&xml, err);
    pnb__xml_close(&xml);
    if (lib.handle != NULL)
        dlclose(lib.handle);
    return status;
}

/* Width over height of the page: its size in pixels, else its view box, else a square. */
static double page_aspect(const library *lib, RsvgHandle *svg)
{
    double width = 0, height = 0;
    gboolean has_width, has_height, has_box;
    RsvgLength w, h;
    RsvgRectangle box = {0};
    if (!lib->rsvg_handle_get_intrinsic_size_in_pixels(svg, &width, &height)) {
        lib->rsvg_handle_get_intrinsic_dimensions(svg, &has_width, &w, &has_height, &h, &has_box,
                                                  &box);
        width = has_box ? box.width : 1;
        height = has_box ? box.height : 1;
    }
    double aspect = width / height;
    return aspect > 0 && isfinite(aspect) ? PNB_MIN(PNB_MAX(aspect, 1e-3), 1e3) : 1;
}

static void copy_pixels(pnb_image *out, const unsigned char *rows, int stride)
{
    for (int y = 0; y < out->height; y++) {
        const uint32_t *in = (const uint32_t *)(const void *)(rows + (size_t)y * (size_t)stride);
        unsigned char *to = out->pixels + 3 * (size_t)y * (size_t)out->width;
        for (int x = 0; x < out->width; x++, to += 3) {
            to[0] = (unsigned char)(in[x] >> 16);
            to[1] = (unsigned char)(in[x] >> 8);
            to[2] = (unsigned char)in[x];
        }
    }
}

/* Draws the page of `whole` on a surface of the picture's size. */
static pnb_status render(const library *lib, RsvgHandle *svg, const RsvgRectangle *whole,
                         pnb_image *out, pnb_error *err)
{
    GError *failure = NULL;
    pnb_status status = PNB_OK;
    cairo_surface_t *surface =
        lib->cairo_image_surface_create(CAIRO_FORMAT_RGB24, out->width, out->height);
    cairo_t *cairo = lib->cairo_create(surface);
    lib->cairo_set_source_rgb(cairo, 1, 1, 1);
    lib->cairo_paint(cairo);
    if (!lib->rsvg_handle_render_document(svg, cairo, whole, &failure))
        status = pnb__fail(err, PNB_FORMAT, "SVG: %s",
                           failure != NULL ? failure->message : "librsvg cannot draw it");
    else if (lib->cairo_status(cairo) == CAIRO_STATUS_NO_MEMORY)
        status = pnb__fail_nomem(err, 0);
    else if (lib->cairo_status(cairo) != CAIRO_STATUS_SUCCESS)
        status = pnb__fail(err, PNB_FORMAT, "SVG: cairo cannot draw it");
    lib->cairo_surface_flush(surface);
    if (status == PNB_OK)
        copy_pixels(out, lib->cairo_image_surface_get_data(surface),
                    lib->cairo_image_surface_get_stride(surface));
    if (failure != NULL)
        lib->g_error_free(failure);
    lib->cairo_destroy(cairo);
    lib->cairo_surface_destroy(surface);
    return status;
}

static pnb_status draw(const library *lib, RsvgHandle *svg, int side, const pnb_box *part,
                       pnb_image *out, pnb_error *err)
{
    double aspect = page_aspect(lib, svg);
    double width = aspect < 1 ? side * aspect : side, height = aspect < 1 ? side : side / aspect;
    const pnb_box page = {0, 0, width / side, height / side};
    const pnb_box *kept = part != NULL ? part : &page;
    double w = (kept->right - kept->left) * side, h = (kept->bottom - kept->top) * side;
    if (!(w > 0) || !(h > 0) || !(w <= 1e6) || !(h <= 1e6))
        return pnb__fail(err, PNB_ARG, "an SVG is to be drawn on %gx%g pixels", w, h);
    int n_x = (int)PNB_MIN(PNB_MAX(ceil(w - 1e-6), 1), MAX_SIDE);
    int n_y = (int)PNB_MIN(PNB_MAX(ceil(h - 1e-6), 1), MAX_SIDE);
    const RsvgRectangle whole = {-kept->left * side, -kept->top * side, width, height};
    pnb_status status = pnb_image_create(out, n_x, n_y, 3, err);
    if (status == PNB_OK)
        status = render(lib, svg, &whole, out, err);
    return status;
}

pnb_status pnb__svg_draw(pnb_image *out, const char *bytes, size_t n, int side, const pnb_box *part,
                         pnb_error *err)
{
    library lib = {0};
    GError *failure = NULL;
    *out = (pnb_image){0};
    if (side < 1 || side > MAX_SIDE * 16)
        return pnb__fail(err, PNB_ARG, "an SVG of %d pixels a side", side);
    pnb_status status = open_library(&lib, err);
    if (status != PNB_OK)
        return status;
    RsvgHandle *svg = lib.rsvg_handle_new_from_data((const guint8 *)bytes, n, &failure);
    if (svg == NULL) {
        status = pnb__fail(err, PNB_FORMAT, "SVG: %s",
                           failure != NULL ? failure->message : "librsvg cannot read it");
    } else {
        lib.rsvg_handle_set_dpi(svg, 96);
        status = draw(&lib, svg, side, part, out, err);
        lib.g_object_unref(svg);
    }
    if (failure != NULL)
        lib.g_error_free(failure);
    dlclose(lib.handle);
    if (status != PNB_OK)
        pnb_image_free(out);
    return status;
}

#endif
