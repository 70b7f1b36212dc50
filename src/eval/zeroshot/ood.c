/* "None of the above": how strange a picture is to the classes, where to draw the line, and how
 * well it separates (AsymVLM section 5.4: dummy prompts against margin and threshold rejection).
 *
 * Belonging to a class is the positive answer: a false positive is a stranger that is accepted, and
 * FPR@95 is their share at the threshold that accepts 95% of those who belong. A picture is called
 * none when its ood_score is above the threshold; ties with it are accepted. */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "eval/sorted.h"
#include "penumbra/classify.h"
#include "penumbra/statistics.h"

PNB_DEFINE_NAME(pnb_none_rule_name, pnb_none_rule, PNB_NAMES(PNB_NONE_RULE_LIST), "unknown")

pnb_status pnb_ood_score(pnb_none_rule rule, const pnb_predictions *p, const double *uncertainty,
                         double *out, pnb_error *err)
{
    if (rule == PNB_NONE_MARGIN && (p->n_classes < 2 || p->k < 2))
        return pnb__fail(err, PNB_ARG,
                         "the margin is that of the two best classes; there are %zu, of which %zu "
                         "were kept",
                         p->n_classes, p->k);
    if (rule == PNB_NONE_UNCERTAINTY && uncertainty == NULL)
        return pnb__fail(err, PNB_ARG, "the pictures' uncertainty is missing");
    for (size_t i = 0; i < p->n; i++) {
        const double *probability = p->probability + i * p->k;
        switch (rule) {
        case PNB_NONE_DUMMY:
            out[i] = p->log_odds_dummy[i];
            break;
        case PNB_NONE_MARGIN:
            out[i] = 1.0 - (probability[0] - probability[1]);
            break;
        case PNB_NONE_THRESHOLD:
            out[i] = 1.0 - probability[0];
            break;
        case PNB_NONE_SCORE:
            out[i] = -p->score[i * p->k];
            break;
        case PNB_NONE_UNCERTAINTY:
            out[i] = uncertainty[i];
            break;
        case PNB_N_NONE_RULES:
            return pnb__fail(err, PNB_ARG, "no rule of number %d", (int)rule);
        }
        if (rule == PNB_NONE_DUMMY && isnan(out[i]))
            return pnb__fail(err, PNB_ARG, "rule dummy needs dummy prompts, none were scored");
    }
    return PNB_OK;
}

/* ---- thresholds ---- */

static pnb_status check_rate(size_t n, double rate, pnb_error *err)
{
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no pictures to fit a threshold on");
    if (!(rate >= 0.0 && rate <= 1.0))
        return pnb__fail(err, PNB_ARG, "rate %g; a share from 0 to 1 is wanted", rate);
    return PNB_OK;
}

/* Pictures that the rate allows: 0.1 of 10 is 1 although 0.1 * 10 may round to just below. */
static size_t allowed(size_t n, double rate)
{
    double count = floor(rate * (double)n + 1e-9);
    return count < (double)n ? (size_t)count : n;
}

static pnb_status sort_for_rate(pnb__valued **sorted, const double *ood_score, size_t n,
                                double rate, pnb_error *err)
{
    pnb_status status = check_rate(n, rate, err);
    return status == PNB_OK ? pnb__sorted(sorted, ood_score, n, "ood score of picture", err)
                            : status;
}

pnb_status pnb_none_fit_rejected(const double *ood_score, size_t n, double rate, double *threshold,
                                 pnb_error *err)
{
    pnb__valued *sorted;
    pnb_status status = sort_for_rate(&sorted, ood_score, n, rate, err);
    if (status != PNB_OK)
        return status;
    size_t m = allowed(n, rate);
    *threshold = m < n ? sorted[n - 1 - m].value : nextafter(sorted[0].value, -INFINITY);
    pnb__free(sorted);
    return PNB_OK;
}

pnb_status pnb_none_fit_accepted(const double *ood_score, size_t n, double rate, double *threshold,
                                 pnb_error *err)
{
    pnb__valued *sorted;
    pnb_status status = sort_for_rate(&sorted, ood_score, n, rate, err);
    if (status != PNB_OK)
        return status;
    size_t m = allowed(n, rate);
    *threshold = m < n ? nextafter(sorted[m].value, -INFINITY) : sorted[n - 1].value;
    pnb__free(sorted);
    return PNB_OK;
}

/* ---- figures ---- */

static double share_above(const double *x, size_t n, double threshold)
{
    size_t above = 0;
    for (size_t i = 0; i < n; i++)
        above += x[i] > threshold;
    return (double)above / (double)n;
}

static pnb_status area(const double *positive, size_t n_positive, const double *negative,
                       size_t n_negative, double *out, pnb_error *err)
{
    size_t n = n_positive + n_negative;
    double *value = NULL;
    int *label = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(value, n, err));
    PNB_TRY(PNB_ALLOC(label, n, err));
    for (size_t i = 0; i < n; i++) {
        label[i] = i >= n_positive;
        value[i] = label[i] ? negative[i - n_positive] : positive[i];
    }
    PNB_TRY(pnb_auroc(value, label, n, out, err));
done:
    pnb__free(value);
    pnb__free(label);
    return status;
}

pnb_status pnb_none_compute(const double *positive, const bool *is_right, size_t n_positive,
                            const double *negative, size_t n_negative, double threshold,
                            pnb_none_figures *out, pnb_error *err)
{
    pnb_none_figures f = {.n_positive = n_positive, .n_negative = n_negative};
    double at_95;
    if (n_positive == 0 || n_negative == 0 || isnan(threshold))
        return pnb__fail(err, PNB_ARG,
                         "%zu pictures of the classes, %zu of none, threshold %g; at least one of "
                         "each is needed",
                         n_positive, n_negative, threshold);
    pnb_status status = area(positive, n_positive, negative, n_negative, &f.auroc, err);
    if (status == PNB_OK)
        status = pnb_none_fit_rejected(positive, n_positive, 0.05, &at_95, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n_positive; i++)
        f.positive_accuracy += is_right[i] && !(positive[i] > threshold);
    f.positive_accuracy /= (double)n_positive;
    f.positive_rejected = share_above(positive, n_positive, threshold);
    f.negative_accuracy = share_above(negative, n_negative, threshold);
    f.fpr95 = 1.0 - share_above(negative, n_negative, at_95);
    *out = f;
    return PNB_OK;
}
