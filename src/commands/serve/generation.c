/* A model, its batches and what is searched, opened together and released together.
 *
 * Requests may make collections in the folder that --collection-root names, and nowhere else: a
 * name is letters, digits, '-', '_' and dots, and never a path. */
#include "commands/serve/generation.h"

#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "commands/common/approx_use.h"
#include "commands/common/encode_use.h"
#include "commands/serve/set_gallery.h"
#include "commands/serve/store_gallery.h"
#include "server/batching/batcher.h"
#include "server/batching/encoding.h"

enum { MAX_MADE = 256, MAX_NAME = 64 }; /* collections that requests make between two reloads */

struct pnb__generation {
    pnb__served served;   /* first: requests know this much */
    pnb__app *app;        /* of the thread that opens */
    pnb__app of_requests; /* as it was then: whoever makes a collection copies this one */
    const pnb__serve_opts *opts;
    pnb_encoder encoder;
    pnb__set_gallery *set[2];
    pnb__store_gallery **stores;
    size_t n_stores, capacity; /* of stores and of galleries */
    pthread_mutex_t making;
    pthread_t growing; /* builds indexes of what has come */
    bool is_growing;
    atomic_bool ends;
};

pnb__served *pnb__generation_served(pnb__generation *g)
{
    return &g->served;
}

pnb__generation *pnb__generation_of(pnb__server *s, pnb__served *served)
{
    return served != &s->nothing ? (pnb__generation *)served : NULL;
}

/* ---- the model ---- */

/* The sides that the model has. */
static pnb_status open_encoder(pnb__generation *g)
{
    pnb__app *app = g->app;
    pnb_encoder *e = &g->encoder;
    pnb_encoder_opts parts = {0};
    pnb_status status = pnb__encoder_open_named(e, app, g->opts->model, &parts);
    if (status != PNB_OK)
        return status;
    parts = g->opts->parts;
    parts.sides = (e->info->vision.present ? PNB_ENCODE_IMAGES : 0) |
                  (e->info->text.present ? PNB_ENCODE_TEXTS : 0);
    status = pnb__encoder_add(e, e->dir, &parts, &app->err);
    if (status == PNB_OK && e->assumed[0] != '\0')
        pnb__warn(app, "%s: %s", e->dir, e->assumed);
    if (status == PNB_OK && e->assumed_texts[0] != '\0')
        pnb__warn(app, "%s: %s", e->dir, e->assumed_texts);
    return status;
}

static pnb_status start_batches(pnb__generation *g)
{
    const pnb__batcher_opts batches = {.encode = pnb__server_encode_batch,
                                       .user = &g->served,
                                       .max_batch = g->opts->max_batch,
                                       .wait_s = g->opts->batch_wait_ms / 1000,
                                       .waited = pnb__server_waited};
    pnb_status status =
        pnb_image_budget_create(&g->served.budget, g->app->common.max_image_pixels, &g->app->err);
    if (status == PNB_OK)
        status = pnb__batcher_start(&g->served.batcher, &batches, &g->app->err);
    return status;
}

/* ---- what is searched ---- */

/* Names of requests must tell them apart. */
static pnb_status add_gallery(pnb__generation *g, pnb__gallery view, pnb_error *err)
{
    size_t n = g->served.n_galleries;
    for (size_t i = 0; i < n; i++)
        if (strcmp(g->served.galleries[i].name, view.name) == 0)
            return pnb__fail(err, PNB_ARG,
                             "two of what is served are called '%s': requests could not tell "
                             "them apart; rename one of the folders",
                             view.name);
    g->served.galleries[n] = view;
    g->served.n_galleries = n + 1; /* a request that looks meanwhile sees it whole or not at all */
    return PNB_OK;
}

static bool is_known(const pnb__spread *spread)
{
    return !isnan(spread->vague);
}

/* The first of a kind that tells it says what its queries are held against. What a request has made
 * is empty and tells nothing, so nothing changes while others read. */
