/* The inclusion integral log int p1^2 p2 of two diagonal Gaussians, and its test H.
 *
 * Exact, per dimension (product of three Gaussians, checked by quadrature in the tests):
 *   inc(1,2) = -log 2pi - l1/2 - log(v1+2 v2)/2 - delta^2/(v1+2 v2),   l = log v
 * Published (ProLIP eq. 3 and its code): -2 l1 - l2 - log(A)/2 + B^2/(4A) - C with every 1/v times
 * e^eps. The log-variances are counted twice there (sigma was meant where sigma^2 stands); with
 * A = e^eps (v1+2 v2)/(2 v1 v2) and B^2/(4A) - C = -e^eps delta^2/(v1+2 v2) it becomes
 *   pub(1,2) = -3 l1/2 - l2/2 + log(2)/2 - eps/2 - log(v1+2 v2)/2 - e^eps delta^2/(v1+2 v2)
 * H(1 in 2) = inc(1,2) - inc(2,1) is written as one expression per dimension, so that equal
 * variances give exactly 0 and nothing cancels. Training's per-dimension kernel is not here. */
#include "prob/inclusion.h"

#include <math.h>

#define LOG_2PI 1.8378770664093454836
#define LOG_2 0.69314718055994530942

/* log(v1 + 2 v2) without leaving the logarithm */
static double log_v1_2v2(double l1, double l2)
{
    double x = l1, y = l2 + LOG_2;
    double high = x > y ? x : y;
    return high + log1p(exp(-fabs(x - y)));
}

/* delta^2 / (v1 + 2 v2); 0 for delta 0 even where the variances vanish */
static double scaled_square(double delta, double log_sum)
{
    return delta == 0.0 ? 0.0 : delta * delta * exp(-log_sum);
}

double pnb__inclusion_exact_term(double delta, double l1, double l2)
{
    double log_sum = log_v1_2v2(l1, l2);
    return -LOG_2PI - 0.5 * l1 - 0.5 * log_sum - scaled_square(delta, log_sum);
}

double pnb__inclusion_published_term(double delta, double l1, double l2, double eps)
{
    double log_sum = log_v1_2v2(l1, l2);
    return -1.5 * l1 - 0.5 * l2 + 0.5 * LOG_2 - 0.5 * eps - 0.5 * log_sum -
           exp(eps) * scaled_square(delta, log_sum);
}

/* With r = l2-l1, q = e^-|r|, v the larger variance:
 *   H = c r + log((v2+2 v1)/(v1+2 v2))/2 + e^eps delta^2 (v2-v1)/((v1+2 v2)(v2+2 v1))
 * c = 1/2 exact, 1 published. Dividing both sums by v leaves (1+2q)/(2+q) for r >= 0. */
double pnb__inclusion_h_term(double delta, double l1, double l2, double log_weight, double gain)
{
    double r = l2 - l1;
    double q = exp(-fabs(r));
    double sign = r < 0.0 ? -1.0 : 1.0;
    double inner = 1.0 + 2.0 * q, outer = 2.0 + q;
    double h = log_weight * r + 0.5 * sign * log(inner / outer);
    if (delta != 0.0 && q < 1.0) {
        double high = r < 0.0 ? l1 : l2;
        h += sign * gain * delta * delta * exp(-high) * -expm1(-fabs(r)) / (inner * outer);
    }
    return h;
}

double pnb_inclusion_exact(const double *mean1, const double *log_var1, const double *mean2,
                           const double *log_var2, size_t dim)
{
    double sum = 0.0;
    for (size_t d = 0; d < dim; d++)
        sum += pnb__inclusion_exact_term(mean1[d] - mean2[d], log_var1[d], log_var2[d]);
    return sum;
}

double pnb_inclusion_published(const double *mean1, const double *log_var1, const double *mean2,
                               const double *log_var2, size_t dim, double eps)
{
    double sum = 0.0;
    for (size_t d = 0; d < dim; d++)
        sum += pnb__inclusion_published_term(mean1[d] - mean2[d], log_var1[d], log_var2[d], eps);
    return sum;
}
