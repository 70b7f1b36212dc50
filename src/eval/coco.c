/* The COCO Caption table: 1K in five folds, 5K, CxC and ECCV Caption, both ways.
 *
 * All truths of a direction are judged in one pass over its scores. COCO 1K: folds are consecutive
 * blocks of the test captions with the pictures they belong to; a query ranks its own fold, and the
 * figure is the mean over the folds. ECCV Caption's figures are over its own queries only, and its
 * two directions are separate lists (Chun et al. 2022; CxC: Parekh et al. 2021). */
#include <math.h>

#include "base/base.h"
#include "penumbra/metrics.h"

static const size_t CUTOFFS[] = {1, 5, 10};
enum { N_CUTOFFS = 3, N_TASKS = 4 };
enum { TASK_5K, TASK_1K, TASK_CXC, TASK_ECCV };

/* ---- folds ---- */

pnb_status pnb_coco_folds(const pnb_truth *text_to_image, const size_t *order, size_t n_order,
                          int32_t *image_fold, int32_t *text_fold, pnb_error *err)
{
    size_t n_texts = text_to_image->n_queries, n = order == NULL ? n_texts : n_order;
    size_t size = n / PNB_COCO_FOLDS;
    if (size == 0)
        return pnb__fail(err, PNB_ARG, "%zu captions; 5 folds need at least 5", n);
    for (size_t i = 0; i < text_to_image->n_items; i++)
        image_fold[i] = -1;
    for (size_t t = 0; t < n_texts; t++)
        text_fold[t] = -1;
    for (size_t i = 0; i < size * PNB_COCO_FOLDS; i++) {
        size_t text = order == NULL ? i : order[i];
        int32_t fold = (int32_t)(i / size);
        if (text >= n_texts)
            return pnb__fail(err, PNB_ARG, "order[%zu] is caption %zu of %zu", i, text, n_texts);
        text_fold[text] = fold;
        for (size_t p = text_to_image->offset[text]; p < text_to_image->offset[text + 1]; p++) {
            int32_t *its = &image_fold[text_to_image->item[p]];
            if (*its >= 0 && *its != fold)
                return pnb__fail(err, PNB_ARG,
                                 "picture %zu has captions in folds %d and %d; captions of a "
                                 "picture must stand together",
                                 text_to_image->item[p], (int)*its, (int)fold);
            *its = fold;
        }
    }
    return PNB_OK;
}

/* ---- one direction ---- */

typedef struct direction {
    pnb_rank_task task[N_TASKS];
    pnb_ranks ranks[N_TASKS];
    int kind[N_TASKS]; /* TASK_ of each */
    size_t n;
} direction;

static void add_task(direction *d, int kind, const pnb_truth *truth, const int32_t *query_fold,
                     const int32_t *item_fold)
{
    if (truth == NULL)
        return;
    d->kind[d->n] = kind;
    d->task[d->n++] =
        (pnb_rank_task){.truth = truth, .query_fold = query_fold, .item_fold = item_fold};
}

static direction make_direction(const pnb_coco_truth *t, bool i2t)
{
    direction d = {.n = 0};
    const pnb_truth *original = i2t ? t->original_i2t : t->original_t2i;
    const int32_t *query_fold = i2t ? t->image_fold : t->text_fold;
    const int32_t *item_fold = i2t ? t->text_fold : t->image_fold;
    add_task(&d, TASK_5K, original, NULL, NULL);
    if (query_fold != NULL)
        add_task(&d, TASK_1K, original, query_fold, item_fold);
    add_task(&d, TASK_CXC, i2t ? t->cxc_i2t : t->cxc_t2i, NULL, NULL);
    add_task(&d, TASK_ECCV, i2t ? t->eccv_i2t : t->eccv_t2i, NULL, NULL);
    return d;
}

/* Mean over folds of the recall inside each. */
static void fold_recalls(const pnb_ranks *r, const int32_t *fold, double out[N_CUTOFFS])
{
    double n[PNB_COCO_FOLDS] = {0}, hits[PNB_COCO_FOLDS][N_CUTOFFS] = {{0}}, n_folds = 0.0;
    for (size_t q = 0; q < r->n_queries; q++) {
        if (fold[q] < 0 || fold[q] >= PNB_COCO_FOLDS || r->best_rank[q] == 0)
            continue;
        n[fold[q]] += 1.0;
        for (size_t k = 0; k < N_CUTOFFS; k++)
            hits[fold[q]][k] += (size_t)r->best_rank[q] <= CUTOFFS[k];
    }
    for (size_t f = 0; f < PNB_COCO_FOLDS; f++)
        n_folds += n[f] > 0.0;
    for (size_t k = 0; k < N_CUTOFFS; k++) {
        out[k] = n_folds > 0.0 ? 0.0 : (double)NAN;
        for (size_t f = 0; f < PNB_COCO_FOLDS; f++)
            out[k] += n[f] > 0.0 ? hits[f][k] / n[f] / n_folds : 0.0;
    }
}

