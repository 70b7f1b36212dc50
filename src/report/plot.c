/* From the rows of a result to the marks of a chart.
 *
 * Two passes: all values are read first, for the axes must hold them before the first mark. */
#include "report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { MANY_DOTS = 40 };
#define RADIUS 2.2
#define HALF_BAR 0.38 /* of a bar that stands at a place instead of on a range */

typedef enum column { X, X_TO, Y, LOW, HIGH, N_COLUMNS } column;

typedef struct points {
    double *v[N_COLUMNS]; /* one block, v[X] its begin; NaN where a row has no such value */
    size_t n;
} points;

typedef struct drawing {
    const pnb__plot *plot;
    points of[PNB__MAX_SERIES];
    pnb__chart chart;
    char label[160]; /* of changes */
} drawing;

/* ---- reading ---- */

double pnb__json_real_at(const json_t *row, const char *key)
{
    const json_t *value = key != NULL ? json_object_get(row, key) : NULL;
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* Row i of an array of rows, or of an object of lists. */
static double value_at(const json_t *table, size_t i, const char *key)
{
    if (json_is_array(table))
        return pnb__json_real_at(json_array_get(table, i), key);
    const json_t *value = key != NULL ? json_array_get(json_object_get(table, key), i) : NULL;
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool is_wanted(const json_t *table, size_t i, const pnb__series *s)
{
    if (s->where == NULL)
        return true;
    const char *text = json_string_value(json_object_get(json_array_get(table, i), s->where));
    return text != NULL && strcmp(text, s->is) == 0;
}

/* False without memory. */
static bool read_series(const pnb__series *s, const json_t *table, points *out)
{
    const char *const keys[N_COLUMNS] = {s->x, s->x_to, s->y, s->low, s->high};
    size_t n = json_array_size(json_is_array(table) ? table : json_object_get(table, s->x));
    double *memory = pnb__alloc_array(n + 1, N_COLUMNS * sizeof *memory);
    if (memory == NULL)
        return false;
    for (size_t c = 0; c < N_COLUMNS; c++)
        out->v[c] = memory + c * n;
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < N_COLUMNS; c++)
            out->v[c][out->n] = value_at(table, i, keys[c]);
        bool has_y = !isnan(out->v[Y][out->n]) || s->shape == PNB__SHAPE_CUT;
        out->n += !isnan(out->v[X][out->n]) && has_y && is_wanted(table, i, s);
    }
    for (size_t i = 0; i < out->n && s->x_to != NULL && s->shape != PNB__SHAPE_BARS; i++)
        out->v[X][i] = 0.5 * (out->v[X][i] + out->v[X_TO][i]);
    for (size_t i = 0; i < out->n && s->x_to == NULL && s->shape == PNB__SHAPE_BARS; i++) {
        out->v[X_TO][i] = out->v[X][i] + HALF_BAR;
        out->v[X][i] -= HALF_BAR;
    }
    return true;
}

/* Series that there is something of; a cut alone is nothing. */
static size_t n_drawn(const drawing *d)
{
    size_t n = 0;
    for (size_t s = 0; s < d->plot->n_series; s++)
        n += d->of[s].n > 0 && d->plot->series[s].shape != PNB__SHAPE_CUT;
    return n;
}

/* ---- axes ---- */

/* Per cent above the first point of each, which may lie on quite another scale. */
static void make_changes(drawing *d)
{
    for (size_t s = 0; s < d->plot->n_series; s++) {
        double first = d->of[s].n > 0 ? d->of[s].v[Y][0] : 1.0;
        for (size_t i = 0; i < d->of[s].n; i++)
            for (int c = Y; c <= HIGH; c++)
                d->of[s].v[c][i] = 100.0 * (d->of[s].v[c][i] / first - 1.0);
    }
    snprintf(d->label, sizeof d->label, "%s, %% above the first point", d->plot->y.label);
    d->chart.y.label = d->label;
}

/* The axis of probabilities; false without memory. */
static bool share_axis(drawing *d)
{
    double smallest = 1.0, largest = 0.0, *p;
    size_t n = 0, n_zero = 0;
    for (size_t s = 0; s < d->plot->n_series; s++)
        n += d->of[s].n;
    p = pnb__alloc_array(n, sizeof *p);
    if (p == NULL)
        return false;
    n = 0;
    for (size_t s = 0; s < d->plot->n_series; s++)
        for (size_t i = 0; i < d->of[s].n; i++) {
            for (int c = X; c <= Y; c += Y - X) {
                double v = d->of[s].v[c][i];
                smallest = v > 0 ? fmin(smallest, v) : smallest;
                largest = fmax(largest, v);
            }
            n_zero += !(d->of[s].v[Y][i] > 0);
            p[n++] = d->of[s].v[X][i];
        }
    qsort(p, n, sizeof *p, pnb__compare_doubles);
    pnb__axis axis = {.low = 0, .high = 1, .exact = true};
    axis.log = largest > 0 && p[n / 2] < 0.15 * largest && n_zero <= n / 10;
    if (axis.log)
        axis.low = fmax(smallest / 1.5, 1e-9);
    if (largest > 0)
        axis.high = fmin(1.0, largest * (axis.log ? 1.5 : 1.05));
    pnb__free(p);
    d->chart.x = d->chart.y = axis;
    d->chart.x.label = d->plot->x.label;
    d->chart.y.label = d->plot->y.label;
    for (size_t s = 0; s < d->plot->n_series; s++)
        for (size_t i = 0; i < d->of[s].n; i++)
            for (int c = X; c <= Y; c += Y - X)
                d->of[s].v[c][i] = fmax(d->of[s].v[c][i], axis.low);
    return true;
}

