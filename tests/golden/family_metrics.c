/* Family `metrics`: bins and their S and R2, calibration statistics, retrieval figures, PMRP, and
 * ECCV Caption's table on a hashed ranking. What a case asks for is told by the tensors it holds.
 *
 * eccv_real needs the lists of COCO ids that ECCV Caption's package ships; they are looked for in
 * the case's folder and in the folder of --data, and the case is skipped without them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penumbra/ece.h"
#include "penumbra/npy.h"
#include "penumbra/pmrp.h"
#include "penumbra/retrieval.h"
#include "penumbra/statistics.h"
#include "penumbra/uncertainty_calibration.h"
#include "tests/golden/golden.h"

static int64_t *whole_numbers(const golden_case *c, const char *name, size_t *n, pnb_error *err)
{
    double *values = golden_f64(c, name, n, err);
    int64_t *out = values == NULL ? NULL : pnb__alloc_array(*n + 1, sizeof *out);
    for (size_t i = 0; out != NULL && i < *n; i++)
        out[i] = (int64_t)values[i];
    pnb__free(values);
    return out;
}

static int *labels_of(const golden_case *c, const char *name, size_t *n, pnb_error *err)
{
    int64_t *values = whole_numbers(c, name, n, err);
    int *out = values == NULL ? NULL : pnb__alloc_array(*n + 1, sizeof *out);
    for (size_t i = 0; out != NULL && i < *n; i++)
        out[i] = (int)values[i];
    pnb__free(values);
    return out;
}

static size_t columns(const golden_case *c, const char *name)
{
    const pnb_array_view *view = golden_find(c, name);
    return view == NULL || view->n_dims != 2 ? 0 : (size_t)view->shape[1];
}

static void give_numbered(golden_case *c, const char *prefix, size_t i, double value)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%zu", prefix, i);
    golden_give_scalar(c, name, value);
}

/* ---- bins ---- */

static void give_calibration(golden_case *c, const char *key,
                             const pnb_uncertainty_calibration *cal)
{
    char name[64];
    for (size_t b = 0; b < cal->n_bins; b++) {
        snprintf(name, sizeof name, "%s.per_bin", key);
        give_numbered(c, name, b, cal->bin[b].accuracy);
        snprintf(name, sizeof name, "%s.bins", key);
        give_numbered(c, name, b, (double)cal->bin[b].index);
    }
    snprintf(name, sizeof name, "%s.S_R2_mSR2", key);
    give_numbered(c, name, 0, cal->s);
    give_numbered(c, name, 1, cal->r2);
    give_numbered(c, name, 2, cal->minus_s_r2);
}

static pnb_status give_assignment(golden_case *c, const char *key, pnb_binning binning,
                                  const double *u, size_t n, size_t n_bins, pnb_error *err)
{
    char name[64];
    size_t offset[PNB_MAX_BINS + 1];
    size_t *item = pnb__alloc_array(n * n_bins + 1, sizeof *item);
    double *values = pnb__alloc_array(n * n_bins + n_bins + 1, sizeof *values);
    pnb_status status = item == NULL || values == NULL ? pnb__fail_nomem(err, n * n_bins) : PNB_OK;
    if (status == PNB_OK)
        status = pnb_bins_assign(binning, u, n, n_bins, item, offset, err);
    if (status == PNB_OK) {
        for (size_t i = 0; i < offset[n_bins]; i++)
            values[i] = (double)item[i];
        snprintf(name, sizeof name, "%s.items", key);
        golden_give(c, name, values, offset[n_bins]);
        for (size_t b = 0; b <= n_bins; b++)
            values[b] = (double)offset[b];
        snprintf(name, sizeof name, "%s.offsets", key);
        golden_give(c, name, values, n_bins + 1);
    }
    pnb__free(item);
    pnb__free(values);
    return status;
}

