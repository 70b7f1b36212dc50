/* What a server is made of, and its states.
 *
 * It begins as one that is loading; who opens it has filled in what it serves, and nothing of that
 * changes afterwards. */
#include "server/server.h"

#include <math.h>
#include <time.h>

pnb_status pnb__server_init(pnb__server *s, size_t n_routes, pnb_error *err)
{
    *s = (pnb__server){.max_body_bytes = (size_t)32 << 20,
                       .created_s = (int64_t)time(NULL),
                       .vague_above = {NAN, NAN}};
    atomic_init(&s->state, PNB__SERVER_LOADING);
    pnb__access_init(&s->access);
    return pnb__metrics_init(&s->metrics, n_routes, err);
}

void pnb__server_reset(pnb__server *s)
{
    pnb__access_reset(&s->access);
    pnb__metrics_reset(&s->metrics);
}

void pnb__server_open(pnb__server *s)
{
    atomic_store(&s->state, PNB__SERVER_READY);
}

void pnb__server_drain(pnb__server *s)
{
    atomic_store(&s->state, PNB__SERVER_DRAINING);
}
