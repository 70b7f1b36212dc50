/* Planning: which steps run, in which order, and where every value lives.
 *
 * Forward steps are the needed nodes in building order; backward steps the same nodes reversed.
 * Every buffer has a life (first step, last step); two buffers may share bytes when their lives do
 * not meet. Three things keep the arena small:
 *   - a value marked `recompute` (LayerNorm output, activation) is dropped after its forward use
 *     and made again just before backward reads it (Chen et al. 2016, on single cheap nodes, and on
 *     whole blocks where segments are marked: then everything but the block's result);
 *   - an element-wise result takes its input's place when nobody needs the input any more;
 *   - where the gradient of an input equals the gradient of the output (residual connections), the
 *     input takes over the buffer instead of a copy.
 * Gradients of weights are planned like all others (born late for early layers, when most
 * activations are dead), unless the owner gave a store for accumulation. */
#include "base/grow.h"
#include "tensor/graph_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, LAST_STEP = 1 << 30 };

/* On failure the graph's error is set and NO_BUFFER comes back; plan checks the error once. */
static int new_buffer(pnb__graph *g, size_t bytes)
{
    if (PNB_GROW(g->buffers, g->buffers_capacity, g->n_buffers + 1, NULL) != PNB_OK) {
        pnb__node_fail(g, PNB_NOMEM, "out of memory while planning a graph");
        return PNB__NO_BUFFER;
    }
    size_t rounded = (PNB_MAX(bytes, (size_t)1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    g->buffers[g->n_buffers] = (pnb__buffer){rounded, 0, -1, -1};
    return (int)g->n_buffers++;
}

static void touch(pnb__graph *g, int buffer, int step)
{
    if (buffer == PNB__NO_BUFFER)
        return;
    pnb__buffer *b = &g->buffers[buffer];
    if (b->first < 0 || step < b->first)
        b->first = step;
    if (step > b->last)
        b->last = step;
}

static int add_step(pnb__graph *g, pnb__step_kind kind, pnb__tensor *t)
{
    if (PNB_GROW(g->steps, g->steps_capacity, g->n_steps + 1, NULL) != PNB_OK) {
        pnb__node_fail(g, PNB_NOMEM, "out of memory while planning a graph");
        return 0;
    }
    g->steps[g->n_steps] = (pnb__step){kind, t};
    return (int)g->n_steps++;
}

static size_t value_bytes(const pnb__tensor *t)
{
    return t->n * pnb__elem_bytes(t);
}

/* Marks what the loss and the kept tensors depend on; leaves always have a place. */
static void mark_needed(pnb__graph *g)
{
    for (size_t i = g->n_nodes; i-- > 0;) {
        pnb__tensor *t = g->nodes[i];
        assert(t != NULL);
        if (t == g->loss || t->keep || t->op == NULL)
            t->needed = true;
        for (int j = 0; t->needed && j < t->n_in; j++)
            if (t->in[j] != NULL)
                t->in[j]->needed = true;
    }
}

/* A tensor has a gradient when it depends on a wanted leaf and the loss depends on it. */
static void mark_gradients(pnb__graph *g)
{
    if (!g->with_grad || g->loss == NULL)
        return;
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        t->needs_grad = t->op == NULL && t->wants_grad;
        for (int j = 0; t->op != NULL && t->op->backward != NULL && j < t->n_in; j++)
            if (t->in[j] != NULL && t->in[j]->needs_grad)
                t->needs_grad = true;
    }
    bool loss_needs = g->loss->needs_grad;
    for (size_t i = 0; i < g->n_nodes; i++) /* from here grad_started means "the loss sees it" */
        g->nodes[i]->grad_started = g->nodes[i] == g->loss && loss_needs;
    for (size_t i = g->n_nodes; i-- > 0;) {
        pnb__tensor *t = g->nodes[i];
        t->needs_grad = t->needs_grad && t->grad_started;
        for (int j = 0; t->needs_grad && j < t->n_in; j++)
            if (t->in[j] != NULL && t->in[j]->needs_grad)
                t->in[j]->grad_started = true;
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        t->grad_started = false;
        pnb__tensor *root = pnb__root(t);
        if (t != root && t->needs_grad) {
            root->needs_grad = true;
            root->has_partial_views |= t->n != root->n;
        }
    }
}

static void touch_value(pnb__graph *g, const pnb__tensor *t, int step)
{
    const pnb__tensor *root = pnb__root_const(t);
    touch(g, root->is_recomputed ? root->again_buffer : root->buffer, step);
}

static void plan_leaves(pnb__graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (!t->is_input)
            continue;
        t->buffer = new_buffer(g, value_bytes(t));
        touch(g, t->buffer, 0);
        touch(g, t->buffer, LAST_STEP);
    }
}

