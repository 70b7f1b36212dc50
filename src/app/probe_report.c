/* Tables and charts of a probe. Every figure has the control's beside it: what an untrained
 * log-variance head shows as well was not learned.
 *
 * A figure that was not measured is "-" in a table and null in JSON; a control that was not given
 * leaves its columns out altogether. */
#include <math.h>

#include "app/chart.h"
#include "app/html.h"
#include "app/probe.h"
#include "app/svg.h"
#include "base/base.h"

enum { COLOUR_MODEL = 0, COLOUR_CONTROL = 5 };

/* ---- tables ---- */

/* A figure, then the control's if there is one. */
static void cell_pair(pnb__result *r, double value, const double *control, int digits)
{
    pnb__result_cell_real(r, value, digits);
    if (control != NULL)
        pnb__result_cell_real(r, *control, digits);
}

static void put_curve(const pnb__probe_cmd *cmd, const pnb__probe_curve *c,
                      const pnb__probe_curve *control, const char *key, const char *heading,
                      pnb__result *r)
{
    static const pnb__column columns[] = {
        {"share", "share gone"},         {"trace", "uncertainty"},
        {"control_trace", "control"},    {"included", "original inside"},
        {"control_included", "control"}, {"h", "mean H"},
        {"control_h", "control"}};
    static const pnb__column alone[] = {{"share", "share gone"},
                                        {"trace", "uncertainty"},
                                        {"included", "original inside"},
                                        {"h", "mean H"}};
    if (c->n == 0)
        return;
    if (control != NULL)
        pnb__result_table(r, key, heading, columns, PNB_COUNT(columns));
    else
        pnb__result_table(r, key, heading, alone, PNB_COUNT(alone));
    for (size_t s = 0; s < cmd->n_shares; s++) {
        pnb__result_cell_real(r, cmd->share[s], 3);
        cell_pair(r, c->trace[s], control != NULL ? &control->trace[s] : NULL, 6);
        cell_pair(r, c->included[s], control != NULL ? &control->included[s] : NULL, 4);
        cell_pair(r, c->h[s], control != NULL ? &control->h[s] : NULL, 4);
    }
}

static void put_rate(pnb__result *r, const char *key, const char *words, double value,
                     const double *control)
{
    pnb__result_cell_text(r, key);
    pnb__result_cell_text(r, words);
    cell_pair(r, value, control, 4);
}

static void put_rates(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"test", "test"}, {"meaning", "H > 0 for"}, {"share", "share"}, {"control", "control"}};
    const pnb__probe_rates *v = &m->rates, *w = c != NULL ? &c->rates : NULL;
    const struct {
        const char *key, *words;
        const double *value, *control;
    } lines[] = {
        {"erased", "picture in its erased copy", &v->erased, w ? &w->erased : NULL},
        {"half_caption", "caption in itself without half of its words", &v->half,
         w ? &w->half : NULL},
        {"blend_in_both", "mean of two pictures in both", &v->blend.in_both,
         w ? &w->blend.in_both : NULL},
        {"blend_holds_both", "both pictures in their mean", &v->blend.holds_both,
         w ? &w->blend.holds_both : NULL},
        {"halves_in_both", "half of two pictures in both", &v->halves.in_both,
         w ? &w->halves.in_both : NULL},
        {"halves_hold_both", "both pictures in their halves", &v->halves.holds_both,
         w ? &w->halves.holds_both : NULL},
        {"other", "picture in another picture (chance)", &v->other, w ? &w->other : NULL},
    };
    pnb__result_table(r, "inclusion_tests", "inclusion tests (shares of 1)", columns,
                      c != NULL ? 4 : 3);
    for (size_t i = 0; i < PNB_COUNT(lines); i++)
        put_rate(r, lines[i].key, lines[i].words, *lines[i].value, lines[i].control);
}

static void put_traces(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"picture", "picture"}, {"trace", "uncertainty"}, {"control", "control"}};
    static const char *const names[] = {"original", "mean of two", "halves of two"};
    if (m->pictures.n == 0)
        return;
    const double values[] = {m->rates.trace, m->rates.blend_trace, m->rates.halves_trace};
    const double controls[] = {c != NULL ? c->rates.trace : NAN,
                               c != NULL ? c->rates.blend_trace : NAN,
                               c != NULL ? c->rates.halves_trace : NAN};
    pnb__result_table(r, "mixed", "mixed pictures", columns, c != NULL ? 3 : 2);
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        pnb__result_cell_text(r, names[i]);
        cell_pair(r, values[i], c != NULL ? &controls[i] : NULL, 6);
    }
}

