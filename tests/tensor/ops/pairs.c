/* Losses over all pairs in strips: values and gradients by plain loops, where one strip holds all
 * and where several are needed, what is refused, and memory that does not grow with the pairs. */
#include "tests/tensor/graphs.h"

static double logit(const double *x, const double *y, size_t dim, double plus)
{
    for (size_t d = 0; d < dim; d++)
        plus += x[d] * y[d];
    return plus;
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void test_softplus(void **state)
{
    enum { N = 3, M = 4, D = 5 };
    double want[N];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(N, D), *y = IN(M, D), *row = IN(N), *col = IN(M);
    for (size_t i = 0; i < N; i++) {
        want[i] = 0;
        for (size_t j = 0; j < M; j++)
            want[i] += softplus(logit(numbers(x) + i * D, numbers(y) + j * D, D,
                                      numbers(row)[i] + numbers(col)[j]));
    }
    pnb__tensor *out = pnb__pair_softplus(x, y, row, col);
    expect_shape(out, SHAPE(N));
    expect_values(out, want, N);
    pnb__tensor *zero;
    REFUSED(pnb__pair_softplus(IN(2, 3), IN(4, 2), NULL, NULL), "pair_softplus: rows (2, 3)");
    REFUSED(pnb__pair_softplus(IN(6), IN(4, 6), NULL, NULL), "pair_softplus: rows (6)");
    REFUSED((zero = IN(0, 3), pnb__pair_softplus(zero, IN(4, 3), NULL, NULL)), "rows (0, 3)");
    REFUSED(pnb__pair_softplus(IN(2, 3), IN(4, 3), IN(4), NULL), "(4) to add to 2 rows");
    REFUSED(pnb__pair_softplus(IN(2, 3), IN(4, 3), NULL, IN(2)), "(2) to add to 4 rows");
}

static void test_cross_entropy(void **state)
{
    enum { N = 3, M = 4, D = 5 };
    static const int32_t targets[N] = {3, 0, 0};
    double want[N];
    (void)state;
    begin_graph(PNB__F64, false);
    pnb__tensor *x = IN(N, D), *y = IN(M, D), *t = int_in(targets, SHAPE(N));
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (size_t j = 0; j < M; j++)
            sum += exp(logit(numbers(x) + i * D, numbers(y) + j * D, D, 0));
        const double *own = numbers(y) + (size_t)targets[i] * D;
        want[i] = log(sum) - logit(numbers(x) + i * D, own, D, 0);
    }
    pnb__tensor *out = pnb__pair_cross_entropy(x, y, t);
    expect_shape(out, SHAPE(N));
    expect_values(out, want, N);
    REFUSED(pnb__pair_cross_entropy(IN(3, 2), IN(4, 3), int_in(targets, SHAPE(3))), "rows (3, 2)");
    REFUSED(pnb__pair_cross_entropy(IN(2, 3), IN(4, 3), int_in(targets, SHAPE(3))),
            "targets (3) of 2 rows");
    REFUSED(pnb__pair_cross_entropy(IN(3, 3), IN(4, 3), IN(3)), "targets (3) of 3 rows");
}

/* ---- several strips: 600 rows against 16,500 are three of 256 rows and less ---- */

enum { N1 = 600, N2 = 16500 };

typedef struct sides {
    float x[N1], y[N2], row[N1], col[N2];
    int32_t targets[N1];
    double d_x[N1], d_y[N2], d_row[N1], d_col[N2], loss; /* by plain loops, weights i % 3 + 1 */
} sides;

static double weight_of(size_t i)
{
    return (double)(i % 3 + 1);
}

static void fill(sides *s)
{
    for (size_t i = 0; i < N1; i++) {
        s->x[i] = (float)sin(0.7 * (double)i);
        s->row[i] = (float)cos((double)i);
        s->targets[i] = (int32_t)(i * 17 % N2);
    }
    for (size_t j = 0; j < N2; j++) {
        s->y[j] = (float)cos(0.3 * (double)j);
        s->col[j] = (float)sin(1.1 * (double)j);
    }
}

static void by_definition(sides *s, bool entropy)
{
    for (size_t i = 0; i < N1; i++) {
        double sum = 0, w = weight_of(i), xi = s->x[i], ri = entropy ? 0 : s->row[i];
        for (size_t j = 0; j < N2; j++) {
            double l = xi * s->y[j] + ri + (entropy ? 0 : s->col[j]);
            sum += entropy ? exp(l) : softplus(l);
        }
        s->loss += w * (entropy ? log(sum) - xi * s->y[s->targets[i]] : sum);
        for (size_t j = 0; j < N2; j++) {
            double l = xi * s->y[j] + ri + (entropy ? 0 : s->col[j]);
            double d = entropy ? exp(l) / sum - (j == (size_t)s->targets[i]) : 1 / (1 + exp(-l));
            s->d_x[i] += w * d * s->y[j];
            s->d_y[j] += w * d * xi;
            s->d_row[i] += w * d;
            s->d_col[j] += w * d;
        }
    }
}

