/* The server without its socket: what it serves, who may ask, what was counted. */
#ifndef PNB_SERVER_SERVER_H
#define PNB_SERVER_SERVER_H

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

/* What is served. Filled while `state` is LOADING, read only afterwards. */
typedef struct pnb__server {
    pnb__access access;
    pnb__metrics metrics;
    size_t max_body_bytes;
    char name[128]; /* of the model, as replies have it */
    int64_t created_s;
    const pnb_ctx *ctx;
    pnb_encoder *encoder;
    struct pnb__batcher *batcher; /* of the encoder */
    pnb_image_budget *budget;     /* of pictures that are decoded */
    const pnb__gallery *galleries;
    size_t n_galleries;
    double
        vague_above[2]; /* uncertainty of a caption and of a picture as a query; NaN: not known */
    atomic_int state;   /* pnb__server_state */
} pnb__server;

/* `n_routes` are counted apart. Errors  NOMEM. Release with pnb__server_reset, after a failure too.
 */
pnb_status pnb__server_init(pnb__server *s, size_t n_routes, pnb_error *err);
void pnb__server_reset(pnb__server *s);

/* Everything is there: requests are answered from now on. */
void pnb__server_open(pnb__server *s);
/* Nothing new is taken any more. */
void pnb__server_drain(pnb__server *s);

#endif
