/* Stamps of samples, for jobs that are continued later.
 *
 * A sample is its name, its place in the shard or table it lies in, that file's stamp as it was
 * when the set was opened, and the stamps of its own files. */
#include "data/sources/stamp.h"

#include <string.h>

#include "data/sources/dataset_internal.h"

/* Adds the stamp of one of the sample's files to what there is. */
static uint64_t with_file(const pnb_dataset *ds, size_t path, uint64_t stamp)
{
    if (path == PNB__NO_TEXT)
        return stamp;
    uint64_t file = pnb__file_stamp(ds->texts.data + path);
    return pnb__hash_bytes(&file, sizeof file, stamp);
}

/* Lines of JSON name their picture inside. */
static uint64_t with_record(const pnb_dataset *ds, size_t i, uint64_t stamp)
{
    pnb_sample sample = {0};
    uint64_t file = 0;
    if (pnb_dataset_get(ds, i, &sample, NULL) == PNB_OK && sample.image_path != NULL)
        file = pnb__file_stamp(sample.image_path);
    pnb_sample_reset(&sample);
    return pnb__hash_bytes(&file, sizeof file, stamp);
}

uint64_t pnb__dataset_stamp(const pnb_dataset *ds, size_t i)
{
    if (ds->entries == NULL || i >= ds->n_entries) /* a synthetic set has no entries */
        return i;
    const pnb__entry *e = &ds->entries[i];
    const pnb__source *source = &ds->sources[e->source];
    const char *key = ds->texts.data + e->key;
    const uint64_t place[2] = {source->stamp, source->table != NULL ? e->row : e->image.offset};
    uint64_t stamp = pnb__hash_bytes(key, strlen(key), pnb__hash_bytes(place, sizeof place, 0));
    stamp = with_file(ds, e->image_path, stamp);
    stamp = with_file(ds, e->json_path, stamp);
    stamp = with_file(ds, e->txt_path, stamp);
    return source->kind == PNB_DATASET_JSONL ? with_record(ds, i, stamp) : stamp;
}