static void plan_forward(pnb__graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (t->op == NULL || !t->needed || t->view_of != NULL)
            continue;
        int step = add_step(g, PNB__STEP_FORWARD, t);
        t->buffer = new_buffer(g, value_bytes(t));
        touch(g, t->buffer, step);
        for (int j = 0; j < PNB__MAX_AUX; j++) {
            if (t->aux_bytes[j] == 0)
                continue;
            t->aux_buffer[j] = new_buffer(g, t->aux_bytes[j]);
            touch(g, t->aux_buffer[j], step);
        }
        if (t->work_bytes > 0) {
            t->work_buffer = new_buffer(g, t->work_bytes);
            touch(g, t->work_buffer, step);
        }
        for (int j = 0; j < t->n_in; j++)
            if (t->in[j] != NULL)
                touch_value(g, t->in[j], step);
        g->flops += t->flops;
    }
}

static void touch_aux(pnb__graph *g, const pnb__tensor *t, int step)
{
    bool again = t->recompute_all && t->is_recomputed;
    for (int j = 0; j < PNB__MAX_AUX; j++)
        touch(g, again ? t->aux_again_buffer[j] : t->aux_buffer[j], step);
}

/* A node of a segment runs forward as if for the first time: it needs places for its aux and its
 * workspace too. */
static void prepare_forward_again(pnb__graph *g, pnb__tensor *t, int step)
{
    for (int j = 0; j < PNB__MAX_AUX; j++)
        if (t->aux_bytes[j] > 0)
            t->aux_again_buffer[j] = new_buffer(g, t->aux_bytes[j]);
    if (t->work_bytes > 0)
        t->work_again_buffer = new_buffer(g, t->work_bytes);
    touch(g, t->work_again_buffer, step);
    g->flops += t->flops;
}

/* Makes the value of t's root readable at the next step: recomputes it if it was dropped. */
static void ensure_value(pnb__graph *g, pnb__tensor *t)
{
    pnb__tensor *root = pnb__root(t);
    if (!(root->recompute || root->recompute_all) || root->keep || root->is_recomputed)
        return;
    unsigned reads = root->recompute_all ? ~0U : root->recompute_in;
    for (int j = 0; j < root->n_in; j++)
        if ((reads >> j & 1U) && root->in[j] != NULL)
            ensure_value(g, root->in[j]);
    int step = add_step(g, PNB__STEP_RECOMPUTE, root);
    for (int j = 0; j < root->n_in; j++)
        if ((reads >> j & 1U) && root->in[j] != NULL)
            touch_value(g, root->in[j], step);
    if (root->recompute_all)
        prepare_forward_again(g, root, step);
    root->again_buffer = new_buffer(g, value_bytes(root));
    root->is_recomputed = true;
    touch(g, root->again_buffer, step);
    touch_aux(g, root, step);
}

/* Decides where the gradient of input j goes: a fresh buffer, the output's buffer, or an addition
 * to what is there. Returns after the step list is ready for t's backward step. */
static void prepare_input_grad(pnb__graph *g, pnb__tensor *t, int j)
{
    pnb__tensor *root = pnb__root(t->in[j]);
    bool external = root->param != NULL && root->param->grad_store != NULL;
    bool partial = root->has_partial_views || (t->zeroed_in >> j & 1U) != 0;
    t->acc_in[j] = external || partial || root->grad_started;
    if (root->grad_started || external) {
        root->grad_started = true;
        return;
    }
    root->grad_started = true;
    if (t->steals == j && !partial && root->n == t->n && root->param == NULL && !root->keep_grad &&
        !t->keep_grad) {
        root->grad_buffer = t->grad_buffer;
        return;
    }
    root->grad_buffer = new_buffer(g, value_bytes(root));
    if (partial)
        touch(g, root->grad_buffer, add_step(g, PNB__STEP_ZERO, root));
}

/* A product costs its forward again for every factor that wants a gradient; attention also computes
 * its scores again. */
static double backward_flops(const pnb__tensor *t)
{
    if (t->op == &pnb__ops[PNB__OP_ATTENTION])
        return 2.5 * t->flops;
    double n_factors = 0;
    for (int j = 0; j < 2 && j < t->n_in; j++)
        n_factors += t->in[j] != NULL && t->in[j]->needs_grad;
    return n_factors * t->flops;
}

