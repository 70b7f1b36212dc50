/* Axes, ticks, legends, and the marks that data is drawn with.
 *
 * Layout from the outside in: the title in as many lines as it needs, the name of the vertical
 * axis, the legend in rows, then the data's rectangle, whose left margin follows the widest tick
 * label; below it the name of the horizontal axis. No text stands on end, none is drawn over
 * another, and nothing over the data but the data. Ticks are multiples of 1, 2 or 5 times a power
 * of ten, on logarithmic axes the powers of ten with 2 and 5 between them where there is room, even
 * steps within a decade. */
#include "report/chart.h"

#include <math.h>
#include <string.h>

#include "io/tables/csv.h"
#include "report/drawing.h"
#include "report/svg.h"

enum { MAX_TICKS = 24 };
#define FONT 12.0
#define TITLE_FONT 14.0
#define LEGEND_ROW 18.0
#define TITLE_ROW 18.0
#define LABEL_ROW 16.0
#define EDGE 4.0

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
    if (axis->exact)
        return;
    if (axis->log) { /* room for the marks at both ends */
        double room = pow(axis->high / axis->low, 0.03);
        axis->low /= room;
        axis->high *= room;
        return;
    }
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
    case PNB__MARK_DASHES:
        snprintf(css, sizeof css, "line dashes c%d", e->colour);
        pnb__svg_line(c->out, css, x, y - 4, x + 18, y - 4);
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
}

/* ---- text above and below ---- */

/* Where a text goes and how it is broken. */
typedef struct paragraph {
    const char *css;
    double font, row, x, width;
    const char *anchor;
} paragraph;

/* Lines of `text` from the baseline y down, broken at spaces; draws when `out` is given. Returns
 * the height of all lines. */
static double put_lines(pnb__buf *out, const paragraph *p, double y, const char *text)
{
    double start = y;
    while (text != NULL && *text != '\0') {
        char line[200];
        size_t n = 0, next = 0;
        for (;;) {
            size_t word = next + strcspn(text + next, " ");
            size_t size = PNB_MIN(word, sizeof line - 1);
            memcpy(line, text, size);
            line[size] = '\0';
            if (n > 0 && pnb__text_width(line, p->font) > p->width)
                break;
            n = word;
            if (text[word] == '\0' || word >= sizeof line - 1)
                break;
            next = word + 1;
        }
        n = PNB_MIN(n, sizeof line - 1);
        memcpy(line, text, n);
        line[n] = '\0';
        if (out != NULL)
            pnb__svg_text(out, p->css, p->x, y, p->anchor, line);
        y += p->row;
        text += n + strspn(text + n, " ");
    }
    return y - start;
}

static void name_of_axis(const pnb__axis *axis, char *text, size_t size)
{
    snprintf(text, size, "%s%s", axis->label != NULL ? axis->label : "",
             axis->label != NULL && axis->log ? ", log scale" : "");
}

/* Title, name of the vertical axis and legend from the top, name of the horizontal one from the
 * bottom; what they leave is the data's. */
static void draw_texts(pnb__chart *c)
{
    const paragraph title = {"title", TITLE_FONT, TITLE_ROW, 4, c->width - 8, "start"};
    const paragraph vertical = {"note", FONT, LABEL_ROW, 4, c->width - 8, "start"};
    paragraph horizontal = {"note", FONT, LABEL_ROW, c->width / 2, c->width - 16, "middle"};
    char x_name[200], y_name[200];
    double y = 18;
    name_of_axis(&c->x, x_name, sizeof x_name);
    name_of_axis(&c->y, y_name, sizeof y_name);
    y += put_lines(c->out, &title, y, c->title);
    y += put_lines(c->out, &vertical, y, y_name);
    double rows = legend(c, 4, y + 2, true);
    c->top = y + rows + (rows > 0 ? 0 : -4);
    double below = put_lines(NULL, &horizontal, 0, x_name);
    c->bottom = c->height - 24 - below;
    put_lines(c->out, &horizontal, c->height - 4 - below + LABEL_ROW - 4, x_name);
}

