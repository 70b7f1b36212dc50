/* Frame and style sheet of the pages.
 *
 * Nothing is wider than the screen: figures shrink, rows wrap, a table stands in a box ("scroll")
 * that scrolls by itself, and "wordy" tables put their sentences below the numbers. Colours are the
 * palette of report/drawing.c, light and dark. */
#include "report/html.h"

#include <math.h>
#include <string.h>

#include "report/drawing.h"
#include "report/svg.h"

enum { SMALL_SHOT = 96, BIG_SHOT = 160 };

/* Where the contents go; replaced at the end. */
static const char contents_mark[] = "<!--contents-->\n";
static const char section_mark[] = "<section><h2>";

static const char style[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Liberation Sans',sans-serif;overflow-wrap:anywhere}\n"
    "main{max-width:1080px;margin:0 auto;padding:32px 24px 64px}\n"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px}h2{font-size:19px;margin:0 0 4px}\n"
    "h3{font-size:14px;margin:16px 0 6px;color:var(--soft);font-weight:600}\n"
    "p{margin:0 0 12px;max-width:76ch}.soft{color:var(--soft)}a{color:var(--c0)}\n"
    "section{margin-top:36px;padding-top:20px;border-top:1px solid var(--rule)}\n"
    ".asked{margin:18px 0 2px;color:var(--soft)}"
    ".answer{font-size:19px;line-height:1.4;max-width:64ch;margin:0 0 16px}\n"
    ".opening{display:flex;gap:24px;align-items:flex-start;margin:20px 0 14px}"
    ".opening>div{flex:1 1 0;min-width:0}.opening .asked{margin-top:0}"
    ".opening figure.shot{flex:none;width:200px}.opening+.opening .answer{font-size:16px}"
    ".opening+.opening figure.shot{width:120px}\n"
    ".contents{margin:18px 0 0;padding:0;list-style:none;display:flex;flex-wrap:wrap;"
    "gap:2px 18px;font-size:14px}\n"
    ".row{display:flex;flex-wrap:wrap;gap:18px}.row>div{min-width:0}\n"
    ".cards{display:flex;flex-wrap:wrap;gap:18px;margin:0 0 12px}\n"
    ".card{flex:1 1 320px;min-width:0;background:var(--panel);border:1px solid var(--rule);"
    "border-radius:8px;padding:10px 14px 14px}.card h3{margin-top:0}\n"
    "figure.chart{margin:0;flex:1 1 400px;min-width:0;max-width:500px;background:var(--panel);"
    "border:1px solid var(--rule);border-radius:6px;padding:8px}\n"
    "figure.wide{max-width:700px}figure.chart svg{display:block;width:100%;max-width:100%;"
    "height:auto}\n"
    ".save{font-size:12px;color:var(--soft);text-align:right}\n"
    ".scroll{overflow-x:auto;max-width:100%}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:4px 0 12px}\n"
    "th,td{padding:4px 14px 4px 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid var(--rule)}\n"
    "th{font-weight:600;color:var(--soft);font-size:13px}td.n,th.n{text-align:right}"
    ".whole{white-space:nowrap}td,th{overflow-wrap:normal}td.free{overflow-wrap:anywhere}\n"
    "figure.shot{margin:0;width:104px;font-size:12px;line-height:1.35}figure.big{width:168px}\n"
    "figure.shot img{display:block;width:100%;aspect-ratio:1;object-fit:contain;background:#fff;"
    "border:1px solid var(--rule);border-radius:4px;padding:2px}\n"
    "figure.hit img{border:2px solid var(--c2);padding:1px}\n"
    "figure.shot figcaption{margin-top:3px;color:var(--soft);overflow-wrap:anywhere}\n"
    "figcaption b{color:var(--fg);font-weight:500}\n"
    ".query{margin:14px 0 6px}.query q{font-weight:600}\n"
    "@media(max-width:640px){main{padding:20px 16px 48px}h1{font-size:22px}"
    ".answer{font-size:17px}.opening{gap:14px}.opening figure.shot,"
    ".opening+.opening figure.shot{width:104px}.row,.cards{gap:12px}figure.chart{padding:4px}\n"
    "table{font-size:14px}th,td{padding-right:9px}th{font-size:12px}td.whole{white-space:normal}"
    "td.whole .soft{display:block;white-space:nowrap}\n"
    ".row:has(.shot){gap:8px}figure.shot{width:76px}figure.big{width:140px}\n"
    "table.wordy,table.wordy tbody{display:block}table.wordy tr{display:flex;flex-wrap:wrap;"
    "border-bottom:1px solid var(--rule)}table.wordy td,table.wordy th{border:0}"
    "table.wordy tr>:first-child{flex:1 1 34%}table.wordy .n{flex:0 1 29%}"
    "table.wordy td.soft{flex:1 1 100%;padding-top:0;font-size:13px}"
    "table.wordy th:last-child:not(.n){display:none}}\n";

