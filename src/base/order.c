/* Orders for qsort, one a type of key.
 *
 * A sort that is asked for again gives the same list on every machine, although qsort is not
 * stable: equal keys are told apart by the place they came from. */
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "sizes and 64-bit numbers sort alike");

#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

int pnb__compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return ORDER(x, y);
}

int pnb__compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return ORDER(x, y);
}

int pnb__compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return ORDER(x, y);
}

size_t pnb__sort_distinct(uint64_t *x, size_t n)
{
    size_t n_distinct = 0;
    qsort(x, n, sizeof *x, pnb__compare_sizes);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || x[i] != x[i - 1])
            x[n_distinct++] = x[i];
    return n_distinct;
}

int pnb__compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int pnb__by_value(const void *a, const void *b)
{
    const pnb__valued *x = a, *y = b;
    int order = ORDER(x->value, y->value);
    return order != 0 ? order : ORDER(x->place, y->place);
}

int pnb__by_value_down(const void *a, const void *b)
{
    const pnb__valued *x = a, *y = b;
    int order = ORDER(y->value, x->value);
    return order != 0 ? order : ORDER(x->place, y->place);
}

int pnb__by_label(const void *a, const void *b)
{
    const pnb__labelled *x = a, *y = b;
    int order = ORDER(x->label, y->label);
    return order != 0 ? order : ORDER(x->place, y->place);
}

pnb_status pnb__labels_sort(pnb__labelled **out, const int64_t *label, size_t n, pnb_error *err)
{
    if (PNB_ALLOC(*out, n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++)
        (*out)[i] = (pnb__labelled){label[i], i};
    qsort(*out, n, sizeof **out, pnb__by_label);
    return PNB_OK;
}

size_t pnb__labels_find(const pnb__labelled *sorted, size_t n, int64_t label)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int pnb__by_name(const void *a, const void *b)
{
    const pnb__named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : ORDER(x->place, y->place);
}

size_t pnb__names_find(const pnb__named *sorted, size_t n, const char *name)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(sorted[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && strcmp(sorted[low].name, name) == 0 ? sorted[low].place : SIZE_MAX;
}
