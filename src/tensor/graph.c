/* Building a graph: nodes, leaves and the sticky error.
 *
 * A node is made by its op's public function (ops/), which passes through pnb__node below: inputs
 * are checked for NULL, attributes copied into the graph's arena, the op's shape rule run. After
 * the first error every further node is NULL, so a model can be written without checks.
 * Planning is plan.c, running is run.c. */
#include "base/grow.h"
#include "tensor/graph_internal.h"

#include <string.h>

const pnb__op pnb__ops[PNB__N_OPS] = {
#define PNB__OP(NAME, name)                                                                        \
    {#name, pnb__op_##name##_shape, pnb__op_##name##_forward, pnb__op_##name##_backward},
#define PNB__OP_NO_GRAD(NAME, name) {#name, pnb__op_##name##_shape, pnb__op_##name##_forward, NULL},
#include "tensor/ops.def"
#undef PNB__OP
#undef PNB__OP_NO_GRAD
};

pnb_status pnb__graph_create(pnb__graph **out, const pnb_ctx *ctx, pnb__real real, bool with_grad,
                             pnb_error *err)
{
    *out = NULL;
    pnb__graph *g = pnb__alloc_zero(1, sizeof *g);
    if (g == NULL)
        return pnb__fail_nomem(err, sizeof *g);
    g->ctx = ctx;
    g->with_grad = with_grad;
    pnb__kernels_fill(&g->kernels, ctx, real);
    pnb__arena_init(&g->arena, 64 * 1024);
    *out = g;
    return PNB_OK;
}

void pnb__graph_free(pnb__graph *g)
{
    if (g == NULL)
        return;
    if (g->recorded != NULL)
        g->kernels.record_free(g->ctx, g->recorded);
    if (g->memory != NULL)
        g->kernels.mem_free(g->ctx, g->memory, g->memory_bytes);
    pnb__arena_free(&g->arena);
    pnb__free(g->nodes);
    pnb__free(g->steps);
    pnb__free(g->buffers);
    pnb__free(g);
}

bool pnb__graph_has_grad(const pnb__graph *g)
{
    return g->with_grad;
}

void pnb__graph_freeze(pnb__graph *g)
{
    g->is_frozen = true;
}

bool pnb__graph_is_frozen(const pnb__graph *g)
{
    return g->is_frozen;
}

void pnb__graph_only_plan(pnb__graph *g)
{
    g->only_plans = true;
}

void pnb__graph_set_checkpointing(pnb__graph *g, bool on)
{
    g->checkpointing = on;
}

void pnb__graph_round_products(pnb__graph *g, bool on)
{
    g->rounds_products = on;
}

size_t pnb__segment_begin(const pnb__graph *g)
{
    return g->n_nodes;
}

void pnb__segment_end(pnb__graph *g, size_t begin, const pnb__tensor *result)
{
    if (!g->checkpointing || !g->with_grad || result == NULL)
        return;
    for (size_t i = begin; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (t->op != NULL && t->view_of == NULL && t != pnb__root_const(result))
            t->recompute_all = true;
    }
}

bool pnb__node_fail(pnb__graph *g, pnb_status status, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pnb__fail(&g->error, status, "%s", text);
    return false;
}

/* A zeroed tensor registered with the graph; NULL records NOMEM. */
static pnb__tensor *new_tensor(pnb__graph *g, pnb__kind kind)
{
    if (g->error.status != PNB_OK)
        return NULL;
    if (g->planned) {
        pnb__node_fail(g, PNB_ARG, "the graph is already planned; build a new one");
        return NULL;
    }
    pnb__tensor *t = pnb__arena_alloc(&g->arena, sizeof *t);
    if (t == NULL || PNB_GROW(g->nodes, g->nodes_capacity, g->n_nodes + 1, NULL) != PNB_OK) {
        pnb__node_fail(g, PNB_NOMEM, "out of memory while building a graph of %zu nodes",
                       g->n_nodes);
        return NULL;
    }
    t->graph = g;
    t->kind = kind;
    t->index = (int)g->n_nodes;
    t->inplace_in = t->steals = -1;
    t->buffer = t->again_buffer = t->work_buffer = t->work_again_buffer = t->work_bwd_buffer =
        t->grad_buffer = PNB__NO_BUFFER;
    for (int i = 0; i < PNB__MAX_AUX; i++)
        t->aux_buffer[i] = t->aux_again_buffer[i] = PNB__NO_BUFFER;
    g->nodes[g->n_nodes++] = t;
    return t;
}

void pnb__set_shape(pnb__tensor *t, int n_dims, const size_t *shape)
{
    t->n_dims = n_dims;
    t->n = 1;
    for (int i = 0; i < n_dims; i++) {
        t->shape[i] = shape[i];
        if (pnb__mul_overflows(t->n, shape[i], &t->n))
            pnb__node_fail(t->graph, PNB_SHAPE, "a tensor has more elements than memory can hold");
    }
}

void pnb__same_shape(pnb__tensor *t, const pnb__tensor *like)
{
    pnb__set_shape(t, like->n_dims, like->shape);
}

/* A weight in a smaller type is readable as the weight of a linear only, whole or by a view. */
static bool check_stored_inputs(pnb__tensor *t)
{
    for (int i = 0; i < t->n_in; i++) {
        const pnb__param *p = t->in[i] != NULL ? pnb__root(t->in[i])->param : NULL;
        bool is_weight = t->op == &pnb__ops[PNB__OP_LINEAR] && i == 1;
        if (p != NULL && p->store != PNB__STORE_REAL && !is_weight && t->view_of != t->in[i])
            return pnb__node_fail(t->graph, PNB_UNSUPPORTED,
                                  "%s is stored in %d bits, %s cannot read it", p->name,
                                  p->store == PNB__STORE_I8 ? 8 : 16, t->op->name);
    }
    return true;
}

pnb__tensor *pnb__node(pnb__graph *g, pnb__op_id id, pnb__tensor *const *in, int n_in,
                       const void *attrs, size_t attrs_bytes)
{
    pnb__tensor *t = new_tensor(g, PNB__REAL);
    if (t == NULL)
        return NULL;
    t->op = &pnb__ops[id];
    t->n_in = n_in;
    memcpy(t->in, in, (size_t)n_in * sizeof *in);
    if (attrs_bytes > 0) {
        t->attrs = pnb__arena_alloc(&g->arena, attrs_bytes);
        if (t->attrs == NULL) {
            pnb__node_fail(g, PNB_NOMEM, "out of memory while building a graph");
            return NULL;
        }
        memcpy(t->attrs, attrs, attrs_bytes);
    }
    for (int i = 0; i < n_in; i++) {
        if (t->in[i] != NULL && t->in[i]->graph != g) {
            pnb__node_fail(g, PNB_ARG, "%s: an input belongs to another graph", t->op->name);
            return NULL;
        }
    }
    if (!t->op->shape(t) || g->error.status != PNB_OK || !check_stored_inputs(t))
        return NULL;
    return t;
}

static bool shape_in_range(pnb__graph *g, int n_dims, const size_t *shape)
{
    if (n_dims < 0 || n_dims > PNB__DIMS)
        return pnb__node_fail(g, PNB_SHAPE, "a tensor has %d dimensions, the limit is %d", n_dims,
                              PNB__DIMS);
    return n_dims == 0 || shape != NULL;
}

pnb__tensor *pnb__input(pnb__graph *g, pnb__kind kind, int n_dims, const size_t *shape)
{
    if (!shape_in_range(g, n_dims, shape))
        return NULL;
    pnb__tensor *t = new_tensor(g, kind);
    if (t == NULL)
        return NULL;
    t->is_input = true;
    pnb__set_shape(t, n_dims, shape);
    return g->error.status == PNB_OK ? t : NULL;
}

pnb__tensor *pnb__input_with_grad(pnb__graph *g, int n_dims, const size_t *shape)
{
    pnb__tensor *t = pnb__input(g, PNB__REAL, n_dims, shape);
    if (t != NULL) {
        t->wants_grad = true;
        t->keep_grad = true;
    }
    return t;
}

pnb__tensor *pnb__param_tensor(pnb__graph *g, pnb__param *p)
{
    if (p == NULL)
        return NULL;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->param == p)
            return g->nodes[i];
    pnb__tensor *t = new_tensor(g, PNB__REAL);
    if (t == NULL)
        return NULL;
    t->param = p;
    t->wants_grad = p->trainable && !g->is_frozen;
    pnb__set_shape(t, p->n_dims, p->shape);
    return t;
}

