/* The table of COCO Caption and plausible matches for a pair of sets.
 *
 * The folder of ECCV Caption holds what the package eccv_caption ships in its data folder: six
 * lists of ids. Without it COCO 1K and 5K are of the truth itself, where that makes folds
 * (eval_folds.c). Every figure is a mean over queries, kept with the run for paired tests
 * between models. A caption's label vector is that of its picture; a caption without one matches
 * nothing: three places of its own keep it farther than zeta from every picture. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/eval/eval_retrieval.h"

enum { N_LISTS = 6, ZETA = 2, N_ORPHAN_PLACES = ZETA + 1, N_RECALLS = 3 };
static const char *const LISTS[N_LISTS] = {
    "original_image_to_caption.json", "original_caption_to_image.json",
    "cxc_image_to_caption.json",      "cxc_caption_to_image.json",
    "eccv_image_to_caption.json",     "eccv_caption_to_image.json"};

/* Truths with their own queries: pictures in the even places, captions in the odd ones. */
typedef struct lists {
    pnb_truth *truth[N_LISTS];
} lists;

static void lists_reset(lists *l)
{
    for (size_t i = 0; i < N_LISTS; i++)
        pnb_truth_free(l->truth[i]);
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

static pnb_search_opts search_opts(const pnb__retrieval *run)
{
    pnb_search_opts search = pnb_search_opts_default();
    search.measure = run->measure;
    search.measure_opts = run->measure_opts;
    return search;
}

/* ---- rows ---- */

/* A column of a block and what is behind the block's name. */
typedef struct column {
    size_t place;
    const char *key, *label;
} column;

enum { N_RANKED = 5, N_PLAUSIBLE = ZETA + 2 };
static const column RANKED[N_RANKED] = {{0, "_r1", " R@1"},
                                        {1, "_r5", " R@5"},
                                        {2, "_r10", " R@10"},
                                        {4, "_map_at_r", " mAP@R"},
                                        {3, "_rprecision", " R-Precision"}};
/* The mean over zeta, then each zeta. */
static const column PLAUSIBLE[N_PLAUSIBLE] = {{ZETA + 1, "", ""},
                                              {0, "_zeta0", ", zeta 0"},
                                              {1, "_zeta1", ", zeta 1"},
                                              {2, "_zeta2", ", zeta 2"}};

/* Rows of a column with a value; of the mean of all columns those of the last, which has most. */
static size_t n_values(const pnb__means *m, size_t place)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += isnan(m->value[i * m->n_columns + PNB_MIN(place, m->n_columns - 1)]) ? 0 : 1;
    return n;
}

/* Figures of a block both ways, with intervals if there are resamples. */
static pnb_status add_block(pnb__app *app, const pnb__retrieval_opts *opts, size_t block,
                            pnb__retrieval *run)
{
    static const char *const KEYS[] = {"coco_1k", "coco_5k", "cxc", "eccv", "pmrp", "pmrp_1k"};
    static const char *const LABELS[] = {"1K", "5K", "CxC", "ECCV", "PMRP", "PMRP 1K"};
    const bool is_ranked = block < PNB__COCO_PMRP;
    const column *columns = is_ranked ? RANKED : PLAUSIBLE;
    size_t n_rows = !is_ranked ? N_PLAUSIBLE : block == PNB_COCO_ECCV ? N_RANKED : N_RECALLS;
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    pnb_interval value[2][PNB__COCO_COLUMNS + 1];
    b.n_resamples = opts->n_resamples;
    b.seed = (uint64_t)app->common.seed;
    for (size_t way = 0; way < 2; way++) {
        pnb_status status = pnb__means_bootstrap(app->ctx, &run->coco_means[block][way], &b,
                                                 value[way], NULL, &app->err);
        if (status != PNB_OK)
            return status;
    }
    for (size_t i = 0; i < n_rows; i++) {
        assert(run->n_coco < PNB__MAX_COCO_ROWS);
        pnb__coco_row *row = &run->coco[run->n_coco++];
        *row = (pnb__coco_row){.block = block, .column = columns[i].place};
        snprintf(row->key, sizeof row->key, "%s%s", KEYS[block], columns[i].key);
        snprintf(row->label, sizeof row->label, "%s%s", LABELS[block], columns[i].label);
        for (size_t way = 0; way < 2; way++) {
            row->side[way] = value[way][row->column];
            row->n_queries[way] = n_values(&run->coco_means[block][way], row->column);
        }
    }
    return PNB_OK;
}

/* ---- the table ---- */

/* The unit of all other figures: of the truth given, or of a field. */
static void set_clusters(const pnb_coco_ranks *ranks, const pnb__retrieval *run)
{
    memcpy(ranks->side[0].cluster, run->image_cluster, run->images->n * sizeof(int64_t));
    memcpy(ranks->side[1].cluster, run->text_cluster, run->texts->n * sizeof(int64_t));
}

