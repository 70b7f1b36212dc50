/* GET /metrics: every count, as Prometheus reads it.
 *
 * Behind a key like any other route: what is asked how often is nobody's business. */
#include "server/routes.h"

static pnb_status run(pnb__server *s, const pnb__http_request *q, const json_t *body,
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
    pnb__metrics_write(&s->metrics, names, s->name, &r->body);
    pnb__free(names);
    r->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return PNB_OK;
}

const pnb__route pnb__route_metrics = {.method = "GET",
                                       .path = "/metrics",
                                       .summary = "Counts and times, as Prometheus reads them",
                                       .is_quick = true,
                                       .run = run};
