/* Words whose vectors are wanted of a file, and the spellings under which each is found there. */
#ifndef PNB_IO_TABLES_WANTED_WORDS_H
#define PNB_IO_TABLES_WANTED_WORDS_H

#include "base/map.h"

/* How the vector of a wanted word was found. */
typedef enum pnb__word_found {
    PNB__WORD_MISSING,
    PNB__WORD_BY_FALLBACK, /* without - . ' and what is behind a / */
    PNB__WORD_EXACT
} pnb__word_found;

/* The words whose vectors are wanted, and where they go. */
typedef struct pnb__wanted_words {
    const char *const *words; /* (n) terminated, UTF-8 */
    size_t n, dim;
    float *rows;          /* (n,dim): rows of missing words stay as they are */
    unsigned char *found; /* (n) pnb__word_found */
} pnb__wanted_words;

/* A spelling under which a wanted word is found. */
typedef struct pnb__spelling {
    size_t start, n; /* in the text of all */
    size_t word;
    pnb__word_found how;
} pnb__spelling;

/* All zero before init. */
typedef struct pnb__spellings {
    pnb__buf text;
    pnb__spelling *items;
    size_t n;
    pnb__key_map map;
} pnb__spellings;

/* Both spellings of each word; all words become missing.  Errors  NOMEM, LIMIT (reset in any case)
 */
pnb_status pnb__spellings_init(pnb__spellings *s, const pnb__wanted_words *w, pnb_error *err);
/* The next spelling that is these bytes and wins over what was found so far, NULL behind the last;
 * *step begins as 0. */
const pnb__spelling *pnb__spellings_next(const pnb__spellings *s, const pnb__wanted_words *w,
                                         const char *word, size_t n, size_t *step);
void pnb__spellings_reset(pnb__spellings *s);

#endif
