/* Learning rates by step, against numbers by hand; the reference's curves are compared by the
 * golden runner. */
#include "tests/train/fixture.h"

#include <math.h>

#include "penumbra/optim.h"

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-15 + 1e-12 * fabs(want)))
        fail_msg("got %.17g, wanted %.17g", got, want);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(pnb_schedule_name(PNB_SCHEDULE_COOLDOWN), "const-cooldown");
    assert_null(pnb_schedule_name(PNB_N_SCHEDULE_KINDS));
}

static void test_schedules(void **state)
{
    (void)state;
    pnb_schedule s = {.kind = PNB_SCHEDULE_COSINE, .base = 2, .warmup = 4, .total = 24};
    assert_near(pnb_schedule_lr(&s, 0), 0.5);
    assert_near(pnb_schedule_lr(&s, 3), 2);
    assert_near(pnb_schedule_lr(&s, 4), 2);
    assert_near(pnb_schedule_lr(&s, 14), 1);
    assert_true(pnb_schedule_lr(&s, 23) > 0);
    assert_near(pnb_schedule_lr(&s, 24), 0);
    assert_near(pnb_schedule_lr(&s, 1000), 0);
    s.min_ratio = 0.02;
    assert_near(pnb_schedule_lr(&s, 4), 2);
    assert_near(pnb_schedule_lr(&s, 14), 0.04 + 1.96 / 2);
    assert_near(pnb_schedule_lr(&s, 24), 0.04);
    s.kind = PNB_SCHEDULE_CONST;
    assert_near(pnb_schedule_lr(&s, 1), 1);
    assert_near(pnb_schedule_lr(&s, 20), 2);
    s.kind = PNB_SCHEDULE_COOLDOWN;
    s.cooldown = 10;
    s.cooldown_power = 2;
    s.cooldown_end = 0.5;
    assert_near(pnb_schedule_lr(&s, 14), 2);
    assert_near(pnb_schedule_lr(&s, 19), 0.25 * 1.5 + 0.5);
    s.kind = PNB_SCHEDULE_TORCH_COSINE;
    s.min_ratio = 0;
    assert_near(pnb_schedule_lr(&s, 0), 2);
    assert_near(pnb_schedule_lr(&s, 12), 1);
    assert_near(pnb_schedule_lr(&s, 36), 1); /* rises again */
}

/* Warm-up and cosine of the first steps, then both once more over what is left: the rate of a phase
 * never reads the other's length. */
static void test_two_phases(void **state)
{
    (void)state;
    const pnb_schedule s = {
        .kind = PNB_SCHEDULE_COSINE, .base = 2, .warmup = 2, .total = 22, .restart = 10};
    pnb_schedule first = s, second = s;
    first.restart = second.restart = 0;
    first.total = 10;
    second.total = 12;
    for (int64_t step = 0; step < 22; step++)
        assert_near(pnb_schedule_lr(&s, step), step < 10 ? pnb_schedule_lr(&first, step)
                                                         : pnb_schedule_lr(&second, step - 10));
    assert_near(pnb_schedule_lr(&s, 6), 1);  /* the middle of 2 .. 10 */
    assert_near(pnb_schedule_lr(&s, 10), 1); /* the first of two steps of warm-up, again */
    assert_near(pnb_schedule_lr(&s, 17), 1); /* the middle of 12 .. 22 */
}

/* base gamma^n from each milestone on, behind a warm-up, of the run and not of its phases. */
static void test_milestones(void **state)
{
    (void)state;
    pnb_schedule s = {.kind = PNB_SCHEDULE_MULTISTEP,
                      .base = 8,
                      .warmup = 2,
                      .total = 40,
                      .milestones = {10, 30},
                      .gamma = 0.25};
    static const struct {
        int64_t step;
        double rate;
    } want[] = {{0, 4}, {1, 8}, {2, 8}, {9, 8}, {10, 2}, {29, 2}, {30, 0.5}, {1000, 0.5}};
    for (int phases = 1; phases <= 2; phases++) {
        s.restart = phases == 1 ? 0 : 5;
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
            assert_near(pnb_schedule_lr(&s, want[i].step), want[i].rate);
    }
    s.milestones[0] = 0; /* none */
    assert_near(pnb_schedule_lr(&s, 1000), 8);
}

/* A run that is all warm-up ends at the least rate, and no length divides by zero. */
static void test_short_runs(void **state)
{
    (void)state;
    pnb_schedule s = {
        .kind = PNB_SCHEDULE_COSINE, .base = 2, .warmup = 4, .total = 4, .min_ratio = 0.1};
    assert_near(pnb_schedule_lr(&s, 3), 2);
    assert_near(pnb_schedule_lr(&s, 4), 0.2);
    s = (pnb_schedule){.kind = PNB_SCHEDULE_TORCH_COSINE, .base = 2};
    assert_near(pnb_schedule_lr(&s, 0), 2);
    s = (pnb_schedule){.kind = PNB_SCHEDULE_COOLDOWN, .base = 2, .total = 5};
    assert_near(pnb_schedule_lr(&s, 5), 2);
    s = (pnb_schedule){.kind = PNB_SCHEDULE_COOLDOWN,
                       .base = 2,
                       .total = 5,
                       .cooldown = 5,
                       .cooldown_power = 1,
                       .cooldown_end = 1};
    assert_near(pnb_schedule_lr(&s, 0), 2);
    assert_near(pnb_schedule_lr(&s, 9), 1); /* not below its end */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_two_phases), cmocka_unit_test(test_milestones),
        cmocka_unit_test(test_short_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
