/* Reads the options that eval retrieval, eval compare and report share.
 *
 * Values are turned into those of src/commands/eval/eval_retrieval.h and refused here, as wrong
 * usage, where they are none; whether files and sets fit is found out when they are read. */
#include "commands/eval/retrieval_args.h"
#include "sets/settle.h"

#include <string.h>

pnb__retrieval_args pnb__retrieval_args_default(void)
{
    return (pnb__retrieval_args){.job = pnb__retrieval_opts_default()};
}

pnb_status pnb__retrieval_truth_check(pnb__app *app, const pnb__retrieval_opts *job)
{
    if (job->truth == NULL && job->read.split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    if (job->class_key != NULL && (job->truth != NULL || job->eccv != NULL))
        return pnb__usage(app,
                          "--class-key says what belongs together in place of --truth and --eccv");
    return PNB_OK;
}

pnb_status pnb__retrieval_args_read(pnb__app *app, pnb__retrieval_args *a, const char *dataset)
{
    const pnb__text_list *words = &a->recall_k;
    if (a->files.dataset == NULL)
        a->files.dataset = dataset;
    pnb_status status = pnb__retrieval_truth_check(app, &a->job);
    if (status != PNB_OK)
        return status;
    if (words->n > PNB_MAX_RECALLS)
        return pnb__usage(app, "--recall-k takes at most %d values", PNB_MAX_RECALLS);
    for (size_t i = 0; i < words->n; i++) {
        int64_t k = 0;
        if (!pnb__read_int(words->items[i], &k) || k < 1)
            return pnb__usage(app, "--recall-k %s: a whole number above 0 is wanted",
                              words->items[i]);
        a->job.k[i] = (size_t)k;
        a->job.n_k = words->n;
    }
    return PNB_OK;
}
