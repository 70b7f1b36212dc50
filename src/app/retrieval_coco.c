/* ECCV Caption's table and plausible matches for a pair of sets.
 *
 * The folder holds what the package eccv_caption ships in its data folder: six lists of ids, and
 * coco_test_ids.npy, whose order makes the folds of COCO 1K. A caption's label vector is that of
 * its picture; a caption without one matches nothing: three places of its own keep it farther than
 * zeta from every picture. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "app/retrieval.h"
#include "base/base.h"
#include "eval/names.h"
#include "penumbra/npy.h"

enum { N_LISTS = 6, ZETA = 2, N_ORPHAN_PLACES = ZETA + 1, N_RECALLS = 3 };
static const char *const LISTS[N_LISTS] = {
    "original_image_to_caption.json", "original_caption_to_image.json",
    "cxc_image_to_caption.json",      "cxc_caption_to_image.json",
    "eccv_image_to_caption.json",     "eccv_caption_to_image.json"};

/* Truths with their own queries: pictures in the even places, captions in the odd ones. */
typedef struct lists {
    pnb_truth *truth[N_LISTS];
    int32_t *image_fold, *text_fold;
    bool has_folds;
} lists;

static void lists_reset(lists *l)
{
    for (size_t i = 0; i < N_LISTS; i++)
        pnb_truth_free(l->truth[i]);
    pnb__free(l->image_fold);
    pnb__free(l->text_fold);
}

static pnb_status load_list(const pnb__retrieval *run, const char *dir, size_t i, lists *l,
                            pnb_error *err)
{
    const pnb_truth_rows images = pnb_truth_rows_of(run->images);
    const pnb_truth_rows texts = pnb_truth_rows_of(run->texts);
    char *path = pnb__path_join(dir, LISTS[i]);
    pnb_truth *read = NULL;
    pnb_status status = path == NULL ? pnb__fail_nomem(err, strlen(dir)) : PNB_OK;
    if (status == PNB_OK)
        status = pnb_truth_read(&read, path, &images, &texts, NULL, NULL, err);
    if (status == PNB_OK && i % 2 == 1) {
        status = pnb_truth_transpose(&l->truth[i], read, err);
        pnb_truth_free(read);
    } else if (status == PNB_OK) {
        l->truth[i] = read;
    }
    pnb__free(path);
    return status;
}

/* ---- folds ---- */

/* Rows of the captions in the order of the file; *n_found falls short when one is in no row. */
static pnb_status order_rows(const pnb__retrieval *run, const pnb_npy *file, size_t *order,
                             size_t *n_found, pnb_error *err)
{
    const pnb_truth_rows texts = pnb_truth_rows_of(run->texts);
    size_t n = pnb_array_size(&file->view);
    int64_t *id = pnb__alloc_array(n, sizeof *id);
    pnb__names names = {0};
    pnb_status status = id == NULL ? pnb__fail_nomem(err, n * sizeof *id) : PNB_OK;
    *n_found = 0;
    if (status == PNB_OK)
        status = pnb_array_to_i64(&file->view, id, err);
    if (status == PNB_OK)
        status = pnb__names_init(&names, PNB__NAMES_TEXTS, &texts, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        char name[32];
        int64_t row = -1;
        snprintf(name, sizeof name, "%lld", (long long)id[i]);
        status = pnb__names_find(&names, name, &row, err);
        if (row < 0)
            break;
        order[(*n_found)++] = (size_t)row;
    }
    pnb__names_reset(&names);
    pnb__free(id);
    return status;
}

