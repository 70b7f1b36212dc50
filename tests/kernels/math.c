/* Accuracy of the vector functions over their whole range, and that a value's result does not
 * depend on where in an array it stands; the reference's formulas against the C library. */
#include "tests/kernels/harness.h"

#define N 20011

typedef struct accuracy {
    pnb__unary op;
    double low, high;
    bool logarithmic; /* points crowd towards 0 */
    double abs_tol, rel_tol;
} accuracy;

static const accuracy cases[] = {
    {PNB__EXP, -87, 88.7, false, 0, 2e-7},
    {PNB__EXP, -103, -87, false, 2e-45, 0},
    {PNB__LOG, 1e-38, 3e38, true, 1e-7, 2e-7},
    {PNB__LOG, 0.5, 2, false, 1e-9, 2e-7},
    {PNB__LOG, 1e-45, 1e-38, false, 0, 2e-7},
    {PNB__SQRT, 0, 1e30, false, 0, 1e-7},
    {PNB__SQUARE, -1e9, 1e9, false, 0, 1e-7},
    {PNB__ABS, -1e9, 1e9, false, 0, 0},
    {PNB__RECIP, 1e-3, 1e3, true, 0, 1e-7},
    {PNB__SIN, -1e4, 1e4, false, 1e-7, 1e-7},
    {PNB__COS, -1e4, 1e4, false, 1e-7, 1e-7},
    {PNB__TANH, -20, 20, false, 0, 5e-7},
    {PNB__TANH, 1e-30, 1, true, 0, 5e-7},
    {PNB__SIGMOID, -87, 88, false, 0, 4e-7},
    {PNB__LOG_SIGMOID, -88, 87, false, 0, 4e-7},
    {PNB__SOFTPLUS, -87, 88, false, 0, 4e-7},
    {PNB__RELU, -10, 10, false, 0, 0},
    {PNB__GELU, -10, 10, false, 8e-7, 2e-7},
    {PNB__GELU_TANH, -10, 10, false, 2.5e-7, 4e-7},
    {PNB__QUICK_GELU, -30, 30, false, 2.5e-7, 1.5e-6},
    {PNB__AFFINE, -10, 10, false, 1e-6, 2e-7},
};

static const accuracy slopes[] = {
    {PNB__LOG, 0.01, 10, false, 0, 2e-7},
    {PNB__SQUARE, -9, 9, false, 0, 1e-7},
    {PNB__ABS, -1, 1, false, 0, 0},
    {PNB__SIN, -50, 50, false, 1e-7, 1e-7},
    {PNB__COS, -50, 50, false, 1e-7, 1e-7},
    {PNB__LOG_SIGMOID, -80, 80, false, 0, 4e-7},
    {PNB__SOFTPLUS, -80, 80, false, 0, 4e-7},
    {PNB__RELU, -5, 5, false, 0, 0},
    {PNB__GELU, -10, 10, false, 4e-7, 4e-7},
    {PNB__GELU_TANH, -10, 10, false, 4e-7, 4e-7},
    {PNB__QUICK_GELU, -30, 30, false, 4e-7, 4e-7},
    {PNB__AFFINE, -5, 5, false, 0, 0},
};

static float point(const accuracy *a, size_t i)
{
    double u = (double)i / (N - 1);
    if (a->logarithmic)
        return (float)(a->low * pow(a->high / a->low, u));
    return (float)(a->low + (a->high - a->low) * u);
}

