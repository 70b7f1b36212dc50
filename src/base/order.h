/* What is sorted with its place: values, labels and names of rows, equal ones in the order they
 * came in, and single numbers and texts. All of it for qsort; searching a sorted list is here too.
 */
#ifndef PNB_BASE_ORDER_H
#define PNB_BASE_ORDER_H

#include "base/base.h"

/* No NaN: it is neither before nor behind a number. */
int pnb__compare_doubles(const void *a, const void *b);
int pnb__compare_int64(const void *a, const void *b);
int pnb__compare_sizes(const void *a, const void *b); /* size_t and uint64_t */
/* Sorts n of them; each stands once then, in the places that come back. */
size_t pnb__sort_distinct(uint64_t *x, size_t n);
int pnb__compare_texts(const void *a, const void *b); /* char *, by their bytes */

typedef struct pnb__valued {
    double value;
    size_t place;
} pnb__valued;
int pnb__by_value(const void *a, const void *b);      /* ascending, then by place */
int pnb__by_value_down(const void *a, const void *b); /* descending, then by place */

typedef struct pnb__labelled {
    int64_t label;
    size_t place;
} pnb__labelled;
int pnb__by_label(const void *a, const void *b);
/* The n labels with their places, sorted; free with pnb__free. */
pnb_status pnb__labels_sort(pnb__labelled **out, const int64_t *label, size_t n, pnb_error *err);
/* Where the label begins among n sorted ones, or would. */
size_t pnb__labels_find(const pnb__labelled *sorted, size_t n, int64_t label);

typedef struct pnb__named {
    const char *name; /* borrowed */
    size_t place;
} pnb__named;
int pnb__by_name(const void *a, const void *b);
/* The lowest place of that name among n sorted ones, SIZE_MAX when there is none. */
size_t pnb__names_find(const pnb__named *sorted, size_t n, const char *name);

#endif
