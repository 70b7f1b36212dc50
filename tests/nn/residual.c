/* Residual blocks against the same written out in plain loops; when the moments of the batch count;
 * segments change no bit. */
#include "nn/residual.h"

#include "tests/tensor/graphs.h"

enum { B = 2, H = 5, MAX_CONVS = 4 };

/* Weights of up to four convolutions with norms, f64, and their params. */
typedef struct weights {
    double conv[MAX_CONVS][6 * 6 * 9], norm[MAX_CONVS][4][8];
    pnb__param params[MAX_CONVS][5];
} weights;

static pnb__conv_norm make(weights *w, int i, size_t out, size_t in, size_t kernel)
{
    static const char *const names[] = {"conv", "w", "b", "mean", "var"};
    pnb__param *p = w->params[i];
    p[0] = (pnb__param){.n_dims = 4,
                        .shape = {out, in, kernel, kernel},
                        .n = out * in * kernel * kernel,
                        .data = w->conv[i],
                        .trainable = true};
    for (size_t k = 0; k < p[0].n; k++)
        w->conv[i][k] = sin(1.7 * (double)k + i) / 3;
    for (int k = 0; k < 4; k++) {
        p[k + 1] = (pnb__param){
            .n_dims = 1, .shape = {out}, .n = out, .data = w->norm[i][k], .trainable = k < 2};
        for (size_t c = 0; c < out; c++)
            w->norm[i][k][c] = 0.8 + 0.1 * cos((double)(c + (size_t)k) + i);
    }
    for (int k = 0; k < 5; k++)
        p[k].name = names[k];
    return (pnb__conv_norm){&p[0], &p[1], &p[2], &p[3], &p[4]};
}

/* in 3 or 6 channels; the block ends in 6 */
static pnb__residual block_of(weights *w, bool bottleneck, size_t in, size_t stride)
{
    pnb__residual r = {.stride = stride};
    if (bottleneck) {
        r.conv[0] = make(w, 0, 2, in, 1);
        r.conv[1] = make(w, 1, 2, 2, 3);
        r.conv[2] = make(w, 2, 6, 2, 1);
    } else {
        r.conv[0] = make(w, 0, 6, in, 3);
        r.conv[1] = make(w, 1, 6, 6, 3);
    }
    if (in != 6 || stride != 1)
        r.shortcut = make(w, 3, 6, in, 1);
    return r;
}

/* ---- plain loops ---- */

typedef struct image {
    double v[B * H * H * 6];
    size_t side, n;
} image;

static double conv_at(const image *x, const pnb__param *w, size_t stride, const size_t at[4])
{
    const double *values = w->data;
    size_t k = w->shape[2];
    double sum = 0;
    for (size_t t = 0; t < x->n * k * k; t++) {
        size_t c = t / (k * k);
        long y = (long)(at[1] * stride + t / k % k) - (long)(k / 2);
        long i = (long)(at[2] * stride + t % k) - (long)(k / 2), side = (long)x->side;
        if (y >= 0 && i >= 0 && y < side && i < side)
            sum += x->v[(((long)at[0] * side + y) * side + i) * (long)x->n + (long)c] *
                   values[at[3] * x->n * k * k + t];
    }
    return sum;
}

static void conv_norm(const image *x, const pnb__conv_norm *c, size_t stride, image *y)
{
    const double *w = c->w->data, *b = c->b->data, *mean = c->mean->data, *var = c->var->data;
    y->side = (x->side - 1) / stride + 1;
    y->n = c->conv->shape[0];
    for (size_t i = 0; i < B * y->side * y->side * y->n; i++) {
        size_t o = i % y->n, j = i / y->n % y->side, row = i / y->n / y->side % y->side;
        const size_t at[4] = {i / y->n / y->side / y->side, row, j, o};
        double z = (conv_at(x, c->conv, stride, at) - mean[o]) / sqrt(var[o] + 1e-5);
        y->v[i] = z * w[o] + b[o];
    }
}

static void relu(image *x)
{
    for (size_t i = 0; i < B * x->side * x->side * x->n; i++)
        x->v[i] = x->v[i] < 0 ? 0 : x->v[i];
}

static void block(const pnb__residual *r, const image *x, image *y)
{
    image a = *x, b, shortcut = *x;
    bool basic = r->conv[2].conv == NULL;
    int n = basic ? 2 : 3;
    for (int i = 0; i < n; i++) {
        conv_norm(&a, &r->conv[i], i == (basic ? 0 : 1) ? r->stride : 1, &b);
        if (i + 1 < n)
            relu(&b);
        a = b;
    }
    if (r->shortcut.conv != NULL)
        conv_norm(x, &r->shortcut, r->stride, &shortcut);
    for (size_t i = 0; i < B * a.side * a.side * a.n; i++)
        a.v[i] += shortcut.v[i];
    relu(&a);
    *y = a;
}

