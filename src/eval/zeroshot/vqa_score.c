/* Scoring of candidate answers to visual questions: choice, confidence, soft-vote accuracy, and the
 * calibration of one against the other.
 *
 * Confidence is GroVE's, conf(a) = 1 - softmax(u(a)) over the candidates of a question (section
 * 4.1). It lies near 1 - 1/C for C candidates that are equally uncertain, so sets of different C
 * are not comparable. Accuracy is VQA's: the average over the subsets that leave one annotator out
 * of min(m/3, 1), m being how many of the rest gave the answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/sorted.h"
#include "eval/weighted.h"
#include "penumbra/uncertainty_calibration.h"
#include "penumbra/vqa.h"

#define ENOUGH_VOTES 3.0

double pnb_vqa_vote(size_t m, size_t n, bool simple)
{
    double votes = (double)m, people = (double)n;
    if (m == 0 || n == 0)
        return 0;
    if (n == 1)
        return 1;
    if (simple)
        return fmin(votes / ENOUGH_VOTES, 1.0);
    return votes / people * fmin((votes - 1) / ENOUGH_VOTES, 1.0) +
           (people - votes) / people * fmin(votes / ENOUGH_VOTES, 1.0);
}

/* ---- one question ---- */

static pnb_status check(const pnb_vqa_question *q, pnb_error *err)
{
    if (q->n_candidates == 0 || q->n_answers == 0)
        return pnb__fail(err, PNB_ARG,
                         "%zu candidates and %zu answers of people; at least one of each is wanted",
                         q->n_candidates, q->n_answers);
    if (q->scores == NULL && q->uncertainty == NULL)
        return pnb__fail(err, PNB_ARG, "candidates have neither scores nor uncertainties");
    for (size_t i = 0; i < q->n_candidates; i++) {
        if (q->scores != NULL && !isfinite(q->scores[i]))
            return pnb__fail(err, PNB_NUMERIC, "the score of candidate %zu is %g", i, q->scores[i]);
        if (q->uncertainty != NULL && !isfinite(q->uncertainty[i]))
            return pnb__fail(err, PNB_NUMERIC, "the uncertainty of candidate %zu is %g", i,
                             q->uncertainty[i]);
    }
    return PNB_OK;
}

static double u_of(const pnb_vqa_question *q, size_t i)
{
    return q->uncertainty != NULL ? q->uncertainty[i] : -q->scores[i];
}

static size_t choose(const pnb_vqa_question *q)
{
    size_t best = 0;
    for (size_t i = 1; i < q->n_candidates; i++) {
        double now = q->scores != NULL ? q->scores[i] : -q->uncertainty[i];
        double before = q->scores != NULL ? q->scores[best] : -q->uncertainty[best];
        if (now > before)
            best = i;
    }
    return best;
}

/* 1 - e^u / sum e^u, as the share of the others so that nothing cancels. */
static double confidence_of(const pnb_vqa_question *q, size_t choice)
{
    double highest = u_of(q, 0), others = 0;
    for (size_t i = 1; i < q->n_candidates; i++)
        highest = fmax(highest, u_of(q, i));
    for (size_t i = 0; i < q->n_candidates; i++)
        others += i == choice ? 0 : exp(u_of(q, i) - highest);
    return others / (others + exp(u_of(q, choice) - highest));
}

static pnb_status same_answer(const char *wanted, const char *answer, bool exact, bool *same,
                              pnb_error *err)
{
    char *normal = NULL;
    if (exact) {
        *same = strcmp(wanted, answer) == 0;
        return PNB_OK;
    }
    pnb_status status = pnb_vqa_normalise(&normal, answer, err);
    *same = status == PNB_OK && strcmp(wanted, normal) == 0;
    pnb__free(normal);
    return status;
}

pnb_status pnb_vqa_score(const pnb_vqa_question *q, const pnb_vqa_opts *opts, pnb_vqa_answer *out,
                         pnb_error *err)
{
    pnb_vqa_opts o = opts != NULL ? *opts : (pnb_vqa_opts){0};
    char *normal = NULL;
    size_t n_votes = 0;
    pnb_status status;
    PNB_TRY(check(q, err));
    size_t choice = choose(q);
    const char *wanted = q->candidates[choice];
    if (!o.exact) {
        PNB_TRY(pnb_vqa_normalise(&normal, wanted, err));
        wanted = normal;
    }
    for (size_t i = 0; i < q->n_answers; i++) {
        bool same = false;
        PNB_TRY(same_answer(wanted, q->answers[i], o.exact, &same, err));
        n_votes += same;
    }
    *out = (pnb_vqa_answer){.choice = choice,
                            .confidence = confidence_of(q, choice),
                            .accuracy = pnb_vqa_vote(n_votes, q->n_answers, o.simple)};
done:
    pnb__free(normal);
    return status;
}

/* ---- calibration ---- */

static pnb_status check_calibration(const double *confidence, const double *accuracy, size_t n,
                                    size_t n_bins, pnb_error *err)
{
    if (n == 0 || n_bins == 0 || n_bins > PNB_MAX_BINS)
        return pnb__fail(err, PNB_ARG,
                         "%zu questions in %zu bins; at least 1 and 1 to %d are needed", n, n_bins,
                         PNB_MAX_BINS);
    for (size_t i = 0; i < n; i++)
        if (!(confidence[i] >= 0 && confidence[i] <= 1 && accuracy[i] >= 0 && accuracy[i] <= 1))
            return pnb__fail(err, PNB_NUMERIC,
                             "question %zu has confidence %g and accuracy %g; both lie in [0,1]", i,
                             confidence[i], accuracy[i]);
    return PNB_OK;
}

/* Bin of the `rank`-th confidence from below. */
static size_t bin_of(double confidence, size_t rank, size_t n, size_t n_bins, bool equal_count)
{
    return equal_count ? PNB_MIN(rank * n_bins / n, n_bins - 1) : pnb__ece_bin(confidence, n_bins);
}

typedef struct bin_sums {
    size_t n;
    double confidence, accuracy;
} bin_sums;

pnb_status pnb_answer_calibration_compute(const double *confidence, const double *accuracy,
                                          size_t n, size_t n_bins, bool equal_count,
                                          pnb_answer_calibration *out, pnb_error *err)
{
    bin_sums bin[PNB_MAX_BINS] = {{0}};
    pnb__valued *sorted = NULL;
    pnb_status status = check_calibration(confidence, accuracy, n, n_bins, err);
    if (status == PNB_OK)
        status = pnb__sorted(&sorted, confidence, n, "confidence", err);
    if (status != PNB_OK)
        return status;
    for (size_t rank = 0; rank < n; rank++) {
        size_t i = sorted[rank].place;
        bin_sums *b = &bin[bin_of(confidence[i], rank, n, n_bins, equal_count)];
        b->n++;
        b->confidence += confidence[i];
        b->accuracy += accuracy[i];
    }
    out->ece = out->mce = 0;
    for (size_t k = 0; k < n_bins; k++) {
        double size = (double)bin[k].n;
        if (out->n_in_bin != NULL)
            out->n_in_bin[k] = bin[k].n;
        if (out->confidence != NULL)
            out->confidence[k] = bin[k].n > 0 ? bin[k].confidence / size : NAN;
        if (out->accuracy != NULL)
            out->accuracy[k] = bin[k].n > 0 ? bin[k].accuracy / size : NAN;
        if (bin[k].n == 0)
            continue;
        double gap = fabs(bin[k].accuracy - bin[k].confidence);
        out->ece += gap / (double)n;
        out->mce = fmax(out->mce, gap / size);
    }
    pnb__free(sorted);
    return PNB_OK;
}
