/* Rows of a collection: pages of what is known of them, and their embeddings as a set.
 *
 * Pages go by numbers, which only grow, so that a row added or removed between two pages neither
 * repeats another one nor hides it. */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "sets/embeddings.h"
#include "store/store_internal.h"

/* What a list of rows holds: their texts. */
typedef struct row_list {
    pnb__arena texts;
    size_t capacity;
    pnb_store_rows *rows;
} row_list;

enum { TEXT_BLOCK = 1 << 14 };

pnb_store_filter pnb_store_filter_default(void)
{
    return (pnb_store_filter){.since = INT64_MIN,
                              .until = INT64_MAX,
                              .min_uncertainty = -(double)INFINITY,
                              .max_uncertainty = (double)INFINITY};
}

void pnb_store_rows_reset(pnb_store_rows *rows)
{
    if (rows == NULL)
        return;
    row_list *list = rows->memory;
    if (list != NULL)
        pnb__arena_free(&list->texts);
    pnb__free(list);
    pnb__free(rows->items);
    *rows = (pnb_store_rows){0};
}

static pnb_status list_init(pnb_store_rows *out, row_list **list, pnb_error *err)
{
    *out = (pnb_store_rows){0};
    *list = NULL;
    if (PNB_ALLOC_ZERO(*list, 1, err) != PNB_OK)
        return PNB_NOMEM;
    pnb__arena_init(&(*list)->texts, TEXT_BLOCK);
    (*list)->rows = out;
    out->memory = *list;
    return PNB_OK;
}

static bool keep_text(row_list *list, const char **text)
{
    if (*text == NULL)
        return true;
    *text = pnb__arena_strdup(&list->texts, *text);
    return *text != NULL;
}

static pnb_status keep_row(void *user, const pnb_store_row *row, pnb_error *err)
{
    row_list *list = user;
    pnb_store_row kept = *row;
    bool is_kept = keep_text(list, &kept.id) && keep_text(list, &kept.path) &&
                   keep_text(list, &kept.text) && keep_text(list, &kept.extra) &&
                   keep_text(list, &kept.tags);
    if (!is_kept)
        return pnb__fail_nomem(err, 0);
    pnb_store_rows *rows = list->rows;
    pnb_status status = PNB_GROW(rows->items, list->capacity, rows->n + 1, err);
    if (status == PNB_OK)
        rows->items[rows->n++] = kept;
    return status;
}

/* ---- lists ---- */

typedef struct number_list {
    int64_t *items;
    size_t n, capacity;
} number_list;

static pnb_status keep_number(void *user, int64_t number, pnb_error *err)
{
    number_list *list = user;
    pnb_status status = PNB_GROW(list->items, list->capacity, list->n + 1, err);
    if (status == PNB_OK)
        list->items[list->n++] = number;
    return status;
}

/* The rows of numbers, or of ids where numbers is NULL. Under the mutex. */
static pnb_status get_rows(pnb_store *store, const int64_t *numbers, const char *const *ids,
                           size_t n, pnb_store_rows *out, pnb_error *err)
{
    const pnb__keys keys = {ids, numbers, n};
    row_list *list;
    pnb_status status = list_init(out, &list, err);
    if (status == PNB_OK && n > 0)
        status = store->calls->rows(store->reader, &keys, keep_row, list, err);
    if (status != PNB_OK)
        pnb_store_rows_reset(out);
    return status;
}

static pnb_status list_page(pnb_store *store, const pnb__page *page, pnb_store_rows *out,
                            pnb_error *err)
{
    number_list numbers = {0};
    pnb_status status;
    *out = (pnb_store_rows){0};
    pthread_mutex_lock(&store->mutex);
    PNB_TRY(store->calls->numbers(store->reader, page, keep_number, &numbers, err));
    status = get_rows(store, numbers.items, NULL, numbers.n, out, err);
done:
    pthread_mutex_unlock(&store->mutex);
    pnb__free(numbers.items);
    return status;
}

pnb_status pnb_store_list(pnb_store *store, const pnb_store_filter *filter, int64_t after,
                          size_t limit, pnb_store_rows *out, pnb_error *err)
{
    const pnb__page page = {.filter = filter, .after = after, .limit = limit};
    return list_page(store, &page, out, err);
}

pnb_status pnb_store_first(pnb_store *store, const pnb_store_filter *filter, pnb_store_order order,
                           size_t limit, pnb_store_rows *out, pnb_error *err)
{
    const pnb__page page = {.filter = filter, .limit = limit, .order = order};
    return list_page(store, &page, out, err);
}

