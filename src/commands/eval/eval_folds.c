/* The five folds of COCO 1K between two sets.
 *
 * ECCV Caption's coco_test_ids.npy orders the captions, and its code cuts them in fifths. A
 * Karpathy file alone does as well: its test split are 5,000 pictures, and evaluations since VSE++
 * (PCME and PCME++ too) take them in the order of the file, a thousand with their captions at a
 * time. Folds are cut only where the sets hold that split and nothing else, for a figure called
 * COCO 1K is compared with other people's. */
#include <string.h>

#include "base/base.h"
#include "commands/eval/eval_retrieval.h"
#include "penumbra/npy.h"
#include "truth/id_resolver.h"

static pnb_status alloc_folds(pnb__retrieval *run, pnb_error *err)
{
    if (PNB_ALLOC(run->image_fold, run->images->n, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_ALLOC(run->text_fold, run->texts->n, err);
}

/* ---- ECCV Caption ---- */

/* Rows of the captions in the order of the file; *n_found falls short when one is in no row. */
static pnb_status order_rows(const pnb__retrieval *run, const pnb_npy *file, size_t *order,
                             size_t *n_found, pnb_error *err)
{
    const pnb_truth_rows texts = pnb_truth_rows_of(run->texts);
    size_t n = pnb_array_size(&file->view);
    int64_t *id = pnb__alloc_array(n, sizeof *id);
    pnb__id_resolver names = {0};
    pnb_status status = id == NULL ? pnb__fail_nomem(err, n * sizeof *id) : PNB_OK;
    *n_found = 0;
    if (status == PNB_OK)
        status = pnb_array_to_i64(&file->view, id, err);
    if (status == PNB_OK)
        status = pnb__id_resolver_init(&names, PNB__NAMES_TEXTS, &texts, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        char name[32];
        int64_t row = -1;
        snprintf(name, sizeof name, "%lld", (long long)id[i]);
        status = pnb__id_resolver_find(&names, name, &row, err);
        if (row < 0)
            break;
        order[(*n_found)++] = (size_t)row;
    }
    pnb__id_resolver_reset(&names);
    pnb__free(id);
    return status;
}

/* Without the file, or with captions missing, it orders nothing, and that is said. */
static pnb_status eccv_folds(pnb__app *app, const pnb__retrieval_opts *opts,
                             const pnb_truth *eccv_t2i, pnb__retrieval *run)
{
    pnb_error *err = &app->err;
    char *path = pnb__path_join(opts->eccv, "coco_test_ids.npy");
    const char *else_what = run->karpathy_row != NULL ? "" : ", so COCO 1K is left out";
    pnb_npy file = {0};
    size_t *order = NULL, n = 0, n_ids;
    pnb_status status;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(opts->eccv));
    if (!pnb__path_is_file(path)) {
        pnb__warn(app, "%s: not there%s", path, else_what);
        pnb__free(path);
        return PNB_OK;
    }
    PNB_TRY(pnb_npy_load(&file, path, err));
    n_ids = pnb_array_size(&file.view);
    PNB_TRY(PNB_ALLOC(order, PNB_MAX(n_ids, 1), err));
    PNB_TRY(order_rows(run, &file, order, &n, err));
    if (n < n_ids) {
        pnb__warn(app, "%s: caption %zu of its order is in no row%s", path, n, else_what);
    } else {
        PNB_TRY(alloc_folds(run, err));
        status = pnb_coco_folds(eccv_t2i, order, n, run->image_fold, run->text_fold, err);
    }
done:
    pnb_npy_reset(&file);
    pnb__free(order);
    pnb__free(path);
    return status;
}

/* ---- a Karpathy file ---- */

static size_t n_without_image(const pnb_truth *text_to_image)
{
    size_t n = 0;
    for (size_t t = 0; t < text_to_image->n_queries; t++)
        n += text_to_image->offset[t] == text_to_image->offset[t + 1];
    return n;
}

/* Whether the sets are the split whose folds other people average over; says why not. */
static bool is_whole_split(pnb__app *app, const pnb__retrieval_opts *opts,
                           const pnb__retrieval *run)
{
    size_t n_wanted = opts->fold_images * PNB_COCO_FOLDS, n_there = 0;
    size_t n_strangers = n_without_image(run->backward);
    const char *split = opts->read.split != NULL ? opts->read.split : "test";
    for (size_t i = 0; i < run->n_karpathy; i++)
        n_there += run->karpathy_row[i] >= 0;
    if (run->n_karpathy != n_wanted)
        pnb__say(app,
                 "no COCO 1K: its 5 folds are %zu pictures each of a split of %zu, and %s (split "
                 "%s) has %zu",
                 opts->fold_images, n_wanted, opts->truth, split, run->n_karpathy);
    else if (n_there < n_wanted)
        pnb__say(app,
                 "no COCO 1K: its 5 folds are %zu pictures each of a split of %zu, and the sets "
                 "hold %zu of them",
                 opts->fold_images, n_wanted, n_there);
    else if (run->images->n > n_wanted || n_strangers > 0)
        pnb__say(app,
                 "no COCO 1K: the sets hold %zu pictures and %zu captions beside those of the "
                 "split; --split %s leaves them out",
                 run->images->n - n_wanted, n_strangers, split);
    else
        return true;
    return false;
}

static pnb_status karpathy_folds(pnb__app *app, const pnb__retrieval_opts *opts,
                                 pnb__retrieval *run)
{
    pnb_status status = PNB_OK;
    size_t *order = NULL;
    if (!is_whole_split(app, opts, run))
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(order, run->n_karpathy, &app->err));
    for (size_t i = 0; i < run->n_karpathy; i++)
        order[i] = (size_t)run->karpathy_row[i];
    PNB_TRY(alloc_folds(run, &app->err));
    status = pnb_coco_folds_by_image(run->truth, order, run->n_karpathy, run->image_fold,
                                     run->text_fold, &app->err);
done:
    pnb__free(order);
    return status;
}

pnb_status pnb__retrieval_folds(pnb__app *app, const pnb__retrieval_opts *opts,
                                const pnb_truth *eccv_t2i, pnb__retrieval *run)
{
    pnb_status status = PNB_OK;
    if (eccv_t2i != NULL)
        status = eccv_folds(app, opts, eccv_t2i, run);
    if (status == PNB_OK && run->image_fold == NULL && run->karpathy_row != NULL)
        status = karpathy_folds(app, opts, run);
    return status;
}
