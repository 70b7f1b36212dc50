/* Models of PCME's experiments: an objective with what a row of the table changes in it.
 *
 * Recipes are the small ones: what is published needs a pretrained ResNet and 60 epochs of COCO,
 * and its figures stand in the table anyway. */
#include "commands/reproduce/pcme_models.h"

#include "base/base.h"

typedef struct model {
    pnb_objective objective;
    const char *overrides;
    size_t n_samples;
    bool has_divergence;
} model;

#define MODEL(name, objective, overrides, samples, divergence)                                     \
    {PNB_OBJECTIVE_##objective, overrides, samples, divergence},
static const model models[] = {PNB__PCME_MODELS(MODEL)};
#undef MODEL

static pnb_train_opts options_of(const model *m)
{
    pnb_train_opts o = pnb_train_opts_of(m->objective, false);
    o.config_overrides = m->overrides;
    if (m->n_samples > 0)
        o.loss.n_samples = m->n_samples;
    if (!m->has_divergence)
        o.loss.weight[PNB_LOSS_PCME_KL] = 0;
    return o;
}

pnb_status pnb__pcme_model(pnb__reproduction *run, const char *stage, pnb__pcme_model_kind kind,
                           uint64_t seed, pnb__retrieval *sets)
{
    pnb_train_opts opts = options_of(&models[kind]);
    pnb__retrieval_opts load = pnb__retrieval_opts_default();
    pnb__pair_paths paths = {NULL, NULL, NULL};
    char *dir = NULL;
    pnb_status status;
    *sets = (pnb__retrieval){0};
    PNB_TRY(pnb__reproduce_train(run, stage, seed, &opts, &dir));
    PNB_TRY(pnb__reproduce_embed(run, stage, seed, dir, &paths));
    load.images = paths.images;
    load.texts = paths.texts;
    load.truth = paths.truth;
    load.read = run->pictures.read;
    load.measure = PNB_MEASURE_MEAN;
    status = pnb__retrieval_load(run->app, &load, sets);
done:
    pnb__pair_paths_reset(&paths);
    pnb__free(dir);
    return status;
}

void pnb__pcme_scenes(pnb_shapes_opts *opts)
{
    opts->blur_p = 0.5;
    opts->occlude_p = 0.3;
    opts->grey_p = 0.3;
    opts->seed = 1;
}
