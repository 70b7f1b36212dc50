/* Charts: axes with ticks, units and labels, a legend that stands outside the data, and the data
 * itself to save. */
#ifndef PNB_REPORT_CHART_H
#define PNB_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "report/drawing.h"

enum { PNB__MAX_LEGEND = 20 };
/* Width that charts are laid out for: readable at 390 pixels, two beside each other on a desk. */
#define PNB__CHART_WIDTH 420
#define PNB__CHART_HEIGHT 300

typedef struct pnb__axis {
    double low, high; /* data range; widened to round numbers unless `exact` */
    bool log;         /* logarithmic; low > 0 */
    bool exact;
    const char *label; /* with the unit; that it is logarithmic is added */
} pnb__axis;

typedef enum pnb__mark {
    PNB__MARK_LINE,
    PNB__MARK_DASHES,
    PNB__MARK_DOT,
    PNB__MARK_BAR,
    PNB__MARK_RING
} pnb__mark;

typedef struct pnb__legend_entry {
    const char *text;
    int colour; /* 0 .. PNB__N_COLOURS - 1 */
    pnb__mark mark;
} pnb__legend_entry;

/* Filled by the caller up to `legend`, the rest by pnb__chart_begin. */
typedef struct pnb__chart {
    const char *title;    /* wrapped where it is longer than the chart is wide */
    const char *css;      /* more classes of the figure, or NULL */
    double width, height; /* of the whole picture in pixels */
    pnb__axis x, y;
    bool equal_units; /* one unit is as long in x as in y */
    pnb__legend_entry legend[PNB__MAX_LEGEND];
    size_t n_legend;

    pnb__buf *out;
    double left, right, top, bottom; /* the data's rectangle */
    pnb__drawing drawing;
    pnb__buf data; /* what was drawn, one record a mark */
} pnb__chart;

/* A line with dots, each with its interval. */
typedef struct pnb__curve {
    int colour;
    const double *x, *y, *low, *high; /* low and high may be NULL together */
    size_t n;
    double radius; /* of the dots; 0: none */
} pnb__curve;

/* Draws frame, grid, ticks, labels and legend; then draw the data and call pnb__chart_end. */
void pnb__chart_begin(pnb__chart *c, pnb__buf *out);
void pnb__chart_end(pnb__chart *c);

/* Data coordinates to pixels. */
double pnb__chart_x(const pnb__chart *c, double x);
double pnb__chart_y(const pnb__chart *c, double y);

/* What is drawn is also what the CSV of the figure holds, under the legend's name of its colour. */
void pnb__chart_line(pnb__chart *c, int colour, const double *x, const double *y, size_t n);
void pnb__chart_dashes(pnb__chart *c, int colour, const double *x, const double *y, size_t n);
void pnb__chart_curve(pnb__chart *c, const pnb__curve *curve);
void pnb__chart_dot(pnb__chart *c, int colour, double x, double y, double radius);
/* From the bottom of the chart up to y. */
void pnb__chart_bar(pnb__chart *c, int colour, double x_low, double x_high, double y);
/* Contour of a 2-D Gaussian that holds `share` of it, with its mean as a dot; cov = (xx, xy, yy).
 * Needs equal_units. */
void pnb__chart_gaussian(pnb__chart *c, int colour, const double mean[2], const double cov[3],
                         double share);

/* Widens a range so that it is not empty and finite values have room; for tests too. */
void pnb__axis_cover(pnb__axis *axis, const double *values, size_t n);
/* Tick positions of an axis, at most `max`; "1.5", "2e-5": the label of one. */
size_t pnb__axis_ticks(const pnb__axis *axis, double *ticks, size_t max);
void pnb__axis_format(const pnb__axis *axis, double value, char text[24]);

#endif
