/* penumbra average: the mean of the weights of several models.
 *
 * The mean itself is src/models/average_models.c; here are the folders: what they are called, that
 * nothing is overwritten, the files beside the weights. */
#include <string.h>

#include "base/base.h"
#include "commands/commands.h"
#include "commands/common/model_path.h"
#include "encode/model_files.h"
#include "penumbra/model.h"
#include "penumbra/tokenizer.h"
#include "program/result_end.h"
#include "tokenizer/tokenizer_compare.h"

typedef struct average_args {
    pnb__text_list dirs;
    const char *out;
    double alpha;
} average_args;

#define AT(field) PNB__FIELD(average_args, field)
static const pnb__option options[] = {
    PNB__ROW_REST("dirs", AT(dirs), "A B...",
                  "Model folders of one architecture, or hf-hub:ORG/NAME from the local cache",
                  .required = true),
    PNB__ROW_REAL(
        "alpha", AT(alpha), "SHARE",
        "Share of B of two models: 0 is A, 1 is B, below 0 and above 1 are beyond them on the "
        "same line; more than two have equal shares",
        PNB__RANGE(-10, 10), .fallback = "0.5"),
    PNB__ROW_FILE("out", AT(out), "DIR", "Folder to write; it must not hold a model", .letter = 'o',
                  .required = true, .writes = "/"),
};
#undef AT

static pnb_status check_free(const char *dir, pnb_error *err)
{
    static const char *const names[] = {"model.safetensors", "open_clip_model.safetensors"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *path = pnb__path_join(dir, names[i]);
        if (path == NULL)
            return pnb__fail_nomem(err, strlen(dir));
        bool taken = pnb__path_is_file(path);
        pnb__free(path);
        if (taken)
            return pnb__fail(err, PNB_EXISTS, "%s holds a model already; give another --out", dir);
    }
    return PNB_OK;
}

/* Two models by alpha, more of them by equal shares. */
static pnb_status make_shares(double **out, const average_args *a, pnb_error *err)
{
    size_t n = a->dirs.n;
    pnb_status status = PNB_ALLOC(*out, n + 2, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        (*out)[i] = n != 2 ? 1 / (double)n : i == 0 ? 1 - a->alpha : a->alpha;
    return status;
}

/* *out is NULL where the folder has none, or one that is not read here. */
static pnb_status load_tokenizer(pnb_tokenizer **out, const char *dir, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    *out = NULL;
    pnb_status status = pnb_tokenizer_load(out, dir, &why);
    if (status == PNB_OK || status == PNB_NOT_FOUND || status == PNB_UNSUPPORTED)
        return PNB_OK;
    return pnb__fail(err, status, "%s", why.text);
}

/* One of two has a tokenizer that is read here: whether their ids are the same words is not known,
 * and of the first model's files there may be none to carry. */
static void tell_lone(const pnb__app *app, const char *first, const char *next, bool first_has)
{
    pnb__warn(app,
              "%s has no tokenizer that is read here, and %s has one: whether their ids are the "
              "same words is not compared%s",
              first_has ? next : first, first_has ? first : next,
              first_has ? "" : ", and it is not carried, since the first model's files are");
}

/* The mean of two rows of a table of words is of use where both are of one word. The first model's
 * tokenizer goes along, and would be wrong for the others. */
static pnb_status check_tokenizers(pnb__app *app, char *const *dirs, size_t n)
{
    pnb_tokenizer *first = NULL, *next = NULL;
    char why[PNB__TOKENIZER_WHY] = "";
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(load_tokenizer(&first, dirs[0], err));
    for (size_t i = 1; i < n; i++) {
        PNB_TRY(load_tokenizer(&next, dirs[i], err));
        if (first != NULL && next != NULL)
            PNB_TRY(pnb__tokenizer_compare(first, next, why, err));
        if ((first != NULL) != (next != NULL))
            tell_lone(app, dirs[0], dirs[i], first != NULL);
        if (why[0] != '\0')
            PNB_TRY(pnb__fail(err, PNB_ARG,
                              "%s: its tokenizer is not that of the first model: %s; models are "
                              "averaged whose ids are the same words",
                              dirs[i], why));
        pnb_tokenizer_free(next);
        next = NULL;
    }
done:
    pnb_tokenizer_free(first);
    pnb_tokenizer_free(next);
    return status;
}

static pnb_status write_mean(pnb__app *app, const average_args *a, char *const *dirs,
                             const double *shares, size_t *n_files)
{
    pnb_model *mean = NULL;
    pnb_status status;
    pnb_error *err = &app->err;
    PNB_TRY(check_tokenizers(app, dirs, a->dirs.n));
    PNB_TRY(pnb_model_average(&mean, app->ctx, (const char *const *)dirs, shares, a->dirs.n, err));
    PNB_TRY(pnb_model_save(mean, a->out, err));
    status = pnb__model_files_copy(dirs[0], a->out, true, n_files, err);
done:
    pnb_model_free(mean);
    return status;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const average_args *a = args;
    double *shares = NULL;
    char **dirs = NULL;
    size_t n_files = 0;
    pnb_error *err = &app->err;
    pnb_status status;
    if (a->dirs.n < 2)
        return pnb__usage(app, "a mean is of two model folders and more");
    if (a->dirs.n > 2 && a->alpha != 0.5)
        return pnb__usage(app,
                          "--alpha is the share of the second of two models; %zu have equal "
                          "shares",
                          a->dirs.n);
    PNB_TRY(check_free(a->out, err));
    PNB_TRY(make_shares(&shares, a, err));
    PNB_TRY(PNB_ALLOC_ZERO(dirs, a->dirs.n, err));
    for (size_t i = 0; i < a->dirs.n; i++)
        PNB_TRY(pnb__model_path(app, a->dirs.items[i], &dirs[i], err));
    PNB_TRY(write_mean(app, a, dirs, shares, &n_files));
    pnb__result_text(r, "dir", "written", a->out);
    pnb__result_int(r, "n_models", "models", (int64_t)a->dirs.n);
    pnb__result_real(r, "first_share", "share of the first", shares[0], 4);
    pnb__result_int(r, "n_carried", "tokenizer and preprocessor files", (int64_t)n_files);
done:
    for (size_t i = 0; dirs != NULL && i < a->dirs.n; i++)
        pnb__free(dirs[i]);
    pnb__free(dirs);
    pnb__free(shares);
    return status;
}

const pnb__command pnb__cmd_average = {
    .name = "average",
    .summary = "write the mean of several models' weights",
    .about =
        "The mean of a pretrained model and of one fine-tuned from it often ranks better than "
        "either, and keeps what the first knew of other data (WiSE-FT): (1 - alpha) A + alpha B, "
        "number by number. More than two models have equal shares (a soup). The models must be of "
        "one architecture, with the same configuration in the same layout; penumbra convert writes "
        "others. They must have one tokenizer, too; a model without one beside others that have "
        "some is told. Tokenizer and preprocessor files are those of the first. During training, "
        "train --ema-decay and --swa-start keep means of their own.",
    .examples = "penumbra average start logs/tuned/checkpoints/latest --alpha 0.5 --out half\n"
                "penumbra average run1 run2 run3 --out soup",
    PNB__RUNS(options, average_args, run)};
