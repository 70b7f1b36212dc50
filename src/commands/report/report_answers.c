/* Answers with probabilities that hold: fitted on one half of the questions, given to the other.
 *
 * Which half a question is in is drawn by its cluster, so that captions of one picture never stand
 * on both sides. Kinds take a temperature, s = softmax(logits / t), a search takes Platt's sigmoid
 * of the first hit's score (scaling.h). A half that cannot be fitted (one class only, wrong answers
 * that score as high as right ones) leaves the report without such answers. */
#include "commands/report/report_answers.h"

#include <stdlib.h>

#include "penumbra/scaling.h"

enum { FEWEST_ANSWERS = 20 }; /* of a half */

void pnb__answers_reset(pnb__answers *a)
{
    pnb__free(a->at);
    *a = (pnb__answers){0};
}

static int half_of(const pnb__report *r, int64_t cluster)
{
    uint32_t word[4];
    pnb__rng_block((uint64_t)r->app->common.seed, (uint64_t)cluster, 0, word);
    return (int)(word[0] & 1);
}

/* Equal probabilities in the order of the rows. */
static int by_probability(const void *a, const void *b)
{
    const pnb__answer *x = a, *y = b;
    if (x->p != y->p)
        return x->p > y->p ? -1 : 1;
    return (x->question > y->question) - (x->question < y->question);
}

/* What cannot be fitted is no failure of the report. */
static pnb_status settle(pnb__report *r, pnb_status status, pnb__answers *out)
{
    if (status == PNB_OK && out->n > 0)
        qsort(out->at, out->n, sizeof *out->at, by_probability);
    if (status != PNB_ARG)
        return status;
    pnb_error_reset(&r->app->err);
    pnb__answers_reset(out);
    return PNB_OK;
}

/* ---- kinds ---- */

/* Logits and labels of one half, for the fit. */
typedef struct kind_half {
    double *logits;
    int *label;
    size_t n;
} kind_half;

static void take_half(const pnb__report *r, const pnb__kinds *k, int half, kind_half *out)
{
    out->n = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (half_of(r, r->all.image_cluster[i]) != half)
            continue;
        for (size_t c = 0; c < k->n_kinds; c++)
            out->logits[out->n * k->n_kinds + c] = k->logits[i * k->n_kinds + c];
        out->label[out->n++] = k->label[i];
    }
}

static size_t largest(const double *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* The pictures of the other half, answered. `p` is room for one row. */
static pnb_status answer_kinds(const pnb__report *r, const pnb__kinds *k, int fitted, double t,
                               double *p, pnb__answers *out)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; status == PNB_OK && i < k->n; i++) {
        if (half_of(r, r->all.image_cluster[i]) == fitted)
            continue;
        status =
            pnb_temperature_apply(t, k->logits + i * k->n_kinds, 1, k->n_kinds, p, &r->app->err);
        size_t best = largest(k->logits + i * k->n_kinds, k->n_kinds);
        out->at[out->n++] = (pnb__answer){.question = i,
                                          .answer = k->text[best],
                                          .truth = k->text[k->label[i]],
                                          .is_right = (int32_t)best == k->label[i],
                                          .p = p[best],
                                          .cluster = r->all.image_cluster[i]};
    }
    return status;
}

static pnb_status fit_kinds(pnb__report *r, const pnb__kinds *k, pnb__answers *out)
{
    pnb_error *err = &r->app->err;
    kind_half half = {0};
    double *row = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(half.logits, k->n * k->n_kinds, err));
    PNB_TRY(PNB_ALLOC(half.label, k->n, err));
    PNB_TRY(PNB_ALLOC(row, k->n_kinds, err));
    PNB_TRY(PNB_ALLOC(out->at, k->n, err));
    out->of_kinds = true;
    out->n_choices = k->n_kinds;
    for (int fitted = 0; fitted < 2; fitted++) {
        pnb_temperature fit;
        take_half(r, k, fitted, &half);
        if (half.n < FEWEST_ANSWERS)
            PNB_TRY(pnb__fail(err, PNB_ARG, "%zu pictures are too few for a fit", half.n));
        PNB_TRY(pnb_temperature_fit(half.logits, half.label, half.n, k->n_kinds, &fit, err));
        PNB_TRY(answer_kinds(r, k, fitted, fit.t, row, out));
    }
done:
    pnb__free(half.logits);
    pnb__free(half.label);
    pnb__free(row);
    return status;
}

pnb_status pnb__answers_of_kinds(pnb__report *r, pnb__answers *out)
{
    pnb__kinds kinds;
    *out = (pnb__answers){0};
    pnb_status status = pnb__report_kinds(r, &kinds);
    if (status == PNB_OK && kinds.n > 0)
        status = fit_kinds(r, &kinds, out);
    pnb__kinds_reset(&kinds);
    return settle(r, status, out);
}

/* ---- search ---- */

/* Captions that have a picture, and their first hit; p is its score until it is fitted. */
static void take_first_hits(const pnb__report *r, pnb__answers *out)
{
    const pnb__retrieval *run = r->found.run;
    const pnb_hits *h = &r->found.hits;
    for (size_t q = 0; q < run->texts->n; q++) {
        const size_t *offset = run->backward->offset + q;
        int64_t first = h->index[q * h->k];
        if (offset[0] == offset[1] || first < 0)
            continue;
        out->at[out->n++] = (pnb__answer){.question = q,
                                          .answer = (size_t)first,
                                          .truth = run->backward->item[offset[0]],
                                          .is_right = pnb__found_is_right(&r->found, q),
                                          .p = h->score[q * h->k],
                                          .cluster = run->text_cluster[q]};
    }
}

static pnb_status fit_search(pnb__report *r, pnb__answers *out)
{
    pnb_error *err = &r->app->err;
    pnb_platt fit[2];
    double *score = NULL;
    int *label = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(score, out->n, err));
    PNB_TRY(PNB_ALLOC(label, out->n, err));
    for (int half = 0; half < 2; half++) {
        pnb_scored data = {.score = score, .label = label};
        for (size_t i = 0; i < out->n; i++)
            if (half_of(r, out->at[i].cluster) == half) {
                score[data.n] = out->at[i].p;
                label[data.n++] = out->at[i].is_right;
            }
        if (data.n < FEWEST_ANSWERS)
            PNB_TRY(pnb__fail(err, PNB_ARG, "%zu captions are too few for a fit", data.n));
        PNB_TRY(pnb_platt_fit(&data, true, &fit[half], err));
    }
    for (size_t i = 0; i < out->n; i++)
        out->at[i].p = pnb_platt_apply(&fit[1 - half_of(r, out->at[i].cluster)], out->at[i].p);
done:
    pnb__free(score);
    pnb__free(label);
    return status;
}

pnb_status pnb__answers_of_search(pnb__report *r, pnb__answers *out)
{
    *out = (pnb__answers){.n_choices = r->found.run->images->n};
    pnb_status status = PNB_ALLOC(out->at, r->found.run->texts->n, &r->app->err);
    if (status == PNB_OK)
        take_first_hits(r, out);
    if (status == PNB_OK)
        status = fit_search(r, out);
    return settle(r, status, out);
}