/* Without the file, or with captions missing, there is no COCO 1K, and that is said. */
static pnb_status load_folds(pnb__app *app, const pnb__retrieval *run, const char *dir, lists *l)
{
    pnb_error *err = &app->err;
    char *path = pnb__path_join(dir, "coco_test_ids.npy");
    pnb_npy file = {0};
    size_t *order = NULL, n = 0;
    pnb_status status;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(dir));
    if (!pnb__path_is_file(path)) {
        pnb__warn(app, "%s: not there, so COCO 1K is left out", path);
        pnb__free(path);
        return PNB_OK;
    }
    PNB_TRY(pnb_npy_load(&file, path, err));
    l->image_fold = pnb__alloc_array(run->images->n, sizeof *l->image_fold);
    l->text_fold = pnb__alloc_array(run->texts->n, sizeof *l->text_fold);
    order = pnb__alloc_array(PNB_MAX(pnb_array_size(&file.view), 1), sizeof *order);
    if (l->image_fold == NULL || l->text_fold == NULL || order == NULL)
        PNB_TRY(pnb__fail_nomem(err, run->texts->n * sizeof *order));
    PNB_TRY(order_rows(run, &file, order, &n, err));
    l->has_folds = n == pnb_array_size(&file.view);
    if (l->has_folds)
        PNB_TRY(pnb_coco_folds(l->truth[1], order, n, l->image_fold, l->text_fold, err));
    else
        pnb__warn(app, "%s: caption %zu of its order is in no row, so COCO 1K is left out", path,
                  n);
done:
    pnb_npy_reset(&file);
    pnb__free(order);
    pnb__free(path);
    return status;
}

static pnb_search_opts search_opts(const pnb__app *app, const pnb__retrieval *run)
{
    pnb_search_opts search = pnb_search_opts_default();
    search.measure = run->measure;
    search.measure_opts.seed = (uint64_t)app->common.seed;
    return search;
}

static pnb_bootstrap_opts bootstrap_opts(const pnb__app *app, const pnb__retrieval_opts *opts)
{
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    b.n_resamples = opts->n_resamples;
    b.seed = (uint64_t)app->common.seed;
    return b;
}

static pnb__coco_row *add_row(pnb__retrieval *run)
{
    assert(run->n_coco < PNB__MAX_COCO_ROWS);
    return &run->coco[run->n_coco++];
}

/* Without resamples there is none. */
static void drop_interval(const pnb__retrieval *run, pnb_interval *v)
{
    if (!run->has_intervals)
        v->low = v->high = (double)NAN;
}

/* ---- the table ---- */

static const pnb_both_ways *figure_of(const pnb_coco_figures *f, pnb_coco_kind kind, size_t column)
{
    const pnb_both_ways *const recall[] = {
        [PNB_COCO_1K] = f->coco_1k_r,
        [PNB_COCO_5K] = f->coco_5k_r,
        [PNB_COCO_CXC] = f->cxc_r,
        [PNB_COCO_ECCV] = f->eccv_r,
    };
    return column < N_RECALLS    ? &recall[kind][column]
           : column == N_RECALLS ? &f->eccv_map_at_r
                                 : &f->eccv_rprecision;
}

static size_t n_ranked(const pnb_ranks *ranks)
{
    size_t n = 0;
    for (size_t q = 0; q < ranks->n_queries; q++)
        n += ranks->best_rank[q] > 0;
    return n;
}

/* Columns are the recalls, and of ECCV Caption two more. */
static void add_figure(pnb__retrieval *run, const pnb_coco_intervals *f,
                       const pnb_coco_ranks *ranks, pnb_coco_kind kind, size_t column)
{
    static const char *const KEYS[] = {"coco_1k", "coco_5k", "cxc", "eccv"};
    static const char *const LABELS[] = {"1K", "5K", "CxC", "ECCV"};
    static const char *const COLUMNS[] = {"r1", "r5", "r10", "map_at_r", "rprecision"};
    static const char *const HEADINGS[] = {"R@1", "R@5", "R@10", "mAP@R", "R-Precision"};
    const pnb_both_ways *value = figure_of(&f->value, kind, column);
    const pnb_both_ways *low = figure_of(&f->low, kind, column);
    const pnb_both_ways *high = figure_of(&f->high, kind, column);
    pnb__coco_row *row;
    if (isnan(value->i2t) && isnan(value->t2i))
        return;
    row = add_row(run);
    snprintf(row->key, sizeof row->key, "%s_%s", KEYS[kind], COLUMNS[column]);
    snprintf(row->label, sizeof row->label, "%s %s", LABELS[kind], HEADINGS[column]);
    row->side[0] = (pnb_interval){value->i2t, low->i2t, high->i2t};
    row->side[1] = (pnb_interval){value->t2i, low->t2i, high->t2i};
    for (size_t way = 0; way < 2; way++) {
        row->n_queries[way] = n_ranked(&ranks->side[way].ranks[kind]);
        drop_interval(run, &row->side[way]);
    }
}

