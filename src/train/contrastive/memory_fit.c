/* How the pairs of a step are cut so that a training fits into the memory it may have (--memory).
 *
 * What a run takes is what lies in memory when its data and model are open, and beside it
 *     optimiser      its moments, and the mean of the weights where one is kept
 *     a step         graphs and arrays, planned by the code that makes them (pnb__step_plan)
 *     the loader     rooms of a batch, what a worker decodes, and pictures that it keeps decoded,
 *                    which get no more than what is left
 *     validation     its encoders, its rows, and the losses of a batch
 *     the machine    buffers of a matrix product and the stack of each thread
 * The pairs of a step are those that the options ask for. They can go through the towers in one
 * pass or in several equal ones, and a pass can keep what backward reads or compute it again
 * (checkpointing). Every way is planned, in operations as well, and of those that fit the cheapest
 * is taken: largest passes first, so that among equals the fewest win. What is chosen are options
 * that could have been given by hand, so a run has the bits of one to which they were. */
#include <stdlib.h>
#include <string.h>

#include "base/resident.h"
#include "io/json/json.h"
#include "peers/peers.h"
#include "train/contrastive/contrastive.h"

enum { LOOKS = 8 };                      /* pictures whose size is looked at */
#define MOST_CACHE ((size_t)512 << 20)   /* as the loader has it without a limit */
#define OF_A_THREAD ((size_t)1 << 20)    /* stack and what products pack, measured */
#define OF_THE_PROCESS ((size_t)2 << 20) /* what the heap keeps between what it gave */
#define GIB(bytes) ((double)(bytes) / 1073741824.0)

/* One way to cut a step. */
typedef struct way {
    size_t batch, n_passes;
    bool is_checkpointed;
    double bytes, flops;
} way;

/* ---- what there is beside a step ---- */

static size_t trained_numbers(const pnb__contrastive *c)
{
    size_t n = 0;
    for (size_t i = 0; i < (c->lora != NULL ? c->n_adapted : pnb__model_n_params(c->model)); i++) {
        const pnb__param *p = c->lora != NULL ? c->params[i] : pnb__model_param(c->model, i);
        n += p->trainable ? p->n : 0;
    }
    return n;
}

/* Shares of the optimiser's state lie on rank 0 as a whole while it writes a checkpoint. */
static double optimiser_bytes(const pnb__contrastive *c)
{
    pnb_optim_kind kind = c->opts->optim.kind;
    size_t copies = kind == PNB_OPTIM_SGD || kind == PNB_OPTIM_SGDP ? 1 : 2;
    copies += c->opts->ema_decay > 0 || c->opts->swa_start > 0;
    return (double)(copies * trained_numbers(c) * PNB__REAL_SIZE(pnb__model_real(c->model)));
}

/* Of a decoded picture, the mean of a few; 0 where none of them can be read, which the loader
 * names. */
static double image_bytes(const pnb__contrastive *c)
{
    size_t n = pnb_dataset_size(c->train), step = PNB_MAX(n / LOOKS, (size_t)1), n_read = 0;
    double bytes = 0;
    for (size_t i = 0; i < n && n_read < LOOKS; i += step) {
        pnb_image image = {0};
        if (pnb_dataset_image(c->train, i, &image, NULL) != PNB_OK)
            continue;
        bytes += (double)image.width * image.height * image.channels;
        pnb_image_free(&image);
        n_read++;
    }
    return n_read > 0 ? bytes / (double)n_read : 0;
}

/* Rooms of batches that lie ready. */
static size_t n_rooms(const pnb__contrastive *c)
{
    return c->opts->workers == 0 ? 1 : (size_t)pnb_loader_opts_default().n_prefetch + 1;
}

/* Rooms that are filled ahead, and of each thread that fills them a picture as it is read and on
 * its way to its size. */
static double loader_bytes(const pnb__contrastive *c, double image)
{
    const pnb_tower_info *v = &c->info->vision;
    size_t pixels = 3 * v->image_height * v->image_width;
    size_t tokens = c->info->text.context_length * (1 + (size_t)c->opts->n_negatives);
    double room = (double)(c->opts->batch_size * (pixels * sizeof(float) + tokens * 4));
    double val_room = (double)(c->val != NULL ? c->opts->batch_size * pixels * sizeof(float) : 0);
    return (double)n_rooms(c) * room + val_room + PNB_MAX(c->opts->workers, 1) * 3 * image;
}

/* Pictures that both loaders would keep decoded: of a short run those that it sees. */
static double cache_bytes(const pnb__contrastive *c, double image)
{
    const pnb_train_opts *o = c->opts;
    double n = (double)pnb_dataset_size(c->train), steps = (double)o->max_steps;
    double seen = (steps * o->accum_freq + (double)n_rooms(c)) * (double)o->batch_size;
    n = o->max_steps > 0 ? PNB_MIN(n, seen) : n;
    double val = c->val == NULL ? 0 : image * (double)pnb_dataset_size(c->val);
    return PNB_MIN(image * n, (double)MOST_CACHE) + PNB_MIN(val, (double)MOST_CACHE);
}

