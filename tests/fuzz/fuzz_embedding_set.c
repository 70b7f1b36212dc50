/* Embedding sets from strangers: arrays, ids, the page of facts beside them. What loads has as many
 * ids as rows, every text is UTF-8, and it can be written and read again. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/base.h"
#include "penumbra/embeddings.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"x.safetensors", "x.ids.jsonl", "x.npy", "x.json",
                                    "x_beta.npy"};

static void look(const pnb_embeddings *e)
{
    size_t sum = 0;
    for (size_t i = 0; i < e->n; i++) {
        const char *const all[] = {
            e->ids != NULL ? e->ids[i] : NULL, e->paths != NULL ? e->paths[i] : NULL,
            e->texts != NULL ? e->texts[i] : NULL, e->extras != NULL ? e->extras[i] : NULL};
        for (size_t j = 0; j < PNB_COUNT(all); j++)
            sum += all[j] != NULL ? strlen(all[j]) : 0;
        for (size_t j = 0; j < e->dim; j++)
            if (!isfinite(e->mean[i * e->dim + j]))
                abort();
    }
    if (sum == SIZE_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f;
    char path[160];
    if (!folder_make(&f, names, PNB_COUNT(names), data, size))
        return 0;
    for (int way = 0; way < 3; way++) {
        pnb_embeddings *e = NULL;
        pnb_error err = PNB_ERROR_INIT;
        pnb_embeddings_load_opts opts = pnb_embeddings_load_opts_default();
        opts.allow_missing_ids = true;
        pnb_status status =
            way == 0 ? pnb_embeddings_load(&e, folder_path(&f, "x.safetensors", path), &err)
            : way == 1
                ? pnb_embeddings_load_with(&e, folder_path(&f, "x.safetensors", path), &opts, &err)
                : pnb_embeddings_load_npy(&e, folder_path(&f, "x.npy", path), &err);
        REQUIRE_TOLD(status, err);
        if (status == PNB_OK)
            look(e);
        pnb_embeddings_free(e);
    }
    folder_remove(&f);
    return 0;
}
