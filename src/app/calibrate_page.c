/* The assessment of a calibration drawn: reliability diagrams and how long conformal lists are.
 *
 * Probabilities of all pairs span decades, so that diagram has logarithmic axes; bins in which
 * nothing matched cannot be drawn there and stand in the tables. First hits get linear ones. */
#include <math.h>

#include "app/calibrate.h"
#include "app/chart.h"
#include "app/html.h"
#include "penumbra/embeddings.h"

static const int colour_of[PNB_N_FORECASTERS] = {5, 1, 0, 2, 3};
static const int colour_of_kind[PNB_N_CONFORMALS] = {0, 2, 1};

static const pnb_reliability *part_of(const pnb_match_assessment *a, int forecaster, bool is_first)
{
    const pnb_match_forecast *f = &a->forecast[forecaster];
    bool is_drawn = f->is_known && forecaster != PNB_FORECASTER_BASE_RATE &&
                    (is_first || forecaster != PNB_FORECASTER_FIRST);
    return !is_drawn ? NULL : is_first ? &f->first : &f->held;
}

static void draw_forecast(const pnb__chart *c, int colour, const pnb_reliability *r)
{
    double x[PNB_MAX_BINS] = {0}, y[PNB_MAX_BINS] = {0};
    size_t n = 0;
    for (size_t b = 0; b < r->n_bins; b++) {
        if (c->x.log && !(r->bin[b].p_mean > 0 && r->bin[b].rate > 0))
            continue;
        x[n] = r->bin[b].p_mean;
        y[n++] = r->bin[b].rate;
    }
    pnb__chart_line(c, colour, x, y, n);
    for (size_t i = 0; i < n; i++)
        pnb__chart_dot(c, colour, x[i], y[i], 3.5);
}

void pnb__draw_reliability(const pnb_match_assessment *a, bool is_first, pnb__buf *out)
{
    pnb__chart c = {.title = is_first ? "Probability of first hits" : "Probability of pairs",
                    .width = 500,
                    .height = 480,
                    .x = {.low = 0, .high = 1, .exact = true, .label = "p(match)"},
                    .y = {.low = 0, .high = 1, .exact = true, .label = "share that matches"}};
    if (!is_first) {
        c.x = (pnb__axis){.log = true, .exact = true, .high = 1, .label = c.x.label};
        c.x.low = fmin(fmax(a->held_base_rate * 1e-3, 1e-9), 0.1);
        c.y = c.x;
        c.y.label = "share that matches";
    }
    for (int f = 0; f < PNB_N_FORECASTERS; f++)
        if (part_of(a, f, is_first) != NULL)
            c.legend[c.n_legend++] = (pnb__legend_entry){pnb_forecaster_name((pnb_forecaster)f),
                                                         colour_of[f], PNB__MARK_LINE};
    pnb__chart_begin(&c, out);
    const double ends[2] = {c.x.low, 1.0};
    pnb__chart_dashes(&c, 5, ends, ends, 2);
    for (int f = 0; f < PNB_N_FORECASTERS; f++)
        if (part_of(a, f, is_first) != NULL)
            draw_forecast(&c, colour_of[f], part_of(a, f, is_first));
    pnb__chart_end(&c);
}

void pnb__draw_list_sizes(const pnb_match_assessment *a, bool is_coverage, pnb__buf *out)
{
    double alpha[PNB_MAX_ALPHAS] = {0}, value[PNB_MAX_ALPHAS] = {0};
    pnb__chart c = {.title = is_coverage ? "Lists without a match" : "Length of the lists",
                    .width = 500,
                    .height = 380,
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
    pnb__chart_begin(&c, out);
    for (int k = 0; k < PNB_N_CONFORMALS; k++) {
        for (size_t i = 0; i < a->n_alphas; i++) {
            alpha[i] = a->at[i].alpha;
            value[i] = is_coverage ? 1.0 - a->at[i].coverage[k] : a->at[i].mean_size[k];
            pnb__chart_dot(&c, colour_of_kind[k], alpha[i], value[i], 3.5);
        }
        pnb__chart_line(&c, colour_of_kind[k], alpha, value, a->n_alphas);
    }
    if (is_coverage)
        pnb__chart_dashes(&c, 5, alpha, alpha, a->n_alphas);
    pnb__chart_end(&c);
}

pnb_status pnb__calibration_page(const char *path, const pnb_match_fit *fit,
                                 const pnb_match_assessment *a, pnb_error *err)
{
    pnb__buf page = {0};
    char text[200];
    int at = snprintf(text, sizeof text, "%s, %zu rows searched in, fitted on %zu queries, ",
                      pnb_measure_name(fit->measure), fit->n_gallery, a->n_fit);
    if (a->n_folds > 0)
        snprintf(text + at, sizeof text - (size_t)at,
                 "each drawn by a fit on the others of %zu folds", a->n_folds);
    else
        snprintf(text + at, sizeof text - (size_t)at, "drawn from %zu others", a->n_held);
    pnb__html_begin(&page, "Calibration", text);
    pnb__html_section(&page, "Do probabilities hold?",
                      "A bin of equal mass is a dot: its mean probability, and the share that in "
                      "truth matches. On the dashed line both agree.");
    pnb__buf_puts(&page, "<div class=\"row\">\n");
    pnb__draw_reliability(a, true, &page);
    pnb__draw_reliability(a, false, &page);
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
    pnb_status status = pnb__buf_write(&page, path, err);
    pnb__buf_reset(&page);
    return status;
}
