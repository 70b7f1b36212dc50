/* Whether the numbers can be acted on: probabilities that hold, and uncertainty against the length
 * of captions.
 *
 * The probabilities are fitted on one part of the queries and drawn on the other (calibrate.h):
 * nothing here is judged on what it was fitted to. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "commands/calibrate/calibrate.h"
#include "commands/common/match_probability_use.h"
#include "commands/report/report_internal.h"
#include "penumbra/hierarchy.h"
#include "prob/measure.h"
#include "report/svg.h"

enum { N_LENGTHS = 12 };

/* ---- reliability ---- */

static pnb_status reliability(pnb__report *r, pnb_match_probability_fit *fit)
{
    const pnb__retrieval *run = &r->all;
    pnb__app *app = r->app;
    pnb_match_opts opts = pnb_match_opts_default();
    pnb_match_assessment *assessment = pnb__alloc_zero(1, sizeof *assessment);
    const pnb_match_job job = {&run->text_rows, &run->image_rows, run->backward, &opts};
    pnb_status status;
    if (assessment == NULL)
        return pnb__fail_nomem(&app->err, sizeof *assessment);
    const pnb__match_words *words = &r->opts->retrieval.match;
    const pnb__match_probability_use use = {
        NULL,         run->images,        run->texts,
        run->measure, &run->measure_opts, .match_is_told = !isnan(words->a) && !isnan(words->b)};
    char why[200];
    opts.model_is_score = pnb__measure_is_probability(&use, why, sizeof why);
    bool has_model = pnb__measure_has_logits(run->measure) &&
                     pnb__model_speaks_of(run->images, run->texts, run->measure, why, sizeof why);
    opts.search.measure = run->measure;
    opts.search.measure_opts = run->measure_opts;
    opts.search.reverse = true; /* pictures stay side 1 */
    opts.model_a = has_model ? run->images->info.logit_scale : (double)NAN;
    opts.model_b = has_model ? run->images->info.logit_bias : (double)NAN;
    opts.seed = (uint64_t)app->common.seed;
    PNB_TRY(pnb_match_probability_fit_compute(app->ctx, &job, fit, assessment, &app->err));
    pnb__assessment_report(fit, assessment, r->more);
    pnb__draw_reliability(&r->page);
    pnb__draw_lists(&r->page);
    pnb__buf_printf(pnb__page_block(&r->page),
                    "<p class=\"soft\">Captions search the pictures. Fitted on %zu captions, drawn "
                    "from %zu others.</p>\n",
                    assessment->n_fit, assessment->n_held);
done:
    pnb__free(assessment);
    return status;
}

/* Too few queries, or scores that do not tell matches, are an answer here and no failure. */
pnb_status pnb__report_reliability(pnb__report *r)
{
    pnb_match_probability_fit fit = {0};
    r->page.shown = r->more;
    pnb__page_section(
        &r->page, "Do probabilities hold?",
        "A bin of equal mass is a dot: the mean probability of a match that was "
        "promised, and the share that in truth matches. On the dashed line both "
        "agree; all dots of a line hold equally many, so they stand dense where "
        "probabilities are, and the thin lines are 95% intervals. Axes are logarithmic where "
        "probabilities span decades; a share of 0 then stands on the border. The model's own a and "
        "b come from its training batches; platt and "
        "isotonic were fitted on other captions of this set. Below: lists that hold a "
        "match but for the share of captions asked for, cut by score, by distance "
        "below the first hit, or by length.");
    pnb_status status = reliability(r, &fit);
    if (status == PNB_ARG) {
        pnb__buf *out = pnb__page_block(&r->page);
        pnb__buf_puts(out, "<p class=\"soft\">Not drawn: ");
        pnb__html_escape(out, r->app->err.text);
        pnb__buf_puts(out, "</p>\n");
        pnb_error_reset(&r->app->err);
        status = PNB_OK;
    }
    pnb_match_probability_fit_reset(&fit);
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

static void draw_lengths(pnb__report *r, const pnb_length_bin *bins, size_t n, double spearman)
{
    static const pnb__column columns[] = {{"from", NULL}, {"to", NULL}, {"trace", NULL}};
    char title[120], label[96];
    snprintf(label, sizeof label, "mean uncertainty (%s)", pnb__report_uncertainty(&r->all));
    snprintf(title, sizeof title, "Captions: rank correlation of length and uncertainty %.2f",
             spearman);
    pnb__result_table(r->more, "words", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        pnb__result_cell_int(r->more, (int64_t)bins[i].low);
        pnb__result_cell_int(r->more, (int64_t)bins[i].high);
        pnb__result_cell_real(r->more, bins[i].mean, 6);
    }
    const pnb__plot plot = {.title = title,
                            .table = "words",
                            .x = {PNB__FROM_0, .label = "words"},
                            .y = {.label = label},
                            .series = {{.x = "from", .x_to = "to", .y = "trace"}},
                            .n_series = 1};
    r->page.shown = r->more;
    pnb__page_section(&r->page, "Does a longer caption say more?",
                      "Mean uncertainty of captions by their number of words; a dot is a group "
                      "of about equally many captions.");
    pnb__page_plot(&r->page, &plot);
}

pnb_status pnb__report_lengths(pnb__report *r)
{
    const pnb_embeddings *texts = r->all.texts;
    pnb_error *err = &r->app->err;
    pnb_length_bin bins[N_LENGTHS];
    double spearman, *u = pnb__alloc_array(texts->n, sizeof *u);
    size_t n = 0, n_bins = 0, *length = pnb__alloc_array(texts->n, sizeof *length);
    pnb_status status = u == NULL || length == NULL
                            ? pnb__fail_nomem(err, texts->n * (sizeof *u + sizeof *length))
                            : PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < texts->n; i++)
        if (texts->texts != NULL && texts->texts[i] != NULL &&
            pnb__report_is_uncertain(&r->all.text_rows)) {
            length[n] = count_words(texts->texts[i]);
            u[n++] = r->all.text_u[i];
        }
    if (status == PNB_OK && n > 0)
        status = pnb_length_bins(u, length, n, bins, N_LENGTHS, &n_bins, &spearman, err);
    if (status == PNB_OK && n_bins > 1)
        draw_lengths(r, bins, n_bins, spearman);
    pnb__free(u);
    pnb__free(length);
    return status;
}
