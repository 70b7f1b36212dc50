/* The index of a checkpoint in shards, and a shard, from strangers: what opens has tensors that are
 * found by their names and can be read to the last byte. */
#include <stdint.h>
#include <stdlib.h>

#include "base/base.h"
#include "penumbra/checkpoint.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"model.safetensors.index.json", "a.safetensors",
                                    "pytorch_model.bin.index.json", "a.bin"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder f;
    char path[160];
    unsigned sum = 0;
    if (!folder_make(&f, names, PNB_COUNT(names), data, size))
        return 0;
    for (size_t k = 0; k < PNB_COUNT(names); k += 2) {
        pnb_checkpoint *c = NULL;
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = pnb_checkpoint_open(&c, folder_path(&f, names[k], path), &err);
        REQUIRE_TOLD(status, err);
        for (size_t i = 0; status == PNB_OK && i < pnb_checkpoint_count(c); i++) {
            const pnb_array_view *a = pnb_checkpoint_at(c, i);
            if (pnb_checkpoint_find(c, a->name) != a)
                abort();
            for (size_t j = 0; j < a->n_bytes; j++)
                sum += ((const uint8_t *)a->data)[j];
        }
        pnb_checkpoint_free(c);
    }
    folder_remove(&f);
    return sum == UINT32_MAX ? 1 : 0;
}
