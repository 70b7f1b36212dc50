/* state.json of a checkpoint from strangers: reading ends with a state from 0 or with words. */
#include <stdint.h>
#include <stdlib.h>

#include "penumbra/dataset.h"
#include "tests/fuzz/folder.h"
#include "train/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"state.json", "t.jsonl"};
static const char table[] = "{\"image\": \"a.png\", \"caption\": \"one\"}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const only[] = {"state.json"};
    folder f, all;
    char path[160];
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    pnb_train_opts opts = pnb_train_opts_default();
    pnb__trainer t = {.opts = &opts};
    ctx_opts.n_threads = 1;
    if (!folder_make(&f, only, 1, data, size))
        return 0;
    all = f;
    all.names = names;
    all.n = PNB_COUNT(names);
    scratch_write(folder_path(&f, names[1], path), (const uint8_t *)table, sizeof table - 1);
    if (pnb_ctx_create(&ctx, &ctx_opts, &err) != PNB_OK ||
        pnb_dataset_open(&t.train, path, NULL, &err) != PNB_OK)
        abort();
    t.ctx = ctx;
    /* no optimiser lies beside it, so even a good state does not end well */
    if (pnb__checkpoint_read(&t, f.dir, &err) == PNB_OK || err.text[0] == '\0' || t.state.step < 0)
        abort();
    pnb_dataset_free(t.train);
    pnb_ctx_free(ctx);
    folder_remove(&all);
    return 0;
}
