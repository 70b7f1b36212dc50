/* Names of classes, templates, and the prompts they make. */
#ifndef PNB_COMMANDS_CLASSIFY_CLASS_NAMES_H
#define PNB_COMMANDS_CLASSIFY_CLASS_NAMES_H

#include <stddef.h>

#include "base/base.h"

/* A growing list of texts; all zero is empty. */
typedef struct pnb__texts {
    char **items;
    size_t n;
} pnb__texts;
pnb_status pnb__texts_add(pnb__texts *w, const char *text, size_t n, pnb_error *err);
void pnb__texts_reset(pnb__texts *w);

/* Names in order, for finding one among many; '_' and ' ' count as the same. */
typedef struct pnb__name_index {
    const char **names; /* sorted; borrowed from the list */
    size_t *place;      /* where each stands in the list, the same name in order of places */
    size_t n;
} pnb__name_index;
pnb_status pnb__name_index_make(pnb__name_index *out, const pnb__texts *words, pnb_error *err);
void pnb__name_index_reset(pnb__name_index *index);
/* First place of a name, SIZE_MAX when it is not there; *is_shared: it is there more than once. */
size_t pnb__name_find(const pnb__name_index *index, const char *name, bool *is_shared);

enum { PNB__N_OPENAI_TEMPLATES = 80, PNB__N_SIMPLE_TEMPLATES = 7 };
extern const char *const pnb__openai_templates[PNB__N_OPENAI_TEMPLATES];
extern const char *const pnb__simple_templates[PNB__N_SIMPLE_TEMPLATES];

/* Reads class names: `spec` is a text file (one a line), a .json list, a .json object of lists by
 * the name of the data set (`dataset`, may be NULL), or names with commas between.
 * Errors  FORMAT (an empty name, not UTF-8, none at all), NOT_FOUND, and those of reading */
pnb_status pnb__classnames_read(pnb__texts *out, const char *spec, const char *dataset,
                                pnb_error *err);
/* Two places with the same name; false when every name is there once. */
bool pnb__classnames_repeated(const pnb__name_index *names, size_t *first, size_t *second);

/* Prompts offset[c] .. offset[c + 1] - 1 are class c's. */
typedef struct pnb__class_prompts {
    pnb__texts templates; /* prompt j of every class is template j; empty with prompts of its own */
    pnb__texts prompts;
    size_t *offset; /* [n_classes + 1] */
    size_t n_classes;
} pnb__class_prompts;

/* Templates hold the class's name where "{}", "{c}", "{0}", "{class}", "{classname}" or "{label}"
 * stands. `spec` is openai, simple, none (the name alone), a text file (one template a line), a
 * .json list of templates, or a .json object: of lists of prompts by class name, which may hold
 * placeholders but need not, or of either of the two by the name of the data set (`dataset`, may be
 * NULL).
 * Errors  FORMAT (no template, a template without placeholder or with another one: names file and
 *         line; a class without prompts), NOT_FOUND (no such file; a class or data set the object
 *         does not have), LIMIT, NOMEM */
pnb_status pnb__class_prompts_make(pnb__class_prompts *out, const pnb__texts *names,
                                   const char *spec, const char *dataset, pnb_error *err);
void pnb__class_prompts_reset(pnb__class_prompts *p);

/* `text` with every placeholder replaced by the name, its '_' as spaces; false when there was none.
 */
bool pnb__fill_template(pnb__buf *out, const char *text, const char *name);

#endif
