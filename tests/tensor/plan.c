/* The planner: values survive reuse of memory, steady runs allocate nothing, recomputation and
 * taking over buffers do not change results, errors are sticky. */
#include "tensor/graph_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pnb_ctx *ctx;

static int open_ctx(void **state)
{
    (void)state;
    pnb_ctx_opts opts = {.n_threads = 2, .device = PNB_DEVICE_CPU};
    return pnb_ctx_create(&ctx, &opts, NULL) == PNB_OK ? 0 : -1;
}

static int close_ctx(void **state)
{
    (void)state;
    pnb_ctx_free(ctx);
    return 0;
}

/* A chain of n residual layers of `width` on `rows` rows. */
typedef struct chain {
    pnb__graph *g;
    pnb__tensor *x, *out;
    pnb__param *params;
    float *storage;
    size_t n;
} chain;

enum { ROWS = 48, WIDTH = 32 };

/* A block of width 8 heads and everything a segment may hold: attention with its log-sum-exp and
 * workspace, a view, a slice, dropout, an activation whose input is kept, a scaled product. */
static pnb__tensor *rich_block(pnb__tensor *x)
{
    pnb__tensor *h = pnb__layernorm(x, NULL, NULL, 1e-5);
    pnb__tensor *kv = pnb__reshape(h, 3, (size_t[]){2, ROWS / 4, 2 * WIDTH});
    pnb__tensor *q = pnb__slice(kv, 2, 0, WIDTH);
    h = pnb__dropout(pnb__attention(q, kv, 4, false, NULL), 0.25, 3, 4);
    h = pnb__reshape(h, 2, (size_t[]){ROWS / 2, WIDTH});
    pnb__tensor *both[2] = {h, pnb__apply(PNB__TANH, h)};
    return pnb__add(x, pnb__concat(both, 2, 0));
}

/* `checkpointing` marks every layer as a segment and has the inside of each computed again. */
static void build_segments(chain *c, size_t n, bool with_grad, bool checkpointing)
{
    c->n = n;
    c->params = calloc(2 * n, sizeof *c->params);
    c->storage = calloc(2 * n * WIDTH * WIDTH, sizeof *c->storage);
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    for (size_t i = 0; i < 2 * n * WIDTH * WIDTH; i++)
        c->storage[i] = (float)(0.1 * pnb__rng_normal(&rng));
    assert_int_equal(pnb__graph_create(&c->g, ctx, PNB__F32, with_grad, NULL), PNB_OK);
    pnb__graph_set_checkpointing(c->g, checkpointing);
    c->x = pnb__input(c->g, PNB__REAL, 2, (size_t[]){ROWS, WIDTH});
    pnb__tensor *x = c->x;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 2 * i; j < 2 * i + 2; j++)
            c->params[j] = (pnb__param){.name = "w",
                                        .n_dims = 2,
                                        .shape = {WIDTH, WIDTH},
                                        .n = WIDTH * WIDTH,
                                        .data = c->storage + j * WIDTH * WIDTH,
                                        .trainable = true};
        size_t begin = pnb__segment_begin(c->g);
        pnb__tensor *h = pnb__layernorm(rich_block(x), NULL, NULL, 1e-5);
        h = pnb__linear(h, pnb__param_tensor(c->g, &c->params[2 * i]),
                        &(pnb__linear_opts){.act = PNB__GELU});
        x = pnb__linear(h, pnb__param_tensor(c->g, &c->params[2 * i + 1]),
                        &(pnb__linear_opts){.act = PNB__IDENTITY, .residual = x});
        pnb__segment_end(c->g, begin, x);
    }
    c->out = x;
}

static void build_chain(chain *c, size_t n, bool with_grad)
{
    build_segments(c, n, with_grad, false);
}

static void write_input(const chain *c)
{
    float x[ROWS * WIDTH];
    pnb__rng rng;
    pnb__rng_init(&rng, 6, 0);
    for (size_t i = 0; i < PNB_COUNT(x); i++)
        x[i] = (float)pnb__rng_normal(&rng);
    pnb__write_f32(c->x, x);
}

static void free_chain(chain *c)
{
    pnb__graph_free(c->g);
    free(c->params);
    free(c->storage);
}

static void test_inference_memory_does_not_grow_with_depth(void **state)
{
    (void)state;
    chain small, deep;
    build_chain(&small, 2, false);
    build_chain(&deep, 20, false);
    pnb__keep(small.out);
    pnb__keep(deep.out);
    assert_int_equal(pnb__graph_plan(small.g, NULL, NULL), PNB_OK);
    assert_int_equal(pnb__graph_plan(deep.g, NULL, NULL), PNB_OK);
    assert_int_equal(pnb__graph_arena_bytes(deep.g), pnb__graph_arena_bytes(small.g));
    free_chain(&small);
    free_chain(&deep);
}

