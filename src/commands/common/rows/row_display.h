/* Rows of embedding sets on a page: captions as words, pictures as pictures. */
#ifndef PNB_COMMANDS_COMMON_ROW_DISPLAY_H
#define PNB_COMMANDS_COMMON_ROW_DISPLAY_H

#include "base/base.h"
#include "encode/inputs/inputs.h"
#include "penumbra/embeddings.h"
#include "program/app.h"

/* Sets whose pictures are found again by path or data set; one that has gone is shown by name and
 * counted. All zero to begin with. */
typedef struct pnb__page_rows {
    pnb__row_source source;
    size_t n_missing;
} pnb__page_rows;
void pnb__page_rows_reset(pnb__page_rows *rows);

/* What people would call row `row`: its caption, also one kept beside a picture, else the name its
 * data set gives it, else that of its file, else its id. The result may be written to `text`. */
const char *pnb__page_row_name(pnb__page_rows *rows, const pnb_embeddings *set, size_t row,
                               char text[256]);

/* The row with a note below it; `css` as for pnb__html_shot. */
pnb_status pnb__page_row(pnb__buf *out, pnb__page_rows *rows, const pnb_embeddings *set, size_t row,
                         const char *css, const char *note, pnb_error *err);

#endif
