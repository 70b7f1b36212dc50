/* libxml2, opened at run time; svg_library.h says why.
 *
 * It has state of its own, which it wants made ready before the first reader: that is done here,
 * every time, since doing it again costs and changes nothing. */
#include "io/svg/svg_library.h"

#include <dlfcn.h>

pnb_status pnb__xml_open(pnb__xml_library *lib, pnb_error *err)
{
    static const pnb__library library = {"libxml2.so.2", "libxml2", PNB__SVG_LOST, false};
    pnb_status status = PNB__LIBRARY_OPEN(&lib->handle, &library, PNB__XML_FUNCTIONS, err);
    if (status == PNB_OK)
        lib->xmlInitParser();
    return status;
}

void pnb__xml_close(pnb__xml_library *xml)
{
    if (xml->handle != NULL)
        dlclose(xml->handle);
    *xml = (pnb__xml_library){0};
}