static void read_back(pnb__graph *g, pnb__tensor *t, int step)
{
    pnb__root(t)->read_back = true;
    touch_value(g, t, step);
}

static void plan_backward_node(pnb__graph *g, pnb__tensor *t)
{
    for (int j = 0; j < t->n_in; j++)
        if (t->in[j] != NULL && (t->saves_in >> j & 1U))
            ensure_value(g, t->in[j]);
    if (t->saves_out || (t->recompute_all && t->aux_bytes[0] > 0))
        ensure_value(g, t);
    for (int j = 0; j < t->n_in; j++)
        if (t->in[j] != NULL && t->in[j]->needs_grad)
            prepare_input_grad(g, t, j);
    int step = add_step(g, PNB__STEP_BACKWARD, t);
    for (int j = 0; j < t->n_in; j++) {
        if (t->in[j] == NULL)
            continue;
        if (t->saves_in >> j & 1U)
            read_back(g, t->in[j], step);
        const pnb__tensor *root = pnb__root(t->in[j]);
        if (t->in[j]->needs_grad)
            touch(g, root->grad_buffer, step);
        if (root->param != NULL || root->keep_grad)
            touch(g, root->grad_buffer, LAST_STEP);
    }
    g->flops += backward_flops(t);
    if (t->saves_out)
        read_back(g, t, step);
    touch_aux(g, t, step);
    touch(g, t->grad_buffer, step);
    if (t->work_bwd_bytes > 0) {
        t->work_bwd_buffer = new_buffer(g, t->work_bwd_bytes);
        touch(g, t->work_bwd_buffer, step);
    }
}

static void plan_backward(pnb__graph *g)
{
    if (g->loss == NULL || !g->loss->needs_grad)
        return;
    pnb__tensor *loss = pnb__root(g->loss);
    loss->grad_buffer = new_buffer(g, value_bytes(loss));
    loss->grad_started = true;
    touch(g, loss->grad_buffer, add_step(g, PNB__STEP_SEED, loss));
    for (size_t i = g->n_nodes; i-- > 0;) {
        pnb__tensor *t = g->nodes[i];
        if (t->op == NULL || t->view_of != NULL || !t->needs_grad || !t->needed)
            continue;
        plan_backward_node(g, t);
    }
}

static void plan_kept(pnb__graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (t->keep || t == g->loss)
            touch_value(g, t, LAST_STEP);
    }
}

/* Another input that shows part of the same memory would be overwritten while it is read. */
static bool overlaps_other_input(const pnb__tensor *t, const pnb__tensor *input)
{
    for (int j = 0; j < t->n_in; j++)
        if (j != t->inplace_in && t->in[j] != NULL && pnb__root(t->in[j]) == input)
            return true;
    return false;
}

/* A kernel may round otherwise when it writes over an input. So that segments keep the bits, a
 * value that would live on for backward without them is not written over. */
static bool lives_on_without_segments(const pnb__tensor *t)
{
    return t->recompute_all && !t->recompute && t->read_back;
}

static bool may_take_place(const pnb__tensor *t, const pnb__tensor *input)
{
    return input->op != NULL && input->n == t->n && input->kind == t->kind &&
           input->is_half == t->is_half && !overlaps_other_input(t, input) &&
           !lives_on_without_segments(input);
}

/* Lets a result take the place of an input whose life ends at that very step. */
static void merge_in_place(pnb__graph *g)
{
    for (size_t s = 0; s < g->n_steps && g->steps[s].kind == PNB__STEP_FORWARD; s++) {
        pnb__tensor *t = g->steps[s].t;
        if (t->inplace_in < 0 || t->in[t->inplace_in] == NULL)
            continue;
        pnb__tensor *input = pnb__root(t->in[t->inplace_in]);
        if (!may_take_place(t, input))
            continue;
        pnb__buffer *from = &g->buffers[t->buffer], *to = &g->buffers[input->buffer];
        if (to->last != (int)s)
            continue;
        to->last = PNB_MAX(to->last, from->last);
        from->bytes = 0;
        t->buffer = input->buffer;
        t->is_in_place = true;
    }
}

static int by_size_descending(const void *a, const void *b)
{
    const pnb__buffer *x = *(pnb__buffer *const *)a, *y = *(pnb__buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x < y ? -1 : x > y);
}

