/* Loads two sets and the truth between them, computes retrieval both ways and the bins.
 *
 * Figures and definitions are eval's; this file joins names, levels and files, and adds what a
 * random ranking would reach: a query with P positives among N items hits within k with
 * probability 1 - prod_{j<k} (N-P-j)/(N-j). */
#include "app/retrieval.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "io/json.h"

pnb__retrieval_opts pnb__retrieval_opts_default(void)
{
    return (pnb__retrieval_opts){.level = -1,
                                 .measure = PNB_MEASURE_CSD,
                                 .uncertainty = PNB_UNCERTAINTY_TRACE,
                                 .binning = PNB_BINS_EQUAL_COUNT,
                                 .n_bins = 10,
                                 .k = {1, 5, 10},
                                 .n_k = 3};
}

int pnb__row_level(const pnb_embeddings *set, size_t row)
{
    const char *extra = set->extras != NULL ? set->extras[row] : NULL;
    json_t *root = extra != NULL ? json_loads(extra, 0, NULL) : NULL;
    const json_t *level = json_object_get(root, "level");
    int value = json_is_integer(level) ? (int)json_integer_value(level) : -1;
    json_decref(root);
    return value;
}

pnb_status pnb__row_uncertainty(const pnb_embeddings *set, pnb_uncertainty kind, double **out,
                                pnb_error *err)
{
    pnb_gaussians view;
    double *u = pnb__alloc_array(set->n, sizeof *u);
    pnb_status status;
    if (u == NULL)
        return pnb__fail_nomem(err, set->n * sizeof *u);
    if (set->kappa != NULL)
        status = pnb_uncertainty_inv_kappa(set->kappa, set->n, u, err);
    else if (set->inv_alpha != NULL)
        status = pnb_uncertainty_gg_var(set->inv_alpha, set->beta, set->n, set->dim, u, err);
    else if ((status = pnb_gaussians_view(&view, set, err)) == PNB_OK)
        status = pnb_uncertainty_rows(kind, &view, u, err);
    if (status == PNB_OK)
        *out = u;
    else
        pnb__free(u);
    return status;
}

/* ---- loading ---- */

/* Pairs of the whole truth whose caption is kept, with the captions renumbered. */
static pnb_status select_truth(const pnb_truth *all, const size_t *row_of, size_t n_kept,
                               pnb_truth **out, pnb_error *err)
{
    int64_t *pairs = pnb__alloc_array(2 * all->n_pairs, sizeof *pairs);
    size_t n = 0;
    if (pairs == NULL)
        return pnb__fail_nomem(err, 2 * all->n_pairs * sizeof *pairs);
    for (size_t q = 0; q < all->n_queries; q++)
        for (size_t p = all->offset[q]; p < all->offset[q + 1]; p++)
            if (row_of[all->item[p]] != SIZE_MAX) {
                pairs[2 * n] = (int64_t)q;
                pairs[2 * n++ + 1] = (int64_t)row_of[all->item[p]];
            }
    pnb_status status = pnb_truth_create_pairs(out, all->n_queries, n_kept, pairs, n, err);
    pnb__free(pairs);
    return status;
}

/* Keeps the captions of one level in run->texts and run->truth. */
static pnb_status keep_level(pnb__retrieval *run, int level, pnb_error *err)
{
    size_t n = run->texts->n, n_kept = 0;
    size_t *kept = pnb__alloc_array(n, sizeof *kept), *row_of = pnb__alloc_array(n, sizeof *row_of);
    pnb_embeddings *texts = NULL;
    pnb_truth *truth = NULL;
    pnb_status status = PNB_OK;
    if (kept == NULL || row_of == NULL)
        status = pnb__fail_nomem(err, 2 * n * sizeof *kept);
    for (size_t i = 0; status == PNB_OK && i < n; i++) {
        row_of[i] = pnb__row_level(run->texts, i) == level ? n_kept : SIZE_MAX;
        if (row_of[i] != SIZE_MAX)
            kept[n_kept++] = i;
    }
    if (status == PNB_OK && n_kept == 0)
        status = pnb__fail(err, PNB_NOT_FOUND, "no caption of level %d among %zu", level, n);
    if (status == PNB_OK)
        status = pnb_embeddings_select(&texts, run->texts, kept, n_kept, err);
    if (status == PNB_OK)
        status = select_truth(run->truth, row_of, n_kept, &truth, err);
    if (status == PNB_OK) {
        pnb_embeddings_free(run->texts);
        pnb_truth_free(run->truth);
        run->texts = texts;
        run->truth = truth;
    } else {
        pnb_embeddings_free(texts);
    }
    pnb__free(kept);
    pnb__free(row_of);
    return status;
}

