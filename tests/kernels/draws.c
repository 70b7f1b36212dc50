/* Samples of Gaussian rows by a stream: each number is the one that the stream has at its place,
 * whichever rows are asked for and in whichever order; gradients are the sums that the definition
 * says, added to what is there; every table against the f64 reference. */
#include "tests/kernels/strips.h"

enum { B = 4, J = 3, D = 5 };
static const int32_t pairs[B] = {2, 0, 3, 1}, key[4] = {5, -7, 11, 1};

/* e of number `at` of the stream, one call after the other from its start */
static double number_of_stream(size_t at)
{
    pnb__rng rng;
    double e = 0;
    pnb__rng_init(&rng, 5 | (uint64_t)(uint32_t)-7 << 32, 11 | (uint64_t)1 << 32);
    for (size_t i = 0; i <= at; i++)
        e = pnb__rng_normal(&rng);
    return e;
}

static double e_of(size_t row, size_t j, size_t d)
{
    return number_of_stream(((size_t)pairs[row] * J + j) * D + d);
}

static void by_definition(void **state)
{
    enum { FIRST = 1, N = 2 };
    double mean[B * D], log_var[B * D], x[N * J * D], dx[N * J * D];
    double d_mean[B * D], d_log_var[B * D];
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    (void)state;
    for (size_t i = 0; i < B * D; i++) {
        mean[i] = (double)i / 7;
        log_var[i] = (double)i / 9 - 2;
        d_mean[i] = d_log_var[i] = 1;
    }
    for (size_t i = 0; i < N * J * D; i++)
        dx[i] = (double)(i % 13) - 6;
    pnb__draw_args a = {.first = FIRST, .n_rows = N, .n_samples = J, .dim = D, .mean = mean};
    a.log_var = log_var, a.pairs = pairs, a.key = key, a.x = x;
    k.draw(NULL, &a);
    a.dx = dx, a.d_mean = d_mean, a.d_log_var = d_log_var;
    k.draw_bwd(NULL, &a);
    for (size_t row = 0; row < B; row++)
        for (size_t d = 0; d < D; d++) {
            size_t at = row * D + d;
            bool is_asked = row >= FIRST && row < FIRST + N;
            double std = exp(log_var[at] / 2), want_mean = 1, want_log_var = 1;
            for (size_t j = 0; j < J && is_asked; j++) {
                size_t i = ((row - FIRST) * J + j) * D + d;
                double e = e_of(row, j, d);
                assert_true(is_close(x[i], mean[at] + std * e, 1e-14, 1e-14));
                want_mean += dx[i];
                want_log_var += dx[i] * std * e / 2;
            }
            assert_true(is_close(d_mean[at], want_mean, 1e-13, 1e-13));
            assert_true(is_close(d_log_var[at], want_log_var, 1e-13, 1e-13));
        }
}

/* A gradient that nobody wants is not written. */
static void without_gradients(void **state)
{
    double mean[B] = {0}, log_var[B] = {0}, dx[B] = {1, 2, 3, 4}, d_mean[B] = {0};
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    (void)state;
    pnb__draw_args a = {.n_rows = B, .n_samples = 1, .dim = 1, .mean = mean, .log_var = log_var};
    a.pairs = pairs, a.key = key, a.dx = dx;
    k.draw_bwd(NULL, &a);
    a.d_mean = d_mean;
    k.draw_bwd(NULL, &a);
    for (size_t i = 0; i < B; i++)
        assert_true(d_mean[i] == dx[i]);
}

static void all_tables(void **state)
{
    static const size_t dims[] = {1, 63, 256, 300};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(dims); i++) {
        drawn c = {.a = {.first = 1, .n_rows = 2, .n_samples = 3, .dim = dims[i]}, .rows = B};
        fixture f;
        c.pairs = pairs, c.key = key;
        fixture_init(&f, 3 + i, 1e-5, 1e-5);
        add_draws(&c, &f);
        compare_all(&f, draw_body, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_definition),
        cmocka_unit_test(without_gradients),
        cmocka_unit_test(all_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
