/* Whether the numbers can be acted on: answering only when certain, probabilities that hold, and
 * uncertainty against the length of captions.
 *
 * Risk and coverage are eval's (selective.h), the probabilities are fitted on one part of the
 * queries and drawn on the other (calibrate.h): nothing here is judged on what it was fitted to. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "commands/calibrate/calibrate.h"
#include "commands/common/match_probability_use.h"
#include "commands/report/report_internal.h"
#include "penumbra/figures.h"
#include "penumbra/hierarchy.h"
#include "penumbra/selective.h"
#include "prob/measure.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/svg.h"

enum { N_COVERAGE = 50, N_LENGTHS = 12, COLOUR_CHANCE = 5 };

/* ---- risk and coverage ---- */

static void draw_risk(pnb__buf *out, const char *name, int colour, const pnb_selective *s,
                      const double *coverage, const double *risk)
{
    char title[160];
    snprintf(title, sizeof title, "%s: area %.3f, order AUROC %.2f", name, s->aurc, s->auroc);
    pnb__chart chart = {
        .title = title,
        .width = PNB__CHART_WIDTH,
        .height = PNB__CHART_HEIGHT,
        .x = {.low = 0, .high = 1, .exact = true, .label = "coverage (share of queries answered)"},
        .y = {.low = s->error, .high = s->error, .label = "risk (share of those wrong)"},
        .legend = {{"most certain first", colour, PNB__MARK_LINE},
                   {"any order", COLOUR_CHANCE, PNB__MARK_DASHES}},
        .n_legend = 2};
    pnb__axis_cover(&chart.y, risk, N_COVERAGE); /* no further: the lines are often close */
    pnb__chart_begin(&chart, out);
    pnb__chart_dashes(&chart, COLOUR_CHANCE, (double[]){0, 1}, (double[]){s->error, s->error}, 2);
    pnb__chart_line(&chart, colour, coverage, risk, N_COVERAGE);
    pnb__chart_end(&chart);
}

static pnb_status risk_chart(pnb__buf *out, const pnb__retrieval_side *side, const char *name,
                             int colour, pnb_error *err)
{
    const pnb_query_values *v = &side->values.query;
    double coverage[N_COVERAGE], risk[N_COVERAGE];
    double *correct = pnb__alloc_array(PNB_MAX(v->n, 1), sizeof *correct);
    pnb_selective selective;
    pnb_status status = PNB_OK;
    if (correct == NULL)
        return pnb__fail_nomem(err, v->n * sizeof *correct);
    if (v->n == 0)
        goto done;
    for (size_t q = 0; q < v->n; q++)
        correct[q] = v->best_rank[q] == 1;
    PNB_TRY(pnb_selective_compute(v->uncertainty, correct, v->n, &selective, err));
    PNB_TRY(pnb_risk_coverage(v->uncertainty, correct, v->n, N_COVERAGE, coverage, risk, err));
    draw_risk(out, name, colour, &selective, coverage, risk);
done:
    pnb__free(correct);
    return status;
}

pnb_status pnb__report_selective(pnb__buf *out, const pnb__retrieval *run, pnb_error *err)
{
    pnb__html_section(
        out, "Answering only when certain",
        "Queries answered in the order of their uncertainty. The line falls to the "
        "left where wrong answers are the uncertain ones; in any other order it "
        "stays on the dashes. The area under it is AURC (smaller is better). The risk axis "
        "covers what occurs and need not begin at 0.");
    pnb__buf_puts(out, "<div class=\"row\">\n");
    pnb_status status = risk_chart(out, &run->t2i, "Caption to picture", 0, err);
    if (status == PNB_OK)
        status = risk_chart(out, &run->i2t, "Picture to caption", 1, err);
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
    return status;
}

/* ---- reliability ---- */

static pnb_status reliability(pnb__app *app, pnb__buf *out, const pnb__retrieval *run,
                              pnb_match_fit *fit)
{
    pnb_match_opts opts = pnb_match_opts_default();
    pnb_match_assessment *assessment = pnb__alloc_zero(1, sizeof *assessment);
    const pnb_match_job job = {&run->text_rows, &run->image_rows, run->backward, &opts};
    pnb_status status;
    if (assessment == NULL)
        return pnb__fail_nomem(&app->err, sizeof *assessment);
    char why[200];
    bool has_model = pnb__measure_has_logits(run->measure) &&
                     pnb__model_speaks_of(run->images, run->texts, why, sizeof why);
    opts.search.measure = run->measure;
    opts.search.reverse = true; /* pictures stay side 1 */
    opts.model_a = has_model ? run->images->info.logit_scale : (double)NAN;
    opts.model_b = has_model ? run->images->info.logit_bias : (double)NAN;
    opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb_match_fit_compute(app->ctx, &job, fit, assessment, &app->err));
    pnb__buf_puts(out, "<div class=\"row\">\n");
    pnb__draw_reliability(fit, assessment, true, out);
    pnb__draw_reliability(fit, assessment, false, out);
    pnb__draw_list_sizes(assessment, true, out);
    pnb__draw_list_sizes(assessment, false, out);
    pnb__buf_puts(out, "</div>\n");
    pnb__buf_printf(out,
                    "<p class=\"soft\">Captions search the pictures. Fitted on %zu captions, drawn "
                    "from %zu others.</p>\n",
                    assessment->n_fit, assessment->n_held);
