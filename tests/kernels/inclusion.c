/* The inclusion measure: the published form term by term as the ProLIP code writes it, the exact
 * form by quadrature, gradients by differences, and extreme variances. */
#include "tests/kernels/harness.h"

typedef struct inclusion_case {
    size_t n;
    bool published, accumulate;
    double eps;
    int m1, lv1, m2, lv2, h, dh, d[4];
} inclusion_case;

static void inclusion_body(run *r, fixture *x)
{
    const inclusion_case *c = r->user;
    pnb__inclusion_args a = {.n = c->n, .published = c->published, .eps = c->eps};
    a.m1 = P(r, x, c->m1), a.lv1 = P(r, x, c->lv1);
    a.m2 = P(r, x, c->m2), a.lv2 = P(r, x, c->lv2);
    a.h = P(r, x, c->h);
    r->k.inclusion(r->ctx, &a);
    a.dh = P(r, x, c->dh);
    a.dm1 = P(r, x, c->d[0]), a.dlv1 = P(r, x, c->d[1]);
    a.dm2 = P(r, x, c->d[2]), a.dlv2 = P(r, x, c->d[3]);
    for (int i = 0; i < 4; i++)
        a.accumulate[i] = c->accumulate;
    r->k.inclusion_bwd(r->ctx, &a);
}

static void check_inclusion(inclusion_case c, double low, double high, double tol)
{
    fixture x;
    fixture_init(&x, c.n, tol, 5e-6);
    c.m1 = input(&x, c.n, -0.2, 0.2);
    c.lv1 = input(&x, c.n, low, high);
    c.m2 = input(&x, c.n, -0.2, 0.2);
    c.lv2 = input(&x, c.n, low, high);
    c.h = output(&x, c.n, false);
    c.dh = input(&x, c.n, -1, 1);
    for (int i = 0; i < 4; i++)
        c.d[i] = output(&x, c.n, c.accumulate);
    compare_all(&x, inclusion_body, &c);
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 15, 33, 4099};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        for (int bits = 0; bits < 4; bits++) {
            inclusion_case c = {.n = sizes[i], .published = bits & 1, .accumulate = bits & 2};
            c.eps = -10;
            check_inclusion(c, -3, 3, 1e-5);
            if (c.published)
                check_inclusion(c, -12, -8, 2e-5);
        }
    }
}

/* Every pair of log-variances out to +-30, and equal ones: finite, and h antisymmetric. */
static void test_extreme(void **state)
{
    (void)state;
    static const float values[] = {-30, -29, -10, 0, 1e-3f, 10, 30};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (int i = 0; i < 49 * 2; i++) {
            float m1 = 1, m2 = -1, lv1 = values[i % 7], lv2 = values[i / 7 % 7], dh = 1;
            float h, back, d[4];
            pnb__inclusion_args a = {.n = 1, .published = i >= 49, .eps = -10, .m1 = &m1};
            a.lv1 = &lv1, a.m2 = &m2, a.lv2 = &lv2, a.h = &h, a.dh = &dh;
            a.dm1 = d, a.dlv1 = d + 1, a.dm2 = d + 2, a.dlv2 = d + 3;
            k.inclusion(ctx, &a);
            k.inclusion_bwd(ctx, &a);
            assert_true(isfinite(h));
            for (int j = 0; j < 4; j++)
                assert_true(isfinite(d[j]));
            if (lv1 == lv2)
                assert_true(h == 0);
            a.m1 = &m2, a.m2 = &m1, a.lv1 = &lv2, a.lv2 = &lv1, a.h = &back;
            k.inclusion(ctx, &a);
            assert_true(is_close((double)back, -(double)h, 1e-5, 1e-5));
        }
        pnb_ctx_free(ctx);
    }
}

/* loss.py: a = e^(-lv1+eps) + e^(-lv2+eps)/2, b = 2 m1 e^(-lv1+eps) + m2 e^(-lv2+eps),
 * c = m1^2 e^(-lv1+eps) + m2^2 e^(-lv2+eps)/2, -2 lv1 - lv2 - log(a)/2 + b^2/(4a) - c */
