/* Figures of two embedding sets: recall table, bins, risk and coverage, histograms, the 2-D view.
 *
 * Everything shown was computed by eval; the histograms share one logarithmic axis so that levels
 * can be compared by eye. */
#include <math.h>
#include <string.h>

#include "commands/report/report_internal.h"
#include "penumbra/pca.h"
#include "report/chart.h"
#include "report/histogram.h"

enum { N_HISTOGRAM = 32, MAX_ELLIPSES = 90, COLOUR_IMAGES = 5 };

/* Captions of unknown level share the first colour; levels follow the palette. */
static int level_colour(int level)
{
    return level < 0 ? 0 : level % 5;
}

static int last_level(const pnb__retrieval *run)
{
    int last = -1;
    for (size_t i = 0; i < run->texts->n; i++)
        last = PNB_MAX(last, PNB_MIN(run->text_level[i], PNB__MAX_LEVELS - 1));
    return last;
}

const char *pnb__report_uncertainty(const pnb__retrieval *run)
{
    switch (run->uncertainty) {
    case PNB_UNCERTAINTY_INV_KAPPA:
        return "1/kappa";
    case PNB_UNCERTAINTY_GG_VAR:
    case PNB_UNCERTAINTY_MEAN_VAR:
        return "mean of the variances";
    case PNB_UNCERTAINTY_GEO_STD:
        return "geometric mean of the standard deviations";
    case PNB_UNCERTAINTY_ALEATORIC:
        return "mean of the variances, aleatoric part";
    case PNB_UNCERTAINTY_EPISTEMIC:
        return "mean of the variances, epistemic part";
    case PNB_UNCERTAINTY_COSINE:
        return "1 - cosine of a query and its first hit";
    default:
        return "trace of the covariance";
    }
}

bool pnb__report_is_uncertain(const pnb_rows *rows)
{
    return rows->log_var != NULL || rows->kappa != NULL || rows->beta != NULL;
}

/* ---- retrieval ---- */

void pnb__report_retrieval(pnb__report *r)
{
    const pnb__retrieval *run = r->found.run;
    const json_t *interval = pnb__result_get(r->figures, "rsum_interval");
    pnb__page *page = &r->page;
    page->shown = r->figures;
    pnb__page_section(page, "Retrieval",
                      "Share of queries with a right answer among the first k. "
                      "Chance is what a random order would reach on the same data.");
    pnb__page_table(page, "table", NULL);
    pnb__buf *out = pnb__page_block(page);
    pnb__buf_printf(out, "<p class=\"soft\">RSUM, all recalls both ways: %.4f",
                    pnb__page_number(page, "metrics.rsum"));
    if (interval != NULL)
        pnb__buf_printf(out, " [%.4f, %.4f]", json_number_value(json_array_get(interval, 0)),
                        json_number_value(json_array_get(interval, 1)));
    pnb__buf_printf(out,
                    ". %zu pictures, %zu captions, %zu true pairs; ranked by %s, %s. Uncertainty: "
                    "%s.</p>\n",
                    run->images->n, run->texts->n, run->truth->n_pairs,
                    pnb_measure_name(run->measure), pnb_measure_sentence(run->measure),
                    pnb__report_uncertainty(run));
}

void pnb__report_figures(pnb__report *r)
{
    const pnb__retrieval *run = r->found.run;
    static const char *const columns[] = {"figure", "sorted_by", "i2t", "t2i", "meaning", NULL};
    char about[512];
    snprintf(
        about, sizeof about,
        "With 95%% bootstrap intervals over %zu clusters (a cluster is a %s), as `penumbra "
        "eval retrieval` prints them; shares are fractions. Sorted by the query's own uncertainty, "
        "or by that of what was found (hit). Figures of bins have no interval: they depend on the "
        "number of queries; Spearman and AUROC over single queries do not.",
        run->n_clusters[0], run->cluster_unit);
    r->page.shown = r->figures;
    pnb__page_section(&r->page, "All figures",
                      run->has_intervals ? about : "As `penumbra eval retrieval` prints them.");
    pnb__page_table(&r->page, "figures", columns);
}

