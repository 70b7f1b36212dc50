/* Names of the shards of an index. */
#ifndef PNB_IO_WEIGHTS_SHARDS_H
#define PNB_IO_WEIGHTS_SHARDS_H

#include "base/base.h"
#include "io/json/json.h"

/* Distinct file names of a weight_map, sorted, in `names` (room for one per entry); each must be
 * plain and end in `ending`. The strings belong to the map. Errors  FORMAT, LIMIT */
pnb_status pnb__shard_names(json_t *weight_map, const char *ending, const char **names,
                            size_t *n_names, const char *path, pnb_error *err);

#endif
