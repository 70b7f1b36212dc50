/* A loss in a graph of doubles against a plain function of the same numbers, and its gradients
 * against central differences of that function. */
#ifndef TESTS_ADAPT_LOSS_CASE_H
#define TESTS_ADAPT_LOSS_CASE_H

#include "tests/adapt/world.h"

#include "tensor/graph.h"

enum { LOSS_MAX_LEAVES = 8, LOSS_MAX_NUMBERS = 256 };

/* Leaves lie one after the other in the numbers that `value` reads. */
typedef struct loss_case {
    size_t n_leaves, rank[LOSS_MAX_LEAVES], shape[LOSS_MAX_LEAVES][2];
    pnb__tensor *(*build)(pnb__graph *g, pnb__tensor *const *leaf);
    double (*value)(const double *x);
    void (*fill)(void);     /* writes the inputs that `build` made beside the leaves; or NULL */
    double step, tolerance; /* of the differences */
} loss_case;

static inline size_t leaf_size(const loss_case *c, size_t i)
{
    size_t n = 1;
    for (size_t k = 0; k < c->rank[i]; k++)
        n *= c->shape[i][k];
    return n;
}

static inline void require_loss(const loss_case *c, double *x)
{
    pnb_ctx *ctx = make_ctx();
    pnb__graph *g = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb__tensor *leaf[LOSS_MAX_LEAVES];
    double grad[LOSS_MAX_NUMBERS];
    size_t at = 0;
    assert_ok(pnb__graph_create(&g, ctx, PNB__F64, true, &err), &err);
    for (size_t i = 0; i < c->n_leaves; i++) {
        leaf[i] = pnb__input_with_grad(g, (int)c->rank[i], c->shape[i]);
        pnb__keep_grad(leaf[i]);
    }
    pnb__tensor *loss = c->build(g, leaf);
    pnb__keep(loss);
    assert_ok(pnb__graph_plan(g, loss, &err), &err);
    for (size_t i = 0; i < c->n_leaves; at += leaf_size(c, i++))
        pnb__write_f64(leaf[i], x + at);
    if (c->fill != NULL)
        c->fill();
    assert_ok(pnb__graph_run(g, &err), &err);
    require_near(pnb__read_scalar(loss), c->value(x), 1e-11, "loss");
    at = 0;
    for (size_t i = 0; i < c->n_leaves; at += leaf_size(c, i++)) {
        assert_true(pnb__read_grad_f64(leaf[i], grad));
        for (size_t k = 0; k < leaf_size(c, i); k++) {
            double kept = x[at + k];
            x[at + k] = kept + c->step;
            double up = c->value(x);
            x[at + k] = kept - c->step;
            double wanted = (up - c->value(x)) / (2 * c->step);
            x[at + k] = kept;
            if (!(fabs(grad[k] - wanted) <= c->tolerance * fmax(1, fabs(wanted))))
                fail_msg("leaf %zu, number %zu: gradient %.9g, wanted %.9g", i, k, grad[k], wanted);
        }
    }
    pnb__graph_free(g);
    pnb_ctx_free(ctx);
}

/* n numbers around `middle`. */
static inline void draw(double *x, size_t n, double middle, double spread, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < n; i++)
        x[i] = middle + spread * pnb__rng_normal(&rng);
}

#endif