/* ---- uncertainty by direction ---- */

/* A figure of a direction, "text_to_image" or the other, in the tree. */
static double of_way(const pnb__page *page, const char *way, const char *key)
{
    char path[96];
    snprintf(path, sizeof path, "uncertainty.%s.%s", way, key);
    return pnb__page_number(page, path);
}

static void draw_bins(pnb__page *page, const char *way, const char *name, int colour)
{
    char title[120], table[64];
    snprintf(table, sizeof table, "uncertainty.%s.bins", way);
    snprintf(title, sizeof title, "%s: S = %.2f, R\xC2\xB2 = %.2f", name,
             of_way(page, way, "spearman_s"), of_way(page, way, "r2"));
    const pnb__plot plot = {.title = title,
                            .table = table,
                            .x = {.exact = true, .label = "bin of queries, 0 = most certain"},
                            .y = {PNB__FROM_0, .label = "recall at 1 (share)"},
                            .reference = PNB__REFERENCE_TREND,
                            .reference_name = "least-squares line",
                            .series = {{.name = "recall at 1",
                                        .x = "bin",
                                        .y = "accuracy",
                                        .shape = PNB__SHAPE_BARS,
                                        .colour = colour}},
                            .n_series = 1};
    pnb__page_plot(page, &plot);
}

static const char *binning_words(pnb_binning binning)
{
    switch (binning) {
    case PNB_BINS_EQUAL_WIDTH:
        return "bins of equal width";
    case PNB_BINS_GROVE_SAMPLES:
        return "bins of equal count as GroVE's released code cuts them";
    case PNB_BINS_GROVE_SPACING:
        return "cumulative bins of equal spacing as GroVE's released code cuts them";
    default:
        return "bins of equal count";
    }
}

void pnb__report_bins(pnb__report *r)
{
    const pnb__retrieval_opts *opts = &r->opts->retrieval;
    pnb__page *page = &r->page;
    char about[512];
    page->shown = r->every;
    snprintf(about, sizeof about,
             "Queries sorted by %s into %s. If the uncertainty means something, recall falls from "
             "left to right: S is the rank correlation of bin and recall (\xE2\x88\x92"
             "1 is best), R\xC2\xB2 how well a line fits.",
             opts->bin_by_hit ? "the uncertainty of what they found" : "their own uncertainty",
             binning_words(opts->binning));
    pnb__page_section(page, "Does uncertainty tell when retrieval fails?", about);
    draw_bins(page, "text_to_image", "Caption to picture", 0);
    draw_bins(page, "image_to_text", "Picture to caption", 1);
}

static void draw_risk(pnb__page *page, const char *way, const char *name, int colour)
{
    char title[160], table[64];
    snprintf(table, sizeof table, "uncertainty.%s.risk_coverage", way);
    snprintf(title, sizeof title, "%s: area %.3f, order AUROC %.2f", name,
             of_way(page, way, "by_query.aurc"), of_way(page, way, "by_query.auroc"));
    const pnb__plot plot = {
        .title = title,
        .table = table,
        .x = {.high = 1, .exact = true, .label = "coverage (share of queries answered)"},
        .y = {.label = "risk (share of those wrong)"}, /* no further: the lines are often close */
        .reference = PNB__REFERENCE_LAST,
        .reference_name = "any order",
        .series = {{.name = "most certain first", .x = "coverage", .y = "risk", .colour = colour}},
        .n_series = 1};
    pnb__page_plot(page, &plot);
}

void pnb__report_selective(pnb__report *r)
{
    pnb__page *page = &r->page;
    page->shown = r->every;
    pnb__page_section(
        page, "Answering only when certain",
        "Queries answered in the order of their uncertainty. The line falls to the "
        "left where wrong answers are the uncertain ones; in any other order it "
        "stays on the dashes. The area under it is AURC (smaller is better). The risk axis "
        "covers what occurs and need not begin at 0.");
    draw_risk(page, "text_to_image", "Caption to picture", 0);
    draw_risk(page, "image_to_text", "Picture to caption", 1);
}

