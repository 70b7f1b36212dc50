/* libpq's functions, looked up once for the whole process.
 *
 * They are what the loader would have written before main, had the program been linked with it, so
 * they stand in a variable as the loader's do: whoever begins a collection asks for them first. */
#include "store/postgres/postgres_library.h"

#include <pthread.h>

pnb__pq_library pnb__pq;

static pnb_status opened;
static pnb_error why;

#define PLACE_OF(name) &pnb__pq.name,

static void open_once(void)
{
    static const pnb__library library = {"libpq.so.5", "libpq5", "no collection in Postgres"};
    static const char *const names[] = {PNB__PQ_FUNCTIONS(PNB__LIBRARY_NAME)};
    void *const places[] = {PNB__PQ_FUNCTIONS(PLACE_OF)};
    opened = pnb__library_open(&pnb__pq.handle, &library, names, places, PNB_COUNT(names), &why);
}

pnb_status pnb__pq_open(pnb_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return opened == PNB_OK ? PNB_OK : pnb__fail(err, opened, "%s", why.text);
}