static void expect_close(const pnb__tensor *t, const double *want)
{
    double *got = calloc(pnb__n(t), sizeof *got), most = 0;
    assert_true(pnb__read_grad_f64(t, got));
    for (size_t i = 0; i < pnb__n(t); i++)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < pnb__n(t); i++)
        assert_true(fabs(got[i] - want[i]) <= 1e-6 * most);
    free(got);
}

static void check_strips(pnb__real real, bool entropy)
{
    sides *s = calloc(1, sizeof *s);
    double weights[N1];
    fill(s);
    by_definition(s, entropy);
    begin_graph(real, true);
    pnb__tensor *x = pnb__input_with_grad(g, SHAPE(N1, 1)), *row = NULL, *col = NULL, *t = NULL;
    pnb__tensor *y = pnb__input_with_grad(g, SHAPE(N2, 1)),
                *w = pnb__input(g, PNB__REAL, SHAPE(N1));
    if (entropy) {
        t = pnb__input(g, PNB__INT32, SHAPE(N1));
    } else {
        row = pnb__input_with_grad(g, SHAPE(N1));
        col = pnb__input_with_grad(g, SHAPE(N2));
    }
    pnb__tensor *const kept[] = {x, y, row, col};
    for (size_t i = 0; i < PNB_COUNT(kept); i++)
        if (kept[i] != NULL)
            pnb__keep_grad(kept[i]);
    pnb__tensor *each =
        entropy ? pnb__pair_cross_entropy(x, y, t) : pnb__pair_softplus(x, y, row, col);
    pnb__tensor *loss = pnb__sum(pnb__mul(each, w), PNB__ALL_AXES);
    pnb__keep(loss);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    /* two strips of 256 rows, where all logits would take N1 rows */
    assert_true(pnb__graph_arena_bytes(g) < (size_t)560 * N2 * PNB__REAL_SIZE(real));
    for (size_t i = 0; i < N1; i++)
        weights[i] = weight_of(i);
    pnb__write_f64(w, weights);
    pnb__write_f32(x, s->x);
    pnb__write_f32(y, s->y);
    if (entropy) {
        pnb__write_i32(t, s->targets);
    } else {
        pnb__write_f32(row, s->row);
        pnb__write_f32(col, s->col);
    }
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_true(fabs(pnb__read_scalar(loss) - s->loss) <= 1e-6 * s->loss);
    expect_close(x, s->d_x);
    expect_close(y, s->d_y);
    if (!entropy) {
        expect_close(row, s->d_row);
        expect_close(col, s->d_col);
    }
    end_graph();
    free(s);
}

static void test_several_strips(void **state)
{
    (void)state;
    check_strips(PNB__F64, false);
    check_strips(PNB__F32, false);
    check_strips(PNB__F32, true);
}

/* ---- labels and margins: 2,100 rows against as many are two strips ---- */

enum { ROWS = 2100, WIDE = 3 };

typedef enum striped { LABELLED, PSEUDO, MARGINS, HARDEST } striped;

/* What plain loops in doubles find: value and d/dx of sum_i w_i y_i. */
static double plain_value(striped op, const double *x, const double *y, double *d_x)
{
    double total = 0;
    double *s = calloc(ROWS, sizeof *s);
    for (size_t i = 0; i < ROWS; i++) {
        double w = weight_of(i), sum = 0, slope_own = 0;
        size_t most = ROWS;
        for (size_t j = 0; j < ROWS; j++)
            s[j] = logit(x + i * WIDE, y + j * WIDE, WIDE, 0);
        for (size_t j = 0; j < ROWS; j++) {
            double slope = 0, label = j == i ? 0.75 : j == (i + 5) % ROWS ? 0.25 : 0.01;
            if (op == PSEUDO && s[j] >= s[i])
                label = 0.75;
            if (op == LABELLED || op == PSEUDO) {
                sum += softplus(s[j]) - label * s[j];
                slope = 1 / (1 + exp(-s[j])) - label;
            } else if (j != i && 0.2 + s[j] - s[i] > 0) {
                if (op == MARGINS) {
                    sum += 0.2 + s[j] - s[i];
                    slope = 1;
                    slope_own--;
                } else if (most == ROWS || s[j] > s[most]) {
                    most = j;
                }
            }
            for (size_t d = 0; d < WIDE; d++)
                d_x[i * WIDE + d] += w * slope * y[j * WIDE + d];
        }
        if (op == HARDEST && most < ROWS) {
            sum = 0.2 + s[most] - s[i];
            slope_own = -1;
            for (size_t d = 0; d < WIDE; d++)
                d_x[i * WIDE + d] += w * y[most * WIDE + d];
        }
        for (size_t d = 0; d < WIDE; d++)
            d_x[i * WIDE + d] += w * slope_own * y[i * WIDE + d];
        total += w * sum;
    }
    free(s);
    return total;
}

