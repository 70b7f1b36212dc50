/* What is shown rather than plotted: certain and uncertain pictures and captions, retrieval.
 *
 * Pictures are found again by the path or the data set their row names; one that has gone is shown
 * by name and counted, for a report must not fail on a moved file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/common/match_probability_use.h"
#include "commands/report/report_internal.h"
#include "encode/inputs/inputs.h"
#include "prob/measure.h"
#include "report/html.h"
#include "report/svg.h"

enum { N_SHOWN = 6 };

/* ---- order by uncertainty ---- */

typedef struct ranked {
    size_t row;
    double u;
} ranked;

static int by_u(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->u != y->u)
        return x->u < y->u ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static ranked *sort_rows(const double *u, size_t n, pnb_error *err)
{
    ranked *order = pnb__alloc_array(n, sizeof *order);
    if (order == NULL) {
        pnb__fail_nomem(err, n * sizeof *order);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        order[i] = (ranked){i, u[i]};
    qsort(order, n, sizeof *order, by_u);
    return order;
}

/* ---- one picture ---- */

/* What people would call a picture: its most exact true caption, the first of them; a file's name
 * only where no caption is known. */
const char *pnb__report_image_name(const pnb__retrieval *run, size_t row)
{
    const pnb_embeddings *set = run->images;
    const pnb_truth *truth = run->truth;
    const char *name = NULL;
    int best = -2;
    for (size_t p = truth->offset[row]; p < truth->offset[row + 1]; p++) {
        size_t text = truth->item[p];
        const char *label = run->texts->texts != NULL ? run->texts->texts[text] : NULL;
        if (label != NULL && label[0] != '\0' && run->text_level[text] > best) {
            name = label;
            best = run->text_level[text];
        }
    }
    if (name != NULL)
        return name;
    if (set->paths != NULL && set->paths[row] != NULL)
        return pnb__path_base(set->paths[row]);
    return set->ids != NULL && set->ids[row] != NULL ? set->ids[row] : "";
}

/* That picture, small, with a note. */
static pnb_status put_shot(pnb__report *r, pnb__row_source *source, const pnb__retrieval *run,
                           size_t row, const char *css, const char *note)
{
    pnb_image image = {0};
    pnb_status status = pnb__row_image(source, run->images, row, &image, &r->app->err);
    bool is_found = image.pixels != NULL;
    r->n_missing += !is_found;
    if (status == PNB_OK)
        status = pnb__html_shot(&r->page.out, is_found ? &image : NULL, css,
                                pnb__report_image_name(run, row), note, &r->app->err);
    pnb_image_free(&image);
    return status;
}

pnb_status pnb__report_shot(pnb__report *r, pnb__row_source *source, size_t row, const char *css,
                            const char *note)
{
    return put_shot(r, source, &r->all, row, css, note);
}

/* ---- most and least certain ---- */

static pnb_status image_row(pnb__report *r, const ranked *order, bool most_certain)
{
    const pnb_embeddings *set = r->all.images;
    pnb__row_source source = {0};
    pnb_status status = PNB_OK;
    pnb__buf_printf(&r->page.out, "<h3>%s certain pictures</h3><div class=\"row\">\n",
                    most_certain ? "Most" : "Least");
    for (size_t i = 0; status == PNB_OK && i < PNB_MIN(r->opts->n_examples, set->n); i++) {
        const ranked *one = &order[most_certain ? i : set->n - 1 - i];
        char label[32];
        snprintf(label, sizeof label, "%.4g", one->u);
        status = put_shot(r, &source, &r->all, one->row, "", label);
    }
    pnb__buf_puts(&r->page.out, "</div>\n");
    pnb__row_source_reset(&source);
    return status;
}

/* Skips a caption that reads the same as the one before it, so that a list shows different ones. */
static void text_list(pnb__buf *out, const pnb__retrieval *all, const ranked *order, size_t n,
                      bool most_certain)
{
    const pnb_embeddings *set = all->texts;
    const char *before = "";
    pnb__buf_printf(out,
                    "<div><h3>%s certain captions</h3><div class=\"scroll\"><table><tr><th "
                    "class=\"n\">uncertainty</th>"
                    "<th class=\"n\">level</th><th>caption</th></tr>\n",
                    most_certain ? "Most" : "Least");
    for (size_t i = 0, shown = 0; shown < n && i < set->n; i++) {
        const ranked *r = &order[most_certain ? i : set->n - 1 - i];
        const char *text =
            set->texts != NULL && set->texts[r->row] != NULL ? set->texts[r->row] : "";
        if (strcmp(text, before) == 0)
            continue;
        pnb__buf_printf(out, "<tr><td class=\"n\">%.4g</td><td class=\"n\">", r->u);
        if (all->text_level[r->row] >= 0)
            pnb__buf_printf(out, "%d", all->text_level[r->row]);
        pnb__buf_puts(out, "</td><td>");
        pnb__html_escape(out, text);
        pnb__buf_puts(out, "</td></tr>\n");
        before = text;
        shown++;
    }
    pnb__buf_puts(out, "</table></div></div>\n");
}

pnb_status pnb__report_certainty(pnb__report *r)
{
    const pnb__retrieval *all = &r->all;
    ranked *images = sort_rows(all->image_u, all->images->n, &r->app->err);
    ranked *texts = images != NULL ? sort_rows(all->text_u, all->texts->n, &r->app->err) : NULL;
    pnb_status status = texts != NULL ? PNB_OK : PNB_NOMEM;
    char about[128];
    bool of_images = pnb__report_is_uncertain(&all->image_rows);
    bool of_texts = pnb__report_is_uncertain(&all->text_rows);
    if (status != PNB_OK || (!of_images && !of_texts))
        goto done;
    snprintf(about, sizeof about, "The number is the uncertainty, the %s.",
             pnb__report_uncertainty(all));
    pnb__page_section(&r->page, "Most and least certain", about);
    pnb__buf *out = pnb__page_block(&r->page);
    if (of_images)
        status = image_row(r, images, true);
    if (of_images && status == PNB_OK)
        status = image_row(r, images, false);
    if (of_texts && status == PNB_OK) {
        pnb__buf_puts(out, "<div class=\"row\">\n");
        text_list(out, all, texts, r->opts->n_examples, true);
        text_list(out, all, texts, r->opts->n_examples, false);
        pnb__buf_puts(out, "</div>\n");
    }
done:
    pnb__free(images);
    pnb__free(texts);
    return status;
}

/* ---- retrieval examples ---- */

bool pnb__report_is_true(const pnb_truth *truth, size_t query, size_t item)
{
    for (size_t p = truth->offset[query]; p < truth->offset[query + 1]; p++)
        if (truth->item[p] == item)
            return true;
    return false;
}

/* The model's own, or what match_prob says itself; NaN of any other score. */
static double probability_of(const pnb__report *r, double score)
{
    const pnb__retrieval *run = r->found.run;
    const pnb__match_words *words = &r->opts->retrieval.match;
    const pnb__match_probability_use use = {
        NULL,         run->images,        run->texts,
        run->measure, &run->measure_opts, .match_is_told = !isnan(words->a) && !isnan(words->b)};
    char why[200];
    if (pnb__measure_is_probability(&use, why, sizeof why))
        return score;
    if (!pnb__measure_has_logits(run->measure) ||
        !pnb__model_speaks_of(run->images, run->texts, run->measure, why, sizeof why))
        return (double)NAN;
    return pnb_match_probability(score, run->images->info.logit_scale,
                                 run->images->info.logit_bias);
}

/* "true, p = 0.93": p is the model's own, any other number the score. */
static void note_of_hit(const pnb__report *r, double score, bool right, char text[48])
{
    double p = probability_of(r, score);
    if (isfinite(p))
        snprintf(text, 48, "%sp = %.2f", right ? "true, " : "", p);
    else
        snprintf(text, 48, "%s%.3f", right ? "true, " : "", score);
}

pnb_status pnb__report_query(pnb__report *r, pnb__row_source *source, const pnb__shown_query *shown)
{
    const pnb__retrieval *run = r->found.run;
    size_t query = shown->query;
    const char *text = run->texts->texts != NULL ? run->texts->texts[query] : NULL;
    pnb__buf *out = &r->page.out;
    pnb_status status = PNB_OK;
    size_t n_true = run->backward->offset[query + 1] - run->backward->offset[query];
    pnb__buf_puts(out, "<div class=\"query\"><q>");
    pnb__html_escape(out, text != NULL ? text : "");
    pnb__buf_printf(out,
                    "</q> <span class=\"soft\">uncertainty %.3g, true of %zu picture%s</span></div>"
                    "<div class=\"row\">\n",
                    run->text_u[query], n_true, n_true == 1 ? "" : "s");
    for (size_t j = 0; status == PNB_OK && j < shown->n && shown->item[j] >= 0; j++) {
        size_t row = (size_t)shown->item[j];
        bool right = pnb__report_is_true(run->backward, query, row);
        char note[48];
        note_of_hit(r, shown->score[j], right, note);
        status = put_shot(r, source, run, row, right ? "hit" : "", note);
    }
    pnb__buf_puts(out, "</div>\n");
    return status;
}

pnb_status pnb__report_examples(pnb__report *r)
{
    const pnb__found *found = &r->found;
    size_t n_texts = found->run->texts->n, n = PNB_MIN(r->opts->n_examples, n_texts);
    pnb__row_source source = {0};
    pnb_status status = PNB_OK;
    pnb__page_section(&r->page, "Retrieval, shown",
                      "Captions drawn evenly from the set and the pictures found for them; those "
                      "that find a right one first come first. A frame and the word true mark "
                      "pictures the caption is true of; p is the model's own probability of a "
                      "match, any other number the score.");
    pnb__page_block(&r->page);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; status == PNB_OK && i < n; i++) {
            size_t query = i * n_texts / n;
            if (pnb__found_is_right(found, query) == (pass == 0))
                status = pnb__report_query(
                    r, &source,
                    &(pnb__shown_query){query, found->hits.index + query * found->hits.k,
                                        found->hits.score + query * found->hits.k,
                                        PNB_MIN((size_t)N_SHOWN, found->hits.k)});
        }
    pnb__row_source_reset(&source);
    return status;
}
