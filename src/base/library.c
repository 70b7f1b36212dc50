/* Opens libraries at run time; library.h says why.
 *
 * dlsym of an opened library also finds the functions of those it needs: librsvg brings cairo and
 * GObject with it. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

pnb_status pnb__library_open(void **handle, const pnb__library *library, const char *const *names,
                             void *const *places, size_t n, pnb_error *err)
{
    *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *missing = *handle == NULL ? library->file : NULL;
    for (size_t i = 0; i < n && missing == NULL; i++) {
        void *symbol = dlsym(*handle, names[i]);
        memcpy(places[i], &symbol, sizeof symbol);
        if (symbol == NULL)
            missing = names[i];
    }
    if (missing == NULL)
        return PNB_OK;
    if (*handle != NULL)
        dlclose(*handle);
    *handle = NULL;
    return pnb__fail(err, PNB_UNSUPPORTED, "%s: %s was not found: apt-get install %s",
                     library->lost, missing, library->package);
}
