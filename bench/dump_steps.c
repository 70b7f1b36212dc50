/* Runs the first steps of a training and writes down what went into each and what came out.
 *
 *   dump_steps MODEL_DIR TRAIN_DATA OUT.safetensors [N_STEPS [BATCH [SEED [THREADS]]]]
 *
 * The steps are those of `penumbra train --model MODEL_DIR --train-data TRAIN_DATA --max-steps 600`
 * with the small recipe, same seed: they go through the trainer's own step. For step k = 0, 1, ...
 * the file holds what another implementation needs to repeat them from the weights in MODEL_DIR,
 *   step.<k>.pixels (B,3,H,W) F32      step.<k>.ids (B,T) I32      step.<k>.masked_ids (M,T) I32
 *   step.<k>.kept (P) I32, patches the masked pass keeps           step.<k>.lr () F64
 * and the results: step.<k>.loss, .grad_norm, .<name of a loss term>, () F64.
 * bench/peers/torch_train.py --replay compares. A batch is read twice, once here and once by the
 * step: the loader is put back in between, which the data room promises to be exact. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "penumbra/safetensors.h"
#include "train/contrastive/contrastive.h"

enum { N_SCHEDULE = 600, MAX_STEPS = 200, ARRAYS_PER_STEP = 7 + PNB_N_LOSS_TERMS };

typedef struct dump {
    pnb__trainer trainer;
    pnb__contrastive contrastive;
    pnb_train_opts opts;
    pnb_train_result result;
    pnb__run_opts run_opts;
    pnb__run_result run_result;
    pnb_array_view *arrays;
    size_t n_arrays;
    pnb__arena arena; /* names and data of the arrays */
} dump;

/* An array of the file with its own copy of `data`; false when out of memory. */
static bool add(dump *d, int64_t step, const char *what, pnb_array_view view, const void *data)
{
    char name[64];
    size_t n = pnb_dtype_size(view.dtype);
    for (int i = 0; i < view.n_dims; i++)
        n *= (size_t)view.shape[i];
    snprintf(name, sizeof name, "step.%lld.%s", (long long)step, what);
    view.name = pnb__arena_strdup(&d->arena, name);
    view.data = pnb__arena_alloc(&d->arena, n);
    view.n_bytes = n;
    if (view.name == NULL || view.data == NULL)
        return false;
    memcpy((void *)(uintptr_t)view.data, data, n);
    d->arrays[d->n_arrays++] = view;
    return true;
}

static bool add_number(dump *d, int64_t step, const char *what, double value)
{
    return add(d, step, what, (pnb_array_view){.dtype = PNB_F64}, &value);
}

static bool add_batch(dump *d, int64_t step, const pnb_batch *b)
{
    int64_t n = (int64_t)b->n;
    const pnb_array_view pixels = {
        .dtype = PNB_F32, .n_dims = 4, .shape = {n, 3, b->height, b->width}};
    const pnb_array_view ids = {.dtype = PNB_I32, .n_dims = 2, .shape = {n, b->context_length}};
    return add(d, step, "pixels", pixels, b->pixels) && add(d, step, "ids", ids, b->tokens);
}

/* The same draws as in the step: functions of (seed, step). */
static bool add_masks(dump *d, int64_t step, const pnb_batch *b)
{
    const pnb__contrastive *c = &d->contrastive;
    size_t n_patches = c->info->vision.n_patches, length = (size_t)b->context_length;
    size_t n_kept = pnb__mask_n_kept(n_patches, c->opts->mask_keep);
    size_t n_masked = PNB_MAX((size_t)((double)b->n * c->opts->drop_ratio), (size_t)1);
    uint32_t *scratch = pnb__arena_alloc(&d->arena, n_patches * sizeof *scratch);
    int32_t *kept = pnb__arena_alloc(&d->arena, n_kept * sizeof *kept);
    int32_t *masked = pnb__arena_alloc(&d->arena, n_masked * length * sizeof *masked);
    unsigned char *text_scratch = pnb__arena_alloc(&d->arena, length);
    if (scratch == NULL || kept == NULL || masked == NULL || text_scratch == NULL)
        return false;
    pnb__mask_patches(c->opts->seed, step, n_patches, n_kept, scratch, kept);
    const pnb__text_masker masker = pnb__contrastive_masker(c);
    pnb__mask_texts(&masker, (uint64_t)step, b->tokens, n_masked, length, text_scratch, masked);
    const pnb_array_view ids = {
        .dtype = PNB_I32, .n_dims = 2, .shape = {(int64_t)n_masked, (int64_t)length}};
    const pnb_array_view patches = {.dtype = PNB_I32, .n_dims = 1, .shape = {(int64_t)n_kept}};
    return add(d, step, "masked_ids", ids, masked) && add(d, step, "kept", patches, kept);
}

