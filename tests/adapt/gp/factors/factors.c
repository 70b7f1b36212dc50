/* Factors of many covariances: products against loops, slopes against differences, floats against
 * doubles. */
#include "adapt/gp/factors/factors.h"
#include "tests/adapt/gp/support.h"

enum { MOST_M = 150, F = 6, N = 7 };

typedef struct setting {
    pnb_ctx *ctx;
    pnb__factors factors;
    size_t m, f, size;
    double *data, *grad, b[MOST_M * N], db[MOST_M * N], slope[F * N], added[F * N], weight;
} setting;

static void set_up(setting *s, size_t m, size_t n_factors)
{
    pnb_error err = {0};
    double *full = malloc(m * m * sizeof *full);
    *s = (setting){.m = m, .f = n_factors, .size = pnb__factors_size(m, n_factors), .weight = 0.3};
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__factors_init(&s->factors, s->ctx, PNB__F64, m, n_factors, N, &err),
                     PNB_OK);
    s->data = malloc(2 * s->size * sizeof *s->data);
    s->grad = s->data + s->size;
    fill_normal(full, m * m, 1);
    pnb__factors_fill(&s->factors, full, s->data);
    free(full);
    fill_normal(s->grad, s->size, 2); /* numbers that differ between factors */
    for (size_t f = 0; f < n_factors; f++)
        for (size_t r = 0; r < m; r++)
            for (size_t c = 0; c <= r; c++)
                s->data[pnb__factors_at(m, n_factors, f, r, c)] =
                    s->grad[pnb__factors_at(m, n_factors, f, r, c)] + (r == c ? 2 : 0);
    fill_normal(s->b, m * N, 3);
    fill_normal(s->slope, n_factors * N, 4);
}

static void tear_down(setting *s)
{
    pnb__factors_reset(&s->factors);
    pnb_ctx_free(s->ctx);
    free(s->data);
}

static double loss(void *user)
{
    setting *s = user;
    pnb__factors_forward(&s->factors, s->data, s->b, N, s->added);
    double sum = s->weight * pnb__factors_divergence(&s->factors, s->data);
    for (size_t i = 0; i < s->f * N; i++)
        sum += s->slope[i] * s->added[i];
    return sum;
}

static const size_t sizes[] = {1, 5, 32, 33, 64, 65, MOST_M};

static void products_are_those_of_loops(void **state)
{
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(sizes); k++)
        for (size_t n_factors = 1; n_factors <= F; n_factors += F - 1) {
            setting s;
            size_t m = sizes[k];
            double *c = malloc(2 * m * m * sizeof *c), *gram = c + m * m, divergence = 0;
            set_up(&s, m, n_factors);
            loss(&s);
            assert_int_equal(pnb__factors_gram(&s.factors, s.data, gram, NULL), PNB_OK);
            for (size_t f = 0; f < n_factors; f++) {
                pnb__factors_read(&s.factors, s.data, f, c);
                for (size_t n = 0; n < N; n++) {
                    double sum = 0;
                    for (size_t j = 0; j < m; j++) {
                        double t = 0;
                        for (size_t i = j; i < m; i++)
                            t += c[i * m + j] * s.b[i * N + n];
                        sum += t * t;
                    }
                    near("added", f * N + n, s.added[f * N + n], sum, 1e-11);
                }
                for (size_t i = 0; i < m; i++) {
                    divergence -= log(fabs(c[i * m + i])) + 0.5;
                    for (size_t j = 0; j <= i; j++) {
                        divergence += 0.5 * c[i * m + j] * c[i * m + j];
                        for (size_t r = i; r < m; r++) /* the part of both triangles */
                            gram[r * m + i] -= c[r * m + j] * c[i * m + j];
                    }
                }
            }
            near("divergence", m, pnb__factors_divergence(&s.factors, s.data), divergence, 1e-11);
            for (size_t i = 0; i < m * m; i++)
                if (i / m >= i % m)
                    near("gram", i, gram[i], 0, 1e-10);
            free(c);
            tear_down(&s);
        }
}

