/* The page of a probe: what the tables say as charts, each figure with the control's dashed beside
 * it.
 *
 * A section appears where something was measured: captions by level and length, chains of pictures,
 * the curves over erased pixels and dropped words, and the inclusion tests. */
#include <math.h>

#include "app/chart.h"
#include "app/html.h"
#include "app/probe.h"
#include "app/svg.h"
#include "base/base.h"

enum { COLOUR_MODEL = 0, COLOUR_CONTROL = 5, MAX_POINTS = (int)PNB__MAX_SHARES };

/* What is shown: a share of 1, or an uncertainty. The control's uncertainty may lie on quite
 * another scale, so that beside it both are shown as changes. */
typedef enum figure { SHARE, TRACE } figure;

/* A figure at n places; control [n_control] may be NULL. */
typedef struct series {
    const char *title, *x_label;
    figure kind;
    const double *x, *value;
    size_t n;
    const double *control_x, *control;
    size_t n_control;
} series;

_Static_assert((int)PNB__MAX_LENGTH_BINS <= (int)MAX_POINTS &&
                   (int)PNB__PROBE_LEVELS <= (int)MAX_POINTS &&
                   (int)PNB__CHAIN_LEVELS <= (int)MAX_POINTS,
               "every figure fits the buffers of a chart");

/* Per cent above the first value. */
static void make_changes(const double *value, size_t n, double out[MAX_POINTS])
{
    for (size_t i = 0; i < n; i++)
        out[i] = 100.0 * (value[i] / value[0] - 1.0);
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
                        .width = 500,
                        .height = 310,
                        .x = {.low = s->x[0], .high = s->x[0], .label = s->x_label},
                        .y = {.low = s->value[0], .high = s->value[0], .label = y_label},
                        .legend = {{"model", COLOUR_MODEL, PNB__MARK_LINE},
                                   {"control", COLOUR_CONTROL, PNB__MARK_LINE}},
                        .n_legend = s->control != NULL ? 2 : 1};
    widen(&chart.x, s->x, s->n);
    widen(&chart.y, s->value, s->n);
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
    pnb__chart_line(&chart, COLOUR_MODEL, s->x, s->value, s->n);
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->value[i]))
            pnb__chart_dot(&chart, COLOUR_MODEL, s->x[i], s->value[i], 2.5);
    pnb__chart_end(&chart);
}