/* The unit of all other figures: of the truth given, or of a field. */
static void set_clusters(const pnb_coco_ranks *ranks, const pnb__retrieval *run)
{
    memcpy(ranks->side[0].cluster, run->image_cluster, run->images->n * sizeof(int64_t));
    memcpy(ranks->side[1].cluster, run->text_cluster, run->texts->n * sizeof(int64_t));
}

static pnb_status add_table(pnb__app *app, const pnb__retrieval_opts *opts,
                            const pnb_coco_ranks *ranks, pnb__retrieval *run)
{
    const pnb_bootstrap_opts b = bootstrap_opts(app, opts);
    pnb_coco_intervals f = {0};
    pnb_status status = opts->n_resamples > 0
                            ? pnb_coco_bootstrap(app->ctx, ranks, &b, &f, &app->err)
                            : pnb_coco_summarise(ranks, &f.value, &app->err);
    for (size_t i = 0; status == PNB_OK && i < N_RECALLS * PNB_N_COCO_KINDS; i++)
        add_figure(run, &f, ranks, (pnb_coco_kind)(i / N_RECALLS), i % N_RECALLS);
    for (size_t i = 0; status == PNB_OK && i < 2; i++)
        add_figure(run, &f, ranks, PNB_COCO_ECCV, N_RECALLS + i);
    return status;
}

pnb_status pnb__retrieval_coco(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    const pnb_search_opts search = search_opts(app, run);
    lists l = {.has_folds = false};
    pnb_coco_ranks ranks = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < N_LISTS; i++)
        PNB_TRY(load_list(run, opts->eccv, i, &l, &app->err));
    PNB_TRY(load_folds(app, run, opts->eccv, &l));
    const pnb_coco_truth truth = {.original_i2t = l.truth[0],
                                  .original_t2i = l.truth[1],
                                  .cxc_i2t = l.truth[2],
                                  .cxc_t2i = l.truth[3],
                                  .eccv_i2t = l.truth[4],
                                  .eccv_t2i = l.truth[5],
                                  .image_fold = l.has_folds ? l.image_fold : NULL,
                                  .text_fold = l.has_folds ? l.text_fold : NULL};
    PNB_TRY(pnb_coco_rank(app->ctx, &run->image_rows, &run->text_rows, &truth, &search, &ranks,
                          &app->err));
    set_clusters(&ranks, run);
    status = add_table(app, opts, &ranks, run);
done:
    pnb_coco_ranks_reset(&ranks);
    lists_reset(&l);
    return status;
}

/* ---- plausible matches ---- */

/* Label rows with the places of captions without a picture behind them. */
static pnb_status spread_labels(const pnb__retrieval *run, const pnb_label_matrix *m,
                                uint8_t **image, uint8_t **text, pnb_error *err)
{
    size_t width = m->n_labels + N_ORPHAN_PLACES;
    *image = pnb__alloc_zero(run->images->n, width);
    *text = pnb__alloc_zero(run->texts->n, width);
    if (*image == NULL || *text == NULL)
        return pnb__fail_nomem(err, (run->images->n + run->texts->n) * width);
    for (size_t i = 0; i < run->images->n; i++)
        memcpy(*image + i * width, m->label + i * m->n_labels, m->n_labels);
    for (size_t t = 0; t < run->texts->n; t++) {
        size_t first = run->backward->offset[t];
        if (first < run->backward->offset[t + 1])
            memcpy(*text + t * width, m->label + run->backward->item[first] * m->n_labels,
                   m->n_labels);
        else
            memset(*text + t * width + m->n_labels, 1, N_ORPHAN_PLACES);
    }
    return PNB_OK;
}

