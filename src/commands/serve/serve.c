/* From options to a server that listens: keys, socket, model, and the end.
 *
 * It listens before the model is there, so that whoever waits for it can ask /health. The signal
 * that ends it is an ordinary end: what was asked is answered and the exit status is 0. */
#include "commands/serve/serve.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands/common/encode_use.h"
#include "commands/serve/set_gallery.h"
#include "commands/serve/store_gallery.h"
#include "server/batching/batcher.h"
#include "server/batching/encoding.h"
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

static void wait_for_signal(pnb__app *app)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    while (!pnb__is_interrupted(app))
        nanosleep(&pause, NULL); /* which the signal cuts short */
}

/* The sides that the model has. */
static pnb_status open_encoder(pnb__app *app, const pnb__serve_opts *opts, pnb_encoder *e)
{
    pnb_encoder_opts parts = {0};
    pnb_status status = pnb__encoder_open_named(e, app, opts->model, &parts);
    if (status != PNB_OK)
        return status;
    parts = opts->parts;
    parts.sides = (e->info->vision.present ? PNB_ENCODE_IMAGES : 0) |
                  (e->info->text.present ? PNB_ENCODE_TEXTS : 0);
    status = pnb__encoder_add(e, e->dir, &parts, &app->err);
    if (status == PNB_OK && e->assumed[0] != '\0')
        pnb__warn(app, "%s: %s", e->dir, e->assumed);
    if (status == PNB_OK && e->assumed_texts[0] != '\0')
        pnb__warn(app, "%s: %s", e->dir, e->assumed_texts);
    return status;
}

/* What is searched: two sets, and collections. */
typedef struct galleries {
    pnb__set_gallery *set[2];
    pnb__store_gallery **stores;
    size_t n_stores;
    pnb__gallery *list;
} galleries;

/* Names of requests must tell them apart. */
static pnb_status add_gallery(pnb__app *app, pnb__server *s, galleries *g, pnb__gallery view)
{
    for (size_t i = 0; i < s->n_galleries; i++)
        if (strcmp(g->list[i].name, view.name) == 0)
            return pnb__fail(&app->err, PNB_ARG,
                             "two of what is served are called '%s': requests could not tell "
                             "them apart; rename one of the folders",
                             view.name);
    g->list[s->n_galleries++] = view;
    return PNB_OK;
}

static pnb_status open_sets(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s,
                            galleries *g)
{
    const char *const paths[] = {opts->images, opts->texts};
    static const char *const names[] = {"images", "texts"}, *const kinds[] = {"image", "text"};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(paths); i++) {
        if (paths[i] == NULL)
            continue;
        PNB_TRY(pnb__set_gallery_open(&g->set[i], app, s->encoder, paths[i], opts->calibration));
        pnb__gallery view = pnb__set_gallery_view(g->set[i], names[i]);
        if (strcmp(view.modality, kinds[i]) != 0)
            PNB_TRY(pnb__fail(&app->err, PNB_ARG, "%s holds %s embeddings; --%s wants those of %ss",
                              paths[i], view.modality, names[i], kinds[i]));
        PNB_TRY(add_gallery(app, s, g, view));
        if (isnan(opts->vague_above))
            s->vague_above[i == 0] = pnb__set_gallery_quantile(g->set[i], 0.99, &app->err);
    }
done:
    return status;
}

static pnb_status open_galleries(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s,
                                 galleries *g)
{
    size_t n = opts->collections.n;
    pnb_status status;
    s->vague_above[0] = s->vague_above[1] = opts->vague_above;
    PNB_TRY(PNB_ALLOC(g->list, n + PNB_COUNT(g->set), &app->err));
    PNB_TRY(PNB_ALLOC(g->stores, n + 1, &app->err));
    s->galleries = g->list;
    for (size_t i = 0; i < n; i++) {
        PNB_TRY(pnb__store_gallery_open(&g->stores[i], app, s->encoder, opts->collections.items[i],
                                        opts->calibration));
        g->n_stores++;
        PNB_TRY(add_gallery(app, s, g, pnb__store_gallery_view(g->stores[i])));
    }
    status = open_sets(app, opts, s, g);
done:
    return status;
}

static void close_galleries(galleries *g)
{
    for (size_t i = 0; i < g->n_stores; i++)
        pnb__store_gallery_free(g->stores[i]);
    for (size_t i = 0; i < PNB_COUNT(g->set); i++)
        pnb__set_gallery_free(g->set[i]);
    pnb__free(g->stores);
    pnb__free(g->list);
}

static pnb_status load_and_serve(pnb__app *app, const pnb__serve_opts *opts, pnb__server *s,
                                 galleries *g)
{
    const pnb__batcher_opts batches = {.encode = pnb__server_encode_batch,
                                       .user = s,
                                       .max_batch = opts->max_batch,
                                       .wait_s = opts->batch_wait_ms / 1000,
                                       .waited = pnb__server_waited};
    pnb_status status;
    PNB_TRY(open_encoder(app, opts, s->encoder));
    PNB_TRY(open_galleries(app, opts, s, g));
    PNB_TRY(pnb_image_budget_create(&s->budget, app->common.max_image_pixels, &app->err));
    PNB_TRY(pnb__batcher_start(&s->batcher, &batches, &app->err));
    pnb__server_open(s);
    pnb__say(app, "serving %s", s->name);
    wait_for_signal(app);
    pnb__say(app, "answering what was asked; a second signal ends it at once");
    pnb__server_drain(s);
done:
    return status;
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
    pnb_encoder encoder = {0};
    galleries g = {0};
    pnb__server s;
    int port = 0;
    pnb_status status;
    (void)r;
    PNB_TRY(pnb__server_init(&s, pnb__n_routes, &app->err));
    s.encoder = &encoder;
    PNB_TRY(settle(app, opts, &s));
    PNB_TRY(pnb__listen(&listener, &s, &where, &port, &app->err));
    PNB_TRY(announce(app, opts, port));
    status = load_and_serve(app, opts, &s, &g);
done:
    pnb__listen_end(listener, opts->timeout_s);
    pnb__batcher_free(s.batcher);
    pnb_image_budget_free(s.budget);
    close_galleries(&g);
    pnb__encoder_reset(&encoder);
    pnb__server_reset(&s);
    return status;
}
