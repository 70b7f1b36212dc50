/* A caption as words and counts: what caption rules look at. */
#ifndef PNB_EVAL_CURATION_TEXT_WORDS_H
#define PNB_EVAL_CURATION_TEXT_WORDS_H

#include "base/base.h"
#include "penumbra/filter.h"

typedef struct pnb__word {
    size_t begin, end; /* in pnb__text_words.text */
} pnb__word;

typedef struct pnb__text_words {
    pnb__buf text; /* the words in lower case, single spaces between */
    pnb__word *word;
    size_t n_words, capacity;
    size_t n_chars;            /* code points, white space at both ends left out */
    size_t n_visible, n_ascii; /* code points that are not white space; ASCII ones */
    size_t n_letters, of_script[PNB_N_SCRIPTS]; /* letters, and those of each script */
} pnb__text_words;

/* Takes a caption apart; the arrays are reused from call to call. Start from all zero.
 * Errors  FORMAT (not UTF-8), NOMEM */
pnb_status pnb__text_words_read(pnb__text_words *w, const char *text, pnb_error *err);
/* Different words; w->text.failed is set when there is no memory to count them. */
size_t pnb__text_words_distinct(pnb__text_words *w);
void pnb__text_words_reset(pnb__text_words *w);

#endif
