/* A retrieval result as JSON in CLIP_benchmark's form with additions, and as text.
 *
 * "metrics" has CLIP_benchmark's names (image retrieval is text to image) and those of ECCV
 * Caption, each {"i2t", "t2i"}. "uncertainty" has the figures of image retrieval by the captions'
 * uncertainty at its top, and below them both directions by both uncertainties. "figures" repeats
 * everything that has an interval, one row a figure. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "commands/common/set_use.h"
#include "commands/eval/eval_files.h"
#include "program/source_commit.h"

/* ---- metrics ---- */

/* Each figure both ways, its interval behind it. */
static void put_coco(const pnb__retrieval *run, pnb__result *r)
{
    static const char *const WAYS[] = {"i2t", "t2i"};
    char key[48];
    for (size_t i = 0; i < run->n_coco; i++) {
        const pnb__coco_row *row = &run->coco[i];
        pnb__result_begin(r, row->key, NULL);
        for (size_t way = 0; way < 2; way++)
            pnb__result_real(r, WAYS[way], NULL, row->side[way].value, 6);
        pnb__result_end(r);
        if (!run->has_intervals)
            continue;
        snprintf(key, sizeof key, "%s_interval", row->key);
        pnb__result_begin(r, key, NULL);
        for (size_t way = 0; way < 2; way++) {
            const double interval[] = {row->side[way].low, row->side[way].high};
            pnb__result_numbers(r, WAYS[way], interval, 2);
        }
        pnb__result_end(r);
    }
}

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
    put_coco(run, r);
    pnb__result_end(r);
}

/* The same as a table. */
static void put_coco_table(const pnb__retrieval *run, pnb__result *r)
{
    static const pnb__column bare[] = {
        {"figure", "COCO"}, {"i2t", "image to text"}, {"t2i", "text to image"}};
    static const pnb__column full[] = {
        {"figure", "COCO"},       {"i2t", "image to text"}, {"i2t_low", "from"}, {"i2t_high", "to"},
        {"t2i", "text to image"}, {"t2i_low", "from"},      {"t2i_high", "to"}};
    if (run->n_coco == 0)
        return;
    if (run->has_intervals)
        pnb__result_table(r, "coco_table", "", full, PNB_COUNT(full));
    else
        pnb__result_table(r, "coco_table", "", bare, PNB_COUNT(bare));
    for (size_t i = 0; i < run->n_coco; i++) {
        pnb__result_cell_text(r, run->coco[i].label);
        for (size_t way = 0; way < 2; way++) {
            const pnb_interval *v = &run->coco[i].side[way];
            pnb__result_cell_real(r, v->value, 4);
            if (!run->has_intervals)
                continue;
            pnb__result_row(r, "%.4f %.4f", v->low, v->high);
        }
    }
}

/* ---- tables ---- */

static void put_row(pnb__result *r, const char *name, const double *recall, size_t n_k,
                    double r_precision, double median_rank)
{
    pnb__result_cell_text(r, name);
    for (size_t i = 0; i < n_k; i++)
        pnb__result_cell_real(r, recall[i], 4);
    pnb__result_row(r, "%.4f %.0f", r_precision, median_rank);
}