static pnb_status load_truth(pnb__retrieval *run, const pnb__retrieval_opts *opts, pnb_error *err)
{
    const pnb_embeddings *a = run->images, *b = run->texts;
    const pnb_truth_names names = {(const char *const *)a->ids, a->n, (const char *const *)b->ids,
                                   b->n};
    if (opts->truth != NULL)
        return pnb_truth_load(&run->truth, opts->truth, &names, err);
    if (a->n != b->n)
        return pnb__fail(err, PNB_SHAPE,
                         "%zu images and %zu captions without --truth: row i belongs to row i only "
                         "when there are as many; give a pairs file",
                         a->n, b->n);
    return pnb_truth_create_aligned(&run->truth, a->n, err);
}

static pnb_status load(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb_embeddings_load(&run->images, opts->images, err));
    PNB_TRY(pnb_embeddings_load(&run->texts, opts->texts, err));
    status = pnb_embeddings_check_mix(run->images, run->texts, err);
    if (status != PNB_OK) {
        pnb__error_prefix(err, "%s and %s", opts->images, opts->texts);
        goto done;
    }
    PNB_TRY(load_truth(run, opts, err));
    if (opts->level >= 0)
        PNB_TRY(keep_level(run, opts->level, err));
    PNB_TRY(pnb_truth_transpose(&run->backward, run->truth, err));
    PNB_TRY(pnb_view_init(&run->image_view, run->images, err));
    PNB_TRY(pnb_view_init(&run->text_view, run->texts, err));
    run->image_rows = run->image_view.rows;
    run->text_rows = run->text_view.rows;
    PNB_TRY(pnb__row_uncertainty(run->images, opts->uncertainty, &run->image_u, err));
    PNB_TRY(pnb__row_uncertainty(run->texts, opts->uncertainty, &run->text_u, err));
    run->text_level = pnb__alloc_array(run->texts->n, sizeof *run->text_level);
    if (run->text_level == NULL)
        return pnb__fail_nomem(err, run->texts->n * sizeof *run->text_level);
    for (size_t i = 0; i < run->texts->n; i++)
        run->text_level[i] = pnb__row_level(run->texts, i);
done:
    return status;
}

/* ---- figures ---- */

static void add_chance(const pnb_truth *truth, const pnb__retrieval_opts *opts,
                       pnb__retrieval_side *side)
{
    size_t n = truth->n_items, n_used = 0;
    double r_precision = 0, recall[PNB_MAX_RECALLS] = {0};
    for (size_t q = 0; q < truth->n_queries; q++) {
        size_t positives = truth->offset[q + 1] - truth->offset[q];
        if (positives == 0)
            continue;
        n_used++;
        r_precision += (double)positives / (double)n;
        for (size_t i = 0; i < opts->n_k; i++) {
            double miss = 1;
            for (size_t j = 0; j < opts->k[i] && miss > 0 && j < n; j++)
                miss *= PNB_MAX((double)n - (double)positives - (double)j, 0.0) / (double)(n - j);
            recall[i] += 1 - miss;
        }
    }
    double scale = n_used > 0 ? 1.0 / (double)n_used : 0.0;
    for (size_t i = 0; i < opts->n_k; i++)
        side->chance[i] = recall[i] * scale;
    side->chance_r_precision = r_precision * scale;
}

