/* Plots of a result: which columns of which table are drawn, and how the axes are called. */
#ifndef PNB_REPORT_PLOT_H
#define PNB_REPORT_PLOT_H

#include "report/chart.h"
#include "report/result.h"

/* Range of an axis that begins at 0. */
#define PNB__FROM_0 .low = 0, .high = 1e-9

enum { PNB__MAX_SERIES = PNB__MAX_LEGEND - 1, PNB__COLOUR_REFERENCE = 5 };

typedef enum pnb__shape {
    PNB__SHAPE_CURVE,  /* a line with dots, where there are few, and its interval */
    PNB__SHAPE_DASHES, /* a control */
    PNB__SHAPE_BARS,
    PNB__SHAPE_CUT /* upright through the whole chart, at x */
} pnb__shape;

/* Rows that lack x or y are left out, and a series without rows is. */
typedef struct pnb__series {
    const char *name;  /* in the legend; may be NULL where it is the only one */
    const char *table; /* array of rows, or object of lists; NULL: that of the plot */
    const char *x, *y; /* columns */
    const char *x_to;  /* a bar goes from x to x_to, a dot stands in their middle; NULL: at x */
    const char *low, *high; /* interval of y; may be NULL together */
    const char *where, *is; /* only rows whose text in the column `where` is `is`; or NULL */
    pnb__shape shape;
    int colour;
} pnb__series;

/* A line to compare with. */
typedef enum pnb__reference {
    PNB__REFERENCE_NONE,
    PNB__REFERENCE_EQUAL, /* y = x */
    PNB__REFERENCE_LAST,  /* level at the first series' last y */
    PNB__REFERENCE_TREND  /* least squares through the first series */
} pnb__reference;

typedef struct pnb__plot {
    const char *title, *table; /* the table may be NULL where every series has its own */
    double height;             /* 0: that of a chart */
    pnb__axis x, y;            /* the range is widened to hold what is drawn */
    bool is_change;            /* several series are shown in % above the first point of each */
    bool has_probabilities;    /* on both axes, which are one: from 0 where most are in view so,
                                * else logarithmic; a share of 0 then stands on the border */
    pnb__reference reference;
    const char *reference_name;
    pnb__series series[PNB__MAX_SERIES];
    size_t n_series;
} pnb__plot;

/* Nothing where no series has a row. Running out of memory fails the buffer. */
void pnb__plot_draw(const pnb__plot *plot, const pnb__result *of, pnb__buf *out);

/* Number of a row: NaN where it is none. */
double pnb__json_real_at(const json_t *row, const char *key);

#endif