void pnb__html_begin(pnb__buf *out, const char *title, const char *subtitle)
{
    pnb__buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<title>");
    pnb__html_escape(out, title);
    pnb__buf_puts(out, "</title>\n<style>\n");
    pnb__drawing_palette(out);
    pnb__buf_puts(out, style);
    pnb__drawing_style(out, false);
    pnb__buf_puts(out, "</style></head><body><main>\n<h1>");
    pnb__html_escape(out, title);
    pnb__buf_puts(out, "</h1>\n<p class=\"soft\">");
    pnb__html_escape(out, subtitle);
    pnb__buf_puts(out, "</p>\n");
}

void pnb__html_headline(pnb__buf *out, const char *asked, const char *answer)
{
    pnb__buf_puts(out, "<p class=\"asked\">");
    pnb__html_escape(out, asked);
    pnb__buf_puts(out, "</p>\n<p class=\"answer\">");
    pnb__html_escape(out, answer);
    pnb__buf_puts(out, "</p>\n");
}

void pnb__html_contents(pnb__buf *out)
{
    pnb__buf_puts(out, contents_mark);
}

/* ---- the second pass: sections get names, the contents list them ---- */

/* The next `mark` in the bytes, or NULL; text of users never holds one, for '<' is escaped. */
static const char *find_mark(const char *at, const char *end, const char *mark)
{
    size_t n = strlen(mark);
    while (at != NULL && (size_t)(end - at) >= n) {
        at = memchr(at, mark[0], (size_t)(end - at));
        if (at == NULL || (size_t)(end - at) < n)
            return NULL;
        if (memcmp(at, mark, n) == 0)
            return at;
        at++;
    }
    return NULL;
}

static void list_sections(pnb__buf *page, const char *at, const char *end)
{
    size_t n = 0;
    pnb__buf_puts(page, "<nav aria-label=\"Contents\"><ul class=\"contents\">\n");
    while ((at = find_mark(at, end, section_mark)) != NULL) {
        const char *heading = at + sizeof section_mark - 1;
        const char *stop = find_mark(heading, end, "</h2>");
        pnb__buf_printf(page, "<li><a href=\"#s%zu\">", ++n);
        pnb__buf_append(page, heading, (size_t)(stop - heading));
        pnb__buf_puts(page, "</a></li>\n");
        at = stop;
    }
    pnb__buf_puts(page, "</ul></nav>\n");
}

static void name_sections(pnb__buf *page, const char *at, const char *end)
{
    size_t n = 0;
    for (const char *next; (next = find_mark(at, end, section_mark)) != NULL;) {
        pnb__buf_append(page, at, (size_t)(next - at));
        pnb__buf_printf(page, "<section id=\"s%zu\"><h2>", ++n);
        at = next + sizeof section_mark - 1;
    }
    pnb__buf_append(page, at, (size_t)(end - at));
}

