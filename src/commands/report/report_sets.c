/* Figures of two embedding sets: recall table, bins, histograms, and the 2-D view.
 *
 * Everything shown was computed by eval; the histograms share one logarithmic axis so that levels
 * can be compared by eye. How axes and marks are drawn is chart.c's business. */
#include <math.h>
#include <string.h>

#include "commands/report/report_internal.h"
#include "penumbra/pca.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/svg.h"

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

/* ---- recall ---- */

static void recall_row(pnb__buf *out, const char *name, const double *recall, size_t n_k,
                       double r_precision)
{
    pnb__buf_printf(out, "<tr><td>%s</td>", name);
    for (size_t i = 0; i < n_k; i++)
        pnb__buf_printf(out, "<td class=\"n\">%.4f</td>", recall[i]);
    pnb__buf_printf(out, "<td class=\"n\">%.4f</td></tr>\n", r_precision);
}

pnb_status pnb__report_retrieval(pnb__buf *out, const pnb__retrieval *run)
{
    const pnb_retrieval *f = &run->figures;
    pnb__html_section(out, "Retrieval",
                      "Share of queries with a right answer among the first k. "
                      "Chance is what a random order would reach on the same data.");
    pnb__buf_puts(out, "<div class=\"scroll\"><table><tr><th>direction</th>");
    for (size_t i = 0; i < f->n_k; i++)
        pnb__buf_printf(out, "<th class=\"n\">R@%zu</th>", f->k[i]);
    pnb__buf_puts(out, "<th class=\"n\">R-Precision</th></tr>\n");
    recall_row(out, "picture to caption", f->forward.recall, f->n_k, f->forward.r_precision);
    recall_row(out, "by chance", run->i2t.chance, f->n_k, run->i2t.chance_r_precision);
    recall_row(out, "caption to picture", f->backward.recall, f->n_k, f->backward.r_precision);
    recall_row(out, "by chance", run->t2i.chance, f->n_k, run->t2i.chance_r_precision);
    pnb__buf_printf(
        out,
        "</table></div>\n<p class=\"soft\">%zu pictures, %zu captions, %zu true pairs; ranked "
        "by %s, %s. Uncertainty: %s.</p>\n",
        run->images->n, run->texts->n, run->truth->n_pairs, pnb_measure_name(run->measure),
        pnb_measure_sentence(run->measure), pnb__report_uncertainty(run));
    pnb__html_section_end(out);
    return PNB_OK;
}

/* ---- all figures ---- */

/* Shares and correlations to a thousandth, which is finer than any interval here; ranks to a tenth.
 */
static void interval_cell(pnb__buf *out, double value, double low, double high)
{
    int digits = fabs(value) < 10 ? 3 : 1;
    pnb__buf_puts(out, "<td class=\"n whole\">");
    if (isnan(value))
        pnb__buf_puts(out, "\xE2\x80\x93");
    else
        pnb__buf_printf(out, "%.*f", digits, value);
    if (!isnan(value) && !isnan(low))
        pnb__buf_printf(out, " <span class=\"soft\">[%.*f, %.*f]</span>", digits, low, digits,
                        high);
    pnb__buf_puts(out, "</td>");
}

static void figure_row(pnb__buf *out, const pnb__retrieval *run, size_t figure, bool by_hit)
{
    const pnb__retrieval_side *const sides[] = {&run->i2t, &run->t2i};
    const char *name = pnb_figure_name((pnb_figure)figure);
    bool is_sorted = pnb_figure_is_sorted((pnb_figure)figure);
    if (isnan(run->i2t.by_query.value.value[figure]) &&
        isnan(run->t2i.by_query.value.value[figure]))
        return;
    pnb__buf_printf(out, "<tr><td>%s%s</td>", name,
                    !is_sorted ? ""
                    : by_hit   ? ", by what was found"
                               : ", by the query");
    for (size_t d = 0; d < 2; d++) {
        const pnb_figure_intervals *v = by_hit ? &sides[d]->by_hit : &sides[d]->by_query;
        interval_cell(out, v->value.value[figure], v->low.value[figure], v->high.value[figure]);
    }
    pnb__buf_puts(out, "<td class=\"soft\">");
    pnb__html_escape(out, pnb_figure_sentence((pnb_figure)figure));
    pnb__buf_puts(out, "</td></tr>\n");
    if (is_sorted && !by_hit)
        figure_row(out, run, figure, true);
}