static pnb_status run_bins(golden_case *c, pnb_error *err)
{
    static const struct {
        const char *key;
        pnb_binning binning;
    } forms[] = {{"clean_equal_count", PNB_BINS_EQUAL_COUNT},
                 {"clean_equal_width", PNB_BINS_EQUAL_WIDTH},
                 {"eq_samples", PNB_BINS_GROVE_SAMPLES},
                 {"eq_spacing", PNB_BINS_GROVE_SPACING}};
    size_t n = 0, n_bins = (size_t)golden_number(c, "n_bins", 10);
    double *u = golden_f64(c, "uncertainty", &n, err),
           *correct = golden_f64(c, "correct", NULL, err);
    pnb_status status = u == NULL || correct == NULL ? err->status : PNB_OK;
    for (size_t f = 0; status == PNB_OK && f < PNB_COUNT(forms); f++) {
        pnb_uncertainty_calibration cal;
        status =
            pnb_uncertainty_calibration_compute(u, correct, n, forms[f].binning, n_bins, &cal, err);
        if (status == PNB_OK)
            give_calibration(c, forms[f].key, &cal);
        if (status == PNB_OK && f >= 2)
            status = give_assignment(c, forms[f].key, forms[f].binning, u, n, n_bins, err);
    }
    pnb__free(u);
    pnb__free(correct);
    return status;
}

static pnb_status run_geometric_mean(golden_case *c, pnb_error *err)
{
    size_t n = 0, dim = columns(c, "geo_in");
    double *x = golden_f64(c, "geo_in", &n, err);
    double *mean = pnb__alloc_array(n + 1, sizeof *mean);
    pnb_status status = x == NULL || mean == NULL ? err->status : PNB_OK;
    if (status == PNB_OK && dim == 0)
        status = pnb__fail(err, PNB_SHAPE, "geo_in is no matrix");
    if (status == PNB_OK)
        status = pnb_geometric_mean_rows(x, n / dim, dim, mean, err);
    if (status == PNB_OK)
        golden_give(c, "geo_mean", mean, n / dim);
    pnb__free(x);
    pnb__free(mean);
    return status;
}

/* ---- calibration ---- */

static pnb_status run_calibration(golden_case *c, pnb_error *err)
{
    size_t n = 0;
    pnb_ece f;
    double value = 0;
    double *confidence = golden_f64(c, "confidence", &n, err);
    double *score = golden_f64(c, "score", NULL, err), *y = golden_f64(c, "label", NULL, err);
    int *label = labels_of(c, "label", &n, err);
    pnb_status status =
        confidence == NULL || score == NULL || y == NULL || label == NULL ? err->status : PNB_OK;
    if (status != PNB_OK)
        goto done;
    PNB_TRY(pnb_ece_compute(confidence, label, n, (size_t)golden_number(c, "n_bins", 10), &f, err));
    golden_give_scalar(c, "ece", f.ece);
    golden_give_scalar(c, "mce", f.mce);
    golden_give_scalar(c, "brier", f.brier);
    golden_give_scalar(c, "nll_clipped_1e-7", f.nll);
    PNB_TRY(pnb_auroc(score, label, n, &value, err));
    golden_give_scalar(c, "auroc", value);
    PNB_TRY(pnb_average_precision(score, label, n, &value, err));
    golden_give_scalar(c, "average_precision", value);
    PNB_TRY(pnb_spearman(confidence, score, n, &value, err));
    golden_give_scalar(c, "spearman", value);
    PNB_TRY(pnb_spearman(score, y, n, &value, err));
    golden_give_scalar(c, "spearman_label", value);
    PNB_TRY(pnb_kendall_tau_b(confidence, score, n, &value, err));
    golden_give_scalar(c, "kendall_tau_b", value);
    PNB_TRY(pnb_pearson(confidence, score, n, &value, err));
    golden_give_scalar(c, "pearson", value);
done:
    pnb__free(confidence);
    pnb__free(score);
    pnb__free(y);
    pnb__free(label);
    return status;
}

/* ---- rankings of ids: ECCV Caption's functions ---- */

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorted ids, each once; index_of finds one. */
typedef struct id_list {
    int64_t *id;
    size_t n;
} id_list;

static void sort_ids(id_list *list)
{
    size_t kept = 0;
    qsort(list->id, list->n, sizeof *list->id, compare_ids);
    for (size_t i = 0; i < list->n; i++)
        if (kept == 0 || list->id[kept - 1] != list->id[i])
            list->id[kept++] = list->id[i];
    list->n = kept;
}

