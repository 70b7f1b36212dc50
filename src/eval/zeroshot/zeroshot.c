/* Pictures to classes: scores by any measure, softmax(scale * score), the best k of each picture;
 * then accuracy, recall of each class, calibration and confusion against labels.
 *
 * Pictures are taken in blocks, so memory grows with pictures or classes, never with their product;
 * blocks do not depend on the number of threads, and neither do results. Monte-Carlo measures draw
 * a picture's samples by its place in its block. A match probability enters as its logarithm: at
 * scale 1 the classes' probabilities are then p_c / sum p. For csd the score is mean.mean - (tr +
 * tr)/2 for unit means: ProLIP's 100 f.W - 50 sum(var) is 100 times it, up to the picture's own
 * trace. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "eval/zeroshot/uncertain_cosine.h"
#include "penumbra/classify.h"
#include "penumbra/ece.h"
#include "prob/measure.h"

/* Classes are unpacked once a block: larger blocks do that less often, smaller ones leave work for
 * every thread where pictures are few. */
enum { BLOCK_ROWS = 64, LARGE_BLOCK_ROWS = 256, LARGE_FROM = 4096 };

typedef struct classify_run {
    const pnb_classify_job *job;
    size_t block; /* pictures taken together */
    pnb_predictions *out;
    pnb_error *errors; /* [blocks] */
} classify_run;

/* ---- scores ---- */

/* Keeps the k best classes of a row of scores, best first; later classes lose ties. */
static void keep_best(const double *score, size_t n, size_t k, int32_t *top, double *best)
{
    size_t n_kept = 0;
    for (size_t c = 0; c < n; c++) {
        if (n_kept == k && !(score[c] > best[k - 1]))
            continue;
        size_t at = n_kept < k ? n_kept++ : k - 1;
        for (; at > 0 && score[c] > best[at - 1]; at--) {
            best[at] = best[at - 1];
            top[at] = top[at - 1];
        }
        best[at] = score[c];
        top[at] = (int32_t)c;
    }
}

static void predict_row(const pnb_classify_job *job, pnb_predictions *out, size_t i,
                        const double *score)
{
    size_t k = out->k, n = out->n_classes;
    double *best = out->score + i * k, sum = 0.0;
    keep_best(score, n, k, out->top + i * k, best);
    for (size_t c = 0; c < n; c++)
        sum += exp(job->scale * (score[c] - best[0]));
    for (size_t j = 0; j < k; j++)
        out->probability[i * k + j] = exp(job->scale * (best[j] - best[0])) / sum;
    out->log_p_label[i] = NAN;
    if (job->labels != NULL && job->labels[i] >= 0)
        out->log_p_label[i] = job->scale * (score[job->labels[i]] - best[0]) - log(sum);
}

static pnb_status score_uncertain(const pnb_classify_job *job, size_t begin, size_t n,
                                  const pnb_rows *side, double *score, pnb_error *err)
{
    double *room = pnb__alloc_array(side->n, 3 * sizeof *room);
    pnb_status status = PNB_OK;
    if (room == NULL)
        return pnb__fail_nomem(err, 3 * side->n * sizeof *room);
    for (size_t i = 0; i < n; i++)
        pnb__uncertain_scores(job, begin + i, side, score + i * side->n, room);
    for (size_t i = 0; status == PNB_OK && i < n * side->n; i++)
        if (!isfinite(score[i]))
            status = pnb__fail(err, PNB_NUMERIC,
                               "picture %zu and class %zu: the score is %g; the embeddings hold "
                               "values that are not finite or log-variances beyond 700",
                               begin + i / side->n, i % side->n, score[i]);
    pnb__free(room);
    return status;
}

/* What the softmax takes of a measure's value. A probability has the range of one unit of a logit:
 * as it is, it would make all classes alike. */
static double logit_of(pnb_measure measure, double value)
{
    if (pnb__measure_traits_of(measure)->reads == PNB__READS_MATCH)
        return log(fmax(value, DBL_MIN));
    return pnb_measure_score(measure, value);
}

/* Scores of pictures begin .. begin + n - 1 against all rows of `side`. */
static pnb_status score_block(const pnb_classify_job *job, size_t begin, size_t n,
                              const pnb_rows *side, double *score, pnb_error *err)
{
    if (job->prediction != PNB_PREDICTION_PLAIN)
        return score_uncertain(job, begin, n, side, score, err);
    const pnb_rows rows = pnb_rows_slice(job->images, begin, n);
    pnb_status status = pnb_measure_block(job->measure, &rows, side, job->opts, score, err);
    if (status != PNB_OK && begin > 0)
        pnb__error_prefix(err, "counting pictures from %zu", begin);
    for (size_t i = 0; status == PNB_OK && i < n * side->n; i++)
        score[i] = logit_of(job->measure, score[i]);
    return status;
}

