/* Values in bfloat16 between products: which ones they are, and that a block computes what it
 * computes in floats, forward and backward, by the processor's tables and, where it was built, by
 * the column of GPUs on emulated threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/graph_internal.h"

enum { N_BATCH = 2, N_TOKENS = 9, WIDTH = 32, N_HEADS = 2 };
/* weights of q|k|v, of the projection, of the mlp in and out; of the norms; biases of q|k|v, of the
 * mlp in */
enum { N_WEIGHTS = 4, NORM_W = 4, NORM_B, QKV_BIAS, MLP_BIAS, N_PARAMS };

typedef struct wish {
    bool keeps_norm, trains, checkpoints;
} wish;

/* Whose kernels; FLOATS: the processor's, as if it could keep no halves. */
typedef enum column {
    FLOATS,
    REFERENCE,
    GENERIC,
    BEST,
    TILES,
    N_HOSTS,
#ifdef PNB_TEST_CUDA
    EMULATED = N_HOSTS,
    N_COLUMNS
#else
    N_COLUMNS = N_HOSTS
#endif
} column;

#ifdef PNB_TEST_CUDA
extern void pnb__cuda_overwrite(pnb__kernels *k);

static void emulated_column(pnb__kernels *k)
{
    if (k->real == PNB__F32)
        pnb__cuda_overwrite(k);
}
#endif

static void without_halves(pnb__kernels *k)
{
    k->halves_head_dim = 0;
}

typedef struct block {
    pnb__param params[N_PARAMS];
    pnb__graph *graph;
    pnb__tensor *x, *norm, *out, *leaves[N_PARAMS];
} block;

static void make_param(pnb__param *p, const pnb__kernels *k, const wish *w, size_t rows,
                       size_t cols, uint64_t seed)
{
    double *values = malloc(rows * cols * sizeof *values);
    pnb__rng rng;
    pnb_error err = PNB_ERROR_INIT;
    assert_non_null(values);
    pnb__rng_init(&rng, seed, 0);
    *p = (pnb__param){.name = "w", .n_dims = cols > 1 ? 2 : 1, .shape = {rows, cols}};
    p->n = rows * cols;
    p->fixed = !w->trains;
    p->trainable = w->trains;
    p->trains_in_bf16 = w->trains && cols > 1;
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
    if (which == 0)
        o.bias = b->leaves[QKV_BIAS];
    if (which == 2)
        o.bias = b->leaves[MLP_BIAS];
    return pnb__linear(x, b->leaves[which], &o);
}

/* x + attention, + GELU's two products: the two norms, q|k|v, what attention gives and GELU's
 * values are read by products alone. In training the loss is the mean of the result's squares. */
static void build(block *b, const pnb_ctx *ctx, wish w)
{
    static const size_t shapes[N_PARAMS][2] = {
        {3 * WIDTH, WIDTH}, {WIDTH, WIDTH}, {4 * WIDTH, WIDTH}, {WIDTH, 4 * WIDTH},
        {WIDTH, 1},         {WIDTH, 1},     {3 * WIDTH, 1},     {4 * WIDTH, 1}};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__graph_create(&b->graph, ctx, PNB__F32, w.trains, &err), PNB_OK);
    pnb__graph *g = b->graph;
    pnb__graph_round_products(g, w.trains);
    pnb__graph_set_checkpointing(g, w.checkpoints);
    for (int i = 0; i < N_PARAMS; i++) {
        make_param(&b->params[i], pnb__graph_kernels(g), &w, shapes[i][0], shapes[i][1],
                   (uint64_t)i);
        b->leaves[i] = pnb__param_tensor(g, &b->params[i]);
    }
    pnb__tensor *scale = b->leaves[NORM_W], *shift = b->leaves[NORM_B];
    b->x = pnb__input(g, PNB__REAL, 3, (size_t[]){N_BATCH, N_TOKENS, WIDTH});
    size_t begin = pnb__segment_begin(g);
    b->norm = pnb__layernorm(b->x, scale, shift, 1e-5);
    if (w.keeps_norm)
        pnb__keep(b->norm);
    pnb__tensor *qkv = product(b, b->norm, 0, PNB__IDENTITY, NULL);
    pnb__tensor *seen = pnb__attention(NULL, qkv, N_HEADS, false, NULL);
    pnb__tensor *x = product(b, seen, 1, PNB__IDENTITY, b->x);
    pnb__tensor *in = product(b, pnb__layernorm(x, scale, shift, 1e-5), 2, PNB__GELU, NULL);
    b->out = product(b, in, 3, PNB__IDENTITY, x);
    pnb__segment_end(g, begin, b->out);
    pnb__keep(b->out);
    pnb__tensor *loss = w.trains ? pnb__mean(pnb__apply(PNB__SQUARE, b->out), PNB__ALL_AXES) : NULL;
    assert_int_equal(pnb__graph_plan(g, loss, &err), PNB_OK);
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