static int64_t index_of(const id_list *list, int64_t id)
{
    const int64_t *found = bsearch(&id, list->id, list->n, sizeof id, compare_ids);
    return found == NULL ? -1 : found - list->id;
}

typedef struct ranking {
    int64_t *row;            /* [n_queries][width] ids, best first */
    int64_t *gt, *gt_offset; /* flat positives */
    size_t n_queries, width, n_gt;
    id_list items; /* all ids of rankings and positives */
} ranking;

static void ranking_row(void *user, size_t query, double *score)
{
    const ranking *r = user;
    for (size_t j = 0; j < r->items.n; j++)
        score[j] = -1e300;
    for (size_t j = r->width; j-- > 0;)
        score[index_of(&r->items, r->row[query * r->width + j])] = -(double)j;
}

static pnb_status load_ranking(golden_case *c, ranking *r, pnb_error *err)
{
    size_t n_row = 0, n_offset = 0;
    *r = (ranking){.width = columns(c, "ranking")};
    r->row = whole_numbers(c, "ranking", &n_row, err);
    r->gt = whole_numbers(c, "gt_flat", &r->n_gt, err);
    r->gt_offset = whole_numbers(c, "gt_offsets", &n_offset, err);
    if (r->row == NULL || r->gt == NULL || r->gt_offset == NULL || r->width == 0)
        return pnb__fail(err, PNB_SHAPE, "ranking, gt_flat and gt_offsets are needed");
    r->n_queries = n_row / r->width;
    r->items.n = n_row + r->n_gt;
    r->items.id = pnb__alloc_array(r->items.n, sizeof(int64_t));
    if (n_offset != r->n_queries + 1 || r->items.id == NULL)
        return pnb__fail(err, PNB_SHAPE, "gt_offsets do not fit the rankings");
    memcpy(r->items.id, r->row, n_row * sizeof(int64_t));
    memcpy(r->items.id + n_row, r->gt, r->n_gt * sizeof(int64_t));
    sort_ids(&r->items);
    return PNB_OK;
}

static pnb_status ranking_truth(const ranking *r, pnb_truth **truth, pnb_error *err)
{
    int64_t *pairs = pnb__alloc_array(2 * r->n_gt + 1, sizeof *pairs);
    if (pairs == NULL)
        return pnb__fail_nomem(err, r->n_gt);
    for (size_t q = 0; q < r->n_queries; q++)
        for (int64_t i = r->gt_offset[q]; i < r->gt_offset[q + 1]; i++) {
            pairs[2 * i] = (int64_t)q;
            pairs[2 * i + 1] = index_of(&r->items, r->gt[i]);
        }
    pnb_status status =
        pnb_truth_create_pairs(truth, r->n_queries, r->items.n, pairs, r->n_gt, err);
    pnb__free(pairs);
    return status;
}

/* All queries rank the fold's items; one whose matches lie outside has missed. */
static void give_fold(golden_case *c, const pnb_ranks *ranks)
{
    const size_t k[] = {1, 5, 10};
    for (size_t i = 0; i < PNB_COUNT(k); i++) {
        double hits = 0;
        char name[32];
        for (size_t q = 0; q < ranks->n_queries; q++)
            hits += ranks->best_rank[q] > 0 && (size_t)ranks->best_rank[q] <= k[i];
        snprintf(name, sizeof name, "fold_r%zu", k[i]);
        golden_give_scalar(c, name, hits / (double)ranks->n_queries);
    }
}

