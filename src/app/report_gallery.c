/* What is shown rather than plotted: certain and uncertain pictures and captions, retrieval.
 *
 * Pictures are found again by the path or the data set their row names; one that has gone is shown
 * by name and counted, for a report must not fail on a moved file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/html.h"
#include "app/inputs.h"
#include "app/report_parts.h"
#include "app/svg.h"

enum { THUMBNAIL = 96, N_SHOWN = 6 };

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

static const char *name_of(const pnb_embeddings *set, size_t row)
{
    const char *path = set->paths != NULL ? set->paths[row] : NULL;
    if (path != NULL)
        return pnb__path_base(path);
    return set->ids != NULL && set->ids[row] != NULL ? set->ids[row] : "";
}

static pnb_status figure(pnb__buf *out, pnb__row_source *source, const pnb_embeddings *set,
                         size_t row, const char *css, const char *caption, size_t *n_missing,
                         pnb_error *err)
{
    pnb_image image = {0};
    pnb_status status = PNB_OK;
    pnb__buf_printf(out, "<figure class=\"%s\">", css);
    if (pnb__row_picture(source, set, row, &image, NULL) == PNB_OK)
        status = pnb__html_thumbnail(out, &image, THUMBNAIL, name_of(set, row), err);
    else
        ++*n_missing;
    pnb__buf_puts(out, "<figcaption>");
    pnb__html_escape(out, name_of(set, row));
    pnb__buf_puts(out, "<br>");
    pnb__html_escape(out, caption);
    pnb__buf_puts(out, "</figcaption></figure>\n");
    pnb_image_free(&image);
    return status;
}

/* ---- most and least certain ---- */

static pnb_status picture_row(pnb__buf *out, const pnb_embeddings *set, const ranked *order,
                              size_t n, bool most_certain, size_t *n_missing, pnb_error *err)
{
    pnb__row_source source = {0};
    pnb_status status = PNB_OK;
    pnb__buf_printf(out, "<h3>%s certain pictures</h3><div class=\"row\">\n",
                    most_certain ? "Most" : "Least");
    for (size_t i = 0; status == PNB_OK && i < PNB_MIN(n, set->n); i++) {
        const ranked *r = &order[most_certain ? i : set->n - 1 - i];
        char caption[32];
        snprintf(caption, sizeof caption, "%.4g", r->u);
        status = figure(out, &source, set, r->row, "", caption, n_missing, err);
    }
    pnb__buf_puts(out, "</div>\n");
    pnb__row_source_reset(&source);
    return status;
}

