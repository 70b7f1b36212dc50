/* Words of a caption. */
#ifndef PNB_ENCODE_WORD_LIST_H
#define PNB_ENCODE_WORD_LIST_H

#include "base/base.h"

typedef struct pnb__word_list {
    const char **start; /* into the caption */
    size_t *length;
    size_t n;
} pnb__word_list;

/* Words between white space. Errors  NOMEM */
pnb_status pnb__word_list_split(const char *text, pnb__word_list *out, pnb_error *err);
void pnb__word_list_reset(pnb__word_list *words);
/* The words with keep[i], joined by single spaces. */
char *pnb__word_list_join(const pnb__word_list *words, const bool *keep);
/* Takes `share` of the words of caption `number`, rounded, in an order of its own: what is gone at
 * a smaller share is gone at a larger. With `unknown` NULL they are removed and one word always
 * stays; else this word stands in the place of each, of all of them at share 1 (PCME Figure 7).
 * NULL: out of memory. */
char *pnb__word_list_drop(const char *text, double share, const char *unknown, uint64_t seed,
                          size_t number);

#endif
