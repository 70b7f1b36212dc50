/* Tells descriptions from what else stands in the titles of clip art. The rule and its errors:
 * docs/data.md#clipart. */
#ifndef PNB_DATA_COLLECTIONS_CLIPART_TITLE_H
#define PNB_DATA_COLLECTIONS_CLIPART_TITLE_H

#include <stdbool.h>
#include <stddef.h>

enum { PNB__TITLE_MAX = 100 }; /* bytes of a clean title; a longer one is no title */

/* What is known of a picture; texts may be NULL. */
typedef struct pnb__title_facts {
    const char *title, *creator, *language;
    const char *file; /* "animals/mammals/cat_01.svg" */
    const char *const *keywords;
    size_t n_keywords;
    size_t n_carriers;       /* pictures with this very title by this creator */
    bool is_creator_foreign; /* most likely writes in another language than English */
} pnb__title_facts;

/* X(NAME, text): what a title is. */
#define PNB__TITLE_LIST(X)                                                                         \
    X(DESCRIBES, "describes")                                                                      \
    X(MISSING, "missing")                                                                          \
    X(COLLECTION, "names a collection")                                                            \
    X(AUTHOR, "names the author")                                                                  \
    X(CODE, "is a code")                                                                           \
    X(LANGUAGE, "another language")

typedef enum pnb__title_kind {
#define PNB__TITLE_ENUM(NAME, text) PNB__TITLE_##NAME,
    PNB__TITLE_LIST(PNB__TITLE_ENUM)
#undef PNB__TITLE_ENUM
        PNB__N_TITLE_KINDS
} pnb__title_kind;

/* The cleaned title, "" where it does not describe. */
pnb__title_kind pnb__title_clean(const pnb__title_facts *facts, char out[PNB__TITLE_MAX + 1]);
/* The same from the name of the file. */
pnb__title_kind pnb__title_of_file(const pnb__title_facts *facts, char out[PNB__TITLE_MAX + 1]);
/* Whether it has a function word of another language, or a letter outside of ASCII. */
bool pnb__title_is_foreign(const char *title);
/* A keyword in words: lower case, '_' as blanks. "" for what is no word: a hash, an empty one, a
 * folder that says nothing, the author. */
void pnb__keyword_clean(const char *keyword, const char *creator, char out[PNB__TITLE_MAX + 1]);

#endif
