/* Opens libraries at run time; svg_library.h says why.
 *
 * dlsym of an opened library also finds the functions of those it needs, so librsvg brings cairo
 * and GObject with it. */
#include "io/svg/svg_library.h"

#include <dlfcn.h>
#include <string.h>

pnb_status pnb__library_open(void **handle, const char *file, const char *package,
                             const char *const *names, void *const *places, size_t n,
                             pnb_error *err)
{
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *missing = *handle == NULL ? file : NULL;
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
    return pnb__fail(err, PNB_UNSUPPORTED, "SVG is not read: %s was not found: apt-get install %s",
                     missing, package);
}

#define NAME_OF(name) #name,
#define PLACE_OF(name) &xml->name,

pnb_status pnb__xml_open(pnb__xml_library *xml, pnb_error *err)
{
    static const char *const names[] = {PNB__XML_FUNCTIONS(NAME_OF)};
    void *const places[] = {PNB__XML_FUNCTIONS(PLACE_OF)};
    pnb_status status = pnb__library_open(&xml->handle, "libxml2.so.2", "libxml2", names, places,
                                          PNB_COUNT(names), err);
    if (status == PNB_OK)
        xml->xmlInitParser();
    return status;
}

void pnb__xml_close(pnb__xml_library *xml)
{
    if (xml->handle != NULL)
        dlclose(xml->handle);
    *xml = (pnb__xml_library){0};
}
