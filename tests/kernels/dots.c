/* Inner products of many rows with few, and of one with one, of every table beside the f64
 * reference. */
#include "tests/kernels/harness.h"

typedef struct dots_case {
    size_t m, n, k, lda, ldb, ldc;
    int a, b, c;
} dots_case;

static void dots_body(run *r, fixture *x)
{
    const dots_case *c = r->user;
    const pnb__dots_args args = {.m = c->m,
                                 .n = c->n,
                                 .k = c->k,
                                 .lda = c->lda,
                                 .ldb = c->ldb,
                                 .ldc = c->ldc,
                                 .a = P(r, x, c->a),
                                 .b = P(r, x, c->b),
                                 .c = P(r, x, c->c)};
    for (size_t i = 0; i < c->m; i++) /* what lies between the rows is nobody's */
        for (size_t j = c->n; j < c->ldc; j++) {
            if (r->is_double)
                ((double *)args.c)[i * c->ldc + j] = 7;
            else
                ((float *)args.c)[i * c->ldc + j] = 7;
        }
    r->k.host.dots(r->ctx, &args);
}

static void check_dots(size_t m, size_t n, size_t k, size_t pad)
{
    fixture x;
    dots_case c = {.m = m, .n = n, .k = k, .lda = k + pad, .ldb = k + 2 * pad, .ldc = n + pad};
    fixture_init(&x, m * 1000 + n * 100 + k, 1e-6 * sqrt((double)k + 1), 1e-5);
    c.a = input(&x, m * c.lda, -1, 1);
    c.b = input(&x, n * c.ldb, -1, 1);
    c.c = output(&x, m * c.ldc, false);
    compare_all(&x, dots_body, &c);
}

static void dot_body(run *r, fixture *x)
{
    const dots_case *c = r->user;
    double product = r->k.host.dot(c->k, P(r, x, c->a), P(r, x, c->b));
    if (r->is_double)
        *(double *)P(r, x, c->c) = product;
    else
        *(float *)P(r, x, c->c) = (float)product;
}

/* Lengths around those that vectors and sums side by side end at. */
static void test_one_with_one(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 140; n++) {
        fixture x;
        dots_case c = {.k = n};
        fixture_init(&x, n, 1e-6 * sqrt((double)n + 1), 1e-5);
        c.a = input(&x, n, -1, 1);
        c.b = input(&x, n, -1, 1);
        c.c = output(&x, 1, false);
        compare_all(&x, dot_body, &c);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t rows[] = {0, 1, 3, 4, 5, 33}, widths[] = {0, 1, 15, 16, 17, 100, 513};
    for (size_t i = 0; i < PNB_COUNT(rows); i++)
        for (size_t n = 0; n <= 17; n++)
            check_dots(rows[i], n, widths[(i + n) % PNB_COUNT(widths)], (i + n) % 3);
    for (size_t w = 0; w < PNB_COUNT(widths); w++)
        check_dots(9, 5, widths[w], w % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_one_with_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
