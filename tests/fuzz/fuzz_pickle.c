/* Any bytes as a pickle, without the checksums of an archive around it; a storage of zeros stands
 * behind every key, so that tensors are built and made contiguous too. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "io/weights/pickle.h"
#include "io/weights/torch_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives every storage the file names its promised bytes, up to 64 KiB. */
static size_t make_storages(const pnb__pk_value *named, pnb__torch_storage *out,
                            const unsigned char *zeros)
{
    size_t n = 0;
    for (uint32_t i = 0; named != NULL && i < named->u.list.n && n < 8; i++) {
        const pnb__pk_value *v = named->u.list.items[i];
        size_t size = v->detail < PNB_N_DTYPES ? pnb_dtype_size((pnb_dtype)v->detail) : 1;
        bool is_sorted =
            n == 0 || pnb__torch_compare_keys(out[n - 1].key, out[n - 1].n_key, v->u.storage.key,
                                              v->u.storage.n_key) < 0;
        if (v->u.storage.n_elements <= (int64_t)(65536 / size) && is_sorted)
            out[n++] = (pnb__torch_storage){.key = v->u.storage.key,
                                            .n_key = v->u.storage.n_key,
                                            .data = zeros,
                                            .n_bytes = (size_t)v->u.storage.n_elements * size};
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnb__arena arena;
    pnb__pk_budget budget = pnb__pk_budget_for(size);
    pnb_error err = PNB_ERROR_INIT;
    pnb__pk_result result = {0};
    pnb__torch_storage storages[8];
    pnb__torch_file file = {0};
    unsigned char *zeros = calloc(65536, 1);
    pnb__arena_init(&arena, 4096);
    pnb__pk_source source = {data, size, "fuzz", &arena, &budget, NULL};
    pnb_status status = pnb__pickle_load(&source, &result, &err);
    if (status == PNB_OK && zeros != NULL) {
        pnb__torch_job job = {.file = &file,
                              .where = "fuzz",
                              .arena = &arena,
                              .storages = storages,
                              .copy_left = (size_t)1 << 20,
                              .err = &err};
        job.n_storages = make_storages(result.storages, storages, zeros);
        status = pnb__torch_views(&job, result.root);
    }
    if (status != PNB_OK && (err.status == PNB_OK || err.text[0] == '\0'))
        abort();
    pnb__torch_close(&file);
    pnb__arena_free(&arena);
    free(zeros);
    return 0;
}
