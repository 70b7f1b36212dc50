/* The assessment of a calibration drawn: reliability diagrams and how long conformal lists are.
 *
 * The figures are those that the command prints, by their keys; what is made here are a few example
 * queries with their hits, and the sentence that opens the page. */
#include <math.h>

#include "commands/calibrate/calibrate.h"
#include "commands/common/rows/row_display.h"
#include "penumbra/search.h"
#include "report/html.h"

static const int colour_of[PNB_N_MATCH_ESTIMATORS] = {5, 1, 0, 2, 3};
static const int colour_of_kind[PNB_N_CONFORMALS] = {0, 2, 1};

void pnb__draw_reliability(pnb__page *page)
{
    static const char *const tables[] = {"reliability_of_first_hits", "reliability_of_pairs"};
    static const char *const titles[] = {"Probability of first hits", "Probability of pairs"};
    for (size_t i = 0; i < PNB_COUNT(tables); i++) {
        pnb__plot plot = {.title = titles[i],
                          .table = tables[i],
                          .height = 380,
                          .x = {.label = "p(match)"},
                          .y = {.label = "share that matches"},
                          .has_probabilities = true,
                          .reference = PNB__REFERENCE_EQUAL,
                          .reference_name = "both agree",
                          .n_series = PNB_N_MATCH_ESTIMATORS};
        for (int f = 0; f < PNB_N_MATCH_ESTIMATORS; f++)
            plot.series[f] = (pnb__series){.name = pnb_match_estimator_name((pnb_match_estimator)f),
                                           .x = "p_mean",
                                           .y = "rate",
                                           .low = "rate_low",
                                           .high = "rate_high",
                                           .where = "forecast",
                                           .is = pnb_match_estimator_name((pnb_match_estimator)f),
                                           .colour = colour_of[f]};
        pnb__page_plot(page, &plot);
    }
}

void pnb__draw_lists(pnb__page *page)
{
    pnb__plot errors = {.title = "Lists without a match",
                        .table = "conformal",
                        .x = {PNB__FROM_0, .label = "error rate asked for"},
                        .y = {PNB__FROM_0, .label = "error rate found"},
                        .reference = PNB__REFERENCE_EQUAL,
                        .reference_name = "as asked for",
                        .n_series = PNB_N_CONFORMALS};
    pnb__plot lengths = {.title = "Length of the lists",
                         .table = "conformal",
                         .x = errors.x,
                         .y = {.log = true, .label = "rows a query, on average"},
                         .n_series = PNB_N_CONFORMALS};
    for (int k = 0; k < PNB_N_CONFORMALS; k++) {
        const char *name = pnb_conformal_name((pnb_conformal_kind)k);
        const pnb__series kind = {
            .name = name, .x = "alpha", .where = "kind", .is = name, .colour = colour_of_kind[k]};
        errors.series[k] = lengths.series[k] = kind;
        errors.series[k].y = "error";
        lengths.series[k].y = "mean_size";
    }
    pnb__page_plot(page, &errors);
    pnb__page_plot(page, &lengths);
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
                 pnb_match_probability_fit_apply(c->fit, hits->score[at], 0));
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
    search.measure_opts = c->fit->origin.measure_opts;
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

static void put_headline(pnb__page *page, const char *method)
{
    double off = 100 * pnb__page_cell(page, "forecasts", "forecast", method, "first_ece");
    double model =
        100 * pnb__page_cell(page, "forecasts", "forecast",
                             pnb_match_estimator_name(PNB_MATCH_ESTIMATOR_MODEL), "first_ece");
    char answer[400];
    int n = snprintf(answer, sizeof answer,
                     "On queries it was not fitted to, the probability of a first hit is off by "
                     "%.1f points on average (%s)",
                     off, method);
    snprintf(answer + n, sizeof answer - (size_t)n,
             isnan(model) ? "." : "; the model's own a and b are off by %.1f.", model);
    pnb__html_headline(&page->out, "Asked: when it says p, does a share p match?", answer);
}

/* ---- page ---- */

static void describe_fit(const pnb__page *page, const pnb_match_probability_fit *fit, char *text,
                         size_t size)
{
    double n_folds = pnb__page_number(page, "n_folds");
    int at = snprintf(text, size, "%s, %zu rows searched in, fitted on %.0f queries, ",
                      pnb_measure_name(fit->origin.measure), fit->n_gallery,
                      pnb__page_number(page, "n_fit"));
    snprintf(text + at, size - (size_t)at,
             n_folds > 0 ? "each drawn by a fit on the others of %.0f folds"
                         : "drawn from %.0f others",
             n_folds > 0 ? n_folds : pnb__page_number(page, "n_held"));
}

pnb_status pnb__calibration_page(pnb__app *app, const char *path, const pnb__match_calibrated *c)
{
    pnb__page page = {.shown = c->figures};
    pnb_status status;
    char text[200];
    describe_fit(&page, c->fit, text, sizeof text);
    pnb__page_begin(&page, c->figures, "Calibration", text);
    put_headline(&page, c->fit->method == PNB_MATCH_ISOTONIC ? "isotonic" : "platt");
    PNB_TRY(put_examples(app, &page.out, c));
    pnb__html_contents(&page.out);
    pnb__page_section(&page, "Do probabilities hold?",
                      "A bin of equal mass is a dot: its mean probability, and the share that in "
                      "truth matches, for first hits with its 95% interval (thin). On the dashed "
                      "line both agree. Dots stand dense where probabilities are.");
    pnb__draw_reliability(&page);
    pnb__page_section(&page, "Lists at an error rate",
                      "The smallest lists that hold a match but for the share of queries asked "
                      "for, cut by score, by distance below the first hit, or by length.");
    pnb__draw_lists(&page);
    status = pnb__page_write(&page, path, &app->err);
done:
    pnb__page_reset(&page);
    return status;
}
