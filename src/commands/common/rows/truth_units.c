/* Units of resampling from the truth.
 *
 * A picture with its captions, or all of a class where truth is by class; where some captions
 * belong to several pictures, a picture with those of it alone. */
#include "commands/common/rows/truth_units.h"

#include <stdio.h>

#include "base/base.h"

static size_t n_matches(const pnb_truth *truth, size_t i)
{
    return truth->offset[i + 1] - truth->offset[i];
}

static bool has_one_each(const pnb_truth *truth)
{
    for (size_t i = 0; i < truth->n_queries; i++)
        if (n_matches(truth, i) > 1)
            return false;
    return true;
}

/* Every row matches all of the other side that it is connected with, as within a class. */
static pnb_status is_of_blocks(const pnb_truth *truth, const int64_t *image_cluster,
                               const int64_t *text_cluster, bool *out, pnb_error *err)
{
    size_t n = truth->n_queries + truth->n_items;
    size_t *n_texts = pnb__alloc_zero(n, sizeof *n_texts);
    if (n_texts == NULL)
        return pnb__fail_nomem(err, n * sizeof *n_texts);
    for (size_t t = 0; t < truth->n_items; t++)
        n_texts[text_cluster[t]]++;
    *out = true;
    for (size_t i = 0; i < truth->n_queries; i++)
        if (n_matches(truth, i) > 0)
            *out = *out && n_matches(truth, i) == n_texts[image_cluster[i]];
    pnb__free(n_texts);
    return PNB_OK;
}

/* Where pictures share some captions and not others, what the truth connects may be everything. A
 * caption of one picture alone was sampled with it; one of several pictures is its own. */
static void by_image(const pnb_truth *backward, size_t n_images, int64_t *image_cluster,
                     int64_t *text_cluster)
{
    for (size_t i = 0; i < n_images; i++)
        image_cluster[i] = (int64_t)i;
    for (size_t t = 0; t < backward->n_queries; t++)
        text_cluster[t] = n_matches(backward, t) == 1 ? (int64_t)backward->item[backward->offset[t]]
                                                      : (int64_t)(n_images + t);
}

pnb_status pnb__truth_units(const pnb_truth *truth, const pnb_truth *backward,
                            int64_t *image_cluster, int64_t *text_cluster, char *unit,
                            size_t unit_bytes, pnb_error *err)
{
    bool one_image = has_one_each(backward), one_text = has_one_each(truth), blocks = false;
    size_t n_connected;
    pnb_status status = pnb_truth_clusters(truth, image_cluster, text_cluster, &n_connected, err);
    if (status == PNB_OK)
        status = is_of_blocks(truth, image_cluster, text_cluster, &blocks, err);
    if (status != PNB_OK)
        return status;
    if (!blocks)
        by_image(backward, truth->n_queries, image_cluster, text_cluster);
    snprintf(unit, unit_bytes, "%s",
             one_image && one_text ? "picture with its caption"
             : one_image           ? "picture with its captions"
             : one_text            ? "caption with its pictures"
             : blocks              ? "class of pictures and captions"
                                   : "picture with the captions of it alone");
    return PNB_OK;
}
