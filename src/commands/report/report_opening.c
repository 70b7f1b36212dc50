/* The opening of a report: one question with its answer, and how often such answers are right; then
 * one that it rightly does not answer.
 *
 * No example is chosen by hand. The answers are sorted by their probability (report_answers.h) and
 * cut into three equal parts; shown is the middle one of the right answers of the surest part, and
 * the share told beside it is that of the whole part, right and wrong. An answer less than half
 * sure is not given: shown is the middle one of those that would have been wrong. */
#include <math.h>
#include <string.h>

#include "commands/report/report_answers.h"
#include "penumbra/bootstrap.h"
#include "report/html.h"
#include "sets/set_rows.h"

#define LEAST_SURE 0.5 /* below it no answer is given */
enum { N_PARTS = 3 };

typedef struct opening {
    pnb__answers answers;
    const pnb__answer *shown, *refused; /* refused NULL: no answer that would have been wrong */
    size_t first_refused;               /* answers[first_refused..] are not given */
    pnb_interval right[N_PARTS], given, not_given; /* share of right ones */
} opening;

/* ---- counting ---- */

/* Share of right answers among at[first .. end); NaN of none. */
static pnb_status count_right(const pnb__report *r, const pnb__answers *a, size_t first, size_t end,
                              pnb_interval *out)
{
    pnb_error *err = &r->app->err;
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    size_t n = end - first;
    double *right = NULL;
    int64_t *cluster = NULL;
    pnb_status status = PNB_OK;
    *out = (pnb_interval){NAN, NAN, NAN};
    if (n == 0)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(right, n, err));
    PNB_TRY(PNB_ALLOC(cluster, n, err));
    for (size_t i = 0; i < n; i++) {
        right[i] = a->at[first + i].is_right ? 1.0 : 0.0;
        cluster[i] = a->at[first + i].cluster;
    }
    boot.seed = (uint64_t)r->app->common.seed;
    boot.cluster = cluster;
    status = pnb_bootstrap_mean(right, n, &boot, out, err);
done:
    pnb__free(right);
    pnb__free(cluster);
    return status;
}

static size_t part_end(const pnb__answers *a, size_t part)
{
    return (a->n * (part + 1) + N_PARTS - 1) / N_PARTS;
}

/* The middle one of those in at[first .. end) that are right, or wrong; NULL: there is none. */
static const pnb__answer *middle(const pnb__answers *a, size_t first, size_t end, bool is_right)
{
    size_t n = 0, at = 0;
    for (size_t i = first; i < end; i++)
        n += a->at[i].is_right == is_right;
    for (size_t i = first; i < end; i++)
        if (a->at[i].is_right == is_right && at++ == n / 2)
            return &a->at[i];
    return NULL;
}

/* shown is NULL where the middle of the surest part would not be given. */
static pnb_status choose(const pnb__report *r, opening *o)
{
    const pnb__answers *a = &o->answers;
    pnb_status status = PNB_OK;
    if (a->n == 0)
        return PNB_OK;
    for (o->first_refused = 0; o->first_refused < a->n; o->first_refused++)
        if (a->at[o->first_refused].p < LEAST_SURE)
            break;
    o->shown = middle(a, 0, part_end(a, 0), true);
    if (o->shown != NULL && o->shown->p < LEAST_SURE)
        o->shown = NULL;
    o->refused = middle(a, o->first_refused, a->n, false);
    for (size_t part = 0; status == PNB_OK && part < N_PARTS; part++)
        status = count_right(r, a, part > 0 ? part_end(a, part - 1) : 0, part_end(a, part),
                             &o->right[part]);
    if (status == PNB_OK)
        status = count_right(r, a, 0, o->first_refused, &o->given);
    if (status == PNB_OK)
        status = count_right(r, a, o->first_refused, a->n, &o->not_given);
    return status;
}

/* Pictures among their kinds, and where they have none captions that search. */
static pnb_status find_opening(pnb__report *r, opening *o)
{
    pnb_status status;
    PNB_TRY(pnb__answers_of_kinds(r, &o->answers));
    PNB_TRY(choose(r, o));
    if (o->shown != NULL)
        goto done;
    pnb__answers_reset(&o->answers);
    *o = (opening){0};
    PNB_TRY(pnb__answers_of_search(r, &o->answers));
    PNB_TRY(choose(r, o));
done:
    return status;
}

/* ---- the result ---- */

static double mean_p(const pnb__answers *a, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += a->at[i].p;
    return end > first ? sum / (double)(end - first) : (double)NAN;
}