void pnb__report_figures(pnb__buf *out, const pnb__retrieval *run)
{
    char about[512];
    snprintf(
        about, sizeof about,
        "With 95%% bootstrap intervals over %zu clusters (a cluster is a %s), as `penumbra "
        "eval retrieval` prints them; shares are fractions. Uncertainty is the query's own, or "
        "that of what was found. Figures of bins have no interval: they depend on the number "
        "of queries; Spearman and AUROC over single queries do not.",
        run->n_clusters[0], run->cluster_unit);
    pnb__html_section(out, "All figures",
                      run->has_intervals ? about : "As `penumbra eval retrieval` prints them.");
    pnb__buf_puts(out, "<div class=\"scroll\"><table class=\"wordy\"><tr><th>figure</th><th "
                       "class=\"n\">picture to caption</th>"
                       "<th class=\"n\">caption to picture</th><th>meaning</th></tr>\n");
    for (size_t i = 0; i < run->figures.n_k; i++) {
        const pnb_figure_intervals *const v[] = {&run->i2t.by_query, &run->t2i.by_query};
        pnb__buf_printf(out, "<tr><td>recall@%zu</td>", run->figures.k[i]);
        for (size_t d = 0; d < 2; d++)
            interval_cell(out, v[d]->value.recall[i], v[d]->low.recall[i], v[d]->high.recall[i]);
        pnb__buf_puts(out, "<td></td></tr>\n");
    }
    pnb__buf_puts(out, "<tr><td>RSUM</td><td></td>");
    interval_cell(out, run->rsum.value, run->rsum.low, run->rsum.high);
    pnb__buf_puts(out, "<td class=\"soft\">all recalls both ways</td></tr>\n");
    for (size_t f = 0; f < PNB_N_FIGURES; f++)
        figure_row(out, run, f, false);
    for (size_t i = 0; i < run->n_coco; i++) {
        pnb__buf_printf(out, "<tr><td>%s</td>", run->coco[i].label);
        for (size_t d = 0; d < 2; d++)
            interval_cell(out, run->coco[i].side[d].value, run->coco[i].side[d].low,
                          run->coco[i].side[d].high);
        pnb__buf_puts(out, "<td></td></tr>\n");
    }
    pnb__buf_puts(out, "</table></div>\n");
    pnb__html_section_end(out);
}

/* ---- bins ---- */

/* Least-squares line through (bin, accuracy). */
static void fit_line(const pnb_uncertainty_calibration *c, double *slope, double *offset)
{
    double n = (double)c->n_bins, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < c->n_bins; i++) {
        double x = (double)c->bin[i].index + 1, y = c->bin[i].accuracy;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    double spread = n * sxx - sx * sx;
    *slope = spread > 0 ? (n * sxy - sx * sy) / spread : 0;
    *offset = (sy - *slope * sx) / n;
}

