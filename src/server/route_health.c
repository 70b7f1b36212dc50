/* GET /health and what others call it: whether requests are answered.
 *
 * One answer under every name, because those who ask know one of them only: /health is llama.cpp's,
 * the others are Kubernetes' and Qdrant's. */
#include "server/routes.h"

static pnb_status run(pnb__server *s, const pnb__http_request *q, const json_t *body,
                      pnb__http_reply *r, pnb_error *err)
{
    int state = atomic_load(&s->state);
    (void)q;
    (void)body;
    (void)err;
    if (state == PNB__SERVER_READY) {
        pnb__buf_puts(&r->body, "{\"status\":\"ok\"}\n");
        return PNB_OK;
    }
    pnb__http_fail(r, 503, state == PNB__SERVER_LOADING ? "Loading model" : "Shutting down");
    r->retry_after_s = 1;
    return PNB_OK;
}

#define HEALTH(name, at)                                                                           \
    const pnb__route pnb__route_##name = {                                                         \
        .method = "GET",                                                                           \
        .path = at,                                                                                \
        .summary = "Whether requests are answered: 503 while the model is loading or the server "  \
                   "is shutting down",                                                             \
        .answer = "{\"type\":\"object\",\"required\":[\"status\"],\"properties\":{\"status\":"     \
                  "{\"type\":\"string\"}}}",                                                       \
        .is_open = true,                                                                           \
        .is_quick = true,                                                                          \
        .run = run}

HEALTH(health, "/health");
HEALTH(healthz, "/healthz");
HEALTH(livez, "/livez");
HEALTH(readyz, "/readyz");
