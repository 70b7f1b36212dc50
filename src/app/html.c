/* Frame and style sheet of the report.
 *
 * Colours are variables with a dark set under prefers-color-scheme; the eight data colours c0..c7
 * keep their order of lightness for readers who do not tell hues apart. */
#include "app/html.h"

#include <math.h>

#include "app/svg.h"

static const char style[] =
    ":root{--bg:#fbfbfa;--fg:#22262b;--soft:#6a7178;--rule:#dcdfe2;--grid:#eceef0;--panel:#fff;"
    "--c0:#2f6db3;--c1:#d1702a;--c2:#2f8f6b;--c3:#8a5fb5;--c4:#b8394b;--c5:#7a828a;--c6:#c29a1c;"
    "--c7:#3aa0b8}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#17191c;--fg:#e4e6e8;--soft:#9aa1a8;"
    "--rule:#34383d;--grid:#282c30;--panel:#1d2023;--c0:#6fa8e8;--c1:#eda066;--c2:#68c39e;"
    "--c3:#bd98e6;--c4:#ee7f8d;--c5:#a0a7ae;--c6:#e0c15a;--c7:#74cde0}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Liberation Sans',sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:32px 24px 64px}\n"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px}h2{font-size:19px;margin:0 0 4px}\n"
    "h3{font-size:14px;margin:16px 0 6px;color:var(--soft);font-weight:600}\n"
    "p{margin:0 0 12px;max-width:76ch}.soft{color:var(--soft)}\n"
    "section{margin-top:36px;padding-top:20px;border-top:1px solid var(--rule)}\n"
    ".row{display:flex;flex-wrap:wrap;gap:18px}\n"
    ".row>svg{max-width:100%;height:auto;background:var(--panel);border:1px solid var(--rule);"
    "border-radius:6px;padding:8px}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:4px 0 12px}\n"
    "th,td{padding:4px 14px 4px 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid var(--rule)}\n"
    "th{font-weight:600;color:var(--soft);font-size:13px}td.n,th.n{text-align:right}"
    "td.whole{white-space:nowrap}\n"
    "figure{margin:0;width:104px;font-size:12px;line-height:1.35}\n"
    "figure img{display:block;width:96px;height:96px;object-fit:contain;background:#fff;"
    "border:1px solid var(--rule);border-radius:4px;padding:2px}\n"
    "figure.hit img{border:2px solid var(--c2);padding:1px}\n"
    "figcaption{margin-top:3px;color:var(--soft);overflow-wrap:anywhere}\n"
    ".query{margin:14px 0 6px}.query q{font-weight:600}\n"
    "svg text{font:12px system-ui,'Liberation Sans',sans-serif;fill:var(--fg)}\n"
    "svg .title{font-size:14px;font-weight:600}svg .tick{fill:var(--soft)}"
    "svg .note{fill:var(--soft)}\n"
    "svg .grid{stroke:var(--grid);stroke-width:1}svg .axis{stroke:var(--soft);stroke-width:1}\n"
    "svg .line{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    "svg .dashes{stroke-dasharray:5 4}\n"
    "svg .dot{fill-opacity:.85;stroke:none}svg .bar{fill-opacity:.72;stroke:none}"
    "svg .ring{fill-opacity:.07;stroke-width:1;stroke-opacity:.6}\n";

void pnb__html_begin(pnb__buf *out, const char *title, const char *subtitle)
{
    pnb__buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<title>");
    pnb__html_escape(out, title);
    pnb__buf_puts(out, "</title>\n<style>\n");
    pnb__buf_puts(out, style);
    for (int i = 0; i < 8; i++)
        pnb__buf_printf(out,
                        "svg .line.c%d,svg .ring.c%d{stroke:var(--c%d)}"
                        "svg .dot.c%d,svg .bar.c%d,svg .ring.c%d{fill:var(--c%d)}\n",
                        i, i, i, i, i, i, i);
    pnb__buf_puts(out, "</style></head><body><main>\n<h1>");
    pnb__html_escape(out, title);
    pnb__buf_puts(out, "</h1>\n<p class=\"soft\">");
    pnb__html_escape(out, subtitle);
    pnb__buf_puts(out, "</p>\n");
}

void pnb__html_end(pnb__buf *out)
{
    pnb__buf_puts(out, "</main></body></html>\n");
}

void pnb__html_section(pnb__buf *out, const char *heading, const char *text)
{
    pnb__buf_puts(out, "<section><h2>");
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

void pnb__base64(pnb__buf *out, const void *bytes, size_t n)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t block = (uint32_t)p[i] << 16;
        block |= i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0;
        block |= i + 2 < n ? (uint32_t)p[i + 2] : 0;
        const char quad[4] = {letters[block >> 18], letters[block >> 12 & 63],
                              i + 1 < n ? letters[block >> 6 & 63] : '=',
                              i + 2 < n ? letters[block & 63] : '='};
        pnb__buf_append(out, quad, 4);
    }
}

pnb_status pnb__html_thumbnail(pnb__buf *out, const pnb_image *image, int size, const char *alt,
                               pnb_error *err)
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
    pnb__buf_puts(out, "<img alt=\"");
    pnb__html_escape(out, alt);
    pnb__buf_puts(out, "\" src=\"data:image/png;base64,");
    pnb__base64(out, png, n_png);
    pnb__buf_puts(out, "\">");
done:
    pnb_image_bytes_free(png);
    pnb_image_free(&small);
    return status;
}
