/* Filling a collection: pictures, captions and ready sets; once, or whenever a folder changes.
 *
 * An input whose content is there is not read twice: its bytes are hashed, and only what the
 * collection does not know is embedded, some thousand rows at a time, each lot added at once. A run
 * that was killed goes on with what is missing. The model is opened when the first new input is
 * found. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "commands/collection/collection.h"
#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"
#include "io/image/thumbnail.h"

/* One run over the inputs. */
typedef struct adding {
    pnb__app *app;
    const pnb__collection_add_opts *opts;
    pnb_store *store;
    const char *model; /* folder */
    bool is_text;
    pnb__embed_source all;
    const pnb__text_inputs *texts; /* of captions */
    pnb_encoder encoder;
    bool is_open;
    /* the lot that is being gathered: inputs, their hashes and times */
    size_t *input;
    char (*sha256)[65];
    int64_t *time;
    pnb__buf *thumbnail; /* filled by the threads that decode, each its own */
    size_t n;
    size_t *of_row; /* place in the lot of each row of the set made of it */
    pnb_store_added done;
    size_t n_seen;
} adding;

/* ---- a lot as a source ---- */

static pnb_status lot_image(const void *user, size_t i, const pnb_image_opts *opts, pnb_image *out,
                            pnb_error *err)
{
    const adding *a = user;
    pnb_image_opts told = *opts;
    told.tell_exif = true; /* people see it as it was held, whatever the model sees */
    pnb_status status = a->all.image(a->all.user, a->input[i], &told, out, err);
    pnb__buf_reset(&a->thumbnail[i]);
    if (status == PNB_OK && pnb__thumbnail_make(out, &a->thumbnail[i], NULL) != PNB_OK)
        pnb__buf_reset(&a->thumbnail[i]); /* the row is worth more than what is shown of it */
    return status;
}

static const char *lot_text(const void *user, size_t i)
{
    const adding *a = user;
    return a->all.text(a->all.user, a->input[i]);
}

static pnb_status lot_name(const void *user, size_t i, char *text, size_t size, pnb_error *err)
{
    const adding *a = user;
    return a->all.name(a->all.user, a->input[i], text, size, err);
}

/* Rows are called by what tells inputs apart in a collection: pictures by their files, captions
 * without an id of their own by their content. */
static pnb_status lot_label(const void *user, size_t i, pnb_embeddings *set, size_t row,
                            pnb_error *err)
{
    const adding *a = user;
    pnb_status status = a->all.label(a->all.user, a->input[i], set, row, err);
    a->of_row[row] = i;
    if (status == PNB_OK && a->is_text && a->texts->items[a->input[i]].id == NULL)
        status = pnb_embeddings_set_id(set, row, NULL, err);
    else if (status == PNB_OK && set->paths != NULL && set->paths[row] != NULL)
        status = pnb_embeddings_set_id(set, row, set->paths[row], err);
    return status;
}

static pnb__embed_source lot_source(const adding *a)
{
    return (pnb__embed_source){.n = a->n,
                               .is_text = a->is_text,
                               .user = a,
                               .image = a->is_text ? NULL : lot_image,
                               .text = a->is_text ? lot_text : NULL,
                               .label = lot_label,
                               .name = a->all.name != NULL ? lot_name : NULL};
}

/* ---- embedding and adding a lot ---- */

static pnb_status open_model(adding *a)
{
    pnb_encode_side side = a->is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES;
    pnb_encoder_opts parts = a->opts->parts;
    pnb_embeddings *probe = NULL;
    pnb_status status;
    if (a->is_open)
        return PNB_OK;
    if (a->model[0] == '\0')
        return pnb__usage(a->app, "the collection does not say whose embeddings it holds: name the "
                                  "model by --model");
    parts.sides = (int)side;
    a->is_open = true;
    PNB_TRY(pnb__encoder_open_named(&a->encoder, a->app, a->model, &parts));
    PNB_TRY(pnb__encoder_make_rows(&a->encoder, side, 1, &probe, &a->app->err));
    pnb_encoder_describe(&a->encoder, side, 0, &probe->info);
    probe->info.preprocess[0] = '\0'; /* options say more of it: seen when the first lot comes */
    status = pnb_store_check(a->store, probe, &a->app->err);
done:
    pnb_embeddings_free(probe);
    return status;
}

