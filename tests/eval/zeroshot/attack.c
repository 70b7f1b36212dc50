/* Steps of an attack against a plain f64 computation, where they end on losses of one's own, and a
 * control that has the attack's size. */
#include "penumbra/attack.h"

#include "tests/prob/support.h"

enum { N = 400 };

static void fill(float *x, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < N; i++)
        x[i] = (float)pnb__rng_uniform(&rng);
}

/* The published step, written out. */
static double by_definition(double origin, double x, double gradient, const pnb_attack_opts *o)
{
    double moved = x + o->step * (gradient > 0 ? 1.0 : gradient < 0 ? -1.0 : 0.0);
    if (moved > origin + o->eps)
        moved = origin + o->eps;
    if (moved < origin - o->eps)
        moved = origin - o->eps;
    return moved < o->low ? o->low : moved > o->high ? o->high : moved;
}

static void one_step(void **state)
{
    (void)state;
    float origin[N], gradient[N], x[N], before[N];
    pnb_attack_opts o = pnb_attack_opts_default();
    fill(origin, 1);
    fill(gradient, 2);
    for (size_t i = 0; i < N; i++)
        gradient[i] = i % 7 == 0 ? 0.0f : gradient[i] - 0.5f;
    pnb_attack_start(origin, N, &o, 5, x);
    for (int step = 0; step < 6; step++) {
        memcpy(before, x, sizeof x);
        assert_ok(pnb_attack_step(origin, gradient, N, &o, x, err));
        for (size_t i = 0; i < N; i++)
            assert_near(
                (double)x[i],
                by_definition((double)origin[i], (double)before[i], (double)gradient[i], &o), 1e-7,
                0);
    }
}

/* Enough steps along one direction reach the corner of the box, and a quadratic its top. */
static void where_steps_end(void **state)
{
    (void)state;
    float origin[N], gradient[N], x[N];
    pnb_attack_opts o = pnb_attack_opts_default();
    fill(origin, 3);
    pnb_attack_start(origin, N, &o, 0, x);
    for (size_t i = 0; i < N; i++)
        gradient[i] = i % 2 == 0 ? 1e-20f : -3.0f;
    for (int k = 0; k < 9; k++)
        assert_ok(pnb_attack_step(origin, gradient, N, &o, x, err));
    for (size_t i = 0; i < N; i++) {
        double corner = (double)origin[i] + (i % 2 == 0 ? o.eps : -o.eps);
        assert_near((double)x[i], fmin(fmax(corner, 0), 1), 1e-7, 0);
    }
    for (int k = 0; k < 9; k++) { /* -(x - t)^2 with t = origin + eps/2 */
        for (size_t i = 0; i < N; i++)
            gradient[i] = -2.0f * (x[i] - origin[i] - (float)o.eps / 2.0f);
        assert_ok(pnb_attack_step(origin, gradient, N, &o, x, err));
    }
    for (size_t i = 0; i < N; i++)
        if ((double)origin[i] < 1 - o.eps && (double)origin[i] > o.eps)
            assert_true(fabs((double)x[i] - (double)origin[i] - o.eps / 2) <= o.step + 1e-6);
}

/* The start fills the box evenly, is another one for another row or seed, and the same again. */
static void start(void **state)
{
    (void)state;
    float origin[N], x[N], other[N];
    double mean = 0, square = 0;
    pnb_attack_opts o = pnb_attack_opts_default();
    for (size_t i = 0; i < N; i++)
        origin[i] = 0.5f;
    pnb_attack_start(origin, N, &o, 1, x);
    pnb_attack_start(origin, N, &o, 1, other);
    assert_memory_equal(x, other, sizeof x);
    pnb_attack_start(origin, N, &o, 2, other);
    assert_memory_not_equal(x, other, sizeof x);
    o.seed = 9;
    pnb_attack_start(origin, N, &o, 1, other);
    assert_memory_not_equal(x, other, sizeof x);
    for (size_t i = 0; i < N; i++) {
        double u = ((double)x[i] - 0.5) / o.eps;
        assert_true(fabs(u) <= 1 + 1e-6);
        mean += u / N;
        square += u * u / N;
    }
    assert_true(fabs(mean) < 4 * sqrt(1.0 / 3 / N)); /* uniform: mean 0, variance 1/3 */
    assert_true(fabs(square - 1.0 / 3) < 4 * sqrt(4.0 / 45 / N));
}

/* Every value is as far from its origin as in the attack, on a side that is drawn. */
static void noise(void **state)
{
    (void)state;
    float origin[N], x[N], out[N];
    size_t n_same = 0;
    pnb_attack_opts o = pnb_attack_opts_default();
    o.low = -10; /* nothing is cut off */
    o.high = 10;
    fill(origin, 4);
    pnb_attack_start(origin, N, &o, 3, x);
    pnb_attack_noise(origin, x, N, &o, 3, out);
    for (size_t i = 0; i < N; i++) {
        double change = (double)x[i] - (double)origin[i],
               drawn = (double)out[i] - (double)origin[i];
        assert_near(fabs(drawn), fabs(change), 1e-6, 0);
        n_same += drawn * change > 0;
    }
    assert_true(n_same > N / 2 - 40 && n_same < N / 2 + 40); /* 4 standard deviations */
    o.low = 0;
    o.high = 1;
    for (size_t i = 0; i < N; i++)
        origin[i] = (float)(i % 2), x[i] = i % 2 == 0 ? 0.01f : 0.99f;
    pnb_attack_noise(origin, x, N, &o, 3, out);
    for (size_t i = 0; i < N; i++)
        assert_true(out[i] >= 0 && out[i] <= 1);
}

static void bad_input(void **state)
{
    (void)state;
    const float origin[2] = {0.5f, 0.5f}, gradient[2] = {1, NAN};
    float x[2] = {0.5f, 0.5f};
    pnb_attack_opts o = pnb_attack_opts_default();
    assert_ok(pnb_attack_opts_check(&o, err));
    assert_fails(pnb_attack_step(origin, gradient, 2, &o, x, err), PNB_NUMERIC, "value 1");
    assert_true(x[1] == 0.5f);
    o.eps = 0;
    assert_fails(pnb_attack_opts_check(&o, err), PNB_ARG, "eps 0");
    o = pnb_attack_opts_default();
    o.step = NAN;
    assert_fails(pnb_attack_opts_check(&o, err), PNB_ARG, "step nan");
    o = pnb_attack_opts_default();
    o.high = 0;
    assert_fails(pnb_attack_opts_check(&o, err), PNB_ARG, "above 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_step),
                                       cmocka_unit_test(where_steps_end), cmocka_unit_test(start),
                                       cmocka_unit_test(noise), cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
