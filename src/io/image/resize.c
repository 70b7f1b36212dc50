/* Pillow's Image.resize, bit for bit (checked against Pillow 9.4).
 *
 *   out[i] = clip8((2^21 + sum_j in[first_i + j] * round(w_ij * 2^22)) >> 22)
 *   w_ij   = f((first_i + j + 0.5 - centre_i) / s) / sum,   centre_i = box0 + (i + 0.5) * scale
 *   scale  = box width / output width,   s = max(scale, 1)
 *
 * The filter f is widened by s when shrinking, which is the antialiasing. Columns are resampled
 * first, into 8 bits, and only the rows that the second pass reads. The inner loops are in
 * resample.c. NEAREST is Pillow's affine transform: it steps a double by the scale and truncates.
 * Only the requested part of the output is computed, with the weights of the whole.
 *
 * 16-bit grey is Pillow's mode "I": doubles, rounded half away from zero after each pass. Between
 * the passes values may leave 16 bits. */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "io/image/formats/codec.h"
#include "io/image/resample.h"

#define MAX_WEIGHTS (1 << 26) /* reached only by pictures millions of pixels long */
#define PI 3.14159265358979323846

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double sinc(double x)
{
    if (x == 0.0)
        return 1.0;
    x *= PI;
    return sin(x) / x;
}

