/* A sharded archive: {"weight_map": {array name: file name}}, and the arrays of its files together.
 *
 * Names are plain and lie beside the index: anything with a folder in it, hidden, or of another
 * kind is refused, so no index can lead a reader elsewhere. safetensors.c and checkpoint.c open the
 * files and say what each holds. */
#include "io/weights/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define MAX_SHARDS ((size_t)10000)

static bool is_shard_name(const char *name, const char *ending)
{
    return name[0] != '.' && strchr(name, '/') == NULL && strchr(name, '\\') == NULL &&
           pnb__ends_with(name, ending);
}

pnb_status pnb__shard_names(json_t *weight_map, const char *ending, const char **names,
                            size_t *n_names, const char *path, pnb_error *err)
{
    size_t n = 0, n_distinct = 0;
    for (void *it = json_object_iter(weight_map); it != NULL;
         it = json_object_iter_next(weight_map, it)) {
        const char *name = json_string_value(json_object_iter_value(it));
        if (name == NULL || !is_shard_name(name, ending))
            return pnb__fail(err, PNB_FORMAT,
                             "%s: weight_map puts \"%.100s\" in \"%.100s\"; wanted a plain "
                             "%s file name beside the index",
                             path, json_object_iter_key(it), name != NULL ? name : "(no string)",
                             ending);
        names[n++] = name;
    }
    if (n > 0)
        qsort(names, n, sizeof(*names), pnb__compare_texts);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            names[n_distinct++] = names[i];
    }
    if (n_distinct > MAX_SHARDS)
        return pnb__fail(err, PNB_LIMIT, "%s: %zu shards, at most %zu are accepted", path,
                         n_distinct, MAX_SHARDS);
    *n_names = n_distinct;
    return PNB_OK;
}

pnb_status pnb__shards_open(const char *const *names, size_t n, const char *path, pnb__arena *arena,
                            pnb__shard_open_fn open, void *user, pnb_error *err)
{
    char *dir = pnb__path_dir(path);
    pnb_status status = dir != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        char *at = pnb__path_join(dir, names[i]);
        const char *name = pnb__arena_strdup(arena, names[i]);
        if (at == NULL || name == NULL)
            status = pnb__fail_nomem(err, strlen(names[i]) + 1);
        else
            status = open(user, i, name, at, err);
        pnb__free(at);
    }
    pnb__free(dir);
    return status;
}

/* ---- the arrays of all shards ---- */

static int compare_names(const void *left, const void *right)
{
    const pnb_array_view *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

pnb_status pnb__archive_join(pnb__archive *a, pnb__shard_content_fn at, const void *user, size_t n,
                             const json_t *weight_map, pnb_error *err)
{
    size_t n_views = 0;
    for (size_t i = 0; i < n; i++)
        n_views += at(user, i).n;
    if (PNB_ALLOC(a->views, PNB_MAX(n_views, (size_t)1), err) != PNB_OK ||
        PNB_ALLOC(a->by_name, PNB_MAX(n_views, (size_t)1), err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const pnb__shard_content shard = at(user, i);
        for (size_t j = 0; j < shard.n; j++) {
            const char *place = json_string_value(json_object_get(weight_map, shard.views[j].name));
            if (weight_map == NULL || (place != NULL && strcmp(place, shard.name) == 0))
                a->views[a->n++] = shard.views[j];
        }
    }
    for (size_t i = 0; i < a->n; i++)
        a->by_name[i] = &a->views[i];
    if (a->n > 0)
        qsort(a->by_name, a->n, sizeof *a->by_name, compare_names);
    return PNB_OK;
}

pnb_status pnb__archive_check(const pnb__archive *a, json_t *weight_map, const char *path,
                              pnb_error *err)
{
    for (void *it = json_object_iter(weight_map); it != NULL;
         it = json_object_iter_next(weight_map, it))
        if (pnb__archive_find(a, json_object_iter_key(it)) == NULL)
            return pnb__fail(err, PNB_FORMAT, "%s: \"%.100s\" is not in its shard %.100s", path,
                             json_object_iter_key(it),
                             json_string_value(json_object_iter_value(it)));
    return PNB_OK;
}

const pnb_array_view *pnb__archive_find(const pnb__archive *a, const char *name)
{
    size_t low = 0, high = a->n;
    while (low < high && name != NULL) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, a->by_name[middle]->name);
        if (order == 0)
            return a->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void pnb__archive_reset(pnb__archive *a)
{
    pnb__free(a->views);
    pnb__free(a->by_name);
    *a = (pnb__archive){0};
}