static pnb_status run_ranking(golden_case *c, pnb_error *err)
{
    const size_t k[] = {1, 2, 3, 5, 10, 20, 50};
    ranking r;
    size_t n_fold = 0;
    pnb_truth *truth = NULL;
    pnb_ranks ranks[2] = {{0}};
    pnb_direction d;
    int64_t *fold_items = NULL;
    int32_t *folds = NULL;
    pnb_status status = load_ranking(c, &r, err);
    if (status == PNB_OK)
        status = ranking_truth(&r, &truth, err);
    if (status != PNB_OK)
        goto done;
    folds = pnb__alloc_zero(r.n_queries + r.items.n, sizeof *folds);
    pnb_rank_task tasks[2] = {
        {.truth = truth}, {.truth = truth, .query_fold = folds, .item_fold = folds + r.n_queries}};
    if (golden_find(c, "fold_items") != NULL) {
        fold_items = whole_numbers(c, "fold_items", &n_fold, err);
        for (size_t j = 0; j < r.items.n; j++)
            folds[r.n_queries + j] = -1;
        for (size_t j = 0; j < n_fold; j++)
            if (index_of(&r.items, fold_items[j]) >= 0)
                folds[(int64_t)r.n_queries + index_of(&r.items, fold_items[j])] = 0;
    }
    PNB_TRY(pnb_ranks_from_rows(c->ctx, ranking_row, &r, tasks, 2, ranks, err));
    PNB_TRY(pnb_direction_summarise(&ranks[0], k, PNB_COUNT(k), &d, err));
    golden_give_scalar(c, "map_at_r", d.map_at_r);
    golden_give_scalar(c, "rprecision", d.r_precision);
    golden_give_scalar(c, "pmrp_rprecision", d.r_precision);
    for (size_t i = 0; i < PNB_COUNT(k); i++) {
        char name[16];
        snprintf(name, sizeof name, "r%zu", k[i]);
        golden_give_scalar(c, name, d.recall[i]);
    }
    give_fold(c, &ranks[1]);
done:
    pnb_ranks_reset(&ranks[0]);
    pnb_ranks_reset(&ranks[1]);
    pnb_truth_free(truth);
    pnb__free(folds);
    pnb__free(fold_items);
    pnb__free(r.row);
    pnb__free(r.gt);
    pnb__free(r.gt_offset);
    pnb__free(r.items.id);
    return status;
}

/* ---- classes and plausible matches: PCME's functions ---- */

typedef struct matrix {
    const double *score;
    size_t n_rows, n_columns;
    bool transposed; /* a query is a column */
} matrix;

static void matrix_row(void *user, size_t query, double *score)
{
    const matrix *m = user;
    size_t n = m->transposed ? m->n_rows : m->n_columns;
    for (size_t j = 0; j < n; j++)
        score[j] =
            m->transposed ? m->score[j * m->n_columns + query] : m->score[query * m->n_columns + j];
}

static void give_classes(golden_case *c, const pnb_direction *d, const double *precision,
                         const size_t *k, size_t n_k, size_t n_queries)
{
    char name[32];
    double rsum = 0;
    for (size_t i = 0; i < n_k; i++) {
        double sum = 0;
        for (size_t q = 0; q < n_queries; q++)
            sum += precision[q * n_k + i];
        snprintf(name, sizeof name, "precision_%zu", k[i]);
        golden_give_scalar(c, name, sum / (double)n_queries);
        snprintf(name, sizeof name, "recall_%zu", k[i]);
        golden_give_scalar(c, name, d->recall[i]);
        rsum += k[i] <= 10 ? d->recall[i] : 0;
    }
    golden_give_scalar(c, "rsum", rsum);
    golden_give_scalar(c, "r_precision", d->r_precision);
    golden_give_scalar(c, "map_r", d->map_at_r);
    golden_give_scalar(c, "medr", d->median_rank);
    golden_give_scalar(c, "meanr", d->mean_rank);
}

static pnb_status run_classes(golden_case *c, pnb_error *err)
{
    const size_t k[] = {1, 5, 10, 50, 100};
    size_t n_q = 0, n_g = 0, n = 0;
    double *score = golden_f64(c, "similarity", &n, err);
    int64_t *query = whole_numbers(c, "query_class", &n_q, err);
    int64_t *item = whole_numbers(c, "gallery_class", &n_g, err);
    double *precision = pnb__alloc_array(n_q * PNB_COUNT(k) + 1, sizeof *precision);
    pnb_truth *truth = NULL;
    pnb_ranks ranks = {0};
    pnb_direction d;
    matrix m = {score, n_q, n_g, false};
    pnb_status status =
        score == NULL || query == NULL || item == NULL || n != n_q * n_g || precision == NULL
            ? pnb__fail(err, PNB_SHAPE, "similarity, query_class and gallery_class do not fit")
            : PNB_OK;
    if (status != PNB_OK)
        goto done;
    PNB_TRY(pnb_truth_create_labels(&truth, query, n_q, item, n_g, err));
    const pnb_rank_task task = {
        .truth = truth, .precision_k = k, .n_precision = PNB_COUNT(k), .precision = precision};
    PNB_TRY(pnb_ranks_from_rows(c->ctx, matrix_row, &m, &task, 1, &ranks, err));
    PNB_TRY(pnb_direction_summarise(&ranks, k, PNB_COUNT(k), &d, err));
    give_classes(c, &d, precision, k, PNB_COUNT(k), n_q);
done:
    pnb_ranks_reset(&ranks);
    pnb_truth_free(truth);
    pnb__free(score);
    pnb__free(query);
    pnb__free(item);
    pnb__free(precision);
    return status;
}

