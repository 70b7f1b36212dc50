/* The text beside a stamp of Tux Paint: a line in English, then translations, "de.utf8=Ein Frosch."
 * each. */
#ifndef PNB_IO_TABLES_STAMP_TEXT_H
#define PNB_IO_TABLES_STAMP_TEXT_H

#include "base/base.h"

typedef struct pnb__stamp_line {
    const char *language; /* "en", "pt_BR", "ca@valencia" */
    const char *text;     /* without blanks at its ends, never empty */
} pnb__stamp_line;

/* A text is looked through for each of its lines; the most that a stamp has today is 76. */
enum { PNB__MAX_STAMP_LANGUAGES = 256 };

/* Pointers into the text it was read from, which parsing has changed. */
typedef struct pnb__stamp_text {
    pnb__stamp_line *lines; /* the English one first; each language once, the first counts */
    size_t n;
} pnb__stamp_text;

/* Errors  FORMAT (no English sentence, not UTF-8, a NUL byte), LIMIT (more languages), NOMEM */
pnb_status pnb__stamp_text_parse(pnb__stamp_text *out, char *text, size_t n, const char *path,
                                 pnb_error *err);
/* The sentence in a language, NULL where there is none. */
const char *pnb__stamp_text_in(const pnb__stamp_text *text, const char *language);
void pnb__stamp_text_free(pnb__stamp_text *text);

#endif
