/* Axes, ticks, legends, and the marks that data is drawn with.
 *
 * Layout from the outside in: title, then the legend in as many rows as it needs, then the data's
 * rectangle, whose left margin follows the widest tick label. Nothing is ever drawn over the data
 * but the data. Ticks are multiples of 1, 2 or 5 times a power of ten, on logarithmic axes the
 * powers of ten with 2 and 5 between them where there is room, even steps within a decade. */
#include "app/chart.h"

#include <math.h>
#include <string.h>

#include "app/svg.h"

enum { MAX_TICKS = 24 };
#define FONT 12.0
#define LEGEND_ROW 18.0

/* ---- axes ---- */

void pnb__axis_cover(pnb__axis *axis, const double *values, size_t n)
{
    bool empty = !(axis->low <= axis->high) || (axis->low == 0 && axis->high == 0);
    for (size_t i = 0; i < n; i++) {
        double v = values[i];
        if (!isfinite(v) || (axis->log && v <= 0))
            continue;
        axis->low = empty ? v : fmin(axis->low, v);
        axis->high = empty ? v : fmax(axis->high, v);
        empty = false;
    }
}

/* 1, 2 or 5 times a power of ten, at least `step`. */
static double round_step(double step)
{
    double power = pow(10.0, floor(log10(step)));
    double digit = step / power;
    return power * (digit <= 1.0 ? 1.0 : digit <= 2.0 ? 2.0 : digit <= 5.0 ? 5.0 : 10.0);
}

static double step_of(const pnb__axis *axis)
{
    return round_step((axis->high - axis->low) / 5.0);
}

/* Makes the range usable: not empty, and ending on ticks unless exact. */
static void settle(pnb__axis *axis)
{
    if (!isfinite(axis->low) || !isfinite(axis->high) || axis->low > axis->high) {
        axis->low = axis->log ? 0.1 : 0;
        axis->high = 1;
    }
    if (axis->log && axis->low <= 0)
        axis->low = axis->high > 0 ? axis->high * 1e-3 : 1e-3;
    if (axis->high - axis->low <= 1e-12 * fabs(axis->high)) {
        double pad = axis->log ? 0 : PNB_MAX(fabs(axis->high) * 0.1, 1e-9);
        axis->low = axis->log ? axis->low / 2 : axis->low - pad;
        axis->high = axis->log ? axis->high * 2 : axis->high + pad;
    }
    if (axis->exact || axis->log)
        return;
    double step = step_of(axis);
    axis->low = floor(axis->low / step + 1e-9) * step;
    axis->high = ceil(axis->high / step - 1e-9) * step;
}

/* Less than a decade has too few powers of ten: even steps instead, on the same scale. */
static size_t narrow_ticks(const pnb__axis *axis, double *ticks, size_t max)
{
    double step = step_of(axis);
    size_t n = 0;
    for (double k = ceil(axis->low / step - 1e-9); n < max && k * step <= axis->high * 1.0001;
         k += 1)
        ticks[n++] = k * step;
    return n;
}

static size_t log_ticks(const pnb__axis *axis, double *ticks, size_t max)
{
    static const double digits[] = {1, 2, 5};
    double decades = log10(axis->high / axis->low);
    size_t n = 0, per_decade = decades > 2.5 ? 1 : 3;
    if (decades < 1)
        return narrow_ticks(axis, ticks, max);
    int every = decades > 8 ? (int)ceil(decades / 8) : 1;
    int first = (int)floor(log10(axis->low)), last = (int)ceil(log10(axis->high));
    for (int e = first; e <= last; e++)
        for (size_t d = 0; d < per_decade; d++) {
            double v = digits[d] * pow(10.0, e);
            bool inside = v >= axis->low * 0.9999 && v <= axis->high * 1.0001;
            if (inside && (e - first) % every == 0 && n < max)
                ticks[n++] = v;
        }
    return n;
}

size_t pnb__axis_ticks(const pnb__axis *axis, double *ticks, size_t max)
{
    if (axis->log)
        return log_ticks(axis, ticks, max);
    double step = step_of(axis);
    size_t n = 0;
    for (double k = ceil(axis->low / step - 1e-9); n < max; k += 1) {
        if (k * step > axis->high + 1e-9 * step)
            break;
        ticks[n++] = k == 0 ? 0 : k * step;
    }
    return n;
}

void pnb__axis_format(const pnb__axis *axis, double value, char text[24])
{
    double size = fabs(value);
    if (value == 0) {
        snprintf(text, 24, "0");
    } else if (size >= 1e6 || size < 1e-4) {
        snprintf(text, 24, "%g", value);
    } else if (axis->log) {
        snprintf(text, 24, "%.3g", value);
    } else {
        double step = step_of(axis);
        int digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
        snprintf(text, 24, "%.*f", digits, value);
    }
}

