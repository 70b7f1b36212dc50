/* Figures of a traversal against the captions that are true of each picture.
 *
 * As the released code counts: P is the set of caption TEXTS met on the way (two captions with the
 * same text are one), precision = |P and G|/|P|, recall = share of the levels found in P, averaged
 * over pictures. R@1 asks the first caption alone, R@1[ROOT] the caption nearest to the root. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/order.h"
#include "penumbra/traversal.h"

/* Sorts and removes repeats; returns how many are left. */
static size_t distinct(int64_t *labels, size_t n)
{
    size_t kept = 0;
    qsort(labels, n, sizeof *labels, pnb__compare_int64);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || labels[kept - 1] != labels[i])
            labels[kept++] = labels[i];
    return kept;
}

static bool is_among(const int64_t *labels, size_t n, int64_t label)
{
    for (size_t i = 0; i < n; i++)
        if (labels[i] == label)
            return true;
    return false;
}

static pnb_status check_texts(const int64_t *text, size_t n, size_t n_texts, pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] < 0 || (size_t)text[i] >= n_texts)
            return pnb__fail(err, PNB_SHAPE,
                             "the traversal meets caption %lld, the truth names %zu captions",
                             (long long)text[i], n_texts);
    return PNB_OK;
}

static pnb_status check(const pnb_traversal *t, const pnb_traversal_truth *truth, pnb_error *err)
{
    if (t->n == 0 || truth->n_levels == 0)
        return pnb__fail(err, PNB_ARG, "%zu pictures and %zu levels; none may be 0", t->n,
                         truth->n_levels);
    if (t->n != truth->n_images)
        return pnb__fail(err, PNB_SHAPE, "the traversal has %zu pictures, the truth %zu", t->n,
                         truth->n_images);
    pnb_status status = check_texts(t->step, t->n * t->n_steps, truth->n_texts, err);
    if (status == PNB_OK)
        status = check_texts(t->start, t->n, truth->n_texts, err);
    if (status == PNB_OK)
        status = check_texts(t->root, t->n, truth->n_texts, err);
    return status;
}

/* `met` has room for n_steps labels, `true_set` for n_levels. */
static pnb_traversal_row score_row(const pnb_traversal *t, const pnb_traversal_truth *truth,
                                   size_t i, int64_t *met, int64_t *true_set)
{
    const int64_t *own = truth->truth + i * truth->n_levels;
    int64_t start = truth->label[t->start[i]], root = truth->label[t->root[i]];
    pnb_traversal_row row = {0};
    size_t n_true = 0, found = 0, common = 0;
    for (size_t s = 0; s < t->n_steps; s++)
        met[s] = truth->label[t->step[i * t->n_steps + s]];
    row.n_distinct = distinct(met, t->n_steps);
    for (size_t l = 0; l < truth->n_levels; l++)
        found += is_among(met, row.n_distinct, own[l]);
    memcpy(true_set, own, truth->n_levels * sizeof *own);
    n_true = distinct(true_set, truth->n_levels);
    for (size_t l = 0; l < n_true; l++)
        common += is_among(met, row.n_distinct, true_set[l]);
    row.precision = (double)common / (double)row.n_distinct;
    row.recall = (double)found / (double)truth->n_levels;
    row.any = common > 0;
    row.start_true = is_among(own, truth->n_levels, start);
    row.root_true = is_among(own, truth->n_levels, root);
    row.root_top = own[0] == root;
    return row;
}

static void add_row(pnb_traversal_figures *f, const pnb_traversal_row *row)
{
    f->precision += row->precision;
    f->recall += row->recall;
    f->any_recall += row->any;
    f->recall_at_1 += row->start_true;
    f->root_recall_at_1 += row->root_true;
    f->root_is_level_0 += row->root_top;
    f->n_distinct += (double)row->n_distinct;
}

pnb_status pnb_traversal_score(const pnb_traversal *t, const pnb_traversal_truth *truth,
                               pnb_traversal_row *rows, pnb_traversal_figures *out, pnb_error *err)
{
    pnb_traversal_figures f = {.n = t->n};
    int64_t *labels = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(check(t, truth, err));
    PNB_TRY(PNB_ALLOC(labels, t->n_steps + truth->n_levels, err));
    for (size_t i = 0; i < t->n; i++) {
        pnb_traversal_row row = score_row(t, truth, i, labels, labels + t->n_steps);
        if (rows != NULL)
            rows[i] = row;
        add_row(&f, &row);
    }
    double *const means[] = {&f.precision,        &f.recall,          &f.any_recall, &f.recall_at_1,
                             &f.root_recall_at_1, &f.root_is_level_0, &f.n_distinct};
    for (size_t m = 0; m < PNB_COUNT(means); m++)
        *means[m] /= (double)t->n;
    *out = f;
done:
    pnb__free(labels);
    return status;
}
