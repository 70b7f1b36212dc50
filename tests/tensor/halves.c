/* Values in bfloat16 between products: which ones they are, and that a block computes what it
 * computes in floats, by the column of GPUs on emulated threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/graph_internal.h"

#ifndef PNB_TEST_CUDA
int main(void)
{
    return 77; /* no emulated column in this tree */
}
#else

extern void pnb__cuda_overwrite(pnb__kernels *k);

enum { N_BATCH = 2, N_TOKENS = 9, WIDTH = 32, N_HEADS = 2, N_PARAMS = 6 };

static void emulated_column(pnb__kernels *k)
{
    if (k->real == PNB__F32)
        pnb__cuda_overwrite(k);
}

typedef struct block {
    pnb__param params[N_PARAMS]; /* qkv, projection, mlp in and out, norm weight, norm bias */
    pnb__graph *graph;
    pnb__tensor *x, *norm, *out;
} block;

static void make_param(pnb__param *p, const pnb__kernels *k, size_t rows, size_t cols,
                       uint64_t seed)
{
    double *values = malloc(rows * cols * sizeof *values);
    pnb__rng rng;
    pnb_error err = PNB_ERROR_INIT;
    assert_non_null(values);
    pnb__rng_init(&rng, seed, 0);
    *p = (pnb__param){.name = "w", .n_dims = cols > 1 ? 2 : 1, .shape = {rows, cols}};
    p->n = rows * cols;
    p->fixed = true;
    p->bf16_parts = cols > 1;
    for (size_t i = 0; i < p->n; i++)
        values[i] = pnb__rng_normal(&rng) / sqrt((double)PNB_MAX(cols, (size_t)1));
    assert_int_equal(pnb__param_alloc(p, k, p->n * sizeof(float), &err), PNB_OK);
    assert_int_equal(pnb__param_write(p, k, 0, p->n, values, &err), PNB_OK);
    free(values);
}

static pnb__tensor *product(block *b, pnb__tensor *x, int which, pnb__unary act,
                            pnb__tensor *residual)
{
    pnb__linear_opts o = {.act = act, .residual = residual};
    return pnb__linear(x, pnb__param_tensor(b->graph, &b->params[which]), &o);
}

/* x + attention, + GELU's two products: the two norms, q|k|v, what attention gives and GELU's
 * values are read by products alone. */
static void build(block *b, const pnb_ctx *ctx, bool keeps_norm)
{
    static const size_t shapes[N_PARAMS][2] = {{3 * WIDTH, WIDTH}, {WIDTH, WIDTH},
                                               {4 * WIDTH, WIDTH}, {WIDTH, 4 * WIDTH},
                                               {WIDTH, 1},         {WIDTH, 1}};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__graph_create(&b->graph, ctx, PNB__F32, false, &err), PNB_OK);
    pnb__graph *g = b->graph;
    for (int i = 0; i < N_PARAMS; i++)
        make_param(&b->params[i], pnb__graph_kernels(g), shapes[i][0], shapes[i][1], (uint64_t)i);
    pnb__tensor *w = pnb__param_tensor(g, &b->params[4]),
                *bias = pnb__param_tensor(g, &b->params[5]);
    b->x = pnb__input(g, PNB__REAL, 3, (size_t[]){N_BATCH, N_TOKENS, WIDTH});
    b->norm = pnb__layernorm(b->x, w, bias, 1e-5);
    if (keeps_norm)
        pnb__keep(b->norm);
    pnb__tensor *qkv = product(b, b->norm, 0, PNB__IDENTITY, NULL);
    pnb__tensor *seen = pnb__attention(NULL, qkv, N_HEADS, false, NULL);
    pnb__tensor *x = product(b, seen, 1, PNB__IDENTITY, b->x);
    pnb__tensor *in = product(b, pnb__layernorm(x, w, bias, 1e-5), 2, PNB__GELU, NULL);
    b->out = product(b, in, 3, PNB__IDENTITY, x);
    pnb__keep(b->out);
    assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_OK);
}

static void run(block *b, float out[N_BATCH * N_TOKENS * WIDTH])
{
    float x[N_BATCH * N_TOKENS * WIDTH];
    pnb__rng rng;
    pnb_error err = PNB_ERROR_INIT;
    pnb__rng_init(&rng, 9, 0);
    for (size_t i = 0; i < PNB_COUNT(x); i++)
        x[i] = (float)pnb__rng_normal(&rng);
    pnb__write_f32(b->x, x);
    assert_int_equal(pnb__graph_run(b->graph, &err), PNB_OK);
    pnb__read_f32(b->out, out);
}

static void end(block *b)
{
    const pnb__kernels k = *pnb__graph_kernels(b->graph);
    pnb__graph_free(b->graph);
    for (int i = 0; i < N_PARAMS; i++) {
        pnb__param_unpack(&b->params[i], &k);
        pnb__param_free(&b->params[i], &k, b->params[i].n * sizeof(float));
    }
}

static size_t count_halves(const pnb__graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        n += g->nodes[i]->is_half;
    return n;
}

static pnb_ctx *context(bool is_emulated)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = {.n_threads = 1};
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    ctx->column = is_emulated ? emulated_column : NULL;
    return ctx;
}

static void test_a_block(void **state)
{
    (void)state;
    float want[N_BATCH * N_TOKENS * WIDTH], got[N_BATCH * N_TOKENS * WIDTH];
    pnb_ctx *host = context(false), *device = context(true);
    block floats, halves;
    build(&floats, host, false);
    build(&halves, device, false);
    assert_int_equal(count_halves(floats.graph), 0);
    assert_int_equal(count_halves(halves.graph), 5);
    assert_true(pnb__graph_arena_bytes(halves.graph) < pnb__graph_arena_bytes(floats.graph));
    run(&floats, want);
    run(&halves, got);
    for (size_t i = 0; i < PNB_COUNT(want); i++)
        assert_true(fabsf(got[i] - want[i]) < 0.04f);
    end(&floats);
    end(&halves);
    pnb_ctx_free(host);
    pnb_ctx_free(device);
}

/* What somebody reads is not rounded. */
static void test_kept_values(void **state)
{
    (void)state;
    float norm[N_BATCH * N_TOKENS * WIDTH], out[N_BATCH * N_TOKENS * WIDTH];
    pnb_ctx *device = context(true);
    block b;
    build(&b, device, true);
    assert_int_equal(count_halves(b.graph), 4);
    assert_false(b.norm->is_half);
    run(&b, out);
    pnb__read_f32(b.norm, norm);
    size_t n_rounded = 0;
    for (size_t i = 0; i < PNB_COUNT(norm); i++) {
        uint32_t bits;
        memcpy(&bits, &norm[i], sizeof bits);
        n_rounded += (bits & 0xffff) == 0;
    }
    assert_true(n_rounded < PNB_COUNT(norm) / 100);
    end(&b);
    pnb_ctx_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_block),
                                       cmocka_unit_test(test_kept_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
