/* Libraries that are opened when something first needs them and not at every start: one that few
 * commands want may bring twenty others, whose loading is most of what a short command takes. */
#ifndef PNB_BASE_LIBRARY_H
#define PNB_BASE_LIBRARY_H

#include "base/base.h"

typedef struct pnb__library {
    const char *file;    /* as the loader knows it: "libpq.so.5" */
    const char *package; /* Debian's, and what else helps, for the message */
    const char *lost;    /* what does not work without it: "SVG is not read" */
    bool is_global;      /* its plugins ask the process for its symbols */
} pnb__library;

/* A field for each function of an X-list, of the type that its header declares. */
#define PNB__LIBRARY_FIELD(name) __typeof__(&name) name;

/* pnb__library_open for these fields of *lib, a variable of the caller. */
#define PNB__LIBRARY_OPEN(handle, library, FUNCTIONS, err)                                         \
    pnb__library_open(handle, library, (const char *const[]){FUNCTIONS(PNB__LIBRARY_NAME)},        \
                      (void *const[]){FUNCTIONS(PNB__LIBRARY_PLACE)},                              \
                      PNB_COUNT(((const char *const[]){FUNCTIONS(PNB__LIBRARY_NAME)})), err)
/* The same for a library whose functions stand in a variable of the process: opened by whoever asks
 * first; a failure is not remembered. */
#define PNB__LIBRARY_OPEN_ONCE(handle, library, FUNCTIONS, err)                                    \
    pnb__library_open_once(handle, library, (const char *const[]){FUNCTIONS(PNB__LIBRARY_NAME)},   \
                           (void *const[]){FUNCTIONS(PNB__LIBRARY_PLACE)},                         \
                           PNB_COUNT(((const char *const[]){FUNCTIONS(PNB__LIBRARY_NAME)})), err)
#define PNB__LIBRARY_NAME(name) #name,
#define PNB__LIBRARY_PLACE(name) &lib->name,

/* Opens it and fills places[i] with the address of names[i]. A library stays loaded; opening it
 * again only counts, and dlclose(*handle) counts back.
 * Errors  UNSUPPORTED: what the loader says and what to install; *handle is NULL */
pnb_status pnb__library_open(void **handle, const pnb__library *library, const char *const *names,
                             void *const *places, size_t n, pnb_error *err);
/* Nothing where *handle is not NULL; under one lock of the process. Errors as above. */
pnb_status pnb__library_open_once(void **handle, const pnb__library *library,
                                  const char *const *names, void *const *places, size_t n,
                                  pnb_error *err);

#endif
