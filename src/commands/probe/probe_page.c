/* The page of a probe: what the tables say as charts, each figure with the control's dashed beside
 * it.
 *
 * A section appears where something was measured: captions by level and length, chains of pictures,
 * the curves over erased pixels and dropped words, and the inclusion tests. */
#include <math.h>

#include "base/base.h"
#include "commands/probe/probe.h"
#include "report/chart.h"
#include "report/figure_interval.h"
#include "report/html.h"
#include "report/svg.h"

enum { COLOUR_MODEL = 0, COLOUR_CONTROL = 5, MAX_POINTS = (int)PNB__MAX_SHARES };

/* What is shown: a share of 1, or an uncertainty. The control's uncertainty may lie on quite
 * another scale, so that beside it both are shown as changes. */
typedef enum figure { SHARE, TRACE } figure;

/* A figure at n places, with its interval; control [n_control] may be NULL. */
typedef struct series {
    const char *title, *x_label;
    figure kind;
    const double *x, *value, *low, *high; /* low and high, the interval, may be NULL together */
    size_t n;
    const double *control_x, *control;
    size_t n_control;
} series;

_Static_assert((int)PNB__MAX_LENGTH_BINS <= (int)MAX_POINTS &&
                   (int)PNB__PROBE_LEVELS <= (int)MAX_POINTS &&
                   (int)PNB__CHAIN_LEVELS <= (int)MAX_POINTS,
               "every figure fits the buffers of a chart");

/* Per cent above `first`. */
static void make_changes(const double *value, size_t n, double first, double out[MAX_POINTS])
{
    for (size_t i = 0; i < n; i++)
        out[i] = 100.0 * (value[i] / first - 1.0);
}

static void widen(pnb__axis *axis, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        axis->low = fmin(axis->low, values[i]);
        axis->high = fmax(axis->high, values[i]);
    }
}

static void draw_values(pnb__buf *out, const series *s, const char *y_label)
{
    pnb__chart chart = {.title = s->title,
                        .width = PNB__CHART_WIDTH,
                        .height = PNB__CHART_HEIGHT,
                        .x = {.low = s->x[0], .high = s->x[0], .label = s->x_label},
                        .y = {.low = s->value[0], .high = s->value[0], .label = y_label},
                        .legend = {{"model", COLOUR_MODEL, PNB__MARK_LINE},
                                   {"control", COLOUR_CONTROL, PNB__MARK_DASHES}},
                        .n_legend = s->control != NULL ? 2 : 1};
    widen(&chart.x, s->x, s->n);
    widen(&chart.y, s->value, s->n);
    if (s->low != NULL) {
        widen(&chart.y, s->low, s->n);
        widen(&chart.y, s->high, s->n);
    }
    if (s->control != NULL) {
        widen(&chart.x, s->control_x, s->n_control);
        widen(&chart.y, s->control, s->n_control);
    }
    if (s->kind == SHARE)
        widen(&chart.y, (const double[]){0, 1}, 2);
    if (!(chart.y.high > chart.y.low))
        chart.y.high = chart.y.low + 1e-6 + fabs(chart.y.low) * 0.1;
    pnb__chart_begin(&chart, out);
    if (s->control != NULL)
        pnb__chart_dashes(&chart, COLOUR_CONTROL, s->control_x, s->control, s->n_control);
    const pnb__curve curve = {COLOUR_MODEL, s->x, s->value, s->low, s->high, s->n, 2.2};
    pnb__chart_curve(&chart, &curve);
    pnb__chart_end(&chart);
}

static void draw(pnb__buf *out, const series *s)
{
    double value[MAX_POINTS], control[MAX_POINTS], low[MAX_POINTS], high[MAX_POINTS];
    series changes = *s;
    if (s->n == 0)
        return;
    if (s->kind == SHARE || s->control == NULL) {
        draw_values(out, s, s->kind == SHARE ? "share with H > 0" : "mean trace");
        return;
    }
    make_changes(s->value, s->n, s->value[0], value);
    make_changes(s->control, s->n_control, s->control[0], control);
    if (s->low != NULL) {
        make_changes(s->low, s->n, s->value[0], low);
        make_changes(s->high, s->n, s->value[0], high);
        changes.low = low;
        changes.high = high;
    }
    changes.value = value;
    changes.control = control;
    draw_values(out, &changes, "mean trace, % above the first point");
}