static void put_table(const pnb__retrieval *run, pnb__result *r)
{
    const pnb_retrieval *f = &run->figures;
    char headings[PNB_MAX_RECALLS][16], keys[PNB_MAX_RECALLS][32];
    pnb__column columns[PNB_MAX_RECALLS + 3] = {{"direction", "direction"}};
    for (size_t i = 0; i < f->n_k; i++) {
        snprintf(headings[i], sizeof headings[i], "R@%zu", f->k[i]);
        snprintf(keys[i], sizeof keys[i], "recall_at_%zu", f->k[i]);
        columns[1 + i] = (pnb__column){keys[i], headings[i]};
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

static void put_figure_row(pnb__result *r, const char *name, const char *by, const char *meaning,
                           const pnb_figure_intervals *const side[2], size_t figure, bool is_recall)
{
    pnb__result_row(r, "%s %s", name, by);
    for (size_t s = 0; s < 2; s++) {
        const pnb_figures *const parts[] = {&side[s]->value, &side[s]->low, &side[s]->high};
        for (size_t p = 0; p < 3; p++)
            pnb__result_cell_real(r, is_recall ? parts[p]->recall[figure] : parts[p]->value[figure],
                                  4);
    }
    pnb__result_cell_text(r, meaning);
}

/* Figures of ranks stand once, those of uncertainty for the query's and for what it found. */
static void put_figures(const pnb__retrieval *run, const pnb__retrieval_opts *opts, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"figure", "figure"}, {"sorted_by", "sorted by"}, {"i2t", "image to text"},
        {"i2t_low", "from"},  {"i2t_high", "to"},         {"t2i", "text to image"},
        {"t2i_low", "from"},  {"t2i_high", "to"},         {"meaning", NULL}};
    const pnb_figure_intervals *const query[] = {&run->i2t.by_query, &run->t2i.by_query};
    const pnb_figure_intervals *const hit[] = {&run->i2t.by_hit, &run->t2i.by_hit};
    char name[32], heading[256] = "without intervals";
    if (run->has_intervals)
        snprintf(heading, sizeof heading,
                 "95%% intervals from %zu resamples of %zu clusters; a cluster is a %s",
                 opts->n_resamples, run->n_clusters[0], run->cluster_unit);
    pnb__result_table(r, "figures", heading, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < opts->n_k; i++) {
        snprintf(name, sizeof name, "recall@%zu", opts->k[i]);
        put_figure_row(r, name, "", "share of queries with a match among the first k", query, i,
                       true);
    }
    for (size_t f = 0; f < PNB_N_FIGURES; f++) {
        const char *word = pnb_figure_name((pnb_figure)f);
        const char *meaning = pnb_figure_sentence((pnb_figure)f);
        bool is_sorted = pnb_figure_is_sorted((pnb_figure)f);
        if (isnan(query[0]->value.value[f]) && isnan(query[1]->value.value[f]))
            continue;
        put_figure_row(r, word, is_sorted ? "query" : "", meaning, query, f, false);
        if (is_sorted)
            put_figure_row(r, word, "hit", meaning, hit, f, false);
    }
    for (size_t i = 0; i < run->n_coco; i++) {
        pnb__result_row(r, "%s %s", run->coco[i].key, "");
        for (size_t way = 0; way < 2; way++) {
            pnb__result_row(r, "%.4f %.4f %.4f", run->coco[i].side[way].value,
                            run->coco[i].side[way].low, run->coco[i].side[way].high);
        }
        pnb__result_cell_text(r, run->coco[i].label);
    }
}

/* ---- uncertainty ---- */

static void put_bin_rows(const pnb_uncertainty_calibration *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"bin", "bin"}, {"n", "queries"}, {"u_mean", "mean uncertainty"}, {"accuracy", "R@1"}};
    pnb__result_table(r, "bins", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < c->n_bins; i++) {
        pnb__result_row(r, "%zu %zu %.5f %.4f", c->bin[i].index, c->bin[i].n, c->bin[i].u_mean,
                        c->bin[i].accuracy);
    }
}

/* Figures of `query` that hang on uncertainty or confidence, into the open object. */
static void put_values(const pnb_figure_intervals *side, size_t first, size_t last, pnb__result *r)
{
    for (size_t f = first; f <= last; f++)
        pnb__result_real(r, pnb_figure_name((pnb_figure)f), NULL, side->value.value[f], 6);
}

static void put_bins(const pnb__retrieval_side *side, const char *key, const char *heading,
                     pnb__result *r)
{
    const pnb_uncertainty_calibration *c = &side->bins;
    pnb__result_begin(r, key, heading);
    pnb__result_real(r, "spearman_s", "S (Spearman of bin and R@1)", c->s, 3);
    pnb__result_real(r, "r2", "R\xC2\xB2 of the line", c->r2, 3);
    pnb__result_real(r, "minus_s_r2", "-S R\xC2\xB2", c->minus_s_r2, 3);
    pnb__result_int(r, "n_left_out", NULL, (int64_t)c->n_left_out);
    put_bin_rows(c, r);
    pnb__result_begin(r, "risk_coverage", NULL);
    pnb__result_numbers(r, "coverage", side->coverage, PNB__N_COVERAGE);
    pnb__result_numbers(r, "risk", side->risk, PNB__N_COVERAGE);
    pnb__result_end(r);
    put_values(&side->by_query, PNB_FIGURE_ECE, PNB_FIGURE_NLPD, r);
    pnb__result_begin(r, "by_query", NULL);
    put_values(&side->by_query, PNB_FIGURE_SPEARMAN_S, PNB_FIGURE_AUGRC, r);
    pnb__result_end(r);
    pnb__result_begin(r, "by_hit", NULL);
    put_values(&side->by_hit, PNB_FIGURE_SPEARMAN_S, PNB_FIGURE_AUGRC, r);
    pnb__result_end(r);
    pnb__result_end(r);
}