/* The formula again, in the C library's long double. */
static long double exact(pnb__unary op, long double x)
{
    switch (op) {
    case PNB__EXP:
        return expl(x);
    case PNB__LOG:
        return logl(x);
    case PNB__SQRT:
        return sqrtl(x);
    case PNB__SQUARE:
        return x * x;
    case PNB__ABS:
        return fabsl(x);
    case PNB__RECIP:
        return 1 / x;
    case PNB__SIN:
        return sinl(x);
    case PNB__COS:
        return cosl(x);
    case PNB__TANH:
        return tanhl(x);
    case PNB__SIGMOID:
        return 1 / (1 + expl(-x));
    case PNB__LOG_SIGMOID:
        return -log1pl(expl(-x));
    case PNB__SOFTPLUS:
        return log1pl(expl(x));
    case PNB__RELU:
        return x > 0 ? x : 0;
    case PNB__GELU:
        return x * erfcl(-x / sqrtl(2)) / 2;
    case PNB__GELU_TANH:
        return x / 2 * (1 + tanhl(sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
    case PNB__QUICK_GELU:
        return x / (1 + expl(-1.702L * x));
    default:
        return 2.5L * x - 0.75L;
    }
}

static void check_accuracy(const accuracy *a, const pnb__kernels *k, const pnb_ctx *ctx)
{
    float x[N], y[N]; /* on the stack, which a device reaches in tests on one */
    for (size_t i = 0; i < N; i++)
        x[i] = point(a, i);
    k->unary(ctx, a->op, N, 2.5, -0.75, x, y);
    wait_for(k, ctx);
    for (size_t i = 0; i < N; i++) {
        double want = (double)exact(a->op, (long double)x[i]);
        if (!is_close((double)y[i], want, a->abs_tol, a->rel_tol))
            fail_msg("%s function %d at %.9g: got %.9g, want %.9g", k->name, a->op, (double)x[i],
                     (double)y[i], want);
    }
}

static void check_slope(const accuracy *a, const pnb__kernels *k, const pnb_ctx *ctx)
{
    float x[N], y[N], dy[N], dx[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = point(a, i);
        dy[i] = 1;
    }
    k->unary(ctx, a->op, N, 2.5, -0.75, x, y);
    k->unary_bwd(ctx, a->op, N, 2.5, x, y, dy, dx, false);
    wait_for(k, ctx);
    pnb__kernels ref;
    pnb__kernels_ref_f64(&ref);
    for (size_t i = 0; i < N; i++) {
        double xd = (double)x[i], one = 1, yd = 0, want = 0;
        ref.unary(NULL, a->op, 1, 2.5, -0.75, &xd, &yd);
        ref.unary_bwd(NULL, a->op, 1, 2.5, &xd, &yd, &one, &want, false);
        if (!is_close((double)dx[i], want, a->abs_tol, a->rel_tol))
            fail_msg("%s slope of %d at %.9g: got %.9g, want %.9g", k->name, a->op, xd,
                     (double)dx[i], want);
    }
}

static void test_accuracy(void **state)
{
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 2, &ctx))
            continue;
        for (size_t i = 0; i < PNB_COUNT(cases); i++)
            check_accuracy(&cases[i], &k, ctx);
        for (size_t i = 0; i < PNB_COUNT(slopes); i++)
            check_slope(&slopes[i], &k, ctx);
        pnb_ctx_free(ctx);
    }
}

/* f64: the formula itself, and every derivative by differences. */
static double unary_loss(void *user)
{
    double **p = user; /* op, x, y */
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.unary(NULL, (pnb__unary)p[0][0], 1, 2.5, -0.75, p[1], p[2]);
    return *p[2];
}

static void test_reference(void **state)
{
    (void)state;
    static const double points[] = {-6.1, -1.3, -0.2, 0.3, 0.9, 2.2, 5.7};
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    for (int op = 0; op < PNB__N_UNARY; op++) {
        bool positive = op == PNB__LOG || op == PNB__SQRT;
        for (size_t i = positive ? 3 : 0; i < PNB_COUNT(points); i++) {
            double x = points[i], y, dy = 1, dx, which = op;
            double *p[3] = {&which, &x, &y};
            unary_loss(p);
            assert_true(is_close(y, (double)exact((pnb__unary)op, (long double)x), 1e-14, 1e-13));
            k.unary_bwd(NULL, (pnb__unary)op, 1, 2.5, &x, &y, &dy, &dx, false);
            check_gradient(unary_loss, p, &x, &dx, 1, 1e-8);
        }
    }
}