/* Intervals around means: value -+ half. */
static void around(const double *value, const double *half, size_t n, double low[MAX_POINTS],
                   double high[MAX_POINTS])
{
    for (size_t i = 0; i < n; i++) {
        low[i] = value[i] - half[i];
        high[i] = value[i] + half[i];
    }
}

/* Intervals of shares of n_inputs inputs. */
static void around_shares(const double *value, size_t n_inputs, size_t n, double low[MAX_POINTS],
                          double high[MAX_POINTS])
{
    for (size_t i = 0; i < n; i++)
        pnb__share_interval(value[i], (double)n_inputs, &low[i], &high[i]);
}

/* A figure and the control's, at the same places. */
static void draw_pair(pnb__buf *out, const series *s, const double *value, const double *control)
{
    series pair = *s;
    pair.value = value;
    pair.control_x = s->x;
    pair.control = control;
    pair.n_control = s->n;
    draw(out, &pair);
}

static void begin_row(pnb__buf *out, const char *heading, const char *text)
{
    pnb__html_section(out, heading, text);
    pnb__buf_puts(out, "<div class=\"row\">\n");
}

static void end_row(pnb__buf *out)
{
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
}

/* ---- captions ---- */

static const double level_place[MAX_POINTS] = {0, 1, 2, 3, 4, 5, 6, 7};

/* Levels without captions are left out. */
static size_t take_levels(const pnb__probe *p, double *x, double *value, double *half)
{
    size_t n = 0;
    for (size_t l = 0; l < p->n_levels; l++)
        if (p->level_n[l] > 0) {
            x[n] = level_place[l];
            half[n] = p->level_half[l];
            value[n++] = p->level_mean[l];
        }
    return n;
}

static void draw_levels(pnb__buf *out, const pnb__probe *m, const pnb__probe *c)
{
    double x[MAX_POINTS], value[MAX_POINTS], control_x[MAX_POINTS], control[MAX_POINTS];
    double half[MAX_POINTS], low[MAX_POINTS], high[MAX_POINTS];
    series s = {.title = "Uncertainty by caption level",
                .x_label = "level (0 most general)",
                .kind = TRACE,
                .x = x,
                .value = value,
                .low = low,
                .high = high,
                .n = take_levels(m, x, value, half)};
    around(value, half, s.n, low, high);
    if (c != NULL) {
        s.control_x = control_x;
        s.control = control;
        s.n_control = take_levels(c, control_x, control, half);
    }
    if (s.n > 0)
        draw(out, &s);
}

/* A bin stands at the middle of its lengths. */
static size_t take_bins(const pnb_length_bin *bins, size_t n, double *x, double *value)
{
    for (size_t b = 0; b < n; b++) {
        x[b] = 0.5 * ((double)bins[b].low + (double)bins[b].high);
        value[b] = bins[b].mean;
    }
    return n;
}

static void draw_lengths(pnb__buf *out, const pnb__probe *m, const pnb__probe *c, bool tokens)
{
    double x[MAX_POINTS], value[MAX_POINTS], control_x[MAX_POINTS], control[MAX_POINTS];
    double low[MAX_POINTS], high[MAX_POINTS];
    series s = {.title = tokens ? "Uncertainty by tokens" : "Uncertainty by words",
                .x_label = tokens ? "tokens of the caption" : "words of the caption",
                .kind = TRACE,
                .x = x,
                .value = value,
                .n = tokens ? take_bins(m->tokens, m->n_tokens, x, value)
                            : take_bins(m->words, m->n_words, x, value)};
    around(value, tokens ? m->tokens_half : m->words_half, s.n, low, high);
    s.low = low;
    s.high = high;
    if (c != NULL) {
        s.control_x = control_x;
        s.control = control;
        s.n_control = tokens ? take_bins(c->tokens, c->n_tokens, control_x, control)
                             : take_bins(c->words, c->n_words, control_x, control);
    }
    draw(out, &s);
}

static void draw_captions(pnb__buf *out, const pnb__probe *m, const pnb__probe *c)
{
    if (m->n_words == 0)
        return;
    begin_row(out, "Captions",
              "General and short captions should be less certain. Thin lines are 95% "
              "intervals of the means.");
    draw_levels(out, m, c);
    draw_lengths(out, m, c, false);
    draw_lengths(out, m, c, true);
    end_row(out);
}

/* ---- curves and chains ---- */