static pnb_status add_table(pnb__app *app, const pnb__retrieval_opts *opts,
                            const pnb_coco_ranks *ranks, pnb__retrieval *run)
{
    pnb_status status = PNB_OK;
    for (size_t kind = 0; kind < PNB_N_COCO_KINDS; kind++) {
        if (ranks->side[0].ranks[kind].n_queries == 0)
            continue;
        for (size_t way = 0; way < 2; way++)
            PNB_TRY(pnb__coco_means(&ranks->side[way], (pnb_coco_kind)kind,
                                    &run->coco_means[kind][way], &app->err));
        PNB_TRY(add_block(app, opts, kind, run));
    }
done:
    return status;
}

pnb_status pnb__retrieval_coco(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    const pnb_search_opts search = search_opts(run);
    lists l = {{NULL}};
    pnb_coco_ranks ranks = {0};
    pnb_status status = PNB_OK;
    for (size_t i = 0; opts->eccv != NULL && i < N_LISTS; i++)
        PNB_TRY(load_list(run, opts->eccv, i, &l, &app->err));
    PNB_TRY(pnb__retrieval_folds(app, opts, l.truth[1], run));
    if (opts->eccv == NULL && run->image_fold == NULL)
        return PNB_OK;
    const pnb_coco_truth truth = {.original_i2t = opts->eccv != NULL ? l.truth[0] : run->truth,
                                  .original_t2i = opts->eccv != NULL ? l.truth[1] : run->backward,
                                  .cxc_i2t = l.truth[2],
                                  .cxc_t2i = l.truth[3],
                                  .eccv_i2t = l.truth[4],
                                  .eccv_t2i = l.truth[5],
                                  .image_fold = run->image_fold,
                                  .text_fold = run->text_fold};
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

/* Both sides' labels, and what goes with the rows of each. */
typedef struct plausible {
    const pnb_rows *rows[2];
    const uint8_t *label[2];
    const int32_t *fold[2];
    const int64_t *cluster[2];
    size_t width;
} plausible;

/* Values of one direction, in the whole gallery or in the folds. */
static pnb_status pmrp_one_way(pnb__app *app, const plausible *p, size_t way, bool in_folds,
                               pnb__retrieval *run)
{
    const size_t other = 1 - way, n = p->rows[way]->n;
    pnb_search_opts search = search_opts(run);
    const pnb_label_vectors labels = {.n_queries = n,
                                      .n_items = p->rows[other]->n,
                                      .n_labels = p->width,
                                      .query = p->label[way],
                                      .item = p->label[other],
                                      .query_fold = in_folds ? p->fold[way] : NULL,
                                      .item_fold = in_folds ? p->fold[other] : NULL};
    const pnb_pmrp_job job = {p->rows[way], p->rows[other], &search, &labels, ZETA};
    pnb_pmrp value;
    double *of_query = pnb__alloc_array(n, (ZETA + 1) * sizeof *of_query);
    if (of_query == NULL)
        return pnb__fail_nomem(&app->err, n * (ZETA + 1) * sizeof *of_query);
    const pnb_pmrp_values values = {of_query, labels.query_fold, p->cluster[way], n, ZETA};
    search.reverse = way == 1;
    pnb_status status = pnb_pmrp_compute(app->ctx, &job, &value, of_query, &app->err);
    if (status == PNB_OK)
        status = pnb__pmrp_means(
            &values, &run->coco_means[in_folds ? PNB__COCO_PMRP_1K : PNB__COCO_PMRP][way],
            &app->err);
    pnb__free(of_query);
    return status;
}

pnb_status pnb__retrieval_pmrp(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    const pnb_truth_rows rows = pnb_truth_rows_of(run->images);
    pnb_label_matrix m = {0};
    uint8_t *image = NULL, *text = NULL;
    pnb_status status;
    PNB_TRY(pnb_label_matrix_load(&m, opts->label_vectors, &rows, &app->err));
    PNB_TRY(spread_labels(run, &m, &image, &text, &app->err));
    const plausible p = {.rows = {&run->image_rows, &run->text_rows},
                         .label = {image, text},
                         .fold = {run->image_fold, run->text_fold},
                         .cluster = {run->image_cluster, run->text_cluster},
                         .width = m.n_labels + N_ORPHAN_PLACES};
    for (size_t in_folds = 0; in_folds <= (run->image_fold != NULL); in_folds++) {
        for (size_t way = 0; way < 2; way++)
            PNB_TRY(pmrp_one_way(app, &p, way, in_folds == 1, run));
        PNB_TRY(add_block(app, opts, PNB__COCO_PMRP + in_folds, run));
    }
done:
    pnb_label_matrix_reset(&m);
    pnb__free(image);
    pnb__free(text);
    return status;
}
