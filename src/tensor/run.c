/* Running a planned graph, and moving values between host and device.
 *
 * The step list is fixed by plan.c; this file only walks it. A recomputed value lives at a second
 * place during backward, so its pointers are switched when its recompute step runs and put back
 * when the next run starts. */
#include "tensor/graph_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void *pnb__data(const pnb__tensor *t)
{
    size_t offset = 0;
    while (t->view_of != NULL) {
        offset += t->view_offset;
        t = t->view_of;
    }
    unsigned char *base = t->param != NULL ? t->param->data : t->data;
    return base == NULL ? NULL : base + offset * pnb__elem_bytes(t);
}

/* Forward on a copy of the input that it wrote over the first time: a kernel may round otherwise
 * when result and input are one. */
static bool forward_on_copy(pnb__tensor *t)
{
    pnb__tensor *input = t->in[t->inplace_in];
    const pnb__copy_args copy = {.dims = {1, 1, 1, 1, t->n},
                                 .stride_src = {0, 0, 0, 0, 1},
                                 .stride_dst = {0, 0, 0, 0, 1},
                                 .src = pnb__data(input),
                                 .dst = t->data};
    t->graph->kernels.copy(t->graph->ctx, &copy);
    t->in[t->inplace_in] = t;
    bool ok = t->op->forward(t, false);
    t->in[t->inplace_in] = input;
    return ok;
}

/* A node of a segment in backward: everything as in forward, and to the same bits. A value that
 * backward otherwise makes from aux alone is made so here too: fused into a product it may have
 * been rounded otherwise (the reference kernels hold it in double until then). */
static bool recompute_all(pnb__tensor *t)
{
    memcpy(t->aux, t->again_aux, sizeof t->aux);
    t->work = t->again_work;
    bool from_aux = t->recompute && t->recompute_in == 0;
    bool ok = t->is_in_place ? forward_on_copy(t) : t->op->forward(t, false);
    return ok && (!from_aux || t->op->forward(t, true));
}

static bool run_step(pnb__graph *g, const pnb__step *s)
{
    pnb__tensor *t = s->t;
    switch (s->kind) {
    case PNB__STEP_FORWARD:
        return t->op->forward(t, false);
    case PNB__STEP_RECOMPUTE:
        t->data = t->again_data;
        t->is_again = true;
        return t->recompute_all ? recompute_all(t) : t->op->forward(t, true);
    case PNB__STEP_SEED:
        g->kernels.fill(g->ctx, 1, 1.0, t->grad);
        return true;
    case PNB__STEP_ZERO:
        pnb__zero(t, t->grad, t->n * pnb__elem_bytes(t));
        return true;
    case PNB__STEP_BACKWARD:
        t->op->backward(t);
        return true;
    }
    return false;
}

static pnb_status run_steps(pnb__graph *g, pnb_error *err)
{
    size_t n_told = 0;
    for (size_t i = 0; i < g->n_steps; i++) {
        const pnb__step *s = &g->steps[i];
        bool ok = run_step(g, s);
        if (g->error.status != PNB_OK)
            return pnb__graph_check(g, err);
        if (!ok)
            return pnb__fail(err, PNB_NUMERIC, "%s (node %d): the input has no finite result",
                             s->t->op->name, s->t->index);
        for (; g->watch != NULL && n_told < g->n_ready && g->ready[n_told].step == i; n_told++)
            g->watch(g->watch_user, g->ready[n_told].param);
    }
    return PNB_OK;
}

/* From the third run on a graph without gradients asks for the same steps with the same pointers,
 * but for dropout, whose stream moves: a device that can keeps them. What failed while it was noted
 * is done again in the ordinary way, and fails there. */