static void count_added(adding *a, const pnb_store_added *now)
{
    a->done.n_added += now->n_added;
    a->done.n_known += now->n_known;
    a->done.n_replaced += now->n_replaced;
}

static pnb_status add_set(adding *a, const pnb_embeddings *set)
{
    char(*sha256)[65] = NULL;
    int64_t *times = NULL, now = (int64_t)time(NULL);
    pnb_store_thumbnail *thumbnails = NULL;
    pnb_store_added added;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(sha256, set->n, &a->app->err));
    PNB_TRY(PNB_ALLOC(times, set->n, &a->app->err));
    PNB_TRY(PNB_ALLOC(thumbnails, set->n, &a->app->err));
    for (size_t row = 0; row < set->n; row++) {
        int64_t of_input = a->time[a->of_row[row]];
        memcpy(sha256[row], a->sha256[a->of_row[row]], sizeof sha256[row]);
        times[row] = of_input != PNB__NO_TIME ? of_input : now;
        const pnb__buf *image = &a->thumbnail[a->of_row[row]];
        thumbnails[row] = (pnb_store_thumbnail){image->data, image->size};
    }
    const pnb_store_batch batch = {.set = set,
                                   .sha256 = (const char(*)[65])sha256,
                                   .time = times,
                                   .tags = a->opts->tags.items,
                                   .n_tags = a->opts->tags.n,
                                   .thumbnails = thumbnails};
    PNB_TRY(pnb_store_add(a->store, &batch, &added, &a->app->err));
    count_added(a, &added);
done:
    pnb__free(thumbnails);
    pnb__free(sha256);
    pnb__free(times);
    return status;
}

static pnb_status add_lot(adding *a)
{
    pnb_encode_opts opts = pnb__encode_opts(a->app);
    const pnb__embed_source source = lot_source(a);
    pnb_encode_result result = {0};
    pnb_error why = PNB_ERROR_INIT;
    pnb_embeddings *set = NULL;
    pnb_status status = PNB_OK;
    if (a->n == 0)
        return PNB_OK;
    PNB_TRY(open_model(a));
    opts.batch_size = a->opts->batch_size;
    opts.exif = a->opts->exif;
    opts.skipped = pnb__encode_skipped;
    opts.skipped_user = a->app;
    status = pnb__embed_set(&a->encoder, &source, &opts, &set, &result, &why);
    if (status == PNB_OK)
        status = add_set(a, set);
    else if (status == PNB_NOT_FOUND)
        status = PNB_OK; /* not one of these could be read: each was named */
    else
        pnb__fail(&a->app->err, status, "%s", why.text);
done:
    for (size_t i = 0; i < a->n; i++)
        pnb__buf_reset(&a->thumbnail[i]);
    a->n = 0;
    pnb_embeddings_free(set);
    return status;
}

/* ---- gathering ---- */

static pnb_status skip_input(adding *a, size_t i, const char *why)
{
    char name[1200];
    pnb_status status = PNB_OK;
    if (a->all.name != NULL)
        status = a->all.name(a->all.user, i, name, sizeof name, &a->app->err);
    else
        snprintf(name, sizeof name, "input %zu", i);
    if (status == PNB_OK)
        pnb__skipped(a->app, name, why);
    return status;
}

