/* Unary, binary, copy, sum, axpy, fill, sum of squares, finiteness, dropout and memory slots. */
#include "tests/kernels/harness.h"

static const size_t sizes[] = {0, 1, 3, 16, 17, 63, 1000, 33001};

/* ---- unary in place, backward with accumulation ---- */

typedef struct unary_case {
    size_t n;
    bool accumulate;
    int x, y, dy, dx;
    pnb__unary op;
} unary_case;

static void unary_body(run *r, fixture *x)
{
    const unary_case *c = r->user;
    r->k.unary(r->ctx, c->op, c->n, 1.5, 0.25, P(r, x, c->x), P(r, x, c->y));
    bool needs_y = c->op == PNB__EXP || c->op == PNB__SQRT || c->op == PNB__RECIP ||
                   c->op == PNB__TANH || c->op == PNB__SIGMOID;
    void *in = needs_y ? NULL : P(r, x, c->x), *out = needs_y ? P(r, x, c->y) : NULL;
    r->k.unary_bwd(r->ctx, c->op, c->n, 1.5, in, out, P(r, x, c->dy), P(r, x, c->dx),
                   c->accumulate);
    r->k.unary(r->ctx, PNB__AFFINE, c->n, 2, 1, P(r, x, c->y), P(r, x, c->y)); /* in place */
}

static void test_unary(void **state)
{
    (void)state;
    for (int op = 0; op < PNB__N_UNARY; op++) {
        for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
            unary_case c = {.n = sizes[i], .accumulate = i % 2, .op = (pnb__unary)op};
            fixture x;
            fixture_init(&x, 5, 2e-6, 2e-6);
            bool positive = op == PNB__LOG || op == PNB__SQRT || op == PNB__RECIP;
            c.x = input(&x, c.n, positive ? 0.1 : -4, 4);
            c.y = output(&x, c.n, false);
            c.dy = input(&x, c.n, -1, 1);
            c.dx = output(&x, c.n, c.accumulate);
            compare_all(&x, unary_body, &c);
        }
    }
}

/* ---- binary ---- */

typedef struct binary_case {
    pnb__binary op;
    size_t dims[PNB__DIMS];
    int repeat_a, repeat_b; /* bit d: axis d is broadcast */
    bool accumulate;
    int a, b, y, dy, da, db;
} binary_case;

static size_t strides(const size_t dims[PNB__DIMS], int repeat, size_t out[PNB__DIMS])
{
    size_t n = 1;
    for (int d = PNB__DIMS - 1; d >= 0; d--) {
        out[d] = repeat >> d & 1 ? 0 : n;
        n *= repeat >> d & 1 ? 1 : dims[d];
    }
    return n;
}

static pnb__binary_args binary_args_of(const binary_case *c, size_t n[3])
{
    pnb__binary_args a = {.op = c->op, .accumulate = c->accumulate};
    memcpy(a.dims, c->dims, sizeof a.dims);
    n[0] = strides(c->dims, c->repeat_a, a.stride_a);
    n[1] = strides(c->dims, c->repeat_b, a.stride_b);
    size_t unused[PNB__DIMS];
    n[2] = strides(c->dims, 0, unused);
    return a;
}

static void binary_body(run *r, fixture *x)
{
    const binary_case *c = r->user;
    size_t n[3];
    pnb__binary_args a = binary_args_of(c, n);
    a.a = P(r, x, c->a), a.b = P(r, x, c->b), a.y = P(r, x, c->y);
    r->k.binary(r->ctx, &a);
    a.dy = P(r, x, c->dy);
    a.d = P(r, x, c->da);
    r->k.binary_bwd(r->ctx, &a);
    a.d = P(r, x, c->db);
    a.which = 1;
    if (c->op == PNB__ADD || c->op == PNB__SUB)
        a.a = a.b = NULL; /* not needed, so not read */
    r->k.binary_bwd(r->ctx, &a);
}