static void draw(pnb__buf *out, const series *s)
{
    double value[MAX_POINTS], control[MAX_POINTS];
    series changes = *s;
    if (s->n == 0)
        return;
    if (s->kind == SHARE || s->control == NULL) {
        draw_values(out, s, s->kind == SHARE ? "share with H > 0" : "mean trace");
        return;
    }
    make_changes(s->value, s->n, value);
    make_changes(s->control, s->n_control, control);
    changes.value = value;
    changes.control = control;
    draw_values(out, &changes, "mean trace, % above the first point");
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
static size_t take_levels(const pnb__probe *p, double *x, double *value)
{
    size_t n = 0;
    for (size_t l = 0; l < p->n_levels; l++)
        if (p->level_n[l] > 0) {
            x[n] = level_place[l];
            value[n++] = p->level_mean[l];
        }
    return n;
}

static void draw_levels(pnb__buf *out, const pnb__probe *m, const pnb__probe *c)
{
    double x[MAX_POINTS], value[MAX_POINTS], control_x[MAX_POINTS], control[MAX_POINTS];
    series s = {.title = "Uncertainty by caption level",
                .x_label = "level (0 most general)",
                .kind = TRACE,
                .x = x,
                .value = value,
                .n = take_levels(m, x, value)};
    if (c != NULL) {
        s.control_x = control_x;
        s.control = control;
        s.n_control = take_levels(c, control_x, control);
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
    series s = {.title = tokens ? "Uncertainty by tokens" : "Uncertainty by words",
                .x_label = tokens ? "tokens of the caption" : "words of the caption",
                .kind = TRACE,
                .x = x,
                .value = value,
                .n = tokens ? take_bins(m->tokens, m->n_tokens, x, value)
                            : take_bins(m->words, m->n_words, x, value)};
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
    begin_row(out, "Captions", "General and short captions should be less certain.");
    draw_levels(out, m, c);
    draw_lengths(out, m, c, false);
    draw_lengths(out, m, c, true);
    end_row(out);
}

/* ---- curves and chains ---- */

static void draw_curve(pnb__buf *out, const pnb__probe_cmd *cmd, const pnb__probe_curve *c,
                       const pnb__probe_curve *control, const char *heading, const char *share)
{
    const series trace = {.title = "Uncertainty",
                          .x_label = share,
                          .kind = TRACE,
                          .x = cmd->share,
                          .n = cmd->n_shares};
    const series included = {.title = "Original inside the changed copy",
                             .x_label = share,
                             .kind = SHARE,
                             .x = cmd->share,
                             .n = cmd->n_shares};
    if (c->n == 0)
        return;
    begin_row(out, heading, NULL);
    draw_pair(out, &trace, c->trace, control != NULL ? control->trace : NULL);
    draw_pair(out, &included, c->included, control != NULL ? control->included : NULL);
    end_row(out);
}

static void draw_chains(pnb__buf *out, const pnb__chain_figures *f, const pnb__chain_figures *c)
{
    static const char label[] = "level (the last one is the picture)";
    series trace = {
        .title = "Uncertainty by level", .x_label = label, .kind = TRACE, .x = level_place};
    series included = {
        .title = "Picture inside the level", .x_label = label, .kind = SHARE, .x = level_place};
    if (f->n == 0 || f->n_levels == 0)
        return;
    trace.n = f->n_levels;
    included.n = f->n_levels - 1;
    begin_row(out, "Chains of pictures",
              "Level 0 shows the largest segment alone, each level one more.");
    draw_pair(out, &trace, f->trace, c != NULL ? c->trace : NULL);
    if (included.n > 0)
        draw_pair(out, &included, f->included, c != NULL ? c->included : NULL);
    end_row(out);
}

/* ---- tests ---- */

static void put_tests(pnb__buf *out, const pnb__probe *m, const pnb__probe *c)
{
    pnb__probe_test own[PNB__PROBE_TESTS], other[PNB__PROBE_TESTS];
    if (m->pictures.n == 0 && m->captions.n == 0)
        return;
    pnb__probe_tests(&m->rates, own);
    if (c != NULL)
        pnb__probe_tests(&c->rates, other);
    pnb__html_section(out, "Inclusion tests", "Share with H > 0.");
    pnb__buf_printf(out, "<table><tr><th>of</th><th class=\"n\">model</th>%s</tr>\n",
                    c != NULL ? "<th class=\"n\">control</th>" : "");
    for (size_t i = 0; i < PNB__PROBE_TESTS; i++) {
        if (isnan(own[i].share))
            continue;
        pnb__buf_printf(out, "<tr><td>%s</td><td class=\"n\">%.1f%%</td>", own[i].words,
                        100.0 * own[i].share);
        if (c != NULL)
            pnb__buf_printf(out, "<td class=\"n\">%.1f%%</td>", 100.0 * other[i].share);
        pnb__buf_puts(out, "</tr>\n");
    }
    pnb__buf_puts(out, "</table>\n");
    pnb__html_section_end(out);
}

pnb_status pnb__probe_page(const pnb__probe_cmd *cmd, const pnb__probe *model,
                           const pnb__probe *control, const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    pnb__html_begin(&out, "Uncertainty of changed inputs", model->name);
    draw_captions(&out, model, control);
    draw_chains(&out, &model->chains, control != NULL ? &control->chains : NULL);
    draw_curve(&out, cmd, &model->pictures, control != NULL ? &control->pictures : NULL,
               "Erased pixels", "share of the picture that is erased");
    draw_curve(&out, cmd, &model->captions, control != NULL ? &control->captions : NULL,
               "Dropped words", "share of the words that are dropped");
    put_tests(&out, model, control);
    pnb__html_end(&out);
    pnb_status status = pnb__buf_write(&out, path, err);
    pnb__buf_reset(&out);
    return status;
}
