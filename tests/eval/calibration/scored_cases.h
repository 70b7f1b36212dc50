/* Random scored cases, and the likelihood written down a second time, for the tests of fits. */
#ifndef PNB_TESTS_EVAL_SCORED_CASES_H
#define PNB_TESTS_EVAL_SCORED_CASES_H

#include "penumbra/scaling.h"
#include "tests/prob/support.h"

enum { MAX_CASES = 40000 };

typedef struct cases {
    pnb_scored view;
    double *score, *weight;
    int *label;
} cases;

static inline cases new_cases(size_t n)
{
    cases c = {.score = malloc(n * sizeof(double)),
               .weight = malloc(n * sizeof(double)),
               .label = malloc(n * sizeof(int))};
    assert_true(c.score != NULL && c.weight != NULL && c.label != NULL);
    c.view = (pnb_scored){n, c.score, c.label, c.weight};
    return c;
}

/* Labels drawn from s(a * score + b), scores normal, weights uniform in [0.5, 2.5]. */
static inline cases random_cases(size_t n, double a, double b, uint64_t seed)
{
    cases c = new_cases(n);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 5);
    for (size_t i = 0; i < n; i++) {
        c.score[i] = pnb__rng_normal(&rng);
        c.weight[i] = 0.5 + 2.0 * pnb__rng_uniform(&rng);
        c.label[i] = pnb__rng_uniform(&rng) < 1.0 / (1.0 + exp(-(a * c.score[i] + b)));
    }
    return c;
}

static inline void free_cases(cases *c)
{
    free(c->score);
    free(c->weight);
    free(c->label);
}

/* Weighted negative log-likelihood against targets, by the plain definition in long double. */
static inline long double plain_nll(const pnb_scored *d, const double target[2], long double a,
                                    long double b)
{
    long double total = 0.0L;
    for (size_t i = 0; i < d->n; i++) {
        long double z = a * (long double)d->score[i] + b, t = (long double)target[d->label[i]];
        long double log_p = -logl(1.0L + expl(-z)), log_q = -logl(1.0L + expl(z));
        long double w = d->weight != NULL ? (long double)d->weight[i] : 1.0L;
        total -= w * (t * log_p + (1.0L - t) * log_q);
    }
    return total;
}

#endif