/* Takes input i into the lot unless its content is there. */
static pnb_status gather(adding *a, size_t i)
{
    pnb_error why = PNB_ERROR_INIT;
    bool is_known = false;
    pnb_status status = a->all.content(a->all.user, i, a->sha256[a->n], &a->time[a->n], &why);
    if (status == PNB_NOMEM)
        return pnb__fail(&a->app->err, status, "%s", why.text);
    if (status != PNB_OK)
        return skip_input(a, i, why.text);
    status = pnb_store_has(a->store, a->sha256[a->n], &is_known, &a->app->err);
    if (is_known)
        a->done.n_known++;
    else if (status == PNB_OK)
        a->input[a->n++] = i;
    return status;
}

static pnb_status add_inputs(adding *a)
{
    size_t most = PNB_MIN(a->opts->save_every, PNB_MAX(a->all.n, (size_t)1));
    pnb_error *err = &a->app->err;
    pnb__watching progress;
    pnb_watch watch = pnb__watch_begin(&progress, a->app, "adding", "inputs");
    pnb_status status;
    PNB_TRY(PNB_ALLOC(a->input, most, err));
    PNB_TRY(PNB_ALLOC(a->sha256, most, err));
    PNB_TRY(PNB_ALLOC(a->time, most, err));
    PNB_TRY(PNB_ALLOC_ZERO(a->thumbnail, most, err));
    PNB_TRY(PNB_ALLOC(a->of_row, most, err));
    for (size_t i = 0; i < a->all.n; i++) {
        PNB_TRY(gather(a, i));
        if (a->n == most)
            PNB_TRY(add_lot(a));
        if (!watch.step(watch.user, i + 1, a->all.n))
            PNB_TRY(pnb__fail(err, PNB_INTERRUPTED, "stopped; what was added stays"));
    }
    status = add_lot(a);
done:
    pnb__watch_end(&progress);
    pnb__free(a->input);
    pnb__free(a->sha256);
    pnb__free(a->time);
    pnb__free(a->thumbnail);
    pnb__free(a->of_row);
    a->input = a->of_row = NULL;
    a->sha256 = NULL;
    a->time = NULL;
    a->thumbnail = NULL;
    return status;
}

/* ---- the three kinds ---- */

static pnb_status add_images(adding *a, const pnb__text_list *words)
{
    pnb__image_inputs *images = NULL;
    pnb_status status = pnb__image_inputs_open_with(&images, words->items, words->n, a->app->in,
                                                    &a->opts->dataset, &a->app->err);
    if (status != PNB_OK)
        return status;
    pnb__image_inputs_report(images, pnb__encode_skipped, a->app);
    a->all = pnb__image_inputs_source(images);
    status = add_inputs(a);
    pnb__image_inputs_free(images);
    return status;
}

static pnb_status add_texts(adding *a)
{
    pnb__text_inputs texts = {0};
    pnb_status status = pnb__text_inputs_read(a->app, &texts, &a->opts->texts, NULL,
                                              a->opts->dataset.csv_caption_key);
    if (status == PNB_OK) {
        a->is_text = true;
        a->texts = &texts;
        a->all = pnb__text_inputs_source(&texts);
        status = add_inputs(a);
    }
    pnb__text_inputs_reset(&texts);
    return status;
}

