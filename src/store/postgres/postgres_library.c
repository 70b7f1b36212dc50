/* libpq's functions, looked up once for the whole process.
 *
 * They are what the loader would have written before main, had the program been linked with it, so
 * they stand in a variable as the loader's do: whoever begins a collection asks for them first. */
#include "store/postgres/postgres_library.h"

#include <pthread.h>

pnb__pq_library pnb__pq;

pnb_status pnb__pq_open(pnb_error *err)
{
    static const pnb__library library = {"libpq.so.5", "libpq5", "no collection in Postgres",
                                         false};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pnb__pq_library *lib = &pnb__pq;
    pthread_mutex_lock(&lock);
    pnb_status status = lib->handle != NULL
                            ? PNB_OK
                            : PNB__LIBRARY_OPEN(&lib->handle, &library, PNB__PQ_FUNCTIONS, err);
    pthread_mutex_unlock(&lock);
    return status;
}
