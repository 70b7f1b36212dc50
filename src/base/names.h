/* Names of choices, from the X-list that made the enum.
 *
 * Rows begin with the enumerator and the word users type: X(BINS, "bins", ...) or X(ADAM, adam).
 * PNB_NAMES(LIST) is all the words, one after the other in a single constant text, so a choice that
 * joins the list has its name, is parsed, and stands in the error text, and nothing else changes:
 *
 *     PNB_DEFINE_NAME(pnb_root_name, pnb_root, PNB_NAMES(PNB_ROOT_LIST), "unknown")
 *     PNB_DEFINE_PARSE(pnb_root_parse, pnb_root, "root", PNB_NAMES(PNB_ROOT_LIST))
 *
 * are the two functions of a list. */
#ifndef PNB_BASE_NAMES_H
#define PNB_BASE_NAMES_H

#include "base/base.h"

#define PNB__NAMES_FIRST(text, ...) text
#define PNB__NAMES_WORD(name, ...) PNB__NAMES_FIRST(__VA_ARGS__, 0) "\0"
#define PNB__NAMES_IDENT_FIRST(ident, ...) #ident
#define PNB__NAMES_IDENT(name, ...) PNB__NAMES_IDENT_FIRST(__VA_ARGS__, 0) "\0"
#define PNB__NAMES_SENTENCE(name, text, sentence) sentence "\0"

/* The second column: texts, or identifiers turned into texts. */
#define PNB_NAMES(LIST) LIST(PNB__NAMES_WORD)
#define PNB_NAMES_OF_IDENTS(LIST) LIST(PNB__NAMES_IDENT)
/* The third column of a list of three. */
#define PNB_SENTENCES(LIST) LIST(PNB__NAMES_SENTENCE)

/* The word at a place, `otherwise` when there is none. */
const char *pnb__name_at(const char *names, unsigned place, const char *otherwise);

/* Puts the place of `name` into *out, an enum that counts from 0; untouched on failure.
 * Errors  NOT_FOUND: "<what> 'x' is unknown; known are a, b, c" */
pnb_status pnb__name_choose(void *out, const char *what, const char *names, const char *name,
                            pnb_error *err);

/* The function of that name, of an enum and its list: the word of a value, `otherwise` outside the
 * list; the value of a word, as pnb__name_choose; the same without a text, false for a stranger. */
#define PNB_DEFINE_NAME(function, type, names, otherwise)                                          \
    const char *function(type value)                                                               \
    {                                                                                              \
        return pnb__name_at(names, (unsigned)value, otherwise);                                    \
    }
#define PNB_DEFINE_PARSE(function, type, what, names)                                              \
    pnb_status function(type *out, const char *name, pnb_error *err)                               \
    {                                                                                              \
        return pnb__name_choose(out, what, names, name, err);                                      \
    }
#define PNB_DEFINE_FROM_NAME(function, type, names)                                                \
    bool function(const char *name, type *out)                                                     \
    {                                                                                              \
        return pnb__name_choose(out, "", names, name, NULL) == PNB_OK;                             \
    }

#endif
