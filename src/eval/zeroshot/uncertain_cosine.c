/* BayesVLM's predictions: the logits a cos(picture, class) as Gaussians of the mean a m and the
 * variance a^2 v of prob/cosine.c.
 *
 *   probit    softmax_c(a m_c / sqrt(1 + pi/8 a^2 v_c))
 *   sampling  mean over draws of softmax_c(a (m_c + sqrt(v_c) e)), e ~ N(0, 1)
 *
 * Both leave a score such that softmax(a score) is that probability, so that whatever reads
 * predictions reads these too. The release draws 400 times, or corrects; classes are independent
 * there as here, though they share the picture. */
#include "eval/zeroshot/uncertain_cosine.h"

#include <math.h>

#include "base/base.h"
#include "prob/cosine.h"

enum { MOST_DRAWS = 100000 };

pnb_status pnb__uncertain_check(const pnb_classify_job *job, pnb_error *err)
{
    if (job->prediction == PNB_PREDICTION_PLAIN)
        return PNB_OK;
    if ((unsigned)job->prediction >= PNB_N_PREDICTIONS)
        return pnb__fail(err, PNB_ARG, "prediction number %d does not exist", (int)job->prediction);
    if (job->measure != PNB_MEASURE_MEAN)
        return pnb__fail(err, PNB_ARG,
                         "the variance of a prediction is that of a cosine: measure mean, not %s",
                         pnb_measure_name(job->measure));
    if (job->images->dim != job->classes->dim)
        return pnb__fail(err, PNB_SHAPE, "pictures of width %zu, classes of width %zu",
                         job->images->dim, job->classes->dim);
    if (job->images->kappa != NULL || job->classes->kappa != NULL)
        return pnb__fail(err, PNB_ARG,
                         "the variance of a cosine is of Gaussians, not of densities "
                         "on the sphere");
    if (job->images->log_var == NULL && job->classes->log_var == NULL)
        return pnb__fail(err, PNB_ARG,
                         "pictures and classes are points: their cosines have no "
                         "variance");
    if (job->prediction != PNB_PREDICTION_SAMPLING)
        return PNB_OK;
    if (job->n_draws == 0 || job->n_draws > MOST_DRAWS)
        return pnb__fail(err, PNB_ARG, "%zu draws of a prediction; 1 to %d are possible",
                         job->n_draws, (int)MOST_DRAWS);
    return job->dummies == NULL
               ? PNB_OK
               : pnb__fail(err, PNB_ARG,
                           "drawn probabilities are among the classes; dummies are "
                           "compared with them by plain or probit scores");
}

/* log of the mean over draws of softmax_c(scale (mean_c + std_c e)), over scale. A draw's softmax
 * is added to a running mean: probabilities that underflow are as small as they look. */
static void draw_scores(const pnb_classify_job *job, size_t row, size_t n, const double *mean,
                        const double *std, double *p, double *score)
{
    pnb__rng rng;
    pnb__rng_init(&rng, job->seed, row);
    for (size_t c = 0; c < n; c++)
        score[c] = 0.0;
    for (size_t s = 0; s < job->n_draws; s++) {
        double most = -INFINITY, sum = 0.0;
        for (size_t c = 0; c < n; c++) {
            p[c] = job->scale * (mean[c] + std[c] * pnb__rng_normal(&rng));
            most = fmax(most, p[c]);
        }
        for (size_t c = 0; c < n; c++)
            sum += p[c] = exp(p[c] - most);
        for (size_t c = 0; c < n; c++)
            score[c] += p[c] / sum;
    }
    for (size_t c = 0; c < n; c++) /* 0 becomes a number below all others */
        score[c] = log(fmax(score[c] / (double)job->n_draws, 1e-300)) / job->scale;
}

void pnb__uncertain_scores(const pnb_classify_job *job, size_t row, const pnb_rows *side,
                           double *score, double *room)
{
    double *mean = room, *spread = room + side->n, a = job->scale;
    for (size_t c = 0; c < side->n; c++) {
        pnb__cosine_moments(job->images, row, side, c, &mean[c], &spread[c]);
        if (job->prediction == PNB_PREDICTION_PROBIT)
            score[c] = pnb__probit_logit(a * mean[c], a * a * spread[c]) / a;
        else
            spread[c] = sqrt(spread[c]);
    }
    if (job->prediction == PNB_PREDICTION_SAMPLING)
        draw_scores(job, row, side->n, mean, spread, room + 2 * side->n, score);
}
