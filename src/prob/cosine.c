/* The cosine of two Gaussian embeddings as a random number, and a softmax of uncertain logits.
 *
 * A cosine has no closed form under Gaussians. Smith et al. let the lengths be as long as they are
 * expected to be, |g|^2 ~ E|g|^2, so that numerator and denominator come apart: mean and variance
 * of the dot product are exact then. BayesVLM's predictions are made of these two. */
#include "prob/cosine.h"

#include <math.h>

void pnb__cosine_moments(const pnb_gaussians *a, size_t row_a, const pnb_gaussians *b, size_t row_b,
                         double *mean, double *variance)
{
    size_t dim = a->dim;
    const float *x = a->mean + row_a * dim, *y = b->mean + row_b * dim;
    const float *lx = a->log_var != NULL ? a->log_var + row_a * dim : NULL;
    const float *ly = b->log_var != NULL ? b->log_var + row_b * dim : NULL;
    double dot = 0.0, spread = 0.0, length_a = 0.0, length_b = 0.0;
    for (size_t d = 0; d < dim; d++) {
        double m = x[d], n = y[d];
        double u = lx != NULL ? exp((double)lx[d]) : 0.0, v = ly != NULL ? exp((double)ly[d]) : 0.0;
        dot += m * n;
        spread += u * (v + n * n) + v * m * m;
        length_a += m * m + u;
        length_b += n * n + v;
    }
    double both = length_a * length_b;
    *mean = both > 0.0 ? dot / sqrt(length_a) / sqrt(length_b) : 0.0;
    *variance = both > 0.0 ? spread / length_a / length_b : 0.0;
}

double pnb__probit_logit(double mean, double variance)
{
    const double eighth_pi = 0.392699081698724155;
    return mean / sqrt(1.0 + eighth_pi * variance);
}

void pnb__softmax_probit(const double *mean, const double *variance, size_t n, double *out)
{
    double most = -INFINITY, sum = 0.0;
    for (size_t k = 0; k < n; k++) {
        out[k] = pnb__probit_logit(mean[k], variance[k]);
        most = fmax(most, out[k]);
    }
    for (size_t k = 0; k < n; k++)
        sum += out[k] = exp(out[k] - most);
    for (size_t k = 0; k < n; k++)
        out[k] /= sum;
}
