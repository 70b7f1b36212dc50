/* page.html with page.css and page.js in the places where it refers to them.
 *
 * The three files stand beside this one, and page.html works when it is opened from there. Inline
 * parts run by their SHA-256 alone, so that nothing that comes into the document by a caption or a
 * name can. */
#include "server/page/page_document.h"

#include <string.h>

#include "server/page/page_files.h"

#define STYLE_MARK "<link rel=\"stylesheet\" href=\"page.css\">"
#define SCRIPT_MARK "<script src=\"page.js\"></script>"

/* The hash of an inline part as a policy names it. */
static void put_hash(const char *text, pnb__buf *b)
{
    char hex[65];
    unsigned char bytes[32];
    pnb__sha256 hash;
    pnb__sha256_init(&hash);
    pnb__sha256_update(&hash, text, strlen(text));
    pnb__sha256_hex(&hash, hex);
    for (size_t i = 0; i < sizeof bytes; i++) {
        unsigned high = (unsigned)(strchr("0123456789abcdef", hex[2 * i]) - "0123456789abcdef");
        unsigned low = (unsigned)(strchr("0123456789abcdef", hex[2 * i + 1]) - "0123456789abcdef");
        bytes[i] = (unsigned char)(16 * high + low);
    }
    pnb__buf_puts(b, "'sha256-");
    pnb__base64(b, bytes, sizeof bytes);
    pnb__buf_puts(b, "'");
}

static void put_policy(pnb__buf *b)
{
    pnb__buf_puts(b, "default-src 'none'; script-src ");
    put_hash(pnb__page_js, b);
    pnb__buf_puts(b, "; style-src ");
    put_hash(pnb__page_css, b);
    pnb__buf_puts(b, "; img-src blob: data:; connect-src 'self'; base-uri 'none'; "
                     "form-action 'none'; frame-ancestors 'none'; "
                     "require-trusted-types-for 'script'; trusted-types 'none'");
}

bool pnb__page_put(pnb__buf *b, char *policy, size_t size)
{
    const char *style = strstr(pnb__page_html, STYLE_MARK);
    const char *script = strstr(pnb__page_html, SCRIPT_MARK);
    pnb__buf text = {0};
    if (style == NULL || script == NULL || script < style)
        return false; /* the file was changed in a way that this does not know */
    put_policy(&text);
    bool fits = !text.failed && text.size < size;
    if (fits)
        memcpy(policy, text.data, text.size + 1);
    pnb__buf_reset(&text);
    pnb__buf_append(b, pnb__page_html, (size_t)(style - pnb__page_html));
    pnb__buf_puts(b, "<style>");
    pnb__buf_puts(b, pnb__page_css);
    pnb__buf_puts(b, "</style>");
    style += sizeof STYLE_MARK - 1;
    pnb__buf_append(b, style, (size_t)(script - style));
    pnb__buf_puts(b, "<script>");
    pnb__buf_puts(b, pnb__page_js);
    pnb__buf_puts(b, "</script>");
    pnb__buf_puts(b, script + sizeof SCRIPT_MARK - 1);
    return fits;
}
