/* The preview of a filter: one page that shows what it keeps and what it drops.
 *
 * Counts by rule, histograms of score and uncertainties with the kept part and the cut, and pairs
 * side by side: at the cut, where a limit is judged best, and drawn from all over each side. Then
 * some pairs of every rule. The page is one file without outside resources; pictures are found
 * again through the data set or the rows' own paths, and named where they are not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/filter/filter.h"
#include "encode/inputs/inputs.h"
#include "report/html.h"
#include "report/page.h"
#include "report/svg.h"
#include "sets/set_rows.h"

typedef struct page {
    const pnb__filter_run *run;
    pnb__page page;
    pnb__buf *out; /* of the page */
    pnb__row_source source;
    size_t *order; /* pairs by score, best first */
    bool by_score; /* some pair was dropped for its score alone */
    size_t n_missing;
} page;

/* ---- histograms ---- */

static void histogram(page *p, const char *title, const char *figure, pnb__axis x)
{
    const pnb__series bars = {
        .x = "from", .x_to = "to", .where = "figure", .is = figure, .shape = PNB__SHAPE_BARS};
    pnb__plot plot = {.title = title,
                      .table = "histograms",
                      .height = 240,
                      .x = x,
                      .y = {PNB__FROM_0, .label = "pairs"},
                      .series = {bars,
                                 bars,
                                 {.name = "cut",
                                  .table = "figures",
                                  .x = "cut",
                                  .where = "figure",
                                  .is = figure,
                                  .shape = PNB__SHAPE_CUT,
                                  .colour = 4}},
                      .n_series = 3};
    plot.series[0].name = "all pairs";
    plot.series[0].y = "n";
    plot.series[0].colour = 5;
    plot.series[1].name = "kept";
    plot.series[1].y = "n_kept";
    plot.series[1].colour = 2;
    pnb__page_plot(&p->page, &plot);
}

static void histograms(page *p)
{
    const pnb__filter_run *run = p->run;
    char score[80], u[80];
    snprintf(score, sizeof score, "score (%s, larger is nearer)",
             pnb_measure_name(run->opts->measure));
    snprintf(u, sizeof u, "uncertainty (%s)", pnb_uncertainty_name(run->opts->uncertainty));
    const pnb__axis of_u = {.log = true, .exact = true, .label = u};
    pnb__page_section(&p->page, "Figures",
                      "The cut of the score is the lowest one kept, whichever rule drew the line.");
    histogram(p, "Score of the pairs", "score", (pnb__axis){.exact = true, .label = score});
    histogram(p, "Probability of a match", "p_match",
              (pnb__axis){.exact = true, .label = "p(match)"});
    histogram(p, "Uncertainty of the pictures", "image_uncertainty", of_u);
    histogram(p, "Uncertainty of the captions", "text_uncertainty", of_u);
}

/* ---- pairs ---- */

/* An empty one where it cannot be had any more. */
static pnb_status image_of(page *p, size_t row, pnb_image *out, pnb_error *err)
{
    const pnb__pair_data *data = &p->run->data;
    if (data->set == NULL)
        return pnb__row_image(&p->source, p->run->images, row, out, err);
    *out = (pnb_image){0};
    pnb_status status = pnb_dataset_image(data->set, data->sample[row], out, NULL);
    return status == PNB_NOMEM ? pnb__fail_nomem(err, 0) : PNB_OK;
}

static pnb_status put_pair(page *p, size_t i, pnb_error *err)
{
    const pnb__filter_run *run = p->run;
    size_t row = run->pairs.image[i];
    const char *text = run->pair_texts != NULL ? run->pair_texts[i] : NULL;
    pnb_image image = {0};
    pnb_status status = image_of(p, row, &image, err);
    if (status != PNB_OK)
        return status;
    bool is_found = image.pixels != NULL;
    p->n_missing += !is_found;
    const char *name = pnb__path_base(pnb__set_id(run->images, row));
    pnb__buf_puts(p->out, "<tr><td>");
    status = pnb__html_shot(p->out, is_found ? &image : NULL, "",
                            is_found && text != NULL ? "" : name, "", err);
    pnb__buf_puts(p->out, "</td><td class=\"free\">");
    pnb__html_escape(p->out, text != NULL ? text : name);
    pnb__buf_printf(p->out, "<br><span class=\"soft\">score %.4f", run->score[i]);
    if (run->p_match != NULL)
        pnb__buf_printf(p->out, ", p(match) %.3f", run->p_match[i]);
    pnb__buf_printf(p->out, "<br>uncertainty %.4g picture, %.4g caption", run->image_u[i],
                    run->text_u[i]);
    if (run->filter.failed[i] != 0) {
        pnb__buf_puts(p->out, "<br>fails ");
        pnb__filter_reasons(run->filter.failed[i], p->out);
    }
    pnb__buf_puts(p->out, "</span></td></tr>\n");
    pnb_image_free(&image);
    return status;
}