/* Bins over the queries that have a positive. */
static pnb_status add_bins(const pnb__retrieval_opts *opts, const double *query_u,
                           const double *item_u, pnb__retrieval_side *side, pnb_error *err)
{
    size_t n = side->ranks.n_queries, n_used = 0;
    double *u = pnb__alloc_array(n, sizeof *u), *right = pnb__alloc_array(n, sizeof *right);
    pnb_status status =
        u == NULL || right == NULL ? pnb__fail_nomem(err, 2 * n * sizeof *u) : PNB_OK;
    for (size_t q = 0; status == PNB_OK && q < n; q++) {
        if (side->ranks.best_rank[q] == 0)
            continue;
        u[n_used] = opts->bin_by_hit ? item_u[side->ranks.top1[q]] : query_u[q];
        right[n_used++] = side->ranks.best_rank[q] == 1;
    }
    size_t n_bins = PNB_MIN(opts->n_bins, n_used);
    if (status == PNB_OK && n_bins > 0)
        status = pnb_calibration_compute(u, right, n_used, opts->binning, n_bins, &side->bins, err);
    pnb__free(u);
    pnb__free(right);
    return status;
}

pnb_status pnb__retrieval_run(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb_error *err = &app->err;
    pnb_status status;
    *run = (pnb__retrieval){0};
    search.measure = opts->measure;
    search.measure_opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(load(app, opts, run));
    const pnb_retrieval_job job = {&run->image_rows, &run->text_rows, run->truth,
                                   &search,          opts->k,         opts->n_k};
    PNB_TRY(pnb_retrieval_compute(app->ctx, &job, &run->figures, &run->i2t.ranks, &run->t2i.ranks,
                                  err));
    PNB_TRY(add_bins(opts, run->image_u, run->text_u, &run->i2t, err));
    PNB_TRY(add_bins(opts, run->text_u, run->image_u, &run->t2i, err));
    add_chance(run->truth, opts, &run->i2t);
    add_chance(run->backward, opts, &run->t2i);
done:
    return status;
}

void pnb__retrieval_reset(pnb__retrieval *run)
{
    pnb_view_reset(&run->image_view);
    pnb_view_reset(&run->text_view);
    pnb_embeddings_free(run->images);
    pnb_embeddings_free(run->texts);
    pnb_truth_free(run->truth);
    pnb_truth_free(run->backward);
    pnb_ranks_reset(&run->i2t.ranks);
    pnb_ranks_reset(&run->t2i.ranks);
    pnb__free(run->image_u);
    pnb__free(run->text_u);
    pnb__free(run->text_level);
    *run = (pnb__retrieval){0};
}

/* ---- printing ---- */

/* CLIP_benchmark's names: image retrieval is text to image. */
static void put_metrics(const pnb__retrieval *run, pnb__result *r)
{
    const pnb_retrieval *f = &run->figures;
    char key[48];
    pnb__result_begin(r, "metrics", NULL);
    for (size_t i = 0; i < f->n_k; i++) {
        snprintf(key, sizeof key, "image_retrieval_recall@%zu", f->k[i]);
        pnb__result_real(r, key, NULL, f->backward.recall[i], 6);
        snprintf(key, sizeof key, "text_retrieval_recall@%zu", f->k[i]);
        pnb__result_real(r, key, NULL, f->forward.recall[i], 6);
    }
    pnb__result_real(r, "rsum", NULL, f->rsum, 6);
    const pnb_direction *const sides[] = {&f->backward, &f->forward};
    const char *const names[] = {"image_retrieval", "text_retrieval"};
    for (size_t s = 0; s < 2; s++) {
        snprintf(key, sizeof key, "%s_r_precision", names[s]);
        pnb__result_real(r, key, NULL, sides[s]->r_precision, 6);
        snprintf(key, sizeof key, "%s_map_at_r", names[s]);
        pnb__result_real(r, key, NULL, sides[s]->map_at_r, 6);
        snprintf(key, sizeof key, "%s_median_rank", names[s]);
        pnb__result_real(r, key, NULL, sides[s]->median_rank, 1);
        snprintf(key, sizeof key, "%s_n_queries", names[s]);
        pnb__result_int(r, key, NULL, (int64_t)sides[s]->n_queries);
    }
    pnb__result_end(r);
}

static void put_row(pnb__result *r, const char *name, const double *recall, size_t n_k,
                    double r_precision, double median_rank)
{
    pnb__result_cell_text(r, name);
    for (size_t i = 0; i < n_k; i++)
        pnb__result_cell_real(r, 100 * recall[i], 1);
    pnb__result_cell_real(r, 100 * r_precision, 1);
    pnb__result_cell_real(r, median_rank, 0);
}