static void check_binary(binary_case c)
{
    fixture x;
    fixture_init(&x, 9, 1e-5, 2e-6);
    size_t n[3];
    binary_args_of(&c, n);
    c.a = input(&x, n[0], -2, 2);
    c.b = input(&x, n[1], 0.5, 2);
    c.y = output(&x, n[2], false);
    c.dy = input(&x, n[2], -1, 1);
    c.da = output(&x, n[0], c.accumulate);
    c.db = output(&x, n[1], c.accumulate);
    compare_all(&x, binary_body, &c);
}

static void test_binary(void **state)
{
    (void)state;
    static const size_t shapes[][PNB__DIMS] = {{1, 1, 1, 1, 1},  {1, 1, 1, 1, 37}, {1, 1, 5, 7, 33},
                                               {2, 3, 2, 3, 17}, {1, 1, 1, 0, 5},  {1, 1, 3, 0, 1}};
    static const int repeats[] = {0, 1 << 4, 1 << 3, 3 << 3, 1 << 2, 5 << 2, 31, 7, 15, 2, 9};
    for (size_t s = 0; s < PNB_COUNT(shapes); s++) {
        for (size_t i = 0; i < PNB_COUNT(repeats); i++) {
            binary_case c = {.op = (pnb__binary)((s + i) % 4), .accumulate = i % 2};
            memcpy(c.dims, shapes[s], sizeof c.dims);
            c.repeat_b = repeats[i];
            check_binary(c);
            c.op = (pnb__binary)((s + i + 1) % 4);
            c.repeat_a = repeats[i];
            c.repeat_b = i % 3 == 0 ? 1 << 4 : 0;
            check_binary(c);
        }
    }
}

static void test_binary_large(void **state)
{
    (void)state;
    static const int repeats[] = {0, 1 << 3, 1 << 4, 3 << 3};
    for (int op = 0; op < PNB__N_BINARY; op++) {
        for (size_t i = 0; i < PNB_COUNT(repeats); i++) {
            binary_case c = {.op = (pnb__binary)op, .dims = {1, 1, 1, 150, 333}};
            c.repeat_b = repeats[i];
            c.accumulate = op % 2;
            check_binary(c);
        }
    }
}

/* ---- copy ---- */

typedef struct copy_case {
    pnb__copy_args args;
    int src, dst;
} copy_case;

static void copy_body(run *r, fixture *x)
{
    const copy_case *c = r->user;
    pnb__copy_args a = c->args;
    a.src = P(r, x, c->src);
    a.dst = P(r, x, c->dst);
    r->k.copy(r->ctx, &a);
}

static void test_copy(void **state)
{
    (void)state;
    static const pnb__copy_args copies[] = {
        {.dims = {1, 1, 1, 1, 1}, .stride_src = {0}, .stride_dst = {0}},
        {.dims = {1, 1, 1, 1, 99}, .stride_src = {0, 0, 0, 0, 1}, .stride_dst = {0, 0, 0, 0, 1}},
        {.dims = {1, 1, 4, 5, 21},
         .stride_src = {0, 0, 200, 30, 1},
         .stride_dst = {0, 0, 105, 21, 1}},
        {.dims = {1, 2, 3, 4, 5}, .stride_src = {0, 60, 20, 5, 1}, .stride_dst = {0, 60, 1, 15, 3}},
        {.dims = {1, 1, 1, 7, 9}, .stride_src = {0, 0, 0, 0, 1}, .stride_dst = {0, 0, 0, 9, 1}},
        {.dims = {1, 1, 110, 2, 80},
         .stride_src = {0, 0, 170, 85, 1},
         .stride_dst = {0, 0, 160, 80, 1}},
        {.dims = {1, 1, 1, 70, 90}, /* transpositions, in tiles, both ways round */
         .stride_src = {0, 0, 0, 1, 70},
         .stride_dst = {0, 0, 0, 90, 1}},
        {.dims = {1, 1, 3, 33, 64},
         .stride_src = {0, 0, 2200, 64, 1},
         .stride_dst = {0, 0, 2112, 1, 33}},
        {.dims = {1, 2, 2, 32, 40},
         .stride_src = {0, 2560, 32, 1, 64},
         .stride_dst = {0, 2560, 1280, 40, 1}},
        {.dims = {1, 1, 1, 34, 40}, /* of one that has gaps, and to it */
         .stride_src = {0, 0, 0, 2, 70},
         .stride_dst = {0, 0, 0, 40, 1}},
        {.dims = {1, 1, 1, 34, 40}, .stride_src = {0, 0, 0, 40, 1}, .stride_dst = {0, 0, 0, 2, 70}},
        {.dims = {1, 1, 0, 2, 3}, .stride_src = {0, 0, 6, 3, 1}, .stride_dst = {0, 0, 6, 3, 1}}};
    for (size_t i = 0; i < PNB_COUNT(copies); i++) {
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            copy_case c = {.args = copies[i]};
            c.args.accumulate = accumulate;
            fixture x;
            fixture_init(&x, 3, 0, 1e-7);
            c.src = input(&x, 20000, -1, 1);
            c.dst = output(&x, 20000, true);
            compare_all(&x, copy_body, &c);
        }
    }
}

