/* The page of an attribution: words on coloured ground, a map of cells laid over the picture.
 *
 * One scale for a caption or picture, shown as a bar: the largest absolute value is full colour.
 * Blue removes uncertainty, red adds it; the two differ in lightness direction for nobody, so the
 * sign also stands in the tooltip of every cell and under every word. */
#include <math.h>

#include "base/base.h"
#include "commands/explain/explain.h"
#include "io/tables/csv.h"
#include "report/drawing.h"
#include "report/html.h"
#include "report/svg.h"

enum { IMAGE_SIDE = 400, MARGIN = 10, BAR_HEIGHT = 12, N_STEPS = 40 };

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

/* The last columns of a line: nothing where densities have no variances to include each other by.
 */
static void put_inclusion(pnb__buf *csv, double h, double kl)
{
    if (isfinite(h))
        pnb__buf_printf(csv, "%.9g,%.9g\n", h, kl);
    else
        pnb__buf_puts(csv, ",\n");
}

/* The same values as bars, to be saved: a word, its bar to the right where it removes. */
static void put_word_bars(pnb__buf *out, const pnb__explained *e)
{
    const double width = 420, row = 20, left = 130, right = 400;
    double most = largest(e), middle = (left + right) / 2, y = 44;
    pnb__drawing d;
    char text[64], fill[48];
    pnb__drawing_begin(&d, out, "Uncertainty that each word removes", "");
    pnb__svg_begin(out, width, 56 + row * (double)e->n, d.title);
    pnb__svg_text(out, "title", 4, 18, "start", d.title);
    pnb__svg_text(out, "note", middle - 6, 36, "end", "adds");
    pnb__svg_text(out, "note", middle + 6, 36, "start", "removes");
    pnb__buf_puts(&d.csv,
                  "word,removed,uncertainty without it,H(whole in the rest),KL difference\n");
    for (size_t i = 0; i < e->n; i++, y += row) {
        double length = e->removed[i] / most * (right - middle);
        colour(fill, e->removed[i], most);
        snprintf(text, sizeof text, "%.40s", e->word[i]);
        pnb__svg_text(out, "label", left - 8, y + 13, "end", text);
        pnb__buf_printf(out,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" fill=\"%s\"/>\n",
                        length < 0 ? middle + length : middle, y + 2, fabs(length), fill);
        pnb__csv_put_field(&d.csv, e->word[i]);
        pnb__buf_printf(&d.csv, ",%.9g,%.9g,", e->removed[i], e->without[i]);
        put_inclusion(&d.csv, e->h[i], e->kl[i]);
    }
    pnb__svg_line(out, "axis", middle, 40, middle, y);
    pnb__svg_end(out);
    pnb__drawing_end(&d);
}

static void put_text(pnb__buf *out, const pnb__explained *e)
{
    put_words(out, e);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    put_word_bars(out, e);
    pnb__buf_puts(out, "</div>\n");
}

/* ---- pictures ---- */

static void put_cell(pnb__buf *out, const double box[4], const char *fill, double removed)
{
    pnb__buf_printf(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">"
                    "<title>%+.3e</title></rect>\n",
                    box[0], box[1], box[2], box[3], fill, removed);
}

/* From what adds most to what removes most, with its ends and 0 named. */
static void put_colour_bar(pnb__buf *out, double top, double most)
{
    double step = (double)IMAGE_SIDE / N_STEPS, y = top + BAR_HEIGHT + 16;
    char fill[48], text[48];
    for (int i = 0; i < N_STEPS; i++) {
        double value = most * ((2.0 * i + 1) / N_STEPS - 1.0);
        const double box[4] = {MARGIN + step * i, top, step, BAR_HEIGHT};
        colour(fill, value, most);
        put_cell(out, box, fill, value);
    }
    snprintf(text, sizeof text, "adds %.2e", most);
    pnb__svg_text(out, "note", MARGIN, y, "start", text);
    pnb__svg_text(out, "note", MARGIN + IMAGE_SIDE / 2.0, y, "middle", "0");
    snprintf(text, sizeof text, "removes %.2e", most);
    pnb__svg_text(out, "note", MARGIN + IMAGE_SIDE, y, "end", text);
}

static void put_cells(const pnb__explained *e, pnb__drawing *d, double top, double height)
{
    double w = (double)IMAGE_SIDE / e->columns, h = height / e->rows, most = largest(e);
    pnb__buf_puts(&d->csv,
                  "row,column,removed,uncertainty without it,H(whole in the rest),KL difference\n");
    for (size_t i = 0; i < e->n; i++) {
        size_t row = i / (size_t)e->columns, column = i % (size_t)e->columns;
        const double box[4] = {MARGIN + w * (double)column, top + h * (double)row, w, h};
        char fill[48];
        colour(fill, e->removed[i], most);
        put_cell(d->out, box, fill, e->removed[i]);
        pnb__buf_printf(&d->csv, "%zu,%zu,%.9g,%.9g,", row, column, e->removed[i], e->without[i]);
        put_inclusion(&d->csv, e->h[i], e->kl[i]);
    }
}