done:
    pnb__free(assessment);
    return status;
}

/* Too few queries, or scores that do not tell matches, are an answer here and no failure. */
pnb_status pnb__report_reliability(pnb__app *app, pnb__buf *out, const pnb__retrieval *run)
{
    pnb_match_fit fit = {0};
    pnb__html_section(
        out, "Do probabilities hold?",
        "A bin of equal mass is a dot: the mean probability of a match that was "
        "promised, and the share that in truth matches. On the dashed line both "
        "agree; all dots of a line hold equally many, so they stand dense where "
        "probabilities are, and the thin lines are 95% intervals. Axes are logarithmic where "
        "probabilities span decades; a share of 0 then stands on the border. The model's own a and "
        "b come from its training batches; platt and "
        "isotonic were fitted on other captions of this set. Below: lists that hold a "
        "match but for the share of captions asked for, cut by score, by distance "
        "below the first hit, or by length.");
    pnb_status status = reliability(app, out, run, &fit);
    if (status == PNB_ARG) {
        pnb__buf_puts(out, "<p class=\"soft\">Not drawn: ");
        pnb__html_escape(out, app->err.text);
        pnb__buf_puts(out, "</p>\n");
        pnb_error_reset(&app->err);
        status = PNB_OK;
    }
    pnb__html_section_end(out);
    pnb_match_fit_reset(&fit);
    return status;
}

/* ---- length ---- */

static size_t count_words(const char *text)
{
    size_t n = 0;
    bool inside = false;
    for (; *text != '\0'; text++) {
        bool is_space = isspace((unsigned char)*text) != 0;
        n += !is_space && !inside;
        inside = !is_space;
    }
    return n;
}

static void draw_lengths(pnb__buf *out, const pnb_length_bin *bins, size_t n, double spearman,
                         const char *uncertainty)
{
    double x[N_LENGTHS], y[N_LENGTHS];
    char title[120], label[96];
    snprintf(label, sizeof label, "mean uncertainty (%s)", uncertainty);
    snprintf(title, sizeof title, "Captions: rank correlation of length and uncertainty %.2f",
             spearman);
    pnb__chart chart = {.title = title,
                        .width = PNB__CHART_WIDTH,
                        .height = PNB__CHART_HEIGHT,
                        .x = {.low = 0, .high = (double)bins[n - 1].high + 0.5, .label = "words"},
                        .y = {.label = label}};
    for (size_t i = 0; i < n; i++) {
        x[i] = 0.5 * (double)(bins[i].low + bins[i].high);
        y[i] = bins[i].mean;
    }
    chart.y.low = chart.y.high = y[0];
    pnb__axis_cover(&chart.y, y, n);
    pnb__chart_begin(&chart, out);
    pnb__chart_curve(&chart, &(pnb__curve){.x = x, .y = y, .n = n, .radius = 2.5});
    pnb__chart_end(&chart);
}

pnb_status pnb__report_lengths(pnb__buf *out, const pnb__retrieval *all, pnb_error *err)
{
    const pnb_embeddings *texts = all->texts;
    pnb_length_bin bins[N_LENGTHS];
    double spearman, *u = pnb__alloc_array(texts->n, sizeof *u);
    size_t n = 0, n_bins = 0, *length = pnb__alloc_array(texts->n, sizeof *length);
    pnb_status status = u == NULL || length == NULL
                            ? pnb__fail_nomem(err, texts->n * (sizeof *u + sizeof *length))
                            : PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < texts->n; i++)
        if (texts->texts != NULL && texts->texts[i] != NULL &&
            pnb__report_is_uncertain(&all->text_rows)) {
            length[n] = count_words(texts->texts[i]);
            u[n++] = all->text_u[i];
        }
    if (status == PNB_OK && n > 0)
        status = pnb_length_bins(u, length, n, bins, N_LENGTHS, &n_bins, &spearman, err);
    if (status == PNB_OK && n_bins > 1) {
        pnb__html_section(out, "Does a longer caption say more?",
                          "Mean uncertainty of captions by their number of words; a dot is a group "
                          "of about equally many captions.");
        pnb__buf_puts(out, "<div class=\"row\">\n");
        draw_lengths(out, bins, n_bins, spearman, pnb__report_uncertainty(all));
        pnb__buf_puts(out, "</div>\n");
        pnb__html_section_end(out);
    }
    pnb__free(u);
    pnb__free(length);
    return status;
}