/* Skips a caption that reads the same as the one before it, so that a list shows different ones. */
static void caption_list(pnb__buf *out, const pnb__retrieval *all, const ranked *order, size_t n,
                         bool most_certain)
{
    const pnb_embeddings *set = all->texts;
    const char *before = "";
    pnb__buf_printf(out,
                    "<div><h3>%s certain captions</h3><table><tr><th class=\"n\">uncertainty</th>"
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
    pnb__buf_puts(out, "</table></div>\n");
}

pnb_status pnb__report_certainty(pnb__buf *out, const pnb__retrieval *all, size_t n,
                                 size_t *n_missing, pnb_error *err)
{
    ranked *images = sort_rows(all->image_u, all->images->n, err);
    ranked *texts = images != NULL ? sort_rows(all->text_u, all->texts->n, err) : NULL;
    pnb_status status = texts != NULL ? PNB_OK : PNB_NOMEM;
    char about[128];
    bool of_images = pnb__report_is_uncertain(&all->image_rows);
    bool of_texts = pnb__report_is_uncertain(&all->text_rows);
    if (status != PNB_OK || (!of_images && !of_texts))
        goto done;
    snprintf(about, sizeof about, "The number is the uncertainty, the %s.",
             pnb__report_uncertainty(all));
    pnb__html_section(out, "Most and least certain", about);
    if (of_images)
        status = picture_row(out, all->images, images, n, true, n_missing, err);
    if (of_images && status == PNB_OK)
        status = picture_row(out, all->images, images, n, false, n_missing, err);
    if (of_texts && status == PNB_OK) {
        pnb__buf_puts(out, "<div class=\"row\">\n");
        caption_list(out, all, texts, n, true);
        caption_list(out, all, texts, n, false);
        pnb__buf_puts(out, "</div>\n");
    }
    pnb__html_section_end(out);
done:
    pnb__free(images);
    pnb__free(texts);
    return status;
}

/* ---- retrieval examples ---- */

static bool is_true(const pnb_truth *truth, size_t query, size_t item)
{
    for (size_t p = truth->offset[query]; p < truth->offset[query + 1]; p++)
        if (truth->item[p] == item)
            return true;
    return false;
}

/* Text queries with their nearest pictures; true ones are framed. */
static pnb_status show_query(pnb__buf *out, const pnb__retrieval *run, pnb__row_source *source,
                             size_t query, const pnb_hits *hits, size_t *n_missing, pnb_error *err)
{
    const pnb_embeddings *texts = run->texts;
    const char *text = texts->texts != NULL ? texts->texts[query] : NULL;
    pnb_status status = PNB_OK;
    size_t n_true = run->backward->offset[query + 1] - run->backward->offset[query];
    pnb__buf_puts(out, "<div class=\"query\"><q>");
    pnb__html_escape(out, text != NULL ? text : "");
    pnb__buf_printf(out,
                    "</q> <span class=\"soft\">uncertainty %.3g, true of %zu picture%s</span></div>"
                    "<div class=\"row\">\n",
                    run->text_u[query], n_true, n_true == 1 ? "" : "s");
    for (size_t j = 0; status == PNB_OK && j < hits->k && hits->index[j] >= 0; j++) {
        size_t row = (size_t)hits->index[j];
        bool right = is_true(run->backward, query, row);
        char caption[48];
        bool has_p = run->measure == PNB_MEASURE_CSD || run->measure == PNB_MEASURE_MEAN;
        double p = !has_p ? (double)NAN
                          : pnb_match_probability(hits->score[j], run->images->info.logit_scale,
                                                  run->images->info.logit_bias);
        if (isfinite(p))
            snprintf(caption, sizeof caption, "%sp = %.2f", right ? "true, " : "", p);
        else
            snprintf(caption, sizeof caption, "%s%.3f", right ? "true, " : "", hits->score[j]);
        status = figure(out, source, run->images, row, right ? "hit" : "", caption, n_missing, err);
    }
    pnb__buf_puts(out, "</div>\n");
    return status;
}

pnb_status pnb__report_examples(pnb__app *app, pnb__buf *out, const pnb__retrieval *run, size_t n,
                                size_t *n_missing)
{
    pnb_search_opts search = pnb_search_opts_default();
    pnb__row_source source = {0};
    pnb_status status = PNB_OK;
    search.k = PNB_MIN((size_t)N_SHOWN, run->images->n);
    search.measure = run->measure;
    search.reverse = true; /* pictures are side 1 of the figures, captions ask */
    pnb__html_section(out, "Retrieval, shown",
                      "Captions drawn evenly from the set and the pictures found for them, best "
                      "first. A frame and the word true mark pictures the caption is true of; p is "
                      "the model's own probability of a match, any other number the score.");
    for (size_t i = 0; status == PNB_OK && i < PNB_MIN(n, run->texts->n); i++) {
        size_t query = i * run->texts->n / PNB_MIN(n, run->texts->n);
        const pnb_rows one = pnb_rows_slice(&run->text_rows, query, 1);
        pnb_hits hits = {0};
        status = pnb_search(app->ctx, &one, &run->image_rows, &search, &hits, &app->err);
        if (status == PNB_OK)
            status = show_query(out, run, &source, query, &hits, n_missing, &app->err);
        pnb_hits_reset(&hits);
    }
    pnb__html_section_end(out);
    pnb__row_source_reset(&source);
    return status;
}

/* ---- claims ---- */

static void claim_value(pnb__buf *out, const pnb__claim_line *line, double value)
{
    pnb__buf_puts(out, "<td class=\"n\">");
    if (isnan(value))
        pnb__buf_puts(out, "\xE2\x80\x93");
    else
        pnb__buf_printf(out, "%.*f%s", line->digits, line->is_share ? 100 * value : value,
                        line->is_share ? "%" : "");
    pnb__buf_puts(out, "</td>");
}

void pnb__report_claims(pnb__buf *out, const pnb__claims *claims, const pnb__claims *control)
{
    pnb__claim_line lines[PNB__MAX_CLAIM_LINES];
    char labels[PNB__MAX_LEVELS][48];
    size_t n = pnb__claims_lines(claims, control, lines, labels);
    pnb__html_section(out, "What the uncertainty shows",
                      "That masked inputs and general captions are more uncertain is mostly taught "
                      "by the inclusion loss, not found by the contrastive one. The control is the "
                      "same model family with a log-variance head that was never trained.");
    pnb__buf_puts(out, "<table><tr><th>figure</th><th class=\"n\">model</th>");
    if (control != NULL)
        pnb__buf_puts(out, "<th class=\"n\">control</th>");
    pnb__buf_puts(out, "<th>meaning</th></tr>\n");
    for (size_t i = 0; i < n; i++) {
        pnb__buf_puts(out, "<tr><td>");
        pnb__html_escape(out, lines[i].label);
        pnb__buf_puts(out, "</td>");
        claim_value(out, &lines[i], lines[i].value);
        if (control != NULL)
            claim_value(out, &lines[i], lines[i].control);
        pnb__buf_puts(out, "<td class=\"soft\">");
        pnb__html_escape(out, lines[i].meaning);
        pnb__buf_puts(out, "</td></tr>\n");
    }
    pnb__buf_puts(out, "</table>\n");
    pnb__html_section_end(out);
}
