/* The server without its socket: what it serves, who may ask, what was counted. */
#ifndef PNB_SERVER_SERVER_H
#define PNB_SERVER_SERVER_H

#include <signal.h>
#include <stdatomic.h>

#include "encode/encoder.h"
#include "server/metrics.h"
#include "server/searching/gallery.h"
#include "server/sockets/access.h"

typedef enum pnb__server_state {
    PNB__SERVER_LOADING,
    PNB__SERVER_READY,
    PNB__SERVER_DRAINING /* nothing new is taken */
} pnb__server_state;

struct pnb__server;

/* What requests are answered from: a request keeps to one of these from its beginning to its end,
 * while a reload puts another in its place. Filled by whoever opens it, read only afterwards. */
typedef struct pnb__served {
    struct pnb__server *server;
    pnb_encoder *encoder;
    struct pnb__batcher *batcher; /* of the encoder */
    pnb_image_budget *budget;     /* of pictures that are decoded */
    pnb__gallery *galleries;
    _Atomic size_t n_galleries; /* grows while requests look, when one of them makes a collection */
    /* Makes an empty collection and serves it; NULL: requests may not.
     * Errors  EXISTS, ARG (a name that is none), LIMIT (no room for more), IO, NOMEM */
    pnb_status (*create)(struct pnb__served *served, const char *name, const char *modality,
                         pnb_error *err);
    pnb__spread spread[2]; /* of captions and of pictures */
    size_t n_users;        /* requests under way; by the server's lock */
    /* Pages of its files that were gone when they were read, and how many when it was opened: one
     * more, and nothing it says can be believed. NULL: nobody counts them. */
    const atomic_uint *lost;
    unsigned n_lost;
} pnb__served;

/* The server without its socket. */
typedef struct pnb__server {
    pnb__access access;
    pnb__metrics metrics;
    size_t max_body_bytes;
    size_t n_slots; /* requests that are worked on at once */
    char name[128]; /* of the model, as replies have it */
    int64_t created_s;
    const pnb_ctx *ctx;
    atomic_int state; /* pnb__server_state */
    pthread_mutex_t lock;
    pnb__served *now;
    pnb__served nothing; /* what `now` is at first: of a server that is loading */
} pnb__server;

/* `n_routes` are counted apart. Errors  NOMEM. Release with pnb__server_reset, after a failure too.
 */
pnb_status pnb__server_init(pnb__server *s, size_t n_routes, pnb_error *err);
void pnb__server_reset(pnb__server *s);

/* A new one, of which nothing is known yet. */
pnb__served pnb__served_make(pnb__server *s);
/* What the request that begins now is answered from; given back when it ends. */
pnb__served *pnb__server_take(pnb__server *s);
void pnb__server_give(pnb__server *s, pnb__served *served);
/* From now on requests are answered from `next`, which must outlive those that begin. Returns what
 * was served before, still in use until pnb__served_is_idle. */
pnb__served *pnb__server_replace(pnb__server *s, pnb__served *next);
bool pnb__served_is_idle(pnb__served *served);
/* IO where a file of what is served was cut short since it was opened. */
pnb_status pnb__served_check(const pnb__served *served, pnb_error *err);

/* Everything is there: requests are answered from now on. */
void pnb__server_open(pnb__server *s);
/* Nothing new is taken any more. */
void pnb__server_drain(pnb__server *s);

#endif