static void take_spread(pnb__generation *g, const char *modality, const pnb__spread *spread)
{
    pnb__spread *known = &g->served.spread[strcmp(modality, "image") == 0];
    if (!is_known(known) && is_known(spread))
        *known = *spread;
}

static pnb_status open_sets(pnb__generation *g)
{
    const char *const paths[] = {g->opts->images, g->opts->texts};
    static const char *const names[] = {"images", "texts"}, *const kinds[] = {"image", "text"};
    pnb_error *err = &g->app->err;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(paths); i++) {
        pnb__spread spread;
        if (paths[i] == NULL)
            continue;
        const pnb__set_gallery_place place = {.path = paths[i],
                                              .calibration = g->opts->calibration,
                                              .approx = pnb__search_kind(g->opts->approx),
                                              .recall = g->opts->recall};
        PNB_TRY(pnb__set_gallery_open(&g->set[i], g->app, &g->encoder, &place));
        pnb__gallery view = pnb__set_gallery_view(g->set[i], names[i]);
        if (strcmp(view.modality, kinds[i]) != 0)
            PNB_TRY(pnb__fail(err, PNB_ARG, "%s holds %s embeddings; --%s wants those of %ss",
                              paths[i], view.modality, names[i], kinds[i]));
        PNB_TRY(add_gallery(g, view, err));
        PNB_TRY(pnb__set_gallery_spread(g->set[i], &spread, err));
        take_spread(g, view.modality, &spread);
    }
done:
    return status;
}

/* `app` is the caller's own, of a request say. *is_open says how far it came. */
static pnb_status add_store(pnb__generation *g, pnb__app *app,
                            const pnb__store_gallery_place *place, bool *is_open)
{
    pnb__store_gallery *store = NULL;
    pnb__spread spread;
    pnb_error *err = &app->err;
    pnb_status status;
    *is_open = false;
    PNB_TRY(pnb__store_gallery_open(&store, app, &g->encoder, place));
    PNB_TRY(pnb__store_gallery_spread(store, &spread, err));
    *is_open = true;
    pnb__gallery view = pnb__store_gallery_view(store);
    PNB_TRY(add_gallery(g, view, err));
    take_spread(g, view.modality, &spread);
    g->stores[g->n_stores++] = store;
    store = NULL;
done:
    pnb__store_gallery_free(store);
    return status;
}

static bool is_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(name);
    return n > 0 && n <= MAX_NAME && name[0] != '.' && name[0] != '-' && strspn(name, letters) == n;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct name_list {
    char **items;
    size_t n, capacity;
} name_list;

/* Collections in the root, in order of their names. */
static pnb_status list_root(pnb__app *app, const char *root, name_list *names)
{
    pnb_error *err = &app->err;
    bool is_there = pnb__path_is_dir(root);
    pnb_status status = pnb__make_dirs(root, err);
    if (status != PNB_OK)
        return status;
    if (!is_there)
        pnb__say(app, "--collection-root %s: there was no such folder, it was made", root);
    DIR *dir = opendir(root);
    if (dir == NULL)
        return pnb__fail_errno(err, "cannot read", root);
    for (const struct dirent *e; status == PNB_OK && (e = readdir(dir)) != NULL;) {
        char *path = pnb__path_join(root, e->d_name);
        bool is_one =
            is_name(e->d_name) && path != NULL && pnb__path_has_file(path, "collection.db");
        if (path == NULL)
            status = pnb__fail_nomem(err, strlen(root));
        else if (is_one)
            status = PNB_GROW(names->items, names->capacity, names->n + 1, err);
        if (status == PNB_OK && is_one)
            names->items[names->n++] = path;
        else
            pnb__free(path);
    }
    closedir(dir);
    if (names->n > 0)
        qsort(names->items, names->n, sizeof *names->items, compare_names);
    return status;
}

