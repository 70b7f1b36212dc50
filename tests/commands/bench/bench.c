/* How often a bench calls what it measures, which of the calls count, and what is told of them. */
#include "commands/bench/bench.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

static void test_summary(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    pnb__bench_times t = pnb__bench_summarise(odd, 3);
    assert_true(t.median_s == 2 && t.min_s == 1 && t.max_s == 3 && t.n == 3);
    t = pnb__bench_summarise(even, 4);
    assert_true(fabs(t.median_s - 2.5) < 1e-12);
    assert_true(t.p99_s == 4);
    double many[200];
    for (int i = 0; i < 200; i++)
        many[i] = 200 - i;
    t = pnb__bench_summarise(many, 200);
    assert_true(t.p99_s == 199 && t.max_s == 200);
}

typedef struct counted {
    int n, n_between, fail_at, last_work; /* last_work: calls of work when between was called */
} counted;

/* Two calls that are slow, as those that plan and pack are. */
static pnb_status work(void *user, pnb_error *err)
{
    counted *c = user;
    const struct timespec slow = {.tv_nsec = 30 * 1000 * 1000};
    if (++c->n == c->fail_at)
        return pnb__fail(err, PNB_ARG, "call %d", c->n);
    if (c->n <= 2)
        nanosleep(&slow, NULL);
    return PNB_OK;
}

static void between(void *user)
{
    counted *c = user;
    c->n_between++;
    c->last_work = c->n;
}

static pnb_status measure(counted *c, size_t repeats, pnb__bench_times *out, pnb__app *app)
{
    const pnb__bench_opts opts = {.min_repeats = repeats, .between = between};
    return pnb__bench_measure(app, &opts, work, c, out);
}

static void calls_that_plan_and_pack_do_not_count(void **state)
{
    (void)state;
    pnb__app app = {.common = {.quiet = true}};
    pnb__bench_times t;
    counted c = {0};
    assert_int_equal(measure(&c, 5, &t, &app), PNB_OK);
    assert_int_equal(t.n, 5);
    assert_int_equal(c.n, 7);
    assert_int_equal(c.n_between, 5);
    assert_int_equal(c.last_work, 6); /* before each that counts, and before no other */
    assert_true(t.min_s < 0.03);      /* none of the slow ones, which take at least that */
}

static void the_first_failure_ends_it(void **state)
{
    (void)state;
    for (int at = 1; at <= 4; at++) {
        pnb__app app = {.common = {.quiet = true}};
        pnb__bench_times t;
        counted c = {.fail_at = at};
        assert_int_equal(measure(&c, 5, &t, &app), PNB_ARG);
        assert_int_equal(c.n, at);
        pnb_error_reset(&app.err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_summary),
                                       cmocka_unit_test(calls_that_plan_and_pack_do_not_count),
                                       cmocka_unit_test(the_first_failure_ends_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