static void give_pmrp(golden_case *c, const char *way, const pnb_pmrp *p)
{
    char name[32];
    snprintf(name, sizeof name, "pmrp_%s", way);
    golden_give_scalar(c, name, 100 * p->pmrp);
    snprintf(name, sizeof name, "pmr1_%s", way);
    golden_give_scalar(c, name, 100 * p->pm_r1);
    for (int z = 0; z <= p->max_zeta; z++) {
        snprintf(name, sizeof name, "pmrp_%s_zeta%d", way, z);
        golden_give_scalar(c, name, 100 * p->r_precision[z]);
    }
}

static pnb_status run_pmrp(golden_case *c, pnb_error *err)
{
    size_t n_labels = columns(c, "pm.labels"), n_images = 0, n_texts = 0, n = 0;
    int64_t *labels = whole_numbers(c, "pm.labels", &n_images, err);
    int64_t *image_of = whole_numbers(c, "pm.caption_image", &n_texts, err);
    double *score = golden_f64(c, "pm.similarity", &n, err);
    uint8_t *image = NULL, *text = NULL;
    pnb_status status = labels == NULL || image_of == NULL || score == NULL || n_labels == 0
                            ? pnb__fail(err, PNB_SHAPE, "pm.* tensors are missing")
                            : PNB_OK;
    if (status != PNB_OK)
        goto done;
    n_images /= n_labels;
    image = pnb__alloc_array(n_images, n_labels);
    text = pnb__alloc_array(n_texts, n_labels);
    if (image == NULL || text == NULL || n != n_images * n_texts)
        PNB_TRY(pnb__fail(err, PNB_SHAPE, "pm.similarity has %zu values", n));
    for (size_t i = 0; i < n_images * n_labels; i++)
        image[i] = (uint8_t)labels[i];
    for (size_t t = 0; t < n_texts; t++)
        memcpy(text + t * n_labels, image + (size_t)image_of[t] * n_labels, n_labels);
    for (int way = 0; way < 2; way++) {
        pnb_label_vectors v = {n_images, n_texts, n_labels, image, text, NULL, NULL};
        matrix m = {score, n_images, n_texts, way == 1};
        pnb_pmrp p;
        if (way == 1)
            v = (pnb_label_vectors){n_texts, n_images, n_labels, text, image, NULL, NULL};
        PNB_TRY(pnb_pmrp_from_rows(c->ctx, matrix_row, &m, &v, 2, &p, NULL, err));
        give_pmrp(c, way == 0 ? "i2t" : "t2i", &p);
    }
done:
    pnb__free(labels);
    pnb__free(image_of);
    pnb__free(score);
    pnb__free(image);
    pnb__free(text);
    return status;
}

/* ---- recall of grouped captions ---- */

static pnb_status give_top(golden_case *c, const char *name, const pnb_gaussians *queries,
                           const pnb_gaussians *gallery, pnb_error *err)
{
    pnb_search_opts o = pnb_search_opts_default();
    pnb_hits hits;
    o.measure = PNB_MEASURE_MEAN;
    o.k = columns(c, name);
    if (o.k == 0)
        return PNB_OK;
    pnb_status status = pnb_search(c->ctx, queries, gallery, &o, &hits, err);
    if (status != PNB_OK)
        return status;
    double *index = pnb__alloc_array(hits.n_queries * o.k, sizeof *index);
    for (size_t i = 0; index != NULL && i < hits.n_queries * o.k; i++)
        index[i] = (double)hits.index[i];
    if (index != NULL)
        golden_give(c, name, index, hits.n_queries * o.k);
    pnb__free(index);
    pnb_hits_reset(&hits);
    return PNB_OK;
}

