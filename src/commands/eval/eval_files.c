/* Writes the files that were asked for beside a retrieval result.
 *
 * eval retrieval, eval compare and report share it: csv and Markdown are eval_table.c's, the
 * JSON is the printed result under a name made of CLIP_benchmark's words. */
#include "commands/eval/eval_files.h"

#include "base/base.h"
#include "commands/common/set_use.h"
#include "program/output_name.h"

pnb_status pnb__retrieval_save_table(pnb__app *app, const pnb__table *table,
                                     const pnb__retrieval_files *files, const char *model,
                                     const char *pretrained, pnb__result *r)
{
    const pnb__output_words words = {files->dataset, pretrained, model, PNB__RETRIEVAL_LANGUAGE,
                                     PNB__RETRIEVAL_TASK};
    char *name = NULL;
    pnb_status status = PNB_OK;
    if (files->csv != NULL)
        PNB_TRY(pnb__table_save_csv(table, files->csv, &app->err));
    if (files->markdown != NULL)
        PNB_TRY(pnb__table_save_markdown(table, files->markdown, &app->err));
    if (files->output == NULL)
        goto done;
    PNB_TRY(pnb__output_name(&name, files->output, &words, &app->err));
    PNB_TRY(pnb__result_save(r, app, name));
    pnb__say(app, "wrote %s", name);
done:
    pnb__free(name);
    return status;
}

pnb_status pnb__retrieval_save(pnb__app *app, const pnb__retrieval *run,
                               const pnb__retrieval_opts *opts, const pnb__retrieval_files *files,
                               pnb__result *r)
{
    const pnb_embeddings_info *info = pnb__set_origin(run->images, run->texts);
    char pretrained[PNB__PRETRAINED_BYTES];
    const pnb__table_row row =
        pnb__table_row_of(run, info->model[0] != '\0' ? info->model : "model");
    const pnb__table table = {files->dataset, opts->k, opts->n_k, &row, 1, opts->n_resamples > 0};
    pnb__set_pretrained(info, pretrained);
    return pnb__retrieval_save_table(app, &table, files, info->model, pretrained, r);
}