static void draw_curve(pnb__buf *out, const pnb__probe_cmd *cmd, const pnb__probe_curve *c,
                       const pnb__probe_curve *control, const char *heading, const char *share)
{
    double low[2][MAX_POINTS], high[2][MAX_POINTS];
    char included_title[96];
    const series trace = {.title = "Uncertainty",
                          .x_label = share,
                          .low = low[0],
                          .high = high[0],
                          .kind = TRACE,
                          .x = cmd->share,
                          .n = cmd->n_shares};
    const series included = {.title = included_title,
                             .x_label = share,
                             .low = low[1],
                             .high = high[1],
                             .kind = SHARE,
                             .x = cmd->share,
                             .n = cmd->n_shares};
    if (c->n == 0)
        return;
    snprintf(included_title, sizeof included_title, "Original inside the changed copy (%zu)", c->n);
    around(c->trace, c->trace_half, cmd->n_shares, low[0], high[0]);
    around_shares(c->included, c->n, cmd->n_shares, low[1], high[1]);
    begin_row(out, heading, "Thin lines are 95% intervals over the inputs.");
    draw_pair(out, &trace, c->trace, control != NULL ? control->trace : NULL);
    draw_pair(out, &included, c->included, control != NULL ? control->included : NULL);
    end_row(out);
}

static void draw_chains(pnb__buf *out, const pnb__hierarchy_figures *f,
                        const pnb__hierarchy_figures *c)
{
    static const char label[] = "level (the last one is the picture)";
    series trace = {
        .title = "Uncertainty by level", .x_label = label, .kind = TRACE, .x = level_place};
    series included = {
        .title = "Picture inside the level", .x_label = label, .kind = SHARE, .x = level_place};
    if (f->n == 0 || f->n_levels == 0)
        return;
    double low[MAX_POINTS], high[MAX_POINTS];
    trace.n = f->n_levels;
    included.n = f->n_levels - 1;
    around_shares(f->included, f->n, included.n, low, high);
    included.low = low;
    included.high = high;
    begin_row(out, "Chains of pictures",
              "Level 0 shows the largest segment alone, each level one more.");
    draw_pair(out, &trace, f->trace, c != NULL ? c->trace : NULL);
    if (included.n > 0)
        draw_pair(out, &included, f->included, c != NULL ? c->included : NULL);
    end_row(out);
}

/* ---- tests ---- */

/* "93.8% [88.1, 96.8]" */
static void put_share(pnb__buf *out, double share, size_t n)
{
    double low, high;
    pnb__share_interval(share, (double)n, &low, &high);
    pnb__buf_printf(out,
                    "<td class=\"n whole\">%.1f%% <span class=\"soft\">[%.1f, %.1f]</span></td>",
                    100.0 * share, 100.0 * low, 100.0 * high);
}

static size_t n_of_test(const pnb__probe *p, size_t i)
{
    return i == 1 ? p->captions.n : p->pictures.n; /* the second test is the one of captions */
}

static void put_tests(pnb__buf *out, const pnb__probe *m, const pnb__probe *c)
{
    pnb__probe_test own[PNB__PROBE_TESTS], other[PNB__PROBE_TESTS];
    if (m->pictures.n == 0 && m->captions.n == 0)
        return;
    pnb__probe_tests(&m->rates, own);
    if (c != NULL)
        pnb__probe_tests(&c->rates, other);
    pnb__html_section(out, "Inclusion tests", "Share with H > 0, with its 95% interval.");
    pnb__buf_printf(out,
                    "<div class=\"scroll\"><table><tr><th>of</th><th class=\"n\">model</th>%s"
                    "</tr>\n",
                    c != NULL ? "<th class=\"n\">control</th>" : "");
    for (size_t i = 0; i < PNB__PROBE_TESTS; i++) {
        if (isnan(own[i].share))
            continue;
        pnb__buf_printf(out, "<tr><td>%s</td>", own[i].words);
        put_share(out, own[i].share, n_of_test(m, i));
        if (c != NULL)
            put_share(out, other[i].share, n_of_test(c, i));
        pnb__buf_puts(out, "</tr>\n");
    }
    pnb__buf_puts(out, "</table></div>\n");
    pnb__html_section_end(out);
}

/* ---- headline ---- */

static void put_inclusion(pnb__buf *out)
{
    pnb__html_section(
        out, "What H > 0 means",
        "An embedding is a cloud of points, a Gaussian. H(a in b) compares how well b covers a "
        "with "
        "how well a covers b: above 0, a lies inside b, so b says less and allows more than a. A "
        "picture with a part erased, or a caption with words dropped, allows everything that the "
        "whole did: the whole should lie inside the changed copy, and H be above 0. Of two "
        "pictures that have nothing to do with each other half pass by chance, for H(a in b) is "
        "-H(b in a). A control whose uncertainty was not trained shows what comes from the "
        "means alone.");
    pnb__html_section_end(out);
}