static pnb_ctx *context(column c)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = {.n_threads = 1};
    if (c == REFERENCE)
        opts.device = PNB_DEVICE_REF;
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    ctx->emulates_tiles = c == TILES;
    if (c == GENERIC)
        ctx->isa = PNB_ISA_GENERIC;
    ctx->column = c == FLOATS ? without_halves : NULL;
#ifdef PNB_TEST_CUDA
    if (c == EMULATED)
        ctx->column = emulated_column;
#endif
    return ctx;
}

/* Encoding keeps floats where halves are smaller and no faster: not on tile units. */
static void test_encoding_on_processors(void **state)
{
    (void)state;
    for (int c = FLOATS; c < N_HOSTS; c++) {
        pnb_ctx *host = context((column)c);
        block b;
        build(&b, host, (wish){false});
        const pnb__kernels *k = pnb__graph_kernels(b.graph);
        assert_int_equal(count_halves(b.graph) > 0, k->halves_gain && k->halves_head_dim > 0);
        assert_true(k->halves_gain || c != TILES);
        end(&b);
        pnb_ctx_free(host);
    }
}

#ifdef PNB_TEST_CUDA
static void test_a_block(void **state)
{
    (void)state;
    float want[N_BATCH * N_TOKENS * WIDTH], got[N_BATCH * N_TOKENS * WIDTH];
    pnb_ctx *host = context(FLOATS), *device = context(EMULATED);
    block floats, halves;
    build(&floats, host, (wish){false});
    build(&halves, device, (wish){false});
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
    pnb_ctx *device = context(EMULATED);
    block b;
    build(&b, device, (wish){.keeps_norm = true});
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

#endif

/* The gradient of each weight: differs from the other by less than `most` of its length. */
static void compare_gradients(const block *got, const block *want, double most)
{
    for (int i = 0; i < N_PARAMS; i++) {
        size_t n = want->params[i].n;
        double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), off = 0, length = 0;
        assert_true(a != NULL && b != NULL);
        assert_true(pnb__read_grad_f64(got->leaves[i], a));
        assert_true(pnb__read_grad_f64(want->leaves[i], b));
        for (size_t j = 0; j < n; j++) {
            off += (a[j] - b[j]) * (a[j] - b[j]);
            length += b[j] * b[j];
        }
        if (!(length > 0 && off <= most * most * length))
            fail_msg("gradient %d is off by %.3g of its length", i, sqrt(off / length));
        free(a);
        free(b);
    }
}

