/* Models of ProLIP's experiments on the towers that the training options name.
 *
 * Terms that are left out have weight 0, and without the masked terms there is no masked pass, so
 * that a step costs what its loss needs. */
#include "commands/reproduce/prolip_models.h"

#include "base/base.h"

void pnb__prolip_terms(pnb_train_opts *o, bool has_pairs, bool has_masked)
{
    if (!has_pairs)
        o->loss.weight[PNB_LOSS_INCLUSION] = 0;
    if (!has_masked)
        o->drop_ratio = o->loss.weight[PNB_LOSS_IMG_INCLUSION] =
            o->loss.weight[PNB_LOSS_TXT_INCLUSION] = 0;
}

pnb_status pnb__prolip_model(pnb__reproduction *run, const char *stage, uint64_t seed,
                             pnb_train_opts *opts, pnb_measure measure, pnb__retrieval *sets,
                             char **dir)
{
    pnb__retrieval_opts load = pnb__retrieval_opts_default();
    pnb__pair_paths paths = {NULL, NULL, NULL};
    pnb_status status;
    *sets = (pnb__retrieval){0};
    PNB_TRY(pnb__reproduce_train(run, stage, seed, opts, dir));
    PNB_TRY(pnb__reproduce_embed(run, stage, seed, *dir, &paths));
    load.images = paths.images;
    load.texts = paths.texts;
    load.truth = paths.truth;
    load.read = run->images.read;
    load.measure = measure;
    status = pnb__retrieval_run(run->app, &load, sets);
done:
    pnb__pair_paths_reset(&paths);
    return status;
}
