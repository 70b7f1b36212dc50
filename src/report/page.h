/* A page that shows a result: sections, plots and tables that name what they show by its key, so
 * that a figure is said once, where the result is made, and a page says how it looks.
 *
 * Order: begin, headline and examples, contents, sections, write. */
#ifndef PNB_REPORT_PAGE_H
#define PNB_REPORT_PAGE_H

#include "report/plot.h"
#include "report/result.h"

typedef struct pnb__page {
    pnb__buf out;
    const pnb__result *shown;   /* may be changed on the way: another result, the same page */
    const char *heading, *text; /* of a section in which nothing stands yet */
    bool is_open, in_row;
    size_t n_bytes; /* of the page, once it is written */
} pnb__page;

void pnb__page_begin(pnb__page *p, const pnb__result *shown, const char *title,
                     const char *subtitle);
/* The next section, which ends the one before; it appears with the first thing in it. Both texts
 * stay until then; `text` may be NULL. */
void pnb__page_section(pnb__page *p, const char *heading, const char *text);
/* Plots stand in rows. */
void pnb__page_plot(pnb__page *p, const pnb__plot *plot);
/* The table at a key, nothing where it is not there or has no row. `columns`: keys in their order
 * up to NULL, or NULL for all that text shows. A column that has "key_low" and "key_high" beside it
 * is printed with this interval; "meaning" is a sentence in small print; a column without any value
 * is left out. _percents: numbers that are no counts are shares, printed as per cent. */
void pnb__page_table(pnb__page *p, const char *path, const char *const *columns);
void pnb__page_percents(pnb__page *p, const char *path, const char *const *columns);
/* Where what is drawn by hand goes: in the section, behind what stands there. */
pnb__buf *pnb__page_block(pnb__page *p);
/* Ends the page and writes it whole or not at all. */
pnb_status pnb__page_write(pnb__page *p, const char *path, pnb_error *err);
void pnb__page_reset(pnb__page *p);

/* For sentences: a number by its key, NaN where it is not there; that of the first row of a table
 * whose text in the column `where` is `is`. */
double pnb__page_number(const pnb__page *p, const char *path);
double pnb__page_cell(const pnb__page *p, const char *table, const char *where, const char *is,
                      const char *key);

#endif