/* ---- sums ---- */

typedef struct sum_case {
    size_t outer, n, inner;
    bool accumulate;
    int x, y, dx;
} sum_case;

static void sum_body(run *r, fixture *x)
{
    const sum_case *c = r->user;
    void *in = P(r, x, c->x), *out = P(r, x, c->y), *back = P(r, x, c->dx);
    r->k.sum(r->ctx, c->outer, c->n, c->inner, 0.5, in, out, c->accumulate);
    r->k.sum_bwd(r->ctx, c->outer, c->n, c->inner, -2, out, back, c->accumulate);
}

static void test_sum(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},   {1, 40003, 1}, {37, 50, 1}, {1, 300, 257},
                                       {3, 5, 19},  {4, 0, 3},     {0, 3, 3},   {1, 60, 1100},
                                       {900, 3, 1}, {2, 1, 5},     {1, 0, 1}};
    for (size_t i = 0; i < PNB_COUNT(shapes); i++) {
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            sum_case c = {shapes[i][0], shapes[i][1], shapes[i][2], accumulate, 0, 0, 0};
            fixture x;
            fixture_init(&x, 3, 2e-6, 1e-6);
            c.x = input(&x, c.outer * c.n * c.inner, -1, 1);
            c.y = output(&x, c.outer * c.inner, c.accumulate);
            c.dx = output(&x, c.outer * c.n * c.inner, c.accumulate);
            compare_all(&x, sum_body, &c);
        }
    }
}

static void test_sum_squares_and_finite(void **state)
{
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 3, &ctx))
            continue;
        for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
            size_t n = sizes[i];
            float *x = malloc((n + 1) * sizeof *x);
            assert_non_null(x);
            double want = 0;
            for (size_t j = 0; j < n; j++) {
                x[j] = (float)(j % 91) * 1e20f; /* squares overflow a float */
                want += (double)x[j] * (double)x[j];
            }
            assert_true(is_close(k.sum_squares(ctx, &(pnb__flat){x, n}, 1), want, 0, 1e-12));
            const pnb__flat thirds[] = {
                {x, n / 3}, {x + n / 3, n / 3}, {x + n / 3 * 2, n - n / 3 * 2}};
            assert_true(is_close(k.sum_squares(ctx, thirds, 3), want, 0, 1e-12));
            assert_true(k.sum_squares(ctx, thirds, 0) == 0);
            assert_true(k.all_finite(ctx, n, x));
            for (size_t j = 0; j < n; j += n / 5 + 1) {
                float old = x[j];
                x[j] = j % 2 ? NAN : -INFINITY;
                assert_false(k.all_finite(ctx, n, x));
                x[j] = old;
            }
            free(x);
        }
        pnb_ctx_free(ctx);
    }
}

typedef struct vector_case {
    size_t n;
    int x, y, z;
} vector_case;

static void vector_body(run *r, fixture *x)
{
    const vector_case *c = r->user;
    r->k.axpy(r->ctx, c->n, -0.3, P(r, x, c->x), P(r, x, c->y));
    r->k.fill(r->ctx, c->n, 0.7, P(r, x, c->z));
}

