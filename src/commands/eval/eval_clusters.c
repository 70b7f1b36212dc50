/* What was sampled together: the unit that intervals and tests are resampled in.
 *
 * Without being told it is what the truth connects (truth_units.c). With a key it is a field of the
 * rows' ids file; a row without the field takes that of a row it belongs to, so that it need stand
 * on one side only. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"
#include "commands/common/rows/row_clusters.h"
#include "commands/common/rows/truth_units.h"
#include "commands/eval/eval_retrieval.h"

/* ---- a field of the ids file ---- */

/* Rows without a label take that of the first row they belong to. */
static void inherit(const pnb_truth *truth, int64_t *own, const int64_t *other)
{
    for (size_t i = 0; i < truth->n_queries; i++)
        for (size_t p = truth->offset[i]; own[i] < 0 && p < truth->offset[i + 1]; p++)
            own[i] = other[truth->item[p]];
}

static pnb_status check_labels(const pnb__retrieval_opts *opts, const char *path,
                               const pnb_truth *truth, const int64_t *label, pnb_error *err)
{
    for (size_t i = 0; i < truth->n_queries; i++)
        if (label[i] < 0 && truth->offset[i] < truth->offset[i + 1])
            return pnb__fail(err, PNB_NOT_FOUND,
                             "--cluster %s: row %zu of %s has no such field in its ids file, nor "
                             "has a row it belongs to",
                             opts->cluster, i, path);
    return PNB_OK;
}

static pnb_status by_field(const pnb__retrieval_opts *opts, pnb__retrieval *run, pnb_error *err)
{
    size_t n_images = run->images->n, n_texts = run->texts->n, n_labels;
    char **names = NULL;
    int64_t *label = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(names, n_images + n_texts, err));
    PNB_TRY(PNB_ALLOC(label, n_images + n_texts, err));
    PNB_TRY(pnb__row_fields(run->images, opts->images, opts->cluster, names, err));
    PNB_TRY(pnb__row_fields(run->texts, opts->texts, opts->cluster, names + n_images, err));
    PNB_TRY(pnb__label_names(names, n_images + n_texts, label, &n_labels, err));
    memcpy(run->image_cluster, label, n_images * sizeof *label);
    memcpy(run->text_cluster, label + n_images, n_texts * sizeof *label);
    inherit(run->truth, run->image_cluster, run->text_cluster);
    inherit(run->backward, run->text_cluster, run->image_cluster);
    PNB_TRY(check_labels(opts, opts->images, run->truth, run->image_cluster, err));
    status = check_labels(opts, opts->texts, run->backward, run->text_cluster, err);
done:
    for (size_t i = 0; names != NULL && i < n_images + n_texts; i++)
        pnb__free(names[i]);
    pnb__free(names);
    pnb__free(label);
    return status;
}

/* Different labels among rows with a pair. */
static pnb_status count_labels(const pnb_truth *truth, const int64_t *label, size_t *out,
                               pnb_error *err)
{
    int64_t *used = pnb__alloc_array(truth->n_queries, sizeof *used);
    size_t n = 0;
    if (used == NULL)
        return pnb__fail_nomem(err, truth->n_queries * sizeof *used);
    for (size_t i = 0; i < truth->n_queries; i++)
        if (truth->offset[i] < truth->offset[i + 1])
            used[n++] = label[i];
    qsort(used, n, sizeof *used, pnb__compare_int64);
    *out = n > 0;
    for (size_t i = 1; i < n; i++)
        *out += used[i] != used[i - 1];
    pnb__free(used);
    return PNB_OK;
}

static void warn_few(pnb__app *app, const pnb__retrieval *run)
{
    size_t n = PNB_MIN(run->n_clusters[0], run->n_clusters[1]);
    if (n < 2)
        pnb__warn(app,
                  "the truth connects all queries (one %s), so there are no intervals; --cluster "
                  "KEY names what was sampled together by a field of the ids files",
                  run->cluster_unit);
    else if (n < PNB__FEW_CLUSTERS)
        pnb__warn(app, "%zu clusters (%s): intervals from so few are rough", n, run->cluster_unit);
}

pnb_status pnb__retrieval_clusters(pnb__app *app, const pnb__retrieval_opts *opts,
                                   pnb__retrieval *run)
{
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(run->image_cluster, run->images->n, err));
    PNB_TRY(PNB_ALLOC(run->text_cluster, run->texts->n, err));
    if (opts->cluster != NULL) {
        PNB_TRY(by_field(opts, run, err));
        snprintf(run->cluster_unit, sizeof run->cluster_unit, "rows of one \"%s\"", opts->cluster);
    } else {
        PNB_TRY(pnb__truth_units(run->truth, run->backward, run->image_cluster, run->text_cluster,
                                 run->cluster_unit, sizeof run->cluster_unit, err));
    }
    PNB_TRY(count_labels(run->truth, run->image_cluster, &run->n_clusters[0], err));
    PNB_TRY(count_labels(run->backward, run->text_cluster, &run->n_clusters[1], err));
    if (opts->n_resamples > 0)
        warn_few(app, run);
done:
    return status;
}
