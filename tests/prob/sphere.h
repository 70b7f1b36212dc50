/* Integrals over the sphere in long double: what densities that depend on t = mu.x alone come down
 * to. int f(x) dx = A_{d-2} int_0^pi f(cos a) sin^{d-2} a da, A_{d-2} = 2 pi^((d-1)/2)/G((d-1)/2).
 */
#ifndef PNB_TESTS_PROB_SPHERE_H
#define PNB_TESTS_PROB_SPHERE_H

#include "tests/prob/support.h"

#define PI_L 3.14159265358979323846264338327950288L

typedef struct sphere {
    bool is_power; /* (1+t)^kappa instead of exp(kappa t) */
    size_t dim;
    double kappa;
} sphere;

/* Log of the integrand at angle a, up to a constant that keeps it small at the peak: exp(kappa) or
 * 2^kappa is taken out. */
static inline long double sphere_log_integrand(const sphere *s, long double a)
{
    long double half = sinl(0.5L * a), k = s->kappa;
    long double log_cos = half < 0.7L ? 0.5L * log1pl(-half * half) : logl(cosl(0.5L * a));
    long double value = s->is_power ? 2.0L * k * log_cos : -2.0L * k * half * half;
    if (k == 0.0L)
        value = 0.0L;
    return s->dim == 2 ? value : value + (long double)(s->dim - 2) * logl(sinl(a));
}

/* The angle of the peak: the integrand is unimodal. */
static inline long double sphere_peak(const sphere *s)
{
    long double low = 0.0L, high = PI_L;
    for (int i = 0; i < 200; i++) {
        long double x = low + (high - low) / 3, y = high - (high - low) / 3;
        if (sphere_log_integrand(s, x) < sphere_log_integrand(s, y))
            low = x;
        else
            high = y;
    }
    return 0.5L * (low + high);
}

/* Where the integrand has fallen by e^-60 on the way from `from` to `to`, or `to`. */
static inline long double sphere_edge(const sphere *s, long double from, long double to)
{
    long double top = sphere_log_integrand(s, from), near = from, far = to;
    for (int i = 0; i < 200; i++) {
        long double middle = 0.5L * (near + far);
        if (sphere_log_integrand(s, middle) > top - 60.0L)
            near = middle;
        else
            far = middle;
    }
    return far;
}

typedef struct sphere_sums {
    long double mass, cosine; /* int g and int g (1-t), g = integrand / its peak */
    long double log_peak;
} sphere_sums;

/* Tanh-sinh rule over [a, b]. */
static inline void sphere_integrate(const sphere *s, long double a, long double b, sphere_sums *out)
{
    const long double step = 0.02L;
    long double middle = 0.5L * (a + b), half = 0.5L * (b - a);
    for (int i = -220; i <= 220; i++) {
        long double u = step * i, v = 0.5L * PI_L * sinhl(u), c = coshl(v);
        long double x = middle + half * tanhl(v);
        if (!(x > a && x < b))
            continue;
        long double weight = half * step * 0.5L * PI_L * coshl(u) / (c * c);
        long double g = weight * expl(sphere_log_integrand(s, x) - out->log_peak);
        long double sine = sinl(0.5L * x);
        out->mass += g;
        out->cosine += g * 2.0L * sine * sine;
    }
}

static inline sphere_sums sphere_all(const sphere *s)
{
    long double peak = sphere_peak(s);
    sphere_sums sums = {0, 0, sphere_log_integrand(s, peak)};
    sphere_integrate(s, sphere_edge(s, peak, 0.0L), peak, &sums);
    sphere_integrate(s, peak, sphere_edge(s, peak, PI_L), &sums);
    return sums;
}

/* log C with int C f = 1 */
static inline double sphere_log_norm(const sphere *s)
{
    sphere_sums sums = sphere_all(s);
    long double n = 0.5L * (long double)(s->dim - 1);
    int sign;
    long double log_area = logl(2.0L) + n * logl(PI_L) - lgammal_r(n, &sign);
    long double taken_out = s->kappa * (s->is_power ? logl(2.0L) : 1.0L);
    return (double)-(log_area + logl(sums.mass) + sums.log_peak + taken_out);
}

/* 1 - E t */
static inline double sphere_mean_deficit(const sphere *s)
{
    sphere_sums sums = sphere_all(s);
    return (double)(sums.cosine / sums.mass);
}

static const size_t SPHERE_DIMS[] = {2, 3, 4, 5, 8, 17, 64, 65, 66, 128, 512, 768, 1024, 4096};
static const double SPHERE_KAPPAS[] = {0,   1e-6, 1e-3, 0.1, 1,   3,   10,
                                       100, 1e3,  3e3,  1e4, 1e5, 1e6, 3e6};

#endif
