/* Figures that can be taken out of the page: the SVG with its own style, the data as CSV.
 *
 * Both are data: links, so that the page stays one file, asks no network and runs no script. The
 * style is written twice from one table: on the page its colours are variables that follow light
 * and dark, in a saved file they are the light ones in plain hex, which every SVG program reads. */
#include "report/drawing.h"

#include <ctype.h>
#include <string.h>

#include "report/svg.h"

/* ---- colours ---- */

typedef struct colour {
    const char *name, *light, *dark;
} colour;

/* c0..c7 keep their order of lightness for readers who do not tell hues apart; c8 and c9 are for
 * more classes than that. */
static const colour palette[] = {
    {"bg", "#fbfbfa", "#17191c"},   {"fg", "#22262b", "#e4e6e8"},   {"soft", "#6a7178", "#9aa1a8"},
    {"rule", "#dcdfe2", "#34383d"}, {"grid", "#eceef0", "#282c30"}, {"panel", "#ffffff", "#1d2023"},
    {"c0", "#2f6db3", "#6fa8e8"},   {"c1", "#d1702a", "#eda066"},   {"c2", "#2f8f6b", "#68c39e"},
    {"c3", "#8a5fb5", "#bd98e6"},   {"c4", "#b8394b", "#ee7f8d"},   {"c5", "#7a828a", "#a0a7ae"},
    {"c6", "#c29a1c", "#e0c15a"},   {"c7", "#3aa0b8", "#74cde0"},   {"c8", "#5f7f24", "#a3c266"},
    {"c9", "#c667a6", "#eb9fd0"},
};

void pnb__drawing_palette(pnb__buf *out)
{
    pnb__buf_puts(out, ":root{color-scheme:light dark");
    for (size_t i = 0; i < PNB_COUNT(palette); i++)
        pnb__buf_printf(out, ";--%s:%s", palette[i].name, palette[i].light);
    pnb__buf_puts(out, "}\n@media(prefers-color-scheme:dark){:root{");
    for (size_t i = 0; i < PNB_COUNT(palette); i++)
        pnb__buf_printf(out, "%s--%s:%s", i > 0 ? ";" : "", palette[i].name, palette[i].dark);
    pnb__buf_puts(out, "}}\n");
}

/* ---- rules ---- $NAME is a colour of the palette. */
static const char rules[] =
    "svg text{font:12px system-ui,'Liberation Sans',sans-serif;fill:$fg}\n"
    "svg .title{font-size:14px;font-weight:600}svg .tick,svg .note{fill:$soft}\n"
    "svg .grid{stroke:$grid;stroke-width:1}svg .axis{stroke:$soft;stroke-width:1}\n"
    "svg .line{fill:none;stroke-width:1.5;stroke-linejoin:round}"
    "svg .dashes{stroke-dasharray:5 4;stroke-width:1.2}\n"
    "svg .dot{fill-opacity:.85;stroke:none}svg .faint{fill-opacity:.4}"
    "svg .bar{fill-opacity:.72;stroke:none}svg .whisker{stroke-width:1;stroke-opacity:.6}"
    "svg .ring{fill-opacity:.05;stroke-width:.8;stroke-opacity:.55}\n";

static const colour *find_colour(const char *name, size_t *length)
{
    for (*length = 0; isalnum((unsigned char)name[*length]); ++*length)
        ;
    for (size_t i = 0; i < PNB_COUNT(palette); i++)
        if (strlen(palette[i].name) == *length && memcmp(palette[i].name, name, *length) == 0)
            return &palette[i];
    return NULL;
}

static void put_rules(pnb__buf *out, const char *text, bool stands_alone)
{
    for (; *text != '\0'; text++) {
        size_t length = 0;
        const colour *c = *text == '$' ? find_colour(text + 1, &length) : NULL;
        if (c == NULL) {
            pnb__buf_putc(out, *text);
            continue;
        }
        if (stands_alone)
            pnb__buf_puts(out, c->light);
        else
            pnb__buf_printf(out, "var(--%s)", c->name);
        text += length;
    }
}

void pnb__drawing_style(pnb__buf *out, bool stands_alone)
{
    put_rules(out, rules, stands_alone);
    for (int i = 0; i < PNB__N_COLOURS; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "svg .line.c%d,svg .ring.c%d,svg .whisker.c%d{stroke:$c%d}"
                 "svg .dot.c%d,svg .bar.c%d,svg .ring.c%d{fill:$c%d}\n",
                 i, i, i, i, i, i, i, i);
        put_rules(out, text, stands_alone);
    }
}

/* ---- links ---- */

void pnb__slug(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; *text != '\0' && n + 1 < size && n < 60; text++) {
        if (isalnum((unsigned char)*text))
            out[n++] = (char)tolower((unsigned char)*text);
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n > 0 && out[n - 1] == '-')
        n--;
    out[n] = '\0';
    if (n == 0)
        snprintf(out, size, "figure");
}

static void put_link(pnb__buf *out, const char *name, const char *suffix, const char *type,
                     const pnb__buf *bytes)
{
    pnb__buf_printf(out, "<a download=\"%s.%s\" href=\"data:%s;base64,", name, suffix, type);
    pnb__base64(out, bytes->data, bytes->size);
    pnb__buf_printf(out, "\">%s</a>", strcmp(suffix, "svg") == 0 ? "SVG" : "CSV");
}

/* The SVG of the page with the style put behind its opening tag. */
static void stand_alone(const pnb__drawing *d, pnb__buf *file)
{
    const char *svg = d->out->data + d->at;
    size_t size = d->out->size - d->at;
    const char *head_end = memchr(svg, '>', size);
    size_t head = head_end != NULL ? (size_t)(head_end - svg) + 1 : 0;
    pnb__buf_puts(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    pnb__buf_append(file, svg, head);
    pnb__buf_puts(file, "<style>\n");
    pnb__drawing_style(file, true);
    pnb__buf_puts(file, "</style>\n");
    pnb__buf_append(file, svg + head, size - head);
}

void pnb__drawing_begin(pnb__drawing *d, pnb__buf *out, const char *title, const char *css)
{
    *d = (pnb__drawing){.out = out, .title = title};
    pnb__buf_printf(out, "<figure class=\"chart %s\">\n", css);
    d->at = out->size;
}

void pnb__drawing_end(pnb__drawing *d)
{
    pnb__buf file = {0};
    char name[64];
    if (d->out->failed || d->csv.failed) {
        d->out->failed = true;
        pnb__buf_reset(&d->csv);
        return;
    }
    pnb__slug(d->title, name, sizeof name);
    stand_alone(d, &file);
    pnb__buf_puts(d->out, "<figcaption class=\"save\">save ");
    put_link(d->out, name, "svg", "image/svg+xml", &file);
    if (d->csv.size > 0) {
        pnb__buf_puts(d->out, " ");
        put_link(d->out, name, "csv", "text/csv;charset=utf-8", &d->csv);
    }
    pnb__buf_puts(d->out, "</figcaption></figure>\n");
    d->out->failed = d->out->failed || file.failed;
    pnb__buf_reset(&file);
    pnb__buf_reset(&d->csv);
}
