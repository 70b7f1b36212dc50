/* A sharded archive, whatever the format of its shards: which files an index names, the arrays of
 * all of them under one table of names. */
#ifndef PNB_IO_WEIGHTS_SHARDS_H
#define PNB_IO_WEIGHTS_SHARDS_H

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/checkpoint.h"
#include "penumbra/safetensors.h"

/* Distinct file names of a weight_map, sorted, in `names` (room for one per entry); each must be
 * plain and end in `ending`. The strings belong to the map. Errors  FORMAT, LIMIT */
pnb_status pnb__shard_names(json_t *weight_map, const char *ending, const char **names,
                            size_t *n_names, const char *path, pnb_error *err);

/* Opens the shards beside the index `path`, in order: `name` lives in `arena`, `at` is the whole
 * path. Errors  NOMEM, and those of `open` */
typedef pnb_status (*pnb__shard_open_fn)(void *user, size_t i, const char *name, const char *at,
                                         pnb_error *err);
pnb_status pnb__shards_open(const char *const *names, size_t n, const char *path, pnb__arena *arena,
                            pnb__shard_open_fn open, void *user, pnb_error *err);

/* Whether the files of a checkpoint, one or all of its shards, are as they were when they were
 * opened. Errors  IO: the text names the one that was written to */
pnb_status pnb__checkpoint_check_files(const pnb_checkpoint *c, pnb_error *err);

/* What one shard holds; name NULL: a single file. */
typedef struct pnb__shard_content {
    const char *name;
    const pnb_array_view *views;
    size_t n;
} pnb__shard_content;

/* The arrays of all shards in their order, and by name. */
typedef struct pnb__archive {
    pnb_array_view *views;
    const pnb_array_view **by_name; /* sorted */
    size_t n;
} pnb__archive;

/* All arrays, or with an index those that it places in the shard they are in. `at(user, i)` is what
 * shard i of n holds. Give back with pnb__archive_reset, after a failure too. Errors  NOMEM */
typedef pnb__shard_content (*pnb__shard_content_fn)(const void *user, size_t i);
pnb_status pnb__archive_join(pnb__archive *a, pnb__shard_content_fn at, const void *user, size_t n,
                             const json_t *weight_map, pnb_error *err);
/* Every array of the index must be where it says. Errors  FORMAT */
pnb_status pnb__archive_check(const pnb__archive *a, json_t *weight_map, const char *path,
                              pnb_error *err);
const pnb_array_view *pnb__archive_find(const pnb__archive *a, const char *name); /* or NULL */
void pnb__archive_reset(pnb__archive *a);

#endif
