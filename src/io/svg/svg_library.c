/* libxml2, opened at run time; svg_library.h says why.
 *
 * It has state of its own, which it wants made ready before the first reader: that is done here,
 * every time, since doing it again costs and changes nothing. */
#include "io/svg/svg_library.h"

#include <dlfcn.h>

#define PLACE_OF(name) &xml->name,

pnb_status pnb__xml_open(pnb__xml_library *xml, pnb_error *err)
{
    static const pnb__library library = {"libxml2.so.2", "libxml2", PNB__SVG_LOST};
    static const char *const names[] = {PNB__XML_FUNCTIONS(PNB__LIBRARY_NAME)};
    void *const places[] = {PNB__XML_FUNCTIONS(PLACE_OF)};
    pnb_status status =
        pnb__library_open(&xml->handle, &library, names, places, PNB_COUNT(names), err);
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
