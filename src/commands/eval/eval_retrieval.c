/* Computes retrieval both ways, bins, chance and intervals.
 *
 * Figures and definitions are eval's; this file gathers per-query values for the bootstrap, asks
 * what a first hit's score is worth (match_probability_use.c), and adds what a random ranking would
 * reach: a query with P positives among N items hits within k with probability 1 - prod_{j<k}
 * (N-P-j)/(N-j). */
#include "commands/eval/eval_retrieval.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/match_probability_use.h"
#include "penumbra/selective.h"
#include "sets/settle.h"

pnb__retrieval_opts pnb__retrieval_opts_default(void)
{
    return (pnb__retrieval_opts){.read = pnb_truth_read_opts_default(),
                                 .level = -1,
                                 .measure = PNB__MEASURE_AUTO,
                                 .match = {.a = NAN, .b = NAN},
                                 .uncertainty = PNB__UNCERTAINTY_AUTO,
                                 .fold_images = 1000,
                                 .binning = PNB_BINS_EQUAL_COUNT,
                                 .n_bins = 10,
                                 .k = {1, 5, 10},
                                 .n_k = 3};
}

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

/* ---- per-query values ---- */

enum { V_R_PRECISION, V_MAP, V_QUERY_U, V_HIT_U, V_CONFIDENCE, N_VALUES };

/* What the queries of one direction bring along. */
typedef struct query_source {
    const pnb_rows *queries, *items;
    const double *query_u, *item_u;
    const int64_t *cluster; /* of the queries */
    bool by_cosine;         /* of a query and its first hit in place of both */
    const pnb__match_probability *odds;
} query_source;

static double first_hit_cosine(const query_source *s, size_t query, int64_t item)
{
    return 1.0 -
           pnb_measure_pair(PNB_MEASURE_MEAN, s->queries, query, s->items, (size_t)item, NULL);
}

/* Of the queries that have a positive. */
static pnb_status gather_values(pnb__retrieval_side *side, const query_source *s, pnb_error *err)
{
    const pnb_ranks *ranks = &side->ranks;
    const pnb__match_probability *odds = s->odds;
    size_t n_queries = ranks->n_queries, n = 0;
    double *memory = pnb__alloc_array(n_queries, (N_VALUES + 2) * sizeof *memory);
    if (memory == NULL)
        return pnb__fail_nomem(err, n_queries * (N_VALUES + 2) * sizeof *memory);
    double *column[N_VALUES];
    for (size_t v = 0; v < N_VALUES; v++)
        column[v] = memory + v * n_queries;
    int64_t *rank = (int64_t *)(void *)(memory + N_VALUES * n_queries);
    int64_t *cluster = rank + n_queries;
    bool has_confidence = true;
    for (size_t q = 0; q < n_queries; q++) {
        if (ranks->best_rank[q] == 0)
            continue;
        double p = pnb__match_probability_first(odds, ranks->top1_score[q]);
        p = isnan(p) ? pnb__match_probability_of(odds, ranks->top1_score[q]) : p;
        has_confidence = has_confidence && !isnan(p);
        rank[n] = ranks->best_rank[q];
        cluster[n] = s->cluster[q];
        column[V_R_PRECISION][n] = ranks->r_precision[q];
        column[V_MAP][n] = ranks->map_at_r[q];
        column[V_QUERY_U][n] =
            s->by_cosine ? first_hit_cosine(s, q, ranks->top1[q]) : s->query_u[q];
        column[V_HIT_U][n] = s->by_cosine ? column[V_QUERY_U][n] : s->item_u[ranks->top1[q]];
        column[V_CONFIDENCE][n++] = p;
    }
    side->values.memory = memory;
    side->values.query =
        (pnb_query_values){.n = n,
                           .best_rank = rank,
                           .r_precision = column[V_R_PRECISION],
                           .map_at_r = column[V_MAP],
                           .uncertainty = column[V_QUERY_U],
                           .confidence = has_confidence ? column[V_CONFIDENCE] : NULL,
                           .cluster = cluster};
    side->values.hit = side->values.query;
    side->values.hit.uncertainty = column[V_HIT_U];
    return PNB_OK;
}

static pnb_status add_figures(pnb__app *app, const pnb__retrieval_opts *opts,
                              pnb__retrieval_side *side)
{
    const pnb_query_values *const values[] = {&side->values.query, &side->values.hit};
    pnb_figure_intervals *const out[] = {&side->by_query, &side->by_hit};
    pnb_figure_opts o = pnb_figure_opts_default();
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    pnb_status status = PNB_OK;
    o.k = opts->k;
    o.n_k = opts->n_k;
    o.n_bins = opts->n_bins;
    b.n_resamples = opts->n_resamples;
    b.seed = (uint64_t)app->common.seed;
    for (size_t i = 0; status == PNB_OK && i < 2; i++)
        status = pnb_figures_bootstrap(app->ctx, values[i], 1, &o, &b, out[i], &app->err);
    return status;
}

/* Bins as asked for and the risk at each coverage, over the queries that have a positive; with
 * fewer queries than bins, one a query. */