static void put_levels(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    static const pnb__column columns[] = {
        {"level", "level"}, {"n", "captions"}, {"trace", "uncertainty"}, {"control", "control"}};
    if (m->n_levels == 0)
        return;
    pnb__result_table(r, "levels", "uncertainty by caption level (0 most general)", columns,
                      c != NULL ? 4 : 3);
    for (size_t l = 0; l < m->n_levels; l++) {
        pnb__result_cell_int(r, (int64_t)l);
        pnb__result_cell_int(r, (int64_t)m->level_n[l]);
        cell_pair(r, m->level_mean[l], c != NULL ? &c->level_mean[l] : NULL, 6);
    }
    pnb__result_real(r, "first_above_last", "pairs with level 0 above the last",
                     m->first_above_last, 4);
    if (c != NULL)
        pnb__result_real(r, "control_first_above_last", "the same in the control",
                         c->first_above_last, 4);
}

/* Bins of the two models differ where they cut captions into other tokens: matched by place. */
static void put_lengths(const pnb_length_bin *bins, size_t n, const pnb_length_bin *control,
                        size_t n_control, const char *key, const char *heading, pnb__result *r)
{
    static const pnb__column columns[] = {{"from", "from"},
                                          {"to", "to"},
                                          {"n", "captions"},
                                          {"trace", "uncertainty"},
                                          {"control", "control"}};
    if (n == 0)
        return;
    pnb__result_table(r, key, heading, columns, control != NULL ? 5 : 4);
    for (size_t b = 0; b < n; b++) {
        bool same = control != NULL && b < n_control && control[b].low == bins[b].low &&
                    control[b].high == bins[b].high;
        double other = same ? control[b].mean : (double)NAN;
        pnb__result_cell_int(r, (int64_t)bins[b].low);
        pnb__result_cell_int(r, (int64_t)bins[b].high);
        pnb__result_cell_int(r, (int64_t)bins[b].n);
        cell_pair(r, bins[b].mean, control != NULL ? &other : NULL, 6);
    }
}

static void put_correlations(const pnb__probe *m, const pnb__probe *c, pnb__result *r)
{
    if (m->n_words == 0)
        return;
    pnb__result_real(r, "words_spearman", "Spearman, words and uncertainty", m->words_rho, 4);
    pnb__result_real(r, "tokens_spearman", "Spearman, tokens and uncertainty", m->tokens_rho, 4);
    if (c == NULL)
        return;
    pnb__result_real(r, "control_words_spearman", "the same in the control, words", c->words_rho,
                     4);
    pnb__result_real(r, "control_tokens_spearman", "the same in the control, tokens", c->tokens_rho,
                     4);
}

static void put_chains(const pnb__chain_figures *f, const pnb__chain_figures *c, pnb__result *r)
{
    static const pnb__column columns[] = {{"level", "level"},
                                          {"trace", "uncertainty"},
                                          {"control_trace", "control"},
                                          {"uncertain", "above the picture"},
                                          {"control_uncertain", "control"},
                                          {"included", "picture inside"},
                                          {"control_included", "control"}};
    static const pnb__column alone[] = {{"level", "level"},
                                        {"trace", "uncertainty"},
                                        {"uncertain", "above the picture"},
                                        {"included", "picture inside"}};
    if (f->n == 0)
        return;
    pnb__result_table(r, "chains", "chains of pictures (the last level is the picture)",
                      c != NULL ? columns : alone, c != NULL ? 7 : 4);
    for (size_t l = 0; l < f->n_levels; l++) {
        pnb__result_cell_int(r, (int64_t)l);
        cell_pair(r, f->trace[l], c != NULL ? &c->trace[l] : NULL, 6);
        cell_pair(r, f->uncertain[l], c != NULL ? &c->uncertain[l] : NULL, 4);
        cell_pair(r, f->included[l], c != NULL ? &c->included[l] : NULL, 4);
    }
    pnb__result_int(r, "n_chains", "chains", (int64_t)f->n);
}