void pnb__html_end(pnb__buf *out)
{
    pnb__buf page = {0};
    pnb__buf_puts(out, "</main></body></html>\n");
    if (out->failed)
        return;
    const char *end = out->data + out->size;
    const char *mark = find_mark(out->data, end, contents_mark);
    const char *rest = mark != NULL ? mark + sizeof contents_mark - 1 : out->data;
    if (mark != NULL) {
        pnb__buf_append(&page, out->data, (size_t)(mark - out->data));
        list_sections(&page, rest, end);
    }
    name_sections(&page, rest, end);
    pnb__buf_reset(out);
    *out = page;
}

void pnb__html_section(pnb__buf *out, const char *heading, const char *text)
{
    pnb__buf_puts(out, section_mark);
    pnb__html_escape(out, heading);
    pnb__buf_puts(out, "</h2>\n");
    if (text != NULL) {
        pnb__buf_puts(out, "<p class=\"soft\">");
        pnb__html_escape(out, text);
        pnb__buf_puts(out, "</p>\n");
    }
}

void pnb__html_section_end(pnb__buf *out)
{
    pnb__buf_puts(out, "</section>\n");
}

/* ---- cards ---- */

void pnb__html_cards_begin(pnb__buf *out)
{
    pnb__buf_puts(out, "<div class=\"cards\">\n");
}

void pnb__html_card(pnb__buf *out, const char *heading)
{
    static const char opening[] = "<div class=\"cards\">\n";
    size_t n = sizeof opening - 1;
    bool is_first = out->size >= n && memcmp(out->data + out->size - n, opening, n) == 0;
    pnb__buf_printf(out, "%s<div class=\"card\"><h3>", is_first ? "" : "</div>\n");
    pnb__html_escape(out, heading);
    pnb__buf_puts(out, "</h3>\n");
}

void pnb__html_cards_end(pnb__buf *out)
{
    pnb__buf_puts(out, "</div></div>\n");
}

/* ---- pictures ---- */

pnb_status pnb__html_image_data(pnb__buf *out, const pnb_image *image, int size, pnb_error *err)
{
    pnb_image small = {0};
    unsigned char *png = NULL;
    size_t n_png = 0;
    pnb_status status = PNB_OK;
    double scale = (double)size / (double)PNB_MAX(image->width, image->height);
    const pnb_image *shown = image;
    if (scale < 1.0) {
        int width = PNB_MAX((int)lround(image->width * scale), 1);
        int height = PNB_MAX((int)lround(image->height * scale), 1);
        PNB_TRY(pnb_image_resize(&small, image, width, height, PNB_FILTER_BICUBIC, NULL, err));
        shown = &small;
    }
    PNB_TRY(pnb_image_encode_png(shown, &png, &n_png, err));
    pnb__buf_puts(out, "data:image/png;base64,");
    pnb__base64(out, png, n_png);
done:
    pnb_image_bytes_free(png);
    pnb_image_free(&small);
    return status;
}

pnb_status pnb__html_thumbnail(pnb__buf *out, const pnb_image *image, int size, const char *alt,
                               pnb_error *err)
{
    pnb__buf_puts(out, "<img alt=\"");
    pnb__html_escape(out, alt);
    pnb__buf_puts(out, "\" src=\"");
    pnb_status status = pnb__html_image_data(out, image, size, err);
    pnb__buf_puts(out, "\">");
    return status;
}

pnb_status pnb__html_shot(pnb__buf *out, const pnb_image *image, const char *css, const char *name,
                          const char *note, pnb_error *err)
{
    bool is_big = strstr(css, "big") != NULL;
    pnb_status status = PNB_OK;
    pnb__buf_printf(out, "<figure class=\"shot %s\">", css);
    if (image != NULL)
        status = pnb__html_thumbnail(out, image, is_big ? BIG_SHOT : SMALL_SHOT, name, err);
    pnb__buf_puts(out, "<figcaption><b>");
    pnb__html_escape(out, name);
    pnb__buf_puts(out, "</b>");
    if (note[0] != '\0')
        pnb__buf_puts(out, "<br>");
    pnb__html_escape(out, note);
    pnb__buf_puts(out, "</figcaption></figure>\n");
    return status;
}