static pnb_status classify_block(const classify_run *run, size_t begin, size_t n, pnb_error *err)
{
    const pnb_classify_job *job = run->job;
    size_t n_classes = job->classes->n, n_dummies = job->dummies != NULL ? job->dummies->n : 0;
    size_t width = PNB_MAX(n_classes, n_dummies);
    double *score = pnb__alloc_array(n * sizeof *score, width);
    pnb_status status;
    if (score == NULL)
        return pnb__fail_nomem(err, n * width * sizeof *score);
    PNB_TRY(score_block(job, begin, n, job->classes, score, err));
    if (job->all_scores != NULL)
        memcpy(job->all_scores + begin * n_classes, score, n * n_classes * sizeof *score);
    for (size_t i = 0; i < n; i++) {
        predict_row(job, run->out, begin + i, score + i * n_classes);
        run->out->log_odds_dummy[begin + i] = NAN;
    }
    if (n_dummies == 0)
        goto done;
    PNB_TRY(score_block(job, begin, n, job->dummies, score, err));
    for (size_t i = 0; i < n; i++) {
        double best = -INFINITY;
        for (size_t c = 0; c < n_dummies; c++)
            best = fmax(best, score[i * n_dummies + c]);
        run->out->log_odds_dummy[begin + i] =
            job->scale * (best - run->out->score[(begin + i) * run->out->k]);
    }
done:
    pnb__free(score);
    return status;
}

static void classify_blocks(void *user, size_t begin, size_t end, int thread)
{
    const classify_run *run = user;
    size_t n = run->job->images->n;
    (void)thread;
    for (size_t b = begin; b < end; b++)
        classify_block(run, b * run->block, PNB_MIN(run->block, n - b * run->block),
                       &run->errors[b]);
}

static pnb_status check_labels(const int32_t *labels, size_t n, size_t n_classes, pnb_error *err)
{
    for (size_t i = 0; labels != NULL && i < n; i++)
        if (labels[i] < -1 || (labels[i] >= 0 && (size_t)labels[i] >= n_classes))
            return pnb__fail(err, PNB_ARG,
                             "picture %zu has label %d; there are %zu classes, 0 to %zu, and -1 "
                             "for an unknown one",
                             i, (int)labels[i], n_classes, n_classes - 1);
    return PNB_OK;
}

static pnb_status check_job(const pnb_classify_job *job, pnb_error *err)
{
    if (job->images->n == 0 || job->classes->n == 0)
        return pnb__fail(err, PNB_SHAPE,
                         "%zu pictures and %zu classes; at least 1 of each is "
                         "needed",
                         job->images->n, job->classes->n);
    if (job->classes->n > INT32_MAX)
        return pnb__fail(err, PNB_LIMIT, "%zu classes are too many", job->classes->n);
    if (job->k == 0 || job->k > job->classes->n)
        return pnb__fail(err, PNB_ARG, "the best %zu of %zu classes were asked for", job->k,
                         job->classes->n);
    if (!(job->scale > 0.0) || !isfinite(job->scale))
        return pnb__fail(err, PNB_ARG, "the scale of the scores is %g; it must be above 0",
                         job->scale);
    pnb_status status = pnb__uncertain_check(job, err);
    return status == PNB_OK ? check_labels(job->labels, job->images->n, job->classes->n, err)
                            : status;
}

void pnb_predictions_reset(pnb_predictions *p)
{
    if (p == NULL)
        return;
    pnb__free(p->top);
    pnb__free(p->score);
    pnb__free(p->probability);
    pnb__free(p->log_p_label);
    pnb__free(p->log_odds_dummy);
    *p = (pnb_predictions){0};
}

