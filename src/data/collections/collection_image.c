/* Pictures of a collection: the SVG by librsvg, else the PNG over white; cut to what is drawn (many
 * drawings are a corner of a sheet of paper), a margin of 1/32 around, centred on a white square.
 * An SVG is drawn twice: small to see where something is, then that part at its full size.
 *
 * Pictures are independent, so threads take them in parts and nothing depends on their number. */
#include <math.h>
#include <string.h>

#include "data/collections/collection.h"
#include "data/collections/collection_files.h"
#include "io/svg/svg_draw.h"

enum {
    LOOK_SIDE = 256, /* of the small drawing */
    INK = 8,         /* a value this far from white is drawn */
    MARGIN_PARTS = 32,
    STRIDE = 1000003,    /* a prime above any number of files */
    MAX_PIXELS = 1 << 25 /* of a PNG: 128 MiB as RGBA; the largest that is shipped has 6e8 */
};

/* The rectangle that holds all ink, in pixels; false for none. */
static bool find_ink(const pnb_image *image, int box[4])
{
    box[0] = image->width;
    box[1] = image->height;
    box[2] = box[3] = 0;
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++) {
            const unsigned char *p =
                image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
            if (p[0] >= 255 - INK && p[1] >= 255 - INK && p[2] >= 255 - INK)
                continue;
            box[0] = PNB_MIN(box[0], x);
            box[1] = PNB_MIN(box[1], y);
            box[2] = PNB_MAX(box[2], x + 1);
            box[3] = PNB_MAX(box[3], y + 1);
        }
    return box[0] < box[2];
}

/* BLANK and no other failure here: what is white all over is counted, not reported as unreadable.
 */
enum { BLANK = PNB_SHAPE };

static pnb_status fail_blank(pnb_error *err)
{
    return pnb__fail(err, (pnb_status)BLANK, "the picture is white all over");
}

static pnb_status draw_svg(pnb_image *out, const char *path, int size, pnb_error *err)
{
    char *bytes = NULL;
    size_t n = 0;
    int box[4];
    pnb_image look = {0};
    pnb_status status;
    *out = (pnb_image){0};
    PNB_TRY(pnb__collection_read_file(path, &bytes, &n, err));
    PNB_TRY(pnb__svg_draw(&look, bytes, n, LOOK_SIDE, NULL, err));
    if (!find_ink(&look, box))
        PNB_TRY(fail_blank(err));
    int longest = PNB_MAX(box[2] - box[0], box[3] - box[1]);
    /* One pixel of the look around it, so that nothing thinner is cut off. */
    const pnb_box part = {PNB_MAX(box[0] - 1, 0) / (double)LOOK_SIDE,
                          PNB_MAX(box[1] - 1, 0) / (double)LOOK_SIDE,
                          PNB_MIN(box[2] + 1, look.width) / (double)LOOK_SIDE,
                          PNB_MIN(box[3] + 1, look.height) / (double)LOOK_SIDE};
    status =
        pnb__svg_draw(out, bytes, n, (int)ceil((double)size * LOOK_SIDE / longest), &part, err);
done:
    pnb_image_free(&look);
    pnb__free(bytes);
    return status;
}

/* Over white: what alpha hides does not show. */
static void put_on_white(const pnb_image *in, pnb_image *out)
{
    size_t n = (size_t)in->width * (size_t)in->height, channels = (size_t)in->channels;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) {
            unsigned value = in->pixels[channels * i + c];
            unsigned alpha = channels == 4 ? in->pixels[4 * i + 3] : 255;
            out->pixels[3 * i + c] =
                (unsigned char)((value * alpha + 255 * (255 - alpha) + 127) / 255);
        }
}

static pnb_status load_png(pnb_image *out, const char *path, pnb_error *err)
{
    pnb_image_opts opts = pnb_image_opts_default();
    pnb_image read = {0};
    pnb_status status;
    *out = (pnb_image){0};
    opts.max_pixels = MAX_PIXELS;
    opts.keep_alpha = true;
    PNB_TRY(pnb_image_load(&read, path, &opts, err));
    PNB_TRY(pnb_image_create(out, read.width, read.height, 3, err));
    put_on_white(&read, out);
done:
    pnb_image_free(&read);
    return status;
}

/* Light and colours of a small picture without their mean: unit length, so that a product of two is
 * their correlation. */
