/* The assessment of a calibration drawn: reliability diagrams and how long conformal lists are.
 *
 * Axes cover what was forecast and nothing else; where that spans decades, as probabilities of all
 * pairs do, they are logarithmic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/calibrate/calibrate.h"
#include "commands/common/row_display.h"
#include "eval/sorted.h"
#include "penumbra/search.h"
#include "report/chart.h"
#include "report/figure_interval.h"
#include "report/html.h"

static const int colour_of[PNB_N_FORECASTERS] = {5, 1, 0, 2, 3};
static const int colour_of_kind[PNB_N_CONFORMALS] = {0, 2, 1};

static const pnb_weighted_ece *part_of(const pnb_match_assessment *a, int forecaster, bool is_first)
{
    const pnb_match_forecast *f = &a->forecast[forecaster];
    bool is_drawn = f->is_known && forecaster != PNB_FORECASTER_BASE_RATE &&
                    (is_first || forecaster != PNB_FORECASTER_FIRST);
    return !is_drawn ? NULL : is_first ? &f->first : &f->held;
}

/* On logarithmic axes a share of 0 stands on the border. */
static void draw_forecast(pnb__chart *c, int colour, const pnb_weighted_ece *r, bool has_intervals)
{
    double x[PNB_MAX_BINS] = {0}, y[PNB_MAX_BINS] = {0};
    double low[PNB_MAX_BINS] = {0}, high[PNB_MAX_BINS] = {0};
    for (size_t b = 0; b < r->n_bins; b++) {
        x[b] = c->x.log ? fmax(r->bin[b].p_mean, c->x.low) : r->bin[b].p_mean;
        y[b] = c->y.log ? fmax(r->bin[b].rate, c->y.low) : r->bin[b].rate;
        pnb__share_interval(r->bin[b].rate, r->bin[b].weight * (double)r->n, &low[b], &high[b]);
    }
    const pnb__curve curve = {.colour = colour,
                              .x = x,
                              .y = y,
                              .low = has_intervals ? low : NULL,
                              .high = has_intervals ? high : NULL,
                              .n = r->n_bins,
                              .radius = 2.2};
    pnb__chart_curve(c, &curve);
}

/* Of first hits, whose bins are plain counts (those of pairs are weighted), and only for the
 * forecast in use: the others' would hide the dots. */
static bool wants_intervals(const pnb_match_fit *fit, int forecaster, bool is_first)
{
    int used = fit->method == PNB_MATCH_ISOTONIC ? PNB_FORECASTER_ISOTONIC : PNB_FORECASTER_PLATT;
    return is_first && forecaster == used;
}

/* Axes that the drawn bins fill: from 0 where most of them are in view so, else logarithmic from
 * the smallest value that is above 0. */
static pnb__axis axis_of_bins(const pnb_match_assessment *a, bool is_first)
{
    double p[PNB_N_FORECASTERS * PNB_MAX_BINS], smallest = 1.0, largest = 0.0;
    size_t n = 0, n_zero = 0;
    for (int f = 0; f < PNB_N_FORECASTERS; f++) {
        const pnb_weighted_ece *r = part_of(a, f, is_first);
        for (size_t b = 0; r != NULL && b < r->n_bins; b++) {
            const double values[] = {r->bin[b].p_mean, r->bin[b].rate};
            for (size_t k = 0; k < 2; k++) {
                smallest = values[k] > 0 ? fmin(smallest, values[k]) : smallest;
                largest = fmax(largest, values[k]);
            }
            n_zero += !(r->bin[b].rate > 0);
            p[n++] = r->bin[b].p_mean;
        }
    }
    if (n == 0 || largest <= 0)
        return (pnb__axis){.low = 0, .high = 1, .exact = true};
    qsort(p, n, sizeof *p, pnb__compare_doubles);
    if (p[n / 2] >= 0.15 * largest || n_zero > n / 10)
        return (pnb__axis){.low = 0, .high = fmin(1.0, largest * 1.05), .exact = true};
    return (pnb__axis){.low = fmax(smallest / 1.5, 1e-9),
                       .high = fmin(1.0, largest * 1.5),
                       .exact = true,
                       .log = true};
}