/* Pairs of one side, chosen from the order by score. */
typedef struct choice {
    bool kept;
    bool at_cut;   /* the worst that were kept, the best that their score dropped; else evenly */
    uint32_t rule; /* only pairs whose first failed rule is this one; 0: any */
} choice;

/* Rules that draw a line through the scores. */
#define SCORE_RULES                                                                                \
    ((uint32_t)1 << PNB_RULE_MIN_SCORE | (uint32_t)1 << PNB_RULE_MIN_P_MATCH |                     \
     (uint32_t)1 << PNB_RULE_TOP)

static bool is_chosen(const page *p, const choice *c, size_t i)
{
    uint32_t failed = p->run->filter.failed[i], lowest = failed & (~failed + 1);
    bool is_elsewhere = c->at_cut && !c->kept && p->by_score && (failed & ~SCORE_RULES) != 0;
    return (failed == 0) == c->kept && (c->rule == 0 || lowest == c->rule) && !is_elsewhere;
}

static pnb_status put_column(page *p, const char *heading, const choice *c, pnb_error *err)
{
    size_t n = p->run->filter.n, n_side = 0, wanted = p->run->opts->n_examples, seen = 0, shown = 0;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < n; i++)
        n_side += is_chosen(p, c, i);
    pnb__buf_printf(p->out,
                    "<div style=\"flex:1 1 300px\"><h3>%s (%zu of %zu)</h3>"
                    "<div class=\"scroll\"><table>\n",
                    heading, PNB_MIN(wanted, n_side), n_side);
    for (size_t place = 0; status == PNB_OK && place < n && shown < wanted; place++) {
        size_t i = p->order[c->kept && c->at_cut ? n - 1 - place : place];
        if (!is_chosen(p, c, i))
            continue;
        /* the k-th shown is the first at or behind k/wanted of the side */
        bool is_due = c->at_cut || seen * wanted >= shown * n_side;
        seen++;
        if (!is_due)
            continue;
        shown++;
        status = put_pair(p, i, err);
    }
    pnb__buf_puts(p->out, "</table></div></div>\n");
    return status;
}

static pnb_status put_sides(page *p, const char *heading, const char *text, bool at_cut,
                            pnb_error *err)
{
    const choice kept = {true, at_cut, 0}, dropped = {false, at_cut, 0};
    pnb__page_section(&p->page, heading, text);
    pnb__buf_puts(pnb__page_block(&p->page), "<div class=\"row\">\n");
    pnb_status status = put_column(p, "Kept", &kept, err);
    if (status == PNB_OK)
        status = put_column(p, "Dropped", &dropped, err);
    pnb__buf_puts(p->out, "</div>\n");
    return status;
}

static pnb_status put_by_rule(page *p, pnb_error *err)
{
    const pnb_pair_filter *f = &p->run->filter;
    pnb_status status = PNB_OK;
    if (f->n_kept == f->n)
        return PNB_OK;
    pnb__page_section(&p->page, "Dropped, by rule", "From the best score to the worst, evenly.");
    pnb__buf_puts(pnb__page_block(&p->page), "<div class=\"row\">\n");
    for (int rule = 0; status == PNB_OK && rule < PNB_N_RULES; rule++) {
        const choice c = {false, false, (uint32_t)1 << rule};
        if (f->n_first[rule] > 0)
            status = put_column(p, pnb_rule_name((pnb_rule)rule), &c, err);
    }
    pnb__buf_puts(p->out, "</div>\n");
    return status;
}

/* ---- page ---- */

typedef struct ranked {
    double score;
    size_t pair;
} ranked;

static int best_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

