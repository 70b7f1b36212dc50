/* Writes SVG elements. Coordinates have one decimal: a tenth of a pixel is not visible.
 *
 * Charts are built on top in chart.c; colours and fonts come from the classes of report/drawing.c.
 */
#include "report/svg.h"

#include <math.h>
#include <string.h>

void pnb__html_escape(pnb__buf *out, const char *text)
{
    for (size_t n = strlen(text); n > 0;) {
        uint32_t code = 0;
        size_t length = pnb__utf8_decode(text, n, &code);
        bool is_no_character = code == 0xFFFE || code == 0xFFFF; /* not in XML */
        if (length == 0 || is_no_character || (code < 0x20 && code != '\n' && code != '\t'))
            pnb__buf_puts(out, "\xEF\xBF\xBD");
        else if (code == '&')
            pnb__buf_puts(out, "&amp;");
        else if (code == '<')
            pnb__buf_puts(out, "&lt;");
        else if (code == '>')
            pnb__buf_puts(out, "&gt;");
        else if (code == '"')
            pnb__buf_puts(out, "&quot;");
        else
            pnb__buf_append(out, text, length);
        length = PNB_MAX(length, (size_t)1);
        text += length;
        n -= length;
    }
}

double pnb__text_width(const char *text, double font_size)
{
    double n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n * font_size * 0.56;
}

void pnb__svg_begin(pnb__buf *out, double width, double height, const char *title)
{
    pnb__buf_printf(out,
                    "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" "
                    "xmlns=\"http://www.w3.org/2000/svg\"><title>",
                    width, height, width, height);
    pnb__html_escape(out, title);
    pnb__buf_puts(out, "</title>\n");
}

void pnb__svg_end(pnb__buf *out)
{
    pnb__buf_puts(out, "</svg>\n");
}

void pnb__svg_line(pnb__buf *out, const char *css, double x1, double y1, double x2, double y2)
{
    pnb__buf_printf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                    css, x1, y1, x2, y2);
}

void pnb__svg_rect(pnb__buf *out, const char *css, double x, double y, double width, double height)
{
    pnb__buf_printf(out,
                    "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                    css, x, y, width, height);
}

void pnb__svg_circle(pnb__buf *out, const char *css, double x, double y, double radius)
{
    pnb__buf_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", css, x, y,
                    radius);
}

void pnb__svg_ellipse(pnb__buf *out, const char *css, double x, double y, const double half_axes[2],
                      double degrees)
{
    pnb__buf_printf(out,
                    "<ellipse class=\"%s\" rx=\"%.1f\" ry=\"%.1f\" "
                    "transform=\"translate(%.1f %.1f) rotate(%.1f)\"/>\n",
                    css, half_axes[0], half_axes[1], x, y, degrees);
}

void pnb__svg_polyline(pnb__buf *out, const char *css, const double *x, const double *y, size_t n)
{
    bool pen_down = false;
    pnb__buf_printf(out, "<path class=\"%s\" d=\"", css);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) {
            pen_down = false;
            continue;
        }
        pnb__buf_printf(out, "%c%.1f %.1f", pen_down ? 'L' : 'M', x[i], y[i]);
        pen_down = true;
    }
    pnb__buf_puts(out, "\"/>\n");
}

void pnb__svg_text(pnb__buf *out, const char *css, double x, double y, const char *anchor,
                   const char *text)
{
    pnb__buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", css, x, y,
                    anchor);
    pnb__html_escape(out, text);
    pnb__buf_puts(out, "</text>\n");
}