static void put_uncertainty(const pnb__retrieval *run, const pnb__retrieval_opts *opts,
                            pnb__result *r)
{
    pnb__result_begin(r, "uncertainty", NULL);
    pnb__result_text(r, "kind", NULL, pnb_uncertainty_name(run->uncertainty));
    pnb__result_text(r, "binning", NULL, pnb_binning_name(opts->binning));
    pnb__result_text(r, "bin_by", NULL, opts->bin_by_hit ? "hit" : "query");
    pnb__result_real(r, "spearman_s", NULL, run->t2i.bins.s, 6);
    pnb__result_real(r, "r2", NULL, run->t2i.bins.r2, 6);
    pnb__result_real(r, "minus_s_r2", NULL, run->t2i.bins.minus_s_r2, 6);
    const pnb_figure_intervals *side = opts->bin_by_hit ? &run->t2i.by_hit : &run->t2i.by_query;
    put_values(side, PNB_FIGURE_QUERY_SPEARMAN, PNB_FIGURE_NLPD, r);
    put_bins(&run->i2t, "image_to_text", "uncertainty bins, image to text", r);
    put_bins(&run->t2i, "text_to_image", "uncertainty bins, text to image", r);
    pnb__result_repeat(r, "text_to_image", "bins");
    pnb__result_end(r);
}

/* What was drawn to make the intervals. */
static void put_resampling(const pnb__retrieval *run, const pnb__retrieval_opts *opts,
                           pnb__result *r)
{
    if (!run->has_intervals)
        return;
    pnb__result_begin(r, "resampling", NULL);
    pnb__result_text(r, "unit", "resampled unit", run->cluster_unit);
    pnb__result_text(r, "key", NULL, opts->cluster);
    pnb__result_int(r, "n_clusters", "clusters", (int64_t)run->n_clusters[0]);
    pnb__result_int(r, "n_resamples", NULL, (int64_t)opts->n_resamples);
    pnb__result_real(r, "level", NULL, 0.95, 2);
    pnb__result_text(r, "method", NULL, "bca");
    pnb__result_end(r);
}

void pnb__retrieval_report(const pnb__retrieval *run, const pnb__retrieval_opts *opts,
                           const char *dataset, pnb__result *r)
{
    const pnb_embeddings_info *info = &run->images->info;
    const pnb_embeddings_info *origin = pnb__set_origin(run->images, run->texts);
    char pretrained[PNB__PRETRAINED_BYTES];
    pnb__set_pretrained(origin, pretrained);
    pnb__result_text(r, "dataset", NULL, dataset);
    pnb__result_text(r, "model", NULL, info->model);
    pnb__result_text(r, "pretrained", NULL, pretrained);
    pnb__result_text(r, "task", NULL, PNB__RETRIEVAL_TASK);
    pnb__result_text(r, "language", NULL, PNB__RETRIEVAL_LANGUAGE);
    pnb__result_int(r, "n_images", "images", (int64_t)run->images->n);
    pnb__result_int(r, "n_texts", "captions", (int64_t)run->texts->n);
    pnb__result_int(r, "n_pairs", "true pairs", (int64_t)run->truth->n_pairs);
    pnb__put_measure(r, "measure", run->measure,
                     (const pnb_embeddings *[]){run->images, run->texts},
                     (const char *[]){"images", "texts"});
    pnb__put_match(r, run->measure, &run->measure_opts, true);
    put_metrics(run, r);
    put_table(run, r);
    pnb__result_real(r, NULL, "RSUM", run->figures.rsum, 4);
    if (run->has_intervals) {
        const double interval[] = {run->rsum.low, run->rsum.high};
        pnb__result_real(r, NULL, "  from", run->rsum.low, 4);
        pnb__result_real(r, NULL, "  to", run->rsum.high, 4);
        pnb__result_numbers(r, "rsum_interval", interval, 2);
    }
    put_coco_table(run, r);
    put_resampling(run, opts, r);
    put_uncertainty(run, opts, r);
    put_figures(run, opts, r);
    pnb__result_begin(r, "provenance", NULL);
    pnb__result_text(r, "version", NULL, pnb_version());
    pnb__result_text(r, "git", NULL, pnb__source_commit());
    pnb__result_text(r, "weights_sha256", NULL, info->weights_sha256);
    pnb__put_adapters(&origin->adapters, r);
    pnb__result_int(r, "seed", NULL, (int64_t)info->seed);
    pnb__result_text(r, "preprocess", NULL, info->preprocess);
    pnb__result_text(r, "images", NULL, opts->images);
    pnb__result_text(r, "texts", NULL, opts->texts);
    pnb__result_text(r, "truth", NULL, opts->truth);
    pnb__result_int(r, "n_resamples", NULL, (int64_t)opts->n_resamples);
    pnb__result_end(r);
}
