/* Which gradients are whole when: a parameter's is once the last backward step that adds to it ran.
 * Whoever sends gradients elsewhere may begin with those while the pass goes on. Counted by the
 * inputs of the nodes, so a parameter that stands in several places is told of once. */
#include "tensor/graph_internal.h"

/* From the last step back: the first time that a parameter is met is the last that adds to it. */
static void list_ready(pnb__graph *g)
{
    bool *is_met = pnb__arena_alloc(&g->arena, g->n_nodes + 1);
    pnb__ready *ready = pnb__arena_alloc(&g->arena, (g->n_nodes + 1) * sizeof *ready);
    size_t n = 0;
    if (is_met == NULL || ready == NULL)
        return; /* nobody is called, which is only later */
    for (size_t s = g->n_steps; s-- > 0;) {
        const pnb__tensor *t = g->steps[s].t;
        for (int i = 0; g->steps[s].kind == PNB__STEP_BACKWARD && i < t->n_in; i++) {
            const pnb__tensor *root = t->in[i] != NULL ? pnb__root_const(t->in[i]) : NULL;
            if (root == NULL || root->param == NULL || !root->needs_grad || is_met[root->index])
                continue;
            is_met[root->index] = true;
            ready[n++] = (pnb__ready){s, root->param};
        }
    }
    for (size_t i = 0; i < n / 2; i++) {
        const pnb__ready other = ready[i];
        ready[i] = ready[n - 1 - i];
        ready[n - 1 - i] = other;
    }
    g->ready = ready;
    g->n_ready = n;
}

void pnb__graph_watch_grads(pnb__graph *g, void (*watch)(void *user, pnb__param *p), void *user)
{
    g->watch = watch;
    g->watch_user = user;
    if (watch != NULL && g->ready == NULL)
        list_ready(g);
}
