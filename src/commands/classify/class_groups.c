/* Groups of pictures (regions, incomes, skin tones), from a file or a field of the rows, and
 * accuracy by them.
 *
 * Names get numbers in order of the names. A picture without a group counts in every other figure
 * and is told; the figures are those of class_scores.h. */
#include "commands/classify/class_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"
#include "commands/classify/class_inputs.h"
#include "commands/classify/id_file.h"
#include "commands/common/rows/row_clusters.h"

/* Numbers by name, in order of the names. */
static pnb_status number(pnb__image_groups *out, char *const *name, size_t n, pnb_error *err)
{
    int64_t *label = NULL;
    size_t n_names = 0, *first = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(label, n, err));
    PNB_TRY(PNB_ALLOC(out->group, n, err));
    PNB_TRY(pnb__label_names(name, n, label, &n_names, err));
    PNB_TRY(PNB_ALLOC(first, n_names, err));
    for (size_t i = n; i-- > 0;) {
        out->group[i] = (int32_t)label[i];
        if (label[i] >= 0)
            first[label[i]] = i;
    }
    for (size_t k = 0; k < n_names; k++)
        PNB_TRY(pnb__texts_add(&out->names, name[first[k]], strlen(name[first[k]]), err));
done:
    pnb__free(first);
    pnb__free(label);
    return status;
}

pnb_status pnb__image_groups_read(pnb__image_groups *out, const pnb_embeddings *set,
                                  const char *path, const char *key, pnb_error *err)
{
    char **name = NULL;
    pnb_status status = PNB_OK;
    *out = (pnb__image_groups){0};
    PNB_TRY(PNB_ALLOC_ZERO(name, set->n, err));
    if (path != NULL)
        PNB_TRY(pnb__id_file_read(set, path, "group", name, err));
    else
        PNB_TRY(pnb__row_fields(set, "the pictures", key, name, err));
    PNB_TRY(number(out, name, set->n, err));
    if (out->names.n == 0)
        status = path != NULL ? pnb__fail(err, PNB_FORMAT, "%s: names no group", path)
                              : pnb__fail(err, PNB_NOT_FOUND,
                                          "no picture has the field \"%s\" in its ids file", key);
done:
    for (size_t i = 0; name != NULL && i < set->n; i++)
        pnb__free(name[i]);
    pnb__free(name);
    return status;
}

void pnb__image_groups_reset(pnb__image_groups *groups)
{
    pnb__texts_reset(&groups->names);
    pnb__free(groups->group);
    pnb__free(groups->acc1);
    pnb__free(groups->acc5);
    *groups = (pnb__image_groups){0};
}

/* ---- labelled pictures ---- */

pnb_status pnb__labelled_images_init(pnb__labelled_images *out, const pnb_predictions *p,
                                     const int32_t *label, const int32_t *group, pnb_error *err)
{
    *out = (pnb__labelled_images){0};
    if (PNB_ALLOC(out->label, p->n, err) != PNB_OK ||
        PNB_ALLOC(out->predicted, p->n, err) != PNB_OK ||
        PNB_ALLOC(out->right, p->n, err) != PNB_OK || PNB_ALLOC(out->right5, p->n, err) != PNB_OK ||
        (group != NULL && PNB_ALLOC(out->group, p->n, err) != PNB_OK))
        return PNB_NOMEM;
    for (size_t i = 0; i < p->n; i++) {
        if (label[i] < 0)
            continue;
        size_t to = out->n++;
        out->label[to] = label[i];
        out->predicted[to] = p->top[i * p->k];
        out->right[to] = p->top[i * p->k] == label[i];
        out->right5[to] = 0.0;
        for (size_t j = 0; j < PNB_MIN(p->k, (size_t)5); j++)
            out->right5[to] += p->top[i * p->k + j] == label[i];
        if (group != NULL)
            out->group[to] = group[i];
    }
    return PNB_OK;
}

void pnb__labelled_images_reset(pnb__labelled_images *rows)
{
    pnb__free(rows->label);
    pnb__free(rows->predicted);
    pnb__free(rows->group);
    pnb__free(rows->right);
    pnb__free(rows->right5);
    *rows = (pnb__labelled_images){0};
}

pnb_status pnb__image_groups_judge(pnb__image_groups *groups, const pnb__labelled_images *rows,
                                   size_t n_classes, const pnb_bootstrap_opts *opts, pnb_error *err)
{
    pnb_status status;
    size_t n = groups->names.n;
    PNB_TRY(PNB_ALLOC(groups->acc1, n, err));
    PNB_TRY(pnb_group_scores_compute(rows->right, rows->group, rows->n, n, opts, groups->acc1,
                                     &groups->all, err));
    groups->n_without = rows->n - groups->all.n;
    if (n_classes < 5)
        goto done;
    PNB_TRY(PNB_ALLOC(groups->acc5, n, err));
    status = pnb_group_scores_compute(rows->right5, rows->group, rows->n, n, opts, groups->acc5,
                                      &groups->all5, err);
done:
    return status;
}
