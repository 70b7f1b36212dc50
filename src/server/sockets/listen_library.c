/* libmicrohttpd's functions, looked up once for the whole process.
 *
 * They are what the loader would have written before main, had the program been linked with it, so
 * they stand in a variable as the loader's do: whoever begins a server asks for them first. */
#include "server/sockets/listen_library.h"

#include <pthread.h>

pnb__mhd_library pnb__mhd;

static pnb_status opened;
static pnb_error why;

#define PLACE_OF(name) &pnb__mhd.name,

static void open_once(void)
{
    static const pnb__library library = {"libmicrohttpd.so.12", PNB__MHD_PACKAGE,
                                         "HTTP is not spoken"};
    static const char *const names[] = {PNB__MHD_FUNCTIONS(PNB__LIBRARY_NAME)};
    void *const places[] = {PNB__MHD_FUNCTIONS(PLACE_OF)};
    opened = pnb__library_open(&pnb__mhd.handle, &library, names, places, PNB_COUNT(names), &why);
}

pnb_status pnb__mhd_open(pnb_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return opened == PNB_OK ? PNB_OK : pnb__fail(err, opened, "%s", why.text);
}
