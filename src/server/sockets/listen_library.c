/* libmicrohttpd's functions, looked up once for the whole process.
 *
 * They are what the loader would have written before main, had the program been linked with it, so
 * they stand in a variable as the loader's do: whoever begins a server asks for them first. */
#include "server/sockets/listen_library.h"

#include <pthread.h>

pnb__mhd_library pnb__mhd;

pnb_status pnb__mhd_open(pnb_error *err)
{
    static const pnb__library library = {"libmicrohttpd.so.12", PNB__MHD_PACKAGE,
                                         "HTTP is not spoken", false};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pnb__mhd_library *lib = &pnb__mhd;
    pthread_mutex_lock(&lock);
    pnb_status status = lib->handle != NULL
                            ? PNB_OK
                            : PNB__LIBRARY_OPEN(&lib->handle, &library, PNB__MHD_FUNCTIONS, err);
    pthread_mutex_unlock(&lock);
    return status;
}