/* ---- histograms ---- */

/* Rows of one kind, and how they are shown. */
typedef struct group {
    const char *title;
    int colour;
    const double *u;
    const int *level; /* NULL: all rows, else those of the wanted one */
    int wanted;
    size_t n_rows;
} group;

/* Shares of the group's rows in bins as a table, drawn. */
static void histogram(pnb__report *r, const group *g, const pnb__bins *bins, const char *label)
{
    static const pnb__column columns[] = {{"from", NULL}, {"to", NULL}, {"share", NULL}};
    double count[N_HISTOGRAM] = {0}, sum = 0;
    size_t n = 0;
    char title[120];
    for (size_t i = 0; i < g->n_rows; i++) {
        if ((g->level != NULL && g->level[i] != g->wanted) || !(g->u[i] > 0))
            continue;
        count[pnb__bin_of(bins, g->u[i])]++;
        sum += g->u[i];
        n++;
    }
    snprintf(title, sizeof title, "%s (%zu, mean %.3g)", g->title, n, sum / (double)n);
    pnb__result_table(r->more, g->title, NULL, columns, PNB_COUNT(columns));
    for (size_t b = 0; n > 0 && b < bins->n; b++) {
        pnb__result_cell_real(r->more, pnb__bin_border(bins, b), 5);
        pnb__result_cell_real(r->more, pnb__bin_border(bins, b + 1), 5);
        pnb__result_cell_real(r->more, count[b] / (double)n, 5);
    }
    const pnb__plot plot = {.title = title,
                            .table = g->title,
                            .height = 220,
                            .x = {.log = true, .exact = true, .label = label},
                            .y = {PNB__FROM_0, .label = "share"},
                            .series = {{.x = "from",
                                        .x_to = "to",
                                        .y = "share",
                                        .shape = PNB__SHAPE_BARS,
                                        .colour = g->colour}},
                            .n_series = 1};
    pnb__page_plot(&r->page, &plot);
}

void pnb__report_histograms(pnb__report *r)
{
    const pnb__retrieval *all = &r->all;
    char label[80], about[256];
    pnb__axis range = {.log = true};
    snprintf(label, sizeof label, "uncertainty (%s)", pnb__report_uncertainty(all));
    snprintf(about, sizeof about,
             "Uncertainty of an embedding is the %s. Level 0 holds the most general captions. All "
             "panels share the horizontal axis.",
             pnb__report_uncertainty(all));
    pnb__axis_cover(&range, all->image_u, all->images->n);
    pnb__axis_cover(&range, all->text_u, all->texts->n);
    if (!(range.low > 0))
        return; /* points: nothing to show */
    const pnb__bins bins = {range.low / 1.05, range.high * 1.05, true, N_HISTOGRAM};
    r->page.shown = r->more;
    pnb__page_section(&r->page, "How uncertain is the model?", about);
    group g = {"Pictures", COLOUR_IMAGES, all->image_u, NULL, 0, all->images->n};
    histogram(r, &g, &bins, label);
    int last = last_level(all);
    for (int level = last < 0 ? -1 : 0; level <= last; level++) {
        char title[40];
        snprintf(title, sizeof title, level < 0 ? "Captions" : "Captions of level %d", level);
        g = (group){title, level_colour(level), all->text_u, all->text_level, level, all->texts->n};
        histogram(r, &g, &bins, label);
    }
}

/* ---- 2-D view ---- */

/* Projected rows of a set; only every `stride`-th is drawn. */
typedef struct cloud {
    double *xy, *cov;
    size_t n, stride;
} cloud;

static pnb_status project(const pnb_pca *pca, const pnb_gaussians *rows, size_t stride, cloud *out,
                          pnb_error *err)
{
    out->n = rows->n;
    out->stride = PNB_MAX(stride, (size_t)1);
    out->xy = pnb__alloc_array(2 * rows->n, sizeof(double));
    out->cov = pnb__alloc_array(3 * rows->n, sizeof(double));
    if (out->xy == NULL || out->cov == NULL)
        return pnb__fail_nomem(err, 5 * rows->n * sizeof(double));
    return pnb_pca_project(pca, rows, out->xy, out->cov, err);
}

