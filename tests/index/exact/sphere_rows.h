/* Random rows on the sphere, for the tests of search and of ranking. */
#ifndef PNB_TESTS_INDEX_SPHERE_ROWS_H
#define PNB_TESTS_INDEX_SPHERE_ROWS_H

#include "tests/prob/support.h"

/* Rows on the sphere; concentrations are log-uniform in [1, most], the first are 0. */
typedef struct sphere {
    gaussians means;
    float *kappa;
    pnb_rows rows;
} sphere;

static inline sphere random_sphere(size_t n, size_t dim, bool is_power, double most, uint64_t seed)
{
    sphere s = {.means = random_gaussians(n, dim, -1, 0, seed), .kappa = malloc(n * sizeof(float))};
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 5);
    assert_non_null(s.kappa);
    for (size_t i = 0; i < n; i++)
        s.kappa[i] = i % 50 == 0 ? 0.0f : (float)exp(log(most) * pnb__rng_uniform(&rng));
    s.rows = (pnb_rows){
        .n = n, .dim = dim, .mean = s.means.mean, .kappa = s.kappa, .is_power = is_power};
    return s;
}

static inline void free_sphere(sphere *s)
{
    free_gaussians(&s->means);
    free(s->kappa);
}

static const pnb_measure MEASURES[] = {PNB_MEASURE_VMF, PNB_MEASURE_VMF_EXACT,
                                       PNB_MEASURE_POWER_SPHERICAL};

/* Which sides have concentrations: queries, gallery, both. */
static inline void choose_sides(int sides, sphere *q, sphere *x)
{
    q->rows.kappa = sides != 1 ? q->kappa : NULL;
    x->rows.kappa = sides != 0 ? x->kappa : NULL;
}

#endif
