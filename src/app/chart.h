/* Charts: axes with ticks, units and labels, a legend that stands outside the data. */
#ifndef PNB_APP_CHART_H
#define PNB_APP_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

enum { PNB__N_COLOURS = 8, PNB__MAX_LEGEND = 12 };

typedef struct pnb__axis {
    double low, high; /* data range; widened to round numbers unless `exact` */
    bool log;         /* logarithmic; low > 0 */
    bool exact;
    const char *label; /* with the unit */
} pnb__axis;

typedef enum pnb__mark { PNB__MARK_LINE, PNB__MARK_DOT, PNB__MARK_BAR, PNB__MARK_RING } pnb__mark;

typedef struct pnb__legend_entry {
    const char *text;
    int colour; /* 0 .. PNB__N_COLOURS - 1 */
    pnb__mark mark;
} pnb__legend_entry;

/* Filled by the caller up to `legend`, the rest by pnb__chart_begin. */
typedef struct pnb__chart {
    const char *title;
    double width, height; /* of the whole picture in pixels */
    pnb__axis x, y;
    bool equal_units; /* one unit is as long in x as in y */
    pnb__legend_entry legend[PNB__MAX_LEGEND];
    size_t n_legend;

    pnb__buf *out;
    double left, right, top, bottom; /* the data's rectangle */
} pnb__chart;

/* Draws frame, grid, ticks, labels and legend; then draw the data and call pnb__chart_end. */
void pnb__chart_begin(pnb__chart *c, pnb__buf *out);
void pnb__chart_end(pnb__chart *c);

/* Data coordinates to pixels. */
double pnb__chart_x(const pnb__chart *c, double x);
double pnb__chart_y(const pnb__chart *c, double y);

void pnb__chart_line(const pnb__chart *c, int colour, const double *x, const double *y, size_t n);
void pnb__chart_dashes(const pnb__chart *c, int colour, const double *x, const double *y, size_t n);
void pnb__chart_dot(const pnb__chart *c, int colour, double x, double y, double radius);
/* From the bottom of the chart up to y. */
void pnb__chart_bar(const pnb__chart *c, int colour, double x_low, double x_high, double y);
/* Contour of a 2-D Gaussian that holds `share` of it; cov = (xx, xy, yy). Needs equal_units. */
void pnb__chart_gaussian(const pnb__chart *c, int colour, const double mean[2], const double cov[3],
                         double share);

/* Widens a range so that it is not empty and finite values have room; for tests too. */
void pnb__axis_cover(pnb__axis *axis, const double *values, size_t n);
/* Tick positions of an axis, at most `max`; "1.5", "2e-5": the label of one. */
size_t pnb__axis_ticks(const pnb__axis *axis, double *ticks, size_t max);
void pnb__axis_format(const pnb__axis *axis, double value, char text[24]);

#endif
