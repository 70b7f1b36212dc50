/* Opens libraries at run time; library.h says why.
 *
 * dlsym of an opened library also finds the functions of those it needs: librsvg brings cairo and
 * GObject with it. */
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

pnb_status pnb__library_open(void **handle, const pnb__library *library, const char *const *names,
                             void *const *places, size_t n, pnb_error *err)
{
    int scope = library->is_global ? RTLD_GLOBAL : RTLD_LOCAL;
    bool is_whole = (*handle = dlopen(library->file, RTLD_NOW | scope | RTLD_NODELETE)) != NULL;
    for (size_t i = 0; i < n && is_whole; i++) {
        void *symbol = dlsym(*handle, names[i]);
        memcpy(places[i], &symbol, sizeof symbol);
        is_whole = symbol != NULL;
    }
    if (is_whole)
        return PNB_OK;
    const char *why = dlerror(); /* names the file, or the function */
    pnb_status status = pnb__fail(err, PNB_UNSUPPORTED, "%s: %s; apt-get install %s", library->lost,
                                  why != NULL ? why : library->file, library->package);
    if (*handle != NULL)
        dlclose(*handle);
    *handle = NULL;
    return status;
}

pnb_status pnb__library_open_once(void **handle, const pnb__library *library,
                                  const char *const *names, void *const *places, size_t n,
                                  pnb_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    pnb_status status =
        *handle != NULL ? PNB_OK : pnb__library_open(handle, library, names, places, n, err);
    pthread_mutex_unlock(&lock);
    return status;
}