static double position(const pnb__axis *axis, double value)
{
    if (axis->log)
        return log(PNB_MAX(value, axis->low * 1e-3) / axis->low) / log(axis->high / axis->low);
    return (value - axis->low) / (axis->high - axis->low);
}

double pnb__chart_x(const pnb__chart *c, double x)
{
    return c->left + position(&c->x, x) * (c->right - c->left);
}

double pnb__chart_y(const pnb__chart *c, double y)
{
    return c->bottom - position(&c->y, y) * (c->bottom - c->top);
}

/* ---- frame ---- */

static double widest_label(const pnb__axis *axis)
{
    double ticks[MAX_TICKS], width = 0;
    size_t n = pnb__axis_ticks(axis, ticks, MAX_TICKS);
    for (size_t i = 0; i < n; i++) {
        char text[24];
        pnb__axis_format(axis, ticks[i], text);
        width = fmax(width, pnb__text_width(text, FONT));
    }
    return width;
}

static void legend_mark(const pnb__chart *c, const pnb__legend_entry *e, double x, double y)
{
    char css[40];
    switch (e->mark) {
    case PNB__MARK_LINE:
        snprintf(css, sizeof css, "line c%d", e->colour);
        pnb__svg_line(c->out, css, x, y - 4, x + 16, y - 4);
        break;
    case PNB__MARK_DOT:
        snprintf(css, sizeof css, "dot c%d", e->colour);
        pnb__svg_circle(c->out, css, x + 8, y - 4, 4);
        break;
    case PNB__MARK_RING:
        snprintf(css, sizeof css, "ring c%d", e->colour);
        pnb__svg_circle(c->out, css, x + 8, y - 4, 5);
        break;
    case PNB__MARK_BAR:
        snprintf(css, sizeof css, "bar c%d", e->colour);
        pnb__svg_rect(c->out, css, x + 2, y - 10, 12, 11);
        break;
    }
}

/* Lays the legend out in rows; draws when `draw`; returns the height it takes. */
static double legend(const pnb__chart *c, double x0, double y0, bool draw)
{
    double x = x0, y = y0;
    if (c->n_legend == 0)
        return 0;
    for (size_t i = 0; i < c->n_legend; i++) {
        double width = 22 + pnb__text_width(c->legend[i].text, FONT) + 16;
        if (x > x0 && x + width > c->width - 8) {
            x = x0;
            y += LEGEND_ROW;
        }
        if (draw) {
            legend_mark(c, &c->legend[i], x, y);
            pnb__svg_text(c->out, "label", x + 22, y, "start", c->legend[i].text);
        }
        x += width;
    }
    return y - y0 + LEGEND_ROW;
}

/* Shrinks the longer direction's rectangle by widening its axis. */
static void equalise(pnb__chart *c)
{
    double x_unit = (c->right - c->left) / (c->x.high - c->x.low);
    double y_unit = (c->bottom - c->top) / (c->y.high - c->y.low);
    pnb__axis *axis = x_unit > y_unit ? &c->x : &c->y;
    double length = x_unit > y_unit ? c->right - c->left : c->bottom - c->top;
    double span = length / PNB_MIN(x_unit, y_unit), middle = (axis->low + axis->high) / 2;
    axis->low = middle - span / 2;
    axis->high = middle + span / 2;
}

static void draw_x_axis(const pnb__chart *c)
{
    double ticks[MAX_TICKS], free_from = -INFINITY;
    size_t n = pnb__axis_ticks(&c->x, ticks, MAX_TICKS);
    for (size_t i = 0; i < n; i++) {
        char text[24];
        double x = pnb__chart_x(c, ticks[i]);
        pnb__axis_format(&c->x, ticks[i], text);
        double half = pnb__text_width(text, FONT) / 2 + 3;
        pnb__svg_line(c->out, "grid", x, c->top, x, c->bottom);
        if (x - half < free_from)
            continue;
        pnb__svg_line(c->out, "axis", x, c->bottom, x, c->bottom + 4);
        pnb__svg_text(c->out, "tick", x, c->bottom + 17, "middle", text);
        free_from = x + half;
    }
    pnb__svg_line(c->out, "axis", c->left, c->bottom, c->right, c->bottom);
    pnb__svg_text(c->out, "label", (c->left + c->right) / 2, c->bottom + 36, "middle", c->x.label);
}