static void cover(drawing *d)
{
    for (size_t s = 0; s < d->plot->n_series; s++) {
        const points *p = &d->of[s];
        bool is_bar = d->plot->series[s].shape == PNB__SHAPE_BARS;
        pnb__axis_cover(&d->chart.x, p->v[X], p->n);
        if (is_bar) {
            pnb__axis_cover(&d->chart.x, p->v[X_TO], p->n);
            d->chart.y.low = fmin(d->chart.y.low, 0);
        }
        for (int c = Y; c <= HIGH; c++)
            pnb__axis_cover(&d->chart.y, p->v[c], p->n);
    }
}

/* ---- drawing ---- */

static void add_name(pnb__chart *c, const char *name, int colour, pnb__mark mark)
{
    if (name != NULL)
        c->legend[c->n_legend++] = (pnb__legend_entry){name, colour, mark};
}

static void name_series(drawing *d)
{
    static const pnb__mark mark_of[] = {[PNB__SHAPE_CURVE] = PNB__MARK_LINE,
                                        [PNB__SHAPE_DASHES] = PNB__MARK_DASHES,
                                        [PNB__SHAPE_BARS] = PNB__MARK_BAR,
                                        [PNB__SHAPE_CUT] = PNB__MARK_LINE};
    for (size_t s = 0; s < d->plot->n_series; s++)
        if (d->of[s].n > 0)
            add_name(&d->chart, d->plot->series[s].name, d->plot->series[s].colour,
                     mark_of[d->plot->series[s].shape]);
    add_name(&d->chart, d->plot->reference_name, PNB__COLOUR_REFERENCE, PNB__MARK_DASHES);
}

static void draw_curve(pnb__chart *c, const pnb__series *s, const points *p)
{
    bool has_interval = s->low != NULL;
    const pnb__curve curve = {.colour = s->colour,
                              .x = p->v[X],
                              .y = p->v[Y],
                              .low = has_interval ? p->v[LOW] : NULL,
                              .high = has_interval ? p->v[HIGH] : NULL,
                              .n = p->n,
                              .radius = p->n < MANY_DOTS ? RADIUS : 0.0};
    pnb__chart_curve(c, &curve);
}

static void draw_series(pnb__chart *c, const pnb__series *s, const points *p)
{
    if (s->shape == PNB__SHAPE_CURVE && p->n > 0)
        draw_curve(c, s, p);
    else if (s->shape == PNB__SHAPE_DASHES && p->n > 0)
        pnb__chart_dashes(c, s->colour, p->v[X], p->v[Y], p->n);
    for (size_t i = 0; i < p->n; i++)
        if (s->shape == PNB__SHAPE_CUT)
            pnb__chart_line(c, s->colour, (double[]){p->v[X][i], p->v[X][i]},
                            (double[]){c->y.low, c->y.high}, 2);
        else if (s->shape == PNB__SHAPE_BARS && p->v[Y][i] != 0)
            pnb__chart_bar(c, s->colour, p->v[X][i], p->v[X_TO][i], p->v[Y][i]);
}

/* Least-squares line through points, bars taken at their middle. */
static void fit_line(const points *p, bool is_bar, double *slope, double *offset)
{
    double n = (double)p->n, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < p->n; i++) {
        double x = is_bar ? 0.5 * (p->v[X][i] + p->v[X_TO][i]) : p->v[X][i], y = p->v[Y][i];
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    double spread = n * sxx - sx * sx;
    *slope = spread > 0 ? (n * sxy - sx * sy) / spread : 0;
    *offset = (sy - *slope * sx) / n;
}

static void draw_reference(drawing *d)
{
    const points *first = &d->of[0];
    const double x[2] = {d->chart.x.low, d->chart.x.high};
    double slope = 1, offset = 0;
    if (d->plot->reference == PNB__REFERENCE_NONE || first->n == 0)
        return;
    if (d->plot->reference == PNB__REFERENCE_TREND)
        fit_line(first, d->plot->series[0].shape == PNB__SHAPE_BARS, &slope, &offset);
    if (d->plot->reference == PNB__REFERENCE_LAST) {
        slope = 0;
        offset = first->v[Y][first->n - 1];
    }
    const double y[2] = {offset + slope * x[0], offset + slope * x[1]};
    pnb__chart_dashes(&d->chart, PNB__COLOUR_REFERENCE, x, y, 2);
}

static void draw_all(drawing *d, pnb__buf *out)
{
    cover(d);
    name_series(d);
    pnb__chart_begin(&d->chart, out);
    for (size_t s = 0; s < d->plot->n_series; s++)
        draw_series(&d->chart, &d->plot->series[s], &d->of[s]);
    draw_reference(d);
    pnb__chart_end(&d->chart);
}

void pnb__plot_draw(const pnb__plot *plot, const pnb__result *of, pnb__buf *out)
{
    drawing d = {.plot = plot};
    bool fits = true;
    d.chart = (pnb__chart){.title = plot->title,
                           .width = PNB__CHART_WIDTH,
                           .height = plot->height > 0 ? plot->height : PNB__CHART_HEIGHT,
                           .x = plot->x,
                           .y = plot->y};
    for (size_t s = 0; fits && s < plot->n_series; s++) {
        const char *table = plot->series[s].table != NULL ? plot->series[s].table : plot->table;
        fits = read_series(&plot->series[s], pnb__result_get(of, table), &d.of[s]);
    }
    if (fits && plot->has_probabilities && n_drawn(&d) > 0)
        fits = share_axis(&d);
    if (fits && plot->is_change && n_drawn(&d) > 1)
        make_changes(&d);
    if (fits && n_drawn(&d) > 0)
        draw_all(&d, out);
    out->failed = out->failed || !fits;
    for (size_t s = 0; s < plot->n_series; s++)
        pnb__free(d.of[s].v[X]);
}
