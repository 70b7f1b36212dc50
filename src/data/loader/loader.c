/* The loader's threads and its position. Batches are numbered by a ticket since the last change of
 * position; ticket t lives in room t % n_rooms. Workers take tickets in order while the room is
 * free, the consumer takes them in order when they are ready, and handing out a batch frees the
 * room of the one before: a bounded queue that keeps the order whatever the number of workers. Of
 * several processes each has its own tickets; position_of says which batches of the one order they
 * stand for.
 *
 * The order of an epoch is a permutation, or with `resample` a list of independent draws, made from
 * (seed, epoch); the one array that holds it is made again when the epoch of the tickets changes.
 * Preparing a batch is left to loader_batch.c. Workers are plain threads beside the compute pool,
 * and block all signals so that Ctrl-C reaches the program's own thread. */
#include <signal.h>
#include <string.h>

#include "base/threads/affinity.h"
#include "data/loader/loader_internal.h"

typedef enum room_state { ROOM_FREE, ROOM_BUSY, ROOM_READY } room_state;

struct pnb_loader {
    const pnb_dataset *ds;
    pnb_loader_opts opts;
    size_t n_samples, n_draws, n_batches; /* of the data set; of an epoch, also in batches */
    pnb__image_cache cache;
    pnb__skips skips;
    pnb__class_lists classes; /* with by_class */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t work, ready;
    bool is_stopping, is_paused;
    int n_busy;
    pnb__batch_room *rooms;
    room_state *states;
    size_t n_rooms;
    pnb_loader_position start; /* of ticket 0 */
    uint64_t next_ticket;      /* the next a worker takes */
    uint64_t next_out;         /* the next the consumer gets */
    uint32_t *order;           /* permutation of order_epoch */
    uint64_t order_epoch;
    bool has_order;
    uint32_t *jobs; /* batch_size sample indices for each room */

    pthread_t *threads;
    int n_threads;
    bool is_pinned;
    cpu_set_t before, own; /* is_pinned: the process' processors before, the workers' own */
};

pnb_loader_opts pnb_loader_opts_default(void)
{
    return (pnb_loader_opts){.batch_size = 128,
                             .shuffle = true,
                             .drop_last = true,
                             .n_workers = 1,
                             .n_prefetch = 4,
                             .max_image_pixels = PNB_IMAGE_DEFAULT_PIXELS,
                             .cache_bytes = (size_t)512 << 20,
                             .preprocess = pnb_preprocess_default(),
                             .augment = pnb_augment_none(),
                             .context_length = 64,
                             .texts = PNB_TEXT_LEVEL,
                             .level = -1};
}

/* ---- tickets ------------------------------------------------------------------------------- */

/* Of the batch that is `number` batches behind the start, those of all ranks counted. */
static pnb_loader_position position_at(const pnb_loader *l, uint64_t number)
{
    uint64_t batch = l->start.batch + number;
    return (pnb_loader_position){l->start.epoch + batch / l->n_batches, batch % l->n_batches};
}

/* Number of a rank's first batch in a round. */
static uint64_t share_at(const pnb_loader *l, size_t rank)
{
    return (uint64_t)rank * l->opts.round / l->opts.n_ranks;
}

/* Batches of a round that are this rank's. */
static uint64_t share_of(const pnb_loader *l)
{
    return share_at(l, l->opts.rank + 1) - share_at(l, l->opts.rank);
}

/* Batches of all ranks before the round that this rank's ticket belongs to. */
static uint64_t rounds_before(const pnb_loader *l, uint64_t ticket)
{
    return ticket / share_of(l) * l->opts.round;
}

/* Where the batch of a ticket stands in the order that all ranks share. */
static pnb_loader_position position_of(const pnb_loader *l, uint64_t ticket)
{
    uint64_t in_round = share_at(l, l->opts.rank) + ticket % share_of(l);
    return position_at(l, rounds_before(l, ticket) + in_round);
}

static bool is_past_end(const pnb_loader *l, uint64_t ticket)
{
    return l->opts.n_epochs > 0 && position_of(l, ticket).epoch >= l->opts.n_epochs;
}

static size_t part_size(const pnb_dataset *ds, size_t part)
{
    return pnb_dataset_part_first(ds, part + 1) - pnb_dataset_part_first(ds, part);
}

/* The part that a share of all weights, factor times samples, falls into. Rounding may leave a
 * little behind the last one that counts. */