static void test_special_values(void **state)
{
    (void)state;
    static const struct {
        pnb__unary op;
        float x, y;
    } special[] = {{PNB__EXP, INFINITY, INFINITY},
                   {PNB__EXP, -INFINITY, 0},
                   {PNB__EXP, 89, INFINITY},
                   {PNB__EXP, 0, 1},
                   {PNB__LOG, 0, -INFINITY},
                   {PNB__LOG, INFINITY, INFINITY},
                   {PNB__LOG, -1, NAN},
                   {PNB__LOG, 1, 0},
                   {PNB__TANH, 100, 1},
                   {PNB__TANH, -100, -1},
                   {PNB__TANH, 0, 0},
                   {PNB__SIGMOID, 200, 1},
                   {PNB__SIGMOID, -200, 0},
                   {PNB__SOFTPLUS, 1e30f, 1e30f},
                   {PNB__SOFTPLUS, -1e30f, 0},
                   {PNB__LOG_SIGMOID, -1e30f, -1e30f},
                   {PNB__LOG_SIGMOID, 1e30f, 0},
                   {PNB__GELU, 1e20f, 1e20f},
                   {PNB__GELU, -1e20f, 0},
                   {PNB__GELU_TANH, 1e10f, 1e10f},
                   {PNB__GELU_TANH, -1e10f, 0},
                   {PNB__QUICK_GELU, 1e20f, 1e20f},
                   {PNB__QUICK_GELU, -1e20f, 0}};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (size_t i = 0; i < PNB_COUNT(special); i++) {
            float x = special[i].x, want = special[i].y, y;
            k.unary(ctx, special[i].op, 1, 1, 0, &x, &y);
            wait_for(&k, ctx);
            bool same = isnan(want) ? isnan(y) : y == want;
            if (!same)
                fail_msg("%s function %d of %g: got %g", k.name, special[i].op, (double)x,
                         (double)y);
        }
        for (int op = 0; op < PNB__N_UNARY; op++) { /* NaN goes through all of them */
            float x = NAN, y = 0;
            k.unary(ctx, (pnb__unary)op, 1, 1, 0, &x, &y);
            wait_for(&k, ctx);
            if (!isnan(y))
                fail_msg("%s function %d swallows NaN", k.name, op);
        }
        pnb_ctx_free(ctx);
    }
}

/* Slopes far out stay finite: no infinity times zero. */
static void test_extreme_slopes(void **state)
{
    (void)state;
    static const float far[] = {-1e30f, -1e4f, -88, 88, 1e4f, 1e30f};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (size_t i = 0; i < PNB_COUNT(far); i++) {
            for (int op = PNB__TANH; op < PNB__N_UNARY; op++) {
                float x = far[i], y, dy = 1, dx;
                k.unary(ctx, (pnb__unary)op, 1, 1, 0, &x, &y);
                k.unary_bwd(ctx, (pnb__unary)op, 1, 1, &x, &y, &dy, &dx, false);
                wait_for(&k, ctx);
                if (!(fabsf(dx) <= 1.01f))
                    fail_msg("%s slope of %d at %g: %g", k.name, op, (double)x, (double)dx);
            }
        }
        pnb_ctx_free(ctx);
    }
}

static void test_place_does_not_matter(void **state)
{
    (void)state;
    enum { M = 53 };
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (int op = 0; op < PNB__N_UNARY; op++) {
            float x[M], y[M], one;
            for (int i = 0; i < M; i++)
                x[i] = (float)(i + 1) * 0.173f;
            k.unary(ctx, (pnb__unary)op, M, 1, 0, x, y);
            for (int i = 0; i < M; i++) {
                k.unary(ctx, (pnb__unary)op, 1, 1, 0, x + i, &one);
                wait_for(&k, ctx);
                assert_memory_equal(&one, &y[i], sizeof one);
            }
        }
        pnb_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy), cmocka_unit_test(test_reference),
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_extreme_slopes),
        cmocka_unit_test(test_place_does_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
