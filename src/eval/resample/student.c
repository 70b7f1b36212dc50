/* Distribution functions of the normal and of Student's t, and their inverses.
 *
 *   Phi(x) = erfc(-x / sqrt 2) / 2
 *   T(t; v) = 1 - I_{v/(v+t^2)}(v/2, 1/2) / 2 for t >= 0, with the regularised incomplete beta
 *             function by its continued fraction (DLMF 8.17.22, evaluated as Lentz does)
 * Inverses by bisection: they are asked for a few times a result, and it cannot fail. */
#include "eval/resample/student.h"

#include <math.h>

double pnb__normal_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static double away_from_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* The continued fraction of I_x(a, b), for x < (a + 1)/(a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1.0, d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)), h = d;
    for (int i = 1; i < 10000; i++) {
        double m = i, even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        h *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        h *= d * c;
        if (fabs(d * c - 1.0) < 1e-15)
            break;
    }
    return h;
}

static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0.0 || x >= 1.0)
        return x <= 0.0 ? 0.0 : 1.0;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1.0) / (a + b + 2.0))
        return front * beta_fraction(a, b, x) / a;
    return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

double pnb__student_cdf(double t, double df)
{
    double tail = 0.5 * incomplete_beta(0.5 * df, 0.5, df / (df + t * t));
    return t < 0.0 ? tail : 1.0 - tail;
}

double pnb__normal_quantile(double p)
{
    double low = -40.0, high = 40.0;
    for (int i = 0; i < 100; i++) {
        double middle = 0.5 * (low + high);
        if (pnb__normal_cdf(middle) < p)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

double pnb__student_quantile(double p, double df)
{
    double side = p < 0.5 ? -1.0 : 1.0, tail = fmin(p, 1.0 - p), low = 0.0, high = 1.0;
    while (pnb__student_cdf(-high, df) > tail && high < 1e300)
        high *= 2.0;
    for (int i = 0; i < 200 && high - low > 1e-14 * high; i++) {
        double middle = 0.5 * (low + high);
        if (pnb__student_cdf(-middle, df) > tail)
            low = middle;
        else
            high = middle;
    }
    return side * 0.5 * (low + high);
}