static pnb_status alloc_predictions(pnb_predictions *p, const pnb_classify_job *job, pnb_error *err)
{
    *p = (pnb_predictions){.n = job->images->n, .n_classes = job->classes->n, .k = job->k};
    if (PNB_ALLOC_ROWS(p->top, p->n, p->k, err) != PNB_OK ||
        PNB_ALLOC_ROWS(p->score, p->n, p->k, err) != PNB_OK ||
        PNB_ALLOC_ROWS(p->probability, p->n, p->k, err) != PNB_OK ||
        PNB_ALLOC(p->log_p_label, p->n, err) != PNB_OK ||
        PNB_ALLOC(p->log_odds_dummy, p->n, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

/* Of Monte-Carlo measures the block is part of the result. */
static size_t block_rows(const pnb_classify_job *job)
{
    bool is_large = job->images->n >= LARGE_FROM && !pnb__measure_is_sampled(job->measure);
    return is_large ? LARGE_BLOCK_ROWS : BLOCK_ROWS;
}

pnb_status pnb_classify(const pnb_ctx *ctx, const pnb_classify_job *job, pnb_predictions *out,
                        pnb_error *err)
{
    pnb_predictions made = {0};
    pnb_error *errors = NULL;
    *out = (pnb_predictions){0};
    pnb_status status = check_job(job, err);
    if (status != PNB_OK)
        return status;
    size_t block = block_rows(job), n_blocks = (job->images->n + block - 1) / block;
    PNB_TRY(alloc_predictions(&made, job, err));
    PNB_TRY(PNB_ALLOC_ZERO(errors, n_blocks, err));
    classify_run run = {job, block, &made, errors};
    pnb__parallel_for(ctx, n_blocks, 1, classify_blocks, &run);
    for (size_t b = 0; b < n_blocks; b++)
        if (errors[b].status != PNB_OK)
            PNB_TRY(pnb__fail(err, errors[b].status, "%s", errors[b].text));
done:
    pnb__free(errors);
    if (status == PNB_OK)
        *out = made;
    else
        pnb_predictions_reset(&made);
    return status;
}

/* ---- figures ---- */

void pnb_classification_reset(pnb_classification *c)
{
    if (c == NULL)
        return;
    pnb__free(c->confusion);
    pnb__free(c->classes);
    *c = (pnb_classification){0};
}

static void count_image(const pnb_predictions *p, size_t i, int32_t label, pnb_classification *c)
{
    const int32_t *top = p->top + i * p->k;
    pnb_class_figures *of_label = &c->classes[label];
    c->n++;
    c->acc1 += top[0] == label;
    for (size_t j = 0; j < PNB_MIN(p->k, (size_t)5); j++)
        c->acc5 += top[j] == label;
    c->nll -= p->log_p_label[i];
    of_label->n++;
    of_label->n_correct += top[0] == label;
    of_label->p_label += exp(p->log_p_label[i]);
    c->classes[top[0]].n_predicted++;
    if (c->confusion != NULL)
        c->confusion[(size_t)label * c->n_classes + (size_t)top[0]]++;
}

static void finish_classes(pnb_classification *c)
{
    for (size_t k = 0; k < c->n_classes; k++) {
        pnb_class_figures *f = &c->classes[k];
        f->recall = f->n > 0 ? (double)f->n_correct / (double)f->n : NAN;
        f->precision = f->n_predicted > 0 ? (double)f->n_correct / (double)f->n_predicted : NAN;
        f->p_label = f->n > 0 ? f->p_label / (double)f->n : NAN;
        c->n_present += f->n > 0;
        c->mean_per_class_recall += f->n > 0 ? f->recall : 0.0;
    }
    c->mean_per_class_recall /= (double)c->n_present;
    c->acc1 /= (double)c->n;
    c->acc5 = c->n_classes >= 5 ? c->acc5 / (double)c->n : NAN;
    c->nll /= (double)c->n;
}

/* Calibration of the first class's probability over the pictures with a label. */
static pnb_status add_calibration(const pnb_predictions *p, const int32_t *labels, size_t n_bins,
                                  pnb_classification *c, pnb_error *err)
{
    double *confidence = pnb__alloc_array(c->n, sizeof *confidence);
    int *is_right = pnb__alloc_array(c->n, sizeof *is_right);
    pnb_ece estimate = {0};
    size_t n = 0;
    pnb_status status = PNB_OK;
    if (confidence == NULL || is_right == NULL)
        PNB_TRY(pnb__fail_nomem(err, c->n * sizeof *confidence));
    for (size_t i = 0; i < p->n; i++) {
        if (labels[i] < 0)
            continue;
        confidence[n] = p->probability[i * p->k];
        is_right[n++] = p->top[i * p->k] == labels[i];
    }
    PNB_TRY(pnb_ece_compute(confidence, is_right, n, n_bins, &estimate, err));
    c->ece = estimate.ece;
    c->mce = estimate.mce;
done:
    pnb__free(confidence);
    pnb__free(is_right);
    return status;
}

pnb_status pnb_classification_compute(const pnb_predictions *p, const int32_t *labels,
                                      size_t n_bins, pnb_classification *out, pnb_error *err)
{
    pnb_classification c = {.n_classes = p->n_classes};
    *out = (pnb_classification){0};
    if (labels == NULL)
        return pnb__fail(err, PNB_ARG, "none of %zu pictures has a label", p->n);
    pnb_status status = check_labels(labels, p->n, p->n_classes, err);
    if (status != PNB_OK)
        return status;
    if (p->n_classes >= 5 && p->k < 5)
        return pnb__fail(err, PNB_ARG, "top-5 accuracy needs the 5 best classes, %zu were kept",
                         p->k);
    c.classes = pnb__alloc_zero(p->n_classes, sizeof *c.classes);
    if (p->n_classes <= PNB_MAX_CONFUSION)
        c.confusion = pnb__alloc_zero(p->n_classes * p->n_classes, sizeof *c.confusion);
    if (c.classes == NULL || (p->n_classes <= PNB_MAX_CONFUSION && c.confusion == NULL))
        PNB_TRY(pnb__fail_nomem(err, p->n_classes * p->n_classes * sizeof *c.confusion));
    for (size_t i = 0; i < p->n; i++) {
        if (labels[i] >= 0)
            count_image(p, i, labels[i], &c);
        else
            c.n_unknown++;
    }
    if (c.n == 0)
        PNB_TRY(pnb__fail(err, PNB_ARG, "none of %zu pictures has a label", p->n));
    PNB_TRY(add_calibration(p, labels, n_bins, &c, err));
    finish_classes(&c);
done:
    if (status == PNB_OK)
        *out = c;
    else
        pnb_classification_reset(&c);
    return status;
}
