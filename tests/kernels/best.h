/* One call of keep_best, or two that go on: see kernels.h. */
#ifndef PNB_TESTS_KERNELS_BEST_H
#define PNB_TESTS_KERNELS_BEST_H

#include "tests/kernels/harness.h"

#include "kernels/bf16.h"

enum { B_SCORES, B_BEST, B_WHICH, B_N };

typedef struct best_case {
    size_t m, n, gap, kept, split; /* columns before `split` are one call, the others another */
    const unsigned char *only;     /* (n) or NULL */
    uint32_t first;
    bool halves; /* where the table has them; scores are such that they are halves */
} best_case;

/* Scores as halves, at a border of 16 bytes where theirs are; the caller frees *memory, which is
 * malloc's because a device reaches no other. */
static inline const void *best_halves(const float *scores, size_t n, uint16_t **memory)
{
    size_t off;
    *memory = malloc((n + 16) * sizeof **memory);
    assert_non_null(*memory);
    off = (16 - (uintptr_t)*memory % 16 + (uintptr_t)scores % 16) % 16 / sizeof(uint16_t);
    for (size_t i = 0; i < n; i++)
        (*memory)[off + i] = pnb__bf16_of(scores[i]);
    return *memory + off;
}

static inline void best_body(run *r, fixture *x)
{
    const best_case *c = r->user;
    bool halves = c->halves && r->k.halves_of != NULL;
    size_t size = halves ? 2 : r->is_double ? sizeof(double) : sizeof(float);
    size_t n_out = c->m * c->kept;
    uint16_t *memory = NULL;
    const void *scores = P(r, x, B_SCORES);
    if (halves)
        scores = best_halves(scores, c->m * (c->n + c->gap), &memory);
    uint32_t *which = malloc((n_out + 1) * sizeof *which);
    assert_non_null(which);
    memset(which, 0x5a, (n_out + 1) * sizeof *which);
    pnb__best_args a = {.m = c->m,
                        .n = c->split,
                        .ld = c->n + c->gap,
                        .scores = scores,
                        .halves = halves,
                        .only = c->only,
                        .first = c->first,
                        .kept = c->kept,
                        .best = P(r, x, B_BEST),
                        .which = which};
    r->k.keep_best(r->ctx, &a);
    a.goes_on = true;
    a.n = c->n - c->split;
    a.scores = (const char *)scores + c->split * size;
    a.only = c->only != NULL ? c->only + c->split : NULL;
    a.first = c->first + (uint32_t)c->split;
    r->k.keep_best(r->ctx, &a);
    wait_for(&r->k, r->ctx);
    assert_int_equal(which[n_out], 0x5a5a5a5a);
    for (size_t i = 0; i < n_out; i++) {
        double number = which[i] == PNB__BEST_NONE ? -1 : (double)(which[i] - c->first);
        if (r->is_double)
            ((double *)P(r, x, B_WHICH))[i] = number;
        else
            ((float *)P(r, x, B_WHICH))[i] = (float)number;
    }
    free(which);
    free(memory);
}

/* The arrays, scores in steps so that many are equal. */
static inline void best_arrays(fixture *x, const best_case *c, double step)
{
    int scores = input(x, c->m * (c->n + c->gap), -1, 1);
    for (size_t i = 0; i < x->arrays[scores].n; i++)
        x->arrays[scores].init[i] = rint(x->arrays[scores].init[i] / step) * step;
    output(x, c->m * c->kept, false);
    output(x, c->m * c->kept, false);
}

#endif
