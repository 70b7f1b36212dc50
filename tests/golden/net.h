/* A graph over the tensors of a golden case: leaves by the names they have there. */
#ifndef PNB_TESTS_GOLDEN_NET_H
#define PNB_TESTS_GOLDEN_NET_H

#include "adapt/head.h"
#include "tensor/graph.h"
#include "tests/golden/golden.h"

enum { NET_MAX_LEAVES = 64, NET_MAX_OUTPUTS = 24 };

typedef struct golden_net {
    golden_case *c;
    pnb__graph *g;
    struct {
        char name[96];
        pnb__tensor *t;
    } leaves[NET_MAX_LEAVES], outputs[NET_MAX_OUTPUTS];
    int n_leaves, n_outputs;
    pnb_error *err;
} golden_net;

/* A graph of doubles with gradients. Free with net_reset. */
pnb_status net_init(golden_net *net, golden_case *c, pnb_error *err);
void net_reset(golden_net *net);
/* The tensor of the case as a leaf with a gradient; the same leaf for the same name. NULL and an
 * error where the case has none. */
pnb__tensor *net_leaf(golden_net *net, const char *name);
pnb__tensor *net_scalar(golden_net *net, const char *name); /* one number as () */
/* Layers param.PREFIX.i.weight and .bias for the numbers in `at`, -1 at the end. */
pnb__head net_head(golden_net *net, const char *prefix, const int *at);
/* Gives t as this output of the case after the run. */
void net_output(golden_net *net, const char *name, pnb__tensor *t);
pnb_status net_plan(golden_net *net, pnb__tensor *loss);
pnb_status net_write(const golden_net *net); /* the leaves' values */
/* Runs, and gives outputs; and gradients as "grad.<prefix><name>",
 * `prefix` in place of the "param." that a name may begin with. */
pnb_status net_give(golden_net *net, const char *prefix);
pnb_status net_finish(golden_net *net, const char *prefix);                 /* writes and gives */
pnb_status net_run(golden_net *net, pnb__tensor *loss, const char *prefix); /* all three */

/* "similarity": cosine of all n rows of x with all of y, (n,dim) each. */
void golden_give_cosines(golden_case *c, const double *x, const double *y, size_t n, size_t dim);
/* ProbVLM's cases of the family adapters: case_probvlm.c */
pnb_status golden_case_probvlm(golden_case *c, pnb_error *err);

#endif
