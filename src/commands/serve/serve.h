/* A model behind HTTP. */
#ifndef PNB_COMMANDS_SERVE_SERVE_H
#define PNB_COMMANDS_SERVE_SERVE_H

#include "encode/encoder.h"
#include "program/app.h"
#include "program/result_end.h"

typedef struct pnb__serve_opts {
    const char *model, *alias;
    pnb_encoder_opts parts;
    pnb__text_list collections;               /* to search in */
    const char *images, *texts, *calibration; /* sets to search in; or NULL */
    double vague_above;
    const char *host, *api_key_file;
    pnb__text_list origins; /* of other sites */
    int port;
    bool without_key; /* listen elsewhere than on this machine without one */
    size_t max_body_mb, max_queue, max_connections, max_batch;
    double rate, timeout_s, batch_wait_ms;
} pnb__serve_opts;

/* Listens, loads, answers until Ctrl-C or SIGTERM, answers what was asked until then.
 * Errors  ARG (listening for others without a key), those of listening and of opening the model */
pnb_status pnb__serve_run(pnb__app *app, void *opts, pnb__result *r);

#endif
