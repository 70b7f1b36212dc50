/* libmicrohttpd's functions, looked up once for the whole process.
 *
 * They are what the loader would have written before main, had the program been linked with it, so
 * they stand in a variable as the loader's do: whoever begins a server asks for them first. */
#include "server/sockets/listen_library.h"

pnb__mhd_library pnb__mhd;

pnb_status pnb__mhd_open(pnb_error *err)
{
    static const pnb__library library = {"libmicrohttpd.so.12", PNB__MHD_PACKAGE,
                                         "HTTP is not spoken", false};
    pnb__mhd_library *lib = &pnb__mhd;
    return PNB__LIBRARY_OPEN_ONCE(&lib->handle, &library, PNB__MHD_FUNCTIONS, err);
}