static void record(pnb__graph *g)
{
    const pnb__kernels *k = &g->kernels;
    bool wants = k->record_begin != NULL && !g->with_grad && !g->never_record &&
                 g->recorded == NULL && g->n_runs >= 2;
    for (size_t i = 0; wants && i < g->n_nodes; i++)
        wants = g->nodes[i]->op != &pnb__ops[PNB__OP_DROPOUT];
    if (!wants || !k->record_begin(g->ctx))
        return;
    pnb_error why = PNB_ERROR_INIT;
    pnb_status status = run_steps(g, &why);
    g->recorded = k->record_end(g->ctx);
    if (status != PNB_OK && g->recorded != NULL) {
        k->record_free(g->ctx, g->recorded);
        g->recorded = NULL;
    }
    g->never_record = g->recorded == NULL;
}

pnb_status pnb__graph_run(pnb__graph *g, pnb_error *err)
{
    if (!g->planned)
        return pnb__fail(err, PNB_ARG, "the graph has not been planned");
    if (g->error.status != PNB_OK)
        return pnb__graph_check(g, err); /* its inputs are not there */
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        t->data = t->first_data;
        t->is_again = false;
        memcpy(t->aux, t->first_aux, sizeof t->aux);
        t->work = t->first_work;
        if (t->param != NULL && t->needs_grad)
            t->param->grad = t->grad;
    }
    if (g->n_runs <= 1 &&
        !g->with_grad) { /* whoever runs once would pay for f32 and gain nothing */
        pnb_status status = pnb__graph_pack(g, g->n_runs == 0, err);
        if (status != PNB_OK)
            return status;
        g->n_runs++;
    } else if (!g->with_grad)
        record(g);
    if (g->recorded == NULL)
        return run_steps(g, err);
    g->kernels.record_run(g->ctx, g->recorded);
    return PNB_OK;
}

pnb_status pnb__graph_time_steps(pnb__graph *g,
                                 void (*tell)(void *user, const char *what, double seconds),
                                 void *user, pnb_error *err)
{
    if (!g->planned || g->n_runs == 0)
        return pnb__fail(err, PNB_ARG, "the graph has not run yet");
    for (size_t i = 0; i < g->n_steps; i++) {
        const pnb__tensor *t = g->steps[i].t;
        char what[192], shape[96];
        unsigned char byte = 0;
        double start = pnb__now_s();
        if (!run_step(g, &g->steps[i]))
            return pnb__fail(err, PNB_NUMERIC, "%s: the input has no finite result", t->op->name);
        pnb_status status = g->kernels.mem_read(g->ctx, &byte, g->memory, 1, err);
        if (status != PNB_OK)
            return status;
        snprintf(what, sizeof what, "%s%s %s of %zu", t->op != NULL ? t->op->name : "zero",
                 g->steps[i].kind == PNB__STEP_BACKWARD ? " backward" : "",
                 pnb__shape_text(t, shape),
                 t->n_in > 0 && t->in[0] != NULL ? pnb__width(t->in[0]) : 0);
        tell(user, what, pnb__now_s() - start);
    }
    return PNB_OK;
}

/* ---- host and device ----
 * Conversions go through a small block so that no allocation is needed. What fails is recorded in
 * the graph, which moves nothing from then on. */
enum { BLOCK = 4096 };

void pnb__zero(const pnb__tensor *t, void *device, size_t bytes)
{
    pnb__graph *g = t->graph;
    (void)g->kernels.mem_zero(g->ctx, device, bytes, &g->error);
}

static void write_bytes(pnb__graph *g, void *device, const void *host, size_t bytes)
{
    if (g->error.status == PNB_OK)
        (void)g->kernels.mem_write(g->ctx, device, host, bytes, &g->error);
}

static bool read_bytes(pnb__graph *g, void *host, const void *device, size_t bytes)
{
    return g->error.status == PNB_OK &&
           g->kernels.mem_read(g->ctx, host, device, bytes, &g->error) == PNB_OK;
}

pnb_status pnb__graph_check(pnb__graph *g, pnb_error *err)
{
    pnb_status status = g->error.status;
    if (status != PNB_OK) {
        pnb__fail(err, status, "%s", g->error.text);
        pnb_error_reset(&g->error);
    }
    return status;
}

