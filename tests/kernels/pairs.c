/* Strips of logits: labels by marks, margins to negatives and kernels of distances, against their
 * definitions, and every table against the f64 reference; which of equal ones counts; numbers that
 * are none are not lost. */
#include "tests/kernels/strips.h"

static pnb__kernels k;

static int use_doubles(void **state)
{
    (void)state;
    pnb__kernels_ref_f64(&k);
    return 0;
}

enum { M = 2, N = 3 };

/* Row 0 has two marks on one column; row 1 a pseudo positive beside its match. */
static void labels_by_marks(void **state)
{
    (void)state;
    const double l[M * N] = {1, -2, 0.5, 3, 1, 4}, weights[M * 2] = {0.5, 0.25, 0.75, 0.125};
    const int32_t columns[M * 2] = {2, 2, 0, 1}, match[M] = {2, 0};
    const double base = 0.0625;
    for (int pseudo = 0; pseudo < 2; pseudo++) {
        double y[M * N] = {base, base, base + 0.75, base + 0.75, base + 0.125, base};
        double dot[M], out[M * N] = {0}, sum = 0;
        if (pseudo == 1) {
            y[0] = y[2];     /* 1 >= 0.5 */
            y[N + 2] = y[N]; /* 4 >= 3 */
        }
        const pnb__label_args a = {.m = M,
                                   .n = N,
                                   .k = 2,
                                   .base = base,
                                   .columns = columns,
                                   .weights = weights,
                                   .match = pseudo == 1 ? match : NULL,
                                   .logits = l,
                                   .dot = dot,
                                   .out = out};
        k.pair_labels(NULL, &a);
        for (size_t i = 0; i < M; i++, sum = 0) {
            for (size_t j = 0; j < N; j++) {
                sum += y[i * N + j] * l[i * N + j];
                assert_true(fabs(out[i * N + j] + y[i * N + j]) < 1e-15);
            }
            assert_true(fabs(dot[i] - sum) < 1e-14);
        }
    }
}

/* Rows 1 and 2 of three, two embeddings each: [0.5 + s_ij - s_ii]+ */
static void margins_of_the_best(void **state)
{
    (void)state;
    enum { K = 2, LD = N * K };
    /* best of pairs: row 1: 2, 1.75, 1.5; row 2: 0, 3, 3 (of equal products the first) */
    const double given[M * K * LD] = {
        2, 0, 1.75, 0, 0,   1.5, /* row 1 */
        2, 1, 0,    1, 1.5, 0,   /* */
        0, 0, 3,    3, 1,   3,   /* row 2 */
        0, 0, 3,    3, 3,   2,
    };
    const double sums[2][M] = {{0.75 + 0.25, 0.5}, {0.75, 0.5}}, d[M] = {2, 8};
    for (int hardest = 0; hardest < 2; hardest++) {
        double products[M * K * LD], hinges[N], got[M], want[M * K * LD] = {0};
        memcpy(products, given, sizeof given);
        pnb__margin_args a = {.m = M,
                              .n = N,
                              .k = K,
                              .first = 1,
                              .margin = 0.5,
                              .is_hardest = hardest == 1,
                              .products = products,
                              .hinges = hinges,
                              .sums = got,
                              .d_sums = d};
        k.margins(NULL, &a);
        for (size_t i = 0; i < M; i++)
            assert_true(fabs(got[i] - sums[hardest][i]) < 1e-15);
        k.margins_bwd(NULL, &a);
        want[0] = 2;
        want[2] = hardest == 1 ? -2 : -4;
        want[5] = hardest == 1 ? 0 : 2;
        want[2 * LD + 2] = 8;
        want[2 * LD + 5] = -8;
        for (size_t i = 0; i < PNB_COUNT(want); i++)
            assert_true(products[i] == want[i]);
    }
}

/* A number that is none ends in the sum, wherever it stands, and leads back to where the reference
 * says; a margin of 0 is none. */
static void check_end(const pnb__kernels *table, const pnb_ctx *ctx, bool is_hardest, size_t at)
{
    float products[N] = {1, 0, -1}, want[N], equal[N] = {1, 0, -1}, sum = -1, one = 1;
    double hinges[N];
    pnb__kernels ref;
    pnb__margin_args a = {.m = 1, .n = N, .k = 1, .margin = 1, .is_hardest = is_hardest};
    a.products = products, a.hinges = hinges, a.sums = &sum, a.d_sums = &one;
    pnb__kernels_ref_f32(&ref);
    table->margins(ctx, &a);
    wait_for(table, ctx);
    assert_true(sum == 0);
    products[at] = NAN;
    memcpy(want, products, sizeof want);
    table->margins(ctx, &a);
    wait_for(table, ctx);
    assert_true(isnan(sum));
    table->margins_bwd(ctx, &a);
    wait_for(table, ctx);
    a.products = want;
    ref.margins_bwd(NULL, &a);
    for (size_t i = 0; i < N; i++)
        assert_true(products[i] == want[i]);
    a.products = equal;
    table->margins_bwd(ctx, &a);
    wait_for(table, ctx);
    assert_true(equal[0] == 0 && equal[1] == 0 && equal[2] == 0);
}