pnb__tensor *pnb__constant(pnb__graph *g, double value)
{
    pnb__tensor *t = pnb__input(g, PNB__REAL, 0, NULL);
    if (t != NULL) {
        t->is_constant = true;
        t->constant = value;
    }
    return t;
}

void pnb__keep(pnb__tensor *t)
{
    if (t != NULL)
        pnb__root(t)->keep = t->keep = true;
}

void pnb__keep_grad(pnb__tensor *t)
{
    if (t != NULL)
        pnb__root(t)->keep_grad = t->keep_grad = true;
}

pnb__tensor *pnb__root(pnb__tensor *t)
{
    while (t->view_of != NULL)
        t = t->view_of;
    return t;
}

const pnb__tensor *pnb__root_const(const pnb__tensor *t)
{
    while (t->view_of != NULL)
        t = t->view_of;
    return t;
}

size_t pnb__elem_bytes(const pnb__tensor *t)
{
    if (t->is_half)
        return sizeof(uint16_t);
    return t->kind == PNB__INT32 ? sizeof(int32_t) : PNB__REAL_SIZE(t->graph->kernels.real);
}

size_t pnb__dim(const pnb__tensor *t, int axis)
{
    if (t == NULL)
        return 0;
    if (axis < 0)
        axis += t->n_dims;
    return axis >= 0 && axis < t->n_dims ? t->shape[axis] : 0;
}

int pnb__n_dims(const pnb__tensor *t)
{
    return t == NULL ? 0 : t->n_dims;
}

size_t pnb__n(const pnb__tensor *t)
{
    return t == NULL ? 0 : t->n;
}

size_t pnb__width(const pnb__tensor *t)
{
    return t->n_dims == 0 ? 1 : t->shape[t->n_dims - 1];
}

size_t pnb__rows(const pnb__tensor *t)
{
    size_t rows = 1;
    for (int i = 0; i + 1 < t->n_dims; i++)
        rows *= t->shape[i];
    return rows;
}

const char *pnb__shape_text(const pnb__tensor *t, char text[96])
{
    size_t used = 0;
    text[used++] = '(';
    for (int i = 0; i < t->n_dims && used < 80; i++)
        used += (size_t)snprintf(text + used, 96 - used, i ? ", %zu" : "%zu", t->shape[i]);
    snprintf(text + used, 96 - used, ")");
    return text;
}

size_t pnb__graph_arena_bytes(const pnb__graph *g)
{
    return g->memory_bytes;
}

void pnb__graph_set_stream(pnb__graph *g, uint64_t stream)
{
    g->stream = stream;
}

const pnb__kernels *pnb__graph_kernels(const pnb__graph *g)
{
    return &g->kernels;
}