static double *side_of(pnb_both_ways *b, bool i2t)
{
    return i2t ? &b->i2t : &b->t2i;
}

static pnb_status store(const direction *d, bool i2t, pnb_coco_figures *out, pnb_error *err)
{
    for (size_t t = 0; t < d->n; t++) {
        pnb_direction s;
        double recall[N_CUTOFFS];
        pnb_both_ways *target = d->kind[t] == TASK_5K    ? out->coco_5k_r
                                : d->kind[t] == TASK_1K  ? out->coco_1k_r
                                : d->kind[t] == TASK_CXC ? out->cxc_r
                                                         : out->eccv_r;
        pnb_status status = pnb_direction_summarise(&d->ranks[t], CUTOFFS, N_CUTOFFS, &s, err);
        if (status != PNB_OK)
            return status;
        if (d->kind[t] == TASK_1K)
            fold_recalls(&d->ranks[t], d->task[t].query_fold, recall);
        for (size_t k = 0; k < N_CUTOFFS; k++)
            *side_of(&target[k], i2t) = d->kind[t] == TASK_1K ? recall[k] : s.recall[k];
        if (d->kind[t] == TASK_ECCV) {
            *side_of(&out->eccv_map_at_r, i2t) = s.map_at_r;
            *side_of(&out->eccv_rprecision, i2t) = s.r_precision;
        }
    }
    return PNB_OK;
}

static pnb_coco_figures no_figures(void)
{
    const pnb_both_ways none = {(double)NAN, (double)NAN};
    pnb_coco_figures f = {.eccv_map_at_r = none, .eccv_rprecision = none};
    for (size_t k = 0; k < N_CUTOFFS; k++)
        f.coco_1k_r[k] = f.coco_5k_r[k] = f.cxc_r[k] = f.eccv_r[k] = none;
    return f;
}

static pnb_status check_truth(const pnb_coco_truth *t, pnb_error *err)
{
    if (t->original_i2t == NULL || t->original_t2i == NULL)
        return pnb__fail(err, PNB_ARG, "the original pairs of both directions are needed");
    if ((t->cxc_i2t == NULL) != (t->cxc_t2i == NULL) ||
        (t->eccv_i2t == NULL) != (t->eccv_t2i == NULL) ||
        (t->image_fold == NULL) != (t->text_fold == NULL))
        return pnb__fail(err, PNB_ARG, "a truth or the folds are given for one direction only");
    return PNB_OK;
}

/* Where scores come from: rows of a function, or two sets. */
typedef struct source {
    const pnb_coco_rows *rows;
    const pnb_gaussians *images, *texts;
    const pnb_search_opts *opts;
} source;

static pnb_status rank(const pnb_ctx *ctx, const source *s, direction *d, bool i2t, pnb_error *err)
{
    if (s->rows != NULL)
        return pnb_ranks_from_rows(ctx, i2t ? s->rows->i2t : s->rows->t2i, s->rows->user, d->task,
                                   d->n, d->ranks, err);
    pnb_search_opts o = s->opts == NULL ? pnb_search_opts_default() : *s->opts;
    o.reverse = i2t ? o.reverse : !o.reverse;
    return pnb_ranks_compute_tasks(ctx, i2t ? s->images : s->texts, i2t ? s->texts : s->images,
                                   d->task, d->n, &o, d->ranks, err);
}

static pnb_status compute(const pnb_ctx *ctx, const source *s, const pnb_coco_truth *truth,
                          pnb_coco_figures *out, pnb_error *err)
{
    pnb_coco_figures figures = no_figures();
    pnb_status status = check_truth(truth, err);
    for (int way = 0; status == PNB_OK && way < 2; way++) {
        direction d = make_direction(truth, way == 0);
        status = rank(ctx, s, &d, way == 0, err);
        if (status == PNB_OK)
            status = store(&d, way == 0, &figures, err);
        for (size_t t = 0; t < d.n; t++)
            pnb_ranks_reset(&d.ranks[t]);
    }
    if (status == PNB_OK)
        *out = figures;
    return status;
}

pnb_status pnb_coco_compute(const pnb_ctx *ctx, const pnb_gaussians *images,
                            const pnb_gaussians *texts, const pnb_coco_truth *truth,
                            const pnb_search_opts *opts, pnb_coco_figures *out, pnb_error *err)
{
    const source s = {.images = images, .texts = texts, .opts = opts};
    return compute(ctx, &s, truth, out, err);
}

pnb_status pnb_coco_from_rows(const pnb_ctx *ctx, const pnb_coco_rows *rows,
                              const pnb_coco_truth *truth, pnb_coco_figures *out, pnb_error *err)
{
    const source s = {.rows = rows};
    return compute(ctx, &s, truth, out, err);
}
