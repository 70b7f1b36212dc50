/* COCO's three ways to write a mask.
 *
 *   polygons      [[x0,y0,x1,y1,...],...] in pixels, the mask is their union
 *   RLE           {"size":[h,w],"counts":[n0,n1,...]}: lengths of runs down the columns, 0 first
 *   compressed    counts as text: numbers in groups of 5 bits from the lowest, character - 48, 32
 * says that more follows, 16 in the last group is the sign; from the fourth run on the number is
 * the difference to the run two before A pixel belongs to a polygon when its centre lies inside
 * (even-odd). pycocotools traces the outline at fivefold size instead, so that pixels cut by an
 * outline can differ; areas agree to that border. */
#include "data/sources/coco/coco_mask.h"

#include <math.h>
#include <string.h>

enum { MAX_POINTS = 100000 };

/* ---- polygons ---- */

static size_t n_pixels(int width, int height)
{
    return (size_t)width * (size_t)height;
}

/* Flips in each row the first pixel whose centre lies right of the edge; a running sum along the
 * row then says inside or outside. */
static void add_edge(const double a[2], const double b[2], int width, int height,
                     unsigned char *flips)
{
    const double *top = a[1] < b[1] ? a : b, *bottom = a[1] < b[1] ? b : a;
    if (!(top[1] < bottom[1]))
        return;
    double first = fmax(ceil(top[1] - 0.5), 0.0);
    double last = fmin(ceil(bottom[1] - 0.5), (double)height); /* exclusive: corners count once */
    for (int y = (int)first; y < (int)last; y++) {
        double t = ((double)y + 0.5 - top[1]) / (bottom[1] - top[1]);
        double x = ceil(top[0] + t * (bottom[0] - top[0]) - 0.5);
        if (x < (double)width)
            flips[(size_t)y * (size_t)width + (size_t)fmax(x, 0.0)] ^= 1;
    }
}

static pnb_status read_point(const json_t *polygon, size_t i, double point[2], pnb_error *err)
{
    for (size_t c = 0; c < 2; c++) {
        const json_t *value = json_array_get(polygon, 2 * i + c);
        if (!json_is_number(value))
            return pnb__fail(err, PNB_FORMAT, "coordinate %zu of a polygon is not a number",
                             2 * i + c);
        point[c] = fmin(fmax(json_number_value(value), -1e6), 1e6);
    }
    return PNB_OK;
}

static pnb_status add_polygon(const json_t *polygon, int width, int height, unsigned char *flips,
                              unsigned char *mask, pnb_error *err)
{
    size_t n_values = json_array_size(polygon), n = n_values / 2;
    double first[2], from[2], to[2];
    pnb_status status = PNB_OK;
    if (!json_is_array(polygon) || n_values % 2 != 0 || n < 3)
        return pnb__fail(err, PNB_FORMAT,
                         "a polygon has %zu numbers; x and y of at least 3 corners are wanted",
                         n_values);
    if (n > MAX_POINTS)
        return pnb__fail(err, PNB_LIMIT, "a polygon has %zu corners; at most %d are read", n,
                         MAX_POINTS);
    memset(flips, 0, n_pixels(width, height));
    PNB_TRY(read_point(polygon, 0, first, err));
    memcpy(from, first, sizeof from);
    for (size_t i = 1; i < n; i++) {
        PNB_TRY(read_point(polygon, i, to, err));
        add_edge(from, to, width, height, flips);
        memcpy(from, to, sizeof from);
    }
    add_edge(from, first, width, height, flips);
    for (int y = 0; y < height; y++) {
        unsigned char inside = 0;
        for (size_t x = 0; x < (size_t)width; x++) {
            inside ^= flips[(size_t)y * (size_t)width + x];
            mask[(size_t)y * (size_t)width + x] |= inside;
        }
    }
done:
    return status;
}

static pnb_status read_polygons(const json_t *list, int width, int height, unsigned char *mask,
                                pnb_error *err)
{
    pnb_status status = PNB_OK;
    unsigned char *flips = pnb__alloc(n_pixels(width, height));
    if (flips == NULL)
        return pnb__fail_nomem(err, n_pixels(width, height));
    if (json_array_size(list) == 0)
        status = pnb__fail(err, PNB_FORMAT, "the list of polygons is empty");
    for (size_t i = 0; i < json_array_size(list) && status == PNB_OK; i++)
        status = add_polygon(json_array_get(list, i), width, height, flips, mask, err);
    pnb__free(flips);
    return status;
}

/* ---- runs ---- */