void pnb__draw_reliability(const pnb_match_fit *fit, const pnb_match_assessment *a, bool is_first,
                           pnb__buf *out)
{
    pnb__chart c = {.title = is_first ? "Probability of first hits" : "Probability of pairs",
                    .width = PNB__CHART_WIDTH,
                    .height = 380,
                    .x = axis_of_bins(a, is_first)};
    c.y = c.x;
    c.x.label = "p(match)";
    c.y.label = "share that matches";
    for (int f = 0; f < PNB_N_FORECASTERS; f++)
        if (part_of(a, f, is_first) != NULL)
            c.legend[c.n_legend++] = (pnb__legend_entry){pnb_forecaster_name((pnb_forecaster)f),
                                                         colour_of[f], PNB__MARK_LINE};
    c.legend[c.n_legend++] = (pnb__legend_entry){"both agree", 5, PNB__MARK_DASHES};
    pnb__chart_begin(&c, out);
    const double ends[2] = {c.x.low, c.x.high};
    pnb__chart_dashes(&c, 5, ends, ends, 2);
    for (int f = 0; f < PNB_N_FORECASTERS; f++)
        if (part_of(a, f, is_first) != NULL)
            draw_forecast(&c, colour_of[f], part_of(a, f, is_first),
                          wants_intervals(fit, f, is_first));
    pnb__chart_end(&c);
}

void pnb__draw_list_sizes(const pnb_match_assessment *a, bool is_coverage, pnb__buf *out)
{
    double alpha[PNB_MAX_ALPHAS] = {0}, value[PNB_MAX_ALPHAS] = {0};
    pnb__chart c = {.title = is_coverage ? "Lists without a match" : "Length of the lists",
                    .width = PNB__CHART_WIDTH,
                    .height = PNB__CHART_HEIGHT,
                    .x = {.label = "error rate asked for"},
                    .y = {.label = is_coverage ? "error rate found" : "rows a query, on average",
                          .log = !is_coverage}};
    for (size_t i = 0; i < a->n_alphas; i++) {
        pnb__axis_cover(&c.x, (double[]){0.0, a->at[i].alpha}, 2);
        if (is_coverage)
            pnb__axis_cover(&c.y, (double[]){0.0, a->at[i].alpha}, 2);
        for (int k = 0; k < PNB_N_CONFORMALS; k++) {
            double found = is_coverage ? 1.0 - a->at[i].coverage[k] : a->at[i].mean_size[k];
            pnb__axis_cover(&c.y, &found, 1);
        }
    }
    for (int k = 0; k < PNB_N_CONFORMALS; k++)
        c.legend[c.n_legend++] = (pnb__legend_entry){pnb_conformal_name((pnb_conformal_kind)k),
                                                     colour_of_kind[k], PNB__MARK_LINE};
    if (is_coverage)
        c.legend[c.n_legend++] = (pnb__legend_entry){"as asked for", 5, PNB__MARK_DASHES};
    pnb__chart_begin(&c, out);
    for (int k = 0; k < PNB_N_CONFORMALS; k++) {
        for (size_t i = 0; i < a->n_alphas; i++) {
            alpha[i] = a->at[i].alpha;
            value[i] = is_coverage ? 1.0 - a->at[i].coverage[k] : a->at[i].mean_size[k];
        }
        const pnb__curve curve = {
            .colour = colour_of_kind[k], .x = alpha, .y = value, .n = a->n_alphas, .radius = 2.2};
        pnb__chart_curve(&c, &curve);
    }
    if (is_coverage)
        pnb__chart_dashes(&c, 5, alpha, alpha, a->n_alphas);
    pnb__chart_end(&c);
}

/* ---- headline ---- */

enum { N_IN_CARD = 3 };

static bool is_match(const pnb_truth *truth, size_t query, int64_t row)
{
    for (size_t p = truth->offset[query]; p < truth->offset[query + 1]; p++)
        if ((int64_t)truth->item[p] == row)
            return true;
    return false;
}

/* The query whose first hit is (or is not) a match and has the highest score; n where none is. */
static size_t surest(const pnb__match_calibrated *c, const pnb_hits *hits, bool right)
{
    size_t best = hits->n_queries;
    for (size_t q = 0; q < hits->n_queries; q++)
        if (hits->index[q * hits->k] >= 0 &&
            is_match(c->truth, q, hits->index[q * hits->k]) == right &&
            (best == hits->n_queries || hits->score[q * hits->k] > hits->score[best * hits->k]))
            best = q;
    return best;
}

static pnb_status put_card(pnb__buf *out, pnb__page_rows *rows, const pnb__match_calibrated *c,
                           const pnb_hits *hits, size_t query, pnb_error *err)
{
    pnb_status status = pnb__page_row(out, rows, c->queries, query, "big", "asked", err);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    for (size_t j = 0; status == PNB_OK && j < PNB_MIN(hits->k, (size_t)N_IN_CARD); j++) {
        size_t at = query * hits->k + j;
        bool right = hits->index[at] >= 0 && is_match(c->truth, query, hits->index[at]);
        char note[64];
        if (hits->index[at] < 0)
            break;
        snprintf(note, sizeof note, "%sp = %.3g", right ? "matches, " : "",
                 pnb_match_fit_apply(c->fit, hits->score[at], 0));
        status = pnb__page_row(out, rows, c->gallery, (size_t)hits->index[at], right ? "hit" : "",
                               note, err);
    }
    pnb__buf_puts(out, "</div>\n");
    return status;
}