static pnb_status make_thumb(pnb__collected *item, const pnb_image *image, pnb_error *err)
{
    pnb_image small = {0};
    double sum = 0, squares = 0;
    pnb_status status;
    PNB_TRY(pnb_image_resize(&small, image, PNB__THUMB_SIDE, PNB__THUMB_SIDE, PNB_FILTER_BOX, NULL,
                             err));
    PNB_TRY(PNB_ALLOC(item->thumb, PNB__THUMB, err));
    for (size_t i = 0; i < PNB__THUMB; i++)
        sum += small.pixels[i];
    for (size_t i = 0; i < PNB__THUMB; i++) {
        double x = small.pixels[i] - sum / PNB__THUMB;
        squares += x * x;
    }
    double length = squares > 0 ? sqrt(squares) : 1;
    for (size_t i = 0; i < PNB__THUMB; i++)
        item->thumb[i] = (float)((small.pixels[i] - sum / PNB__THUMB) / length);
    if (!(squares > 0)) /* one colour all over: a direction of its own by its value */
        item->thumb[(size_t)sum / 255 % PNB__THUMB] = 1;
done:
    pnb_image_free(&small);
    return status;
}

pnb_status pnb__collected_take(pnb__collected *item, const pnb_image *image, int size,
                               pnb_error *err)
{
    pnb_image square = {0}, resized = {0};
    int box[4];
    pnb_status status;
    if (!find_ink(image, box))
        return fail_blank(err);
    int ink = PNB_MAX(box[2] - box[0], box[3] - box[1]);
    int side = ink + 2 * ((ink + MARGIN_PARTS - 1) / MARGIN_PARTS);
    PNB_TRY(pnb_image_crop(&square, image, (box[0] + box[2] - side) / 2,
                           (box[1] + box[3] - side) / 2, side, side, 255, err));
    PNB_TRY(pnb_image_resize(&resized, &square, size, size, PNB_FILTER_BICUBIC, NULL, err));
    PNB_TRY(make_thumb(item, &resized, err));
    status = pnb_image_encode_png(&resized, &item->encoded, &item->n_encoded, err);
done:
    pnb_image_free(&square);
    pnb_image_free(&resized);
    return status;
}

static pnb_status draw_file(pnb__collected *item, bool is_svg, int size, pnb_error *err)
{
    pnb_image image = {0};
    pnb_status status =
        is_svg ? draw_svg(&image, item->svg, size, err) : load_png(&image, item->png, err);
    if (status == PNB_OK)
        status = pnb__collected_take(item, &image, size, err);
    pnb_image_free(&image);
    return status;
}

/* The first of its files that can be drawn. The error is that of the last, behind why the SVG was
 * none: where the PNG is missing, that is what somebody has to mend. */
static pnb_status draw_item(pnb__collected *item, int size, pnb_error *err)
{
    pnb_error of_svg = PNB_ERROR_INIT, of_png = PNB_ERROR_INIT;
    pnb_status status = pnb__fail(err, PNB_NOT_FOUND, "no picture");
    if (item->svg != NULL) {
        status = draw_file(item, true, size, &of_svg);
        *err = of_svg;
    }
    if (status == PNB_OK || status == PNB_NOMEM || item->png == NULL)
        return status;
    status = draw_file(item, false, size, &of_png);
    *err = of_png;
    const char *why = item->refused != NULL ? item->refused : of_svg.text;
    if (status != PNB_OK && status != (pnb_status)BLANK && why[0] != '\0')
        pnb__error_prefix(err, "%s%s; in its place",
                          pnb__starts_with(why, "SVG: ") ? "" : "SVG: ", why);
    return status;
}

typedef struct job {
    pnb__collection *c;
    pnb_error *why; /* [n] */
} job;

static void draw_range(void *user, size_t begin, size_t end, int thread)
{
    job *j = user;
    (void)thread;
    for (size_t k = begin; k < end; k++) {
        size_t i = k * STRIDE % j->c->n; /* costly neighbours come to different threads */
        if (j->c->items[i].encoded == NULL)
            (void)draw_item(&j->c->items[i], j->c->opts->size, &j->why[i]);
    }
}

pnb_status pnb__collection_draw(const pnb_ctx *ctx, pnb__collection *c, pnb_error *err)
{
    job j = {.c = c};
    size_t n = 0;
    pnb_status status = PNB_ALLOC_ZERO(j.why, c->n + 1, err);
    if (status != PNB_OK)
        return status;
    pnb__parallel_for(ctx, c->n, 1, draw_range, &j);
    for (size_t i = 0; i < c->n; i++) {
        if (c->items[i].encoded == NULL && j.why[i].status == PNB_NOMEM && status == PNB_OK)
            status = pnb__fail(err, PNB_NOMEM, "%s", j.why[i].text);
        if (c->items[i].encoded != NULL) {
            c->items[n++] = c->items[i];
            continue;
        }
        c->stats->n_blank += j.why[i].status == (pnb_status)BLANK;
        if (status == PNB_OK && j.why[i].status != (pnb_status)BLANK)
            pnb__collection_skip(c, c->items[i].file, j.why[i].text);
        pnb__collected_reset(&c->items[i]);
    }
    c->n = n;
    pnb__free(j.why);
    if (status == PNB_OK && n == 0)
        status = pnb__fail(err, PNB_FORMAT, "not one picture could be drawn");
    return status;
}
