/* The COCO Caption table: 1K in five folds, 5K, CxC and ECCV Caption, both ways.
 *
 * All truths of a direction are judged in one pass over its scores. COCO 1K: folds are consecutive
 * blocks of the test captions with the pictures they belong to; a query ranks its own fold, and the
 * figure is the mean over the folds. ECCV Caption's figures are over its own queries only, and its
 * two directions are separate lists (Chun et al. 2022; CxC: Parekh et al. 2021). Intervals are
 * those of means over queries, a picture with its captions drawn together, in folds for COCO 1K
 * (means_bootstrap.c). */
#include <math.h>
#include <string.h>

#include "eval/resample/means_bootstrap.h"
#include "penumbra/bootstrap.h"
#include "penumbra/coco.h"
#include "penumbra/retrieval.h"

static const size_t CUTOFFS[] = {1, 5, 10};
enum { N_CUTOFFS = 3, N_COLUMNS = PNB__COCO_COLUMNS };

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

pnb_status pnb_coco_folds_by_image(const pnb_truth *image_to_text, const size_t *order,
                                   size_t n_order, int32_t *image_fold, int32_t *text_fold,
                                   pnb_error *err)
{
    const pnb_truth *truth = image_to_text;
    size_t size = n_order / PNB_COCO_FOLDS;
    if (size == 0)
        return pnb__fail(err, PNB_ARG, "%zu pictures; 5 folds need at least 5", n_order);
    for (size_t i = 0; i < truth->n_queries; i++)
        image_fold[i] = -1;
    for (size_t t = 0; t < truth->n_items; t++)
        text_fold[t] = -1;
    for (size_t i = 0; i < size * PNB_COCO_FOLDS; i++) {
        size_t image = order[i];
        int32_t fold = (int32_t)(i / size);
        if (image >= truth->n_queries)
            return pnb__fail(err, PNB_ARG, "order[%zu] is picture %zu of %zu", i, image,
                             truth->n_queries);
        image_fold[image] = fold;
        for (size_t p = truth->offset[image]; p < truth->offset[image + 1]; p++) {
            int32_t *its = &text_fold[truth->item[p]];
            if (*its >= 0 && *its != fold)
                return pnb__fail(err, PNB_ARG,
                                 "caption %zu belongs to pictures in folds %d and %d; a caption "
                                 "has one fold",
                                 truth->item[p], (int)*its, (int)fold);
            *its = fold;
        }
    }
    return PNB_OK;
}

/* ---- the truths of one direction ---- */

typedef struct direction {
    pnb_rank_task task[PNB_N_COCO_KINDS];
    pnb_coco_kind kind[PNB_N_COCO_KINDS]; /* of each */
    size_t n;
} direction;

static void add_task(direction *d, pnb_coco_kind kind, const pnb_truth *truth,
                     const int32_t *query_fold, const int32_t *item_fold)
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
    add_task(&d, PNB_COCO_5K, original, NULL, NULL);
    if (query_fold != NULL)
        add_task(&d, PNB_COCO_1K, original, query_fold, item_fold);
    add_task(&d, PNB_COCO_CXC, i2t ? t->cxc_i2t : t->cxc_t2i, NULL, NULL);
    add_task(&d, PNB_COCO_ECCV, i2t ? t->eccv_i2t : t->eccv_t2i, NULL, NULL);
    return d;
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

/* ---- ranking ---- */

/* Where scores come from: rows of a function, or two sets. */
typedef struct source {
    const pnb_coco_rows *rows;
    const pnb_gaussians *images, *texts;
    const pnb_search_opts *opts;
} source;

static pnb_status rank_tasks(const pnb_ctx *ctx, const source *s, const direction *d, bool i2t,
                             pnb_ranks *ranks, pnb_error *err)
{
    if (s->rows != NULL)
        return pnb_ranks_from_rows(ctx, i2t ? s->rows->i2t : s->rows->t2i, s->rows->user, d->task,
                                   d->n, ranks, err);
    pnb_search_opts o = s->opts == NULL ? pnb_search_opts_default() : *s->opts;
    o.reverse = i2t ? o.reverse : !o.reverse;
    return pnb_ranks_compute_tasks(ctx, i2t ? s->images : s->texts, i2t ? s->texts : s->images,
                                   d->task, d->n, &o, ranks, err);
}

static pnb_status rank_side(const pnb_ctx *ctx, const source *s, const pnb_coco_truth *truth,
                            bool i2t, pnb_coco_side *out, pnb_error *err)
{
    const direction d = make_direction(truth, i2t);
    const int32_t *fold = i2t ? truth->image_fold : truth->text_fold;
    size_t n = d.task[0].truth->n_queries;
    pnb_ranks ranks[PNB_N_COCO_KINDS];
    pnb_status status = rank_tasks(ctx, s, &d, i2t, ranks, err);
    if (status != PNB_OK)
        return status;
    for (size_t t = 0; t < d.n; t++)
        out->ranks[d.kind[t]] = ranks[t];
    if (fold == NULL)
        return PNB_OK;
    if (PNB_ALLOC(out->fold, n, err) != PNB_OK)
        return PNB_NOMEM;
    memcpy(out->fold, fold, n * sizeof *fold);
    return PNB_OK;
}