/* What one direction comes to. */
typedef struct plausible {
    pnb_pmrp value;
    pnb_pmrp_intervals interval; /* with resamples */
} plausible;

static pnb_status pmrp_one_way(pnb__app *app, const pnb__retrieval_opts *opts,
                               const pnb_pmrp_job *job, const int64_t *cluster, plausible *out)
{
    pnb_bootstrap_opts b = bootstrap_opts(app, opts);
    size_t n = job->queries->n;
    double *of_query = pnb__alloc_array(n, (ZETA + 1) * sizeof *of_query);
    if (of_query == NULL)
        return pnb__fail_nomem(&app->err, n * (ZETA + 1) * sizeof *of_query);
    b.cluster = cluster;
    pnb_status status = pnb_pmrp_compute(app->ctx, job, &out->value, of_query, &app->err);
    if (status == PNB_OK && opts->n_resamples > 0)
        status = pnb_pmrp_bootstrap(app->ctx, of_query, n, ZETA, &b, &out->interval, &app->err);
    pnb__free(of_query);
    return status;
}

/* The mean over zeta, then each zeta. */
static void add_pmrp(const plausible side[2], pnb__retrieval *run)
{
    for (int z = -1; z <= ZETA; z++) {
        pnb__coco_row *row = add_row(run);
        snprintf(row->key, sizeof row->key, z < 0 ? "pmrp" : "pmrp_zeta%d", z);
        snprintf(row->label, sizeof row->label, z < 0 ? "PMRP" : "PMRP, zeta %d", z);
        for (size_t way = 0; way < 2; way++) {
            const plausible *p = &side[way];
            row->n_queries[way] = p->value.n_queries[z < 0 ? ZETA : z];
            row->side[way] = z < 0 ? p->interval.pmrp : p->interval.r_precision[z];
            row->side[way].value = z < 0 ? p->value.pmrp : p->value.r_precision[z];
            drop_interval(run, &row->side[way]);
        }
    }
}

pnb_status pnb__retrieval_pmrp(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    const pnb_truth_rows rows = pnb_truth_rows_of(run->images);
    pnb_search_opts search = search_opts(app, run);
    pnb_label_matrix m = {0};
    plausible side[2] = {0};
    uint8_t *image = NULL, *text = NULL;
    size_t n_i = run->images->n, n_t = run->texts->n;
    pnb_status status;
    PNB_TRY(pnb_label_matrix_load(&m, opts->label_vectors, &rows, &app->err));
    PNB_TRY(spread_labels(run, &m, &image, &text, &app->err));
    size_t width = m.n_labels + N_ORPHAN_PLACES;
    pnb_label_vectors labels = {n_i, n_t, width, image, text};
    pnb_pmrp_job job = {&run->image_rows, &run->text_rows, &search, &labels, ZETA};
    PNB_TRY(pmrp_one_way(app, opts, &job, run->image_cluster, &side[0]));
    labels = (pnb_label_vectors){n_t, n_i, width, text, image};
    search.reverse = true;
    job = (pnb_pmrp_job){&run->text_rows, &run->image_rows, &search, &labels, ZETA};
    PNB_TRY(pmrp_one_way(app, opts, &job, run->text_cluster, &side[1]));
    add_pmrp(side, run);
done:
    pnb_label_matrix_reset(&m);
    pnb__free(image);
    pnb__free(text);
    return status;
}
