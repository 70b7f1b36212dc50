/* Libraries that are opened when something first needs them and not at every start: one that few
 * commands want may bring twenty others, whose loading is most of what a short command takes. */
#ifndef PNB_BASE_LIBRARY_H
#define PNB_BASE_LIBRARY_H

#include "base/base.h"

/* Fields, names and places of functions that an X-list names: a field has the function's type. */
#define PNB__LIBRARY_FIELD(name) __typeof__(&name) name;
#define PNB__LIBRARY_NAME(name) #name,

typedef struct pnb__library {
    const char *file;    /* as the loader knows it: "libpq.so.5" */
    const char *package; /* Debian's, for the message */
    const char *lost;    /* what does not work without it: "SVG is not read" */
} pnb__library;

/* Opens it and fills places[i] with the address of names[i]. A library stays loaded; opening it
 * again only counts, and dlclose(*handle) counts back.  Errors  UNSUPPORTED: what to install */
pnb_status pnb__library_open(void **handle, const pnb__library *library, const char *const *names,
                             void *const *places, size_t n, pnb_error *err);

#endif