static double published_by_terms(double m1, double lv1, double m2, double lv2, double eps)
{
    double p = exp(-lv1 + eps), q = exp(-lv2 + eps), a = p + 0.5 * q, b = 2 * m1 * p + m2 * q;
    double c = m1 * m1 * p + 0.5 * m2 * m2 * q;
    return -2 * lv1 - lv2 - 0.5 * log(a) + b * b / (4 * a) - c;
}

static double density(double x, double mean, double var)
{
    return exp(-0.5 * (x - mean) * (x - mean) / var) / sqrt(2 * acos(-1) * var);
}

/* log of the integral of p1^2 p2 */
static double exact_by_quadrature(double m1, double lv1, double m2, double lv2)
{
    double sum = 0, step = 1e-3;
    for (double x = -20; x < 20; x += step)
        sum += density(x, m1, exp(lv1)) * density(x, m1, exp(lv1)) * density(x, m2, exp(lv2));
    return log(sum * step);
}

static double reference(bool published, double eps, const double v[4])
{
    double h;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__inclusion_args a = {.n = 1, .published = published, .eps = eps, .m1 = v, .lv1 = v + 1};
    a.m2 = v + 2, a.lv2 = v + 3, a.h = &h;
    k.inclusion(NULL, &a);
    return h;
}

static const double points[][4] = {
    {0.3, -1, -0.2, 0.5}, {0, 0.7, 0, -1.2}, {1.5, -2, -1, -2}, {-0.4, 1, 0.9, 0.2}};

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(points); i++) {
        const double *v = points[i];
        double want = published_by_terms(v[0], v[1], v[2], v[3], -1.5) -
                      published_by_terms(v[2], v[3], v[0], v[1], -1.5);
        assert_true(is_close(reference(true, -1.5, v), want, 1e-12, 0));
        want = exact_by_quadrature(v[0], v[1], v[2], v[3]) -
               exact_by_quadrature(v[2], v[3], v[0], v[1]);
        assert_true(is_close(reference(false, -1.5, v), want, 1e-9, 0));
    }
}

typedef struct problem {
    double v[4];
    bool published;
} problem;

static double problem_loss(void *user)
{
    problem *p = user;
    return reference(p->published, -1.5, p->v);
}

static void test_gradients(void **state)
{
    (void)state;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    for (size_t i = 0; i < 2 * PNB_COUNT(points); i++) {
        problem p = {.published = i % 2};
        memcpy(p.v, points[i / 2], sizeof p.v);
        double one = 1, d[4];
        pnb__inclusion_args a = {.n = 1, .published = p.published, .eps = -1.5, .m1 = p.v};
        a.lv1 = p.v + 1, a.m2 = p.v + 2, a.lv2 = p.v + 3, a.dh = &one;
        a.dm1 = d, a.dlv1 = d + 1, a.dm2 = d + 2, a.dlv2 = d + 3;
        k.inclusion_bwd(NULL, &a);
        check_gradient(problem_loss, &p, p.v, d, 4, 1e-8);
    }
}

/* ---- rows against rows ---- */

typedef struct rows_case {
    size_t n1, n2, width, ld;
    double weight_log, weight_distance;
    int m1, v1, m2, v2, h, spread;
} rows_case;

static void rows_body(run *r, fixture *x)
{
    const rows_case *c = r->user;
    const pnb__inclusion_rows_args a = {.n1 = c->n1,
                                        .n2 = c->n2,
                                        .width = c->width,
                                        .ld = c->ld,
                                        .m1 = P(r, x, c->m1),
                                        .v1 = P(r, x, c->v1),
                                        .m2 = P(r, x, c->m2),
                                        .v2 = P(r, x, c->v2),
                                        .weight_log = c->weight_log,
                                        .weight_distance = c->weight_distance,
                                        .h = P(r, x, c->h),
                                        .spread = P(r, x, c->spread)};
    for (size_t i = 0; i < c->n1 * c->ld; i++) { /* between the rows nothing is written */
        if (r->is_double)
            ((double *)a.h)[i] = ((double *)a.spread)[i] = 3;
        else
            ((float *)a.h)[i] = ((float *)a.spread)[i] = 3;
    }
    r->k.host.inclusion_rows(r->ctx, &a);
}