static void put_parts(const opening *o, pnb__result *r)
{
    static const pnb__column columns[] = {{"part", "answers"},        {"n", "how many"},
                                          {"p_low", "sure from"},     {"p_high", "to"},
                                          {"promised", "on average"}, {"right", "were right"},
                                          {"right_low", "from"},      {"right_high", "to"}};
    static const char *const words[N_PARTS] = {"surest third", "middle third", "least sure third"};
    const pnb__answers *a = &o->answers;
    pnb__result_table(r, "parts", NULL, columns, PNB_COUNT(columns));
    for (size_t part = 0, first = 0; part < N_PARTS; first = part_end(a, part++)) {
        size_t end = part_end(a, part);
        if (end == first)
            continue;
        pnb__result_row(r, "%s %zu %.3f %.3f %.3f %.3f %.3f %.3f", words[part], end - first,
                        a->at[end - 1].p, a->at[first].p, mean_p(a, first, end),
                        o->right[part].value, o->right[part].low, o->right[part].high);
    }
}

static void put_share(pnb__result *r, const char *key, size_t n, const pnb_interval *share)
{
    pnb__result_begin(r, key, NULL);
    pnb__result_int(r, "n", NULL, (int64_t)n);
    pnb__result_real(r, "right", NULL, share->value, 4);
    pnb__result_real(r, "right_low", NULL, share->low, 4);
    pnb__result_real(r, "right_high", NULL, share->high, 4);
    pnb__result_end(r);
}

static void put_example(const pnb__report *r, const opening *o, const char *key,
                        const pnb__answer *x, pnb__result *out)
{
    const pnb_embeddings *texts = r->all.texts, *images = r->all.images;
    bool of_kinds = o->answers.of_kinds;
    const pnb_embeddings *answers = of_kinds ? texts : images;
    if (x == NULL)
        return;
    pnb__result_begin(out, key, NULL);
    pnb__result_text(out, "question", NULL,
                     pnb__set_label(of_kinds ? images : r->found.run->texts, x->question));
    pnb__result_text(out, "answer", NULL, pnb__set_label(answers, x->answer));
    pnb__result_flag(out, "is_right", NULL, x->is_right);
    pnb__result_real(out, "p", NULL, x->p, 4);
    pnb__result_end(out);
}

static void put_opening(const pnb__report *r, const opening *o, const char *sentence,
                        pnb__result *out)
{
    const pnb__answers *a = &o->answers;
    pnb__result_begin(out, "opening", NULL);
    pnb__result_text(out, "sentence", NULL, sentence);
    pnb__result_text(out, "asked", NULL, a->of_kinds ? "kinds" : "search");
    pnb__result_int(out, "n_choices", NULL, (int64_t)a->n_choices);
    put_example(r, o, "shown", o->shown, out);
    put_example(r, o, "refused", o->refused, out);
    put_parts(o, out);
    put_share(out, "given", o->first_refused, &o->given);
    put_share(out, "not_given", a->n - o->first_refused, &o->not_given);
    pnb__result_end(out);
}

/* ---- words ---- */

static const char *text_of(const pnb_embeddings *texts, size_t row)
{
    return texts->texts != NULL && texts->texts[row] != NULL ? texts->texts[row] : "";
}

/* " (95% interval 79% to 93%)", empty where there is none; `is_wrong`: of one minus it. */
static const char *interval_words(const pnb_interval *share, bool is_wrong, char text[64])
{
    double low = is_wrong ? 1 - share->high : share->low;
    double high = is_wrong ? 1 - share->low : share->high;
    text[0] = '\0';
    if (isfinite(low) && isfinite(high))
        snprintf(text, 64, " (95%% interval %.0f%% to %.0f%%)", 100 * low, 100 * high);
    return text;
}

static void put_asked(const pnb__report *r, const pnb__answers *a, const pnb__answer *x,
                      pnb__buf *out)
{
    if (a->of_kinds)
        pnb__buf_printf(out, "Asked: which of %zu kinds is this picture?", a->n_choices);
    else
        pnb__buf_printf(out, "Asked: which of %zu pictures is \xE2\x80\x9C%s\xE2\x80\x9D?",
                        a->n_choices, text_of(r->found.run->texts, x->question));
}

/* "It said “Flags” and was 92% sure, which is right; of its 94 surest answers among 280 it promised
 * 86% to be right, and 91% were (95% interval 84% to 96%)." */
static void put_sentence(const pnb__report *r, const opening *o, pnb__buf *out)
{
    const pnb__answers *a = &o->answers;
    const pnb__answer *x = o->shown;
    size_t n = part_end(a, 0);
    char interval[64];
    if (a->of_kinds)
        pnb__buf_printf(out, "It said \xE2\x80\x9C%s\xE2\x80\x9D",
                        text_of(r->all.texts, x->answer));
    else
        pnb__buf_puts(out, "It found this one");
    pnb__buf_printf(out,
                    " and was %.0f%% sure, which is right; of its %zu surest answers among %zu it "
                    "promised %.0f%% to be right, and %.0f%% were%s.",
                    100 * x->p, n, a->n, 100 * mean_p(a, 0, n), 100 * o->right[0].value,
                    interval_words(&o->right[0], false, interval));
}

