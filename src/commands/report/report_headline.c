/* What a reader sees first: the question, one sentence that answers it, a caption that works and
 * one that does not.
 *
 * The best caption finds a true picture first, further ahead of the first wrong one than any other;
 * the worst is sure of a wrong picture: no other wrong first hit has a higher score. Everything is
 * taken from the same search that the gallery shows. */
#include <math.h>

#include "commands/report/report_internal.h"
#include "penumbra/retrieval.h"
#include "report/html.h"

enum { N_SEARCHED = 6, N_IN_CARD = 4 };

pnb_status pnb__found_compute(pnb__app *app, const pnb__retrieval *run, pnb__found *out)
{
    pnb_search_opts search = pnb_search_opts_default();
    *out = (pnb__found){.run = run};
    search.k = PNB_MIN((size_t)N_SEARCHED, run->images->n);
    search.measure = run->measure;
    search.measure_opts = run->measure_opts;
    search.reverse = true; /* pictures are side 1 of the figures, captions ask */
    return pnb_search(app->ctx, &run->text_rows, &run->image_rows, &search, &out->hits, &app->err);
}

bool pnb__found_is_right(const pnb__found *found, size_t query)
{
    int64_t first = found->hits.index[query * found->hits.k];
    return first >= 0 && pnb__report_is_true(found->run->backward, query, (size_t)first);
}

/* ---- the sentence ---- */

/* The first cut-off with its chance, and the last; length of the text. */
static int put_recalls(const pnb__retrieval *run, char *answer, size_t n_bytes)
{
    const pnb_retrieval *f = &run->figures;
    char first[48] = "first", last[80] = "";
    if (f->k[0] > 1)
        snprintf(first, sizeof first, "among the first %zu", f->k[0]);
    if (f->n_k > 1)
        snprintf(last, sizeof last, " and %.1f%% among the first %zu",
                 100 * f->backward.recall[f->n_k - 1], f->k[f->n_k - 1]);
    return snprintf(answer, n_bytes,
                    "%.1f%% of the captions find a right picture %s%s; by chance %.1f%% would.",
                    100 * f->backward.recall[0], first, last, 100 * run->t2i.chance[0]);
}

void pnb__report_headline(pnb__report *r)
{
    const pnb__retrieval *run = r->found.run;
    double auroc = NAN; /* points have no order */
    r->page.shown = r->figures;
    if (pnb__report_is_uncertain(&run->text_rows))
        auroc = pnb__page_number(&r->page, "uncertainty.text_to_image.by_query.auroc");
    char asked[200], answer[400];
    snprintf(asked, sizeof asked,
             "Asked: do %zu captions find their pictures among %zu, and does the model know when "
             "it fails?",
             run->texts->n, run->images->n);
    int n = put_recalls(run, answer, sizeof answer);
    if (isfinite(auroc) && n > 0 && (size_t)n < sizeof answer)
        snprintf(answer + n, sizeof answer - (size_t)n,
                 " A caption that fails is the more uncertain one in %.0f%% of all comparisons "
                 "with one that succeeds (50%% is chance).",
                 100 * auroc);
    pnb__html_headline(&r->page.out, asked, answer);
}

void pnb__report_claims_headline(pnb__report *r)
{
    const pnb__uncertainty_report *claims = &r->claims;
    char answer[300];
    if (isnan(claims->first_above_last))
        snprintf(answer, sizeof answer,
                 "The captions have no levels: what was measured stands in the table.");
    else
        snprintf(answer, sizeof answer,
                 "A most general caption (level 0) is more uncertain than a most exact one (level "
                 "%d) in %.1f%% of all pairs; 50%% is chance.",
                 claims->n_levels - 1, 100 * claims->first_above_last);
    pnb__html_headline(&r->page.out, "Asked: are general captions more uncertain than exact ones?",
                       answer);
}

/* ---- best and worst ---- */

/* Score of the first hit above the first wrong one behind it; -inf where the first is wrong. */
static double lead(const pnb__found *found, size_t query)
{
    const pnb_hits *h = &found->hits;
    const int64_t *item = h->index + query * h->k;
    const double *score = h->score + query * h->k;
    if (!pnb__found_is_right(found, query))
        return (double)-INFINITY;
    for (size_t j = 1; j < h->k && item[j] >= 0; j++)
        if (!pnb__report_is_true(found->run->backward, query, (size_t)item[j]))
            return score[0] - score[j];
    return 0;
}

static pnb_status card(pnb__report *r, const char *heading, size_t query)
{
    const pnb_hits *h = &r->found.hits;
    pnb__row_source source = {0};
    const pnb__shown_query shown = {query, h->index + query * h->k, h->score + query * h->k,
                                    PNB_MIN((size_t)N_IN_CARD, h->k)};
    pnb__html_card(&r->page.out, heading);
    pnb_status status = pnb__report_query(r, &source, &shown);
    pnb__row_source_reset(&source);
    return status;
}

pnb_status pnb__report_best_and_worst(pnb__report *r)
{
    const pnb__found *found = &r->found;
    size_t n = found->run->texts->n, best = n, worst = n;
    pnb_status status = PNB_OK;
    for (size_t q = 0; q < n; q++) {
        if (pnb__found_is_right(found, q))
            best = best == n || lead(found, q) > lead(found, best) ? q : best;
        else if (found->hits.index[q * found->hits.k] >= 0)
            worst = worst == n || found->hits.score[q * found->hits.k] >
                                      found->hits.score[worst * found->hits.k]
                        ? q
                        : worst;
    }
    pnb__html_cards_begin(&r->page.out);
    if (best < n)
        status = card(r, "Works best", best);
    if (status == PNB_OK && worst < n)
        status = card(r, "Fails worst: the surest wrong answer", worst);
    pnb__html_cards_end(&r->page.out);
    return status;
}
