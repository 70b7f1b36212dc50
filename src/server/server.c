/* What a server is made of, and its states.
 *
 * It begins as one that is loading and serves nothing. What it serves is replaced as a whole, and a
 * request keeps to what was there when it began. */
#include "server/server.h"

#include <math.h>
#include <time.h>

pnb_status pnb__server_init(pnb__server *s, size_t n_routes, pnb_error *err)
{
    *s = (pnb__server){.max_body_bytes = (size_t)32 << 20, .created_s = (int64_t)time(NULL)};
    s->nothing = pnb__served_make(s);
    s->now = &s->nothing;
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->state, PNB__SERVER_LOADING);
    pnb__access_init(&s->access);
    return pnb__metrics_init(&s->metrics, n_routes, err);
}

void pnb__server_reset(pnb__server *s)
{
    pnb__access_reset(&s->access);
    pnb__metrics_reset(&s->metrics);
    pthread_mutex_destroy(&s->lock);
}

pnb__served pnb__served_make(pnb__server *s)
{
    const pnb__spread unknown = {NAN, NAN, NAN};
    return (pnb__served){.server = s, .spread = {unknown, unknown}};
}

pnb__served *pnb__server_take(pnb__server *s)
{
    pthread_mutex_lock(&s->lock);
    pnb__served *now = s->now;
    now->n_users++;
    pthread_mutex_unlock(&s->lock);
    return now;
}

void pnb__server_give(pnb__server *s, pnb__served *served)
{
    pthread_mutex_lock(&s->lock);
    served->n_users--;
    pthread_mutex_unlock(&s->lock);
}

pnb__served *pnb__server_replace(pnb__server *s, pnb__served *next)
{
    pthread_mutex_lock(&s->lock);
    pnb__served *before = s->now;
    s->now = next;
    pthread_mutex_unlock(&s->lock);
    return before;
}

bool pnb__served_is_idle(pnb__served *served)
{
    pthread_mutex_lock(&served->server->lock);
    bool is_idle = served->n_users == 0;
    pthread_mutex_unlock(&served->server->lock);
    return is_idle;
}

pnb_status pnb__served_check(const pnb__served *served, pnb_error *err)
{
    if (served->lost == NULL || atomic_load(served->lost) == served->n_lost)
        return PNB_OK;
    return pnb__fail(
        err, PNB_IO,
        "a file of what is served was cut short while it was in use, the log says which: "
        "put it back, and SIGHUP opens all anew");
}

void pnb__server_open(pnb__server *s)
{
    atomic_store(&s->state, PNB__SERVER_READY);
}

void pnb__server_drain(pnb__server *s)
{
    atomic_store(&s->state, PNB__SERVER_DRAINING);
}