static double lanczos(double x)
{
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

static double box(double x)
{
    return -0.5 < x && x <= 0.5 ? 1.0 : 0.0;
}

static double hamming(double x)
{
    x = fabs(x);
    if (x == 0.0)
        return 1.0;
    if (x >= 1.0)
        return 0.0;
    x *= PI;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

typedef struct filter_rule {
    double (*value)(double);
    double support;
} filter_rule;

static const filter_rule filter_rules[] = {
    [PNB_FILTER_NEAREST] = {NULL, 0.0},    [PNB_FILTER_BILINEAR] = {bilinear, 1.0},
    [PNB_FILTER_BICUBIC] = {bicubic, 2.0}, [PNB_FILTER_LANCZOS] = {lanczos, 3.0},
    [PNB_FILTER_BOX] = {box, 0.5},         [PNB_FILTER_HAMMING] = {hamming, 1.0},
};

PNB_DEFINE_NAME(pnb_filter_name, pnb_filter, PNB_NAMES(PNB_FILTER_LIST), NULL)

/* One axis of a job: inputs [from, to) of n_in become n_out, of which [start, start + n) is asked.
 */
typedef struct axis {
    int n_in, n_out, start, n;
    float from, to; /* Pillow keeps its box in floats */
} axis;

static void taps_free(pnb__taps *t)
{
    pnb__free(t->first);
    pnb__free(t->count);
    pnb__free(t->weight);
    pnb__free(t->low);
    pnb__free(t->high);
    pnb__free(t->exact);
    *t = (pnb__taps){0};
}

/* Pillow rounds half away from zero: (int)(w * 2^22 +- 0.5). */
static int32_t to_fixed(double w)
{
    double scaled = w * (1 << PNB__RESAMPLE_BITS);
    return (int32_t)(w < 0 ? scaled - 0.5 : scaled + 0.5);
}

static void fill_tap(pnb__taps *t, int i, const double *w, double sum)
{
    size_t at = (size_t)i * (size_t)t->stride;
    for (int j = 0; j < t->count[i]; j++) {
        double share = sum != 0.0 ? w[j] / sum : w[j];
        int32_t fixed = to_fixed(share);
        if (t->exact != NULL)
            t->exact[at + (size_t)j] = share;
        int32_t high = (fixed + (1 << 14)) >> 15;
        t->weight[at + (size_t)j] = fixed;
        t->high[at + (size_t)j] = (int16_t)high;
        t->low[at + (size_t)j] = (int16_t)(fixed - high * (1 << 15));
    }
}

static pnb_status taps_alloc(pnb__taps *t, int n, int widest, bool is_exact, pnb_error *err)
{
    size_t stride = ((size_t)widest + 3) / 4 * 4, total;
    if (pnb__mul_overflows((size_t)n, stride, &total) || total > MAX_WEIGHTS)
        return pnb__fail(err, PNB_LIMIT, "resize: a side needs %d x %zu filter weights, limit %d",
                         n, stride, MAX_WEIGHTS);
    t->n = n;
    t->stride = (int)stride;
    t->first = pnb__alloc_array((size_t)n, sizeof *t->first);
    t->count = pnb__alloc_array((size_t)n, sizeof *t->count);
    t->weight = pnb__alloc_zero(total, sizeof *t->weight);
    t->low = pnb__alloc_zero(total, sizeof *t->low);
    t->high = pnb__alloc_zero(total, sizeof *t->high);
    t->exact = is_exact ? pnb__alloc_zero(total, sizeof *t->exact) : NULL;
    if (!t->first || !t->count || !t->weight || !t->low || !t->high || (is_exact && !t->exact)) {
        taps_free(t);
        return pnb__fail_nomem(err, total * 8);
    }
    return PNB_OK;
}

/* Weights in double as in Pillow's precompute_coeffs, the same operations in the same order. */
static pnb_status taps_create(pnb__taps *t, const axis *a, const filter_rule *rule, bool is_exact,
                              pnb_error *err)
{
    double scale = (double)(a->to - a->from) / a->n_out;
    double filter_scale = scale < 1.0 ? 1.0 : scale;
    double support = rule->support * filter_scale;
    double taps = ceil(support) * 2 + 1; /* no int for sides of hundreds of millions */
    int widest = taps < a->n_in ? (int)taps : a->n_in;
    pnb_status status = taps_alloc(t, a->n, widest, is_exact, err);
    if (status != PNB_OK)
        return status;
    double *w = pnb__alloc_array((size_t)widest, sizeof *w);
    if (w == NULL) {
        taps_free(t);
        return pnb__fail_nomem(err, (size_t)widest * sizeof *w);
    }
    for (int i = 0; i < a->n; i++) {
        double centre = a->from + (a->start + i + 0.5) * scale, sum = 0.0, ss = 1.0 / filter_scale;
        int first = PNB_MAX((int)(centre - support + 0.5), 0);
        double end = centre + support + 0.5;
        int last = end < a->n_in ? (int)end : a->n_in;
        t->first[i] = first;
        t->count[i] = PNB_MAX(last - first, 0);
        for (int j = 0; j < t->count[i]; j++) {
            w[j] = rule->value((j + first - centre + 0.5) * ss);
            sum += w[j];
        }
        fill_tap(t, i, w, sum);
    }
    pnb__free(w);
    return PNB_OK;
}

/* Input rows first_row .. that the second pass reads, resampled along x. Each row is copied to a
 * line with slack behind it, because the fast loops read past the last pixel. */
static pnb_status resample_columns(pnb_image *out, const pnb_image *in, const pnb__taps *taps,
                                   int first_row, int n_rows, pnb_error *err)
{
    size_t pixel = (size_t)in->channels, in_row = (size_t)in->width * pixel;
    pnb_status status = pnb_image_create(out, taps->n, n_rows, in->channels, err);
    if (status != PNB_OK)
        return status;
    unsigned char *line =
        pnb__alloc_zero(in_row + (size_t)taps->stride * pixel + PNB__RESAMPLE_SLACK, 1);
    if (line == NULL) {
        pnb_image_free(out);
        return pnb__fail_nomem(err, in_row);
    }
    pnb__resampler best = pnb__resampler_best();
    for (int y = 0; y < n_rows; y++) {
        memcpy(line, in->pixels + (size_t)(first_row + y) * in_row, in_row);
        best.horizontal(out->pixels + (size_t)y * (size_t)taps->n * pixel, line, taps,
                        in->channels);
    }
    pnb__free(line);
    return PNB_OK;
}

static pnb_status resample_rows(pnb_image *out, const pnb_image *in, const pnb__taps *taps,
                                pnb_error *err)
{
    size_t row = (size_t)in->width * (size_t)in->channels;
    pnb_status status = pnb_image_create(out, in->width, taps->n, in->channels, err);
    if (status != PNB_OK)
        return status;
    pnb__resampler best = pnb__resampler_best();
    for (int y = 0; y < taps->n; y++)
        best.vertical(out->pixels + (size_t)y * row, in->pixels, row, taps, y);
    return PNB_OK;
}

static pnb_status resample(pnb_image *out, const pnb_image *in, const axis *x, const axis *y,
                           pnb_filter filter, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__taps columns = {0}, rows = {0};
    pnb_image narrow = {0};
    bool need_x = x->n_in != x->n_out || x->from != 0 || x->to != (float)x->n_out;
    bool need_y = y->n_in != y->n_out || y->from != 0 || y->to != (float)y->n_out;
    PNB_TRY(taps_create(&columns, x, &filter_rules[filter], false, err));
    PNB_TRY(taps_create(&rows, y, &filter_rules[filter], false, err));
    int first = need_y ? rows.first[0] : y->start;
    int last = need_y ? rows.first[y->n - 1] + rows.count[y->n - 1] : y->start + y->n;
    if (need_x)
        PNB_TRY(resample_columns(&narrow, in, &columns, first, last - first, err));
    else
        PNB_TRY(pnb_image_crop(&narrow, in, x->start, first, x->n, last - first, 0, err));
    if (!need_y) {
        *out = narrow;
        narrow = (pnb_image){0};
        goto done;
    }
    for (int i = 0; i < rows.n; i++)
        rows.first[i] -= first;
    PNB_TRY(resample_rows(out, &narrow, &rows, err));
done:
    taps_free(&columns);
    taps_free(&rows);
    pnb_image_free(&narrow);
    return status;
}

/* One output of one pass over 32-bit values `step` apart. */
static int32_t resample_value(const int32_t *in, size_t step, const pnb__taps *t, int i)
{
    const double *w = t->exact + (size_t)i * (size_t)t->stride;
    double sum = 0.0;
    for (int j = 0; j < t->count[i]; j++)
        sum += in[(size_t)(t->first[i] + j) * step] * w[j];
    return (int32_t)(sum >= 0.0 ? floor(sum + 0.5) : -floor(fabs(sum) + 0.5));
}

/* The rows of `in` that the second pass reads, columns resampled. */
static void narrow_grey16(int32_t *out, const pnb_image *in, const pnb__taps *columns,
                          int first_row, int n_rows, int32_t *line)
{
    for (int r = 0; r < n_rows; r++) {
        const unsigned char *p = in->pixels + 2 * (size_t)(first_row + r) * (size_t)in->width;
        for (int x = 0; x < in->width; x++, p += 2) {
            uint16_t value;
            memcpy(&value, p, 2);
            line[x] = value;
        }
        for (int x = 0; x < columns->n; x++)
            *out++ = resample_value(line, 1, columns, x);
    }
}

/* With equal sizes a filter's weights are 1 and 0, so no pass has to be left out. */
static pnb_status resample_grey16(pnb_image *out, const pnb_image *in, const axis *x, const axis *y,
                                  pnb_filter filter, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__taps columns = {0}, rows = {0};
    int32_t *narrow = NULL, *line = NULL;
    PNB_TRY(taps_create(&columns, x, &filter_rules[filter], true, err));
    PNB_TRY(taps_create(&rows, y, &filter_rules[filter], true, err));
    int first = rows.first[0], last = rows.first[y->n - 1] + rows.count[y->n - 1];
    size_t n = (size_t)(last - first) * (size_t)x->n;
    PNB_TRY(PNB_ALLOC(narrow, n, err));
    PNB_TRY(PNB_ALLOC(line, (size_t)in->width, err));
    PNB_TRY(pnb_image_create(out, x->n, y->n, 2, err));
    narrow_grey16(narrow, in, &columns, first, last - first, line);
    unsigned char *p = out->pixels;
    for (int j = 0; j < y->n; j++) {
        rows.first[j] -= first;
        for (int i = 0; i < x->n; i++, p += 2) {
            int32_t v = resample_value(narrow + i, (size_t)x->n, &rows, j);
            uint16_t value = (uint16_t)(v < 0 ? 0 : PNB_MIN(v, UINT16_MAX));
            memcpy(p, &value, 2);
        }
    }
done:
    taps_free(&columns);
    taps_free(&rows);
    pnb__free(narrow);
    pnb__free(line);
    return status;
}

/* Input position of every asked output: Pillow adds the step once per pixel, and so must this. */
static pnb_status nearest_positions(int **out, const axis *a, pnb_error *err)
{
    int *at = pnb__alloc_array((size_t)a->n, sizeof *at);
    if (at == NULL)
        return pnb__fail_nomem(err, (size_t)a->n * sizeof *at);
    double step = (double)(a->to - a->from) / a->n_out, position = a->from + step * 0.5;
    for (int i = 0; i < a->start + a->n; i++, position += step)
        if (i >= a->start)
            at[i - a->start] = position < 0.0 ? -1 : (int)position;
    *out = at;
    return PNB_OK;
}

static pnb_status resize_nearest(pnb_image *out, const pnb_image *in, const axis *x, const axis *y,
                                 pnb_error *err)
{
    pnb_status status;
    int *columns = NULL, *rows = NULL;
    size_t pixel = (size_t)in->channels;
    PNB_TRY(nearest_positions(&columns, x, err));
    PNB_TRY(nearest_positions(&rows, y, err));
    PNB_TRY(pnb_image_create(out, x->n, y->n, in->channels, err));
    unsigned char *p = out->pixels;
    for (int j = 0; j < y->n; j++) {
        for (int i = 0; i < x->n; i++, p += pixel) {
            bool is_in =
                columns[i] >= 0 && columns[i] < x->n_in && rows[j] >= 0 && rows[j] < y->n_in;
            if (is_in)
                memcpy(p,
                       in->pixels +
                           ((size_t)rows[j] * (size_t)x->n_in + (size_t)columns[i]) * pixel,
                       pixel);
        }
    }
done:
    pnb__free(columns);
    pnb__free(rows);
    return status;
}

/* Colours times alpha and back, as Pillow's RGBA <-> RGBa (LA <-> La). */
static void premultiply(unsigned char *p, size_t n, int channels)
{
    for (size_t i = 0; i < n; i++, p += channels)
        for (int c = 0; c < channels - 1; c++)
            p[c] = (unsigned char)pnb__mul_div_255(p[c], p[channels - 1]);
}

static void unpremultiply(unsigned char *p, size_t n, int channels)
{
    for (size_t i = 0; i < n; i++, p += channels) {
        unsigned alpha = p[channels - 1];
        for (int c = 0; c < channels - 1 && alpha != 0 && alpha != 255; c++) {
            unsigned v = 255u * p[c] / alpha;
            p[c] = (unsigned char)PNB_MIN(v, 255u);
        }
    }
}

static pnb_status resample_alpha(pnb_image *out, const pnb_image *in, const axis *x, const axis *y,
                                 pnb_filter filter, pnb_error *err)
{
    pnb_image copy;
    pnb_status status = pnb_image_crop(&copy, in, 0, 0, in->width, in->height, 0, err);
    if (status != PNB_OK)
        return status;
    premultiply(copy.pixels, (size_t)copy.width * (size_t)copy.height, copy.channels);
    status = resample(out, &copy, x, y, filter, err);
    pnb_image_free(&copy);
    if (status == PNB_OK)
        unpremultiply(out->pixels, (size_t)out->width * (size_t)out->height, out->channels);
    return status;
}

static pnb_status check_job(const pnb_image *in, const pnb__resize_job *job, const pnb_box *box,
                            pnb_error *err)
{
    if (in->pixels == NULL || in->width < 1 || in->height < 1 || in->channels < 1 ||
        in->channels > 4 || (in->mode == PNB_IMAGE_GREY16 && in->channels != 2))
        return pnb__fail(err, PNB_ARG, "resize: the picture is empty");
    if ((size_t)job->filter >= PNB_COUNT(filter_rules))
        return pnb__fail(err, PNB_ARG, "resize: filter %d is unknown", (int)job->filter);
    if (job->full_width < 1 || job->full_height < 1)
        return pnb__fail(err, PNB_ARG, "resize to %dx%d: want at least 1x1", job->full_width,
                         job->full_height);
    if ((int64_t)job->width > PNB_IMAGE_MAX_PIXELS / job->height)
        return pnb__fail(err, PNB_LIMIT, "resize to %dx%d: more than 2^28 pixels", job->width,
                         job->height);
    if (job->may_leave)
        return PNB_OK;
    if (!(box->left >= 0 && box->top >= 0 && box->right <= in->width && box->bottom <= in->height &&
          box->left < box->right && box->top < box->bottom))
        return pnb__fail(err, PNB_ARG, "resize: box (%g,%g,%g,%g) is empty or outside %dx%d",
                         box->left, box->top, box->right, box->bottom, in->width, in->height);
    return PNB_OK;
}

pnb_status pnb__image_resize_part(pnb_image *out, const pnb_image *in, const pnb__resize_job *job,
                                  pnb_error *err)
{
    pnb_box whole = {0, 0, in->width, in->height};
    const pnb_box *box = job->box != NULL ? job->box : &whole;
    *out = (pnb_image){0};
    pnb_status status = check_job(in, job, box, err);
    if (status != PNB_OK)
        return status;
    axis x = {in->width,  job->full_width,  job->left,
              job->width, (float)box->left, (float)box->right};
    axis y = {in->height,  job->full_height, job->top,
              job->height, (float)box->top,  (float)box->bottom};
    bool is_same = job->full_width == in->width && job->full_height == in->height &&
                   box->left == 0 && box->top == 0 && box->right == in->width &&
                   box->bottom == in->height;
    if (is_same) /* no arithmetic at all, so that colours under alpha survive */
        return pnb_image_crop(out, in, job->left, job->top, job->width, job->height, 0, err);
    bool is_grey16 = in->mode == PNB_IMAGE_GREY16;
    bool is_plain = in->mode == PNB_IMAGE_PLAIN || in->mode == PNB_IMAGE_CMYK || is_grey16;
    bool has_alpha = in->mode == PNB_IMAGE_PLAIN && in->channels % 2 == 0;
    if (!is_plain || job->filter == PNB_FILTER_NEAREST)
        status = resize_nearest(out, in, &x, &y, err);
    else if (is_grey16)
        status = resample_grey16(out, in, &x, &y, job->filter, err);
    else if (has_alpha)
        status = resample_alpha(out, in, &x, &y, job->filter, err);
    else
        status = resample(out, in, &x, &y, job->filter, err);
    if (status != PNB_OK)
        return status;
    out->mode = in->mode;
    if (in->palette != NULL) {
        out->palette = pnb__alloc(256 * 3);
        if (out->palette == NULL) {
            pnb_image_free(out);
            return pnb__fail_nomem(err, 256 * 3);
        }
        memcpy(out->palette, in->palette, 256 * 3);
    }
    return PNB_OK;
}

pnb_status pnb_image_resize(pnb_image *out, const pnb_image *in, int width, int height,
                            pnb_filter filter, const pnb_box *box, pnb_error *err)
{
    pnb__resize_job job = {width, height, 0, 0, width, height, filter, box, false};
    return pnb__image_resize_part(out, in, &job, err);
}
