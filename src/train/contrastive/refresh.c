/* Statistics of batch norm for weights that no step has seen: those of a mean of weights (Izmailov
 * et al. 2018, section 3.2; torch.optim.swa_utils.update_bn).
 *
 * The picture tower runs forward over one epoch of the training data, augmented as in training, and
 * each running buffer becomes the plain mean of what the batches have: a batch moves a buffer of 0
 * to momentum * its statistic. A model without batch norm, or with one that stands still, is left
 * alone; who asks for this puts nothing back, for the run is over. */
#include <string.h>

#include "nn/residual.h"
#include "train/contrastive/contrastive.h"

/* All running buffers of the model, one behind the other. */
typedef struct buffers {
    pnb__param **params;
    size_t n, n_values;
    double *now, *before, *sum;
} buffers;

/* All zero is fine: what was never found has nothing. */
static void free_buffers(buffers *b)
{
    pnb__free(b->params);
    pnb__free(b->now);
    pnb__free(b->before);
    pnb__free(b->sum);
}

/* By torchvision's names, which those of this project are. */
static bool is_running(const pnb__param *p)
{
    return pnb__ends_with(p->name, ".running_mean") || pnb__ends_with(p->name, ".running_var");
}

/* In the order of the weight file. Doubles: the sum of ten thousand batches in f32 would lose the
 * last ones. */
static pnb_status find_buffers(buffers *b, const pnb__contrastive *c, pnb_error *err)
{
    size_t n = pnb__model_n_params(c->model);
    pnb_status status;
    PNB_TRY(PNB_ALLOC(b->params, n + 1, err));
    for (size_t i = 0; i < n; i++)
        if (is_running(pnb__model_param(c->model, i))) {
            b->params[b->n] = pnb__model_param(c->model, i);
            b->n_values += b->params[b->n++]->n;
        }
    PNB_TRY(PNB_ALLOC(b->now, b->n_values + 1, err));
    PNB_TRY(PNB_ALLOC(b->before, b->n_values + 1, err));
    PNB_TRY(PNB_ALLOC_ZERO(b->sum, b->n_values + 1, err));
done:
    return status;
}

/* All values to (writes) or from the model. */
static pnb_status move_buffers(const buffers *b, const pnb__kernels *k, double *values, bool writes,
                               pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t at = 0;
    for (size_t i = 0; i < b->n && status == PNB_OK; at += b->params[i++]->n)
        status = writes ? pnb__param_write(b->params[i], k, 0, b->params[i]->n, values + at, err)
                        : pnb__param_read(b->params[i], k, 0, b->params[i]->n, values + at, err);
    return status;
}

/* The picture tower alone, as a step runs it: batch norm moves where there could be gradients. */
static pnb_status build_tower(const pnb__contrastive *c, pnb__graph **g, pnb__tensor **pixels,
                              pnb_error *err)
{
    const pnb_tower_info *v = &c->info->vision;
    pnb_status status = pnb__graph_create(g, c->ctx, pnb__model_real(c->model), true, err);
    if (status != PNB_OK)
        return status;
    pnb__graph_set_checkpointing(*g, c->opts->grad_checkpointing);
    /* statistics of the tower as it was trained */
    pnb__graph_round_products(*g, c->opts->precision == PNB_TRAIN_AMP_BF16);
    *pixels = pnb__input(*g, PNB__REAL, 4,
                         (size_t[]){c->opts->batch_size, 3, v->image_height, v->image_width});
    const pnb__tower_in in = {.pixels = *pixels};
    pnb__dist d = pnb__model_build(c->model, PNB__IMAGE_SIDE, *g, &in, true);
    if (d.mean != NULL)
        pnb__keep(d.mean);
    return pnb__graph_plan(*g, NULL, err);
}

/* Every batch is whole: the loader is that of training. */
static pnb_status run_batch(pnb_loader *loader, pnb__graph *g, pnb__tensor *pixels, pnb_error *err)
{
    const pnb_batch *batch = NULL;
    pnb_status status = pnb_loader_next(loader, &batch, err);
    if (status != PNB_OK)
        return status;
    pnb__write_f32(pixels, batch->pixels);
    return pnb__graph_run(g, err);
}

/* sum += what one batch has: a buffer of 0 holds momentum times it. */
static pnb_status add_batch(buffers *b, const pnb__kernels *k, pnb_loader *loader, pnb__graph *g,
                            pnb__tensor *pixels, pnb_error *err)
{
    pnb_status status;
    memset(b->now, 0, b->n_values * sizeof *b->now);
    PNB_TRY(move_buffers(b, k, b->now, true, err));
    PNB_TRY(run_batch(loader, g, pixels, err));
    PNB_TRY(move_buffers(b, k, b->now, false, err));
    for (size_t i = 0; i < b->n_values; i++)
        b->sum[i] += b->now[i] / PNB__BATCHNORM_MOMENTUM;
done:
    return status;
}

/* The first batch tells whether the buffers move at all: a frozen tower's do not. */
static pnb_status average(buffers *b, const pnb__contrastive *c, pnb_loader *loader, pnb__graph *g,
                          pnb__tensor *pixels, pnb_error *err)
{
    int64_t n = c->steps_per_epoch * c->opts->accum_freq;
    const pnb_loader_position first = pnb_loader_get_position(loader);
    pnb_status status;
    PNB_TRY(move_buffers(b, &c->kernels, b->before, false, err));
    PNB_TRY(run_batch(loader, g, pixels, err));
    PNB_TRY(move_buffers(b, &c->kernels, b->now, false, err));
    if (memcmp(b->now, b->before, b->n_values * sizeof *b->now) == 0)
        goto done;
    PNB_TRY(pnb_loader_set_position(loader, first, err));
    for (int64_t i = 0; i < n; i++)
        PNB_TRY(add_batch(b, &c->kernels, loader, g, pixels, err));
    for (size_t i = 0; i < b->n_values; i++)
        b->sum[i] /= (double)n;
    status = move_buffers(b, &c->kernels, b->sum, true, err);
    for (size_t i = 0; i < b->n; i++) /* update_bn counts anew, too */
        b->params[i]->n_moves = n;
done:
    return status;
}

/* A graph of its own: those of the steps have captions and losses too, which no statistic needs. */
pnb_status pnb__contrastive_refresh(const pnb__contrastive *c, const pnb_loader_opts *opts,
                                    pnb_error *err)
{
    buffers b = {0};
    pnb_loader *loader = NULL;
    pnb__graph *g = NULL;
    pnb__tensor *pixels = NULL;
    pnb_status status;
    PNB_TRY(find_buffers(&b, c, err));
    if (b.n == 0)
        goto done;
    PNB_TRY(build_tower(c, &g, &pixels, err));
    PNB_TRY(pnb_loader_create(&loader, c->train, opts, err));
    status = average(&b, c, loader, g, pixels, err);
done:
    pnb_loader_free(loader);
    pnb__graph_free(g);
    free_buffers(&b);
    return status;
}