static size_t part_at(const pnb_loader *l, double share)
{
    size_t last = 0;
    double total = 0, passed = 0;
    for (size_t p = 0; p < l->opts.n_factors; p++)
        total += l->opts.factors[p] * (double)part_size(l->ds, p);
    for (size_t p = 0; p < l->opts.n_factors; p++) {
        double weight = l->opts.factors[p] * (double)part_size(l->ds, p);
        if (!(weight > 0))
            continue;
        last = p;
        passed += weight;
        if (share * total < passed)
            break;
    }
    return last;
}

/* Draws of a mix: a part, then a sample of it. */
static void draw_mixed(pnb_loader *l, pnb__rng *rng)
{
    for (size_t i = 0; i < l->n_draws; i++) {
        size_t part = part_at(l, pnb__rng_uniform(rng));
        size_t drawn = (size_t)pnb__rng_below(rng, part_size(l->ds, part));
        l->order[i] = (uint32_t)(pnb_dataset_part_first(l->ds, part) + drawn);
    }
}

static void make_order(pnb_loader *l, uint64_t epoch)
{
    bool is_fixed = !l->opts.shuffle && !l->opts.resample;
    if (l->has_order && (l->order_epoch == epoch || is_fixed))
        return;
    pnb__rng rng;
    bool is_mixed = l->opts.n_factors > 0;
    uint64_t purpose = is_mixed ? 8 : l->opts.by_class ? 7 : l->opts.resample ? 6 : 5;
    pnb__rng_init(&rng, l->opts.seed, (purpose << 56) | epoch);
    l->order_epoch = epoch;
    l->has_order = true;
    if (is_mixed) {
        draw_mixed(l, &rng);
        return;
    }
    if (l->opts.by_class) {
        pnb__class_order(&l->classes, &rng, l->opts.batch_size, l->n_batches, l->order);
        return;
    }
    for (size_t i = 0; i < l->n_draws; i++)
        l->order[i] = l->opts.resample ? (uint32_t)pnb__rng_below(&rng, l->n_samples) : (uint32_t)i;
    if (l->opts.shuffle && !l->opts.resample)
        pnb__rng_shuffle(&rng, l->order, l->n_draws);
}

/* Copies the sample indices of a ticket to its room's list. */
static pnb__batch_job make_job(pnb_loader *l, uint64_t ticket)
{
    pnb_loader_position p = position_of(l, ticket);
    size_t first = (size_t)p.batch * l->opts.batch_size;
    size_t n = PNB_MIN(l->opts.batch_size, l->n_draws - first);
    uint32_t *samples = l->jobs + (size_t)(ticket % l->n_rooms) * l->opts.batch_size;
    make_order(l, p.epoch);
    memcpy(samples, l->order + first, n * sizeof *samples);
    return (pnb__batch_job){p.epoch, p.batch, samples, n, l->opts.by_class ? &l->classes : NULL};
}

