/* A page that draws what the prompts' weights look like: mean weight of each template, largest
 * weight and entropy over the classes (ProLIP, figure 4 and C.5), and the first prompts of the
 * classes whose weights are least even.
 *
 * Bars lie below their names, so that long prompts can be read on a narrow screen. */
#include <math.h>
#include <string.h>

#include "commands/classify/classify.h"
#include "io/tables/csv.h"
#include "report/chart.h"
#include "report/drawing.h"
#include "report/html.h"
#include "report/svg.h"

enum { N_CLASSES = 12, N_PROMPTS = 8, N_BINS = 24, BAR = 34 };

typedef struct bar {
    const char *text;
    double value;
    size_t place;
} bar;

/* Bars from the longest down, each below its name; names beyond the width are cut. */
static void draw_bars(pnb__buf *out, const char *title, const bar *bars, size_t n, int colour)
{
    const double width = PNB__CHART_WIDTH, room = width - 70;
    double longest = 0.0, y = 30;
    char css[16], text[96];
    pnb__drawing d;
    snprintf(css, sizeof css, "bar c%d", colour);
    for (size_t i = 0; i < n; i++)
        longest = fmax(longest, bars[i].value);
    pnb__drawing_begin(&d, out, title, "");
    pnb__svg_begin(out, width, 38 + BAR * (double)n, title);
    pnb__svg_text(out, "title", 4, 18, "start", title);
    pnb__buf_puts(&d.csv, "prompt,weight\n");
    for (size_t i = 0; i < n; i++, y += BAR) {
        double length = longest > 0.0 ? bars[i].value / longest * room : 0.0;
        snprintf(text, sizeof text, "%.58s%s", bars[i].text,
                 strlen(bars[i].text) > 58 ? "..." : "");
        pnb__svg_text(out, "tick", 4, y + 11, "start", text);
        pnb__svg_rect(out, css, 4, y + 15, length, 10);
        snprintf(text, sizeof text, "%.3f", bars[i].value);
        pnb__svg_text(out, "note", length + 10, y + 24, "start", text);
        pnb__csv_put_field(&d.csv, bars[i].text);
        pnb__buf_printf(&d.csv, ",%.9g\n", bars[i].value);
    }
    pnb__svg_end(out);
    pnb__drawing_end(&d);
}

/* Moves the n largest bars to the front, in order; ties keep theirs. */
static void largest_first(bar *bars, size_t n_all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < n_all; j++)
            if (bars[j].value > bars[best].value)
                best = j;
        const bar swap = bars[best];
        memmove(bars + i + 1, bars + i, (best - i) * sizeof *bars);
        bars[i] = swap;
    }
}

static void draw_templates(const pnb__classify *run, pnb__buf *out, bar *bars)
{
    size_t n = run->texts.templates.n, n_classes = run->classes.n;
    if (n == 0)
        return;
    for (size_t j = 0; j < n; j++) {
        bars[j] = (bar){run->texts.templates.items[j], 0.0, j};
        for (size_t c = 0; c < n_classes; c++)
            bars[j].value += run->weight[run->offset[c] + j] / (double)n_classes;
    }
    largest_first(bars, n, n);
    draw_bars(out, "mean weight of each template", bars, n, 0);
}

/* ---- over the classes ---- */

static double largest_weight(const pnb__classify *run, size_t c)
{
    double largest = 0.0;
    for (size_t i = run->offset[c]; i < run->offset[c + 1]; i++)
        largest = fmax(largest, run->weight[i]);
    return largest;
}

/* In nats; log n for n even weights. */
static double entropy(const pnb__classify *run, size_t c)
{
    double sum = 0.0;
    for (size_t i = run->offset[c]; i < run->offset[c + 1]; i++)
        if (run->weight[i] > 0.0)
            sum -= run->weight[i] * log(run->weight[i]);
    return sum;
}

