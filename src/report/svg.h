/* SVG as text: shapes and labels appended to a buffer, no state beyond it. */
#ifndef PNB_REPORT_SVG_H
#define PNB_REPORT_SVG_H

#include <stddef.h>

#include "base/base.h"

/* Styles are CSS classes of the page, so that one sheet serves light and dark; rules in
 * report/drawing.c. */
void pnb__svg_begin(pnb__buf *out, double width, double height, const char *title);
void pnb__svg_end(pnb__buf *out);
void pnb__svg_line(pnb__buf *out, const char *css, double x1, double y1, double x2, double y2);
void pnb__svg_rect(pnb__buf *out, const char *css, double x, double y, double width, double height);
void pnb__svg_circle(pnb__buf *out, const char *css, double x, double y, double radius);
/* Ellipse with half-axes a, b turned by `degrees` (clockwise: y points down). */
void pnb__svg_ellipse(pnb__buf *out, const char *css, double x, double y, const double half_axes[2],
                      double degrees);
/* Broken line through n points; a NaN coordinate interrupts it. */
void pnb__svg_polyline(pnb__buf *out, const char *css, const double *x, const double *y, size_t n);
/* `anchor` is start, middle or end. */
void pnb__svg_text(pnb__buf *out, const char *css, double x, double y, const char *anchor,
                   const char *text);
/* Text with & < > " escaped; invalid UTF-8 and control characters become U+FFFD. */
void pnb__html_escape(pnb__buf *out, const char *text);

/* Width of a label in pixels at a font size, by an average advance: good enough for margins. */
double pnb__text_width(const char *text, double font_size);

#endif
