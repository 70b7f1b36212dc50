/* state.json of a checkpoint from strangers: reading ends with a state from 0 or with words. */
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/folder.h"
#include "train/contrastive/contrastive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const only[] = {"state.json"};
    folder f;
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    pnb_train_opts opts = pnb_train_opts_default();
    const pnb__run_opts run_opts = pnb__contrastive_run_opts(&opts);
    pnb__objective objective = {.settings = pnb__contrastive_settings(&opts), .n_samples = 1};
    pnb__run_result result;
    pnb__trainer t;
    ctx_opts.n_threads = 1;
    if (!folder_make(&f, only, 1, data, size))
        return 0;
    if (pnb_ctx_create(&ctx, &ctx_opts, &err) != PNB_OK)
        abort();
    pnb__trainer_init(&t, ctx, &run_opts, &objective, &result);
    /* no optimiser lies beside it, so even a good state does not end well */
    if (pnb__checkpoint_read(&t, f.dir, &err) == PNB_OK || err.text[0] == '\0' || t.state.step < 0)
        abort();
    pnb_ctx_free(ctx);
    folder_remove(&f);
    return 0;
}