void pnb__chart_begin(pnb__chart *c, pnb__buf *out)
{
    c->out = out;
    settle(&c->x);
    settle(&c->y);
    pnb__drawing_begin(&c->drawing, out, c->title, c->css != NULL ? c->css : "");
    pnb__svg_begin(out, c->width, c->height, c->title);
    c->left = 16 + widest_label(&c->y);
    c->right = c->width - 18;
    draw_texts(c);
    if (c->equal_units)
        equalise(c);
    draw_x_axis(c);
    draw_y_axis(c);
    /* What leaves the rectangle is cut; a mark on its border stays whole. */
    const double x = c->left - EDGE, y = c->top - EDGE;
    const double width = c->right - c->left + 2 * EDGE, height = c->bottom - c->top + 2 * EDGE;
    pnb__buf_printf(out,
                    "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                    "viewBox=\"%.1f %.1f %.1f %.1f\">\n",
                    x, y, width, height, x, y, width, height);
}

/* ---- data to save ---- */

enum { LINE, DASHES, DOT, BAR, ELLIPSE, N_KINDS };
enum { X, X_TO, Y, Y_LOW, Y_HIGH, XX, XY, YY, N_VALUES };

/* One mark; NaN: it has no such value. */
typedef struct datum {
    int kind, colour;
    double v[N_VALUES];
} datum;

static void keep(pnb__chart *c, int kind, int colour, const double v[N_VALUES])
{
    datum d = {.kind = kind, .colour = colour};
    memcpy(d.v, v, sizeof d.v);
    pnb__buf_append(&c->data, &d, sizeof d);
}

/* The legend's text of a colour, for dashes that of dashes. */
static const char *series_name(const pnb__chart *c, const datum *d)
{
    const char *name = NULL;
    for (size_t i = 0; i < c->n_legend; i++)
        if (c->legend[i].colour == d->colour &&
            (c->legend[i].mark == PNB__MARK_DASHES) == (d->kind == DASHES))
            name = c->legend[i].text;
    for (size_t i = 0; name == NULL && i < c->n_legend; i++)
        if (c->legend[i].colour == d->colour)
            name = c->legend[i].text;
    return name != NULL ? name : d->kind == DASHES ? "reference" : c->title;
}

static void put_header(const pnb__chart *c, const bool used[N_VALUES], pnb__buf *csv)
{
    static const char *const suffix[N_VALUES] = {
        "", " to", "", " low", " high", "variance xx", "covariance xy", "variance yy"};
    pnb__buf_puts(csv, "series,mark");
    for (size_t i = 0; i < N_VALUES; i++) {
        char name[240];
        const char *axis = i <= X_TO ? c->x.label : i <= Y_HIGH ? c->y.label : "";
        if (!used[i])
            continue;
        snprintf(name, sizeof name, "%s%s", axis != NULL ? axis : "y", suffix[i]);
        pnb__buf_putc(csv, ',');
        pnb__csv_put_field(csv, name);
    }
    pnb__buf_putc(csv, '\n');
}

static void put_data(const pnb__chart *c, pnb__buf *csv)
{
    static const char *const kinds[N_KINDS] = {"line", "dashes", "dot", "bar", "ellipse"};
    const datum *d = (const datum *)(const void *)c->data.data;
    size_t n = c->data.size / sizeof *d;
    bool used[N_VALUES] = {false};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < N_VALUES; k++)
            used[k] = used[k] || !isnan(d[i].v[k]);
    put_header(c, used, csv);
    for (size_t i = 0; i < n; i++) {
        pnb__csv_put_field(csv, series_name(c, &d[i]));
        pnb__buf_printf(csv, ",%s", kinds[d[i].kind]);
        for (size_t k = 0; k < N_VALUES; k++)
            if (used[k] && isnan(d[i].v[k]))
                pnb__buf_putc(csv, ',');
            else if (used[k])
                pnb__buf_printf(csv, ",%.9g", d[i].v[k]);
        pnb__buf_putc(csv, '\n');
    }
}

void pnb__chart_end(pnb__chart *c)
{
    pnb__svg_end(c->out); /* the data's own clipped rectangle */
    pnb__svg_end(c->out);
    if (c->data.size > 0)
        put_data(c, &c->drawing.csv);
    c->out->failed = c->out->failed || c->data.failed;
    pnb__buf_reset(&c->data);
    pnb__drawing_end(&c->drawing);
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

static void keep_points(pnb__chart *c, int kind, const pnb__curve *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const double v[N_VALUES] = {p->x[i],
                                    NAN,
                                    p->y[i],
                                    p->low != NULL ? p->low[i] : NAN,
                                    p->high != NULL ? p->high[i] : NAN,
                                    NAN,
                                    NAN,
                                    NAN};
        keep(c, kind, p->colour, v);
    }
}

