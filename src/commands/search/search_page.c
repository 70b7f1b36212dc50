/* The page of a search: every query with what was found for it, pictures as pictures.
 *
 * It opens with the surest and the least sure query, judged by the first hit: by p(match) where
 * something tells it, else by score. */
#include <math.h>

#include "commands/common/rows/row_display.h"
#include "commands/search/search_page.h"
#include "report/html.h"
#include "report/svg.h"

typedef struct page {
    const pnb__query_page *q;
    pnb__buf out;
    pnb__page_rows rows;
    size_t best, worst; /* queries */
    bool has_p;
} page;

static double first_score(const page *p, size_t query)
{
    return p->q->hits->score[query * p->q->hits->k];
}

static double probability_of(const page *p, size_t query, size_t place)
{
    size_t at = query * p->q->hits->k + place;
    return p->q->p != NULL ? p->q->p[at]
                           : pnb__match_probability_of(p->q->odds, p->q->hits->score[at]);
}

static void find_extremes(page *p)
{
    for (size_t q = 1; q < p->q->hits->n_queries; q++) {
        if (first_score(p, q) > first_score(p, p->best))
            p->best = q;
        if (first_score(p, q) < first_score(p, p->worst))
            p->worst = q;
    }
    p->has_p = isfinite(probability_of(p, p->best, 0));
}

static void note_of_hit(const page *p, size_t query, size_t place, char text[96])
{
    const pnb_hits *hits = p->q->hits;
    size_t row = (size_t)hits->index[query * hits->k + place];
    double score = hits->score[query * hits->k + place];
    double probability = probability_of(p, query, place);
    int n = isfinite(probability) ? snprintf(text, 96, "%zu. p = %.3g", place + 1, probability)
                                  : snprintf(text, 96, "%zu. score %.4g", place + 1, score);
    if (p->q->u != NULL && p->q->u[row] > 0 && n > 0)
        snprintf(text + n, 96 - (size_t)n, ", unc. %.3g", p->q->u[row]);
}

/* The query itself, then at most `limit` of its hits. */
static pnb_status put_query(page *p, size_t query, size_t limit, pnb_error *err)
{
    const pnb_hits *hits = p->q->hits;
    size_t n = PNB_MIN(p->q->n_listed[query], limit);
    pnb_status status = PNB_OK;
    char note[96] = "";
    PNB_TRY(pnb__page_row(&p->out, &p->rows, p->q->queries, query, "big", "asked", err));
    if (n == 0)
        pnb__buf_puts(&p->out, "<p class=\"soft\">No good result.</p>\n");
    pnb__buf_puts(&p->out, "<div class=\"row\">\n");
    for (size_t j = 0; status == PNB_OK && j < n; j++) {
        note_of_hit(p, query, j, note);
        status = pnb__page_row(&p->out, &p->rows, p->q->index,
                               (size_t)hits->index[query * hits->k + j], "", note, err);
    }
    pnb__buf_puts(&p->out, "</div>\n");
done:
    return status;
}

static void put_headline(page *p)
{
    const pnb__query_page *q = p->q;
    char asked[512], answer[700], of_query[256], of_hit[256];
    size_t n = q->hits->n_queries, row = (size_t)q->hits->index[p->best * q->hits->k];
    const char *name = pnb__page_row_name(&p->rows, q->queries, p->best, of_query);
    const char *found = pnb__page_row_name(&p->rows, q->index, row, of_hit);
    double score = first_score(p, p->best);
    if (n == 1)
        snprintf(asked, sizeof asked, "Asked: which of %zu rows are nearest to \"%.300s\"?",
                 q->n_rows, name);
    else
        snprintf(asked, sizeof asked,
                 "Asked: which of %zu rows are nearest to each of %zu queries?", q->n_rows, n);
    if (q->n_listed[p->best] == 0)
        snprintf(answer, sizeof answer, "Nothing good enough was found.");
    else
        snprintf(answer, sizeof answer, "%s \"%.200s\"%s%.200s%s (%s %.3g).",
                 n == 1 ? "The nearest is" : "The surest answer is", found, n == 1 ? "" : " for \"",
                 n == 1 ? "" : name, n == 1 ? "" : "\"", p->has_p ? "p(match)" : "score",
                 p->has_p ? probability_of(p, p->best, 0) : score);
    pnb__html_headline(&p->out, asked, answer);
}

static pnb_status put_cards(page *p, pnb_error *err)
{
    enum { N_IN_CARD = 3 };
    pnb_status status;
    pnb__html_cards_begin(&p->out);
    pnb__html_card(&p->out, p->best == p->worst ? "Found" : "Surest");
    PNB_TRY(put_query(p, p->best, N_IN_CARD, err));
    if (p->best != p->worst) {
        pnb__html_card(&p->out, "Least sure");
        PNB_TRY(put_query(p, p->worst, N_IN_CARD, err));
    }
    pnb__html_cards_end(&p->out);
done:
    return status;
}

pnb_status pnb__query_page_write(const pnb__query_page *q, const char *path, size_t *n_missing,
                                 pnb_error *err)
{
    page p = {.q = q};
    char text[256], subtitle[400];
    pnb_status status = PNB_OK;
    find_extremes(&p);
    snprintf(subtitle, sizeof subtitle, "%.200s, measure %s. Made by penumbra %s", q->index_name,
             pnb_measure_name(q->measure), pnb_version());
    pnb__html_begin(&p.out, "Search", subtitle);
    put_headline(&p);
    PNB_TRY(put_cards(&p, err));
    pnb__html_contents(&p.out);
    for (size_t i = 0; i < q->hits->n_queries; i++) {
        pnb__html_section(&p.out, pnb__page_row_name(&p.rows, q->queries, i, text), NULL);
        PNB_TRY(put_query(&p, i, q->n_listed[i], err));
        pnb__html_section_end(&p.out);
    }
    pnb__html_end(&p.out);
    status = pnb__buf_write(&p.out, path, err);
    *n_missing = p.rows.n_missing;
done:
    pnb__page_rows_reset(&p.rows);
    pnb__buf_reset(&p.out);
    return status;
}
