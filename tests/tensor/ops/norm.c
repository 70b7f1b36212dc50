/* Ops over the last axis against their formulas: LayerNorm, lengths, softmax, cross entropy. */
#include "tests/tensor/graphs.h"

enum { R = 3, W = 5, N = R * W };

static void test_layernorm(void **state)
{
    static const double eps = 0.25; /* large enough to be seen */
    (void)state;
    for (int given_as = 0; given_as < 4; given_as++) { /* with weights, with a bias */
        double want[N];
        begin_graph(PNB__F64, false);
        pnb__tensor *x = IN(R, W), *w = given_as & 1 ? IN(W) : NULL,
                    *b = given_as & 2 ? IN(W) : NULL;
        for (size_t r = 0; r < R; r++) {
            const double *row = numbers(x) + r * W;
            double mean = 0, var = 0;
            for (size_t i = 0; i < W; i++)
                mean += row[i] / W;
            for (size_t i = 0; i < W; i++)
                var += (row[i] - mean) * (row[i] - mean) / W; /* biased */
            for (size_t i = 0; i < W; i++)
                want[r * W + i] = (row[i] - mean) / sqrt(var + eps) * (w ? numbers(w)[i] : 1) +
                                  (b ? numbers(b)[i] : 0);
        }
        expect_values(pnb__layernorm(x, w, b, eps), want, N);
    }
    REFUSED(pnb__layernorm(IN(R, W), IN(W + 1), NULL, eps), "layernorm: 6 weights for x (3, 5)");
    REFUSED(pnb__layernorm(IN(R, W), IN(1, W), NULL, eps), "layernorm: 5 weights");
    REFUSED(pnb__layernorm(IN(R, W), IN(W), IN(1), eps), "layernorm: 1 weights");
}

/* Rows of length 1; a shorter row than eps is divided by eps. */
static void test_l2_normalize(void **state)
{
    static const double eps = 1e-3;
    double want[N];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(R, W);
    for (size_t i = 0; i < W; i++) {
        numbers(x)[i] = 0;
        numbers(x)[W + i] *= 1e-6;
    }
    for (size_t r = 0; r < R; r++) {
        double squares = 0;
        for (size_t i = 0; i < W; i++)
            squares += pow(numbers(x)[r * W + i], 2);
        for (size_t i = 0; i < W; i++)
            want[r * W + i] = numbers(x)[r * W + i] / PNB_MAX(sqrt(squares), eps);
    }
    expect_values(pnb__l2_normalize(x, eps), want, N);
}

/* Rows of softmax, also of one element and of numbers whose exponential does not exist. */
static void test_softmax(void **state)
{
    (void)state;
    for (int log_of = 0; log_of < 2; log_of++) {
        double want[N];
        begin_graph(PNB__F64, false);
        pnb__tensor *x = IN(R, W);
        for (size_t i = 0; i < W; i++)
            numbers(x)[i] += 800;
        for (size_t r = 0; r < R; r++) {
            const double *row = numbers(x) + r * W;
            double total = 0;
            for (size_t i = 0; i < W; i++)
                total += exp(row[i] - row[0]);
            for (size_t i = 0; i < W; i++)
                want[r * W + i] =
                    log_of ? row[i] - row[0] - log(total) : exp(row[i] - row[0]) / total;
        }
        expect_values(log_of ? pnb__log_softmax(x) : pnb__softmax(x), want, N);
        begin_graph(PNB__F64, false);
        x = IN(2, 1);
        expect_values(log_of ? pnb__log_softmax(x) : pnb__softmax(x),
                      log_of ? (const double[]){0, 0} : (const double[]){1, 1}, 2);
    }
}

static void test_cross_entropy(void **state)
{
    static const int32_t targets[R] = {4, 0, 2};
    double want[R];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(R, W);
    for (size_t r = 0; r < R; r++) {
        double total = 0;
        for (size_t i = 0; i < W; i++)
            total += exp(numbers(x)[r * W + i]);
        want[r] = log(total) - numbers(x)[r * W + (size_t)targets[r]];
    }
    pnb__tensor *y = pnb__cross_entropy(x, int_in(targets, SHAPE(R)));
    expect_shape(y, SHAPE(R));
    expect_values(y, want, R);
    REFUSED(pnb__cross_entropy(IN(R, W), IN(R)),
            "cross_entropy: x (3, 5) does not fit targets (3)"); /* no integers */
    REFUSED(pnb__cross_entropy(IN(2, W), int_in(targets, SHAPE(R))), "x (2, 5)");
    REFUSED(pnb__cross_entropy(IN(R), int_in(targets, SHAPE(R))), "x (3)");
}

static void test_nothing_gives_nothing(void **state)
{
    (void)state;
    begin_graph(PNB__F64, false);
    assert_null(pnb__layernorm(NULL, IN(1), IN(1), 1));
    assert_null(pnb__l2_normalize(NULL, 1));
    assert_null(pnb__softmax(NULL));
    assert_null(pnb__cross_entropy(NULL, IN(1)));
    assert_null(pnb__cross_entropy(IN(1, 1), NULL));
    assert_int_equal(g->error.status, PNB_OK);
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layernorm), cmocka_unit_test(test_l2_normalize),
        cmocka_unit_test(test_softmax), cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_nothing_gives_nothing)};
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
