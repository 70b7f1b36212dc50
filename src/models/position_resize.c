/* Resizing position embeddings as the references do through torch.nn.functional.interpolate.
 *
 * With scale s = n_in / n_out and centres c_o = s (o + 1/2):
 *   grid   out_o = sum_i k((i + 1/2 - c_o) / max(s, 1)) in_i / sum_i k(...), one axis after the
 *          other; k is cubic convolution (Keys 1981, a = -1/2), its support grows as it shrinks
 *   text   linear between the two rows around c_o - 1/2
 * Which rows of a text stay as they are is the rule's (position_resize.h). */
#include "models/position_resize.h"

#include <math.h>
#include <string.h>

/* k(x), support |x| < 2:  (a+2)|x|^3 - (a+3)|x|^2 + 1 for |x| < 1,  a|x|^3 - 5a|x|^2 + 8a|x| - 4a
 * for 1 <= |x| < 2. torch takes a = -1/2 with antialiasing and -3/4 without: the first is meant
 * here. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* One axis: in (outer, n_in, inner) -> out (outer, n_out, inner). Weights are divided by their sum,
 * so that at the edges, where the window is cut off, a constant stays a constant. */
static void resize_axis(const double *in, double *out, const size_t sizes[4])
{
    size_t outer = sizes[0], n_in = sizes[1], n_out = sizes[2], inner = sizes[3];
    double scale = (double)n_in / (double)n_out, stretch = scale > 1 ? scale : 1;
    for (size_t o = 0; o < n_out; o++) {
        double center = scale * ((double)o + 0.5), total = 0;
        size_t low = (size_t)PNB_MAX(floor(center - 2 * stretch), 0.0);
        size_t high = (size_t)PNB_MIN(ceil(center + 2 * stretch), (double)n_in);
        for (size_t i = low; i < high; i++)
            total += cubic(((double)i + 0.5 - center) / stretch);
        for (size_t b = 0; b < outer; b++) {
            double *row = out + (b * n_out + o) * inner;
            for (size_t c = 0; c < inner; c++)
                row[c] = 0;
            for (size_t i = low; i < high; i++) {
                double w = cubic(((double)i + 0.5 - center) / stretch);
                const double *from = in + (b * n_in + i) * inner;
                for (size_t c = 0; c < inner; c++)
                    row[c] += w * from[c];
            }
            for (size_t c = 0; c < inner; c++)
                row[c] /= total;
        }
    }
}

/* Columns first, then rows. LongProLIP's weights are f32 and pass through memory between the axes.
 */
pnb_status pnb__positions_resize_grid(const pnb__grid_resize *r, const double *old_patches,
                                      double *new_patches, pnb_error *err)
{
    double *wide = pnb__alloc_array(r->old_h * r->new_w * r->width, sizeof *wide);
    if (wide == NULL)
        return pnb__fail_nomem(err, r->old_h * r->new_w * r->width * sizeof *wide);
    resize_axis(old_patches, wide, (const size_t[]){r->old_h, r->old_w, r->new_w, r->width});
    for (size_t i = 0; r->rule == PNB__POSITIONS_LONGPROLIP && i < r->old_h * r->new_w * r->width;
         i++)
        wide[i] = (double)(float)wide[i];
    resize_axis(wide, new_patches, (const size_t[]){1, r->old_h, r->new_h, r->new_w * r->width});
    pnb__free(wide);
    return PNB_OK;
}

/* Row o lies at (o + 1/2) n_in / n_out - 1/2 among the old ones, not before the first and not
 * behind the last: align_corners false of torch's linear interpolation. */
static void stretch_rows(const double *in, size_t n_in, double *out, size_t n_out, size_t width)
{
    for (size_t o = 0; o < n_out; o++) {
        /* in this order, so that a row halfway between two lies exactly there */
        double at = PNB_MAX(((double)o + 0.5) * (double)n_in / (double)n_out - 0.5, 0.0);
        size_t low = PNB_MIN((size_t)at, n_in - 1), high = PNB_MIN(low + 1, n_in - 1);
        double t = at - (double)low;
        for (size_t c = 0; c < width; c++)
            out[o * width + c] = (1 - t) * in[low * width + c] + t * in[high * width + c];
    }
}

/* Rows at both ends that no rule stretches. */
typedef struct kept_rows {
    size_t head, tail;
} kept_rows;

enum { KEPT_HEAD = 20, KEPT_TAIL = 2, LONG_TEXT = 127 };

/* 20 and 2 are LongProLIP's: the first positions of a text are trained best (Zhang et al. 2024,
 * Long-CLIP, keep as many), the last 2 are [UNC] and [CLS]. */
static kept_rows kept_of(const pnb__text_resize *r)
{
    if (r->rule == PNB__POSITIONS_PROLIP) {
        bool is_long = r->n_new > LONG_TEXT;
        return (kept_rows){is_long ? KEPT_HEAD : 0, is_long ? KEPT_TAIL : 0};
    }
    bool both_long = PNB_MIN(r->n_old, r->n_new) > KEPT_HEAD + r->n_extra;
    return (kept_rows){both_long ? KEPT_HEAD : 0, r->n_extra};
}

pnb_status pnb__positions_resize_text(const pnb__text_resize *r, const double *old_rows,
                                      double *new_rows, pnb_error *err)
{
    const kept_rows kept = kept_of(r);
    size_t n_kept = kept.head + kept.tail, width = r->width;
    if (r->n_old == 0 || r->n_new == 0)
        return pnb__fail(err, PNB_SHAPE, "there are no positions to resize");
    if (r->n_old <= n_kept || r->n_new <= n_kept)
        return pnb__fail(err, PNB_SHAPE,
                         "stretching %zu text positions to %zu keeps the first %zu and last %zu; "
                         "there must be more than that",
                         r->n_old, r->n_new, kept.head, kept.tail);
    memcpy(new_rows, old_rows, kept.head * width * sizeof *new_rows);
    stretch_rows(old_rows + kept.head * width, r->n_old - n_kept, new_rows + kept.head * width,
                 r->n_new - n_kept, width);
    memcpy(new_rows + (r->n_new - kept.tail) * width, old_rows + (r->n_old - kept.tail) * width,
           kept.tail * width * sizeof *new_rows);
    return PNB_OK;
}
