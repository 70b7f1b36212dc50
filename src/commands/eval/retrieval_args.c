/* Reads the options that eval retrieval, eval compare and report share.
 *
 * Values are turned into those of src/commands/eval/eval_retrieval.h and refused here, as wrong
 * usage, where they are none; whether files and sets fit is found out when they are read. */
#include "commands/eval/retrieval_args.h"
#include "sets/settle.h"

#include <string.h>

static pnb_status fill_cutoffs(pnb__app *app, const pnb__text_list *words,
                               pnb__retrieval_opts *opts)
{
    if (words->n > PNB_MAX_RECALLS)
        return pnb__usage(app, "--recall-k takes at most %d values", PNB_MAX_RECALLS);
    for (size_t i = 0; i < words->n; i++) {
        int64_t k = 0;
        if (!pnb__read_int(words->items[i], &k) || k < 1)
            return pnb__usage(app, "--recall-k %s: a whole number above 0 is wanted",
                              words->items[i]);
        opts->k[i] = (size_t)k;
        opts->n_k = words->n;
    }
    return PNB_OK;
}

pnb_status pnb__retrieval_args_read(pnb__app *app, const pnb__retrieval_args *a,
                                    pnb__retrieval_opts *opts)
{
    pnb_status status = pnb__measure_parse(&opts->measure, a->measure, &app->err);
    if (status == PNB_OK && strcmp(a->uncertainty, "auto") != 0)
        status = pnb_uncertainty_parse(&opts->uncertainty, a->uncertainty, &app->err);
    if (status == PNB_OK)
        status = pnb_truth_format_parse(&opts->read.format, a->truth_format, &app->err);
    if (status == PNB_OK)
        status = pnb_binning_parse(&opts->binning, a->binning, &app->err);
    if (status != PNB_OK)
        return status;
    opts->truth = a->truth;
    opts->read.split = a->split;
    opts->read.by_class = a->by_class;
    opts->level = a->level != PNB__INT_UNSET ? (int)a->level : -1;
    opts->n_bins = (size_t)a->bins;
    opts->bin_by_hit = strcmp(a->bin_by, "hit") == 0;
    opts->n_resamples = (size_t)a->bootstrap;
    opts->cluster = a->cluster;
    opts->eccv = a->eccv;
    opts->label_vectors = a->label_vectors;
    if (a->truth == NULL && a->split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    return fill_cutoffs(app, &a->recall_k, opts);
}

pnb__retrieval_files pnb__retrieval_args_files(const pnb__retrieval_args *a, const char *dataset)
{
    return (pnb__retrieval_files){.dataset = a->dataset != NULL ? a->dataset : dataset,
                                  .csv = a->csv,
                                  .markdown = a->markdown,
                                  .output = a->output};
}