static pnb_status add_bins(pnb__app *app, const pnb__retrieval_opts *opts,
                           pnb__retrieval_side *side)
{
    const pnb_query_values *v = opts->bin_by_hit ? &side->values.hit : &side->values.query;
    size_t n_bins = PNB_MIN(opts->n_bins, v->n);
    double *right = pnb__alloc_array(PNB_MAX(v->n, 1), sizeof *right);
    if (right == NULL)
        return pnb__fail_nomem(&app->err, v->n * sizeof *right);
    for (size_t q = 0; q < v->n; q++)
        right[q] = v->best_rank[q] == 1;
    if (n_bins < opts->n_bins)
        pnb__say(app, "%zu queries: %zu bins instead of %zu", v->n, n_bins, opts->n_bins);
    pnb_status status = PNB_OK;
    if (n_bins > 0)
        status = pnb_uncertainty_calibration_compute(v->uncertainty, right, v->n, opts->binning,
                                                     n_bins, &side->bins, &app->err);
    if (status == PNB_OK && n_bins > 0)
        status = pnb_risk_coverage(side->values.query.uncertainty, right, v->n, PNB__N_COVERAGE,
                                   side->coverage, side->risk, &app->err);
    pnb__free(right);
    return status;
}

static pnb_status add_side(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run,
                           bool i2t)
{
    const pnb__list_limits limits = {
        .min_probability = NAN, .conformal_alpha = NAN, .for_figures = true};
    const pnb__match_probability_use use = {i2t ? opts->texts : opts->images,
                                            i2t ? run->texts : run->images,
                                            i2t ? run->images : run->texts,
                                            run->measure,
                                            &run->measure_opts,
                                            .match_is_told =
                                                !isnan(opts->match.a) && !isnan(opts->match.b)};
    pnb__retrieval_side *side = i2t ? &run->i2t : &run->t2i;
    pnb__match_probability odds = {0};
    pnb_status status;
    const query_source source = {i2t ? &run->image_rows : &run->text_rows,
                                 i2t ? &run->text_rows : &run->image_rows,
                                 i2t ? run->image_u : run->text_u,
                                 i2t ? run->text_u : run->image_u,
                                 i2t ? run->image_cluster : run->text_cluster,
                                 run->uncertainty == PNB_UNCERTAINTY_COSINE,
                                 &odds};
    /* Pictures stay side 1 of an asymmetric measure, in a search the query is: a calibration for
     * caption queries speaks of other scores. */
    if (i2t || pnb_measure_is_symmetric(run->measure))
        PNB_TRY(pnb__match_probability_load(app, &use, &limits, &odds));
    if (odds.has_fit && strcmp(odds.fit.queries, i2t ? opts->images : opts->texts) == 0)
        pnb__warn(app, "%s was fitted on these very queries: ECE and NLPD come out too good",
                  odds.path);
    PNB_TRY(gather_values(side, &source, &app->err));
    PNB_TRY(add_bins(app, opts, side));
    PNB_TRY(add_figures(app, opts, side));
    add_chance(i2t ? run->truth : run->backward, opts, side);
done:
    pnb__match_probability_reset(&odds);
    return status;
}

static pnb_status add_rsum(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    const pnb_rsum_job job = {.a = {&run->i2t.values.query, &run->t2i.values.query},
                              .n_a = 1,
                              .k = opts->k,
                              .n_k = opts->n_k};
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    b.n_resamples = opts->n_resamples;
    b.seed = (uint64_t)app->common.seed;
    return pnb_rsum_bootstrap(&job, &b, &run->rsum, &app->err);
}

pnb_status pnb__retrieval_run(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb_error *err = &app->err;
    pnb_status status;
    *run = (pnb__retrieval){.has_intervals = opts->n_resamples > 0};
    PNB_TRY(pnb__retrieval_load(app, opts, run));
    PNB_TRY(pnb__retrieval_clusters(app, opts, run));
    search.measure = run->measure;
    search.measure_opts = run->measure_opts;
    const pnb_retrieval_job job = {&run->image_rows, &run->text_rows, run->truth, &search,
                                   opts->k,          opts->n_k,       opts->ranks};
    PNB_TRY(pnb_retrieval_compute(app->ctx, &job, &run->figures, &run->i2t.ranks, &run->t2i.ranks,
                                  err));
    PNB_TRY(add_side(app, opts, run, true));
    PNB_TRY(add_side(app, opts, run, false));
    PNB_TRY(add_rsum(app, opts, run));
    PNB_TRY(pnb__retrieval_coco(app, opts, run));
    if (opts->label_vectors != NULL)
        PNB_TRY(pnb__retrieval_pmrp(app, opts, run));
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
    pnb__free(run->i2t.values.memory);
    pnb__free(run->t2i.values.memory);
    pnb__free(run->image_u);
    pnb__free(run->text_u);
    pnb__free(run->text_level);
    pnb__row_classes_reset(&run->classes);
    pnb__free(run->image_cluster);
    pnb__free(run->text_cluster);
    pnb__free(run->karpathy_row);
    pnb__free(run->image_fold);
    pnb__free(run->text_fold);
    for (size_t i = 0; i < 2 * PNB__N_COCO_BLOCKS; i++)
        pnb__means_reset(&run->coco_means[i / 2][i % 2]);
    *run = (pnb__retrieval){0};
}