/* Against floats, which round factors alone; and made again in backward to the same bits. */
static void check_training(column c)
{
    float want[N_BATCH * N_TOKENS * WIDTH], got[N_BATCH * N_TOKENS * WIDTH];
    pnb_ctx *host = context(FLOATS), *device = context(c);
    block floats, halves, again;
    build(&floats, host, (wish){.trains = true});
    build(&halves, device, (wish){.trains = true});
    build(&again, device, (wish){.trains = true, .checkpoints = true});
    assert_int_equal(count_halves(floats.graph), 0);
    assert_int_equal(count_halves(halves.graph), 5);
    assert_int_equal(count_halves(again.graph), 5);
    /* workspaces take a part: the processor's for attention are greater than this block */
    size_t share = c >= N_HOSTS ? 67 : 100;
    assert_true(100 * pnb__graph_arena_bytes(halves.graph) <
                share * pnb__graph_arena_bytes(floats.graph));
    run(&floats, want);
    run(&halves, got);
    for (size_t i = 0; i < PNB_COUNT(want); i++)
        assert_true(fabsf(got[i] - want[i]) < 0.04f);
    compare_gradients(&halves, &floats, 0.01);
    run(&again, want);
    assert_memory_equal(want, got, sizeof want);
    compare_gradients(&again, &halves, 0);
    end(&floats);
    end(&halves);
    end(&again);
    pnb_ctx_free(host);
    pnb_ctx_free(device);
}

static void test_training(void **state)
{
    (void)state;
    for (int c = REFERENCE; c < N_COLUMNS; c++)
        check_training((column)c);
}

/* A value with two readers would get its gradient in two parts. */
static void test_two_readers(void **state)
{
    (void)state;
    pnb_ctx *device = context(BEST);
    pnb_error err = PNB_ERROR_INIT;
    const wish trains = {.trains = true};
    for (int n_readers = 1; n_readers <= 2; n_readers++) {
        block b = {.graph = NULL};
        assert_int_equal(pnb__graph_create(&b.graph, device, PNB__F32, true, &err), PNB_OK);
        pnb__graph_round_products(b.graph, true);
        for (int i = 0; i < 2; i++) {
            make_param(&b.params[i], pnb__graph_kernels(b.graph), &trains, WIDTH, WIDTH,
                       (uint64_t)i);
            b.leaves[i] = pnb__param_tensor(b.graph, &b.params[i]);
        }
        b.x = pnb__input(b.graph, PNB__REAL, 2, (size_t[]){N_TOKENS, WIDTH});
        b.norm = pnb__layernorm(b.x, NULL, NULL, 1e-5);
        b.out = pnb__linear(b.norm, b.leaves[0], NULL);
        if (n_readers == 2)
            b.out = pnb__add(b.out, pnb__linear(b.norm, b.leaves[1], NULL));
        assert_int_equal(pnb__graph_plan(b.graph, pnb__mean(b.out, PNB__ALL_AXES), &err), PNB_OK);
        assert_true(b.norm->is_half == (n_readers == 1));
        const pnb__kernels k = *pnb__graph_kernels(b.graph);
        pnb__graph_free(b.graph);
        for (int i = 0; i < 2; i++)
            pnb__param_free(&b.params[i], &k, b.params[i].n * sizeof(float));
    }
    pnb_ctx_free(device);
}

#ifdef PNB_TEST_CUDA
/* What a device's table takes is its own to say, whatever the host's under it would take. */
static void test_a_device_over_tiles(void **state)
{
    (void)state;
    pnb_ctx *ctx = context(EMULATED);
    pnb__kernels k;
    ctx->emulates_tiles = true;
    pnb__kernels_fill_host(&k, ctx, PNB__F32);
    assert_true(k.i8_halves);
    pnb__kernels_fill(&k, ctx, PNB__F32);
    assert_false(k.i8_halves); /* its gemm_i8 reads and writes floats */
    assert_true(k.halves_gain);
    pnb_ctx_free(ctx);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef PNB_TEST_CUDA
        cmocka_unit_test(test_a_block),
        cmocka_unit_test(test_kept_values),
        cmocka_unit_test(test_a_device_over_tiles),
#endif
        cmocka_unit_test(test_encoding_on_processors),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_two_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