static pnb_status open_stores(pnb__generation *g, const name_list *made)
{
    const pnb__text_list *given = &g->opts->collections;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < given->n + made->n && status == PNB_OK; i++) {
        bool is_given = i < given->n;
        const pnb__store_gallery_place place = {.path = is_given ? given->items[i]
                                                                 : made->items[i - given->n],
                                                .calibration = g->opts->calibration,
                                                .modality = "image",
                                                .approx = pnb__search_kind(g->opts->approx),
                                                .recall = g->opts->recall};
        bool is_open = false;
        status = add_store(g, g->app, &place, &is_open);
        bool is_left_out = status != PNB_OK && status != PNB_NOMEM && !is_open && !is_given;
        if (is_left_out) { /* nobody named it: the others are worth more */
            pnb__warn(g->app, "%s is not served: %s", place.path, g->app->err.text);
            pnb_error_reset(&g->app->err);
            status = PNB_OK;
        }
    }
    return status;
}

static pnb_status open_galleries(pnb__generation *g)
{
    name_list made = {0};
    pnb_error *err = &g->app->err;
    pnb_status status = PNB_OK;
    double vague = g->opts->vague_above;
    if (g->opts->root != NULL)
        PNB_TRY(list_root(g->app, g->opts->root, &made));
    g->capacity = g->opts->collections.n + made.n + PNB_COUNT(g->set) + MAX_MADE;
    PNB_TRY(PNB_ALLOC(g->served.galleries, g->capacity, err));
    PNB_TRY(PNB_ALLOC(g->stores, g->capacity, err));
    PNB_TRY(open_stores(g, &made));
    PNB_TRY(open_sets(g));
    for (size_t i = 0; i < 2 && !isnan(vague); i++)
        g->served.spread[i].vague = vague;
done:
    for (size_t i = 0; i < made.n; i++)
        pnb__free(made.items[i]);
    pnb__free(made.items);
    return status;
}

/* ---- made by requests ---- */

static pnb_status make_store(pnb__generation *g, const char *path, const char *modality,
                             pnb_error *err)
{
    pnb_embeddings_info info = {.modality = ""};
    const pnb_store_model model = {.dir = g->encoder.dir, .info = &info};
    const pnb__store_gallery_place place = {.path = path,
                                            .modality = modality,
                                            .approx = pnb__search_kind(g->opts->approx),
                                            .recall = g->opts->recall};
    pnb__app app = g->of_requests; /* what goes wrong is this request's, not the server's */
    pnb_encoder_describe(&g->encoder, PNB_ENCODE_IMAGES, 0, &info);
    snprintf(info.modality, sizeof info.modality, "%s", modality);
    pnb_status status = pnb_store_create(path, &model, err);
    if (status != PNB_OK)
        return status;
    bool is_open = false;
    status = add_store(g, &app, &place, &is_open);
    return status == PNB_OK ? status : pnb__fail(err, status, "%s", app.err.text);
}

/* pnb__served.create */
static pnb_status create_collection(pnb__served *served, const char *name, const char *modality,
                                    pnb_error *err)
{
    pnb__generation *g = (pnb__generation *)served;
    char *path = NULL;
    pnb_status status = PNB_OK;
    if (!is_name(name))
        return pnb__fail(err, PNB_ARG,
                         "'%.80s' is no name of a collection: wanted are 1 to %d letters, digits, "
                         "'-', '_' and dots, with a letter or digit first",
                         name, MAX_NAME);
    pthread_mutex_lock(&g->making);
    for (size_t i = 0; i < served->n_galleries; i++)
        if (strcmp(served->galleries[i].name, name) == 0)
            PNB_TRY(pnb__fail(err, PNB_EXISTS, "'%s' is served already", name));
    if (served->n_galleries == g->capacity)
        PNB_TRY(
            pnb__fail(err, PNB_LIMIT, "%d collections were made since the last reload", MAX_MADE));
    path = pnb__path_join(g->opts->root, name);
    if (path == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(name)));
    status = make_store(g, path, modality, err);
