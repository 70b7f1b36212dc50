/* The queue of requests: order, a full queue, clients that left, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <time.h>

#include "server/batching/work_queue.h"

enum { N = 200 };

typedef struct item {
    pnb__work work;
    atomic_bool is_gone;
    atomic_int n_run, n_dropped;
} item;

typedef struct fixture {
    atomic_bool is_held; /* workers stay in their first item */
    atomic_int n_inside;
} fixture;

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static void run(void *user, pnb__work *w)
{
    fixture *f = user;
    atomic_fetch_add(&f->n_inside, 1);
    while (atomic_load(&f->is_held))
        pause_ms(1);
    atomic_fetch_add(&((item *)w)->n_run, 1);
    atomic_fetch_sub(&f->n_inside, 1);
}

static void drop(void *user, pnb__work *w)
{
    (void)user;
    atomic_fetch_add(&((item *)w)->n_dropped, 1);
}

static bool is_gone(void *user, pnb__work *w)
{
    (void)user;
    return atomic_load(&((item *)w)->is_gone);
}

static const pnb__work_calls calls = {run, drop, is_gone};

static void each_runs_once(void **state)
{
    static item items[N];
    fixture f = {.is_held = false};
    pnb__work_queue *q = NULL;
    (void)state;
    assert_int_equal(pnb__work_queue_start(&q, 4, N, &calls, &f, NULL), PNB_OK);
    for (size_t i = 0; i < N; i++)
        assert_true(pnb__work_queue_push(q, &items[i].work));
    pnb__work_queue_free(q); /* ends what is in it */
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(items[i].n_run, 1);
        assert_int_equal(items[i].n_dropped, 0);
    }
    pnb__work_queue_free(NULL);
}

static void a_full_queue_and_clients_that_left(void **state)
{
    item items[8] = {0};
    fixture f = {.is_held = true};
    pnb__work_queue *q = NULL;
    (void)state;
    assert_int_equal(pnb__work_queue_start(&q, 1, 3, &calls, &f, NULL), PNB_OK);
    assert_true(pnb__work_queue_push(q, &items[0].work));
    while (atomic_load(&f.n_inside) == 0)
        pause_ms(1);
    for (size_t i = 1; i <= 3; i++)
        assert_true(pnb__work_queue_push(q, &items[i].work));
    assert_int_equal(pnb__work_queue_waiting(q), 3);
    assert_false(pnb__work_queue_push(q, &items[4].work));
    items[1].is_gone = items[3].is_gone = true; /* the first and the last in the queue */
    assert_true(pnb__work_queue_push(q, &items[4].work));
    assert_true(pnb__work_queue_push(q, &items[5].work));
    assert_false(pnb__work_queue_push(q, &items[6].work));
    assert_int_equal(items[1].n_dropped + items[3].n_dropped, 2);
    items[5].is_gone = true; /* seen when its turn comes */
    atomic_store(&f.is_held, false);
    pnb__work_queue_free(q);
    static const int wanted_run[] = {1, 0, 1, 0, 1, 0, 0}, wanted_dropped[] = {0, 1, 0, 1, 0, 1, 0};
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(items[i].n_run, wanted_run[i]);
        assert_int_equal(items[i].n_dropped, wanted_dropped[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_runs_once),
                                       cmocka_unit_test(a_full_queue_and_clients_that_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