#define PNB__DEFINE_WRITE(NAME, HOST)                                                              \
    void NAME(pnb__tensor *t, const HOST *host)                                                    \
    {                                                                                              \
        pnb__graph *g = t->graph;                                                                  \
        assert(t->kind == PNB__REAL);                                                              \
        unsigned char *device = pnb__data(t);                                                      \
        if (sizeof(HOST) == PNB__REAL_SIZE(g->kernels.real)) {                                     \
            write_bytes(g, device, host, t->n * sizeof(HOST));                                     \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < t->n; i += BLOCK) {                                                 \
            size_t n = PNB_MIN((size_t)BLOCK, t->n - i);                                           \
            float f32[BLOCK];                                                                      \
            double f64[BLOCK];                                                                     \
            for (size_t j = 0; j < n; j++) {                                                       \
                f32[j] = (float)host[i + j];                                                       \
                f64[j] = (double)host[i + j];                                                      \
            }                                                                                      \
            if (g->kernels.real == PNB__F32)                                                       \
                write_bytes(g, device + i * sizeof(float), f32, n * sizeof(float));                \
            else                                                                                   \
                write_bytes(g, device + i * sizeof(double), f64, n * sizeof(double));              \
        }                                                                                          \
    }
PNB__DEFINE_WRITE(pnb__write_f32, float)
PNB__DEFINE_WRITE(pnb__write_f64, double)

void pnb__write_i32(pnb__tensor *t, const int32_t *host)
{
    assert(t->kind == PNB__INT32);
    write_bytes(t->graph, pnb__data(t), host, t->n * sizeof *host);
}

static void read_f64(pnb__graph *g, const unsigned char *device, size_t n, double *host)
{
    if (g->kernels.real == PNB__F64) {
        read_bytes(g, host, device, n * sizeof(double));
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t m = PNB_MIN((size_t)BLOCK, n - i);
        float f32[BLOCK];
        if (!read_bytes(g, f32, device + i * sizeof(float), m * sizeof(float)))
            return;
        for (size_t j = 0; j < m; j++)
            host[i + j] = (double)f32[j];
    }
}

void pnb__read_f64(const pnb__tensor *t, double *host)
{
    read_f64(t->graph, pnb__data(t), t->n, host);
}

void pnb__read_f32(const pnb__tensor *t, float *host)
{
    pnb__graph *g = t->graph;
    const unsigned char *device = pnb__data(t);
    if (g->kernels.real == PNB__F32) {
        read_bytes(g, host, device, t->n * sizeof(float));
        return;
    }
    for (size_t i = 0; i < t->n; i += BLOCK) {
        size_t n = PNB_MIN((size_t)BLOCK, t->n - i);
        double f64[BLOCK];
        if (!read_bytes(g, f64, device + i * sizeof(double), n * sizeof(double)))
            return;
        for (size_t j = 0; j < n; j++)
            host[i + j] = (float)f64[j];
    }
}

void pnb__read_i32(const pnb__tensor *t, int32_t *host)
{
    assert(t->kind == PNB__INT32);
    read_bytes(t->graph, host, pnb__data(t), t->n * sizeof *host);
}

bool pnb__read_grad_f64(const pnb__tensor *t, double *host)
{
    const pnb__tensor *root = pnb__root_const(t);
    const unsigned char *grad = root->param != NULL ? root->param->grad : root->grad;
    if (grad == NULL || !root->needs_grad)
        return false;
    size_t offset = 0;
    for (const pnb__tensor *v = t; v->view_of != NULL; v = v->view_of)
        offset += v->view_offset;
    read_f64(t->graph, grad + offset * pnb__elem_bytes(t), t->n, host);
    return true;
}

double pnb__read_scalar(const pnb__tensor *t)
{
    double value = 0;
    read_f64(t->graph, pnb__data(t), 1, &value);
    return value;
}
