/* Resizing position embeddings as prolip/model.py does through torch.nn.functional.interpolate.
 *
 * Grid: separable cubic convolution (Keys 1981, a = -0.5) whose support grows by the shrink factor,
 * weights normalised per output, sample centres at (i + 0.5) * scale. Text: linear between centres.
 */
#include "models/position_resize.h"

#include <math.h>

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* One axis: in (outer, n_in, inner) -> out (outer, n_out, inner). */
static void resize_axis(const double *in, double *out, const size_t sizes[4])
{
    size_t outer = sizes[0], n_in = sizes[1], n_out = sizes[2], inner = sizes[3];
    double scale = (double)n_in / (double)n_out, stretch = scale > 1 ? scale : 1;
    for (size_t o = 0; o < n_out; o++) {
        double center = scale * ((double)o + 0.5), support = 2 * stretch, total = 0;
        long low = (long)PNB_MAX(center - support + 0.5, 0.0);
        long high = (long)PNB_MIN(center + support + 0.5, (double)n_in);
        for (long i = low; i < high; i++)
            total += cubic(((double)i - center + 0.5) / stretch);
        for (size_t b = 0; b < outer; b++) {
            double *row = out + (b * n_out + o) * inner;
            for (size_t c = 0; c < inner; c++)
                row[c] = 0;
            for (long i = low; i < high; i++) {
                double w = cubic(((double)i - center + 0.5) / stretch) / total;
                const double *from = in + (b * n_in + (size_t)i) * inner;
                for (size_t c = 0; c < inner; c++)
                    row[c] += w * from[c];
            }
        }
    }
}

pnb_status pnb__positions_resize_grid(const pnb__grid_resize *r, const double *old_patches,
                                      double *new_patches, pnb_error *err)
{
    double *wide = pnb__alloc_array(r->old_h * r->new_w * r->width, sizeof *wide);
    if (wide == NULL)
        return pnb__fail_nomem(err, r->old_h * r->new_w * r->width * sizeof *wide);
    resize_axis(old_patches, wide, (const size_t[]){r->old_h, r->old_w, r->new_w, r->width});
    resize_axis(wide, new_patches, (const size_t[]){1, r->old_h, r->new_h, r->new_w * r->width});
    pnb__free(wide);
    return PNB_OK;
}

static void stretch_rows(const double *in, size_t n_in, double *out, size_t n_out, size_t width)
{
    double scale = (double)n_in / (double)n_out;
    for (size_t o = 0; o < n_out; o++) {
        double at = PNB_MAX(scale * ((double)o + 0.5) - 0.5, 0.0);
        size_t low = PNB_MIN((size_t)at, n_in - 1), high = PNB_MIN(low + 1, n_in - 1);
        double t = at - (double)low;
        for (size_t c = 0; c < width; c++)
            out[o * width + c] = (1 - t) * in[low * width + c] + t * in[high * width + c];
    }
}

pnb_status pnb__positions_resize_text(const double *old_rows, size_t n_old, size_t n_new,
                                      size_t width, double *new_rows, pnb_error *err)
{
    enum { KEPT_HEAD = 20, KEPT_TAIL = 2, LONG_TEXT = 127 };
    if (n_old == 0 || n_new == 0)
        return pnb__fail(err, PNB_SHAPE, "there are no positions to resize");
    if (n_new <= LONG_TEXT) {
        stretch_rows(old_rows, n_old, new_rows, n_new, width);
        return PNB_OK;
    }
    if (n_old <= KEPT_HEAD + KEPT_TAIL)
        return pnb__fail(err, PNB_SHAPE,
                         "stretching %zu text positions to %zu keeps the first %d and last %d; "
                         "there must be more than that",
                         n_old, n_new, KEPT_HEAD, KEPT_TAIL);
    size_t middle_old = n_old - KEPT_HEAD - KEPT_TAIL, middle_new = n_new - KEPT_HEAD - KEPT_TAIL;
    for (size_t i = 0; i < KEPT_HEAD * width; i++)
        new_rows[i] = old_rows[i];
    stretch_rows(old_rows + KEPT_HEAD * width, middle_old, new_rows + KEPT_HEAD * width, middle_new,
                 width);
    for (size_t i = 0; i < KEPT_TAIL * width; i++)
        new_rows[(n_new - KEPT_TAIL) * width + i] = old_rows[(n_old - KEPT_TAIL) * width + i];
    return PNB_OK;
}
