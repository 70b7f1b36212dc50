/* Affinity: which processors are taken, and that all threads of a process keep to them. */
#include "base/threads/affinity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>

static cpu_set_t set_of(size_t n, const size_t *numbers)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < n; i++)
        CPU_SET(numbers[i], &set);
    return set;
}

static void the_highest_numbers_are_taken(void **state)
{
    (void)state;
    cpu_set_t all = set_of(5, (const size_t[]){0, 3, 4, 70, 1023});
    cpu_set_t last = pnb__affinity_take_last(&all, 2);
    cpu_set_t wanted = set_of(2, (const size_t[]){70, 1023}),
              rest = set_of(3, (const size_t[]){0, 3, 4});
    assert_true(CPU_EQUAL(&last, &wanted));
    assert_true(CPU_EQUAL(&all, &rest));
    last = pnb__affinity_take_last(&all, 0);
    assert_int_equal(CPU_COUNT(&last), 0);
    assert_true(CPU_EQUAL(&all, &rest));
    last = pnb__affinity_take_last(&all, 4); /* more than there are */
    assert_true(CPU_EQUAL(&last, &rest));
    assert_int_equal(CPU_COUNT(&all), 0);
}

typedef struct other {
    sem_t ask, told;
    cpu_set_t first, then;
} other;

static void *look_twice(void *user)
{
    other *o = user;
    pnb__affinity_get(&o->first);
    sem_post(&o->told);
    sem_wait(&o->ask);
    pnb__affinity_get(&o->then);
    return NULL;
}

static void threads_keep_to_their_set(void **state)
{
    (void)state;
    cpu_set_t before, found;
    other o;
    pthread_t thread;
    assert_true(pnb__affinity_get(&before));
    cpu_set_t others = before, last = pnb__affinity_take_last(&others, 1);
    assert_int_equal(CPU_COUNT(&last), 1);
    sem_init(&o.ask, 0, 0);
    sem_init(&o.told, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, look_twice, &o), 0);
    sem_wait(&o.told);
    assert_true(CPU_EQUAL(&o.first, &before));
    assert_true(pnb__affinity_is_shared(&before));

    /* this one, and no other */
    assert_int_equal(sched_setaffinity(0, sizeof last, &last), 0);
    assert_true(pnb__affinity_get(&found));
    assert_true(CPU_EQUAL(&found, &last));
    bool is_one = CPU_COUNT(&before) == 1; /* processor: nothing can differ */
    assert_int_equal(pnb__affinity_is_shared(&last), is_one);
    assert_int_equal(pnb__affinity_is_shared(&before), is_one);
    sem_post(&o.ask);
    pthread_join(thread, NULL);
    assert_true(CPU_EQUAL(&o.then, &before));

    assert_true(pnb__affinity_keep_process(&before));
    assert_int_equal(pthread_create(&thread, NULL, look_twice, &o), 0);
    sem_wait(&o.told);
    assert_true(pnb__affinity_keep_process(&last)); /* all that are there */
    assert_true(pnb__affinity_is_shared(&last));
    sem_post(&o.ask);
    pthread_join(thread, NULL);
    assert_true(CPU_EQUAL(&o.first, &before));
    assert_true(CPU_EQUAL(&o.then, &last));
    assert_true(pnb__affinity_keep_process(&before));
    cpu_set_t none;
    CPU_ZERO(&none);
    assert_false(pnb__affinity_keep_process(&none));
    sem_destroy(&o.ask);
    sem_destroy(&o.told);
}

/* Off the processors named, and back to its whole set; nowhere where no other is allowed. */
static void a_thread_leaves_processors(void **state)
{
    (void)state;
    cpu_set_t before, then, taken;
    assert_true(pnb__affinity_get(&before));
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&before) > 1; i++) {
        if (!CPU_ISSET(i, &before))
            continue;
        cpu_set_t one = set_of(1, &i); /* it is there, and may go */
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
        taken = before; /* all but i */
        CPU_CLR(i, &taken);
        assert_true(pnb__affinity_leave(&taken));
        assert_int_equal(sched_getcpu(), i);
        assert_true(pnb__affinity_get(&then));
        assert_true(CPU_EQUAL(&then, &before));
    }
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        CPU_SET(i, &taken);
    assert_false(pnb__affinity_leave(&taken));
    assert_true(pnb__affinity_get(&then));
    assert_true(CPU_EQUAL(&then, &before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_highest_numbers_are_taken),
                                       cmocka_unit_test(threads_keep_to_their_set),
                                       cmocka_unit_test(a_thread_leaves_processors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