static bool lives_meet(const pnb__buffer *a, const pnb__buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Big buffers first, each at the lowest offset free during its whole life. */
static bool place_buffers(pnb__graph *g)
{
    size_t n = 0;
    pnb__buffer **order = pnb__alloc_array(2 * g->n_buffers + 1, sizeof *order);
    if (order == NULL)
        return pnb__node_fail(g, PNB_NOMEM, "out of memory while planning a graph");
    pnb__buffer **placed = order + g->n_buffers; /* by offset */
    for (size_t i = 0; i < g->n_buffers; i++)
        if (g->buffers[i].bytes > 0 && g->buffers[i].first >= 0)
            order[n++] = &g->buffers[i];
    qsort(order, n, sizeof(pnb__buffer *), by_size_descending);
    for (size_t i = 0; i < n; i++) {
        pnb__buffer *b = order[i];
        size_t offset = 0;
        for (size_t j = 0; j < i; j++) {
            if (!lives_meet(b, placed[j]))
                continue;
            if (placed[j]->offset >= offset + b->bytes)
                break;
            offset = PNB_MAX(offset, placed[j]->offset + placed[j]->bytes);
        }
        b->offset = offset;
        size_t at = i;
        for (; at > 0 && placed[at - 1]->offset > offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = b;
        g->memory_bytes = PNB_MAX(g->memory_bytes, offset + b->bytes);
    }
    pnb__free(order);
    return true;
}

static void *place(const pnb__graph *g, int buffer)
{
    if (buffer == PNB__NO_BUFFER || g->buffers[buffer].first < 0)
        return NULL;
    return g->memory + g->buffers[buffer].offset;
}

static void set_pointers(pnb__graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        t->first_data = t->data = place(g, t->buffer);
        t->again_data = place(g, t->again_buffer);
        for (int j = 0; j < PNB__MAX_AUX; j++) {
            t->first_aux[j] = t->aux[j] = place(g, t->aux_buffer[j]);
            t->again_aux[j] = place(g, t->aux_again_buffer[j]);
        }
        t->first_work = t->work = place(g, t->work_buffer);
        t->again_work = place(g, t->work_again_buffer);
        t->work_bwd = place(g, t->work_bwd_buffer);
        bool external = t->param != NULL && t->param->grad_store != NULL;
        t->grad = external ? t->param->grad_store : place(g, t->grad_buffer);
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        for (int j = 0; j < t->n_in; j++) {
            if (t->in[j] == NULL || !t->in[j]->needs_grad)
                continue;
            size_t offset = 0;
            for (const pnb__tensor *v = t->in[j]; v->view_of != NULL; v = v->view_of)
                offset += v->view_offset;
            unsigned char *grad = pnb__root(t->in[j])->grad;
            t->d_in[j] = grad == NULL ? NULL : grad + offset * pnb__elem_bytes(t->in[j]);
        }
    }
}

static void write_constants(pnb__graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->is_constant)
            pnb__write_f64(g->nodes[i], &g->nodes[i]->constant);
}

static void take_memory(pnb__graph *g)
{
    void *memory = NULL;
    g->memory_bytes = PNB_MAX(g->memory_bytes, (size_t)ALIGNMENT);
    if (g->kernels.mem_alloc(g->ctx, &memory, g->memory_bytes, &g->error) != PNB_OK)
        return;
    g->memory = memory;
    set_pointers(g);
    write_constants(g);
}

static bool check_loss(pnb__graph *g, const pnb__tensor *loss)
{
    if (loss == NULL || loss->n == 1)
        return true;
    char text[96];
    return pnb__node_fail(g, PNB_SHAPE, "the loss has shape %s, it must have one element",
                          pnb__shape_text(loss, text));
}

pnb_status pnb__graph_plan(pnb__graph *g, pnb__tensor *loss, pnb_error *err)
{
    if (g->planned)
        return pnb__fail(err, PNB_ARG, "the graph is already planned");
    if (g->error.status == PNB_OK && check_loss(g, loss)) {
        g->loss = loss;
        mark_needed(g);
        mark_gradients(g);
        pnb__graph_mark_halves(g);
        plan_leaves(g);
        plan_forward(g);
        plan_backward(g);
        if (g->error.status == PNB_OK) {
            plan_kept(g);
            merge_in_place(g);
            place_buffers(g);
        }
    }
    if (g->error.status == PNB_OK && !g->only_plans)
        take_memory(g);
    if (g->error.status != PNB_OK)
        return pnb__fail(err, g->error.status, "%s", g->error.text);
    g->planned = !g->only_plans;
    return PNB_OK;
}

double pnb__graph_flops(const pnb__graph *g)
{
    return g->flops;
}