static void bins_chart(pnb__buf *out, const pnb_uncertainty_calibration *c, const char *name,
                       int colour)
{
    char title[120], line[64];
    double slope, offset;
    if (c->n_bins == 0)
        return;
    fit_line(c, &slope, &offset);
    snprintf(title, sizeof title, "%s: S = %.2f, R\xC2\xB2 = %.2f", name, c->s, c->r2);
    snprintf(line, sizeof line, "least-squares line");
    pnb__chart chart = {
        .title = title,
        .width = PNB__CHART_WIDTH,
        .height = PNB__CHART_HEIGHT,
        .x = {.low = 0.5,
              .high = (double)c->bin[c->n_bins - 1].index + 1.5,
              .exact = true,
              .label = "bin of queries, 1 = most certain"},
        .y = {.low = 0, .high = 0.05, .label = "recall at 1 (share)"},
        .legend = {{"recall at 1", colour, PNB__MARK_BAR}, {line, COLOUR_IMAGES, PNB__MARK_DASHES}},
        .n_legend = 2};
    for (size_t i = 0; i < c->n_bins; i++)
        chart.y.high = fmax(chart.y.high, c->bin[i].accuracy);
    pnb__chart_begin(&chart, out);
    for (size_t i = 0; i < c->n_bins; i++) {
        double x = (double)c->bin[i].index + 1;
        pnb__chart_bar(&chart, colour, x - 0.38, x + 0.38, c->bin[i].accuracy);
    }
    const double xs[2] = {chart.x.low, chart.x.high};
    const double ys[2] = {offset + slope * xs[0], offset + slope * xs[1]};
    pnb__chart_dashes(&chart, COLOUR_IMAGES, xs, ys, 2);
    pnb__chart_end(&chart);
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

pnb_status pnb__report_bins(pnb__buf *out, const pnb__retrieval *run,
                            const pnb__retrieval_opts *opts)
{
    char about[512];
    snprintf(about, sizeof about,
             "Queries sorted by %s into %s. If the uncertainty means something, recall falls from "
             "left to right: S is the rank correlation of bin and recall (\xE2\x88\x92"
             "1 is best), R\xC2\xB2 how well a line fits.",
             opts->bin_by_hit ? "the uncertainty of what they found" : "their own uncertainty",
             binning_words(opts->binning));
    pnb__html_section(out, "Does uncertainty tell when retrieval fails?", about);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    bins_chart(out, &run->t2i.bins, "Caption to picture", 0);
    bins_chart(out, &run->i2t.bins, "Picture to caption", 1);
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
    return PNB_OK;
}

/* ---- histograms ---- */

/* Values of one group and how to show it. */
typedef struct group {
    const char *title;
    int colour;
    const double *u;
    const int *level; /* NULL: all rows */
    int wanted;
    size_t n_rows;
} group;

static void histogram(pnb__buf *out, const group *g, const pnb__axis *range)
{
    double count[N_HISTOGRAM] = {0}, step, peak = 0, sum = 0;
    size_t n = 0;
    char title[120];
    step = log(range->high / range->low) / N_HISTOGRAM;
    for (size_t i = 0; i < g->n_rows; i++) {
        if ((g->level != NULL && g->level[i] != g->wanted) || !(g->u[i] > 0))
            continue;
        double place = log(g->u[i] / range->low) / step;
        size_t bin = (size_t)PNB_MIN(PNB_MAX(place, 0.0), (double)N_HISTOGRAM - 1);
        count[bin]++;
        sum += g->u[i];
        n++;
    }
    if (n == 0)
        return;
    for (int i = 0; i < N_HISTOGRAM; i++) {
        count[i] /= (double)n;
        peak = fmax(peak, count[i]);
    }
    snprintf(title, sizeof title, "%s (%zu, mean %.3g)", g->title, n, sum / (double)n);
    pnb__chart chart = {.title = title,
                        .width = PNB__CHART_WIDTH,
                        .height = 220,
                        .x = *range,
                        .y = {.low = 0, .high = peak, .label = "share"}};
    pnb__chart_begin(&chart, out);
    for (int i = 0; i < N_HISTOGRAM; i++)
        if (count[i] > 0)
            pnb__chart_bar(&chart, g->colour, range->low * exp(step * i),
                           range->low * exp(step * (i + 1)), count[i]);
    pnb__chart_end(&chart);
}

pnb_status pnb__report_histograms(pnb__buf *out, const pnb__retrieval *all, pnb_error *err)
{
    char label[80], about[256];
    pnb__axis range = {.log = true, .exact = true, .label = label};
    (void)err;
    snprintf(label, sizeof label, "uncertainty (%s)", pnb__report_uncertainty(all));
    snprintf(about, sizeof about,
             "Uncertainty of an embedding is the %s. Level 0 holds the most general captions. All "
             "panels share the horizontal axis.",
             pnb__report_uncertainty(all));
    pnb__axis_cover(&range, all->image_u, all->images->n);
    pnb__axis_cover(&range, all->text_u, all->texts->n);
    if (!(range.low > 0))
        return PNB_OK; /* points: nothing to show */
    range.low /= 1.05;
    range.high *= 1.05;
    pnb__html_section(out, "How uncertain is the model?", about);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    group g = {"Pictures", COLOUR_IMAGES, all->image_u, NULL, 0, all->images->n};
    histogram(out, &g, &range);
    int last = last_level(all);
    for (int level = last < 0 ? -1 : 0; level <= last; level++) {
        char title[40];
        snprintf(title, sizeof title, level < 0 ? "Captions" : "Captions of level %d", level);
        g = (group){title, level_colour(level), all->text_u, all->text_level, level, all->texts->n};
        histogram(out, &g, &range);
    }
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
    return PNB_OK;
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

pnb_status pnb__report_pca(pnb__buf *out, const pnb__retrieval *all, pnb_error *err)
{
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
    pnb__html_section(out, "Two dimensions of the embedding space",
                      "A linear view, so each Gaussian stays one. An evenly spaced sample of "
                      "pictures and captions; the ellipse holds 95% of an embedding. One unit is "
                      "the same length on both axes; means have length 1 in all dimensions.");
    pnb__buf_puts(out, "<div class=\"row\">\n");
    pnb__chart_begin(&chart, out);
    draw_cloud(&chart, &images, NULL);
    draw_cloud(&chart, &texts, all->text_level);
    pnb__chart_end(&chart);
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
done:
    pnb_pca_reset(&pca);
    pnb__free(images.xy);
    pnb__free(images.cov);
    pnb__free(texts.xy);
    pnb__free(texts.cov);
    return status;
}
