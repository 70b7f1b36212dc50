/* The page of an attribution: words on coloured ground, a picture beside its map of cells.
 *
 * One scale for a caption or picture: the largest absolute value is full colour. Blue removes
 * uncertainty, red adds it; the two differ in lightness direction for nobody, so the sign also
 * stands in the tooltip of every cell and under every word. */
#include <math.h>

#include "app/explain.h"
#include "app/html.h"
#include "app/svg.h"
#include "base/base.h"

enum { PICTURE_SIDE = 320 };

static double largest(const pnb__explained *e)
{
    double most = 0.0;
    for (size_t i = 0; i < e->n; i++)
        most = fmax(most, fabs(e->removed[i]));
    return most > 0.0 ? most : 1.0;
}

/* "rgba(47,109,179,0.42)" */
static void colour(char text[48], double value, double most)
{
    const char *rgb = value >= 0.0 ? "47,109,179" : "184,57,75";
    snprintf(text, 48, "rgba(%s,%.2f)", rgb, 0.75 * fabs(value) / most);
}

static void put_words(pnb__buf *out, const pnb__explained *e)
{
    double most = largest(e);
    pnb__buf_puts(out, "<p style=\"line-height:3.2\">");
    for (size_t i = 0; i < e->n; i++) {
        char ground[48];
        colour(ground, e->removed[i], most);
        pnb__buf_printf(out,
                        "<span style=\"display:inline-block;line-height:1.3;margin:0 3px;"
                        "padding:2px 5px;border-radius:4px;background:%s\">",
                        ground);
        pnb__html_escape(out, e->word[i]);
        pnb__buf_printf(out, "<br><small>%+.2e</small></span>", e->removed[i]);
    }
    pnb__buf_puts(out, "</p>\n");
}

static void put_cell(pnb__buf *out, const double box[4], const char *fill, double removed)
{
    pnb__buf_printf(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">"
                    "<title>%+.3e</title></rect>\n",
                    box[0], box[1], box[2], box[3], fill, removed);
}

static void put_map(pnb__buf *out, const pnb__explained *e)
{
    double width = PICTURE_SIDE;
    double height = PICTURE_SIDE * (double)e->picture.height / (double)e->picture.width;
    double w = width / e->columns, h = height / e->rows, most = largest(e);
    pnb__svg_begin(out, width, height, "Uncertainty that each cell removes");
    for (size_t i = 0; i < e->n; i++) {
        size_t row = i / (size_t)e->columns, column = i % (size_t)e->columns;
        const double box[4] = {w * (double)column, h * (double)row, w, h};
        char fill[48];
        colour(fill, e->removed[i], most);
        put_cell(out, box, fill, e->removed[i]);
    }
    pnb__svg_end(out);
}

static pnb_status put_picture(pnb__buf *out, const pnb__explained *e, pnb_error *err)
{
    pnb__buf_puts(out, "<div class=\"row\"><div>");
    pnb_status status = pnb__html_thumbnail(out, &e->picture, PICTURE_SIDE, e->what, err);
    pnb__buf_puts(out, "</div>\n");
    put_map(out, e);
    pnb__buf_puts(out, "</div>\n");
    return status;
}

pnb_status pnb__explain_page(const pnb__explained *items, size_t n, const char *model,
                             const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    pnb_status status = PNB_OK;
    pnb__html_begin(&out, "What removes uncertainty", model);
    for (size_t i = 0; i < n; i++) {
        char note[160];
        snprintf(note, sizeof note,
                 "Uncertainty (trace) %.6g. Blue removes uncertainty, red adds it; full colour is "
                 "%.2e.",
                 items[i].trace, largest(&items[i]));
        pnb__html_section(&out, items[i].what, note);
        if (items[i].is_picture)
            PNB_TRY(put_picture(&out, &items[i], err));
        else
            put_words(&out, &items[i]);
        pnb__html_section_end(&out);
    }
    pnb__html_end(&out);
    status = pnb__buf_write(&out, path, err);
done:
    pnb__buf_reset(&out);
    return status;
}