/* Rows first .. first + n of a mapped set, copied. */
static pnb_status take_rows(const pnb_embeddings *set, size_t first, size_t n, pnb_embeddings **out,
                            pnb_error *err)
{
    size_t *rows = NULL;
    pnb_status status = PNB_ALLOC(rows, n, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        rows[i] = first + i;
    if (status == PNB_OK)
        status = pnb_embeddings_select(out, set, rows, n, err);
    pnb__free(rows);
    return status;
}

enum { SET_ROWS = 32768 };

/* A set without names, a shard of another collection say, is not named by its row numbers: those of
 * the next one would take the place of its rows. */
static pnb_status load_ready(adding *a, pnb_embeddings **set)
{
    const pnb_embeddings_load_opts opts = {.allow_missing_ids = true, .map = true};
    const char *path = a->opts->set;
    if (pnb__ends_with(path, ".npy"))
        return pnb__set_map(set, path, a->app);
    pnb_status status = pnb_embeddings_load_with(set, path, &opts, &a->app->err);
    if (status == PNB_OK && (*set)->ids == NULL)
        pnb__say(a->app, "%s has no ids: its rows are named by their hashes", path);
    return status == PNB_OK ? pnb__set_note(a->app, path, *set) : status;
}

static pnb_status add_ready(adding *a)
{
    pnb_embeddings *set = NULL, *part = NULL;
    pnb_store_added added;
    pnb_status status;
    PNB_TRY(load_ready(a, &set));
    for (size_t first = 0; first < set->n; first += SET_ROWS) {
        PNB_TRY(
            take_rows(set, first, PNB_MIN((size_t)SET_ROWS, set->n - first), &part, &a->app->err));
        const pnb_store_batch batch = {
            .set = part, .tags = a->opts->tags.items, .n_tags = a->opts->tags.n};
        PNB_TRY(pnb_store_add(a->store, &batch, &added, &a->app->err));
        count_added(a, &added);
        pnb_embeddings_free(part);
        part = NULL;
    }
done:
    pnb_embeddings_free(part);
    pnb_embeddings_free(set);
    return status;
}

/* ---- the commands ---- */

static void put_added(const adding *a, pnb__result *r)
{
    pnb__result_text(r, "collection", "collection", a->opts->path);
    pnb__result_int(r, "n_added", "rows added", (int64_t)a->done.n_added);
    pnb__result_int(r, "n_known", "there already", (int64_t)a->done.n_known);
    pnb__result_int(r, "n_replaced", "of those added, in place of a row of the same id",
                    (int64_t)a->done.n_replaced);
    pnb__result_int(r, "n_skipped", "skipped", (int64_t)a->app->n_skipped);
}

static pnb_status begin(adding *a, pnb_store_about *about)
{
    pnb_error *err = &a->app->err;
    pnb_status status;
    PNB_TRY(pnb_store_open(&a->store, a->opts->path, err));
    PNB_TRY(pnb_store_begin(a->store, a->opts->wait_s, err));
    PNB_TRY(pnb_store_describe(a->store, about, err));
    a->model = a->opts->model != NULL ? a->opts->model : about->model_dir;
done:
    return status;
}

pnb_status pnb__collection_add(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_add_opts *o = args;
    adding a = {.app = app, .opts = o};
    pnb_store_about about;
    pnb_status status;
    if ((o->images.n > 0) + (o->texts.n > 0) + (o->set != NULL) != 1)
        return pnb__usage(app, "one of --images, --texts and --set is wanted");
    if (o->set != NULL && o->model != NULL)
        return pnb__usage(app, "--set brings embeddings: leave --model out");
    PNB_TRY(begin(&a, &about));
    status = o->set != NULL    ? add_ready(&a)
             : o->images.n > 0 ? add_images(&a, &o->images)
                               : add_texts(&a);
    if (status == PNB_OK)
        put_added(&a, r);
done:
    pnb__encoder_reset(&a.encoder);
    pnb_store_close(a.store);
    return status;
}

/* ---- watch ---- */

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Removes rows whose file is below one of the folders and is not there any more. */
static pnb_status remove_gone(adding *a, size_t *n_removed)
{
    const pnb__text_list *folders = &a->opts->images;
    int64_t after = 0;
    size_t n_page = 1;
    pnb_status status = PNB_OK;
    while (status == PNB_OK && n_page > 0) {
        pnb_store_rows rows = {0};
        PNB_TRY(pnb_store_list(a->store, NULL, after, 4096, &rows, &a->app->err));
        n_page = rows.n;
        for (size_t i = 0; i < rows.n && status == PNB_OK; i++) {
            const char *path = rows.items[i].path;
            bool is_ours = false;
            size_t n = 0;
            after = rows.items[i].number;
            for (size_t k = 0; path != NULL && k < folders->n; k++)
                is_ours = is_ours || is_below(path, folders->items[k]);
            if (is_ours && !pnb__path_is_file(path))
                status = pnb_store_remove(a->store, &rows.items[i].id, 1, &n, &a->app->err);
            *n_removed += n;
        }
        pnb_store_rows_reset(&rows);
    }
done:
    return status;
}

static bool pause_until_next(const adding *a)
{
    const struct timespec tick = {.tv_nsec = 20 * 1000 * 1000};
    double until = pnb__now_s() + a->opts->every_s;
    while (pnb__now_s() < until && !pnb__is_interrupted(a->app))
        nanosleep(&tick, NULL);
    return !pnb__is_interrupted(a->app);
}

/* Files of one look that have not changed since the one before are not opened again. */
typedef struct looked {
    uint64_t *stamps;
    size_t n, capacity;
} looked;

static int compare_stamps(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* The words of `found` whose stamp is new; all stamps are kept for the next look. */
static pnb_status find_changed(adding *a, const pnb__image_inputs *found, looked *before,
                               size_t *n_changed)
{
    const pnb__embed_source source = pnb__image_inputs_source(found);
    looked now = {0};
    pnb_status status =
        PNB_GROW(now.stamps, now.capacity, PNB_MAX(source.n, (size_t)1), &a->app->err);
    *n_changed = 0;
    for (size_t i = 0; status == PNB_OK && i < source.n; i++) {
        uint64_t stamp = source.stamp(source.user, i);
        now.stamps[now.n++] = stamp;
        *n_changed += before->n == 0 || bsearch(&stamp, before->stamps, before->n, sizeof stamp,
                                                compare_stamps) == NULL;
    }
    if (status != PNB_OK)
        return status;
    qsort(now.stamps, now.n, sizeof *now.stamps, compare_stamps);
    pnb__free(before->stamps);
    *before = now;
    return PNB_OK;
}

/* One look at the folders. An empty folder is nothing yet. */
static pnb_status look(adding *a, looked *before)
{
    const pnb__text_list *words = &a->opts->images;
    pnb__image_inputs *found = NULL;
    pnb_error why = PNB_ERROR_INIT;
    size_t n_changed = 0, n_added = a->done.n_added;
    pnb_status status =
        pnb__image_inputs_open_with(&found, words->items, words->n, NULL, &a->opts->dataset, &why);
    if (status == PNB_NOT_FOUND)
        return PNB_OK;
    if (status != PNB_OK)
        return pnb__fail(&a->app->err, status, "%s", why.text);
    PNB_TRY(find_changed(a, found, before, &n_changed));
    a->all = pnb__image_inputs_source(found);
    if (n_changed > 0)
        PNB_TRY(add_inputs(a));
    if (a->done.n_added > n_added)
        pnb__say(a->app, "%zu rows added", a->done.n_added - n_added);
done:
    pnb__image_inputs_free(found);
    return status;
}

pnb_status pnb__collection_watch(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_add_opts *o = args;
    adding a = {.app = app, .opts = o};
    pnb_store_about about;
    looked before = {0};
    size_t n_removed = 0;
    pnb_status status;
    PNB_TRY(begin(&a, &about));
    pnb_store_end(a.store); /* others may write between two looks */
    for (size_t round = 1;; round++) {
        PNB_TRY(pnb_store_begin(a.store, o->wait_s, &app->err));
        if (!o->keep) /* first: what was moved is known until its old row is gone */
            PNB_TRY(remove_gone(&a, &n_removed));
        PNB_TRY(look(&a, &before));
        pnb_store_end(a.store);
        if (round == o->n_rounds || !pause_until_next(&a))
            break;
    }
    put_added(&a, r);
    pnb__result_int(r, "n_removed", "rows removed, whose files are gone", (int64_t)n_removed);
done:
    pnb__free(before.stamps);
    pnb__encoder_reset(&a.encoder);
    pnb_store_close(a.store);
    return status;
}