/* ---- ways ---- */

/* The options of a way, where everything that plans reads them. */
static void take_way(pnb__contrastive *c, const way *w)
{
    c->settled->batch_size = w->batch;
    c->settled->accum_freq = (int)w->n_passes;
    c->settled->grad_checkpointing = w->is_checkpointed;
}

static pnb_status plan_way(pnb__contrastive *c, double base, double image, way *w, pnb_error *err)
{
    pnb__step_need step;
    size_t validation = 0;
    take_way(c, w);
    pnb_status status = pnb__step_plan(&step, c, err);
    if (status == PNB_OK)
        status = pnb__evaluate_plan(c, &validation, err);
    if (status != PNB_OK)
        return status;
    w->bytes = base + (double)step.bytes + (double)validation + loader_bytes(c, image);
    w->flops = step.flops;
    return PNB_OK;
}

/* A batch norm sees the batch of a pass, as do a class of --batch-by-class and the first share of
 * rows that is masked: passes smaller than one masked row in their share would mask more. */
static bool is_possible(const pnb__contrastive *c, const way *w, size_t n_pairs, size_t fixed)
{
    const pnb_train_opts *o = c->opts;
    const pnb__family_calls *family = pnb__family_of(&c->model->config);
    bool whole = o->batch_by_class || (family->needs_whole_batch != NULL &&
                                       family->needs_whole_batch(&c->model->config));
    bool masks =
        o->loss.weight[PNB_LOSS_IMG_INCLUSION] > 0 || o->loss.weight[PNB_LOSS_TXT_INCLUSION] > 0;
    if (fixed > 0 && w->batch != fixed)
        return false;
    if (w->n_passes < c->exchange->n_ranks || (whole && w->n_passes > 1))
        return false;
    if (o->grad_cache_bf16 && w->n_passes == 1)
        return false;
    if (w->batch == n_pairs || w->batch == fixed || w->n_passes == c->exchange->n_ranks)
        return true;
    return !(masks && o->drop_ratio > 0 && (double)w->batch * o->drop_ratio < 1) &&
           !(o->mix_share > 0 && w->batch < 2);
}

/* The forward passes of the checkpoint that a run goes on from: other ones would draw other masks.
 * 0: none, or one that does not say. */
static size_t passes_of_checkpoint(const char *checkpoint)
{
    json_t *state = NULL;
    size_t batch = 0;
    char *path = checkpoint != NULL ? pnb__path_join(checkpoint, "state.json") : NULL;
    if (path != NULL && pnb__json_load_file(&state, path, 0, NULL) == PNB_OK) {
        const char *text =
            json_string_value(json_object_get(json_object_get(state, "settings"), "batch_size"));
        batch = text != NULL ? (size_t)strtoull(text, NULL, 10) : 0;
    }
    json_decref(state);
    pnb__free(path);
    return batch;
}

/* What was found, for the choice and for the message where there is none. */
typedef struct choice {
    way best, least; /* that fits; of the least memory. n_passes 0: none */
    double whole_flops;
} choice;

static pnb_status look_at_ways(pnb__contrastive *c, double base, double image, size_t fixed,
                               choice *out, pnb_error *err)
{
    const pnb_train_opts asked = *c->opts;
    size_t n = asked.batch_size * (size_t)asked.accum_freq;
    pnb_status status = PNB_OK;
    *out = (choice){0};
    fixed = fixed > 0 && n % fixed == 0 ? fixed : 0; /* else the checkpoint refuses these options */
    for (size_t passes = 1; passes <= n && status == PNB_OK; passes++)
        for (int again = asked.grad_checkpointing; again < 2 && n % passes == 0; again++) {
            way w = {n / passes, passes, again != 0, 0, 0};
            if (!is_possible(c, &w, n, fixed))
                continue;
            status = plan_way(c, base, image, &w, err);
            if (status != PNB_OK)
                break;
            if (out->whole_flops == 0 || w.flops < out->whole_flops)
                out->whole_flops = w.flops;
            if (out->least.n_passes == 0 || w.bytes < out->least.bytes)
                out->least = w;
            if (w.bytes <= c->opts->memory &&
                (out->best.n_passes == 0 || w.flops < out->best.flops))
                out->best = w;
        }
    *c->settled = asked;
    return status;
}

