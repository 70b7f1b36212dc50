/* From a request to its reply: admitted by all that is known before its body, then answered.
 *
 * Nothing here knows of sockets, so tests ask as the network does. Refusals come in the order in
 * which they cost least and tell least: site, key, route, method, rate, state, size, coding. */
#include "server/answer.h"

#include <string.h>
#include <strings.h>

/* ---- admitting ---- */

static size_t place_of(const pnb__route *route)
{
    size_t i = 0;
    while (i < pnb__n_routes && pnb__routes[i] != route)
        i++;
    return i;
}

/* The route of the path; *other is one of the same path with another method. */
static const pnb__route *find_route(const pnb__http_request *q, const pnb__route **other)
{
    const char *method = strcmp(q->method, "HEAD") == 0 ? "GET" : q->method;
    *other = NULL;
    for (size_t i = 0; i < pnb__n_routes; i++) {
        if (!pnb__route_takes(pnb__routes[i], q->path))
            continue;
        if (strcmp(pnb__routes[i]->method, method) == 0)
            return pnb__routes[i];
        *other = pnb__routes[i];
    }
    return NULL;
}

static void count_refusal(pnb__server *s, uint64_t *reason)
{
    if (reason != NULL)
        pnb__metrics_add(&s->metrics, reason, 1);
}

/* Where one request ends and the next one begins must be as certain as for whoever stands between.
 */
static bool refuse_framing(const pnb__http_request *q, pnb__http_reply *r)
{
    if (!q->has_two_lengths)
        return false;
    pnb__http_fail(r, 400, "the request has two Content-Length headers that differ");
    r->closes = true;
    return true;
}

static bool refuse_coding(const pnb__http_request *q, pnb__http_reply *r)
{
    if (q->content_encoding == NULL || strcasecmp(q->content_encoding, "identity") == 0)
        return false;
    pnb__http_fail(r, 415, "Content-Encoding '%.40s': bodies are taken as they are, without one",
                   q->content_encoding);
    return true;
}

static bool refuse_stranger(pnb__server *s, const pnb__http_request *q, const pnb__route *route,
                            pnb__http_reply *r)
{
    if (!pnb__access_is_same_site(&s->access, q, &r->origin)) {
        count_refusal(s, &s->metrics.n_refused_site);
        pnb__http_fail(r, 403,
                       "pages of other sites may not ask here: host '%.100s', origin '%.100s'",
                       q->host != NULL ? q->host : "", q->origin != NULL ? q->origin : "");
        return true;
    }
    bool is_open = route != NULL && route->is_open;
    if (is_open || pnb__access_has_key(&s->access, q->authorization))
        return false;
    count_refusal(s, &s->metrics.n_refused_key);
    pnb__http_fail(r, 401, "Invalid API Key");
    return true;
}

static bool refuse_route(const pnb__http_request *q, const pnb__route *route,
                         const pnb__route *other, pnb__http_reply *r)
{
    if (route != NULL)
        return false;
    if (other == NULL) {
        pnb__http_fail(r, 404, "there is nothing at %.200s; /openapi.json lists what there is",
                       q->path);
        return true;
    }
    r->allow = other->method;
    pnb__http_fail(r, 405, "%s wants %s, not %.20s", other->path, other->method, q->method);
    return true;
}

static bool refuse_now(pnb__server *s, const pnb__http_request *q, const pnb__route *route,
                       size_t n_announced, pnb__http_reply *r)
{
    int state = atomic_load(&s->state), retry_after_s = 0;
    if (route->is_open)
        return false;
    if (!pnb__access_take(&s->access, q->peer, pnb__now_s(), &retry_after_s)) {
        count_refusal(s, &s->metrics.n_refused_rate);
        pnb__http_fail(r, 429, "more than %g requests a second from one address", s->access.rate);
        r->retry_after_s = retry_after_s;
        return true;
    }
    if (state != PNB__SERVER_READY) {
        pnb__http_fail(r, 503, state == PNB__SERVER_LOADING ? "Loading model" : "Shutting down");
        r->retry_after_s = 1;
        return true;
    }
    if (n_announced > s->max_body_bytes) {
        pnb__http_fail(r, 413, "the body has %zu bytes, the limit is %zu", n_announced,
                       s->max_body_bytes);
        return true;
    }
    return false;
}

/* A browser asks whether a page of an allowed site may ask. */
static bool is_preflight(const pnb__http_request *q, const pnb__route *other,
                         const pnb__http_reply *r)
{
    return other != NULL && r->origin != NULL && strcmp(q->method, "OPTIONS") == 0;
}

const pnb__route *pnb__server_admit(pnb__server *s, const pnb__http_request *q, size_t n_announced,
                                    pnb__http_reply *r)
{
    const pnb__route *other, *route = find_route(q, &other);
    if (refuse_framing(q, r)) {
        pnb__metrics_answered(&s->metrics, place_of(route), r->status, 0);
        return NULL;
    }
    if (pnb__access_is_same_site(&s->access, q, &r->origin) && is_preflight(q, other, r)) {
        r->status = 204;
        return NULL;
    }
    if (!refuse_stranger(s, q, route, r) && !refuse_route(q, route, other, r) &&
        !refuse_now(s, q, route, n_announced, r) && !refuse_coding(q, r))
        return route;
    pnb__metrics_answered(&s->metrics, place_of(route), r->status, 0);
    return NULL;
}

/* ---- answering ---- */

static pnb_status run_route(pnb__server *s, const pnb__route *route, const pnb__http_request *q,
                            const json_t *body, pnb__http_reply *r, pnb_error *err)
{
    pnb__served *now = pnb__server_take(s);
    pnb_status status = route->run(now, q, body, r, err);
    if (status == PNB_OK && !route->is_quick) /* those read no file */
        status = pnb__served_check(now, err);
    pnb__server_give(s, now);
    return status;
}

void pnb__server_run(pnb__server *s, const pnb__route *route, const pnb__http_request *q,
                     pnb__http_reply *r)
{
    double begin = pnb__now_s();
    json_t *body = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = PNB_OK;
    if (route->n_fields > 0)
        status = pnb__fields_read(&body, route->fields, route->n_fields, q->body, q->n_body, &err);
    if (status == PNB_OK)
        status = run_route(s, route, q, body, r, &err);
    json_decref(body);
    if (status != PNB_OK)
        pnb__http_fail_with(r, &err);
    else if (r->status == 0)
        pnb__http_done(r);
    pnb__metrics_answered(&s->metrics, place_of(route), r->status, pnb__now_s() - begin);
}

void pnb__server_answer(pnb__server *s, const pnb__http_request *q, pnb__http_reply *r)
{
    const pnb__route *route = pnb__server_admit(s, q, q->n_body, r);
    if (route != NULL)
        pnb__server_run(s, route, q, r);
}
