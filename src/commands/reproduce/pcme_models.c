/* Models of PCME's experiments: an objective with what a row of the table changes in it.
 *
 * Recipes are the small ones: what is published needs a pretrained ResNet and 60 epochs of COCO,
 * and its figures stand in the table anyway. */
#include "commands/reproduce/pcme_models.h"

#include <math.h>

#include "base/base.h"

/* Two numbers on a circle learn nothing with a and b of 5 or at the rate of more numbers: no pair
 * is told from another after 1,500 steps. */
#define TOY_RATE 2e-3

typedef struct recipe {
    pnb_objective objective;
    const char *overrides;
    size_t n_samples;
    bool has_divergence, by_class;
} recipe;

#define MODEL(name, objective, overrides, samples, divergence, by_class)                           \
    {PNB_OBJECTIVE_##objective, overrides, samples, divergence, by_class},
static const recipe recipes[] = {PNB__PCME_MODELS(MODEL)};
#undef MODEL

static pnb_train_opts options_of(const recipe *m)
{
    pnb_train_opts o = pnb_train_opts_of(m->objective, false);
    o.config_overrides = m->overrides;
    if (m->n_samples > 0)
        o.loss.n_samples = m->n_samples;
    if (!m->has_divergence)
        o.loss.weight[PNB_LOSS_PCME_KL] = 0;
    o.batch_by_class = m->by_class;
    if (m->by_class) {
        o.batch_size = 0;
        o.optim.lr = TOY_RATE;
        o.word_drop = 0.1; /* the unknown word is learned, as published */
    }
    return o;
}

pnb_status pnb__pcme_sets(pnb__reproduction *run, const char *stage, pnb__pcme_model_kind kind,
                          uint64_t seed, pnb__pair_paths *paths, char **dir)
{
    pnb_train_opts opts = options_of(&recipes[kind]);
    char *model = NULL;
    pnb_status status;
    PNB_TRY(pnb__reproduce_train(run, stage, seed, &opts, &model));
    PNB_TRY(pnb__reproduce_embed(run, stage, seed, model, paths));
    if (dir != NULL) {
        *dir = model;
        model = NULL;
    }
done:
    pnb__free(model);
    return status;
}

pnb_status pnb__pcme_model(pnb__reproduction *run, const char *stage, pnb__pcme_model_kind kind,
                           uint64_t seed, pnb__retrieval *sets, char **dir)
{
    pnb__retrieval_opts load = pnb__retrieval_opts_default();
    pnb__pair_paths paths = {NULL, NULL, NULL};
    *sets = (pnb__retrieval){0};
    pnb_status status = pnb__pcme_sets(run, stage, kind, seed, &paths, dir);
    if (status != PNB_OK)
        return status;
    load.images = paths.images;
    load.texts = paths.texts;
    load.truth = paths.truth;
    load.read = run->images.read;
    load.measure = PNB_MEASURE_MEAN;
    status = pnb__retrieval_load(run->app, &load, sets);
    pnb__pair_paths_reset(&paths);
    return status;
}

pnb_status pnb__pcme_rank(pnb__reproduction *run, const pnb__retrieval *sets, pnb_measure measure,
                          uint64_t seed, pnb_search_opts *search, pnb_retrieval *out)
{
    const pnb__match_words words = {.a = NAN, .b = NAN};
    *search = pnb_search_opts_default();
    search->measure = measure;
    search->measure_opts = pnb_measure_opts_default();
    search->measure_opts.seed = seed;
    pnb_status status = pnb__match_settle(run->app, &words, measure, &sets->images->info,
                                          &sets->texts->info, &search->measure_opts);
    const pnb_retrieval_job job = {
        .a = &sets->image_rows, .b = &sets->text_rows, .truth = sets->truth, .opts = search};
    if (status == PNB_OK)
        status = pnb_retrieval_compute(run->app->ctx, &job, out, NULL, NULL, &run->app->err);
    return status;
}

void pnb__pcme_scenes(pnb_shapes_opts *opts)
{
    opts->blur_p = 0.5;
    opts->occlude_p = 0.3;
    opts->grey_p = 0.3;
    opts->seed = 1;
}