static pnb__tensor *build_striped(striped op, pnb__tensor *x, pnb__tensor *y, pnb__marks *marks)
{
    const size_t single[3] = {ROWS, 1, WIDE};
    marks->base = 0.01;
    if (op == MARGINS || op == HARDEST)
        return pnb__pair_margins(pnb__reshape(x, 3, single), pnb__reshape(y, 3, single), 0, 0.2,
                                 op == HARDEST);
    marks->columns = pnb__input(g, PNB__INT32, SHAPE(ROWS, 2));
    marks->weights = pnb__input(g, PNB__REAL, SHAPE(ROWS, 2));
    if (op == PSEUDO)
        marks->match = pnb__input(g, PNB__INT32, SHAPE(ROWS));
    return pnb__pair_labelled(x, y, NULL, NULL, marks);
}

static void write_marks(const pnb__marks *marks)
{
    static int32_t columns[2 * ROWS], match[ROWS];
    static double weights[2 * ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        columns[2 * i] = match[i] = (int32_t)i;
        columns[2 * i + 1] = (int32_t)((i + 5) % ROWS);
        weights[2 * i] = 0.74;
        weights[2 * i + 1] = 0.24;
    }
    if (marks->columns != NULL) {
        pnb__write_i32(marks->columns, columns);
        pnb__write_f64(marks->weights, weights);
    }
    if (marks->match != NULL)
        pnb__write_i32(marks->match, match);
}

static void check_striped(striped op)
{
    double *x = calloc(2 * (size_t)ROWS * WIDE, sizeof *x), *y = x + (size_t)ROWS * WIDE;
    double *d_x = calloc((size_t)ROWS * WIDE, sizeof *d_x), weights[ROWS];
    pnb__marks marks = {0};
    for (size_t i = 0; i < (size_t)ROWS * WIDE; i++) {
        x[i] = sin(0.7 * (double)i);
        y[i] = cos(0.9 * (double)i);
    }
    double want = plain_value(op, x, y, d_x);
    begin_graph(PNB__F64, true);
    pnb__tensor *tx = pnb__input_with_grad(g, SHAPE(ROWS, WIDE));
    pnb__tensor *ty = pnb__input_with_grad(g, SHAPE(ROWS, WIDE));
    pnb__tensor *w = pnb__input(g, PNB__REAL, SHAPE(ROWS));
    pnb__keep_grad(tx);
    pnb__tensor *loss = pnb__sum(pnb__mul(build_striped(op, tx, ty, &marks), w), PNB__ALL_AXES);
    pnb__keep(loss);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    for (size_t i = 0; i < ROWS; i++)
        weights[i] = weight_of(i);
    pnb__write_f64(w, weights);
    pnb__write_f64(tx, x);
    pnb__write_f64(ty, y);
    write_marks(&marks);
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_true(fabs(pnb__read_scalar(loss) - want) <= 1e-9 * fabs(want));
    expect_close(tx, d_x);
    end_graph();
    free(x);
    free(d_x);
}

static void test_labels_and_margins(void **state)
{
    (void)state;
    for (int op = LABELLED; op <= HARDEST; op++)
        check_striped((striped)op);
}

/* One tensor on both sides has the sum of both gradients. */
static void test_one_tensor_on_both_sides(void **state)
{
    enum { N = 3 };
    double grad[N], ends[2], values[N] = {0.5, -1, 2};
    (void)state;
    begin_graph(PNB__F64, true);
    pnb__tensor *x = pnb__input_with_grad(g, SHAPE(N, 1));
    pnb__keep_grad(x);
    pnb__tensor *loss = pnb__sum(pnb__pair_softplus(x, x, NULL, NULL), PNB__ALL_AXES);
    pnb__keep(loss);
    assert_int_equal(pnb__graph_plan(g, loss, NULL), PNB_OK);
    pnb__write_f64(x, values);
    assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
    assert_true(pnb__read_grad_f64(x, grad));
    for (size_t i = 0; i < N; i++) {
        double kept = values[i];
        for (int side = 0; side < 2; side++) {
            values[i] = kept + (side == 0 ? 1e-5 : -1e-5);
            pnb__write_f64(x, values);
            assert_int_equal(pnb__graph_run(g, NULL), PNB_OK);
            ends[side] = pnb__read_scalar(loss);
        }
        values[i] = kept;
        assert_true(fabs(grad[i] - (ends[0] - ends[1]) / 2e-5) < 1e-6);
    }
    end_graph();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softplus),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_several_strips),
        cmocka_unit_test(test_labels_and_margins),
        cmocka_unit_test(test_one_tensor_on_both_sides),
    };
    return cmocka_run_group_tests(tests, open_ctx, close_ctx);
}