static void margins_at_their_ends(void **state)
{
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels table;
        pnb_ctx *ctx;
        if (!table_at(t, &table, 1, &ctx))
            continue;
        for (size_t i = 0; i < 2 * N; i++)
            check_end(&table, ctx, i >= N, i % N);
        pnb_ctx_free(ctx);
    }
}

/* Rows that are one have no slope, and a root no pole there. */
static void kernels_of_distances(void **state)
{
    (void)state;
    enum { DIM = 2 };
    const double x[M * DIM] = {1, 2, 0, -1}, y[N * DIM] = {1, 2, 3, 0, 0, 0.5};
    double square_x[M], square_y[N], d[M] = {1, 2};
    k.row_squares(NULL, M, DIM, x, square_x);
    k.row_squares(NULL, N, DIM, y, square_y);
    for (int root = 0; root < 2; root++) {
        double products[M * N], sums[M];
        pnb__kernel_args a = {.m = M,
                              .n = N,
                              .dim = DIM,
                              .gamma = 0.5,
                              .is_root = root == 1,
                              .x = x,
                              .y = y,
                              .square_x = square_x,
                              .square_y = square_y,
                              .products = products,
                              .sums = sums,
                              .d_sums = d};
        for (size_t i = 0; i < M * N; i++)
            products[i] = x[i / N * DIM] * y[i % N * DIM] + x[i / N * DIM + 1] * y[i % N * DIM + 1];
        k.kernel_strip(NULL, &a);
        k.kernel_strip_bwd(NULL, &a);
        for (size_t i = 0; i < M; i++) {
            double sum = 0;
            for (size_t j = 0; j < N; j++) {
                double dx = x[i * DIM] - y[j * DIM], dy = x[i * DIM + 1] - y[j * DIM + 1];
                double d2 = dx * dx + dy * dy, f = root == 1 ? sqrt(d2 + 1e-12) : d2;
                double slope = -0.5 * exp(-0.5 * f) * d[i] / (root == 1 ? 2 * f : 1);
                sum += exp(-0.5 * f);
                if (root == 1 && d2 == 0)
                    slope = 0;
                assert_true(fabs(products[i * N + j] - slope) < 1e-12);
            }
            assert_true(fabs(sums[i] - sum) < 1e-12);
        }
    }
}

/* ---- every table ---- */

static const size_t sizes[][2] = {{1, 1}, {2, 3}, {3, 7}, {5, 40}, {4, 300}, {0, 4}};

static strip strip_of(size_t at, int bits)
{
    return (strip){
        .m = sizes[at][0], .n = sizes[at][1], .flag = bits & 1, .backward = bits & 2, .dim = 37};
}

/* Rows name a column more than once, and their match. */
static void labels_of_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8 * PNB_COUNT(sizes); i++) {
        strip c = strip_of(i / 8, (int)(i % 8));
        int32_t columns[64], match[16];
        fixture f;
        c.k = i % 8;
        c.base = i & 2 ? 0.25 : 0;
        for (size_t j = 0; j < c.m * c.k; j++)
            columns[j] = (int32_t)(j * 7 % 3 % c.n);
        for (size_t j = 0; j < c.m; j++)
            match[j] = (int32_t)(j * 5 % c.n);
        c.columns = columns, c.match = c.flag ? match : NULL;
        fixture_init(&f, i, 1e-5, 1e-5);
        add_labels(&c, &f);
        compare_all(&f, labels_body, &c);
    }
}

static void margins_of_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8 * PNB_COUNT(sizes); i++) {
        strip c = strip_of(i / 8, (int)(i % 8));
        fixture f;
        c.k = 1 + i % 8 / 4;
        c.dim = 5;
        c.base = 0.2;
        fixture_init(&f, i, 1e-5, 1e-5);
        add_margins(&c, &f);
        compare_all(&f, margins_body, &c);
    }
}

static void kernels_of_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4 * PNB_COUNT(sizes); i++) {
        strip c = strip_of(i / 4, (int)(i % 4));
        fixture f;
        c.base = 0.5;
        fixture_init(&f, i, 2e-5, 2e-5);
        add_distances(&c, &f, 0.4);
        compare_all(&f, kernel_body, &c);
    }
}

/* A rate at which sums are far from 0. */
static void spreads_of_tables(void **state)
{
    (void)state;
    static const double rates[] = {0.5, 2, 300};
    for (size_t i = 0; i < 6 * PNB_COUNT(sizes); i++) {
        strip c = strip_of(i / 6, (int)(i % 2) * 2);
        fixture f;
        c.n++;
        c.base = rates[i % 6 / 2];
        fixture_init(&f, i, 2e-4, 2e-4);
        add_distances(&c, &f, 0.4);
        f.arrays[c.square_x].is_output = false; /* the strip is of rows of y */
        compare_all(&f, spread_body, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_by_marks),       cmocka_unit_test(margins_of_the_best),
        cmocka_unit_test(margins_at_their_ends), cmocka_unit_test(kernels_of_distances),
        cmocka_unit_test(labels_of_tables),      cmocka_unit_test(margins_of_tables),
        cmocka_unit_test(kernels_of_tables),     cmocka_unit_test(spreads_of_tables),
    };
    return cmocka_run_group_tests(tests, use_doubles, NULL);
}
