/* From options to a server that listens: keys, socket, model, and the end.
 *
 * It listens before the model is there, so that whoever waits for it can ask /health. The signal
 * that ends it is an ordinary end: what was asked is answered and the exit status is 0. SIGHUP
 * opens all of what is served anew beside the old, and no request notices. */
#include "commands/serve/serve.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands/serve/generation.h"
#include "server/routes.h"
#include "server/sockets/address.h"
#include "server/sockets/listen.h"

/* A worker waits while its inputs are encoded, so a full batch takes as many of them, and the next
 * one is prepared meanwhile. */
enum { MIN_WORKERS = 16, POLL_MS = 100 };

/* Elsewhere than on this machine everybody could ask, so a key is wanted there. */
static pnb_status check_reach(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s)
{
    pnb__address at;
    pnb_status status = pnb__address_of(&at, opts->host, opts->port, &app->err);
    if (status != PNB_OK)
        return status;
    bool is_local = pnb__address_is_local(&at);
    s->access.local_names_only = is_local && s->access.n_keys == 0;
    if (is_local || s->access.n_keys > 0 || opts->without_key)
        return PNB_OK;
    return pnb__usage(app,
                      "--host %s lets other machines ask: name a file of keys by --api-key-file, "
                      "or say --without-key",
                      opts->host);
}

static pnb_status settle(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s)
{
    const char *base = pnb__path_base(opts->model);
    pnb_status status = PNB_OK;
    s->max_body_bytes = opts->max_body_mb << 20;
    s->ctx = app->ctx;
    s->access.rate = opts->rate;
    s->access.seed = (uint64_t)getpid() ^ (uint64_t)time(NULL) << 20;
    s->access.origins = opts->origins.items;
    s->access.n_origins = opts->origins.n;
    snprintf(s->name, sizeof s->name, "%s", opts->alias != NULL ? opts->alias : base);
    if (opts->api_key_file != NULL)
        status = pnb__access_read_keys(&s->access, opts->api_key_file, &app->err);
    return status == PNB_OK ? check_reach(app, opts, s) : status;
}

/* At once, for whoever started it to read: a port of 0 is known only now. */
static pnb_status announce(pnb__app *app, const pnb__serve_opts *opts, int port)
{
    bool is_v6 = strchr(opts->host, ':') != NULL;
    char url[300];
    snprintf(url, sizeof url, "http://%s%s%s:%d", is_v6 ? "[" : "", opts->host, is_v6 ? "]" : "",
             port);
    if (app->common.json)
        fprintf(app->out, "{\"url\":\"%s\",\"host\":\"%s\",\"port\":%d}\n", url, opts->host, port);
    else
        fprintf(app->out, "listening on %s\n", url);
    return fflush(app->out) == 0 ? PNB_OK
                                 : pnb__fail_errno(&app->err, "cannot write", "standard output");
}

/* ---- reloading ---- */

/* What is served, and what was and is still in use by requests that began before. */
typedef struct served_list {
    pnb__generation *now, *before[8];
    size_t n_before;
} served_list;

static void free_idle(served_list *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_before; i++)
        if (pnb__served_is_idle(pnb__generation_served(l->before[i])))
            pnb__generation_free(l->before[i]);
        else
            l->before[n++] = l->before[i];
    l->n_before = n;
}

/* Opened beside the old one, which goes on where that fails; what that one is building the new one
 * builds too, so it rests meanwhile. */
static void reload(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s, served_list *l)
{
    pnb__generation *next = NULL;
    free_idle(l);
    if (l->n_before == PNB_COUNT(l->before)) {
        pnb__warn(app, "not reloaded: requests are under way that began %zu reloads ago",
                  l->n_before);
        return;
    }
    app->first_weights[0] = app->first_precision[0] = '\0'; /* the model may be another one */
    pnb__generation_rest(l->now);
    if (pnb__generation_open(&next, app, opts, s) != PNB_OK) {
        pnb__warn(app, "not reloaded, what was served goes on: %s", app->err.text);
        pnb_error_reset(&app->err);
        if (pnb__generation_grow(l->now) != PNB_OK)
            pnb__warn(app, "no indexes are built any more until it is reloaded");
        pnb_error_reset(&app->err);
        pnb__metrics_add(&s->metrics, &s->metrics.n_reloads_failed, 1);
        return;
    }
    pnb__server_replace(s, pnb__generation_served(next));
    l->before[l->n_before++] = l->now;
    l->now = next;
    pnb__metrics_add(&s->metrics, &s->metrics.n_reloads, 1);
    pnb__say(app, "reloaded");
}

static void wait_for_end(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s, served_list *l)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    while (!pnb__is_interrupted(app)) {
        if (pnb__take_hangup(app))
            reload(app, opts, s, l);
        free_idle(l);
        nanosleep(&pause, NULL); /* which the signal cuts short */
    }
}

static pnb_status load_and_serve(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s,
                                 served_list *l)
{
    pnb_status status = pnb__generation_open(&l->now, app, opts, s);
    if (status != PNB_OK)
        return status;
    pnb__server_replace(s, pnb__generation_served(l->now));
    pnb__server_open(s);
    pnb__say(app, "serving %s", s->name);
    wait_for_end(app, opts, s, l);
    pnb__say(app, "answering what was asked; a second signal ends it at once");
    pnb__server_drain(s);
    return PNB_OK;
}

static void free_all(served_list *l)
{
    for (size_t i = 0; i < l->n_before; i++)
        pnb__generation_free(l->before[i]);
    pnb__generation_free(l->now);
}

pnb_status pnb__serve_run(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__serve_opts *opts = args;
    const pnb__listen_opts where = {.host = opts->host,
                                    .port = opts->port,
                                    .n_workers = PNB_MAX(2 * opts->max_batch, (size_t)MIN_WORKERS),
                                    .max_queue = opts->max_queue,
                                    .max_connections = opts->max_connections,
                                    .timeout_s = opts->timeout_s};
    pnb__listener *listener = NULL;
    served_list list = {0};
    pnb__server s;
    int port = 0;
    pnb_status status;
    (void)r;
    pnb__expect_hangup(app);
    PNB_TRY(pnb__server_init(&s, pnb__n_routes, &app->err));
    PNB_TRY(settle(app, opts, &s));
    s.n_slots = where.n_workers;
    PNB_TRY(pnb__listen(&listener, &s, &where, &port, &app->err));
    PNB_TRY(announce(app, opts, port));
    status = load_and_serve(app, opts, &s, &list);
done:
    pnb__listen_end(listener, opts->timeout_s);
    free_all(&list);
    pnb__server_reset(&s);
    return status;
}