/* One number of the compressed text; *at moves behind it. */
static pnb_status read_number(const char **at, int64_t *out, pnb_error *err)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 5) {
        int code = **at - 48;
        if (**at == '\0')
            return pnb__fail(err, PNB_FORMAT, "the compressed runs end within a number");
        if (code < 0 || code > 63)
            return pnb__fail(err, PNB_FORMAT, "'%c' is no character of compressed runs", **at);
        if (shift > 30)
            return pnb__fail(err, PNB_FORMAT, "a number of the compressed runs is too long");
        (*at)++;
        value |= (uint64_t)(code & 31) << shift;
        if (code & 32)
            continue;
        if (code & 16)
            value |= ~(uint64_t)0 << (shift + 5);
        memcpy(out, &value, sizeof value);
        return PNB_OK;
    }
}

pnb_status pnb__coco_runs(const char *text, uint32_t *runs, size_t *n_runs, pnb_error *err)
{
    int64_t before[2] = {0, 0}; /* the last run and the one before it */
    size_t n = 0;
    for (const char *at = text; *at != '\0'; n++) {
        int64_t value = 0;
        pnb_status status = read_number(&at, &value, err);
        if (status != PNB_OK)
            return status;
        if (n > 2)
            value += before[1];
        if (value < 0 || value > INT32_MAX)
            return pnb__fail(err, PNB_FORMAT, "run %zu has length %lld", n, (long long)value);
        if (runs != NULL)
            runs[n] = (uint32_t)value;
        before[1] = before[0];
        before[0] = value;
    }
    *n_runs = n;
    return PNB_OK;
}

static pnb_status list_runs(const json_t *list, uint32_t *runs, pnb_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        json_int_t length = json_integer_value(value);
        if (!json_is_integer(value) || length < 0 || length > INT32_MAX)
            return pnb__fail(err, PNB_FORMAT, "run %zu is not a length", i);
        runs[i] = (uint32_t)length;
    }
    return PNB_OK;
}

/* Runs go down the columns. */
static pnb_status draw_runs(const uint32_t *runs, size_t n_runs, int width, int height,
                            unsigned char *mask, pnb_error *err)
{
    size_t at = 0, total = n_pixels(width, height), rows = (size_t)height;
    for (size_t i = 0; i < n_runs; i++) {
        if (runs[i] > total - at)
            return pnb__fail(err, PNB_FORMAT, "the runs are longer than the %dx%d picture", width,
                             height);
        for (size_t end = at + runs[i]; at < end; at++)
            if (i % 2 == 1)
                mask[at % rows * (size_t)width + at / rows] = 1;
    }
    if (at != total)
        return pnb__fail(err, PNB_FORMAT, "the runs cover %zu pixels, the %dx%d picture has %zu",
                         at, width, height, total);
    return PNB_OK;
}

static pnb_status read_rle(const json_t *rle, int width, int height, unsigned char *mask,
                           pnb_error *err)
{
    const json_t *size = json_object_get(rle, "size"), *counts = json_object_get(rle, "counts");
    const char *text = json_string_value(counts);
    uint32_t *runs = NULL;
    size_t n_runs = json_array_size(counts);
    pnb_status status = PNB_OK;
    if (json_array_size(size) != 2 || (text == NULL && !json_is_array(counts)))
        return pnb__fail(err, PNB_FORMAT,
                         "a segmentation has no \"size\": [h, w] or no \"counts\"");
    if (json_integer_value(json_array_get(size, 0)) != height ||
        json_integer_value(json_array_get(size, 1)) != width)
        return pnb__fail(err, PNB_SHAPE,
                         "a mask is of %lldx%lld pixels (width x height), its picture of %dx%d",
                         (long long)json_integer_value(json_array_get(size, 1)),
                         (long long)json_integer_value(json_array_get(size, 0)), width, height);
    if (text != NULL)
        PNB_TRY(pnb__coco_runs(text, NULL, &n_runs, err));
    PNB_TRY(PNB_ALLOC(runs, n_runs + 1, err));
    PNB_TRY(text != NULL ? pnb__coco_runs(text, runs, &n_runs, err) : list_runs(counts, runs, err));
    status = draw_runs(runs, n_runs, width, height, mask, err);
done:
    pnb__free(runs);
    return status;
}

pnb_status pnb__coco_mask(const json_t *segmentation, int width, int height, unsigned char *mask,
                          pnb_error *err)
{
    memset(mask, 0, n_pixels(width, height));
    if (json_is_array(segmentation))
        return read_polygons(segmentation, width, height, mask, err);
    if (json_is_object(segmentation))
        return read_rle(segmentation, width, height, mask, err);
    return pnb__fail(err, PNB_FORMAT, "a segmentation is neither polygons nor runs");
}
