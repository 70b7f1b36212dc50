/* The file names in an index of shards: {"weight_map": {array name: file name}}.
 *
 * Names are plain and lie beside the index: anything with a folder in it, hidden, or of another
 * kind is refused, so no index can lead a reader elsewhere. Shared by safetensors.c and
 * checkpoint.c, which open the files. */
#include "io/weights/shards.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SHARDS ((size_t)10000)

static bool is_shard_name(const char *name, const char *ending)
{
    return name[0] != '.' && strchr(name, '/') == NULL && strchr(name, '\\') == NULL &&
           pnb__ends_with(name, ending);
}

static int compare_strings(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
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
        qsort(names, n, sizeof(*names), compare_strings);
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
