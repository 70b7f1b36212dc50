/* Logistic functions that neither overflow nor lose their tails, and the match probability.
 *
 *   s(x) = 1/(1+e^-x)   log s(x) = -log(1+e^-x)   softplus(x) = log(1+e^x)
 *
 * The exponential always gets a non-positive argument, and log1p keeps what a sum with 1 would
 * round away. The vector forms used in training live with the kernels. */
#include <math.h>

#include "penumbra/prob.h"

double pnb_sigmoid(double x)
{
    if (x >= 0.0)
        return 1.0 / (1.0 + exp(-x));
    double e = exp(x);
    return e / (1.0 + e);
}

double pnb_softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

double pnb_log_sigmoid(double x)
{
    return -pnb_softplus(-x);
}

double pnb_match_probability(double similarity, double a, double b)
{
    return pnb_sigmoid(a * similarity + b);
}