/* Where they are 0, and by differences in and around the first block's end. */
static void slopes_are_those_of_the_sum(void **state)
{
    (void)state;
    setting s;
    double divergence = 0;
    set_up(&s, 70, F);
    loss(&s);
    pnb__factors_backward(&s.factors, s.data, s.slope, s.weight, N,
                          &(pnb__factors_grad){s.grad, s.db, &divergence});
    near("divergence", 0, divergence, pnb__factors_divergence(&s.factors, s.data), 1e-13);
    for (size_t f = 0; f < F; f++)
        for (size_t r = 0; r < s.m; r += 3)
            for (size_t c = 0; c <= r; c += r - c > 4 ? 5 : 1) {
                size_t at = pnb__factors_at(s.m, F, f, r, c);
                check_slopes("factor", loss, &s, s.data + at, 1, s.grad + at, 3e-6);
            }
    check_slopes("b", loss, &s, s.b, s.m * N, s.db, 3e-6);
    enum { W = PNB__FACTOR_WIDTH };
    for (size_t r = 0; r < W; r++)
        for (size_t i = r + 1; i < W; i++)
            assert_true(s.grad[(r * F + 1) * W + i] == 0 && s.data[(r * F + 1) * W + i] == 0);
    tear_down(&s);
}

/* Lists of before, whose first block has 64 columns and whose second begins at row 64. */
static void blocks_of_before_are_read(void **state)
{
    (void)state;
    static const size_t points[] = {20, 32, 33, 64, 100};
    for (size_t k = 0; k < PNB_COUNT(points); k++) {
        size_t m = points[k], wide = PNB_MIN(m, (size_t)64), rest = m - wide;
        size_t n = F * (m * wide + rest * rest);
        double *from = malloc(n * sizeof *from), *to = malloc(n * sizeof *to);
        assert_int_equal(pnb__factors_size_before(m, F), n);
        for (size_t i = 0; i < n; i++)
            from[i] = 7e9; /* above the diagonal nothing is looked at */
        for (size_t f = 0; f < F; f++)
            for (size_t r = 0; r < m; r++)
                for (size_t c = 0; c <= r; c++) {
                    size_t second = F * m * wide + ((r - wide) * F + f) * rest + c - wide;
                    from[c < wide ? (r * F + f) * wide + c : second] =
                        (double)(f * 1000000 + r * 1000 + c);
                }
        pnb__factors_from_before(m, F, sizeof *from, from, to);
        double sum = 0;
        for (size_t i = 0; i < pnb__factors_size(m, F); i++)
            sum += to[i];
        for (size_t f = 0; f < F; f++)
            for (size_t r = 0; r < m; r++)
                for (size_t c = 0; c <= r; c++) {
                    double want = (double)(f * 1000000 + r * 1000 + c);
                    assert_true(to[pnb__factors_at(m, F, f, r, c)] == want);
                    sum -= want;
                }
        assert_true(sum == 0); /* and zeros above it */
        free(from);
        free(to);
    }
}

static void floats_are_near_doubles(void **state)
{
    (void)state;
    setting s;
    pnb__factors floats;
    float data[F * MOST_M * MOST_M], grad[F * MOST_M * MOST_M];
    double added[F * N], db[MOST_M * N] = {0};
    set_up(&s, MOST_M, F);
    loss(&s);
    pnb__factors_backward(&s.factors, s.data, s.slope, s.weight, N,
                          &(pnb__factors_grad){s.grad, s.db, NULL});
    assert_int_equal(pnb__factors_init(&floats, s.ctx, PNB__F32, s.m, F, N, NULL), PNB_OK);
    for (size_t i = 0; i < s.size; i++)
        data[i] = (float)s.data[i];
    pnb__factors_forward(&floats, data, s.b, N, added);
    near("divergence", 0, pnb__factors_divergence(&floats, data),
         pnb__factors_divergence(&s.factors, s.data), 1e-6);
    pnb__factors_backward(&floats, data, s.slope, s.weight, N,
                          &(pnb__factors_grad){grad, db, NULL});
    for (size_t i = 0; i < F * N; i++)
        near("added", i, added[i], s.added[i], 1e-5);
    for (size_t i = 0; i < s.size; i++)
        near("slope", i, (double)grad[i], s.grad[i], 2e-4);
    pnb__factors_reset(&floats);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_those_of_loops),
                                       cmocka_unit_test(slopes_are_those_of_the_sum),
                                       cmocka_unit_test(blocks_of_before_are_read),
                                       cmocka_unit_test(floats_are_near_doubles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