static void check_block(bool bottleneck, size_t in, size_t stride, bool with_grad)
{
    weights w;
    image x = {.side = H, .n = in}, want;
    pnb__residual r = block_of(&w, bottleneck, in, stride);
    begin_graph(PNB__F64, with_grad);
    pnb__tensor *t = IN(B, H, H, in);
    memcpy(x.v, numbers(t), pnb__n(t) * sizeof(double));
    block(&r, &x, &want);
    pnb__tensor *y = pnb__residual_apply(g, &r, t, true);
    expect_shape(y, SHAPE(B, want.side, want.side, 6));
    expect_values(y, want.v, B * want.side * want.side * 6);
}

static void test_blocks(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++)
        check_block(bits & 1, bits & 2 ? 3 : 6, bits & 4 ? 2 : 1, bits & 8);
}

/* ---- when training moves the buffers ---- */

typedef struct use {
    bool with_grad, frozen, fixed, trainable, pixels;
} use;

static bool moves(use u)
{
    weights w;
    pnb__residual r = block_of(&w, true, 3, 2);
    for (int i = 0; i < MAX_CONVS; i++)
        for (int k = 0; k < 5; k++) {
            w.params[i][k].fixed = u.fixed;
            w.params[i][k].trainable = u.trainable && k < 3;
        }
    double before[MAX_CONVS][4][8];
    memcpy(before, w.norm, sizeof before);
    begin_graph(PNB__F64, u.with_grad);
    if (u.pixels)
        pnb__graph_freeze(g);
    pnb__tensor *y = pnb__residual_apply(g, &r, IN(B, H, H, 3), u.frozen);
    pnb__tensor *loss = pnb__sum(y, PNB__ALL_AXES);
    pnb__keep(loss);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    write_given();
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    size_t n_moved = 0;
    for (int i = 0; i < MAX_CONVS; i++) {
        size_t n_bytes = w.params[i][1].n * sizeof(double);
        assert_memory_equal(w.norm[i][0], before[i][0], n_bytes); /* weights are the optimiser's */
        assert_memory_equal(w.norm[i][1], before[i][1], n_bytes);
        n_moved += memcmp(w.norm[i][2], before[i][2], n_bytes) != 0;
        n_moved += memcmp(w.norm[i][3], before[i][3], n_bytes) != 0;
        if (u.fixed)
            for (int k = 0; k < 5; k++)
                pnb__param_unpack(&w.params[i][k], &g->kernels);
    }
    end_graph();
    assert_true(n_moved == 0 || n_moved == 2 * MAX_CONVS);
    return n_moved > 0;
}

static void test_training(void **state)
{
    (void)state;
    assert_true(moves((use){.with_grad = true, .trainable = true}));
    assert_false(moves((use){.trainable = true})); /* encoding */
    assert_false(moves((use){.with_grad = true, .frozen = true, .trainable = true}));
    assert_false(moves((use){.with_grad = true, .fixed = true, .trainable = true}));
    assert_false(moves((use){.with_grad = true})); /* a locked trunk */
    /* gradients of pixels, whatever becomes of the weights elsewhere */
    assert_false(moves((use){.with_grad = true, .trainable = true, .pixels = true}));
}

/* ---- segments ---- */

static void gradients(bool checkpointing, double *out, size_t *n_bytes)
{
    weights w;
    pnb__residual r = block_of(&w, true, 3, 1);
    begin_graph(PNB__F32, true);
    pnb__graph_set_checkpointing(g, checkpointing);
    float values[MAX_CONVS][6 * 6 * 9], norms[MAX_CONVS][4][8];
    for (int i = 0; i < MAX_CONVS; i++) {
        for (size_t k = 0; k < PNB_COUNT(values[i]); k++)
            values[i][k] = (float)w.conv[i][k];
        w.params[i][0].data = values[i];
        for (int k = 0; k < 4; k++) {
            for (size_t c = 0; c < 8; c++)
                norms[i][k][c] = (float)w.norm[i][k][c];
            w.params[i][k + 1].data = norms[i][k];
        }
    }
    pnb__tensor *x = IN(B, H, H, 3);
    pnb__tensor *y = pnb__residual_apply(g, &r, x, false);
    assert_int_equal(pnb__graph_plan(g, pnb__sum(pnb__apply(PNB__SQUARE, y), PNB__ALL_AXES), NULL),
                     PNB_OK);
    *n_bytes = pnb__graph_arena_bytes(g);
    write_given();
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_true(pnb__read_grad_f64(x, out));
    out += pnb__n(x);
    for (int i = 0; i < MAX_CONVS; i++)
        for (int k = 0; k < 3; k++) {
            pnb__tensor *p = pnb__param_tensor(g, &w.params[i][k]);
            assert_true(pnb__read_grad_f64(p, out));
            out += pnb__n(p);
        }
    for (int i = 0; i < MAX_CONVS; i++)
        for (size_t c = 0; c < w.params[i][3].n; c++)
            *out++ = (double)norms[i][2][c]; /* moved once, not twice */
    end_graph();
}

static void test_segments(void **state)
{
    (void)state;
    static double whole[1024], again[1024];
    size_t bytes, bytes_again;
    gradients(false, whole, &bytes);
    gradients(true, again, &bytes_again);
    assert_memory_equal(whole, again, sizeof whole);
    assert_true(whole[0] != 0 && bytes != bytes_again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_training),
                                       cmocka_unit_test(test_segments)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
