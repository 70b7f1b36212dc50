/* Digamma, differences of log Gamma and digamma that do not cancel, and the variance made of them.
 *
 *   log Gamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + t(x)
 *   t(x) = sum_k B_2k / (2k (2k-1) x^(2k-1))
 *   log Gamma(a+b) - log Gamma(a) = (a - 1/2) log1p(b/a) + b log(a+b) - b + t(a+b) - t(a)
 *
 * (Stirling, DLMF 5.11). Two log Gammas of size 1e7 whose difference is 1e4 lose nothing this way.
 * Small arguments are moved up by Gamma(x+1) = x Gamma(x) until seven terms of t are exact to
 * rounding. */
#include <math.h>

#include "penumbra/distributions.h"

#define STIRLING_FROM 12.0 /* the first term left out is below 1e-17 from here on */

/* t(x) and minus its derivative's tail, from B_2k = 1/6, -1/30, 1/42, -1/30, 5/66, -691/2730, 7/6
 */
static double stirling_tail(double x)
{
    double y = 1.0 / (x * x);
    return (1.0 / 12 +
            y * (-1.0 / 360 +
                 y * (1.0 / 1260 + y * (-1.0 / 1680 + y * (1.0 / 1188 + y * (-691.0 / 360360 +
                                                                             y * (1.0 / 156))))))) /
           x;
}

/* digamma(x) = log x - 1/(2x) - s(x) */
static double digamma_tail(double x)
{
    double y = 1.0 / (x * x);
    return y *
           (1.0 / 12 +
            y * (-1.0 / 120 +
                 y * (1.0 / 252 +
                      y * (-1.0 / 240 + y * (1.0 / 132 + y * (-691.0 / 32760 + y * (1.0 / 12)))))));
}

double pnb_digamma(double x)
{
    double sum = 0.0;
    if (!(x > 0.0))
        return (double)NAN;
    while (x < STIRLING_FROM) {
        sum -= 1.0 / x;
        x += 1.0;
    }
    return sum + log(x) - 0.5 / x - digamma_tail(x);
}

double pnb_log_gamma_ratio(double a, double b)
{
    double product = 1.0;
    if (!(a > 0.0) || !(b >= 0.0))
        return (double)NAN;
    /* At most twelve factors 1 + b/a: far from overflow for b/a below 1e25. */
    while (a < STIRLING_FROM) {
        product *= 1.0 + b / a;
        a += 1.0;
    }
    return (a - 0.5) * log1p(b / a) + b * (log(a + b) - 1.0) +
           (stirling_tail(a + b) - stirling_tail(a)) - log(product);
}

double pnb_digamma_difference(double a, double b)
{
    double sum = 0.0;
    if (!(a > 0.0) || !(b >= 0.0))
        return (double)NAN;
    while (a < STIRLING_FROM) {
        sum += b / (a * (a + b));
        a += 1.0;
    }
    return sum + log1p(b / a) + 0.5 * b / (a * (a + b)) - (digamma_tail(a + b) - digamma_tail(a));
}

double pnb_gen_gaussian_log_var(double inv_alpha, double beta)
{
    if (!(inv_alpha > 0.0) || !(beta > 0.0))
        return (double)NAN;
    return pnb_log_gamma_ratio(1.0 / beta, 2.0 / beta) - 2.0 * log(inv_alpha);
}