static void headline(pnb__buf *out, const pnb__probe_cmd *cmd, const pnb__probe *m,
                     const pnb__probe *c)
{
    const pnb__probe_curve *curve = m->pictures.n > 0 ? &m->pictures : &m->captions;
    double share = m->pictures.n > 0 ? m->rates.erased : m->rates.half, low, high;
    double control = c == NULL ? NAN : m->pictures.n > 0 ? c->rates.erased : c->rates.half;
    char answer[400];
    int n;
    if (curve->n == 0) {
        n = snprintf(answer, sizeof answer, "%zu chains of pictures were measured.", m->chains.n);
    } else {
        pnb__share_interval(share, (double)curve->n, &low, &high);
        n = snprintf(answer, sizeof answer,
                     "%.0f%% [%.0f, %.0f] of %zu %s lie inside their copies with %.0f%% of %s gone",
                     100 * share, 100 * low, 100 * high, curve->n,
                     m->pictures.n > 0 ? "pictures" : "captions",
                     m->pictures.n > 0 ? 100 * cmd->erased : 50.0,
                     m->pictures.n > 0 ? "the pixels" : "the words");
    }
    if (curve->n > 0 && n > 0 && isfinite(control))
        snprintf(answer + n, sizeof answer - (size_t)n, "; in the control %.0f%%.", 100 * control);
    else if (curve->n > 0 && n > 0)
        snprintf(answer + n, sizeof answer - (size_t)n, ".");
    pnb__html_headline(out, "Asked: does the model grow less certain when something is taken away?",
                       answer);
}

static pnb_status put_example(pnb__buf *out, const pnb__probe_example *e, const char *heading,
                              pnb_error *err)
{
    char before[48], after[48];
    pnb_status status = PNB_OK;
    snprintf(before, sizeof before, "uncertainty %.4g", e->before);
    snprintf(after, sizeof after, "%.4g (%+.1f%%)", e->after, 100 * (e->after / e->before - 1));
    pnb__html_card(out, heading);
    pnb__buf_puts(out, "<div class=\"row\">\n");
    if (e->text != NULL) {
        pnb__buf_puts(out, "<p><q>");
        pnb__html_escape(out, e->text);
        pnb__buf_printf(out, "</q> <span class=\"soft\">%s</span><br><q>", before);
        pnb__html_escape(out, e->changed_text);
        pnb__buf_printf(out, "</q> <span class=\"soft\">%s</span></p>\n", after);
    } else {
        PNB_TRY(pnb__html_shot(out, &e->picture, "big", "whole", before, err));
        PNB_TRY(pnb__html_shot(out, &e->changed_picture, "big", "changed", after, err));
    }
    pnb__buf_puts(out, "</div>\n");
done:
    return status;
}

static pnb_status put_examples(pnb__buf *out, const pnb__probe *m, pnb_error *err)
{
    pnb_status status;
    if (!m->has_examples)
        return PNB_OK;
    pnb__html_cards_begin(out);
    PNB_TRY(put_example(out, &m->most, "Answers best: the largest rise", err));
    PNB_TRY(put_example(out, &m->least, "Answers worst: the smallest rise", err));
    pnb__html_cards_end(out);
done:
    return status;
}

pnb_status pnb__probe_page(const pnb__probe_cmd *cmd, const pnb__probe *model,
                           const pnb__probe *control, const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    pnb_status status;
    pnb__html_begin(&out, "Uncertainty of changed inputs", model->name);
    headline(&out, cmd, model, control);
    PNB_TRY(put_examples(&out, model, err));
    pnb__html_contents(&out);
    put_inclusion(&out);
    draw_captions(&out, model, control);
    draw_chains(&out, &model->chains, control != NULL ? &control->chains : NULL);
    draw_curve(&out, cmd, &model->pictures, control != NULL ? &control->pictures : NULL,
               "Erased pixels", "share of the picture that is erased");
    draw_curve(&out, cmd, &model->captions, control != NULL ? &control->captions : NULL,
               "Dropped words", "share of the words that are dropped");
    put_tests(&out, model, control);
    pnb__html_end(&out);
    status = pnb__buf_write(&out, path, err);
done:
    pnb__buf_reset(&out);
    return status;
}