static void draw_y_axis(const pnb__chart *c)
{
    double ticks[MAX_TICKS];
    size_t n = pnb__axis_ticks(&c->y, ticks, MAX_TICKS);
    for (size_t i = 0; i < n; i++) {
        char text[24];
        double y = pnb__chart_y(c, ticks[i]);
        pnb__axis_format(&c->y, ticks[i], text);
        pnb__svg_line(c->out, "grid", c->left, y, c->right, y);
        pnb__svg_line(c->out, "axis", c->left - 4, y, c->left, y);
        pnb__svg_text(c->out, "tick", c->left - 8, y + 4, "end", text);
    }
    pnb__svg_line(c->out, "axis", c->left, c->top, c->left, c->bottom);
    if (c->y.label != NULL)
        pnb__svg_text_up(c->out, "label", 14, (c->top + c->bottom) / 2, c->y.label);
}

void pnb__chart_begin(pnb__chart *c, pnb__buf *out)
{
    c->out = out;
    settle(&c->x);
    settle(&c->y);
    pnb__svg_begin(out, c->width, c->height, c->title);
    pnb__svg_text(out, "title", 4, 18, "start", c->title);
    c->left = 34 + widest_label(&c->y);
    c->right = c->width - 18;
    c->top = 34 + legend(c, 4, 40, false);
    c->bottom = c->height - 46;
    legend(c, 4, 40, true);
    if (c->equal_units)
        equalise(c);
    draw_x_axis(c);
    draw_y_axis(c);
    pnb__buf_printf(out,
                    "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                    "viewBox=\"%.1f %.1f %.1f %.1f\">\n",
                    c->left, c->top, c->right - c->left, c->bottom - c->top, c->left, c->top,
                    c->right - c->left, c->bottom - c->top);
}

void pnb__chart_end(pnb__chart *c)
{
    pnb__svg_end(c->out); /* the data's own clipped rectangle */
    pnb__svg_end(c->out);
}

/* ---- marks ---- */

static void draw_path(const pnb__chart *c, const char *kind, int colour, const double *x,
                      const double *y, size_t n)
{
    char css[40];
    double *px = pnb__alloc_array(2 * n, sizeof *px);
    if (px == NULL) {
        c->out->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        px[i] = pnb__chart_x(c, x[i]);
        px[n + i] = c->y.log && y[i] <= 0 ? NAN : pnb__chart_y(c, y[i]);
    }
    snprintf(css, sizeof css, "%s c%d", kind, colour);
    pnb__svg_polyline(c->out, css, px, px + n, n);
    pnb__free(px);
}

void pnb__chart_line(const pnb__chart *c, int colour, const double *x, const double *y, size_t n)
{
    draw_path(c, "line", colour, x, y, n);
}

void pnb__chart_dashes(const pnb__chart *c, int colour, const double *x, const double *y, size_t n)
{
    draw_path(c, "line dashes", colour, x, y, n);
}

void pnb__chart_dot(const pnb__chart *c, int colour, double x, double y, double radius)
{
    char css[40];
    if (!isfinite(x) || !isfinite(y))
        return;
    snprintf(css, sizeof css, "dot c%d", colour);
    pnb__svg_circle(c->out, css, pnb__chart_x(c, x), pnb__chart_y(c, y), radius);
}

void pnb__chart_bar(const pnb__chart *c, int colour, double x_low, double x_high, double y)
{
    char css[40];
    double left = pnb__chart_x(c, x_low), right = pnb__chart_x(c, x_high);
    double top = pnb__chart_y(c, y);
    snprintf(css, sizeof css, "bar c%d", colour);
    pnb__svg_rect(c->out, css, left, top, PNB_MAX(right - left - 1, 0.5),
                  PNB_MAX(c->bottom - top, 0));
}

/* Eigenvectors of [[xx, xy], [xy, yy]]; radius^2 of the contour is -2 log(1 - share). */
void pnb__chart_gaussian(const pnb__chart *c, int colour, const double mean[2], const double cov[3],
                         double share)
{
    double half_sum = (cov[0] + cov[2]) / 2, half_difference = (cov[0] - cov[2]) / 2;
    double root = hypot(half_difference, cov[1]);
    double radius = sqrt(-2.0 * log(1.0 - share));
    double unit = (c->right - c->left) / (c->x.high - c->x.low);
    const double half_axes[2] = {radius * sqrt(PNB_MAX(half_sum + root, 0.0)) * unit,
                                 radius * sqrt(PNB_MAX(half_sum - root, 0.0)) * unit};
    double angle = 0.5 * atan2(cov[1], half_difference) * 180.0 / 3.14159265358979323846;
    char css[40];
    snprintf(css, sizeof css, "ring c%d", colour);
    pnb__svg_ellipse(c->out, css, pnb__chart_x(c, mean[0]), pnb__chart_y(c, mean[1]), half_axes,
                     -angle);
}