static void draw_histogram(const pnb__classify *run, pnb__buf *out, const char *title,
                           const char *label, double (*of)(const pnb__classify *, size_t))
{
    double high = 0.0, count[N_BINS] = {0}, most = 0.0;
    for (size_t c = 0; c < run->classes.n; c++)
        high = fmax(high, of(run, c));
    high = high > 0.0 ? high : 1.0;
    for (size_t c = 0; c < run->classes.n; c++) {
        size_t b = (size_t)(of(run, c) / high * N_BINS);
        count[PNB_MIN(b, (size_t)N_BINS - 1)]++;
    }
    for (size_t b = 0; b < N_BINS; b++)
        most = fmax(most, count[b]);
    pnb__chart chart = {.title = title,
                        .width = PNB__CHART_WIDTH,
                        .height = 260,
                        .x = {0, high, false, true, label},
                        .y = {0, most, false, false, "classes"}};
    pnb__chart_begin(&chart, out);
    for (size_t b = 0; b < N_BINS; b++)
        if (count[b] > 0)
            pnb__chart_bar(&chart, 2, high * (double)b / N_BINS, high * (double)(b + 1) / N_BINS,
                           count[b]);
    pnb__chart_end(&chart);
}

static void draw_classes(const pnb__classify *run, pnb__buf *out, bar *classes, bar *bars)
{
    size_t n_shown = PNB_MIN((size_t)N_CLASSES, run->classes.n);
    for (size_t c = 0; c < run->classes.n; c++) {
        double n = (double)(run->offset[c + 1] - run->offset[c]);
        classes[c] = (bar){run->classes.items[c], log(n) - entropy(run, c), c};
    }
    largest_first(classes, run->classes.n, n_shown);
    pnb__html_section(out, "Classes with the least even weights",
                      "Their first prompts; all weights are in the JSON file.");
    pnb__buf_puts(out, "<div class=\"row\">\n");
    for (size_t k = 0; k < n_shown; k++) {
        size_t c = classes[k].place, n = run->offset[c + 1] - run->offset[c];
        for (size_t i = 0; i < n; i++)
            bars[i] = (bar){pnb__prompt_text(run, run->offset[c] + i),
                            run->weight[run->offset[c] + i], i};
        size_t n_bars = PNB_MIN((size_t)N_PROMPTS, n);
        largest_first(bars, n, n_bars);
        draw_bars(out, run->classes.items[c], bars, n_bars, 0);
    }
    pnb__buf_puts(out, "</div>\n");
    pnb__html_section_end(out);
}

/* The classes whose prompts agree least and most. */
static void put_headline(pnb__buf *out, const pnb__classify *run)
{
    size_t least = 0, most = 0;
    char answer[512];
    for (size_t c = 1; c < run->classes.n; c++) {
        least = largest_weight(run, c) > largest_weight(run, least) ? c : least;
        most = largest_weight(run, c) < largest_weight(run, most) ? c : most;
    }
    snprintf(answer, sizeof answer,
             "One prompt speaks loudest for \"%.120s\" (weight %.3f); they speak most evenly for "
             "\"%.120s\" (largest weight %.3f).",
             run->classes.items[least], largest_weight(run, least), run->classes.items[most],
             largest_weight(run, most));
    pnb__html_headline(out, "Asked: how much does each prompt count for its class?", answer);
}

pnb_status pnb__classify_draw(const pnb__classify *run, const char *path, pnb_error *err)
{
    pnb__buf out = {0};
    char subtitle[160];
    bar *bars = NULL;
    bar *classes = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(bars, run->prompts->n, err));
    PNB_TRY(PNB_ALLOC(classes, run->classes.n, err));
    snprintf(subtitle, sizeof subtitle, "%zu classes, %zu prompts, weights by %s", run->classes.n,
             run->prompts->n, run->method);
    pnb__html_begin(&out, "Weights of prompts", subtitle);
    put_headline(&out, run);
    pnb__html_contents(&out);
    pnb__html_section(&out, "Over all classes",
                      "Even weights have the entropy log n; a largest weight near 1 means that one "
                      "prompt speaks for the class.");
    pnb__buf_puts(&out, "<div class=\"row\">\n");
    draw_histogram(run, &out, "largest weight of a class", "largest weight", largest_weight);
    draw_histogram(run, &out, "entropy of a class's weights", "entropy (nats)", entropy);
    draw_templates(run, &out, bars);
    pnb__buf_puts(&out, "</div>\n");
    pnb__html_section_end(&out);
    draw_classes(run, &out, classes, bars);
    pnb__html_end(&out);
    status = pnb__buf_write(&out, path, err);
done:
    pnb__buf_reset(&out);
    pnb__free(bars);
    pnb__free(classes);
    return status;
}