static pnb_status put_examples(pnb__app *app, pnb__buf *out, const pnb__match_calibrated *c)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb__page_rows rows = {0};
    pnb_hits hits = {0};
    pnb_status status;
    search.k = PNB_MIN((size_t)N_IN_CARD, c->gallery_rows->n);
    search.measure = c->fit->origin.measure;
    PNB_TRY(pnb_search(app->ctx, c->query_rows, c->gallery_rows, &search, &hits, &app->err));
    pnb__html_cards_begin(out);
    for (int wrong = 0; wrong < 2; wrong++) {
        size_t query = surest(c, &hits, wrong == 0);
        if (query == hits.n_queries)
            continue;
        pnb__html_card(out, wrong == 0 ? "Surest and right" : "Surest and wrong");
        PNB_TRY(put_card(out, &rows, c, &hits, query, &app->err));
    }
    pnb__html_cards_end(out);
done:
    pnb__page_rows_reset(&rows);
    pnb_hits_reset(&hits);
    return status;
}

static void put_headline(pnb__buf *out, const pnb__match_calibrated *c)
{
    const pnb_match_assessment *a = c->assessment;
    bool is_isotonic = c->fit->method == PNB_MATCH_ISOTONIC;
    const pnb_match_forecast *used =
        &a->forecast[is_isotonic ? PNB_FORECASTER_ISOTONIC : PNB_FORECASTER_PLATT];
    const pnb_match_forecast *model = &a->forecast[PNB_FORECASTER_MODEL];
    char answer[400];
    int n = snprintf(answer, sizeof answer,
                     "On queries it was not fitted to, the probability of a first hit is off by "
                     "%.1f points on average (%s)",
                     100 * used->first.ece, is_isotonic ? "isotonic" : "platt");
    snprintf(answer + n, sizeof answer - (size_t)n,
             model->is_known ? "; the model's own a and b are off by %.1f." : ".",
             100 * model->first.ece);
    pnb__html_headline(out, "Asked: when it says p, does a share p match?", answer);
}

/* ---- page ---- */

static void describe_fit(const pnb__match_calibrated *c, char *text, size_t size)
{
    const pnb_match_assessment *a = c->assessment;
    int at = snprintf(text, size, "%s, %zu rows searched in, fitted on %zu queries, ",
                      pnb_measure_name(c->fit->origin.measure), c->fit->n_gallery, a->n_fit);
    if (a->n_folds > 0)
        snprintf(text + at, size - (size_t)at, "each drawn by a fit on the others of %zu folds",
                 a->n_folds);
    else
        snprintf(text + at, size - (size_t)at, "drawn from %zu others", a->n_held);
}

pnb_status pnb__calibration_page(pnb__app *app, const char *path, const pnb__match_calibrated *c)
{
    const pnb_match_assessment *a = c->assessment;
    pnb__buf page = {0};
    pnb_status status;
    char text[200];
    describe_fit(c, text, sizeof text);
    pnb__html_begin(&page, "Calibration", text);
    put_headline(&page, c);
    PNB_TRY(put_examples(app, &page, c));
    pnb__html_contents(&page);
    pnb__html_section(&page, "Do probabilities hold?",
                      "A bin of equal mass is a dot: its mean probability, and the share that in "
                      "truth matches, for first hits with its 95% interval (thin). On the dashed "
                      "line both agree. Dots stand dense where probabilities are.");
    pnb__buf_puts(&page, "<div class=\"row\">\n");
    pnb__draw_reliability(c->fit, a, true, &page);
    pnb__draw_reliability(c->fit, a, false, &page);
    pnb__buf_puts(&page, "</div>\n");
    pnb__html_section_end(&page);
    if (a->n_alphas > 0) {
        pnb__html_section(&page, "Lists at an error rate",
                          "The smallest lists that hold a match but for the share of queries asked "
                          "for, cut by score, by distance below the first hit, or by length.");
        pnb__buf_puts(&page, "<div class=\"row\">\n");
        pnb__draw_list_sizes(a, true, &page);
        pnb__draw_list_sizes(a, false, &page);
        pnb__buf_puts(&page, "</div>\n");
        pnb__html_section_end(&page);
    }
    pnb__html_end(&page);
    status = pnb__buf_write(&page, path, &app->err);
done:
    pnb__buf_reset(&page);
    return status;
}