done:
    pthread_mutex_unlock(&g->making);
    pnb__free(path);
    return status;
}

/* ---- growing ---- */

enum { GROW_MS = 1000, LOOK_MS = 50 };

static bool goes_on(void *user, size_t done, size_t total)
{
    const pnb__generation *g = user;
    (void)done, (void)total;
    return !atomic_load(&g->ends);
}

/* Looks at what is served once a second, and builds where much has come. What fails is said, and
 * tried again when something has come again. */
static void *grow(void *user)
{
    pnb__generation *g = user;
    const pnb_watch watch = {goes_on, g};
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    for (size_t waited = 0; goes_on(g, 0, 0); waited += LOOK_MS) {
        pnb_error err = PNB_ERROR_INIT;
        nanosleep(&pause, NULL);
        if (waited < GROW_MS)
            continue;
        waited = 0;
        pthread_mutex_lock(&g->making);
        size_t n = g->n_stores;
        pthread_mutex_unlock(&g->making);
        for (size_t i = 0; i < n && goes_on(g, 0, 0); i++)
            if (pnb__store_gallery_grow(g->stores[i], &watch, &err) != PNB_OK)
                pnb_error_reset(&err); /* searches go on without it */
    }
    return NULL;
}

pnb_status pnb__generation_grow(pnb__generation *g)
{
    pnb_index_kind kind = pnb__search_kind(g->opts->approx);
    if (kind != PNB_INDEX_HNSW && kind != PNB_INDEX_IVF)
        return PNB_OK;
    atomic_store(&g->ends, false);
    if (pthread_create(&g->growing, NULL, grow, g) != 0)
        return pnb__fail(&g->app->err, PNB_LIMIT, "cannot start a thread");
    g->is_growing = true;
    return PNB_OK;
}

void pnb__generation_rest(pnb__generation *g)
{
    atomic_store(&g->ends, true);
    if (g->is_growing)
        pthread_join(g->growing, NULL);
    g->is_growing = false;
}

/* ---- from beginning to end ---- */

pnb_status pnb__generation_open(pnb__generation **out, pnb__app *app, const pnb__serve_opts *opts,
                                pnb__server *s)
{
    pnb__generation *g = pnb__alloc_zero(1, sizeof *g);
    pnb_status status;
    if (g == NULL)
        return pnb__fail_nomem(&app->err, sizeof *g);
    g->served = pnb__served_make(s);
    g->served.encoder = &g->encoder;
    g->served.lost = pnb__expect_lost_pages(app);
    g->served.n_lost = g->served.lost != NULL ? atomic_load(g->served.lost) : 0;
    g->served.create = opts->root != NULL ? create_collection : NULL;
    g->app = app;
    g->of_requests = *app;
    g->opts = opts;
    pthread_mutex_init(&g->making, NULL);
    PNB_TRY(open_encoder(g));
    PNB_TRY(open_galleries(g));
    PNB_TRY(pnb__served_check(&g->served, &app->err));
    PNB_TRY(start_batches(g));
    PNB_TRY(pnb__generation_grow(g));
    *out = g;
done:
    if (status != PNB_OK)
        pnb__generation_free(g);
    return status;
}

void pnb__generation_free(pnb__generation *g)
{
    if (g == NULL)
        return;
    pnb__generation_rest(g);
    pnb__batcher_free(g->served.batcher);
    pnb_image_budget_free(g->served.budget);
    for (size_t i = 0; i < g->n_stores; i++)
        pnb__store_gallery_free(g->stores[i]);
    for (size_t i = 0; i < PNB_COUNT(g->set); i++)
        pnb__set_gallery_free(g->set[i]);
    pnb__free(g->stores);
    pnb__free(g->served.galleries);
    pnb__encoder_reset(&g->encoder);
    pthread_mutex_destroy(&g->making);
    pnb__free(g);
}
