/* The trainer of src/train with rendered shapes as its data and nothing written but those.
 *
 * Reading pictures happens ahead on the loader's thread as in a real run, so a step measures what a
 * user sees. The folder lies in /tmp and is removed when the bench closes. */
#include "commands/bench/bench_train.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/names.h"
#include "penumbra/synth.h"
#include "penumbra/train.h"
#include "train/contrastive/contrastive.h"

typedef struct bench_trainer {
    pnb_train_opts opts;
    pnb_train_result result;
    pnb__run_opts run_opts;
    pnb__run_result run_result;
    pnb__contrastive contrastive;
    pnb__trainer trainer;
    bool is_open;
    char dir[64];
    char *data;
} bench_trainer;

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        unlink(path);
        return;
    }
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *child = pnb__path_join(path, e->d_name);
        if (child != NULL)
            remove_tree(child);
        pnb__free(child);
    }
    closedir(dir);
    rmdir(path);
}

static pnb_status make_data(bench_trainer *t, pnb__app *app, size_t batch)
{
    pnb_shapes_opts shapes = pnb_shapes_opts_default();
    snprintf(t->dir, sizeof t->dir, "/tmp/penumbra-bench-XXXXXX");
    if (mkdtemp(t->dir) == NULL) {
        t->dir[0] = '\0';
        return pnb__fail_errno(&app->err, "cannot make a temporary folder in", "/tmp");
    }
    shapes.n_scenes = PNB_MAX(4 * batch, (size_t)64);
    char *set = pnb__path_join(t->dir, "shapes");
    t->data = set != NULL ? pnb__path_join(set, "train") : NULL;
    pnb_status status = t->data == NULL ? pnb__fail_nomem(&app->err, 64)
                                        : pnb_synth_shapes(app->ctx, &shapes, set, NULL, &app->err);
    pnb__free(set);
    return status;
}

/* The one of the objective's paper where none is given. */
static const char *model_of(const pnb__bench_opts *opts)
{
    return opts->model != NULL ? opts->model : pnb_train_opts_of(opts->objective, true).model;
}

static pnb_status open_trainer(bench_trainer *t, pnb__app *app, const pnb__bench_opts *opts)
{
    pnb_status status = make_data(t, app, opts->batch_size);
    if (status != PNB_OK)
        return status;
    t->opts = pnb_train_opts_of(opts->objective, false);
    t->opts.train_data = t->data;
    t->opts.model = model_of(opts);
    if (opts->n_samples > 0)
        t->opts.loss.n_samples = (size_t)opts->n_samples;
    t->opts.batch_size = opts->batch_size;
    t->opts.seed = (uint64_t)app->common.seed;
    t->opts.max_steps = 1000000;
    t->opts.precision = opts->train_precision;
    t->run_opts = pnb__contrastive_run_opts(&t->opts);
    const pnb__objective objective =
        pnb__contrastive_objective(&t->contrastive, app->ctx, &t->opts, &t->result);
    pnb__trainer_init(&t->trainer, app->ctx, &t->run_opts, &objective, &t->run_result);
    t->is_open = true;
    return pnb__trainer_setup(&t->trainer, NULL, &app->err);
}

static pnb_status step(void *user, pnb_error *err)
{
    bench_trainer *t = user;
    pnb__step_values values = {0};
    pnb_status status = pnb__trainer_step(&t->trainer, &values, err);
    if (status == PNB_OK)
        status = pnb__trainer_update(&t->trainer, &values, err);
    return status;
}

/* Operations of a step: forward and backward count three forwards, masked rows included. */
static double step_flops(const bench_trainer *t)
{
    size_t n = t->opts.batch_size;
    const double *weight = t->opts.loss.weight;
    bool masks = weight[PNB_LOSS_IMG_INCLUSION] > 0 || weight[PNB_LOSS_TXT_INCLUSION] > 0;
    size_t n_masked = masks ? (size_t)((double)n * t->opts.drop_ratio) : 0;
    double image = pnb_model_flops(t->contrastive.model, false, n);
    double text = pnb_model_flops(t->contrastive.model, true, n + n_masked);
    double masked = n_masked > 0 ? pnb_model_flops(t->contrastive.model, false, n_masked) : 0;
    return 3 * (image + text + masked * t->opts.mask_keep);
}

static void free_trainer(bench_trainer *t)
{
    if (t->is_open)
        pnb__trainer_reset(&t->trainer);
    if (t->dir[0] != '\0')
        remove_tree(t->dir);
    pnb__free(t->data);
    pnb__free(t);
}

pnb_status pnb__bench_train(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__bench_opts *o = args;
    bench_trainer *t = pnb__alloc_zero(1, sizeof *t);
    if (t == NULL)
        return pnb__fail_nomem(&app->err, sizeof *t);
    pnb_status status = open_trainer(t, app, o);
    pnb__result_text(r, "what", "what", "training step");
    pnb__result_text(r, "objective", "objective",
                     pnb__name_at(PNB_NAMES(PNB_OBJECTIVE_LIST), (unsigned)o->objective, NULL));
    pnb__result_text(r, "model", "model", model_of(o));
    pnb__result_int(r, "batch", "batch", (int64_t)o->batch_size);
    pnb__result_text(
        r, "precision", "precision",
        pnb__name_at(PNB_NAMES(PNB_TRAIN_PRECISION_LIST), (unsigned)o->train_precision, NULL));
    if (t->opts.loss.weight[PNB_LOSS_PCME] > 0)
        pnb__result_int(r, "samples", "samples of a row", (int64_t)t->opts.loss.n_samples);
    if (status == PNB_OK) {
        pnb__bench_amount each = {o->batch_size, step_flops(t)};
        status = pnb__bench_run(app, o, step, t, &each, r);
    }
    free_trainer(t);
    return status;
}
