/* HTML character references in captions. */
#ifndef PNB_TOKENIZER_CLEAN_HTML_UNESCAPE_H
#define PNB_TOKENIZER_CLEAN_HTML_UNESCAPE_H

#include "tokenizer/text.h"

/* By first letter, A..Z then a..z: "name value name value ...", '?' behind a name that needs no
 * semicolon. html_entities.c */
extern const char *const pnb__html_entities[52];

/* Python's html.unescape, once. `strict`: only references that end with a semicolon. */
void pnb__html_unescape(pnb__buf *out, const char *s, size_t n, bool strict);

#endif
