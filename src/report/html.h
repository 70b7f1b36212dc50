/* The page around a report: one file, no outside resource, no script, light and dark.
 *
 * Order of a page: begin, headline, examples, contents, sections, end. */
#ifndef PNB_REPORT_HTML_H
#define PNB_REPORT_HTML_H

#include "base/base.h"
#include "penumbra/image.h"

void pnb__html_begin(pnb__buf *out, const char *title, const char *subtitle);
/* What was asked, and the answer in one sentence. */
void pnb__html_headline(pnb__buf *out, const char *asked, const char *answer);
/* Marks where the list of sections goes; pnb__html_end fills it in. */
void pnb__html_contents(pnb__buf *out);
void pnb__html_end(pnb__buf *out);
void pnb__html_section(pnb__buf *out, const char *heading, const char *text /* may be NULL */);
void pnb__html_section_end(pnb__buf *out);

/* The best and the worst: a row of cards, each with a heading and what follows it. */
void pnb__html_cards_begin(pnb__buf *out);
void pnb__html_card(pnb__buf *out, const char *heading); /* ends the one before */
void pnb__html_cards_end(pnb__buf *out);

/* A picture shrunk to fit `size` pixels, as PNG inside the page. */
pnb_status pnb__html_thumbnail(pnb__buf *out, const pnb_image *image, int size, const char *alt,
                               pnb_error *err);
/* "data:image/png;base64,..." alone. */
pnb_status pnb__html_image_data(pnb__buf *out, const pnb_image *image, int size, pnb_error *err);
/* A picture with its name and a note under it; `image` NULL: the name alone. "big", "hit" or both
 * in `css`. */
pnb_status pnb__html_shot(pnb__buf *out, const pnb_image *image, const char *css, const char *name,
                          const char *note, pnb_error *err);

#endif