static void put_table(const pnb__retrieval *run, pnb__result *r)
{
    const pnb_retrieval *f = &run->figures;
    char headings[PNB_MAX_RECALLS][16];
    pnb__column columns[PNB_MAX_RECALLS + 3] = {{"direction", "direction (%)"}};
    for (size_t i = 0; i < f->n_k; i++) {
        snprintf(headings[i], sizeof headings[i], "R@%zu", f->k[i]);
        columns[1 + i] = (pnb__column){headings[i], headings[i]};
    }
    columns[f->n_k + 1] = (pnb__column){"r_precision", "R-Prec"};
    columns[f->n_k + 2] = (pnb__column){"median_rank", "median rank"};
    pnb__result_table(r, "table", "", columns, f->n_k + 3);
    put_row(r, "image to text", f->forward.recall, f->n_k, f->forward.r_precision,
            f->forward.median_rank);
    put_row(r, "  by chance", run->i2t.chance, f->n_k, run->i2t.chance_r_precision, NAN);
    put_row(r, "text to image", f->backward.recall, f->n_k, f->backward.r_precision,
            f->backward.median_rank);
    put_row(r, "  by chance", run->t2i.chance, f->n_k, run->t2i.chance_r_precision, NAN);
}

static void put_bins(const pnb__retrieval_side *side, const char *key, const char *heading,
                     pnb__result *r)
{
    static const pnb__column columns[] = {
        {"bin", "bin"}, {"n", "queries"}, {"u_mean", "mean uncertainty"}, {"accuracy", "R@1"}};
    const pnb_calibration *c = &side->bins;
    pnb__result_begin(r, key, heading);
    pnb__result_real(r, "spearman_s", "S (Spearman of bin and R@1)", c->s, 3);
    pnb__result_real(r, "r2", "R\xC2\xB2 of the line", c->r2, 3);
    pnb__result_real(r, "minus_s_r2", "-S R\xC2\xB2", c->minus_s_r2, 3);
    pnb__result_int(r, "n_left_out", NULL, (int64_t)c->n_left_out);
    pnb__result_table(r, "bins", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < c->n_bins; i++) {
        pnb__result_cell_int(r, (int64_t)c->bin[i].index);
        pnb__result_cell_int(r, (int64_t)c->bin[i].n);
        pnb__result_cell_real(r, c->bin[i].u_mean, 5);
        pnb__result_cell_real(r, c->bin[i].accuracy, 4);
    }
    pnb__result_end(r);
}

void pnb__retrieval_report(const pnb__retrieval *run, const pnb__retrieval_opts *opts,
                           pnb__result *r)
{
    const pnb_embeddings_info *info = &run->images->info;
    pnb__result_text(r, "model", NULL, info->model);
    pnb__result_text(r, "pretrained", NULL, info->weights_sha256);
    pnb__result_text(r, "task", NULL, "zeroshot_retrieval");
    pnb__result_text(r, "language", NULL, "en");
    pnb__result_int(r, "n_images", "images", (int64_t)run->images->n);
    pnb__result_int(r, "n_texts", "captions", (int64_t)run->texts->n);
    pnb__result_int(r, "n_pairs", "true pairs", (int64_t)run->truth->n_pairs);
    pnb__result_text(r, "measure", "measure", pnb_measure_name(opts->measure));
    put_metrics(run, r);
    put_table(run, r);
    pnb__result_real(r, "rsum_percent", "RSUM", 100 * run->figures.rsum, 1);
    pnb__result_begin(r, "uncertainty", NULL);
    pnb__result_text(r, "kind", NULL, pnb_uncertainty_name(opts->uncertainty));
    put_bins(&run->i2t, "image_to_text", "uncertainty bins, image to text", r);
    put_bins(&run->t2i, "text_to_image", "uncertainty bins, text to image", r);
    pnb__result_end(r);
    pnb__result_begin(r, "provenance", NULL);
    pnb__result_text(r, "version", NULL, pnb_version());
    pnb__result_text(r, "weights_sha256", NULL, info->weights_sha256);
    pnb__result_int(r, "seed", NULL, (int64_t)info->seed);
    pnb__result_text(r, "preprocess", NULL, info->preprocess);
    pnb__result_end(r);
}