static void put_refusal(const pnb__report *r, const opening *o, pnb__buf *out)
{
    const pnb__answers *a = &o->answers;
    const pnb__answer *x = o->refused;
    size_t n = a->n - o->first_refused;
    char interval[64];
    if (a->of_kinds)
        pnb__buf_printf(out,
                        "No good result: it would have said \xE2\x80\x9C%s\xE2\x80\x9D, %.0f%% "
                        "sure, and been wrong, for this is \xE2\x80\x9C%s\xE2\x80\x9D.",
                        text_of(r->all.texts, x->answer), 100 * x->p,
                        text_of(r->all.texts, x->truth));
    else
        pnb__buf_printf(out,
                        "No good result: this picture came first, %.0f%% sure, and it is a wrong "
                        "one.",
                        100 * x->p);
    pnb__buf_printf(out, " Less than %.0f%% sure it gives no answer: so with %zu of %zu, of which ",
                    100 * LEAST_SURE, n, a->n);
    pnb__buf_printf(out, "%.0f%% would have been wrong%s;", 100 * (1 - o->not_given.value),
                    interval_words(&o->not_given, true, interval));
    pnb__buf_printf(out, " of the %zu that it answers %.0f%% are right%s.", o->first_refused,
                    100 * o->given.value, interval_words(&o->given, false, interval));
}

/* ---- the page ---- */

/* A picture on the left, what is said of it on the right. */
static pnb_status put_block(pnb__report *r, const opening *o, const pnb__answer *x,
                            const char *said)
{
    const pnb__answers *a = &o->answers;
    pnb__row_source source = {0};
    pnb__buf *out = &r->page.out, asked = {0};
    bool is_shown = x == o->shown;
    pnb__buf_puts(out, "<div class=\"opening\">\n");
    pnb_status status = pnb__report_shot(r, &source, a->of_kinds ? x->question : x->answer,
                                         is_shown ? "big hit" : "big", "");
    put_asked(r, a, x, &asked);
    pnb__buf_puts(out, "<div>\n");
    out->failed = out->failed || asked.failed;
    if (!asked.failed)
        pnb__html_headline(out, asked.data, said);
    pnb__buf_puts(out, "</div></div>\n");
    pnb__buf_reset(&asked);
    pnb__row_source_reset(&source);
    return status;
}

static void put_rule(const opening *o, pnb__buf *out)
{
    const char *what = o->answers.of_kinds ? "pictures" : "captions";
    pnb__buf_printf(out,
                    "<p class=\"soft\">Each probability comes from a fit to the other half of the "
                    "%s and is counted on this one. No example was chosen by hand: shown is the "
                    "middle one of the right answers in the surest third, below it the middle one "
                    "of the wrong answers that were not given.</p>\n",
                    what);
}

static pnb_status write_opening(pnb__report *r, const opening *o, pnb__result *result)
{
    pnb__buf sentence = {0}, refusal = {0};
    pnb_status status = PNB_OK;
    put_sentence(r, o, &sentence);
    if (o->refused != NULL)
        put_refusal(r, o, &refusal);
    if (sentence.failed || refusal.failed)
        status = pnb__fail_nomem(&r->app->err, sentence.size + refusal.size);
    if (status == PNB_OK) {
        put_opening(r, o, sentence.data, r->more);
        pnb__result_note(result, sentence.data);
        pnb__result_value(result, "opening", json_deep_copy(pnb__result_get(r->more, "opening")));
        status = put_block(r, o, o->shown, sentence.data);
    }
    if (status == PNB_OK && o->refused != NULL)
        status = put_block(r, o, o->refused, refusal.data);
    put_rule(o, &r->page.out);
    pnb__buf_reset(&sentence);
    pnb__buf_reset(&refusal);
    return status;
}

void pnb__report_answers_table(pnb__report *r)
{
    static const char *const columns[] = {"part",     "n",     "p_low", "p_high",
                                          "promised", "right", NULL};
    r->page.shown = r->more;
    pnb__page_section(&r->page, "How sure, and how often right",
                      "All answers of the kind that opens this page in three equal parts: how sure "
                      "they were, on average too, and the share that was right, with its 95% "
                      "interval over resampled pictures with their captions. Where promise and "
                      "share are near each other the probabilities can be believed.");
    pnb__page_percents(&r->page, "opening.parts", columns);
}

pnb_status pnb__report_opening(pnb__report *r, pnb__result *result, bool *is_written)
{
    opening o = {0};
    pnb_status status = find_opening(r, &o);
    *is_written = status == PNB_OK && o.shown != NULL;
    if (*is_written)
        status = write_opening(r, &o, result);
    pnb__answers_reset(&o.answers);
    return status;
}
