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
#include "commands/common/row_clusters.h"

enum { MAX_GROUP_BYTES = 1 << 30 };

/* ---- reading ---- */

typedef struct group_file {
    const char *path;
    const pnb__named *ids; /* sorted */
    size_t n;
    char **name; /* [n] by row; NULL: not named yet */
} group_file;

/* The name alone: pnb__by_name also looks at the place. */
static int compare_names(const void *a, const void *b)
{
    return strcmp(((const pnb__named *)a)->name, ((const pnb__named *)b)->name);
}

static pnb_status take_line(const group_file *f, char *line, size_t number, pnb_error *err)
{
    char *tab = strchr(line, '\t');
    if (tab == NULL || tab[1] == '\0')
        return pnb__fail(err, PNB_FORMAT, "%s: line %zu is not id, tab, group", f->path, number);
    *tab = '\0';
    const pnb__named key = {line, 0};
    const pnb__named *found = bsearch(&key, f->ids, f->n, sizeof key, compare_names);
    if (found == NULL)
        return pnb__fail(err, PNB_NOT_FOUND, "%s: line %zu: no picture has the id \"%s\"", f->path,
                         number, line);
    if ((found > f->ids && strcmp(found[-1].name, line) == 0) ||
        (found + 1 < f->ids + f->n && strcmp(found[1].name, line) == 0))
        return pnb__fail(err, PNB_ARG, "%s: line %zu: several pictures have the id \"%s\"", f->path,
                         number, line);
    if (f->name[found->place] != NULL)
        return pnb__fail(err, PNB_ARG, "%s: line %zu: \"%s\" has a group already", f->path, number,
                         line);
    return pnb__copy_text(&f->name[found->place], tab + 1, err);
}

static pnb_status read_file(const pnb_embeddings *set, const char *path, char **name,
                            pnb_error *err)
{
    char *text = NULL;
    size_t size = 0;
    pnb__named *ids = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(ids, set->n, err));
    for (size_t i = 0; i < set->n; i++)
        ids[i] = (pnb__named){pnb__row_name(set, i), i};
    qsort(ids, set->n, sizeof *ids, pnb__by_name);
    PNB_TRY(pnb__read_file(path, MAX_GROUP_BYTES, &text, &size, err));
    const group_file file = {path, ids, set->n, name};
    pnb__line_reader lines = {.at = text, .end = text + size, .path = path};
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        if (line[0] != '\0' && line[0] != '#')
            PNB_TRY(take_line(&file, line, lines.number, err));
    }
done:
    pnb__free(text);
    pnb__free(ids);
    return status;
}

/* Numbers by name, in order of the names. */
static pnb_status number(pnb__image_groups *out, char *const *name, size_t n, pnb_error *err)
{
    int64_t *label = NULL;
    size_t n_names = 0;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(label, n, err));
    PNB_TRY(PNB_ALLOC(out->group, n, err));
    PNB_TRY(pnb__label_names(name, n, label, &n_names, err));
    for (size_t i = 0; i < n; i++)
        out->group[i] = (int32_t)label[i];
    for (size_t k = 0; k < n_names; k++)
        for (size_t i = 0; i < n; i++)
            if (label[i] == (int64_t)k) {
                PNB_TRY(pnb__texts_add(&out->names, name[i], strlen(name[i]), err));
                break;
            }
done:
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
        PNB_TRY(read_file(set, path, name, err));
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
