/* GET /health and what others call it, /v1/models, /props, /slots, /metrics: what the server is and
 * how it does.
 *
 * One answer under every name of /health, because those who ask know one of them only: that is
 * llama.cpp's, the others are Kubernetes' and Qdrant's. */
#include "server/routes.h"

/* ---- whether requests are answered ---- */

static pnb_status run_health(pnb__served *s, const pnb__http_request *q, const json_t *body,
                             pnb__http_reply *r, pnb_error *err)
{
    int state = atomic_load(&s->server->state);
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
        .run = run_health}

HEALTH(health, "/health");
HEALTH(healthz, "/healthz");
HEALTH(livez, "/livez");
HEALTH(readyz, "/readyz");

/* ---- the model, in OpenAI's form ---- what it is stands in "meta", which its clients do not look
 * at: the hash of the weights says to whom stored embeddings belong. */

static pnb_status run_models(pnb__served *s, const pnb__http_request *q, const json_t *body,
                             pnb__http_reply *r, pnb_error *err)
{
    const pnb_encoder *e = s->encoder;
    pnb__buf *b = &r->body;
    (void)q;
    (void)body;
    (void)err;
    pnb__json_put(b,
                  "{\"object\":\"list\",\"data\":[{\"id\":%s,\"object\":\"model\",\"created\":%lld,"
                  "\"owned_by\":\"penumbra\",\"meta\":{\"dim\":%zu,\"weights_sha256\":%s,",
                  s->server->name, (long long)s->server->created_s,
                  pnb__encoder_dim(e, PNB_ENCODE_TEXTS), e->weights_sha256);
    pnb__json_put(b, "\"image_family\":%s,\"text_family\":%s,\"context_length\":%zu}}]}\n",
                  pnb_family_name(pnb__encoder_family(e, PNB_ENCODE_IMAGES)),
                  pnb_family_name(pnb__encoder_family(e, PNB_ENCODE_TEXTS)),
                  e->info->text.context_length);
    return PNB_OK;
}

const pnb__route pnb__route_models = {
    .method = "GET",
    .path = "/v1/models",
    .summary = "The model that is served",
    .answer = "{\"type\":\"object\",\"required\":[\"object\",\"data\"],\"properties\":{\"object\":"
              "{\"type\":\"string\"},\"data\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
              "}}",
    .is_quick = true,
    .run = run_models};

/* ---- as llama.cpp has them ---- what its clients look at, and no path of this machine. A slot is
 * a request that is worked on; inputs of several share a batch, so none has a prompt of its own. */

static pnb_status run_props(pnb__served *s, const pnb__http_request *q, const json_t *body,
                            pnb__http_reply *r, pnb_error *err)
{
    const pnb_encoder *e = s->encoder;
    (void)q;
    (void)body;
    (void)err;
    pnb__json_put(&r->body,
                  "{\"model_alias\":%s,\"total_slots\":%zu,\"build_info\":%s,\"modalities\":"
                  "{\"text\":%i,\"vision\":%i},\"n_ctx\":%zu}\n",
                  s->server->name, s->server->n_slots, pnb_version(), e->tokenizer != NULL,
                  e->preprocess.width > 0, e->info->text.context_length);
    return PNB_OK;
}

const pnb__route pnb__route_props = {
    .method = "GET",
    .path = "/props",
    .summary = "What the server is, as far as llama.cpp's clients ask for it",
    .answer = "{\"type\":\"object\",\"required\":[\"model_alias\",\"total_slots\",\"build_info\","
              "\"modalities\"],\"properties\":{\"total_slots\":{\"type\":\"integer\"}}}",
    .is_quick = true,
    .run = run_props};

static pnb_status run_slots(pnb__served *s, const pnb__http_request *q, const json_t *body,
                            pnb__http_reply *r, pnb_error *err)
{
    size_t n_busy = pnb__metrics_working(&s->server->metrics), n = s->server->n_slots;
    (void)body;
    (void)err;
    if (q->wants_slot && n_busy >= n) {
        pnb__http_fail(r, 503, "no slot available: all %zu are processing", n);
        r->retry_after_s = 1;
        return PNB_OK;
    }
    pnb__buf_putc(&r->body, '[');
    for (size_t i = 0; i < n; i++) {
        pnb__buf_puts(&r->body, i > 0 ? "," : "");
        pnb__json_put(&r->body, "{\"id\":%zu,\"is_processing\":%i}", i, i < n_busy);
    }
    pnb__buf_puts(&r->body, "]\n");
    return PNB_OK;
}

const pnb__route pnb__route_slots = {
    .method = "GET",
    .path = "/slots",
    .summary = "How many requests are worked on; with ?fail_on_no_slot=1 503 where no more can be",
    .answer = "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"id\","
              "\"is_processing\"]}}",
    .is_quick = true,
    .run = run_slots};

/* ---- every count ---- behind a key like any other route: how often what is asked is nobody's
 * business. */

static pnb_status run_metrics(pnb__served *s, const pnb__http_request *q, const json_t *body,
                              pnb__http_reply *r, pnb_error *err)
{
    const char **names = NULL;
    (void)q;
    (void)body;
    pnb_status status = PNB_ALLOC(names, pnb__n_routes, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < pnb__n_routes; i++)
        names[i] = pnb__routes[i]->path;
    pnb__metrics_write(&s->server->metrics, names, s->server->name, &r->body);
    pnb__free(names);
    r->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return PNB_OK;
}

const pnb__route pnb__route_metrics = {.method = "GET",
                                       .path = "/metrics",
                                       .summary = "Counts and times, as Prometheus reads them",
                                       .is_quick = true,
                                       .run = run_metrics};