static void check_rows(size_t n1, size_t n2, size_t width, double low, double high)
{
    fixture x;
    rows_case c = {.n1 = n1, .n2 = n2, .width = width, .ld = n2 + width % 3};
    c.weight_log = n1 % 2 ? 0.5 : -0.5;
    c.weight_distance = n2 % 2 ? 1 : -1.25;
    fixture_init(&x, n1 + 10 * n2 + width, 1e-6 * (double)width + 1e-6, 2e-6);
    c.m1 = input(&x, n1 * width, -0.2, 0.2);
    c.v1 = input(&x, n1 * width, low, high);
    c.m2 = input(&x, n2 * width, -0.2, 0.2);
    c.v2 = input(&x, n2 * width, low, high);
    c.h = output(&x, n1 * c.ld, false);
    c.spread = output(&x, n1 * c.ld, false);
    compare_all(&x, rows_body, &c);
}

static void test_rows(void **state)
{
    (void)state;
    static const size_t widths[] = {0, 1, 4, 15, 16, 33, 1601};
    for (size_t i = 0; i < PNB_COUNT(widths); i++)
        for (size_t n1 = 0; n1 < 4; n1++)
            for (size_t n2 = 0; n2 < 4; n2++)
                check_rows(n1, n2, widths[i], 0.05, 3);
}

/* Every pair of variances out to e^+-30, far and equal means: finite, and 0 for equal variances. */
static void test_rows_extreme(void **state)
{
    (void)state;
    static const double logs[] = {-30, -29.9, -10, 0, 10, 30};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (size_t i = 0; i < PNB_COUNT(logs); i++)
            for (size_t j = 0; j < PNB_COUNT(logs); j++) {
                float m1[40], v1[40], m2[40], v2[40], h, spread;
                for (size_t d = 0; d < 40; d++) {
                    m1[d] = 1000, m2[d] = d % 2 ? -1000 : 1000;
                    v1[d] = (float)exp(logs[i]), v2[d] = (float)exp(logs[j]);
                }
                const pnb__inclusion_rows_args a = {.n1 = 1,
                                                    .n2 = 1,
                                                    .width = 40,
                                                    .ld = 1,
                                                    .m1 = m1,
                                                    .v1 = v1,
                                                    .m2 = m2,
                                                    .v2 = v2,
                                                    .weight_log = 0.5,
                                                    .weight_distance = 1,
                                                    .h = &h,
                                                    .spread = &spread};
                k.host.inclusion_rows(ctx, &a);
                assert_true(isfinite(h) && isfinite(spread) && spread > 0);
                if (i == j)
                    assert_true(fabsf(h) <= 1e-4f);
            }
        pnb_ctx_free(ctx);
    }
}

/* The reference of the rows against the sum of the reference of single dimensions. */
static void test_rows_agree(void **state)
{
    (void)state;
    double sum = 0, h, spread, m1[4], v1[4], m2[4], v2[4];
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    for (size_t i = 0; i < 4; i++) {
        m1[i] = points[i][0], v1[i] = exp(points[i][1]);
        m2[i] = points[i][2], v2[i] = exp(points[i][3]);
        sum += reference(false, 0, points[i]) - 0.5 * (points[i][3] - points[i][1]);
    }
    const pnb__inclusion_rows_args a = {.n1 = 1,
                                        .n2 = 1,
                                        .width = 4,
                                        .ld = 1,
                                        .m1 = m1,
                                        .v1 = v1,
                                        .m2 = m2,
                                        .v2 = v2,
                                        .weight_log = 0.5,
                                        .weight_distance = 1,
                                        .h = &h,
                                        .spread = &spread};
    k.host.inclusion_rows(NULL, &a);
    assert_true(is_close(h, sum, 1e-12, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_extreme),
        cmocka_unit_test(test_forms),     cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_rows_extreme),
        cmocka_unit_test(test_rows_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