/* Rank 0's choice is that of all: each would find another one where it has other data. */
static pnb_status share_way(const pnb__contrastive *c, way *w, pnb_error *err)
{
    pnb__buf text = {0};
    int again = 0;
    if (c->exchange->ranks == NULL)
        return PNB_OK;
    pnb__buf_printf(&text, "%zu %zu %d %.17g %.17g", w->batch, w->n_passes, w->is_checkpointed,
                    w->bytes, w->flops);
    pnb_status status = pnb__buf_check(&text, err);
    if (status == PNB_OK)
        status = pnb__peers_share(c->exchange->ranks, &text, err);
    if (status == PNB_OK && sscanf(text.data, "%zu %zu %d %lg %lg", &w->batch, &w->n_passes, &again,
                                   &w->bytes, &w->flops) != 5)
        status =
            pnb__fail(err, PNB_FORMAT, "rank 0 said \"%s\" of the memory of a step", text.data);
    w->is_checkpointed = again != 0;
    pnb__buf_reset(&text);
    return status;
}

static pnb_status refuse(const pnb__contrastive *c, const choice *found, pnb_error *err)
{
    const way *w = &found->least;
    if (w->n_passes == 0)
        return pnb__fail(err, PNB_ARG,
                         "--memory: %zu pairs of a step cannot be cut for %zu processes",
                         c->opts->batch_size * (size_t)c->opts->accum_freq, c->exchange->n_ranks);
    return pnb__fail(
        err, PNB_ARG,
        "--memory %.3g GiB is too little: a step of %zu pairs takes %.4g GiB at least, "
        "in %zu pass%s of %zu%s. Give it that, or lower --batch-size, --workers or the "
        "model",
        GIB(c->opts->memory), w->batch * w->n_passes, GIB(w->bytes) + 0.0005, w->n_passes,
        w->n_passes == 1 ? "" : "es", w->batch, w->is_checkpointed ? " with checkpointing" : "");
}

/* ---- */

pnb_status pnb__contrastive_fit(pnb__contrastive *c, const char *checkpoint, pnb_error *err)
{
    pnb__resident lies;
    choice found;
    if (!(c->opts->memory > 0))
        return PNB_OK;
    if (!pnb__resident_bytes(&lies))
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "--memory: this system does not say what a process takes (/proc): give "
                         "--batch-size, --accum-freq and --grad-checkpointing by hand");
    double image = image_bytes(c);
    double base = (double)lies.now + optimiser_bytes(c) + (double)OF_THE_PROCESS +
                  (double)OF_A_THREAD * (pnb_ctx_n_threads(c->ctx) + c->opts->workers);
    pnb_status status = look_at_ways(c, base, image, passes_of_checkpoint(checkpoint), &found, err);
    if (status == PNB_OK && found.best.n_passes == 0)
        status = refuse(c, &found, err);
    status = pnb_peers_agree(c->exchange->ranks, status, err);
    if (status == PNB_OK)
        status = share_way(c, &found.best, err);
    if (status != PNB_OK)
        return status;
    take_way(c, &found.best);
    c->run->batch_size = found.best.batch;
    c->run->accum_freq = (int)found.best.n_passes;
    c->run->grad_checkpointing = found.best.is_checkpointed;
    double cache = PNB_MIN(cache_bytes(c, image), c->opts->memory - found.best.bytes);
    c->cache_bytes = (size_t)PNB_MAX(cache, 0) / (c->val != NULL ? 2 : 1);
    c->result->estimated_bytes = PNB_MAX(found.best.bytes + cache, (double)lies.peak);
    c->cost = found.best.flops / found.whole_flops;
    return PNB_OK;
}

pnb_status pnb__contrastive_announce_fit(const pnb__contrastive *c, pnb__trainer *t, pnb_error *err)
{
    const pnb_train_opts *o = c->opts;
    if (!(o->memory > 0))
        return PNB_OK;
    return pnb__record_info(
        t, err,
        "Memory: %d forward pass%s of %zu pairs%s, about %.3g of %.3g GiB, for %.2f times the "
        "operations of the cheapest way; by hand: --batch-size %zu --accum-freq %d%s",
        o->accum_freq, o->accum_freq == 1 ? "" : "es", o->batch_size,
        o->grad_checkpointing ? " with checkpointing" : "", GIB(c->result->estimated_bytes),
        GIB(o->memory), c->cost, o->batch_size, o->accum_freq / (int)c->exchange->n_ranks,
        o->grad_checkpointing ? " --grad-checkpointing" : "");
}

pnb_status pnb__contrastive_conclude_fit(const pnb__contrastive *c, pnb__trainer *t, pnb_error *err)
{
    pnb__resident lies;
    if (!(c->opts->memory > 0) || !pnb__resident_bytes(&lies))
        return PNB_OK;
    c->result->peak_bytes = (double)lies.peak;
    return pnb__record_info(t, err, "Memory: %.3g GiB at most, estimated %.3g GiB", GIB(lies.peak),
                            GIB(c->result->estimated_bytes));
}
