/* data:[<type>][;<parameter>]*;base64,<bytes> of RFC 2397, of pictures only.
 *
 * Who sends a picture to a server writes it so, or as the bare base64 that some clients send. An
 * http: or file: URL is an error by itself: nobody's request decides what a server fetches. */
#include "io/image/data_url.h"

#include <string.h>
#include <strings.h>

static const char scheme[] = "data:image/";

bool pnb__is_image_url(const char *text)
{
    return strncasecmp(text, scheme, sizeof scheme - 1) == 0;
}

/* Behind the comma; NULL for a URL that is not of a picture in base64. */
static const char *find_bytes(const char *text, size_t n)
{
    static const char mark[] = ";base64";
    const char *comma = memchr(text, ',', n);
    if (comma == NULL || comma - text < (ptrdiff_t)(sizeof mark - 1) || !pnb__is_image_url(text))
        return NULL;
    return strncasecmp(comma - (sizeof mark - 1), mark, sizeof mark - 1) == 0 ? comma + 1 : NULL;
}

pnb_status pnb__image_text_read(pnb__buf *out, const char *text, size_t n, pnb_error *err)
{
    const char *at = text;
    size_t bad = 0;
    if (memchr(text, ':', n) != NULL)
        at = find_bytes(text, n);
    if (at == NULL)
        return pnb__fail(err, PNB_ARG,
                         "'%.40s%s' is no picture: nothing is fetched from a URL or read from a "
                         "path, send the bytes themselves as data:image/png;base64,...",
                         text, n > 40 ? "..." : "");
    n -= (size_t)(at - text);
    if (n == 0)
        return pnb__fail(err, PNB_FORMAT, "a picture of no bytes");
    if (!pnb__base64_decode(out, at, n, &bad))
        return pnb__fail(err, PNB_FORMAT, "byte %zu of a picture is no base64", bad);
    return pnb__buf_check(out, err);
}
