/* The page around a report: one file, no outside resource, light and dark. */
#ifndef PNB_APP_HTML_H
#define PNB_APP_HTML_H

#include "base/base.h"
#include "penumbra/image.h"

void pnb__html_begin(pnb__buf *out, const char *title, const char *subtitle);
void pnb__html_end(pnb__buf *out);
void pnb__html_section(pnb__buf *out, const char *heading, const char *text /* may be NULL */);
void pnb__html_section_end(pnb__buf *out);
/* A picture shrunk to fit `size` pixels, as PNG inside the page. */
pnb_status pnb__html_thumbnail(pnb__buf *out, const pnb_image *image, int size, const char *alt,
                               pnb_error *err);
void pnb__base64(pnb__buf *out, const void *bytes, size_t n);

#endif