static pnb_status put_map(pnb__buf *out, const pnb__explained *e, pnb_error *err)
{
    double top = 28;
    double height = IMAGE_SIDE * (double)e->image.height / (double)e->image.width;
    pnb__drawing d;
    pnb__drawing_begin(&d, out, "Uncertainty that each cell removes", "");
    pnb__svg_begin(out, IMAGE_SIDE + 2 * MARGIN, top + height + 48, d.title);
    pnb__svg_text(out, "title", MARGIN, 18, "start", d.title);
    pnb__buf_printf(out,
                    "<image x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" "
                    "preserveAspectRatio=\"none\" href=\"",
                    MARGIN, top, IMAGE_SIDE, height);
    pnb_status status = pnb__html_image_data(out, &e->image, IMAGE_SIDE, err);
    pnb__buf_puts(out, "\"/>\n");
    put_cells(e, &d, top, height);
    put_colour_bar(out, top + height + 10, largest(e));
    pnb__svg_end(out);
    pnb__drawing_end(&d);
    return status;
}

static pnb_status put_image(pnb__buf *out, const pnb__explained *e, pnb_error *err)
{
    pnb_status status;
    pnb__buf_puts(out, "<div class=\"row\">\n");
    PNB_TRY(put_map(out, e, err));
    status = pnb__html_shot(out, &e->image, "big", "without the map", "", err);
    pnb__buf_puts(out, "</div>\n");
done:
    return status;
}

/* ---- headline ---- */

/* The part that removes the most, or adds the most, over all items; false where none does. */
static bool find_extreme(const pnb__explained *items, size_t n, bool adds, size_t at[2])
{
    double best = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < items[i].n; k++) {
            double value = adds ? -items[i].removed[k] : items[i].removed[k];
            if (value > best) {
                best = value;
                at[0] = i;
                at[1] = k;
            }
        }
    return best > 0.0;
}

static void name_part(const pnb__explained *e, size_t k, char *text, size_t size)
{
    if (e->is_image)
        snprintf(text, size, "the cell in row %zu, column %zu", k / (size_t)e->columns + 1,
                 k % (size_t)e->columns + 1);
    else
        snprintf(text, size, "the word \"%.100s\"", e->word[k]);
}

/* A word with its caption; a picture with the cell cut out of it. */
static pnb_status put_part(pnb__buf *out, const pnb__explained *e, size_t k, pnb_error *err)
{
    char part[160], note[80];
    pnb_image cut = {0};
    pnb_status status = PNB_OK;
    name_part(e, k, part, sizeof part);
    snprintf(note, sizeof note, "%+.3g of %.4g", e->removed[k], e->trace);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    if (e->is_image) {
        int w = e->image.width / e->columns, h = e->image.height / e->rows;
        int column = (int)(k % (size_t)e->columns), row = (int)(k / (size_t)e->columns);
        PNB_TRY(pnb_image_crop(&cut, &e->image, column * w, row * h, w, h, 0, err));
        PNB_TRY(pnb__html_shot(out, &e->image, "big", e->what, "", err));
        PNB_TRY(pnb__html_shot(out, &cut, "big", part, note, err));
    } else {
        pnb__buf_puts(out, "<p>");
        pnb__html_escape(out, part);
        pnb__buf_printf(out, " <span class=\"soft\">%s</span><br>of <q>", note);
        pnb__html_escape(out, e->what);
        pnb__buf_puts(out, "</q></p>\n");
    }
    pnb__buf_puts(out, "</div>\n");
done:
    pnb_image_free(&cut);
    return status;
}

static pnb_status put_headline(pnb__buf *out, const pnb__explained *items, size_t n, pnb_error *err)
{
    size_t removes[2] = {0}, adds[2] = {0};
    bool has_removes = find_extreme(items, n, false, removes);
    bool has_adds = find_extreme(items, n, true, adds);
    char part[160], answer[400];
    pnb_status status = PNB_OK;
    if (has_removes) {
        const pnb__explained *e = &items[removes[0]];
        name_part(e, removes[1], part, sizeof part);
        snprintf(
            answer, sizeof answer,
            "Most is removed by %s of \"%.100s\": without it the uncertainty is %.1f%% higher.",
            part, e->what, 100 * e->removed[removes[1]] / e->trace);
    } else {
        snprintf(answer, sizeof answer, "No part removes any uncertainty.");
    }
    pnb__html_headline(out, "Asked: which words and parts of pictures make the model certain?",
                       answer);
    pnb__html_cards_begin(out);
    if (has_removes) {
        pnb__html_card(out, "Helps most");
        PNB_TRY(put_part(out, &items[removes[0]], removes[1], err));
    }
    if (has_adds) {
        pnb__html_card(out, "Harms most");
        PNB_TRY(put_part(out, &items[adds[0]], adds[1], err));
    }
    pnb__html_cards_end(out);
done:
    return status;
}

pnb_status pnb__explain_page(const pnb__explained *items, size_t n, const char *model,
                             const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    pnb_status status = PNB_OK;
    pnb__html_begin(&out, "What removes uncertainty", model);
    PNB_TRY(put_headline(&out, items, n, err));
    pnb__html_contents(&out);
    for (size_t i = 0; i < n; i++) {
        char note[160];
        snprintf(note, sizeof note,
                 "Uncertainty (%s) %.6g. Blue removes uncertainty, red adds it; full colour is "
                 "%.2e.",
                 pnb_uncertainty_name(items[i].kind), items[i].trace, largest(&items[i]));
        pnb__html_section(&out, items[i].what, note);
        if (items[i].is_image)
            PNB_TRY(put_image(&out, &items[i], err));
        else
            put_text(&out, &items[i]);
        pnb__html_section_end(&out);
    }
    pnb__html_end(&out);
    status = pnb__buf_write(&out, path, err);
done:
    pnb__buf_reset(&out);
    return status;
}
