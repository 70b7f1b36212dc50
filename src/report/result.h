/* What a command found: named values and tables, printed as text or as one JSON object, and shown
 * on a page (page.h). */
#ifndef PNB_REPORT_RESULT_H
#define PNB_REPORT_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "io/json/json.h"
#include "penumbra/error.h"

/* Values appear in the order they were added. `key` names the field in JSON, `label` the line in
 * text; a NULL label keeps a value out of the text, a NULL key out of the JSON. Adding is sticky:
 * after an allocation failure nothing more happens and pnb__result_print reports it. */
typedef struct pnb__result pnb__result;

pnb__result *pnb__result_create(void); /* NULL when out of memory; every call accepts NULL */
void pnb__result_free(pnb__result *r);

void pnb__result_text(pnb__result *r, const char *key, const char *label, const char *value);
void pnb__result_int(pnb__result *r, const char *key, const char *label, int64_t value);
/* `digits` behind the point in text; a NaN or infinity is "-" in text and null in JSON. */
void pnb__result_real(pnb__result *r, const char *key, const char *label, double value, int digits);
/* A list of words: JSON only. */
void pnb__result_words(pnb__result *r, const char *key, char *const *words, size_t n);
void pnb__result_flag(pnb__result *r, const char *key, const char *label, bool value);
/* A remark in words: text only. An empty one is an empty line, NULL a failed allocation. */
void pnb__result_note(pnb__result *r, const char *text);
/* A heading above what follows: text only. */
void pnb__result_heading(pnb__result *r, const char *text);

/* The next values go into the object `key` until _end; in text a heading stands above them. */
void pnb__result_begin(pnb__result *r, const char *key, const char *heading);
void pnb__result_end(pnb__result *r);
/* A list of numbers: JSON only, null for NaN and infinity. */
void pnb__result_numbers(pnb__result *r, const char *key, const double *values, size_t n);
/* Any value: JSON only. Takes ownership; NULL is a failed allocation. */
void pnb__result_value(pnb__result *r, const char *key, json_t *value);
/* Repeats the value `key` of the object `inner`, both added before, in the open object: JSON only.
 */
void pnb__result_repeat(pnb__result *r, const char *inner, const char *key);

/* A table: columns first, then cells row by row, left to right. In JSON an array of objects; with a
 * NULL key text only. A column without a heading is in JSON only. */
typedef struct pnb__column {
    const char *key, *heading;
} pnb__column;
void pnb__result_table(pnb__result *r, const char *key, const char *heading,
                       const pnb__column *columns, size_t n_columns);
/* Several cells at once, in printf's words: %s a text (NULL: nothing), %d and %zu a whole number,
 * %.4f a real with that many digits. */
void pnb__result_row(pnb__result *r, const char *format, ...) PNB_PRINTF(2, 3);
/* Any value in JSON, and how it is written in text. Takes ownership; NULL is a failed allocation.
 */
void pnb__result_cell_value(pnb__result *r, json_t *value, const char *text);
void pnb__result_cell_text(pnb__result *r, const char *value);
void pnb__result_cell_int(pnb__result *r, int64_t value);
void pnb__result_cell_real(pnb__result *r, double value, int digits);

pnb_status pnb__result_print(const pnb__result *r, FILE *out, bool json, pnb_error *err);

/* ---- what is in it, for pages and ends of commands ---- */

enum { PNB__MAX_COLUMNS = 24, PNB__CELL_BYTES = 400 };

/* A table as it is read: cells as text prints them. */
typedef struct pnb__grid {
    char keys[PNB__MAX_COLUMNS][40], headings[PNB__MAX_COLUMNS][PNB__CELL_BYTES]; /* copies */
    size_t n_columns, n_cells;
    char (*cells)[PNB__CELL_BYTES];
    bool is_number[PNB__MAX_COLUMNS], is_hidden[PNB__MAX_COLUMNS]; /* hidden: in JSON only */
    json_t *rows; /* NULL: text only; else borrowed from the tree */
} pnb__grid;

/* Whether nothing was added, and nothing failed. */
bool pnb__result_is_empty(const pnb__result *r);
/* False for NULL and once adding failed. */
bool pnb__result_is_complete(const pnb__result *r);
/* Values by "key.key"; NULL: not there. The table of a key, NULL where that is none. */
const json_t *pnb__result_get(const pnb__result *r, const char *path);
const pnb__grid *pnb__result_grid(const pnb__result *r, const char *path);

#endif