static pnb_status give_recalls(golden_case *c, const char *name, const pnb_gaussians *queries,
                               const pnb_gaussians *gallery, const pnb_truth *truth, pnb_error *err)
{
    const size_t k[] = {1, 5, 10};
    pnb_search_opts o = pnb_search_opts_default();
    pnb_ranks ranks;
    pnb_direction d;
    o.measure = PNB_MEASURE_MEAN;
    pnb_status status = pnb_ranks_compute(c->ctx, queries, gallery, truth, &o, &ranks, err);
    if (status == PNB_OK)
        status = pnb_direction_summarise(&ranks, k, PNB_COUNT(k), &d, err);
    for (size_t i = 0; status == PNB_OK && i < PNB_COUNT(k); i++)
        give_numbered(c, name, i, d.recall[i]);
    pnb_ranks_reset(&ranks);
    return status;
}

/* Captions t belong to picture t / per; the released code finds it as int(t * (1 / per)). */
static pnb_status text_truth(pnb_truth **out, size_t n_images, size_t n_texts, size_t per,
                             bool released, pnb_error *err)
{
    int64_t *pairs = pnb__alloc_array(2 * n_texts, sizeof *pairs);
    if (pairs == NULL)
        return pnb__fail_nomem(err, n_texts);
    for (size_t t = 0; t < n_texts; t++) {
        pairs[2 * t] = (int64_t)t;
        pairs[2 * t + 1] =
            released ? (int64_t)((double)t * (1.0 / (double)per)) : (int64_t)(t / per);
    }
    pnb_status status = pnb_truth_create_pairs(out, n_texts, n_images, pairs, n_texts, err);
    pnb__free(pairs);
    return status;
}

static pnb_status run_recall(golden_case *c, pnb_error *err)
{
    size_t n_i = 0, n_t = 0, dim = columns(c, "z_image");
    float *image = golden_f32(c, "z_image", &n_i, err), *text = golden_f32(c, "z_text", &n_t, err);
    size_t per = (size_t)golden_number(c, "captions_per_image", 5);
    pnb_truth *exact = NULL, *released = NULL, *forward = NULL;
    pnb_status status = image == NULL || text == NULL || dim == 0 || per == 0
                            ? pnb__fail(err, PNB_SHAPE, "z_image and z_text are needed")
                            : PNB_OK;
    if (status != PNB_OK)
        goto done;
    pnb_gaussians images = {.n = n_i / dim, .dim = dim, .mean = image},
                  texts = {.n = n_t / dim, .dim = dim, .mean = text};
    PNB_TRY(text_truth(&exact, images.n, texts.n, per, false, err));
    PNB_TRY(text_truth(&released, images.n, texts.n, per, true, err));
    PNB_TRY(pnb_truth_transpose(&forward, exact, err));
    PNB_TRY(give_recalls(c, "i2t", &images, &texts, forward, err));
    PNB_TRY(give_recalls(c, "t2i_exact", &texts, &images, exact, err));
    PNB_TRY(give_recalls(c, "t2i_released", &texts, &images, released, err));
    PNB_TRY(give_top(c, "i2t_top10", &images, &texts, err));
    PNB_TRY(give_top(c, "t2i_top10", &texts, &images, err));
done:
    pnb_truth_free(exact);
    pnb_truth_free(released);
    pnb_truth_free(forward);
    pnb__free(image);
    pnb__free(text);
    return status;
}

pnb_status golden_family_metrics(golden_case *c, pnb_error *err)
{
    static const struct {
        const char *tensor;
        golden_family_fn run;
    } parts[] = {{"uncertainty", run_bins},       {"geo_in", run_geometric_mean},
                 {"confidence", run_calibration}, {"ranking", run_ranking},
                 {"similarity", run_classes},     {"pm.labels", run_pmrp},
                 {"z_image", run_recall}};
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < PNB_COUNT(parts); i++)
        if (golden_find(c, parts[i].tensor) != NULL)
            status = parts[i].run(c, err);
    if (status == PNB_OK && json_object_get(c->root, "data_sha256") != NULL)
        status = golden_metrics_eccv(c, err);
    return status;
}
