/* What `penumbra serve` is told. */
#ifndef PNB_COMMANDS_SERVE_SERVE_OPTS_H
#define PNB_COMMANDS_SERVE_SERVE_OPTS_H

#include "encode/encoder.h"
#include "program/app.h"

typedef struct pnb__serve_opts {
    const char *model, *alias;
    pnb_encoder_opts parts;
    pnb__text_list collections;               /* to search in */
    const char *root;                         /* where requests may make collections; or NULL */
    const char *images, *texts, *calibration; /* sets to search in; or NULL */
    const char *approx; /* "int8", ...; NULL: every search looks at every row */
    double recall;
    double vague_above;
    const char *host, *api_key_file;
    pnb__text_list origins; /* of other sites */
    int port;
    bool without_key; /* listen elsewhere than on this machine without one */
    size_t max_body_mb, max_queue, max_connections, max_batch;
    double rate, timeout_s, batch_wait_ms;
} pnb__serve_opts;

#endif