static bool add_results(dump *d, int64_t step, const pnb__step_values *v)
{
    bool fine = add_number(d, step, "lr", v->lr) && add_number(d, step, "loss", v->total) &&
                add_number(d, step, "grad_norm", v->grad_norm);
    for (size_t i = 0; fine && i < v->terms.n; i++)
        fine = add_number(d, step, v->terms.items[i].name, v->terms.items[i].value);
    return fine;
}

static pnb_status run_step(dump *d, pnb_error *err)
{
    pnb__trainer *t = &d->trainer;
    int64_t step = t->state.step;
    pnb_loader *loader = d->contrastive.loader;
    pnb_loader_position position = pnb_loader_get_position(loader);
    const pnb_batch *batch = NULL;
    pnb__step_values values = {0};
    pnb_status status;
    PNB_TRY(pnb_loader_next(loader, &batch, err));
    if (!add_batch(d, step, batch) || !add_masks(d, step, batch))
        return pnb__fail_nomem(err, 0);
    PNB_TRY(pnb_loader_set_position(loader, position, err));
    PNB_TRY(pnb__trainer_step(t, &values, err));
    PNB_TRY(pnb__trainer_update(t, &values, err));
    if (!add_results(d, step, &values))
        return pnb__fail_nomem(err, 0);
    printf("step %2lld  loss %.6f  gradient norm %.4f\n", (long long)step, values.total,
           values.grad_norm);
done:
    return status;
}

static int64_t argument(int argc, char **argv, int i, int64_t fallback)
{
    return i < argc ? strtoll(argv[i], NULL, 10) : fallback;
}

static pnb_status run(dump *d, char **argv, int64_t n_steps, const pnb_ctx *ctx, pnb_error *err)
{
    pnb_status status;
    d->run_opts = pnb__contrastive_run_opts(&d->opts);
    const pnb__objective objective =
        pnb__contrastive_objective(&d->contrastive, ctx, &d->opts, &d->result);
    pnb__trainer_init(&d->trainer, ctx, &d->run_opts, &objective, &d->run_result);
    PNB_TRY(pnb__trainer_setup(&d->trainer, NULL, err));
    for (int64_t i = 0; i < n_steps; i++)
        PNB_TRY(run_step(d, err));
    PNB_TRY(pnb_safetensors_write(argv[3], d->arrays, d->n_arrays, NULL, err));
done:
    pnb__trainer_reset(&d->trainer);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: dump_steps MODEL_DIR TRAIN_DATA OUT.safetensors [N_STEPS [BATCH "
                        "[SEED [THREADS]]]]\n");
        return 2;
    }
    dump d = {.opts = pnb_train_opts_default()};
    int64_t n_steps = PNB_MIN(PNB_MAX(argument(argc, argv, 4, 20), 1), (int64_t)MAX_STEPS);
    d.opts.model = argv[1];
    d.opts.train_data = argv[2];
    d.opts.max_steps = N_SCHEDULE;
    d.opts.batch_size = (size_t)argument(argc, argv, 5, 128);
    d.opts.seed = (uint64_t)argument(argc, argv, 6, 0);
    d.arrays = pnb__alloc_zero((size_t)n_steps * ARRAYS_PER_STEP, sizeof *d.arrays);
    pnb__arena_init(&d.arena, (size_t)1 << 20);
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    ctx_opts.n_threads = (int)argument(argc, argv, 7, 2);
    pnb_ctx *ctx = NULL;
    pnb_error err = {0};
    pnb_status status = pnb_ctx_create(&ctx, &ctx_opts, &err);
    if (status == PNB_OK && d.arrays == NULL)
        status = pnb__fail_nomem(&err, (size_t)n_steps * ARRAYS_PER_STEP * sizeof *d.arrays);
    if (status == PNB_OK)
        status = run(&d, argv, n_steps, ctx, &err);
    if (status != PNB_OK)
        fprintf(stderr, "dump_steps: %s\n", err.text);
    pnb_ctx_free(ctx);
    pnb__arena_free(&d.arena);
    pnb__free(d.arrays);
    return status == PNB_OK ? 0 : 1;
}
