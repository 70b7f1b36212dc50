/* Values in bfloat16 between ops that round them anyway: in training, and where that is faster.
 *
 * A product with a weight in bfloat16 rounds its other factor. Where all who read a value are such
 * products, the value may be rounded by who makes it: the same bits in half the memory, and no pass
 * of its own for rounding. Attention of a graph whose projections are such products takes its q, k
 * and v in bfloat16 as well, and where bfloat16 is multiplied (a GPU, AVX512-BF16, AMX) its
 * products are rounded like theirs (autocast in PyTorch does the same). Only what nobody keeps or
 * sees a part of.
 *
 * In training with rounded products the same values are kept for backward in half the memory, and
 * their gradients are bfloat16 too: each comes from one product or from attention, and goes to
 * another, to LayerNorm or to attention. So there they have one reader each, and no gradient is
 * added to another in halves. Gradients of weights and of the stream stay floats. */
#include "tensor/graph_internal.h"

static bool is_op(const pnb__tensor *t, pnb__op_id id)
{
    return t->op == &pnb__ops[id];
}

/* Can the op write its result as halves? Attention is asked for as a whole: see may_attend. */
static bool makes_halves(const pnb__tensor *t)
{
    return is_op(t, PNB__OP_LAYERNORM) || (is_op(t, PNB__OP_LINEAR) && pnb__linear_makes_halves(t));
}

static bool is_product_of(const pnb__tensor *reader, int input)
{
    return is_op(reader, PNB__OP_LINEAR) && pnb__linear_reads_halves(reader, input);
}

/* Is every use of t one that `reader` (NULL: any product) makes of halves? */
static bool is_read_by(const pnb__graph *g, const pnb__tensor *t, const pnb__tensor *reader)
{
    size_t n_uses = 0;
    if (t->keep || t->keep_grad || t == g->loss || t->view_of != NULL || !t->needed)
        return false;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const pnb__tensor *r = g->nodes[i];
        for (int j = 0; j < r->n_in; j++) {
            if (r->in[j] != t)
                continue;
            if (r->view_of != NULL || (reader != NULL ? r != reader : !is_product_of(r, j)))
                return false;
            n_uses += r->needed;
        }
    }
    return g->with_grad ? n_uses == 1 : n_uses > 0;
}

/* Attention whose values come from products, and whose result goes to products. */
static bool may_attend(const pnb__graph *g, const pnb__tensor *t)
{
    if (!is_op(t, PNB__OP_ATTENTION) || !t->needed ||
        pnb__attention_head_dim(t) > g->kernels.halves_head_dim || !is_read_by(g, t, NULL))
        return false;
    for (int j = 0; j < t->n_in; j++) {
        const pnb__tensor *x = t->in[j];
        if (x != NULL && x->kind == PNB__REAL &&
            !(is_op(x, PNB__OP_LINEAR) && makes_halves(x) && is_read_by(g, x, t)))
            return false;
    }
    return true;
}

void pnb__graph_mark_halves(pnb__graph *g)
{
    const pnb__kernels *k = &g->kernels;
    /* a pass of training without gradients must see what the one with them sees */
    if (k->halves_head_dim == 0 || k->real != PNB__F32 || !(k->halves_gain || g->rounds_products))
        return;
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (t->op == NULL)
            continue;
        if (makes_halves(t) && is_read_by(g, t, NULL))
            t->is_half = true;
        if (!may_attend(g, t))
            continue;
        t->is_half = true;
        for (int j = 0; j < t->n_in; j++)
            if (t->in[j] != NULL && t->in[j]->kind == PNB__REAL)
                t->in[j]->is_half = true;
    }
    for (size_t i = 0; i < g->n_nodes; i++) /* what is in halves is not rounded any more */
        if (g->nodes[i]->op != NULL && is_op(g->nodes[i], PNB__OP_LINEAR))
            pnb__linear_reserve(g->nodes[i]);
}
