/* Eigenvalues and eigenvectors against matrices whose decomposition is known, and by what they must
 * satisfy: A = sum l v v^T, orthonormal v, values in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/base.h"
#include "prob/eigen.h"

typedef struct problem {
    size_t n;
    double *a, *copy, *values, *vectors, *work;
} problem;

static problem make_problem(size_t n)
{
    size_t square = PNB_MAX(n * n, (size_t)1);
    problem p = {n,
                 calloc(square, 8),
                 calloc(square, 8),
                 calloc(n + 1, 8),
                 calloc(square, 8),
                 calloc(2 * n + 1, 8)};
    assert_true(p.a && p.copy && p.values && p.vectors && p.work);
    return p;
}

static void free_problem(problem *p)
{
    free(p->a);
    free(p->copy);
    free(p->values);
    free(p->vectors);
    free(p->work);
}

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void require_near(double found, double wanted, double tolerance, const char *what)
{
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("%s: %.17g, wanted %.17g within %g", what, found, wanted, tolerance);
}

/* Solves p and checks all that must hold of the answer; `scale` is the size of the numbers. */
static void solve(problem *p, double scale)
{
    size_t n = p->n;
    memcpy(p->copy, p->a, n * n * sizeof(double));
    assert_true(pnb__eigen_symmetric(n, p->a, p->values, p->vectors, p->work));
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || p->values[i] <= p->values[i - 1]);
        for (size_t j = 0; j <= i; j++)
            require_near(dot(p->vectors + i * n, p->vectors + j * n, n), i == j, 1e-12 * (double)n,
                         "orthonormal");
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += p->values[k] * p->vectors[k * n + i] * p->vectors[k * n + j];
            require_near(sum, p->copy[i * n + j], 1e-13 * scale * (double)n, "A again");
        }
}

static void fill_random(problem *p, uint64_t seed, double scale)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j <= i; j++)
            p->a[i * p->n + j] = p->a[j * p->n + i] = scale * pnb__rng_normal(&rng);
}

static void random_matrices(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 4, 7, 16, 33, 64, 97};
    static const double scales[] = {1, 1e-200, 1e150};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (size_t k = 0; k < PNB_COUNT(scales); k++) {
            problem p = make_problem(sizes[i]);
            fill_random(&p, i, scales[k]);
            solve(&p, 10 * scales[k]);
            free_problem(&p);
        }
}

/* Numbers on the diagonal are the values whatever their order, zeros and equal ones too. */
static void diagonals(void **state)
{
    (void)state;
    static const double given[] = {0, 3, -2, 3, 0, 1e-30, 7}, wanted[] = {7, 3, 3, 1e-30, 0, 0, -2};
    problem p = make_problem(7);
    for (size_t i = 0; i < 7; i++)
        p.a[i * 8] = given[i];
    solve(&p, 7);
    for (size_t i = 0; i < 7; i++)
        require_near(p.values[i], wanted[i], 1e-14, "value");
    free_problem(&p);
    p = make_problem(5); /* nothing but zeros */
    solve(&p, 1);
    free_problem(&p);
}

/* The path graph's matrix 2, -1: values 2 - 2 cos(k pi/(n+1)). */
static void known_values(void **state)
{
    (void)state;
    enum { N = 50 };
    const double pi = 3.14159265358979323846;
    problem p = make_problem(N);
    for (size_t i = 0; i < N; i++) {
        p.a[i * N + i] = 2;
        if (i > 0)
            p.a[i * N + i - 1] = p.a[(i - 1) * N + i] = -1;
    }
    solve(&p, 4);
    for (size_t k = 0; k < N; k++)
        require_near(p.values[k], 2 - 2 * cos((double)(N - k) * pi / (N + 1)), 1e-13, "value");
    free_problem(&p);
}

/* A covariance of fewer rows than dimensions: as many values above zero as it has rank. */
static void low_rank(void **state)
{
    (void)state;
    enum { N = 40, RANK = 5 };
    double x[RANK][N];
    pnb__rng rng;
    problem p = make_problem(N);
    pnb__rng_init(&rng, 3, 0);
    for (size_t r = 0; r < RANK; r++)
        for (size_t d = 0; d < N; d++)
            x[r][d] = pnb__rng_normal(&rng);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            for (size_t r = 0; r < RANK; r++)
                p.a[i * N + j] += x[r][i] * x[r][j];
    solve(&p, 100);
    for (size_t i = 0; i < N; i++)
        assert_true(i < RANK ? p.values[i] > 1 : fabs(p.values[i]) < 1e-12);
    free_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_matrices),
        cmocka_unit_test(diagonals),
        cmocka_unit_test(known_values),
        cmocka_unit_test(low_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