void pnb__chart_line(pnb__chart *c, int colour, const double *x, const double *y, size_t n)
{
    draw_path(c, "line", colour, x, y, n);
    keep_points(c, LINE, &(pnb__curve){.colour = colour, .x = x, .y = y, .n = n});
}

void pnb__chart_dashes(pnb__chart *c, int colour, const double *x, const double *y, size_t n)
{
    draw_path(c, "line dashes", colour, x, y, n);
    keep_points(c, DASHES, &(pnb__curve){.colour = colour, .x = x, .y = y, .n = n});
}

static void draw_whisker(const pnb__chart *c, const pnb__curve *p, size_t i)
{
    char css[40];
    double low = p->low[i], high = p->high[i];
    if (!isfinite(low) || !isfinite(high) || (c->y.log && high <= 0))
        return;
    low = c->y.log ? fmax(low, c->y.low) : low;
    snprintf(css, sizeof css, "whisker c%d", p->colour);
    double x = pnb__chart_x(c, p->x[i]);
    pnb__svg_line(c->out, css, x, pnb__chart_y(c, low), x, pnb__chart_y(c, high));
}

void pnb__chart_curve(pnb__chart *c, const pnb__curve *p)
{
    char css[40];
    snprintf(css, sizeof css, "dot c%d", p->colour);
    for (size_t i = 0; p->low != NULL && i < p->n; i++)
        draw_whisker(c, p, i);
    draw_path(c, "line", p->colour, p->x, p->y, p->n);
    for (size_t i = 0; p->radius > 0 && i < p->n; i++)
        if (isfinite(p->x[i]) && isfinite(p->y[i]) && !(c->y.log && p->y[i] <= 0))
            pnb__svg_circle(c->out, css, pnb__chart_x(c, p->x[i]), pnb__chart_y(c, p->y[i]),
                            p->radius);
    keep_points(c, LINE, p);
}

void pnb__chart_dot(pnb__chart *c, int colour, double x, double y, double radius)
{
    char css[40];
    if (!isfinite(x) || !isfinite(y))
        return;
    snprintf(css, sizeof css, "dot c%d", colour);
    pnb__svg_circle(c->out, css, pnb__chart_x(c, x), pnb__chart_y(c, y), radius);
    keep(c, DOT, colour, (double[N_VALUES]){x, NAN, y, NAN, NAN, NAN, NAN, NAN});
}

void pnb__chart_bar(pnb__chart *c, int colour, double x_low, double x_high, double y)
{
    char css[40];
    double left = pnb__chart_x(c, x_low), right = pnb__chart_x(c, x_high);
    double top = pnb__chart_y(c, y);
    snprintf(css, sizeof css, "bar c%d", colour);
    pnb__svg_rect(c->out, css, left, top, PNB_MAX(right - left - 1, 0.5),
                  PNB_MAX(c->bottom - top, 0));
    keep(c, BAR, colour, (double[N_VALUES]){x_low, x_high, y, NAN, NAN, NAN, NAN, NAN});
}

/* Eigenvectors of [[xx, xy], [xy, yy]]; radius^2 of the contour is -2 log(1 - share). */
void pnb__chart_gaussian(pnb__chart *c, int colour, const double mean[2], const double cov[3],
                         double share)
{
    double half_sum = (cov[0] + cov[2]) / 2, half_difference = (cov[0] - cov[2]) / 2;
    double root = hypot(half_difference, cov[1]);
    double radius = sqrt(-2.0 * log(1.0 - share));
    double unit = (c->right - c->left) / (c->x.high - c->x.low);
    const double half_axes[2] = {radius * sqrt(PNB_MAX(half_sum + root, 0.0)) * unit,
                                 radius * sqrt(PNB_MAX(half_sum - root, 0.0)) * unit};
    double angle = 0.5 * atan2(cov[1], half_difference) * 180.0 / 3.14159265358979323846;
    double x = pnb__chart_x(c, mean[0]), y = pnb__chart_y(c, mean[1]);
    char css[40];
    snprintf(css, sizeof css, "ring c%d", colour);
    pnb__svg_ellipse(c->out, css, x, y, half_axes, -angle);
    snprintf(css, sizeof css, "dot c%d", colour);
    pnb__svg_circle(c->out, css, x, y, 1.6);
    keep(c, ELLIPSE, colour,
         (double[N_VALUES]){mean[0], NAN, mean[1], NAN, NAN, cov[0], cov[1], cov[2]});
}