void pnb_coco_ranks_reset(pnb_coco_ranks *ranks)
{
    if (ranks == NULL)
        return;
    for (size_t way = 0; way < 2; way++) {
        for (size_t t = 0; t < PNB_N_COCO_KINDS; t++)
            pnb_ranks_reset(&ranks->side[way].ranks[t]);
        pnb__free(ranks->side[way].fold);
        pnb__free(ranks->side[way].cluster);
    }
    *ranks = (pnb_coco_ranks){0};
}

/* The original pairs say what was sampled together, also for truths that connect more. */
static pnb_status add_clusters(const pnb_truth *original, pnb_coco_ranks *ranks, pnb_error *err)
{
    size_t n_clusters;
    int64_t *image = pnb__alloc_array(original->n_queries, sizeof *image);
    int64_t *text = pnb__alloc_array(original->n_items, sizeof *text);
    ranks->side[0].cluster = image;
    ranks->side[1].cluster = text;
    if (image == NULL || text == NULL)
        return pnb__fail_nomem(err, (original->n_queries + original->n_items) * sizeof *image);
    return pnb_truth_clusters(original, image, text, &n_clusters, err);
}

static pnb_status rank(const pnb_ctx *ctx, const source *s, const pnb_coco_truth *truth,
                       pnb_coco_ranks *out, pnb_error *err)
{
    pnb_coco_ranks ranks = {0};
    pnb_status status = check_truth(truth, err);
    for (size_t way = 0; status == PNB_OK && way < 2; way++)
        status = rank_side(ctx, s, truth, way == 0, &ranks.side[way], err);
    if (status == PNB_OK)
        status = add_clusters(truth->original_i2t, &ranks, err);
    if (status != PNB_OK)
        pnb_coco_ranks_reset(&ranks);
    *out = ranks;
    return status;
}

pnb_status pnb_coco_rank(const pnb_ctx *ctx, const pnb_gaussians *images,
                         const pnb_gaussians *texts, const pnb_coco_truth *truth,
                         const pnb_search_opts *opts, pnb_coco_ranks *out, pnb_error *err)
{
    const source s = {.images = images, .texts = texts, .opts = opts};
    return rank(ctx, &s, truth, out, err);
}

pnb_status pnb_coco_rank_rows(const pnb_ctx *ctx, const pnb_coco_rows *rows,
                              const pnb_coco_truth *truth, pnb_coco_ranks *out, pnb_error *err)
{
    const source s = {.rows = rows};
    return rank(ctx, &s, truth, out, err);
}

/* ---- figures ---- */

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

static pnb_coco_figures no_figures(void)
{
    const pnb_both_ways none = {(double)NAN, (double)NAN};
    pnb_coco_figures f = {.eccv_map_at_r = none, .eccv_rprecision = none};
    for (size_t k = 0; k < N_CUTOFFS; k++)
        f.coco_1k_r[k] = f.coco_5k_r[k] = f.cxc_r[k] = f.eccv_r[k] = none;
    return f;
}

/* Where a truth's figures stand: recalls, then R-Precision and mAP@R if they are shown. */
static void slots_of(pnb_coco_figures *f, pnb_coco_kind kind, size_t way, double *out[N_COLUMNS])
{
    pnb_both_ways *recall = kind == PNB_COCO_1K    ? f->coco_1k_r
                            : kind == PNB_COCO_5K  ? f->coco_5k_r
                            : kind == PNB_COCO_CXC ? f->cxc_r
                                                   : f->eccv_r;
    pnb_both_ways *const all[N_COLUMNS] = {recall, recall + 1, recall + 2,
                                           kind == PNB_COCO_ECCV ? &f->eccv_rprecision : NULL,
                                           kind == PNB_COCO_ECCV ? &f->eccv_map_at_r : NULL};
    for (size_t c = 0; c < N_COLUMNS; c++)
        out[c] = all[c] == NULL ? NULL : way == 0 ? &all[c]->i2t : &all[c]->t2i;
}

static pnb_status store(const pnb_coco_side *side, pnb_coco_kind kind, size_t way,
                        pnb_coco_figures *out, pnb_error *err)
{
    pnb_direction s;
    double *slot[N_COLUMNS];
    pnb_status status = pnb_direction_summarise(&side->ranks[kind], CUTOFFS, N_CUTOFFS, &s, err);
    if (status != PNB_OK)
        return status;
    if (kind == PNB_COCO_1K)
        fold_recalls(&side->ranks[kind], side->fold, s.recall);
    slots_of(out, kind, way, slot);
    for (size_t k = 0; k < N_CUTOFFS; k++)
        *slot[k] = s.recall[k];
    if (kind == PNB_COCO_ECCV) {
        *slot[N_CUTOFFS] = s.r_precision;
        *slot[N_CUTOFFS + 1] = s.map_at_r;
    }
    return PNB_OK;
}

