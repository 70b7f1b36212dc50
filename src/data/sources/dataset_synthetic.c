/* A data set that is no file: pictures of random pixels and one caption, for measuring throughput
 * apart from disks and decoders (open_clip's --dataset-type synthetic). Sample i has the same
 * pixels each time, and no memory is needed for its record. */
#include <string.h>

#include "data/sources/dataset_internal.h"

enum { SIDE = 224, N_DEFAULT = 1024, PIXEL_SEED = 0x73796e74 };

static const char *const texts[] = {"a picture of random pixels"};
static const int levels[] = {-1};

pnb_status pnb__synthetic_open(pnb_dataset *ds, pnb_error *err)
{
    ds->n_entries = ds->opts.n_synthetic > 0 ? ds->opts.n_synthetic : N_DEFAULT;
    return pnb__dataset_add_source(ds, PNB_DATASET_SYNTHETIC, "synthetic", err);
}

void pnb__synthetic_get(pnb_sample *out)
{
    out->key = "synthetic";
    out->texts = texts;
    out->levels = levels;
    out->n_texts = PNB_COUNT(texts);
}

pnb_status pnb__synthetic_image(size_t i, pnb_image *out, pnb_error *err)
{
    pnb_status status = pnb_image_create(out, SIDE, SIDE, 3, err);
    uint32_t block[4];
    for (size_t at = 0; status == PNB_OK && at < (size_t)SIDE * SIDE * 3; at += sizeof block) {
        pnb__rng_block(PIXEL_SEED, i, at, block);
        memcpy(out->pixels + at, block, sizeof block);
    }
    return status;
}
