/* What a classification can be refused for before anything is embedded: a mistyped file should not
 * cost the hour that comes before it is opened. Data sets and models say so themselves when they
 * are opened; combinations of options are the command's. */
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "commands/classify/classify.h"

typedef struct named_file {
    const char *option, *path;
} named_file;

static pnb_status check_read(const named_file *files, size_t n, pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (files[i].path != NULL && access(files[i].path, R_OK) != 0)
            return pnb__fail(err, PNB_NOT_FOUND, "%s: no such file, or not to be read (%s)",
                             files[i].path, files[i].option);
    return PNB_OK;
}

static pnb_status check_folder(const named_file *file, pnb_error *err)
{
    bool is_device = access(file->path, F_OK) == 0 && !pnb__path_is_file(file->path) &&
                     !pnb__path_is_dir(file->path);
    if (is_device) /* is written as it is: /dev/stdout, a pipe */
        return PNB_OK;
    char *dir = pnb__path_dir(file->path);
    pnb_status status = PNB_OK;
    if (dir == NULL)
        return pnb__fail_nomem(err, strlen(file->path));
    if (pnb__path_is_dir(file->path))
        status =
            pnb__fail(err, PNB_ARG, "%s: is a folder; %s wants a file", file->path, file->option);
    else if (!pnb__path_is_dir(dir))
        status = pnb__fail(err, PNB_NOT_FOUND, "%s: there is no folder %s to write it to (%s)",
                           file->path, dir, file->option);
    else if (access(dir, W_OK) != 0)
        status = pnb__fail_errno(err, "cannot write to the folder of", file->path);
    pnb__free(dir);
    return status;
}

static pnb_status check_written(const named_file *files, size_t n, pnb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        pnb_status status = files[i].path != NULL ? check_folder(&files[i], err) : PNB_OK;
        if (status != PNB_OK)
            return status;
        for (size_t j = 0; j < i && files[i].path != NULL; j++)
            if (files[j].path != NULL && strcmp(files[i].path, files[j].path) == 0)
                return pnb__fail(err, PNB_ARG, "%s: %s and %s would write the same file",
                                 files[i].path, files[j].option, files[i].option);
    }
    return PNB_OK;
}

/* The filter on one prompt says what it says of its value. */
static pnb_status check_filter(const pnb__classify_opts *o, pnb_error *err)
{
    const size_t offset[] = {0, 1};
    const double u = 0.0;
    double weight;
    return pnb_prompts_filter(o->filter, o->filter_value, offset, 1, &u, &weight, err);
}

pnb_status pnb__classify_check(const pnb__classify_opts *o, pnb_error *err)
{
    const named_file read[] = {{"--labels", o->labels},
                               {"--groups", o->groups},
                               {"--bprw-labels", o->bprw_labels},
                               {"--val-labels", o->val_labels},
                               {"--prompts", o->prompts},
                               {"--load-weights", o->load_weights},
                               {"--load-scaling", o->load_scaling},
                               {"--none-set", o->none_set}};
    const named_file written[] = {{"--output", o->output},
                                  {"--csv", o->csv},
                                  {"--markdown", o->markdown},
                                  {"--save-clf", o->save_clf},
                                  {"--save-prompts", o->save_prompts},
                                  {"--predictions", o->predictions},
                                  {"--confusion", o->confusion},
                                  {"--per-class", o->per_class},
                                  {"--weights", o->weights},
                                  {"--weights-html", o->weights_html},
                                  {"--html", o->html},
                                  {"--save-scaling", o->save_scaling}};
    pnb_status status = check_filter(o, err);
    for (size_t i = 0; i < o->load_clfs.n && status == PNB_OK; i++)
        status = check_read(&(named_file){"--load-clfs", o->load_clfs.items[i]}, 1, err);
    if (status != PNB_OK)
        return status;
    status = check_read(read, PNB_COUNT(read), err);
    return status == PNB_OK ? check_written(written, PNB_COUNT(written), err) : status;
}