static pnb_status sort_pairs(page *p, pnb_error *err)
{
    size_t n = p->run->filter.n;
    ranked *sorted = pnb__alloc_array(n, sizeof *sorted);
    p->order = pnb__alloc_array(n, sizeof *p->order);
    if (sorted == NULL || p->order == NULL) {
        pnb__free(sorted);
        return pnb__fail_nomem(err, n * sizeof *sorted);
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = (ranked){p->run->score[i], i};
    qsort(sorted, n, sizeof *sorted, best_first);
    for (size_t i = 0; i < n; i++) {
        uint32_t failed = p->run->filter.failed[i];
        p->order[i] = sorted[i].pair;
        p->by_score = p->by_score || (failed != 0 && (failed & ~SCORE_RULES) == 0);
    }
    pnb__free(sorted);
    return PNB_OK;
}

/* The pair of best score that is kept, and that of worst score that is not. */
static pnb_status put_extremes(page *p, pnb_error *err)
{
    const pnb_pair_filter *f = &p->run->filter;
    size_t best = f->n, worst = f->n;
    pnb_status status = PNB_OK;
    for (size_t place = 0; place < f->n; place++) {
        size_t i = p->order[place];
        if (f->failed[i] != 0)
            worst = i;
        else if (best == f->n)
            best = i;
    }
    pnb__html_cards_begin(p->out);
    for (int dropped = 0; status == PNB_OK && dropped < 2; dropped++) {
        size_t i = dropped ? worst : best;
        if (i == f->n)
            continue;
        pnb__html_card(p->out, dropped ? "Worst of the dropped" : "Best of the kept");
        pnb__buf_puts(p->out, "<div class=\"scroll\"><table>\n");
        status = put_pair(p, i, err);
        pnb__buf_puts(p->out, "</table></div>\n");
    }
    pnb__html_cards_end(p->out);
    return status;
}

static void put_headline(page *p)
{
    const pnb_pair_filter *f = &p->run->filter;
    char answer[300];
    size_t most = 0;
    for (size_t rule = 1; rule < PNB_N_RULES; rule++)
        most = f->n_first[rule] > f->n_first[most] ? rule : most;
    int n = snprintf(answer, sizeof answer, "%.0f of %.0f pairs are kept (%.1f%%)",
                     pnb__page_number(&p->page, "n_kept"), pnb__page_number(&p->page, "n_pairs"),
                     100 * pnb__page_number(&p->page, "share_kept"));
    if (n > 0 && f->n_kept < f->n)
        snprintf(answer + n, sizeof answer - (size_t)n, "; %s drops most of the others, %zu.",
                 pnb_rule_name((pnb_rule)most), f->n_first[most]);
    else if (n > 0)
        snprintf(answer + n, sizeof answer - (size_t)n, ".");
    pnb__html_headline(p->out, "Asked: which pairs of picture and caption are worth training on?",
                       answer);
}

pnb_status pnb__filter_page(const pnb__filter_run *run, pnb__result *r, pnb_error *err)
{
    static const char *const rules[] = {"rule", "n_dropped", "share", "n_failed", "meaning", NULL};
    page p = {.run = run, .out = &p.page.out};
    char subtitle[200];
    pnb_status status = sort_pairs(&p, err);
    if (status != PNB_OK)
        goto done;
    snprintf(subtitle, sizeof subtitle, "Made by penumbra %s", pnb_version());
    pnb__page_begin(&p.page, r, run->opts->title, subtitle);
    put_headline(&p);
    PNB_TRY(put_extremes(&p, err));
    pnb__html_contents(p.out);
    pnb__page_section(&p.page, "Rules",
                      "A pair is dropped by the first rule that it fails; the number before its "
                      "meaning tells how many pairs the rule would drop if it stood alone.");
    pnb__page_percents(&p.page, "rules", rules);
    histograms(&p);
    PNB_TRY(put_sides(&p, "At the cut",
                      "The kept pairs of lowest score beside the dropped ones of highest: where a "
                      "limit is right or wrong.",
                      true, err));
    PNB_TRY(put_sides(&p, "All over", "From the best score to the worst, evenly.", false, err));
    PNB_TRY(put_by_rule(&p, err));
    PNB_TRY(pnb__page_write(&p.page, run->opts->preview, err));
    pnb__result_text(r, "preview", "preview", run->opts->preview);
    pnb__result_int(r, "n_missing_images", NULL, (int64_t)p.n_missing);
done:
    pnb__row_source_reset(&p.source);
    pnb__page_reset(&p.page);
    pnb__free(p.order);
    return status;
}