/* Keeping every value forbids sharing, so it must not change what comes out. */
static void test_reuse_does_not_change_results(void **state)
{
    (void)state;
    float shared[ROWS * WIDTH], separate[ROWS * WIDTH];
    chain c;
    size_t bytes[2];
    for (int keep_all = 0; keep_all < 2; keep_all++) {
        build_chain(&c, 6, false);
        pnb__keep(c.out);
        for (size_t i = 0; keep_all && i < c.g->n_nodes; i++)
            pnb__keep(c.g->nodes[i]);
        assert_int_equal(pnb__graph_plan(c.g, NULL, NULL), PNB_OK);
        write_input(&c);
        assert_int_equal(pnb__graph_run(c.g, NULL), PNB_OK);
        pnb__read_f32(c.out, keep_all ? separate : shared);
        bytes[keep_all] = pnb__graph_arena_bytes(c.g);
        free_chain(&c);
    }
    assert_memory_equal(shared, separate, sizeof shared);
    assert_true(bytes[0] < bytes[1]);
}

static void collect_grads(chain *c, bool keep_all, double *grads)
{
    pnb__tensor *loss = pnb__mean(pnb__apply(PNB__SQUARE, c->out), PNB__ALL_AXES);
    for (size_t i = 0; keep_all && i < c->g->n_nodes; i++) {
        pnb__keep(c->g->nodes[i]);      /* no recomputation */
        pnb__keep_grad(c->g->nodes[i]); /* no buffer taken over */
    }
    assert_int_equal(pnb__graph_plan(c->g, loss, NULL), PNB_OK);
    write_input(c);
    assert_int_equal(pnb__graph_run(c->g, NULL), PNB_OK);
    for (size_t i = 0; i < 2 * c->n; i++)
        assert_true(
            pnb__read_grad_f64(pnb__param_tensor(c->g, &c->params[i]), grads + i * WIDTH * WIDTH));
}

static void test_recomputation_does_not_change_gradients(void **state)
{
    (void)state;
    enum { DEPTH = 5, N = 2 * DEPTH * WIDTH * WIDTH };
    double *lean = calloc(N, sizeof *lean), *kept = calloc(N, sizeof *kept);
    chain a, b;
    build_chain(&a, DEPTH, true);
    collect_grads(&a, false, lean);
    build_chain(&b, DEPTH, true);
    collect_grads(&b, true, kept);
    assert_memory_equal(lean, kept, N * sizeof *lean);
    assert_true(pnb__graph_arena_bytes(a.g) < pnb__graph_arena_bytes(b.g));
    double norm = 0;
    for (size_t i = 0; i < N; i++)
        norm += fabs(lean[i]);
    assert_true(norm > 1e-3);
    free_chain(&a);
    free_chain(&b);
    free(lean);
    free(kept);
}

static double arena_bytes(size_t depth, bool checkpointing)
{
    chain c;
    build_segments(&c, depth, true, checkpointing);
    pnb__tensor *loss = pnb__mean(pnb__apply(PNB__SQUARE, c.out), PNB__ALL_AXES);
    assert_int_equal(pnb__graph_plan(c.g, loss, NULL), PNB_OK);
    double bytes = (double)pnb__graph_arena_bytes(c.g);
    free_chain(&c);
    return bytes;
}

/* A layer more costs its result and its weights' gradients; workspaces do not grow. */
static void test_segments_cost_little_memory_a_layer(void **state)
{
    (void)state;
    double lean = (arena_bytes(40, true) - arena_bytes(20, true)) / 20;
    double kept = (arena_bytes(40, false) - arena_bytes(20, false)) / 20;
    double least = sizeof(float) * (ROWS * WIDTH + 2 * WIDTH * WIDTH);
    if (!(lean <= 1.1 * least && kept > 2 * lean))
        fail_msg("a layer takes %g bytes with segments, %g without", lean, kept);
}