static void *work(void *user)
{
    pnb_loader *l = user;
    pthread_mutex_lock(&l->lock);
    while (!l->is_stopping) {
        uint64_t ticket = l->next_ticket;
        size_t room = (size_t)(ticket % l->n_rooms);
        if (l->is_paused || l->states[room] != ROOM_FREE || is_past_end(l, ticket)) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        pnb__batch_job job = make_job(l, ticket);
        l->states[room] = ROOM_BUSY;
        l->next_ticket++;
        l->n_busy++;
        pthread_mutex_unlock(&l->lock);
        pnb__batch_prepare(l->ds, &l->opts, &l->cache, &job, &l->rooms[room]);
        pthread_mutex_lock(&l->lock);
        l->states[room] = ROOM_READY;
        l->n_busy--;
        pthread_cond_broadcast(&l->ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- creating and freeing ------------------------------------------------------------------ */

static pnb_status check_templates(const pnb_loader_opts *o, pnb_error *err)
{
    if (!(o->template_share >= 0 && o->template_share <= 1))
        return pnb__fail(err, PNB_ARG, "loader: template share %g, wanted 0..1", o->template_share);
    if (o->n_templates > 0 && o->templates == NULL)
        return pnb__fail(err, PNB_ARG, "loader: %zu templates, but none is given", o->n_templates);
    for (size_t i = 0; i < o->n_templates; i++)
        if (!strstr(o->templates[i], "{}") && !strstr(o->templates[i], "{c}"))
            return pnb__fail(err, PNB_ARG, "loader: template \"%s\" has no {} or {c}",
                             o->templates[i]);
    return PNB_OK;
}

/* Factors of parts, and negatives that a data set may have. */
static pnb_status check_mix(const pnb_dataset *ds, const pnb_loader_opts *o, pnb_error *err)
{
    double sum = 0;
    if (o->n_negatives > 64)
        return pnb__fail(err, PNB_ARG, "loader: %zu hard negatives of a sample, 64 are the most",
                         o->n_negatives);
    if (o->n_factors == 0)
        return PNB_OK;
    if (!o->resample)
        return pnb__fail(err, PNB_ARG,
                         "loader: factors say how often samples are drawn, and none is drawn: "
                         "resample them");
    if (o->n_factors != pnb_dataset_n_parts(ds))
        return pnb__fail(err, PNB_ARG, "loader: %zu factors for %zu parts of the data",
                         o->n_factors, pnb_dataset_n_parts(ds));
    for (size_t p = 0; p < o->n_factors; p++) {
        if (!(o->factors[p] >= 0 && o->factors[p] <= 1e9))
            return pnb__fail(err, PNB_ARG, "loader: factor %zu is %g, wanted 0 to 10^9", p,
                             o->factors[p]);
        sum += o->factors[p] * (double)part_size(ds, p);
    }
    return sum > 0 ? PNB_OK
                   : pnb__fail(err, PNB_ARG, "loader: every part with samples has factor 0");
}

static pnb_status check_opts(const pnb_dataset *ds, const pnb_loader_opts *o, pnb_error *err)
{
    size_t n = ds ? pnb_dataset_size(ds) : 0;
    if (n == 0)
        return pnb__fail(err, PNB_NOT_FOUND, "loader: the data set is empty");
    if (n > UINT32_MAX)
        return pnb__fail(err, PNB_LIMIT, "loader: %zu samples, at most %u", n, UINT32_MAX);
    if (o->batch_size < 1 || o->batch_size > 1 << 24)
        return pnb__fail(err, PNB_ARG, "loader: batch size %zu, wanted 1..%d", o->batch_size,
                         1 << 24);
    if (o->drop_last && n < o->batch_size && !o->resample)
        return pnb__fail(err, PNB_SHAPE,
                         "loader: %zu samples are less than one batch of %zu: lower the batch size",
                         n, o->batch_size);
    if (o->n_workers < 0 || o->n_workers > 256 || o->n_prefetch < 1 || o->n_prefetch > 1024)
        return pnb__fail(err, PNB_ARG,
                         "loader: %d workers and %d batches ahead, wanted 0..256 and "
                         "1..1024",
                         o->n_workers, o->n_prefetch);
    if (o->preprocess.width < 1 || o->preprocess.height < 1)
        return pnb__fail(err, PNB_ARG, "loader: pictures of %d x %d", o->preprocess.width,
                         o->preprocess.height);
    if (o->tokenizer && (o->context_length < 1 || o->context_length > 1 << 16))
        return pnb__fail(err, PNB_ARG, "loader: context of %d tokens", o->context_length);
    if (o->rank >= o->n_ranks)
        return pnb__fail(err, PNB_ARG, "loader: rank %zu of %zu, they count from 0", o->rank,
                         o->n_ranks);
    if (o->round < o->n_ranks || o->round > UINT32_MAX)
        return pnb__fail(err, PNB_ARG,
                         "loader: a round of %zu batches for %zu ranks leaves a rank without one",
                         o->round, o->n_ranks);
    if (o->by_class && (o->resample || !o->shuffle))
        return pnb__fail(err, PNB_ARG,
                         "loader: batches by class have an order of their own: they are neither "
                         "resampled nor in the order of the data set");
    if ((unsigned)o->texts >= PNB_N_TEXT_CHOICES)
        return pnb__fail(err, PNB_ARG, "loader: unknown choice of captions %d", (int)o->texts);
    pnb_status status = check_mix(ds, o, err);
    return status == PNB_OK ? check_templates(o, err) : status;
}

/* Samples of an epoch, and its batches. By class it has as many batches as the samples fill. */
static pnb_status plan_epoch(pnb_loader *l, pnb_error *err)
{
    const pnb_loader_opts *o = &l->opts;
    pnb_status status = o->by_class ? pnb__class_lists_create(&l->classes, l->ds, err) : PNB_OK;
    if (status == PNB_OK && o->by_class && o->batch_size > l->classes.n_classes)
        status = pnb__fail(err, PNB_SHAPE,
                           "loader: a batch of %zu samples of as many classes, but there are %zu: "
                           "lower the batch size",
                           o->batch_size, l->classes.n_classes);
    l->n_samples = pnb_dataset_size(l->ds);
    l->n_draws = o->resample ? PNB_MAX(l->n_samples, o->batch_size) : l->n_samples;
    l->n_batches = l->n_draws / o->batch_size;
    l->n_batches += !o->drop_last && !o->by_class && l->n_draws % o->batch_size != 0;
    return status;
}

static pnb_status allocate(pnb_loader *l, pnb_error *err)
{
    l->n_rooms = l->opts.n_workers == 0 ? 1 : (size_t)l->opts.n_prefetch + 1;
    l->rooms = pnb__alloc_zero(l->n_rooms, sizeof *l->rooms);
    l->states = pnb__alloc_zero(l->n_rooms, sizeof *l->states);
    l->order = pnb__alloc_array(l->n_draws, sizeof *l->order);
    l->jobs = pnb__alloc_array(l->n_rooms * l->opts.batch_size, sizeof *l->jobs);
    l->threads = pnb__alloc_zero((size_t)l->opts.n_workers + 1, sizeof *l->threads);
    if (l->opts.cache_bytes > 0)
        l->cache.images = pnb__alloc_zero(l->n_samples, sizeof *l->cache.images);
    l->cache.limit_bytes = l->opts.cache_bytes;
    pnb_status status = pnb_image_budget_create(&l->cache.budget, l->opts.max_image_pixels, err);
    if (status != PNB_OK)
        return status;
    if (!l->rooms || !l->states || !l->order || !l->jobs || !l->threads ||
        (l->opts.cache_bytes > 0 && !l->cache.images))
        return pnb__fail_nomem(err, l->n_samples * sizeof *l->cache.images);
    for (size_t i = 0; i < l->n_rooms; i++) {
        status = pnb__batch_room_create(&l->rooms[i], &l->opts, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* The last processors for the workers, the others for every thread that is there already and for
 * what these start, the compute pool among them. */
static pnb_status pin(pnb_loader *l, pnb_error *err)
{
    if (!pnb__affinity_get(&l->before))
        return pnb__fail(err, PNB_UNSUPPORTED, "loader: more processors than can be told apart");
    if (!pnb__affinity_is_shared(&l->before)) /* would be lost, and another loader's with them */
        return pnb__fail(err, PNB_ARG,
                         "loader: threads of this process, as another loader's workers, keep to "
                         "processors of their own already");
    int n = CPU_COUNT(&l->before);
    if (l->opts.n_workers == 0 || l->opts.n_workers >= n)
        return pnb__fail(err, PNB_ARG,
                         "loader: %d workers cannot have processors of their own among the %d that "
                         "this process may use",
                         l->opts.n_workers, n);
    cpu_set_t others = l->before;
    l->own = pnb__affinity_take_last(&others, l->opts.n_workers);
    l->is_pinned = true; /* pnb_loader_free gives back also where some were moved */
    if (!pnb__affinity_keep_process(&others))
        return pnb__fail(err, PNB_UNSUPPORTED, "loader: this system keeps no threads apart");
    return PNB_OK;
}

static pnb_status start_workers(pnb_loader *l, pnb_error *err)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pnb_status status = PNB_OK;
    pthread_attr_init(&attr);
    if (l->is_pinned) /* from their first step: another loader has to see them */
        pthread_attr_setaffinity_np(&attr, sizeof l->own, &l->own);
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* is of who reads a mapped file */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < l->opts.n_workers && status == PNB_OK; i++) {
        if (pthread_create(&l->threads[i], &attr, work, l) == 0)
            l->n_threads++;
        else
            status = pnb__fail(err, PNB_NOMEM, "loader: worker thread %d could not be started", i);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return status;
}

pnb_status pnb_loader_create(pnb_loader **out, const pnb_dataset *ds, const pnb_loader_opts *opts,
                             pnb_error *err)
{
    pnb_loader_opts given = opts ? *opts : pnb_loader_opts_default();
    *out = NULL;
    given.n_ranks = PNB_MAX(given.n_ranks, (size_t)1);
    if (given.n_ranks == 1)
        given.round = 1;
    else if (given.round == 0)
        given.round = given.n_ranks;
    pnb_status status = check_opts(ds, &given, err);
    if (status != PNB_OK)
        return status;
    pnb_loader *l = pnb__alloc_zero(1, sizeof *l);
    if (!l)
        return pnb__fail_nomem(err, sizeof *l);
    l->ds = ds;
    l->opts = given;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->cache.lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    status = plan_epoch(l, err);
    if (status == PNB_OK)
        status = allocate(l, err);
    if (status == PNB_OK && l->opts.pin_workers)
        status = pin(l, err);
    if (status == PNB_OK)
        status = start_workers(l, err);
    if (status == PNB_OK)
        *out = l;
    else
        pnb_loader_free(l);
    return status;
}

static void stop_workers(pnb_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_stopping = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_threads; i++)
        pthread_join(l->threads[i], NULL);
    l->n_threads = 0;
}

void pnb_loader_free(pnb_loader *l)
{
    if (!l)
        return;
    stop_workers(l);
    if (l->is_pinned)
        pnb__affinity_keep_process(&l->before);
    for (size_t i = 0; l->rooms && i < l->n_rooms; i++)
        pnb__batch_room_free(&l->rooms[i]);
    for (size_t i = 0; l->cache.images && i < l->n_samples; i++)
        pnb_image_free(&l->cache.images[i]);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->cache.lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    pnb__skips_free(&l->skips);
    pnb__class_lists_free(&l->classes);
    pnb__free(l->cache.images);
    pnb_image_budget_free(l->cache.budget);
    pnb__free(l->rooms);
    pnb__free(l->states);
    pnb__free(l->order);
    pnb__free(l->jobs);
    pnb__free(l->threads);
    pnb__free(l);
}

/* ---- consuming ----------------------------------------------------------------------------- */

size_t pnb_loader_batches_per_epoch(const pnb_loader *l)
{
    return l->n_batches;
}

static pnb_status collect_skips(pnb_loader *l, pnb__batch_room *room, pnb_error *err)
{
    for (size_t i = 0; i < room->skips.n; i++) {
        char *why = room->skips.items[i].why;
        room->skips.items[i].why = NULL;
        pnb_status status = pnb__skips_add(&l->skips, room->skips.items[i].sample, why, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* Frees the room handed out before, waits for the next ticket; lock held. */
static void take_room(pnb_loader *l, size_t room)
{
    if (l->next_out > 0)
        l->states[(l->next_out - 1) % l->n_rooms] = ROOM_FREE;
    if (l->opts.n_workers == 0) {
        pnb__batch_job job = make_job(l, l->next_out);
        pnb__batch_prepare(l->ds, &l->opts, &l->cache, &job, &l->rooms[room]);
        return;
    }
    pthread_cond_broadcast(&l->work);
    while (l->states[room] != ROOM_READY)
        pthread_cond_wait(&l->ready, &l->lock);
}

pnb_status pnb_loader_next(pnb_loader *l, const pnb_batch **out, pnb_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&l->lock);
    if (is_past_end(l, l->next_out)) {
        pthread_mutex_unlock(&l->lock);
        return PNB_OK;
    }
    size_t room = (size_t)(l->next_out % l->n_rooms);
    take_room(l, room);
    l->next_out++;
    pthread_mutex_unlock(&l->lock);
    pnb_status status = collect_skips(l, &l->rooms[room], err);
    if (status != PNB_OK)
        return status;
    if (l->rooms[room].status != PNB_OK)
        return pnb__fail(err, l->rooms[room].status, "%s", l->rooms[room].error.text);
    *out = &l->rooms[room].batch;
    return PNB_OK;
}

pnb_loader_position pnb_loader_get_position(const pnb_loader *l)
{
    /* only the consumer's own thread changes these two */
    return position_at(l, rounds_before(l, l->next_out));
}

pnb_status pnb_loader_set_position(pnb_loader *l, pnb_loader_position position, pnb_error *err)
{
    if (position.batch >= l->n_batches)
        return pnb__fail(err, PNB_ARG, "loader: batch %llu of an epoch of %zu batches",
                         (unsigned long long)position.batch, l->n_batches);
    pthread_mutex_lock(&l->lock);
    l->is_paused = true;
    while (l->n_busy > 0)
        pthread_cond_wait(&l->ready, &l->lock);
    for (size_t i = 0; i < l->n_rooms; i++)
        l->states[i] = ROOM_FREE;
    l->start = position;
    l->next_ticket = l->next_out = 0;
    l->is_paused = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return PNB_OK;
}

size_t pnb_loader_n_skipped(const pnb_loader *l)
{
    return l->skips.n;
}

int64_t pnb_loader_skipped(const pnb_loader *l, size_t i, const char **why)
{
    if (i >= l->skips.n)
        return -1;
    if (why)
        *why = l->skips.items[i].why;
    return l->skips.items[i].sample;
}
