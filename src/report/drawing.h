/* A figure of a page: its SVG, and links that save it as a file of its own, with its data. */
#ifndef PNB_REPORT_DRAWING_H
#define PNB_REPORT_DRAWING_H

#include "base/base.h"

/* Colours of data, by number. */
enum { PNB__N_COLOURS = 10 };

/* Between begin and end the caller writes one <svg> to `out` and rows to `csv`, header first; a
 * figure whose csv stays empty offers no data. */
typedef struct pnb__drawing {
    pnb__buf *out;
    size_t at; /* where the SVG begins */
    const char *title;
    pnb__buf csv;
} pnb__drawing;

/* `css` is more classes of the figure: "", or "wide". `title` names the files too. */
void pnb__drawing_begin(pnb__drawing *d, pnb__buf *out, const char *title, const char *css);
/* Frees the csv. */
void pnb__drawing_end(pnb__drawing *d);

/* The rules of SVG text and marks: with the page's variables, or with the light colours written
 * out for a file that stands alone. */
void pnb__drawing_style(pnb__buf *out, bool stands_alone);
/* The variables themselves, light and dark. */
void pnb__drawing_palette(pnb__buf *out);

/* "Total loss, weighted" -> "total-loss-weighted"; "figure" where nothing is left. */
void pnb__slug(const char *text, char *out, size_t size);

#endif