pnb_status pnb_coco_summarise(const pnb_coco_ranks *ranks, pnb_coco_figures *out, pnb_error *err)
{
    pnb_coco_figures figures = no_figures();
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < 2 * PNB_N_COCO_KINDS; i++) {
        const pnb_coco_side *side = &ranks->side[i / PNB_N_COCO_KINDS];
        pnb_coco_kind kind = (pnb_coco_kind)(i % PNB_N_COCO_KINDS);
        if (side->ranks[kind].n_queries > 0)
            status = store(side, kind, i / PNB_N_COCO_KINDS, &figures, err);
    }
    if (status == PNB_OK)
        *out = figures;
    return status;
}

pnb_status pnb_coco_compute(const pnb_ctx *ctx, const pnb_gaussians *images,
                            const pnb_gaussians *texts, const pnb_coco_truth *truth,
                            const pnb_search_opts *opts, pnb_coco_figures *out, pnb_error *err)
{
    pnb_coco_ranks ranks;
    pnb_status status = pnb_coco_rank(ctx, images, texts, truth, opts, &ranks, err);
    if (status == PNB_OK)
        status = pnb_coco_summarise(&ranks, out, err);
    pnb_coco_ranks_reset(&ranks);
    return status;
}

pnb_status pnb_coco_from_rows(const pnb_ctx *ctx, const pnb_coco_rows *rows,
                              const pnb_coco_truth *truth, pnb_coco_figures *out, pnb_error *err)
{
    pnb_coco_ranks ranks;
    pnb_status status = pnb_coco_rank_rows(ctx, rows, truth, &ranks, err);
    if (status == PNB_OK)
        status = pnb_coco_summarise(&ranks, out, err);
    pnb_coco_ranks_reset(&ranks);
    return status;
}

/* ---- intervals ---- */

pnb_status pnb__coco_means(const pnb_coco_side *side, pnb_coco_kind kind, pnb__means *out,
                           pnb_error *err)
{
    const pnb_ranks *r = &side->ranks[kind];
    bool in_folds = kind == PNB_COCO_1K;
    pnb_status status =
        pnb__means_init(out, r->n_queries, N_COLUMNS, in_folds ? PNB_COCO_FOLDS : 1, err);
    if (status != PNB_OK)
        return status;
    out->n = 0;
    for (size_t q = 0; q < r->n_queries; q++) {
        double *row = out->value + out->n * N_COLUMNS;
        if (r->best_rank[q] == 0)
            continue;
        for (size_t k = 0; k < N_CUTOFFS; k++)
            row[k] = (size_t)r->best_rank[q] <= CUTOFFS[k];
        row[N_CUTOFFS] = r->r_precision[q];
        row[N_CUTOFFS + 1] = r->map_at_r[q];
        out->stratum[out->n] = in_folds ? side->fold[q] : 0;
        out->cluster[out->n] = side->cluster == NULL ? (int64_t)q : side->cluster[q];
        out->n++;
    }
    if (out->n == 0 && r->n_queries > 0) {
        pnb__means_reset(out);
        return pnb__fail(err, PNB_ARG, "none of the %zu queries has a positive", r->n_queries);
    }
    return PNB_OK;
}

static pnb_status add_intervals(const pnb_ctx *ctx, const pnb_coco_ranks *ranks, size_t i,
                                const pnb_bootstrap_opts *opts, pnb_coco_intervals *out,
                                pnb_error *err)
{
    size_t way = i / PNB_N_COCO_KINDS;
    pnb_coco_kind kind = (pnb_coco_kind)(i % PNB_N_COCO_KINDS);
    pnb_interval interval[N_COLUMNS + 1];
    double *low[N_COLUMNS], *high[N_COLUMNS];
    pnb__means means = {0};
    pnb_status status;
    if (ranks->side[way].ranks[kind].n_queries == 0)
        return PNB_OK;
    PNB_TRY(pnb__coco_means(&ranks->side[way], kind, &means, err));
    PNB_TRY(pnb__means_bootstrap(ctx, &means, opts, interval, NULL, err));
    slots_of(&out->low, kind, way, low);
    slots_of(&out->high, kind, way, high);
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (low[c] != NULL) {
            *low[c] = interval[c].low;
            *high[c] = interval[c].high;
        }
done:
    pnb__means_reset(&means);
    return status;
}

pnb_status pnb_coco_bootstrap(const pnb_ctx *ctx, const pnb_coco_ranks *ranks,
                              const pnb_bootstrap_opts *opts, pnb_coco_intervals *out,
                              pnb_error *err)
{
    pnb_coco_intervals intervals = {.low = no_figures(), .high = no_figures()};
    pnb_status status = pnb_coco_summarise(ranks, &intervals.value, err);
    for (size_t i = 0; status == PNB_OK && i < 2 * PNB_N_COCO_KINDS; i++)
        status = add_intervals(ctx, ranks, i, opts, &intervals, err);
    if (status == PNB_OK)
        *out = intervals;
    return status;
}
