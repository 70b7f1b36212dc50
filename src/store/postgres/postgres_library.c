/* libpq's functions, looked up once for the whole process.
 *
 * They are what the loader would have written before main, had the program been linked with it, so
 * they stand in a variable as the loader's do: whoever begins a collection asks for them first. */
#include "store/postgres/postgres_library.h"

pnb__pq_library pnb__pq;

pnb_status pnb__pq_open(pnb_error *err)
{
    static const pnb__library library = {"libpq.so.5", "libpq5", "no collection in Postgres",
                                         false};
    pnb__pq_library *lib = &pnb__pq;
    return PNB__LIBRARY_OPEN_ONCE(&lib->handle, &library, PNB__PQ_FUNCTIONS, err);
}