pnb_status pnb_store_get(pnb_store *store, const int64_t *numbers, size_t n, pnb_store_rows *out,
                         pnb_error *err)
{
    pthread_mutex_lock(&store->mutex);
    pnb_status status = get_rows(store, numbers, NULL, n, out, err);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

pnb_status pnb_store_get_ids(pnb_store *store, const char *const *ids, size_t n,
                             pnb_store_rows *out, pnb_error *err)
{
    pthread_mutex_lock(&store->mutex);
    pnb_status status = get_rows(store, NULL, ids, n, out, err);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

/* ---- thumbnails ---- */

pnb_status pnb_store_get_thumbnail(pnb_store *store, int64_t number, unsigned char **bytes,
                                   size_t *n_bytes, pnb_error *err)
{
    pnb__buf image = {0};
    bool has = false;
    pnb_status status = PNB_OK;
    *bytes = NULL;
    *n_bytes = 0;
    pthread_mutex_lock(&store->mutex);
    if (store->calls->thumbnail != NULL)
        status = store->calls->thumbnail(store->reader, number, &image, &has, err);
    pthread_mutex_unlock(&store->mutex);
    if (status == PNB_OK && !has)
        status = pnb__fail(err, PNB_NOT_FOUND, "row %lld has no thumbnail", (long long)number);
    if (status == PNB_OK)
        status = pnb__buf_check(&image, err);
    if (status != PNB_OK) {
        pnb__buf_reset(&image);
        return status;
    }
    *bytes = (unsigned char *)image.data;
    *n_bytes = image.size;
    return PNB_OK;
}

void pnb_store_thumbnail_free(unsigned char *bytes)
{
    pnb__free(bytes);
}

/* ---- embeddings ---- */

static pnb_status find_live(const pnb__snapshot *now, const pnb_store_row *row, pnb__shard **shard,
                            size_t *place, pnb_error *err)
{
    *shard = pnb__snapshot_find(now, row->number, place);
    for (size_t i = 0; *shard != NULL && i < now->n_shards; i++)
        if (now->shards[i] == *shard && now->live[i] != NULL && now->live[i][*place] == 0)
            *shard = NULL;
    if (*shard != NULL)
        return PNB_OK;
    return pnb__fail(err, PNB_NOT_FOUND, "row %s is not in the collection any more", row->id);
}

static void copy_numbers(pnb_embeddings *out, size_t to, const pnb_embeddings *from, size_t row)
{
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        if (!pnb__embedding_has_array(from, i))
            continue;
        size_t width = pnb__embedding_count(from, i) / from->n;
        memcpy(*pnb__embedding_field(out, i) + to * width,
               pnb__embedding_values(from, i) + row * width, width * sizeof(float));
    }
}

/* As the set had it that the row came in: a caption that stands among further fields is no text of
 * the row, which is called by its path. */
static pnb_status copy_names(pnb_embeddings *out, size_t to, const pnb_store_row *row,
                             pnb_error *err)
{
    bool is_text = row->extra == NULL || strstr(row->extra, "\"caption\":") == NULL;
    pnb_status status;
    PNB_TRY(pnb_embeddings_set_id(out, to, row->id, err));
    PNB_TRY(pnb_embeddings_set_path(out, to, row->path, err));
    PNB_TRY(pnb_embeddings_set_text(out, to, is_text ? row->text : NULL, err));
    status = pnb_embeddings_set_extra(out, to, row->extra, err);
done:
    return status;
}

pnb_status pnb_store_set(pnb_store *store, const pnb_store_rows *rows, pnb_embeddings **out,
                         pnb_error *err)
{
    pnb__snapshot *now = NULL;
    pnb_embeddings *set = NULL;
    pnb__shard *shard = NULL;
    size_t place = 0;
    pnb_status status;
    *out = NULL;
    PNB_TRY(pnb__snapshot_take(store, &now, err));
    for (size_t i = 0; i < rows->n; i++) {
        PNB_TRY(find_live(now, &rows->items[i], &shard, &place, err));
        if (set == NULL) {
            PNB_TRY(pnb_embeddings_create(&set, shard->set->family, rows->n, shard->set->dim, err));
            if (shard->set->has_epistemic)
                PNB_TRY(pnb_embeddings_add_epistemic(set, err));
            set->info = shard->set->info;
        }
        copy_numbers(set, i, shard->set, place);
        PNB_TRY(copy_names(set, i, &rows->items[i], err));
    }
    if (set == NULL)
        status = pnb__fail(err, PNB_ARG, "no rows are wanted: a set has at least one");
    *out = set;
    set = NULL;
done:
    if (status != PNB_OK)
        *out = NULL;
    pnb_embeddings_free(set);
    pnb__snapshot_drop(store, now);
    return status;
}