static void draw_cloud(pnb__chart *chart, const cloud *c, const int *level)
{
    for (size_t i = 0; i < c->n; i += c->stride) {
        int colour = level != NULL ? level_colour(level[i]) : COLOUR_IMAGES;
        pnb__chart_gaussian(chart, colour, c->xy + 2 * i, c->cov + 3 * i, 0.95);
    }
}

static void cover(pnb__chart *chart, const cloud *c)
{
    for (size_t i = 0; i < c->n; i += c->stride) {
        double rx = 2.5 * sqrt(PNB_MAX(c->cov[3 * i], 0)), x = c->xy[2 * i];
        double ry = 2.5 * sqrt(PNB_MAX(c->cov[3 * i + 2], 0)), y = c->xy[2 * i + 1];
        pnb__axis_cover(&chart->x, (double[]){x - rx, x + rx}, 2);
        pnb__axis_cover(&chart->y, (double[]){y - ry, y + ry}, 2);
    }
}

static void pca_legend(pnb__chart *chart, const pnb__retrieval *all, char names[][32])
{
    chart->legend[chart->n_legend++] = (pnb__legend_entry){"picture", COLOUR_IMAGES, PNB__MARK_DOT};
    int last = last_level(all);
    for (int level = last < 0 ? -1 : 0; level <= last && level < 5; level++) {
        char *name = names[level + 1];
        snprintf(name, 32, level < 0 ? "caption" : "caption of level %d", level);
        chart->legend[chart->n_legend++] =
            (pnb__legend_entry){name, level_colour(level), PNB__MARK_DOT};
    }
}

pnb_status pnb__report_pca(pnb__report *r)
{
    const pnb__retrieval *all = &r->all;
    pnb_error *err = &r->app->err;
    const pnb_gaussians *const sets[] = {&all->image_rows, &all->text_rows};
    pnb_pca pca = {0};
    cloud images = {0}, texts = {0};
    char x_label[64], y_label[64], names[8][32];
    pnb_status status;
    PNB_TRY(pnb_pca_fit(&pca, sets, 2, err));
    PNB_TRY(project(&pca, sets[0], sets[0]->n / MAX_ELLIPSES, &images, err));
    PNB_TRY(project(&pca, sets[1], sets[1]->n / (2 * MAX_ELLIPSES), &texts, err));
    snprintf(x_label, sizeof x_label, "first axis (%.1f%% of the variance)",
             100 * pca.variance[0] / pca.total_variance);
    snprintf(y_label, sizeof y_label, "second axis (%.1f%%)",
             100 * pca.variance[1] / pca.total_variance);
    pnb__chart chart = {.title = "Principal axes of all embeddings, 95% ellipses",
                        .css = "wide",
                        .width = 480,
                        .height = 470,
                        .x = {.label = x_label},
                        .y = {.label = y_label},
                        .equal_units = true};
    cover(&chart, &images);
    cover(&chart, &texts);
    pca_legend(&chart, all, names);
    pnb__page_section(&r->page, "Two dimensions of the embedding space",
                      "A linear view, so each Gaussian stays one. An evenly spaced sample of "
                      "pictures and captions; the ellipse holds 95% of an embedding. One unit is "
                      "the same length on both axes; means have length 1 in all dimensions.");
    pnb__buf *out = pnb__page_block(&r->page);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    pnb__chart_begin(&chart, out);
    draw_cloud(&chart, &images, NULL);
    draw_cloud(&chart, &texts, all->text_level);
    pnb__chart_end(&chart);
    pnb__buf_puts(out, "</div>\n");
done:
    pnb_pca_reset(&pca);
    pnb__free(images.xy);
    pnb__free(images.cov);
    pnb__free(texts.xy);
    pnb__free(texts.cov);
    return status;
}