/* Values of the weights' gradients and of the loss are those of a graph that keeps everything. */
static void test_segments_give_the_same_bits(void **state)
{
    (void)state;
    enum { DEPTH = 6, N = 2 * DEPTH * WIDTH * WIDTH };
    double *lean = calloc(N, sizeof *lean), *kept = calloc(N, sizeof *kept);
    chain a, b;
    build_segments(&a, DEPTH, true, true);
    collect_grads(&a, false, lean);
    build_segments(&b, DEPTH, true, false);
    collect_grads(&b, false, kept);
    assert_memory_equal(lean, kept, N * sizeof *lean);
    assert_true(pnb__read_scalar(a.g->loss) == pnb__read_scalar(b.g->loss));
    for (int run = 0; run < 2; run++) /* pointers go back to the forward places */
        assert_int_equal(pnb__graph_run(a.g, NULL), PNB_OK);
    for (size_t i = 0; i < 2 * DEPTH; i++)
        pnb__read_grad_f64(pnb__param_tensor(a.g, &a.params[i]), lean + i * WIDTH * WIDTH);
    assert_memory_equal(lean, kept, N * sizeof *lean);
    assert_true(pnb__graph_flops(a.g) > pnb__graph_flops(b.g));
    free_chain(&a);
    free_chain(&b);
    free(lean);
    free(kept);
}

static void test_runs_repeat_bit_for_bit(void **state)
{
    (void)state;
    enum { N = 2 * 3 * WIDTH * WIDTH };
    double *first = calloc(N, sizeof *first), *again = calloc(N, sizeof *again);
    chain c;
    build_chain(&c, 3, true);
    collect_grads(&c, false, first);
    for (int run = 0; run < 3; run++) {
        write_input(&c);
        assert_int_equal(pnb__graph_run(c.g, NULL), PNB_OK);
        for (size_t i = 0; i < 6; i++)
            pnb__read_grad_f64(pnb__param_tensor(c.g, &c.params[i]), again + i * WIDTH * WIDTH);
        assert_memory_equal(first, again, N * sizeof *first);
    }
    free_chain(&c);
    free(first);
    free(again);
}

static void test_gradient_store_accumulates(void **state)
{
    (void)state;
    enum { N = 2 * 2 * WIDTH * WIDTH };
    double *once = calloc(N, sizeof *once);
    chain a, b;
    build_chain(&a, 2, true);
    collect_grads(&a, false, once);
    build_chain(&b, 2, true);
    float *stores = calloc(N, sizeof *stores);
    for (size_t i = 0; i < 4; i++)
        b.params[i].grad_store = stores + i * WIDTH * WIDTH;
    double *ignored = calloc(N, sizeof *ignored);
    collect_grads(&b, false, ignored);
    assert_int_equal(pnb__graph_run(b.g, NULL), PNB_OK); /* a second micro-batch */
    for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)stores[i] - 2 * once[i]) <= 1e-5 * fabs(once[i]) + 1e-8);
    free_chain(&a);
    free_chain(&b);
    free(once);
    free(stores);
    free(ignored);
}

#ifdef PNB_FAULTS
static void test_steady_run_allocates_nothing(void **state)
{
    (void)state;
    chain c;
    double grads[2 * 2 * WIDTH * WIDTH];
    build_chain(&c, 2, true);
    collect_grads(&c, false, grads);
    long before = pnb__alloc_count();
    for (int i = 0; i < 5; i++)
        assert_int_equal(pnb__graph_run(c.g, NULL), PNB_OK);
    assert_int_equal(pnb__alloc_count(), before);
    free_chain(&c);
}

/* Fail allocation 1, 2, 3, ... of building, planning and running until all of it passes. */
static void test_out_of_memory_is_clean(void **state)
{
    (void)state;
    bool passed = false;
    for (long n = 0; !passed && n < 1000; n++) {
        pnb__graph *g = NULL;
        pnb_error err = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__graph_create(&g, ctx, PNB__F32, true, &err);
        if (status == PNB_OK) {
            pnb__tensor *x = pnb__input_with_grad(g, 2, (size_t[]){3, 4});
            for (int i = 0; i < 300; i++)
                x = pnb__apply(PNB__TANH, x);
            status = pnb__graph_plan(g, pnb__sum(x, PNB__ALL_AXES), &err);
        }
        pnb__alloc_fail_after(-1);
        passed = status == PNB_OK;
        if (!passed) {
            assert_int_equal(status, PNB_NOMEM);
            assert_int_equal(err.status, PNB_NOMEM);
        }
        pnb__graph_free(g);
    }
    assert_true(passed);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inference_memory_does_not_grow_with_depth),
        cmocka_unit_test(test_reuse_does_not_change_results),
        cmocka_unit_test(test_recomputation_does_not_change_gradients),
        cmocka_unit_test(test_segments_give_the_same_bits),
        cmocka_unit_test(test_segments_cost_little_memory_a_layer),
        cmocka_unit_test(test_runs_repeat_bit_for_bit),
        cmocka_unit_test(test_gradient_store_accumulates),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_steady_run_allocates_nothing),
        cmocka_unit_test(test_out_of_memory_is_clean),
#endif
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
