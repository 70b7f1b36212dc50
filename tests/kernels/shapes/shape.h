/* One random call of a slot: sizes, flags and values all follow from its seed. Sizes are drawn so
 * that each power of two is as likely as the next, from the least on: 0 and 1 come up, multiples of
 * what a loop unrolls by seldom. */
#ifndef PNB_TESTS_KERNELS_SHAPES_SHAPE_H
#define PNB_TESTS_KERNELS_SHAPES_SHAPE_H

#include "tests/kernels/harness.h"

#include "kernels/bf16.h"

typedef struct shape {
    pnb__rng rng;
    uint64_t seed;
    bool is_large;
    int32_t *ids[4]; /* of whole_numbers; freed by who made the shape */
    size_t n_ids, n_text;
    char text[700]; /* what was drawn, for the message of a failure */
} shape;

static inline void note(shape *s, const char *name, double value)
{
    int n = snprintf(s->text + s->n_text, sizeof s->text - s->n_text, " %s %g", name, value);
    if (n > 0 && s->n_text + (size_t)n < sizeof s->text)
        s->n_text += (size_t)n;
}

/* least and more, below `least` and `small`, or `large` in a large shape. */
static inline size_t size_from(shape *s, const char *name, size_t least, size_t small, size_t large)
{
    double most = (double)(s->is_large ? large : small) + 1;
    size_t n = least + (size_t)exp(pnb__rng_uniform(&s->rng) * log(most)) - 1;
    note(s, name, (double)n);
    return n;
}

static inline size_t one_of(shape *s, const char *name, size_t n)
{
    size_t which = (size_t)pnb__rng_below(&s->rng, n);
    note(s, name, (double)which);
    return which;
}

static inline bool flag(shape *s, const char *name)
{
    return one_of(s, name, 2) == 1;
}

/* n numbers in 0..below-1 */
static inline int32_t *whole_numbers(shape *s, size_t n, size_t below)
{
    int32_t *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    assert_true(s->n_ids < PNB_COUNT(s->ids));
    for (size_t i = 0; i < n; i++)
        x[i] = (int32_t)pnb__rng_below(&s->rng, below);
    return s->ids[s->n_ids++] = x;
}

static inline fixture fixture_of(const shape *s, double abs_tol, double rel_tol)
{
    fixture x;
    fixture_init(&x, 1000 + s->seed, abs_tol, rel_tol);
    return x;
}

/* Values of an array moved to multiples of `step`: equal ones, and sums that are exact. */
static inline void make_coarse(fixture *x, int which, double step)
{
    for (size_t i = 0; i < x->arrays[which].n; i++)
        x->arrays[which].init[i] = rint(x->arrays[which].init[i] / step) * step;
}

static inline void make_signs(fixture *x, int which, double low, double high)
{
    for (size_t i = 0; i < x->arrays[which].n; i++) {
        double v = x->arrays[which].init[i];
        x->arrays[which].init[i] =
            (double)(float)((v < 0 ? -1 : 1) * (low + (high - low) * fabs(v)));
    }
}

/* ---- arrays as the table at hand has them ---- */

static inline size_t real_size(const run *r)
{
    return r->is_double ? sizeof(double) : sizeof(float);
}

static inline char *moved(const run *r, void *p, size_t n)
{
    return (char *)p + n * real_size(r);
}

static inline void put_real(const run *r, void *p, size_t i, double value)
{
    if (r->is_double)
        ((double *)p)[i] = value;
    else
        ((float *)p)[i] = (float)value;
}

/* Floats rounded to bfloat16; the caller frees. */
static inline uint16_t *halves_of(const void *floats, size_t n)
{
    uint16_t *to = malloc((n + 1) * sizeof *to);
    assert_non_null(to);
    for (size_t i = 0; i < n; i++)
        to[i] = pnb__bf16_of(((const float *)floats)[i]);
    return to;
}

/* What a slot left in halves, put into the array of floats that the test compares. */
static inline void widen(const run *r, uint16_t *halves, size_t n, void *floats)
{
    wait_for(&r->k, r->ctx);
    for (size_t i = 0; i < n; i++)
        ((float *)floats)[i] = pnb__bf16_widen(halves[i]);
    free(halves);
}

#endif