static void test_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        vector_case c = {.n = sizes[i]};
        fixture x;
        fixture_init(&x, 3, 1e-7, 1e-7);
        c.x = input(&x, c.n, -1, 1);
        c.y = output(&x, c.n, true);
        c.z = output(&x, c.n, false);
        compare_all(&x, vector_body, &c);
    }
}

/* ---- dropout ---- */

typedef struct dropout_case {
    size_t n;
    double p;
    bool accumulate;
    int x, y;
} dropout_case;

static void dropout_body(run *r, fixture *x)
{
    const dropout_case *c = r->user;
    r->k.dropout(r->ctx, c->n, c->p, 42, 7, P(r, x, c->x), P(r, x, c->y), c->accumulate);
}

static void test_dropout(void **state)
{
    (void)state;
    static const double rates[] = {0, 0.1, 0.75, 1};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        for (size_t j = 0; j < PNB_COUNT(rates); j++) {
            dropout_case c = {.n = sizes[i], .p = rates[j], .accumulate = i % 2};
            fixture x;
            fixture_init(&x, 3, 1e-6, 1e-6);
            c.x = input(&x, c.n, -1, 1);
            c.y = output(&x, c.n, c.accumulate);
            compare_all(&x, dropout_body, &c);
        }
    }
    enum { M = 40000 }; /* the share dropped, in five standard deviations */
    static float ones[M], y[M];
    pnb__kernels k;
    pnb__kernels_ref_f32(&k);
    k.fill(NULL, M, 1, ones);
    k.dropout(NULL, M, 0.3, 1, 2, ones, y, false);
    int n_dropped = 0;
    for (int i = 0; i < M; i++)
        n_dropped += y[i] == 0;
    assert_true(abs(n_dropped - 12000) < 460);
}

static void test_memory(void **state)
{
    (void)state;
    static const size_t bytes[] = {0, 1, 1000, 9 << 20};
    pnb_ctx *ctx = test_ctx(PNB_ISA_GENERIC, 2);
    pnb__kernels k;
    pnb__kernels_fill(&k, ctx, PNB__F32);
    for (size_t i = 0; i < PNB_COUNT(bytes); i++) {
        void *p = NULL, *q = NULL;
        char *back = malloc(bytes[i] + 1);
        assert_int_equal(k.mem_alloc(ctx, &p, bytes[i], NULL), PNB_OK);
        assert_int_equal(k.mem_alloc(ctx, &q, bytes[i], NULL), PNB_OK);
        assert_non_null(p);
        assert_non_null(back);
        assert_int_equal((uintptr_t)p % 64, 0);
        memset(back, 0x5A, bytes[i] + 1);
        assert_int_equal(k.mem_write(ctx, p, back, bytes[i], NULL), PNB_OK);
        memset(back, 0, bytes[i] + 1);
        assert_int_equal(k.mem_copy(ctx, q, p, bytes[i], NULL), PNB_OK);
        assert_int_equal(k.mem_zero(ctx, p, bytes[i], NULL), PNB_OK);
        assert_int_equal(k.mem_read(ctx, back, q, bytes[i], NULL), PNB_OK);
        for (size_t j = 0; j < bytes[i]; j += 997)
            assert_int_equal(back[j], 0x5A);
        assert_int_equal(k.mem_read(ctx, back, p, bytes[i], NULL), PNB_OK);
        for (size_t j = 0; j < bytes[i]; j += 997)
            assert_int_equal(back[j], 0);
        k.mem_free(ctx, p, bytes[i]);
        k.mem_free(ctx, q, bytes[i]);
        free(back);
    }
    k.mem_free(ctx, NULL, 0);
    assert_ptr_equal(k.ctx, ctx);
#ifdef PNB_FAULTS
    pnb_error err = PNB_ERROR_INIT;
    void *none = NULL;
    pnb__alloc_fail_after(0);
    assert_int_equal(k.mem_alloc(ctx, &none, 1000, &err), PNB_NOMEM);
    assert_null(none);
    assert_non_null(strstr(err.text, "out of memory"));
#endif
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_binary_large), cmocka_unit_test(test_copy),
        cmocka_unit_test(test_sum),          cmocka_unit_test(test_sum_squares_and_finite),
        cmocka_unit_test(test_vectors),      cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