static void put_probe(const pnb__probe_cmd *cmd, const pnb__probe *m, const pnb__probe *c,
                      pnb__result *r)
{
    pnb__result_text(r, "model", "model", m->name);
    pnb__result_text(r, "control", c != NULL ? "control" : NULL, c != NULL ? c->name : NULL);
    pnb__result_int(r, "n_pictures", "pictures", (int64_t)m->pictures.n);
    pnb__result_int(r, "n_captions", "captions of the curve", (int64_t)m->captions.n);
    pnb__result_text(r, "inclusion", NULL, cmd->published ? "published" : "exact");
    put_levels(m, c, r);
    put_lengths(m->words, m->n_words, c != NULL ? c->words : NULL, c != NULL ? c->n_words : 0,
                "words", "uncertainty by number of words", r);
    put_lengths(m->tokens, m->n_tokens, c != NULL ? c->tokens : NULL, c != NULL ? c->n_tokens : 0,
                "tokens", "uncertainty by number of tokens", r);
    put_correlations(m, c, r);
    put_curve(cmd, &m->pictures, c != NULL ? &c->pictures : NULL, "occlusion", "erased pixels", r);
    put_curve(cmd, &m->captions, c != NULL ? &c->captions : NULL, "word_dropping", "dropped words",
              r);
    put_chains(&m->chains, c != NULL ? &c->chains : NULL, r);
    if (m->pictures.n == 0 && m->captions.n == 0)
        return;
    put_traces(m, c, r);
    put_rates(m, c, r);
}

pnb_status pnb__probe_run(pnb__app *app, const pnb__probe_cmd *cmd, pnb__result *r)
{
    pnb__probe model, control;
    const pnb__probe *beside = cmd->control != NULL ? &control : NULL;
    pnb_status status;
    PNB_TRY(pnb__probe_model(app, cmd, cmd->model, &model));
    if (beside != NULL)
        PNB_TRY(pnb__probe_model(app, cmd, cmd->control, &control));
    put_probe(cmd, &model, beside, r);
    if (cmd->html != NULL) {
        PNB_TRY(pnb__probe_page(cmd, &model, beside, cmd->html, &app->err));
        pnb__say(app, "wrote %s", cmd->html);
    }
done:
    return status;
}

/* ---- charts ---- */

/* One chart of a figure over the shares; `control` may be NULL. */
static void draw(pnb__buf *out, const pnb__probe_cmd *cmd, const double *value,
                 const double *control, const char *titles[3] /* title, x, y */)
{
    pnb__chart chart = {.title = titles[0],
                        .width = 500,
                        .height = 310,
                        .x = {.low = 0, .high = cmd->share[cmd->n_shares - 1], .label = titles[1]},
                        .y = {.low = value[0], .high = value[0], .label = titles[2]},
                        .legend = {{"model", COLOUR_MODEL, PNB__MARK_LINE},
                                   {"control", COLOUR_CONTROL, PNB__MARK_LINE}},
                        .n_legend = control != NULL ? 2 : 1};
    for (size_t s = 0; s < cmd->n_shares; s++) {
        chart.y.low = fmin(chart.y.low, value[s]);
        chart.y.high = fmax(chart.y.high, value[s]);
        if (control == NULL)
            continue;
        chart.y.low = fmin(chart.y.low, control[s]);
        chart.y.high = fmax(chart.y.high, control[s]);
    }
    if (!(chart.y.high > chart.y.low))
        chart.y.high = chart.y.low + 1e-6 + fabs(chart.y.low) * 0.1;
    pnb__chart_begin(&chart, out);
    if (control != NULL)
        pnb__chart_dashes(&chart, COLOUR_CONTROL, cmd->share, control, cmd->n_shares);
    pnb__chart_line(&chart, COLOUR_MODEL, cmd->share, value, cmd->n_shares);
    pnb__chart_end(&chart);
}

static void draw_curve(pnb__buf *out, const pnb__probe_cmd *cmd, const pnb__probe_curve *c,
                       const pnb__probe_curve *control, const char *heading, const char *share)
{
    const char *trace[3] = {"Uncertainty", share, "mean trace"};
    const char *included[3] = {"Original inside the changed copy", share, "share with H > 0"};
    if (c->n == 0)
        return;
    pnb__html_section(out, heading, NULL);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    draw(out, cmd, c->trace, control != NULL ? control->trace : NULL, trace);
    draw(out, cmd, c->included, control != NULL ? control->included : NULL, included);
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
}

pnb_status pnb__probe_page(const pnb__probe_cmd *cmd, const pnb__probe *model,
                           const pnb__probe *control, const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    pnb__html_begin(&out, "Uncertainty of changed inputs", model->name);
    draw_curve(&out, cmd, &model->pictures, control != NULL ? &control->pictures : NULL,
               "Erased pixels", "share of the picture that is erased");
    draw_curve(&out, cmd, &model->captions, control != NULL ? &control->captions : NULL,
               "Dropped words", "share of the words that are dropped");
    pnb__html_end(&out);
    pnb_status status = pnb__buf_write(&out, path, err);
    pnb__buf_reset(&out);
    return status;
}
